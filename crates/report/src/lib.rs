#![doc = include_str!("../README.md")]
//!
//! # Hostile input
//! Names of threads and commands belong to the program under test. In HTML the templates escape
//! them. The JSON element has escapes such as `\u003c` for `<`, `>` and `&`, so no text can end the
//! element. A content security policy in the page forbids every request as the second line.

#![forbid(unsafe_code)]

mod bound_plots;
mod calibration;
mod campaign;
mod characterization;
mod chart;
mod comparison;
mod cosched;
mod drift;
mod ecdf;
mod evidence;
mod figure;
mod floorplan;
mod heat_map;
mod html_frame;
mod last_comparison;
mod latency;
mod pairs;
mod paths;
mod placement;
mod progress;
mod question;
mod selection;
mod threads;
mod tune;
mod windows;

pub use calibration::calibration_page;
pub use campaign::{campaign_mark, campaign_page};
pub use characterization::{characterization_mark, characterization_page};
pub use comparison::comparison_page;
pub use cosched::cosched_page;
pub use html_frame::ReportError;
pub use latency::latency_page;
pub use pairs::pairs_page;
pub use paths::paths_page;
pub use placement::placement_page;
pub use selection::{Selection, selection_page};
pub use threads::{ThreadsSearch, threads_page};
pub use tune::{PlacedNumber, TriedPolicy, TuneSearch, tune_page};
