//! Runs measurements ahead of the strategy, if time is virtual.
//!
//! A strategy proposes one trial at a time, but often knows several. These are the rest of a round,
//! or what a climb tries next if this change does not help. A model measures one trial on one
//! processor, so the others would stay idle. So the model measures the trials that a strategy
//! foresees together with the one it proposed. Their results wait until the strategy proposes them.
//!
//! The result of a measurement depends on its setting, effort and number alone. So the records do
//! not depend on how many are measured at once, nor on whether the foreseen trials came. If time is
//! real, nothing is measured ahead.

use crate::{Strategy, Trial};
use pinwise_measure::{
    Disturbances, Effort, MeasureError, Measurement, Retry, Setting, Testbed, Time,
};
use std::collections::VecDeque;
use std::time::Duration;

/// A testbed with the measurements that were made ahead.
pub(crate) struct Lookahead<'a> {
    testbed: &'a mut dyn Testbed,
    clock: &'a dyn Fn() -> Duration,
    /// When the last measurement ended, if time is real.
    ended: Option<Duration>,
    /// The number of the first of `made`.
    number: u64,
    made: VecDeque<((Setting, Effort), Result<Measurement, MeasureError>)>,
}

impl<'a> Lookahead<'a> {
    pub(crate) fn new(testbed: &'a mut dyn Testbed, clock: &'a dyn Fn() -> Duration) -> Self {
        Self { testbed, clock, ended: None, number: 0, made: VecDeque::new() }
    }

    pub(crate) fn disturbances(&self) -> Disturbances {
        self.testbed.disturbances()
    }

    /// The result of trial `number` of the campaign, and the time it took. Real time counts from
    /// the end of the previous trial. So a budget also counts deciding and storing.
    pub(crate) fn measure(
        &mut self,
        number: u64,
        trial: &Trial,
        strategy: &dyn Strategy,
    ) -> (Result<Measurement, MeasureError>, Duration) {
        let Time::Virtual { width } = self.testbed.time() else {
            self.testbed.seek(number);
            let start = self.ended.unwrap_or_else(self.clock);
            let outcome =
                self.testbed.measure(&trial.setting, trial.effort).and_then(Measurement::in_range);
            let end = (self.clock)();
            self.ended = Some(end);
            return (outcome, end.saturating_sub(start));
        };
        let wanted = (trial.setting.clone(), trial.effort);
        if self.number != number || self.made.front().is_none_or(|(made, _)| *made != wanted) {
            self.number = number;
            self.made = self.measure_with_foreseen(number, wanted, strategy, width);
        }
        let missing = || {
            Err(MeasureError::new(
                Retry::Never,
                "the testbed gave fewer outcomes than it was asked for",
            ))
        };
        let outcome = self
            .made
            .pop_front()
            .map_or_else(missing, |(_, outcome)| outcome.and_then(Measurement::in_range));
        self.number += 1;
        let took = outcome.as_ref().map_or(Duration::ZERO, |measured| measured.duration);
        (outcome, took)
    }

    fn measure_with_foreseen(
        &mut self,
        number: u64,
        wanted: (Setting, Effort),
        strategy: &dyn Strategy,
        width: usize,
    ) -> VecDeque<((Setting, Effort), Result<Measurement, MeasureError>)> {
        let most = width.saturating_sub(1);
        let foreseen = strategy
            .foresee(most)
            .into_iter()
            .take(most)
            .map(|trial| (trial.setting, trial.effort));
        let trials: Vec<_> = std::iter::once(wanted).chain(foreseen).collect();
        self.testbed.seek(number);
        let outcomes = self.testbed.measure_all(&trials);
        trials.into_iter().zip(outcomes).collect()
    }
}
