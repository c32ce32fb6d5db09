//! The account of a thread on the kernel's side (`struct account` in `bpf/monitor.bpf.c`).

use crate::activity::ThreadActivity;
use pinwise_linux::thread::{Pid, StartTime, ThreadId, Tid};
use pinwise_topology::CpuId;
use std::time::Duration;

/// The size of an account. All members have 64 bits except the name, which has 16 bytes.
pub(super) const WORDS: usize = 15;
/// As it lies in memory.
pub(super) type Words = [u64; WORDS];

// Where its members lie, in words.
const BEGIN: usize = 0;
/// `since << 3 | state`.
const MARK: usize = 1;
/// Time in each state: ran, waited, locked, slept.
const SPENT: usize = 2;
const VOLUNTARY: usize = 6;
const INVOLUNTARY: usize = 7;
const MIGRATIONS: usize = 8;
/// The CPU it ran on last plus one; 0: it was not seen running.
const PROCESSOR: usize = 9;
/// `process << 32 | thread`.
const ID: usize = 10;
/// Nanoseconds since boot.
const START: usize = 11;
/// Nanoseconds on a CPU up to the end of its last turn, by the kernel's account.
const RUNTIME: usize = 12;
const COMM: usize = 13;

/// `enum state`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AccountState {
    Unknown,
    Running,
    Waiting,
    Locked,
    Asleep,
    Ended,
}

impl AccountState {
    const ALL: [Self; 6] =
        [Self::Unknown, Self::Running, Self::Waiting, Self::Locked, Self::Asleep, Self::Ended];

    /// The sum to which time in this state belongs. Unknown states and those that are over count as
    /// sleep.
    fn sum(self) -> usize {
        match self {
            Self::Running => SPENT,
            Self::Waiting => SPENT + 1,
            Self::Locked => SPENT + 2,
            Self::Asleep | Self::Unknown | Self::Ended => SPENT + 3,
        }
    }
}

/// A consistent account: the time in each state is that from its beginning to its mark. Times are
/// nanoseconds on the monotonic clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KernelAccount(Words);

impl KernelAccount {
    /// The account of a thread if only its CPU time so far is known.
    pub(super) fn begin(id: ThreadId, now: u64, ran: Duration) -> Self {
        let mut words = [0; WORDS];
        words[BEGIN] = now;
        words[MARK] = now << 3 | AccountState::Unknown as u64;
        words[ID] = u64::from(id.pid.0.unsigned_abs()) << 32 | u64::from(id.tid.0.unsigned_abs());
        words[START] = id.start.0.saturating_mul(tick());
        // 584 years fit.
        words[RUNTIME] = ran.as_nanos() as u64;
        Self(words)
    }

    /// `None` if it was read while it was written and does not add up.
    pub(super) fn parse(words: Words) -> Option<Self> {
        let sum =
            words[SPENT..VOLUNTARY].iter().try_fold(0u64, |sum, &part| sum.checked_add(part))?;
        let adds_up = (words[MARK] >> 3).checked_sub(words[BEGIN])? == sum;
        let known = (words[MARK] & 7) < AccountState::ALL.len() as u64;
        (adds_up && known).then_some(Self(words))
    }

    pub(super) fn words(&self) -> Words {
        self.0
    }

    pub(super) fn begun(&self) -> u64 {
        self.0[BEGIN]
    }

    /// Since when it is in its state; the sums go up to here.
    fn since(&self) -> u64 {
        self.0[MARK] >> 3
    }

    pub(super) fn state(&self) -> AccountState {
        AccountState::ALL.get((self.0[MARK] & 7) as usize).copied().unwrap_or(AccountState::Unknown)
    }

    /// The thread that it belongs to.
    pub(super) fn id(&self) -> ThreadId {
        // The halves of the word are what was shifted into it; the kernel's numbers of threads fit
        // an int.
        let (pid, tid) = ((self.0[ID] >> 32) as i32, self.0[ID] as i32);
        ThreadId { pid: Pid(pid), tid: Tid(tid), start: StartTime(self.0[START] / tick()) }
    }

    /// What was added to it since `at`. At that time it was `earlier`, and the thread was in
    /// `state`.
    pub(super) fn added(&self, earlier: &Self, state: AccountState, at: u64) -> Self {
        let mut words = self.0;
        for (word, before) in words[SPENT..PROCESSOR].iter_mut().zip(&earlier.0[SPENT..PROCESSOR]) {
            *word = word.saturating_sub(*before);
        }
        // What had begun before goes up to `at`, once it was summed up.
        if self.since() > at {
            let sum = &mut words[state.sum()];
            *sum = sum.saturating_sub(at.saturating_sub(earlier.since()));
        }
        words[BEGIN] = at;
        words[MARK] = self.since().max(at) << 3 | self.0[MARK] & 7;
        Self(words)
    }

    /// What the thread did until `end`. It has been in `state` since its last event. `comm`: its
    /// name, if it still lives.
    pub(super) fn activity(
        &self,
        id: ThreadId,
        comm: Option<String>,
        state: AccountState,
        end: u64,
    ) -> ThreadActivity {
        let mut words = self.0;
        if state != AccountState::Ended {
            words[state.sum()] += end.saturating_sub(self.since());
        }
        let [ran, waited, locked, slept] =
            [SPENT, SPENT + 1, SPENT + 2, SPENT + 3].map(|sum| words[sum]);
        let name = || {
            let bytes: Vec<u8> =
                self.0[COMM..].iter().flat_map(|word| word.to_ne_bytes()).collect();
            String::from_utf8_lossy(bytes.split(|&byte| byte == 0).next().unwrap_or_default())
                .into_owned()
        };
        ThreadActivity {
            id,
            comm: comm.unwrap_or_else(name),
            elapsed: Duration::from_nanos(ran + waited + locked + slept),
            ran: Duration::from_nanos(ran),
            waited: Duration::from_nanos(waited),
            slept: Duration::from_nanos(locked + slept),
            locked: Some(Duration::from_nanos(locked)),
            looks: 0,
            voluntary: words[VOLUNTARY],
            involuntary: words[INVOLUNTARY],
            migrations: Some(words[MIGRATIONS]),
            // CPU numbers fit.
            cpu: words[PROCESSOR].checked_sub(1).map(|cpu| CpuId(cpu as u32)),
        }
    }
}

/// Nanoseconds in a clock tick, in which `/proc` gives the time when a thread started.
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

    /// An account with these sums: ran, waited, locked, slept.
    fn account(begin: u64, state: AccountState, spent: [u64; 4]) -> KernelAccount {
        let mut words = KernelAccount::begin(id(), begin, Duration::ZERO).words();
        words[SPENT..VOLUNTARY].copy_from_slice(&spent);
        words[MARK] = (begin + spent.iter().sum::<u64>()) << 3 | state as u64;
        KernelAccount::parse(words).unwrap()
    }

    #[test]
    fn what_was_written_in_full_adds_up_and_nothing_else_is_taken() {
        let begun = KernelAccount::begin(id(), 1_000, Duration::ZERO);
        assert_eq!(
            (begun.id(), begun.state(), begun.begun()),
            (id(), AccountState::Unknown, 1_000)
        );
        assert_eq!(KernelAccount::parse(begun.words()), Some(begun.clone()));
        let whole = account(1_000, AccountState::Asleep, [300, 0, 400, 0]).words();
        let with = |index: usize, word: u64| {
            let mut words = whole;
            words[index] = word;
            KernelAccount::parse(words)
        };
        assert_eq!(with(MARK, 1_701 << 3 | 4), None, "the mark is new, the sum is old");
        assert_eq!(with(MARK, 999 << 3 | 4), None, "before it began");
        assert_eq!(with(SPENT, u64::MAX), None, "no overflow");
        assert_eq!(with(MARK, 1_700 << 3 | 7), None, "there is no such state");
    }

    #[test]
    fn the_time_since_the_last_event_belongs_to_the_state_it_led_to() {
        let mut words = account(1_000, AccountState::Asleep, [400, 300, 200, 100]).words();
        words[PROCESSOR] = 2;
        words[COMM] = u64::from_ne_bytes(*b"x\0\0\0\0\0\0\0");
        let account = KernelAccount::parse(words).unwrap();
        let activity = |state, comm| account.activity(id(), comm, state, 2_500);
        let ns = Duration::from_nanos;
        let running = activity(AccountState::Running, Some("y".into()));
        assert_eq!(
            (running.ran, running.waited, running.slept, running.elapsed),
            (ns(900), ns(300), ns(300), ns(1_500))
        );
        assert_eq!((running.comm.as_str(), running.cpu, running.looks), ("y", Some(CpuId(1)), 0));
        assert_eq!(activity(AccountState::Waiting, None).waited, ns(800));
        assert_eq!(activity(AccountState::Locked, None).locked, Some(ns(700)));
        assert_eq!(activity(AccountState::Asleep, None).slept, ns(800));
        let ended = activity(AccountState::Ended, None);
        assert_eq!((ended.elapsed, ended.comm.as_str()), (ns(1_000), "x"));
        assert_eq!(
            account.activity(id(), None, AccountState::Running, 1_900).ran,
            ns(400),
            "events after the end stay out"
        );
    }

    #[test]
    fn a_window_has_what_was_added_in_it() {
        let ns = Duration::from_nanos;
        // Asleep since 1,400. The window begins at 1,500, it sleeps on to 1,700 and then runs to
        // its end at 2,000.
        let earlier = account(1_000, AccountState::Asleep, [300, 0, 0, 100]);
        let later = account(1_000, AccountState::Running, [300, 0, 0, 400]);
        let seen = later.added(&earlier, AccountState::Asleep, 1_500).activity(
            id(),
            None,
            AccountState::Running,
            2_000,
        );
        assert_eq!((seen.ran, seen.slept, seen.elapsed), (ns(300), ns(200), ns(500)));
        // Nothing happened in it.
        let quiet = earlier.added(&earlier, AccountState::Asleep, 1_500).activity(
            id(),
            None,
            AccountState::Asleep,
            2_000,
        );
        assert_eq!((quiet.ran, quiet.slept, quiet.elapsed), (ns(0), ns(500), ns(500)));
        // Nothing had ever happened to it before. Both /proc and the wake-up say that it waited for
        // a lock.
        let unknown = KernelAccount::begin(id(), 1_000, Duration::ZERO);
        let woken = account(1_000, AccountState::Waiting, [0, 0, 800, 0]);
        let seen = woken.added(&unknown, AccountState::Locked, 1_500).activity(
            id(),
            None,
            AccountState::Waiting,
            2_000,
        );
        assert_eq!((seen.locked, seen.waited, seen.elapsed), (Some(ns(300)), ns(200), ns(500)));
    }

    proptest! {
        #[test]
        fn any_words_are_read_without_panic(words in any::<Words>(), end in any::<u64>()) {
            if let Some(account) = KernelAccount::parse(words)
                && end < account.since().saturating_add(1 << 40)
                && account.begun() > 0
            {
                let activity = account.activity(account.id(), None, account.state(), end);
                prop_assert!(activity.slept >= activity.locked.unwrap());
            }
        }

        /// Windows that follow each other have all there is, whatever happens when.
        #[test]
        fn windows_add_up_to_the_whole(
            turns in prop::collection::vec((1usize..5, 1u64..1000), 1..20),
            cuts in prop::collection::vec(0u64..20_000, 1..5),
        ) {
            let begin = 1_000;
            let mut words = KernelAccount::begin(id(), begin, Duration::ZERO).words();
            words[MARK] = begin << 3 | AccountState::Running as u64;
            let mut history = vec![KernelAccount(words)];
            for (next, length) in turns {
                let last = &history[history.len() - 1];
                let mut words = last.words();
                words[last.state().sum()] += length;
                words[MARK] = (last.since() + length) << 3 | next as u64;
                words[VOLUNTARY] += 1;
                history.push(KernelAccount::parse(words).unwrap());
            }
            let end = begin + 20_001;
            let at = |time: u64| {
                history.iter().rfind(|account| account.since() <= time).unwrap_or(&history[0])
            };
            let whole = at(end).activity(id(), None, at(end).state(), end);
            let mut ends: Vec<u64> =
                cuts.iter().map(|cut| begin + cut).chain([begin, end]).collect();
            ends.sort_unstable();
            let windows = ends.windows(2).map(|pair| {
                let (earlier, later) = (at(pair[0]), at(pair[1]));
                later
                    .added(earlier, earlier.state(), pair[0])
                    .activity(id(), None, later.state(), pair[1])
            });
            let windows: Vec<ThreadActivity> = windows.collect();
            let sum =
                |of: fn(&ThreadActivity) -> Duration| windows.iter().map(of).sum::<Duration>();
            prop_assert_eq!(
                (
                    sum(|part| part.ran),
                    sum(|part| part.waited),
                    sum(|part| part.slept),
                    sum(|part| part.elapsed),
                ),
                (whole.ran, whole.waited, whole.slept, whole.elapsed)
            );
            prop_assert_eq!(
                windows.iter().map(|part| part.voluntary).sum::<u64>(),
                whole.voluntary
            );
        }
    }
}
