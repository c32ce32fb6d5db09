//! [`LiveTestbed`]: a running program, re-pinned while it runs.
//!
//! A measurement is one window. The threads are moved, the first fifth is discarded, and the rest
//! is measured. Windows of 10 ms already rank the best assignments. The slow ones need 30 ms or
//! more, so a window is 50 ms by default.
//!
//! A thread is never placed outside its own affinity: see `own_masks`. The search takes the CPUs of
//! all threads to place together. If every thread has one CPU, as in DPDK, each may have any of
//! these CPUs.
//!
//! Threads come and go. If a placed thread ends, the next one of its name takes its place. An
//! example is a server that restarts a worker. Other new threads run where their process may.

mod floor_detail;
mod memory;
mod own_masks;
pub(crate) use own_masks::together;
mod pins;
mod slot;

pub use floor_detail::{FloorDetail, UnpinnedWindow};

use crate::pin_history::PinHistory;
use memory::Memory;
use pinwise_figures::{self as figures, Scale};
use pinwise_linux::{
    RealtimeClass, Target, TargetError, affinity, common_contexts, cpuset_of, pause, process,
    thread::{Pid, ThreadId},
    thread_filter::{self, ThreadFilter},
    thread_scan::{ScannedThread, averaged, same_crew},
};
use pinwise_measure::{
    Disturbances, Effort, Interrupt, LeftAlone, MeasureError, Measurement, MemoryPolicy,
    ProgramNote, Retry, Setting, Testbed, Thread, Unit, Workload,
};
use pinwise_metric::Meter;
use pinwise_topology::{Assignment, CpuSet, Machine, Random};
use slot::Slot;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How to measure a running program.
#[derive(Clone, Debug)]
pub struct LiveOptions {
    /// Which threads to place, of those that run.
    pub filter: ThreadFilter,
    /// Time per measurement at [`Effort`] 1. Its first fifth is the wait after a move.
    pub window: Duration,
    /// Abandon a setting with which the program falls below this fraction of the baseline (0.5 for
    /// 50 %). It must also be faster unpinned right after.
    pub floor: Option<f64>,
    /// Where memory lies while an assignment is measured.
    pub memory: MemoryPolicy,
    /// How long threads are watched to find those that run. This happens twice, and the answers
    /// have to agree.
    pub scan: Duration,
    /// How long the program may take until it runs steadily and the meter answers.
    pub patience: Duration,
    /// When to give up waiting for CPUs that went away, at the latest.
    pub until: Option<Instant>,
    /// Notes on the meter. [`LiveTestbed::notes`] begins with them.
    pub notes: Vec<ProgramNote>,
}

impl LiveOptions {
    /// The usual [`Self::window`].
    pub const WINDOW: Duration = Duration::from_millis(50);
}

impl Default for LiveOptions {
    fn default() -> Self {
        Self {
            filter: ThreadFilter::default(),
            window: Self::WINDOW,
            floor: None,
            memory: MemoryPolicy::default(),
            scan: Duration::from_millis(300),
            patience: Duration::from_secs(30),
            until: None,
            notes: Vec::new(),
        }
    }
}

/// The most looks at a program that creates threads without pause.
const LOOKS: usize = 20;

/// The windows of a first baseline for the floor, if no record has one.
const FIRST_BASELINE: f64 = 4.0;

/// A running program as a testbed. To drop it restores everything; see [`pinwise_linux::Guardian`]
/// for every other way out.
pub struct LiveTestbed {
    target: Target,
    meter: Box<dyn Meter>,
    options: LiveOptions,
    cancelled: Interrupt,
    machine: Machine,
    /// A set of one context per leaf of the sharing tree.
    leaves: Vec<CpuSet>,
    workload: Workload,
    /// The affinity of each thread of the workload before its first pin.
    affinities: Vec<CpuSet>,
    slots: Vec<Slot>,
    left_alone: Vec<(LeftAlone, String)>,
    /// Threads that appeared since the scan and have no place.
    late: Vec<ThreadId>,
    late_seen: usize,
    respawned: usize,
    pin_history: PinHistory,
    /// The cpuset of its first process at the beginning.
    cpuset: CpuSet,
    /// Mean performance of the unpinned windows and their number.
    baseline: Option<(f64, f64)>,
    /// When the measurement in hand began.
    begin: Instant,
    /// Its unpinned windows, if it is of an assignment.
    unpinned: Vec<UnpinnedWindow>,
    not_punctual: Option<ProgramNote>,
    memory: Memory,
    /// The setting that was applied last.
    setting: Setting,
    /// The randomness with which [`Self::scatter`] deals threads.
    random: Random,
    /// How long the meter's first answer took.
    answered: Duration,
}

impl LiveTestbed {
    /// Waits until the program runs steadily and the meter answers, and finds the threads to place.
    /// To raise `cancelled` ends any wait within 20 ms.
    pub fn new(
        mut target: Target,
        machine: &Machine,
        mut meter: Box<dyn Meter>,
        mut options: LiveOptions,
        cancelled: Interrupt,
    ) -> Result<Self, TargetError> {
        // Many threads that spin would keep an ordinary thread waiting, beyond the budget.
        let _punctual = RealtimeClass::raise();
        let (scanned, answered) = first_answer(&mut target, meter.as_mut(), &options, &cancelled)?;
        let mut left_alone = Vec::new();
        let mut placed = Vec::new();
        let running: Vec<String> =
            scanned.iter().filter(|one| one.runs).map(|one| one.thread.name.clone()).collect();
        for one in scanned {
            match options.filter.why_not(&one.thread.name, one.runs) {
                _ if options.filter.is_starter(&one.thread.name) => {}
                Some(why) => left_alone.push((why, one.comm)),
                None => placed.push(one),
            }
        }
        let masks = own_masks::own_masks(&placed);
        let running_masks = || masks.iter().filter(|mask| !mask.is_empty());
        let mut theirs = own_masks::together(&masks);
        if theirs.is_empty() {
            theirs = target.mask();
        } else if running_masks().all(|mask| mask.len() == 1) {
            // They were laid out by their program. The user asks for another layout.
            let (threads, of) = (running_masks().count() as u64, placed.len() as u64);
            options.notes.push(ProgramNote::PinnedBefore { threads, of });
        } else if !theirs.is_disjoint(&machine.allowed) {
            let (fit, left, all) = own_masks::confine(placed, masks, &machine.allowed);
            left_alone.extend(left);
            (placed, theirs) = (fit, all);
        }
        let (machine, leaves) = common_contexts(machine, target.name(), &theirs)?;
        if placed.is_empty() {
            return Err(options.filter.none_left(target.name().to_owned(), &running));
        }
        let cpuset = target.pids().first().map(|&pid| cpuset_of(pid)).unwrap_or_default();
        let slots: Vec<Slot> = placed
            .iter()
            .map(|one| Slot { comm: one.comm.clone(), process: one.process, id: Some(one.id) })
            .collect();
        let affinities: Vec<CpuSet> =
            placed.iter().map(|one| affinity::get(one.id.tid).unwrap_or_default()).collect();
        options.notes.extend(affinity::forgotten(&target.mask(), &machine.offline));
        options.notes.extend(target.note());
        let threads: Vec<Thread> = placed.into_iter().map(|one| one.thread).collect();
        let workload = Workload { name: target.name().to_owned(), threads };
        let pids = slots.iter().filter_map(|slot| Some(slot.id?.pid));
        let memory = Memory::new(options.memory, &machine, &target, pids)?;
        Ok(Self {
            target,
            meter,
            options,
            cancelled,
            machine,
            leaves,
            workload,
            affinities,
            slots,
            left_alone,
            late: Vec::new(),
            late_seen: 0,
            respawned: 0,
            pin_history: PinHistory::default(),
            cpuset,
            baseline: None,
            begin: Instant::now(),
            unpinned: Vec::new(),
            not_punctual: None,
            memory,
            setting: Setting::Unpinned,
            random: Random::new(0),
            answered,
        })
    }

    /// Notes on the meter, on threads left alone, and on what was not permitted.
    pub fn notes(&self) -> Vec<ProgramNote> {
        let left_alone = thread_filter::left_alone(
            self.left_alone.iter().map(|(why, comm)| (*why, comm.as_str())),
        );
        let meter = self.options.notes.iter().cloned();
        let kept = own_masks::note(&self.workload.threads, &self.slots);
        meter.chain(left_alone).chain(kept).chain(self.not_punctual.clone()).collect()
    }

    /// What became of threads and of their pins.
    fn changed(&self) -> impl Iterator<Item = ProgramNote> {
        let replaced = (self.respawned > 0)
            .then_some(ProgramNote::ThreadsReplaced { times: self.respawned as u64 });
        let appeared = (self.late_seen > 0)
            .then_some(ProgramNote::ThreadsAppeared { threads: self.late_seen as u64 });
        replaced.into_iter().chain(appeared).chain(self.pin_history.notes())
    }

    /// Whether the number turned out to be a total, though its name suggests a value. Then all
    /// measurements with it are meaningless.
    pub fn measures_a_total(&self) -> bool {
        self.meter.counter_detection().is_some_and(|detection| detection.of_a_total().is_some())
    }

    /// Whether the program ran before pinwise did, and has ended.
    pub fn is_gone(&self) -> bool {
        self.target.is_gone()
    }

    /// Time per measurement at [`Effort`] 1, as far as the testbed decides it.
    pub fn window_length(&self) -> Duration {
        self.options.window
    }

    /// About how long a measurement takes, including settling. It is a window, or as long as the
    /// meter's first answer took if its numbers come more slowly.
    pub fn each(&self) -> Duration {
        self.options.window.max(self.answered)
    }

    /// The program's processes.
    pub fn pids(&self) -> Vec<Pid> {
        self.target.pids()
    }

    /// The CPUs on which each thread to place could run without pinwise, by name.
    pub fn affinities(&self) -> BTreeMap<String, CpuSet> {
        self.workload
            .threads
            .iter()
            .map(|thread| thread.name.clone())
            .zip(self.affinities.iter().cloned())
            .collect()
    }

    /// Adds unpinned windows to the baseline. An earlier run of the campaign may have measured
    /// them. The floor is a fraction of the baseline.
    pub fn know_baseline(&mut self, performance: f64, windows: f64) {
        let (mean, weight) = self.baseline.unwrap_or_default();
        let total = weight + windows;
        self.baseline = Some((mean + (performance - mean) * windows / total, total));
    }

    /// Moves the threads and looks for new ones until two looks show nothing new.
    fn apply(&mut self, setting: &Setting) -> Result<(), MeasureError> {
        let mut quiet = 0;
        let mut looks = 0;
        let changes = self.target.refresh()?;
        self.follow(&changes);
        self.fill_vacancies()?;
        while quiet < 2 && looks < LOOKS {
            let gone = match setting {
                Setting::Unpinned => {
                    self.target.unpin()?;
                    Vec::new()
                }
                Setting::Pinned(assignment) if quiet == 0 => self.pin(assignment)?,
                Setting::Pinned(_) => Vec::new(),
                other => return Err(MeasureError::unsupported(self.target.name(), other)),
            };
            looks += 1;
            let changes = self.target.refresh_threads()?;
            let changed = self.follow(&changes) || !gone.is_empty();
            if changed {
                self.fill_vacancies()?;
            }
            quiet = if changed { 0 } else { quiet + 1 };
        }
        Ok(())
    }

    /// Whether a thread may be placed on a leaf.
    fn may(&self, thread: usize, leaf: usize) -> bool {
        let own = self.workload.threads[thread].keeps_to.as_ref();
        own.is_none_or(|own| self.leaves[leaf].is_subset(own))
    }

    /// Deals the threads over the contexts at random, equally many on each, as far as they may be
    /// there. A released thread stays where it is until the scheduler has a reason to move it.
    /// Without dealing, the baseline would inherit the placement measured before it, in the end the
    /// winner's. Dealing is what a scheduler does with new threads.
    fn scatter(&mut self) -> Result<(), MeasureError> {
        let mut contexts: Vec<u32> = (0..self.leaves.len() as u32).collect();
        let mut threads: Vec<usize> = (0..self.slots.len()).collect();
        self.random.shuffle(&mut contexts);
        self.random.shuffle(&mut threads);
        // Those with the fewest contexts first: others would take these.
        let choices = |thread: &usize| {
            contexts.iter().filter(|leaf| self.may(*thread, **leaf as usize)).count()
        };
        threads.sort_by_cached_key(choices);
        let mut held = vec![0; contexts.len()];
        let mut dealt = vec![0; threads.len()];
        for thread in threads {
            let may = contexts.iter().copied().filter(|leaf| self.may(thread, *leaf as usize));
            let leaf = may.min_by_key(|leaf| held[*leaf as usize]).unwrap_or(0);
            held[leaf as usize] += 1;
            dealt[thread] = leaf;
        }
        self.apply(&Setting::Pinned(Assignment::new(dealt)))
    }

    /// Measures one window; the death of the target ends it early.
    fn window(
        &mut self,
        wait_after_move: Duration,
        window: Duration,
    ) -> Result<Measurement, MeasureError> {
        let pids = self.target.pids();
        let cancelled = &self.cancelled;
        let stop = || cancelled.came() || pids.iter().all(|&pid| process::ended(pid));
        let measured = self.meter.measure(wait_after_move, window, &stop);
        match measured {
            Err(error) if error.interrupted && !self.cancelled.came() => {
                self.target.check()?;
                Err(error)
            }
            // If the meter fails because the program ended, that end explains the failure better.
            Err(error) => self.target.check().map_err(MeasureError::from).and(Err(error)),
            measured => measured,
        }
    }

    /// Spreads the threads as a scheduler would, and releases them. Then gives the scheduler a
    /// window to move them.
    fn release(&mut self) -> Result<(), MeasureError> {
        self.scatter()?;
        self.apply(&Setting::Unpinned)?;
        pause(self.options.window - self.wait_after_move(), &self.cancelled);
        Ok(())
    }

    fn wait_after_move(&self) -> Duration {
        self.options.window / 5
    }

    /// Measures `setting`. The unpinned windows that this takes are left in [`Self::unpinned`].
    fn measure_setting(
        &mut self,
        setting: &Setting,
        effort: Effort,
    ) -> Result<Measurement, MeasureError> {
        if self.cancelled.came() {
            return Err(MeasureError::interrupted());
        }
        if self.options.floor.is_some() && self.baseline.is_none() && *setting != Setting::Unpinned
        {
            let windows = FIRST_BASELINE;
            let first = self.measure_setting(&Setting::Unpinned, Effort { windows })?;
            self.keep_unpinned(first.performance, windows);
        }
        self.await_contexts()?;
        let _punctual = match RealtimeClass::raise() {
            Ok(raised) => Some(raised),
            Err(error) => {
                self.not_punctual
                    .get_or_insert_with(|| ProgramNote::NotPunctual { error: error.to_string() });
                None
            }
        };
        let wait_after_move = self.wait_after_move();
        if self.setting != *setting {
            self.meter.moved();
        }
        // Also if moving fails half-way.
        let was_pinned = std::mem::replace(&mut self.setting, setting.clone()) != Setting::Unpinned;
        if *setting == Setting::Unpinned && was_pinned {
            self.release()?;
        } else {
            self.apply(setting)?;
        }
        self.settle_memory(setting)?;
        let window =
            (self.options.window - wait_after_move).mul_f64(effort.windows.clamp(0.01, 1e6));
        let measured = match (self.options.floor, setting) {
            (Some(floor), Setting::Pinned(_)) => {
                self.measure_floored(setting, window, effort.windows, floor)?
            }
            _ => self.window(wait_after_move, window)?,
        };
        let changes = self.target.refresh_threads()?;
        self.follow(&changes);
        if let Some(vacant) = self.slots.iter().position(|slot| slot.id.is_none()) {
            let name = &self.workload.threads[vacant].name;
            return Err(MeasureError::new(
                Retry::Same,
                format!("thread {name} ended while it was measured"),
            ));
        }
        self.check_pins(setting)?;
        if *setting == Setting::Unpinned {
            self.know_baseline(measured.performance, effort.windows);
        }
        Ok(measured)
    }

    /// Measures `setting`, which is applied, unless the program falls below the floor with it. That
    /// must happen twice, and each time it was faster unpinned right after. So neither noise nor
    /// the load of others ends a setting. A part of the window is enough to see that the program is
    /// slow.
    fn measure_floored(
        &mut self,
        setting: &Setting,
        window: Duration,
        windows: f64,
        floor: f64,
    ) -> Result<Measurement, MeasureError> {
        let mut tries = 2;
        loop {
            let least = self.baseline.map_or(0.0, |(mean, _)| floor * mean);
            let first = self.window(self.wait_after_move(), window / 4)?;
            let measured = if first.performance < least {
                first
            } else {
                let rest = self.window(Duration::ZERO, window * 3 / 4)?;
                joined(&first, &rest)
            };
            if measured.performance >= least {
                return Ok(measured);
            }
            self.meter.moved();
            self.release()?;
            self.settle_memory(&Setting::Unpinned)?;
            // The program gets as much time to recover as it was held back.
            let now = self.window(self.wait_after_move(), window)?;
            self.know_baseline(now.performance, windows);
            self.keep_unpinned(now.performance, windows);
            let slows = measured.performance < floor * now.performance;
            tries -= 1;
            if slows && tries == 0 {
                return Err(self.below_floor(&measured, &now, floor));
            }
            self.meter.moved();
            self.apply(setting)?;
            self.settle_memory(setting)?;
            if !slows {
                return self.window(self.wait_after_move(), window);
            }
        }
    }

    /// Keeps an unpinned window for the detail of the measurement in hand.
    fn keep_unpinned(&mut self, performance: f64, windows: f64) {
        let after_s = self.begin.elapsed().as_secs_f64();
        self.unpinned.push(UnpinnedWindow { performance, windows, after_s });
    }

    fn below_floor(&self, measured: &Measurement, now: &Measurement, floor: f64) -> MeasureError {
        let show = |one: &Measurement| Scale::new(self.meter.unit(), one.performance);
        let message = format!(
            "the program fell to {}, below the floor of {} of its speed unpinned: {} right after",
            show(measured).show(measured.performance),
            figures::percent(floor),
            show(now).show(now.performance)
        );
        MeasureError::below_floor(message)
    }
}

impl Testbed for LiveTestbed {
    fn machine(&self) -> &Machine {
        &self.machine
    }

    fn workload(&self) -> &Workload {
        &self.workload
    }

    fn unit(&self) -> &Unit {
        self.meter.unit()
    }

    fn measure(&mut self, setting: &Setting, effort: Effort) -> Result<Measurement, MeasureError> {
        self.begin = Instant::now();
        self.unpinned.clear();
        let mut measured = self.measure_setting(setting, effort);
        let detail = FloorDetail::of(std::mem::take(&mut self.unpinned));
        match &mut measured {
            Ok(measurement) => measurement.detail = detail,
            Err(error) => error.detail = detail.map(Box::new),
        }
        measured
    }

    /// Threads that came and went, memory that the kernel moved, and a number that may be a
    /// total's.
    fn disturbances(&self) -> Disturbances {
        let detection = self.meter.counter_detection();
        let doubt =
            detection.filter(|detection| detection.is_doubtful()).map(|_| ProgramNote::MaybeTotal);
        Disturbances {
            others: None,
            notes: self.changed().chain(self.memory.balanced()).chain(doubt).collect(),
        }
    }
}

/// Waits for a steady set of busy threads and a first answer of the meter. Then checks that the set
/// is still the same, because a program that is starting is busy too. Returns the threads, and how
/// long that answer took.
fn first_answer(
    target: &mut Target,
    meter: &mut dyn Meter,
    options: &LiveOptions,
    cancelled: &Interrupt,
) -> Result<(Vec<ScannedThread>, Duration), TargetError> {
    let deadline = Instant::now() + options.patience;
    let stop = || cancelled.came();
    let mut before = target.wait_steady(options.scan, options.patience, cancelled)?;
    loop {
        let asked = Instant::now();
        match meter.measure(Duration::ZERO, options.window, &stop) {
            Err(error)
                if error.interrupted
                    || error.retry == Retry::Never
                    || Instant::now() >= deadline =>
            {
                target.check()?;
                return Err(error.into());
            }
            Err(_) => target.check()?,
            Ok(_) => {
                let answered = asked.elapsed();
                let left = deadline.saturating_duration_since(Instant::now());
                let scanned = target.scan(options.scan, left, cancelled)?;
                if same_crew(&before, &scanned) && scanned.iter().any(|one| one.runs) {
                    return Ok((averaged(&before, scanned), answered));
                }
                let left = deadline.saturating_duration_since(Instant::now());
                before = target.wait_steady(options.scan, left, cancelled)?;
            }
        }
    }
}

/// Two parts of one window, weighted by their length.
fn joined(first: &Measurement, rest: &Measurement) -> Measurement {
    let duration = first.duration + rest.duration;
    let share = first.duration.as_secs_f64() / duration.as_secs_f64().max(f64::MIN_POSITIVE);
    let performance = share * first.performance + (1.0 - share) * rest.performance;
    Measurement { performance, duration, spread: rest.spread.or(first.spread), detail: None }
}
