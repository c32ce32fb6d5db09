//! Measuring with a counter that is exact whenever it is read.

use crate::arrivals::read_dated;
use crate::meter::MetricMeter;
use crate::reading::ReadingSummary;
use crate::source::{Source, sleep_until};
use crate::window::Window;
use pinwise_figures::duration;
use pinwise_measure::{MeasureError, Retry};
use std::time::{Duration, Instant};

/// The rate of a counter over a window. It is read at the begin and the end of the window. For the
/// spread it is also read in between, if reading is cheap.
pub(crate) struct OnDemand {
    pub(crate) source: Box<dyn Source>,
}

/// Parts of a window, and the shortest that is worth a separate reading.
const PARTS: u32 = 5;
const SHORTEST_PART: Duration = Duration::from_millis(10);

/// A window is at least this many times as long as its first reading takes. A busy machine slows
/// some readings down, so each window has its own limit.
///
/// A reading is dated at its middle. So each end of the window is off by at most half a reading. In
/// the worst case that is 1/8 of the shortest window. In practice it is far less. Most of a
/// reading's time, such as starting a process, is the same each time and shifts both ends alike.
/// The rest changes from window to window and widens the intervals like any other noise.
const WINDOW_TO_READING: u32 = 4;

impl MetricMeter for OnDemand {
    fn summarize(
        &mut self,
        settle: Duration,
        window: Duration,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<(ReadingSummary, Duration), MeasureError> {
        let begin = Instant::now() + settle;
        sleep_until(begin, cancelled)?;
        let first = read_dated(&mut *self.source, cancelled)?;
        let least = begin.elapsed() * WINDOW_TO_READING;
        let length = window.max(least);
        let mut window = Window::new(begin);
        window.add(first);
        // As many parts as fit; at least one.
        let parts = (1..=PARTS)
            .rev()
            .find(|&parts| SHORTEST_PART.max(least) * parts <= length)
            .unwrap_or(1);
        for part in 1..=parts {
            // The window begins with its first reading, not before. A reading may come late because
            // the answering thread did not get a CPU. Otherwise the next readings would then be
            // overdue, and the window would last microseconds.
            sleep_until(first.at + length * part / parts, cancelled)?;
            window.add(read_dated(&mut *self.source, cancelled)?);
        }
        let (summary, measured) = (window.rate()?, window.length());
        if measured < length / 2 {
            let [measured, length] = [measured, length].map(duration);
            let message =
                format!("the program's clock moved in {measured} of a window of {length} only");
            return Err(MeasureError::new(Retry::Same, message));
        }
        Ok((summary, measured))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{MetricValue, SourceError};

    /// Counts its readings; the first takes long.
    struct Late(f64);

    impl Source for Late {
        fn read(&mut self, _: &dyn Fn() -> bool) -> Result<MetricValue, SourceError> {
            if self.0 == 0.0 {
                std::thread::sleep(Duration::from_millis(50));
            }
            self.0 += 1.0;
            Ok(MetricValue::of(self.0))
        }
    }

    #[test]
    fn a_late_first_reading_does_not_shorten_the_window() {
        let mut meter = OnDemand { source: Box::new(Late(0.0)) };
        let window = Duration::from_millis(40);
        let (_, measured) = meter.summarize(Duration::ZERO, window, &|| false).unwrap();
        assert!(measured >= window, "{measured:?}");
        // The window must also be long compared with the reading that it begins with.
        assert!(measured >= Duration::from_millis(200), "{measured:?}");
    }
}
