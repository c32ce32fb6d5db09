//! The faults of a metric.

use pinwise_figures::{counted, duration};
use std::time::Duration;

/// Why performance cannot be read. One line each: what, why, what to do.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MetricError {
    /// The text starts with no known kind.
    #[error(
        "metric '{text}': it starts with none of stdout: stderr: file: cmd: prom: netdev: io: \
         runtime dpdk:{}",
        suggestion.as_ref().map(|text| format!("; did you mean '{text}'?")).unwrap_or_default()
    )]
    UnknownKind {
        /// As typed.
        text: String,
        /// What was probably meant.
        suggestion: Option<String>,
    },
    /// A part is missing.
    #[error("metric '{text}': {missing} is missing, as in '{example}'")]
    Incomplete {
        /// As typed.
        text: String,
        /// What is missing.
        missing: &'static str,
        /// A complete one.
        example: &'static str,
    },
    /// Only plain HTTP is supported.
    #[error(
        "metric 'prom:{url}': the address must start with http:// (TLS is not supported; scrape \
         the program's local port)"
    )]
    Scheme {
        /// As typed.
        url: String,
    },
    /// A series selector that cannot be read.
    #[error("series '{text}': {reason}, as in 'requests_total{{code=\"200\"}}'")]
    Selector {
        /// As typed.
        text: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A counter that does not exist.
    #[error("unknown field '{field}': known are {}", known.join(", "))]
    UnknownField {
        /// As typed.
        field: String,
        /// The ones that exist.
        known: &'static [&'static str],
    },
    /// `runtime:` with something behind it.
    #[error("metric 'runtime' takes nothing behind it")]
    RuntimeTakesNothing,
    /// Not a regular expression.
    #[error("'{pattern}' is not a regular expression: {reason}")]
    Pattern {
        /// As typed.
        pattern: String,
        /// Why.
        reason: String,
    },
    /// A regular expression that does not say which part is the number.
    #[error(
        r"'{pattern}' has no group: put parentheses around the number, as in 'packets/s: (\d+)'"
    )]
    NoGroup {
        /// As typed.
        pattern: String,
    },
    /// A number with a comma that may be a decimal one.
    #[error(
        "'{text}' may be {grouped} or {decimal}: name the group (?<thousands>…) or (?<decimal>…)"
    )]
    TwoReadings {
        /// As printed.
        text: String,
        /// What it is if the comma separates thousands.
        grouped: f64,
        /// What it is if the comma is the decimal point.
        decimal: f64,
    },
    /// `--pick` with a metric that already has a pattern, or needs none.
    #[error("metric '{metric}' takes no --pick: it goes with cmd:")]
    PickWithoutCommand {
        /// The metric.
        metric: String,
    },
    /// `runtime` is measured by running the program again, not by reading a number.
    #[error(
        "metric 'runtime' needs a program that is restarted for each measurement, not a running \
         one"
    )]
    RuntimeOfRunning,
    /// A stream of a program that pinwise did not start.
    #[error(
        "metric '{metric}': pinwise reads the {stream} of programs that it starts; for a running \
         one use file:, cmd:, prom: or io:"
    )]
    NoStream {
        /// The metric.
        metric: String,
        /// `stdout` or `stderr`.
        stream: &'static str,
    },
    /// The source of the metric does not exist, and will not appear.
    #[error("metric '{metric}': {why}; {remedy}")]
    Missing {
        /// The metric.
        metric: String,
        /// What is missing.
        why: String,
        /// What to do.
        remedy: &'static str,
    },
    /// No reading at all.
    #[error("metric '{metric}': no number in {}: {seen}", duration(*.waited))]
    NeverRead {
        /// The metric.
        metric: String,
        /// How long was waited.
        waited: Duration,
        /// What was seen instead.
        seen: String,
    },
    /// Some numbers came, and then none for a long time.
    #[error("metric '{metric}': {} in {}, and then none for {}: too few to find how often they \
        come", counted(*.numbers as u64, "number"), duration(*.waited), duration(*.silent))]
    TooFew {
        /// The metric.
        metric: String,
        /// How many numbers came.
        numbers: usize,
        /// How long was waited in all.
        waited: Duration,
        /// How long since the last number.
        silent: Duration,
    },
    /// The program closed the stream.
    #[error("metric '{metric}': {reason}")]
    Closed {
        /// The metric.
        metric: String,
        /// What ended, and what was seen last.
        reason: String,
        /// How many numbers had come by then.
        numbers: usize,
    },
    /// Readings that fit a counter as well as a value.
    #[error("metric '{metric}': it stayed at {value} for {}: give --counter or --gauge if that is \
        right", duration(*.waited))]
    Undecided {
        /// The metric.
        metric: String,
        /// The constant reading.
        value: f64,
        /// How long it was watched.
        waited: Duration,
    },
    /// Lines come in blocks that have nothing to do with when they were written.
    #[error(
        "metric '{metric}': the program buffers its output ({lines} lines at once every {}); start \
         it with 'stdbuf -oL', or use file:, cmd: or prom:",
        duration(*.period)
    )]
    Buffered {
        /// The metric.
        metric: String,
        /// Lines in a block.
        lines: usize,
        /// Time between blocks.
        period: Duration,
    },
    /// Stopped by the user while the metric was looked at.
    #[error("interrupted")]
    Interrupted,
}

impl MetricError {
    /// Whether the command line is at fault (exit code 2), not the program or the machine.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::UnknownKind { .. }
                | Self::Incomplete { .. }
                | Self::Scheme { .. }
                | Self::Selector { .. }
                | Self::UnknownField { .. }
                | Self::RuntimeTakesNothing
                | Self::Pattern { .. }
                | Self::NoGroup { .. }
                | Self::TwoReadings { .. }
                | Self::PickWithoutCommand { .. }
                | Self::RuntimeOfRunning
                | Self::NoStream { .. }
                | Self::Missing { .. }
        )
    }
}
