//! What every source of counts answers.

use pinwise_linux::{ThreadId, Tid};
use pinwise_measure::{CounterEvent, EventCounts};
use serde::Serialize;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Something that counts events of threads: counters of the processor, of the kernel, or a file.
pub trait CountSource {
    /// The events that it counts, ascending.
    fn events(&self) -> Vec<CounterEvent>;

    /// The events of its kind that it does not count, and why.
    fn uncounted(&self) -> Vec<UncountedEvent>;

    /// What was counted of each thread since the last reading, in the order given. `None`: it is
    /// read for the first time, or it has ended before that. An event is left out of the counts if
    /// no counter had time for it. Threads that are not given are forgotten.
    ///
    /// # Errors
    /// The threads cannot be counted, see [`CountError`]. That a thread ended is no error.
    fn read(&mut self, threads: &[ThreadId]) -> Result<Vec<Option<EventCounts>>, CountError>;
}

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
    /// perf was asked for it and could not count it when the file was recorded.
    NotRecorded,
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
        "hardware counters are not permitted (kernel.perf_event_paranoid = {paranoid}): sudo sysctl \
         kernel.perf_event_paranoid=1, or sudo setcap cap_perfmon+ep \"$(command -v pinwise)\""
    )]
    NotPermitted {
        /// The value of the setting, as the kernel shows it, or `unknown`.
        paranoid: String,
    },
    /// The kernel or the container has no such system call.
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
        "{threads} threads need {files} open files to be counted, more than the limit: \
         ulimit -n {limit}, or name fewer threads"
    )]
    TooManyFiles {
        /// How many threads were to be counted.
        threads: usize,
        /// How many files they need.
        files: usize,
        /// A limit with room for them.
        limit: usize,
    },
    /// Another error of the kernel.
    #[error("thread {tid} cannot be counted: {error}: see perf_event_open(2)")]
    Kernel {
        /// The thread; 0 is pinwise's own.
        tid: Tid,
        /// The error.
        error: io::Error,
    },
    /// A recorded file has no further interval.
    #[error("{path}: has no further interval: record for longer", path = path.display())]
    Ended {
        /// The file.
        path: PathBuf,
    },
}
