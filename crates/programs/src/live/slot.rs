//! Assigns each thread of the workload to a live thread, also after threads end and new ones start.

use super::LiveTestbed;
use super::own_masks::together;
use pinwise_linux::{
    Changes, affinity, pause,
    thread::{Stat, ThreadId},
};
use pinwise_measure::{MeasureError, Retry, Thread};
use std::time::{Duration, Instant};

/// How long a placed thread that ended may take to be created again.
const RESPAWN: Duration = Duration::from_secs(1);

/// A slot in the workload, and the thread that has it.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) comm: String,
    pub(super) process: usize,
    pub(super) id: Option<ThreadId>,
}

impl LiveTestbed {
    /// Updates the slots after threads came and went. Returns whether any did.
    pub(super) fn follow(&mut self, changes: &Changes) -> bool {
        for slot in &mut self.slots {
            if slot.id.is_some_and(|id| changes.gone.contains(&id)) {
                slot.id = None;
            }
        }
        self.target.forget(&changes.gone);
        self.late.retain(|id| !changes.gone.contains(id));
        self.late_seen += changes.new.len();
        self.late.extend(&changes.new);
        !changes.new.is_empty() || !changes.gone.is_empty()
    }

    /// Gives the slot of a thread that ended to the next thread of its name, once that exists.
    pub(super) fn fill_vacancies(&mut self) -> Result<(), MeasureError> {
        let deadline = Instant::now() + RESPAWN;
        loop {
            for late in std::mem::take(&mut self.late) {
                // A new thread has its creator's name at first. So read the name again while a
                // place is vacant.
                let comm = Stat::read(late.pid, late.tid).map(|stat| stat.comm).unwrap_or_default();
                let process = self.target.root_of(late);
                let own = affinity::own(late.tid).unwrap_or_default();
                let all = together(&self.leaves);
                let fits = |(slot, thread): &(&Slot, &Thread)| {
                    let of_name = slot.comm == comm && Some(slot.process) == process;
                    // Not outside its own affinity.
                    let may = thread.keeps_to.as_ref().unwrap_or(&all).is_subset(&own);
                    slot.id.is_none() && of_name && may
                };
                let vacancy =
                    self.slots.iter().zip(&self.workload.threads).position(|one| fits(&one));
                match vacancy {
                    Some(slot) => {
                        self.slots[slot].id = Some(late);
                        self.respawned += 1;
                        self.late_seen -= 1;
                    }
                    None => self.late.push(late),
                }
            }
            let Some(vacant) = self.slots.iter().position(|slot| slot.id.is_none()) else {
                return Ok(());
            };
            if Instant::now() >= deadline {
                return Err(MeasureError::new(Retry::Never, self.thread_ended(vacant)));
            }
            if self.cancelled.came() {
                return Err(MeasureError::interrupted());
            }
            pause(Duration::from_millis(5), &self.cancelled);
            let changes = self.target.refresh()?;
            self.follow(&changes);
        }
    }

    fn thread_ended(&self, vacant: usize) -> String {
        let name = self.target.name();
        if let Some((pid, program)) = self.target.replaced() {
            return format!(
                "process {pid} of {name} became another program ({}), and its threads are gone: \
                 start again with the new program",
                program.display()
            );
        }
        format!(
            "thread {} of {name} ended and no other took its place: start again to place the \
             remaining threads",
            self.workload.threads[vacant].name
        )
    }
}
