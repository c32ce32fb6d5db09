//! [`CoscheduledTestbed`]: running programs whose threads are moved between contexts, quantum after
//! quantum.
//!
//! **Terms.** A *quantum* is the time between two looks at the threads. A *period* is some tens of
//! quanta in which threads are moved in one way ([`ThreadMoves`]), or not at all. Each period is
//! one measurement. Its first fifth is left out, since caches and the kernel's balance adapt then.
//!
//! **A quantum.** pinwise finds the threads that began and ended. It reads how long each ran and
//! waited, and the counts. Then it decides, and moves threads by affinity. A thread is never put
//! outside its own affinity. Its original affinity is with the guardian before it is moved
//! ([`pinwise_linux::Guardian`]).
//!
//! **Unpinned periods.** Threads are dealt over all contexts once and released. A released thread
//! stays where it is until the kernel has a reason to move it. Without dealing, such a period would
//! inherit the places of the one before.
//!
//! **Costs.** pinwise measures its own CPU time. Quanta become longer if it takes too much of the
//! machine ([`pace`]).
//!
//! **Limits.** pinwise does not see threads that live for less than a quantum. It does not count
//! what a thread does after its last reading. New processes are looked for once a second at most. A
//! thread that another program moves is left alone from then on.

mod deal;
mod error;
mod pace;
mod tracked;

pub use error::CoscheduleError;

use deal::deal;
use pace::QuantumPace;
use pinwise_counters::{CountSource, QuantumSeries, ThreadCounts};
use pinwise_figures::duration;
use pinwise_linux::{
    Changes, ForkWatch, Pid, RealtimeClass, ScannedThread, Scope, Target, TargetError, ThreadId,
    affinity, cpuset_of, likely_pinner, pause, process, share_with_others, sys,
};
use pinwise_measure::{
    CoscheduledPeriod, CounterQuality, Detail, Effort, EventCounts, Interrupt, MeasureError,
    Measurement, ObservedThread, Pinner, ProgramNote, Retry, Setting, Testbed, Thread, ThreadMoves,
    Unit, Workload,
};
use pinwise_metric::Meter;
use pinwise_topology::{CpuId, CpuSet, Machine, Random};
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};
use tracked::TrackedThreads;

/// Decides after a quantum: the threads that are to be kept to another context, and to which.
pub type MoveDecision = Box<dyn FnMut(&[ObservedThread]) -> Vec<(u64, usize)>>;

/// How programs are co-scheduled.
pub struct CoscheduleOptions {
    /// The length of a quantum. It becomes longer if it costs too much.
    pub quantum: Duration,
    /// The contexts, those together that share the level.
    pub cores: Vec<Vec<usize>>,
    /// The metric, with the shortest window that it can measure. `None`: instructions are counted.
    pub meter: Option<(Box<dyn Meter>, Duration)>,
    /// The counters, if there are any.
    pub counts: Option<Box<dyn CountSource>>,
    /// The rule of [`ThreadMoves::Counted`].
    pub decision: MoveDecision,
    /// The CPU time of pinwise so far, which quanta are to keep small. A process that does more
    /// than this gives that of its thread.
    pub own_time: fn() -> Duration,
    /// Notes on the metric and the counters.
    pub notes: Vec<ProgramNote>,
}

/// How often new processes are looked for: to list all processes of a machine takes long.
const LISTING: Duration = Duration::from_secs(1);
/// The longest sleep, so that a Ctrl-C is noticed.
const NAP: Duration = Duration::from_millis(20);
/// How long programs are watched to find those that run, and until when two have to.
const WATCH: Duration = Duration::from_millis(300);
const PATIENCE: Duration = Duration::from_secs(10);

/// The fewest quanta of a period, also where they have become long.
const LEAST_QUANTA: u32 = 10;

/// Running programs as a testbed. It measures [`Setting::Unpinned`] and [`Setting::Coscheduled`].
/// To drop it gives each thread its own affinity back.
pub struct CoscheduledTestbed {
    quanta: Quanta,
    meter: Option<(Box<dyn Meter>, Duration)>,
    until: Option<Instant>,
    machine: Machine,
    workload: Workload,
    unit: Unit,
    notes: Vec<ProgramNote>,
}

/// The programs that run in a scope, before anything is done to them.
pub struct FoundPrograms {
    target: Target,
    scanned: Vec<ScannedThread>,
    /// The processes that the user named one by one.
    named: Vec<Pid>,
}

impl FoundPrograms {
    /// Attaches to a scope and waits until two programs run.
    ///
    /// # Errors
    /// There is no such process, another pinwise has it, or fewer than two programs run.
    pub fn attach(scope: Scope, cancelled: &Interrupt) -> Result<Self, CoscheduleError> {
        let named = match &scope {
            Scope::Processes(pids) => pids.clone(),
            Scope::Trees(_) | Scope::Cgroup(_) => Vec::new(),
        };
        let mut target = Target::attach(scope)?;
        let begin = Instant::now();
        loop {
            let left = PATIENCE.saturating_sub(begin.elapsed());
            let mut scanned = target.scan(WATCH, left, cancelled)?;
            if cancelled.came() {
                return Err(TargetError::from(MeasureError::interrupted()).into());
            }
            scanned.retain(|one| one.runs);
            let running: BTreeSet<Pid> = scanned.iter().map(|one| one.id.pid).collect();
            if running.len() >= 2 {
                share_with_others(1.0);
                return Ok(Self { target, scanned, named });
            }
            let one_named = named.len() == 1 && target.pids().len() < 2;
            if one_named || begin.elapsed() >= PATIENCE {
                let name = target.name().to_owned();
                let running = running.len();
                let processes = target.pids().len();
                return Err(CoscheduleError::TooFewPrograms { name, running, processes });
            }
        }
    }

    /// The CPUs on which its threads may run.
    pub fn mask(&self) -> CpuSet {
        self.target.mask()
    }

    /// Its processes.
    pub fn pids(&self) -> Vec<Pid> {
        self.target.pids()
    }

    /// The target, to take up its metric.
    pub fn target(&mut self) -> &mut Target {
        &mut self.target
    }

    /// Checks that a thread has a choice among the contexts that pinwise uses.
    ///
    /// # Errors
    /// No thread that runs may use two of them.
    fn check_choice(&self, contexts: &CpuSet) -> Result<(), CoscheduleError> {
        let own = self.scanned.iter().filter_map(|one| affinity::own(one.id.tid).ok());
        let masks: Vec<CpuSet> = own.collect();
        if masks.iter().any(|mask| mask.intersection(contexts).len() >= 2) {
            return Ok(());
        }
        let theirs = masks.iter().fold(CpuSet::new(), |all, mask| all.union(mask));
        let (name, contexts) = (self.target.name().to_owned(), contexts.clone());
        Err(CoscheduleError::NoChoice { name, theirs, contexts })
    }
}

impl CoscheduledTestbed {
    /// Of programs that run, on the contexts that `options` name.
    ///
    /// # Errors
    /// The affinities of the threads leave nothing to choose.
    pub fn new(
        found: FoundPrograms,
        machine: Machine,
        options: CoscheduleOptions,
        cancelled: Interrupt,
    ) -> Result<Self, CoscheduleError> {
        let contexts: CpuSet =
            options.cores.iter().flatten().map(|&context| CpuId(context as u32)).collect();
        found.check_choice(&contexts)?;
        let threads: Vec<Thread> = found.scanned.iter().map(|one| one.thread.clone()).collect();
        let workload = Workload { name: found.target.name().to_owned(), threads };
        let unit = match &options.meter {
            Some((meter, _)) => meter.unit().clone(),
            None => Unit::rate("instructions/s"),
        };
        let pace = QuantumPace::new(options.quantum, machine.online().len());
        let now = Instant::now();
        let cpusets = found.target.pids().into_iter().map(|pid| (pid, cpuset_of(pid))).collect();
        let mut quanta = Quanta {
            target: found.target,
            named: found.named,
            threads: TrackedThreads::default(),
            cores: options.cores,
            contexts,
            counts: options.counts,
            series: QuantumSeries::default(),
            decision: options.decision,
            forks: ForkWatch::default(),
            listed: now,
            moves: None,
            random: Random::new(0),
            pace,
            wanted: options.quantum,
            next: now,
            looked: (now, (options.own_time)()),
            failure: None,
            account: None,
            period: PeriodAccount::new(now, (options.own_time)()),
            own_time: options.own_time,
            moved_by_others: None,
            cpusets,
            cancelled,
        };
        let new = quanta.target.threads();
        quanta.threads.follow(&Changes { new, gone: Vec::new() }, &quanta.contexts);
        let (meter, mut notes) = (options.meter, options.notes);
        notes.extend(affinity::forgotten(&quanta.target.mask(), &machine.offline));
        notes.extend(quanta.target.note());
        Ok(Self { quanta, meter, until: None, machine, workload, unit, notes })
    }

    /// Notes on the metric, and on what happened to threads.
    pub fn notes(&self) -> Vec<ProgramNote> {
        let others = self.quanta.moved_by_others.as_ref();
        let others = others.map(|(threads, by)| ProgramNote::ThreadsLeftToOthers {
            threads: *threads,
            by: by.clone(),
        });
        self.notes.iter().cloned().chain(others).collect()
    }

    /// A metric that falls silent is waited for until then, and for the rest of its period.
    pub fn wait_until(&mut self, until: Instant) {
        self.until = Some(until);
    }

    /// The processes of the programs.
    pub fn pids(&self) -> Vec<Pid> {
        self.quanta.target.pids()
    }

    /// Whether the programs have ended.
    pub fn is_gone(&self) -> bool {
        self.quanta.target.is_gone()
    }

    /// How far the counts can be trusted so far; `None` without counters.
    pub fn counters(&self) -> Option<CounterQuality> {
        self.quanta.series.quality()
    }

    /// Decides for a quantum as [`ThreadMoves`] says, and moves nothing. Returns the thread, the
    /// name of its program and its context of each move.
    ///
    /// # Errors
    /// The programs have ended, or cannot be read.
    pub fn preview(
        &mut self,
        moves: ThreadMoves,
    ) -> Result<Vec<(ThreadId, String, usize)>, CoscheduleError> {
        let quanta = &mut self.quanta;
        quanta.moves = Some(moves);
        pause(quanta.pace.quantum(), &quanta.cancelled);
        quanta.read()?;
        let decided = quanta.decide();
        let mut would = Vec::new();
        for (id, context) in decided {
            // The next quantum is decided as if this one had been done.
            quanta.threads.keep(id, context);
            if let Some((name, context)) = quanta.threads.kept_of(id) {
                would.push((id, name.to_owned(), context));
            }
        }
        Ok(would)
    }
}

/// A failure is not tried again at once: periods are long, and the search knows the budget.
fn left_to_search(error: MeasureError) -> MeasureError {
    let retry = if error.retry.is_same() { Retry::Other } else { error.retry };
    MeasureError { retry, ..error }
}

/// The sums of a period.
struct PeriodAccount {
    begin: Instant,
    quanta: u64,
    moves: u64,
    begun: u64,
    ended: u64,
    /// CPU time of pinwise when the period began.
    own_time: Duration,
}

impl PeriodAccount {
    fn new(begin: Instant, own_time: Duration) -> Self {
        Self { begin, quanta: 0, moves: 0, begun: 0, ended: 0, own_time }
    }
}

/// CPU time of this process so far.
pub fn process_time() -> Duration {
    sys::cpu_time(std::process::id() as i32).unwrap_or_default()
}

/// CPU time of the calling thread so far.
pub fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

/// The loop of quanta.
struct Quanta {
    target: Target,
    named: Vec<Pid>,
    threads: TrackedThreads,
    cores: Vec<Vec<usize>>,
    contexts: CpuSet,
    counts: Option<Box<dyn CountSource>>,
    /// What they saw since the begin.
    series: QuantumSeries<ThreadId>,
    decision: MoveDecision,
    forks: ForkWatch,
    /// When all processes were listed.
    listed: Instant,
    /// How threads are moved; `None`: not at all.
    moves: Option<ThreadMoves>,
    random: Random,
    pace: QuantumPace,
    own_time: fn() -> Duration,
    wanted: Duration,
    /// When the next quantum ends.
    next: Instant,
    /// When the last look ended, and the CPU time of pinwise then.
    looked: (Instant, Duration),
    failure: Option<CoscheduleError>,
    /// Since when programs are seen in this period.
    account: Option<Instant>,
    period: PeriodAccount,
    /// How many threads others have moved, and what probably moved the first.
    moved_by_others: Option<(u64, Pinner)>,
    /// The cpuset of each process at the beginning.
    cpusets: HashMap<Pid, CpuSet>,
    cancelled: Interrupt,
}

impl Quanta {
    /// Why no more periods can be measured: the programs have ended.
    fn over(&mut self) -> Option<MeasureError> {
        let few = |named: &[Pid]| {
            named.len() >= 2 && named.iter().filter(|&&pid| !process::ended(pid)).count() < 2
        };
        let ended = self.target.check().is_err() || few(&self.named);
        ended.then(|| MeasureError::expired("fewer than two of the programs still run"))
    }

    /// Begins a period.
    fn begin(&mut self, moves: Option<ThreadMoves>) -> Result<(), CoscheduleError> {
        self.period = PeriodAccount::new(Instant::now(), (self.own_time)());
        (self.account, self.failure) = (None, None);
        self.release()?;
        self.moves = moves;
        let seed = match moves {
            Some(ThreadMoves::Dealt(seed)) => seed,
            _ => self.random.bits(),
        };
        self.random = Random::new(seed);
        if moves.is_none() {
            self.moves = Some(ThreadMoves::Dealt(seed));
            self.look()?;
            self.moves = None;
            self.release()?;
            self.period.moves = 0;
        } else {
            self.look()?;
        }
        Ok(())
    }

    /// Leaves all threads to the kernel, as it found them.
    fn release(&mut self) -> Result<(), CoscheduleError> {
        self.target.unpin()?;
        self.threads.release();
        Ok(())
    }

    /// Looks at the threads if the quantum is over, or when the measured part begins. A failure is
    /// kept for the end of the period.
    fn look_if_due(&mut self, measured_from: Instant) {
        let now = Instant::now();
        let begins = self.account.is_none() && now >= measured_from;
        if self.failure.is_some() || (now < self.next && !begins) {
            return;
        }
        if let Err(error) = self.look() {
            self.failure = Some(error);
        } else if begins {
            // Readings until now belong to the beginning of the period.
            self.threads.begin_account();
            self.account = Some(self.looked.0);
        }
    }

    /// Ends a quantum: looks at all threads, decides, and moves.
    fn look(&mut self) -> Result<(), CoscheduleError> {
        let (before, all_before) = (thread_time(), (self.own_time)());
        self.read()?;
        let decided = self.decide();
        self.apply(&decided)?;
        self.period.quanta += 1;
        let (now, all) = (Instant::now(), (self.own_time)());
        let look = thread_time().saturating_sub(before);
        let rest = all_before.saturating_sub(self.looked.1);
        self.pace.spent(look, rest, now.duration_since(self.looked.0));
        self.looked = (now, all);
        self.next = now + self.pace.quantum();
        Ok(())
    }

    fn read(&mut self) -> Result<(), CoscheduleError> {
        let listing = self.listed.elapsed() >= LISTING && self.forks.any();
        let changes = if listing {
            self.listed = Instant::now();
            self.target.refresh()?
        } else {
            self.target.refresh_threads()?
        };
        self.period.begun += changes.new.len() as u64;
        self.period.ended += changes.gone.len() as u64;
        self.target.forget(&changes.gone);
        self.threads.follow(&changes, &self.contexts);
        self.series.end(&changes.gone);
        let counts: HashMap<ThreadId, EventCounts> = match &mut self.counts {
            Some(counts) => {
                let ids = self.threads.ids();
                let counted = counts.read(&ids);
                // A thread that cannot be read takes no count from the others.
                let of_each = |(id, one): (ThreadId, ThreadCounts)| Some((id, one.ok()??));
                ids.into_iter().zip(counted).filter_map(of_each).collect()
            }
            None => HashMap::new(),
        };
        // A reading at the end of a period may come soon after the last one.
        let least = self.pace.quantum().as_secs_f64() / 2.0;
        for (&id, counts) in counts.iter().filter(|(_, counts)| counts.seconds >= least) {
            self.series.take(id, counts);
        }
        self.threads.read(counts, self.account.is_some());
        Ok(())
    }

    /// The threads to move, and where to.
    fn decide(&mut self) -> Vec<(ThreadId, usize)> {
        let decided = match self.moves {
            None => return Vec::new(),
            Some(ThreadMoves::Counted) => (self.decision)(&self.threads.observed(true)),
            Some(moves) => {
                let contexts: Vec<usize> = match moves {
                    ThreadMoves::Apart => {
                        self.cores.iter().filter_map(|core| core.first()).copied().collect()
                    }
                    _ => self.cores.iter().flatten().copied().collect(),
                };
                deal(&self.threads.observed(false), &contexts, &mut self.random)
            }
        };
        let known = decided.into_iter();
        known.filter_map(|(number, context)| Some((self.threads.id(number)?, context))).collect()
    }

    fn apply(&mut self, moves: &[(ThreadId, usize)]) -> Result<(), CoscheduleError> {
        if moves.is_empty() {
            return Ok(());
        }
        // Before the pins: a thread that another has just moved gets none.
        for moved in self.target.moved()? {
            let pid = moved.id.pid;
            let by = || {
                let before = self.cpusets.get(&pid).cloned();
                likely_pinner(pid, &before.unwrap_or_else(|| cpuset_of(pid)))
            };
            self.moved_by_others.get_or_insert_with(|| (0, by())).0 += 1;
            self.threads.leave(moved.id);
        }
        let moves: Vec<(ThreadId, usize)> =
            moves.iter().copied().filter(|(id, _)| !self.threads.is_left(*id)).collect();
        let cpus: Vec<(ThreadId, CpuSet)> = moves
            .iter()
            .map(|&(id, context)| (id, [CpuId(context as u32)].into_iter().collect()))
            .collect();
        let wanted: Vec<(ThreadId, &CpuSet)> = cpus.iter().map(|(id, cpus)| (*id, cpus)).collect();
        let gone = self.target.pin(&wanted)?;
        self.target.forget(&gone);
        for &(id, context) in moves.iter().filter(|(id, _)| !gone.contains(id)) {
            self.threads.keep(id, context);
            self.period.moves += 1;
        }
        Ok(())
    }

    /// What the period showed. Reads the threads once more: their accounts end here.
    fn showed(&mut self) -> Result<CoscheduledPeriod, CoscheduleError> {
        self.read()?;
        let seconds = self.account.map_or(0.0, |since| since.elapsed().as_secs_f64());
        let programs = if seconds > 0.0 { self.threads.account(seconds) } else { Vec::new() };
        Ok(CoscheduledPeriod {
            programs,
            seconds,
            whole: self.period.begin.elapsed().as_secs_f64(),
            quanta: self.period.quanta,
            moves: self.period.moves,
            begun: self.period.begun,
            ended: self.period.ended,
            cost: (self.own_time)().saturating_sub(self.period.own_time).as_secs_f64(),
            counters: self.series.quality(),
        })
    }
}

impl Testbed for CoscheduledTestbed {
    fn machine(&self) -> &Machine {
        &self.machine
    }

    fn workload(&self) -> &Workload {
        &self.workload
    }

    fn unit(&self) -> &Unit {
        &self.unit
    }

    /// Measures a period of `effort.windows` quanta.
    fn measure(&mut self, setting: &Setting, effort: Effort) -> Result<Measurement, MeasureError> {
        let moves = match setting {
            Setting::Unpinned => None,
            Setting::Coscheduled(moves) => Some(*moves),
            other => return Err(MeasureError::unsupported(&self.workload.name, other)),
        };
        if let Some(over) = self.quanta.over() {
            return Err(over);
        }
        let _punctual = RealtimeClass::raise();
        let shortest = self.meter.as_ref().map_or(Duration::ZERO, |(_, shortest)| *shortest);
        let quanta = self.quanta.wanted.mul_f64(effort.windows);
        let length = quanta.max(LEAST_QUANTA * self.quanta.pace.quantum()).max(shortest * 5 / 4);
        let settle = length / 5;
        self.quanta.begin(moves)?;
        let begin = self.quanta.period.begin;
        let (measured_from, end) = (begin + settle, begin + length);
        let cancelled = self.quanta.cancelled.clone();
        // The last number of a period comes a little after its end.
        let latest = self.until.map(|until| until.max(end) + length / 2);
        let is_late = || latest.is_some_and(|latest| Instant::now() > latest);
        let quanta = RefCell::new(&mut self.quanta);
        // A meter asks at least every 20 ms whether to stop.
        let stop = || {
            let mut quanta = quanta.borrow_mut();
            quanta.look_if_due(measured_from);
            quanta.failure.is_some() || cancelled.came() || is_late() || quanta.over().is_some()
        };
        let measured = match &mut self.meter {
            Some((meter, _)) => {
                meter.moved();
                let left = measured_from.saturating_duration_since(Instant::now());
                meter.measure(left, length - settle, &stop).map(|measured| measured.performance)
            }
            None => {
                while !stop() && Instant::now() < end {
                    std::thread::sleep(NAP);
                }
                Ok(0.0)
            }
        };
        if cancelled.came() {
            return Err(MeasureError::interrupted());
        }
        if let Some(failure) = self.quanta.failure.take() {
            // A program that ends is no failure.
            return Err(self.quanta.over().unwrap_or_else(|| failure.into()));
        }
        let measured = measured.map_err(|error| match self.quanta.over() {
            Some(over) => over,
            None if error.interrupted => {
                let waited = duration(begin.elapsed());
                let message = format!("the metric gave too few numbers in {waited}");
                MeasureError::new(Retry::Other, message)
            }
            None => left_to_search(error),
        })?;
        if let Some(over) = self.quanta.over() {
            return Err(over);
        }
        let showed = self.quanta.showed();
        let showed =
            showed.map_err(|failure| self.quanta.over().unwrap_or_else(|| failure.into()))?;
        let instructions = showed.programs.iter().filter_map(|program| program.instructions).sum();
        let performance = if self.meter.is_some() { measured } else { instructions };
        if showed.programs.is_empty() {
            let message = "no program ran in a period of moves: put them under load";
            return Err(MeasureError::new(Retry::Same, message));
        }
        let seconds = Duration::from_secs_f64(showed.seconds);
        let detail = Detail::of(&showed);
        Ok(Measurement { detail, ..Measurement::new(performance, seconds) })
    }
}
