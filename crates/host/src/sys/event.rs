//! Events that the kernel counts or records (perf_event_open(2)).

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// An event that can be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// Instructions in user space.
    Instructions,
    /// The processor's cycles.
    Cycles,
    /// Time on a CPU, counted by the kernel.
    TaskClock,
}

/// `struct perf_event_attr` up to `clockid` (`PERF_ATTR_SIZE_VER3`, Linux 4.1); older kernels take it where the rest is 0.
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
    const TASK: u64 = 1 << 13;
    const WATERMARK: u64 = 1 << 14;
    const SAMPLE_ID_ALL: u64 = 1 << 18;
    const USE_CLOCK: u64 = 1 << 25;
    const CONTEXT_SWITCH: u64 = 1 << 26;

    /// Of a process or thread (0: the calling thread, -1: all) on one CPU (-1: any).
    fn open(&self, pid: i32, cpu: i32) -> io::Result<OwnedFd> {
        const PERF_FLAG_FD_CLOEXEC: libc::c_ulong = 8;
        // SAFETY: the kernel reads `size` bytes of the structure, which is that long; it keeps no reference to it.
        let fd = unsafe {
            libc::syscall(libc::SYS_perf_event_open, std::ptr::from_ref(self), pid, cpu, -1, PERF_FLAG_FD_CLOEXEC)
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was made above and belongs to nobody else; a descriptor fits an int.
        Ok(unsafe { OwnedFd::from_raw_fd(fd as libc::c_int) })
    }
}

/// Whether the calling thread may count `event` of its own in user space. The counter is closed at once.
pub(crate) fn try_event(event: Event) -> io::Result<()> {
    count(event, 0, false).map(drop)
}

/// Counts `event` in user space of a process and of the threads and processes it creates from then on, or, with 0, of the
/// calling thread without heirs.
fn count(event: Event, pid: i32, inherited: bool) -> io::Result<OwnedFd> {
    // PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES and _INSTRUCTIONS; PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK.
    let (kind, config) = match event {
        Event::Cycles => (0, 0),
        Event::Instructions => (0, 1),
        Event::TaskClock => (1, 1),
    };
    // Counting the kernel as well needs a privilege that nobody asks for here.
    let inherit = if inherited { Attributes::INHERIT } else { 0 };
    let flags = inherit | Attributes::EXCLUDE_KERNEL | Attributes::EXCLUDE_HYPERVISOR;
    let size = size_of::<Attributes>() as u32;
    Attributes { kind, size, config, flags, ..Attributes::default() }.open(pid, -1)
}

/// A count that goes on until it is dropped.
#[derive(Debug)]
pub(crate) struct Counter(OwnedFd);

impl Counter {
    /// Of `event` in a process and in what it creates from now on.
    pub(crate) fn of(event: Event, pid: i32) -> io::Result<Self> {
        count(event, pid, true).map(Self)
    }

    /// What has been counted, those that have ended included.
    pub(crate) fn read(&self) -> io::Result<u64> {
        let mut count = [0; 8];
        match rustix::io::read(&self.0, &mut count)? {
            8 => Ok(u64::from_ne_bytes(count)),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

/// An event that counts nothing and records each context switch on a CPU, and the threads that are created, get a name or end;
/// with the thread it happened to and the time on the monotonic clock at the end of each record. It does not begin by itself.
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

/// Has an event begin or stop.
pub(super) fn enable(event: &OwnedFd, on: bool) -> io::Result<()> {
    /// `_IO('$', 0)` and `_IO('$', 1)`.
    const ENABLE: libc::c_ulong = 0x2400;
    const DISABLE: libc::c_ulong = 0x2401;
    // SAFETY: both requests take a number and no pointer. The type of the request differs between C libraries.
    let done = unsafe { libc::ioctl(event.as_raw_fd(), if on { ENABLE } else { DISABLE } as _, 0) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
