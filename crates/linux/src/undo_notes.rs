//! Undo notes: the affinities that `apply` replaced, one file per process.
//!
//! `apply` leaves threads pinned when it ends, so no guardian can restore them. Before `apply` pins
//! a thread, it notes the affinity of the thread in a file for its process. The file outlives
//! whatever ends pinwise; a crash of the machine ends the pins too. The first note of a thread
//! counts. After several plans, a release restores what was there before the first. Notes are
//! stored by host, boot and PID namespace, and name threads with their start times. So a note never
//! reaches a later thread with the same number, and hosts or containers may share the folder.
//!
//! The affinity that a thread has is not always its own. After the first plan, a worker created
//! again has the pin of its creator when the next plan finds it. Therefore an affinity counts as
//! inherited if it is the pin of a thread noted before. What such threads had before is then noted
//! instead, by the rule for heirs of the module `guardian::touched`. The first note of a process
//! names all its threads. These have inherited nothing, so what they have is theirs.
//!
//! The notes also name the pins. A thread that has other CPUs by now was moved since, by its
//! program or its owner. It keeps these.

use crate::affinity::{self, AffinityError};
use crate::guardian::{
    GuardianEntry, TouchedThreads, boot_folder, boot_path, own_folder, private_folder,
    release_heirs,
};
use crate::process;
use crate::roster::Member;
use crate::thread::{Pid, Stat, ThreadId, Tid};
use pinwise_topology::CpuSet;
use std::collections::HashSet;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Notes of replaced affinities, a file for each process.
#[derive(Clone, Debug)]
pub struct UndoNotes {
    pub(crate) folder: PathBuf,
}

/// A thread that got its affinity back, kept another one, or was refused.
#[derive(Debug)]
pub struct Released {
    /// Its name as the kernel has it.
    pub comm: String,
    /// The thread.
    pub tid: Tid,
    /// The CPUs on which it may run now.
    pub cpus: CpuSet,
    /// Another has moved it since, so it was left alone.
    pub moved: bool,
    /// Why it may not.
    pub result: Result<(), AffinityError>,
}

/// A thread whose affinity is noted.
#[derive(Debug)]
pub struct NotedThread {
    /// Its name as the kernel has it.
    pub comm: String,
    /// The thread.
    pub tid: Tid,
    /// The affinity that it would get back, offline CPUs included.
    pub before: CpuSet,
    /// The CPUs on which it may run now.
    pub now: CpuSet,
    /// Another has moved it since, so it would be left alone.
    pub moved: bool,
}

impl UndoNotes {
    /// Opens the notes below `folder`, which is created if absent. Removes notes that can never be
    /// used again. They are those of earlier boots of this host and of processes that have ended.
    ///
    /// # Errors
    /// The folder cannot be created, read or written to, or belongs to another user. With notes of
    /// that user, root would move any thread.
    pub fn open(folder: &Path) -> io::Result<Self> {
        let own = rustix::process::geteuid().as_raw();
        let private = |folder: &Path| {
            private_folder(folder)?;
            belongs_to(own, folder)
        };
        private(folder)?;
        let notes = Self { folder: boot_folder(folder)? };
        private(&notes.folder)?;
        for entry in fs::read_dir(&notes.folder)?.filter_map(Result::ok) {
            let pid = entry.file_name().to_str().and_then(|name| name.parse().ok());
            // A file without text may be one into which another pinwise is about to write.
            let written = entry.metadata().is_ok_and(|file| file.len() > 0);
            if pid.is_some_and(|pid| written && notes.entries(pid).is_empty()) {
                let _ = fs::remove_file(entry.path());
            }
        }
        Ok(notes)
    }

    /// The threads of `pid` and of its descendants that would get another affinity by the notes
    /// below `folder`. `None`: nothing was noted. Changes nothing. [`UndoNotes::release`] also
    /// releases threads that inherited a pin since.
    ///
    /// # Errors
    /// `/proc` cannot be read.
    pub fn preview(folder: &Path, pid: Pid) -> io::Result<Option<Vec<NotedThread>>> {
        let notes = Self { folder: boot_path(folder)? };
        if notes.folder.exists() {
            belongs_to(rustix::process::geteuid().as_raw(), &notes.folder)?;
        }
        let (mut moves, mut any) = (Vec::new(), false);
        for pid in family(pid)? {
            let entries = notes.entries(pid);
            any |= !entries.is_empty();
            let touched = TouchedThreads::in_entries(&entries);
            for entry in &entries {
                let GuardianEntry::Thread { id, mask } = entry else { continue };
                if id.alive()
                    && !has(*id, mask)
                    && let (Ok(stat), Ok(now)) = (Stat::read(id.pid, id.tid), affinity::get(id.tid))
                {
                    let (before, moved) = (mask.clone(), !touched.is_ours(*id));
                    moves.push(NotedThread { comm: stat.comm, tid: id.tid, before, now, moved });
                }
            }
        }
        Ok(any.then_some(moves))
    }

    /// Checks that threads of the process `pid` can be noted.
    ///
    /// # Errors
    /// Its file cannot be written.
    pub fn check_writable(&self, pid: Pid) -> io::Result<()> {
        let path = self.path(pid);
        let is_new = !path.exists();
        OpenOptions::new().create(true).append(true).mode(0o600).open(&path)?;
        if is_new { fs::remove_file(&path) } else { Ok(()) }
    }

    /// Records the threads of one process with their affinities, and the pins that they will get. A
    /// thread that inherited a pin is recorded with its earlier affinity. The notes are on disk
    /// when this returns.
    pub(crate) fn note(
        &self,
        process: &Member,
        threads: &[(ThreadId, CpuSet)],
        pins: &[(ThreadId, CpuSet)],
    ) -> io::Result<()> {
        let path = self.path(process.pid);
        let pinned_before = self.nearest_entries(process.pid);
        let mut entries = Vec::new();
        if self.entries(process.pid).is_empty() {
            // The file is from an earlier process with this number.
            let mut new = OpenOptions::new();
            new.create(true).write(true).truncate(true).mode(0o600).open(&path)?;
            let (pid, start) = (process.pid, process.start);
            let main = ThreadId { pid, tid: pid.main(), start };
            let mask = without_pin(main, &process.mask, &pinned_before);
            entries.push(GuardianEntry::Process { pid, start, mask });
            let existing = pinned_before.iter().find_map(|entry| match entry {
                GuardianEntry::Existing { threads } => Some(threads.clone()),
                _ => None,
            });
            let threads = match existing {
                Some(threads) => threads,
                None if pinned_before.is_empty() => process::family_threads(&[pid]),
                // An earlier version noted the ancestor: its heirs cannot be distinguished from
                // others.
                None => Vec::new(),
            };
            entries.push(GuardianEntry::Existing { threads });
        }
        let thread = |(id, mask): &(ThreadId, CpuSet)| GuardianEntry::Thread {
            id: *id,
            mask: without_pin(*id, mask, &pinned_before),
        };
        entries.extend(threads.iter().map(thread));
        if !pins.is_empty() {
            entries.push(GuardianEntry::Pinned { pins: pins.to_vec() });
        }
        // At once, on a new line: a line that a kill cut short spoils no other.
        let mut text = String::new();
        for entry in entries {
            text.push('\n');
            text.push_str(&serde_json::to_string(&entry)?);
        }
        OpenOptions::new().append(true).open(&path)?.write_all(text.as_bytes())
    }

    /// The notes of a process, or of the nearest process that it descends from.
    fn nearest_entries(&self, pid: Pid) -> Vec<GuardianEntry> {
        let parent = |pid: &Pid| {
            Some(Stat::read(*pid, pid.main()).ok()?.parent).filter(|parent| parent.0 > 0)
        };
        let mut noted = std::iter::successors(Some(pid), parent).map(|pid| self.entries(pid));
        noted.find(|entries| !entries.is_empty()).unwrap_or_default()
    }

    /// Gives the threads of `pid` and of its descendants the affinities noted for them. Returns the
    /// threads that had another. `None`: nothing was noted. Forgets the notes unless a thread was
    /// refused.
    ///
    /// # Errors
    /// `/proc` cannot be read.
    pub fn release(&self, pid: Pid) -> io::Result<Option<Vec<Released>>> {
        let noted: Vec<_> = family(pid)?.map(|pid| (pid, self.entries(pid))).collect();
        // Before a parent's heirs are released.
        let had: HashSet<ThreadId> = noted
            .iter()
            .flat_map(|(_, entries)| entries)
            .filter_map(|entry| match entry {
                GuardianEntry::Thread { id, mask } if has(*id, mask) => Some(*id),
                _ => None,
            })
            .collect();
        let any = noted.iter().any(|(_, entries)| !entries.is_empty());
        let mut released = Vec::new();
        for (pid, entries) in noted {
            let mut refused = false;
            let touched = TouchedThreads::in_entries(&entries);
            for entry in &entries {
                let GuardianEntry::Thread { id, mask } = entry else { continue };
                let (true, Ok(stat)) = (id.alive(), Stat::read(id.pid, id.tid)) else { continue };
                let moved = !touched.is_ours(*id);
                // Also if it had: a cpuset may hide the pin that the kernel remembers.
                let result = if moved { Ok(()) } else { affinity::give_back(pid, id.tid, mask) };
                if had.contains(id) || matches!(result, Err(AffinityError::Gone(_))) {
                    continue;
                }
                refused |= result.is_err();
                released.push(Released {
                    comm: stat.comm,
                    tid: id.tid,
                    // Not those that are offline.
                    cpus: affinity::get(id.tid).unwrap_or_else(|_| mask.clone()),
                    moved,
                    result,
                });
            }
            if !entries.is_empty() && !refused && release_heirs(&entries).is_empty() {
                // A second release would do the same once more.
                let _ = fs::remove_file(self.path(pid));
            }
        }
        Ok(any.then_some(released))
    }

    fn path(&self, pid: Pid) -> PathBuf {
        self.folder.join(pid.to_string())
    }

    /// The notes of a process and its threads, one for each thread. Threads that have ended may
    /// have left heirs. Notes of an earlier process do not count.
    fn entries(&self, pid: Pid) -> Vec<GuardianEntry> {
        let text = fs::read_to_string(self.path(pid)).unwrap_or_default();
        let mut entries: Vec<GuardianEntry> =
            text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let lives = |entry: &GuardianEntry| match entry {
            GuardianEntry::Process { start, .. } => {
                Stat::read(pid, pid.main()).is_ok_and(|stat| stat.start == *start)
            }
            _ => false,
        };
        if !entries.first().is_some_and(lives) {
            return Vec::new();
        }
        let mut noted = HashSet::new();
        entries.retain(|entry| match entry {
            GuardianEntry::Thread { id, .. } => noted.insert(*id),
            _ => true,
        });
        entries
    }
}

/// Whether a thread has what was noted for it. Its pin may have been refused.
fn has(id: ThreadId, noted: &CpuSet) -> bool {
    affinity::own(id.tid).is_ok_and(|own| own == *noted)
}

fn belongs_to(own: u32, folder: &Path) -> io::Result<()> {
    own_folder(folder, own).map(drop).map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => io::Error::new(
            error.kind(),
            "it belongs to another user: run pinwise as that user, or set XDG_DATA_HOME",
        ),
        _ => error,
    })
}

/// A process and its descendants.
fn family(pid: Pid) -> io::Result<impl Iterator<Item = Pid>> {
    Ok(std::iter::once(pid).chain(process::descendants(&[pid], &process::all()?)))
}

/// The affinity to note for a thread that has `mask`. If the thread inherited that mask from a
/// noted thread, it is the affinity noted for that one.
fn without_pin(id: ThreadId, mask: &CpuSet, noted: &[GuardianEntry]) -> CpuSet {
    let existing = noted.iter().flat_map(|entry| match entry {
        GuardianEntry::Existing { threads } => &threads[..],
        _ => &[],
    });
    let touched = TouchedThreads::in_entries(noted);
    if touched.has(id) || existing.clone().any(|other| *other == id) {
        return mask.clone();
    }
    let others = existing.filter(|other| !touched.has(**other));
    let others = others.filter_map(|id| Some((id.pid, affinity::own(id.tid).ok()?)));
    touched.of_heir(id.pid, mask, others).unwrap_or_else(|| mask.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Killed;
    use crate::guardian::host_prefix;
    use crate::roster::{Roster, Scope};
    use crate::thread::StartTime;
    use std::io::{BufRead, BufReader};
    use std::os::unix::fs::PermissionsExt as _;
    use std::process::{Command, Stdio};

    /// Of notes that need not be there.
    fn release(notes: &UndoNotes, pid: Pid) -> Vec<Released> {
        notes.release(pid).unwrap().unwrap_or_default()
    }

    fn previewed(folder: &Path, pid: Pid) -> Vec<NotedThread> {
        UndoNotes::preview(folder, pid).unwrap().unwrap_or_default()
    }

    fn sleeping() -> (Killed, Pid, Roster) {
        let child = Killed(Command::new("sleep").arg("60").spawn().unwrap());
        let pid = Pid(child.0.id() as i32);
        let roster = Roster::new(Scope::Processes(vec![pid])).unwrap();
        (child, pid, roster)
    }

    #[test]
    fn the_first_affinity_noted_comes_back_once() {
        let folder = tempfile::tempdir().unwrap();
        let (_child, pid, roster) = sleeping();
        let (member, id) = roster.threads().next().unwrap();
        let before = affinity::get(id.tid).unwrap();
        let one: CpuSet = before.first().into_iter().collect();

        let notes = UndoNotes::open(folder.path()).unwrap();
        assert!(release(&notes, pid).is_empty(), "nothing was noted");
        notes.note(member, &[(id, before.clone())], &[]).unwrap();
        affinity::set(id.tid, &one).unwrap();
        // A second plan finds the thread pinned.
        UndoNotes::open(folder.path()).unwrap().note(member, &[(id, one.clone())], &[]).unwrap();
        let pinned = one;
        // A thread of the same number in another life is not meant.
        let other = ThreadId { start: StartTime(id.start.0 + 1), ..id };
        notes.note(member, &[(other, CpuSet::new())], &[]).unwrap();

        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!([notes.folder.as_path(), &notes.path(pid)].map(mode), [0o700, 0o600]);
        let another = rustix::process::geteuid().as_raw() + 1;
        assert!(belongs_to(another, &notes.folder).is_err(), "nor may root believe them");
        let preview = previewed(folder.path(), pid);
        let [noted] = &preview[..] else { panic!("{preview:?}") };
        assert_eq!((noted.tid, &noted.before, &noted.now), (id.tid, &before, &pinned));
        assert_eq!(affinity::get(id.tid).unwrap(), pinned, "nothing is changed");
        let notes = UndoNotes::open(folder.path()).unwrap();
        let released = release(&notes, pid);
        assert_eq!(released.len(), 1);
        assert_eq!(
            (released[0].tid, released[0].comm.as_str(), &released[0].cpus),
            (id.tid, "sleep", &before)
        );
        assert!(released[0].result.is_ok());
        assert_eq!(affinity::get(id.tid).unwrap(), before);
        assert!(release(&notes, pid).is_empty());
    }

    #[test]
    fn a_thread_whose_pin_was_refused_has_nothing_to_get_back() {
        let folder = tempfile::tempdir().unwrap();
        let (_child, pid, roster) = sleeping();
        let (member, id) = roster.threads().next().unwrap();
        let own = affinity::own(id.tid).unwrap();
        let notes = UndoNotes::open(folder.path()).unwrap();
        notes.note(member, &[(id, own.clone())], &[(id, own)]).unwrap();
        assert!(previewed(folder.path(), pid).is_empty());
        assert_eq!(notes.release(pid).unwrap().map(|threads| threads.len()), Some(0));
        assert!(!notes.path(pid).exists());
        assert!(notes.release(pid).unwrap().is_none());
    }

    /// A shell that creates a child, and both processes. The child ends with the shell's input,
    /// which it reads.
    fn shell_with_child() -> (Killed, Roster) {
        let mut command = Command::new("sh");
        let child = command
            .args(["-c", "exec 3<&0; cat <&3 & echo; wait"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = Killed(child.spawn().unwrap());
        BufReader::new(child.0.stdout.take().unwrap()).read_line(&mut String::new()).unwrap();
        let roster = Roster::new(Scope::Trees(vec![Pid(child.0.id() as i32)])).unwrap();
        assert_eq!(roster.members().len(), 2);
        (child, roster)
    }

    #[test]
    fn an_inherited_pin_is_not_what_comes_back() {
        let folder = tempfile::tempdir().unwrap();
        let notes = UndoNotes::open(folder.path()).unwrap();
        let (_child, roster) = shell_with_child();
        let threads: Vec<(&Member, ThreadId)> = roster.threads().collect();
        let ((parent, shell), (born, cat)) = (threads[0], threads[1]);
        let before = affinity::get(shell.tid).unwrap();
        let one: CpuSet = before.first().into_iter().collect();
        notes.note(parent, &[(shell, before.clone())], &[]).unwrap();
        // As if the child had been created afterwards, and a second plan found it.
        let noted = fs::read_to_string(notes.path(parent.pid)).unwrap();
        let without = |line: &&str| !line.contains("Existing");
        let noted: Vec<&str> = noted.lines().filter(without).collect();
        fs::write(notes.path(parent.pid), noted.join("\n")).unwrap();
        affinity::set(shell.tid, &one).unwrap();
        affinity::set(cat.tid, &one).unwrap();
        notes.note(&Member { mask: one.clone(), ..born.clone() }, &[(cat, one)], &[]).unwrap();
        let released = release(&notes, parent.pid);
        assert_eq!(released.len(), 2);
        assert_eq!(affinity::get(shell.tid).unwrap(), before);
        assert_eq!(affinity::get(cat.tid).unwrap(), before);
    }

    /// The program itself confined it, and no plan names it.
    #[test]
    fn what_was_confined_before_the_first_plan_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let notes = UndoNotes::open(folder.path()).unwrap();
        let (_child, roster) = shell_with_child();
        let threads: Vec<(&Member, ThreadId)> = roster.threads().collect();
        let ((parent, shell), (child, cat)) = (threads[0], threads[1]);
        let before = affinity::get(shell.tid).unwrap();
        let one: CpuSet = before.first().into_iter().collect();
        affinity::set(cat.tid, &one).unwrap();
        notes.note(parent, &[(shell, before.clone())], &[]).unwrap();
        affinity::set(shell.tid, &one).unwrap();
        assert_eq!(release(&notes, parent.pid).len(), 1);
        assert_eq!(affinity::get(shell.tid).unwrap(), before);
        assert_eq!(affinity::get(cat.tid).unwrap(), one);
        // Also if a later plan names it while the first one's pins are up.
        notes.note(parent, &[(shell, before.clone())], &[]).unwrap();
        affinity::set(shell.tid, &one).unwrap();
        notes
            .note(&Member { mask: one.clone(), ..child.clone() }, &[(cat, one.clone())], &[])
            .unwrap();
        assert_eq!(release(&notes, parent.pid).len(), 1);
        assert_eq!(affinity::get(shell.tid).unwrap(), before);
        assert_eq!(affinity::get(cat.tid).unwrap(), one);
    }

    #[test]
    fn a_pin_of_its_own_comes_back() {
        let folder = tempfile::tempdir().unwrap();
        let notes = UndoNotes::open(folder.path()).unwrap();
        let child = Killed(Command::new("sleep").arg("60").spawn().unwrap());
        let roster = Roster::new(Scope::Processes(vec![Pid(child.0.id() as i32)])).unwrap();
        let (member, id) = roster.threads().next().unwrap();
        let one: CpuSet = affinity::get(id.tid).unwrap().first().into_iter().collect();
        affinity::set(id.tid, &one).unwrap();
        notes.note(member, &[(id, one.clone())], &[]).unwrap();
        notes.note(member, &[(id, one.clone())], &[]).unwrap();
        assert!(release(&notes, member.pid).is_empty(), "it had what was noted");
        assert_eq!(affinity::get(id.tid).unwrap(), one);
    }

    /// Its creator has ended since, as a worker that is restarted.
    #[test]
    fn an_heir_of_a_thread_that_ended_is_released() {
        let folder = tempfile::tempdir().unwrap();
        let notes = UndoNotes::open(folder.path()).unwrap();
        let (_child, roster) = shell_with_child();
        let threads: Vec<(&Member, ThreadId)> = roster.threads().collect();
        let ((parent, shell), (_, cat)) = (threads[0], threads[1]);
        let before = affinity::get(shell.tid).unwrap();
        let pin: CpuSet = before.first().into_iter().collect();
        let ended = ThreadId { tid: Tid(i32::MAX), ..shell };
        notes.note(parent, &[(ended, before.clone())], &[(ended, pin.clone())]).unwrap();
        // As if the child had been created afterwards.
        let noted = fs::read_to_string(notes.path(parent.pid)).unwrap();
        let noted: Vec<&str> = noted.lines().filter(|line| !line.contains("Existing")).collect();
        fs::write(notes.path(parent.pid), noted.join("\n")).unwrap();
        affinity::set(cat.tid, &pin).unwrap();
        assert!(release(&notes, parent.pid).is_empty(), "the noted thread has ended");
        assert_eq!(affinity::get(cat.tid).unwrap(), before);
    }

    #[test]
    fn a_thread_that_was_moved_after_the_plan_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let notes = UndoNotes::open(folder.path()).unwrap();
        let child = Killed(Command::new("sleep").arg("60").spawn().unwrap());
        let roster = Roster::new(Scope::Processes(vec![Pid(child.0.id() as i32)])).unwrap();
        let (member, id) = roster.threads().next().unwrap();
        let all = affinity::get(id.tid).unwrap();
        let mut cpus = all.iter().map(|cpu| -> CpuSet { [cpu].into_iter().collect() });
        let (Some(pin), Some(moved)) = (cpus.next(), cpus.next()) else { return };
        notes.note(member, &[(id, all.clone())], &[(id, pin)]).unwrap();
        affinity::set(id.tid, &moved).unwrap();
        assert!(previewed(folder.path(), member.pid)[0].moved);
        let released = release(&notes, member.pid);
        assert!(released[0].moved && released[0].result.is_ok());
        assert_eq!((&released[0].cpus, affinity::get(id.tid).unwrap()), (&moved, moved.clone()));
        assert!(release(&notes, member.pid).is_empty(), "that was the end of it");
    }

    #[test]
    fn a_note_that_was_cut_short_spoils_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let notes = UndoNotes::open(folder.path()).unwrap();
        let child = Killed(Command::new("sleep").arg("60").spawn().unwrap());
        let roster = Roster::new(Scope::Processes(vec![Pid(child.0.id() as i32)])).unwrap();
        let (member, id) = roster.threads().next().unwrap();
        notes.note(member, &[], &[]).unwrap();
        let path = notes.path(member.pid);
        OpenOptions::new()
            .append(true)
            .open(path)
            .unwrap()
            .write_all(b"\n{\"Thread\":{\"id\"")
            .unwrap();
        let before = affinity::get(id.tid).unwrap();
        notes.note(member, &[(id, before.clone())], &[]).unwrap();
        affinity::set(id.tid, &before.first().into_iter().collect()).unwrap();
        release(&notes, member.pid);
        assert_eq!(affinity::get(id.tid).unwrap(), before);
    }

    #[test]
    fn notes_of_what_ended_and_of_another_boot_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let earlier = folder.path().join(format!("{}earlier.4026531836", host_prefix()));
        fs::create_dir(&earlier).unwrap();
        let notes = UndoNotes::open(folder.path()).unwrap();
        assert!(!earlier.exists());
        let this = Pid(std::process::id() as i32);
        let entry = GuardianEntry::Process { pid: this, start: StartTime(0), mask: CpuSet::new() };
        fs::write(notes.path(this), serde_json::to_string(&entry).unwrap()).unwrap();
        assert!(release(&UndoNotes::open(folder.path()).unwrap(), this).is_empty());
        assert!(!notes.path(this).exists());
        fs::write(notes.path(this), "").unwrap();
        UndoNotes::open(folder.path()).unwrap();
        assert!(notes.path(this).exists(), "another pinwise may be about to write into it");
    }

    #[test]
    fn notes_of_other_hosts_and_containers_stay() {
        let folder = tempfile::tempdir().unwrap();
        let notes = UndoNotes::open(folder.path()).unwrap();
        let own = notes.folder.file_name().unwrap().to_str().unwrap();
        let boot = &own[..own.rfind('.').unwrap()];
        let names = [format!("{boot}.1"), "elsewhere.boot-1.2".into()];
        let others = names.map(|name| folder.path().join(name));
        for other in &others {
            fs::create_dir(other).unwrap();
        }
        UndoNotes::open(folder.path()).unwrap();
        assert!(others.iter().all(|other| other.exists()));
    }
}
