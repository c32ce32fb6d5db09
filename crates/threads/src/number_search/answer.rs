//! [`FoundNumber`]: the answer of a search for a number. [`Unfound`]: a search without one.

use super::NumberSearchError;
use crate::{Attempt, Jump, NumberAdvice, PhaseChange, ReinforcerEnd};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::time::Duration;

/// The number that a search found, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundNumber {
    /// The number that was chosen, as the search counts threads.
    pub chosen: u32,
    /// n: what the program is given for that number.
    pub parameter: u32,
    /// The threads that the program makes with `parameter`.
    pub threads: u32,
    /// How sure that is, in numbers as the search counts them. `None`: the published search and a
    /// sweep of a single round do not show.
    pub advice: Option<NumberAdvice>,
    /// Why the search ended.
    pub stopped: NumberSearchEnd,
    /// Share of the best speed that the choice loses, if every number was tried.
    pub loss: Option<f64>,
    /// All probes of the last stage, in order, the closing probe included.
    pub attempts: Vec<Attempt>,
    /// The index of the record of each attempt.
    pub records: Vec<usize>,
    /// All other records.
    pub set_aside: SetAside,
    /// The program came into another phase between two of them.
    pub phase_change: Option<PhaseChange>,
    /// Why the closing probe failed, if it did. If progress jumped, no number may follow from it.
    pub unchecked: Option<NumberSearchError>,
}

impl FoundNumber {
    /// Time that the probes took.
    pub fn cost(&self) -> Duration {
        self.attempts.iter().map(|attempt| attempt.probe.cost).sum()
    }

    /// Whether the program fell below the floor with this n, so that it is not tried again.
    pub fn gave_up(&self, n: u32) -> bool {
        self.attempts.iter().any(|attempt| attempt.below_floor && attempt.probe.parameter == n)
    }

    /// How many numbers fell below the floor.
    pub fn below_floor(&self) -> usize {
        let below = self.attempts.iter().filter(|attempt| attempt.below_floor);
        below.map(|attempt| attempt.probe.parameter).collect::<BTreeSet<_>>().len()
    }

    /// Why nothing may rest on the probes: the progress of the program jumped after them.
    pub fn jumped(&self) -> Option<Jump> {
        match &self.unchecked {
            Some(NumberSearchError::Jumped(jump)) => Some(*jump),
            _ => None,
        }
    }
}

/// Why a search for a number, by any method, ended.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum NumberSearchEnd {
    /// The choice can lose little, and all numbers that needed a second probe had one.
    Settled,
    /// The next probe would have been one too many.
    Probes,
    /// There was no time left for another probe.
    Time {
        /// The parameter of the probe that was broken off when the time was over.
        broken_off: Option<u32>,
    },
    /// Every number was tried as often as was asked for.
    AllTried {
        /// Numbers that were tried.
        numbers: u32,
        /// How often each.
        rounds: u32,
    },
    /// More threads kept hardly more contexts busy.
    CpuUtil {
        /// The parameter that was tried last.
        last: u32,
    },
    /// Waiting for locks was high and rose fast.
    Lock {
        /// The parameter that was tried last.
        last: u32,
    },
    /// Waiting for locks was high and voluntary switches rose fast.
    VcxRate {
        /// The parameter that was tried last.
        last: u32,
    },
    /// Waiting for locks was high and migrations rose fast.
    MigrRate {
        /// The parameter that was tried last.
        last: u32,
    },
    /// There was nothing left to try.
    MostThreads {
        /// The parameter that was tried last.
        last: u32,
    },
}

impl NumberSearchEnd {
    /// In one word: `SETTLED`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Settled => "SETTLED",
            Self::Probes => "PROBES",
            Self::Time { .. } => "TIME",
            Self::AllTried { .. } => "ALL_TRIED",
            Self::CpuUtil { .. } => "CPU_UTIL",
            Self::Lock { .. } => "LOCK",
            Self::VcxRate { .. } => "VCX_RATE",
            Self::MigrRate { .. } => "MIGR_RATE",
            Self::MostThreads { .. } => "MOST_THREADS",
        }
    }

    pub(super) fn published(reason: ReinforcerEnd, last: u32) -> Self {
        match reason {
            ReinforcerEnd::CpuUtil => Self::CpuUtil { last },
            ReinforcerEnd::Lock => Self::Lock { last },
            ReinforcerEnd::VcxRate => Self::VcxRate { last },
            ReinforcerEnd::MigrRate => Self::MigrRate { last },
            ReinforcerEnd::MostThreads => Self::MostThreads { last },
        }
    }
}

/// A search without an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Unfound {
    /// The probes of its last stage, in order.
    pub attempts: Vec<Attempt>,
    /// The index of the record of each attempt.
    pub records: Vec<usize>,
    /// All other records.
    pub set_aside: SetAside,
    /// Why no answer can come of them. `None`: the search has not ended.
    pub why: Option<NumberSearchError>,
}

/// How many measurements a search set aside, by why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetAside {
    /// They failed.
    pub failed: usize,
    /// The budget cut them short.
    pub cut_short: usize,
    /// They showed no progress, and were made again.
    pub idle: usize,
    /// Others starved them, and they were made again.
    pub starved: usize,
    /// Progress had jumped, and they were made again.
    pub jumped: usize,
    /// They came before whole runs were timed, or the first run was timed by them.
    pub earlier: usize,
}

impl SetAside {
    /// All of them.
    pub fn total(self) -> usize {
        self.failed + self.cut_short + self.idle + self.starved + self.jumped + self.earlier
    }
}
