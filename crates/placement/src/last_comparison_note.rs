//! Notes of `tune` and of last comparisons, and why something was not measured, as values. The
//! crate `present` makes the text.

use pinwise_measure::{ProgramNote, value_or_text};
use pinwise_topology::Policy;
use serde::{Deserialize, Serialize};

/// Why something was not measured, or not to its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Unmeasured {
    /// No time was left for it.
    NoTime,
    /// The user stopped it.
    Interrupted,
    /// It failed.
    Failed {
        /// The message of the failure.
        error: String,
    },
    /// The load of the program changed: its progress with a number is far from what it was.
    Jumped {
        /// The number.
        n: u32,
        /// The progress now, as a multiple of that before.
        times: f64,
    },
    /// With a number the program fell below the floor that was asked for.
    BelowFloor {
        /// The number.
        n: u32,
    },
    /// From a store that was written before reasons had kinds. A sentence with a small first letter
    /// and no full stop.
    Text {
        /// The sentence.
        text: String,
    },
}

pinwise_measure::text_in_old_stores!(Unmeasured);

/// A note on such a search, besides the notes of its search for the number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum LastComparisonNote {
    /// The default is the number of CPUs that the program may use, because nothing shows another.
    DefaultAssumed {
        /// The default.
        n: u32,
        /// The threads that the program began with, if these were counted.
        threads: Option<u32>,
    },
    /// The default follows from the threads that the program began with.
    DefaultInferred {
        /// The default.
        n: u32,
        /// The threads.
        threads: u32,
    },
    /// A number under a policy of placement could not be measured.
    NotMeasured {
        /// The number.
        n: u32,
        /// The policy. `None`: unpinned.
        policy: Option<Policy>,
        /// Why.
        error: String,
    },
    /// A number could not be placed.
    NotPlaced {
        /// The number.
        n: u32,
        /// Why.
        reason: Unmeasured,
    },
    /// Something disturbed the measurements while numbers were placed.
    WhilePlaced {
        /// The numbers.
        numbers: Vec<u32>,
        /// The note.
        note: ProgramNote,
    },
    /// Other programs used the contexts. If several parts say so it is said once.
    Busy {
        /// Share of the contexts' time that they took, in the part where it was the largest.
        share: f64,
    },
    /// Other programs used the contexts during the last comparison.
    ComparisonBusy {
        /// Share of the contexts' time that they took.
        share: f64,
    },
    /// Rounds of the last comparison do not count. In one of their windows others took CPU time
    /// that the program wanted.
    RoundsStarved {
        /// Those rounds.
        rounds: u64,
        /// All rounds.
        of: u64,
    },
    /// Windows of the last comparison are missing.
    WindowsMissing {
        /// How many; 0 if an earlier version did not count them.
        #[serde(default)]
        windows: u64,
        /// Why.
        error: String,
    },
    /// The last comparison ended before its time.
    CutShort {
        /// Its rounds.
        rounds: u64,
        /// Why.
        #[serde(alias = "error", deserialize_with = "value_or_text")]
        reason: Unmeasured,
    },
    /// Few rounds of the last comparison fit the budget.
    FewRounds {
        /// Its rounds.
        rounds: u64,
    },
    /// The running process has this number now.
    Set {
        /// The number.
        n: u32,
        /// Whether the plan pins threads, which is not done yet.
        #[serde(default)]
        pins: bool,
    },
    /// From a store that was written before notes had kinds. A sentence with a small first letter
    /// and no full stop.
    Text {
        /// The sentence.
        text: String,
    },
}

pinwise_measure::text_in_old_stores!(LastComparisonNote);

impl LastComparisonNote {
    /// The default that it is about is a guess.
    pub fn is_guess(&self) -> bool {
        matches!(self, Self::DefaultAssumed { .. })
    }
}
