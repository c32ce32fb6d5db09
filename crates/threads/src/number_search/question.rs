//! [`NumberQuestion`]: what a search for a number is asked, and by which method.

use super::state::SearchState;
use super::{FoundNumber, ProbeStage, SearchPosition, Unfound};
use crate::{Objective, SpeedQuestion, SweepQuestion, ThreadRange, Thresholds};
use pinwise_campaign::Record;
use pinwise_measure::{MeasureError, Probed, Progress, Retry};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A program that ends within this time is measured by whole runs, if there is time for
/// [`FEWEST_RUNS`].
const SHORT: Duration = Duration::from_secs(5);
/// The fewest whole runs for which there must be time.
const FEWEST_RUNS: u32 = 6;

/// The question of a search for a number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NumberQuestion {
    /// How.
    pub method: SearchMethod,
    /// The ordinary length of a probe, which is one window of an
    /// [`Effort`](pinwise_measure::Effort).
    pub window: Duration,
    /// The quantity that is maximised.
    pub objective: Objective,
    /// When a probe is a whole run.
    pub runs: WholeRuns,
    /// All probes are of one run of the program. At the end the first number is probed again.
    pub goes_on: bool,
    /// Starved probes and jumps are doubtful, on this number of contexts. `None` in campaigns of
    /// earlier versions, which took them as they were.
    #[serde(default)]
    pub doubts_on: Option<u32>,
}

/// How the number is searched for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchMethod {
    /// The survey: a search by the speed of the program ([`SpeedSearch`](crate::SpeedSearch)).
    Survey(SpeedQuestion),
    /// The published search ([`Reinforcer`](crate::Reinforcer)).
    Reinforcer(PublishedQuestion),
    /// Every number.
    Sweep(SweepQuestion),
}

/// The question of the published search.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PublishedQuestion {
    /// The numbers.
    #[serde(rename = "span")]
    pub range: ThreadRange,
    /// Contexts the program may use (NumCores).
    pub contexts: u32,
    /// The thresholds from which a value counts as high.
    pub thresholds: Thresholds,
}

/// When a probe is a whole run of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WholeRuns {
    /// Never: a metric is read while the program runs, or the program goes on.
    Never,
    /// Whole runs are measured if the program ends soon.
    WhereShort,
    /// Always.
    Always,
}

impl NumberQuestion {
    /// The answer that the records give. `convert` is the program's Convert(): from a number of
    /// threads to its parameter.
    pub fn answer(
        &self,
        convert: &dyn Fn(u32) -> u32,
        records: &[Record],
    ) -> Result<FoundNumber, Box<Unfound>> {
        self.state(convert, records).answer()
    }

    /// How far the search has come, and the answer that the records give.
    pub fn outcome(
        &self,
        convert: &dyn Fn(u32) -> u32,
        records: &[Record],
    ) -> (SearchPosition, Result<FoundNumber, Box<Unfound>>) {
        let state = self.state(convert, records);
        (state.progressed, state.answer())
    }

    /// How far the search has come.
    pub fn progressed(&self, convert: &dyn Fn(u32) -> u32, records: &[Record]) -> SearchPosition {
        self.state(convert, records).progressed
    }

    /// How long a run may take at `stage`, if it may take `limit` in general. The timing
    /// run of a program that need not end is broken off soon.
    pub fn limit(&self, stage: ProbeStage, limit: Duration) -> Duration {
        match (stage, &self.method) {
            (ProbeStage::Timing, SearchMethod::Survey(question))
                if self.runs == WholeRuns::WhereShort =>
            {
                SHORT.min(question.most_time.map_or(SHORT, |most| most / FEWEST_RUNS))
            }
            _ => limit,
        }
    }

    fn state<'a>(&'a self, convert: &'a dyn Fn(u32) -> u32, records: &[Record]) -> SearchState<'a> {
        let mut state = SearchState::new(self, convert);
        records.iter().for_each(|record| state.take(record));
        state
    }

    /// The maximised quantity of a probe. Error: the objective needs the power of the processor,
    /// which is not known.
    pub fn value(&self, probed: &Probed) -> Result<f64, MeasureError> {
        self.valued(probed).map(|progress| progress.rate)
    }

    /// Progress as the value that is maximised.
    pub(super) fn valued(&self, probed: &Probed) -> Result<Progress, MeasureError> {
        let progress = probed.probe.progress;
        let unknown = || MeasureError::new(Retry::Never, "the power of the processor is not known");
        let rate = self.objective.value(progress.rate, probed.watts).ok_or_else(unknown)?;
        let own = progress.error.filter(|_| progress.rate > 0.0);
        let error = own.map(|error| self.objective.error(error / progress.rate) * rate);
        Ok(Progress { rate, error, ..progress })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{reinforcer, survey, sweep};
    use super::*;
    use crate::fixture::probe;
    use pinwise_measure::Unit;

    #[test]
    fn a_stored_range_is_still_called_a_span() {
        let stored = serde_json::to_string(&reinforcer(ThreadRange::PUBLISHED)).unwrap();
        assert!(stored.contains(r#""span":{"min":8,"#), "{stored}");
    }

    #[test]
    fn a_stored_question_without_doubts_has_none() {
        let earlier = NumberQuestion { doubts_on: None, ..survey(4) };
        let mut stored = serde_json::to_value(&earlier).unwrap();
        assert!(stored.as_object_mut().unwrap().remove("doubts_on").is_some());
        assert_eq!(serde_json::from_value::<NumberQuestion>(stored).unwrap(), earlier);
    }

    #[test]
    fn energy_is_maximised_by_the_power_that_probes_show() {
        let search = NumberQuestion { objective: Objective::Energy, ..sweep(&[1, 2], 1) };
        let watts = |watts: Option<f64>| {
            let roles = Vec::new();
            let unit = Unit::rate("1/s");
            let probe = probe(2, 2, 3.0);
            Probed { probe, unit, watts, roles, others: None, unwatched: None, below_floor: false }
        };
        assert_eq!(search.valued(&watts(Some(2.0))).unwrap().rate, 1.5);
        assert!(search.valued(&watts(None)).is_err());
    }
}
