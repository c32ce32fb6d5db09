//! What a thread does, step by step, and where it stands.

use crate::accounting::Account;
use crate::synchronization::ThreadIndex;
use crate::time::Nanos;
use crate::timesharing;
use pinwise_topology::Random;
use std::collections::VecDeque;
use std::sync::Arc;

/// A span drawn again each time: uniform within `mean` times 1 - `spread` to 1 + `spread`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Span {
    /// In nanoseconds.
    pub(crate) mean: f64,
    /// In `[0, 1]`.
    pub(crate) spread: f64,
}

impl Span {
    pub(crate) fn draw(self, random: &mut Random) -> f64 {
        if self.spread == 0.0 {
            self.mean
        } else {
            self.mean * (1.0 + self.spread * (2.0 * random.unit() - 1.0))
        }
    }
}

/// One step of a thread. Locks, barriers and queues are indices into those of the program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Action {
    /// Computes, in nanoseconds of work alone on the machine.
    Compute(Span),
    /// Takes one of the mutexes `first..first + count`, at random.
    Lock { first: usize, count: usize },
    /// Releases the mutex taken last.
    Unlock,
    /// With probability `chance`: waits for input or output.
    Sleep { span: Span, chance: f64 },
    /// Waits for all others. To wait for the end of other threads' work (a join) counts as sleep,
    /// as `lwp_wait` does. Anything else counts as waiting for a lock.
    Barrier { barrier: usize, join: bool },
    /// Takes an item, waiting for one; the thread ends when none will come.
    Pop(usize),
    /// Puts an item in, waiting for room.
    Push(usize),
}

/// A thread as a program describes it.
#[derive(Clone, Debug)]
pub(crate) struct Body {
    pub(crate) role: String,
    /// Done again and again.
    pub(crate) script: Arc<[Action]>,
    /// How often.
    pub(crate) rounds: u64,
    /// The queue it puts into, to be left at the end.
    pub(crate) output: Option<usize>,
}

/// Which step a thread is in the middle of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Begins the step it stands at.
    Begin,
    /// Reaches for the mutex.
    Reach(usize),
    /// Spins for the mutex.
    Spin(usize),
    /// Was woken for the mutex, or is back on its context. It tries again, or sleeps again.
    Retry(usize),
    /// Arrives at the barrier.
    Arrive(usize),
    /// Spins at the barrier.
    SpinAt(usize),
    /// Takes from the queue.
    Take(usize),
    /// Puts into the queue.
    Put(usize),
    /// Wakes, one after the other, the threads of its list.
    Wake,
}

/// Why a thread that does not want a context waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    Lock,
    Join,
    Sleep,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    New,
    Queued,
    Running(usize),
    Waiting(Wait),
    Done,
}

/// What a running thread's time is spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Burst {
    /// The program's own work: what progress is counted in.
    Work,
    /// Instructions around it: locks, barriers, queues.
    User,
    System,
    Spin,
}

impl Burst {
    /// It slows down, and slows others down, where the memory system is saturated.
    pub(crate) fn uses_memory(self) -> bool {
        matches!(self, Self::Work | Self::User)
    }
}

/// Whose a thread is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The program that is watched.
    Program,
    /// The operating system: above all others in priority.
    System,
    /// Another program. It shares time with the one that is watched.
    Other,
}

/// A thread as the kernel sees it.
#[derive(Clone, Debug)]
pub(crate) struct SimulatedThread {
    pub(crate) body: Body,
    pub(crate) step: usize,
    pub(crate) rounds: u64,
    pub(crate) phase: Phase,
    pub(crate) state: State,
    /// Since when it is in its state, according to its account.
    pub(crate) since: Nanos,
    /// Left to do before the phase goes on. The order is: for the operating system, for the cache,
    /// and of the phase itself.
    pub(crate) overhead: f64,
    pub(crate) refill: f64,
    pub(crate) work: f64,
    pub(crate) burst: Burst,
    pub(crate) owner: Owner,
    pub(crate) priority: u8,
    pub(crate) slice: Nanos,
    pub(crate) looks: u32,
    /// The package it belongs to.
    pub(crate) home: usize,
    pub(crate) last: Option<usize>,
    pub(crate) last_ran: Nanos,
    /// When it entered its run queue.
    pub(crate) queued: Nanos,
    pub(crate) held: Option<usize>,
    pub(crate) to_wake: VecDeque<ThreadIndex>,
    pub(crate) leaving: bool,
    pub(crate) account: Account,
}

impl SimulatedThread {
    pub(crate) fn new(body: Body, home: usize, owner: Owner) -> Self {
        let is_system = owner == Owner::System;
        let priority = if is_system { timesharing::SYSTEM } else { timesharing::TOP };
        Self {
            rounds: body.rounds,
            body,
            step: 0,
            phase: Phase::Begin,
            state: State::New,
            since: Nanos(0),
            overhead: 0.0,
            refill: 0.0,
            work: 0.0,
            burst: Burst::User,
            owner,
            priority,
            slice: timesharing::slice(priority),
            looks: 0,
            home,
            last: None,
            last_ran: Nanos(0),
            queued: Nanos(0),
            held: None,
            to_wake: VecDeque::new(),
            leaving: false,
            account: Account::default(),
        }
    }

    /// Charges the time up to `now` to the state it is in. A running thread's is charged by its
    /// context.
    pub(crate) fn charge_waiting(&mut self, now: Nanos) {
        let span = now - self.since;
        match self.state {
            State::Queued => self.account.latency += span,
            State::Waiting(Wait::Lock) => self.account.lock += span,
            State::Waiting(Wait::Join | Wait::Sleep) => self.account.sleep += span,
            State::New | State::Running(_) | State::Done => return,
        }
        self.since = now;
    }

    /// Does `work` nanoseconds of `burst` next.
    pub(crate) fn set_burst(&mut self, burst: Burst, work: f64) {
        self.burst = burst;
        self.work = work;
    }

    /// Uses up `span` of its time on a context. The operating system comes first, then the cache,
    /// then its work, stretched.
    pub(crate) fn consume(&mut self, span: Nanos, stretch: f64) {
        let mut left = span.0 as f64;
        let overhead = left.min(self.overhead);
        self.overhead -= overhead;
        left -= overhead;
        let refill = left.min(self.refill);
        self.refill -= refill;
        left -= refill;
        let done = self.work.min(left / stretch);
        self.work -= done;
        if self.burst == Burst::Work {
            self.account.work += Nanos(done.round() as u64);
        }
        let for_system =
            if self.burst == Burst::System { span.0 as f64 - refill } else { overhead };
        let system = Nanos((for_system.round() as u64).min(span.0));
        self.account.system += system;
        self.account.user += span - system;
    }

    /// How long it needs its context until its phase goes on.
    pub(crate) fn needs(&self, stretch: f64) -> Nanos {
        Nanos((self.overhead + self.refill + self.work * stretch).ceil() as u64)
    }
}
