//! [`Event`]s: what happens while a job runs.

use crate::error::JobError;
use pinwise_campaign::{CampaignInfo, Record};
use pinwise_measure::{Interrupt, Unit};
use pinwise_placement::Budget;
use pinwise_present::Notice;
use std::io;

/// Something that happened.
#[derive(Debug)]
pub enum Event<'a> {
    /// A campaign with a separate answer begins, or goes on.
    Begun(&'a CampaignInfo),
    /// One of several searches begins.
    Search {
        /// The number of the search, from 1.
        number: usize,
        /// How many searches there are.
        of: usize,
        /// The name of the search.
        name: &'a str,
    },
    /// The searches are done; what they found is compared on fresh windows.
    Comparison,
    /// Measurements begin.
    Measuring {
        /// The budget of the measurements.
        budget: Budget,
        /// The unit of performance.
        unit: &'a Unit,
    },
    /// A measurement was made and is stored.
    Measured(&'a Record),
    /// Measurements ended.
    MeasuringEnded,
    /// A notice on what will be done, and how long it takes.
    Outlook(&'a Notice),
    /// Something to know.
    Note(&'a Notice),
}

/// Receives events.
pub trait Events {
    /// Takes one. An error interrupts the job, because nobody reads its events any more. The
    /// measurements so far are stored as usual.
    fn take(&mut self, event: Event<'_>) -> io::Result<()>;
}

/// Events for a receiver that may go away. After that nothing is sent, and the job is asked to
/// stop.
pub(crate) struct Listener<'a> {
    events: &'a mut dyn Events,
    interrupt: &'a Interrupt,
    /// Why nobody listens any more.
    pub(crate) gone: Option<io::Error>,
}

impl<'a> Listener<'a> {
    pub(crate) fn new(events: &'a mut dyn Events, interrupt: &'a Interrupt) -> Self {
        Self { events, interrupt, gone: None }
    }
}

impl Events for Listener<'_> {
    fn take(&mut self, event: Event<'_>) -> io::Result<()> {
        if self.gone.is_none()
            && let Err(error) = self.events.take(event)
        {
            self.interrupt.give_up();
            self.gone = Some(error);
        }
        Ok(())
    }
}

/// Says something to know.
pub(crate) fn note(events: &mut dyn Events, about: impl Into<Notice>) -> Result<(), JobError> {
    events.take(Event::Note(&about.into())).map_err(JobError::Output)
}

/// Passes each event to a function.
#[cfg(test)]
pub(crate) struct Listening<F>(pub(crate) F);

#[cfg(test)]
impl<F: FnMut(Event<'_>) -> io::Result<()>> Events for Listening<F> {
    fn take(&mut self, event: Event<'_>) -> io::Result<()> {
        (self.0)(event)
    }
}

/// Interrupts the job at the event number `number`, from 1, of those for which `is_one` holds.
#[cfg(test)]
pub(crate) fn stopping_at(
    interrupt: &Interrupt,
    mut number: usize,
    is_one: impl Fn(&Event<'_>) -> bool,
) -> Listening<impl FnMut(Event<'_>) -> io::Result<()>> {
    Listening(move |event: Event<'_>| {
        if is_one(&event) {
            number = number.wrapping_sub(1);
            if number == 0 {
                interrupt.flag().store(true, std::sync::atomic::Ordering::Relaxed);
            }
        }
        Ok(())
    })
}

/// Receives nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Events for Silent {
    fn take(&mut self, _: Event<'_>) -> io::Result<()> {
        Ok(())
    }
}
