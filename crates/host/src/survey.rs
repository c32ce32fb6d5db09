//! Which threads are worth placing.
//!
//! Real programs have threads that hardly run: signal handlers, telemetry, allocator helpers. Each one placed multiplies the
//! number of assignments and changes nothing, so they are left alone. Who runs is read from the kernel's own account of time on
//! a CPU, over a window.

use crate::role::{self, Found};
use crate::roster::Roster;
use crate::thread::{Stat, ThreadId, on_cpu};
use pinwise_testbed::Thread;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::time::{Duration, Instant};

/// A thread that uses a smaller share of a CPU is left alone.
pub const HARDLY_RUNS: f64 = 0.01;

/// A thread and how much it ran.
#[derive(Clone, Debug, PartialEq)]
pub struct Surveyed {
    /// Which thread.
    pub id: ThreadId,
    /// What to call it.
    pub thread: Thread,
    /// Its name as the kernel has it.
    pub comm: String,
    /// Which of the processes the user named it belongs to.
    pub process: usize,
    /// Share of one CPU it used, 0 to 1.
    pub share: f64,
}

impl Surveyed {
    /// Whether it is worth placing.
    pub fn runs(&self) -> bool {
        self.share >= HARDLY_RUNS
    }
}

/// Watches every thread for `window`; the answer is in the order of creation. `pause` sleeps.
pub(crate) fn survey(roster: &mut Roster, window: Duration, pause: &dyn Fn(Duration)) -> io::Result<Vec<Surveyed>> {
    roster.look()?;
    let begin = Instant::now();
    let before: HashMap<ThreadId, Duration> =
        roster.threads().filter_map(|(_, id)| Some((id, on_cpu(id.pid, id.tid).ok()?))).collect();
    pause(window);
    roster.look()?;
    let seen: Vec<(ThreadId, usize, String, Duration)> = roster
        .threads()
        .filter_map(|(member, id)| {
            let after = on_cpu(id.pid, id.tid).ok()?;
            let comm = Stat::read(id.pid, id.tid).ok()?.comm;
            // A thread that appeared meanwhile has used all its time within the window.
            let used = after.saturating_sub(before.get(&id).copied().unwrap_or_default());
            Some((id, member.root, comm, used))
        })
        .collect();
    let elapsed = begin.elapsed().as_secs_f64();
    let found: Vec<Found<'_>> = seen.iter().map(|(_, process, comm, _)| Found { comm, process: *process }).collect();
    let threads = role::name(&found);
    Ok(seen
        .into_iter()
        .zip(threads)
        .map(|((id, process, comm, used), thread)| {
            let share = (used.as_secs_f64() / elapsed).min(1.0);
            Surveyed { id, thread, comm, process, share }
        })
        .collect())
}

/// `left alone, below 1 % of a CPU each: eal-intr-thread, telemetry-v1, mc-worker (4 of them)`.
pub(crate) fn left_alone<'a>(comms: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for comm in comms {
        *counts.entry(comm).or_default() += 1;
    }
    if counts.is_empty() {
        return None;
    }
    let names: Vec<String> = counts
        .into_iter()
        .map(|(comm, count)| if count > 1 { format!("{comm} ({count} of them)") } else { comm.to_owned() })
        .collect();
    Some(format!("left alone, below {:.0} % of a CPU each: {}", HARDLY_RUNS * 100.0, names.join(", ")))
}
