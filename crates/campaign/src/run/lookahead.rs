//! Runs measurements ahead of the strategy, if time is virtual or there are several nodes.
//!
//! A strategy proposes one trial at a time, but often knows several. These are the rest of a round,
//! or what a climb tries next if this change does not help. A model measures one trial on one
//! processor, so the others would stay idle. So the model measures the trials that a strategy
//! foresees together with the one it proposed. Their results wait until the strategy proposes them.
//!
//! The result of a measurement depends on its setting, effort and number alone. So the records do
//! not depend on how many are measured at once, nor on whether the foreseen trials came.
//!
//! If time is real, one machine measures nothing ahead. Several nodes do: each measures one trial
//! at a time. Every result is kept in the journal when it comes, and used once. One that was
//! foreseen and is not wanted in the end stays there.

use crate::{Journal, StoreError, Strategy, Trial};
use pinwise_measure::{
    Disturbances, Effort, MeasureError, Measurement, NodeResult, Retry, Setting, Testbed, Time,
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
    /// Results of nodes that wait, with their numbers in the journal.
    arrived: Vec<(Option<u64>, NodeResult)>,
}

/// How many trials are foreseen for each node: so that one that is early has its next.
const FORESEEN: usize = 2;

impl<'a> Lookahead<'a> {
    pub(crate) fn new(
        testbed: &'a mut dyn Testbed,
        clock: &'a dyn Fn() -> Duration,
        journal: &dyn Journal,
    ) -> Result<Self, StoreError> {
        let kept = if testbed.nodes().is_some() { journal.kept_results()? } else { Vec::new() };
        let arrived = kept.into_iter().map(|(number, result)| (Some(number), result)).collect();
        let made = VecDeque::new();
        Ok(Self { testbed, clock, ended: None, number: 0, made, arrived })
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
        journal: &mut dyn Journal,
    ) -> Result<(Result<Measurement, MeasureError>, Duration), StoreError> {
        if let Some(nodes) = self.testbed.nodes() {
            let start = self.ended.unwrap_or_else(self.clock);
            let outcome = self.measure_on_nodes(number, trial, strategy, journal, nodes)?;
            let end = (self.clock)();
            self.ended = Some(end);
            return Ok((outcome, end.saturating_sub(start)));
        }
        let Time::Virtual { width } = self.testbed.time() else {
            self.testbed.seek(number);
            let start = self.ended.unwrap_or_else(self.clock);
            let outcome =
                self.testbed.measure(&trial.setting, trial.effort).and_then(Measurement::in_range);
            let end = (self.clock)();
            self.ended = Some(end);
            return Ok((outcome, end.saturating_sub(start)));
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
        Ok((outcome, took))
    }

    fn measure_on_nodes(
        &mut self,
        number: u64,
        trial: &Trial,
        strategy: &dyn Strategy,
        journal: &mut dyn Journal,
        nodes: usize,
    ) -> Result<Result<Measurement, MeasureError>, StoreError> {
        let is = |trial: &Trial, result: &NodeResult| {
            (&trial.setting, trial.effort) == (&result.setting, result.effort)
        };
        let place = |arrived: &[(Option<u64>, NodeResult)]| {
            arrived.iter().position(|(_, result)| is(trial, result))
        };
        if place(&self.arrived).is_none() {
            // What has arrived and is wanted again later is not measured once more.
            let mut known: Vec<&NodeResult> =
                self.arrived.iter().map(|(_, result)| result).collect();
            let mut foreseen = strategy.foresee(FORESEEN * nodes);
            foreseen.retain(|trial| match known.iter().position(|result| is(trial, result)) {
                Some(place) => {
                    known.swap_remove(place);
                    false
                }
                None => true,
            });
            let trials: Vec<_> = std::iter::once(trial)
                .chain(&foreseen)
                .map(|trial| (trial.setting.clone(), trial.effort))
                .collect();
            let mut kept = Ok(());
            let arrived = &mut self.arrived;
            let ended = self.testbed.measure_first(&trials, &mut |result| {
                // One that ends the campaign would end it again when it is resumed.
                let ends = matches!(&result.outcome, Err(error)
                    if error.retry == Retry::Never && !error.expired);
                let number = match if ends { None } else { Some(journal.keep_result(&result)) } {
                    Some(Err(error)) => {
                        kept = Err(error);
                        None
                    }
                    Some(Ok(number)) => Some(number),
                    None => None,
                };
                arrived.push((number, result));
            });
            kept?;
            if let Err(error) = ended {
                return Ok(Err(error));
            }
        }
        let Some(place) = place(&self.arrived) else {
            return Ok(Err(MeasureError::new(Retry::Never, "the nodes gave no result")));
        };
        let (kept, result) = self.arrived.remove(place);
        if let Some(kept) = kept {
            journal.use_result(kept, number)?;
        }
        Ok(result.outcome.and_then(Measurement::in_range))
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
