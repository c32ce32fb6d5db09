//! A program that is started anew for each measurement.

use super::{
    OpenSubject, Opening, launch, metric_options, target_error, this_machine, thread_filter, usage,
};
use crate::error::JobError;
use crate::events::{Events, note};
use crate::placement_request::PlacementRequest;
use crate::subject::Subject;
use pinwise_linux::Pid;
use pinwise_measure::{Interrupt, MemoryUse, ProgramNote, Testbed};
use pinwise_metric::MetricSpec;
use pinwise_present::Notice;
use pinwise_programs::{RerunOptions, RerunTestbed, RunMetric};
use pinwise_topology::{Assignment, Fingerprint};
use std::time::{Duration, Instant};

impl OpenSubject for RerunTestbed {
    fn notes(&self) -> Vec<ProgramNote> {
        self.notes()
    }

    fn pids(&self) -> Option<Vec<Pid>> {
        Some(Vec::new())
    }

    /// A run.
    fn each(&self, _period: Duration) -> Duration {
        self.learning_run()
    }

    fn memory(&self, _best: Option<&Assignment>) -> Option<MemoryUse> {
        self.memory()
    }

    fn fingerprint(&self) -> Fingerprint {
        pinwise_linux::fingerprint(self.machine())
    }
}

/// Runs it once, to learn its threads.
pub(super) fn open(
    request: &PlacementRequest,
    opening: Opening,
    interrupt: &Interrupt,
    events: &mut dyn Events,
) -> Result<RerunTestbed, JobError> {
    let Subject::Rerun(command) = &request.subject else {
        return Err(JobError::failed(format!("{:?} is not started anew", request.subject)));
    };
    let machine = this_machine(request)?;
    let metric: MetricSpec = request.metric.parse().map_err(usage)?;
    let metric_options = metric_options(request, opening.until)?;
    let filter = thread_filter(request, &opening)?;
    let metric = RunMetric::of(&metric, &metric_options).ok_or_else(|| not_of_a_run(&metric))?;
    let (remove, memory) = (request.remove.clone(), request.memory);
    let left = opening.until.map(|end| end.saturating_duration_since(Instant::now()));
    let limit = left.map_or(request.limit, |left| left.min(request.limit));
    let options = RerunOptions { filter, limit: request.limit, left, remove, memory };
    let launch = launch(command, request);
    let name = launch.name();
    let mut lasts = |after| {
        // A caller that does not listen learns it at the end.
        drop(note(events, Notice::StillRuns { name: name.clone(), after, limit }));
    };
    RerunTestbed::learning(launch, &machine, metric, options, interrupt.clone(), &mut lasts)
        .map_err(target_error)
}

/// The error that the metric is no number of a whole run.
pub(crate) fn not_of_a_run(metric: &MetricSpec) -> JobError {
    JobError::Usage(format!("--per-run takes runtime, stdout:REGEX or stderr:REGEX, not {metric}"))
}
