//! Every number of threads, tried: the measure of all searches, and the answer where there are few
//! numbers and time enough.
//!
//! The numbers are gone through in rounds, so that changes of the machine affect all of them. A
//! number's speed is the mean of its probes. The choice is the fewest threads within a tolerance of
//! the fastest. Its uncertainty follows from what numbers and rounds do not explain: the logarithm
//! of a speed is the sum of a term for its number, one for its round, and an error (two-way
//! analysis of variance without interaction).

use crate::Attempt;
use crate::advice::Advice;
use crate::posterior::normal;
use crate::thread_ceiling::ThreadCeiling;
use pinwise_measure::{MeasureError, Prober, Retry};
use pinwise_topology::Random;
use std::time::Duration;

/// How every number is tried.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    /// The numbers of threads, ascending, at least one.
    pub candidates: Vec<u32>,
    /// How often each is probed, at least once.
    pub rounds: u32,
    /// The length of a probe.
    pub window: Duration,
    /// Share of the best speed that fewer threads may cost, 0 to 1.
    pub tolerance: f64,
    /// Whether the threads of probes are counted: each probe starts the program anew, which
    /// promises more threads for a greater number. Where it makes no more from some number on
    /// ([`ThreadCeiling`]), greater ones count as that one.
    pub counted: bool,
}

/// What a sweep found.
#[derive(Clone, Debug, PartialEq)]
pub struct Swept {
    /// The number of threads to take.
    pub threads: u32,
    /// The parameter it stands for.
    pub parameter: u32,
    /// Every number that may be chosen with its mean progress, in order: of those that make as
    /// many threads the fewest, with the mean of all.
    pub curve: Vec<(u32, f64)>,
    /// How sure that is; `None` where a single round or number does not tell.
    pub advice: Option<Advice>,
    /// All probes, in order.
    pub attempts: Vec<Attempt>,
}

/// Draws behind the intervals.
const DRAWS: usize = 2000;
/// Their seed: the same measurements say the same.
const SEED: u64 = 0x5eed_0f5e;

impl Swept {
    /// The share of the best speed that `threads` loses; `None` for a number that was not tried.
    pub fn loss(&self, threads: u32) -> Option<f64> {
        let best = self.curve.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
        let (_, rate) = self.curve.iter().find(|(candidate, _)| *candidate == threads)?;
        (best > 0.0).then(|| 1.0 - rate / best)
    }
}

/// Tries every number. `convert` is the program's Convert(). Error: the first probe that fails, or
/// that tells no progress.
pub fn sweep(
    sweep: &Sweep,
    prober: &mut impl Prober,
    convert: impl Fn(u32) -> u32,
) -> Result<Swept, MeasureError> {
    let mut attempts: Vec<Attempt> = Vec::new();
    let mut rates: Vec<Vec<f64>> = vec![Vec::new(); sweep.candidates.len()];
    for _ in 0..sweep.rounds {
        for (&asked, rates) in sweep.candidates.iter().zip(&mut rates) {
            let probe = prober.probe(convert(asked), sweep.window)?;
            let blind = || {
                MeasureError::new(
                    Retry::Never,
                    format!(
                        "the progress of the program with {asked} threads is unknown: name a metric"
                    ),
                )
            };
            let attempt = Attempt { asked, probe };
            rates.push(attempt.progress_like(&attempts)?.ok_or_else(blind)?.rate);
            attempts.push(attempt);
        }
    }
    let seen = attempts.iter().map(|attempt| (attempt.asked, attempt.probe.threads));
    let fewest =
        ThreadCeiling::seen(seen).filter(|_| sweep.counted).map_or(u32::MAX, |cap| cap.fewest());
    let candidates =
        &sweep.candidates[..sweep.candidates.partition_point(|&threads| threads <= fewest)];
    let rates = pooled(rates, candidates.len());
    let mean = |rates: &Vec<f64>| rates.iter().sum::<f64>() / rates.len() as f64;
    let curve: Vec<(u32, f64)> = candidates.iter().copied().zip(rates.iter().map(mean)).collect();
    let best = curve.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
    let good = curve.iter().position(|(_, rate)| *rate >= best * (1.0 - sweep.tolerance));
    let choice = good
        .ok_or_else(|| MeasureError::new(Retry::Never, "there are no numbers of threads to try"))?;
    let threads = candidates[choice];
    let advice = draws(&rates).map(|draws| Advice {
        probed: true,
        probes: attempts.len(),
        numbers: curve.len(),
        readings: attempts.iter().filter(|attempt| attempt.asked.min(fewest) == threads).count(),
        ..Advice::drawn(candidates, &draws, choice, 0, sweep.tolerance)
    });
    Ok(Swept { threads, parameter: convert(threads), curve, advice, attempts })
}

/// The rates of `kept` numbers, round by round: those of the last one are the means of it and all
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

/// Draws of the logarithms of all numbers' speeds by what their rates, round by round and each
/// above 0, tell of them: of Student's distribution around their means. `None` where there is one
/// number or one round.
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
            (0..if known { 0 } else { degrees }).map(|_| normal(&mut random).powi(2)).sum::<f64>();
        let deviation =
            if known { variance } else { variance * degrees as f64 / chi_square }.sqrt();
        means.iter().map(|mean| mean + deviation * normal(&mut random)).collect()
    };
    Some((0..DRAWS).map(|_| draw()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advice::Interval;
    use pinwise_measure::{Measure, Part, Probe, Profile, Progress};

    /// Speeds by parameter; each later round is slower, as on a machine that others begin to use.
    struct Recorded(Vec<(u32, f64)>, u32);

    #[test]
    fn speeds_that_are_told_by_different_things_are_not_compared() {
        struct Fickle(u32);
        impl Prober for Fickle {
            fn contexts(&self) -> u32 {
                4
            }
            fn probe(&mut self, parameter: u32, window: Duration) -> Result<Probe, MeasureError> {
                self.0 += 1;
                let (rate, measure) = if self.0 == 2 {
                    (2.0, Measure::CpuTime)
                } else {
                    (1e9, Measure::Instructions)
                };
                let progress = Some(Progress { rate, error: None, measure });
                Ok(Probe {
                    parameter,
                    threads: parameter,
                    profile: Profile::default(),
                    progress,
                    cost: window,
                })
            }
            fn parts(&self) -> Vec<Part> {
                Vec::new()
            }
        }
        let question = Sweep {
            candidates: vec![1, 2],
            rounds: 1,
            window: Duration::from_millis(1),
            tolerance: 0.01,
            counted: false,
        };
        let error = sweep(&question, &mut Fickle(0), |threads| threads).unwrap_err().to_string();
        assert!(error.contains("by CPU time, before by instructions"), "{error}");
    }

    impl Prober for Recorded {
        fn contexts(&self) -> u32 {
            4
        }

        fn probe(&mut self, parameter: u32, window: Duration) -> Result<Probe, MeasureError> {
            let slower = 1.0 / f64::from(1 + self.1 / self.0.len() as u32);
            self.1 += 1;
            let rate = self.0.iter().find(|(n, _)| *n == parameter).map(|(_, rate)| rate * slower);
            let progress = rate.map(|rate| Progress { rate, error: None, measure: Measure::Runs });
            Ok(Probe {
                parameter,
                threads: parameter,
                profile: Profile::default(),
                progress,
                cost: window,
            })
        }

        fn parts(&self) -> Vec<Part> {
            Vec::new()
        }
    }

    fn of(candidates: &[u32], rounds: u32, tolerance: f64) -> Sweep {
        Sweep {
            candidates: candidates.to_vec(),
            rounds,
            window: Duration::from_millis(100),
            tolerance,
            counted: false,
        }
    }

    #[test]
    fn the_fewest_threads_within_the_tolerance_of_the_best_are_taken() {
        let speeds = vec![(1, 1.0), (2, 1.9), (3, 2.48), (4, 2.5), (5, 2.3)];
        let swept =
            sweep(&of(&[1, 2, 3, 4, 5], 3, 0.01), &mut Recorded(speeds.clone(), 0), |n| n).unwrap();
        assert_eq!((swept.threads, swept.parameter, swept.attempts.len()), (3, 3, 15));
        assert!(
            (swept.loss(2).unwrap() - (1.0 - 1.9 / 2.5)).abs() < 1e-12,
            "rounds meet all numbers alike"
        );
        assert_eq!((swept.loss(4), swept.loss(9)), (Some(0.0), None));
        // The rounds differ by factors of two and three, the numbers always by the same.
        assert_eq!(
            swept.advice.unwrap().to_string(),
            "n = 3 (3-3), speed-up 2.480 ± 0.000, n = 5 costs 7.3 ± 0.0 %"
        );
        let exact = sweep(&of(&[1, 2, 3, 4, 5], 1, 0.0), &mut Recorded(speeds, 0), |n| n).unwrap();
        assert_eq!(
            (exact.threads, exact.advice),
            (4, None),
            "one round does not tell how sure it is"
        );
    }

    /// Speeds of parameters from 1 on that chance changes, by 3 % from probe to probe and by 20 %
    /// from round to round.
    struct Noisy<'a> {
        truth: &'a [f64],
        slower: f64,
        random: Random,
    }

    impl Prober for Noisy<'_> {
        fn contexts(&self) -> u32 {
            4
        }

        fn probe(&mut self, parameter: u32, window: Duration) -> Result<Probe, MeasureError> {
            if parameter == 1 {
                self.slower = 0.2 * normal(&mut self.random);
            }
            let rate = self.truth[parameter as usize - 1]
                * (self.slower + 0.03 * normal(&mut self.random)).exp();
            let progress = Some(Progress { rate, error: None, measure: Measure::Runs });
            Ok(Probe {
                parameter,
                threads: parameter,
                profile: Profile::default(),
                progress,
                cost: window,
            })
        }

        fn parts(&self) -> Vec<Part> {
            Vec::new()
        }
    }

    /// In how many of 100 sweeps the intervals hold the truth: the gain of the chosen number, the
    /// fewest threads within the tolerance, and the cost of the most threads. Each chooses by the
    /// speeds that it also judges its choice by.
    fn covered(truth: &[f64]) -> [usize; 3] {
        let candidates: Vec<u32> = (1..=truth.len() as u32).collect();
        let best = truth.iter().copied().fold(0.0, f64::max);
        let fewest = truth.iter().position(|&speed| speed >= best * 0.99).unwrap() as u32 + 1;
        let mut random = Random::new(7);
        let mut covered = [0; 3];
        for _ in 0..100 {
            let mut noisy = Noisy { truth, slower: 0.0, random: Random::new(random.bits()) };
            let swept = sweep(&of(&candidates, 3, 0.01), &mut noisy, |n| n).unwrap();
            let advice = swept.advice.unwrap();
            let chosen = truth[swept.threads as usize - 1];
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

    /// A program that makes three threads at most; its readings differ by chance.
    struct Capped;

    impl Prober for Capped {
        fn contexts(&self) -> u32 {
            4
        }

        fn probe(&mut self, parameter: u32, window: Duration) -> Result<Probe, MeasureError> {
            let rate = [1.0, 1.9, 2.0, 2.1, 2.06][parameter as usize - 1];
            let progress = Some(Progress { rate, error: None, measure: Measure::Runs });
            Ok(Probe {
                parameter,
                threads: parameter.min(3),
                profile: Profile::default(),
                progress,
                cost: window,
            })
        }

        fn parts(&self) -> Vec<Part> {
            Vec::new()
        }
    }

    #[test]
    fn numbers_that_make_no_more_threads_are_the_fewest_that_make_them() {
        let all = Sweep { counted: true, ..of(&[1, 2, 3, 4, 5], 2, 0.01) };
        let swept = sweep(&all, &mut Capped, |n| n).unwrap();
        assert_eq!((swept.threads, swept.attempts.len()), (3, 10));
        assert_eq!(swept.curve.len(), 3);
        assert!((swept.curve[2].1 - (2.0 + 2.1 + 2.06) / 3.0).abs() < 1e-12, "{:?}", swept.curve);
        let advice = swept.advice.unwrap();
        assert_eq!(advice.more, None, "there are no more threads to have");
        assert_eq!(advice.readings, 6, "three numbers, twice each, are the answer");
        let apart = sweep(&Sweep { counted: false, ..all }, &mut Capped, |n| n).unwrap();
        assert_eq!((apart.threads, apart.advice.unwrap().readings), (4, 2));
    }

    /// Where several numbers are alike fast the luckiest of them is judged by its luck: somewhat
    /// fewer than nine in ten.
    #[test]
    fn intervals_hold_what_they_are_about_nine_times_in_ten_or_a_little_less_on_a_plateau() {
        let [gains, counts, costs] = covered(&[1.0, 1.8, 2.0, 1.9]);
        assert!(gains >= 83 && counts >= 83 && costs >= 83, "{gains} {counts} {costs}");
        let [gains, counts, costs] = covered(&[1.0, 1.8, 2.0, 2.0, 2.0, 2.0]);
        assert!(gains >= 78 && counts >= 83 && costs >= 75, "{gains} {counts} {costs}");
    }

    #[test]
    fn without_progress_there_is_no_answer() {
        let error = sweep(&of(&[7], 1, 0.01), &mut Recorded(vec![(1, 1.0)], 0), |n| n).unwrap_err();
        assert!(error.message.contains("metric"), "{error}");
        assert!(sweep(&of(&[], 1, 0.01), &mut Recorded(Vec::new(), 0), |n| n).is_err());
    }
}
