//! The account of a thread as the kernel's side keeps it (`struct account` in `bpf/monitor.bpf.c`).

use crate::monitor::activity::ThreadActivity;
use crate::thread::{Pid, StartTime, ThreadId, Tid};
use pinwise_topology::CpuId;
use std::time::Duration;

/// Its size; all members have 64 bits but the name, which has 16 bytes.
pub(super) const WORDS: usize = 14;
/// As it lies in memory.
pub(super) type Words = [u64; WORDS];

/// `enum state`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Unknown,
    Running,
    Waiting,
    Locked,
    Asleep,
    Ended,
}

impl State {
    const ALL: [Self; 6] = [Self::Unknown, Self::Running, Self::Waiting, Self::Locked, Self::Asleep, Self::Ended];
}

/// Times are nanoseconds on the monotonic clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Account {
    pub(super) begin: u64,
    /// Since when it is in `state`; the sums go up to here.
    since: u64,
    pub(super) state: State,
    ran: u64,
    waited: u64,
    locked: u64,
    slept: u64,
    voluntary: u64,
    involuntary: u64,
    migrations: u64,
    /// Plus one; 0: it was not seen running.
    processor: u64,
    pid: u32,
    tid: u32,
    /// Nanoseconds since boot.
    start: u64,
    comm: [u8; 16],
}

impl Account {
    /// Of a thread of which nothing is known yet.
    pub(super) fn begin(id: ThreadId, now: u64) -> Self {
        Self {
            begin: now,
            since: now,
            state: State::Unknown,
            ran: 0,
            waited: 0,
            locked: 0,
            slept: 0,
            voluntary: 0,
            involuntary: 0,
            migrations: 0,
            processor: 0,
            pid: id.pid.0.unsigned_abs(),
            tid: id.tid.0.unsigned_abs(),
            start: id.start.0.saturating_mul(tick()),
            comm: [0; 16],
        }
    }

    /// `None`: it was read while it was written, and does not add up.
    pub(super) fn parse(words: Words) -> Option<Self> {
        let [
            begin,
            mark,
            ran,
            waited,
            locked,
            slept,
            voluntary,
            involuntary,
            migrations,
            processor,
            id,
            start,
            names @ ..,
        ] = words;
        let since = mark >> 3;
        let sum = [ran, waited, locked, slept].into_iter().try_fold(0u64, u64::checked_add)?;
        if since.checked_sub(begin)? != sum {
            return None;
        }
        let state = *State::ALL.get((mark & 7) as usize)?;
        let mut comm = [0; 16];
        comm[..8].copy_from_slice(&names[0].to_ne_bytes());
        comm[8..].copy_from_slice(&names[1].to_ne_bytes());
        // The halves of `id` are what was shifted into it.
        let (pid, tid) = ((id >> 32) as u32, id as u32);
        Some(Self {
            begin,
            since,
            state,
            ran,
            waited,
            locked,
            slept,
            voluntary,
            involuntary,
            migrations,
            processor,
            pid,
            tid,
            start,
            comm,
        })
    }

    pub(super) fn words(&self) -> Words {
        let half = |from: usize| u64::from_ne_bytes(std::array::from_fn(|byte| self.comm[from + byte]));
        [
            self.begin,
            self.since << 3 | self.state as u64,
            self.ran,
            self.waited,
            self.locked,
            self.slept,
            self.voluntary,
            self.involuntary,
            self.migrations,
            self.processor,
            u64::from(self.pid) << 32 | u64::from(self.tid),
            self.start,
            half(0),
            half(8),
        ]
    }

    /// Which thread it is of.
    pub(super) fn id(&self) -> ThreadId {
        // The kernel's numbers of threads fit an int.
        ThreadId { pid: Pid(self.pid as i32), tid: Tid(self.tid as i32), start: StartTime(self.start / tick()) }
    }

    /// What the thread did until `end`, where it has been in `state` since the last thing that happened to it. `comm`: its name,
    /// where it still lives.
    pub(super) fn activity(&self, id: ThreadId, comm: Option<String>, state: State, end: u64) -> ThreadActivity {
        let rest = if state == State::Ended { 0 } else { end.saturating_sub(self.since) };
        let (mut ran, mut waited, mut locked, mut slept) = (self.ran, self.waited, self.locked, self.slept);
        match state {
            State::Running => ran += rest,
            State::Waiting => waited += rest,
            State::Locked => locked += rest,
            State::Asleep | State::Unknown | State::Ended => slept += rest,
        }
        let name =
            || String::from_utf8_lossy(self.comm.split(|&byte| byte == 0).next().unwrap_or_default()).into_owned();
        ThreadActivity {
            id,
            comm: comm.unwrap_or_else(name),
            elapsed: Duration::from_nanos(ran + waited + locked + slept),
            ran: Duration::from_nanos(ran),
            waited: Duration::from_nanos(waited),
            slept: Duration::from_nanos(locked + slept),
            locked: Some(Duration::from_nanos(locked)),
            looks: 0,
            voluntary: self.voluntary,
            involuntary: self.involuntary,
            migrations: Some(self.migrations),
            // CPU numbers fit.
            cpu: self.processor.checked_sub(1).map(|cpu| CpuId(cpu as u32)),
        }
    }
}

/// Nanoseconds in a clock tick, by which `/proc` tells when a thread started.
fn tick() -> u64 {
    1_000_000_000 / rustix::param::clock_ticks_per_second().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn id() -> ThreadId {
        ThreadId { pid: Pid(7), tid: Tid(9), start: StartTime(3) }
    }

    #[test]
    fn what_was_written_in_full_adds_up_and_nothing_else_is_taken() {
        let mut account = Account::begin(id(), 1_000);
        assert_eq!(account.id(), id());
        assert_eq!(Account::parse(account.words()), Some(account.clone()));
        (account.since, account.state, account.ran, account.locked) = (1_700, State::Asleep, 300, 400);
        account.comm[..6].copy_from_slice(b"worker");
        assert_eq!(Account::parse(account.words()), Some(account.clone()));
        account.since += 1;
        assert_eq!(Account::parse(account.words()), None, "the mark is new, the sum is old");
        account.since = 999;
        assert_eq!(Account::parse(account.words()), None, "before it began");
        (account.since, account.ran) = (1_700, u64::MAX);
        assert_eq!(Account::parse(account.words()), None, "no overflow");
        let mut words = Account::begin(id(), 1_000).words();
        words[1] |= 7;
        assert_eq!(Account::parse(words), None, "there is no such state");
    }

    #[test]
    fn the_time_since_the_last_event_belongs_to_the_state_it_led_to() {
        let mut account = Account::begin(id(), 1_000);
        (account.since, account.ran, account.waited, account.locked, account.slept) = (2_000, 400, 300, 200, 100);
        (account.processor, account.comm[0]) = (2, b'x');
        let activity = |state, comm| account.activity(id(), comm, state, 2_500);
        let ns = Duration::from_nanos;
        let running = activity(State::Running, Some("y".into()));
        assert_eq!(
            (running.ran, running.waited, running.slept, running.elapsed),
            (ns(900), ns(300), ns(300), ns(1_500))
        );
        assert_eq!((running.comm.as_str(), running.cpu, running.looks), ("y", Some(CpuId(1)), 0));
        assert_eq!(activity(State::Waiting, None).waited, ns(800));
        assert_eq!(activity(State::Locked, None).locked, Some(ns(700)));
        assert_eq!(activity(State::Asleep, None).slept, ns(800));
        let ended = activity(State::Ended, None);
        assert_eq!((ended.elapsed, ended.comm.as_str()), (ns(1_000), "x"));
        assert_eq!(account.activity(id(), None, State::Running, 1_900).ran, ns(400), "events after the end stay out");
    }

    proptest! {
        #[test]
        fn any_words_are_read_without_panic(words in any::<Words>(), end in any::<u64>()) {
            if let Some(account) = Account::parse(words) {
                let state = account.state;
                if end < account.since.saturating_add(1 << 40) && account.begin > 0 {
                    let activity = account.activity(account.id(), None, state, end);
                    prop_assert!(activity.slept >= activity.locked.unwrap());
                }
            }
        }
    }
}
