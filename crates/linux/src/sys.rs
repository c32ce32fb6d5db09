//! The system calls that rustix lacks.
//!
//! - Affinity masks of any length: rustix and glibc's `cpu_set_t` stop at 1,024 CPUs, the kernel
//!   does not.
//! - Scheduling classes: raw system calls, because musl's wrappers return `ENOSYS`.
//! - The memory of NUMA nodes.
//! - The events of perf_event_open(2) and the buffer of their records.
//! - The time stamp counter.

mod event;
mod ring;

pub use event::{
    CountedModes, Counter, EventCode, EventGroup, GroupReading, permits_user_events,
    try_branch_record, try_event,
};
pub use ring::SwitchRing;

use pinwise_topology::{CpuId, CpuSet};
use std::collections::BTreeSet;
use std::io;
use std::mem::size_of;
use std::ops::Sub;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

/// Bits of the kernel's mask words.
const BITS: usize = libc::c_ulong::BITS as usize;
/// The mask length that is tried first, in words: 1,024 CPUs on 64 bits.
const FIRST: usize = 16;
/// No kernel is built for more CPUs than this holds (`NR_CPUS` is at most 8,192).
const LONGEST: usize = 65_536 / 32;

/// The CPUs on which a thread may run (0: the calling one).
pub fn affinity(tid: i32) -> io::Result<CpuSet> {
    let mut words: Vec<libc::c_ulong> = vec![0; FIRST];
    loop {
        // SAFETY: the kernel writes at most the length it is given into the vector, which is that
        // long.
        let written = unsafe {
            libc::syscall(
                libc::SYS_sched_getaffinity,
                tid,
                words.len() * size_of::<libc::c_ulong>(),
                words.as_mut_ptr(),
            )
        };
        if written >= 0 {
            return Ok(from_words(&words));
        }
        let error = io::Error::last_os_error();
        // EINVAL: the mask is shorter than the kernel's.
        if error.raw_os_error() != Some(libc::EINVAL) || words.len() >= LONGEST {
            return Err(error);
        }
        words = vec![0; words.len() * 2];
    }
}

/// CPU time of a process up to now, including its ended threads (clock_getcpuclockid(3)). Takes a
/// third of a microsecond and works for any user's process.
///
/// # Errors
/// There is no such process.
pub fn cpu_time(pid: i32) -> io::Result<Duration> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // The kernel's encoding of the clock of a whole process, as the C library makes it. It has its
    // number, inverted, and which kind of clock.
    let clock = (!pid << 3) | 2;
    // SAFETY: the kernel writes one time to the given place.
    let done = unsafe { libc::clock_gettime(clock, &raw mut time) };
    let used = || Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32);
    if done == 0 { Ok(used()) } else { Err(io::Error::last_os_error()) }
}

/// Confines a thread (0: the calling one) to `cpus`.
pub fn set_affinity(tid: i32, cpus: &CpuSet) -> io::Result<()> {
    let words = to_words(cpus);
    // SAFETY: the kernel reads at most the length it is given from the vector, which is that long.
    let done = unsafe {
        libc::syscall(
            libc::SYS_sched_setaffinity,
            tid,
            words.len() * size_of::<libc::c_ulong>(),
            words.as_ptr(),
        )
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Moves the pages of a process from nodes to others. Returns how many could not be moved.
pub fn migrate_pages(pid: i32, from: &BTreeSet<u32>, to: &BTreeSet<u32>) -> io::Result<u64> {
    // The kernel takes two masks of one length.
    let longest = from.last().max(to.last()).copied();
    let [from, to] = [from, to].map(|nodes| node_words(nodes, longest));
    // SAFETY: the count of bits is that of each vector. The kernel reads no more.
    let left = unsafe {
        libc::syscall(libc::SYS_migrate_pages, pid, node_bits(&from), from.as_ptr(), to.as_ptr())
    };
    u64::try_from(left).map_err(|_| io::Error::last_os_error())
}

/// How a program that starts gets its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryMode {
    /// From one node while it has room.
    Preferred,
    /// Round robin over several nodes.
    Interleave,
}

/// Has `command` start with its memory on `nodes`. It does not start where that is refused.
pub fn start_with_memory(command: &mut Command, mode: MemoryMode, nodes: &BTreeSet<u32>) {
    let words = node_words(nodes, nodes.last().copied());
    // SAFETY: between fork and exec, the closure makes one system call and allocates nothing.
    unsafe { command.pre_exec(move || set_words(mode, &words)) };
}

/// Has the calling thread, and what it starts, take memory from `nodes`.
pub fn set_memory(mode: MemoryMode, nodes: &BTreeSet<u32>) -> io::Result<()> {
    set_words(mode, &node_words(nodes, nodes.last().copied()))
}

fn set_words(mode: MemoryMode, words: &[libc::c_ulong]) -> io::Result<()> {
    let mode = match mode {
        MemoryMode::Preferred => libc::MPOL_PREFERRED,
        MemoryMode::Interleave => libc::MPOL_INTERLEAVE,
    };
    // SAFETY: the count of bits is that of the vector. The kernel reads no more.
    let done =
        unsafe { libc::syscall(libc::SYS_set_mempolicy, mode, words.as_ptr(), node_bits(words)) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn node_words(nodes: &BTreeSet<u32>, last: Option<u32>) -> Vec<libc::c_ulong> {
    let mut words = vec![0; last.map_or(0, |node| node as usize) / BITS + 1];
    for &node in nodes {
        words[node as usize / BITS] |= 1 << (node as usize % BITS);
    }
    words
}

/// The length to pass to the kernel, which uses one bit less.
fn node_bits(words: &[libc::c_ulong]) -> libc::c_ulong {
    (words.len() * BITS + 1) as libc::c_ulong
}

fn from_words(words: &[libc::c_ulong]) -> CpuSet {
    let bits = (0..words.len() * BITS).filter(|bit| words[bit / BITS] >> (bit % BITS) & 1 == 1);
    // A bit index is below LONGEST * 64 and fits.
    bits.map(|bit| CpuId(bit as u32)).collect()
}

fn to_words(cpus: &CpuSet) -> Vec<libc::c_ulong> {
    let highest = cpus.iter().last().map_or(0, |cpu| cpu.0 as usize);
    let mut words = vec![0; highest / BITS + 1];
    for cpu in cpus.iter() {
        words[cpu.0 as usize / BITS] |= 1 << (cpu.0 as usize % BITS);
    }
    words
}

/// The scheduling class of a thread and its real-time priority (0 for an ordinary class).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheduling {
    policy: libc::c_int,
    priority: libc::c_int,
}

impl Scheduling {
    /// The lowest real-time class. Processes and threads that the caller starts do not inherit it.
    pub const FIFO: Self =
        Self { policy: libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, priority: 1 };

    /// The same class. What the caller starts inherits it.
    pub const INHERITED_FIFO: Self = Self { policy: libc::SCHED_FIFO, priority: 1 };
    /// The class of ordinary threads.
    pub const ORDINARY: Self = Self { policy: libc::SCHED_OTHER, priority: 0 };
    /// The same class. What the caller starts does not inherit a nice value below 0.
    pub const ORDINARY_HERE: Self =
        Self { policy: libc::SCHED_OTHER | libc::SCHED_RESET_ON_FORK, priority: 0 };

    /// The class of the calling thread.
    pub fn current() -> io::Result<Self> {
        // SAFETY: the call takes no pointer.
        let policy = unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) };
        let mut priority: libc::c_int = 0;
        // SAFETY: the kernel's `struct sched_param` is one int, and it writes nothing else.
        let done = unsafe { libc::syscall(libc::SYS_sched_getparam, 0, &raw mut priority) };
        if policy < 0 || done < 0 {
            return Err(io::Error::last_os_error());
        }
        // The kernel returns an int.
        Ok(Self { policy: policy as libc::c_int, priority })
    }

    /// Gives this class to the calling thread.
    pub fn apply(self) -> io::Result<()> {
        // SAFETY: the kernel's `struct sched_param` is one int, and it reads nothing else.
        let done = unsafe {
            libc::syscall(libc::SYS_sched_setscheduler, 0, self.policy, &raw const self.priority)
        };
        if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

/// Has `command` start with this nice value, if that is allowed: lowering it may not be.
pub fn start_at_nice(command: &mut Command, nice: i32) {
    let apply = move || {
        let _ = rustix::process::setpriority_process(None, nice);
        Ok(())
    };
    // SAFETY: between fork and exec, the closure makes one system call and allocates nothing.
    unsafe { command.pre_exec(apply) };
}

/// The kernel's counts for processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessUsage {
    /// Time on a CPU, in user and kernel mode.
    pub cpu: Duration,
    /// Voluntary context switches.
    pub voluntary: u64,
}

impl Sub for ProcessUsage {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self { cpu: self.cpu - earlier.cpu, voluntary: self.voluntary - earlier.voluntary }
    }
}

/// The counts for this process's children that were waited for, and for those they waited for.
pub fn usage_of_children() -> ProcessUsage {
    // SAFETY: all-zero bytes are a valid `struct rusage`, which consists of integers.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes one `struct rusage`. The call fails for a bad pointer or an unknown
    // target only.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) };
    let time =
        |value: libc::timeval| Duration::new(value.tv_sec as u64, value.tv_usec as u32 * 1000);
    ProcessUsage {
        cpu: time(usage.ru_utime) + time(usage.ru_stime),
        voluntary: usage.ru_nvcsw as u64,
    }
}

/// The processor's time stamp counter, if it has one that user code may read.
pub fn time_stamp() -> Option<u64> {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has the instruction; it has no operands and changes nothing.
    return Some(unsafe { std::arch::x86_64::_rdtsc() });
    #[cfg(not(target_arch = "x86_64"))]
    None
}

/// Makes this process go on after all signals that end it, except SIGKILL. What it starts is ended
/// by them as usual: a program inherits a signal that is ignored, but no handler.
pub fn outlive_signals() {
    outlive(&[
        libc::SIGHUP,
        libc::SIGINT,
        libc::SIGQUIT,
        libc::SIGTERM,
        libc::SIGPIPE,
        libc::SIGTSTP,
    ]);
}

/// Makes a write beyond `ulimit -f` an error in this process, instead of its end by SIGXFSZ. What
/// it starts is ended by the signal, unless the caller of this process ignores it.
pub fn outlive_file_size_limit() {
    // SAFETY: asks for the action only; an all-zero `sigaction` is a valid place for it.
    let ignored = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGXFSZ, std::ptr::null(), &mut action) == 0
            && action.sa_sigaction == libc::SIG_IGN
    };
    if !ignored {
        outlive(&[libc::SIGXFSZ]);
    }
}

fn outlive(signals: &[libc::c_int]) {
    extern "C" fn nothing(_: libc::c_int) {}
    for &signal in signals {
        // SAFETY: the handler does nothing, so nothing runs in signal context.
        unsafe { libc::signal(signal, nothing as extern "C" fn(libc::c_int) as usize) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_mask_of_any_length_survives_the_kernels_form(
            cpus in proptest::collection::btree_set(0u32..9000, 0..40),
        ) {
            let set: CpuSet = cpus.into_iter().map(CpuId).collect();
            prop_assert_eq!(from_words(&to_words(&set)), set);
        }
    }

    #[test]
    fn masks_of_nodes_have_the_length_of_the_longer_one() {
        assert_eq!(node_words(&[1, 3].into(), Some(70)), [0b1010, 0]);
        assert_eq!(node_words(&[70].into(), Some(70)), [0, 1 << (70 % BITS)]);
        assert_eq!(node_bits(&[0, 0]), 2 * BITS as libc::c_ulong + 1);
    }

    #[test]
    fn a_process_has_used_what_its_threads_have_those_that_ended_included() {
        let own = rustix::process::getpid().as_raw_nonzero().get();
        let used = || {
            let time = rustix::time::clock_gettime(rustix::thread::ClockId::ThreadCPUTime);
            Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
        };
        let before = cpu_time(own).unwrap();
        let thread = std::thread::spawn(move || {
            while used() < Duration::from_millis(20) {}
            used()
        });
        let thread = thread.join().unwrap();
        assert!(thread >= Duration::from_millis(20) && cpu_time(own).unwrap() >= before + thread);
        assert!(cpu_time(i32::MAX >> 4).is_err(), "no process has that number");
    }

    #[test]
    fn the_calling_thread_can_be_confined_and_released() {
        let all = affinity(0).unwrap();
        let one: CpuSet = all.first().into_iter().collect();
        set_affinity(0, &one).unwrap();
        assert_eq!(affinity(0).unwrap(), one);
        set_affinity(0, &all).unwrap();
        assert_eq!(affinity(0).unwrap(), all);
    }

    #[test]
    fn bits_beyond_the_machine_are_no_error_as_long_as_one_is_on_it() {
        let all = affinity(0).unwrap();
        let mut more = all.clone();
        more.insert(CpuId(8191));
        set_affinity(0, &more).unwrap();
        assert_eq!(affinity(0).unwrap(), all);
    }
}
