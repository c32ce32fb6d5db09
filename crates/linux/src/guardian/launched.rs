//! The part of the guardian that ends the programs which pinwise launched, when pinwise ends.

use super::ledger::{LeftChanged, Restored};
use super::{GuardianEntry, MARK};
use crate::guardian_timeouts::GRACE;
use crate::process;
use crate::thread::{Pid, Stat};
use rustix::process::{Pid as RawPid, Signal, kill_process, kill_process_group};
use std::collections::HashSet;
use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The launched programs that may still run.
pub(super) struct Launched {
    /// Leaders of process groups. pinwise reports that a leader has ended before it waits for it,
    /// so the number is not reused before.
    groups: Vec<RawPid>,
    /// Marks of the programs. They also find a process that left the group, such as a daemon.
    marks: Vec<String>,
    /// Whether the launch of the last one was not completed.
    launching: bool,
}

impl Launched {
    pub(super) fn in_entries(entries: &[GuardianEntry]) -> Self {
        let mut programs: Vec<(&String, Option<Pid>)> = Vec::new();
        for entry in entries {
            match entry {
                GuardianEntry::Launching { mark } => {
                    // What could not be started runs nowhere.
                    programs.retain(|(_, leader)| leader.is_some());
                    programs.push((mark, None));
                }
                GuardianEntry::Launched { pid } => {
                    if let Some((_, leader)) = programs.last_mut() {
                        *leader = Some(*pid);
                    }
                }
                GuardianEntry::Ended { pid } => {
                    programs.retain(|(_, leader)| *leader != Some(*pid))
                }
                GuardianEntry::Existing { .. }
                | GuardianEntry::Process { .. }
                | GuardianEntry::Thread { .. }
                | GuardianEntry::Pinned { .. }
                | GuardianEntry::Confined { .. }
                | GuardianEntry::File { .. }
                | GuardianEntry::Memory { .. }
                | GuardianEntry::Command { .. } => {}
            }
        }
        Self {
            groups: programs
                .iter()
                .filter_map(|(_, leader)| RawPid::from_raw((*leader)?.0))
                .collect(),
            marks: programs.iter().map(|(mark, _)| (*mark).clone()).collect(),
            launching: programs.iter().any(|(_, leader)| leader.is_none()),
        }
    }

    /// The programs that a killed guardian left. By now the numbers of its groups may mean other
    /// programs. The marks do not. `own`: the mark of this process. One of the programs may have
    /// started it, and waits for it. A later start ends that program.
    pub(super) fn abandoned(entries: &[GuardianEntry], own: Option<&str>) -> Self {
        let Self { mut marks, .. } = Self::in_entries(entries);
        marks.retain(|mark| Some(mark.as_str()) != own);
        Self { groups: Vec::new(), marks, launching: false }
    }

    /// Waits for the processes in `told` to end. Returns those that did. `told`: see
    /// [`Launched::terminate`].
    pub(super) fn end_marked(&self, told: HashSet<RawPid>) -> Vec<Restored> {
        self.end(told.clone());
        // A kill takes a moment.
        let killed = Instant::now();
        // The mark goes with the memory, and the process a moment later.
        let runs = |pid: &RawPid| !process::ended(Pid(pid.as_raw_nonzero().get()));
        let remain = || !self.marked().is_empty() || self.groups_run() || told.iter().any(runs);
        while remain() && killed.elapsed() < GRACE {
            sleep(Duration::from_millis(10));
        }
        let refused = self.marked();
        let ended = |pid: RawPid| Restored {
            what: LeftChanged::Program(Pid(pid.as_raw_nonzero().get())),
            worked: !refused.contains(&pid),
        };
        told.into_iter().map(ended).collect()
    }

    /// Asks the programs to end, once each. Those that were asked and are in no group.
    pub(super) fn terminate(&self) -> HashSet<RawPid> {
        for &group in &self.groups {
            let _ = kill_process_group(group, Signal::TERM);
        }
        let mut told = HashSet::new();
        self.tell(&mut told);
        told
    }

    /// Asks marked processes outside of the groups to end. It skips those in `told`.
    fn tell(&self, told: &mut HashSet<RawPid>) {
        for pid in self.marked() {
            let own = Pid(pid.as_raw_nonzero().get());
            let grouped = Stat::read(own, own.main()).is_ok_and(|stat| self.in_groups(&stat));
            if !grouped && told.insert(pid) {
                let _ = kill_process(pid, Signal::TERM);
            }
        }
    }

    fn in_groups(&self, stat: &Stat) -> bool {
        self.groups.iter().any(|group| group.as_raw_nonzero().get() == stat.group)
    }

    /// Waits for the programs to end, and ends those that do not. `told`: see
    /// [`Launched::terminate`].
    pub(super) fn end(&self, mut told: HashSet<RawPid>) {
        let begin = Instant::now();
        // A program that is launched may be between its fork and its exec. There it does not show
        // the mark yet. One look also misses a process that was created meanwhile.
        let shows_mark = match (self.marks.is_empty(), self.launching) {
            (true, _) => Duration::ZERO,
            (_, false) => Duration::from_millis(20),
            (_, true) => Duration::from_millis(200),
        };
        while begin.elapsed() < GRACE {
            if self.marked().is_empty() && begin.elapsed() >= shows_mark && !self.groups_run() {
                return;
            }
            self.tell(&mut told);
            sleep(Duration::from_millis(10));
        }
        for &group in &self.groups {
            let _ = kill_process_group(group, Signal::KILL);
        }
        for pid in self.marked() {
            let _ = kill_process(pid, Signal::KILL);
        }
    }

    /// Whether any process of the groups still runs (a zombie does not).
    fn groups_run(&self) -> bool {
        let in_group = |pid: Pid| {
            Stat::read(pid, pid.main()).is_ok_and(|stat| !stat.dead() && self.in_groups(&stat))
        };
        !self.groups.is_empty() && process::all().unwrap_or_default().into_iter().any(in_group)
    }

    fn marked(&self) -> Vec<RawPid> {
        marked(MARK, &self.marks)
    }
}

/// Processes that run with one of these marks in an environment variable, which those they start
/// inherit.
pub(crate) fn marked(name: &str, marks: &[String]) -> Vec<RawPid> {
    if marks.is_empty() {
        return Vec::new();
    }
    let is_marked = |pid: &Pid| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment
            .split(|&byte| byte == 0)
            .filter_map(|variable| variable.strip_prefix(name.as_bytes())?.strip_prefix(b"="))
            .any(|value| marks.iter().any(|mark| mark.as_bytes() == value))
    };
    let pids = process::all().unwrap_or_default();
    pids.into_iter().filter(is_marked).filter_map(|pid| RawPid::from_raw(pid.0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(entries: &[GuardianEntry]) -> Vec<i32> {
        Launched::in_entries(entries)
            .groups
            .iter()
            .map(|group| group.as_raw_nonzero().get())
            .collect()
    }

    #[test]
    fn only_programs_that_may_still_run_are_ended() {
        let launching = |mark: &str| GuardianEntry::Launching { mark: mark.into() };
        let launched = |pid| GuardianEntry::Launched { pid: Pid(pid) };
        let mut entries = vec![
            launching("a"),
            launched(41),
            GuardianEntry::Ended { pid: Pid(41) },
            launching("b"),
            launched(42),
        ];
        assert_eq!(groups(&entries), [42]);
        let marks = |entries: &[GuardianEntry]| {
            let Launched { marks, launching, .. } = Launched::in_entries(entries);
            (marks, launching)
        };
        let names = |marks: &[&str]| marks.iter().map(|mark| (*mark).to_owned()).collect();
        assert_eq!(marks(&entries), (names(&["b"]), false));
        entries.push(launching("failed"));
        entries.push(launching("c"));
        assert_eq!(marks(&entries), (names(&["b", "c"]), true));
        let left = Launched::abandoned(&entries, Some("c"));
        assert_eq!(
            (left.groups, left.marks),
            (Vec::new(), names(&["b"])),
            "c started this process"
        );
    }
}
