//! Pins the threads of the workload, and sees whether the pins hold.
//!
//! Others may change affinities too: an administrator, the program, the kernel when a CPU goes
//! offline or a cpuset shrinks. A window in which a pin was lost does not count.
//!
//! *Another moved a thread.* That may pass, so the setting is measured once more. If it happens to
//! the same thread again, the search ends. To go on would be a fight. At the end the thread has
//! what the other gave it.
//!
//! *Contexts of the search are gone.* All threads are released, and the next measurement waits for
//! the contexts. If they do not come back, the search ends. It cannot go on with the others: the
//! bound and the verdict are about all assignments to all contexts.

use super::LiveTestbed;
use super::own_masks::together;
use pinwise_figures as figures;
use pinwise_linux::{
    AffinityError, MovedThread, TargetError, ThreadId, affinity, cpuset_of, likely_pinner, pause,
};
use pinwise_measure::{MeasureError, Pinner, Retry, Setting};
use pinwise_topology::{Assignment, CpuSet};
use std::time::{Duration, Instant};

/// How long a search waits for CPUs that went away. That is enough to switch SMT off and on, or to
/// move a cpuset and back.
const AWAY: Duration = Duration::from_secs(30);
/// From one look for them to the next.
const LOOK: Duration = Duration::from_millis(100);

/// Why a measurement has no contexts for its pins.
#[derive(Debug, thiserror::Error)]
enum ContextsGone {
    /// Contexts of the search are gone.
    #[error(
        "CPU {cpus} went away while {program} was measured (offline, or no longer in its cpuset): \
         waiting for it, at most {}",
        figures::duration(AWAY)
    )]
    Gone { program: String, cpus: CpuSet },
    /// They did not come back.
    #[error(
        "CPU {cpus} went away while {program} was measured and did not come back within {}: it is \
         offline, or no longer in its cpuset; restore it and resume, or start a new search, which \
         takes the others{}{}",
        figures::duration(*waited),
        if others.is_empty() { String::new() } else { format!(" (CPU {others})") },
        if *forgotten { KEPT_OFF } else { "" }
    )]
    StillGone { program: String, cpus: CpuSet, others: CpuSet, waited: Duration, forgotten: bool },
}

/// What an old kernel makes of affinities that are given back without their CPUs.
const KEPT_OFF: &str = "; Linux before 6.2 keeps its threads off that CPU: use taskset -ap when it \
                        is back";

impl From<ContextsGone> for MeasureError {
    fn from(error: ContextsGone) -> Self {
        let retry = match &error {
            ContextsGone::Gone { .. } => Retry::Later,
            ContextsGone::StillGone { .. } => Retry::Never,
        };
        Self::new(retry, error.to_string())
    }
}

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
            if !self.may(thread, leaf) {
                let message = format!(
                    "the assignment puts thread {} on CPU {cpu}, which is not in its affinity",
                    self.workload.threads[thread].name
                );
                return Err(MeasureError::new(Retry::Never, message));
            }
            wanted.extend(slot.id.map(|id| (id, cpu)));
        }
        self.target.pin(&wanted).map_err(|error| match error {
            TargetError::Affinity(AffinityError::Excluded { .. }) => {
                self.contexts_gone().map_or_else(|| error.into(), MeasureError::from)
            }
            error => error.into(),
        })
    }

    /// An error if the measurement of a setting does not count, since pins did not hold.
    pub(super) fn check_pins(&mut self, setting: &Setting) -> Result<(), MeasureError> {
        let moved = self.target.moved()?;
        // Released threads keep their affinities when a CPU goes offline.
        if (!moved.is_empty() || *setting == Setting::Unpinned)
            && let Some(gone) = self.contexts_gone()
        {
            return Err(gone.into());
        }
        // A thread that has ended is found elsewhere.
        let slot = |one: &MovedThread| self.slots.iter().position(|slot| slot.id == Some(one.id));
        let moved: Vec<(usize, CpuSet)> =
            moved.iter().filter_map(|one| Some((slot(one)?, one.now.clone()))).collect();
        if moved.is_empty() {
            return Ok(());
        }
        let by = self.pinner();
        self.pin_history.moved(&moved, &self.workload.threads, by)
    }

    /// Who probably moves its threads.
    fn pinner(&self) -> Pinner {
        let pid = self.target.pids().first().copied();
        pid.map_or(Pinner::Unknown, |pid| likely_pinner(pid, &self.cpuset))
    }

    /// Waits for contexts of the search that went away.
    pub(super) fn await_contexts(&mut self) -> Result<(), MeasureError> {
        if !self.pin_history.away {
            return Ok(());
        }
        let begin = Instant::now();
        let earlier = self.pin_history.waited.as_ref().map_or(Duration::ZERO, |(_, time)| *time);
        while std::mem::take(&mut self.pin_history.away) {
            let Some(ContextsGone::Gone { program, cpus }) = self.contexts_gone() else { break };
            self.target.check()?;
            if self.cancelled.came() {
                return Err(MeasureError::interrupted());
            }
            let over = self.options.until.is_some_and(|until| Instant::now() >= until);
            if over || begin.elapsed() >= AWAY {
                let others = self.contexts().difference(&cpus);
                let waited = begin.elapsed();
                let forgotten = affinity::forgotten(&cpus, &cpus).is_some();
                let gone = ContextsGone::StillGone { program, cpus, others, waited, forgotten };
                return Err(gone.into());
            }
            pause(LOOK, &self.cancelled);
            if let Some((_, waited)) = &mut self.pin_history.waited {
                *waited = earlier + begin.elapsed();
            }
        }
        // What the kernel did meanwhile is known.
        self.target.moved()?;
        Ok(())
    }

    /// The contexts of the search.
    fn contexts(&self) -> CpuSet {
        self.machine.allowed.intersection(&together(&self.affinities))
    }

    /// Says that contexts of the search are gone, if so. Gives all threads their affinities to find
    /// out. The CPUs that the kernel then leaves out are gone, if no cpuset has them.
    fn contexts_gone(&mut self) -> Option<ContextsGone> {
        // A thread is refused if none of its CPUs is left.
        let _ = self.target.unpin();
        let now = self.slots.iter().filter_map(|slot| affinity::get(slot.id?.tid).ok());
        let lacking = gone(&self.contexts(), &now.collect::<Vec<_>>())?;
        let cpusets: Vec<CpuSet> = self.target.pids().into_iter().map(cpuset_of).collect();
        let cpus = gone(&lacking, &cpusets)?;
        let history = &mut self.pin_history;
        history.away = true;
        history.waited.get_or_insert((CpuSet::new(), Duration::ZERO)).0 = cpus.clone();
        Some(ContextsGone::Gone { program: self.target.name().to_owned(), cpus })
    }
}

/// The CPUs of `before` that each set lacks `now`, if there are any.
fn gone(before: &CpuSet, now: &[CpuSet]) -> Option<CpuSet> {
    let gone = before.difference(&together(now));
    (!now.is_empty() && !gone.is_empty()).then_some(gone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_is_gone_if_no_thread_may_use_it_any_more() {
        let set = |list: &str| CpuSet::parse_list(list).unwrap();
        let lost = gone(&set("0-5"), &[set("0-2"), set("1,2")]);
        assert_eq!(lost, Some(set("3-5")));
        // Some other thread may use all.
        assert_eq!(gone(&set("0-5"), &[set("0-2"), set("0-7")]), None);
        assert_eq!(gone(&set("0-5"), &[]), None, "all threads have ended");
        // As in DPDK.
        let own = [set("1"), set("2")];
        assert_eq!(gone(&together(&own), &own), None);
    }

    #[test]
    fn what_is_gone_is_awaited_and_then_named_with_what_is_left() {
        let [cpus, others] = ["3-5", "0-2"].map(|list| CpuSet::parse_list(list).unwrap());
        let gone = ContextsGone::Gone { program: "spin".into(), cpus: cpus.clone() };
        let error = MeasureError::from(gone);
        assert_eq!(error.retry, Retry::Later);
        assert!(error.message.ends_with("waiting for it, at most 30 s"), "{error}");
        let still_gone = |forgotten| {
            let (program, cpus, others) = ("spin".into(), cpus.clone(), others.clone());
            MeasureError::from(ContextsGone::StillGone {
                program,
                cpus,
                others,
                waited: AWAY,
                forgotten,
            })
        };
        let error = still_gone(false);
        assert_eq!(error.retry, Retry::Never);
        assert!(error.message.starts_with("CPU 3-5 went away while spin was measured"), "{error}");
        assert!(error.message.ends_with("which takes the others (CPU 0-2)"), "{error}");
        let error = still_gone(true);
        assert!(error.message.contains("Linux before 6.2 keeps its threads off"), "{error}");
    }
}
