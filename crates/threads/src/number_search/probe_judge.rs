//! [`ProbeJudge`]: whether a probe of a survey or a sweep is doubtful, so that it is made again.
//!
//! *Problem.* A single bad probe can decide a search. A program that got no CPU, or whose load has
//! changed, looks slow with the number that was tried then.
//!
//! *Method.* A probe is doubtful ([`ProbeDoubt`]) if nothing got done, or if others starved it. It
//! is also doubtful if its progress jumped from that with the same number. It may jump if others
//! left it more. It is made again, at most three times. Each repeat is longer. A probe below the
//! floor is never doubtful: to make it again would hurt the program again.
//!
//! *The first probe.* What is usual follows from the earlier probes of the stage. So the first one
//! is judged by the second one ([`ProbeJudge::first_was_starved`]). It is not made again. It counts
//! less in a survey.

use pinwise_measure::{Measurement, Probed, Progress, jumped, starved, usual};
use std::time::Duration;

/// How often a doubtful probe is repeated.
pub(super) const REPEATS: u32 = 3;
/// How many times longer each repeat of a probe without progress is, and of another doubtful one.
pub(super) const LONGER: f64 = 4.0;
pub(super) const LITTLE_LONGER: f64 = 2.0;

/// Why a probe is doubtful.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ProbeDoubt {
    /// Nothing got done.
    Idle,
    /// Others took this share of the contexts more than usual.
    Starved(f64),
    /// The progress is this many times what it was with the same number.
    Jumped(f64),
}

impl ProbeDoubt {
    /// The standard error of a probe that stays doubtful.
    pub(super) fn error(doubt: Option<Self>, progress: Progress) -> Option<f64> {
        match doubt {
            Some(Self::Starved(more)) => Some(error_of_starved(more, progress)),
            _ => progress.error,
        }
    }
}

/// The standard error of a probe that lost this much more than usual. The speed may be off by about
/// half of that.
pub(super) fn error_of_starved(more: f64, progress: Progress) -> f64 {
    progress.error.unwrap_or(0.0).hypot(progress.rate * more / 2.0)
}

/// Judges the probes of one stage.
pub(super) struct ProbeJudge {
    /// Starved probes and jumps are doubtful, on this number of contexts.
    doubts_on: Option<u32>,
    /// What each probe lost to others, see [`Probed::lost`].
    lost: Vec<f64>,
    /// The share of the contexts that others took in each of these.
    taken: Vec<f64>,
    /// The most that a probe of any stage lost.
    most_lost: f64,
    repeated: Repeated,
}

/// Doubtful probes one after the other.
#[derive(Clone, Copy, Debug, Default)]
struct Repeated {
    probes: u32,
    /// The time they took.
    cost: Duration,
    /// The length of the next one, as a multiple of the first.
    longer: Option<f64>,
}

impl ProbeJudge {
    pub(super) fn new(doubts_on: Option<u32>) -> Self {
        let (lost, taken, repeated) = (Vec::new(), Vec::new(), Repeated::default());
        Self { doubts_on, lost, taken, most_lost: 0.0, repeated }
    }

    /// Forgets what was usual: another stage begins.
    pub(super) fn begin(&mut self) {
        self.lost.clear();
        self.taken.clear();
    }

    /// Why a probe is doubtful, if it is. `value` is its progress, and `before` that of earlier
    /// probes with the same number.
    pub(super) fn doubt(
        &mut self,
        measurement: &Measurement,
        value: Option<f64>,
        before: Vec<f64>,
    ) -> Option<ProbeDoubt> {
        let probed = Probed::of(measurement).ok();
        if probed.as_ref().is_some_and(|probed| probed.below_floor) {
            return None;
        }
        if measurement.performance <= 0.0 {
            return Some(ProbeDoubt::Idle);
        }
        let (contexts, probed) = (self.doubts_on?, probed?);
        // A program that gets more of the contexts than before is faster, and has not changed.
        let mut eased = false;
        if let Some((lost, others)) = probed.lost(contexts).zip(probed.others) {
            // One thread can lose less than many, and leaves more to others. So both have to be
            // unusual.
            let taken = others.taken / others.of;
            let more = starved(lost, &self.lost).filter(|_| starved(taken, &self.taken).is_some());
            self.lost.push(lost);
            self.taken.push(taken);
            eased = starved(self.most_lost, &[lost]).is_some();
            self.most_lost = self.most_lost.max(lost);
            if let Some(more) = more {
                return Some(ProbeDoubt::Starved(more));
            }
        }
        let times = value? / usual(&before)?;
        jumped(times, eased).then_some(ProbeDoubt::Jumped(times))
    }

    /// How much more the first probe lost than the second one, if that makes it starved. `None`:
    /// there are not just these two.
    pub(super) fn first_was_starved(&self) -> Option<f64> {
        let ([lost, rest], [taken, others]) = (self.lost.as_slice(), self.taken.as_slice()) else {
            return None;
        };
        starved(*lost, &[*rest]).filter(|_| starved(*taken, &[*others]).is_some())
    }

    /// Whether a doubtful probe is made again now.
    pub(super) fn repeats(&self) -> bool {
        self.repeated.probes < REPEATS
    }

    /// Notes that a probe of this cost is made again.
    pub(super) fn repeat(&mut self, doubt: ProbeDoubt, cost: Duration) {
        let factor = if doubt == ProbeDoubt::Idle { LONGER } else { LITTLE_LONGER };
        self.repeated = Repeated {
            probes: self.repeated.probes + 1,
            cost: self.repeated.cost + cost,
            longer: Some(self.longer() * factor),
        };
    }

    /// The length of the next probe, as a multiple of the usual one.
    pub(super) fn longer(&self) -> f64 {
        self.repeated.longer.unwrap_or(1.0)
    }

    /// A probe is taken. Returns what the doubtful ones before it cost.
    pub(super) fn taken(&mut self) -> Duration {
        std::mem::take(&mut self.repeated).cost
    }
}
