//! Pins the threads of the workload, and sees whether the pins hold.
//!
//! Others may change affinities too: an administrator, the program, the kernel when a CPU goes
//! offline or a cpuset shrinks. A window in which a pin was lost does not count. If contexts of the
//! search are gone, the search cannot go on.

use super::LiveTestbed;
use pinwise_linux::{AffinityError, TargetError, affinity, thread::ThreadId};
use pinwise_measure::{MeasureError, Retry};
use pinwise_topology::{Assignment, CpuSet};

impl LiveTestbed {
    /// Pins the threads. Returns those that have ended.
    pub(super) fn pin(&mut self, assignment: &Assignment) -> Result<Vec<ThreadId>, MeasureError> {
        if assignment.threads() != self.slots.len() {
            let message = format!(
                "an assignment of {} threads does not fit {}, which has {} to place",
                assignment.threads(),
                self.target.name(),
                self.slots.len()
            );
            return Err(MeasureError::new(Retry::Never, message));
        }
        let leaves = &self.leaves;
        let mut wanted = Vec::new();
        for (thread, slot) in self.slots.iter().enumerate() {
            let leaf = assignment.leaf(thread);
            let Some(cpu) = leaves.get(leaf) else {
                let message = format!(
                    "the assignment uses context {leaf}, the machine has {} allowed ones",
                    leaves.len()
                );
                return Err(MeasureError::new(Retry::Never, message));
            };
            wanted.extend(slot.id.map(|id| (id, cpu)));
        }
        self.target.pin(&wanted).map_err(|error| match error {
            TargetError::Affinity(AffinityError::Excluded { .. }) => {
                self.contexts_gone().unwrap_or_else(|| error.into())
            }
            error => error.into(),
        })
    }

    /// An error if a thread is not confined to its context any more.
    pub(super) fn check_pins(&self, assignment: &Assignment) -> Result<(), MeasureError> {
        for (thread, slot) in self.slots.iter().enumerate() {
            let (Some(id), Some(cpu)) = (slot.id, self.leaves.get(assignment.leaf(thread))) else {
                continue;
            };
            match affinity::get(id.tid) {
                Ok(now) if now != *cpu => {
                    let name = &self.workload.threads[thread].name;
                    let message = format!(
                        "something moved thread {name} from CPU {cpu} to {now} during a \
                         measurement: look for taskset, a cpuset, or the program itself"
                    );
                    let moved = || MeasureError::new(Retry::Same, message);
                    return Err(self.contexts_gone().unwrap_or_else(moved));
                }
                // It has ended, which is found elsewhere.
                _ => {}
            }
        }
        Ok(())
    }

    /// The error that contexts of the search are gone, if so. Gives all threads their affinities to
    /// find out. The CPUs that the kernel then leaves out are gone.
    fn contexts_gone(&self) -> Option<MeasureError> {
        // A thread is refused if none of its CPUs is left.
        let _ = self.target.unpin();
        let now = self.slots.iter().filter_map(|slot| affinity::get(slot.id?.tid).ok());
        let before = self.machine.allowed.intersection(&together(&self.affinities));
        gone(self.target.name(), &before, &now.collect::<Vec<_>>())
    }
}

/// What threads with these affinities may use. Threads with one CPU each do not have all contexts.
fn together(affinities: &[CpuSet]) -> CpuSet {
    affinities.iter().fold(CpuSet::new(), |all, one| all.union(one))
}

/// The error that CPUs of `before` are gone, if each thread lacks them `now`.
fn gone(program: &str, before: &CpuSet, now: &[CpuSet]) -> Option<MeasureError> {
    let gone = before.difference(&together(now));
    if now.is_empty() || gone.is_empty() {
        return None;
    }
    let message = format!(
        "CPU {gone} went away while {program} was measured: offline, or no longer in its cpuset; \
         restore it and resume, or start a new search"
    );
    Some(MeasureError::new(Retry::Never, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_is_gone_if_no_thread_may_use_it_any_more() {
        let set = |list: &str| CpuSet::parse_list(list).unwrap();
        let error = gone("spin", &set("0-5"), &[set("0-2"), set("1,2")]).unwrap();
        assert_eq!(error.retry, Retry::Never);
        assert!(error.message.starts_with("CPU 3-5 went away while spin was measured"), "{error}");
        // Some other thread may use all.
        assert_eq!(gone("spin", &set("0-5"), &[set("0-2"), set("0-7")]), None);
        assert_eq!(gone("spin", &set("0-5"), &[]), None, "all threads have ended");
        // As in DPDK.
        let own = [set("1"), set("2")];
        assert_eq!(gone("testpmd", &together(&own), &own), None);
    }
}
