//! What a thread gets back that was pinned, and one that inherited a pin.
//!
//! *A thread that was pinned* gets its own affinity back, if it still has a pin. Its program or its
//! owner may have given it other CPUs since. Then it keeps these. The kernel may have taken a pin
//! away. A thread whose CPU goes offline or leaves the cpuset may use all CPUs of the cpuset. So a
//! thread with all of these counts as pinned.
//!
//! A thread that becomes another program (exec) takes the number of the first one, keeps its pin,
//! and ends all others. So the first one then counts as pinned with the pin of any of them.
//!
//! *An heir* is a thread that appeared after the first pin, with a pin of pinwise. It inherited
//! that from its creator. The kernel does not say which thread that was. It may be any that was
//! given this pin, or that has these CPUs on its own. Threads of the heir's own process come first.
//! If none of them fits, others of the search count. An heir gets what its creator had before. If
//! threads with different affinities may have created it, it gets the CPUs of all of them. So it
//! never has fewer CPUs than its creator had. While a search runs, the pins in force
//! come first.
//!
//! *Limits.* The program may give a pinned thread the very CPU of its pin, or all CPUs of its
//! cpuset. pinwise cannot tell that from its own work. The thread then gets back what it had.

use super::GuardianEntry;
use crate::affinity;
use crate::control_group::cpuset_of;
use crate::thread::{Pid, ThreadId};
use pinwise_topology::CpuSet;
use std::cell::LazyCell;
use std::collections::HashMap;

/// A thread that was pinned.
#[derive(Debug)]
struct TouchedThread<'a> {
    /// What it had before, or what its owner gave it since.
    own: &'a CpuSet,
    /// The pins that it was given. None if they are not known: an earlier version did not say.
    pins: Vec<&'a CpuSet>,
}

/// The threads that were pinned.
#[derive(Debug)]
pub(crate) struct TouchedThreads<'a>(HashMap<ThreadId, TouchedThread<'a>>);

impl<'a> TouchedThreads<'a> {
    /// Those in entries. Of several entries of a thread the last one counts.
    pub(crate) fn in_entries(entries: &'a [GuardianEntry]) -> Self {
        let mut threads: HashMap<ThreadId, TouchedThread<'a>> = HashMap::new();
        for entry in entries {
            match entry {
                GuardianEntry::Thread { id, mask } => {
                    let new = || TouchedThread { own: mask, pins: Vec::new() };
                    threads.entry(*id).or_insert_with(new).own = mask;
                }
                GuardianEntry::Pinned { pins } => {
                    for (id, pin) in pins {
                        if let Some(thread) = threads.get_mut(id) {
                            thread.pins.push(pin);
                        }
                    }
                }
                _ => {}
            }
        }
        Self(threads)
    }

    /// The threads, with what they had before.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (ThreadId, &'a CpuSet)> {
        self.0.iter().map(|(&id, thread)| (id, thread.own))
    }

    /// Whether a thread was pinned.
    pub(crate) fn has(&self, id: ThreadId) -> bool {
        self.0.contains_key(&id)
    }

    /// Whether a thread that was pinned is to get back what it had. Otherwise it keeps what another
    /// gave it since.
    pub(crate) fn is_ours(&self, id: ThreadId) -> bool {
        affinity::own(id.tid).map_or(true, |now| !self.has_of_its_own(id, &now))
    }

    /// Whether the affinity `now` of a thread is neither what it had nor a pin.
    fn has_of_its_own(&self, id: ThreadId, now: &CpuSet) -> bool {
        let Some(thread) = self.0.get(&id) else { return false };
        let known = thread.pins.is_empty()
            || thread.pins.contains(&now)
            || self.others_ended(id) && self.may_be_pin(now);
        !(known || now == thread.own || is_of_kernel(id.pid, now, thread.own))
    }

    /// Whether other threads of the process were pinned, and all have ended. Only the first one may
    /// be such a thread.
    pub(super) fn others_ended(&self, id: ThreadId) -> bool {
        let others = self.0.keys().filter(|other| other.pid == id.pid && **other != id);
        let mut others = others.peekable();
        id.tid == id.pid.main() && others.peek().is_some() && others.all(|other| !other.alive())
    }

    /// Whether a thread may have `now` from a pin of any of the threads.
    pub(super) fn may_be_pin(&self, now: &CpuSet) -> bool {
        let unknown = || !self.0.is_empty() && self.0.values().all(|thread| thread.pins.is_empty());
        self.0.values().any(|thread| thread.pins.contains(&now)) || unknown()
    }

    /// What the guardian must know before these threads get `pin`. A thread that is new, or that
    /// another has moved, gets back what it has now. One that inherited a pin is an heir.
    pub(super) fn entries_for(&self, threads: &[ThreadId], pin: &CpuSet) -> Vec<GuardianEntry> {
        let (mut entries, mut pins) = (Vec::new(), Vec::new());
        for &id in threads {
            let Ok(now) = affinity::own(id.tid) else { continue };
            let known = self.0.get(&id);
            let is_heir = || self.0.values().any(|thread| thread.pins.contains(&&now));
            let own = match known {
                Some(_) => self.has_of_its_own(id, &now),
                None => !is_heir(),
            };
            if own || known.is_some_and(|thread| !thread.pins.contains(&pin)) {
                pins.push((id, pin.clone()));
            }
            if own {
                entries.push(GuardianEntry::Thread { id, mask: now });
            }
        }
        if !pins.is_empty() {
            entries.push(GuardianEntry::Pinned { pins });
        }
        entries
    }

    /// What a thread gets that appeared after the first pin, if it is an heir. `existing` are the
    /// threads that existed before.
    pub(crate) fn of_heir(
        &self,
        pid: Pid,
        now: &CpuSet,
        existing: impl Iterator<Item = (Pid, CpuSet)>,
    ) -> Option<CpuSet> {
        let pinned = self.0.iter().filter(|(_, thread)| {
            let unknown = thread.pins.is_empty() && now.len() == 1;
            unknown || thread.pins.contains(&now)
        });
        of_heir(pid, now, pinned.map(|(id, thread)| (id.pid, thread.own)), existing)
    }
}

/// Whether the kernel may have set the affinity `now`. It does so when the CPUs of the former
/// affinity go away.
pub(crate) fn is_of_kernel(pid: Pid, now: &CpuSet, own: &CpuSet) -> bool {
    let cpuset = cpuset_of(pid);
    cpuset.is_subset(now) || *now == own.intersection(&cpuset)
}

/// What a thread of the process `pid` gets that may have inherited `now`. `pinned` are the threads
/// with this pin, with what they had before. `others` are threads that were not pinned.
pub(crate) fn of_heir<'a>(
    pid: Pid,
    now: &CpuSet,
    pinned: impl Iterator<Item = (Pid, &'a CpuSet)>,
    others: impl Iterator<Item = (Pid, CpuSet)>,
) -> Option<CpuSet> {
    let pinned: Vec<(Pid, &CpuSet)> = pinned.collect();
    if pinned.is_empty() {
        return None;
    }
    let others = LazyCell::new(|| {
        let mut others = others.filter(|(_, own)| own == now);
        others.any(|(other, _)| other == pid)
    });
    let nearest = pinned.iter().filter(|(other, _)| *other == pid).map(|(_, own)| *own);
    let nearest: Vec<&CpuSet> = nearest.collect();
    let creators = match nearest.is_empty() {
        true if *others => Vec::new(),
        true => pinned.iter().map(|(_, own)| *own).collect(),
        false => nearest,
    };
    let own = creators.iter().fold(CpuSet::new(), |all, own| all.union(own));
    let own = if *others { own.union(now) } else { own };
    (own != *now).then_some(own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Killed;
    use crate::thread::{StartTime, Stat, Tid};
    use std::process::Command;

    fn set(list: &str) -> CpuSet {
        CpuSet::parse_list(list).unwrap()
    }

    fn thread(pid: i32, tid: i32) -> ThreadId {
        ThreadId { pid: Pid(pid), tid: Tid(tid), start: StartTime(1) }
    }

    /// Entries of threads of process 7 or 8, each with what it had and its pins.
    fn entries(threads: &[(ThreadId, &str, &[&str])]) -> Vec<GuardianEntry> {
        let of = |(id, own, pins): &(ThreadId, &str, &[&str])| {
            let pins = pins.iter().map(|pin| (*id, set(pin))).collect();
            [GuardianEntry::Thread { id: *id, mask: set(own) }, GuardianEntry::Pinned { pins }]
        };
        threads.iter().flat_map(of).collect()
    }

    #[test]
    fn an_heir_gets_what_each_thread_that_may_have_created_it_had() {
        let heir = |threads: &[(ThreadId, &str, &[&str])], now: &str, others: &[(i32, &str)]| {
            let others = others.iter().map(|(pid, own)| (Pid(*pid), set(own)));
            TouchedThreads::in_entries(&entries(threads))
                .of_heir(Pid(7), &set(now), others)
                .map(|cpus| cpus.to_string())
        };
        let (a, b, elsewhere) = (thread(7, 1), thread(7, 2), thread(8, 3));
        let alike = [(a, "0-3", &["0", "1"][..]), (b, "0-3", &["1"])];
        assert_eq!(heir(&alike, "1", &[]).as_deref(), Some("0-3"));
        assert_eq!(heir(&alike, "2", &[]), None, "no thread was pinned there");
        assert_eq!(heir(&alike, "0-3", &[]), None, "its creator was not pinned");
        // Workers that each have a CPU, as in DPDK.
        let apart = [(a, "0", &["1"][..]), (b, "1", &["0"])];
        assert_eq!(heir(&apart, "0", &[]).as_deref(), Some("1"));
        assert_eq!(heir(&apart, "0", &[(7, "0"), (7, "2")]).as_deref(), Some("0,1"));
        let moved = [(a, "0", &["0", "1"][..]), (b, "1", &["0", "1"])];
        assert_eq!(heir(&moved, "0", &[]).as_deref(), Some("0,1"), "of all that may be");
        // Its own process comes first.
        let family = [(a, "0-1", &["1"][..]), (elsewhere, "0-3", &["1"])];
        assert_eq!(heir(&family, "1", &[]).as_deref(), Some("0,1"));
        assert_eq!(heir(&family[1..], "1", &[]).as_deref(), Some("0-3"));
        assert_eq!(heir(&family[1..], "1", &[(7, "1")]), None, "it has this on its own");
        // An earlier version did not write the pins.
        let unknown = [(a, "0-3", &[][..])];
        assert_eq!(heir(&unknown, "2", &[]).as_deref(), Some("0-3"));
        assert_eq!(heir(&unknown, "2,3", &[]), None);
    }

    fn sleeping() -> (Killed, ThreadId) {
        let child = Killed(Command::new("sleep").arg("60").spawn().unwrap());
        let pid = Pid(child.0.id() as i32);
        let start = Stat::read(pid, pid.main()).unwrap().start;
        (child, ThreadId { pid, tid: pid.main(), start })
    }

    #[test]
    fn a_thread_that_its_owner_moved_after_us_keeps_that() {
        let (_child, id) = sleeping();
        let now = affinity::own(id.tid).unwrap();
        let first: CpuSet = now.first().into_iter().collect();
        affinity::set(id.tid, &first).unwrap();
        let [first, away, all] = [first.to_string(), "9000".into(), now.to_string()];
        let is_ours = |own: &str, pins: &[&str]| {
            TouchedThreads::in_entries(&entries(&[(id, own, pins)])).is_ours(id)
        };
        assert!(is_ours(&all, &[&away, &first]), "a pin");
        assert!(is_ours(&all, &[]), "it is not known to which CPUs it was pinned");
        assert!(is_ours(&first, &[&away]), "what it had before");
        let ended = ThreadId { start: StartTime(u64::MAX), ..id };
        let became = |other: ThreadId| {
            let both = entries(&[(id, &*all, &[&*away][..]), (other, &*all, &[&*first][..])]);
            TouchedThreads::in_entries(&both).is_ours(id)
        };
        assert!(became(ended), "one that has ended took its number by exec, with a pin");
        assert_eq!(is_ours(&all, &[&away]), now.len() == 1, "another moved it");
        affinity::set(id.tid, &now).unwrap();
        assert!(is_ours(&away, &[&first]), "the kernel took the pin away");
    }

    #[test]
    fn a_thread_that_is_confined_again_gets_back_what_it_has_chosen_since() {
        let (_child, id) = sleeping();
        let all = affinity::own(id.tid).unwrap();
        let chosen: CpuSet = all.first().into_iter().collect();
        affinity::set(id.tid, &chosen).unwrap();
        let (pin, again) = (set("9000"), set("9001"));
        let noted =
            |known: &[GuardianEntry]| TouchedThreads::in_entries(known).entries_for(&[id], &again);
        let own = GuardianEntry::Thread { id, mask: chosen.clone() };
        let pinned = GuardianEntry::Pinned { pins: vec![(id, again.clone())] };
        assert_eq!(noted(&[]), [own.clone(), pinned.clone()], "it is new");
        if all.len() > 1 {
            let known = entries(&[(id, "9000-9003", &["9000"])]);
            assert_eq!(noted(&known), [own, pinned.clone()], "it moved itself");
        }
        let chosen = chosen.to_string();
        let known = entries(&[(id, "9000-9003", &["9000", &chosen])]);
        assert_eq!(noted(&known), [pinned], "it has a pin");
        let known = entries(&[(id, "9000-9003", &["9001", &chosen])]);
        assert_eq!(noted(&known), [], "that is known");
        let other = entries(&[(thread(id.pid.0, 1), "9000-9003", &[&chosen])]);
        assert_eq!(noted(&other), [], "it is an heir");
        let may_be_pin =
            |known: &[GuardianEntry]| TouchedThreads::in_entries(known).may_be_pin(&pin);
        assert!(!may_be_pin(&[]), "no thread has a pin yet");
        assert!(may_be_pin(&known[..1]), "an earlier version named no pins");
        assert!(!may_be_pin(&known));
    }
}
