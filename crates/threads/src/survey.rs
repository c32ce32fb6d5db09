//! A search that looks at speed, driven.

use crate::{Advice, Attempt, Sample, Step, SurveyError, Surveyor};
use pinwise_measure::{MeasureError, Prober};
use std::time::Duration;

/// What a search found, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Surveyed {
    /// What it recommends.
    pub advice: Advice,
    /// The parameter that stands for.
    pub parameter: u32,
    /// All probes, in order.
    pub attempts: Vec<Attempt>,
    /// The parameter of the probe that was broken off when the time was over.
    pub broken_off: Option<u32>,
}

impl Surveyed {
    /// Time the search took.
    pub fn cost(&self) -> Duration {
        self.attempts.iter().map(|attempt| attempt.probe.cost).sum()
    }
}

/// Why a search has no result.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SurveyFailure {
    /// A probe failed.
    #[error(transparent)]
    Measure(#[from] MeasureError),
    /// A probe told nothing.
    #[error(transparent)]
    Survey(#[from] SurveyError),
}

/// Runs `surveyor` to its end, or until the prober's time is over ([`MeasureError::expired`]).
/// `convert` is the program's Convert(): from a candidate to its parameter. Errors: the first probe
/// that fails, or that tells no progress; the time was over within the first probe.
pub fn survey(
    mut surveyor: Surveyor,
    prober: &mut impl Prober,
    convert: impl Fn(u32) -> u32,
) -> Result<Surveyed, SurveyFailure> {
    let mut attempts: Vec<Attempt> = Vec::new();
    loop {
        match surveyor.next().clone() {
            Step::Probe { threads, window } => {
                let probe = match prober.probe(convert(threads), window) {
                    Err(error) if error.expired => {
                        let advice = surveyor.expired().ok_or(error)?;
                        let (parameter, broken_off) =
                            (convert(advice.threads), Some(convert(threads)));
                        return Ok(Surveyed { parameter, advice, attempts, broken_off });
                    }
                    probe => probe?,
                };
                let attempt = Attempt { asked: threads, probe };
                let progress =
                    attempt.progress_like(&attempts)?.ok_or(SurveyError::Blind { threads })?;
                attempts.push(attempt);
                let (value, error) = (progress.rate, progress.error);
                surveyor.observe(Sample {
                    value,
                    error,
                    cost: probe.cost,
                    threads: probe.threads,
                })?;
            }
            Step::Stop(advice) => {
                return Ok(Surveyed {
                    parameter: convert(advice.threads),
                    advice,
                    attempts,
                    broken_off: None,
                });
            }
        }
    }
}
