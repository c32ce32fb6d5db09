//! A walk over the labelled assignments of a space, by the Metropolis algorithm (J. Chem. Phys. 21,
//! 1953).
//!
//! **Where a context has at most one thread**, one step moves a thread to a random context. If that
//! is full, it exchanges the thread with one there. Where domains are large, such as packages, half
//! of the steps stay within that of the thread. A step to another one changes what most threads
//! share, so it is seldom accepted and costs most.
//!
//! **Where threads share contexts**, such steps alone get stuck. Moving one thread changes the
//! turns of all that it leaves and joins. So other steps keep every context as full as it is. Two
//! threads change places, two and two others do, or three do so in turn. Two contexts, or two
//! domains of as many contexts, exchange all they hold. Two threads may also go anywhere at once.
//!
//! Each step is as likely as its reverse. A step to where a thread may not be is not made. Masks
//! may divide a space into parts that no steps connect. A walk then stays in the part where it
//! starts. The larger a part is, the more often a walk starts there.

use crate::{Change, PredictedWalk, Predictor};
use pinwise_topology::{Assignment, PerContext, Random, Space};
use std::collections::BTreeSet;

/// Of twenty steps where threads share contexts, how many are of each kind, as in [`MarkovChain`].
const ONE: u64 = 6;
const PAIR: u64 = 5;
const TWO_PAIRS: u64 = 2;
const THREE: u64 = 2;
const CONTEXTS: u64 = 2;
const DOMAINS: u64 = 2;
const OF: u64 = 20;

/// A domain counts as large with this share of all contexts or more, and this many. A choice: the
/// cores of 8x2x4 are.
const LARGE: (u32, u32) = (8, 8);

/// See the module.
pub(crate) struct MarkovChain<'a> {
    space: &'a Space,
    walk: Box<dyn PredictedWalk + 'a>,
    pub(crate) leaves: Vec<u32>,
    pub(crate) predicted: f64,
    /// The threads on every context.
    held: Vec<Vec<usize>>,
    capacity: usize,
    /// The first leaf and the number of leaves of every domain of several contexts.
    domains: Vec<(u32, u32)>,
    /// The same of the largest domain around each leaf that is not the machine; empty if those are
    /// not large.
    around: Vec<(u32, u32)>,
    /// What makes the step that is tried.
    changes: Vec<Change>,
}

/// Whether threads of a space may share contexts.
pub(crate) fn shares_contexts(space: &Space) -> bool {
    space.per_context() != PerContext::AtMost(1)
}

/// By leaf: the first leaf and the number of leaves of the largest domain around it that is not the
/// whole machine. Empty if one of them is not large ([`LARGE`]).
fn largest_domains(space: &Space) -> Vec<(u32, u32)> {
    let contexts = space.tree().leaves().len() as u32;
    let largest = |leaf: u32| {
        let around = space.tree().around(leaf);
        let widths = around.iter().map(|(_, range)| (range.start, range.end - range.start));
        let (share, least) = LARGE;
        widths
            .filter(|(_, width)| *width < contexts)
            .max_by_key(|(_, width)| *width)
            .filter(|(_, width)| *width >= least && share * width >= contexts)
    };
    (0..contexts).map(largest).collect::<Option<_>>().unwrap_or_default()
}

impl<'a> MarkovChain<'a> {
    /// A walk that begins at an assignment of the space.
    pub(crate) fn new(predictor: &'a dyn Predictor, space: &'a Space, start: &Assignment) -> Self {
        let leaves = start.leaves().to_vec();
        let mut held = vec![Vec::new(); space.tree().leaves().len()];
        let mut domains = BTreeSet::new();
        if shares_contexts(space) {
            let around = (0..held.len() as u32).flat_map(|leaf| space.tree().around(leaf));
            domains.extend(around.map(|(_, range)| (range.start, range.end - range.start)));
        }
        let around = if shares_contexts(space) { Vec::new() } else { largest_domains(space) };
        leaves.iter().enumerate().for_each(|(thread, leaf)| held[*leaf as usize].push(thread));
        let capacity = match space.per_context() {
            PerContext::AtMost(most) => most,
            PerContext::Any => usize::MAX,
        };
        Self {
            space,
            walk: predictor.walk(&leaves),
            predicted: predictor.predict(&leaves),
            leaves,
            held,
            capacity,
            domains: domains.into_iter().collect(),
            around,
            changes: Vec::new(),
        }
    }

    /// One step at a temperature.
    pub(crate) fn step(&mut self, temperature: f64, random: &mut Random) {
        if self.leaves.is_empty() {
            return;
        }
        self.changes.clear();
        if self.capacity == 1 {
            self.propose_one(random)
        } else {
            self.propose(random)
        }
        if self.changes.is_empty() || !self.is_allowed() {
            return;
        }
        let mut predicted = self.predicted;
        for at in 0..self.changes.len() {
            predicted = self.make(self.changes[at]);
        }
        let better = predicted >= self.predicted;
        if better || random.unit() < (predicted.max(0.0) / self.predicted).powf(1.0 / temperature) {
            self.predicted = predicted;
            return;
        }
        for at in (0..self.changes.len()).rev() {
            let Change { thread, other, from, to } = self.changes[at];
            let back = Change { thread, other, from: to, to: from };
            if at + 1 == self.changes.len() {
                self.place(back);
                self.walk.back();
            } else {
                self.make(back);
            }
        }
    }

    /// A thread goes to another context. If that is full, it exchanges the thread with one there.
    fn propose_one(&mut self, random: &mut Random) {
        let thread = random.below(self.leaves.len() as u64) as usize;
        let from = self.leaves[thread];
        let everywhere = (0, self.held.len() as u32);
        let (first, width) = match self.around.get(from as usize) {
            Some(around) if random.below(2) == 0 => *around,
            _ => everywhere,
        };
        let to = first + random.below(width.into()) as u32;
        if from == to {
            return;
        }
        let there = &self.held[to as usize];
        let other = (there.len() >= self.capacity)
            .then(|| there[random.below(there.len() as u64) as usize]);
        self.changes.push(Change { thread, other, from, to });
    }

    /// A step where threads share contexts.
    fn propose(&mut self, random: &mut Random) {
        let mut kind = random.below(OF);
        let mut is = |often: u64| {
            let is = kind < often;
            kind = kind.wrapping_sub(often);
            is
        };
        let threads = self.leaves.len() as u64;
        let mut drawn = || random.below(threads) as usize;
        if is(ONE) {
            self.propose_one(random);
        } else if is(PAIR) {
            let [a, b] = [(); 2].map(|()| drawn());
            self.exchange(a, b, self.leaves[a], self.leaves[b]);
        } else if is(TWO_PAIRS) {
            let [a, b, c, d] = [(); 4].map(|()| drawn());
            if [a, b].iter().all(|one| *one != c && *one != d) {
                self.exchange(a, b, self.leaves[a], self.leaves[b]);
                self.exchange(c, d, self.leaves[c], self.leaves[d]);
            }
        } else if is(THREE) {
            let [a, b, c] = [(); 3].map(|()| drawn());
            if a != b && b != c && a != c {
                let [at_a, at_b, at_c] = [a, b, c].map(|thread| self.leaves[thread]);
                self.exchange(a, b, at_a, at_b);
                self.exchange(b, c, at_a, at_c);
            }
        } else if is(CONTEXTS) {
            let [a, b] = [(); 2].map(|()| random.below(self.held.len() as u64) as u32);
            self.exchange_contents(a, b);
        } else if is(DOMAINS) {
            let [a, b] = [(); 2].map(|()| random.below(self.domains.len().max(1) as u64) as usize);
            if let (Some(&(a, width)), Some(&(b, other))) =
                (self.domains.get(a), self.domains.get(b))
                && width == other
                && a.abs_diff(b) >= width
            {
                (0..width).for_each(|leaf| self.exchange_contents(a + leaf, b + leaf));
            }
        } else {
            self.propose_one(random);
            self.propose_one(random);
            // The second would not begin where it says.
            if let [first, second] = self.changes[..]
                && (first.thread == second.thread || first.other.or(second.other).is_some())
            {
                self.changes.clear();
            }
        }
    }

    /// Two contexts exchange what they hold.
    fn exchange_contents(&mut self, a: u32, b: u32) {
        if a == b {
            return;
        }
        let (on_a, on_b) = (&self.held[a as usize], &self.held[b as usize]);
        for turn in 0..on_a.len().max(on_b.len()) {
            match (on_a.get(turn), on_b.get(turn)) {
                (Some(&thread), other) => {
                    self.changes.push(Change { thread, other: other.copied(), from: a, to: b });
                }
                (None, Some(&thread)) => {
                    self.changes.push(Change { thread, other: None, from: b, to: a });
                }
                (None, None) => {}
            }
        }
    }

    /// Two threads change places, if these differ.
    fn exchange(&mut self, thread: usize, other: usize, from: u32, to: u32) {
        if from != to {
            self.changes.push(Change { thread, other: Some(other), from, to });
        }
    }

    /// Whether all threads may be where the step leads, and have room there.
    fn is_allowed(&self) -> bool {
        // The last change of a thread says where it ends.
        let ends = self.changes.iter().rev().enumerate().flat_map(|(after, change)| {
            let later = &self.changes[self.changes.len() - after..];
            let both = [Some((change.thread, change.to)), change.other.zip(Some(change.from))];
            both.into_iter().flatten().filter(move |(thread, _)| {
                !later.iter().any(|one| one.thread == *thread || one.other == Some(*thread))
            })
        });
        let may = |(thread, leaf): (usize, u32)| self.space.may(thread, leaf);
        let room = |change: &Change| {
            let held = self.held[change.to as usize].len() as i64;
            let goes = |one: &Change| match one.other {
                Some(_) => 0,
                None => i64::from(one.to == change.to) - i64::from(one.from == change.to),
            };
            held + self.changes.iter().map(goes).sum::<i64>() <= self.capacity as i64
        };
        let any = self.capacity > self.leaves.len();
        ends.into_iter().all(may) && (any || self.changes.iter().all(room))
    }

    /// Makes a change; what is predicted then.
    fn make(&mut self, change: Change) -> f64 {
        self.place(change);
        self.walk.step(&self.leaves, change)
    }

    fn place(&mut self, Change { thread, other, from, to }: Change) {
        let mut turn = |leaf: u32, goes: usize, comes: Option<usize>| {
            let held = &mut self.held[leaf as usize];
            held.retain(|held| *held != goes);
            held.extend(comes);
        };
        turn(from, thread, other);
        match other {
            Some(other) => turn(to, other, Some(thread)),
            None => self.held[to as usize].push(thread),
        }
        self.leaves[thread] = to;
        if let Some(other) = other {
            self.leaves[other] = from;
        }
    }
}
