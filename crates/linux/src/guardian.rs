//! A second process that restores affinities and limits, whatever happens to pinwise.
//!
//! *Problem.* `kill -9` runs no destructor. A thread that pinwise confined would stay confined for
//! good.
//!
//! *Method.* Before it pins the first thread, pinwise starts a second process from the same program
//! file, the guardian. The guardian leaves the session, so no Ctrl-C or hangup reaches it, and
//! outlives SIGTERM. It reads a pipe whose other end only pinwise holds. Pinwise writes the
//! original mask of each thread to the pipe *before* it pins the thread. When the write has
//! returned, the pipe holds the entry even if pinwise dies at the next instruction. When pinwise
//! ends, in whatever way, the kernel closes the pipe. The guardian then reads the rest, restores
//! everything and ends. The ordinary way out is the same: drop the [`Guardian`], and it waits for
//! the other process. One path serves all cases and is used every time.
//!
//! *What is restored.*
//! - Each entered thread that still lives (same number, same start time) gets its mask back. A
//!   thread that another has moved since is left alone ([`touched`]).
//! - Threads and child processes that were created meanwhile and inherited a pin get what their
//!   creator had ([`touched`]). This repeats until two looks release nothing. A thread that was
//!   there before the first pin has inherited none, and is left alone unless it was entered.
//! - A process that was confined as a whole gets its mask back. So do its threads that were created
//!   meanwhile and inherited less.
//! - Files of control groups get the text they had.
//! - The user's command may have changed the number of threads of a running process. It gets its
//!   own number back by that command. The number is the one that was entered last.
//! - Memory that was moved goes back to the node where it lay. This comes last, since it takes
//!   long. On the ordinary way out pinwise has done it already.
//! - What the kernel refuses stays in the notes of this guardian. The next start of pinwise tries
//!   it again ([`ledger`]). A thread that has become another user's is refused.
//! - Programs that pinwise launched are ended first, because nobody reads their output any more.
//!   SIGTERM comes first, and SIGKILL after two seconds. A mark in the environment finds a process
//!   that left the process group. It also finds a program that was just being launched.
//!
//! *Limits.*
//! - If guardian and pinwise are killed together, for example with their whole cgroup, threads stay
//!   pinned. The next start of pinwise releases them ([`ledger`]). The guardian is not called
//!   pinwise, so `killall -9 pinwise` does not find it. If only the guardian is killed, pinwise
//!   starts another at the next step. If it was stopped, pinwise lets it go on. If it then does not
//!   end in time, pinwise ends it and restores everything itself.
//! - A thread may be created during the search and confined to one CPU by the program. If a thread
//!   was pinned there, it looks like an heir of that pin.
//! - The kernel remembers that a mask was set. The cpuset of the cgroup may grow later. Then a
//!   restored thread keeps its original CPUs, while one that was never touched would spread.

mod launched;
mod ledger;
mod touched;

use launched::Launched;
pub(crate) use launched::marked;
use ledger::Ledger;
#[cfg(test)]
pub(crate) use ledger::host_prefix;
pub use ledger::{LeftChanged, Restored, keep_ledgers, restore_abandoned, restore_again};
pub(crate) use ledger::{boot_folder, boot_path, own_folder, private_folder};
pub(crate) use touched::{TouchedThreads, is_of_kernel, of_heir};

use crate::guardian_timeouts::{AT_WORK, RESTORING, SETTING_LIMIT};
use crate::process;
use crate::process_lock::{GUARDIAN_NAME, ProcessLock};
use crate::realtime::{RealtimeClass, keep_nice, share_with_others, start_guardian};
use crate::sys;
use crate::thread::{Pid, StartTime, Stat, ThreadId, Tid};
use crate::{AffinityError, affinity};
use pinwise_measure::ProgramNote;
use pinwise_topology::CpuSet;
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The hidden argument with which pinwise starts itself as the guardian.
pub const ARGUMENT: &str = "__guardian";
/// The environment variable that marks a launched program.
pub(crate) const MARK: &str = "PINWISE_RUN";
/// The environment variable that marks a command which changes a running process.
pub const SETTING_MARK: &str = "PINWISE_SET";
/// The guardian prints this when signals can no longer end it.
const READY: &str = "guardian ready";
/// The exit code of a guardian that could not put everything back. The rest is in its notes.
const NOT_ALL_RESTORED: i32 = 3;

/// A report of pinwise to the guardian, one JSON document per line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum GuardianEntry {
    /// The threads that exist before the first pin: none of them has inherited one.
    Existing {
        /// They, and those of child processes.
        threads: Vec<ThreadId>,
    },
    /// A process whose threads will be pinned, with the mask its first thread had.
    Process {
        /// The process.
        pid: Pid,
        /// When it started.
        start: StartTime,
        /// The mask to put back.
        mask: CpuSet,
    },
    /// A thread that will be pinned, with the mask it had. The last entry of a thread counts.
    Thread {
        /// The thread.
        id: ThreadId,
        /// The mask to put back.
        mask: CpuSet,
    },
    /// Entered threads that will be pinned to these CPUs.
    Pinned {
        /// The threads and the CPUs. Each entry holds until the end.
        pins: Vec<(ThreadId, CpuSet)>,
    },
    /// A process that will be confined to some CPUs of this mask, with all threads it has or
    /// creates.
    Confined {
        /// The process.
        pid: Pid,
        /// When it started.
        start: StartTime,
        /// The mask to put back.
        mask: CpuSet,
    },
    /// A file of a control group that will be written, with its text.
    File {
        /// The file.
        path: PathBuf,
        /// The text to put back.
        text: String,
    },
    /// A running process is about to be changed by a command. The last entry of a process counts.
    Command {
        /// The process.
        pid: Pid,
        /// When it started.
        start: StartTime,
        /// The shell command that puts it back. `None`: it keeps what it has.
        command: Option<String>,
        /// Where the command runs.
        folder: PathBuf,
        /// The command that changes it runs now, with this mark in its environment
        /// ([`SETTING_MARK`]).
        setting: Option<String>,
    },
    /// The memory of a process will be moved away from the node where it lies. The last entry of a
    /// process counts.
    Memory {
        /// The process.
        pid: Pid,
        /// When it started.
        start: StartTime,
        /// The nodes on which its pages may be from now on. Empty: they are at home again.
        from: BTreeSet<u32>,
        /// The node where they lay.
        home: u32,
    },
    /// A program with this mark in its environment is about to be started.
    Launching {
        /// The value of the environment variable.
        mark: String,
    },
    /// pinwise started the program, as the leader of a new process group.
    Launched {
        /// The process.
        pid: Pid,
    },
    /// The program has ended and was waited for. Its number may mean another process from now on.
    Ended {
        /// The process.
        pid: Pid,
    },
}

impl GuardianEntry {
    /// The process that the entry is about, if that still lives.
    fn living(&self) -> Option<Pid> {
        match self {
            Self::Thread { id, .. } => id.alive().then_some(id.pid),
            Self::Process { pid, start, .. }
            | Self::Confined { pid, start, .. }
            | Self::Memory { pid, start, .. }
            | Self::Command { pid, start, .. } => lives(*pid, *start).then_some(*pid),
            _ => None,
        }
    }
}

/// Whether the process that started then still lives.
fn lives(pid: Pid, start: StartTime) -> bool {
    Stat::read(pid, pid.main()).is_ok_and(|stat| stat.start == start) && !process::ended(pid)
}

/// No guardian runs, so nothing may be pinned.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot start the process that restores affinities after a kill, so nothing is pinned: {0}"
)]
pub struct GuardianError(#[from] io::Error);

/// The guardian process. To drop this restores everything and ends launched programs.
#[derive(Debug)]
pub struct Guardian {
    child: Child,
    entries: Vec<GuardianEntry>,
    ledger: Option<Ledger>,
    /// Why the ledger is not there or not whole, if there should be one.
    unwritten: Option<io::Error>,
}

impl Guardian {
    /// Starts the guardian process and waits until no signal but SIGKILL can end it.
    pub fn start() -> Result<Self, GuardianError> {
        Self::start_with(Ledger::create())
    }

    /// A note if nothing is kept for the case that this process and the guardian are both killed.
    pub fn note(&self) -> Option<ProgramNote> {
        self.unwritten.as_ref().map(|error| ProgramNote::NothingKept { error: error.to_string() })
    }

    fn start_with(ledger: io::Result<Option<Ledger>>) -> Result<Self, GuardianError> {
        let (ledger, unwritten) = match ledger {
            Ok(ledger) => (ledger, None),
            Err(error) => (None, Some(error)),
        };
        match spawn(ledger.as_ref()) {
            Ok(child) => Ok(Self { child, entries: Vec::new(), ledger, unwritten }),
            Err(error) => {
                if let Some(ledger) = ledger {
                    ledger.remove();
                }
                Err(error.into())
            }
        }
    }

    /// Reports entries to the guardian. When this returns, they outlive this process. A guardian
    /// that was killed is replaced.
    pub fn enter(&mut self, entries: &[GuardianEntry]) -> Result<(), GuardianError> {
        self.entries.extend_from_slice(entries);
        // The guardian knows it too, so an error ends nothing.
        if let Some(ledger) = &mut self.ledger
            && !entries.is_empty()
            && let Err(error) = ledger.append(entries)
        {
            self.unwritten = Some(error);
        }
        if self.child.try_wait()?.is_none() && write(&mut self.child, entries).is_ok() {
            return Ok(());
        }
        self.child = spawn(self.ledger.as_ref())?;
        Ok(write(&mut self.child, &self.entries)?)
    }

    /// The text of a file when it was entered; `None` if it was not.
    pub fn file(&self, wanted: &Path) -> Option<String> {
        self.entries.iter().find_map(|entry| match entry {
            GuardianEntry::File { path, text } if path == wanted => Some(text.clone()),
            _ => None,
        })
    }

    /// The mask of a process when it was entered as confined; `None` if it was not.
    pub fn confined(&self, wanted: Pid) -> Option<CpuSet> {
        self.entries.iter().find_map(|entry| match entry {
            GuardianEntry::Confined { pid, mask, .. } if *pid == wanted => Some(mask.clone()),
            _ => None,
        })
    }

    /// Reports that threads of a confined process will have `cpus`. A thread gets back what it has
    /// now, unless it has that from an earlier report. `confined` reports a new process.
    pub fn enter_pins(
        &mut self,
        threads: &[ThreadId],
        cpus: &CpuSet,
        confined: Option<GuardianEntry>,
    ) -> Result<(), GuardianError> {
        let mut entries = TouchedThreads::in_entries(&self.entries).entries_for(threads, cpus);
        // In the same write, and last. So a guardian that knows the process knows its pins.
        entries.extend(confined);
        self.enter(&entries)
    }

    /// Waits until the guardian has restored everything, or all that it could. `None`: it did not.
    fn ended(&mut self) -> Option<GuardianEnd> {
        let guardian = rustix::process::Pid::from_child(&self.child);
        let begin = Instant::now();
        loop {
            match self.child.try_wait() {
                Ok(None) if begin.elapsed() < AT_WORK => {}
                Ok(Some(status)) if status.success() => return Some(GuardianEnd::Restored),
                Ok(Some(status)) if status.code() == Some(NOT_ALL_RESTORED) => {
                    return Some(GuardianEnd::Refused);
                }
                _ => return None,
            }
            // It may have been stopped.
            let _ = rustix::process::kill_process(guardian, Signal::CONT);
            sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let (end, ledger) = (self.ended(), self.ledger.take());
        let refused = match end {
            Some(end) => end == GuardianEnd::Refused,
            None => {
                let _ = self.child.kill().and_then(|()| self.child.wait());
                let mut restored = restore(&self.entries);
                restored.extend(restore_memory(&self.entries));
                if let Some(ledger) = ledger {
                    ledger.keep_rest(std::mem::take(&mut self.entries), &restored);
                }
                REFUSED.fetch_or(is_refused_in(&restored), Ordering::Relaxed);
                return;
            }
        };
        REFUSED.fetch_or(refused, Ordering::Relaxed);
        // The guardian has removed its notes, unless it could not. After a refusal they stay.
        if let Some(ledger) = ledger.filter(|_| !refused) {
            ledger.remove();
        }
    }
}

/// Whether a guardian of this process could not put everything back.
static REFUSED: AtomicBool = AtomicBool::new(false);

/// Whether something that this process changed is left changed. Its guardians have ended.
pub fn is_left_changed() -> bool {
    REFUSED.load(Ordering::Relaxed)
}

/// How a guardian ended that did its work.
#[derive(Clone, Copy, PartialEq, Eq)]
enum GuardianEnd {
    /// Everything is as it was.
    Restored,
    /// The kernel refused something.
    Refused,
}

fn spawn(ledger: Option<&Ledger>) -> io::Result<Child> {
    // Not by path: the program file may have been replaced since (a new build, a package update).
    let mut command = Command::new("/proc/self/exe");
    command
        .arg0(GUARDIAN_NAME)
        .arg(ARGUMENT)
        .args(ledger.map(|ledger| &ledger.path))
        .current_dir("/")
        // Another pinwise may have started this one. It must not end this guardian.
        .env_remove(MARK)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = start_guardian(&mut command)?;
    let lines = child.stdout.take().map(|stdout| BufReader::new(stdout).lines());
    if lines.is_some_and(|mut lines| lines.any(|line| line.is_ok_and(|line| line == READY))) {
        return Ok(child);
    }
    let status = child.wait()?;
    Err(io::Error::other(format!("the guardian process ended at its start ({status})")))
}

fn write(child: &mut Child, entries: &[GuardianEntry]) -> io::Result<()> {
    let text = lines(entries)?;
    // A stopped guardian would not empty the pipe.
    let _ = rustix::process::kill_process(rustix::process::Pid::from_child(child), Signal::CONT);
    let pipe = child.stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
    pipe.write_all(&text)
}

fn lines(entries: &[GuardianEntry]) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    for entry in entries {
        serde_json::to_writer(&mut text, entry)?;
        text.push(b'\n');
    }
    Ok(text)
}

/// Runs the guardian process from start to end. The program calls this first of all if its first
/// argument is [`ARGUMENT`].
pub fn guardian_main() {
    sys::outlive_signals();
    // Fails only if this process already leads a session.
    let _ = rustix::process::setsid();
    let _ = rustix::thread::set_name(c"affinity-guard");
    // Restoring must not wait behind the very threads that are crowded on one CPU. If the class is
    // not allowed, it may wait.
    let punctual = RealtimeClass::raise_guardian();
    let path = std::env::args_os().nth(2).map(PathBuf::from);
    // Others leave the file alone while this has it open.
    let ledger = path.clone().and_then(Ledger::open);
    if writeln!(io::stdout(), "{READY}").is_err() {
        return;
    }
    let mut entries = Vec::new();
    // Nothing relies on a line without its end: the thread in it is not pinned yet.
    let (mut lock, mut shared) = (ProcessLock::default(), HashSet::new());
    for line in io::stdin().lock().lines().map_while(Result::ok) {
        let Ok(entry) = serde_json::from_str(&line) else { continue };
        if let GuardianEntry::Process { pid, .. }
        | GuardianEntry::Confined { pid, .. }
        | GuardianEntry::Command { pid, .. } = &entry
            && shared.insert(*pid)
        {
            lock.share(*pid);
        }
        entries.push(entry);
    }
    let mut restored = restore(&entries);
    // To move memory takes long, and need not be punctual.
    drop(punctual);
    restored.extend(restore_memory(&entries));
    match (ledger, path) {
        (Some(ledger), _) => ledger.keep_rest(entries, &restored),
        // It could not be opened. The next start would restore everything once more.
        (None, Some(path)) => {
            let _ = fs::remove_file(path);
        }
        (None, None) => {}
    }
    if is_refused_in(&restored) {
        std::process::exit(NOT_ALL_RESTORED);
    }
}

fn is_refused_in(restored: &[Restored]) -> bool {
    restored.iter().any(|one| !one.worked)
}

/// Restores everything but memory.
fn restore(entries: &[GuardianEntry]) -> Vec<Restored> {
    let launched = Launched::in_entries(entries);
    let told = launched.terminate();
    let mut restored = restore_files(entries);
    restored.extend(restore_affinities(entries));
    restored.extend(run_commands(entries));
    restored.extend(launched.end_marked(told));
    leave_out_ended(&mut restored, entries);
    restored
}

/// Leaves out what was refused of processes that have ended by now. Those of a launched program are
/// ended last.
fn leave_out_ended(restored: &mut Vec<Restored>, entries: &[GuardianEntry]) {
    let living: HashSet<Pid> = entries.iter().filter_map(GuardianEntry::living).collect();
    restored.retain(|one| match one.what {
        LeftChanged::Affinities(pid) | LeftChanged::Number(pid) => {
            one.worked || living.contains(&pid)
        }
        LeftChanged::File(_) | LeftChanged::Memory(_) | LeftChanged::Program(_) => true,
    });
}

/// Runs the last command of each process that still runs.
fn run_commands(entries: &[GuardianEntry]) -> Vec<Restored> {
    let mut restored = Vec::new();
    for (place, entry) in entries.iter().enumerate() {
        let GuardianEntry::Command { pid, start, command: Some(command), folder, setting } = entry
        else {
            continue;
        };
        let replaced = entries[place + 1..].iter().any(
            |later| matches!(later, GuardianEntry::Command { pid: other, .. } if other == pid),
        );
        if !replaced && lives(*pid, *start) {
            // A command of pinwise that still runs would change the number again.
            wait_for(setting.as_slice());
            let worked = run_command(command, folder).is_ok_and(|worked| worked);
            if worked || lives(*pid, *start) {
                restored.push(Restored { what: LeftChanged::Number(*pid), worked });
            }
        }
    }
    restored
}

/// Waits until no process has one of these marks, for at most [`SETTING_LIMIT`].
fn wait_for(marks: &[String]) {
    let begin = Instant::now();
    while !marked(SETTING_MARK, marks).is_empty() && begin.elapsed() < SETTING_LIMIT {
        sleep(Duration::from_millis(5));
    }
}

/// Runs a shell command, for at most [`SETTING_LIMIT`]. Returns whether it succeeded in that time.
fn run_command(command: &str, folder: &Path) -> io::Result<bool> {
    let mut shell = Command::new("sh");
    let folder = if folder.is_dir() { folder } else { Path::new("/") };
    shell.arg("-c").arg(command).current_dir(folder).process_group(0);
    shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    keep_nice(&mut shell);
    let mut child = shell.spawn()?;
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.success());
        }
        if begin.elapsed() > SETTING_LIMIT {
            let group = rustix::process::Pid::from_child(&child);
            // The kernel refuses this if the command runs as another user, by sudo for example.
            // Such a command ends on its own.
            if rustix::process::kill_process_group(group, Signal::KILL).is_ok() {
                child.wait()?;
            }
            return Ok(false);
        }
        sleep(Duration::from_millis(5));
    }
}

fn restore_files(entries: &[GuardianEntry]) -> Vec<Restored> {
    let restore = |entry: &GuardianEntry| {
        let GuardianEntry::File { path, text } = entry else { return None };
        // To write nothing has no effect. A line without a word empties the file.
        let written = fs::write(path, if text.is_empty() { "\n" } else { text });
        // The group may be gone.
        let gone = written.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
        let what = LeftChanged::File(path.clone());
        (!gone).then_some(Restored { what, worked: written.is_ok() })
    };
    entries.iter().filter_map(restore).collect()
}

/// Moves memory back to the node where it lay. Pages in use at that moment stay.
fn restore_memory(entries: &[GuardianEntry]) -> Vec<Restored> {
    let mut last = BTreeMap::new();
    for entry in entries {
        if let GuardianEntry::Memory { pid, start, from, home } = entry {
            last.insert(*pid, (*start, from, *home));
        }
    }
    last.retain(|pid, (start, from, _)| !from.is_empty() && lives(*pid, *start));
    if !last.is_empty() {
        // It takes long.
        share_with_others(1.0);
    }
    let restore = |(pid, (start, from, home)): (Pid, (StartTime, &BTreeSet<u32>, u32))| {
        let worked = sys::migrate_pages(pid.0, from, &[home].into()).is_ok();
        let what = LeftChanged::Memory(pid);
        // It may have ended meanwhile.
        (worked || lives(pid, start)).then_some(Restored { what, worked })
    };
    last.into_iter().filter_map(restore).collect()
}

fn restore_affinities(entries: &[GuardianEntry]) -> Vec<Restored> {
    let mut failed = HashSet::new();
    let touched = TouchedThreads::in_entries(entries);
    for (id, own) in touched.iter().filter(|(id, _)| id.alive() && touched.is_ours(*id)) {
        let refused = is_refused(affinity::give_back(id.pid, id.tid, own));
        // The kernel may have refused the pin too, and then nothing was changed.
        if refused && affinity::own(id.tid).is_ok_and(|now| now != *own) {
            failed.insert(id.pid);
        }
    }
    failed.extend(release_heirs(entries));
    let pinned = entries.iter().filter(|entry| {
        !matches!(entry, GuardianEntry::Command { .. } | GuardianEntry::Memory { .. })
    });
    let processes: BTreeSet<Pid> = pinned.filter_map(GuardianEntry::living).collect();
    let outcome = |pid| {
        let what = LeftChanged::Affinities(pid);
        Restored { what, worked: !failed.contains(&pid) }
    };
    processes.into_iter().map(outcome).collect()
}

/// A thread that is gone needs nothing.
fn is_refused(set: Result<(), AffinityError>) -> bool {
    !matches!(set, Ok(()) | Err(AffinityError::Gone(_)))
}

/// Whether a first thread that was never pinned may be one that was, by exec.
fn became_first(id: ThreadId, entries: &[GuardianEntry], touched: &TouchedThreads<'_>) -> bool {
    let has_other = |entry: &GuardianEntry| {
        matches!(entry, GuardianEntry::Process { pid, mask, .. }
            if *pid == id.pid && affinity::own(id.tid).is_ok_and(|now| now != *mask))
    };
    !touched.has(id) && touched.others_ended(id) && entries.iter().any(has_other)
}

/// Releases threads and child processes of the entered processes that inherited a pin. None of them
/// was entered itself, or existed before. Returns the entered processes of those that were refused.
pub(crate) fn release_heirs(entries: &[GuardianEntry]) -> HashSet<Pid> {
    let touched = TouchedThreads::in_entries(entries);
    let existing = entries.iter().flat_map(|entry| match entry {
        GuardianEntry::Existing { threads } => &threads[..],
        _ => &[],
    });
    // A number may mean another thread by now.
    let known = touched.iter().map(|(id, _)| id).chain(existing.copied());
    let known: HashSet<ThreadId> =
        known.filter(|id| id.alive() && !became_first(*id, entries, &touched)).collect();
    let existing: LazyCell<Vec<(Pid, CpuSet)>, _> = LazyCell::new(|| {
        let existing = known.iter().filter(|id| !touched.has(**id));
        existing.filter_map(|id| Some((id.pid, affinity::own(id.tid).ok()?))).collect()
    });
    let release_inherited = |pid: Pid, tid: Tid, _: &CpuSet| {
        let now = affinity::own(tid)?;
        let others = || existing.iter().cloned();
        let own = touched.of_heir(pid, &now, std::iter::once_with(others).flatten());
        let Some(own) = own else { return Ok(false) };
        affinity::give_back(pid, tid, &own).map(|()| own != now)
    };
    let release_confined = |_: Pid, tid: Tid, process: &CpuSet| {
        let now = affinity::own(tid)?;
        let less = now != *process && now.is_subset(process);
        let pinned = less && touched.may_be_pin(&now);
        if pinned { affinity::set(tid, process).map(|()| true) } else { Ok(false) }
    };
    /// Whether it released the thread.
    type Release<'a> = &'a dyn Fn(Pid, Tid, &CpuSet) -> Result<bool, AffinityError>;
    let processes: Vec<(Pid, &CpuSet, Release<'_>)> = entries
        .iter()
        .filter_map(|entry| {
            let (pid, start, mask, release): (_, _, _, Release<'_>) = match entry {
                GuardianEntry::Process { pid, start, mask } => {
                    (pid, start, mask, &release_inherited)
                }
                GuardianEntry::Confined { pid, start, mask } => {
                    (pid, start, mask, &release_confined)
                }
                _ => return None,
            };
            Stat::read(*pid, pid.main())
                .is_ok_and(|stat| stat.start == *start)
                .then_some((*pid, mask, release))
        })
        .collect();
    let mut failed = HashSet::new();
    let deadline = Instant::now() + RESTORING;
    let mut looked_at: HashSet<Tid> = known.iter().map(|id| id.tid).collect();
    // A released thread may have created another one before. New threads of a program that creates
    // them without pause have nothing to inherit any more.
    let (mut quiet, mut released) = (0, HashSet::new());
    while quiet < 2 {
        if Instant::now() > deadline {
            failed.extend(released);
            break;
        }
        released.clear();
        let everything = process::all().unwrap_or_default();
        for &(root, mask, release) in &processes {
            for pid in std::iter::once(root).chain(process::descendants(&[root], &everything)) {
                for tid in process::threads(pid).unwrap_or_default() {
                    if !looked_at.insert(tid) {
                        continue;
                    }
                    match release(pid, tid, mask) {
                        Ok(true) => _ = released.insert(root),
                        Ok(false) | Err(AffinityError::Gone(_)) => {}
                        Err(_) => _ = failed.insert(root),
                    }
                }
            }
        }
        quiet = if released.is_empty() { quiet + 1 } else { 0 };
    }
    failed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_one_line_each_and_come_back_as_they_were() {
        let id = ThreadId { pid: Pid(7), tid: Tid(8), start: StartTime(9) };
        let mask = CpuSet::parse_list("0,9000").unwrap();
        let entries = [
            GuardianEntry::Process { pid: Pid(7), start: StartTime(9), mask: mask.clone() },
            GuardianEntry::Thread { id, mask: mask.clone() },
            GuardianEntry::Pinned { pins: vec![(id, mask)] },
            GuardianEntry::Existing { threads: vec![id, id] },
            GuardianEntry::Launching { mark: "1-2\n3".into() },
            GuardianEntry::Command {
                pid: Pid(7),
                start: StartTime(9),
                command: Some("echo 4 \\\n > n".into()),
                folder: "/a b".into(),
                setting: Some("7-1".into()),
            },
            GuardianEntry::Memory {
                pid: Pid(7),
                start: StartTime(9),
                from: [0, 2].into(),
                home: 1,
            },
            GuardianEntry::File {
                path: "/sys/fs/cgroup/a b/cpu.max".into(),
                text: "max 100000\n".into(),
            },
        ];
        for entry in entries {
            let line = serde_json::to_string(&entry).unwrap();
            assert!(!line.contains('\n'));
            assert_eq!(serde_json::from_str::<GuardianEntry>(&line).unwrap(), entry);
        }
    }

    #[test]
    fn files_get_their_text_back() {
        let folder = tempfile::tempdir().unwrap();
        let (quota, cpus) = (folder.path().join("cpu.max"), folder.path().join("cpuset.cpus"));
        fs::write(&quota, "200000 100000").unwrap();
        fs::write(&cpus, "0").unwrap();
        let entry = |path: &Path, text: &str| GuardianEntry::File {
            path: path.to_owned(),
            text: text.into(),
        };
        restore(&[
            entry(&quota, "max 100000\n"),
            entry(&cpus, ""),
            entry(&folder.path().join("gone/x"), "1"),
        ]);
        assert_eq!(fs::read_to_string(&quota).unwrap(), "max 100000\n");
        assert_eq!(fs::read_to_string(&cpus).unwrap(), "\n", "an empty one inherits again");
    }

    #[test]
    fn the_last_command_of_a_process_that_still_runs_is_run() {
        let folder = tempfile::tempdir().unwrap();
        let here = Pid(std::process::id() as i32);
        let start = Stat::read(here, here.main()).unwrap().start;
        let entry = |pid, start, command: Option<&str>| GuardianEntry::Command {
            pid,
            start,
            command: command.map(str::to_owned),
            folder: folder.path().to_owned(),
            setting: None,
        };
        let written = || fs::read_to_string(folder.path().join("n")).unwrap_or_default();
        let [first, last] = ["echo 4 >> n", "echo 8 >> n"].map(Some);
        restore(&[entry(here, start, first), entry(here, start, last)]);
        assert_eq!(written(), "8\n");
        // It keeps what it has, or is another process of its number.
        restore(&[entry(here, start, first), entry(here, start, None)]);
        restore(&[entry(here, StartTime(1), first)]);
        assert_eq!(written(), "8\n");
    }

    #[test]
    fn memory_that_was_moved_goes_home_while_its_process_lives() {
        let here = Pid(std::process::id() as i32);
        let start = Stat::read(here, here.main()).unwrap().start;
        let moved = |pid, start, from: &[u32]| GuardianEntry::Memory {
            pid,
            start,
            from: from.iter().copied().collect(),
            home: 4000,
        };
        // There is no such node.
        let refused = Restored { what: LeftChanged::Memory(here), worked: false };
        assert_eq!(restore_memory(&[moved(here, start, &[0])]), [refused]);
        assert_eq!(restore_memory(&[moved(here, start, &[0]), moved(here, start, &[])]), []);
        assert_eq!(restore_memory(&[moved(here, StartTime(1), &[0])]), []);
    }

    #[test]
    fn what_was_being_launched_and_what_left_its_group_are_found_by_their_mark() {
        for launched in [None, Some(Pid(i32::MAX))] {
            let mark = format!("test-{}-{launched:?}", std::process::id());
            let mut child = Command::new("sleep").arg("30").env(MARK, &mark).spawn().unwrap();
            let launching = GuardianEntry::Launching { mark };
            let launched = launched.map(|pid| GuardianEntry::Launched { pid });
            restore(&[launching].into_iter().chain(launched).collect::<Vec<_>>());
            let status = child.wait().unwrap();
            assert_eq!(
                std::os::unix::process::ExitStatusExt::signal(&status),
                Some(Signal::TERM.as_raw())
            );
        }
    }

    /// It lives while affinities are put back, as it does not listen.
    #[test]
    fn what_a_launched_program_was_refused_ends_with_it() {
        let mark = format!("test-{}-refused", std::process::id());
        let mut shell = Command::new("sh");
        shell.args(["-c", "trap '' TERM; exec sleep 60"]).env(MARK, &mark);
        let child = crate::fixture::Killed(shell.spawn().unwrap());
        let pid = Pid(child.0.id() as i32);
        let stat = || Stat::read(pid, pid.main()).unwrap();
        while stat().comm != "sleep" {
            sleep(Duration::from_millis(1));
        }
        let (tid, start, mask) = (pid.main(), stat().start, CpuSet::new());
        let entries = [
            GuardianEntry::Launching { mark },
            GuardianEntry::Process { pid, start, mask: mask.clone() },
            GuardianEntry::Thread { id: ThreadId { pid, tid, start }, mask },
        ];
        let refused = Restored { what: LeftChanged::Affinities(pid), worked: false };
        assert_eq!(restore_affinities(&entries), [refused], "no CPU is refused");
        let ended = Restored { what: LeftChanged::Program(pid), worked: true };
        assert_eq!(restore(&entries), [ended]);
    }
}
