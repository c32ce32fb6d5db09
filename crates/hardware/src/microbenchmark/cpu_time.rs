//! The CPU time of a thread.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// The CPU time of the calling thread that `act` takes.
pub(super) fn timed(act: impl FnOnce()) -> Duration {
    let now = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        // CPU time is never negative.
        Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
    };
    let before = now();
    act();
    now().saturating_sub(before)
}
