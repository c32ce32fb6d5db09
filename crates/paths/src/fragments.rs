//! What a processor's branch record tells: taken branches, and how often each sequence was seen.

use std::collections::BTreeMap;

/// A taken branch. Both are virtual addresses as the binary's file states them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Branch {
    /// The address of the branch instruction.
    pub from: u64,
    /// Its destination.
    pub to: u64,
}

/// Consecutive taken branches of one thread in one binary, oldest first, and how often each
/// sequence was seen.
///
/// Between two branches the code ran straight from `to` of one to `from` of the next. Memory grows
/// with distinct fragments, not with samples.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fragments {
    counts: BTreeMap<Box<[Branch]>, u64>,
}

impl Fragments {
    /// Counts a sequence that was seen so many times more. An empty one tells nothing.
    pub fn add(&mut self, branches: &[Branch], times: u64) {
        if branches.is_empty() || times == 0 {
            return;
        }
        match self.counts.get_mut(branches) {
            Some(count) => *count = count.saturating_add(times),
            None => _ = self.counts.insert(branches.into(), times),
        }
    }

    /// Each sequence and how often it was seen, in the order of the sequences.
    pub fn iter(&self) -> impl Iterator<Item = (&[Branch], u64)> {
        self.counts.iter().map(|(branches, times)| (&**branches, *times))
    }

    /// How many different sequences were seen.
    pub fn distinct(&self) -> usize {
        self.counts.len()
    }

    /// How many sequences were seen.
    pub fn total(&self) -> u64 {
        self.counts.values().fold(0, |sum, &times| sum.saturating_add(times))
    }

    /// What a record that is only so many branches deep would have told.
    pub fn newest(&self, depth: usize) -> Fragments {
        let mut newest = Fragments::default();
        for (branches, times) in self.iter() {
            newest.add(&branches[branches.len().saturating_sub(depth)..], times);
        }
        newest
    }

    /// Adds what another recording saw.
    pub fn merge(&mut self, other: &Fragments) {
        for (branches, times) in other.iter() {
            self.add(branches, times);
        }
    }
}
