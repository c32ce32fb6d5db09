//! What an exchange of contexts does to the NUMA nodes they belong to.

use super::{Alike, SharingTree};
use crate::{CpuSet, Distances, Machine};
use std::collections::HashMap;

/// NUMA nodes in terms of leaves.
pub(super) struct NumaLeaves<'a> {
    /// The leaves of every NUMA node, ascending; none for one that only has memory, or no allowed
    /// context.
    leaves: Vec<Vec<u32>>,
    /// The NUMA nodes of every leaf.
    of: Vec<Vec<usize>>,
    /// Whether a node is known to have no memory.
    bare: Vec<bool>,
    distances: Option<&'a Distances>,
}

impl<'a> NumaLeaves<'a> {
    pub(super) fn new(
        machine: &'a Machine,
        tree: &SharingTree,
        leaves_of: impl Fn(&CpuSet) -> Vec<u32>,
    ) -> Self {
        let leaves: Vec<Vec<u32>> = machine.numa.iter().map(|node| leaves_of(&node.cpus)).collect();
        let mut of = vec![Vec::new(); tree.leaves.len()];
        for (node, leaves) in leaves.iter().enumerate() {
            leaves.iter().for_each(|&leaf| of[leaf as usize].push(node));
        }
        Self {
            leaves,
            of,
            bare: machine.numa.iter().map(|node| node.memory == Some(0)).collect(),
            distances: machine.distances.as_ref(),
        }
    }

    /// Whether exchanging the leaves of `a` with those of `b`, position by position, leaves the
    /// NUMA nodes as they were.
    pub(super) fn may_swap(&self, a: &[u32], b: &[u32], alike: Alike) -> bool {
        if a.iter().zip(b).all(|(&x, &y)| self.of[x as usize] == self.of[y as usize]) {
            return true;
        }
        let Some(moved) = self.permutation(a, b).filter(|_| alike == Alike::ByStructure) else {
            return false;
        };
        let distance =
            |from: usize, to: usize| self.distances.and_then(|matrix| matrix.0.get(from)?.get(to));
        let all = 0..moved.len();
        all.clone().all(|node| self.bare[node] == self.bare[moved[node]])
            && all.clone().all(|from| {
                all.clone().all(|to| distance(from, to) == distance(moved[from], moved[to]))
            })
    }

    /// The new place of every NUMA node after the exchange. `None` if some node's contexts would no
    /// longer form a node. Nodes with the same contexts (ordinary and high-bandwidth memory) are
    /// matched in their order.
    fn permutation(&self, a: &[u32], b: &[u32]) -> Option<Vec<usize>> {
        let partner: HashMap<u32, u32> =
            a.iter().zip(b).flat_map(|(&x, &y)| [(x, y), (y, x)]).collect();
        let same = |leaves: &'_ [u32]| -> Vec<usize> {
            (0..self.leaves.len()).filter(|&node| self.leaves[node] == leaves).collect()
        };
        let target = |node: usize| {
            let leaves = &self.leaves[node];
            if !leaves.iter().any(|leaf| partner.contains_key(leaf)) {
                return Some(node);
            }
            let mut moved: Vec<u32> =
                leaves.iter().map(|leaf| *partner.get(leaf).unwrap_or(leaf)).collect();
            moved.sort_unstable();
            let position = same(leaves).iter().position(|&other| other == node)?;
            let targets = same(&moved);
            (targets.len() == same(leaves).len()).then(|| targets[position])
        };
        (0..self.leaves.len()).map(target).collect()
    }
}
