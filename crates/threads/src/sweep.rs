//! Every number of threads, tried: what a search is judged by, and the answer where there are few numbers and time enough.
//!
//! The numbers are gone through in rounds, so that what changes on the machine meanwhile meets all of them; a number's speed is the mean
//! of its probes. The choice is the fewest threads within a tolerance of the fastest.

use crate::Attempt;
use pinwise_testbed::{MeasureError, Prober, Retry};
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
}

/// What a sweep found.
#[derive(Clone, Debug, PartialEq)]
pub struct Swept {
    /// The number of threads to take.
    pub threads: u32,
    /// The parameter it stands for.
    pub parameter: u32,
    /// Every number with its mean progress, in order.
    pub curve: Vec<(u32, f64)>,
    /// All probes, in order.
    pub attempts: Vec<Attempt>,
}

impl Swept {
    /// The share of the best speed that `threads` loses; `None` for a number that was not tried.
    pub fn loss(&self, threads: u32) -> Option<f64> {
        let best = self.curve.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
        let (_, rate) = self.curve.iter().find(|(candidate, _)| *candidate == threads)?;
        (best > 0.0).then(|| 1.0 - rate / best)
    }
}

/// Tries every number. `convert` is the program's Convert(). Error: the first probe that fails, or that tells no progress.
pub fn sweep(sweep: &Sweep, prober: &mut impl Prober, convert: impl Fn(u32) -> u32) -> Result<Swept, MeasureError> {
    let mut attempts: Vec<Attempt> = Vec::new();
    let mut sums = vec![0.0; sweep.candidates.len()];
    for _ in 0..sweep.rounds {
        for (&asked, sum) in sweep.candidates.iter().zip(&mut sums) {
            let probe = prober.probe(convert(asked), sweep.window)?;
            let blind = || {
                MeasureError::new(
                    Retry::Never,
                    format!("how fast the program gets on with {asked} threads cannot be told: name a metric"),
                )
            };
            let attempt = Attempt { asked, probe };
            *sum += attempt.progress_like(&attempts)?.ok_or_else(blind)?.rate;
            attempts.push(attempt);
        }
    }
    let rounds = f64::from(sweep.rounds);
    let curve: Vec<(u32, f64)> = sweep.candidates.iter().zip(sums).map(|(&asked, sum)| (asked, sum / rounds)).collect();
    let best = curve.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
    let good = curve.iter().find(|(_, rate)| *rate >= best * (1.0 - sweep.tolerance));
    let (threads, _) = good.ok_or_else(|| MeasureError::new(Retry::Never, "there are no numbers of threads to try"))?;
    Ok(Swept { threads: *threads, parameter: convert(*threads), curve, attempts })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_testbed::{Measure, Part, Probe, Profile, Progress};

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
                let (rate, measure) = if self.0 == 2 { (2.0, Measure::CpuTime) } else { (1e9, Measure::Instructions) };
                let progress = Some(Progress { rate, error: None, measure });
                Ok(Probe { parameter, threads: parameter, profile: Profile::default(), progress, cost: window })
            }
            fn parts(&self) -> Vec<Part> {
                Vec::new()
            }
        }
        let question = Sweep { candidates: vec![1, 2], rounds: 1, window: Duration::from_millis(1), tolerance: 0.01 };
        let error = sweep(&question, &mut Fickle(0), |threads| threads).unwrap_err().to_string();
        assert!(error.contains("by CPU time, before it was by instructions"), "{error}");
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
            Ok(Probe { parameter, threads: parameter, profile: Profile::default(), progress, cost: window })
        }

        fn parts(&self) -> Vec<Part> {
            Vec::new()
        }
    }

    fn of(candidates: &[u32], rounds: u32, tolerance: f64) -> Sweep {
        Sweep { candidates: candidates.to_vec(), rounds, window: Duration::from_millis(100), tolerance }
    }

    #[test]
    fn the_fewest_threads_within_the_tolerance_of_the_best_are_taken() {
        let speeds = vec![(1, 1.0), (2, 1.9), (3, 2.48), (4, 2.5), (5, 2.3)];
        let swept = sweep(&of(&[1, 2, 3, 4, 5], 3, 0.01), &mut Recorded(speeds.clone(), 0), |n| n).unwrap();
        assert_eq!((swept.threads, swept.parameter, swept.attempts.len()), (3, 3, 15));
        assert!((swept.loss(2).unwrap() - (1.0 - 1.9 / 2.5)).abs() < 1e-12, "rounds meet all numbers alike");
        assert_eq!((swept.loss(4), swept.loss(9)), (Some(0.0), None));
        let exact = sweep(&of(&[1, 2, 3, 4, 5], 1, 0.0), &mut Recorded(speeds, 0), |n| n).unwrap();
        assert_eq!(exact.threads, 4);
    }

    #[test]
    fn without_progress_there_is_no_answer() {
        let error = sweep(&of(&[7], 1, 0.01), &mut Recorded(vec![(1, 1.0)], 0), |n| n).unwrap_err();
        assert!(error.message.contains("metric"), "{error}");
        assert!(sweep(&of(&[], 1, 0.01), &mut Recorded(Vec::new(), 0), |n| n).is_err());
    }
}
