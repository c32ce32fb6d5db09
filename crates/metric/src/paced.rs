//! Measuring with numbers that come at the program's pace.

use crate::arrivals::{Arrival, Arrivals};
use crate::counter_detection::CounterDetection;
use crate::meter::MetricMeter;
use crate::reading::{Interpretation, Reading, ReadingSummary, mean};
use crate::source::sleep_until;
use crate::window::Window;
use pinwise_figures::duration;
use pinwise_measure::{MeasureError, Retry};
use std::time::{Duration, Instant};

/// Measures with arrivals. A counter gives the rate between the first and the last in the window. A
/// gauge gives the mean of values that cover the window alone. The window becomes longer if the
/// program prints more rarely.
pub(crate) struct Paced {
    pub(crate) arrivals: Box<dyn Arrivals>,
    pub(crate) interpretation: Interpretation,
    /// How long to wait for a number before giving up.
    pub(crate) patience: Duration,
    /// When patience ends at the latest; `None`: there is no budget.
    pub(crate) until: Option<Instant>,
    /// What a value did from the first one on; `None` if more than its name says that it is
    /// one.
    pub(crate) detection: Option<(CounterDetection, Instant)>,
}

impl MetricMeter for Paced {
    fn summarize(
        &mut self,
        settle: Duration,
        window: Duration,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<(ReadingSummary, Duration), MeasureError> {
        let start = Instant::now() + settle;
        self.arrivals.resume();
        sleep_until(start, cancelled)?;
        self.since(start, window, cancelled)
    }

    fn moved(&mut self) {
        if let Some((detection, _)) = &mut self.detection {
            detection.moved();
        }
    }

    fn counter_detection(&self) -> Option<&CounterDetection> {
        self.detection.as_ref().map(|(detection, _)| detection)
    }
}

impl Paced {
    fn since(
        &mut self,
        start: Instant,
        window: Duration,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<(ReadingSummary, Duration), MeasureError> {
        match self.interpretation {
            Interpretation::Counter => self.counter(start, window, cancelled),
            Interpretation::Value => self.values(start, window, cancelled),
        }
    }

    /// First arrival after `start` to the last one in the window. The window is extended until they
    /// are half a window apart. Lines held back by a program that stood still come at once.
    fn counter(
        &mut self,
        start: Instant,
        window: Duration,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<(ReadingSummary, Duration), MeasureError> {
        let mut kept = Window::new(start);
        let mut deadline = start + window;
        loop {
            let enough = !kept.length().is_zero() && kept.length() >= window / 2;
            match self.arrivals.next(deadline, cancelled)? {
                Some(arrival) if arrival.at < start => {}
                Some(arrival) if arrival.at > deadline && enough => break,
                Some(arrival) => kept.add(arrival),
                None if enough => break,
                None => {
                    // Overdue: wait for the missing one only, as long as it may reasonably take.
                    let arrival = self.overdue(deadline, window, cancelled)?;
                    if arrival.at >= start {
                        deadline = arrival.at;
                        kept.add(arrival);
                    }
                }
            }
        }
        Ok((kept.rate()?, kept.length()))
    }

    /// Values all of whose time lies after `start`: a value covers the time since the one before
    /// it.
    fn values(
        &mut self,
        start: Instant,
        window: Duration,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<(ReadingSummary, Duration), MeasureError> {
        let mut kept: Vec<Arrival> = Vec::new();
        let mut previous: Option<Instant> = None;
        let mut began = start;
        let mut deadline = start + window;
        loop {
            let enough =
                kept.last().is_some_and(|last| last.at.duration_since(began) >= window / 2);
            let arrival = match self.arrivals.next(deadline, cancelled)? {
                Some(arrival) if arrival.at > deadline && enough => break,
                Some(arrival) => arrival,
                None if enough => break,
                None => {
                    let arrival = self.overdue(deadline, window, cancelled)?;
                    deadline = deadline.max(arrival.at);
                    arrival
                }
            };
            self.doubt(arrival)?;
            if let Some(previous) = previous.filter(|&previous| previous >= start) {
                if kept.is_empty() {
                    began = previous;
                }
                kept.push(arrival);
            }
            previous = Some(arrival.at);
        }
        let values: Vec<f64> = kept.iter().map(|arrival| arrival.sample.value).collect();
        // The loop ends only with a value. Its error would be a bug, and is reported as one rather
        // than as a panic.
        let summary = mean(&values)
            .ok_or_else(|| MeasureError::new(Retry::Same, "no value in the window"))?;
        Ok((summary, kept[kept.len() - 1].at.duration_since(began)))
    }

    /// An error if the values so far are those of a total. The mean of a total only shows when it
    /// was read.
    fn doubt(&mut self, arrival: Arrival) -> Result<(), MeasureError> {
        let Some((detection, origin)) = &mut self.detection else { return Ok(()) };
        let seconds = arrival.at.saturating_duration_since(*origin).as_secs_f64();
        detection.see(Reading { value: arrival.sample.value, seconds });
        let Some((first, last)) = detection.of_a_total() else { return Ok(()) };
        let message = format!(
            "the metric grew as evenly as a total, from {} to {} in {}: measure its rate with \
             --counter. If it is a rate, wait until the program is warm, or add --gauge",
            first.value,
            last.value,
            duration(Duration::from_secs_f64(last.seconds - first.seconds))
        );
        Err(MeasureError::new(Retry::Never, message))
    }

    /// The next number after `deadline`. It is waited for as long as the patience or the budget
    /// lasts. At the end of the budget it still has the time of this window.
    fn overdue(
        &mut self,
        deadline: Instant,
        window: Duration,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Arrival, MeasureError> {
        let left = self.until.map(|until| until.saturating_duration_since(deadline));
        let waited = left.map_or(self.patience, |left| self.patience.min(left)).max(window);
        self.arrivals.next(deadline + waited, cancelled)?.ok_or_else(|| {
            MeasureError::new(
                Retry::Same,
                format!("no new number in {}: {}", duration(waited), self.arrivals.received()),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrivals::tests::script;

    /// A script of numbers, and when it begins.
    struct Scripted {
        paced: Paced,
        begin: Instant,
    }

    fn paced(interpretation: Interpretation, arrivals: &[(u64, f64)]) -> Scripted {
        let script = script(arrivals);
        let begin = script.start;
        let patience = Duration::from_secs(1);
        let arrivals = Box::new(script);
        let paced = Paced { arrivals, interpretation, patience, until: None, detection: None };
        Scripted { paced, begin }
    }

    /// Measures from `settle` ms after the script's beginning. No time passes.
    fn measure(
        scripted: &mut Scripted,
        settle: u64,
        window: u64,
    ) -> Result<(ReadingSummary, Duration), MeasureError> {
        let start = scripted.begin + Duration::from_millis(settle);
        scripted.paced.since(start, Duration::from_millis(window), &|| false)
    }

    fn close(value: f64, expected: f64) -> bool {
        (value / expected - 1.0).abs() < 1e-6
    }

    #[test]
    fn a_counter_is_taken_from_the_first_line_after_settling_to_the_last_in_the_window() {
        // 1000/s up to 40 ms, 2000/s from then on; settling ends at 50 ms.
        let lines: Vec<(u64, f64)> = (0..30)
            .map(|i| (i * 10 + 5, if i < 4 { i as f64 * 10.0 } else { i as f64 * 20.0 }))
            .collect();
        let (summary, duration) =
            measure(&mut paced(Interpretation::Counter, &lines), 50, 100).unwrap();
        assert!(close(summary.value, 2000.0), "{summary:?}");
        assert!(summary.spread.is_some_and(|spread| spread < 1.0));
        assert!(
            duration >= Duration::from_millis(80) && duration <= Duration::from_millis(100),
            "{duration:?}"
        );
    }

    #[test]
    fn a_window_shorter_than_the_program_s_pace_is_stretched_to_two_lines() {
        let (summary, duration) = measure(
            &mut paced(
                Interpretation::Counter,
                &[(10, 1.0), (300, 100.0), (700, 500.0), (1000, 501.0)],
            ),
            50,
            10,
        )
        .unwrap();
        assert!(close(summary.value, 1000.0), "{summary:?}");
        assert_eq!((duration, summary.spread), (Duration::from_millis(400), None));
    }

    #[test]
    fn lines_that_were_held_back_and_come_at_once_are_no_window() {
        let lines = [(98, 1.0), (99, 2.0), (130, 33.0), (170, 73.0)];
        let (summary, duration) =
            measure(&mut paced(Interpretation::Counter, &lines), 50, 50).unwrap();
        assert!(close(summary.value, 1000.0), "{summary:?}");
        assert_eq!(duration, Duration::from_millis(32));
        let lines = [(98, 1.0), (99, 2.0), (130, 3.0), (170, 4.0)];
        let (_, duration) = measure(&mut paced(Interpretation::Value, &lines), 50, 50).unwrap();
        assert_eq!(duration, Duration::from_millis(32));
    }

    #[test]
    fn a_value_that_reaches_back_before_settling_is_dropped() {
        // A line every 100 ms; the one at 100 ms covers time from before 50 ms.
        let lines = [(0, 1.0), (100, 1000.0), (200, 10.0), (300, 20.0), (400, 99.0)];
        let (summary, duration) =
            measure(&mut paced(Interpretation::Value, &lines), 50, 310).unwrap();
        assert_eq!(summary.value, 15.0);
        assert_eq!(duration, Duration::from_millis(200));
    }

    #[test]
    fn a_rare_value_is_waited_for_and_never_used_twice() {
        let mut paced =
            paced(Interpretation::Value, &[(0, 1.0), (400, 2.0), (800, 3.0), (1_000_000, 4.0)]);
        assert_eq!(measure(&mut paced, 50, 10).unwrap().0.value, 3.0);
        assert!(
            measure(&mut paced, 50, 10).is_err(),
            "there is no value after it in the time of patience"
        );
    }

    #[test]
    fn a_value_that_turns_out_to_be_a_total_ends_it_unless_the_user_says_that_it_is_none() {
        let lines: Vec<(u64, f64)> =
            (0..120).map(|line| (line * 10, 5000.0 + line as f64)).collect();
        let measure = |scripted: &mut Scripted| {
            scripted.paced.moved();
            measure(scripted, 0, 100)
        };
        let said = &mut paced(Interpretation::Value, &lines);
        assert!((0..9).all(|_| measure(said).is_ok()) && said.paced.counter_detection().is_none());
        let unsaid = &mut paced(Interpretation::Value, &lines);
        unsaid.paced.detection = Some((CounterDetection::default(), unsaid.begin));
        assert!(
            (0..5).all(|_| measure(unsaid).is_ok())
                && unsaid.paced.counter_detection().is_some_and(|seen| seen.is_doubtful())
        );
        let error = (0..9).find_map(|_| measure(unsaid).err()).unwrap();
        assert_eq!(error.retry, Retry::Never);
        assert!(
            error.message.contains("from 5000 to 5060") && error.message.contains("--counter"),
            "{error}"
        );
    }

    #[test]
    fn silence_is_an_error_that_says_how_long_and_what_was_seen() {
        let error =
            measure(&mut paced(Interpretation::Counter, &[(10, 1.0), (1_000_000, 2.0)]), 0, 10)
                .unwrap_err();
        assert_eq!(error.retry, Retry::Same);
        assert!(error.message.contains("in 1 s") && error.message.contains("a script"), "{error}");
        let silent = &[(10, 1.0), (1_000_000, 2.0)];
        let error = measure(&mut paced(Interpretation::Value, silent), 0, 6000).unwrap_err();
        assert!(error.message.contains("in 6 s"), "not for many long windows: {error}");
    }

    #[test]
    fn silence_is_not_waited_out_beyond_the_budget_but_for_one_window() {
        let silent = &[(10, 1.0), (1_000_000, 2.0)];
        for (left, expected) in [(400, "in 390 ms"), (0, "in 10 ms"), (9000, "in 1 s")] {
            let mut silent = paced(Interpretation::Counter, silent);
            silent.paced.until = Some(silent.begin + Duration::from_millis(left));
            let error = measure(&mut silent, 0, 10).unwrap_err();
            assert!(error.message.contains(expected), "{left} ms: {error}");
        }
    }

    #[test]
    fn a_counter_that_starts_over_is_worth_another_try() {
        let error = measure(
            &mut paced(Interpretation::Counter, &[(10, 100.0), (20, 5.0), (40, 6.0), (900, 7.0)]),
            0,
            50,
        )
        .unwrap_err();
        assert_eq!(error.retry, Retry::Same);
        assert!(error.message.contains("fell from 100 to 5"), "{error}");
    }
}
