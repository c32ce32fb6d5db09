//! Pinning a program's threads by name, as a plan has them, while they come and go.
//!
//! Names are those of [`crate::role`]. A new thread inherits the affinity of the one that created it: a thread that is not to be
//! pinned and appears with the CPUs of a pinned one gets its process's own affinity back, as it would have without us.

use crate::affinity::{self, AffinityError};
use crate::role::{self, Found};
use crate::roster::{Roster, Scope};
use crate::thread::{Stat, ThreadId, Tid};
use pinwise_topology::CpuSet;
use std::collections::{HashMap, HashSet};
use std::io;

/// Threads to pin, by name, in a program that runs.
#[derive(Debug)]
pub struct Pinner {
    roster: Roster,
    wanted: Vec<(String, CpuSet)>,
    /// What was set, and for which name; a refused thread is here too, so that it is told once.
    set: HashMap<ThreadId, usize>,
    seen: HashSet<ThreadId>,
    found: HashSet<usize>,
}

/// A thread that was found and pinned, or refused.
#[derive(Debug)]
pub struct Pinned {
    /// Its name in the plan.
    pub name: String,
    /// Which thread.
    pub tid: Tid,
    /// Where it is to run.
    pub cpus: CpuSet,
    /// Why it is not there.
    pub result: Result<(), AffinityError>,
}

impl Pinner {
    /// For the threads of a program. Error: `/proc` or the cgroup cannot be read.
    pub fn new(scope: Scope, wanted: Vec<(String, CpuSet)>) -> io::Result<Self> {
        let roster = Roster::new(scope)?;
        let seen = roster.threads().map(|(_, id)| id).collect();
        Ok(Self { roster, wanted, set: HashMap::new(), seen, found: HashSet::new() })
    }

    /// Pins what has appeared or changed its name since the last look; gives these threads. About 20 us where nothing has.
    pub fn look(&mut self) -> io::Result<Vec<Pinned>> {
        self.roster.look()?;
        let threads: Vec<(ThreadId, CpuSet, usize, String)> = self
            .roster
            .threads()
            .filter_map(|(member, id)| {
                Some((id, member.mask.clone(), member.root, Stat::read(id.pid, id.tid).ok()?.comm))
            })
            .collect();
        let found: Vec<Found<'_>> =
            threads.iter().map(|(_, _, process, comm)| Found { comm, process: *process }).collect();
        let mut news = Vec::new();
        for ((id, mask, _, _), thread) in threads.iter().zip(role::name(&found)) {
            let new = self.seen.insert(*id);
            match self.wanted.iter().position(|(name, _)| *name == thread.name) {
                Some(index) if self.set.get(id) == Some(&index) => {}
                Some(index) => {
                    let (name, cpus) = self.wanted[index].clone();
                    let result = affinity::set(id.tid, &cpus);
                    if matches!(result, Err(AffinityError::Gone(_))) {
                        continue;
                    }
                    self.set.insert(*id, index);
                    self.found.insert(index);
                    news.push(Pinned { name, tid: id.tid, cpus, result });
                }
                None => {
                    let renamed = self.set.remove(id).is_some();
                    if renamed || new && self.inherited(id.tid, mask) {
                        // It has ended, or its process may not be touched: then it was not pinned by us either.
                        let _ = affinity::set(id.tid, mask);
                    }
                }
            }
        }
        Ok(news)
    }

    /// The names for which there was no thread yet.
    pub fn missing(&self) -> Vec<&str> {
        let missing = |(index, (name, _))| (!self.found.contains(&index)).then_some(name);
        self.wanted.iter().map(|(name, cpus)| (name.as_str(), cpus)).enumerate().filter_map(missing).collect()
    }

    /// Whether every process has ended.
    pub fn ended(&self) -> bool {
        self.roster.members().is_empty()
    }

    fn inherited(&self, tid: Tid, mask: &CpuSet) -> bool {
        affinity::get(tid).is_ok_and(|own| {
            own != *mask && self.set.values().any(|&index| self.wanted.get(index).is_some_and(|(_, cpus)| *cpus == own))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thread::Pid;
    use std::process::{Child, Command, Stdio};

    struct Ended(Child);

    impl Drop for Ended {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    /// A shell that waits for a line.
    fn program() -> (Ended, Pid) {
        let mut command = Command::new("sh");
        let child = command.args(["-c", "echo started; read -r line"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = child.spawn().unwrap();
        let pid = Pid(child.id() as i32);
        let mut line = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.take().unwrap()), &mut line).unwrap();
        (Ended(child), pid)
    }

    #[test]
    fn threads_are_pinned_by_name_and_those_not_found_are_known() {
        let (_child, pid) = program();
        let mine = affinity::get(pid.main()).unwrap();
        let one: CpuSet = mine.first().into_iter().collect();
        let wanted = vec![("sh".to_owned(), one.clone()), ("nobody".to_owned(), one.clone())];
        let mut pinner = Pinner::new(Scope::Trees(vec![pid]), wanted).unwrap();
        let news = pinner.look().unwrap();
        assert_eq!(news.len(), 1);
        assert_eq!((news[0].name.as_str(), news[0].tid), ("sh", pid.main()));
        assert!(news[0].result.is_ok());
        assert_eq!(affinity::get(pid.main()).unwrap(), one);
        assert_eq!(pinner.missing(), ["nobody"]);
        assert!(pinner.look().unwrap().is_empty(), "nothing new, nothing done");
        assert!(!pinner.ended());
    }

    #[test]
    fn a_refused_thread_is_told_once() {
        let (_child, pid) = program();
        let none: CpuSet = [pinwise_topology::CpuId(8191)].into_iter().collect();
        let mut pinner = Pinner::new(Scope::Trees(vec![pid]), vec![("sh".to_owned(), none)]).unwrap();
        let news = pinner.look().unwrap();
        assert!(matches!(news[0].result, Err(AffinityError::Excluded { .. })));
        assert!(pinner.look().unwrap().is_empty());
    }

    #[test]
    fn a_child_does_not_inherit_the_pin_of_its_parent() {
        let mut command = Command::new("sh");
        let child = command.args(["-c", "read -r line; sleep 10 & wait"]).stdin(Stdio::piped()).stdout(Stdio::null());
        let mut child = Ended(child.spawn().unwrap());
        let pid = Pid(child.0.id() as i32);
        let mine = affinity::get(pid.main()).unwrap();
        let one: CpuSet = mine.first().into_iter().collect();
        let mut pinner = Pinner::new(Scope::Trees(vec![pid]), vec![("sh".to_owned(), one)]).unwrap();
        assert_eq!(pinner.look().unwrap().len(), 1);
        std::io::Write::write_all(&mut child.0.stdin.take().unwrap(), b"go\n").unwrap();
        // The child appears when the shell gets to it; bounded by 10 s.
        for _ in 0..1000 {
            pinner.look().unwrap();
            if let Some(born) = pinner.roster.members().iter().find(|member| member.pid != pid) {
                assert_eq!(affinity::get(born.pid.main()).unwrap(), mine);
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        panic!("no child");
    }

    #[test]
    fn a_program_that_ended_has_no_processes() {
        let (child, pid) = program();
        let mut pinner = Pinner::new(Scope::Trees(vec![pid]), Vec::new()).unwrap();
        drop(child);
        // A process that was killed may take a moment to go; bounded by 10 s.
        for _ in 0..1000 {
            pinner.look().unwrap();
            if pinner.ended() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        panic!("still there");
    }
}
