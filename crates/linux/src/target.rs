//! The program under test: launched or attached to. How its threads are pinned and released.

use crate::affinity::{self, AffinityError};
use crate::guardian::{Guardian, GuardianEntry, is_of_kernel, of_heir};
use crate::launch::{Launch, LaunchedProgram};
use crate::memory;
use crate::process;
use crate::process_lock::ProcessLock;
use crate::realtime::{RealtimeClass, share_with_others};
use crate::roster::{Changes, Member, Roster, Scope};
use crate::stream::Streams;
use crate::target_error::TargetError;
use crate::thread::{Pid, StartTime, Stat, ThreadId};
use crate::thread_scan::{HARDLY_RUNS, ScannedThread, same_crew, scan};
use pinwise_measure::{Interrupt, MeasureError, ProgramNote};
use pinwise_topology::{Alike, CpuSet, Machine, SharingTree};
use std::cell::LazyCell;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The machine as far as both the target and pinwise may use it. For each leaf of its sharing tree
/// there is a set of one context.
pub fn common_contexts(
    machine: &Machine,
    name: &str,
    theirs: &CpuSet,
) -> Result<(Machine, Vec<CpuSet>), TargetError> {
    let mut machine = machine.clone();
    let common = machine.allowed.intersection(theirs);
    if common.is_empty() {
        return Err(TargetError::NoCpu {
            name: name.into(),
            theirs: theirs.clone(),
            ours: machine.allowed,
        });
    }
    machine.allowed = common;
    let tree = SharingTree::new(&machine, Alike::default());
    let leaves = tree.leaves().iter().map(|&cpu| [cpu].into_iter().collect()).collect();
    Ok((machine, leaves))
}

/// A thread that was pinned.
#[derive(Debug)]
struct PinnedThread {
    /// What it gets back, as the guardian knows it.
    own: CpuSet,
    /// The pin that it has; `None` if it was given back what it had.
    pin: Option<CpuSet>,
    /// The pin before that, until a refresh finds no thread that may have inherited it.
    earlier: Option<CpuSet>,
    /// The online CPUs that it may use after pinwise set them.
    left: CpuSet,
}

/// A thread that has lost its pin, or what it was given back, and not by pinwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovedThread {
    /// The thread.
    pub id: ThreadId,
    /// The CPUs that it has now, those that are offline included.
    pub now: CpuSet,
}

/// The program under test. To drop it restores its affinities, and ends it if pinwise launched it.
#[derive(Debug)]
pub struct Target {
    name: String,
    roster: Roster,
    running: Option<LaunchedProgram>,
    /// Every thread that was pinned.
    pinned: HashMap<ThreadId, PinnedThread>,
    /// The threads that existed before the first pin, and later ones with one CPU of their own.
    existing: Vec<ThreadId>,
    /// When the first thread was pinned.
    first_pin: Option<StartTime>,
    /// The pins that the guardian knows, with what the thread had before. Those of ended threads
    /// stay until a refresh finds no new thread.
    given: HashMap<(ThreadId, CpuSet), CpuSet>,
    /// Threads that another has moved, until they are asked for.
    moved: Vec<MovedThread>,
    /// The processes the guardian knows.
    guarded: HashSet<(Pid, StartTime)>,
    /// The program that each process ran when it was steady.
    programs: HashMap<(Pid, StartTime), PathBuf>,
    /// `None` only while dropping.
    guardian: Option<Guardian>,
    /// Released after the guardian has put everything back.
    lock: ProcessLock,
}

impl Target {
    /// Starts a program. The streams that are [`Output::Read`](crate::launch::Output::Read) are for
    /// the meter.
    pub fn launch(launch: &Launch) -> Result<(Self, Streams), TargetError> {
        let mut guardian = Guardian::start()?;
        let mut running = launch.start(&mut guardian)?;
        let name = launch.name();
        let streams = running
            .streams()
            .map_err(|cause| TargetError::Launch { program: name.clone(), cause })?;
        let roster = Roster::new(Scope::Trees(vec![running.pid()]))
            .map_err(|cause| TargetError::Proc { name: name.clone(), cause })?;
        let target = Self::new(name, roster, Some(running), Some(guardian));
        Ok((target, streams))
    }

    /// Attaches to processes that already run. Their threads do not keep the caller waiting, if
    /// this process may use the real-time class.
    pub fn attach(scope: Scope) -> Result<Self, TargetError> {
        let _punctual = RealtimeClass::raise();
        let name = match &scope {
            Scope::Processes(pids) | Scope::Trees(pids) => {
                if let Some(&pid) = pids.iter().find(|&&pid| process::ended(pid)) {
                    return Err(TargetError::NoProcess(pid));
                }
                let names: Vec<String> = pids.iter().map(|&pid| described(pid)).collect();
                names.join(", ")
            }
            Scope::Cgroup(path) => format!("cgroup {}", path.display()),
        };
        let roster = Roster::new(scope.clone()).map_err(|cause| match scope {
            Scope::Cgroup(path) => TargetError::Cgroup { path, cause },
            Scope::Processes(_) | Scope::Trees(_) => {
                TargetError::Proc { name: name.clone(), cause }
            }
        })?;
        if roster.members().is_empty() {
            return Err(TargetError::Empty(name));
        }
        let pids: Vec<Pid> = roster.members().iter().map(|member| member.pid).collect();
        let lock = ProcessLock::of(&pids)?;
        let mut target = Self::new(name, roster, None, Some(Guardian::start()?));
        target.lock = lock;
        Ok(target)
    }

    fn new(
        name: String,
        roster: Roster,
        running: Option<LaunchedProgram>,
        guardian: Option<Guardian>,
    ) -> Self {
        Self {
            name,
            roster,
            running,
            pinned: HashMap::new(),
            existing: Vec::new(),
            first_pin: None,
            given: HashMap::new(),
            moved: Vec::new(),
            guarded: HashSet::new(),
            programs: HashMap::new(),
            guardian,
            lock: ProcessLock::default(),
        }
    }

    /// Its name in messages: the command, or names and numbers of the processes.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A note if nothing is kept for the case that pinwise and its guardian are both killed.
    pub fn note(&self) -> Option<ProgramNote> {
        self.guardian.as_ref().and_then(Guardian::note)
    }

    /// Its processes, those the user named first.
    pub fn pids(&self) -> Vec<Pid> {
        self.roster.members().iter().map(|member| member.pid).collect()
    }

    /// Its threads at the last refresh.
    pub fn threads(&self) -> Vec<ThreadId> {
        self.roster.threads().map(|(_, id)| id).collect()
    }

    /// Watches its threads for `window`, or up to `longest` on a crowded machine. They come in the
    /// order of their creation. To raise `cancelled` ends this early.
    pub fn scan(
        &mut self,
        window: Duration,
        longest: Duration,
        cancelled: &Interrupt,
    ) -> Result<Vec<ScannedThread>, TargetError> {
        let _punctual = RealtimeClass::raise();
        self.check()?;
        let stop = || cancelled.came();
        let pause = |time| pause(time, cancelled);
        let scanned = scan(&mut self.roster, window, longest, &pause, &stop);
        let scanned = scanned.map_err(|cause| self.unreadable(cause))?;
        self.check()?;
        Ok(scanned)
    }

    /// Scans until the threads that run in two successive windows exist in both. They need not
    /// run in both. A thread that uses about
    /// [`HARDLY_RUNS`](pinwise_measure::LeftAlone::HARDLY_RUNS) would keep pinwise waiting.
    pub fn wait_steady(
        &mut self,
        window: Duration,
        patience: Duration,
        cancelled: &Interrupt,
    ) -> Result<Vec<ScannedThread>, TargetError> {
        let begin = Instant::now();
        let mut previous: Option<Vec<ScannedThread>> = None;
        loop {
            // A longer scan leaves time for another one.
            let longest = patience.saturating_sub(begin.elapsed()) / 2;
            let scanned = self.scan(window, longest, cancelled)?;
            if cancelled.came() {
                return Err(MeasureError::interrupted().into());
            }
            let busy = scanned.iter().filter(|one| one.share >= HARDLY_RUNS).count();
            share_with_others(busy as f64 / self.mask().len().max(1) as f64);
            let idle = scanned.iter().all(|one| one.share < HARDLY_RUNS);
            if !idle && previous.as_ref().is_some_and(|before| same_crew(before, &scanned)) {
                let members = self.roster.members().iter();
                self.programs = members
                    .filter_map(|member| {
                        Some(((member.pid, member.start), process::program_of(member.pid)?))
                    })
                    .collect();
                return Ok(scanned);
            }
            // One scan alone shows no change.
            if previous.is_some() && begin.elapsed() >= patience {
                // Without patience it still watches twice.
                let (name, waited) = (self.name.clone(), patience.max(window * 2));
                return Err(match idle {
                    true => TargetError::Idle { name, waited, children: self.roster.unwatched() },
                    false => TargetError::Unsteady { name, window: window * 2, waited },
                });
            }
            previous = Some(scanned);
        }
    }

    /// Checks that this process may move a thread of it. Changes nothing.
    ///
    /// # Errors
    /// [`TargetError::Affinity`]: it may move the first thread of none of the processes.
    pub fn check_permission(&self) -> Result<(), TargetError> {
        let mut refused = None;
        for member in self.roster.members() {
            match affinity::may_set(member.pid.main()) {
                Ok(()) | Err(AffinityError::Gone(_)) => return Ok(()),
                Err(error) => refused = Some(error),
            }
        }
        refused.map_or(Ok(()), |error| Err(error.into()))
    }

    /// Checks that it still runs.
    ///
    /// # Errors
    /// [`TargetError::Ended`]: how it ended, and its last line if pinwise launched it.
    pub fn check(&mut self) -> Result<(), TargetError> {
        let name = self.name.clone();
        if let Some(running) = &self.running
            && let Some(status) = running.status()
        {
            return Err(running.ended(&name, status));
        }
        if self.roster.members().iter().all(|member| process::ended(member.pid)) {
            let how =
                " or was restarted while it was measured: attach again with its new number".into();
            return Err(TargetError::Ended { name, how, last: String::new() });
        }
        Ok(())
    }

    /// Whether it ran before pinwise did, and has ended: nothing can start it again.
    pub fn is_gone(&self) -> bool {
        let members = self.roster.members();
        self.running.is_none() && members.iter().all(|member| process::ended(member.pid))
    }

    /// Whether pinwise launched it: then it ends with the search.
    pub fn is_launched(&self) -> bool {
        self.running.is_some()
    }

    /// Whether pinwise launched it and it ended successfully.
    pub fn finished(&self) -> bool {
        let status = self.running.as_ref().and_then(LaunchedProgram::status);
        status.is_some_and(|status| status.success())
    }

    /// The process that runs another program than when it was steady (exec), with that program.
    pub fn replaced(&self) -> Option<(Pid, PathBuf)> {
        self.programs.iter().find_map(|(&(pid, start), before)| {
            let now = process::program_of(pid)?;
            let same = || Stat::read(pid, pid.main()).is_ok_and(|stat| stat.start == start);
            (now != *before && same()).then_some((pid, now))
        })
    }

    /// The process that a thread belongs to, of those that the user named.
    pub fn root_of(&self, id: ThreadId) -> Option<usize> {
        self.roster.member(id.pid).map(|member| member.root)
    }

    /// Finds new and ended processes and threads. Releases the new ones that inherited a pin.
    pub fn refresh(&mut self) -> Result<Changes, TargetError> {
        self.check()?;
        let changes = self.roster.refresh().map_err(|cause| self.unreadable(cause))?;
        let changes = self.release(changes)?;
        if changes.new.is_empty() {
            // Then no thread is unknown whose creator has ended.
            self.given.retain(|(id, _), _| self.pinned.contains_key(id));
        }
        Ok(changes)
    }

    /// Does the same as [`Self::refresh`] for the threads of the known processes.
    pub fn refresh_threads(&mut self) -> Result<Changes, TargetError> {
        self.check()?;
        let changes = self.roster.refresh_threads();
        self.release(changes)
    }

    fn release(&mut self, changes: Changes) -> Result<Changes, TargetError> {
        // Before the first pin there is none to inherit.
        if self.guarded.is_empty() {
            return Ok(changes);
        }
        let mut confined = Vec::new();
        let unpinned = LazyCell::new(|| self.unpinned());
        for &id in &changes.new {
            // One that a control group got later may be older than all pins.
            if self.first_pin.is_some_and(|first| id.start < first) {
                confined.push(id);
                continue;
            }
            match self.release_heir(id, &unpinned) {
                // What it has now is its own. Later it would look like an heir of a later pin.
                Ok(own) if own.len() == 1 => confined.push(id),
                Ok(_) | Err(AffinityError::Gone(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        drop(unpinned);
        if let Some(guardian) = &mut self.guardian
            && !confined.is_empty()
        {
            guardian.enter(&[GuardianEntry::Existing { threads: confined.clone() }])?;
            self.existing.extend(confined);
        }
        if changes.new.is_empty() {
            self.pinned.values_mut().for_each(|thread| thread.earlier = None);
        }
        Ok(changes)
    }

    /// The existing threads that have no pin, with their processes and affinities.
    fn unpinned(&self) -> Vec<(Pid, CpuSet)> {
        let has_none =
            |id: &&ThreadId| self.pinned.get(id).is_none_or(|thread| thread.pin.is_none());
        let existing = self.existing.iter().filter(has_none);
        existing.filter_map(|id| Some((id.pid, affinity::own(id.tid).ok()?))).collect()
    }

    /// Gives a new thread what its creator had, if it inherited a pin. Returns what it has then.
    /// `unpinned` are existing threads without a pin.
    fn release_heir(
        &self,
        id: ThreadId,
        unpinned: &LazyCell<Vec<(Pid, CpuSet)>, impl FnOnce() -> Vec<(Pid, CpuSet)>>,
    ) -> Result<CpuSet, AffinityError> {
        let now = affinity::own(id.tid)?;
        let in_force = |thread: &PinnedThread| {
            [&thread.pin, &thread.earlier].into_iter().flatten().any(|pin| *pin == now)
        };
        // Its creation may have taken longer than a pin was in force, or its creator has ended.
        let any = !self.pinned.values().any(in_force);
        let pinned = self.pinned.iter().filter(|(_, thread)| in_force(thread));
        let pinned = pinned.map(|(id, thread)| (id.pid, &thread.own));
        let given = self.given.iter().filter(|((_, pin), _)| any && *pin == now);
        let pinned = pinned.chain(given.map(|((id, _), own)| (id.pid, own)));
        let others = std::iter::once_with(|| unpinned.iter().cloned()).flatten();
        match of_heir(id.pid, &now, pinned, others) {
            Some(own) => affinity::set(id.tid, &own).map(|()| own),
            None => Ok(now),
        }
    }

    /// Pins each thread to its CPUs, in the order given. Returns the threads that have ended.
    pub fn pin(&mut self, wanted: &[(ThreadId, &CpuSet)]) -> Result<Vec<ThreadId>, TargetError> {
        let mut gone = Vec::new();
        let mut entries = Vec::new();
        for &(id, _) in wanted {
            if self.pinned.contains_key(&id) {
                continue;
            }
            match affinity::own(id.tid) {
                Ok(own) => {
                    if self.guarded.is_empty() {
                        self.first_pin = StartTime::now();
                        self.existing = process::family_threads(&self.pids());
                        let threads = self.existing.clone();
                        entries.push(GuardianEntry::Existing { threads });
                    }
                    let member = self.roster.member(id.pid);
                    entries.extend(member.and_then(|member| introduce(&mut self.guarded, member)));
                    entries.push(GuardianEntry::Thread { id, mask: own.clone() });
                    let left = affinity::get(id.tid).unwrap_or_default();
                    let (pin, earlier) = (None, None);
                    self.pinned.insert(id, PinnedThread { own, pin, earlier, left });
                }
                Err(AffinityError::Gone(_)) => gone.push(id),
                Err(error) => return Err(error.into()),
            }
        }
        entries.extend(self.find_moved());
        let pins = wanted.iter().map(|&(id, cpus)| (id, cpus.clone())).collect();
        let pins = self.not_given(pins);
        if !pins.is_empty() {
            entries.push(GuardianEntry::Pinned { pins });
        }
        // Also without entries: a guardian that was killed is replaced before anything is
        // pinned.
        if let Some(guardian) = &mut self.guardian {
            guardian.enter(&entries)?;
        }
        for &(id, cpus) in wanted {
            match affinity::set(id.tid, cpus) {
                Ok(()) => {
                    if let Some(thread) = self.pinned.get_mut(&id) {
                        thread.earlier = thread.pin.replace(cpus.clone());
                        thread.left = cpus.clone();
                    }
                }
                Err(AffinityError::Gone(_)) => gone.push(id),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(gone)
    }

    /// The pins of these that the guardian does not know yet.
    fn not_given(&mut self, mut pins: Vec<(ThreadId, CpuSet)>) -> Vec<(ThreadId, CpuSet)> {
        pins.retain(|pin| {
            let own = self.pinned.get(&pin.0).map(|thread| thread.own.clone());
            own.is_some_and(|own| self.given.insert(pin.clone(), own).is_none())
        });
        pins
    }

    /// Gives every thread its original mask. If one thread is refused, the others still get theirs.
    pub fn unpin(&mut self) -> Result<(), TargetError> {
        self.note_moved()?;
        let mut done = Ok(());
        let mut less = Vec::new();
        for (&id, thread) in &mut self.pinned {
            let set = affinity::give_back(id.pid, id.tid, &thread.own);
            if set.is_ok() {
                thread.earlier = thread.pin.take();
                thread.left = affinity::get(id.tid).unwrap_or_default();
                // Linux before 6.2 leaves out CPUs that are offline. They may come back.
                let now = (thread.left != thread.own).then(|| affinity::own(id.tid));
                less.extend(
                    now.and_then(Result::ok).filter(|now| *now != thread.own).map(|now| (id, now)),
                );
            }
            done = done.and(ignore_gone(set));
        }
        let less = self.not_given(less);
        if let Some(guardian) = &mut self.guardian
            && !less.is_empty()
        {
            guardian.enter(&[GuardianEntry::Pinned { pins: less }])?;
        }
        Ok(done?)
    }

    /// The threads that another has moved since the last call. What another gave a thread is what
    /// it gets back.
    pub fn moved(&mut self) -> Result<Vec<MovedThread>, TargetError> {
        self.note_moved()?;
        Ok(std::mem::take(&mut self.moved))
    }

    fn note_moved(&mut self) -> Result<(), TargetError> {
        let entries = self.find_moved();
        match &mut self.guardian {
            Some(guardian) if !entries.is_empty() => Ok(guardian.enter(&entries)?),
            _ => Ok(()),
        }
    }

    /// Finds the threads that another has moved. Returns what the guardian must know.
    fn find_moved(&mut self) -> Vec<GuardianEntry> {
        let mut entries = Vec::new();
        for (&id, thread) in &mut self.pinned {
            if affinity::get(id.tid).is_ok_and(|now| now == thread.left) {
                continue;
            }
            let Ok(now) = affinity::own(id.tid) else { continue };
            let expected = thread.pin.as_ref().unwrap_or(&thread.own);
            // CPUs may have gone or come back.
            thread.left = affinity::get(id.tid).unwrap_or_default();
            if now == *expected {
                continue;
            }
            if now != thread.own && !is_of_kernel(id.pid, &now, &thread.own) {
                thread.own = now.clone();
                entries.push(GuardianEntry::Thread { id, mask: now.clone() });
            }
            thread.earlier = thread.pin.take();
            self.moved.push(MovedThread { id, now });
        }
        entries
    }

    /// Has the guardian move the memory of a process to the node `home` if pinwise ends before
    /// [`Self::memory_is_back`]. A program that pinwise launched is ended instead.
    pub fn guard_memory(
        &mut self,
        process: (Pid, StartTime),
        home: u32,
        machine: &Machine,
    ) -> Result<(), TargetError> {
        self.note_memory(process, home, memory::others(home, machine))
    }

    /// Has the guardian leave the memory of a process at `home`.
    pub fn memory_is_back(
        &mut self,
        process: (Pid, StartTime),
        home: u32,
    ) -> Result<(), TargetError> {
        self.note_memory(process, home, BTreeSet::new())
    }

    fn note_memory(
        &mut self,
        (pid, start): (Pid, StartTime),
        home: u32,
        from: BTreeSet<u32>,
    ) -> Result<(), TargetError> {
        let entry = GuardianEntry::Memory { pid, start, from, home };
        self.guardian.as_mut().map_or(Ok(()), |guardian| Ok(guardian.enter(&[entry])?))
    }

    /// Forgets threads that have ended.
    pub fn forget(&mut self, gone: &[ThreadId]) {
        gone.iter().for_each(|id| drop(self.pinned.remove(id)));
    }

    /// The union of the masks that the processes began with.
    pub fn mask(&self) -> CpuSet {
        let threads = self.roster.threads().filter_map(|(_, id)| affinity::own(id.tid).ok());
        self.roster
            .members()
            .iter()
            .map(|member| member.mask.clone())
            .chain(threads)
            .fold(CpuSet::new(), |all, mask| all.union(&mask))
    }

    fn unreadable(&self, cause: io::Error) -> TargetError {
        TargetError::Proc { name: self.name.clone(), cause }
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        // If that fails, a thread gets back what it had at first.
        let _ = self.note_moved();
        // Restores, and ends a program that we launched.
        drop(self.guardian.take());
        if let Some(mut running) = self.running.take() {
            running.end();
            let _ = running.wait();
        }
    }
}

/// The entry for the guardian, unless it knows the process already. The number alone does not say
/// so: another process may have had it before.
fn introduce(guarded: &mut HashSet<(Pid, StartTime)>, member: &Member) -> Option<GuardianEntry> {
    let (pid, start, mask) = (member.pid, member.start, member.mask.clone());
    guarded.insert((pid, start)).then_some(GuardianEntry::Process { pid, start, mask })
}

fn ignore_gone(done: Result<(), AffinityError>) -> Result<(), AffinityError> {
    match done {
        Err(AffinityError::Gone(_)) => Ok(()),
        done => done,
    }
}

/// The name of a process: `redis-server (pid 42)`; `process 42` once it has ended.
pub fn described(pid: Pid) -> String {
    let comm = Stat::read(pid, pid.main()).map(|stat| stat.comm);
    comm.map_or_else(|_| format!("process {pid}"), |comm| format!("{comm} (pid {pid})"))
}

/// Sleeps, and checks every 20 ms whether to stop.
pub fn pause(time: Duration, cancelled: &Interrupt) {
    let end = Instant::now() + time;
    while !cancelled.came() {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        std::thread::sleep(left.min(Duration::from_millis(20)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Killed;
    use std::process::Command;

    #[test]
    fn pins_of_ended_threads_are_kept_until_no_thread_is_new() {
        let child = Killed(Command::new("sleep").arg("60").spawn().unwrap());
        let pid = Pid(child.0.id() as i32);
        let roster = Roster::new(Scope::Processes(vec![pid])).unwrap();
        let mut target = Target::new("sleep".into(), roster, None, None);
        let (_, id) = target.roster.threads().next().unwrap();
        let pin = affinity::own(id.tid).unwrap().first().into_iter().collect();
        assert_eq!(target.pin(&[(id, &pin)]).unwrap(), []);
        target.refresh().unwrap();
        assert_eq!(target.given.len(), 1);
        target.forget(&[id]);
        target.refresh().unwrap();
        assert_eq!(target.given.len(), 0);
    }

    #[test]
    fn the_guardian_hears_of_every_process_once_also_of_one_with_a_number_used_before() {
        let process = |start| Member {
            pid: Pid(7),
            start: StartTime(start),
            root: 0,
            mask: CpuSet::parse_list("0-3").unwrap(),
            threads: Vec::new(),
            task: None,
            links: 0,
        };
        let mut guarded = HashSet::new();
        assert!(introduce(&mut guarded, &process(1)).is_some());
        assert!(introduce(&mut guarded, &process(1)).is_none());
        let entry = introduce(&mut guarded, &process(2));
        assert!(
            matches!(entry, Some(GuardianEntry::Process { start: StartTime(2), .. })),
            "{entry:?}"
        );
    }
}
