//! What the terminal, the page and plans say in the same words.
//!
//! Everything here turns values into text. [`figures`] writes numbers; [`Sheet`] breaks text at the
//! width of a terminal; [`draw_assignment`] draws threads on a machine; [`shell()`] quotes commands.
//! The other functions write the sentences about an outcome or a comparison, so that no two outputs
//! describe one result differently.

#![forbid(unsafe_code)]

mod comparison;
mod drawing;
mod name;
mod other_load;
mod outcome;
mod outline;
mod printable;
mod sheet;
mod shell;
mod threads;
mod verdict;

pub use comparison::{against, caveat, loses, lost, standing};
pub use drawing::draw_assignment;
pub use name::did_you_mean;
pub use other_load::{beside, crowd, crowded};
pub use outcome::{bound_text, certified, gap_text, outcome_text};
pub use outline::{Entry, Outline, runs};
pub use pinwise_figures as figures;
pub use printable::{one_line, printable};
pub use sheet::Sheet;
pub use shell::{Files, quoted, shell};
pub use threads::{stopped, threads_note};
pub use verdict::{NextStep, Verdict, budget_for, is_simulated, next_steps, notes, verdict};
