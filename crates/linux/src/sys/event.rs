//! Events that the kernel counts or records (perf_event_open(2)).

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;

/// An event that can be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountedEvent {
    /// Instructions in user space.
    Instructions,
    /// The processor's cycles.
    Cycles,
    /// Time on a CPU, counted by the kernel.
    TaskClock,
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
    breakpoint_address: u64,
    breakpoint_length: u64,
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
    /// any).
    fn open(&self, pid: i32, cpu: i32) -> io::Result<OwnedFd> {
        const PERF_FLAG_FD_CLOEXEC: libc::c_ulong = 8;
        // SAFETY: the kernel reads `size` bytes of the structure, which is that long; it keeps no
        // reference to it.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                std::ptr::from_ref(self),
                pid,
                cpu,
                -1,
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
pub fn try_event(event: CountedEvent) -> io::Result<()> {
    count(event, 0, 0).map(drop)
}

/// An event of the calling thread in user space, with further flags. `cores` is the number of the
/// kind of core it is counted on, if there are several, else 0. `PERF_TYPE_HARDWARE` takes it in
/// the upper half.
fn count(event: CountedEvent, cores: u32, flags: u64) -> io::Result<OwnedFd> {
    // PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES and _INSTRUCTIONS; PERF_TYPE_SOFTWARE,
    // PERF_COUNT_SW_TASK_CLOCK.
    let (kind, config) = match event {
        CountedEvent::Cycles => (0, 0),
        CountedEvent::Instructions => (0, 1),
        CountedEvent::TaskClock => (1, 1),
    };
    let config = if kind == 0 { u64::from(cores) << 32 | config } else { config };
    // Counting the kernel as well needs a privilege that nobody asks for here.
    let flags = flags | Attributes::EXCLUDE_KERNEL | Attributes::EXCLUDE_HYPERVISOR;
    let size = size_of::<Attributes>() as u32;
    Attributes { kind, size, config, flags, ..Attributes::default() }.open(0, -1)
}

/// The numbers of the kinds of cores that count for themselves, if `devices` lists several. Intel's
/// hybrid processors and Arm's big and little cores have several. An event without such a number
/// would be counted on one kind alone. With one kind of core the answer is 0. Kernels that know no
/// kinds (Arm's before Linux 6.6) refuse a number.
fn kinds_of_cores(devices: &Path) -> io::Result<Vec<u32>> {
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
    pub fn of_what_is_started(event: CountedEvent) -> io::Result<Self> {
        let flags = Attributes::DISABLED | Attributes::INHERIT | Attributes::ENABLE_ON_EXEC;
        // If nothing can be listed there is one kind.
        let kinds =
            kinds_of_cores(Path::new("/sys/bus/event_source/devices")).unwrap_or_else(|_| vec![0]);
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

/// An event that counts nothing. It records each context switch on a CPU, and the threads that are
/// created, get a name or end. The end of each record has the thread it happened to and the time on
/// the monotonic clock. The event does not begin on its own.
pub(super) fn switches(cpu: i32) -> io::Result<OwnedFd> {
    const PERF_TYPE_SOFTWARE: u32 = 1;
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
        kind: PERF_TYPE_SOFTWARE,
        size: size_of::<Attributes>() as u32,
        config: PERF_COUNT_SW_DUMMY,
        sample_type: PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
        flags,
        wakeup_watermark: u32::MAX,
        clock: libc::CLOCK_MONOTONIC,
        ..Attributes::default()
    };
    attributes.open(-1, cpu)
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
        let counter = match Counter::of_what_is_started(CountedEvent::TaskClock) {
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
        assert_eq!(kinds_of_cores(devices.path()).unwrap(), [0]);
        // Arm's name their CPUs also if all are alike.
        device("armv8_cortex_a72", &[("type", "8\n"), ("cpus", "0-3\n")]);
        assert_eq!(kinds_of_cores(devices.path()).unwrap(), [0]);
        std::fs::remove_dir_all(devices.path().join("armv8_cortex_a72")).unwrap();
        device("cpu_core", &[("type", "4\n"), ("cpus", "0-15\n")]);
        device("cpu_atom", &[("type", "10\n"), ("cpus", "16-23\n")]);
        let mut kinds = kinds_of_cores(devices.path()).unwrap();
        kinds.sort_unstable();
        assert_eq!(kinds, [4, 10]);
        device("odd", &[("type", "x\n"), ("cpus", "0\n")]);
        assert!(kinds_of_cores(devices.path()).is_err());
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
