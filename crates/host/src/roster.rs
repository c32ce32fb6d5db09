//! The processes and threads of a target, as they come and go.
//!
//! A target is one process or several, with the children they create while they are watched, or everything in a cgroup. Polling
//! `/proc` misses threads that live for less than the time between two looks; those are too short to place anyway.

use crate::affinity;
use crate::process;
use crate::thread::{Pid, StartTime, Stat, ThreadId, Tid};
use pinwise_topology::CpuSet;
use std::collections::HashSet;
use std::io;
use std::path::PathBuf;

/// Which processes are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// These, and children they create from now on.
    Processes(Vec<Pid>),
    /// These with all their descendants.
    Trees(Vec<Pid>),
    /// Every process in this cgroup and those below it: its directory, or its path as in `/proc/PID/cgroup`.
    Cgroup(PathBuf),
}

/// A process of the target.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) pid: Pid,
    pub(crate) start: StartTime,
    /// Which of the processes that the user named it is or descends from.
    pub(crate) root: usize,
    /// On which CPUs it may run as far as anyone but us decides.
    pub(crate) mask: CpuSet,
    /// In the order of creation.
    pub(crate) threads: Vec<ThreadId>,
}

/// What a look found, compared with the look before.
#[derive(Clone, Debug, Default)]
pub(crate) struct Changes {
    pub(crate) new: Vec<ThreadId>,
    pub(crate) gone: Vec<ThreadId>,
}

/// The processes and threads of a target.
#[derive(Debug)]
pub(crate) struct Roster {
    scope: Scope,
    members: Vec<Member>,
    /// Processes that exist and are no members.
    strangers: HashSet<Pid>,
}

impl Roster {
    /// Takes the first look.
    pub(crate) fn new(scope: Scope) -> io::Result<Self> {
        let mut roster = Self { scope, members: Vec::new(), strangers: HashSet::new() };
        let everything = process::all()?;
        match roster.scope.clone() {
            Scope::Processes(roots) => roots.iter().enumerate().for_each(|(root, &pid)| roster.join(pid, root, None)),
            Scope::Trees(roots) => {
                for (root, &pid) in roots.iter().enumerate() {
                    roster.join(pid, root, None);
                    for pid in process::descendants(&[pid], &everything) {
                        roster.join(pid, root, None);
                    }
                }
            }
            Scope::Cgroup(cgroup) => process::in_cgroup(&cgroup)?.into_iter().for_each(|pid| roster.join(pid, 0, None)),
        }
        roster.members.sort_by_key(|member| (member.root, member.start, member.pid));
        let members: HashSet<Pid> = roster.members.iter().map(|member| member.pid).collect();
        roster.strangers = everything.into_iter().filter(|pid| !members.contains(pid)).collect();
        roster.look_at_threads();
        Ok(roster)
    }

    /// Looks again: 20 us for a process of ten threads, and 0.1 ms per hundred processes of the machine.
    pub(crate) fn look(&mut self) -> io::Result<Changes> {
        let listed = match &self.scope {
            Scope::Cgroup(cgroup) => match process::in_cgroup(cgroup) {
                // The cgroup is removed when its last process has ended.
                Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
                listed => listed?,
            },
            Scope::Processes(_) | Scope::Trees(_) => process::all()?,
        };
        let members: HashSet<Pid> = self.members.iter().map(|member| member.pid).collect();
        for &pid in listed.iter().filter(|pid| !members.contains(pid)) {
            match self.scope {
                Scope::Cgroup(_) => self.join(pid, 0, None),
                _ if self.strangers.contains(&pid) => {}
                _ => {
                    let parent = Stat::read(pid, pid.main()).ok().map(|stat| stat.parent);
                    let parent = self.members.iter().find(|member| Some(member.pid) == parent);
                    match parent.map(|parent| (parent.root, parent.mask.clone())) {
                        Some((root, mask)) => self.join(pid, root, Some(mask)),
                        None => drop(self.strangers.insert(pid)),
                    }
                }
            }
        }
        let listed: HashSet<Pid> = listed.into_iter().collect();
        self.strangers.retain(|pid| listed.contains(pid));
        Ok(self.look_at_threads())
    }

    pub(crate) fn members(&self) -> &[Member] {
        &self.members
    }

    pub(crate) fn threads(&self) -> impl Iterator<Item = (&Member, ThreadId)> {
        self.members.iter().flat_map(|member| member.threads.iter().map(move |&id| (member, id)))
    }

    /// The process a thread belongs to.
    pub(crate) fn member(&self, pid: Pid) -> Option<&Member> {
        self.members.iter().find(|member| member.pid == pid)
    }

    /// A child created by a pinned thread inherits the pin; then its parent's mask is what it would have.
    fn join(&mut self, pid: Pid, root: usize, parent: Option<CpuSet>) {
        let (Ok(stat), Ok(own)) = (Stat::read(pid, pid.main()), affinity::get(pid.main())) else { return };
        let mask = match parent {
            Some(parent) if own.len() == 1 && parent.len() > 1 => parent,
            _ => own,
        };
        self.members.push(Member { pid, start: stat.start, root, mask, threads: Vec::new() });
    }

    /// Looks at the threads of the processes known so far: 10 us for a process of ten.
    pub(crate) fn look_at_threads(&mut self) -> Changes {
        let mut changes = Changes::default();
        for member in &mut self.members {
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
        self.members.retain(|member| !member.threads.is_empty() && !process::ended(member.pid));
        changes
    }
}
