//! One representative of every class after the other, in lexicographic order.
//!
//! Canonical assignments are the restricted growth strings of the tree. Each thread goes to a
//! context whose ancestors are all in use or the first empty one of their group. It leaves room for
//! all threads after it, so every beginning can be completed. The next assignment moves the last
//! thread that can move to a later context. It moves all threads after it to the first.

use super::Space;
use crate::Assignment;

/// The state of a canonical assignment that is being built thread by thread.
pub(super) struct Occupancy<'a> {
    space: &'a Space,
    /// Threads on every context.
    held: Vec<usize>,
    /// Threads within every node.
    pub(super) threads: Vec<u32>,
    /// Members in use of every group of alike siblings; these are its first.
    pub(super) filled: Vec<u32>,
}

impl<'a> Occupancy<'a> {
    /// No thread placed.
    pub(super) fn new(space: &'a Space) -> Self {
        let tree = space.swaps();
        let threads = vec![0; tree.nodes().len()];
        Self { space, held: vec![0; tree.leaves().len()], threads, filled: vec![0; tree.groups()] }
    }

    /// Places one more thread.
    pub(super) fn put(&mut self, leaf: u32) {
        let tree = self.space.swaps();
        self.held[leaf as usize] += 1;
        self.threads[0] += 1;
        for &node in tree.path(leaf) {
            if self.threads[node] == 0 {
                self.filled[tree.nodes()[node].in_group] += 1;
            }
            self.threads[node] += 1;
        }
    }

    /// Takes the thread back that was placed last.
    fn take(&mut self, leaf: u32) {
        let tree = self.space.swaps();
        self.held[leaf as usize] -= 1;
        self.threads[0] -= 1;
        for &node in tree.path(leaf) {
            self.threads[node] -= 1;
            if self.threads[node] == 0 {
                self.filled[tree.nodes()[node].in_group] -= 1;
            }
        }
    }

    /// The first context at or after `leaf` on which the next thread may be.
    fn next_open(&mut self, mut leaf: u32) -> Option<u32> {
        let tree = self.space.swaps();
        let nodes = tree.nodes();
        let thread = self.threads[0] as usize;
        let end = tree.leaves().len() as u32;
        'leaf: while leaf < end {
            for &node in tree.path(leaf) {
                if nodes[node].place > self.filled[nodes[node].in_group] {
                    leaf = nodes[node].leaves.end;
                    continue 'leaf;
                }
            }
            if self.space.takes(thread, leaf, &mut self.held) {
                return Some(leaf);
            }
            leaf += 1;
        }
        None
    }
}

/// All classes from one on.
pub(super) struct Classes<'a> {
    occupancy: Occupancy<'a>,
    leaves: Vec<u32>,
    finished: bool,
}

impl<'a> Classes<'a> {
    /// From the first.
    pub(super) fn from_start(space: &'a Space) -> Self {
        let mut classes =
            Self { occupancy: Occupancy::new(space), leaves: Vec::new(), finished: false };
        classes.fill();
        classes
    }

    /// Gives every further thread the first context it may have.
    fn fill(&mut self) {
        while self.leaves.len() < self.occupancy.space.threads {
            // There is room for every thread in a space.
            let Some(leaf) = self.occupancy.next_open(0) else { return };
            self.push(leaf);
        }
    }

    fn push(&mut self, leaf: u32) {
        self.occupancy.put(leaf);
        self.leaves.push(leaf);
    }

    /// Moves on to the next class, if there is one.
    fn advance(&mut self) {
        while let Some(leaf) = self.leaves.pop() {
            self.occupancy.take(leaf);
            if let Some(next) = self.occupancy.next_open(leaf + 1) {
                self.push(next);
                self.fill();
                return;
            }
        }
        self.finished = true;
    }
}

impl Iterator for Classes<'_> {
    type Item = Assignment;

    fn next(&mut self) -> Option<Assignment> {
        if self.finished {
            return None;
        }
        let current = Assignment::new(self.leaves.clone());
        self.advance();
        Some(current)
    }
}
