//! What happens while a job runs.

use pinwise_campaign::{CampaignInfo, Record};
use pinwise_measure::Unit;
use pinwise_placement::Budget;
use std::io;

/// Something that happened.
#[derive(Debug)]
pub enum Event<'a> {
    /// A campaign that has an answer of its own begins, or goes on.
    Begun(&'a CampaignInfo),
    /// One of several searches begins.
    Search {
        /// Which, from 1.
        number: usize,
        /// Of how many.
        of: usize,
        /// What it is called.
        name: &'a str,
    },
    /// The searches are done; what they found is compared on fresh windows.
    Comparison,
    /// Measurements begin.
    Measuring {
        /// What they may take.
        budget: Budget,
        /// What performance is counted in.
        unit: &'a Unit,
    },
    /// A measurement was made and is stored.
    Measured(&'a Record),
    /// Measurements ended.
    Rested,
    /// What is going to be done, and how long it takes.
    Outlook(&'a str),
    /// Something to know.
    Note(&'a str),
}

/// Receives events.
pub trait Events {
    /// Takes one. An error ends the job: nobody reads along.
    fn take(&mut self, event: Event<'_>) -> io::Result<()>;
}

/// Receives nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Events for Silent {
    fn take(&mut self, _: Event<'_>) -> io::Result<()> {
        Ok(())
    }
}
