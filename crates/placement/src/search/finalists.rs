//! The last stage: fresh windows for the winner, its rivals and the baseline.

use crate::PlacementQuestion;
use crate::StopReason;
use crate::fresh_windows::{BASELINE_WINDOWS, FreshWindows};
use crate::search::FINALISTS;
use crate::search::history::History;
use crate::search::proposer::{pinned, trial};
use crate::statistics::{mean, t_quantile, variance};
use pinwise_campaign::{Purpose, Trial};
use pinwise_measure::Setting;
use pinwise_topology::{Assignment, Random};

/// Rounds before anything is concluded.
pub(crate) const LEAST_ROUNDS: usize = 5;

/// Rounds that the rest of the budget should allow. Fewer rivals are better than intervals too wide
/// to separate any from the baseline.
const WANTED_ROUNDS: f64 = 10.0;

/// Rounds from which their number is not foreseen.
const MOST_ROUNDS: usize = 40;

/// Rounds from one window of the reference to the next.
pub(crate) const REFERENCE_EVERY: usize = 2;

/// How many times, at most, rivals are looked at to drop beaten ones: after 5, 10, 20, … rounds.
const LOOKS: f64 = 10.0;

#[derive(Debug)]
pub(crate) struct Finalists {
    /// Still measured.
    alive: Vec<Assignment>,
    baseline: bool,
    rounds: usize,
    next_look: usize,
}

impl Finalists {
    /// Trials that fresh windows are likely to take, by the noise seen so far. All finalists run in
    /// rounds until the announced intervals are as narrow as wanted. Infinite if the noise is not
    /// known, or asks for very many.
    pub(crate) fn likely_trials(question: &PlacementQuestion, history: &History) -> f64 {
        let best = history.ranking().first().map(|(_, mean)| *mean);
        let unpinned = mean(&history.baseline);
        let (Some(noise), Some(best)) = (history.noise(), best.filter(|_| unpinned > 0.0)) else {
            return f64::INFINITY;
        };
        let spread =
            variance(&history.baseline).sqrt() / unpinned / (BASELINE_WINDOWS as f64).sqrt();
        let gain = question.precision.max((best / unpinned - 1.0).abs() / 4.0);
        let level = 1.0 - (1.0 - question.confidence) / FINALISTS as f64;
        let is_enough = |rounds: &usize| {
            let by = t_quantile(level, (rounds - 1) as f64) / (*rounds as f64).sqrt();
            by * noise <= question.precision && by * noise.hypot(spread) <= gain
        };
        let round = (FINALISTS + BASELINE_WINDOWS) as f64 + 1.0 / REFERENCE_EVERY as f64;
        (LEAST_ROUNDS..MOST_ROUNDS)
            .find(is_enough)
            .map_or(f64::INFINITY, |rounds| rounds as f64 * round)
    }

    /// The best assignment of the search, and those whose intervals reach it, as far as
    /// `affordable` trials allow.
    pub(crate) fn new(question: &PlacementQuestion, history: &History, affordable: f64) -> Self {
        let mut guesses = history.guesses(question.confidence);
        guesses.sort_by(|a, b| b.1.mean.total_cmp(&a.1.mean));
        let reach = guesses.first().map_or(f64::NEG_INFINITY, |(_, best)| best.mean - best.half);
        let room = (affordable / WANTED_ROUNDS) as usize;
        let most = room.saturating_sub(BASELINE_WINDOWS).clamp(2, FINALISTS);
        let alive = guesses
            .into_iter()
            .filter(|(_, guess)| guess.mean + guess.half >= reach)
            .take(most)
            .map(|(assignment, _)| assignment.clone())
            .collect();
        Self { alive, baseline: !history.baseline_failed, rounds: 0, next_look: LEAST_ROUNDS }
    }

    /// The next round in random order, or why there is none.
    pub(crate) fn next(
        &mut self,
        question: &PlacementQuestion,
        fresh: &FreshWindows,
        reference: &Assignment,
        random: &mut Random,
    ) -> Result<Vec<Trial>, StopReason> {
        self.alive.retain(|candidate| {
            self.rounds == 0 || fresh.candidates().any(|other| other == candidate)
        });
        if self.alive.is_empty() {
            return Err(StopReason::NoAssignment);
        }
        if self.rounds >= LEAST_ROUNDS {
            if self.rounds >= self.next_look {
                self.drop_beaten(question, fresh);
                self.next_look *= 2;
            }
            if self.is_precise(question, fresh) {
                return Err(StopReason::Precise {
                    windows: self.rounds as u64,
                    precision: question.precision,
                });
            }
        }
        let mut round = self.round(1, reference);
        self.rounds += 1;
        random.shuffle(&mut round);
        Ok(round)
    }

    /// The round that comes `ahead` rounds later, if all that are measured now still are.
    pub(crate) fn round(&self, ahead: usize, reference: &Assignment) -> Vec<Trial> {
        let mut round: Vec<Trial> =
            self.alive.iter().map(|candidate| pinned(candidate, Purpose::Final)).collect();
        if self.baseline {
            round.extend((0..BASELINE_WINDOWS).map(|_| trial(Setting::Unpinned, Purpose::Final)));
        }
        if (self.rounds + ahead).is_multiple_of(REFERENCE_EVERY) {
            round.push(pinned(reference, Purpose::Reference));
        }
        round
    }

    fn drop_beaten(&mut self, question: &PlacementQuestion, fresh: &FreshWindows) {
        let Some(leader) = fresh.leader() else { return };
        let level = 1.0 - (1.0 - question.confidence) / (fresh.comparisons() as f64 * LOOKS);
        self.alive.retain(|candidate| {
            *candidate == leader
                || fresh.against(candidate, &leader, level).is_none_or(|ratio| ratio.high >= 1.0)
        });
    }

    /// Whether every interval that will be announced is narrow enough. Only widths decide, so that
    /// stopping does not favour lucky means. A gain many times its half-width needs no further
    /// digit.
    fn is_precise(&self, question: &PlacementQuestion, fresh: &FreshWindows) -> bool {
        let narrow = |candidate: &Assignment| {
            fresh.estimate(candidate, question.confidence).is_some_and(|estimate| {
                (estimate.high - estimate.low) / 2.0 <= question.precision * estimate.mean.abs()
            })
        };
        let decided = || {
            fresh.leader().and_then(|leader| fresh.gain(&leader, question.confidence)).is_some_and(
                |gain| gain.half_width() <= question.precision.max((gain.value - 1.0).abs() / 4.0),
            )
        };
        self.alive.iter().all(narrow) && (!self.baseline || decided())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Budget, StrategyName};
    use pinwise_campaign::Record;
    use pinwise_measure::{Effort, Measurement};
    use std::time::Duration;

    #[test]
    fn fresh_windows_are_foreseen_by_the_noise() {
        let question = PlacementQuestion::new(StrategyName::Auto, Budget::Measurements(600));
        let trials = |noise: f64| {
            let mut history = History::default();
            let settings = [Setting::Unpinned, Setting::Pinned(Assignment::new(vec![0]))];
            for (setting, performance) in settings.into_iter().zip([100.0, 150.0]) {
                for sign in [1.0, -1.0, 1.0, -1.0, 1.0, -1.0] {
                    let trial = trial(setting.clone(), Purpose::Reference);
                    let trial = Trial { effort: Effort::default(), ..trial };
                    let performance = performance * (1.0 + sign * noise);
                    let measured = Measurement::new(performance, Duration::ZERO);
                    history.learn(&Record {
                        number: 0,
                        trial,
                        outcome: Ok(measured),
                        elapsed: Duration::ZERO,
                    });
                }
            }
            Finalists::likely_trials(&question, &history)
        };
        assert_eq!(Finalists::likely_trials(&question, &History::default()), f64::INFINITY);
        // Eight finalists, two windows unpinned and half a reference, five times.
        assert_eq!(trials(0.0), 52.5);
        assert!(trials(0.01) > 100.0 && trials(0.01) < f64::INFINITY, "{}", trials(0.01));
        assert_eq!(trials(0.1), f64::INFINITY);
    }
}
