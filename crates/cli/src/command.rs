//! One file per command: its arguments, and what it prints.

pub(crate) mod apply;
pub(crate) mod bound;
pub(crate) mod campaign;
pub(crate) mod characterize;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod cosched;
pub(crate) mod doctor;
pub(crate) mod export;
pub(crate) mod latency;
pub(crate) mod pairs;
pub(crate) mod paths;
pub(crate) mod place;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod select;
pub(crate) mod space;
pub(crate) mod threads;
pub(crate) mod topo;
pub(crate) mod tune;
pub(crate) mod worker;
pub(crate) mod workload;
