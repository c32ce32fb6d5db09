//! Random assignments, and the bound they support.
//!
//! The iterative algorithm of the paper (optimal-assignment-evt, section 5.3): measure a first sample, estimate the best
//! possible performance, stop if the best measured one is close enough to it, otherwise enlarge the sample and look again.
//! Assignments are drawn with replacement, uniformly over labelled placements. Each further look is another chance for a lucky
//! stop; looking only whenever the sample has doubled keeps them few.

use crate::Bound;
use crate::search::explorer::{Explorer, Next, View, pinned};
use pinwise_campaign::Purpose;
use pinwise_testbed::figures::percent;

/// Draws between two looks at the budget; each batch carries its own baseline and reference windows.
const BATCH: u64 = 20;

/// Batches in a row of assignments that cannot run, after which to give up.
const FUTILE: u64 = 25;

#[derive(Debug)]
pub(crate) struct Sample {
    /// Ends after this many, whatever the bound.
    most: Option<u64>,
    /// Ends when this share of the budget is used.
    until: f64,
    next_look: u64,
    proposed: u64,
    /// The sample's size when a batch last added to it, and batches since.
    grown: (u64, u64),
}

impl Sample {
    pub(crate) fn new(most: Option<u64>, until: f64, start: u64) -> Self {
        Self { most, until, next_look: start.max(1), proposed: 0, grown: (0, 0) }
    }
}

impl Explorer for Sample {
    fn next(&mut self, view: &mut View<'_>) -> Next {
        let drawn = view.tally.sampled();
        if drawn >= self.next_look {
            let best = view.tally.ranking().first().map(|(_, mean)| *mean);
            let bound = Bound::from_sample(view.question, view.tally.sample(), best, |value| value.to_string());
            if let Some(gap) = bound.deciding_gap(view.question.method)
                && gap <= view.question.within
            {
                return Next::Reached(format!(
                    "the best of {drawn} random assignments came within {} of the bound ({} asked for)",
                    percent(gap),
                    percent(view.question.within)
                ));
            }
            let mut looks = pinwise_evt::looks(view.question.start, view.question.step);
            self.next_look = looks.find(|&look| look > drawn).unwrap_or(u64::MAX);
        }
        self.grown = if drawn > self.grown.0 { (drawn, 0) } else { (drawn, self.grown.1 + 1) };
        if self.grown.1 > FUTILE {
            return Next::Done(format!("of the last {} random assignments none could be measured", FUTILE * BATCH));
        }
        let left = self.most.map_or(u64::MAX, |most| most.saturating_sub(self.proposed));
        if left == 0 || view.used >= self.until {
            return Next::Done(format!("{drawn} random assignments were measured"));
        }
        let batch = BATCH.min(left).min(self.next_look - drawn);
        self.proposed += batch;
        let draws = (0..batch).map(|_| pinned(&view.space.sample(view.random), Purpose::Sample));
        Next::Round(draws.collect())
    }
}
