#![doc = include_str!("../README.md")]
//!
//! A [`Job`] is a question about a program or a machine. A placement asks about a [`Subject`], such
//! as a running program or a command. A number of threads asks about a [`ThreadsProgram`].
//! [`run()`] opens the program, measures in a campaign of the store, and returns the job's answer.
//! [`resume()`] goes on with a campaign that was interrupted or killed, and returns an [`Answer`]
//! of its kind. Each kind of question is one file here. The decisions are in separate crates
//! (`placement`, `threads`, …).
//!
//! Nothing here parses arguments or prints. Progress, notes and interim results are [`Event`]s.
//! Their receiver decides how to show them. Every way to end a run is a value: an answer, or a
//! [`JobError`] that says what is stored.
//!
//! A recording of branches is read without a store, too: [`profile_paths`].
//!
//! A plan is used without a store: [`HeldProgram`] applies it, [`PlannedStart`] starts a program
//! under it.
//!
//! # Map
//!
//! - One file for each question: `place`, `compare`, `select`, `threads`, `tune`, `characterize`,
//!   `latency`, `calibrate`, `pairs`, `cosched`. `job` has their trait, `job_table` their list.
//! - From request to campaign: `placement_request`, `subject`, `simulation`, `open_subject`,
//!   `prepare_placement`, `profiling_cost`, `resume_check`.
//! - Measuring: `campaign_run`, `with_other_load`, `last_comparison`, `default_number`,
//!   `service_number`, `events`, `custom_testbed`.
//! - On several nodes: `open_subject/on_nodes` is the coordinator, `node_worker` the other side.
//! - Paths of a program: `branch_recorder` has perf record its branches, `paths` reads them.
//! - Using a plan: `apply`. Before anything is changed: `leftovers`.
//! - Results: `stored_campaign`, `stored_question`, `plan_file`, `no_plan`, `delete`,
//!   `output_check`, `error`.

#![forbid(unsafe_code)]

mod apply;
mod branch_recorder;
mod calibrate;
mod campaign_run;
mod characterize;
mod compare;
mod cosched;
mod custom_testbed;
mod default_number;
mod delete;
mod error;
mod events;
mod job;
mod job_table;
mod last_comparison;
mod latency;
mod leftovers;
mod no_plan;
mod node_worker;
mod open_subject;
mod output_check;
mod pairs;
mod paths;
mod place;
mod placement_request;
mod plan_file;
mod prepare_placement;
mod profiling_cost;
mod resume_check;
mod select;
mod service_number;
mod simulation;
mod stored_campaign;
mod stored_question;
mod subject;
mod threads;
mod tune;
mod with_other_load;

pub use apply::{
    AppliedPlan, ApplyError, ApplyOptions, HeldProgram, MissingThreads, NumberOutcome, PlanEvent,
    PlanEvents, PlannedRun, PlannedStart, Preview, StartOptions, Unplaced, preview_undo,
};
pub use branch_recorder::{BranchesRecorded, RecordError, RecordRequest, record_branches};
pub use calibrate::{CalibrationAnswer, CalibrationExamples, CalibrationRequest};
pub use campaign_run::record_count;
pub use characterize::{
    CharacterizeAnswer, CharacterizeRequest, DEFAULT_STRESSORS, benchmark_names,
};
pub use compare::{CompareAnswer, CompareQuestion, CompareRequest};
pub use cosched::{
    CoschedAnswer, CoschedPreview, CoschedRequest, PreviewBasis, PreviewedMove, preview_cosched,
};
pub use custom_testbed::{CustomTestbedError, place_on};
pub use delete::{DeleteError, Deleted, DeletedContents, Deletion, delete};
pub use error::{Failure, Interruption, JobError, Kept, Remedy};
pub use events::{Event, Events, Silent};
pub use job::{Caller, Job, run};
pub use job_table::{Answer, answer, resume, summary};
pub use last_comparison::{ComparedNumbers, LastComparison, LastComparisonQuestion};
pub use latency::{LatencyAnswer, LatencyRequest};
pub use leftovers::{data_folder, not_put_back, put_back_leftovers};
pub use no_plan::NoPlan;
pub use node_worker::serve_as_worker;
pub use open_subject::{named_cpus, nodes_cost, scope};
pub use output_check::{check_writable, unwritable_reason};
pub use pairs::{PairedPrograms, PairsAnswer, PairsRequest, paired_names};
pub use paths::{PathsError, PathsRequest, profile_paths};
pub use pinwise_cluster::Nodes;
pub use pinwise_measure::Interrupt;
pub use place::{PlaceAnswer, PlaceRequest, StoredSearch, assignment_count};
pub use placement_request::{DEFAULT_WORKLOAD, PlacementRequest, ReadingOptions};
pub use plan_file::plan_path;
pub use profiling_cost::{ProfilingCost, profiling_cost};
pub use select::{SelectAnswer, SelectRequest};
pub use simulation::{DESCRIPTION_EXTENSION, SimulatedProcessor, SimulationRequest, SmtSimulation};
pub use stored_question::{Named, measurement_budget, named_in};
pub use subject::{RUNTIME_METRIC, Subject};
pub use threads::{
    Confirmation, HostProgram, ModelledProgram, ShownProbe, ThreadsAnswer, ThreadsConclusion,
    ThreadsMethod, ThreadsOutcome, ThreadsProgram, ThreadsQuestion, ThreadsRequest, WatchSummary,
};
pub use tune::{
    LeftUndone, PoliciesQuestion, PolicyMeasurement, PolicyMeasurements, TuneAnswer,
    TuneConclusion, TuneLastComparison, TuneRequest, TunedPlacement,
};

/// Serves as the guardian, which puts affinities back, if this process was started for that. A
/// program that opens real programs calls it first in `main`, and returns if it is true.
pub fn served_as_guardian() -> bool {
    let guards =
        std::env::args_os().nth(1).is_some_and(|word| word == pinwise_linux::GUARDIAN_ARGUMENT);
    if guards {
        pinwise_linux::guardian_main();
    }
    guards
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_first_page_shows_an_example() {
        let example = include_str!("../examples/place.rs");
        let code = example.split_once("\n\n").unwrap().1;
        assert!(include_str!("../../../README.md").contains(&format!("\n{code}```")));
    }
}
