#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod bound_note;
mod characterization;
mod comparison;
mod cosched;
mod counter_quality;
mod did_you_mean;
mod doctor;
mod drawing;
mod export_note;
mod gain;
mod hand_over;
mod labelled_lines;
mod latency;
mod machine_note;
mod machine_outline;
mod nodes_outlook;
mod note;
mod number_advice;
mod number_answer;
#[cfg(test)]
mod one_line;
mod other_load;
mod outcome;
mod pairs;
mod paths;
mod plan;
mod printable;
mod progress_notice;
mod reason;
mod selection;
mod shell;
mod summary;
mod threads;
mod tune;
mod unfinished;
mod verdict;

pub use bound_note::{bound_notes, tagged_bound_notes};
pub use characterization::{
    absence, characterization_noise, characterization_verdict, characterization_warning, doubt,
    excerpt_reason, other_cores, sensitivity,
};
pub use comparison::{
    against, caveat, claim_verdict, comparison_verdict, left_out, loses, lost, standing,
};
pub use cosched::{CoschedFindings, coscheduled_over};
pub use counter_quality::counter_sentences;
pub use did_you_mean::did_you_mean;
pub use doctor::{counter_event, finding, finding_remedy};
pub use drawing::draw_assignment;
pub use export_note::{export_note, tagged_export_notes};
pub use gain::gain_text;
pub use hand_over::HandOver;
pub use labelled_lines::LabelledLines;
pub use latency::{LatencyFindings, difference, domain_kinds, latency_warning};
pub use machine_note::{machine_note, tagged_machine_notes};
pub use machine_outline::{Entry, Outline, runs};
pub use nodes_outlook::{NodesOutlook, nodes_outlook};
pub use note::{
    memory, note, outcome_memory, sentence, tagged, tagged_program_notes, texts, unmoved_memory,
};
pub use number_answer::{
    NumberAnswer, NumberEstimate, no_number, tagged_threads_notes, tagged_tune_notes,
};
pub use other_load::notable_share;
pub use outcome::{
    bound_text, certified, certified_text, gap_text, outcome_text, placement_gain, profiling_end,
    typical,
};
pub use pairs::{PairsFindings, pairs_ran, ratio};
pub use paths::{
    HOT_PATH_COLUMNS, annotated_code, block_text, hot_path_rows, more_hot_paths, path_text,
    paths_totals, paths_verdict, recorded_name, share_interval,
};
pub use pinwise_figures as figures;
pub use plan::{named_threads, plan_caution, plan_difference};
pub use printable::{one_line, printable, printable_json};
pub use progress_notice::{Notice, ProfilingOutlook, long_time, notice, profiling_outlook};
pub use reason::{
    level_source, stop_reason, stop_reasons, strategy_reason, strategy_reasons, unmeasured,
};
pub use selection::{
    SelectionVerdict, alone_rate, selection_bound, selection_estimates, selection_name,
    selection_verdict, selections_drawn,
};
pub use shell::{Files, quoted, shell};
pub use summary::{Summary, SummaryVerdict};
pub use threads::{
    NothingCompared, NumberSearchStop, NumberVerdict, ROLE_COLUMNS, calibration_verdict,
    critical_roles, fewer_threads, performance_name, role_cells, set_aside_text, threads_note,
};
pub use tune::{
    NoPlacement, TuneVerdict, last_comparison_note, no_tune_verdict, placed_by, policy_name,
    tune_next, tune_part,
};
pub use unfinished::{Planned, Unfinished, campaign_state, no_answer_yet};
pub use verdict::{
    NextStep, Verdict, budget_for, next_steps, notes, simulated, tagged_notes, verdict,
};
