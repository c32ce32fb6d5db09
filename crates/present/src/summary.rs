//! What a campaign concluded, in brief: for lists of campaigns.

use pinwise_coscheduling::{CoschedVerdict, PairsVerdict};
use pinwise_figures as figures;
use pinwise_placement::{Gain, LastComparisonVerdict, PlacementVerdict};
use serde::Serialize;

/// The answer of a campaign that has one.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Summary {
    /// The answer of a placement.
    Place {
        /// The verdict.
        verdict: PlacementVerdict,
        /// The best over unpinned, if both had fresh windows.
        gain: Option<Gain>,
    },
    /// The answer of a comparison.
    Compare {
        /// The best known way; `None` if the fresh windows contradict it.
        best: Option<String>,
    },
    /// The answer of a selection.
    Select {
        /// The weighted speedup of the best selection.
        speedup: f64,
    },
    /// The answer of a search for a number of threads.
    Threads {
        /// n.
        n: u32,
        /// The verdict; `None` if nothing was compared.
        verdict: Option<LastComparisonVerdict>,
        /// The gain of that number over the program's own; `None` for the program's own.
        gain: Option<Gain>,
    },
    /// The answer of a calibration.
    Calibrate {
        /// From how much LOCK on it counts as high, in percent.
        lock: f64,
    },
    /// The answer of a search for number and placement.
    Tune {
        /// The verdict.
        verdict: LastComparisonVerdict,
        /// n; `None`: the program's own.
        n: Option<u32>,
        /// What was found over the default; `None` for the default.
        gain: Option<Gain>,
    },
    /// The answer of microbenchmarks.
    Characterize {
        /// The resource whose users suffer most from each other.
        critical: Option<String>,
    },
    /// The answer of core-to-core latencies.
    Latency {
        /// The levels that they imply.
        levels: usize,
    },
    /// The answer of `pairs`.
    Pairs {
        /// The verdict.
        verdict: PairsVerdict,
        /// How many pairs run.
        pairs: usize,
        /// The gain over a random pairing, as a share.
        gain: Option<f64>,
    },
    /// The answer of programs whose threads are moved.
    Cosched {
        /// The verdict.
        verdict: CoschedVerdict,
        /// The gain over leaving threads to the kernel, as a share.
        gain: Option<f64>,
    },
}

/// What a campaign decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum SummaryVerdict {
    /// Of a placement.
    Placement(PlacementVerdict),
    /// Of a number of threads, placed or not.
    LastComparison(LastComparisonVerdict),
    /// Of `pairs`.
    Pairs(PairsVerdict),
    /// Of programs whose threads are moved.
    Cosched(CoschedVerdict),
}

impl Summary {
    /// The verdict; `None` if nothing was compared, or if the kind decides nothing.
    pub fn verdict(&self) -> Option<SummaryVerdict> {
        match self {
            Self::Place { verdict, .. } => Some(SummaryVerdict::Placement(*verdict)),
            Self::Threads { verdict, .. } => verdict.map(SummaryVerdict::LastComparison),
            Self::Tune { verdict, .. } => Some(SummaryVerdict::LastComparison(*verdict)),
            Self::Pairs { verdict, .. } => Some(SummaryVerdict::Pairs(*verdict)),
            Self::Cosched { verdict, .. } => Some(SummaryVerdict::Cosched(*verdict)),
            Self::Compare { .. }
            | Self::Select { .. }
            | Self::Calibrate { .. }
            | Self::Characterize { .. }
            | Self::Latency { .. } => None,
        }
    }

    /// The answer in a few words: `pin, +12 %`.
    pub fn text(&self) -> String {
        let gain = |gain: &Option<Gain>| {
            gain.map_or(String::new(), |gain| format!(", {}", figures::change(gain.mean)))
        };
        match self {
            Self::Place { verdict: PlacementVerdict::Pin, gain: of } => format!("pin{}", gain(of)),
            Self::Place { verdict: PlacementVerdict::KeepDefault, .. }
            | Self::Threads { verdict: Some(LastComparisonVerdict::Default), .. }
            | Self::Tune { verdict: LastComparisonVerdict::Default, .. } => {
                "keep the default".to_owned()
            }
            Self::Place { verdict: PlacementVerdict::Undecided, .. }
            | Self::Threads { verdict: Some(LastComparisonVerdict::Undecided), .. }
            | Self::Tune { verdict: LastComparisonVerdict::Undecided, .. } => {
                "undecided".to_owned()
            }
            Self::Compare { best: Some(best) } => format!("best: {best}"),
            Self::Compare { best: None } => "no best known".to_owned(),
            Self::Select { speedup } => format!("{speedup:.2} times alone"),
            Self::Threads { n, verdict: None, .. } => format!("n = {n}, not confirmed"),
            Self::Threads { n, gain: of, .. } => format!("n = {n}{}", gain(of)),
            Self::Calibrate { lock } => format!("LOCK from {lock:.1} %"),
            Self::Tune { verdict, n, gain: of } => {
                let n = n.map_or("its own n".to_owned(), |n| format!("n = {n}"));
                let pinned =
                    if *verdict == LastComparisonVerdict::Placed { ", pinned" } else { "" };
                format!("{n}{pinned}{}", gain(of))
            }
            Self::Characterize { critical: Some(resource) } => format!("critical: {resource}"),
            Self::Characterize { critical: None } => "nothing critical".to_owned(),
            Self::Latency { levels } => figures::counted(*levels as u64, "level"),
            Self::Pairs { verdict: PairsVerdict::Paired, pairs, gain } => {
                let gain = gain.map(|gain| format!(", {}", figures::change(gain)));
                let pairs = figures::counted(*pairs as u64, "pair");
                format!("{pairs}{}", gain.unwrap_or_default())
            }
            Self::Pairs { verdict: PairsVerdict::Alone, .. } => "all alone".to_owned(),
            Self::Pairs { verdict: PairsVerdict::Undecided, .. } => "undecided".to_owned(),
            Self::Pairs { verdict: PairsVerdict::Incomplete, .. } => "incomplete".to_owned(),
            Self::Cosched { verdict, gain } => {
                let word = match verdict {
                    CoschedVerdict::Helps => "helps",
                    CoschedVerdict::NoGain => "no gain",
                    CoschedVerdict::NoLonger => "no gain any more",
                    CoschedVerdict::Unfair => "unfair",
                    CoschedVerdict::Undecided => "undecided",
                };
                let gain = gain.map(|gain| format!(", {}", figures::change(gain)));
                format!("{word}{}", gain.unwrap_or_default())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_in_brief_agrees_with_its_verdict() {
        let gain = Some(Gain { mean: 0.12, low: 0.08, high: 0.16 });
        let place = |verdict| Summary::Place { verdict, gain };
        let tune = |verdict| Summary::Tune { verdict, n: Some(4), gain };
        let threads = |verdict| Summary::Threads { n: 4, verdict, gain: None };
        for (summary, verdict, text) in [
            (place(PlacementVerdict::Pin), Some("pin"), "pin, +12.0 %"),
            (place(PlacementVerdict::KeepDefault), Some("keep_default"), "keep the default"),
            (tune(LastComparisonVerdict::Placed), Some("placed"), "n = 4, pinned, +12.0 %"),
            (tune(LastComparisonVerdict::Undecided), Some("undecided"), "undecided"),
            (threads(Some(LastComparisonVerdict::Default)), Some("default"), "keep the default"),
            (threads(None), None, "n = 4, not confirmed"),
            (Summary::Latency { levels: 3 }, None, "3 levels"),
        ] {
            let word = serde_json::to_value(summary.verdict()).unwrap();
            assert_eq!((word.as_str(), summary.text().as_str()), (verdict, text));
        }
    }
}
