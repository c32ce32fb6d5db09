//! The notes that qualify the verdict of an outcome.

use super::{Drift, Outcome, PlacementVerdict, SearchCost};
use crate::Gain;
use pinwise_measure::ProgramNote;
use serde::Serialize;

/// A search of which this part stood still saw much less than its budget promised. A choice.
const MUCH_STALLED: u32 = 4;

impl Outcome {
    /// Notes that qualify the verdict. A model is in no placement before it is placed.
    pub fn qualifications(&self, simulated: bool) -> Vec<OutcomeNote> {
        let found = if simulated { None } else { self.found_note() };
        let drift = self.drift.as_ref().filter(|drift| drift.significant);
        let drift = drift.map(|&Drift { change, n, .. }| OutcomeNote::Drift { change, n });
        let disturbed = self.notes.iter().cloned().map(OutcomeNote::Program);
        let SearchCost { stalled, time, .. } = self.cost;
        let much = !simulated && !stalled.is_zero() && stalled.saturating_mul(MUCH_STALLED) >= time;
        let [seconds, of] = [stalled, time].map(|time| time.as_secs_f64());
        let stalled = much.then_some(OutcomeNote::Stalled { seconds, of });
        found.into_iter().chain(disturbed).chain(stalled).chain(drift).collect()
    }

    fn found_note(&self) -> Option<OutcomeNote> {
        let (apart, found, unpinned) = (self.found_apart()?, self.as_found?, self.baseline?);
        let with = |drift: &Drift| drift.significant && (drift.change > 0.0) == (apart < 0.0);
        let gain = self.gain_as_found().filter(|_| self.verdict == PlacementVerdict::Pin);
        Some(OutcomeNote::AsFound {
            apart: (unpinned.mean != 0.0).then_some(apart),
            windows: found.n,
            after: unpinned.n,
            drifted: self.drift.as_ref().is_some_and(with),
            gain: gain.map(|(mean, low, high)| Gain { mean, low, high }),
        })
    }
}

/// A note that qualifies the verdict of an outcome.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum OutcomeNote {
    /// The initial program performed differently from the unpinned program later.
    AsFound {
        /// found / unpinned - 1; `None` if it made no progress unpinned.
        apart: Option<f64>,
        /// Initial windows.
        windows: usize,
        /// Windows unpinned, later.
        after: usize,
        /// The reference changed in the same direction meanwhile.
        drifted: bool,
        /// The best over the initial program, if pinning is advised.
        gain: Option<Gain>,
    },
    /// The machine or the load changed meanwhile.
    Drift {
        /// The change of the reference, as a share.
        change: f64,
        /// Its measurements.
        n: usize,
    },
    /// The machine or the program stood still for a quarter of the search or longer.
    Stalled {
        /// For how many seconds.
        seconds: f64,
        /// The whole search, in seconds.
        of: f64,
    },
    /// A note on what disturbed the measurements.
    #[serde(untagged)]
    Program(ProgramNote),
}
