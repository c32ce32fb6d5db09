//! What the performance of a whole run is, and where it is read.

use pinwise_linux::{Launch, Output};
use pinwise_measure::{MeasureError, Retry, Unit};
use pinwise_metric::Pattern;

/// Which output of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// What the performance of a whole run is.
#[derive(Clone, Debug, PartialEq)]
pub enum RunMetric {
    /// Wall time from exec to exit, in seconds; less is better.
    Runtime,
    /// The number in the last line that matches.
    Output {
        /// Where it is printed.
        stream: Stream,
        /// What to look for.
        pattern: Pattern,
        /// What the number is.
        unit: Unit,
    },
}

/// Output that nobody reads is thrown away by the kernel, except the standard error, whose last
/// line explains a failure.
pub(super) fn quiet(mut launch: Launch, metric: &RunMetric) -> Launch {
    let read =
        |stream| matches!(metric, RunMetric::Output { stream: wanted, .. } if *wanted == stream);
    if launch.stdout == Output::Read && !read(Stream::Stdout) {
        launch.stdout = Output::Null;
    }
    launch
}

/// That no line of the output has the number.
pub(super) fn no_match(
    name: &str,
    stream: Stream,
    pattern: &Pattern,
    last: Option<String>,
) -> MeasureError {
    let stream = if stream == Stream::Stdout { "stdout" } else { "stderr" };
    let last =
        last.map_or_else(|| "it is empty".into(), |line| format!("its last line was: {line}"));
    let message = format!(
        "'{}' matches nothing in the {stream} of {name}; {last}: correct the pattern, or time the run (--metric runtime)",
        pattern.as_str()
    );
    MeasureError::new(Retry::Never, message)
}
