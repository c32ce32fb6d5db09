//! A command that prints the number.
//!
//! A command without shell syntax is started without a shell, which saves one or two milliseconds
//! per reading.

use crate::number;
use crate::pattern::Pattern;
use crate::source::{MetricValue, Source, SourceError, last_line};
use pinwise_figures::duration;
use pinwise_linux::keep_nice;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use rustix::process::{Pid, Signal, kill_process_group, setpriority_pgrp};
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Runs the command for each reading, and picks the number from its output.
pub(crate) struct ShellCommand {
    pub(crate) command: String,
    /// Where the number is in the output; if absent, the whole output must be the number.
    pub(crate) pick: Option<Pattern>,
    /// A command that takes longer is stopped.
    pub(crate) timeout: Duration,
    /// It has given a number.
    pub(crate) succeeded: bool,
}

/// What a command printed, and whether it succeeded.
struct CommandOutput {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    status: std::process::ExitStatus,
}

/// Enough for any status page. What comes after that is not kept. A command that prints for ever is
/// stopped by its time limit.
const LONGEST: usize = 4 << 20;

impl Source for ShellCommand {
    fn read(&mut self, cancelled: &dyn Fn() -> bool) -> Result<MetricValue, SourceError> {
        let output = self.run(Urgency::First, cancelled)?;
        if output.stdout.len() > LONGEST {
            return Err(SourceError::on(
                format_args!("command '{}'", self.command),
                "it printed more than 4 MiB: have it print less, with grep for example",
            ));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let found = match &self.pick {
            Some(pattern) => pattern.find(&text)?,
            None => number::parse(&text, None)?.map(MetricValue::of),
        };
        // A number is a number, whatever the exit code: `grep` in the pipe may have failed on
        // another file.
        if let Some(sample) = found {
            self.succeeded = true;
            return Ok(sample);
        }
        let complaint = String::from_utf8_lossy(&output.stderr);
        let printed = last_line(&complaint)
            .or_else(|| last_line(&text))
            .map_or("nothing".to_owned(), |line| format!("'{line}'"));
        if !output.status.success() && self.fails_for_good(&output) {
            return Err(SourceError::Hopeless(format!(
                "command '{}' ended with {} and printed {printed}: it must print a number",
                self.command, output.status
            )));
        }
        Err(SourceError::on(
            format_args!("command '{}'", self.command),
            match (&self.pick, output.status.success()) {
                (_, false) => format!("{} (it printed {printed})", output.status),
                (Some(pattern), true) => {
                    format!(
                        "'{pattern}' does not match its output ({} bytes, last: {printed})",
                        text.len()
                    )
                }
                (None, true) => {
                    format!(
                        "its output is not a number (last: {printed}): name the part that is one \
                         with --pick REGEX"
                    )
                }
            },
        ))
    }
}

/// Why a command that was run for its effect did not succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandError {
    /// Why, for the user.
    pub why: String,
    /// It was stopped while it ran: it may have had its effect, or half of it.
    pub stopped: bool,
}

impl From<String> for CommandError {
    fn from(why: String) -> Self {
        Self { why, stopped: false }
    }
}

/// Runs a command for its effect, with an environment variable (name, value).
///
/// # Errors
/// Why it did not succeed.
pub fn run(
    command: &str,
    variable: (&str, &str),
    timeout: Duration,
    cancelled: &dyn Fn() -> bool,
) -> Result<(), CommandError> {
    let command = ShellCommand { command: command.into(), pick: None, timeout, succeeded: false };
    let stopped = |why| CommandError { why, stopped: true };
    let output = match command.run(Urgency::Usual(variable), cancelled) {
        Ok(output) => output,
        Err(SourceError::Cancelled) => return Err(stopped("it was stopped".into())),
        // It ran too long, or what it prints cannot be read.
        Err(SourceError::Unreadable(why) | SourceError::Hopeless(why)) => return Err(stopped(why)),
        Err(SourceError::TwoReadings(error)) => return Err(stopped(error.to_string())),
    };
    if output.status.success() {
        return Ok(());
    }
    let last = last_line(&String::from_utf8_lossy(&output.stderr))
        .map_or(String::new(), |line| format!(": {line}"));
    Err(format!("command '{}': {}{last}", command.command, output.status).into())
}

/// Whether a command goes before other programs.
#[derive(Clone, Copy, PartialEq)]
enum Urgency<'a> {
    /// A reading does: next to a busy program it would take tens of milliseconds otherwise.
    First,
    /// What a command starts for good has its priority, so that must be the usual one. The command
    /// has this environment variable.
    Usual((&'a str, &'a str)),
}

impl ShellCommand {
    /// A command that failed will fail again, whatever the program does: it cannot be run, or it
    /// asks nobody. Any other may be waiting for a program that is still starting. An example is
    /// `curl -s ADDRESS`, which fails in silence.
    fn fails_for_good(&self, output: &CommandOutput) -> bool {
        let silent = output.stdout.is_empty() && output.stderr.is_empty();
        let asks_nobody = words(&self.command).is_some_and(|(program, mut arguments)| {
            !program.contains('/') && arguments.next().is_none()
        });
        let cannot_run = matches!(output.status.code(), Some(126 | 127));
        !self.succeeded && (cannot_run || silent && asks_nobody)
    }

    fn run(
        &self,
        urgency: Urgency<'_>,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<CommandOutput, SourceError> {
        let fail =
            |error: io::Error| SourceError::on(format_args!("command '{}'", self.command), error);
        // A word that is no program may be a builtin; and where it is neither the shell says so.
        let direct =
            words(&self.command).and_then(|(program, words)| start(program, words, urgency).ok());
        let mut child = match direct {
            Some(child) => child,
            None => start("sh", ["-c", &self.command], urgency).map_err(fail)?,
        };
        if let (Some(group), Urgency::First) = (group(&child), urgency) {
            // Where allowed.
            let _ = setpriority_pgrp(Some(group), -20);
        }
        let collected = self.collect(&mut child, cancelled);
        if collected.is_err() {
            stop(&mut child);
        }
        collected.and_then(|(stdout, stderr)| {
            Ok(CommandOutput { stdout, stderr, status: child.wait().map_err(fail)? })
        })
    }

    /// Reads both pipes to their ends, or until the shell is gone and they are empty. It may have
    /// left a daemon behind that holds them open.
    fn collect(
        &self,
        child: &mut Child,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<(Vec<u8>, Vec<u8>), SourceError> {
        let what = || format!("command '{}'", self.command);
        let deadline = Instant::now() + self.timeout;
        let (Some(mut stdout), Some(mut stderr)) = (child.stdout.take(), child.stderr.take())
        else {
            return Err(SourceError::on(what(), "its output cannot be read"));
        };
        let mut texts = (Vec::new(), Vec::new());
        let mut open = (true, true);
        let mut gone = false;
        let mut buffer = [0; 8192];
        while open.0 || open.1 {
            let ready = {
                let mut fds = Vec::with_capacity(2);
                if open.0 {
                    fds.push(PollFd::new(&stdout, PollFlags::IN));
                }
                if open.1 {
                    fds.push(PollFd::new(&stderr, PollFlags::IN));
                }
                let slice = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
                // A signal, such as that of a Ctrl-C, is no failure of the command.
                retry_on_intr(|| poll(&mut fds, Some(&slice)))
                    .map_err(|errno| SourceError::on(what(), errno))?;
                let mut ready = fds.iter().map(|fd| !fd.revents().is_empty());
                (open.0 && ready.next() == Some(true), open.1 && ready.next() == Some(true))
            };
            if ready.0 {
                open.0 = take(&mut stdout, &mut buffer, &mut texts.0)
                    .map_err(|error| SourceError::on(what(), error))?;
            }
            if ready.1 {
                open.1 = take(&mut stderr, &mut buffer, &mut texts.1)
                    .map_err(|error| SourceError::on(what(), error))?;
            }
            if cancelled() {
                return Err(SourceError::Cancelled);
            }
            if ready == (false, false) {
                // It may have printed and ended after that look: only the next one is of all.
                if gone {
                    break;
                }
                gone = child.try_wait().is_ok_and(|status| status.is_some());
            }
            if !gone && Instant::now() >= deadline {
                return Err(SourceError::on(
                    what(),
                    format_args!("still running after {}: stopped", duration(self.timeout)),
                ));
            }
        }
        Ok(texts)
    }
}

/// The program and its arguments, if a shell would only separate them. Anything but letters, digits
/// and a few signs that mean nothing to a shell is left to the shell. So is an assignment before
/// the program.
fn words(command: &str) -> Option<(&str, impl Iterator<Item = &str>)> {
    let plain = |letter: char| letter.is_alphanumeric() || " _-./:,@%+=".contains(letter);
    let mut words = command.split(' ').filter(|word| !word.is_empty());
    let program = words.next().filter(|program| !program.contains('='))?;
    command.chars().all(plain).then_some((program, words))
}

/// The program of a command without shell syntax. It must be neither an executable file nor one of
/// the shell's own commands.
pub(crate) fn unknown(command: &str) -> Option<&str> {
    let (program, _) = words(command)?;
    let mut shell = Command::new("sh");
    shell
        .args(["-c", "command -v \"$1\"", "sh", program])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // Where there is no shell nothing is known.
    shell.status().is_ok_and(|status| !status.success()).then_some(program)
}

/// Starts a program in a new process group. What it starts is stopped with it, and a Ctrl-C on the
/// terminal reaches only pinwise.
fn start<'a>(
    program: &str,
    arguments: impl IntoIterator<Item = &'a str>,
    urgency: Urgency<'_>,
) -> io::Result<Child> {
    let mut command = Command::new(program);
    if let Urgency::Usual((name, value)) = urgency {
        command.env(name, value);
    }
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    keep_nice(&mut command);
    command.spawn()
}

/// Appends what a pipe holds. Returns whether the pipe is still open.
fn take(pipe: &mut impl Read, buffer: &mut [u8], text: &mut Vec<u8>) -> io::Result<bool> {
    let read = pipe.read(buffer)?;
    if text.len() <= LONGEST {
        text.extend_from_slice(&buffer[..read]);
    }
    Ok(read > 0)
}

/// The process group of the command, which has the number of its leader.
fn group(child: &Child) -> Option<Pid> {
    i32::try_from(child.id()).ok().and_then(Pid::from_raw)
}

/// Kills the command with everything it started.
fn stop(child: &mut Child) {
    if let Some(group) = group(child) {
        // Gone already is as good.
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(text: &str, pick: Option<&str>) -> ShellCommand {
        let pick = pick.map(|pick| Pattern::new(pick).unwrap());
        ShellCommand {
            command: text.into(),
            pick,
            timeout: Duration::from_secs(5),
            succeeded: false,
        }
    }

    fn why(text: &str, pick: Option<&str>) -> String {
        match command(text, pick).read(&|| false) {
            Err(SourceError::Unreadable(why) | SourceError::Hopeless(why)) => why,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_lone_number_needs_no_pick() {
        assert_eq!(command("echo 1,234.5", None).read(&|| false).unwrap().value, 1234.5);
    }

    #[test]
    fn a_command_that_cannot_succeed_is_told_from_one_that_may_later() {
        for text in ["false", "no-such-program 1", "/dev/null"] {
            let failed = command(text, None).read(&|| false);
            assert!(matches!(failed, Err(SourceError::Hopeless(_))), "{text}: {failed:?}");
        }
        // As `curl -s` of a server that is not up yet; or what says why.
        for text in ["sh -c false", "test -e /nowhere", "cat /nowhere", "false | false"] {
            let failed = command(text, None).read(&|| false);
            assert!(matches!(failed, Err(SourceError::Unreadable(_))), "{text}: {failed:?}");
        }
        let folder = tempfile::tempdir().unwrap();
        let seen = folder.path().join("seen");
        let mut source =
            command(&format!("test -e {0} && exit 126; touch {0}; echo 5", seen.display()), None);
        assert!(source.read(&|| false).is_ok());
        assert!(matches!(source.read(&|| false), Err(SourceError::Unreadable(_))), "it has worked");
    }

    #[test]
    fn what_a_command_leaves_running_has_the_usual_priority() {
        let folder = tempfile::tempdir().unwrap();
        let printed = folder.path().join("nice");
        // A reading is given its priority once it runs: leave time for that.
        let text = format!("sleep 0.2; nice > {}", printed.display());
        run(&text, ("PINWISE_SET", "1"), Duration::from_secs(60), &|| false).unwrap();
        let nice = rustix::process::getpriority_process(None).unwrap();
        assert_eq!(std::fs::read_to_string(printed).unwrap().trim(), nice.to_string());
    }

    #[test]
    fn a_command_that_is_stopped_may_have_had_its_effect() {
        let failed = |text: &str, timeout, cancelled: bool| {
            run(text, ("PINWISE_SET", "1"), timeout, &|| cancelled).unwrap_err()
        };
        let long = Duration::from_secs(60);
        let refused = failed("echo no >&2; exit 3", long, false);
        assert!(!refused.stopped && refused.why.ends_with("exit status: 3: no"), "{refused:?}");
        let late = failed("sleep 60", Duration::ZERO, false);
        assert!(late.stopped && late.why.contains("still running after"), "{late:?}");
        assert!(failed("sleep 60", long, true).stopped);
    }

    #[test]
    fn a_shell_is_started_only_where_there_is_something_for_it_to_do() {
        let (program, arguments) = words("redis-cli  -p 6379 info stats").unwrap();
        assert_eq!(
            (program, arguments.collect::<Vec<_>>()),
            ("redis-cli", vec!["-p", "6379", "info", "stats"])
        );
        for text in [
            "a | b",
            "echo 'a b'",
            "cat <f",
            "a;b",
            "cat *.txt",
            "A=1 b",
            "cat ~/f",
            "echo $A",
            "a\nb",
            "",
        ] {
            assert!(words(text).is_none(), "{text}");
        }
        // A builtin that is no program, and what neither knows.
        assert!(command("umask", None).read(&|| false).is_ok());
        let why = why("no-such-program 1", None);
        assert!(why.contains("127") && why.contains("not found"), "{why}");
    }

    #[test]
    fn the_picked_number_is_taken_from_among_others() {
        let mut source =
            command("printf 'a:1\\nops:25k\\r\\nb:3\\n'; exit 3", Some(r"^ops:(\d+k)"));
        assert_eq!(source.read(&|| false).unwrap().value, 25_000.0);
    }

    #[test]
    fn what_the_command_complains_about_is_shown() {
        let why = why("echo 'cannot connect' >&2; exit 7", Some(r"(\d+)"));
        assert!(why.contains("exit status: 7") && why.contains("cannot connect"), "{why}");
    }

    #[test]
    fn an_output_without_the_number_is_shown() {
        let why = why("echo hello", Some(r"ops:(\d+)"));
        assert!(why.contains("does not match") && why.contains("hello"), "{why}");
        let why = self::why("echo hello", None);
        assert!(why.contains("--pick"), "{why}");
    }

    #[test]
    fn an_output_that_is_too_long_is_not_searched() {
        let why = why("echo 5; head -c 9000000 /dev/zero", Some(r"(\d+)"));
        assert!(why.contains("it printed more than 4 MiB"), "{why}");
    }

    #[test]
    fn a_command_that_hangs_is_stopped_with_its_children() {
        let directory = tempfile::tempdir().unwrap();
        let pid = directory.path().join("pid");
        let mut source = command(&format!("sleep 100 & echo $! > {}; wait", pid.display()), None);
        source.timeout = Duration::from_secs(3);
        let failure = source.read(&|| false);
        assert!(matches!(failure, Err(SourceError::Unreadable(why)) if why.contains("3 s")));
        let child = std::fs::read_to_string(pid).unwrap();
        let state =
            || std::fs::read_to_string(format!("/proc/{}/stat", child.trim())).unwrap_or_default();
        // The orphan stays a zombie until init reaps it.
        while !state().is_empty() && !state().contains(") Z ") {
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_daemon_left_behind_does_not_hold_up_the_reading() {
        // A reading that waited for it would be over the limit and fail.
        let mut source = command("sleep 20 & echo 5", None);
        assert_eq!(source.read(&|| false).unwrap().value, 5.0);
    }

    #[test]
    fn what_a_command_prints_between_two_looks_before_it_ends_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let [pid, go] = ["pid", "go"].map(|name| directory.path().join(name));
        let text = format!(
            "echo $$ > {0}.new; mv {0}.new {0}; until [ -e {1} ]; do sleep 0.01; done; echo 5",
            pid.display(),
            go.display()
        );
        // Asked after a look that found nothing.
        let cancelled = || {
            if let Ok(pid) = std::fs::read_to_string(&pid)
                && !go.exists()
            {
                std::fs::write(&go, "").unwrap();
                let pid = pinwise_linux::Pid(pid.trim().parse().unwrap());
                while !pinwise_linux::process::ended(pid) {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            false
        };
        let mut source = command(&text, None);
        source.timeout = Duration::from_secs(60);
        assert_eq!(source.read(&cancelled).unwrap().value, 5.0);
    }

    #[test]
    fn a_signal_during_a_reading_does_not_make_it_fail() {
        let seen = std::sync::Arc::default();
        let signal = signal_hook::consts::SIGUSR1;
        signal_hook::flag::register(signal, std::sync::Arc::clone(&seen)).unwrap();
        // Linux gives a signal to the thread of this number, if none is pending there.
        let thread = rustix::thread::gettid();
        let text = format!("sleep 0.1; kill -USR1 {thread}; sleep 0.1; echo 5");
        let read = command(&text, None).read(&|| false);
        assert_eq!(read.map(|read| read.value), Ok(5.0));
        assert!(seen.load(std::sync::atomic::Ordering::Relaxed));
    }

    #[test]
    fn a_running_command_can_be_interrupted() {
        assert_eq!(command("sleep 5", None).read(&|| true), Err(SourceError::Cancelled));
    }
}
