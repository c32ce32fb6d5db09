//! The records of a campaign, sorted by what each can show.

use pinwise_campaign::{Purpose, Record};
use pinwise_measure::Setting;
use pinwise_topology::Assignment;
use std::collections::HashMap;
use std::time::Duration;

/// A measurement that succeeded.
#[derive(Clone, Debug)]
pub(crate) struct Shot<'a> {
    /// Position in the campaign, from 0.
    pub(crate) number: u64,
    pub(crate) purpose: Purpose,
    pub(crate) setting: &'a Setting,
    pub(crate) performance: f64,
    /// Time spent measuring until then.
    pub(crate) elapsed: Duration,
}

/// What was measured and what failed.
#[derive(Debug)]
pub(crate) struct Evidence<'a> {
    pub(crate) shots: Vec<Shot<'a>>,
    /// Messages of failures, most frequent first, with how often each occurred.
    pub(crate) failures: Vec<(&'a str, usize)>,
}

impl<'a> Evidence<'a> {
    pub(crate) fn new(records: &'a [Record]) -> Self {
        let mut shots = Vec::with_capacity(records.len());
        let mut failures: Vec<(&str, usize)> = Vec::new();
        for record in records {
            match &record.outcome {
                Ok(measurement) if measurement.performance.is_finite() => shots.push(Shot {
                    number: record.number,
                    purpose: record.trial.purpose,
                    setting: &record.trial.setting,
                    performance: measurement.performance,
                    elapsed: record.elapsed,
                }),
                Ok(_) => count(&mut failures, "the measurement was not a finite number"),
                Err(error) => count(&mut failures, &error.message),
            }
        }
        failures.sort_by_key(|&(_, times)| std::cmp::Reverse(times));
        Self { shots, failures }
    }

    /// Every performance with this purpose and setting, in order.
    pub(crate) fn of(&self, purpose: Purpose, setting: &Setting) -> Vec<f64> {
        let found =
            self.shots.iter().filter(|shot| shot.purpose == purpose && shot.setting == setting);
        found.map(|shot| shot.performance).collect()
    }

    /// The random sample, each assignment once, in order of first measurement. Each has that
    /// record's number and the mean of all its sampling measurements.
    pub(crate) fn sample(&self) -> Vec<(u64, f64)> {
        let mut seen: HashMap<&Assignment, usize> = HashMap::new();
        let mut sums: Vec<(u64, f64, f64)> = Vec::new();
        for shot in self.shots.iter().filter(|shot| shot.purpose == Purpose::Sample) {
            let Setting::Pinned(assignment) = shot.setting else { continue };
            let index = *seen.entry(assignment).or_insert(sums.len());
            match sums.get_mut(index) {
                Some((_, sum, times)) => (*sum, *times) = (*sum + shot.performance, *times + 1.0),
                None => sums.push((shot.number, shot.performance, 1.0)),
            }
        }
        sums.into_iter().map(|(number, sum, times)| (number, sum / times)).collect()
    }
}

fn count<'a>(failures: &mut Vec<(&'a str, usize)>, message: &'a str) {
    match failures.iter_mut().find(|(known, _)| *known == message) {
        Some((_, times)) => *times += 1,
        None => failures.push((message, 1)),
    }
}
