//! The performance of a whole run: its time, or a number that it prints.

use pinwise_linux::{LaunchedProgram, OutputLine, Tail, each_line};
use pinwise_measure::{MeasureError, Retry, Unit};
use pinwise_metric::{MetricOptions, MetricSpec, Pattern};
use std::io::{self, Read};
use std::sync::{Arc, Mutex, PoisonError};

/// Which output of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// The metric of a whole run.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum RunMetric {
    /// Wall time from exec to exit, in seconds; less is better.
    #[default]
    Runtime,
    /// The number in the last match.
    Output {
        /// The stream on which it is printed.
        stream: Stream,
        /// The pattern of the number.
        pattern: Pattern,
        /// The unit that the user named.
        named: Option<String>,
        /// The number is better when lower.
        lower_is_better: bool,
    },
}

impl RunMetric {
    /// The metric of a whole run, from the one the user typed. `None` if that is no number that a
    /// run prints.
    pub fn of(metric: &MetricSpec, options: &MetricOptions) -> Option<Self> {
        let (stream, pattern) = match metric {
            MetricSpec::Runtime => return Some(Self::Runtime),
            MetricSpec::Stdout(pattern) => (Stream::Stdout, pattern),
            MetricSpec::Stderr(pattern) => (Stream::Stderr, pattern),
            _ => return None,
        };
        let named = options.unit.clone();
        let pattern = options.reads(pattern);
        Some(Self::Output { stream, pattern, named, lower_is_better: options.lower_is_better })
    }

    /// Its unit, if a run has `shown` one behind the number.
    pub(crate) fn unit(&self, shown: Option<&str>) -> Unit {
        match self {
            Self::Runtime => Unit::cost("s"),
            Self::Output { pattern, named, lower_is_better, .. } => {
                let name = named.clone().or_else(|| pattern.quantity(shown));
                let name = name.unwrap_or_else(|| "value".into());
                if *lower_is_better { Unit::cost(name) } else { Unit::rate(name) }
            }
        }
    }

    /// Reads all outputs of a program that are piped: into `output` where the number is.
    pub(crate) fn read(&self, running: &mut LaunchedProgram, output: &RunOutput) -> io::Result<()> {
        let (stdout, stderr) = (running.child.stdout.take(), running.child.stderr.take());
        running.stdout = self.read_pipe(stdout, Stream::Stdout, output)?;
        running.stderr = self.read_pipe(stderr, Stream::Stderr, output)?;
        Ok(())
    }

    fn read_pipe(
        &self,
        pipe: Option<impl Read + Send + 'static>,
        which: Stream,
        output: &RunOutput,
    ) -> io::Result<Option<Tail>> {
        let Some(pipe) = pipe else { return Ok(None) };
        let wanted = matches!(self, Self::Output { stream, .. } if *stream == which);
        let output = wanted.then(|| output.clone());
        let keep = move |line: OutputLine| output.iter().for_each(|output| output.add(&line.text));
        each_line(pipe, keep).map(Some)
    }

    /// The performance and its unit, as an ended run has printed them. `None` for the time of the
    /// run.
    pub(crate) fn of_run(
        &self,
        name: &str,
        running: &LaunchedProgram,
        output: &RunOutput,
    ) -> Result<Option<(f64, Unit)>, MeasureError> {
        if *self != Self::Runtime {
            [&running.stdout, &running.stderr].into_iter().flatten().for_each(Tail::wait);
        }
        self.of_output(name, output)
    }

    fn of_output(
        &self,
        name: &str,
        output: &RunOutput,
    ) -> Result<Option<(f64, Unit)>, MeasureError> {
        let Self::Output { stream, pattern, .. } = self else { return Ok(None) };
        let text = output.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = pattern.find_last(&text);
        let found = found.map_err(|error| MeasureError::new(Retry::Never, error.to_string()))?;
        let found = found.ok_or_else(|| no_match(name, *stream, pattern, &text))?;
        let unit = self.unit(found.unit);
        // A quantity is its own reciprocal's reciprocal.
        let performance = unit.quantity(found.value);
        if performance.is_finite() {
            return Ok(Some((performance, unit)));
        }
        let message = format!("{name} gave no finite performance ({performance} {})", unit.label());
        Err(MeasureError::new(Retry::Same, message))
    }
}

/// The output of a run, as far as it may have the number.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunOutput(Arc<Mutex<String>>);

/// The most text of a run that is kept. Of a longer one the last half of this remains.
const KEPT: usize = 16 << 20;

impl RunOutput {
    fn add(&self, line: &str) {
        let mut text = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if text.len() > KEPT {
            let half = text.len() - KEPT / 2;
            let end = text[half..].find('\n').map_or(text.len(), |end| half + end + 1);
            text.drain(..end);
        }
        text.push_str(line);
        text.push('\n');
    }
}

fn no_match(name: &str, stream: Stream, pattern: &Pattern, text: &str) -> MeasureError {
    let stream = if stream == Stream::Stdout { "stdout" } else { "stderr" };
    let last = text.lines().rev().find(|line| !line.trim().is_empty());
    let last = last.map_or_else(
        || "it is empty".into(),
        |line| format!("its last line was: {}", pinwise_linux::quotable(line)),
    );
    let message = format!(
        "'{}' matches nothing in the {stream} of {name}; {last}: correct the pattern, or time the \
         run (--metric runtime)",
        pattern.as_str()
    );
    MeasureError::new(Retry::Never, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metric(text: &str, unit: Option<&str>) -> RunMetric {
        let options = MetricOptions { unit: unit.map(Into::into), ..MetricOptions::default() };
        RunMetric::of(&text.parse().unwrap(), &options).unwrap()
    }

    fn read(metric: &RunMetric, text: &str) -> Result<Option<(f64, Unit)>, MeasureError> {
        let output = RunOutput::default();
        text.lines().for_each(|line| output.add(line));
        metric.of_output("it", &output)
    }

    #[test]
    fn the_last_number_of_a_run_counts_with_the_unit_it_is_printed_in() {
        let openssl = metric(r"stdout:^AES-128-GCM +([\d.]+)", None);
        let text = "AES-128-GCM 1.0k\nspeed\nAES-128-GCM     565.43k\n\nbye\n";
        assert_eq!(read(&openssl, text), Ok(Some((565_430.0, Unit::rate("AES-128-GCM")))));
        let pgbench = metric(r"stdout:tps = ([\d.]+)", None);
        let text = "tps = 812.5 (without initial connection time)";
        assert_eq!(read(&pgbench, text), Ok(Some((812.5, Unit::rate("tps")))));
        let wrk = metric(r"stdout:Transfer/sec: +([\d.]+)", Some("MB/s"));
        assert_eq!(read(&wrk, "Transfer/sec:    606.33MB"), Ok(Some((606.33, Unit::rate("MB/s")))));
        assert_eq!(read(&RunMetric::Runtime, "5"), Ok(None));
    }

    #[test]
    fn a_number_of_json_over_many_lines_is_found() {
        let fio = metric(r#"stdout:"read"\s*:\s*\{\s*"iops"\s*:\s*([\d.]+)"#, Some("iops"));
        for text in [r#"{"read":{"iops":5.5}}"#, "{\n \"read\" : {\n  \"iops\" : 5.5\n }\n}"] {
            assert_eq!(read(&fio, text), Ok(Some((5.5, Unit::rate("iops")))), "{text}");
        }
    }

    #[test]
    fn an_output_without_the_number_is_an_error() {
        let metric = metric(r"stdout:ops (\d+)", None);
        let error = read(&metric, "hello\n\n").unwrap_err().to_string();
        assert!(error.contains("'ops (\\d+)' matches nothing in the stdout of it"), "{error}");
        assert!(error.contains("its last line was: hello"), "{error}");
        assert!(read(&metric, "").unwrap_err().to_string().contains("it is empty"));
        let error = read(&metric, "ops 0").unwrap();
        assert_eq!(error, Some((0.0, Unit::rate("ops"))));
    }

    #[test]
    fn of_an_endless_output_the_end_is_kept() {
        let output = RunOutput::default();
        let line = "x".repeat(1 << 20);
        for _ in 0..20 {
            output.add(&line);
        }
        output.add("ops 7");
        assert!(output.0.lock().unwrap().len() <= KEPT + 2 * line.len());
        let found = metric(r"stdout:ops (\d+)", None).of_output("it", &output).unwrap();
        assert_eq!(found.map(|found| found.0), Some(7.0));
    }
}
