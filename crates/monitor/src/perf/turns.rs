//! The turns of threads on CPUs, from records of context switches.

use super::record::{PerfRecord, What};
use pinwise_topology::CpuId;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// What the records say about one thread in a window. Times are nanoseconds on the monotonic clock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Turns {
    pub(super) pid: u32,
    /// When it was created, if that was in the window.
    pub(super) born: Option<u64>,
    /// When it ended, if that was in the window.
    pub(super) ended: Option<u64>,
    pub(super) comm: Option<String>,
    ran: u64,
    /// Time from preemptions to the next turns.
    preempted: u64,
    pub(super) voluntary: u64,
    pub(super) involuntary: u64,
    pub(super) migrations: u64,
    pub(super) cpu: Option<CpuId>,
    /// What it does, and since when. `None` before its first record.
    now: Option<(TurnState, u64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TurnState {
    Running,
    Preempted,
    Away,
}

impl Turns {
    /// Time on a CPU until `end`; `None`: nothing happened to it, so it ran all the time or never.
    pub(super) fn ran(&self, end: u64) -> Option<Duration> {
        let (doing, since) = self.now?;
        let rest = if doing == TurnState::Running { end.saturating_sub(since) } else { 0 };
        Some(Duration::from_nanos(self.ran + rest))
    }

    /// Time between a preemption and the next turn, until `end`.
    pub(super) fn preempted(&self, end: u64) -> Duration {
        let rest = match self.now {
            Some((TurnState::Preempted, since)) => end.saturating_sub(since),
            _ => 0,
        };
        Duration::from_nanos(self.preempted + rest)
    }

    /// It gives up `cpu`. All records of that CPU since `known` are there.
    fn leave(&mut self, known: u64, time: u64, cpu: CpuId, preempted: bool) {
        // An unknown thread had the CPU all that time.
        let (doing, since) = self.now.unwrap_or((TurnState::Running, known));
        let same = self.cpu.is_none_or(|last| last == cpu);
        // If it had another CPU last, the records of its move were lost.
        if doing == TurnState::Running && same {
            self.ran += time.saturating_sub(since);
        }
        self.migrations += u64::from(!same);
        self.cpu = Some(cpu);
        if preempted {
            self.involuntary += 1;
        } else {
            self.voluntary += 1;
        }
        self.now = Some((if preempted { TurnState::Preempted } else { TurnState::Away }, time));
    }

    /// It gets `cpu`. Two records say so: that of the thread before it, and its own.
    fn come(&mut self, time: u64, cpu: CpuId) {
        // If it ran on another CPU, the record of its leaving was lost, and so is the turn there.
        if matches!(self.now, Some((TurnState::Running, _))) && self.cpu == Some(cpu) {
            return;
        }
        if let Some((TurnState::Preempted, since)) = self.now {
            self.preempted += time.saturating_sub(since);
        }
        if self.cpu.is_some_and(|last| last != cpu) {
            self.migrations += 1;
        }
        (self.cpu, self.now) = (Some(cpu), Some((TurnState::Running, time)));
    }

    /// Records of `cpu` before `time` were lost. Nobody knows how long a turn on it lasted, nor
    /// whether a waiting thread got it.
    fn cut(&mut self, time: u64, cpu: CpuId) {
        let open = match self.now {
            Some((TurnState::Running, _)) => self.cpu == Some(cpu),
            Some((TurnState::Preempted, _)) => true,
            _ => false,
        };
        if open {
            self.now = Some((TurnState::Away, time));
        }
    }
}

/// The turns of all threads of the processes that are watched.
#[derive(Debug, Default)]
pub(super) struct Book {
    begin: u64,
    /// Each record of a switch looks up two threads, and a program has few. So a tree is faster
    /// than a table.
    pub(super) threads: BTreeMap<u32, Turns>,
    pub(super) lost: u64,
    /// When records of a CPU were lost last.
    gaps: HashMap<CpuId, u64>,
}

impl Book {
    /// The turns of a window that begins now.
    pub(super) fn new(begin: u64) -> Self {
        Self { begin, ..Self::default() }
    }

    /// Watches a thread, if it is not watched yet.
    pub(super) fn watch(&mut self, pid: u32, tid: u32) {
        self.threads.entry(tid).or_insert_with(|| Turns { pid, ..Turns::default() });
    }

    /// Adds a record from `cpu`. Records come in the order of their times.
    pub(super) fn see(&mut self, cpu: CpuId, record: PerfRecord) {
        let PerfRecord { time, pid, tid, what } = record;
        match what {
            What::Lost(count) => {
                self.lost += count;
                self.gaps.insert(cpu, time);
                self.threads.values_mut().for_each(|turns| turns.cut(time, cpu));
            }
            _ if time < self.begin => {}
            What::Switch { next, preempted } => {
                if let Some(turns) = self.threads.get_mut(&tid) {
                    let known = self.gaps.get(&cpu).copied().unwrap_or(0).max(self.begin);
                    turns.leave(known, time, cpu, preempted);
                }
                if let Some(turns) = self.threads.get_mut(&next) {
                    turns.come(time, cpu);
                }
            }
            What::Turn => {
                if let Some(turns) = self.threads.get_mut(&tid) {
                    turns.come(time, cpu);
                }
            }
            What::Fork { parent } => {
                if self.threads.values().any(|turns| turns.pid == parent && turns.ended.is_none()) {
                    // A new thread waits for its first turn.
                    let now = Some((TurnState::Preempted, time));
                    self.threads
                        .insert(tid, Turns { pid, born: Some(time), now, ..Turns::default() });
                }
            }
            What::Comm(name) => {
                if let Some(turns) = self.threads.get_mut(&tid) {
                    turns.comm = Some(name);
                }
            }
            What::Exit => {
                if let Some(turns) = self.threads.get_mut(&tid) {
                    turns.ended = Some(time);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn switch(time: u64, tid: u32, next: u32, preempted: bool) -> PerfRecord {
        PerfRecord { time, pid: 1, tid, what: What::Switch { next, preempted } }
    }

    fn ns(nanoseconds: u64) -> Duration {
        Duration::from_nanos(nanoseconds)
    }

    #[test]
    fn turns_are_told_from_the_pauses_between_them() {
        let mut book = Book::new(100);
        book.watch(1, 10);
        book.watch(1, 11);
        for (cpu, record) in [
            (0, switch(90, 10, 0, false)),
            // Had it since the window began, gives it to 11.
            (0, switch(130, 10, 11, false)),
            (0, switch(150, 11, 99, true)),
            (1, switch(160, 0, 10, false)),
            (0, switch(180, 99, 11, false)),
        ] {
            book.see(CpuId(cpu), record);
        }
        let (one, other) = (&book.threads[&10], &book.threads[&11]);
        assert_eq!((one.ran(200), one.voluntary, one.involuntary), (Some(ns(30 + 40)), 1, 0));
        assert_eq!((one.migrations, one.cpu, one.preempted(200)), (1, Some(CpuId(1)), ns(0)));
        assert_eq!((other.ran(200), other.preempted(200)), (Some(ns(20 + 20)), ns(30)));
        assert_eq!((other.voluntary, other.involuntary, other.migrations), (0, 1, 0));
        assert_eq!(book.threads.len(), 2, "99 is somebody else's");
    }

    #[test]
    fn a_turn_after_a_hidden_one_comes_from_the_record_of_the_thread_itself() {
        let mut book = Book::new(100);
        book.watch(1, 10);
        let turn = |time, tid| PerfRecord { time, pid: 1, tid, what: What::Turn };
        for (cpu, record) in [
            (0, switch(110, 10, 99, true)),
            // 99 gives the CPU back, and nobody sees it.
            (1, turn(130, 10)),
            (1, switch(150, 10, 98, false)),
            (1, switch(160, 98, 10, false)),
            // The other half of the same switch.
            (1, turn(162, 10)),
        ] {
            book.see(CpuId(cpu), record);
        }
        let thread = &book.threads[&10];
        assert_eq!((thread.ran(200), thread.preempted(200)), (Some(ns(10 + 20 + 40)), ns(20)));
        assert_eq!((thread.migrations, thread.voluntary, thread.involuntary), (1, 1, 1));
    }

    #[test]
    fn threads_born_in_the_window_are_watched_from_their_birth_to_their_end() {
        let mut book = Book::new(100);
        book.watch(1, 10);
        let what = |time, tid, what| PerfRecord { time, pid: 1, tid, what };
        for record in [
            what(110, 20, What::Fork { parent: 1 }),
            what(110, 30, What::Fork { parent: 2 }),
            what(115, 20, What::Comm("worker".into())),
            switch(120, 10, 20, false),
            what(140, 20, What::Exit),
            switch(141, 20, 0, false),
            what(0, 0, What::Lost(7)),
        ] {
            book.see(CpuId(0), record);
        }
        let born = &book.threads[&20];
        assert_eq!(
            (born.born, born.ended, born.comm.as_deref()),
            (Some(110), Some(140), Some("worker"))
        );
        assert_eq!((born.ran(500), born.preempted(500)), (Some(ns(21)), ns(10)));
        assert_eq!((book.lost, book.threads.len()), (7, 2));
        assert_eq!(book.threads[&10].ran(500), Some(ns(20)));
    }

    #[test]
    fn what_was_lost_makes_figures_too_low_and_never_too_high() {
        let lost = |time| PerfRecord { time, pid: 0, tid: 0, what: What::Lost(3) };
        let mut book = Book::new(100);
        (10..14).for_each(|tid| book.watch(1, tid));
        for (cpu, record) in [
            (0, switch(110, 0, 10, false)),
            (0, switch(120, 10, 11, false)),
            (1, switch(125, 0, 12, false)),
            // How 11 left CPU 0 is lost, and how 13 came to it.
            (1, switch(150, 12, 11, false)),
            (1, switch(160, 11, 0, false)),
            (0, lost(170)),
            (0, switch(180, 13, 10, true)),
            (0, switch(185, 10, 12, false)),
            (0, lost(190)),
        ] {
            book.see(CpuId(cpu), record);
        }
        let ran = |tid: u32| book.threads[&tid].ran(200);
        assert_eq!(ran(10), Some(ns(10 + 5)));
        assert_eq!(
            (ran(11), book.threads[&11].migrations),
            (Some(ns(10)), 1),
            "the turn that nobody saw end does not count"
        );
        assert_eq!(
            ran(12),
            Some(ns(25)),
            "the turn that was open when records were lost does not count"
        );
        assert_eq!(
            (ran(13), book.threads[&13].preempted(200)),
            (Some(ns(10)), ns(0)),
            "from the gap on"
        );
        assert_eq!(book.lost, 6);
    }

    #[test]
    fn of_a_thread_without_records_nothing_is_claimed() {
        let mut book = Book::new(0);
        book.watch(1, 10);
        assert_eq!(book.threads[&10].ran(100), None);
    }
}
