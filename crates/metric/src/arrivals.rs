//! Readings that come when the program has something to report: printed lines, and numbers that are
//! renewed now and then.

use crate::cadence::WITHIN_A_BLOCK;
use crate::growing_file::FileLines;
use crate::pattern::Pattern;
use crate::reading::Interpretation;
use crate::source::{MetricValue, Source, SourceError, sleep_until};
use pinwise_figures::counted;
use pinwise_linux::{LineReceiver, OutputLine, quotable};
use pinwise_measure::{MeasureError, Retry};
use std::path::Path;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

/// One number, and when it came.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Arrival {
    pub(crate) sample: MetricValue,
    pub(crate) at: Instant,
    /// It may have come this much earlier, because the thread that looked for it could not run.
    pub(crate) late: Duration,
}

/// Why no arrival can come.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Stop {
    /// The source failed; see [`SourceError`].
    Failed(SourceError),
    /// Nothing will ever come; the text says what ended.
    Closed(String),
}

impl From<Stop> for MeasureError {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Failed(failure) => failure.into(),
            Stop::Closed(why) => Self::new(Retry::Never, why),
        }
    }
}

impl From<SourceError> for Stop {
    fn from(failure: SourceError) -> Self {
        Self::Failed(failure)
    }
}

/// Numbers in the order they arrive. Each is given once.
pub(crate) trait Arrivals: Send {
    /// The next number. Waits until `deadline`; `None` if no number came. Asks `cancelled` at least
    /// every 20 ms.
    fn next(
        &mut self,
        deadline: Instant,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Option<Arrival>, Stop>;

    /// Forgets the numbers that cannot be dated because nobody was looking.
    fn resume(&mut self) {}

    /// What arrived instead of a number, for the user.
    fn received(&self) -> String;
}

/// Lines that match a pattern.
pub(crate) struct MatchingLines {
    lines: Lines,
    pattern: Pattern,
    /// The source of the lines: `the program's stdout`, or a path.
    from: String,
    count: u64,
    bytes: u64,
    /// Lines that matched.
    matched: u64,
    /// The last line that did not.
    last: Option<String>,
    begun: Instant,
}

/// How long a program may take to create a file, from when it is waited for.
const CREATING: Duration = Duration::from_secs(2);

/// Where lines come from.
pub(crate) enum Lines {
    Stream(LineReceiver),
    File(FileLines),
}

impl MatchingLines {
    pub(crate) fn new(lines: Lines, pattern: Pattern, from: String) -> Self {
        let (count, bytes, matched, last) = (0, 0, 0, None);
        Self { lines, pattern, from, count, bytes, matched, last, begun: Instant::now() }
    }

    /// It waits for lines of a file that nobody has created in good time.
    fn lacks_file(&self) -> bool {
        self.count == 0
            && matches!(self.lines, Lines::File(_))
            && self.begun.elapsed() > CREATING
            && !Path::new(&self.from).exists()
    }
}

impl Arrivals for MatchingLines {
    fn next(
        &mut self,
        deadline: Instant,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Option<Arrival>, Stop> {
        let receiver = match &self.lines {
            Lines::Stream(receiver) => receiver,
            Lines::File(file) => &file.lines,
        };
        loop {
            if cancelled() {
                return Err(SourceError::Cancelled.into());
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match receiver.recv_timeout(left.min(Duration::from_millis(10))) {
                Ok(OutputLine { at, late, text }) => {
                    self.count += 1;
                    self.bytes += text.len() as u64 + 1;
                    if let Some(sample) = self.pattern.find(&text).map_err(SourceError::from)? {
                        self.matched += 1;
                        return Ok(Some(Arrival { sample, at, late }));
                    }
                    if !text.trim().is_empty() {
                        self.last = Some(text);
                    }
                    if at > deadline {
                        return Ok(None);
                    }
                }
                Err(RecvTimeoutError::Timeout) if self.lacks_file() => {
                    return Err(SourceError::Hopeless(self.received()).into());
                }
                Err(RecvTimeoutError::Timeout) if left.is_zero() => return Ok(None),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Stop::Closed(format!(
                        "{} was closed; {}",
                        self.from,
                        self.received()
                    )));
                }
            }
        }
    }

    fn received(&self) -> String {
        match (&self.last, self.count) {
            (_, 0) if matches!(self.lines, Lines::File(_)) && !Path::new(&self.from).exists() => {
                format!(
                    "there is no file {}: the program did not create it; if it does so later, \
                     create it first",
                    self.from
                )
            }
            (_, 0) if matches!(self.lines, Lines::File(_)) => format!(
                "{} gained no line (is its program stopped? it may buffer its output: try \
                 'stdbuf -oL')",
                self.from
            ),
            (_, 0) => {
                format!(
                    "{} printed nothing (a program may buffer its output: try 'stdbuf -oL')",
                    self.from
                )
            }
            (Some(last), lines) if self.matched == 0 => format!(
                "{} gave {} ({} bytes), and '{}' matched none; the last was '{}'",
                self.from,
                counted(lines, "line"),
                self.bytes,
                self.pattern,
                quotable(last)
            ),
            (_, lines) => format!(
                "{} gave {} ({} bytes), {} matched, then nothing more",
                self.from,
                counted(lines, "line"),
                self.bytes,
                self.matched
            ),
        }
    }
}

/// Several lines that make one report: the sum of their numbers, at the time of the last. An
/// incomplete block is skipped: lines were lost, or looking began in its middle.
pub(crate) struct Blocks {
    pub(crate) inner: Box<dyn Arrivals>,
    /// Lines in a block.
    pub(crate) lines: usize,
    /// Lines further apart belong to different blocks.
    pub(crate) gap: Duration,
    pub(crate) collected: Vec<Arrival>,
}

impl Blocks {
    pub(crate) fn new(inner: Box<dyn Arrivals>, lines: usize, period: f64) -> Self {
        Self {
            inner,
            lines,
            gap: Duration::from_secs_f64(period * WITHIN_A_BLOCK),
            collected: Vec::new(),
        }
    }
}

impl Arrivals for Blocks {
    fn next(
        &mut self,
        deadline: Instant,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Option<Arrival>, Stop> {
        while let Some(arrival) = self.inner.next(deadline, cancelled)? {
            if self
                .collected
                .last()
                .is_some_and(|last| arrival.at.saturating_duration_since(last.at) > self.gap)
            {
                self.collected.clear();
            }
            self.collected.push(arrival);
            if self.collected.len() == self.lines {
                let value = self.collected.drain(..).map(|part| part.sample.value).sum();
                return Ok(Some(Arrival {
                    sample: MetricValue { value, ..arrival.sample },
                    ..arrival
                }));
            }
        }
        Ok(None)
    }

    fn resume(&mut self) {
        self.inner.resume();
    }

    fn received(&self) -> String {
        self.inner.received()
    }
}

/// A source that is polled, and whose number the program renews when it likes. A change is an
/// arrival. A value that stays the same for one and a half periods was renewed too.
pub(crate) struct Renewals {
    pub(crate) source: Box<dyn Source>,
    pub(crate) interpretation: Interpretation,
    /// Time between two readings.
    pub(crate) poll: Duration,
    /// Time between two renewals, as learned.
    pub(crate) period: Duration,
    pub(crate) last: Option<Renewal>,
    pub(crate) readings: u64,
}

/// The current number, and since when it has been the same.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Renewal {
    value: f64,
    since: Instant,
}

impl Renewals {
    pub(crate) fn new(
        source: Box<dyn Source>,
        interpretation: Interpretation,
        poll: Duration,
        period: Duration,
    ) -> Self {
        Self { source, interpretation, poll, period, last: None, readings: 0 }
    }
}

impl Arrivals for Renewals {
    fn next(
        &mut self,
        deadline: Instant,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Option<Arrival>, Stop> {
        loop {
            let arrival = read_dated(&mut *self.source, cancelled)?;
            let Arrival { sample, at, .. } = arrival;
            self.readings += 1;
            let last = *self.last.get_or_insert(Renewal { value: sample.value, since: at });
            let stood = at.saturating_duration_since(last.since);
            let unchanged_but_new =
                self.interpretation == Interpretation::Value && stood >= self.period.mul_f64(1.5);
            if sample.value != last.value || unchanged_but_new {
                self.last = Some(Renewal { value: sample.value, since: at });
                return Ok(Some(arrival));
            }
            let now = Instant::now();
            if now >= deadline {
                return Ok(None);
            }
            sleep_until(deadline.min(now + self.poll), cancelled)?;
        }
    }

    fn resume(&mut self) {
        self.last = None;
    }

    fn received(&self) -> String {
        match self.last {
            Some(last) => format!("it stayed at {} in {} readings", last.value, self.readings),
            None => "it was not read".to_owned(),
        }
    }
}

/// A sample, dated at the middle of the time that it took to read.
pub(crate) fn read_dated(
    source: &mut dyn Source,
    cancelled: &dyn Fn() -> bool,
) -> Result<Arrival, SourceError> {
    let before = Instant::now();
    let sample = source.read(cancelled)?;
    Ok(Arrival { sample, at: before + before.elapsed() / 2, late: Duration::ZERO })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Arrivals that are due at given milliseconds after `start`, without waiting for them. An
    /// arrival beyond the deadline stays for later.
    pub(crate) struct Script {
        pub(crate) start: Instant,
        pub(crate) arrivals: std::collections::VecDeque<(u64, f64)>,
    }

    impl Arrivals for Script {
        fn next(
            &mut self,
            deadline: Instant,
            _: &dyn Fn() -> bool,
        ) -> Result<Option<Arrival>, Stop> {
            let Some(&(millis, value)) = self.arrivals.front() else {
                return Err(Stop::Closed("the script ended".into()));
            };
            let at = self.start + Duration::from_millis(millis);
            if at > deadline {
                return Ok(None);
            }
            self.arrivals.pop_front();
            Ok(Some(Arrival { sample: MetricValue::of(value), at, late: Duration::ZERO }))
        }

        fn received(&self) -> String {
            "a script".into()
        }
    }

    pub(crate) fn script(arrivals: &[(u64, f64)]) -> Script {
        Script { start: Instant::now(), arrivals: arrivals.iter().copied().collect() }
    }

    #[test]
    fn the_error_shows_the_lines_that_arrived_and_whether_any_matched() {
        let (sender, receiver) = pinwise_linux::line_queue();
        let say = |text: &str| {
            let (at, late) = (Instant::now(), Duration::ZERO);
            assert!(sender.send(OutputLine { at, late, text: text.into() }));
        };
        let mut lines = MatchingLines::new(
            Lines::Stream(receiver),
            Pattern::new(r"ops: (\d+)").unwrap(),
            "the program's stdout".into(),
        );
        let soon = Instant::now() + Duration::from_millis(5);
        say("start");
        assert_eq!(lines.next(soon, &|| false), Ok(None));
        let none =
            "stdout gave 1 line (6 bytes), and 'ops: (\\d+)' matched none; the last was 'start'";
        assert!(lines.received().ends_with(none), "{}", lines.received());
        say("ops: 5");
        say("encoded in 5.3 s");
        assert_eq!(lines.next(soon, &|| false).unwrap().unwrap().sample.value, 5.0);
        assert_eq!(lines.next(soon, &|| false), Ok(None));
        let some = "gave 3 lines (30 bytes), 1 matched, then nothing more";
        assert!(lines.received().ends_with(some), "{}", lines.received());
        drop(sender);
        assert!(
            matches!(lines.next(soon, &|| false), Err(Stop::Closed(why)) if why.contains("the \
                program's stdout was closed"))
        );
    }

    #[test]
    fn a_file_that_nobody_creates_is_not_waited_for_to_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut lines = MatchingLines::new(
            Lines::File(crate::growing_file::follow(&path).unwrap()),
            Pattern::new(r"(\d+)").unwrap(),
            path.display().to_string(),
        );
        lines.begun -= CREATING;
        let far = Instant::now() + Duration::from_secs(600);
        match lines.next(far, &|| false) {
            Err(Stop::Failed(SourceError::Hopeless(why))) => {
                assert!(why.contains("create it first"), "{why}")
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_lines_of_a_block_are_added_up_and_a_torn_block_is_passed_over() {
        let inner = script(&[
            (0, 2.0),
            (1000, 10.0),
            (1001, 20.0),
            (2000, 30.0),
            (2001, 40.0),
            (3000, 1.0),
        ]);
        let far = inner.start + Duration::from_secs(10);
        let mut blocks = Blocks::new(Box::new(inner), 2, 1.0);
        assert_eq!(blocks.next(far, &|| false).unwrap().unwrap().sample.value, 30.0);
        assert_eq!(blocks.next(far, &|| false).unwrap().unwrap().sample.value, 70.0);
        assert!(blocks.next(far, &|| false).is_err());
    }
}
