//! A record: one trial and its result.

use pinwise_measure::{Detail, Effort, MeasureError, Measurement, Setting};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How often a trial is made before its failure counts, where another try makes sense.
pub const TRIES: usize = 3;

/// Why a trial is made. Only fresh windows decide the answer, so they are kept apart from the
/// windows of the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// The unpinned baseline.
    Baseline,
    /// Part of a uniform random sample; the bound is computed from it if nothing better is
    /// known.
    Sample,
    /// Part of a block that a predictor steered towards good assignments, which shows how wrong the
    /// predictor is there.
    Steered,
    /// Directed search, which is no sample (climbing, what a predictor favours).
    Climb,
    /// A part of the workload, measured to learn what threads do to each other
    /// ([`Setting::Profile`]).
    Profile,
    /// The reference assignment, measured again through the run to see drift.
    Reference,
    /// Fresh windows for the winner, its rivals and the baseline.
    Final,
    /// Anything but a placement: a number of threads, a pair of contexts, microbenchmarks.
    #[serde(alias = "probe")]
    Other,
}

/// What to measure next.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// What to run, and where.
    pub setting: Setting,
    /// Why.
    pub purpose: Purpose,
    /// How long.
    pub effort: Effort,
}

/// A trial and its outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Position in the campaign, from 0.
    pub number: u64,
    /// What was tried.
    pub trial: Trial,
    /// What came of it.
    pub outcome: Result<Measurement, MeasureError>,
    /// Time from the first measurement's start to this one's end. It includes deciding and storing.
    /// It excludes pauses between sessions.
    pub elapsed: Duration,
}

impl Record {
    /// What the testbed observed besides performance.
    pub fn detail(&self) -> Option<&Detail> {
        match &self.outcome {
            Ok(measurement) => measurement.detail.as_ref(),
            Err(error) => error.detail.as_deref(),
        }
    }
}

/// The outcome of each trial: its last try, where tries that failed were repeated. A trial whose
/// tries have not ended is left out.
pub fn settled(records: &[Record]) -> impl Iterator<Item = &Record> {
    let mut tries = 0;
    records.iter().filter(move |record| {
        tries += 1;
        let again = matches!(&record.outcome, Err(error) if error.retry.is_same()) && tries < TRIES;
        if !again {
            tries = 0;
        }
        !again
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_measure::Retry;

    #[test]
    fn only_the_last_of_repeated_tries_counts() {
        let record = |outcome| {
            let (purpose, effort) = (Purpose::Sample, Effort::default());
            let trial = Trial { setting: Setting::Unpinned, purpose, effort };
            Record { number: 0, trial, outcome, elapsed: Duration::ZERO }
        };
        let failed = |retry| record(Err(MeasureError::new(retry, "failed")));
        let same = || failed(Retry::Same);
        let (duration, spread, detail) = (Duration::ZERO, None, None);
        let measured = record(Ok(Measurement { performance: 1.0, duration, spread, detail }));
        let other = failed(Retry::Other);
        let records = [same(), measured, same(), same(), same(), other, same()];
        let settled: Vec<bool> = settled(&records).map(|record| record.outcome.is_ok()).collect();
        assert_eq!(settled, [true, false, false]);
    }
}
