//! Where the memory of the program lies, and how it goes with the threads.
//!
//! Memory is moved after a pin and before the window. Unpinned, each process has it where it mostly
//! lay before: the kernel can move the memory of a process, but not each page to its old node.

use super::LiveTestbed;
use pinwise_linux::memory::{balanced_pages, follow, move_to, pages, pages_of};
use pinwise_linux::{MemoryError, thread::Pid};
use pinwise_measure::{
    MeasureError, MemoryPolicy, MemoryUse, NodePages, ProgramNote, Retry, Setting,
};
use pinwise_topology::{Assignment, CpuSet, Machine};
use std::collections::BTreeMap;

/// Less memory than this on other nodes than before is not worth a note.
const NOTABLE: f64 = 0.05;

/// The kernel moves a few pages on every machine with nodes.
const PAGES_NOTABLE: u64 = 256;

/// The memory of a program.
#[derive(Debug)]
pub(super) struct Memory {
    policy: MemoryPolicy,
    /// Where that of each process lay before it was first moved.
    before: BTreeMap<Pid, NodePages>,
    /// The setting for which it lies where it is.
    settled: Setting,
    /// Where it lay under each setting.
    seen: BTreeMap<Setting, NodePages>,
    /// The pages that the kernel had moved by itself at the beginning.
    balanced: Option<u64>,
}

impl Memory {
    pub(super) fn new(policy: MemoryPolicy, machine: &Machine) -> Self {
        let several = machine.memory_nodes().len() > 1;
        Self {
            policy,
            before: BTreeMap::new(),
            settled: Setting::Unpinned,
            seen: BTreeMap::new(),
            balanced: several.then(balanced_pages).flatten(),
        }
    }

    /// What the kernel has moved by itself since.
    pub(super) fn balanced(&self) -> Option<ProgramNote> {
        let pages = balanced_pages()?.checked_sub(self.balanced?)?;
        (pages >= PAGES_NOTABLE).then_some(ProgramNote::NumaBalancing { pages })
    }
}

impl LiveTestbed {
    /// Moves memory to the nodes of the threads, which have their places, and waits for that.
    pub(super) fn settle_memory(&mut self, setting: &Setting) -> Result<(), MeasureError> {
        if self.memory.policy != MemoryPolicy::Follow || self.memory.settled == *setting {
            return Ok(());
        }
        let Setting::Pinned(assignment) = setting else {
            self.move_back();
            return Ok(());
        };
        // Also if moving fails half-way.
        self.memory.settled = setting.clone();
        let threads = self.slots.iter().enumerate();
        let threads: Vec<(Pid, &CpuSet)> = threads
            .filter_map(|(index, slot)| {
                Some((slot.id?.pid, self.leaves.get(assignment.leaf(index))?))
            })
            .collect();
        for &(pid, _) in &threads {
            if !self.memory.before.contains_key(&pid)
                && let Some(lay) = unless_gone(pages(pid))?
            {
                self.memory.before.insert(pid, lay);
            }
        }
        let now = follow(threads, &self.machine).map_err(refused)?;
        self.memory.seen.insert(setting.clone(), now);
        Ok(())
    }

    /// Moves the memory of each process to the nodes where it mostly lay. Returns the share of it
    /// that is elsewhere.
    fn move_back(&mut self) -> f64 {
        self.memory.settled = Setting::Unpinned;
        let (mut elsewhere, mut all) = (0.0, 0.0);
        for (&pid, before) in &self.memory.before {
            let total = before.total() as f64;
            match move_to(pid, &before.home(), &self.machine) {
                Ok(now) => elsewhere += now.apart(before) * total,
                Err(MemoryError::Gone(_)) => continue,
                Err(_) => elsewhere += total,
            }
            all += total;
        }
        if all > 0.0 { elsewhere / all } else { 0.0 }
    }

    /// Ends the search: the threads get their affinities, and memory goes back to where it mostly
    /// lay. The note says if that does not hold.
    pub fn give_memory_back(&mut self) -> Option<ProgramNote> {
        if self.memory.before.is_empty() || self.target.is_launched() {
            return None;
        }
        // First: to move memory takes a while. The guardian does it again.
        let _ = self.target.unpin();
        let share = self.move_back();
        (share > NOTABLE).then_some(ProgramNote::MemoryNotReturned { share })
    }

    /// Where the memory lies, or lay while `assignment` was measured. `None` if it cannot be seen.
    pub fn memory(&self, assignment: Option<&Assignment>) -> Option<MemoryUse> {
        let Memory { policy, seen, .. } = &self.memory;
        let nodes = match policy {
            MemoryPolicy::Follow => seen.get(&Setting::Pinned(assignment?.clone()))?.clone(),
            MemoryPolicy::Leave | MemoryPolicy::Interleave => {
                pages_of(&self.target.pids(), &self.machine).ok()?
            }
        };
        Some(MemoryUse { policy: *policy, nodes })
    }
}

fn refused(error: MemoryError) -> MeasureError {
    MeasureError::new(Retry::Never, error.to_string())
}

fn unless_gone<T>(done: Result<T, MemoryError>) -> Result<Option<T>, MeasureError> {
    match done {
        Ok(value) => Ok(Some(value)),
        Err(MemoryError::Gone(_)) => Ok(None),
        Err(error) => Err(refused(error)),
    }
}

impl Drop for LiveTestbed {
    fn drop(&mut self) {
        self.give_memory_back();
    }
}
