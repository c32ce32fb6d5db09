//! What every source of counts answers.

use pinwise_linux::{ThreadId, Tid};
use pinwise_measure::{CounterEvent, EventCounts};
use serde::Serialize;
use std::io;
use thiserror::Error;

/// Something that counts events of threads: counters of the processor or of the kernel.
pub trait CountSource {
    /// The events that it counts, ascending.
    fn events(&self) -> Vec<CounterEvent>;

    /// The events of its kind that it does not count, and why.
    fn uncounted(&self) -> Vec<UncountedEvent>;

    /// The counts of each thread since the last reading, in the order given. Threads that are not
    /// given are forgotten. After [`CountError::TooManyFiles`] all begin again.
    fn read(&mut self, threads: &[ThreadId]) -> Vec<ThreadCounts>;
}

/// The counts of a thread since the last reading, or the reason why it cannot be counted.
///
/// A thread that did nothing has counts of 0. An event is left out if no counter had time for it.
/// `None`: the thread is read for the first time, or it has ended. Its last counts are reported
/// once if the source still has them: perf has, `/proc` has not. A later thread with the same
/// number is another one.
pub type ThreadCounts = Result<Option<EventCounts>, CountError>;

/// An event that a source does not count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UncountedEvent {
    /// The event.
    pub event: CounterEvent,
    /// Why.
    #[serde(flatten)]
    pub reason: UncountedReason,
}

/// Why a source does not count an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum UncountedReason {
    /// The processor has no such event, or none that pinwise knows.
    NotOnProcessor,
    /// Some kinds of cores have it, and these have not. A count of some cores alone would mislead.
    NotOnCores {
        /// The names of their PMUs.
        cores: Vec<String>,
    },
    /// The kernel does not show it in `/proc`, and the events of perf are not permitted.
    NotInProc,
}

/// Why nothing can be counted.
#[derive(Debug, Error)]
pub enum CountError {
    /// The processor shows no counters.
    #[error(
        "no hardware counters: this processor shows none, as is usual in virtual machines: give it \
         a PMU (QEMU: -cpu host,pmu=on), or use real hardware"
    )]
    NoPmu,
    /// The kernel permits no counters to this user.
    #[error(
        "hardware counters are not permitted (kernel.perf_event_paranoid = {paranoid}): sudo \
         sysctl kernel.perf_event_paranoid=1, or sudo setcap cap_perfmon+ep \
         \"$(command -v pinwise)\""
    )]
    NotPermitted {
        /// The value of the setting, as the kernel shows it, or `unknown`.
        paranoid: String,
    },
    /// Each event is missing on some kind of core.
    #[error(
        "no hardware event is counted on every kind of core: use a kernel that counts on each \
         (Intel: from Linux 5.13 on, Arm: 6.6)"
    )]
    NotOnAllCores,
    /// Something else has the counters for itself.
    #[error(
        "the hardware counters are in use (EBUSY): end what keeps them, such as another profiler"
    )]
    Busy,
    /// The kernel has no such system call, or the container forbids it.
    #[error(
        "no perf_event_open in this kernel or container: use a kernel with CONFIG_PERF_EVENTS, or \
         allow the system call in the container's seccomp profile"
    )]
    NotInKernel,
    /// The thread belongs to somebody else.
    #[error(
        "thread {tid} cannot be counted, it belongs to another user: run pinwise as that user, or \
         sudo setcap cap_perfmon,cap_sys_ptrace+ep \"$(command -v pinwise)\""
    )]
    OfAnotherUser {
        /// The thread.
        tid: Tid,
    },
    /// Each event of each thread takes a file descriptor.
    #[error(
        "{threads} threads need {files} open files to be counted, more than the limit permits \
         beside others: ulimit -n {limit}, or name fewer threads"
    )]
    TooManyFiles {
        /// How many threads were to be counted.
        threads: usize,
        /// How many files they need.
        files: u64,
        /// A limit with room for them.
        limit: u64,
    },
    /// Another error of the kernel.
    #[error("thread {tid} cannot be counted: {error}: see perf_event_open(2)")]
    Kernel {
        /// The thread; 0 is pinwise's own.
        tid: Tid,
        /// The error.
        error: io::Error,
    },
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{PerfSource, ProcCounts, SoftwareSource};
    use pinwise_linux::thread::Stat;
    use pinwise_linux::{Pid, StartTime};
    use std::sync::mpsc::channel;

    /// Whether a reading follows [`CountSource::read`] for a thread that sleeps until `end`.
    pub(crate) fn contract_holds(
        read: &mut dyn FnMut(&[ThreadId]) -> Vec<ThreadCounts>,
        sleeper: ThreadId,
        end: impl FnOnce(),
    ) {
        let never = ThreadId { tid: Tid(i32::MAX >> 4), ..sleeper };
        // Had the same number.
        let earlier = ThreadId { start: StartTime(0), ..sleeper };
        let mut read = |threads: &[ThreadId]| -> Vec<Option<EventCounts>> {
            read(threads).into_iter().map(Result::unwrap).collect()
        };
        let threads = [never, sleeper, earlier];
        assert_eq!(read(&threads), [None, None, None], "for the first time");
        for _ in 0..2 {
            let [None, Some(idle), None] = &read(&threads)[..] else { panic!("one lives") };
            assert!(!idle.counts.is_empty() && idle.counts.values().all(|&count| count == 0.0));
            assert_eq!(idle.counted, 1.0);
        }
        assert!(read(&[]).is_empty());
        assert_eq!(read(&threads), [None, None, None], "it was forgotten");
        end();
        // Its last counts, perhaps.
        read(&threads);
        for _ in 0..2 {
            assert_eq!(read(&threads), [None, None, None], "it has ended");
        }
    }

    #[test]
    fn all_sources_of_this_machine_keep_one_contract() {
        let mut sources: Vec<Box<dyn CountSource>> =
            vec![Box::new(SoftwareSource::Proc(ProcCounts::default()))];
        match SoftwareSource::open() {
            SoftwareSource::Proc(_) => pinwise_synthetic::not_judged("no software events"),
            perf => sources.push(Box::new(perf)),
        }
        match PerfSource::open() {
            Ok(source) => sources.push(Box::new(source)),
            Err(error) => pinwise_synthetic::not_judged(error),
        }
        for mut source in sources {
            let (wake, sleep) = channel::<()>();
            let (tell, told) = channel();
            let thread = std::thread::spawn(move || {
                tell.send(Tid(rustix::thread::gettid().as_raw_nonzero().get())).unwrap();
                let _ = sleep.recv();
            });
            let (pid, tid) = (Pid(std::process::id() as i32), told.recv().unwrap());
            let state = || Stat::read(pid, tid).ok().map(|stat| stat.state);
            while state() != Some('S') {}
            let sleeper = ThreadId { pid, tid, start: Stat::read(pid, tid).unwrap().start };
            let end = || {
                drop(wake);
                thread.join().unwrap();
                while state().is_some() {}
            };
            contract_holds(&mut |threads| source.read(threads), sleeper, end);
        }
    }
}
