//! Passes signals on to a program that was started in our own process group.

use rustix::process::{Pid, Signal, getpgrp, kill_process};
use rustix::termios::tcgetpgrp;
use std::fs::File;
use std::process::Child;

/// Sends `signal`, which this process got, to its child. In a terminal's foreground SIGINT is not
/// sent: the terminal sends it to the child as well. To a program, twice may mean more than once.
pub fn pass_on(signal: i32, child: &Child) {
    if let Some(signal) = Signal::from_named_raw(signal)
        && !(signal == Signal::INT && in_foreground())
    {
        // It may have ended just now.
        let _ = kill_process(Pid::from_child(child), signal);
    }
}

/// Whether our process group, and with it the child, is in the foreground of a terminal.
fn in_foreground() -> bool {
    let terminal = File::open("/dev/tty");
    terminal.is_ok_and(|terminal| tcgetpgrp(terminal).is_ok_and(|group| group == getpgrp()))
}
