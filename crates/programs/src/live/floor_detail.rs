//! [`FloorDetail`]: the unpinned windows that judged the floor, as a record stores them. The check
//! itself is in `live.rs`.

use pinwise_measure::Detail;
use serde::{Deserialize, Serialize};

/// The detail of an assignment that was measured under a floor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FloorDetail {
    /// The unpinned windows that were made meanwhile, in order. They belong to the baseline.
    pub unpinned: Vec<UnpinnedWindow>,
}

/// An unpinned window that is part of another setting's measurement.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct UnpinnedWindow {
    /// Its performance, higher is better.
    pub performance: f64,
    /// Its length, in ordinary windows.
    pub windows: f64,
    /// When it ended, in seconds since the measurement began.
    pub after_s: f64,
}

impl FloorDetail {
    /// The detail; `None` if there was no such window.
    pub(super) fn of(unpinned: Vec<UnpinnedWindow>) -> Option<Detail> {
        if unpinned.is_empty() { None } else { Detail::of(&Self { unpinned }) }
    }
}
