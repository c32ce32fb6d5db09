//! Where each thread may be placed: within its own affinity.
//!
//! The search has the CPUs that any of the threads may use. A thread that may not use all of them
//! keeps to its own. One with a single CPU has one place: it stays there, and the others are placed
//! beside it.

use super::slot::Slot;
use pinwise_linux::{affinity, thread_scan::ScannedThread};
use pinwise_measure::{LeftAlone, ProgramNote, Thread};
use pinwise_topology::{CpuSet, are_countable};
use std::collections::BTreeMap;

/// The CPUs that each of some threads was given; none of one that has ended.
pub(super) fn own_masks(threads: &[ScannedThread]) -> Vec<CpuSet> {
    threads.iter().map(|one| affinity::own(one.id.tid).unwrap_or_default()).collect()
}

/// All of these CPUs.
pub(crate) fn together(masks: &[CpuSet]) -> CpuSet {
    masks.iter().fold(CpuSet::new(), |all, one| all.union(one))
}

/// Threads to place, those left alone, and the CPUs of the search.
type Confined = (Vec<ScannedThread>, Vec<(LeftAlone, String)>, CpuSet);

/// Lets each thread keep to its mask within `allowed`. Left alone are those that have none of these
/// CPUs, or a mask that makes too many different ones.
pub(super) fn confine(
    threads: Vec<ScannedThread>,
    masks: Vec<CpuSet>,
    allowed: &CpuSet,
) -> Confined {
    let cut = masks.into_iter().map(|own| (own.is_empty(), own.intersection(allowed)));
    let (mut placed, mut left): (Vec<_>, Vec<_>) =
        threads.into_iter().zip(cut).partition(|(_, (ended, own))| *ended || !own.is_empty());
    while !are_countable(placed.iter().map(|(_, (_, own))| own)) {
        let Some(rarest) = rarest(placed.iter().map(|(_, (_, own))| own)) else { break };
        left.extend(placed.extract_if(.., |(_, (_, own))| *own == rarest));
    }
    let all = placed.iter().fold(CpuSet::new(), |all, (_, (_, own))| all.union(own));
    let keep = |(mut one, (ended, own)): (ScannedThread, (bool, CpuSet))| {
        one.thread.keeps_to = (!ended && own != all).then_some(own);
        one
    };
    let left = left.into_iter().map(|(one, _)| (LeftAlone::Confined, one.comm)).collect();
    (placed.into_iter().map(keep).collect(), left, all)
}

/// The mask of several CPUs that the fewest threads have.
fn rarest<'a>(masks: impl Iterator<Item = &'a CpuSet> + Clone) -> Option<CpuSet> {
    let frequency = |mask: &&CpuSet| masks.clone().filter(|other| other == mask).count();
    masks.clone().filter(|mask| mask.len() > 1).min_by_key(frequency).cloned()
}

/// A note on the threads that keep to some of the CPUs, if there are any.
pub(super) fn note(threads: &[Thread], slots: &[Slot]) -> Option<ProgramNote> {
    let mut names: BTreeMap<String, usize> = BTreeMap::new();
    let mut cpus = CpuSet::new();
    for (thread, slot) in threads.iter().zip(slots) {
        let Some(own) = &thread.keeps_to else { continue };
        *names.entry(slot.comm.clone()).or_default() += 1;
        cpus = cpus.union(own);
    }
    (!names.is_empty()).then(|| ProgramNote::KeepsTo { names, cpus: cpus.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_linux::thread::{Pid, StartTime, ThreadId, Tid};

    /// What becomes of threads with these masks: "placed, left alone, CPUs of the search".
    fn confined(masks: &[&str], allowed: &str) -> String {
        let mask = |list: &&str| CpuSet::parse_list(list).unwrap();
        let thread = |tid: usize| ScannedThread {
            id: ThreadId { pid: Pid(1), tid: Tid(tid as i32), start: StartTime(0) },
            thread: Thread::new(format!("t{tid}"), "t", 0),
            comm: format!("t{tid}"),
            process: 0,
            share: 1.0,
            runs: true,
        };
        let threads = (0..masks.len()).map(thread).collect();
        let masks = masks.iter().map(mask).collect();
        let (placed, left, all) = confine(threads, masks, &mask(&allowed));
        let kept = |one: &ScannedThread| match &one.thread.keeps_to {
            Some(own) => format!("{} on {own}", one.comm),
            None => one.comm.clone(),
        };
        let placed: Vec<String> = placed.iter().map(kept).collect();
        assert!(left.iter().all(|(why, _)| *why == LeftAlone::Confined));
        let left: Vec<&str> = left.iter().map(|(_, comm)| comm.as_str()).collect();
        format!("{}; {}; {all}", placed.join(" "), left.join(" "))
    }

    #[test]
    fn each_thread_keeps_to_its_own_cpus_of_those_of_the_search() {
        assert_eq!(confined(&["0-7", "0-7"], "0-3"), "t0 t1; ; 0-3");
        assert_eq!(confined(&["0-7", "2-9", "1"], "0-3"), "t0 t1 on 2,3 t2 on 1; ; 0-3");
        // The search has what any of them may use.
        assert_eq!(confined(&["0,1", "4-7"], "0-5"), "t0 on 0,1 t1 on 4,5; ; 0,1,4,5");
        assert_eq!(confined(&["0,1", "6,7"], "0-3"), "t0; t1; 0,1");
        assert_eq!(confined(&["0,1", ""], "0-3"), "t0 t1; ; 0,1", "one has ended");
    }

    #[test]
    fn of_too_many_masks_the_rarest_are_left_alone() {
        let pairs: Vec<String> = (0..16).map(|cpu| format!("{cpu},{}", cpu + 1)).collect();
        let mut masks: Vec<&str> = pairs.iter().map(String::as_str).collect();
        masks.extend(["0-31"; 4]);
        let told = confined(&masks, "0-31");
        assert!(told.starts_with("t7 on 7,8 t8 on 8,9 "), "{told}");
        assert!(told.ends_with(" t16 t17 t18 t19; t0 t1 t2 t3 t4 t5 t6; 0-31"), "{told}");
    }
}
