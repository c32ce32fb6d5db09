//! The exhaustive search: measures every different assignment, in rounds.
//!
//! Each round measures every assignment still in question once, in a fresh random order. So changes
//! over time affect all alike. From the third round on, assignments whose interval no longer
//! reaches the best one's are dropped. This is successive elimination (Even-Dar, Mannor and
//! Mansour, JMLR 7, 2006). The chance that the true best is ever dropped is at most 1 - confidence.
//! Round r may spend a share 6/(pi r)^2 of it, divided by the number of assignments.

use crate::StopReason;
use crate::search::FINALISTS;
use crate::search::proposer::{Next, Proposer, View, pinned};
use pinwise_campaign::Purpose;
use pinwise_topology::{Assignment, Space};
use std::collections::BTreeSet;

/// Rounds before the first assignment may be dropped.
pub(crate) const LEAST_ROUNDS: usize = 3;

#[derive(Debug)]
pub(crate) struct Exhaustive {
    alive: Vec<Assignment>,
    classes: usize,
    rounds: usize,
}

impl Exhaustive {
    pub(crate) fn new(space: &Space) -> Self {
        let alive: Vec<Assignment> = space.classes().collect();
        Self { classes: alive.len(), alive, rounds: 0 }
    }

    /// Drops what is beaten; the widest relative half-width among the rest.
    fn eliminate(&mut self, view: &View<'_>) -> f64 {
        let look = (self.rounds + 1 - LEAST_ROUNDS) as f64;
        let share = 6.0 / (std::f64::consts::PI * look).powi(2) / self.classes as f64;
        let guesses = view.history.guesses(1.0 - (1.0 - view.question.confidence) * share);
        let candidates: BTreeSet<&Assignment> = self.alive.iter().collect();
        let guesses: Vec<_> =
            guesses.into_iter().filter(|(assignment, _)| candidates.contains(assignment)).collect();
        let best = guesses.iter().map(|(_, guess)| *guess).max_by(|a, b| a.mean.total_cmp(&b.mean));
        let Some(best) = best else {
            self.alive.clear();
            return 0.0;
        };
        let left: Vec<_> = guesses
            .into_iter()
            .filter(|(_, guess)| guess.mean + guess.half >= best.mean - best.half)
            .collect();
        let widest =
            left.iter().map(|(_, guess)| guess.half / guess.mean.abs()).fold(0.0, f64::max);
        self.alive = left.into_iter().map(|(assignment, _)| assignment.clone()).collect();
        widest
    }
}

impl Proposer for Exhaustive {
    fn next(&mut self, view: &mut View<'_>) -> Next {
        if self.rounds >= LEAST_ROUNDS {
            let widest = self.eliminate(view);
            let (left, classes, rounds) = (self.alive.len(), self.classes, self.rounds);
            if left <= FINALISTS {
                return Next::Reached(StopReason::FewLeft {
                    left: left as u64,
                    of: classes as u64,
                    rounds: rounds as u64,
                });
            }
            if widest <= view.question.precision {
                return Next::Reached(StopReason::Tied {
                    left: left as u64,
                    of: classes as u64,
                    within: view.question.precision,
                });
            }
        }
        self.rounds += 1;
        Next::Round(
            self.alive.iter().map(|assignment| pinned(assignment, Purpose::Sample)).collect(),
        )
    }
}
