//! The readings of a counter in one window.

use crate::arrivals::Arrival;
use crate::reading::{Reading, ReadingSummary, rate};
use pinwise_measure::MeasureError;
use std::time::{Duration, Instant};

/// The readings since the window began, on the program's clock if it has one, otherwise by arrival.
pub(crate) struct Window {
    begin: Instant,
    readings: Vec<Reading>,
    /// When the first and the last of them came.
    span: Option<(Instant, Instant)>,
}

impl Window {
    /// A window that begins now or later; nothing before `begin` is to be added.
    pub(crate) fn new(begin: Instant) -> Self {
        Self { begin, readings: Vec::new(), span: None }
    }

    /// Adds a reading, unless it has the time of the last one: then it is the same reading.
    pub(crate) fn add(&mut self, arrival: Arrival) {
        let since_begin = arrival.at.saturating_duration_since(self.begin).as_secs_f64();
        let seconds = arrival.sample.seconds.unwrap_or(since_begin);
        if self.readings.last().is_none_or(|last| last.seconds != seconds) {
            self.readings.push(Reading { value: arrival.sample.value, seconds });
            let first = self.span.map_or(arrival.at, |(first, _)| first);
            self.span = Some((first, arrival.at));
        }
    }

    /// From the first reading to the last.
    pub(crate) fn length(&self) -> Duration {
        self.span.map_or(Duration::ZERO, |(first, last)| last.saturating_duration_since(first))
    }

    /// The rate from the first reading to the last.
    pub(crate) fn rate(&self) -> Result<ReadingSummary, MeasureError> {
        Ok(rate(&self.readings)?)
    }
}
