//! Runs the measuring thread in a real-time class, so that it wakes on time.
//!
//! Next to spinning threads, an ordinary thread wakes up to 15 ms late (99th percentile). A thread
//! of the lowest real-time class wakes within 50 us. It moves 24 threads in 0.2 ms instead of up to
//! 143 ms. The class needs CAP_SYS_NICE or a limit (`ulimit -r`). Without the class, measuring is
//! less punctual.

use crate::affinity;
use crate::sys::{self, Scheduling};
use rustix::process::{getpriority_process, setpriority_process};
use std::cell::Cell;
use std::fs;
use std::io;
use std::process::{Child, Command};

/// While this value lives, the calling thread has SCHED_FIFO 1. What it starts runs in the ordinary
/// class, with nice 0 unless [`keep_nice`] is used.
#[derive(Debug)]
pub struct RealtimeClass {
    before: Scheduling,
}

impl RealtimeClass {
    /// Raises the calling thread; an error if that is not allowed.
    pub fn raise() -> io::Result<Self> {
        Self::raise_from(Scheduling::current()?)
    }

    /// The same for a guardian, which may have the class from its start on.
    pub(crate) fn raise_guardian() -> io::Result<Self> {
        Self::raise_from(Scheduling::ORDINARY)
    }

    fn raise_from(before: Scheduling) -> io::Result<Self> {
        Scheduling::FIFO.apply()?;
        RAISED.set(RAISED.get() + 1);
        Ok(Self { before })
    }
}

impl Drop for RealtimeClass {
    fn drop(&mut self) {
        RAISED.set(RAISED.get() - 1);
        let class = match RAISED.get() == 0 && PRECEDENCE.get() == Precedence::Shares {
            true => Scheduling::ORDINARY_HERE,
            false => self.before,
        };
        // Going back to a lower class is always allowed, but not to what children inherit.
        if class.apply().is_err() {
            let _ = Scheduling::ORDINARY_HERE.apply();
        }
    }
}

/// How a thread comes before ordinary ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Precedence {
    /// Not at all.
    None,
    /// In the real-time class.
    Class,
    /// By its nice value, unless it is raised.
    Shares,
}

thread_local! {
    /// That of this thread.
    static PRECEDENCE: Cell<Precedence> = const { Cell::new(Precedence::None) };
    /// How many [`RealtimeClass`] of this thread live.
    static RAISED: Cell<usize> = const { Cell::new(0) };
}

/// The calling thread comes before ordinary ones from now on. What it starts does not. Nothing
/// happens if that is not allowed, or if somebody chose a class or a nice value for it.
///
/// A program may have hundreds of busy threads for each CPU. Beside them an ordinary thread waits
/// for seconds after each 3 ms that it runs, and no budget is kept. So what works on a running
/// program takes precedence first of all, in the real-time class. Once it has attached it computes,
/// too. Then [`share_with_others`] leaves half of a CPU to the program.
pub fn take_precedence() {
    let is_ordinary = Scheduling::current().is_ok_and(|class| class == Scheduling::ORDINARY)
        && getpriority_process(None) == Ok(0);
    if is_ordinary && Scheduling::FIFO.apply().is_ok() {
        PRECEDENCE.set(Precedence::Class);
    }
}

/// What one step of the nice value changes the share of a CPU by (sched(7)).
const NICE_STEP: f64 = 1.25;

/// The nice value of the largest share.
const LOWEST_NICE: i32 = -20;

/// The nice value that gives a thread as much of a CPU as `threads` ordinary ones have together.
/// `None`: none does.
fn nice_beside(threads: f64) -> Option<i32> {
    let steps = (threads.max(1.0).ln() / NICE_STEP.ln()).round();
    (-steps >= f64::from(LOWEST_NICE)).then_some(-(steps as i32))
}

/// Leaves half of a CPU to others, if the calling thread has taken precedence. `threads_per_cpu` is
/// how many busy threads the program has for each of its CPUs. The machine may have more.
///
/// Beside more than about 97 ready threads for each CPU no nice value does that. Then it keeps the
/// real-time class: each of them waits long anyway. So it must compute little there. If it has left
/// the class before, it takes the lowest nice value.
pub fn share_with_others(threads_per_cpu: f64) {
    let precedence = PRECEDENCE.get();
    if precedence == Precedence::None {
        return;
    }
    let ready = threads_per_cpu.max(ready_per_cpu().unwrap_or(1.0));
    let nice = match nice_beside(ready) {
        None if precedence == Precedence::Class => return,
        nice => nice.unwrap_or(LOWEST_NICE),
    };
    // Who may have the class may lack the right to a nice value.
    let _ = setpriority_process(None, nice);
    PRECEDENCE.set(Precedence::Shares);
    if RAISED.get() == 0 {
        // A lower class is always allowed.
        let _ = Scheduling::ORDINARY_HERE.apply();
    }
}

/// How many threads of the machine run or wait for a CPU now, for each CPU.
fn ready_per_cpu() -> Option<f64> {
    let load = fs::read_to_string("/proc/loadavg").ok()?;
    let (ready, _) = load.split(' ').nth(3)?.split_once('/')?;
    Some(ready.parse::<f64>().ok()? / affinity::online().ok()?.len() as f64)
}

/// Starts a guardian. The caller waits for its start. So the guardian begins in the real-time class
/// if the caller has that class or has taken precedence, and if it is allowed.
pub(crate) fn start_guardian(command: &mut Command) -> io::Result<Child> {
    let precedes = PRECEDENCE.get() != Precedence::None;
    let _raised = precedes.then(RealtimeClass::raise);
    if precedes {
        // The nice value is that of a thread that computes.
        sys::start_at_nice(command, 0);
    }
    let inherits = Scheduling::current().is_ok_and(|class| class == Scheduling::FIFO)
        && Scheduling::INHERITED_FIFO.apply().is_ok();
    let started = command.spawn();
    if inherits {
        // It is only to set the flag again. An error here would leave the guardian alone.
        let _ = Scheduling::FIFO.apply();
    }
    started
}

/// Starts `command` with the nice value of the calling thread, whatever class the thread has.
///
/// The kernel resets class and nice value together when a thread of a real-time class starts
/// something. Without this, `nice pinwise` would measure a program that is not nice.
pub fn keep_nice(command: &mut Command) {
    match getpriority_process(None) {
        Ok(nice) if nice < 0 && PRECEDENCE.get() != Precedence::None => {}
        Ok(nice) if nice != 0 => sys::start_at_nice(command, nice),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Stdio;
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
    fn what_a_raised_thread_starts_is_ordinary_unless_it_is_a_guardian() {
        let raised = RealtimeClass::raise();
        let is_permitted = Scheduling::INHERITED_FIFO.apply().is_ok();
        if raised.is_err() || !is_permitted {
            return pinwise_synthetic::lacking("the right to a real-time class");
        }
        Scheduling::FIFO.apply().unwrap();
        // Field 41 of /proc/PID/stat tells the class.
        let mut shell = Command::new("cut");
        shell.args(["-d", " ", "-f", "41", "/proc/self/stat"]).stdout(Stdio::piped());
        let class_of = |child: Child| {
            let printed = child.wait_with_output().unwrap().stdout;
            String::from_utf8(printed).unwrap().trim().to_owned()
        };
        assert_eq!(class_of(shell.spawn().unwrap()), "0");
        assert_eq!(class_of(start_guardian(&mut shell).unwrap()), "1");
        assert_eq!(Scheduling::current().unwrap(), Scheduling::FIFO);
    }

    #[test]
    fn who_has_precedence_starts_what_has_none() {
        // Class and nice value belong to one thread.
        let checked = thread::spawn(|| {
            let class = || Scheduling::current().unwrap();
            take_precedence();
            if PRECEDENCE.get() == Precedence::None {
                return pinwise_synthetic::lacking("the right to a real-time class");
            }
            assert_eq!(class(), Scheduling::FIFO);
            let is_crowded = || ready_per_cpu().unwrap() > 80.0;
            let raised = RealtimeClass::raise().unwrap();
            share_with_others(1.0);
            assert_eq!(class(), Scheduling::FIFO);
            drop(raised);
            assert!(class() == Scheduling::ORDINARY_HERE || is_crowded());
            share_with_others(1.0);
            assert!(class() == Scheduling::ORDINARY_HERE || is_crowded());
            if class() == Scheduling::ORDINARY_HERE {
                // Beside so many it would keep the class, if it had not left it.
                share_with_others(1_000.0);
                let nice = getpriority_process(None).unwrap();
                assert!(nice == LOWEST_NICE || setpriority_process(None, -7).is_err(), "{nice}");
            }
            // What it would have beside some others.
            if setpriority_process(None, -7).is_err() {
                return pinwise_synthetic::lacking("the right to a nice value below 0");
            }
            Scheduling::ORDINARY_HERE.apply().unwrap();
            let nice_of_a_child = || {
                let mut nice = Command::new("nice");
                keep_nice(&mut nice);
                String::from_utf8(nice.output().unwrap().stdout).unwrap().trim().to_owned()
            };
            assert_eq!(nice_of_a_child(), "0");
            let raised = RealtimeClass::raise().unwrap();
            assert_eq!(nice_of_a_child(), "0");
            drop(raised);
            assert_eq!(class(), Scheduling::ORDINARY_HERE);
            let inherited = thread::spawn(|| getpriority_process(None).unwrap()).join();
            assert_eq!(inherited.unwrap(), 0);
        });
        checked.join().unwrap();
    }

    #[test]
    fn a_thread_with_a_nice_value_takes_no_precedence() {
        // A nice value belongs to one thread.
        let taken = thread::spawn(|| {
            setpriority_process(None, 7).unwrap();
            take_precedence();
            PRECEDENCE.get() != Precedence::None
        });
        assert!(!taken.join().unwrap());
    }

    #[test]
    fn half_of_a_cpu_is_left_to_others_however_many() {
        assert_eq!(nice_beside(0.5), Some(0));
        assert_eq!(nice_beside(1.0), Some(0));
        // The kernel's weights of these nice values are 1.94, 9.32 and 86.7 times that of nice 0.
        assert_eq!(nice_beside(1.94), Some(-3));
        assert_eq!(nice_beside(9.32), Some(-10));
        assert_eq!(nice_beside(86.7), Some(-20));
        assert_eq!(nice_beside(1_000.0), None);
        assert!(ready_per_cpu().unwrap() > 0.0);
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
