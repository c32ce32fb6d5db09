//! The decision that follows from a posterior. It has the chosen candidate, its expected loss, and
//! the two candidates between which the choice is open.
//!
//! **Choice.** The fewest threads that are fast enough with a probability of [`CONFIDENCE`]. Fast
//! enough means within the tolerance of the candidate that is fastest on average. More threads than
//! contexts are chosen only if three conditions hold. Otherwise the same choice is made among the
//! numbers up to the contexts:
//!
//! 1. At least two probes were beyond the contexts.
//! 2. Readings of the same number may contradict their reported errors. Then the best number up to
//!    the contexts must lose more than the tolerance with a probability of 90 %.
//! 3. If both were probed several times, that number loses more than the tolerance on average.

use super::{SETTLED, SpeedQuestion};
use crate::advice::expected_loss;
use crate::posterior::Posterior;
use pinwise_topology::Random;

/// Probability with which fewer threads have to be good enough to be chosen.
const CONFIDENCE: f64 = 0.7;
/// Applies if readings of the same number contradict their reported errors. More threads than
/// contexts then need this probability. It is that the best number up to the contexts loses more
/// than the tolerance.
const CLEAR: f64 = 0.9;
/// Upper limit of the probes of fewer threads that may be fast enough, and of their possible
/// equals.
pub(super) const DOUBTS: usize = 3;
/// Upper limit of the probes of more threads than contexts that may be faster. It also limits those
/// of the best number up to the contexts.
pub(super) const PAIRS: usize = 8;
/// Probes of what is announced. More threads than contexts need at least that number of probes,
/// too.
pub(super) const REPEATS: usize = 2;
/// Draws behind the intervals.
const DRAWS: usize = 400;
/// Their seed: a replayed search says the same.
const SEED: u64 = 0x5ca1_ab1e;

/// The choice that follows from a posterior.
pub(super) struct Decision {
    pub(super) choice: usize,
    /// The choice by averages alone, whether or not it is sure enough.
    pub(super) fewest: usize,
    pub(super) contest: Option<OpenChoice>,
    /// Share of the best value that the choice is expected to lose.
    pub(super) loss: f64,
    /// Possible values of all candidates, as logarithms.
    pub(super) draws: Vec<Vec<f64>>,
}

/// Two candidates that the choice is between, and how often each is worth a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OpenChoice {
    pub(super) few: usize,
    pub(super) fast: usize,
    pub(super) most: usize,
}

impl Decision {
    /// Decides from `posterior`. Half of the draws differ from it by `ends`, the others by the
    /// opposites. `times` is how often a candidate was probed.
    pub(super) fn new(
        question: &SpeedQuestion,
        posterior: &Posterior,
        ends: &[f64],
        times: impl Fn(usize) -> usize,
    ) -> Self {
        let mut draws = posterior.draws(DRAWS, &mut Random::new(SEED));
        for (draw, sign) in draws.iter_mut().zip([1.0, -1.0].into_iter().cycle()) {
            draw.iter_mut().zip(ends).for_each(|(value, end)| *value += sign * end);
        }
        let (mean, best) = (&posterior.mean, posterior.best());
        let enough = (1.0 - question.tolerance).ln();
        // Within the tolerance: on average, and how probably.
        let near = |place: usize, fastest: usize| mean[place] >= mean[fastest] + enough;
        let good = |place: usize, fastest: usize| {
            let times = draws.iter().filter(|draw| draw[place] >= draw[fastest] + enough).count();
            times as f64 / draws.len() as f64
        };
        let clear = |place: usize| good(place, best) <= 1.0 - CLEAR;
        let own = question.candidates.partition_point(|&threads| threads <= question.contexts);
        // Numbers that were given up have no mean.
        let known = (0..own).rev().filter(|&place| mean[place].is_finite());
        let rival = known.max_by(|&a, &b| mean[a].total_cmp(&mean[b]));
        // More threads than contexts can only hide waiting. More than one reading has to show that
        // they are faster. That is beyond doubt if readings contradict each other, and on average
        // if there are several of both.
        let above: usize = (own..mean.len()).map(&times).sum();
        let contradicted = |rival: usize| posterior.noisy() && !clear(rival);
        let level = |rival: usize| times(rival).min(times(best)) >= DOUBTS && near(rival, best);
        let doubted = |rival: &usize| above < REPEATS || contradicted(*rival) || level(*rival);
        let sure = |fastest: usize| {
            let chosen = |place: usize| near(place, fastest) && good(place, fastest) >= CONFIDENCE;
            // If `fastest` is not the best, a loss against it adds to the loss of `fastest`.
            let much = |place: usize| {
                fastest != best && level(fastest) && mean[place] < mean[fastest] + enough / 2.0
            };
            (0..fastest).find(|&place| chosen(place) && !much(place)).unwrap_or(fastest)
        };
        let fastest = rival.filter(|_| sure(best) >= own).filter(doubted).unwrap_or(best);
        let fewest = (0..fastest).find(|&place| near(place, fastest)).unwrap_or(fastest);
        let choice = sure(fastest);
        let loss = expected_loss(&draws, choice);
        let contest = match rival.filter(|_| best >= own) {
            Some(rival) => {
                let open =
                    if choice < own { loss >= question.tolerance * SETTLED } else { !clear(rival) };
                Some(OpenChoice { few: rival, fast: best, most: if open { PAIRS } else { DOUBTS } })
            }
            None => {
                (fewest < choice).then_some(OpenChoice { few: fewest, fast: fastest, most: DOUBTS })
            }
        };
        Self { choice, fewest, contest, loss, draws }
    }
}
