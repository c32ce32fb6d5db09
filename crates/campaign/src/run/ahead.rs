//! Measuring ahead, where time is virtual.
//!
//! A strategy decides on one trial after the other, but mostly it has decided on several already:
//! the rest of a round, or what a climb tries next should this change not help. While one is
//! measured the other processors would stay idle, so the trials a strategy foresees are measured
//! along with the one it asks for, and kept until it asks for them. What a measurement gives
//! depends on its setting, effort and number alone, so a campaign is the same however many are
//! measured at once, and whether or not what was foreseen came. Where time is real nothing is
//! measured ahead.

use super::in_range;
use crate::{Strategy, Trial};
use pinwise_measure::{Effort, MeasureError, Measurement, Met, Retry, Setting, Testbed, Time};
use std::collections::VecDeque;
use std::time::Duration;

/// A testbed with the measurements that were made ahead.
pub(crate) struct Ahead<'a> {
    testbed: &'a mut dyn Testbed,
    clock: &'a dyn Fn() -> Duration,
    /// When the last measurement ended, where time is real.
    ended: Option<Duration>,
    /// The number of the first of `made`.
    number: u64,
    made: VecDeque<((Setting, Effort), Result<Measurement, MeasureError>)>,
}

impl<'a> Ahead<'a> {
    pub(crate) fn new(testbed: &'a mut dyn Testbed, clock: &'a dyn Fn() -> Duration) -> Self {
        Self { testbed, clock, ended: None, number: 0, made: VecDeque::new() }
    }

    pub(crate) fn met(&self) -> Met {
        self.testbed.met()
    }

    /// What trial `number` of the campaign gives, and the time it took; where time is real that
    /// since the last one ended, so that what deciding and storing take is not lost to a
    /// budget.
    pub(crate) fn measure(
        &mut self,
        number: u64,
        trial: &Trial,
        strategy: &dyn Strategy,
    ) -> (Result<Measurement, MeasureError>, Duration) {
        let Time::Virtual { width } = self.testbed.time() else {
            self.testbed.seek(number);
            let start = self.ended.unwrap_or_else(self.clock);
            let outcome = self.testbed.measure(&trial.setting, trial.effort).and_then(in_range);
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
        let outcome =
            self.made.pop_front().map_or_else(missing, |(_, outcome)| outcome.and_then(in_range));
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
