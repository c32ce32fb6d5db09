//! The cost of watching, measured on the spot.
//!
//! The kernel reports the CPU time of the watching thread. The time that a layer adds to context
//! switches is part of the program's own time. It is the number of switches on the machine in the
//! window times the measured cost of one.

use rustix::thread::ClockId;
use serde::{Deserialize, Serialize};
use std::ops::AddAssign;
use std::time::Duration;

/// CPU time that watching took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Overhead {
    /// CPU time of the thread that watches.
    pub watching: Duration,
    /// In the kernel, at context switches: `switches * per_switch`.
    pub switching: Duration,
    /// Context switches of the whole machine in the window; 0 if the layer adds nothing to
    /// them.
    pub switches: u64,
    /// What the layer adds to one, measured before the window.
    pub per_switch: Duration,
}

impl Overhead {
    /// Both parts.
    pub fn total(&self) -> Duration {
        self.watching + self.switching
    }

    /// Adds a cost at each context switch.
    pub(super) fn charge(&mut self, switches: u64, per_switch: Duration) {
        (self.switches, self.per_switch) = (switches, per_switch);
        self.switching = per_switch.mul_f64(switches as f64);
    }
}

/// Adds up two windows that follow each other.
impl AddAssign for Overhead {
    fn add_assign(&mut self, later: Self) {
        self.watching += later.watching;
        self.switching += later.switching;
        self.switches += later.switches;
        self.per_switch = self.per_switch.max(later.per_switch);
    }
}

/// CPU time of the calling thread since it began.
pub(super) fn own_time() -> Duration {
    let time = rustix::time::clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

/// The monotonic clock, in nanoseconds: the clock of the kernel's records.
pub(super) fn now() -> u64 {
    let time = rustix::time::clock_gettime(ClockId::Monotonic);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// Context switches of the whole machine since boot (`ctxt` in `/proc/stat`); 0 if they are not
/// reported.
#[cfg(feature = "bpf")]
pub(super) fn machine_switches() -> u64 {
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    stat.lines().find_map(|line| line.strip_prefix("ctxt ")?.trim().parse().ok()).unwrap_or(0)
}
