//! [`ProgramRun`]: one run of the program during a probe, with its start, its limits and its end.

mod readiness;
mod transient;
mod watch;

use super::number_setter::NumberSetter;
use super::{ProbeError, ProbeOptions, ProgressSource};
use crate::run_metric::{RunMetric, RunOutput, Stream};
use pinwise_figures as figures;
use pinwise_linux::{
    Exit, ForkWatch, Guardian, GuardianEntry, Launch, LaunchedProgram, Output, SETTING_LIMIT,
    Streams, TargetError, process, share_with_others,
    sys::{self, Counter, ProcessUsage},
    thread::{Pid, Stat},
};
use pinwise_measure::{CounterEvent, Interrupt, MeasureError, ProgramNote};
use pinwise_metric::{CommandError, Metric, MetricSpec};
use pinwise_topology::CpuSet;
use rustix::process::{
    Pid as RawPid, Resource, Rlimit, Signal, WaitId, WaitIdOptions, prlimit, waitid,
};
use std::cell::{Cell, RefCell};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant};

/// How often pinwise looks for descendants, and sums up what they wrote.
const FAMILY: Duration = Duration::from_millis(100);
/// A program has followed the parameter when its number of threads has not changed for this long.
const UNCHANGED: Duration = Duration::from_millis(50);

/// The limits that end a run early.
pub(super) struct RunLimits {
    pub(super) most_written: Option<u64>,
    pub(super) until: Option<Instant>,
    pub(super) cancelled: Interrupt,
}

/// The program has just been given another number.
#[derive(Clone, Debug)]
pub(super) struct NumberChange {
    /// A rate below this hurts the program.
    pub(super) least: Option<f64>,
    /// The CPUs that it may use.
    pub(super) cpus: CpuSet,
}

/// A run of the program.
pub(super) struct ProgramRun {
    pub(super) name: String,
    /// Its first process.
    pub(super) root: Pid,
    /// The launched program; `None` if pinwise attached to a running one.
    pub(super) running: Option<LaunchedProgram>,
    pub(super) streams: Streams,
    /// The output so far, if the metric is a number of the whole run.
    pub(super) output: RunOutput,
    /// The parameter it has now.
    pub(super) parameter: u32,
    /// When it began, or was attached to.
    pub(super) begin: Instant,
    /// The open metric. The first window opens it, and later windows use it again.
    pub(super) metric: Option<Metric>,
    exit: Exit,
    pub(super) limits: RunLimits,
    pub(super) instructions: Option<Counter>,
    /// Why there is no counter, if the user should know.
    pub(super) uncounted: Option<ProgramNote>,
    family: RefCell<Family>,
    /// The most threads that existed at a time.
    pub(super) most_threads: Cell<u32>,
}

/// The processes of a program at the last look.
struct Family {
    pids: Vec<Pid>,
    looked: Instant,
    forks: ForkWatch,
    /// Something was created since they were listed.
    unlisted: bool,
}

/// Pipes only what is read: a program that prints gigabytes would wait for us.
pub(super) fn choose_streams(launch: &mut Launch, options: &ProbeOptions) {
    let wanted = options.after.is_some()
        || matches!(
            &options.progress,
            ProgressSource::Metric(MetricSpec::Stdout(_), _)
                | ProgressSource::Runs(RunMetric::Output { stream: Stream::Stdout, .. })
        );
    if wanted && launch.stdout == Output::Null {
        launch.stdout = Output::Read;
    }
}

impl ProgramRun {
    pub(super) fn start(
        launch: &Launch,
        parameter: u32,
        guardian: &mut Guardian,
        limits: RunLimits,
        source: &ProgressSource,
    ) -> Result<Self, ProbeError> {
        let (instructions, uncounted) =
            match Counter::of_what_is_started(CounterEvent::Instructions) {
                Ok(counter) => (Some(counter), None),
                Err(error) => (
                    None,
                    (error.kind() == io::ErrorKind::Unsupported)
                        .then(|| ProgramNote::NoInstructions { error: error.to_string() }),
                ),
            };
        let mut running = launch.start(guardian)?;
        let name = launch.name();
        if let (Some(most), Some(pid)) = (limits.most_written, RawPid::from_raw(running.pid().0)) {
            let limit = Rlimit { current: Some(most), maximum: Some(most) };
            // Refused only if its own limit is lower.
            let _ = prlimit(Some(pid), Resource::Fsize, limit);
        }
        let failed = |cause: io::Error| TargetError::Launch { program: name.clone(), cause };
        let output = RunOutput::default();
        let streams = match source {
            ProgressSource::Runs(metric) => {
                metric.read(&mut running, &output).map(|()| Streams::default())
            }
            ProgressSource::Counters | ProgressSource::Metric(..) => running.streams(),
        };
        let (streams, exit) = (streams.map_err(failed)?, running.exit().map_err(failed)?);
        let (root, begin) = (running.pid(), running.begin);
        let session = Self::of(name, root, exit, limits);
        Ok(Self {
            running: Some(running),
            streams,
            output,
            parameter,
            begin,
            instructions,
            uncounted,
            ..session
        })
    }

    /// Attaches to a process that runs already. It is left running.
    pub(super) fn attach(pid: Pid, limits: RunLimits) -> Result<Self, ProbeError> {
        let gone = || TargetError::NoProcess(pid);
        if process::ended(pid) {
            return Err(gone().into());
        }
        let name = Stat::read(pid, pid.main()).map_err(|_| gone())?.comm;
        let exit =
            Exit::of(pid).map_err(|cause| TargetError::Proc { name: name.clone(), cause })?;
        share_with_others(1.0);
        Ok(Self::of(name, pid, exit, limits))
    }

    fn of(name: String, root: Pid, exit: Exit, limits: RunLimits) -> Self {
        Self {
            name,
            root,
            running: None,
            streams: Streams::default(),
            output: RunOutput::default(),
            parameter: 0,
            begin: Instant::now(),
            metric: None,
            exit,
            limits,
            instructions: None,
            uncounted: None,
            family: RefCell::new(Family {
                pids: vec![root],
                looked: Instant::now(),
                forks: ForkWatch::default(),
                unlisted: true,
            }),
            most_threads: Cell::new(0),
        }
    }

    /// Sleeps, or until the program ends.
    pub(super) fn pause(&self, time: Duration) {
        // Failing to wait shows at the next check.
        let _ = self.exit.within(time);
    }

    /// Whether the probe can go on: the program runs, in the background, within its limits, and
    /// nobody asked to stop.
    pub(super) fn check(&self) -> Result<(), ProbeError> {
        if self.limits.cancelled.came() {
            return Err(MeasureError::interrupted().into());
        }
        if self.limits.until.is_some_and(|until| Instant::now() >= until) {
            let (name, n, threads) = (self.name.clone(), self.parameter, self.most_threads.get());
            return Err(ProbeError::Expired { name, n, threads, ran: self.begin.elapsed() });
        }
        match &self.running {
            Some(running) => {
                if let Some(status) = running.status() {
                    return Err(self.ended(running, status));
                }
            }
            None if process::ended(self.root) => {
                let (name, how, last) = (self.name.clone(), String::new(), String::new());
                return Err(TargetError::Ended { name, how, last }.into());
            }
            None => {}
        }
        if let Some(signal) = self.stopped() {
            let signal =
                if signal == Signal::TTIN.as_raw() { " by SIGTTIN" } else { " by SIGTTOU" };
            return Err(ProbeError::Terminal { name: self.name.clone(), signal: signal.into() });
        }
        let mut family = self.family.borrow_mut();
        let born = family.forks.any();
        family.unlisted |= born;
        let mut counted = self.most_threads.get() > 0 && !born;
        if family.looked.elapsed() >= FAMILY {
            family.looked = Instant::now();
            if family.unlisted {
                (family.pids, family.unlisted, counted) = (self.processes(), false, false);
            }
            self.check_written(&family.pids)?;
        }
        // Without a birth there are no more than before.
        if !counted {
            self.most_threads.set(self.most_threads.get().max(threads_of(&family.pids)));
        }
        Ok(())
    }

    fn check_written(&self, family: &[Pid]) -> Result<(), ProbeError> {
        let Some(most) = self.limits.most_written else { return Ok(()) };
        let written: u64 = family.iter().filter_map(|&pid| written(pid)).sum();
        if written > most { Err(self.wrote(figures::bytes(written), most)) } else { Ok(()) }
    }

    fn wrote(&self, written: String, most: u64) -> ProbeError {
        ProbeError::Wrote {
            name: self.name.clone(),
            n: self.parameter,
            written,
            limit: figures::bytes(most),
        }
    }

    /// The signal by which the terminal's driver stopped it.
    fn stopped(&self) -> Option<i32> {
        let pid = RawPid::from_raw(self.running.as_ref()?.pid().0)?;
        let options = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let signal = waitid(WaitId::Pid(pid), options).ok()??.stopping_signal()?;
        [Signal::TTIN, Signal::TTOU]
            .iter()
            .any(|terminal| terminal.as_raw() == signal)
            .then_some(signal)
    }

    fn ended(&self, running: &LaunchedProgram, status: std::process::ExitStatus) -> ProbeError {
        let (name, n) = (self.name.clone(), self.parameter);
        if status.success() {
            return ProbeError::Short { name, n, ran: self.begin.elapsed() };
        }
        // A shell reports the signal that ended its command in its own status.
        let signal = status.signal().or(status.code().map(|code| code - 128));
        match (signal, self.limits.most_written) {
            (Some(libc::SIGXFSZ), Some(most)) => self.wrote("a file".into(), most),
            _ => running.ended(&format!("{name} with n = {n}"), status).into(),
        }
    }

    /// Changes the parameter of the running program, and waits until its number of threads is
    /// stable. Returns that number.
    pub(super) fn set(
        &mut self,
        setter: &NumberSetter,
        parameter: u32,
        guardian: &mut Guardian,
        mark: &str,
    ) -> Result<u32, ProbeError> {
        self.parameter = parameter;
        if let Some(metric) = &mut self.metric {
            metric.meter.moved();
        }
        let done = setter.set(self.root, parameter, guardian, mark, &|| self.check().is_err());
        self.check()?;
        done.map_err(|CommandError { why, stopped }| ProbeError::Set {
            n: parameter,
            why,
            stopped,
        })?;
        self.settled_threads()
    }

    /// Waits until its number of threads stays the same, or for as long as it may take to follow.
    /// Returns the threads of all its processes then.
    pub(super) fn settled_threads(&self) -> Result<u32, ProbeError> {
        let begin = Instant::now();
        let (mut count, mut since) = (0, begin);
        while since.elapsed() < UNCHANGED && begin.elapsed() < SETTING_LIMIT {
            self.check()?;
            let present = threads_of(&self.processes());
            if present != count {
                (count, since) = (present, Instant::now());
            }
            self.pause(Duration::from_millis(4));
        }
        Ok(count)
    }

    /// It and all it has started.
    pub(super) fn processes(&self) -> Vec<Pid> {
        [vec![self.root], process::descendants(&[self.root], &process::all().unwrap_or_default())]
            .concat()
    }

    pub(super) fn unreadable(&self, cause: io::Error) -> ProbeError {
        TargetError::Proc { name: self.name.clone(), cause }.into()
    }

    /// Ends it with everything it has started. Returns the kernel's counts, from its start to its
    /// end.
    pub(super) fn end(mut self, guardian: &mut Guardian) -> Result<ProcessUsage, ProbeError> {
        let Some(mut running) = self.running.take() else { return Ok(ProcessUsage::default()) };
        running.end();
        // From here on its number may mean another process.
        let told =
            guardian.enter(&[GuardianEntry::Ended { pid: self.root }]).map_err(TargetError::from);
        let before = sys::usage_of_children();
        let waited = running.wait().map_err(|cause| self.unreadable(cause));
        let usage = sys::usage_of_children() - before;
        told?;
        waited?;
        Ok(usage)
    }
}

/// The number of threads of these processes, of those that still exist.
pub(super) fn threads_of(family: &[Pid]) -> u32 {
    family
        .iter()
        .filter_map(|&pid| process::threads(pid).ok())
        .map(|threads| threads.len() as u32)
        .sum()
}

/// The bytes that a process and the children it waited for wrote to storage and did not cancel.
fn written(pid: Pid) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
    let field = |name: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")?.parse::<u64>().ok())
    };
    Some(field("write_bytes")?.saturating_sub(field("cancelled_write_bytes").unwrap_or(0)))
}
