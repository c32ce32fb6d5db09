//! Fragments: the pieces of paths that a recording of branches shows.
//!
//! A processor with a branch record keeps its last taken branches, 4 to 32 of them. A sample of
//! this record is one fragment of the path that a thread took. A *straight run* is the code between
//! two branches, from the destination of one to the address of the next. It may hold conditional
//! branches that were not taken.

use std::collections::BTreeMap;

/// Stands for an address that is not in the binary: it is in another one, in the kernel, or
/// unknown. A fragment goes on behind a call to another binary: a branch to elsewhere, then one
/// from elsewhere.
pub const ELSEWHERE: u64 = u64::MAX;

/// A taken branch. Both are virtual addresses as the binary's file states them, or [`ELSEWHERE`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Branch {
    /// The address of the branch instruction.
    pub from: u64,
    /// Its destination.
    pub to: u64,
}

impl Branch {
    /// Whether both ends are in the binary.
    #[must_use]
    pub fn is_inside(self) -> bool {
        self.from != ELSEWHERE && self.to != ELSEWHERE
    }

    /// Whether neither end is in the binary.
    #[must_use]
    pub fn is_outside(self) -> bool {
        self.from == ELSEWHERE && self.to == ELSEWHERE
    }
}

/// Code that ran without a taken branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StraightRun {
    /// The first address: the destination of a branch.
    pub start: u64,
    /// The address of the branch that ended the run.
    pub end: u64,
}

/// Consecutive taken branches of one thread in one binary, oldest first, and how often each
/// sequence was seen. What the thread did in other binaries in between is left out. Memory grows
/// with the number of distinct fragments.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fragments {
    counts: BTreeMap<Box<[Branch]>, u64>,
}

impl Fragments {
    /// Adds `times` sightings of a fragment. An empty one is no fragment.
    pub fn add(&mut self, fragment: &[Branch], times: u64) {
        if fragment.is_empty() || times == 0 {
            return;
        }
        match self.counts.get_mut(fragment) {
            Some(count) => *count = count.saturating_add(times),
            None => {
                self.counts.insert(fragment.into(), times);
            }
        }
    }

    /// Adds all of the other's.
    pub fn merge(&mut self, other: &Self) {
        other.iter().for_each(|(fragment, times)| self.add(fragment, times));
    }

    /// Each distinct fragment and how often it was seen, in the order of their addresses.
    pub fn iter(&self) -> impl Iterator<Item = (&[Branch], u64)> {
        self.counts.iter().map(|(fragment, times)| (&**fragment, *times))
    }

    /// The number of distinct fragments.
    #[must_use]
    pub fn distinct(&self) -> usize {
        self.counts.len()
    }

    /// The number of fragments seen.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.values().fold(0, |sum, times| sum.saturating_add(*times))
    }

    /// The fragments of a shallower record: only the newest branches of each fragment.
    #[must_use]
    pub fn newest(&self, depth: usize) -> Self {
        let mut newest = Self::default();
        for (fragment, times) in self.iter() {
            newest.add(&fragment[fragment.len().saturating_sub(depth)..], times);
        }
        newest
    }

    /// How often each branch inside of the binary was seen.
    #[must_use]
    pub fn branches(&self) -> BTreeMap<Branch, u64> {
        let mut counts = BTreeMap::new();
        for (fragment, times) in self.iter() {
            for branch in fragment.iter().filter(|branch| branch.is_inside()) {
                add(&mut counts, *branch, times);
            }
        }
        counts
    }

    /// How often each straight run was seen.
    #[must_use]
    pub fn straight_runs(&self) -> BTreeMap<StraightRun, u64> {
        let mut counts = BTreeMap::new();
        for (fragment, times) in self.iter() {
            runs(fragment).for_each(|(_, run)| add(&mut counts, run, times));
        }
        counts
    }
}

/// The straight runs of a fragment, each with the branch that led into it.
pub(crate) fn runs(fragment: &[Branch]) -> impl Iterator<Item = (Branch, StraightRun)> {
    fragment.iter().zip(fragment.iter().skip(1)).filter_map(|(before, after)| {
        let is_inside = before.to != ELSEWHERE && after.from != ELSEWHERE;
        is_inside.then_some((*before, StraightRun { start: before.to, end: after.from }))
    })
}

impl FromIterator<(Box<[Branch]>, u64)> for Fragments {
    fn from_iter<I: IntoIterator<Item = (Box<[Branch]>, u64)>>(fragments: I) -> Self {
        Self { counts: fragments.into_iter().collect() }
    }
}

/// Adds to a count. It stays at the largest number rather than overflow.
pub(crate) fn add<K: Ord>(counts: &mut BTreeMap<K, u64>, key: K, times: u64) {
    let count = counts.entry(key).or_default();
    *count = count.saturating_add(times);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn branch(from: u64, to: u64) -> Branch {
        Branch { from, to }
    }

    #[test]
    fn equal_fragments_are_kept_once() {
        let mut fragments = Fragments::default();
        fragments.add(&[branch(5, 1), branch(5, 1)], 2);
        fragments.add(&[branch(5, 1), branch(5, 1)], 1);
        fragments.add(&[branch(5, 1)], 1);
        fragments.add(&[], 7);
        assert_eq!((fragments.distinct(), fragments.total()), (2, 4));
        let mut twice = fragments.clone();
        twice.merge(&fragments);
        assert_eq!((twice.distinct(), twice.total()), (2, 8));
        let newest: Vec<_> = fragments.newest(1).iter().map(|(_, times)| times).collect();
        assert_eq!(newest, [4]);
    }

    #[test]
    fn runs_lie_between_branches_and_ends_elsewhere_are_no_branches() {
        let mut fragments = Fragments::default();
        let (call, back) = (branch(0x3c, ELSEWHERE), branch(ELSEWHERE, 0x40));
        fragments.add(&[branch(ELSEWHERE, 0x10), branch(0x18, 0x30), call, back], 3);
        let runs: Vec<_> = fragments.straight_runs().into_iter().collect();
        let run = |start, end| StraightRun { start, end };
        assert_eq!(runs, [(run(0x10, 0x18), 3), (run(0x30, 0x3c), 3)]);
        assert_eq!(fragments.branches(), BTreeMap::from([(branch(0x18, 0x30), 3)]));
    }

    #[test]
    fn counts_do_not_overflow() {
        let mut fragments = Fragments::default();
        fragments.add(&[branch(5, 1)], u64::MAX);
        fragments.add(&[branch(5, 1), branch(5, 1)], u64::MAX);
        fragments.add(&[branch(5, 1)], u64::MAX);
        assert_eq!(fragments.total(), u64::MAX);
        assert_eq!(fragments.branches()[&branch(5, 1)], u64::MAX);
    }
}
