//! Searches driven to their end: each number a search asks for is probed, and it observes the
//! result.

use crate::{Advice, Choice, Next, Reinforcer, Sample, SpeedSearch, SpeedSearchError, Step};
use pinwise_measure::{MeasureError, Probe, Prober, Progress, Retry};
use std::time::Duration;

/// One probe of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Attempt {
    /// T: what the search asked for.
    pub asked: u32,
    /// What came of it.
    pub probe: Probe,
}

impl Attempt {
    /// How fast the program progressed; `None` if unknown.
    ///
    /// Error: this probe measured something else than those `before`, for example CPU time
    /// because its instructions could not be read this once. Such speeds do not compare.
    pub fn progress_like(&self, before: &[Attempt]) -> Result<Option<Progress>, MeasureError> {
        let Some(progress) = self.probe.progress else { return Ok(None) };
        let first = before.iter().find_map(|attempt| attempt.probe.progress);
        match first.filter(|first| first.measure != progress.measure) {
            None => Ok(Some(progress)),
            Some(first) => Err(MeasureError::new(
                Retry::Same,
                format!(
                    "with {} threads its speed was measured by {}, before by {}, and these do not \
                     compare: run the search again, or name a --metric",
                    self.probe.threads, progress.measure, first.measure
                ),
            )),
        }
    }
}

/// What the published search found, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The search's choice.
    pub choice: Choice,
    /// The parameter it stands for.
    pub parameter: u32,
    /// The threads that makes.
    pub threads: u32,
    /// All probes, in order.
    pub attempts: Vec<Attempt>,
}

impl Found {
    /// Time the search took.
    pub fn cost(&self) -> Duration {
        self.attempts.iter().map(|attempt| attempt.probe.cost).sum()
    }
}

/// Runs the published `search` to its end with probes of `window`. `convert` is the program's
/// Convert(): from a number of threads to its parameter. Error: the first probe that fails.
pub fn drive_published(
    mut search: Reinforcer,
    prober: &mut impl Prober,
    convert: impl Fn(u32) -> u32,
    window: Duration,
) -> Result<Found, MeasureError> {
    let mut attempts: Vec<Attempt> = Vec::new();
    loop {
        match search.next() {
            Next::Try(asked)
                if attempts.last().is_some_and(|last| convert(last.asked) == convert(asked)) =>
            {
                search.pass();
            }
            Next::Try(asked) => {
                let probe = prober.probe(convert(asked), window)?;
                attempts.push(Attempt { asked, probe });
                search.observe(probe.profile);
            }
            Next::Stop(choice) => {
                let parameter = convert(choice.threads);
                let chosen = attempts.iter().find(|attempt| attempt.asked == choice.threads);
                let threads = chosen.map_or(choice.threads, |attempt| attempt.probe.threads);
                return Ok(Found { choice, parameter, threads, attempts });
            }
        }
    }
}

/// What a search by speed found, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct SpeedFound {
    /// The recommendation.
    pub advice: Advice,
    /// The parameter it stands for.
    pub parameter: u32,
    /// All probes, in order.
    pub attempts: Vec<Attempt>,
    /// The parameter of the probe that was broken off when the time was over.
    pub broken_off: Option<u32>,
}

impl SpeedFound {
    /// Time the search took.
    pub fn cost(&self) -> Duration {
        self.attempts.iter().map(|attempt| attempt.probe.cost).sum()
    }
}

/// Why a search has no result.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SpeedSearchFailure {
    /// A probe failed.
    #[error(transparent)]
    Measure(#[from] MeasureError),
    /// A probe had no progress.
    #[error(transparent)]
    Search(#[from] SpeedSearchError),
}

/// Runs `search` to its end, or until the prober's time is over ([`MeasureError::expired`]).
/// `convert` is the program's Convert(): from a candidate to its parameter.
///
/// Errors: the first probe that fails or has no progress, and time that is over within the first
/// probe.
pub fn drive_speed_search(
    mut search: SpeedSearch,
    prober: &mut impl Prober,
    convert: impl Fn(u32) -> u32,
) -> Result<SpeedFound, SpeedSearchFailure> {
    let mut attempts: Vec<Attempt> = Vec::new();
    loop {
        match search.next().clone() {
            Step::Probe { threads, window } => {
                let probe = match prober.probe(convert(threads), window) {
                    Err(error) if error.expired => {
                        let advice = search.expired().ok_or(error)?;
                        let (parameter, broken_off) =
                            (convert(advice.threads), Some(convert(threads)));
                        return Ok(SpeedFound { parameter, advice, attempts, broken_off });
                    }
                    probe => probe?,
                };
                let attempt = Attempt { asked: threads, probe };
                let progress =
                    attempt.progress_like(&attempts)?.ok_or(SpeedSearchError::Blind { threads })?;
                attempts.push(attempt);
                let (value, error) = (progress.rate, progress.error);
                search.observe(Sample {
                    value,
                    error,
                    cost: probe.cost,
                    threads: probe.threads,
                })?;
            }
            Step::Stop(advice) => {
                return Ok(SpeedFound {
                    parameter: convert(advice.threads),
                    advice,
                    attempts,
                    broken_off: None,
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Formula, Reason, ThreadRange, Thresholds};
    use pinwise_measure::{Part, Profile};

    /// Keeps as many contexts busy as it has threads.
    struct Busy;

    impl Prober for Busy {
        fn contexts(&self) -> u32 {
            24
        }

        fn probe(&mut self, parameter: u32, window: Duration) -> Result<Probe, MeasureError> {
            let threads = 3 + 4 * parameter;
            let profile =
                Profile { cpu_util: f64::from(threads) / 24.0 * 100.0, ..Profile::default() };
            Ok(Probe { parameter, threads, profile, progress: None, cost: window })
        }

        fn parts(&self) -> Vec<Part> {
            Vec::new()
        }
    }

    /// 1 and 5 threads are n = 1: two probes of the same program would show no parallelism and end
    /// the search.
    #[test]
    fn a_step_that_starts_the_same_program_is_no_saturation() {
        let formula: Formula = "3+4n".parse().unwrap();
        let range = ThreadRange { min: 1, max: 30, step: 4 };
        let search = Reinforcer::new(range, 24, Thresholds::scaled(range.step, 24)).unwrap();
        let found = drive_published(
            search,
            &mut Busy,
            |threads| formula.parameter(threads),
            Duration::from_millis(1),
        )
        .unwrap();
        assert_eq!((found.parameter, found.choice.reason), (6, Reason::MostThreads));
        let probed: Vec<u32> =
            found.attempts.iter().map(|attempt| attempt.probe.parameter).collect();
        assert_eq!(probed, [1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn where_all_numbers_start_the_same_program_it_is_chosen() {
        let range = ThreadRange { min: 1, max: 6, step: 2 };
        let search = Reinforcer::new(range, 24, Thresholds::scaled(range.step, 24)).unwrap();
        let found = drive_published(search, &mut Busy, |_| 1, Duration::from_millis(1)).unwrap();
        assert_eq!((found.parameter, found.attempts.len()), (1, 1));
    }
}
