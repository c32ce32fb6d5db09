//! The processes and threads of a target, as they come and go.
//!
//! A target is one process or several with the children they create from now on. Or it is whole
//! process trees, or everything in a cgroup. Polling `/proc` misses threads that live for less than
//! the time between two refreshes. Such threads are too short to place anyway.

use crate::affinity;
use crate::fork_watch::ForkWatch;
use crate::process;
use crate::sys;
use crate::thread::{Pid, StartTime, Stat, ThreadId, Tid};
use pinwise_topology::CpuSet;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The processes of a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// These, and children they create from now on.
    Processes(Vec<Pid>),
    /// These with all their descendants.
    Trees(Vec<Pid>),
    /// Every process in this cgroup and those below it: its directory, or its path as in
    /// `/proc/PID/cgroup`.
    Cgroup(PathBuf),
}

/// A process of the target.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its number.
    pub pid: Pid,
    pub(crate) start: StartTime,
    /// The index of the process that the user named: this one, or its ancestor.
    pub(crate) root: usize,
    /// The CPUs on which it could run without pinwise's pins.
    pub(crate) mask: CpuSet,
    /// In the order of creation.
    pub threads: Vec<ThreadId>,
    /// The directory of its threads, whose links count them; `None` if it is not open.
    pub(crate) task: Option<Arc<File>>,
    /// How many links it had before the threads were listed: two more than there were threads.
    pub(crate) links: usize,
}

impl Member {
    /// Whether the number of its threads has changed since they were listed.
    fn changed(&self) -> bool {
        // The exit status of the last thread is left, and counts as a thread.
        self.links() != self.links || self.threads.len() == 1 && process::ended(self.pid)
    }

    /// The number of links of the directory; 0 if the process has ended.
    fn links(&self) -> usize {
        let directory = match &self.task {
            Some(task) => rustix::fs::fstat(task),
            None => rustix::fs::stat(format!("/proc/{}/task", self.pid)),
        };
        directory.map_or(0, |directory| directory.st_nlink as usize)
    }
}

/// The number of processes whose directory stays open. By default a process may have 1,024 open
/// files.
const KEPT: usize = 64;

/// The changes from one refresh to the next.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// Threads that have appeared.
    pub new: Vec<ThreadId>,
    /// Threads that have ended.
    pub gone: Vec<ThreadId>,
}

/// The processes and threads of a target.
#[derive(Debug)]
pub struct Roster {
    scope: Scope,
    members: Vec<Member>,
    /// Processes that exist and are no members, in the cgroup if that is the scope.
    strangers: HashMap<Pid, StartTime>,
    /// The newest thread before the last refresh.
    newest: Option<u64>,
    /// This process is in the cgroup.
    with_us: bool,
    forks: ForkWatch,
}

impl Roster {
    /// Reads them for the first time.
    pub fn new(scope: Scope) -> io::Result<Self> {
        let (forks, strangers) = (ForkWatch::default(), HashMap::new());
        let (newest, with_us) = (forks.newest(), false);
        let mut roster = Self { scope, members: Vec::new(), strangers, newest, with_us, forks };
        let mut everything = process::all()?;
        match roster.scope.clone() {
            Scope::Processes(roots) => {
                roots.iter().enumerate().for_each(|(root, &pid)| roster.join(pid, root, None))
            }
            Scope::Trees(roots) => {
                for (root, &pid) in roots.iter().enumerate() {
                    roster.join(pid, root, None);
                    for pid in without_us(process::descendants(&[pid], &everything)) {
                        roster.join(pid, root, None);
                    }
                }
            }
            Scope::Cgroup(cgroup) => {
                everything = process::in_cgroup(&cgroup)?;
                roster.with_us = everything.contains(&this_process());
                let members = without_us(everything.clone());
                members.into_iter().for_each(|pid| roster.join(pid, 0, None))
            }
        }
        roster.members.sort_by_key(|member| (member.root, member.start, member.pid));
        let members: HashSet<Pid> = roster.members.iter().map(|member| member.pid).collect();
        let strangers = everything.into_iter().filter(|pid| !members.contains(pid));
        roster.strangers = strangers.filter_map(|pid| Some((pid, start(pid)?))).collect();
        roster.refresh_threads();
        Ok(roster)
    }

    /// How many processes its processes have started that are not among them. A control group has
    /// its own processes alone.
    pub fn unwatched(&self) -> usize {
        if matches!(self.scope, Scope::Cgroup(_)) {
            return 0;
        }
        let own: Vec<Pid> = self.members.iter().map(|member| member.pid).collect();
        let everything = process::all().unwrap_or_default();
        without_us(process::descendants(&own, &everything)).len()
    }

    /// Finds the threads that have begun or ended. Takes 20 us for a process of ten threads, and
    /// 0.1 ms per hundred processes of the machine.
    pub fn refresh(&mut self) -> io::Result<Changes> {
        let newest = self.forks.newest();
        let listed = match &self.scope {
            Scope::Cgroup(cgroup) => match process::in_cgroup(cgroup) {
                // The cgroup is removed when its last process has ended.
                Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
                listed => listed?,
            },
            Scope::Processes(_) | Scope::Trees(_) => process::all()?,
        };
        self.forget(&listed, newest);
        self.meet(listed);
        Ok(self.refresh_threads())
    }

    /// Forgets the strangers that have ended. A new process may have the number of an ended
    /// stranger. Such a number was given since the last refresh, so only these numbers are checked.
    /// `newest` is the newest thread now.
    fn forget(&mut self, listed: &[Pid], newest: Option<u64>) {
        let listed: HashSet<&Pid> = listed.iter().collect();
        let before = std::mem::replace(&mut self.newest, newest);
        let given = |pid: Pid| match before.zip(newest) {
            Some((from, to)) if from <= to => (from + 1..=to).contains(&(pid.0 as u64)),
            // Numbers have started again at the lowest.
            Some((from, to)) => !(to + 1..=from).contains(&(pid.0 as u64)),
            None => true,
        };
        let exists = |pid: &Pid, began: &mut StartTime| {
            listed.contains(pid) && (!given(*pid) || start(*pid) == Some(*began))
        };
        self.strangers.retain(exists);
    }

    /// Takes in the processes that exist, in any order.
    fn meet(&mut self, listed: Vec<Pid>) {
        let members: HashSet<Pid> = self.members.iter().map(|member| member.pid).collect();
        let new = listed
            .iter()
            .copied()
            .filter(|pid| !members.contains(pid) && !self.strangers.contains_key(pid));
        if matches!(self.scope, Scope::Cgroup(_)) {
            let mut new: Vec<Pid> = new.collect();
            if self.with_us && !new.is_empty() {
                let ours = process::descendants(&[this_process()], &listed);
                new.retain(|pid| !ours.contains(pid));
            }
            new.into_iter().for_each(|pid| self.join(pid, 0, None));
            return;
        }
        let mut orphans: Vec<(Pid, Stat)> =
            new.filter_map(|pid| Some((pid, Stat::read(pid, pid.main()).ok()?))).collect();
        // A child is listed before its parent when process numbers have started again at the
        // lowest. So look for parents until no process finds one.
        let mut without = usize::MAX;
        while orphans.len() < without {
            without = orphans.len();
            orphans.retain(|(pid, stat)| {
                let parent = self.member(stat.parent);
                let Some((root, mask)) = parent.map(|parent| (parent.root, parent.mask.clone()))
                else {
                    return true;
                };
                self.join(*pid, root, Some(mask));
                false
            });
        }
        self.strangers.extend(orphans.into_iter().map(|(pid, stat)| (pid, stat.start)));
    }

    /// Does the same as [`refresh`](Self::refresh), but lists the processes of the machine only if
    /// something was created.
    pub fn refresh_if_born(&mut self) -> io::Result<()> {
        // Into a cgroup processes are also moved.
        if self.forks.any() || matches!(self.scope, Scope::Cgroup(_)) {
            self.refresh()?;
        } else {
            self.refresh_threads();
        }
        Ok(())
    }

    /// Does the same as [`refresh_threads`](Self::refresh_threads), but only if the number of
    /// threads has changed. It misses a thread that took the place of one that ended. Takes 2 us
    /// for a process that did not change.
    pub fn refresh_threads_if_changed(&mut self) {
        if self.members.iter().any(Member::changed) {
            self.refresh_threads();
        }
    }

    /// The processes at the last refresh.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// The threads with their processes, at the last refresh.
    pub fn threads(&self) -> impl Iterator<Item = (&Member, ThreadId)> {
        self.members.iter().flat_map(|member| member.threads.iter().map(move |&id| (member, id)))
    }

    /// CPU time of the processes that are members now, since each began.
    pub fn cpu_time(&self) -> Duration {
        self.members.iter().filter_map(|member| sys::cpu_time(member.pid.0).ok()).sum()
    }

    /// The process a thread belongs to.
    pub(crate) fn member(&self, pid: Pid) -> Option<&Member> {
        self.members.iter().find(|member| member.pid == pid)
    }

    /// Adds a process. A child that a pinned thread created inherits the pin. It then counts with
    /// the mask of its parent.
    fn join(&mut self, pid: Pid, root: usize, parent: Option<CpuSet>) {
        let (Ok(stat), Ok(own)) = (Stat::read(pid, pid.main()), affinity::own(pid.main())) else {
            return;
        };
        let mask = match parent {
            Some(parent) if own.len() == 1 && parent.len() > 1 => parent,
            _ => own,
        };
        let task = (self.members.len() < KEPT)
            .then(|| File::open(format!("/proc/{pid}/task")).ok())
            .flatten();
        let (task, threads) = (task.map(Arc::new), Vec::new());
        self.members.push(Member { pid, start: stat.start, root, mask, threads, task, links: 0 });
    }

    /// Finds the threads of known processes that have begun or ended. Takes 10 us for a process of
    /// ten threads.
    pub fn refresh_threads(&mut self) -> Changes {
        let mut changes = Changes::default();
        for member in &mut self.members {
            member.links = member.links();
            let listed = process::threads(member.pid).unwrap_or_default();
            let known: HashSet<Tid> = member.threads.iter().map(|id| id.tid).collect();
            let still: HashSet<Tid> = listed.iter().copied().collect();
            changes.gone.extend(member.threads.extract_if(.., |id| !still.contains(&id.tid)));
            for tid in listed.into_iter().filter(|tid| !known.contains(tid)) {
                if let Ok(stat) = Stat::read(member.pid, tid)
                    && !stat.dead()
                {
                    let id = ThreadId { pid: member.pid, tid, start: stat.start };
                    member.threads.push(id);
                    changes.new.push(id);
                }
            }
        }
        // A process whose exit status nobody has read still lists a thread.
        let ended = |member: &mut Member| member.threads.is_empty() || process::ended(member.pid);
        changes.gone.extend(self.members.extract_if(.., ended).flat_map(|member| member.threads));
        changes
    }
}

/// When a process began; `None` if it has ended.
fn start(pid: Pid) -> Option<StartTime> {
    Stat::read(pid, pid.main()).ok().map(|stat| stat.start)
}

fn this_process() -> Pid {
    Pid(std::process::id() as i32)
}

/// Leaves out this process, if it is among them, and what it has started. pinwise is no part of the
/// target, not even in the same shell or container.
fn without_us(mut pids: Vec<Pid>) -> Vec<Pid> {
    let us = this_process();
    if pids.contains(&us) {
        let ours = process::descendants(&[us], &pids);
        pids.retain(|pid| *pid != us && !ours.contains(pid));
    }
    pids
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command, Stdio};
    use std::sync::Barrier;
    use std::time::Instant;

    fn shell(script: &str) -> (Child, Roster) {
        let child = Command::new("sh").args(["-c", script]).stdin(Stdio::piped()).spawn().unwrap();
        let roster = Roster::new(Scope::Processes(vec![Pid(child.id() as i32)])).unwrap();
        (child, roster)
    }

    /// Looks until it is so.
    fn until(roster: &mut Roster, look: impl Fn(&mut Roster), so: impl Fn(&Roster) -> bool) {
        let begin = Instant::now();
        while !so(roster) {
            assert!(begin.elapsed() < Duration::from_secs(20), "{roster:?}");
            std::thread::sleep(Duration::from_millis(1));
            look(roster);
        }
    }

    #[test]
    fn the_thread_of_a_process_that_ended_is_gone_before_its_exit_status_is_read() {
        let (mut child, mut roster) = shell("read a");
        let thread = roster.threads().next().unwrap().1;
        child.kill().unwrap();
        let mut gone = Vec::new();
        let begin = Instant::now();
        while !roster.members().is_empty() {
            assert!(begin.elapsed() < Duration::from_secs(20), "{roster:?}");
            gone.extend(roster.refresh_threads().gone);
        }
        assert_eq!(gone, [thread]);
        child.wait().unwrap();
    }

    #[test]
    fn whoever_measures_is_no_part_of_a_tree() {
        let parent = Stat::read(this_process(), this_process().main()).unwrap().parent;
        let (mut shell, own) = shell("read a");
        let members = |pid| -> Vec<Pid> {
            let roster = Roster::new(Scope::Trees(vec![pid])).unwrap();
            roster.members().iter().map(|member| member.pid).collect()
        };
        let (around, below) = (members(parent), members(this_process()));
        drop(shell.stdin.take());
        shell.wait().unwrap();
        let child = own.members()[0].pid;
        assert!(around.contains(&parent));
        assert!(!around.contains(&this_process()) && !around.contains(&child), "{around:?}");
        assert!(below.contains(&child), "named by number: {below:?}");
    }

    #[test]
    fn a_child_that_begins_is_found_and_so_is_a_process_that_ends() {
        let (mut shell, mut roster) = shell("read a; (read b); :");
        roster.refresh_if_born().unwrap();
        assert_eq!(roster.members().len(), 1);
        let mut lines = shell.stdin.take().unwrap();
        std::io::Write::write_all(&mut lines, b"\n").unwrap();
        until(
            &mut roster,
            |roster| roster.refresh_if_born().unwrap(),
            |roster| roster.members().len() == 2,
        );
        drop(lines);
        // Nobody has waited for it: an exit status is no process.
        until(&mut roster, Roster::refresh_threads_if_changed, |roster| {
            roster.members().is_empty()
        });
        shell.wait().unwrap();
    }

    #[test]
    fn a_child_with_the_number_of_a_stranger_that_has_ended_is_found() {
        let (mut shell, mut roster) = shell("read a; (read b); :");
        let own = Pid(shell.id() as i32);
        let mut lines = shell.stdin.take().unwrap();
        std::io::Write::write_all(&mut lines, b"\n").unwrap();
        let child = || process::descendants(&[own], &process::all().unwrap()).first().copied();
        until(&mut roster, |_| {}, |_| child().is_some());
        let child = child().unwrap();
        roster.strangers.insert(child, StartTime(start(child).unwrap().0 - 1));
        roster.refresh().unwrap();
        assert_eq!(roster.members().len(), 2);
        drop(lines);
        shell.wait().unwrap();
    }

    #[test]
    fn a_stranger_is_looked_at_again_if_its_number_may_have_been_given_since() {
        let own = this_process();
        let number = own.0 as u64;
        let mut roster = Roster::new(Scope::Processes(Vec::new())).unwrap();
        let mut stays = |before: Option<u64>, newest: Option<u64>| {
            roster.newest = before;
            roster.strangers = [(own, StartTime(0))].into();
            roster.forget(&[own], newest);
            !roster.strangers.is_empty()
        };
        assert!(stays(Some(number), Some(number + 1)));
        assert!(stays(Some(number - 1), Some(number - 1)));
        assert!(!stays(Some(number - 1), Some(number)));
        assert!(stays(Some(number), Some(number - 1)), "all numbers but this one");
        assert!(!stays(Some(number + 1), Some(number)), "all numbers but the next one");
        assert!(!stays(None, Some(number - 1)));
        roster.strangers = [(own, start(own).unwrap())].into();
        roster.forget(&[own], None);
        assert!(!roster.strangers.is_empty(), "it is still the same");
    }

    #[test]
    fn a_process_that_is_moved_into_the_cgroup_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let processes = folder.path().join("cgroup.procs");
        let sleeping = crate::process_lock::tests::Sleeping::new();
        std::fs::write(&processes, "").unwrap();
        let mut roster = Roster::new(Scope::Cgroup(folder.path().to_owned())).unwrap();
        assert!(roster.members().is_empty());
        std::fs::write(&processes, format!("{}\n", sleeping.pid())).unwrap();
        roster.refresh().unwrap();
        assert_eq!(roster.members()[0].pid, sleeping.pid());
    }

    #[test]
    fn a_child_that_is_listed_before_its_parent_is_no_stranger() {
        let (mut shell, mut roster) = shell("read a; (sleep 20 & wait) & wait");
        let own = Pid(shell.id() as i32);
        shell.stdin.take().unwrap();
        let begin = Instant::now();
        let family = loop {
            let family = process::descendants(&[own], &process::all().unwrap());
            if family.len() == 2 {
                break family;
            }
            assert!(begin.elapsed() < Duration::from_secs(20), "{family:?}");
            std::thread::sleep(Duration::from_millis(1));
        };
        // The grandchild comes first, as after a wrap-around of process numbers.
        roster.meet(vec![family[1], family[0], own]);
        let members: Vec<Pid> = roster.members().iter().map(|member| member.pid).collect();
        for &pid in family.iter().chain([&own]) {
            let _ = rustix::process::kill_process(
                rustix::process::Pid::from_raw(pid.0).unwrap(),
                rustix::process::Signal::KILL,
            );
        }
        shell.wait().unwrap();
        assert_eq!(members, [own, family[0], family[1]]);
    }

    #[test]
    fn a_changed_count_finds_threads_that_begin_and_end() {
        // More than other tests of this process begin or end at the same time.
        const THREADS: usize = 50;
        let own = Pid(rustix::process::getpid().as_raw_nonzero().get());
        let mut roster = Roster::new(Scope::Processes(vec![own])).unwrap();
        let (begun, ended) =
            (Arc::new(Barrier::new(THREADS + 1)), Arc::new(Barrier::new(THREADS + 1)));
        let start = |_| {
            let (begun, ended) = (begun.clone(), ended.clone());
            std::thread::spawn(move || {
                let tid = Tid(rustix::thread::gettid().as_raw_nonzero().get());
                begun.wait();
                ended.wait();
                tid
            })
        };
        let threads: Vec<_> = (0..THREADS).map(start).collect();
        begun.wait();
        let before = roster.threads().count();
        until(&mut roster, Roster::refresh_threads_if_changed, |roster| {
            roster.threads().count() >= before + THREADS / 2
        });
        ended.wait();
        let tids: HashSet<Tid> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        until(&mut roster, Roster::refresh_threads_if_changed, |roster| {
            !roster.threads().any(|(_, id)| tids.contains(&id.tid))
        });
    }
}
