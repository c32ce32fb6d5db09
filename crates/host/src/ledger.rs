//! The affinities that pins for good replaced, so that they can be given back later.
//!
//! `apply` leaves threads pinned when it ends, so no guardian can put them back. Before it pins a thread it notes the thread's
//! affinity in a file of the thread's process, on disk before the pin. The first note of a thread counts: after several plans
//! what comes back is what there was before the first. Notes are kept by boot and name threads with their start times, so one
//! never reaches a later thread of the same number.
//!
//! Limit: threads that inherited a pin without being noted are recognised where the pin was to one CPU.

use crate::affinity::{self, AffinityError};
use crate::guardian::{Entry, release_heirs};
use crate::process;
use crate::roster::Member;
use crate::thread::{Pid, Stat, ThreadId, Tid};
use pinwise_topology::CpuSet;
use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Notes of replaced affinities, a file for each process.
#[derive(Clone, Debug)]
pub struct Ledger {
    folder: PathBuf,
}

/// A thread that got its affinity back, or was refused.
#[derive(Debug)]
pub struct Released {
    /// Its name as the kernel has it.
    pub comm: String,
    /// Which thread.
    pub tid: Tid,
    /// Where it may run again.
    pub cpus: CpuSet,
    /// Why it may not.
    pub result: Result<(), AffinityError>,
}

impl Ledger {
    /// The notes below `folder`, which is made where there is none. Those that can never be of use again are removed: of
    /// another boot, of processes that have ended.
    ///
    /// # Errors
    /// The folder cannot be made or read.
    pub fn open(folder: &Path) -> io::Result<Self> {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
        let ledger = Self { folder: folder.join(boot.trim()) };
        fs::create_dir_all(&ledger.folder)?;
        for other in fs::read_dir(folder)?.filter_map(|entry| Some(entry.ok()?.path())) {
            if other != ledger.folder {
                // Left behind it is only a few lines.
                let _ = fs::remove_dir_all(other);
            }
        }
        for entry in fs::read_dir(&ledger.folder)?.filter_map(Result::ok) {
            let pid = entry.file_name().to_str().and_then(|name| name.parse().ok());
            if pid.is_some_and(|pid| ledger.entries(pid).is_empty()) {
                let _ = fs::remove_file(entry.path());
            }
        }
        Ok(ledger)
    }

    /// Notes threads of one process with the affinity they have; on disk when this returns.
    pub(crate) fn note(&self, process: &Member, threads: &[(ThreadId, CpuSet)]) -> io::Result<()> {
        let path = self.path(process.pid);
        let mut text = Vec::new();
        if self.entries(process.pid).is_empty() {
            // What is there is of an earlier process with this number.
            File::create(&path)?;
            let (pid, start, mask) = (process.pid, process.start, process.mask.clone());
            text.push(Entry::Process { pid, start, mask });
        }
        text.extend(threads.iter().map(|(id, mask)| Entry::Thread { id: *id, mask: mask.clone() }));
        let mut file = OpenOptions::new().append(true).open(&path)?;
        for entry in text {
            writeln!(file, "{}", serde_json::to_string(&entry)?)?;
        }
        file.sync_all()
    }

    /// Gives the threads of `pid` and of its descendants the affinities noted for them, and forgets the notes unless a thread
    /// was refused. Nothing where nothing was noted.
    ///
    /// # Errors
    /// `/proc` cannot be read.
    pub fn release(&self, pid: Pid) -> io::Result<Vec<Released>> {
        let mut released = Vec::new();
        for pid in std::iter::once(pid).chain(process::descendants(&[pid], &process::all()?)) {
            let entries = self.entries(pid);
            let mut refused = false;
            for entry in &entries {
                let Entry::Thread { id, mask } = entry else { continue };
                let Ok(stat) = Stat::read(id.pid, id.tid) else { continue };
                let result = affinity::set(id.tid, mask);
                refused |= result.is_err();
                released.push(Released { comm: stat.comm, tid: id.tid, cpus: mask.clone(), result });
            }
            if !entries.is_empty() && !refused {
                release_heirs(&entries);
                // A second release would do the same once more.
                let _ = fs::remove_file(self.path(pid));
            }
        }
        Ok(released)
    }

    fn path(&self, pid: Pid) -> PathBuf {
        self.folder.join(pid.to_string())
    }

    /// What was noted of a process and its threads that still live, each thread once; nothing of an earlier process.
    fn entries(&self, pid: Pid) -> Vec<Entry> {
        let text = fs::read_to_string(self.path(pid)).unwrap_or_default();
        let mut entries: Vec<Entry> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let lives = |entry: &Entry| match entry {
            Entry::Process { start, .. } => Stat::read(pid, pid.main()).is_ok_and(|stat| stat.start == *start),
            _ => false,
        };
        if !entries.first().is_some_and(lives) {
            return Vec::new();
        }
        let mut noted = HashSet::new();
        entries.retain(|entry| match entry {
            Entry::Thread { id, .. } => id.alive() && noted.insert(*id),
            _ => true,
        });
        entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Killed;
    use crate::roster::{Roster, Scope};
    use crate::thread::StartTime;
    use std::process::Command;

    #[test]
    fn the_first_affinity_noted_comes_back_once() {
        let folder = tempfile::tempdir().unwrap();
        let child = Killed(Command::new("sleep").arg("60").spawn().unwrap());
        let pid = Pid(child.0.id() as i32);
        let roster = Roster::new(Scope::Processes(vec![pid])).unwrap();
        let (member, id) = roster.threads().next().unwrap();
        let before = affinity::get(id.tid).unwrap();
        let one: CpuSet = before.first().into_iter().collect();

        let ledger = Ledger::open(folder.path()).unwrap();
        assert!(ledger.release(pid).unwrap().is_empty(), "nothing was noted");
        ledger.note(member, &[(id, before.clone())]).unwrap();
        affinity::set(id.tid, &one).unwrap();
        // A second plan finds the thread pinned.
        Ledger::open(folder.path()).unwrap().note(member, &[(id, one)]).unwrap();
        // A thread of the same number in another life is not meant.
        let other = ThreadId { start: StartTime(id.start.0 + 1), ..id };
        ledger.note(member, &[(other, CpuSet::new())]).unwrap();

        let ledger = Ledger::open(folder.path()).unwrap();
        let released = ledger.release(pid).unwrap();
        assert_eq!(released.len(), 1);
        assert_eq!((released[0].tid, released[0].comm.as_str(), &released[0].cpus), (id.tid, "sleep", &before));
        assert!(released[0].result.is_ok());
        assert_eq!(affinity::get(id.tid).unwrap(), before);
        assert!(ledger.release(pid).unwrap().is_empty());
    }

    #[test]
    fn notes_of_what_ended_and_of_another_boot_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("another-boot")).unwrap();
        let ledger = Ledger::open(folder.path()).unwrap();
        assert!(!folder.path().join("another-boot").exists());
        let this = Pid(std::process::id() as i32);
        let entry = Entry::Process { pid: this, start: StartTime(0), mask: CpuSet::new() };
        fs::write(ledger.path(this), serde_json::to_string(&entry).unwrap()).unwrap();
        assert!(Ledger::open(folder.path()).unwrap().release(this).unwrap().is_empty());
        assert!(!ledger.path(this).exists());
    }
}
