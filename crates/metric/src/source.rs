//! A source that is read on demand: a file, a command, a page, a socket.

use crate::MetricError;
use crate::reading::Interpretation;
use pinwise_linux::quotable;
use pinwise_measure::{MeasureError, Retry};
use std::time::{Duration, Instant};

/// One number from a program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MetricValue {
    /// The number.
    pub value: f64,
    /// The program's own clock, in seconds, if it prints one.
    pub seconds: Option<f64>,
    /// The unit that was printed behind it, if it is one that is known, without its prefix.
    pub unit: Option<&'static str>,
}

impl MetricValue {
    /// A number alone.
    pub(crate) fn of(value: f64) -> Self {
        Self { value, seconds: None, unit: None }
    }
}

/// Why there is no sample.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SourceError {
    /// The user asked to stop.
    Cancelled,
    /// What failed, on what, why.
    Unreadable(String),
    /// The same, where waiting will not mend it.
    Hopeless(String),
    /// The number may be either of two.
    TwoReadings(MetricError),
}

impl SourceError {
    pub(crate) fn on(what: impl std::fmt::Display, why: impl std::fmt::Display) -> Self {
        Self::Unreadable(format!("{what}: {why}"))
    }
}

impl From<MetricError> for SourceError {
    fn from(error: MetricError) -> Self {
        Self::TwoReadings(error)
    }
}

impl From<SourceError> for MeasureError {
    fn from(failure: SourceError) -> Self {
        match failure {
            SourceError::Cancelled => Self::interrupted(),
            SourceError::Unreadable(why) | SourceError::Hopeless(why) => {
                Self::new(Retry::Same, why)
            }
            SourceError::TwoReadings(error) => Self::new(Retry::Never, error.to_string()),
        }
    }
}

/// A source that gives its current number on request.
pub(crate) trait Source: Send {
    /// Reads the number now. `cancelled` is asked at least every 20 ms.
    fn read(&mut self, cancelled: &dyn Fn() -> bool) -> Result<MetricValue, SourceError>;

    /// Whether it is a counter, if the source declares it after a reading (Prometheus types do).
    fn declared(&self) -> Option<Interpretation> {
        None
    }

    /// Whether every reading is known to be exact. A number that stands still is then a program
    /// that stands still.
    fn exact(&self) -> bool {
        false
    }
}

/// Sleeps until `deadline`; `Err` as soon as `cancelled` says so.
pub(crate) fn sleep_until(
    deadline: Instant,
    cancelled: &dyn Fn() -> bool,
) -> Result<(), SourceError> {
    const SLICE: Duration = Duration::from_millis(10);
    loop {
        if cancelled() {
            return Err(SourceError::Cancelled);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        std::thread::sleep(left.min(SLICE));
    }
}

/// The last line of a text that is not blank, ready to quote in a message.
pub(crate) fn last_line(text: &str) -> Option<String> {
    text.lines().rev().find(|line| !line.trim().is_empty()).map(quotable)
}
