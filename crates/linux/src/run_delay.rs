//! How long the calling thread waited for a CPU. What it reads may be older by that time.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;

/// The time that the calling thread could have run and had to wait for a CPU. What such a thread
/// sees at once may have happened over all that time.
#[derive(Debug)]
pub struct RunDelay {
    /// The scheduler's account of the thread; `None` if the kernel keeps none.
    account: Option<File>,
    /// The total so far.
    last: Duration,
}

impl RunDelay {
    /// Watches the calling thread, from now on.
    pub fn of_this_thread() -> Self {
        let account = File::open("/proc/thread-self/schedstat").ok();
        let mut delay = Self { account, last: Duration::ZERO };
        delay.since_last();
        delay
    }

    /// The delay since it was asked for last.
    pub fn since_last(&mut self) -> Duration {
        let total = self.total().unwrap_or(self.last);
        let delay = total.saturating_sub(self.last);
        self.last = total;
        delay
    }

    /// From `RUNNING WAITING SLICES`, the first two in nanoseconds.
    fn total(&self) -> Option<Duration> {
        let mut text = [0; 64];
        let read = self.account.as_ref()?.read_at(&mut text, 0).ok()?;
        let waited = std::str::from_utf8(&text[..read]).ok()?.split_whitespace().nth(1)?;
        waited.parse().ok().map(Duration::from_nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{affinity, thread::Tid};
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn a_thread_that_shares_its_cpu_was_kept_from_running() {
        let first = affinity::get(Tid(0)).unwrap().iter().take(1).collect();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            // On threads of their own: this one keeps its affinity.
            let kept = scope.spawn(|| {
                affinity::set(Tid(0), &first).unwrap();
                let mut delay = RunDelay::of_this_thread();
                scope.spawn(|| {
                    while !over.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                });
                let mut waited = Duration::ZERO;
                while delay.account.is_some() && waited < Duration::from_millis(5) {
                    waited += delay.since_last();
                }
                over.store(true, Ordering::Relaxed);
                (delay.account.is_some(), waited, delay.last)
            });
            let (accounted, waited, total) = kept.join().unwrap();
            // Each delay was reported once.
            assert!(!accounted || (Duration::from_millis(5)..=total).contains(&waited));
        });
    }
}
