//! Events that the kernel counts or records (perf_event_open(2)).

use pinwise_measure::CounterEvent;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::path::Path;

/// What the kernel is asked to count: three fields of `struct perf_event_attr`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventCode {
    /// `type`: whose event it is, the kernel's or that of a PMU.
    pub pmu: u32,
    /// `config`: which event.
    pub config: u64,
    /// `config1`: what some events need besides.
    pub config1: u64,
}

impl EventCode {
    /// `PERF_TYPE_HARDWARE`.
    pub const HARDWARE: u32 = 0;
    /// `PERF_TYPE_SOFTWARE`.
    pub const SOFTWARE: u32 = 1;
    /// `PERF_TYPE_HW_CACHE`.
    pub const CACHE: u32 = 3;

    /// The code that is the same on every processor. `None`: there is none that means the same
    /// everywhere.
    pub fn generic(event: CounterEvent) -> Option<Self> {
        // PERF_COUNT_HW_CPU_CYCLES, _INSTRUCTIONS, _BRANCH_INSTRUCTIONS, _BRANCH_MISSES;
        // PERF_COUNT_SW_TASK_CLOCK, _CONTEXT_SWITCHES, _CPU_MIGRATIONS, _PAGE_FAULTS.
        let (pmu, config) = match event {
            CounterEvent::Cycles => (Self::HARDWARE, 0),
            CounterEvent::Instructions => (Self::HARDWARE, 1),
            CounterEvent::Branches => (Self::HARDWARE, 4),
            CounterEvent::BranchMisses => (Self::HARDWARE, 5),
            CounterEvent::TaskClock => (Self::SOFTWARE, 1),
            CounterEvent::ContextSwitches => (Self::SOFTWARE, 3),
            CounterEvent::Migrations => (Self::SOFTWARE, 4),
            CounterEvent::PageFaults => (Self::SOFTWARE, 2),
            CounterEvent::FrontEndMisses
            | CounterEvent::L1DataMisses
            | CounterEvent::L2Misses
            | CounterEvent::LlcMisses
            | CounterEvent::FpOperations => return None,
        };
        Some(Self { pmu, config, config1: 0 })
    }

    /// This generic event on one kind of core, by the number of its PMU. 0: the only kind.
    #[must_use]
    pub fn on(self, cores: u32) -> Self {
        // PERF_TYPE_HARDWARE and PERF_TYPE_HW_CACHE take the number in the upper half.
        match self.pmu {
            Self::HARDWARE | Self::CACHE => {
                Self { config: u64::from(cores) << 32 | self.config, ..self }
            }
            _ => self,
        }
    }
}

/// In which mode of the processor events are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountedModes {
    /// While the program runs.
    User,
    /// Also while the kernel works for it. The kernel permits that with CAP_PERFMON, or if
    /// `kernel.perf_event_paranoid` is 1 or less.
    UserAndKernel,
}

impl CountedModes {
    fn flags(self) -> u64 {
        match self {
            Self::User => Attributes::EXCLUDE_KERNEL | Attributes::EXCLUDE_HYPERVISOR,
            Self::UserAndKernel => Attributes::EXCLUDE_HYPERVISOR,
        }
    }
}

/// `struct perf_event_attr` up to `clockid` (`PERF_ATTR_SIZE_VER3`, Linux 4.1); older kernels take
/// it if the rest is 0.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_watermark: u32,
    breakpoint_type: u32,
    config1: u64,
    config2: u64,
    branch_sample_type: u64,
    sample_registers: u64,
    sample_stack: u32,
    clock: i32,
}

impl Attributes {
    const DISABLED: u64 = 1;
    const INHERIT: u64 = 1 << 1;
    const EXCLUDE_KERNEL: u64 = 1 << 5;
    const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
    const COMM: u64 = 1 << 9;
    const ENABLE_ON_EXEC: u64 = 1 << 12;
    const TASK: u64 = 1 << 13;
    const WATERMARK: u64 = 1 << 14;
    const SAMPLE_ID_ALL: u64 = 1 << 18;
    const USE_CLOCK: u64 = 1 << 25;
    const CONTEXT_SWITCH: u64 = 1 << 26;

    /// Opens the event of a process or thread (0: the calling thread, -1: all) on one CPU (-1:
    /// any). It is alone or in the group of another event.
    fn open(&self, pid: i32, cpu: i32, leader: Option<BorrowedFd<'_>>) -> io::Result<OwnedFd> {
        const PERF_FLAG_FD_CLOEXEC: libc::c_ulong = 8;
        // SAFETY: the kernel reads `size` bytes of the structure, which is that long; it keeps no
        // reference to it.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                std::ptr::from_ref(self),
                pid,
                cpu,
                leader.map_or(-1, |leader| leader.as_raw_fd()),
                PERF_FLAG_FD_CLOEXEC,
            )
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was made above and belongs to nobody else; a descriptor fits an
        // int.
        Ok(unsafe { OwnedFd::from_raw_fd(fd as libc::c_int) })
    }
}

/// Whether the calling thread may count `event` for itself in user space. The counter is closed at
/// once.
pub fn try_event(event: CounterEvent) -> io::Result<()> {
    count(event, 0, 0).map(drop)
}

/// Whether the calling thread may have its taken branches recorded in user space. Nothing is
/// recorded: the event is closed at once.
pub fn try_branch_record() -> io::Result<()> {
    const PERF_SAMPLE_BRANCH_STACK: u64 = 1 << 11;
    const PERF_SAMPLE_BRANCH_USER: u64 = 1;
    const PERF_SAMPLE_BRANCH_ANY: u64 = 1 << 3;
    let code = EventCode::generic(CounterEvent::Cycles).ok_or(io::ErrorKind::Unsupported)?;
    let asked = Attributes {
        sample_period: 1_000_003,
        sample_type: PERF_SAMPLE_BRANCH_STACK,
        branch_sample_type: PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_ANY,
        ..attributes(code, CountedModes::User, Attributes::DISABLED)
    };
    asked.open(0, -1, None).map(drop)
}

/// Whether `kernel.perf_event_paranoid`, as the kernel shows it, permits everybody to count threads
/// of their own in user space. If the system call still fails with `EPERM`, a seccomp profile
/// forbids it: the kernel itself says `EACCES`. Debian's and Ubuntu's kernels forbid it from 3 on.
pub fn permits_user_events(paranoid: Option<&str>) -> bool {
    paranoid.and_then(|text| text.parse::<i32>().ok()).is_some_and(|level| level <= 2)
}

/// A generic event of the calling thread in user space, with further flags. `cores` is the number
/// of the kind of core it is counted on, if there are several, else 0.
fn count(event: CounterEvent, cores: u32, flags: u64) -> io::Result<OwnedFd> {
    let code = EventCode::generic(event).ok_or(io::ErrorKind::Unsupported)?.on(cores);
    // Counting the kernel as well needs a privilege that nobody asks for here.
    attributes(code, CountedModes::User, flags).open(0, -1, None)
}

fn attributes(code: EventCode, modes: CountedModes, flags: u64) -> Attributes {
    Attributes {
        kind: code.pmu,
        size: size_of::<Attributes>() as u32,
        config: code.config,
        config1: code.config1,
        flags: flags | modes.flags(),
        ..Attributes::default()
    }
}

/// The numbers of the kinds of cores that count for themselves, if `devices` lists several. Intel's
/// hybrid processors and Arm's big and little cores have several. An event without such a number
/// would be counted on one kind alone. With one kind of core the answer is 0, and for events of the
/// kernel. Kernels that know no kinds (Arm's before Linux 6.6) refuse a number.
fn kinds_of_cores(event: CounterEvent, devices: &Path) -> io::Result<Vec<u32>> {
    if EventCode::generic(event).is_some_and(|code| code.pmu == EventCode::SOFTWARE) {
        return Ok(vec![0]);
    }
    let mut kinds = Vec::new();
    for device in std::fs::read_dir(devices)?.flatten() {
        // Cores list the CPUs that are theirs in `cpus`; what is outside of them has a `cpumask`.
        if device.path().join("cpus").exists() {
            let number = std::fs::read_to_string(device.path().join("type"))?;
            kinds.push(number.trim().parse().map_err(|_| io::ErrorKind::InvalidData)?);
        }
    }
    Ok(if kinds.len() > 1 { kinds } else { vec![0] })
}

/// `open` for each kind, or for none. [`io::ErrorKind::Unsupported`]: this kernel cannot count on
/// each of several.
fn on_each<T>(kinds: &[u32], open: impl Fn(u32) -> io::Result<T>) -> io::Result<Vec<T>> {
    let counted: io::Result<Vec<T>> = kinds.iter().map(|&kind| open(kind)).collect();
    counted.map_err(|error| match error.raw_os_error() {
        Some(libc::ENOENT | libc::EINVAL) if kinds.len() > 1 => {
            let refused =
                "this kernel does not count them on every kind of core the machine has (Arm's: \
                 from Linux 6.6 on)";
            io::Error::new(io::ErrorKind::Unsupported, refused)
        }
        _ => error,
    })
}

/// A running count. It ends when this is dropped.
#[derive(Debug)]
pub struct Counter(Vec<OwnedFd>);

impl Counter {
    /// Counts `event` in the programs that the calling thread starts from now on. It counts from
    /// their first instruction on, and in everything that these create. The calling thread itself
    /// is not counted.
    ///
    /// # Errors
    /// [`io::ErrorKind::Unsupported`]: there are several kinds of cores, and not all would count.
    pub fn of_what_is_started(event: CounterEvent) -> io::Result<Self> {
        let flags = Attributes::DISABLED | Attributes::INHERIT | Attributes::ENABLE_ON_EXEC;
        // If nothing can be listed there is one kind.
        let kinds = kinds_of_cores(event, Path::new("/sys/bus/event_source/devices"));
        let kinds = kinds.unwrap_or_else(|_| vec![0]);
        on_each(&kinds, |kind| count(event, kind, flags)).map(Self)
    }

    /// The count so far, including threads that have ended.
    pub fn read(&self) -> io::Result<u64> {
        self.0.iter().try_fold(0, |sum, event| {
            let mut count = [0; 8];
            match rustix::io::read(event, &mut count)? {
                8 => Ok(sum + u64::from_ne_bytes(count)),
                _ => Err(io::ErrorKind::UnexpectedEof.into()),
            }
        })
    }
}

/// Events of one thread that are counted at the same time, from when they were opened. They end
/// when this is dropped.
#[derive(Debug)]
pub struct EventGroup(Vec<OwnedFd>);

/// What a group has counted since it was opened, also of a thread that has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupReading {
    /// How long the thread has been on a CPU, in nanoseconds.
    pub enabled: u64,
    /// How long of that the group was counted. It is less if groups take turns, or if the thread
    /// ran on another kind of core.
    pub running: u64,
    /// The count of each event, in the order in which they were asked for.
    pub counts: Vec<u64>,
}

impl EventGroup {
    /// Counts events of a thread (0: the calling one) on any CPU, and not in threads that it
    /// creates. Each event takes a file descriptor.
    ///
    /// # Errors
    /// Among others: `ENOENT`, this machine has no such event. `EINVAL`, the events cannot be
    /// counted at the same time. `EACCES`, not permitted. `ESRCH`, the thread has ended. `EMFILE`,
    /// too many files are open.
    pub fn open(tid: i32, codes: &[EventCode], modes: CountedModes) -> io::Result<Self> {
        // PERF_FORMAT_TOTAL_TIME_ENABLED, _TOTAL_TIME_RUNNING and _GROUP.
        const READ_FORMAT: u64 = 1 | 1 << 1 | 1 << 3;
        let mut events: Vec<OwnedFd> = Vec::with_capacity(codes.len());
        for &code in codes {
            let leader = events.first().map(AsFd::as_fd);
            // The leader holds back all others until they are there.
            let flags = if leader.is_none() { Attributes::DISABLED } else { 0 };
            let asked = Attributes { read_format: READ_FORMAT, ..attributes(code, modes, flags) };
            events.push(asked.open(tid, -1, leader)?);
        }
        if let Some(leader) = events.first() {
            enable(leader, true)?;
        }
        Ok(Self(events))
    }

    /// Reads all events with one system call.
    pub fn read(&self) -> io::Result<GroupReading> {
        let Some(leader) = self.0.first() else { return Ok(GroupReading::default()) };
        // How many events, enabled, running, then the counts.
        let mut bytes = vec![0; 8 * (3 + self.0.len())];
        if rustix::io::read(leader, &mut bytes)? != bytes.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let word = |bytes: &[u8; 8]| u64::from_ne_bytes(*bytes);
        let words: Vec<u64> = bytes.as_chunks().0.iter().map(word).collect();
        Ok(GroupReading { enabled: words[1], running: words[2], counts: words[3..].to_vec() })
    }
}

/// An event that counts nothing. It records each context switch on a CPU, and the threads that are
/// created, get a name or end. The end of each record has the thread it happened to and the time on
/// the monotonic clock. The event does not begin on its own.
pub(super) fn switches(cpu: i32) -> io::Result<OwnedFd> {
    const PERF_COUNT_SW_DUMMY: u64 = 9;
    const PERF_SAMPLE_TID: u64 = 1 << 1;
    const PERF_SAMPLE_TIME: u64 = 1 << 2;
    let flags = Attributes::DISABLED
        | Attributes::CONTEXT_SWITCH
        | Attributes::TASK
        | Attributes::COMM
        | Attributes::SAMPLE_ID_ALL
        | Attributes::USE_CLOCK
        // The buffer is read by the clock: nobody is to be woken.
        | Attributes::WATERMARK;
    let attributes = Attributes {
        kind: EventCode::SOFTWARE,
        size: size_of::<Attributes>() as u32,
        config: PERF_COUNT_SW_DUMMY,
        sample_type: PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
        flags,
        wakeup_watermark: u32::MAX,
        clock: libc::CLOCK_MONOTONIC,
        ..Attributes::default()
    };
    attributes.open(-1, cpu, None)
}

/// Starts or stops an event.
pub(super) fn enable(event: &OwnedFd, on: bool) -> io::Result<()> {
    /// `_IO('$', 0)` and `_IO('$', 1)`.
    const ENABLE: libc::c_ulong = 0x2400;
    const DISABLE: libc::c_ulong = 0x2401;
    // SAFETY: both requests take a number and no pointer. The type of the request differs between C
    // libraries.
    let done = unsafe { libc::ioctl(event.as_raw_fd(), if on { ENABLE } else { DISABLE } as _, 0) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_program_is_counted_from_its_beginning_with_what_it_starts_and_who_starts_it_is_not() {
        // Time on a CPU is counted everywhere.
        let counter = match Counter::of_what_is_started(CounterEvent::TaskClock) {
            Ok(counter) => counter,
            Err(error) => return pinwise_synthetic::not_judged(error),
        };
        let begin = std::time::Instant::now();
        while begin.elapsed().as_millis() < 50 {}
        assert_eq!(counter.read().unwrap(), 0);
        let spawned = std::time::Instant::now();
        let work = "i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done";
        // The work is done by a child of the program.
        assert!(
            Command::new("sh")
                .args(["-c", &format!("({work}) & wait")])
                .status()
                .unwrap()
                .success()
        );
        let counted = counter.read().unwrap() as f64 / 1e9;
        // The shell waits while its child works: they are never on two CPUs for long.
        let passed = spawned.elapsed().as_secs_f64();
        assert!(counted > 0.01 && counted < 2.0 * passed, "counted {counted} s in {passed} s");
    }

    /// More than the C library ever keeps for later: so these pages are new, and none is there. At
    /// least [`FAULTS`] page faults, even if the kernel gives 2 MiB at a time.
    fn touch_new_pages() {
        std::hint::black_box(vec![1u8; 48 << 20]);
    }

    const FAULTS: u64 = 20;

    #[test]
    fn a_group_counts_one_thread_and_what_it_did_last_is_read_when_it_has_ended() {
        let codes = [CounterEvent::TaskClock, CounterEvent::PageFaults]
            .map(|event| EventCode::generic(event).unwrap());
        let (begun, has_begun) = std::sync::mpsc::channel();
        let (go, may_go) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            begun.send(rustix::thread::gettid().as_raw_nonzero().get()).unwrap();
            may_go.recv().unwrap();
            touch_new_pages();
        });
        let tid = has_begun.recv().unwrap();
        let group = match EventGroup::open(tid, &codes, CountedModes::User) {
            Ok(group) => group,
            Err(error) => return pinwise_synthetic::not_judged(error),
        };
        // The calling thread works, the counted one waits.
        touch_new_pages();
        let before = group.read().unwrap();
        go.send(()).unwrap();
        thread.join().unwrap();
        let after = group.read().unwrap();
        assert!(before.counts[1] < FAULTS, "{before:?}");
        assert!(after.counts[1] >= before.counts[1] + FAULTS, "{before:?}, then {after:?}");
        assert!(after.counts[0] > before.counts[0]);
        assert!(after.enabled > before.enabled && after.enabled == after.running);
        assert_eq!(
            EventGroup::open(i32::MAX >> 4, &codes, CountedModes::User).unwrap_err().raw_os_error(),
            Some(libc::ESRCH)
        );
    }

    #[test]
    fn a_generic_event_is_asked_for_on_a_kind_of_core() {
        let cycles = EventCode::generic(CounterEvent::Cycles).unwrap();
        assert_eq!(cycles.on(0), cycles);
        assert_eq!(cycles.on(10).config, 10 << 32);
        let clock = EventCode::generic(CounterEvent::TaskClock).unwrap();
        assert_eq!(clock.on(10), clock);
    }

    #[test]
    fn a_level_above_two_forbids_also_user_space() {
        let permits = |level| permits_user_events(Some(level));
        assert!(permits("-1") && permits("2") && !permits("3") && !permits("4"));
        assert!(!permits("") && !permits_user_events(None));
    }

    #[test]
    fn each_kind_of_core_is_counted() {
        let devices = tempfile::tempdir().unwrap();
        let device = |name: &str, files: &[(&str, &str)]| {
            std::fs::create_dir(devices.path().join(name)).unwrap();
            for (file, text) in files {
                std::fs::write(devices.path().join(name).join(file), text).unwrap();
            }
        };
        device("uncore_imc_0", &[("type", "23\n"), ("cpumask", "0\n")]);
        device("software", &[("type", "1\n")]);
        assert_eq!(kinds_of_cores(CounterEvent::Cycles, devices.path()).unwrap(), [0]);
        // Arm's name their CPUs also if all are alike.
        device("armv8_cortex_a72", &[("type", "8\n"), ("cpus", "0-3\n")]);
        assert_eq!(kinds_of_cores(CounterEvent::Cycles, devices.path()).unwrap(), [0]);
        std::fs::remove_dir_all(devices.path().join("armv8_cortex_a72")).unwrap();
        device("cpu_core", &[("type", "4\n"), ("cpus", "0-15\n")]);
        device("cpu_atom", &[("type", "10\n"), ("cpus", "16-23\n")]);
        let mut kinds = kinds_of_cores(CounterEvent::Cycles, devices.path()).unwrap();
        kinds.sort_unstable();
        assert_eq!(kinds, [4, 10]);
        // The kernel's own events do not depend on the core.
        assert_eq!(kinds_of_cores(CounterEvent::TaskClock, devices.path()).unwrap(), [0]);
        device("odd", &[("type", "x\n"), ("cpus", "0\n")]);
        assert!(kinds_of_cores(CounterEvent::Cycles, devices.path()).is_err());
    }

    #[test]
    fn one_of_several_kinds_of_cores_is_never_counted_alone() {
        let old = |kind| {
            if kind == 8 { Ok(kind) } else { Err(io::Error::from_raw_os_error(libc::ENOENT)) }
        };
        assert_eq!(on_each(&[8], old).unwrap(), [8]);
        assert_eq!(on_each(&[8, 9], old).unwrap_err().kind(), io::ErrorKind::Unsupported);
        // Without counters at all it is not the kinds.
        assert_eq!(on_each(&[0], old).unwrap_err().raw_os_error(), Some(libc::ENOENT));
        let forbidden = |_| Err::<(), _>(io::Error::from_raw_os_error(libc::EACCES));
        assert_eq!(on_each(&[8, 9], forbidden).unwrap_err().raw_os_error(), Some(libc::EACCES));
    }
}
