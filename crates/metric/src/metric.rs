//! A metric that is opened on a program and measures it.

use crate::arrivals::{Lines, MatchingLines};
use crate::counter_detection::CounterDetection;
use crate::meter::{Meter, MetricMeter};
use crate::metric_detection::{self, DetectedMetric, Known};
use crate::pattern::Pattern;
use crate::reading::{self, Interpretation};
use crate::source::Source;
use crate::{
    MetricError, MetricSpec, Pids, command, dpdk, growing_file, netdev, procio, prometheus,
    pseudo_file, spec,
};
use pinwise_linux::{Streams, thread::Pid};
use pinwise_measure::{MeasureError, Measurement, ProgramNote, Retry, Unit};
use std::time::{Duration, Instant};

/// How to read a metric.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricOptions {
    /// Where the number is in the output of `cmd:`.
    pub pick: Option<Pattern>,
    /// Counter or value; `None` to find out.
    pub interpretation: Option<Interpretation>,
    /// The quantity is better when lower.
    pub lower_is_better: bool,
    /// The unit of the quantity. For a counter, the unit of what is counted (`chunks`) or of the
    /// rate (`chunks/s`, `fps`). `None` to derive it from the metric.
    pub unit: Option<String>,
    /// A prefix behind a number, such as k or M, is ignored. Earlier versions ignored it.
    pub as_printed: bool,
    /// How long to wait for a number before giving up.
    pub patience: Duration,
    /// When the budget ends, and with it all waiting for numbers. A window after that waits as long
    /// again as its own length. `None`: only `patience` ends it.
    pub until: Option<Instant>,
}

impl Default for MetricOptions {
    /// Finds everything out, with 10 s of patience.
    fn default() -> Self {
        Self {
            pick: None,
            interpretation: None,
            lower_is_better: false,
            unit: None,
            as_printed: false,
            patience: Duration::from_secs(10),
            until: None,
        }
    }
}

impl MetricOptions {
    /// The pattern as it reads numbers with these options.
    pub fn reads(&self, pattern: &Pattern) -> Pattern {
        let pattern = pattern.clone();
        if self.as_printed { pattern.as_printed() } else { pattern.in_unit(self.unit.as_deref()) }
    }
}

/// A metric that has been tried and works.
pub struct Metric {
    /// Measures with it.
    pub meter: Box<dyn Meter>,
    /// What was decided.
    pub notes: Vec<ProgramNote>,
    /// Windows shorter than this are stretched, at the metric's pace.
    pub shortest_window: Duration,
}

impl std::fmt::Debug for Metric {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Metric")
            .field("notes", &self.notes)
            .field("shortest_window", &self.shortest_window)
            .finish_non_exhaustive()
    }
}

impl MetricSpec {
    /// Checks what can be checked before a program is started, or before anything is done to the
    /// running `running`.
    ///
    /// # Errors
    /// - Options that do not go with the metric.
    /// - `stdout:` and `stderr:` of a program that already runs.
    /// - A source that does not exist and cannot appear. If the program already runs, this includes
    ///   files, pages and sockets.
    ///
    /// `runtime` never comes here.
    pub fn check(
        &self,
        options: &MetricOptions,
        running: Option<&[Pid]>,
    ) -> Result<(), MetricError> {
        self.fits(options, running.is_none())?;
        self.present(running)
    }

    fn fits(&self, options: &MetricOptions, launched: bool) -> Result<(), MetricError> {
        match self {
            Self::Command(_) => {}
            _ if options.pick.is_some() => {
                return Err(MetricError::PickWithoutCommand { metric: self.to_string() });
            }
            Self::Runtime => return Err(MetricError::RuntimeOfRunning),
            Self::Stdout(_) if !launched => {
                return Err(MetricError::NoStream { metric: self.to_string(), stream: "stdout" });
            }
            Self::Stderr(_) if !launched => {
                return Err(MetricError::NoStream { metric: self.to_string(), stream: "stderr" });
            }
            _ => {}
        }
        Ok(())
    }

    /// Takes up the metric of a running program: waits for its first numbers, finds out what they
    /// are. The stream it reads is taken out of `streams`; `pids` are the program's processes,
    /// asked again for each reading.
    ///
    /// # Errors
    /// [`MetricError`]: the metric does not go with the options or the program, or no number came
    /// in time. Or the readings do not show their kind. Or `cancelled`, asked at least every 20 ms,
    /// returned `true`.
    pub fn open(
        &self,
        options: &MetricOptions,
        streams: &mut Streams,
        pids: Pids,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Metric, MetricError> {
        let launched = streams.stdout.is_some() || streams.stderr.is_some();
        self.fits(options, launched)?;
        let metric = self.to_string();
        // The text around the picked number describes it, as in the pattern of `stdout:`.
        let picked = options.pick.as_ref();
        let known = Known {
            metric: &metric,
            stated: options.interpretation,
            hint: self.hint().or_else(|| picked.and_then(|pick| spec::hint(pick.as_str()))),
            patience: options.patience,
            until: options.until,
            // A program that was just started may not answer yet. One that reads its settings again
            // may not answer for a second or two. There are ten tries a second.
            failures: (matches!(self, Self::Command(_)) && !launched).then_some(30),
        };
        let missing = |stream| MetricError::NoStream { metric: metric.clone(), stream };
        // Reads numbers in the user's unit, if one is named.
        let read = |pattern: &Pattern| options.reads(pattern);
        let lines = |lines, pattern: &Pattern, from: String| {
            metric_detection::lines(
                Box::new(MatchingLines::new(lines, read(pattern), from)),
                &known,
                cancelled,
            )
        };
        let source = |source: Box<dyn Source>| metric_detection::source(source, &known, cancelled);
        let found = match self {
            Self::Stdout(pattern) => {
                let stream = streams.stdout.take().ok_or_else(|| missing("stdout"))?;
                lines(Lines::Stream(stream), pattern, "the program's stdout".into())
            }
            Self::Stderr(pattern) => {
                let stream = streams.stderr.take().ok_or_else(|| missing("stderr"))?;
                lines(Lines::Stream(stream), pattern, "the program's stderr".into())
            }
            Self::File { path, pattern } if pseudo_file::is(path) => {
                source(Box::new(pseudo_file::PseudoFile {
                    path: path.clone(),
                    pattern: read(pattern),
                }))
            }
            Self::File { path, pattern } => {
                let followed =
                    growing_file::follow(path).map_err(|error| MetricError::NeverRead {
                        metric: metric.clone(),
                        waited: Duration::ZERO,
                        seen: error.to_string(),
                    })?;
                lines(Lines::File(followed), pattern, path.display().to_string())
            }
            Self::Command(command) => source(Box::new(command::ShellCommand {
                command: command.clone(),
                pick: options.pick.as_ref().map(read),
                timeout: Duration::from_secs(5),
                succeeded: false,
            })),
            Self::Prometheus { url, selector } => {
                source(Box::new(prometheus::Prometheus::new(url.clone(), selector.clone())))
            }
            Self::Netdev { interface, field } => {
                source(Box::new(netdev::Netdev::new(interface.clone(), field.clone(), pids)))
            }
            Self::Io(field) => source(Box::new(procio::ProcIo { field: field.clone(), pids })),
            Self::Dpdk { prefix, field } => {
                source(Box::new(dpdk::Dpdk::new(dpdk::runtime_directory(), prefix, field.clone())))
            }
            Self::Runtime => Err(MetricError::RuntimeOfRunning),
        };
        let DetectedMetric { meter, interpretation, notes, shortest_window, unit: shown } = found?;
        let quantity = match picked {
            Some(pick) => pick.quantity(shown),
            None => self.quantity(shown),
        };
        let unit = unit(options, interpretation, quantity);
        Ok(Metric {
            meter: Box::new(Converted { meter, unit, error: None }),
            notes,
            shortest_window,
        })
    }
}

/// The unit as the user gave it, or after the quantity.
fn unit(options: &MetricOptions, interpretation: Interpretation, quantity: Option<String>) -> Unit {
    let name = match (interpretation, &options.unit) {
        (Interpretation::Counter, Some(named)) => per_second(named),
        (Interpretation::Value, Some(named)) => named.clone(),
        (Interpretation::Counter, None) => {
            quantity.map_or_else(|| "1/s".into(), |what| format!("{what}/s"))
        }
        (Interpretation::Value, None) => quantity.unwrap_or_else(|| "value".into()),
    };
    if options.lower_is_better { Unit::cost(name) } else { Unit::rate(name) }
}

/// Units that are rates by their name, behind a prefix for thousands.
const RATES: [&str; 10] = ["bps", "flops", "fps", "hz", "iops", "ips", "pps", "qps", "rps", "tps"];

/// The unit of a counter's rate, if the user named what is counted: `chunks` is `chunks/s`. If
/// the user named a rate (`chunks/s`, `Mpps`, `blocks per minute`), it counts as one.
fn per_second(named: &str) -> String {
    let small = named.to_lowercase();
    let is_rate = |name: &str| RATES.contains(&name);
    let prefixed = small.strip_prefix(['k', 'm', 'g', 't']);
    let rate = named.contains('/')
        || small.contains(" per ")
        || is_rate(&small)
        || prefixed.is_some_and(is_rate);
    if rate { named.to_owned() } else { format!("{named}/s") }
}

/// A quantity as performance.
struct Converted {
    meter: Box<dyn MetricMeter>,
    unit: Unit,
    /// The relative standard error of the last performance.
    error: Option<f64>,
}

impl Meter for Converted {
    fn unit(&self) -> &Unit {
        &self.unit
    }

    fn measure(
        &mut self,
        settle: Duration,
        window: Duration,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Measurement, MeasureError> {
        let (quantity, duration) = self.meter.summarize(settle, window, cancelled)?;
        let Some(performance) = reading::performance(quantity, self.unit.reciprocal) else {
            let why = format!(
                "{} {} has no reciprocal, and performance is one where lower is better",
                quantity.value,
                self.unit.label()
            );
            return Err(MeasureError::new(Retry::Same, why));
        };
        self.error = performance.error();
        Ok(Measurement {
            performance: performance.value,
            duration,
            spread: performance.spread,
            detail: None,
        })
    }

    fn error(&self) -> Option<f64> {
        self.error
    }

    fn moved(&mut self) {
        self.meter.moved();
    }

    fn counter_detection(&self) -> Option<&CounterDetection> {
        self.meter.counter_detection()
    }
}

#[cfg(test)]
mod tests;
