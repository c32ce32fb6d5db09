//! A program that runs, and is re-pinned while it does.

use super::{
    OpenSubject, Opening, allowed_machine, launch, metric_options, scope, target_error,
    this_machine, thread_filter, usage, whole_machine, within_budget,
};
use crate::error::JobError;
use crate::placement_request::PlacementRequest;
use crate::subject::Subject;
use pinwise_campaign::Record;
use pinwise_linux::{
    InitialMemory, Launch, Pid, Streams, Target, memory, process, take_precedence,
};
use pinwise_measure::{Interrupt, MemoryPolicy, MemoryUse, ProgramNote, Setting, Testbed as _};
use pinwise_metric::{Metric, MetricError, MetricOptions, MetricSpec};
use pinwise_programs::{FloorDetail, LiveOptions, LiveTestbed};
use pinwise_topology::{Assignment, CpuSet, Fingerprint, Machine};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How long after it closed its output a program may take to end.
const ENDING: Duration = Duration::from_millis(300);

impl OpenSubject for LiveTestbed {
    fn recall(&mut self, records: &[Record]) {
        for (performance, windows) in records.iter().flat_map(unpinned) {
            self.know_baseline(performance, windows);
        }
    }

    fn affinities(&self) -> BTreeMap<String, CpuSet> {
        self.affinities()
    }

    fn notes(&self) -> Vec<ProgramNote> {
        self.notes()
    }

    fn pids(&self) -> Option<Vec<Pid>> {
        Some(self.pids())
    }

    fn measures_a_total(&self) -> bool {
        self.measures_a_total()
    }

    fn is_gone(&self) -> bool {
        self.is_gone()
    }

    fn each(&self, period: Duration) -> Duration {
        // The period is longer if numbers come slowly. A window begins with the first number after
        // settling and ends with the next.
        let own = self.window_length();
        let stretched = if own > period { 2 * own * 4 / 5 } else { period };
        self.each().max(stretched)
    }

    fn memory(&self, best: Option<&Assignment>) -> Option<MemoryUse> {
        self.memory(best)
    }

    fn give_memory_back(&mut self) -> Option<ProgramNote> {
        self.give_memory_back()
    }

    fn fingerprint(&self) -> Fingerprint {
        pinwise_linux::fingerprint(self.machine())
    }
}

/// The performance and the length of each unpinned window of a record: its own, or those that
/// judged the floor.
fn unpinned(record: &Record) -> Vec<(f64, f64)> {
    let detail = || record.detail()?.read::<FloorDetail>().ok();
    match (&record.trial.setting, &record.outcome) {
        (Setting::Unpinned, Ok(own)) => vec![(own.performance, record.trial.effort.windows)],
        // The instances of a profile are separate programs.
        (Setting::Pinned(_), _) => {
            let windows = detail().into_iter().flat_map(|detail| detail.unpinned);
            windows.map(|window| (window.performance, window.windows)).collect()
        }
        _ => Vec::new(),
    }
}

/// Launches or attaches.
pub(super) fn open(
    request: &PlacementRequest,
    opening: Opening,
    interrupt: &Interrupt,
) -> Result<LiveTestbed, JobError> {
    let metric: MetricSpec = request.metric.parse().map_err(usage)?;
    let options = metric_options(request, opening.until)?;
    let filter = thread_filter(request, &opening)?;
    let (mut target, mut streams, machine) = match (&request.subject, scope(&request.subject)) {
        (_, Some(scope)) => {
            // A resumed search takes it only here.
            take_precedence();
            let target = Target::attach(scope).map_err(target_error)?;
            // Before anybody waits for a metric.
            target.check_permission().map_err(target_error)?;
            metric.check(&options, Some(&target.pids())).map_err(usage)?;
            let machine = allowed_to(&target.mask(), whole_machine()?);
            let machine = match target.pids().first() {
                Some(&pid) => memory::machine_of(pid, machine),
                None => machine,
            };
            (target, Streams::default(), allowed_machine(machine, request.cpus.as_deref())?)
        }
        (Subject::Launched(command), _) => {
            metric.check(&options, None).map_err(usage)?;
            let machine = this_machine(request)?;
            let memory = match request.memory {
                // Its threads have no places yet.
                MemoryPolicy::Leave | MemoryPolicy::Follow => None,
                policy => InitialMemory::of(policy, &machine.memory_nodes()),
            };
            let launch = Launch { memory, ..launch(command, request) };
            let launched = Target::launch(&launch).map_err(target_error)?;
            (launched.0, launched.1, machine)
        }
        (subject, None) => {
            return Err(JobError::failed(format!("{subject:?} is nothing to attach to")));
        }
    };
    let Metric { meter, shortest_window, mut notes, .. } =
        take_up(&metric, &options, &mut target, &mut streams, interrupt)?;
    // A fifth settles; the rest has to be as long as the metric needs.
    let period = request.period.max(shortest_window * 5 / 4);
    if period > request.period {
        let [seconds, asked] = [period, request.period].map(|time| time.as_secs_f64());
        notes.push(ProgramNote::PeriodStretched { seconds, asked });
    }
    let options = LiveOptions {
        filter,
        window: period,
        floor: request.floor,
        memory: request.memory,
        notes,
        until: opening.until,
        patience: within_budget(LiveOptions::default().patience, opening.until),
        ..LiveOptions::default()
    };
    LiveTestbed::new(target, &machine, meter, options, interrupt.clone()).map_err(target_error)
}

/// The machine as far as a program that already ran may use it. Where pinwise may run is no matter.
pub(super) fn allowed_to(program: &CpuSet, machine: Machine) -> Machine {
    Machine { allowed: program.intersection(machine.online()), ..machine }
}

/// Takes up the metric. If the program has ended, the error says that, and not that the metric is
/// silent.
pub(super) fn take_up(
    metric: &MetricSpec,
    options: &MetricOptions,
    target: &mut Target,
    streams: &mut Streams,
    interrupt: &Interrupt,
) -> Result<Metric, JobError> {
    let roots = target.pids();
    let ended = || roots.iter().all(|&pid| process::ended(pid));
    // Its last output is read before its end counts as the end of the metric.
    let since: Cell<Option<Instant>> = Cell::new(None);
    let silent = || {
        since.set(ended().then(|| since.get().unwrap_or_else(Instant::now)));
        since.get().is_some_and(|end| end.elapsed() > ENDING)
    };
    let watched = roots.clone();
    let pids = Box::new(move || {
        let all = process::all().unwrap_or_default();
        watched.iter().copied().chain(process::descendants(&watched, &all)).collect()
    });
    let error = match metric.open(options, streams, pids, &|| interrupt.came() || silent()) {
        Ok(metric) => return Ok(metric),
        Err(error) => error,
    };
    if interrupt.came() {
        return Err(JobError::nothing_measured(true));
    }
    // Its output is closed a moment before it has ended.
    let closed = matches!(error, MetricError::Closed { .. });
    let soon = Instant::now() + ENDING;
    while closed && !ended() && Instant::now() < soon {
        std::thread::sleep(Duration::from_millis(5));
    }
    if let Err(end) = target.check() {
        let unmatched =
            matches!(error, MetricError::Closed { numbers: 0, .. }) && target.finished();
        let error = target_error(end);
        return Err(if unmatched {
            error.context(format!("--metric '{metric}' matched no line"))
        } else {
            error
        });
    }
    let over = options.until.is_some_and(|until| Instant::now() >= until);
    Err(match error {
        MetricError::NeverRead { metric, waited, seen } if over => {
            too_short(&metric, waited, Some(&seen))
        }
        MetricError::TooFew { metric, waited, .. } if over => too_short(&metric, waited, None),
        error if error.is_usage() => usage(error),
        error => JobError::failed(error),
    })
}

/// Says that the budget ended before the metric was known. Neither the program nor the metric is at
/// fault. `seen`: what came instead of numbers.
fn too_short(metric: &str, waited: Duration, seen: Option<&str>) -> JobError {
    let [waited, patience] =
        [waited, MetricOptions::default().patience].map(pinwise_present::figures::duration);
    let seen = seen.map(|seen| format!(": {seen}")).unwrap_or_default();
    let reason = format!(
        "the budget is too short: it left {waited} for metric '{metric}', whose first numbers may \
         take {patience}{seen}; raise --budget"
    );
    JobError::budget_spent(reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Remedy;
    use pinwise_campaign::{Purpose, Trial};
    use pinwise_measure::{Detail, Effort, MeasureError, Measurement};
    use pinwise_programs::UnpinnedWindow;
    use pinwise_topology::Assignment;

    /// As with `taskset -c 0 pinwise place --pid PID`.
    #[test]
    fn a_program_that_ran_may_use_more_than_pinwise() {
        let mut machine = Machine::from_shape("4").unwrap();
        machine.allowed = machine.allowed.iter().take(1).collect();
        // CPU 9 is offline or does not exist.
        let program = CpuSet::parse_list("1-3,9").unwrap();
        assert_eq!(allowed_to(&program, machine).allowed.to_string(), "1-3");
    }

    #[test]
    fn a_resumed_search_knows_the_windows_that_judged_the_floor() {
        let windows = [(90.0, 4.0), (110.0, 1.0)];
        let kept = windows.map(|(performance, windows)| UnpinnedWindow {
            performance,
            windows,
            after_s: 0.5,
        });
        let detail = Detail::of(&FloorDetail { unpinned: kept.to_vec() });
        let record = |setting, outcome| Record {
            number: 0,
            trial: Trial { setting, purpose: Purpose::Sample, effort: Effort { windows: 2.0 } },
            outcome,
            elapsed: Duration::ZERO,
        };
        let pinned = Setting::Pinned(Assignment::new(vec![0]));
        let fast = Measurement::new(100.0, Duration::ZERO);
        let slow = MeasureError {
            detail: detail.clone().map(Box::new),
            ..MeasureError::below_floor("slow")
        };
        let recovered = Measurement { detail, ..fast.clone() };
        assert_eq!(unpinned(&record(Setting::Unpinned, Ok(fast.clone()))), [(100.0, 2.0)]);
        assert_eq!(unpinned(&record(pinned.clone(), Err(slow.clone()))), windows);
        assert_eq!(unpinned(&record(pinned.clone(), Ok(recovered))), windows);
        assert_eq!(unpinned(&record(pinned, Ok(fast))), []);
        assert_eq!(unpinned(&record(Setting::Profile(Vec::new()), Err(slow))), []);
    }

    #[test]
    fn a_budget_that_ends_before_the_first_numbers_is_the_cause() {
        let after = |seen| match too_short("stdout:(x)", Duration::from_millis(940), seen) {
            JobError::Failed(failure) => failure,
            other => panic!("{other}"),
        };
        let failure = after(Some("stdout printed nothing"));
        // A part of `tune` then tells it as the end of the user's budget.
        assert_eq!(failure.remedy, Remedy::RaiseBudget);
        assert_eq!(
            failure.reason,
            "the budget is too short: it left 940 ms for metric 'stdout:(x)', whose first numbers \
             may take 10 s: stdout printed nothing; raise --budget"
        );
        assert!(after(None).reason.ends_with("may take 10 s; raise --budget"));
    }
}
