//! The layer of the kernel's records of context switches ([`Layer::Perf`]).
//!
//! An event on each CPU records every switch of the machine into a buffer that each look empties.
//! Turns, switches and migrations come from the records. These include threads that live for less
//! than the time between two looks. A record does not say what a thread that gave up its CPU waits
//! for, nor when it was woken. So the time waiting for a CPU comes from the scheduler's account.
//! The time at locks comes from looks, as without privilege.
//!
//! Buffers are bounded. Records that did not fit are counted, and a turn that was open then does
//! not count. So the figures are too low ([`Activity::lost`]). A CPU that appears during the watch
//! and cannot be watched has the same effect. It counts once.
//!
//! [`Activity::lost`]: super::Activity::lost

pub(super) mod record;
mod turns;

use crate::activity::ThreadActivity;
use crate::layer::{Layer, Obstacle, Unavailable};
use crate::layer_reader::LayerReader;
use crate::layer_reader::{COUNT, LOOK};
use crate::overhead::{Overhead, now};
use crate::proc_layer::ProcLayer;
use crate::switch_cost;
use pinwise_linux::{
    Roster, affinity,
    sys::SwitchRing,
    thread::{Pid, StartTime, ThreadId, Tid},
};
use pinwise_topology::{CpuId, CpuSet};
use record::{PerfRecord, What, records};
use std::collections::{BTreeSet, HashSet};
use std::io;
use std::time::Duration;
use turns::{Book, Turns};

/// The records of every CPU.
#[derive(Debug)]
pub(super) struct Perf {
    rings: Vec<(CpuId, SwitchRing)>,
    /// CPUs that cannot be watched in this window. They disappear at that moment, or there is no
    /// room for more buffers.
    unwatched: BTreeSet<CpuId>,
    /// What the records do not show.
    looks: ProcLayer,
    book: Book,
    /// Records that were taken out and are not yet in the book. A CPU whose buffer was read earlier
    /// may have an earlier record still to come.
    later: Vec<(CpuId, PerfRecord)>,
    bytes: Vec<u8>,
    /// Context switches in the window, of all CPUs together.
    switches: u64,
    /// When the list of online CPUs was read last, since the window began.
    checked: Duration,
    per_switch: Duration,
}

impl Perf {
    /// Prepares every online CPU, and records for a moment to measure the cost.
    pub(super) fn open() -> Result<Self, Unavailable> {
        let (rings, unwatched) = (Vec::new(), BTreeSet::new());
        let (book, later, bytes) = (Book::default(), Vec::new(), Vec::new());
        let (looks, switches, per_switch) = (ProcLayer::beside_records(), 0, Duration::ZERO);
        let checked = Duration::ZERO;
        let mut perf =
            Self { rings, unwatched, looks, book, later, bytes, switches, checked, per_switch };
        if let Some(error) = perf.prepare(&affinity::online().map_err(|error| refused(&error))?) {
            return Err(refused(&error));
        }
        perf.per_switch = switch_cost::per_switch(&mut |work| {
            // Emptied, so that what is measured is not what a full buffer costs.
            perf.take(u64::MAX);
            perf.record(work)
        })
        .map_err(|error| refused(&error))?;
        Ok(perf)
    }

    /// Prepares the CPUs that are online and not watched yet, and lets go of those that are
    /// offline. Says why one of them is left out for this window.
    fn prepare(&mut self, online: &CpuSet) -> Option<io::Error> {
        self.rings.retain(|(cpu, _)| online.contains(*cpu));
        let watched: CpuSet = self.rings.iter().map(|(cpu, _)| *cpu).collect();
        let mut refused = None;
        let new = |cpu: &CpuId| !watched.contains(*cpu) && !self.unwatched.contains(cpu);
        let new: Vec<CpuId> = online.iter().filter(new).collect();
        for cpu in new {
            // CPU numbers fit an int.
            match SwitchRing::switches(cpu.0 as i32) {
                Ok(ring) => self.rings.push((cpu, ring)),
                Err(error) => {
                    self.unwatched.insert(cpu);
                    refused = Some(error);
                }
            }
        }
        refused
    }

    fn record(&self, work: bool) -> io::Result<()> {
        self.rings.iter().try_for_each(|(_, ring)| ring.record(work))
    }

    /// Has every CPU record that is still there, also those that do already.
    fn record_all(&mut self) {
        let unwatched = &mut self.unwatched;
        self.rings.retain(|(cpu, ring)| {
            let recorded = ring.record(true).is_ok();
            if !recorded {
                unwatched.insert(*cpu);
            }
            recorded
        });
    }

    /// Forgets what was recorded, and records.
    fn begin_records(&mut self) -> io::Result<()> {
        self.unwatched.clear();
        // Counted as lost where it is so.
        let _ = self.prepare(&affinity::online()?);
        // What was recorded before the window.
        self.take(u64::MAX);
        (self.switches, self.checked) = (0, Duration::ZERO);
        self.book = Book::new(now());
        self.record_all();
        Ok(())
    }

    /// Empties the buffers; what lies before `until` goes to the book.
    fn take(&mut self, until: u64) {
        for (cpu, ring) in &mut self.rings {
            self.bytes.clear();
            ring.take(&mut self.bytes);
            // Whom the last switch gave this CPU to. The other half of that switch says the same
            // and is passed over.
            let mut given = None;
            self.later.extend(records(&self.bytes).filter_map(|record| match record.what {
                What::Turn if given == Some(record.tid) => None,
                What::Switch { next, .. } => {
                    given = Some(next);
                    self.switches += 1;
                    Some((*cpu, record))
                }
                _ => Some((*cpu, record)),
            }));
        }
        self.later.sort_by_key(|(_, record)| record.time);
        let ready = self.later.partition_point(|(_, record)| record.time < until);
        for (cpu, record) in self.later.drain(..ready) {
            self.book.see(cpu, record);
        }
    }

    /// The activity of a thread, from looks and records together.
    fn merge(&self, mut thread: ThreadActivity, end: u64) -> ThreadActivity {
        let Some(turns) =
            u32::try_from(thread.id.tid.0).ok().and_then(|tid| self.book.threads.get(&tid))
        else {
            return thread;
        };
        // The looks show the share of its sleep.
        let share = thread.locked.map(|locked| {
            if thread.slept.is_zero() { 0.0 } else { locked.div_duration_f64(thread.slept) }
        });
        let end = turns.ended.unwrap_or(end);
        thread.comm = turns.comm.clone().unwrap_or(thread.comm);
        if let Some(born) = turns.born {
            thread.elapsed = Duration::from_nanos(end.saturating_sub(born));
        }
        if let Some(ran) = turns.ran(end) {
            thread.ran = ran.min(thread.elapsed);
            thread.waited =
                thread.waited.max(turns.preempted(end)).min(thread.elapsed - thread.ran);
            thread.slept = thread.elapsed - thread.ran - thread.waited;
            thread.locked = share.map(|share| thread.slept.mul_f64(share));
        }
        (thread.voluntary, thread.involuntary) = (turns.voluntary, turns.involuntary);
        (thread.migrations, thread.cpu) = (Some(turns.migrations), turns.cpu.or(thread.cpu));
        thread
    }
}

/// A thread that was created in the window and never looked at.
fn unseen(tid: u32, turns: &Turns, end: u64) -> Option<ThreadActivity> {
    let end = turns.ended.unwrap_or(end);
    let elapsed = Duration::from_nanos(end.saturating_sub(turns.born?));
    let ran = turns.ran(end)?.min(elapsed);
    let waited = turns.preempted(end).min(elapsed - ran);
    // Thread numbers fit an int. A life that nobody looked at has no start time in clock ticks.
    let id = ThreadId { pid: Pid(turns.pid as i32), tid: Tid(tid as i32), start: StartTime(0) };
    Some(ThreadActivity {
        id,
        comm: turns.comm.clone().unwrap_or_default(),
        elapsed,
        ran,
        waited,
        slept: elapsed - ran - waited,
        locked: None,
        looks: 0,
        voluntary: turns.voluntary,
        involuntary: turns.involuntary,
        migrations: Some(turns.migrations),
        cpu: turns.cpu,
    })
}

impl LayerReader for Perf {
    fn pace(&self) -> Duration {
        LOOK
    }

    /// The buffers would overflow, and what records cost is no less later.
    fn stretches(&self) -> bool {
        false
    }

    /// Also after another window: nothing is recorded between them, for who watches may not come
    /// back.
    fn begin(&mut self, roster: &Roster) -> io::Result<()> {
        self.looks.begin(roster)?;
        self.begin_records()
    }

    fn glimpse(&mut self) -> bool {
        self.looks.glimpse()
    }

    fn look(&mut self, roster: &Roster, at: Duration, counting: bool) -> io::Result<bool> {
        for (_, id) in roster.threads() {
            self.book.watch(id.pid.0.unsigned_abs(), id.tid.0.unsigned_abs());
        }
        self.take(now());
        if at >= self.checked + COUNT {
            self.checked = at;
            let _ = self.prepare(&affinity::online()?);
            self.record_all();
        }
        self.looks.look(roster, at, counting)
    }

    fn end(&mut self, roster: &Roster) -> io::Result<Vec<ThreadActivity>> {
        let end = now();
        for (_, ring) in &self.rings {
            // A CPU that went away records nothing more.
            let _ = ring.record(false);
        }
        self.take(end);
        let looked: Vec<ThreadActivity> = self.looks.end(roster)?;
        let seen: HashSet<u32> =
            looked.iter().map(|thread| thread.id.tid.0.unsigned_abs()).collect();
        let missed = self.book.threads.iter().filter(|(tid, _)| !seen.contains(tid));
        let missed: Vec<ThreadActivity> =
            missed.filter_map(|(&tid, turns)| unseen(tid, turns, end)).collect();
        Ok(looked.into_iter().map(|thread| self.merge(thread, end)).chain(missed).collect())
    }

    fn lost(&self) -> u64 {
        self.book.lost + self.unwatched.len() as u64
    }

    fn charge(&self, overhead: &mut Overhead) {
        overhead.charge(self.switches + self.book.lost, self.per_switch);
    }
}

/// Why it cannot be, by the kernel's answer.
fn refused(error: &io::Error) -> Unavailable {
    let obstacle = match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => Obstacle::NotPermitted,
        Some(libc::ENOSYS) => Obstacle::NotInKernel,
        _ => Obstacle::Other { error: format!("records of context switches: {error}") },
    };
    Unavailable { layer: Layer::Perf, obstacle }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_that_cannot_be_watched_is_counted_and_ends_nothing() {
        let mut perf = match Perf::open() {
            Ok(perf) => perf,
            Err(reason) => return pinwise_synthetic::not_judged(reason),
        };
        let watched = perf.rings.len();
        // One that no kernel has.
        let more: CpuSet = affinity::online().unwrap().iter().chain([CpuId(1 << 20)]).collect();
        for _ in 0..2 {
            let _ = perf.prepare(&more);
            perf.record_all();
            assert_eq!((perf.rings.len(), perf.lost()), (watched, 1));
        }
    }
}
