//! One self-contained HTML page from a campaign: it works offline, without script (text, tables,
//! drawing), in light and dark, at 400 px and on paper.
//!
//! [`page()`] is pure: a campaign, its records and its outcome in, text out. The page is made in
//! two layers. Everything that needs to be *known* is HTML from `templates/`: the verdict, the
//! placement drawn on the machine, a sentence with numbers for every chart, tables. What can only
//! be *seen* is a chart, sent as data (`chart`) in one JSON element and drawn by uPlot (`assets/`),
//! which is inlined. Nothing is ever requested from anywhere.
//!
//! [`comparison_page()`] is such a page of ways of placing beside one another, [`selection_page()`]
//! one of which programs run together, [`threads_page()`] one of how many threads a program should
//! run. [`latency_page()`] is another page of the same kind, without
//! charts: core-to-core latencies as a heat map; [`characterization_page()`] is one of slowdowns,
//! whose heat maps the pages of campaigns on that machine have too.
//!
//! # Hostile input
//! Names of threads and commands belong to the program under test. In HTML the templates escape
//! them; in the JSON element `<`, `>` and `&` are written as `\u003c` and so on, so no text can end
//! the element. A content security policy in the page forbids every request as the second line.

#![forbid(unsafe_code)]

mod characterization;
mod chart;
mod comparison;
mod drift;
mod ecdf;
mod evidence;
mod figure;
mod floorplan;
mod latency;
mod page;
mod progress;
mod question;
mod repetitions;
mod selection;
mod tail;
mod threads;

pub use characterization::{characterization_mark, characterization_page};
pub use comparison::comparison_page;
pub use latency::latency_page;
pub use page::{ReportError, page};
pub use selection::{Selection, selection_page};
pub use threads::{ThreadsSearch, threads_page};
