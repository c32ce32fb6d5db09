//! What a campaign concluded, in brief: for lists of campaigns.

use crate::characterize;
use crate::threads::ThreadsConclusion;
use crate::tune::TuneConclusion;
use pinwise_campaign::{CampaignInfo, Kind};
use pinwise_hardware::Latencies;
use pinwise_placement::{Advice, Choice, Comparison, Gain, MixOutcome, Outcome};
use pinwise_topology::LatencyLevels;
use serde::{Deserialize, Serialize};

/// The answer of a campaign that has one.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Summary {
    /// Of a placement.
    Place {
        /// What to do.
        advice: Advice,
        /// The best over unpinned, where both had fresh windows.
        gain: Option<Gain>,
    },
    /// Of a comparison.
    Compare {
        /// The best known way; `None` where the fresh windows contradict it.
        best: Option<String>,
    },
    /// Of a selection.
    Select {
        /// The weighted speedup of the best selection.
        speedup: f64,
    },
    /// Of a search for a number of threads.
    Threads {
        /// n.
        n: u32,
    },
    /// Of a search for number and placement.
    Tune {
        /// What to do.
        choice: Choice,
        /// n; `None`: the program's own.
        n: Option<u32>,
        /// The choice over the default; `None` for the default.
        gain: Option<Gain>,
    },
    /// Of microbenchmarks.
    Characterize {
        /// The resource whose users suffer most from each other.
        critical: Option<String>,
    },
    /// Of core-to-core latencies.
    Latency {
        /// The levels that they imply.
        levels: usize,
    },
}

impl Summary {
    /// Of what `info` concluded; `None` where it has no answer yet, or is a part without one.
    pub fn of(info: &CampaignInfo) -> Option<Self> {
        let conclusion = info.conclusion.as_ref()?;
        Some(match info.new.kind {
            Kind::Place => {
                let Outcome { advice, gain, .. } = Outcome::deserialize(conclusion).ok()?;
                let gain = gain.map(|(mean, low, high)| Gain { mean, low, high });
                Self::Place { advice, gain }
            }
            Kind::Compare => {
                let comparison = Comparison::deserialize(conclusion).ok()?;
                let best = comparison.best().filter(|_| comparison.contradiction().is_none());
                Self::Compare { best: best.map(|best| best.name.clone()) }
            }
            Kind::Select => {
                let best = MixOutcome::deserialize(conclusion).ok()?.best?;
                Self::Select { speedup: best.performance.mean }
            }
            Kind::Threads => {
                Self::Threads { n: ThreadsConclusion::deserialize(conclusion).ok()?.parameter }
            }
            Kind::Tune => {
                let TuneConclusion { choice, parameter: n, gain, .. } =
                    TuneConclusion::deserialize(conclusion).ok()?;
                Self::Tune { choice, n, gain }
            }
            Kind::Characterize => {
                let found = characterize::concluded(conclusion).ok()?;
                let worst = found.findings.critical.first();
                Self::Characterize { critical: worst.map(|worst| worst.resource.clone()) }
            }
            Kind::Latency => {
                let matrix = Latencies::deserialize(conclusion).ok()?.matrix().ok()?;
                Self::Latency { levels: LatencyLevels::of(&matrix).levels.len() }
            }
            Kind::Policies | Kind::Finals => return None,
        })
    }
}
