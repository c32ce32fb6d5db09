//! The operating system: contexts, threads and the events that move them.
//!
//! Each context runs one thread until its burst or its time slice ends; timers wake sleepers. The
//! next event is the earliest of these. Bursts are stretched together when the number of the
//! program's running threads changes and its memory share is not 0. `dispatch` decides who runs
//! where, `execute` what a thread does next.
//!
//! It models run queues with priorities and time slices, wake-up placement, preemption, balancing
//! and idle contexts that steal work. Switches, wake-ups and cold caches have costs. It also has
//! mutexes, condition variables, barriers, bounded queues, input and output, a memory system that
//! saturates, and other programs. Not modelled: simultaneous multithreading, caches shared by
//! neighbours, paging, interrupts other than as background threads.

mod dispatch;
mod execute;

use crate::accounting::{Accounts, ThreadAccount};
use crate::memory::MemoryStretch;
use crate::other_programs::{BurstClock, OtherPrograms};
use crate::platform::Platform;
use crate::runqueue::RunQueue;
use crate::synchronization::{Barrier, Mutex, Queue, ThreadIndex};
use crate::thread::{Action, Body, Burst, Owner, Phase, SimulatedThread, Span, State, Wait};
use crate::time::Nanos;
use crate::timesharing;
use pinwise_topology::Random;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What a program is made of, ready to run.
#[derive(Clone, Debug)]
pub(crate) struct Parts {
    /// The main thread first: it creates the others.
    pub(crate) bodies: Vec<Body>,
    pub(crate) mutexes: usize,
    /// How many come to each barrier.
    pub(crate) barriers: Vec<usize>,
    /// Capacity and number of producers of each queue.
    pub(crate) queues: Vec<(usize, usize)>,
    /// Share of the memory system.
    pub(crate) memory: f64,
    /// Per thread, in KiB.
    pub(crate) working_set: f64,
    /// How long it takes to make one thread, on top of what the platform takes.
    pub(crate) create: Nanos,
}

/// The program can never go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Stuck {
    /// Every thread that is left waits for another.
    #[error("deadlock after {:.3} s: {waiting} threads wait for each other", at.seconds())]
    Deadlock {
        /// When.
        at: Nanos,
        /// How many.
        waiting: usize,
    },
}

#[derive(Clone, Debug)]
struct ContextState {
    running: Option<ThreadIndex>,
    /// Nothing has run since the last thread left.
    idle: bool,
    /// Up to when the running thread's time is charged.
    since: Nanos,
    burst_end: Nanos,
    slice_end: Nanos,
    queue: RunQueue,
    busy: Nanos,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    Wake(ThreadIndex),
    /// The next burst of a thread of another program begins, or the present one ends.
    Turn(ThreadIndex),
    /// Idle contexts look for threads to take away.
    Steal,
    /// Once a second.
    Look,
}

/// A program running on a platform.
#[derive(Clone, Debug)]
pub(crate) struct Kernel<'a> {
    platform: &'a Platform,
    threads: Vec<SimulatedThread>,
    /// Of the last threads.
    others: Vec<BurstClock>,
    /// The time by the clock of other programs at which the run began.
    began: Nanos,
    contexts: Vec<ContextState>,
    mutexes: Vec<Mutex>,
    barriers: Vec<Barrier>,
    queues: Vec<Queue>,
    memory: MemoryStretch,
    working_set: f64,
    stretch: f64,
    timers: BinaryHeap<Reverse<(Nanos, u64, Timer)>>,
    /// When idle contexts look for work next.
    steal_due: Nanos,
    /// Orders timers of the same moment.
    order: u64,
    /// Contexts where a thread of higher priority than the running one has been queued.
    to_preempt: Vec<usize>,
    now: Nanos,
    random: Random,
    /// Threads of the program that have not ended.
    live: usize,
    /// Those of them that wait for others.
    stopped: usize,
}

impl<'a> Kernel<'a> {
    pub(crate) fn new(platform: &'a Platform, parts: Parts, seed: u64) -> Self {
        let packages = platform.packages().len();
        let live = parts.bodies.len();
        let daemon = |index: usize| {
            SimulatedThread::new(Self::daemon(platform), index % packages, Owner::System)
        };
        let threads: Vec<SimulatedThread> = (parts.bodies.into_iter().enumerate())
            .map(|(index, body)| SimulatedThread::new(body, index % packages, Owner::Program))
            .chain((0..platform.daemons.count).map(daemon))
            .collect();
        let context = ContextState {
            running: None,
            idle: true,
            since: Nanos(0),
            burst_end: Nanos::NEVER,
            slice_end: Nanos::NEVER,
            queue: RunQueue::default(),
            busy: Nanos(0),
        };
        let mut kernel = Self {
            platform,
            contexts: vec![context; platform.contexts()],
            mutexes: vec![Mutex::default(); parts.mutexes],
            barriers: parts.barriers.into_iter().map(Barrier::new).collect(),
            queues: parts
                .queues
                .into_iter()
                .map(|(capacity, producers)| Queue::new(capacity, producers))
                .collect(),
            memory: MemoryStretch::new(parts.memory, platform.contexts()),
            working_set: parts.working_set,
            stretch: 1.0,
            timers: BinaryHeap::new(),
            steal_due: Nanos::NEVER,
            order: 0,
            to_preempt: Vec::new(),
            now: Nanos(0),
            random: Random::new(seed),
            live,
            stopped: 0,
            threads,
            others: Vec::new(),
            began: Nanos(0),
        };
        kernel.start(parts.create + platform.costs.create);
        kernel
    }

    /// The main thread creates the others one after the other; daemons come at a random moment of
    /// their period.
    fn start(&mut self, create: Nanos) {
        for thread in 0..self.threads.len() {
            let at = if self.threads[thread].owner == Owner::Program {
                Nanos(create.0 * thread as u64)
            } else {
                Nanos((self.platform.daemons.period.0 as f64 * self.random.unit()) as u64)
            };
            self.timer(at, Timer::Wake(thread));
        }
        self.timer(timesharing::LOOK, Timer::Look);
    }

    fn daemon(platform: &Platform) -> Body {
        let span = |mean: Nanos| Span { mean: mean.0 as f64, spread: 1.0 };
        let script = [
            Action::Compute(span(platform.daemons.burst)),
            Action::Sleep { span: span(platform.daemons.period), chance: 1.0 },
        ];
        Body { role: "daemon".to_owned(), script: script.into(), rounds: u64::MAX, output: None }
    }

    /// Beside other programs, whose clock stands at `began` now. They ran before, so their threads
    /// stand anywhere in their class. Waiting threads are looked at once a second of that clock.
    pub(crate) fn beside(mut self, others: &[OtherPrograms], began: Nanos, seed: u64) -> Self {
        let packages = self.platform.packages().len() as u64;
        let endless = Action::Compute(Span { mean: 1e15, spread: 0.0 });
        let body = Body {
            role: "others".to_owned(),
            script: [endless].into(),
            rounds: u64::MAX,
            output: None,
        };
        self.began = began;
        for habit in others.iter().flat_map(|one| std::iter::repeat_n(one, one.threads as usize)) {
            let (id, number) = (self.threads.len(), self.others.len() as u64);
            let seed = seed ^ (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let clock = BurstClock::new(*habit, seed).at(began);
            let first = if clock.busy { Nanos(0) } else { clock.until - began };
            self.others.push(clock);
            let home = self.random.below(packages) as usize;
            self.threads.push(SimulatedThread::new(body.clone(), home, Owner::Other));
            self.place(id);
            self.timer(first, Timer::Turn(id));
        }
        if !self.others.is_empty() {
            self.timers.retain(|Reverse((.., timer))| *timer != Timer::Look);
            let left = timesharing::LOOK.0 - began.0 % timesharing::LOOK.0;
            self.timer(Nanos(left), Timer::Look);
        }
        self
    }

    /// The program has run for long. So its threads stand anywhere in their class, not at its top
    /// where they began.
    pub(crate) fn under_way(mut self) -> Self {
        for id in 0..self.threads.len() {
            if self.threads[id].owner == Owner::Program {
                self.place(id);
            }
        }
        self
    }

    /// Puts a thread that has not run yet anywhere in the class.
    fn place(&mut self, id: ThreadIndex) {
        let priority = self.random.below(u64::from(timesharing::TOP) + 1) as u8;
        let thread = &mut self.threads[id];
        (thread.priority, thread.slice) = (priority, timesharing::slice(priority));
    }

    /// Runs until `until`, or until the program has ended, whichever comes first.
    pub(crate) fn advance(&mut self, until: Nanos) -> Result<(), Stuck> {
        while self.live > 0 {
            if self.stopped == self.live {
                return Err(Stuck::Deadlock { at: self.now, waiting: self.stopped });
            }
            let (at, context) = self.next_end();
            let timer = self.timers.peek().map_or(Nanos::NEVER, |Reverse((at, ..))| *at);
            if at.min(timer) > until {
                self.now = until;
                break;
            }
            self.now = at.min(timer);
            if timer <= at {
                if let Some(Reverse((.., timer))) = self.timers.pop() {
                    self.ring(timer);
                }
            } else if self.contexts[context].burst_end <= at {
                self.settle(context);
                self.proceed(context);
            } else {
                self.end_slice(context);
            }
            while let Some(context) = self.to_preempt.pop() {
                self.preempt(context);
            }
            self.stretch_all();
        }
        for context in 0..self.contexts.len() {
            self.settle(context);
        }
        for thread in &mut self.threads {
            thread.charge_waiting(self.now);
        }
        Ok(())
    }

    /// The program's threads all ended.
    pub(crate) fn finished(&self) -> bool {
        self.live == 0
    }

    pub(crate) fn accounts(&self) -> Accounts {
        let of = |owner| self.threads.iter().filter(move |thread| thread.owner == owner);
        let threads = of(Owner::Program)
            .map(|thread| ThreadAccount { role: thread.body.role.clone(), account: thread.account })
            .collect();
        Accounts {
            at: self.now,
            busy: self.contexts.iter().map(|context| context.busy).sum(),
            others: of(Owner::Other).map(|thread| thread.account.busy()).sum(),
            threads,
        }
    }

    /// The earliest end of a burst or a slice, and where.
    fn next_end(&self) -> (Nanos, usize) {
        let ends = self.contexts.iter().enumerate();
        ends.map(|(index, context)| (context.burst_end.min(context.slice_end), index))
            .min()
            .unwrap_or((Nanos::NEVER, 0))
    }

    fn timer(&mut self, at: Nanos, timer: Timer) {
        self.order += 1;
        self.timers.push(Reverse((at, self.order, timer)));
    }

    fn ring(&mut self, timer: Timer) {
        match timer {
            Timer::Wake(thread) => self.wake(thread),
            Timer::Turn(thread) => self.turn(thread),
            Timer::Steal => self.steal_everywhere(),
            Timer::Look => self.look(),
        }
    }

    /// Charges the running thread of `context` up to now.
    fn settle(&mut self, context: usize) {
        let place = &mut self.contexts[context];
        let span = self.now - place.since;
        place.since = self.now;
        if let Some(thread) = place.running {
            place.busy += span;
            let stretch = self.stretch_of(thread);
            self.threads[thread].consume(span, stretch);
        }
    }

    fn stretch_of(&self, thread: ThreadIndex) -> f64 {
        let thread = &self.threads[thread];
        let uses_memory = thread.owner == Owner::Program && thread.burst.uses_memory();
        if uses_memory { self.stretch } else { 1.0 }
    }

    /// When the burst of the running thread of `context` will end, as things stand.
    fn foresee(&mut self, context: usize) {
        if let Some(thread) = self.contexts[context].running {
            let needs = self.threads[thread].needs(self.stretch_of(thread));
            self.contexts[context].burst_end = self.now + needs;
        }
    }

    /// Stretches all bursts alike when the number of threads that use memory has changed.
    fn stretch_all(&mut self) {
        let running = self.contexts.iter().filter_map(|context| context.running);
        let using = running
            .filter(|&thread| {
                let thread = &self.threads[thread];
                thread.owner == Owner::Program && thread.burst.uses_memory()
            })
            .count();
        let stretch = self.memory.stretch(using);
        if stretch != self.stretch {
            for context in 0..self.contexts.len() {
                self.settle(context);
            }
            self.stretch = stretch;
            for context in 0..self.contexts.len() {
                self.foresee(context);
            }
        }
    }
}

#[cfg(test)]
mod tests;
