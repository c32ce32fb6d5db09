//! [`RerunTestbed`]: a program restarted for each measurement.
//!
//! Each run goes to its end. Performance is the wall time from exec to exit, or a number that the
//! program prints. One run first shows which threads the program has and which of them run. After
//! that, each run places the threads of the same names as they appear. The search has the CPUs that
//! any of them could use in that first run. Runs differ: if a thread does not appear, or a new one
//! is busy, it is counted and reported. A run in which a thread lost its place to another, as seen
//! every 20 ms, does not count.

use crate::live::together;
use crate::pin_history::PinHistory;
use crate::run_metric::{RunMetric, RunOutput, Stream};
use pinwise_figures::duration;
use pinwise_linux::{
    CpuDemand, EndedThreads, Guardian, GuardianEntry, InitialMemory, Launch, LaunchedProgram,
    Output, PlanPinner, RealtimeClass, Scope, TargetError, affinity, common_contexts, cpuset_of,
    likely_pinner,
    thread::{ThreadId, Tid},
    thread_filter::{self, ThreadFilter},
    thread_scan::{sample, worth_placing},
};
use pinwise_measure::{
    Disturbances, Effort, Interrupt, LeftAlone, MeasureError, Measurement, MemoryPolicy, MemoryUse,
    ProgramNote, Retry, Setting, Testbed, Thread, Unit, Workload,
};
use pinwise_topology::{CpuSet, Machine};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How to measure whole runs.
#[derive(Clone, Debug)]
pub struct RerunOptions {
    /// Which threads to place, of those that run.
    pub filter: ThreadFilter,
    /// A run that takes longer than this is ended and fails.
    pub limit: Duration,
    /// What is left of the budget. The run that shows the threads may not take longer either.
    pub left: Option<Duration>,
    /// Files that are removed after each run.
    pub remove: Vec<PathBuf>,
    /// Where the memory of a run lies.
    pub memory: MemoryPolicy,
}

impl RerunOptions {
    /// The usual [`Self::limit`].
    pub const LIMIT: Duration = Duration::from_secs(60);
}

impl Default for RerunOptions {
    fn default() -> Self {
        let (filter, memory) = (ThreadFilter::default(), MemoryPolicy::default());
        Self { filter, limit: Self::LIMIT, left: None, remove: Vec::new(), memory }
    }
}

/// The longest sleep, so that a Ctrl-C is noticed.
const NAP: Duration = Duration::from_millis(20);

/// A program whose first run takes longer than this may never end. pinwise says so within 10 s.
const LASTING: Duration = Duration::from_secs(8);
const _: () = assert!(LASTING.as_secs() < 10);

/// A program restarted for each measurement, as a testbed.
pub struct RerunTestbed {
    launch: Launch,
    metric: RunMetric,
    options: RerunOptions,
    cancelled: Interrupt,
    guardian: Guardian,
    machine: Machine,
    leaves: Vec<CpuSet>,
    workload: Workload,
    unit: Unit,
    left_alone: Vec<(LeftAlone, String)>,
    /// The names of all threads of the run that showed which threads there are.
    known: HashSet<String>,
    /// How long that run took.
    learning: Duration,
    runs: usize,
    /// Runs in which a placed thread did not appear.
    incomplete: usize,
    /// Runs in which a thread was busy that has no place.
    crowded: usize,
    pin_history: PinHistory,
}

/// The result of one run.
struct RunResult {
    elapsed: Duration,
    performance: f64,
    unit: Unit,
    /// Every thread, its comm, and the share of a CPU it would have used without waiting for one.
    threads: Vec<(Thread, String, f64)>,
    /// The affinities of its threads, by name, as they were last. Only of a run that pins nothing
    /// and shows the threads.
    affinities: HashMap<String, CpuSet>,
}

/// A run as short as this may end between two looks at its threads.
const BRIEF: Duration = Duration::from_millis(200);
/// This many brief runs pass before the threads of a program count as idle.
const LEARNING: usize = 5;

/// The message about a program without a thread that ran, in a run of this length.
fn nothing_ran(name: String, took: Duration) -> TargetError {
    if took <= BRIEF {
        TargetError::Brief { name, after: took }
    } else {
        TargetError::Idle { name, waited: took, children: 0 }
    }
}

/// The CPUs to which a command confines its program, as `taskset` does: those of all threads
/// together. `None`: nothing is known, or the program gave each thread another single CPU. That is
/// a layout, and the user asks for another one.
fn confinement(affinities: &[CpuSet]) -> Option<CpuSet> {
    let theirs = together(affinities);
    let laid_out = theirs.len() > 1 && affinities.iter().all(|one| one.len() == 1);
    (!theirs.is_empty() && !laid_out).then_some(theirs)
}

impl RerunTestbed {
    /// Makes a run, or a few short ones, to learn the program's threads. To raise `cancelled` ends
    /// any run within 20 ms.
    ///
    /// # Errors
    /// The program cannot be started, fails, or has no thread that runs.
    pub fn new(
        launch: Launch,
        machine: &Machine,
        metric: RunMetric,
        options: RerunOptions,
        cancelled: Interrupt,
    ) -> Result<Self, TargetError> {
        Self::learning(launch, machine, metric, options, cancelled, &mut |_| {})
    }

    /// Like [`Self::new`]. Calls `lasts` with the elapsed time if the first run may never end.
    ///
    /// # Errors
    /// The errors of [`Self::new`].
    pub fn learning(
        launch: Launch,
        machine: &Machine,
        metric: RunMetric,
        options: RerunOptions,
        cancelled: Interrupt,
        lasts: &mut dyn FnMut(Duration),
    ) -> Result<Self, TargetError> {
        let mask = affinity::get(Tid(0))?;
        let (machine, leaves) = common_contexts(machine, &launch.name(), &mask)?;
        let unit = metric.unit(None);
        let workload = Workload::new(launch.name(), &[]);
        let mut testbed = Self {
            launch: quiet(launch, &metric),
            metric,
            options,
            cancelled,
            guardian: Guardian::start()?,
            machine,
            leaves,
            workload,
            unit,
            left_alone: Vec::new(),
            known: HashSet::new(),
            learning: Duration::ZERO,
            runs: 0,
            incomplete: 0,
            crowded: 0,
            pin_history: PinHistory::default(),
        };
        let mut run = testbed.run(Vec::new(), lasts)?;
        for _ in 1..LEARNING {
            let known = testbed.options.filter.known_names();
            // A thread that was too short to be seen may be seen in another run.
            let complete = known.iter().all(|name| run.appeared().any(|thread| thread == name));
            let busy = run.threads.iter().any(|(_, _, share)| run.busy(*share));
            if run.elapsed > BRIEF || busy && complete {
                break;
            }
            run = testbed.run(Vec::new(), lasts)?;
        }
        testbed.unit = run.unit.clone();
        testbed.learning = run.elapsed;
        testbed.known = run.threads.iter().map(|(thread, _, _)| thread.name.clone()).collect();
        let busy = run.threads.iter().filter(|(_, _, share)| run.busy(*share));
        let running: Vec<&str> = busy.map(|(thread, _, _)| thread.name.as_str()).collect();
        for (thread, comm, share) in &run.threads {
            match testbed.options.filter.why_not(&thread.name, run.busy(*share)) {
                Some(why) => testbed.left_alone.push((why, comm.clone())),
                None => testbed.workload.threads.push(thread.clone()),
            }
        }
        let name = testbed.workload.name.clone();
        if running.is_empty() {
            return Err(nothing_ran(name, run.elapsed));
        }
        if testbed.workload.threads.is_empty() {
            return Err(testbed.options.filter.none_left(name, &running));
        }
        let placed = testbed.workload.threads.iter();
        let affinities = placed.filter_map(|thread| run.affinities.get(&thread.name)).cloned();
        if let Some(theirs) = confinement(&affinities.collect::<Vec<_>>()) {
            let confined = common_contexts(&testbed.machine, &name, &theirs)?;
            (testbed.machine, testbed.leaves) = confined;
        }
        Ok(testbed)
    }

    /// Notes on threads that are left alone, and on what could not be kept.
    pub fn notes(&self) -> Vec<ProgramNote> {
        let left = self.left_alone.iter().map(|(why, comm)| (*why, comm.as_str()));
        thread_filter::left_alone(left).into_iter().chain(self.guardian.note()).collect()
    }

    /// The policy under which its runs have their memory, if there is a choice. Nobody looks where
    /// that lies.
    pub fn memory(&self) -> Option<MemoryUse> {
        let policy = self.options.memory;
        let choice = !policy.is_leave() || self.machine.memory_nodes().len() > 1;
        choice.then(|| MemoryUse { policy, ..MemoryUse::default() })
    }

    /// How long the run took that showed its threads.
    pub fn learning_run(&self) -> Duration {
        self.learning
    }

    fn varied(&self) -> Vec<ProgramNote> {
        let of = self.runs as u64;
        let missing = (self.incomplete > 0)
            .then_some(ProgramNote::ThreadMissing { runs: self.incomplete as u64, of });
        let unknown = (self.crowded > 0)
            .then_some(ProgramNote::ThreadUnknown { runs: self.crowded as u64, of });
        missing.into_iter().chain(unknown).chain(self.pin_history.notes()).collect()
    }

    fn places(&self, setting: &Setting) -> Result<Vec<(String, CpuSet)>, MeasureError> {
        let assignment = match setting {
            Setting::Pinned(assignment) => assignment,
            Setting::Unpinned => return Ok(Vec::new()),
            other => return Err(MeasureError::unsupported(&self.workload.name, other)),
        };
        let threads = &self.workload.threads;
        if assignment.threads() != threads.len() {
            let message = format!(
                "an assignment of {} threads for a program with {}",
                assignment.threads(),
                threads.len()
            );
            return Err(MeasureError::new(Retry::Never, message));
        }
        let place = |(index, thread): (usize, &Thread)| {
            let leaf = assignment.leaf(index);
            let cpus = self.leaves.get(leaf).ok_or_else(|| {
                let message = format!(
                    "the assignment uses context {leaf}, {} are allowed",
                    self.leaves.len()
                );
                MeasureError::new(Retry::Never, message)
            })?;
            Ok((thread.name.clone(), cpus.clone()))
        };
        threads.iter().enumerate().map(place).collect()
    }

    /// Starts the program, keeps its threads in their places, waits for its end.
    fn run(
        &mut self,
        places: Vec<(String, CpuSet)>,
        lasts: &mut dyn FnMut(Duration),
    ) -> Result<RunResult, TargetError> {
        let _punctual = RealtimeClass::raise();
        let nodes = match self.options.memory {
            MemoryPolicy::Interleave => self.machine.memory_nodes(),
            MemoryPolicy::Follow | MemoryPolicy::Leave => {
                let cpus = places.iter().flat_map(|(_, cpus)| cpus.iter()).collect();
                self.machine.nearest_memory(&cpus)
            }
        };
        self.launch.memory = InitialMemory::of(self.options.memory, &nodes);
        let mut running = self.launch.start(&mut self.guardian)?;
        let done = self.follow(&mut running, places, lasts);
        // This also ends what the program left behind. Else the next run would share the machine
        // with it.
        running.end();
        // From here on its number may mean another process.
        let told = self.guardian.enter(&[GuardianEntry::Ended { pid: running.pid() }]);
        let waited = running.wait();
        // Also after a failure: nothing is left behind.
        let removed = self.options.remove.iter().try_for_each(|path| remove(path));
        told?;
        waited
            .map_err(|cause| TargetError::Launch { program: self.workload.name.clone(), cause })?;
        let done = done?;
        removed?;
        Ok(done)
    }

    fn follow(
        &mut self,
        running: &mut LaunchedProgram,
        places: Vec<(String, CpuSet)>,
        lasts: &mut dyn FnMut(Duration),
    ) -> Result<RunResult, TargetError> {
        let name = self.workload.name.clone();
        let failed = |cause| TargetError::Proc { name: name.clone(), cause };
        let output = RunOutput::default();
        self.metric.read(running, &output).map_err(failed)?;
        let exit = running.exit().map_err(failed)?;
        // Every thread counts if a program is watched from its start.
        let mut pinner =
            PlanPinner::new(Scope::Trees(vec![running.pid()]), places, EndedThreads::Count)
                .map_err(failed)?;
        let cpuset = cpuset_of(running.pid());
        let mut demands: HashMap<ThreadId, CpuDemand> = HashMap::new();
        let mut masks: HashMap<ThreadId, CpuSet> = HashMap::new();
        let mut looked = Instant::now();
        let mut told = false;
        // The first run shows whether the program ends by itself.
        let left = self.options.left.filter(|_| self.learning.is_zero());
        let left = left.filter(|left| *left < self.options.limit);
        let limit = left.unwrap_or(self.options.limit);
        loop {
            for pinned in pinner.pin_new().map_err(|error| failed(error.into()))? {
                pinned.result?;
            }
            if looked.elapsed() >= NAP {
                looked = Instant::now();
                for seen in pinner.living() {
                    if let Ok((now, _)) = sample(seen.id, running.begin.elapsed()) {
                        demands
                            .entry(seen.id)
                            .or_insert_with(|| CpuDemand::from_birth(now))
                            .see(now);
                    }
                    if self.learning.is_zero()
                        && let Ok(own) = affinity::own(seen.id.tid)
                    {
                        masks.insert(seen.id, own);
                    }
                }
                let threads = &self.workload.threads;
                let place = |name: &str| threads.iter().position(|thread| thread.name == name);
                let lost = pinner.lost().filter_map(|(name, now)| Some((place(name)?, now)));
                let lost: Vec<(usize, CpuSet)> = lost.collect();
                if !lost.is_empty() {
                    let by = likely_pinner(running.pid(), &cpuset);
                    self.pin_history.moved(&lost, threads, by)?;
                }
            }
            let next = pinner.interval().min(NAP);
            if exit.within(next).map_err(failed)? {
                break;
            }
            if self.cancelled.came() {
                return Err(MeasureError::interrupted().into());
            }
            if !told && running.begin.elapsed() > LASTING.min(limit / 2) {
                told = true;
                lasts(running.begin.elapsed());
            }
            if running.begin.elapsed() > limit {
                let time = duration(limit);
                let (what, raise) = match left {
                    Some(_) => (format!("the rest of the budget ({time})"), "--budget"),
                    None => (format!("the limit of {time}"), "--limit"),
                };
                let instead = match self.metric {
                    RunMetric::Runtime => "add --metric",
                    RunMetric::Output { .. } => "leave --per-run out",
                };
                let message = format!(
                    "{name} ran longer than {what} and was ended: raise {raise}, or {instead} if \
                     it does not end by itself"
                );
                let error = MeasureError::new(Retry::Other, message);
                return Err(MeasureError { expired: left.is_some(), ..error }.into());
            }
        }
        let elapsed = running.begin.elapsed();
        if let Some(status) = running.status().filter(|status| !status.success()) {
            return Err(running.ended(&name, status));
        }
        let shown = self.metric.of_run(&name, running, &output)?;
        let (performance, unit) =
            shown.unwrap_or_else(|| (1.0 / elapsed.as_secs_f64(), self.metric.unit(None)));
        let share = |id| demands.get(&id).map_or(0.0, |demand| demand.share(elapsed));
        let (mut threads, mut affinities) = (Vec::new(), HashMap::new());
        for (thread, seen) in pinner.names().into_iter().zip(pinner.threads()) {
            affinities.extend(masks.remove(&seen.id).map(|own| (thread.name.clone(), own)));
            threads.push((thread, seen.comm.clone(), share(seen.id)));
        }
        Ok(RunResult { elapsed, performance, unit, threads, affinities })
    }

    fn count(&mut self, run: &RunResult, pinned: bool) {
        self.runs += 1;
        let appeared: HashSet<&str> = run.appeared().collect();
        let complete =
            self.workload.threads.iter().all(|thread| appeared.contains(thread.name.as_str()));
        self.incomplete += usize::from(pinned && !complete);
        let stranger = |(thread, _, share): &(Thread, String, f64)| {
            run.busy(*share) && !self.known.contains(&thread.name)
        };
        self.crowded += usize::from(run.threads.iter().any(stranger));
    }
}

impl RunResult {
    /// The names of its threads.
    fn appeared(&self) -> impl Iterator<Item = &str> {
        self.threads.iter().map(|(thread, _, _)| thread.name.as_str())
    }

    fn busy(&self, share: f64) -> bool {
        worth_placing(share, self.threads.iter().map(|(_, _, share)| *share).fold(0.0, f64::max))
    }
}

impl Testbed for RerunTestbed {
    fn machine(&self) -> &Machine {
        &self.machine
    }

    fn workload(&self) -> &Workload {
        &self.workload
    }

    fn unit(&self) -> &Unit {
        &self.unit
    }

    /// Makes as many runs as the effort has windows, rounded.
    fn measure(&mut self, setting: &Setting, effort: Effort) -> Result<Measurement, MeasureError> {
        let places = self.places(setting)?;
        let count = effort.windows.round().clamp(1.0, 1e6) as usize;
        let mut performances = Vec::with_capacity(count);
        let mut duration = Duration::ZERO;
        for _ in 0..count {
            if self.cancelled.came() {
                return Err(MeasureError::interrupted());
            }
            let run = self.run(places.clone(), &mut |_| {}).map_err(|error| match error {
                // The program worked before; a run that failed may be followed by one that does
                // not.
                TargetError::Ended { .. } => MeasureError::new(Retry::Same, error.to_string()),
                error => error.into(),
            })?;
            self.count(&run, !places.is_empty());
            if !places.is_empty() {
                self.pin_history.run_held();
            }
            performances.push(run.performance);
            duration += run.elapsed;
        }
        let n = performances.len() as f64;
        let mean = performances.iter().sum::<f64>() / n;
        let squares: f64 = performances.iter().map(|value| (value - mean).powi(2)).sum();
        let spread = (performances.len() > 1).then(|| (squares / (n - 1.0)).sqrt());
        Ok(Measurement { performance: mean, duration, spread, detail: None })
    }

    fn disturbances(&self) -> Disturbances {
        Disturbances { others: None, notes: self.varied() }
    }
}

/// Removes a file that a run may have left.
fn remove(path: &Path) -> Result<(), MeasureError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(MeasureError::new(
            Retry::Never,
            format!("cannot remove {}: {error}", path.display()),
        )),
        _ => Ok(()),
    }
}

/// Sends output that nobody reads to `/dev/null`, except the standard error, whose last line
/// explains a failure.
fn quiet(mut launch: Launch, metric: &RunMetric) -> Launch {
    let read =
        |stream| matches!(metric, RunMetric::Output { stream: wanted, .. } if *wanted == stream);
    if launch.stdout == Output::Read && !read(Stream::Stdout) {
        launch.stdout = Output::Null;
    }
    launch
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_confines_its_program_and_a_layout_is_to_be_changed() {
        let of = |lists: &[&str]| {
            let masks: Vec<_> =
                lists.iter().map(|list| CpuSet::parse_list(list).unwrap()).collect();
            confinement(&masks).map(|cpus| cpus.to_string())
        };
        assert_eq!(of(&["0-3", "0-3"]).as_deref(), Some("0-3"), "taskset -c 0-3");
        assert_eq!(of(&["2", "2"]).as_deref(), Some("2"), "taskset -c 2");
        assert_eq!(of(&["0-3", "5"]).as_deref(), Some("0-3,5"));
        assert_eq!(of(&["0", "1"]), None, "OMP_PROC_BIND");
        assert_eq!(of(&[]), None, "all were too short to be seen");
    }

    #[test]
    fn a_program_that_ends_at_once_is_told_from_one_that_waits() {
        let told = |took| nothing_ran("it".into(), took).to_string();
        let brief = told(Duration::from_millis(3));
        assert!(
            brief.starts_with("it ends 3 ms after its start")
                && brief.contains("give it more work"),
            "{brief}"
        );
        assert!(told(Duration::from_secs(2)).contains("put it under load"));
    }
}
