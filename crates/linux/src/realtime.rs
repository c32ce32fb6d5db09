//! Runs the measuring thread in a real-time class, so that it wakes on time.
//!
//! Next to spinning threads, an ordinary thread wakes up to 15 ms late (99th percentile). A thread
//! of the lowest real-time class wakes within 50 us. It moves 24 threads in 0.2 ms instead of up to
//! 143 ms. The class needs CAP_SYS_NICE or a limit (`ulimit -r`). Without the class, measuring is
//! less punctual.

use crate::sys::{self, Scheduling};
use rustix::process::{getpriority_process, setpriority_process};
use std::io;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

/// While this value lives, the calling thread has SCHED_FIFO 1. What it starts runs in the ordinary
/// class, with nice 0 unless [`keep_nice`] is used.
#[derive(Debug)]
pub struct RealtimeClass {
    before: Scheduling,
}

impl RealtimeClass {
    /// Raises the calling thread; an error if that is not allowed.
    pub fn raise() -> io::Result<Self> {
        let before = Scheduling::current()?;
        Scheduling::FIFO.apply()?;
        Ok(Self { before })
    }
}

impl Drop for RealtimeClass {
    fn drop(&mut self) {
        // Going back to a lower class is always allowed.
        let _ = self.before.apply();
    }
}

/// While this value lives, the calling thread comes before ordinary ones: nice -20. What it starts
/// has nice 0.
///
/// A program may have hundreds of busy threads for each CPU. Beside them an ordinary thread hardly
/// runs, and no budget is kept.
#[derive(Debug)]
pub(crate) struct FirstInLine {
    before: Scheduling,
}

/// How many of them live.
static FIRST_IN_LINE: AtomicUsize = AtomicUsize::new(0);

impl FirstInLine {
    /// Puts the calling thread there. `None`: that is not allowed, or it has a nice value that
    /// somebody chose.
    pub(crate) fn step() -> Option<Self> {
        let before = Scheduling::current().ok()?;
        if getpriority_process(None) != Ok(0) || setpriority_process(None, -20).is_err() {
            return None;
        }
        let first = Self { before };
        FIRST_IN_LINE.fetch_add(1, Ordering::Relaxed);
        before.reset_on_fork().apply().ok()?;
        Some(first)
    }
}

impl Drop for FirstInLine {
    fn drop(&mut self) {
        let _ = setpriority_process(None, 0);
        let _ = self.before.apply();
        FIRST_IN_LINE.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Starts `command` where the calling thread is, if it is first in line.
pub(crate) fn keep_first(command: &mut Command) {
    if FIRST_IN_LINE.load(Ordering::Relaxed) > 0 && getpriority_process(None) == Ok(-20) {
        sys::start_at_nice(command, -20);
    }
}

/// Gives the place of [`keep_first`] up.
pub(crate) fn step_back() {
    if getpriority_process(None) == Ok(-20) {
        let _ = setpriority_process(None, 0);
    }
}

/// Starts `command` with the nice value of the calling thread, whatever class the thread has.
///
/// The kernel resets class and nice value together when a thread of a real-time class starts
/// something. Without this, `nice pinwise` would measure a program that is not nice.
pub fn keep_nice(command: &mut Command) {
    match getpriority_process(None) {
        Ok(nice) if nice < 0 && FIRST_IN_LINE.load(Ordering::Relaxed) > 0 => {}
        Ok(nice) if nice != 0 => sys::start_at_nice(command, nice),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn the_class_is_given_back() {
        let before = Scheduling::current().unwrap();
        if let Ok(raised) = RealtimeClass::raise() {
            assert_eq!(Scheduling::current().unwrap(), Scheduling::FIFO);
            drop(raised);
        }
        assert_eq!(Scheduling::current().unwrap(), before);
    }

    #[test]
    fn who_is_first_in_line_starts_what_is_not() {
        // A nice value belongs to one thread.
        let checked = thread::spawn(|| {
            let before = (Scheduling::current().unwrap(), getpriority_process(None).unwrap());
            let Some(first) = FirstInLine::step() else {
                return pinwise_synthetic::lacking("the right to a nice value below 0");
            };
            assert_eq!(getpriority_process(None).unwrap(), -20);
            let raised = RealtimeClass::raise();
            let mut nice = Command::new("nice");
            keep_nice(&mut nice);
            let printed = String::from_utf8(nice.output().unwrap().stdout).unwrap();
            assert_eq!(printed.trim(), "0");
            drop(raised);
            let inherited = thread::spawn(|| getpriority_process(None).unwrap()).join();
            assert_eq!(inherited.unwrap(), 0);
            assert_eq!(getpriority_process(None).unwrap(), -20);
            drop(first);
            assert_eq!(
                (Scheduling::current().unwrap(), getpriority_process(None).unwrap()),
                before
            );
        });
        checked.join().unwrap();
    }

    #[test]
    fn what_a_raised_thread_starts_keeps_the_nice_value() {
        // A nice value belongs to one thread.
        let started = thread::spawn(|| {
            let nice = (getpriority_process(None).unwrap() + 5).min(19);
            setpriority_process(None, nice).unwrap();
            let _raised = RealtimeClass::raise();
            let mut command = Command::new("nice");
            keep_nice(&mut command);
            (nice, String::from_utf8(command.output().unwrap().stdout).unwrap())
        });
        let (nice, printed) = started.join().unwrap();
        assert_eq!(printed.trim(), nice.to_string());
    }
}
