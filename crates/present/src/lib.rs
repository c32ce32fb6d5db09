#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod advice;
mod bound_note;
mod characterization;
mod comparison;
mod did_you_mean;
mod doctor;
mod drawing;
mod export_note;
mod gain;
mod latency;
mod machine_note;
mod note;
mod notice;
#[cfg(test)]
mod one_line;
mod other_load;
mod outcome;
mod outline;
mod plan;
mod printable;
mod reason;
mod selection;
mod sheet;
mod shell;
mod threads;
mod tune;
mod unfinished;
mod verdict;

pub use advice::advice_text;
pub use bound_note::{bound_notes, tagged_bound_notes};
pub use characterization::{
    absence, characterization_verdict, characterization_warning, doubt, excerpt_reason, sensitivity,
};
pub use comparison::{
    against, caveat, claim_verdict, comparison_verdict, left_out, loses, lost, standing,
};
pub use did_you_mean::did_you_mean;
pub use doctor::{finding, finding_remedy};
pub use drawing::draw_assignment;
pub use export_note::{export_note, tagged_export_notes};
pub use gain::gain_text;
pub use latency::{LatencyFindings, difference, domain_kinds, latency_warning};
pub use machine_note::{machine_note, tagged_machine_notes};
pub use note::{note, sentence, tagged, tagged_program_notes, texts, texts_shown};
pub use notice::{Notice, ProfilingOutlook, long_time, notice, profiling_outlook};
pub use other_load::notable_share;
pub use outcome::{
    bound_text, certified, gap_text, outcome_text, placement_gain, profiling_end, typical,
};
pub use outline::{Entry, Outline, runs};
pub use pinwise_figures as figures;
pub use plan::{plan_caution, plan_differences};
pub use printable::{one_line, printable};
pub use reason::{level_source, stop_reason, stop_reasons, strategy_reason, strategy_reasons};
pub use selection::{alone_rate, selection_name};
pub use sheet::Sheet;
pub use shell::{Files, quoted, shell};
pub use threads::{
    NothingCompared, NumberVerdict, fewer_threads, set_aside_text, stopped, threads_answer,
    threads_note,
};
pub use tune::{
    TuneVerdict, last_comparison_note, no_tune_verdict, policy_name, tune_next, tune_part,
    unannounced, unmeasured,
};
pub use unfinished::{Unfinished, unfinished};
pub use verdict::{
    NextStep, Verdict, budget_for, next_steps, notes, simulated, tagged_notes, verdict,
};
