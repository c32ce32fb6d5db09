//! The truth from a complete trace of branches: exact counts of paths. Also the samples that a
//! branch record would give.

use std::collections::HashMap;

use pinwise_topology::Random;

use crate::fragments::{Branch, Fragments};
use crate::path::{Path, START, is_end};
use crate::program_graph::ProgramGraph;
use crate::walk::{Met, Walk};

/// Counts each whole path of a stream of taken branches.
#[derive(Debug)]
pub struct PathCounter<'graph> {
    walk: Walk<'graph>,
    counts: HashMap<(u32, Box<[u32]>), u64>,
    /// Paths whose beginning or end was not met.
    cut: u64,
    breaks: u64,
}

impl<'graph> PathCounter<'graph> {
    /// A counter of the paths of these graphs.
    pub fn new(program: &'graph ProgramGraph) -> Self {
        Self { walk: Walk::new(program), counts: HashMap::new(), cut: 0, breaks: 0 }
    }

    /// Follows the next taken branch.
    pub fn take(&mut self, branch: Branch) {
        let (counts, cut, breaks) = (&mut self.counts, &mut self.cut, &mut self.breaks);
        self.walk.take(branch, &mut |met| count(met, counts, cut, breaks));
    }

    /// The counts of whole paths and the number of cut ones (at least the first and the last). Then
    /// the number of branches that could not follow their predecessor.
    pub fn finish(mut self) -> (Vec<(Path, u64)>, u64, u64) {
        let (counts, cut, breaks) = (&mut self.counts, &mut self.cut, &mut self.breaks);
        self.walk.finish(&mut |met| count(met, counts, cut, breaks));
        let counts = self.counts.into_iter();
        let mut paths: Vec<(Path, u64)> =
            counts.map(|((function, marks), count)| (Path { function, marks }, count)).collect();
        paths.sort_unstable();
        (paths, self.cut, self.breaks)
    }
}

fn count(met: Met, counts: &mut HashMap<(u32, Box<[u32]>), u64>, cut: &mut u64, breaks: &mut u64) {
    match met {
        Met::Path(function, marks @ [START, .., last]) if is_end(*last) => {
            *counts.entry((function, marks.into())).or_default() += 1;
        }
        Met::Path(..) => *cut += 1,
        Met::Break => *breaks += 1,
        Met::Call(_) | Met::Return(_) | Met::Fall(_) => {}
    }
}

/// A model of a processor's branch record: the last taken branches, sampled after a number of
/// instructions.
#[derive(Debug)]
pub struct BranchRecord {
    depth: usize,
    period: u64,
    /// The period varies by up to this many instructions to both sides.
    jitter: u64,
    random: Random,
    /// A ring: the next branch goes to `at`.
    ring: Vec<Branch>,
    at: usize,
    /// Instructions until the next sample.
    left: u64,
    fragments: Fragments,
}

impl BranchRecord {
    /// A record of `depth` branches, sampled each `period` instructions, give or take a uniform
    /// `jitter`. The first sample comes at a uniform place of the first period.
    pub fn new(depth: usize, period: u64, jitter: u64, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let period = period.max(1);
        let left = random.below(period) + 1;
        Self {
            depth: depth.max(1),
            period,
            jitter: jitter.min(period - 1),
            random,
            ring: Vec::new(),
            at: 0,
            left,
            fragments: Fragments::default(),
        }
    }

    /// This number of instructions ran, and the last of them is this taken branch.
    pub fn take(&mut self, instructions: u64, branch: Branch) {
        while self.left <= instructions {
            // At the branch itself, the record has only those before it.
            self.sample();
            let varied = self.random.below(2 * self.jitter + 1);
            self.left += self.period - self.jitter + varied;
        }
        self.left -= instructions;
        self.keep(branch);
    }

    /// Takes many branches, each with the instructions up to it. Their sum is `instructions`. The
    /// result is that of [`Self::take`] for each, but sooner.
    pub fn take_all(&mut self, instructions: u64, branches: &[(u64, Branch)]) {
        if self.left <= instructions {
            return branches.iter().for_each(|&(ran, branch)| self.take(ran, branch));
        }
        self.left -= instructions;
        let last = &branches[branches.len().saturating_sub(self.depth)..];
        last.iter().for_each(|&(_, branch)| self.keep(branch));
    }

    fn keep(&mut self, branch: Branch) {
        if self.ring.len() < self.depth {
            self.ring.push(branch);
        } else {
            self.ring[self.at] = branch;
            self.at = (self.at + 1) % self.depth;
        }
    }

    fn sample(&mut self) {
        let branches: Vec<Branch> =
            self.ring[self.at..].iter().chain(&self.ring[..self.at]).copied().collect();
        self.fragments.add(&branches, 1);
    }

    /// All samples.
    pub fn finish(self) -> Fragments {
        self.fragments
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn many_branches_at_once_give_the_same_samples(
            ran in prop::collection::vec(1..40_u64, 1..200),
            at_once in 1..30_usize,
            depth in 1..9_usize,
            period in 1..300_u64,
        ) {
            let branch = |(at, &ran): (usize, &u64)| {
                (ran, Branch { from: at as u64, to: at as u64 + 1 })
            };
            let branches: Vec<(u64, Branch)> = ran.iter().enumerate().map(branch).collect();
            let mut single = BranchRecord::new(depth, period, period / 10, 7);
            let mut many = BranchRecord::new(depth, period, period / 10, 7);
            branches.iter().for_each(|&(ran, branch)| single.take(ran, branch));
            for branches in branches.chunks(at_once) {
                many.take_all(branches.iter().map(|it| it.0).sum(), branches);
            }
            prop_assert_eq!(single.finish(), many.finish());
        }
    }
}
