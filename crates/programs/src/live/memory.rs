//! Where the memory of the program lies, and how it goes with the threads.
//!
//! Memory is moved after a pin and before the window. Its place depends on the setting alone. It is
//! on the node of the threads of its process if these run on one node, else at home. Home is the
//! node where it lay before. The kernel cannot put pages back on several nodes, so a process whose
//! memory lies on several is refused.

use super::LiveTestbed;
use pinwise_linux::memory::{
    BalancingCounts, followed, movable_pages, move_to, numa_balancing, page_count, pages_of,
};
use pinwise_linux::{
    MemoryError, Target,
    thread::{Pid, StartTime, Stat},
};
use pinwise_measure::{
    MeasureError, MemoryPolicy, MemoryUse, NodePages, ProgramNote, Retry, Setting,
};
use pinwise_topology::{Assignment, Machine};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

/// Less memory than this on other nodes than before is not worth a note.
const NOTABLE: f64 = 0.05;

/// The memory of a program.
#[derive(Debug)]
pub(super) struct Memory {
    policy: MemoryPolicy,
    processes: Processes,
    /// Where it lay under each setting.
    seen: BTreeMap<Setting, NodePages>,
    /// At the beginning: what NUMA balancing had counted, and the pages of the program.
    balanced: Option<(BalancingCounts, u64)>,
}

/// The processes whose memory follows.
#[derive(Debug, Default)]
struct Processes(BTreeMap<Pid, Process>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Process {
    /// Distinguishes it from a later process of the same number.
    start: StartTime,
    /// Where its memory lay before it was first moved.
    before: NodePages,
    /// For which threads it lies right: next to one node, or, if `Some(None)`, on several nodes or
    /// unpinned. `None`: that is not known. Threads put new pages where they run, so memory at home
    /// is not enough for threads next to that node.
    settled: Option<Option<u32>>,
    /// Whether it was moved, or its parent's.
    moved: bool,
    /// Whether the guardian knows its home.
    guarded: bool,
}

impl Process {
    fn new(start: StartTime, before: NodePages) -> Self {
        Self { start, before, settled: Some(None), moved: false, guarded: false }
    }

    /// One that `self` has forked, maybe while its memory was away.
    fn child(&self, start: StartTime) -> Self {
        Self { start, settled: None, guarded: false, ..self.clone() }
    }

    /// The node to which memory is put back. `None`: it lies on several or has no pages, and is
    /// never moved.
    fn home(&self) -> Option<u32> {
        let home = self.before.home();
        home.first().copied().filter(|_| home.len() == 1)
    }

    /// Where its memory has to go if its threads run next to `near`. `None`: it is there.
    fn way(&self, near: Option<u32>) -> Option<u32> {
        let home = self.home()?;
        (self.settled != Some(near)).then_some(near.unwrap_or(home))
    }
}

impl Processes {
    /// Forgets those that have ended, also if another has the number now.
    fn prune(&mut self, start: impl Fn(Pid) -> Option<StartTime>) {
        self.0.retain(|&pid, process| start(pid) == Some(process.start));
    }

    /// Takes a process in, as the child of a parent whose memory was moved.
    fn take_in(
        &mut self,
        pid: Pid,
        (start, parent): (StartTime, Pid),
        lies: impl FnOnce() -> Result<NodePages, MemoryError>,
    ) -> Result<(), MemoryError> {
        if self.0.contains_key(&pid) {
            return Ok(());
        }
        let process = match self.0.get(&parent) {
            Some(parent) if parent.moved => parent.child(start),
            _ => Process::new(start, lies()?),
        };
        self.0.insert(pid, process);
        Ok(())
    }

    /// Refuses a process whose memory cannot be put back.
    fn check(&self) -> Result<(), MemoryError> {
        let scattered = |process: &Process| process.before.home().len() > 1;
        match self.0.iter().find(|(_, process)| scattered(process)) {
            Some((&pid, process)) => {
                Err(MemoryError::Scattered { pid, lies: process.before.clone() })
            }
            None => Ok(()),
        }
    }
}

impl Memory {
    /// Looks where the memory of the processes `placed` lies.
    pub(super) fn new(
        policy: MemoryPolicy,
        machine: &Machine,
        target: &Target,
        placed: impl Iterator<Item = Pid>,
    ) -> Result<Self, MemoryError> {
        let mut processes = Processes::default();
        if policy == MemoryPolicy::Follow {
            update(&mut processes, placed, machine)?;
            processes.check()?;
        }
        let several = machine.memory_nodes().len() > 1;
        let balanced = several.then(numa_balancing).flatten();
        let balanced = balanced.map(|counts| (counts, page_count(&target.pids())));
        Ok(Self { policy, processes, seen: BTreeMap::new(), balanced })
    }

    /// What the kernel has moved by itself since.
    pub(super) fn balanced(&self) -> Option<ProgramNote> {
        let (before, of) = self.balanced?;
        balancing(numa_balancing()?.since(before)?.moved, of)
    }

    /// The share of the accesses that were local since, of all programs.
    fn local_share(&self) -> Option<f64> {
        numa_balancing()?.since(self.balanced?.0)?.local_share()
    }
}

/// A note on pages that the kernel moved while a program with `of` pages was measured. It counts
/// those of all programs.
fn balancing(pages: u64, of: u64) -> Option<ProgramNote> {
    (pages > of / 100).then_some(ProgramNote::NumaBalancing { pages, of })
}

/// The start of a process that lives, and its parent.
fn life(pid: Pid) -> Option<(StartTime, Pid)> {
    let stat = Stat::read(pid, pid.main()).ok().filter(|stat| !stat.dead())?;
    Some((stat.start, stat.parent))
}

fn start(pid: Pid) -> Option<StartTime> {
    life(pid).map(|(start, _)| start)
}

fn update(
    processes: &mut Processes,
    pids: impl Iterator<Item = Pid>,
    machine: &Machine,
) -> Result<(), MemoryError> {
    processes.prune(start);
    for pid in pids {
        let Some(life) = life(pid) else { continue };
        unless_gone(processes.take_in(pid, life, || movable_pages(pid, machine)))?;
    }
    Ok(())
}

impl LiveTestbed {
    /// Moves memory to where it lies under the setting. The threads have their places.
    pub(super) fn settle_memory(&mut self, setting: &Setting) -> Result<(), MeasureError> {
        if self.memory.policy != MemoryPolicy::Follow {
            return Ok(());
        }
        let begin = Instant::now();
        let threads: Vec<_> = self.slots.iter().map(|slot| slot.id.map(|id| id.pid)).collect();
        let pids: BTreeSet<Pid> = threads.iter().flatten().copied().collect();
        let pids: Vec<Pid> = pids.into_iter().collect();
        update(&mut self.memory.processes, pids.iter().copied(), &self.machine).map_err(refused)?;
        let near = match setting {
            Setting::Pinned(assignment) => {
                let cpus = |index| self.leaves.get(assignment.leaf(index));
                let placed = threads.iter().enumerate();
                let placed = placed.filter_map(|(index, pid)| Some(((*pid)?, cpus(index)?)));
                followed(placed, &self.machine)
            }
            _ => BTreeMap::new(),
        };
        let mut moved = false;
        for (&pid, process) in &mut self.memory.processes.0 {
            let near = near.get(&pid).copied().flatten();
            let Some(node) = process.way(near) else { continue };
            if self.cancelled.came() {
                return Err(MeasureError::interrupted());
            }
            if self.options.until.is_some_and(|until| begin < until && Instant::now() >= until) {
                let over = "the budget ended while memory was moved: raise --budget";
                return Err(MeasureError::new(Retry::Same, over));
            }
            if let Some(home) = process.home().filter(|_| !process.guarded) {
                let id = (pid, process.start);
                self.target.guard_memory(id, home, &self.machine)?;
                process.guarded = true;
            }
            // Also if only some pages can be moved.
            (process.settled, process.moved, moved) = (None, true, true);
            unless_gone(move_to(pid, node, &self.machine)).map_err(refused)?;
            process.settled = Some(near);
        }
        if moved || !self.memory.seen.contains_key(setting) {
            let now = pages_of(&pids, &self.machine).map_err(refused)?;
            self.memory.seen.insert(setting.clone(), now);
        }
        Ok(())
    }

    /// Ends the search: the threads get their affinities, and memory goes back home. The note says
    /// if that does not hold.
    pub fn give_memory_back(&mut self) -> Option<ProgramNote> {
        let mut processes = std::mem::take(&mut self.memory.processes);
        if processes.0.is_empty() || self.target.is_launched() {
            return None;
        }
        // First: to move memory takes a while. The guardian does it again.
        let _ = self.target.unpin();
        processes.0.retain(|_, process| process.moved);
        processes.prune(start);
        for (&pid, process) in &processes.0 {
            let Some(home) = process.home() else { continue };
            // Where the memory lies then shows whether this was refused. If so, or if the guardian
            // does not hear of it, the guardian tries again.
            if move_to(pid, home, &self.machine).is_ok() {
                let _ = self.target.memory_is_back((pid, process.start), home);
            }
        }
        let (mut elsewhere, mut all) = (0.0, 0.0);
        for (&pid, Process { before, .. }) in &processes.0 {
            let (total, home) = (before.total() as f64, before.home());
            let share = match movable_pages(pid, &self.machine) {
                Ok(now) => (now.outside(&home) - before.outside(&home)).abs(),
                Err(MemoryError::Gone(_)) => continue,
                Err(_) => 1.0,
            };
            elsewhere += share * total;
            all += total;
        }
        let share = if all > 0.0 { elsewhere / all } else { 0.0 };
        (share > NOTABLE).then_some(ProgramNote::MemoryNotReturned { share })
    }

    /// Where the memory lies, or lay while `assignment` was measured. `None` if it cannot be seen.
    /// A resumed search has not seen it, and knows the policy alone.
    pub fn memory(&self, assignment: Option<&Assignment>) -> Option<MemoryUse> {
        let Memory { policy, seen, .. } = &self.memory;
        let local = self.memory.local_share();
        let nodes = match policy {
            MemoryPolicy::Follow => {
                seen.get(&Setting::Pinned(assignment?.clone())).cloned().unwrap_or_default()
            }
            MemoryPolicy::Leave | MemoryPolicy::Interleave => {
                pages_of(&self.target.pids(), &self.machine).ok()?
            }
        };
        Some(MemoryUse { policy: *policy, nodes, local })
    }
}

fn refused(error: MemoryError) -> MeasureError {
    MeasureError::new(Retry::Never, error.to_string())
}

fn unless_gone(done: Result<(), MemoryError>) -> Result<(), MemoryError> {
    match done {
        Err(MemoryError::Gone(_)) => Ok(()),
        done => done,
    }
}

impl Drop for LiveTestbed {
    fn drop(&mut self) {
        self.give_memory_back();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lies(pages: &[(u32, u64)]) -> NodePages {
        pages.iter().copied().collect()
    }

    fn with(pids: &[(i32, &[(u32, u64)])]) -> Processes {
        let mut processes = Processes::default();
        for &(pid, pages) in pids {
            let life = (StartTime(pid as u64), Pid(1));
            processes.take_in(Pid(pid), life, || Ok(lies(pages))).unwrap();
        }
        processes
    }

    #[test]
    fn where_memory_goes_follows_from_the_setting_alone() {
        let mut process = Process::new(StartTime(5), lies(&[(0, 2), (1, 98)]));
        // Unpinned, or with threads on several nodes, it is at home.
        assert_eq!(process.way(None), None);
        assert_eq!((process.way(Some(1)), process.way(Some(2))), (Some(1), Some(2)));
        for settled in [Some(Some(0)), Some(Some(2)), None] {
            process.settled = settled;
            assert_eq!((process.way(None), process.way(Some(1))), (Some(1), Some(1)));
        }
        process.settled = Some(Some(2));
        assert_eq!(process.way(Some(2)), None);
    }

    #[test]
    fn memory_on_several_nodes_is_refused_and_never_moved() {
        assert!(with(&[(7, &[(0, 92), (1, 8)]), (8, &[])]).check().is_ok());
        let processes = with(&[(7, &[(0, 99)]), (8, &[(0, 60), (1, 40)])]);
        let refused = processes.check().unwrap_err().to_string();
        let told = "the memory of process 8 is on several nodes (60 % on node 0, 40 % on node 1)";
        assert!(refused.starts_with(told), "{refused}");
        assert_eq!(processes.0[&Pid(8)].way(Some(0)), None);
    }

    #[test]
    fn a_number_that_another_process_has_is_forgotten() {
        let mut processes = with(&[(7, &[(0, 9)]), (8, &[(0, 9)]), (9, &[(0, 9)])]);
        processes.prune(|pid| match pid.0 {
            7 => Some(StartTime(7)),
            8 => Some(StartTime(800)),
            _ => None,
        });
        assert_eq!(processes.0.keys().collect::<Vec<_>>(), [&Pid(7)]);
    }

    #[test]
    fn the_home_of_a_forked_process_is_its_parents() {
        let mut processes = with(&[(7, &[(1, 90)])]);
        let parent = processes.0.get_mut(&Pid(7)).unwrap();
        (parent.settled, parent.moved) = (Some(Some(0)), true);
        // Its own pages came to be where its parent was moved.
        processes.take_in(Pid(8), (StartTime(9), Pid(7)), || Ok(lies(&[(0, 90)]))).unwrap();
        let child = &processes.0[&Pid(8)];
        assert_eq!((child.home(), child.moved), (Some(1), true));
        // Nobody knows where its pages are now.
        assert_eq!((child.way(None), child.way(Some(0))), (Some(1), Some(0)));
        // A parent that stayed says nothing.
        let mut processes = with(&[(7, &[(1, 90)])]);
        processes.take_in(Pid(8), (StartTime(9), Pid(7)), || Ok(lies(&[(0, 90)]))).unwrap();
        assert_eq!(processes.0[&Pid(8)].home(), Some(0));
    }

    #[test]
    fn the_kernel_moves_a_few_pages_on_every_machine() {
        assert_eq!(balancing(256, 100_000), None);
        let note = ProgramNote::NumaBalancing { pages: 2000, of: 100_000 };
        assert_eq!(balancing(2000, 100_000), Some(note));
        assert_eq!(balancing(0, 0), None);
    }
}
