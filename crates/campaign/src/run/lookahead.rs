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
//! foreseen and is not wanted in the end stays there. One node measures all of a round: what is
//! compared must not differ by the node.

use crate::{Journal, StoreError, Strategy, Trial, TrialRounds};
use pinwise_measure::{
    Disturbances, Effort, MeasureError, Measurement, NodeResult, Retry, Setting, Testbed, Time,
    to_begin,
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
    /// The node that made the last result.
    node: Option<String>,
}

/// A result, the time that it took, and its number in the journal if it waited there.
type Ahead = (Result<Measurement, MeasureError>, Duration, Option<u64>);

/// How many trials are foreseen for each node: so that one that is early has its next.
const FORESEEN: usize = 2;

/// Results that wait in memory. A strategy that guesses wrong again and again leaves one each time.
/// The journal has those beyond it, and a resumed campaign may still use them.
const MOST_WAITING: usize = 4096;

/// Lets a result wait, and forgets the oldest one of too many.
fn wait(arrived: &mut Vec<(Option<u64>, NodeResult)>, number: Option<u64>, result: NodeResult) {
    arrived.push((number, result));
    let above = arrived.len().saturating_sub(MOST_WAITING);
    arrived.drain(..above);
}

impl<'a> Lookahead<'a> {
    pub(crate) fn new(
        testbed: &'a mut dyn Testbed,
        clock: &'a dyn Fn() -> Duration,
        journal: &dyn Journal,
    ) -> Result<Self, StoreError> {
        let on_nodes = testbed.nodes().is_some();
        let kept = if on_nodes { journal.kept_results(MOST_WAITING)? } else { Vec::new() };
        // A round that a killed session has begun goes on where it was.
        let node = if on_nodes { journal.last_node()? } else { None };
        let arrived = kept.into_iter().map(|(number, result)| (Some(number), result)).collect();
        let made = VecDeque::new();
        let (ended, number) = (None, 0);
        Ok(Self { testbed, clock, ended, number, made, arrived, node })
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
    ) -> Result<Ahead, StoreError> {
        if let Some(nodes) = self.testbed.nodes() {
            let start = self.ended.unwrap_or_else(self.clock);
            let (outcome, kept) = self.measure_on_nodes(trial, strategy, journal, nodes)?;
            let end = (self.clock)();
            self.ended = Some(end);
            return Ok((outcome, end.saturating_sub(start), kept));
        }
        let Time::Virtual { width } = self.testbed.time() else {
            self.testbed.seek(number);
            let start = self.ended.unwrap_or_else(self.clock);
            let outcome =
                self.testbed.measure(&trial.setting, trial.effort).and_then(Measurement::in_range);
            let end = (self.clock)();
            self.ended = Some(end);
            return Ok((outcome, end.saturating_sub(start), None));
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
        Ok((outcome, took, None))
    }

    fn measure_on_nodes(
        &mut self,
        trial: &Trial,
        strategy: &dyn Strategy,
        journal: &mut dyn Journal,
        nodes: usize,
    ) -> Result<(Result<Measurement, MeasureError>, Option<u64>), StoreError> {
        let is = |trial: &Trial, result: &NodeResult| {
            (&trial.setting, trial.effort) == (&result.setting, result.effort)
        };
        let (continued, rounds) = match strategy.rounds(nodes) {
            Some(TrialRounds { continued, rest, next }) => {
                (continued, std::iter::once(rest).chain(next).collect())
            }
            None => {
                let foreseen = strategy.foresee(FORESEEN * nodes).into_iter();
                let alone = foreseen.map(|trial| vec![trial]);
                (false, std::iter::once(Vec::new()).chain(alone).collect::<Vec<_>>())
            }
        };
        // The node that has begun a round measures all of it.
        let node = self.node.take().filter(|_| continued);
        let place = |arrived: &[(Option<u64>, NodeResult)], node: Option<&String>| {
            arrived.iter().position(|(_, result)| {
                is(trial, result) && node.is_none_or(|node| *node == result.node)
            })
        };
        let mut found = place(&self.arrived, node.as_ref());
        if found.is_none() {
            // What has arrived and is wanted again later is not measured once more.
            let known = self.arrived.iter().map(|(_, result)| result);
            let known: Vec<(&str, (Setting, Effort))> = known
                .map(|result| (&*result.node, (result.setting.clone(), result.effort)))
                .collect();
            let wanted: Vec<Vec<(Setting, Effort)>> = rounds
                .into_iter()
                .map(|round| round.into_iter().map(|one| (one.setting, one.effort)).collect())
                .collect();
            let known = known.iter().map(|(node, trial)| (*node, trial));
            let mut wanted = to_begin(&wanted, node.as_deref(), known);
            wanted[0].insert(0, (trial.setting.clone(), trial.effort));
            let mut kept = Ok(());
            let arrived = &mut self.arrived;
            let ended = self.testbed.measure_first(&wanted, node.as_deref(), &mut |result| {
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
                wait(arrived, number, result);
            });
            kept?;
            if let Err(error) = ended {
                return Ok((Err(error), None));
            }
            // Where the node has died, another one measures.
            found = place(&self.arrived, node.as_ref()).or_else(|| place(&self.arrived, None));
        }
        let Some(place) = found else {
            let error = MeasureError::new(Retry::Never, "the nodes gave no result");
            return Ok((Err(error), None));
        };
        let (kept, result) = self.arrived.remove(place);
        self.node = Some(result.node.clone());
        Ok((result.on_common_scale().and_then(Measurement::in_range), kept))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_of_too_many_results_is_forgotten() {
        let mut arrived = Vec::new();
        let (setting, effort) = (Setting::Unpinned, Effort::default());
        let outcome = Ok(Measurement::new(1.0, Duration::ZERO));
        let result = NodeResult { node: "h1".into(), setting, effort, outcome, scale: None };
        let many = MOST_WAITING as u64 + 7;
        (0..many).for_each(|number| wait(&mut arrived, Some(number), result.clone()));
        assert_eq!((arrived.len(), arrived[0].0), (MOST_WAITING, Some(7)));
    }
}
