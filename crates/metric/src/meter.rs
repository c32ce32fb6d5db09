//! The interface of everything that measures a running program.

use crate::counter_detection::CounterDetection;
use crate::reading::ReadingSummary;
use pinwise_measure::{MeasureError, Measurement, Unit};
use std::time::Duration;

/// Measures the performance of a running program over a window.
pub trait Meter: Send {
    /// The unit of the performance.
    fn unit(&self) -> &Unit;

    /// Waits `settle`, then measures for about `window`, or longer if the source reports more
    /// rarely. Asks `cancelled` at least every 20 ms. When it returns true the result is
    /// [`MeasureError::interrupted`].
    fn measure(
        &mut self,
        settle: Duration,
        window: Duration,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Measurement, MeasureError>;

    /// Standard error of the last performance, in its unit; `None` if its window had no parts to
    /// estimate it from.
    fn error(&self) -> Option<f64> {
        None
    }

    /// The program runs in another setting from now on: its threads are elsewhere, or their number
    /// has changed.
    fn moved(&mut self) {}

    /// What the number did so far, if it is taken for a value by its name alone.
    fn counter_detection(&self) -> Option<&CounterDetection> {
        None
    }
}

/// Measures the quantity the user asked for, in the user's direction.
pub(crate) trait MetricMeter: Send {
    /// The quantity over a window that begins `settle` from now, and the time it covers.
    fn summarize(
        &mut self,
        settle: Duration,
        window: Duration,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<(ReadingSummary, Duration), MeasureError>;

    /// See [`Meter::moved`].
    fn moved(&mut self) {}

    /// See [`Meter::counter_detection`].
    fn counter_detection(&self) -> Option<&CounterDetection> {
        None
    }
}
