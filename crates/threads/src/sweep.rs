//! [`SweepQuestion`]: tries every number, in rounds.
//!
//! It is also the reference for other searches. It is the best search for few numbers and much
//! time. In rounds, changes of the machine affect all numbers. A number's speed is the mean of its
//! probes. The choice is the fewest threads within a tolerance of the fastest. Its uncertainty
//! follows from the variation that numbers and rounds do not explain. The logarithm of a speed is a
//! sum of three terms: for its number, for its round, and an error. This is the two-way analysis of
//! variance without interaction.

use crate::Attempt;
use crate::advice::NumberAdvice;
use crate::thread_ceiling::ThreadCeiling;
use pinwise_topology::Random;
use serde::{Deserialize, Serialize};

/// How every number is tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepQuestion {
    /// The numbers of threads, ascending, at least one.
    pub candidates: Vec<u32>,
    /// How often each is probed, at least once.
    pub rounds: u32,
    /// Share of the best speed that fewer threads may cost, 0 to 1.
    pub tolerance: f64,
    /// Whether the threads of probes are counted. Then each probe restarts the program, and a
    /// greater number promises more threads. If it makes no more from some number on, and is no
    /// faster ([`ThreadCeiling`]), greater ones count as that one. Whole runs are not counted.
    pub counted: bool,
    /// Doubtful probes are made again. False in campaigns of earlier versions, which took them as
    /// they were.
    #[serde(default)]
    pub doubts: bool,
}

/// The result of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct SweepResult {
    /// The number of threads to take.
    pub threads: u32,
    /// Every number that may be chosen with its mean progress, in order. Of those that make as many
    /// threads, it is the fewest, with the mean of all.
    pub curve: Vec<(u32, f64)>,
    /// How sure that is; `None` for a single round or number.
    pub advice: Option<NumberAdvice>,
}

/// Draws behind the intervals.
const DRAWS: usize = 2000;
/// Their seed: the same measurements say the same.
const SEED: u64 = 0x5eed_0f5e;

impl SweepResult {
    /// The share of the best speed that `threads` loses; `None` for a number that was not tried.
    pub fn loss(&self, threads: u32) -> Option<f64> {
        let best = self.curve.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
        let (_, rate) = self.curve.iter().find(|(candidate, _)| *candidate == threads)?;
        (best > 0.0).then(|| 1.0 - rate / best)
    }
}

impl SweepQuestion {
    /// The number to probe after `probes` probes. `None`: every number was tried.
    pub fn next(&self, probes: usize) -> Option<u32> {
        let all = self.candidates.len() * self.rounds as usize;
        (probes < all).then(|| self.candidates[probes % self.candidates.len()])
    }

    /// The result of the probes of a complete sweep; `None` if some are missing. Later probes do
    /// not count.
    pub fn swept(&self, attempts: &[Attempt]) -> Option<SweepResult> {
        let all = self.candidates.len() * self.rounds as usize;
        let attempts = attempts.get(..all).filter(|all| !all.is_empty())?;
        let seen = attempts.iter().map(|attempt| (attempt.asked, &attempt.probe));
        let ceiling = ThreadCeiling::of_probes(seen).filter(|_| self.counted);
        let fewest = ceiling.map_or(u32::MAX, |cap| cap.fewest());
        let kept = self.candidates.partition_point(|&threads| threads <= fewest);
        let candidates = &self.candidates[..kept];
        let rate = |attempt: &Attempt| attempt.probe.progress.rate;
        let rates = (0..self.candidates.len())
            .map(|place| attempts[place..].iter().step_by(self.candidates.len()).map(rate));
        let rates = pooled(rates.map(Iterator::collect).collect(), kept);
        let mean = |rates: &Vec<f64>| rates.iter().sum::<f64>() / rates.len() as f64;
        let curve: Vec<(u32, f64)> =
            candidates.iter().copied().zip(rates.iter().map(mean)).collect();
        let best = curve.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
        let enough = best * (1.0 - self.tolerance);
        let choice = curve.iter().position(|(_, rate)| *rate >= enough)?;
        let threads = candidates[choice];
        let readings = attempts.iter().filter(|attempt| attempt.asked.min(fewest) == threads);
        let all_probed: Vec<usize> = (0..candidates.len()).collect();
        let advice = draws(&rates).map(|draws| NumberAdvice {
            probed: true,
            probes: attempts.len(),
            numbers: curve.len(),
            readings: readings.count(),
            ..NumberAdvice::drawn(candidates, &draws, choice, &all_probed, self.tolerance)
        });
        Some(SweepResult { threads, curve, advice })
    }
}

/// The rates of `kept` numbers, round by round. Those of the last one are the means of it and all
/// that follow it.
fn pooled(mut rates: Vec<Vec<f64>>, kept: usize) -> Vec<Vec<f64>> {
    if kept < rates.len() && kept > 0 {
        let alike = rates.split_off(kept - 1);
        let mean =
            |round: usize| alike.iter().map(|rates| rates[round]).sum::<f64>() / alike.len() as f64;
        rates.push((0..alike[0].len()).map(mean).collect());
    }
    rates
}

/// Draws of the logarithms of all numbers' speeds given their rates, round by round and each above
/// 0. They follow Student's distribution around their means. `None` if there is one number or one
/// round.
fn draws(rates: &[Vec<f64>]) -> Option<Vec<Vec<f64>>> {
    let rounds = rates.first()?.len();
    let degrees = (rates.len() - 1) * (rounds - 1);
    if degrees == 0 || rates.iter().flatten().any(|&rate| rate <= 0.0) {
        return None;
    }
    let logs: Vec<Vec<f64>> =
        rates.iter().map(|rates| rates.iter().map(|rate| rate.ln()).collect()).collect();
    let means: Vec<f64> =
        logs.iter().map(|logs| logs.iter().sum::<f64>() / rounds as f64).collect();
    let left = |round: usize| logs.iter().zip(&means).map(move |(logs, mean)| logs[round] - mean);
    let squares = |round: usize| {
        let shift = left(round).sum::<f64>() / logs.len() as f64;
        left(round).map(|left| (left - shift).powi(2)).sum::<f64>()
    };
    let variance = (0..rounds).map(squares).sum::<f64>() / degrees as f64 / rounds as f64;
    let mut random = Random::new(SEED);
    let mut draw = || {
        // Beyond a hundred degrees of freedom the variance is as good as known.
        let known = degrees > 100;
        let chi_square =
            (0..if known { 0 } else { degrees }).map(|_| random.normal().powi(2)).sum::<f64>();
        let deviation =
            if known { variance } else { variance * degrees as f64 / chi_square }.sqrt();
        means.iter().map(|mean| mean + deviation * random.normal()).collect()
    };
    Some((0..DRAWS).map(|_| draw()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advice::Interval;
    use crate::fixture::attempt;

    fn of(candidates: &[u32], rounds: u32, tolerance: f64) -> SweepQuestion {
        let candidates = candidates.to_vec();
        SweepQuestion { candidates, rounds, tolerance, counted: false, doubts: true }
    }

    /// All its probes, of a program that makes this number of threads for a number.
    fn swept(
        sweep: &SweepQuestion,
        mut rate: impl FnMut(u32) -> f64,
        threads: impl Fn(u32) -> u32,
    ) -> (SweepResult, usize) {
        let mut attempts = Vec::new();
        while let Some(asked) = sweep.next(attempts.len()) {
            assert_eq!(sweep.swept(&attempts), None);
            attempts.push(attempt(asked, threads(asked), rate(asked)));
        }
        (sweep.swept(&attempts).unwrap(), attempts.len())
    }

    /// Speeds of 1, 2, … threads; each later round is slower, as on a machine that others begin to
    /// use.
    fn slower(speeds: &[f64]) -> impl FnMut(u32) -> f64 {
        let mut made = 0;
        move |n| {
            let round = made / speeds.len();
            made += 1;
            speeds[n as usize - 1] / (1 + round) as f64
        }
    }

    #[test]
    fn the_fewest_threads_within_the_tolerance_of_the_best_are_taken() {
        let speeds = [1.0, 1.9, 2.48, 2.5, 2.3];
        let (found, probes) = swept(&of(&[1, 2, 3, 4, 5], 3, 0.01), slower(&speeds), |n| n);
        assert_eq!((found.threads, probes), (3, 15));
        assert!(
            (found.loss(2).unwrap() - (1.0 - 1.9 / 2.5)).abs() < 1e-12,
            "rounds meet all numbers alike"
        );
        assert_eq!((found.loss(4), found.loss(9)), (Some(0.0), None));
        // The rounds differ by factors of two and three, the numbers always by the same.
        let advice = found.advice.unwrap();
        let is = |interval: &Interval<f64>, value: f64| {
            [interval.value, interval.low, interval.high].iter().all(|of| (of - value).abs() < 1e-9)
        };
        assert_eq!((advice.threads, advice.between), (3, (3, 3)));
        let (most, cost) = advice.more.unwrap();
        assert!(is(&advice.gain, 2.48) && most == 5 && is(&cost, 1.0 - 2.3 / 2.48), "{advice:?}");
        let (exact, _) = swept(&of(&[1, 2, 3, 4, 5], 1, 0.0), slower(&speeds), |n| n);
        assert_eq!(
            (exact.threads, exact.advice),
            (4, None),
            "one round does not tell how sure it is"
        );
    }

    /// In how many of 100 sweeps do the intervals hold the truth? They are for the chosen number's
    /// gain, the fewest threads within the tolerance, and the cost of the most threads. Each
    /// chooses by the speeds that it also judges its choice by. Chance changes speeds by 3 % from
    /// probe to probe and by 20 % from round to round.
    fn covered(truth: &[f64]) -> [usize; 3] {
        let candidates: Vec<u32> = (1..=truth.len() as u32).collect();
        let best = truth.iter().copied().fold(0.0, f64::max);
        let fewest = truth.iter().position(|&speed| speed >= best * 0.99).unwrap() as u32 + 1;
        let mut seeds = Random::new(7);
        let mut covered = [0; 3];
        for _ in 0..100 {
            let (mut random, mut slower) = (Random::new(seeds.bits()), 0.0);
            let noisy = |n: u32| {
                if n == 1 {
                    slower = 0.2 * random.normal();
                }
                truth[n as usize - 1] * (slower + 0.03 * random.normal()).exp()
            };
            let (found, _) = swept(&of(&candidates, 3, 0.01), noisy, |n| n);
            let advice = found.advice.unwrap();
            let chosen = truth[found.threads as usize - 1];
            let holds = |interval: &Interval<f64>, value: f64| {
                interval.low <= value && value <= interval.high
            };
            let cost = 1.0 - truth[truth.len() - 1] / chosen;
            covered[0] += usize::from(holds(&advice.gain, chosen / truth[0]));
            covered[1] += usize::from(advice.between.0 <= fewest && fewest <= advice.between.1);
            covered[2] +=
                usize::from(advice.more.is_none_or(|(_, interval)| holds(&interval, cost)));
        }
        covered
    }

    #[test]
    fn numbers_that_make_no_more_threads_are_the_fewest_that_make_them() {
        let rate = |n: u32| [1.0, 1.9, 2.0, 2.1, 2.06][n as usize - 1];
        let all = SweepQuestion { counted: true, ..of(&[1, 2, 3, 4, 5], 2, 0.01) };
        let (found, probes) = swept(&all, rate, |n| n.min(3));
        assert_eq!((found.threads, probes), (3, 10));
        assert_eq!(found.curve.len(), 3);
        assert!((found.curve[2].1 - (2.0 + 2.1 + 2.06) / 3.0).abs() < 1e-12, "{:?}", found.curve);
        let advice = found.advice.unwrap();
        assert_eq!(advice.more, None, "there are no more threads to have");
        assert_eq!(advice.readings, 6, "three numbers, twice each, are the answer");
        let (apart, _) = swept(&SweepQuestion { counted: false, ..all }, rate, |n| n.min(3));
        assert_eq!((apart.threads, apart.advice.unwrap().readings), (4, 2));
    }

    /// If several numbers are alike fast, the luckiest of them is judged by its luck. Then it is
    /// somewhat fewer than nine in ten.
    #[test]
    fn intervals_hold_what_they_are_about_nine_times_in_ten_or_a_little_less_on_a_plateau() {
        let [gains, counts, costs] = covered(&[1.0, 1.8, 2.0, 1.9]);
        assert!(gains >= 83 && counts >= 83 && costs >= 83, "{gains} {counts} {costs}");
        let [gains, counts, costs] = covered(&[1.0, 1.8, 2.0, 2.0, 2.0, 2.0]);
        assert!(gains >= 78 && counts >= 83 && costs >= 75, "{gains} {counts} {costs}");
    }
}
