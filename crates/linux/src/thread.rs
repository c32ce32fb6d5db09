//! One thread: its number, its life, and what `/proc` says about it.
//!
//! Numbers are reused; a number together with the start time names one life of a thread. A thread
//! may end at any moment. That is data and not a failure. [`gone`] distinguishes it from real
//! errors.

use pinwise_topology::CpuId;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs;
use std::io;
use std::num::ParseIntError;
use std::str::FromStr;
use std::time::Duration;

/// The kernel's number of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Pid(pub i32);

/// The kernel's number of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tid(pub i32);

impl Pid {
    /// The thread the process began with, which has the same number.
    pub fn main(self) -> Tid {
        Tid(self.0)
    }
}

impl fmt::Display for Pid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Tid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Pid {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        text.parse().map(Self)
    }
}

/// When a thread or process started, in clock ticks since boot (`/proc/PID/stat`, field 22).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StartTime(pub u64);

impl StartTime {
    /// That of a thread which starts now; `None` if the length of a tick is not known.
    pub(crate) fn now() -> Option<Self> {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let per_second = rustix::param::clock_ticks_per_second();
        let since = Duration::try_from(now).ok()?;
        let ticks = since.as_nanos() * u128::from(per_second) / 1_000_000_000;
        (per_second > 0).then_some(Self(ticks as u64))
    }
}

/// One life of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ThreadId {
    /// Its process.
    pub pid: Pid,
    /// Its number.
    pub tid: Tid,
    /// The start time, which distinguishes it from a later thread with the same number.
    pub start: StartTime,
}

impl ThreadId {
    /// Whether this thread, and not a later one of the same number, still exists.
    pub fn alive(self) -> bool {
        Stat::read(self.pid, self.tid).is_ok_and(|stat| stat.start == self.start && !stat.dead())
    }
}

/// The contents of `/proc/PID/task/TID/stat`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    /// The name, at most 15 bytes; bytes that are no UTF-8 are replaced.
    pub comm: String,
    /// `R` running, `S` sleeping, `D` in disk wait, `T` stopped, `Z` zombie, `X` dead.
    pub state: char,
    /// The parent of its process.
    pub parent: Pid,
    /// The process group.
    pub group: i32,
    /// Page faults, with and without reading from a disk.
    pub faults: u64,
    /// Time on a CPU in user and kernel mode, in clock ticks.
    pub ticks: u64,
    /// When it started.
    pub start: StartTime,
    /// The CPU it ran on last.
    pub cpu: Option<CpuId>,
}

impl Stat {
    /// Reads it; see [`gone`] for the errors of a thread that ended.
    pub fn read(pid: Pid, tid: Tid) -> io::Result<Self> {
        let text = fs::read(format!("/proc/{pid}/task/{tid}/stat"))?;
        Self::parse(&text).ok_or_else(|| {
            let text = String::from_utf8_lossy(&text);
            io::Error::new(
                io::ErrorKind::InvalidData,
                format!("unexpected /proc/{pid}/task/{tid}/stat: {text}"),
            )
        })
    }

    /// Parses it. The name may hold anything, blanks and parentheses included: it ends at the last
    /// parenthesis.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let open = text.iter().position(|&byte| byte == b'(')?;
        let close = text.iter().rposition(|&byte| byte == b')')?;
        let comm = String::from_utf8_lossy(text.get(open + 1..close)?).into_owned();
        // proc_pid_stat(5): the state is field 3.
        let rest = std::str::from_utf8(&text[close + 1..]).ok()?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let field = |number: usize| fields.get(number - 3).copied();
        Some(Self {
            comm,
            state: field(3)?.chars().next()?,
            parent: Pid(field(4)?.parse().ok()?),
            group: field(5)?.parse().ok()?,
            faults: field(10)?.parse::<u64>().ok()?.checked_add(field(12)?.parse().ok()?)?,
            ticks: field(14)?.parse::<u64>().ok()?.checked_add(field(15)?.parse().ok()?)?,
            start: StartTime(field(22)?.parse().ok()?),
            cpu: field(39).and_then(|cpu| cpu.parse().ok()).map(CpuId),
        })
    }

    /// A zombie, or about to vanish.
    pub fn dead(&self) -> bool {
        matches!(self.state, 'Z' | 'X' | 'x')
    }
}

/// The scheduler's account of a thread since it started (`/proc/PID/task/TID/schedstat`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SchedulerTimes {
    /// Time on a CPU. Exact for a thread that is not running. It is stale by up to two clock ticks
    /// (8 ms at 250 Hz) for one that is.
    pub ran: Duration,
    /// Time it was runnable and waited for a CPU, without a wait that is not over. It is zero if
    /// the kernel does not report it.
    pub waited: Duration,
    /// How many times it got a CPU; zero if the kernel does not report it.
    pub slices: u64,
}

impl SchedulerTimes {
    /// Reads it; see [`gone`] for the errors of a thread that ended.
    pub fn read(pid: Pid, tid: Tid) -> io::Result<Self> {
        let text = match fs::read_to_string(format!("/proc/{pid}/task/{tid}/schedstat")) {
            Ok(text) => text,
            // A kernel without CONFIG_SCHED_INFO.
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error),
        };
        Self::parse(&text).map_or_else(
            || Ok(Self { ran: from_ticks(Stat::read(pid, tid)?.ticks), ..Self::default() }),
            Ok,
        )
    }

    /// Reads the text of `schedstat`; `None` if it is not one.
    pub fn parse(text: &str) -> Option<Self> {
        let mut fields = text.split_ascii_whitespace().map(|field| field.parse().ok());
        let mut next = || fields.next().flatten();
        Some(Self {
            ran: Duration::from_nanos(next()?),
            waited: Duration::from_nanos(next()?),
            slices: next()?,
        })
    }
}

fn from_ticks(ticks: u64) -> Duration {
    Duration::from_secs(ticks) / rustix::param::clock_ticks_per_second().clamp(1, 1_000_000) as u32
}

/// The number on the line of `sched` or `status` that begins with `name`, blanks and a colon.
pub fn field(text: &[u8], name: &str) -> Option<u64> {
    let value = text.split(|&byte| byte == b'\n').find_map(|line| {
        let rest = line.strip_prefix(name.as_bytes())?.trim_ascii_start();
        rest.strip_prefix(b":")
    })?;
    std::str::from_utf8(value.trim_ascii()).ok()?.parse().ok()
}

/// Whether an error from `/proc` says that the thread or process has ended. There is no such file,
/// or it ended while it was read.
pub fn gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAIL: &[u8] = b" S 1 77 77 0 -1 4194560 173 0 2 0 5 7 0 0 20 0 8 0 4711 9170944 271 \
        18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0";

    fn stat_named(comm: &[u8]) -> Stat {
        Stat::parse(&[b"77 (", comm, b")", TAIL].concat()).unwrap()
    }

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let status = b"Name:\tx\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t545\n";
        assert_eq!(field(status, "voluntary_ctxt_switches"), Some(150));
        assert_eq!(field(status, "nonvoluntary_ctxt_switches"), Some(545));
        let sched = b"x (1, #threads: 1)\n-----\nse.nr_migrations              :        \
            7\nnr_switches  :  9\n";
        assert_eq!(field(sched, "se.nr_migrations"), Some(7));
        assert_eq!(field(sched, "nr_migrations"), None);
        assert_eq!(field(b"se.nr_migrations : many\n", "se.nr_migrations"), None);
    }

    #[test]
    fn names_with_blanks_and_parentheses_are_read_whole() {
        for comm in ["redis-server", "a b", "(sd-pam)", "x) R 1 (y", ")", ""] {
            let stat = stat_named(comm.as_bytes());
            assert_eq!((stat.comm.as_str(), stat.cpu), (comm, Some(CpuId(1))));
            assert_eq!(
                (stat.state, stat.parent, stat.group, stat.ticks, stat.start),
                ('S', Pid(1), 77, 12, StartTime(4711))
            );
            assert_eq!(stat.faults, 173 + 2);
        }
        assert_eq!(stat_named(b"a\nb").comm, "a\nb");
        assert_eq!(stat_named(b"\xff").comm, "\u{fffd}");
    }

    #[test]
    fn a_cut_or_foreign_text_is_refused() {
        let whole = [b"77 (x)", TAIL].concat();
        assert!(
            (0..120)
                .filter_map(|end| Stat::parse(&whole[..end.min(whole.len())]))
                .all(|stat| stat.comm == "x")
        );
        for text in [&b""[..], b"77", b"77 (x", b"77 )x(", b"77 (x) S", b"77 (x) S a b c"] {
            assert_eq!(Stat::parse(text), None);
        }
    }

    #[test]
    fn this_thread_lives_and_a_later_one_of_its_number_would_not_be_taken_for_it() {
        let pid = Pid(rustix::process::getpid().as_raw_nonzero().get());
        let stat = Stat::read(pid, pid.main()).unwrap();
        let id = ThreadId { pid, tid: pid.main(), start: stat.start };
        assert!(id.alive());
        assert!(!ThreadId { start: StartTime(stat.start.0 + 1), ..id }.alive());
    }

    #[test]
    fn time_on_a_cpu_grows_with_work() {
        let pid = Pid(rustix::process::getpid().as_raw_nonzero().get());
        let tid = Tid(rustix::thread::gettid().as_raw_nonzero().get());
        let before = SchedulerTimes::read(pid, tid).unwrap().ran;
        let mut x = 1u64;
        while SchedulerTimes::read(pid, tid).unwrap().ran == before {
            x = std::hint::black_box(x.wrapping_mul(3));
        }
    }

    #[test]
    fn an_account_has_three_numbers() {
        let account = SchedulerTimes::parse("1500000000 250 7\n").unwrap();
        assert_eq!(account.ran, Duration::from_millis(1500));
        assert_eq!((account.waited, account.slices), (Duration::from_nanos(250), 7));
        for text in ["", "0", "1 2", "1 2 x", "-1 2 3"] {
            assert_eq!(SchedulerTimes::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_process_that_does_not_exist_is_gone() {
        assert!(gone(&Stat::read(Pid(i32::MAX), Tid(i32::MAX)).unwrap_err()));
    }
}
