//! [`ThreadsNote`]: notes on a search for a number, as values. `present` makes the text.

use crate::{Jump, NumberSearchError, PhaseChange};
use pinwise_measure::value_or_text;
use serde::{Deserialize, Serialize};

/// Something to know about a search or its answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ThreadsNote {
    /// The control group of the program grants the CPU time of fewer contexts than it may run on.
    Quota {
        /// The control group.
        group: String,
        /// The CPU time that it grants, in contexts.
        granted: f64,
        /// Contexts of the machine.
        contexts: u32,
        /// Contexts that the program may run on.
        allowed: u32,
    },
    /// The program may not run on all contexts.
    Affinity {
        /// Contexts that it may run on.
        allowed: u32,
        /// Contexts of the machine.
        contexts: u32,
        /// The CPUs that it may run on, as a list.
        cpus: String,
    },
    /// Whole runs are measured, because they are short.
    ShortRuns {
        /// Seconds that one takes. `None`: the program ended within a probe.
        run_seconds: Option<f64>,
        /// Equal pieces of a run that were asked to be counted. Whole runs show by themselves how
        /// these divide.
        pieces: Option<u32>,
    },
    /// The answer is the largest number of several, and a larger one might be faster.
    CutOff {
        /// The answer.
        n: u32,
        /// The user named the largest number.
        asked: bool,
    },
    /// Nothing was compared with the program's own number. That number is a guess, and larger than
    /// all allowed ones.
    DefaultAboveMax {
        /// The program's own number.
        default: u32,
        /// The most to try.
        max: u32,
    },
    /// The program makes no more threads from some number on.
    Capped {
        /// The most threads that it makes, the first one included.
        threads: u32,
        /// The numbers that made them.
        numbers: Vec<u32>,
        /// The search counts these as the least of them.
        pooled: bool,
        /// Lesser numbers made fewer threads.
        follows: bool,
    },
    /// The threads of the first and the last n, for a program whose threads are not n.
    Translated {
        /// The range counts n, not threads.
        counts_n: bool,
        /// The first and the last n.
        n: [u32; 2],
        /// The threads that these make.
        threads: [u32; 2],
    },
    /// The program came into another phase during the search.
    Shifted(PhaseChange),
    /// It is unknown whether the program came into another phase: the closing probe failed.
    Unchecked {
        /// Why it failed.
        #[serde(deserialize_with = "value_or_text")]
        reason: NumberSearchError,
    },
    /// The load of the program changed, so no fresh windows compared the number.
    Jumped(Jump),
    /// A sentence with a small first letter and no full stop. It has no kind, or it is from a store
    /// that was written before notes had kinds.
    Text {
        /// The sentence.
        text: String,
    },
    /// The program changed what it does within probes of these numbers.
    Drifting {
        /// The numbers, in the order of the probes.
        numbers: Vec<u32>,
    },
    /// Probes of a single run have no standard error.
    SingleRuns,
    /// Whole runs of very different numbers took the same time.
    FixedTime {
        /// Seconds of a run.
        seconds: f64,
        /// With more threads they took much more CPU time. So their time is no speed.
        #[serde(default)]
        more_work: bool,
    },
    /// No whole run took more CPU time than the start of a program.
    HardlyComputes {
        /// Seconds of the longest run.
        seconds: f64,
    },
    /// Progress is counted in CPU time.
    CpuTimeOnly,
    /// Other programs took time of the contexts.
    Busy {
        /// The share of the contexts' time that they took.
        share: f64,
    },
    /// Watching took much of the program's CPU time.
    Watching {
        /// The share of the program's CPU time.
        share: f64,
    },
    /// Not all probes were watched in the same way.
    WatchedOtherwise {
        /// Probes that were watched in another way than the last one.
        probes: usize,
        /// How many probes there were.
        of: usize,
        /// How they were watched.
        by: String,
        /// How the last one was watched.
        later: String,
    },
    /// The description of the modelled program says that a run has equal pieces.
    Pieces {
        /// The number of pieces.
        pieces: u32,
    },
    /// The model counts each context as a separate core.
    SharedCores,
    /// The probes are those of a model.
    Simulated,
    /// The running process has this number now.
    Set {
        /// The number.
        n: u32,
    },
    /// No fresh windows confirmed the number, so the running process does not have it.
    NotSet {
        /// The number.
        n: u32,
        /// The command that sets it.
        command: String,
    },
    /// The limits of the running process are as they were.
    LimitsRestored,
    /// Notes on the program and on its measurement, from the probes.
    #[serde(untagged)]
    Program(pinwise_measure::ProgramNote),
}

pinwise_measure::text_in_old_stores!(ThreadsNote);

impl From<pinwise_measure::ProgramNote> for ThreadsNote {
    fn from(met: pinwise_measure::ProgramNote) -> Self {
        match met {
            pinwise_measure::ProgramNote::Text { text } => Self::Text { text },
            met => Self::Program(met),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Sign, SpeedSearchError};
    use serde_json::json;

    #[test]
    fn notes_have_their_kind_and_values_when_stored() {
        let shift =
            PhaseChange { at: 2, sign: Sign::Progress, parameter: 4, change: 0.5, sure: true };
        let notes = [
            ThreadsNote::CutOff { n: 4, asked: true },
            ThreadsNote::Shifted(shift),
            ThreadsNote::SingleRuns,
            ThreadsNote::Unchecked { reason: SpeedSearchError::NoneLeft.into() },
            ThreadsNote::Unchecked { reason: Jump { n: 4, times: 20.0 }.into() },
            ThreadsNote::Jumped(Jump { n: 4, times: 20.0 }),
            ThreadsNote::from(pinwise_measure::ProgramNote::MetricSlow { seconds: 0.5 }),
            ThreadsNote::from("a metric has moods".to_owned()),
        ];
        let written = json!([
            { "kind": "cut_off", "n": 4, "asked": true },
            {
                "kind": "shifted", "at": 2, "sign": "progress", "parameter": 4, "change": 0.5,
                "sure": true
            },
            { "kind": "single_runs" },
            { "kind": "unchecked", "reason": { "kind": "none_left" } },
            { "kind": "unchecked", "reason": { "kind": "jumped", "n": 4, "times": 20.0 } },
            { "kind": "jumped", "n": 4, "times": 20.0 },
            { "kind": "metric_slow", "seconds": 0.5 },
            { "kind": "text", "text": "a metric has moods" },
        ]);
        assert_eq!(serde_json::to_value(&notes).unwrap(), written);
        assert_eq!(serde_json::from_value::<Vec<ThreadsNote>>(written).unwrap(), notes);
    }

    #[test]
    fn a_reason_of_an_earlier_version_is_text() {
        let stored = json!({ "kind": "unchecked", "reason": "the program has ended" });
        let note: ThreadsNote = serde_json::from_value(stored).unwrap();
        let ThreadsNote::Unchecked { reason } = &note else { panic!("{note:?}") };
        assert_eq!(reason.to_string(), "the program has ended");
        let written = serde_json::to_value(&note).unwrap();
        assert_eq!(serde_json::from_value::<ThreadsNote>(written).unwrap(), note);
    }
}
