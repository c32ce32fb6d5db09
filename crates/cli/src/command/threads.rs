//! `pinwise threads`: how many threads a program should run.

mod arguments;
mod document;
mod host;
mod model;
mod observed;
mod text;

pub(crate) use arguments::Threads;

use crate::interrupt::Interrupt;
use crate::output::{self, Interrupted, Usage};
use observed::{Conditions, Observed};
use pinwise_testbed::{MeasureError, Prober};
use pinwise_threads::{Found, Reinforcer, find};

impl Threads {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let interrupt = Interrupt::listen()?;
        let document = match self.machine.machine.as_str() {
            "host" => host::search(&self, &interrupt)?,
            _ => model::search(&self, &interrupt)?,
        };
        if self.json {
            return output::print_json(&document);
        }
        output::print(&text::result(&document, output::width()))
    }
}

/// Searches with probes of `prober`, for the answer as it is told.
fn search<P: Prober>(
    prober: &mut Observed<P>,
    conditions: &Conditions,
    convert: impl Fn(u32) -> u32,
) -> Result<Found, MeasureError> {
    // The span was checked when the arguments were read.
    let search = Reinforcer::new(conditions.span, prober.contexts(), conditions.thresholds)
        .map_err(|error| MeasureError::new(pinwise_testbed::Retry::Never, error.to_string()))?;
    find(search, prober, convert, conditions.window)
}

/// A failed search with the exit code it deserves.
fn told(error: MeasureError, probes: usize) -> anyhow::Error {
    if error.interrupted {
        let made = if probes == 1 { "1 probe was made".to_owned() } else { format!("{probes} probes were made") };
        return Interrupted(format!("interrupted: {made}, nothing of the program runs any more")).into();
    }
    anyhow::anyhow!("{error}")
}

fn usage(error: impl std::fmt::Display) -> Usage {
    Usage(error.to_string())
}
