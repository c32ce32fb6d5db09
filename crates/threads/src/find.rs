//! A search, driven.

use crate::{Choice, Next, Reinforcer};
use pinwise_testbed::{MeasureError, Probe, Prober};
use std::time::Duration;

/// One probe of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Attempt {
    /// T: what the search asked for.
    pub asked: u32,
    /// What came of it.
    pub probe: Probe,
}

/// What a search found, and how.
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

/// Runs `search` to its end with probes of `window`. `convert` is the program's Convert(): from a number of threads to its parameter.
/// Error: the first probe that fails.
pub fn find(
    mut search: Reinforcer,
    prober: &mut impl Prober,
    convert: impl Fn(u32) -> u32,
    window: Duration,
) -> Result<Found, MeasureError> {
    let mut attempts: Vec<Attempt> = Vec::new();
    loop {
        match search.next() {
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
