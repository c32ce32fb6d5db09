//! What is measured while a program runs.

use crate::counter_detection::CounterDetection;
use crate::reading::Summary;
use pinwise_measure::{MeasureError, Measurement, Unit};
use std::time::Duration;

/// Measures the performance of a running program over a window.
pub trait Meter: Send {
    /// What performance is counted in.
    fn unit(&self) -> &Unit;

    /// Waits `settle`, then measures for about `window` (longer where the source reports more
    /// rarely). `cancelled` is asked at least every 20 ms; when it returns true the answer is
    /// [`MeasureError::interrupted`].
    fn measure(
        &mut self,
        settle: Duration,
        window: Duration,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Measurement, MeasureError>;

    /// Standard error of the last performance that was measured, in its unit; `None` where its
    /// window had no parts to tell it.
    fn error(&self) -> Option<f64> {
        None
    }

    /// The program runs in another setting from here on: its threads elsewhere, or another number
    /// of them.
    fn moved(&mut self) {}

    /// What the number did so far, where it is taken for a value by its name alone.
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
    ) -> Result<(Summary, Duration), MeasureError>;

    /// See [`Meter::moved`].
    fn moved(&mut self) {}

    /// See [`Meter::counter_detection`].
    fn counter_detection(&self) -> Option<&CounterDetection> {
        None
    }
}
