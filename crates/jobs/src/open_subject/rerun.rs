//! A program that is started anew for each measurement.

use super::{
    OpenSubject, Opening, launch, metric_options, target_error, this_machine, thread_filter, usage,
};
use crate::error::JobError;
use crate::request::{Request, Subject};
use pinwise_linux::Pid;
use pinwise_measure::{Interrupt, Note, Testbed, Unit};
use pinwise_metric::{MetricOptions, MetricSpec};
use pinwise_programs::{RerunOptions, RerunTestbed, RunMetric, Stream};
use pinwise_topology::Fingerprint;
use std::time::Duration;

impl OpenSubject for RerunTestbed {
    fn notes(&self) -> Vec<Note> {
        self.notes()
    }

    fn pids(&self) -> Option<Vec<Pid>> {
        Some(Vec::new())
    }

    /// A run: opening it ran it once.
    fn each(&self, _period: Duration, spent: Duration) -> Duration {
        spent
    }

    fn fingerprint(&self) -> Fingerprint {
        pinwise_linux::fingerprint(self.machine())
    }
}

/// Runs it once, to learn its threads.
pub(super) fn open(
    request: &Request,
    opening: Opening,
    interrupt: &Interrupt,
) -> Result<RerunTestbed, JobError> {
    let Subject::Rerun(command) = &request.subject else {
        return Err(JobError::failed(format!("{:?} is not started anew", request.subject)));
    };
    let machine = this_machine(request)?;
    let metric: MetricSpec = request.metric.parse().map_err(usage)?;
    let metric_options = metric_options(request, opening.until)?;
    let filter = thread_filter(request, &opening)?;
    let metric = whole_run(&metric, &metric_options)?;
    let options = RerunOptions { filter, limit: request.limit, remove: request.remove.clone() };
    RerunTestbed::new(launch(command, request), &machine, metric, options, interrupt.clone())
        .map_err(target_error)
}

/// What a whole run's performance is.
fn whole_run(metric: &MetricSpec, options: &MetricOptions) -> Result<RunMetric, JobError> {
    let (stream, pattern) = match metric {
        MetricSpec::Runtime => return Ok(RunMetric::Runtime),
        MetricSpec::Stdout(pattern) => (Stream::Stdout, pattern),
        MetricSpec::Stderr(pattern) => (Stream::Stderr, pattern),
        other => {
            let message =
                format!("--per-run takes runtime, stdout:REGEX or stderr:REGEX, not {other}");
            return Err(JobError::Usage(message));
        }
    };
    let name = options.unit.clone().unwrap_or_else(|| "value".into());
    let unit = if options.lower_is_better { Unit::cost(name) } else { Unit::rate(name) };
    Ok(RunMetric::Output { stream, pattern: pattern.clone(), unit })
}
