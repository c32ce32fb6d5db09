#![doc = include_str!("../README.md")]
//!
//! The library that does the job: it opens a program, measures, stores, resumes and answers.
//!
//! A [`Job`] is a question about a program or a machine: a [`Subject`], such as a running program
//! or a command, where threads are placed, and a [`ThreadsProgram`] where their number is asked.
//! [`run()`] opens the program, measures in a campaign of the store, and returns the job's answer.
//! [`resume()`] goes on with a campaign that was interrupted or killed, and returns an [`Answer`]
//! of its kind. Each kind of question is one file here; what it decides by is a crate of its own
//! (`placement`, `threads`, …).
//!
//! Nothing here parses arguments or prints. Progress, notes and interim results are [`Event`]s;
//! whoever receives them decides how to show them. Every way to end a run is a value: an answer, or
//! a [`JobError`] that says what is stored.
//!
//! # Map
//!
//! - One file for each question: `place`, `compare`, `select`, `threads`, `tune`, `characterize`,
//!   `latency`. `job` has their trait, `kinds` their list.
//! - From request to campaign: `request`, `model`, `open_subject`, `prepare`, `profile`,
//!   `resume_check`.
//! - Measuring: `campaign_run`, `watched_subject`, `events`, `own_testbed`.
//! - Results: `stored`, `summary`, `plan_file`, `no_plan`, `output_file`, `error`.

#![forbid(unsafe_code)]

mod calibration;
mod campaign_run;
mod characterize;
mod compare;
mod error;
mod events;
mod job;
mod kinds;
mod last_comparison;
mod latency;
mod model;
mod no_plan;
mod open_subject;
mod output_file;
mod own_testbed;
mod place;
mod plan_file;
mod prepare;
mod profiling_outlook;
mod request;
mod resume_check;
mod select;
mod stored;
mod summary;
mod threads;
mod tune;
mod watched_subject;

pub use calibration::{CalibrationAnswer, CalibrationExamples, CalibrationRequest};
pub use campaign_run::records_of;
pub use characterize::{CharacterizeAnswer, CharacterizeRequest, STRESSORS, benchmark_names};
pub use compare::{CompareAnswer, CompareRequest, Compared};
pub use error::{Failure, Interruption, JobError, Kept, Remedy};
pub use events::{Event, Events, Silent};
pub use job::{Caller, Job, run};
pub use kinds::{Answer, answer, resume};
pub use last_comparison::{Finals, FinalsQuestion};
pub use latency::{LatencyAnswer, LatencyRequest};
pub use model::{DESCRIPTION, Model};
pub use no_plan::NoPlan;
pub use open_subject::scope;
pub use output_file::{check_writable, why_not};
pub use own_testbed::{OwnTestbedError, place_on};
pub use pinwise_measure::Interrupt;
pub use place::{PlaceAnswer, PlaceRequest, StoredSearch, assignments_of};
pub use plan_file::plan_of;
pub use profiling_outlook::{ProfilingCost, profiling_cost};
pub use request::{
    DEFAULT_WORKLOAD, RUNTIME, Reading, Request, SelectRequest, Simulation, Subject,
    WORKLOAD_METRIC,
};
pub use select::SelectAnswer;
pub use summary::Summary;
pub use threads::{
    Confirmation, HostProgram, ModelledProgram, ShownProbe, ThreadsAnswer, ThreadsConclusion,
    ThreadsMethod, ThreadsOutcome, ThreadsProgram, ThreadsQuestion, ThreadsRequest,
};
pub use tune::{
    Concluded, PoliciesQuestion, PolicyMeasurement, PolicyMeasurements, TuneAnswer, TuneConclusion,
    TuneRequest, TunedPlacement,
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
