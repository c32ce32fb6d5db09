//! Which threads are worth placing.
//!
//! Real programs have threads that hardly run: signal handlers, telemetry, allocator helpers.
//! Placing one multiplies the number of assignments and changes nothing, so pinwise leaves them
//! alone. The criterion is the share of a CPU that a thread would use if it never had to wait
//! ([`CpuDemand`]). It comes from the kernel's own account over a window.
//!
//! A thread that hardly got a CPU in the window has shown nothing yet. On such a crowded machine
//! the window is extended. It ends when every thread has had some time or the limit is reached.

use crate::cpu_demand::{CpuDemand, ThreadSample};
use crate::roster::Roster;
use crate::thread::{SchedulerTimes, Stat, ThreadId};
use crate::thread_names::{self, UnnamedThread};
use pinwise_measure::{LeftAlone, Thread};
use std::collections::{HashMap, HashSet};
use std::io;
use std::time::{Duration, Instant};

/// A thread that would use a smaller share of a CPU is left alone, unless the others hardly want
/// more.
pub(crate) const HARDLY_RUNS: f64 = LeftAlone::HARDLY_RUNS;

/// Between two looks at every thread.
const LOOK: Duration = Duration::from_millis(10);
/// The longest part of the time that looking may take is one in this number. A look at a thousand
/// threads costs some milliseconds.
const LOOKING: u32 = 20;
/// A thread has shown what it does once it ran or slept for this part of the window.
const CHANCE: u32 = 10;
/// The window is extended to this many times its length at most.
const EXTENDED: u32 = 10;

/// Whether a thread that would use `share` of a CPU is worth placing, if the busiest would use
/// `busiest`. If all hardly run, those count that would use a tenth of the busiest.
pub fn worth_placing(share: f64, busiest: f64) -> bool {
    share > 0.0 && (share >= HARDLY_RUNS || share >= busiest / 10.0)
}

/// A thread and how much it ran.
#[derive(Clone, Debug, PartialEq)]
pub struct ScannedThread {
    /// The thread.
    pub id: ThreadId,
    /// The thread, with its name.
    pub thread: Thread,
    /// Its name as the kernel has it.
    pub comm: String,
    /// Which of the processes the user named it belongs to.
    pub process: usize,
    /// Share of one CPU it would have used without waiting for one, 0 to 1.
    pub share: f64,
    /// Whether it is worth placing.
    pub runs: bool,
}

/// Reads what a thread has run so far, and its name.
pub fn sample(id: ThreadId, at: Duration) -> io::Result<(ThreadSample, String)> {
    let account = SchedulerTimes::read(id.pid, id.tid)?;
    let stat = Stat::read(id.pid, id.tid)?;
    Ok((ThreadSample { at, account, runnable: stat.state == 'R' }, stat.comm))
}

/// Watches every thread for `window`, or up to `longest` on a crowded machine. The answer is in the
/// order of creation. Threads that appear meanwhile are left to the next scan: they may not have
/// run long enough to have a name of their own. `pause` sleeps; `cancelled` ends the scan early.
pub(crate) fn scan(
    roster: &mut Roster,
    window: Duration,
    longest: Duration,
    pause: &dyn Fn(Duration),
    cancelled: &dyn Fn() -> bool,
) -> io::Result<Vec<ScannedThread>> {
    roster.refresh()?;
    let begin = Instant::now();
    let first_look = |(_, id): (_, ThreadId)| {
        let (seen, comm) = sample(id, begin.elapsed()).ok()?;
        Some((id, (CpuDemand::from(seen), comm)))
    };
    let mut demands: HashMap<ThreadId, (CpuDemand, String)> =
        roster.threads().filter_map(first_look).collect();
    let mut cost = begin.elapsed();
    let extended = longest.min(window * EXTENDED);
    loop {
        pause(LOOK.max(cost * LOOKING));
        let looked = Instant::now();
        // Those that ended leave it.
        demands.retain(|&id, (demand, name)| {
            sample(id, begin.elapsed()).is_ok_and(|(seen, comm)| {
                demand.see(seen);
                *name = comm;
                true
            })
        });
        cost = looked.elapsed();
        let elapsed = begin.elapsed();
        let heard = || demands.values().all(|(demand, _)| demand.own() >= window / CHANCE);
        if cancelled() || elapsed >= window && (elapsed >= extended || heard()) {
            break;
        }
    }
    let elapsed = begin.elapsed();
    roster.refresh()?;
    let seen: Vec<(ThreadId, usize, String, f64)> = roster
        .threads()
        .filter_map(|(member, id)| {
            let (demand, comm) = demands.remove(&id)?;
            Some((id, member.root, comm, demand.share(elapsed)))
        })
        .collect();
    let found: Vec<UnnamedThread<'_>> = seen
        .iter()
        .map(|(_, process, comm, _)| UnnamedThread { comm, process: *process })
        .collect();
    let threads = thread_names::name(&found);
    let busiest = seen.iter().map(|(_, _, _, share)| *share).fold(0.0, f64::max);
    let named = seen.into_iter().zip(threads);
    Ok(named
        .map(|((id, process, comm, share), thread)| ScannedThread {
            id,
            thread,
            comm,
            process,
            share,
            runs: worth_placing(share, busiest),
        })
        .collect())
}

/// The later of two scans, with the shares of both averaged. A helper near the limit is then judged
/// by twice the time. A thread that began to work only in the second scan still counts.
pub fn averaged(before: &[ScannedThread], mut after: Vec<ScannedThread>) -> Vec<ScannedThread> {
    for one in &mut after {
        if let Some(earlier) = before.iter().find(|earlier| earlier.id == one.id) {
            one.share = (one.share + earlier.share) / 2.0;
        }
    }
    let busiest = after.iter().map(|one| one.share).fold(0.0, f64::max);
    after.iter_mut().for_each(|one| one.runs = worth_placing(one.share, busiest));
    after
}

/// Whether every thread that runs in one of two scans exists in the other. Then none was created or
/// ended between them.
pub fn same_crew(one: &[ScannedThread], other: &[ScannedThread]) -> bool {
    let exist = |these: &[ScannedThread], those: &[ScannedThread]| {
        let ids: HashSet<ThreadId> = those.iter().map(|scanned| scanned.id).collect();
        these.iter().filter(|scanned| scanned.runs).all(|scanned| ids.contains(&scanned.id))
    };
    exist(one, other) && exist(other, one)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thread::{Pid, StartTime, Tid};

    #[test]
    fn threads_that_hardly_run_are_left_alone_unless_all_do() {
        assert!(worth_placing(0.5, 1.0));
        assert!(worth_placing(0.01, 1.0), "one per cent is the limit");
        assert!(!worth_placing(0.009, 1.0));
        assert!(worth_placing(0.004, 0.005), "nobody wants more");
        assert!(!worth_placing(0.0004, 0.005));
        assert!(!worth_placing(0.0, 0.0));
    }

    #[test]
    fn two_scans_together_leave_a_helper_alone_and_keep_one_that_began_late() {
        let one = |tid, share: f64| ScannedThread {
            id: ThreadId { pid: Pid(1), tid: Tid(tid), start: StartTime(0) },
            thread: Thread::new("", "", 0),
            comm: String::new(),
            process: 0,
            share,
            runs: share >= HARDLY_RUNS,
        };
        let before = [one(1, 0.9), one(2, 0.006), one(3, 0.0)];
        let after = averaged(&before, vec![one(1, 1.0), one(2, 0.012), one(3, 0.5), one(4, 0.3)]);
        assert_eq!(after.iter().map(|one| one.runs).collect::<Vec<_>>(), [true, false, true, true]);
    }

    #[test]
    fn a_crew_is_the_same_when_no_runner_came_or_went() {
        let one = |tid, runs| ScannedThread {
            id: ThreadId { pid: Pid(1), tid: Tid(tid), start: StartTime(0) },
            thread: Thread::new("", "", 0),
            comm: String::new(),
            process: 0,
            share: 0.0,
            runs,
        };
        assert!(
            same_crew(&[one(1, true), one(2, false)], &[one(1, false), one(2, true)]),
            "about the limit"
        );
        assert!(same_crew(&[one(1, true)], &[one(1, true), one(2, false)]), "a helper came");
        assert!(!same_crew(&[one(1, true)], &[one(1, true), one(2, true)]), "a runner came");
        assert!(!same_crew(&[one(1, true), one(2, true)], &[one(1, true)]), "a runner went");
        assert!(!same_crew(&[], &[one(1, true)]), "nothing was scanned before");
    }
}
