//! Random assignments, and the bound they support.
//!
//! The iterative algorithm of the paper (optimal-assignment-evt, section 5.3): measure a first
//! sample and estimate the best possible performance. Stop if the best measured one is close enough
//! to it. Otherwise enlarge the sample and look again. Draws are with replacement, uniform over
//! labelled assignments. Each further look is another chance for a lucky stop. So the search looks
//! only when the sample has doubled. A look judges the claim as it would be made. The claim uses
//! the bound from instances alone, if that was measured before.

use crate::Bound;
use crate::StopReason;
use crate::search::proposer::{Next, Proposer, View, pinned};
use crate::search::solo_bound::SoloBound;
use pinwise_campaign::{Purpose, Trial};
use pinwise_topology::{Random, Space};

/// Draws between two looks at the budget. Each batch has its own baseline and reference windows.
const BATCH: u64 = 20;

/// Gives up after this many batches in a row without an assignment that can run.
const FUTILE: u64 = 25;

#[derive(Debug)]
pub(crate) struct RandomSample {
    /// Ends after this many draws, whatever the bound is.
    most: Option<u64>,
    /// Ends when this share of the budget is used.
    until: f64,
    /// The bound from instances alone, if it was measured before.
    solo: Option<SoloBound>,
    next_look: u64,
    proposed: u64,
    /// The size of the sample after the last batch that added to it, and the batches since.
    grown: (u64, u64),
}

impl RandomSample {
    pub(crate) fn new(most: Option<u64>, until: f64, start: u64, solo: Option<SoloBound>) -> Self {
        Self { most, until, solo, next_look: start.max(1), proposed: 0, grown: (0, 0) }
    }
}

impl Proposer for RandomSample {
    fn next(&mut self, view: &mut View<'_>) -> Next {
        let drawn = view.history.sampled();
        if drawn >= self.next_look {
            let confidence = view.question.confidence;
            let alone = self.solo.as_ref().and_then(|solo| solo.alone(view.history, confidence));
            let guesses = view.history.guesses(confidence).into_iter().map(|(_, guess)| guess);
            let best = guesses
                .max_by(|a, b| a.mean.total_cmp(&b.mean))
                .map(|best| (best.mean, best.mean - best.half));
            let bound = Bound::of_all(view.question, None, alone, view.history, best);
            if let Some(gap) = bound.deciding_gap(view.question.method)
                && gap <= view.question.within
            {
                return Next::Reached(StopReason::SampleNearBound {
                    drawn,
                    gap,
                    within: view.question.within,
                });
            }
            let mut looks = pinwise_evt::looks(view.question.start, view.question.step);
            self.next_look = looks.find(|&look| look > drawn).unwrap_or(u64::MAX);
        }
        self.grown = if drawn > self.grown.0 { (drawn, 0) } else { (drawn, self.grown.1 + 1) };
        if self.grown.1 > FUTILE {
            return Next::Done(StopReason::SampleFailed { last: FUTILE * BATCH });
        }
        let left = self.most.map_or(u64::MAX, |most| most.saturating_sub(self.proposed));
        if left == 0 || view.used >= self.until {
            return Next::Done(StopReason::Sampled { drawn });
        }
        let batch = BATCH.min(left).min(self.next_look - drawn);
        self.proposed += batch;
        Next::Round(draw(batch, view.space, view.random))
    }

    /// Up to the next look at the bound. A draw that fails makes the last round a wrong guess.
    fn foresee_round(&self, space: &Space, ahead: u64, random: &mut Random) -> Vec<Trial> {
        let drawn = self.proposed + ahead;
        let most = self.most.unwrap_or(u64::MAX).min(self.next_look);
        draw(BATCH.min(most.saturating_sub(drawn)), space, random)
    }
}

fn draw(count: u64, space: &Space, random: &mut Random) -> Vec<Trial> {
    (0..count).map(|_| pinned(&space.sample(random), Purpose::Sample)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::solo_bound::tests::{filled, question, space, workload};
    use crate::{Budget, PlacementQuestion, StrategyName};
    use pinwise_campaign::Record;
    use pinwise_measure::Measurement;
    use std::time::Duration;

    #[test]
    fn it_stops_by_what_the_claim_will_say() {
        let (workload, space) = (workload(&[false; 4]), space(8));
        let solo = SoloBound::new(&question(), &workload, &space).unwrap();
        // Alone they do more than any sum that is drawn. So the draws bound it, with the half of
        // the error that is theirs.
        let mut history = filled(&solo, |_, _| Some(1000.0), 2);
        let mut random = Random::new(1);
        for (number, class) in space.classes().enumerate() {
            let performance = 100.0 * (1.0 - random.unit() * random.unit());
            let outcome = Ok(Measurement::new(performance, Duration::ZERO));
            let (trial, elapsed) = (pinned(&class, Purpose::Sample), Duration::ZERO);
            history.learn(&Record { number: number as u64, trial, outcome, elapsed });
        }
        let alone = solo.alone(&history, 0.95);
        let gap = |alone| {
            let best = history.ranking().first().map(|(_, mean)| (*mean, *mean));
            Bound::of_all(&question(), None, alone, &history, best).gap_high.unwrap()
        };
        let (whole, half) = (gap(None), gap(alone));
        assert!(whole < half, "{whole} {half}");
        let reached = |solo: Option<SoloBound>, within: f64| {
            let question = PlacementQuestion {
                within,
                start: 1,
                ..PlacementQuestion::new(StrategyName::Auto, Budget::Measurements(600))
            };
            let (space, history, random) = (&space, &history, &mut Random::new(1));
            let mut view = View {
                question: &question,
                space,
                history,
                random,
                used: 0.1,
                until: 0.5,
                cost: 0.001,
            };
            matches!(RandomSample::new(None, 0.5, 1, solo).next(&mut view), Next::Reached(_))
        };
        let between = (whole + half) / 2.0;
        assert!(reached(None, between) && !reached(Some(solo.clone()), between));
        assert!(reached(Some(solo), half * 1.001));
    }
}
