//! The threads of the programs, as they come, run and go.

use pinwise_linux::thread::{SchedulerTimes, Stat};
use pinwise_linux::{Changes, Pid, ThreadId, Tid, affinity};
use pinwise_measure::{CounterEvent, EventCounts, ObservedThread, ProgramProgress};
use pinwise_topology::CpuSet;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Instant;

/// A thread that is followed.
#[derive(Debug)]
pub(super) struct TrackedThread {
    /// Its name in observations.
    number: u64,
    pid: Pid,
    /// The contexts that it may use, in ascending order.
    allowed: Vec<usize>,
    /// The context to which it is kept.
    pub(super) kept: Option<usize>,
    times: SchedulerTimes,
    /// When these were read.
    read: Instant,
    /// The share of the last quantum in which it ran or waited.
    busy: f64,
    counts: Option<EventCounts>,
}

/// A process.
#[derive(Debug)]
struct TrackedProgram {
    number: usize,
    name: String,
}

/// What programs of one name did since the account began.
#[derive(Clone, Debug, Default)]
struct NameAccount {
    pids: BTreeSet<Pid>,
    ran: f64,
    waited: f64,
    instructions: Option<f64>,
}

/// All threads that are followed.
#[derive(Debug, Default)]
pub(super) struct TrackedThreads {
    threads: HashMap<ThreadId, TrackedThread>,
    ids: HashMap<u64, ThreadId>,
    programs: HashMap<Pid, TrackedProgram>,
    /// How many threads and programs there were so far.
    counted: (u64, usize),
    accounts: BTreeMap<String, NameAccount>,
    /// Threads that another has moved: they are left alone.
    others: BTreeSet<Tid>,
}

impl TrackedThreads {
    /// Adds threads that have begun, and removes those that have ended. `contexts` are those that
    /// may be used at all.
    pub(super) fn follow(&mut self, changes: &Changes, contexts: &CpuSet) {
        for id in &changes.gone {
            if let Some(thread) = self.threads.remove(id) {
                self.ids.remove(&thread.number);
            }
            self.others.remove(&id.tid);
        }
        if !changes.gone.is_empty() {
            let living: BTreeSet<Pid> = self.threads.keys().map(|id| id.pid).collect();
            self.programs.retain(|pid, _| living.contains(pid));
        }
        for &id in &changes.new {
            self.add(id, contexts);
        }
    }

    fn add(&mut self, id: ThreadId, contexts: &CpuSet) {
        let (Ok(own), Ok(times)) = (affinity::own(id.tid), SchedulerTimes::read(id.pid, id.tid))
        else {
            return;
        };
        if !self.programs.contains_key(&id.pid) {
            let Ok(stat) = Stat::read(id.pid, id.pid.main()) else { return };
            self.counted.1 += 1;
            let program = TrackedProgram { number: self.counted.1 - 1, name: stat.comm };
            self.programs.insert(id.pid, program);
        }
        self.counted.0 += 1;
        let number = self.counted.0;
        let allowed = own.intersection(contexts).iter().map(|cpu| cpu.0 as usize).collect();
        self.ids.insert(number, id);
        self.threads.insert(
            id,
            TrackedThread {
                number,
                pid: id.pid,
                allowed,
                kept: None,
                times,
                read: Instant::now(),
                busy: 0.0,
                counts: None,
            },
        );
    }

    /// Reads what each thread did since the last look. `counts` has the counts of each.
    pub(super) fn read(&mut self, mut counts: HashMap<ThreadId, EventCounts>, account: bool) {
        for (id, thread) in &mut self.threads {
            let Ok(times) = SchedulerTimes::read(id.pid, id.tid) else { continue };
            let now = Instant::now();
            let past = now.duration_since(thread.read).as_secs_f64().max(1e-6);
            let ran = times.ran.saturating_sub(thread.times.ran).as_secs_f64();
            let waited = times.waited.saturating_sub(thread.times.waited).as_secs_f64();
            (thread.times, thread.read) = (times, now);
            thread.busy = ((ran + waited) / past).min(1.0);
            thread.counts = counts.remove(id);
            if !account || ran + waited == 0.0 {
                continue;
            }
            let Some(program) = self.programs.get(&thread.pid) else { continue };
            if !self.accounts.contains_key(&program.name) {
                self.accounts.insert(program.name.clone(), NameAccount::default());
            }
            let Some(account) = self.accounts.get_mut(&program.name) else { continue };
            account.pids.insert(thread.pid);
            account.ran += ran;
            account.waited += waited;
            let instructions =
                thread.counts.as_ref().and_then(|counts| counts.get(CounterEvent::Instructions));
            if let Some(instructions) = instructions {
                *account.instructions.get_or_insert(0.0) += instructions;
            }
        }
    }

    /// Forgets what programs did.
    pub(super) fn begin_account(&mut self) {
        self.accounts.clear();
    }

    /// What each program did in the seconds since the account began.
    pub(super) fn account(&self, seconds: f64) -> Vec<ProgramProgress> {
        let mut contexts: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
        for thread in self.threads.values() {
            if let (Some(kept), Some(program)) = (thread.kept, self.programs.get(&thread.pid)) {
                contexts.entry(&program.name).or_default().insert(kept);
            }
        }
        let kept = |name: &str| contexts.get(name).into_iter().flatten().copied().collect();
        let rows = self.accounts.iter().map(|(name, account)| ProgramProgress {
            name: name.clone(),
            contexts: kept(name),
            processes: account.pids.len() as u64,
            ran: account.ran / seconds,
            waited: account.waited / seconds,
            instructions: account.instructions.map(|count| count / seconds),
        });
        rows.collect()
    }

    /// All threads that may be moved. With `where_it_ran`, the context of a thread that is kept to
    /// none is the one on which it ran last.
    pub(super) fn observed(&self, where_it_ran: bool) -> Vec<ObservedThread> {
        let free = self.threads.iter().filter(|(id, _)| !self.is_left(**id));
        let observe = |(id, thread): (&ThreadId, &TrackedThread)| {
            let program = self.programs.get(&thread.pid)?.number;
            let ran_on = || {
                let ran = where_it_ran && thread.busy > 0.0;
                let stat = ran.then(|| Stat::read(id.pid, id.tid).ok()).flatten()?;
                stat.cpu.map(|cpu| cpu.0 as usize)
            };
            Some(ObservedThread {
                id: thread.number,
                program,
                allowed: thread.allowed.clone(),
                context: thread.kept.or_else(ran_on),
                busy: thread.busy,
                counts: thread.counts.clone(),
            })
        };
        let mut observed: Vec<ObservedThread> = free.filter_map(observe).collect();
        observed.sort_by_key(|thread| thread.id);
        observed
    }

    /// The thread of a number in observations.
    pub(super) fn id(&self, number: u64) -> Option<ThreadId> {
        self.ids.get(&number).copied()
    }

    /// Notes that a thread is kept to a context from now on.
    pub(super) fn keep(&mut self, id: ThreadId, context: usize) {
        if let Some(thread) = self.threads.get_mut(&id) {
            thread.kept = Some(context);
        }
    }

    /// Notes that no thread is kept to a context.
    pub(super) fn release(&mut self) {
        self.threads.values_mut().for_each(|thread| thread.kept = None);
    }

    /// Leaves a thread alone, since another moves it.
    pub(super) fn leave(&mut self, id: ThreadId) {
        self.others.insert(id.tid);
    }

    /// Whether a thread is left alone.
    pub(super) fn is_left(&self, id: ThreadId) -> bool {
        self.others.contains(&id.tid)
    }

    /// All threads.
    pub(super) fn ids(&self) -> Vec<ThreadId> {
        self.threads.keys().copied().collect()
    }

    /// The name of the program of a thread, and the context to which it is kept.
    pub(super) fn kept_of(&self, id: ThreadId) -> Option<(&str, usize)> {
        let thread = self.threads.get(&id)?;
        Some((&self.programs.get(&thread.pid)?.name, thread.kept?))
    }
}
