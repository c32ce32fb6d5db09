//! Whether any process or thread was created on the machine.
//!
//! Listing the threads of a process takes about 10 us, listing all processes ten times that and
//! more. One small file of the kernel has the number of the newest thread (`/proc/loadavg`,
//! proc_loadavg(5)). While that number stays the same, there is nothing new to list.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

/// A thread has its number for a moment before it can be listed. The moment is longer if its parent
/// loses its CPU just then.
const LISTED: Duration = Duration::from_millis(100);

/// Watches the number that a new thread was given last.
#[derive(Debug)]
pub struct ForkWatch {
    /// `None` if the kernel does not report it.
    file: Option<File>,
    last: u64,
    /// When `last` was seen for the first time.
    since: Instant,
    /// Whether everything was listed after the thread with that number had to be listed.
    listed: bool,
}

impl Default for ForkWatch {
    /// Whatever there is now counts as new.
    fn default() -> Self {
        // A file that is laid over it in a container (lxcfs) follows seconds later.
        let own = |file: &File| {
            rustix::fs::fstatfs(file).is_ok_and(|kind| kind.f_type == rustix::fs::PROC_SUPER_MAGIC)
        };
        Self {
            file: File::open("/proc/loadavg").ok().filter(own),
            last: 0,
            since: Instant::now(),
            listed: false,
        }
    }
}

impl ForkWatch {
    /// Whether there may be processes or threads that could not be listed at the last call. Call
    /// this before you list them.
    pub fn any(&mut self) -> bool {
        self.newest().is_none_or(|last| self.see(last, Instant::now()))
    }

    /// The number of the newest thread; `None` if it is not known.
    pub(crate) fn newest(&self) -> Option<u64> {
        let mut text = [0; 128];
        let length = self.file.as_ref()?.read_at(&mut text, 0).ok()?;
        newest(&text[..length])
    }

    fn see(&mut self, last: u64, now: Instant) -> bool {
        if last != self.last {
            (self.last, self.since, self.listed) = (last, now, false);
        }
        // However seldom it is asked: once more when it must be there.
        let listed = std::mem::replace(&mut self.listed, now >= self.since + LISTED);
        !listed
    }
}

/// The number of the newest thread in the text of `/proc/loadavg`; `None` if the text has none
/// (gVisor writes 0).
fn newest(text: &[u8]) -> Option<u64> {
    let number = std::str::from_utf8(text).ok()?.split_ascii_whitespace().nth(4)?.parse().ok()?;
    (number > 0).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_thread_is_the_last_number() {
        assert_eq!(newest(b"0.20 0.18 0.12 1/80 11206\n"), Some(11206));
        for text in [
            &b"0.00 0.00 0.00 0/0 0\n"[..],
            b"",
            b"0.20 0.18 0.12 1/80",
            b"0.20 0.18 0.12 1/80 x\n",
            b"\xff",
        ] {
            assert_eq!(newest(text), None);
        }
    }

    #[test]
    fn a_new_thread_and_a_new_process_get_another_number() {
        let forks = ForkWatch::default();
        let Some(before) = forks.newest() else {
            return pinwise_synthetic::not_judged("this kernel does not number forks");
        };
        std::thread::spawn(|| {}).join().unwrap();
        let between = forks.newest().unwrap();
        std::process::Command::new("true").status().unwrap();
        assert!(before != between && between != forks.newest().unwrap());
    }

    #[test]
    fn what_has_a_number_is_listed_until_it_must_be_there() {
        let mut forks = ForkWatch::default();
        let begin = Instant::now();
        assert!(forks.see(7, begin), "nothing is known at first");
        assert!(forks.see(7, begin + LISTED / 2) && forks.see(7, begin + LISTED));
        assert!(!forks.see(7, begin + LISTED) && !forks.see(7, begin + 2 * LISTED));
        // As a monitor asks, and seldom, if looks are dear.
        for apart in [LISTED, LISTED.mul_f64(1.05), 5 * LISTED] {
            let (mut forks, begin) = (ForkWatch::default(), Instant::now());
            assert!(
                forks.see(7, begin)
                    && forks.see(7, begin + apart)
                    && !forks.see(7, begin + 2 * apart)
            );
            assert!(forks.see(9, begin + 3 * apart) && forks.see(9, begin + 4 * apart));
            assert!(!forks.see(9, begin + 5 * apart));
        }
    }

    #[test]
    fn without_reports_of_the_kernel_new_threads_are_always_possible() {
        let mut forks = ForkWatch { file: None, ..ForkWatch::default() };
        std::thread::sleep(LISTED);
        assert!(forks.any());
    }
}
