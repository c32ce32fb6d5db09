//! What a search recommends, with its uncertainty.

use serde::Serialize;
use std::fmt;

/// A value and where it is with a probability of 90 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval<T> {
    /// Best estimate.
    pub value: T,
    /// 5 % are below.
    pub low: T,
    /// 5 % are above.
    pub high: T,
}

/// Why a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// What the choice may still lose is small enough.
    Settled,
    /// The next probe would have been one too many.
    Probes,
    /// The next probe would have taken longer than what is left of the time.
    Time,
}

/// The choice of a search that looks at speed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advice {
    /// The number of threads to take: the fewest that are, as far as can be told, within the tolerance of the best.
    pub threads: u32,
    /// Where the fewest threads within the tolerance of the best are, with a probability of 90 %.
    pub between: (u32, u32),
    /// How many times faster than with `reference` threads (of the objective: how many times better).
    pub gain: Interval<f64>,
    /// What `gain` is relative to: the least number of threads that could have been chosen.
    pub reference: u32,
    /// `reference` was probed; otherwise `gain` is what the laws say of it.
    pub referred: bool,
    /// Share of the best that the choice is expected to lose, at least 0.
    pub loss: f64,
    /// Most threads that could have been chosen, and the share of the choice's speed they cost; negative: they are faster.
    pub more: Option<(u32, Interval<f64>)>,
    /// Why the search ended.
    pub ended: Ended,
    /// Probes that were made.
    pub probes: usize,
}

/// `n = 26 (23-29), speed-up 11.4 ± 0.3, 72 threads cost 4 %`
impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (low, high) = self.between;
        let gain = &self.gain;
        let about = if self.referred { "" } else { "about " };
        write!(f, "n = {} ({low}-{high}), ", self.threads)?;
        if self.reference == 1 {
            write!(f, "speed-up {about}{:.1} ± {:.1}", gain.value, (gain.high - gain.low) / 2.0)?;
        } else {
            write!(f, "{about}{:.2} ± {:.2} times n = {}", gain.value, (gain.high - gain.low) / 2.0, self.reference)?;
        }
        match &self.more {
            Some((threads, cost)) if cost.value >= 0.005 => {
                write!(f, ", {threads} threads cost {} %", (cost.value * 100.0).round())
            }
            Some((threads, cost)) if cost.value <= -0.005 => {
                write!(f, ", {threads} threads gain {} %", (-cost.value * 100.0).round())
            }
            Some((threads, _)) => write!(f, ", {threads} threads are as fast"),
            None => Ok(()),
        }
    }
}
