//! Starts a program in its own process group, ends it, and waits for it.

use crate::affinity::CallerOnCpus;
use crate::guardian::{Guardian, GuardianEntry, MARK, marked};
use crate::guardian_timeouts::GRACE;
use crate::memory::InitialMemory;
use crate::process_lock::ProcessLock;
use crate::realtime::keep_nice;
use crate::stream::{Streams, Tail, follow};
use crate::target_error::TargetError;
use crate::thread::Pid;
use pinwise_figures::duration;
use pinwise_topology::CpuSet;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid as RawPid, PidfdFlags, Signal, WaitId, WaitIdOptions};
use rustix::process::{getpgid, kill_process, kill_process_group, pidfd_open, waitid};
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The advice for a program that finished its work although it should have gone on.
const WHOLE_RUNS: &str = "; measure whole runs of a program that runs to its end: --metric \
    runtime, or --per-run for a number that it prints";

/// The advice for a program that failed.
const ALONE: &str = "; run it by itself until it succeeds";

/// Where a launched program's output goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Output {
    /// To pinwise: a meter may read it, and its last line explains a failure.
    #[default]
    Read,
    /// Nowhere.
    Null,
    /// To a file, made or emptied first.
    File(PathBuf),
}

/// A program to start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Launch {
    /// The program, found on the PATH of [`Self::environment`], or on that of this process.
    pub program: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Environment variables set on top of ours.
    pub environment: Vec<(OsString, OsString)>,
    /// The directory it runs in; the current one by default.
    pub directory: Option<PathBuf>,
    /// The file it reads; nothing by default.
    pub stdin: Option<PathBuf>,
    /// Where its standard output goes.
    pub stdout: Output,
    /// Where its standard error goes.
    pub stderr: Output,
    /// Where its memory lies; as the kernel decides by default.
    pub memory: Option<InitialMemory>,
    /// The contexts on which it begins, and everything that it starts; those of the caller by
    /// default.
    pub cpus: Option<CpuSet>,
}

/// A launched program. Until [`LaunchedProgram::wait`], its number belongs to it alone, also as a
/// process group, even after it has ended.
#[derive(Debug)]
pub struct LaunchedProgram {
    /// The process.
    pub child: Child,
    /// The end of its standard error.
    pub stderr: Option<Tail>,
    /// The end of its standard output.
    pub stdout: Option<Tail>,
    /// When it was started, a moment before its exec.
    pub begin: Instant,
    /// The mark in its environment, which everything it starts inherits.
    mark: String,
    /// No other pinwise changes it.
    _lock: ProcessLock,
}

impl LaunchedProgram {
    /// The number of the process, and of its process group.
    pub fn pid(&self) -> Pid {
        // Process numbers are positive ints.
        Pid(self.child.id() as i32)
    }

    /// Begins to read what is piped.
    pub fn streams(&mut self) -> io::Result<Streams> {
        let mut streams = Streams::default();
        if let Some(pipe) = self.child.stdout.take() {
            let (lines, tail) = follow(pipe)?;
            streams.stdout = Some(lines);
            self.stdout = Some(tail);
        }
        if let Some(pipe) = self.child.stderr.take() {
            let (lines, tail) = follow(pipe)?;
            streams.stderr = Some(lines);
            self.stderr = Some(tail);
        }
        Ok(streams)
    }

    /// Its exit status, once it has ended; its number stays its own.
    pub fn status(&self) -> Option<ExitStatus> {
        let pid = RawPid::from_raw(self.pid().0)?;
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let status = waitid(WaitId::Pid(pid), options).ok()??;
        // The form of wait(2): the status in the second byte, a signal in the first.
        Some(ExitStatus::from_raw(match status.exit_status() {
            Some(code) => (code & 0xff) << 8,
            None => status.terminating_signal().unwrap_or_default(),
        }))
    }

    /// How its end is reported. Many programs complain on their standard output.
    pub fn ended(&self, name: &str, status: ExitStatus) -> TargetError {
        let last = [&self.stderr, &self.stdout].into_iter().find_map(|tail| tail.as_ref()?.last());
        let said = |line: String| format!("; its last line was: {}", line.trim_end_matches('.'));
        let last = last.map(said).unwrap_or_default();
        let remedy = if status.success() { WHOLE_RUNS } else { ALONE };
        TargetError::Ended {
            name: name.into(),
            how: format!(" ({status}) {} after its start", duration(self.begin.elapsed())),
            last: format!("{last}{remedy}"),
        }
    }

    /// A handle on its end.
    pub fn exit(&self) -> io::Result<Exit> {
        Exit::of(self.pid())
    }

    /// Ends the program, its process group, and whatever it has started that left the group.
    /// SIGTERM comes first, after a while SIGKILL.
    pub fn end(&self) {
        let Some(group) = RawPid::from_raw(self.pid().0) else { return };
        let strangers = || {
            let in_group = |pid: RawPid| getpgid(Some(pid)).is_ok_and(|its| its == group);
            marked(MARK, std::slice::from_ref(&self.mark))
                .into_iter()
                .filter(move |&pid| !in_group(pid))
        };
        if self.status().is_none() {
            let _ = kill_process_group(group, Signal::TERM);
            for pid in strangers() {
                let _ = kill_process(pid, Signal::TERM);
            }
            let _ = self.exit().and_then(|exit| exit.within(GRACE));
        }
        let _ = kill_process_group(group, Signal::KILL);
        let begin = Instant::now();
        // One that has been killed shows no environment any more; one that is created meanwhile is
        // found the next time.
        while begin.elapsed() < GRACE {
            let left: Vec<RawPid> = strangers().collect();
            if left.is_empty() {
                break;
            }
            for pid in left {
                let _ = kill_process(pid, Signal::KILL);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Gives its number up.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait()
    }
}

/// Becomes readable when a process ends.
#[derive(Debug)]
pub struct Exit(OwnedFd);

impl Exit {
    /// The exit of a process that has not been waited for.
    pub fn of(pid: Pid) -> io::Result<Self> {
        let pid = RawPid::from_raw(pid.0).ok_or(io::ErrorKind::InvalidInput)?;
        Ok(Self(pidfd_open(pid, PidfdFlags::empty())?))
    }

    /// Waits for the end, at most for `time`. Returns whether it has come.
    pub fn within(&self, time: Duration) -> io::Result<bool> {
        Self::any_within(&[self], time)
    }

    /// Waits for the first end of several, at most for `time`. Returns whether one has come.
    pub fn any_within(exits: &[&Self], time: Duration) -> io::Result<bool> {
        let timeout =
            Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
        let mut ends: Vec<_> =
            exits.iter().map(|exit| PollFd::new(&exit.0, PollFlags::IN)).collect();
        match poll(&mut ends, Some(&timeout)) {
            Ok(ready) => Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

impl Launch {
    /// The program's name.
    pub fn name(&self) -> String {
        Path::new(&self.program).file_name().unwrap_or(&self.program).to_string_lossy().into_owned()
    }

    /// Whether there is such a program, found as [`Self::start`] finds it.
    ///
    /// # Errors
    /// [`TargetError::Launch`]: there is none.
    pub fn check_program(&self) -> Result<(), TargetError> {
        let is_there = match Path::new(&self.program).components().count() {
            1 => {
                let own = self.environment.iter().rev().find(|(name, _)| *name == "PATH");
                let path = own.map(|(_, path)| path.clone());
                path.or_else(|| std::env::var_os("PATH")).is_none_or(|path| {
                    std::env::split_paths(&path).any(|folder| folder.join(&self.program).exists())
                })
            }
            _ => self.directory.clone().unwrap_or_default().join(&self.program).exists(),
        };
        if is_there {
            return Ok(());
        }
        let program = self.program.to_string_lossy().into_owned();
        Err(TargetError::Launch { program, cause: io::ErrorKind::NotFound.into() })
    }

    /// Starts the program as the leader of a new process group. So Ctrl-C reaches only pinwise and
    /// children end with the program. The guardian hears of it before and after.
    pub fn start(&self, guardian: &mut Guardian) -> Result<LaunchedProgram, TargetError> {
        let failed = |cause| TargetError::Launch {
            program: self.program.to_string_lossy().into_owned(),
            cause,
        };
        let mark = mark();
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.env(MARK, &mark).process_group(0);
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        command.stdin(match &self.stdin {
            Some(path) => File::open(path).map_err(unopened(path))?.into(),
            None => Stdio::null(),
        });
        command.stdout(stdio(&self.stdout)?).stderr(stdio(&self.stderr)?);
        keep_nice(&mut command);
        if let Some(memory) = &self.memory {
            memory.apply(&mut command)?;
        }
        guardian.enter(&[GuardianEntry::Launching { mark: mark.clone() }])?;
        // Before: the program may already run for a while when `spawn` returns.
        let begin = Instant::now();
        let on_cpus = self.cpus.as_ref().map(CallerOnCpus::move_to).transpose()?;
        let child = command.spawn().map_err(failed)?;
        drop(on_cpus);
        // It is new: who holds it already is not at work on it for long.
        let lock = ProcessLock::of(&[Pid(child.id() as i32)]).unwrap_or_default();
        let running =
            LaunchedProgram { child, stderr: None, stdout: None, begin, mark, _lock: lock };
        // If the guardian cannot hear of it, it finds the program by its mark.
        guardian.enter(&[GuardianEntry::Launched { pid: running.pid() }])?;
        Ok(running)
    }
}

fn stdio(output: &Output) -> Result<Stdio, TargetError> {
    Ok(match output {
        Output::Read => Stdio::piped(),
        Output::Null => Stdio::null(),
        Output::File(path) => File::create(path).map_err(unopened(path))?.into(),
    })
}

fn unopened(path: &Path) -> impl Fn(io::Error) -> TargetError {
    move |cause| TargetError::Unopened { path: path.to_owned(), cause }
}

/// Different for every launch on this machine.
fn mark() -> String {
    static LAUNCHES: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!(
        "{}-{}-{}",
        std::process::id(),
        LAUNCHES.fetch_add(1, Ordering::Relaxed),
        now.as_nanos()
    )
}
