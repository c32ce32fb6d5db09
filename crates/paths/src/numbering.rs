//! Numbers the paths of a function, from 0 on, without a gap.
//!
//! Without its back edges a graph has no cycle. So its paths can be counted from the last block
//! backwards. The paths of a block are those of its successors together, and one for each way to
//! end there. The number of a path is the sum of the values of its edges. The value of an edge is
//! the number of paths through the edges before it at its block. Source: Ball and Larus 1996,
//! section 3.2 and figure 5. Paths may also begin at each head, for the back edges that were cut
//! (section 3.4).
//!
//! The number of paths may be exponential in the number of blocks. If a number does not fit into 64
//! bits, paths have no numbers. Everything else here works on blocks and needs none.

use crate::graph::FunctionGraph;
use crate::path::{Path, PathStep};

/// The numbers of a function's paths.
#[derive(Debug)]
pub struct Numbering<'graph> {
    graph: &'graph FunctionGraph,
    function: u32,
    heads: Vec<u32>,
    /// By block: how many ways lead from it to an end.
    ways: Vec<u64>,
    total: u64,
}

/// A function has more than 2^64 - 1 paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the function has too many paths to number them")]
pub struct TooManyPaths;

impl<'graph> Numbering<'graph> {
    /// Numbers the paths of the function whose graph has this number.
    ///
    /// # Errors
    ///
    /// The numbers do not fit into 64 bits.
    pub fn new(graph: &'graph FunctionGraph, function: u32) -> Result<Self, TooManyPaths> {
        let heads = graph.heads();
        let mut numbering =
            Self { graph, function, heads, ways: vec![0; graph.blocks.len()], total: 0 };
        for block in numbering.last_to_first() {
            let ways = graph.steps_from(block).try_fold(0u64, |sum, choice| {
                sum.checked_add(numbering.ways_of(choice)).ok_or(TooManyPaths)
            })?;
            numbering.ways[block as usize] = ways;
        }
        numbering.total = numbering.heads.iter().try_fold(0u64, |sum, &head| {
            sum.checked_add(numbering.ways[head as usize]).ok_or(TooManyPaths)
        })?;
        Ok(numbering)
    }

    /// How many paths the function has.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The number of a whole path of the graph.
    pub fn number(&self, path: &Path) -> Option<u64> {
        let (blocks, end) = (path.blocks(), path.end().filter(|_| path.begins())?);
        let head = self.heads.iter().position(|head| Some(head) == blocks.first())?;
        let mut number: u64 = self.heads[..head].iter().map(|&head| self.ways[head as usize]).sum();
        for (index, &block) in blocks.iter().enumerate() {
            let taken =
                blocks.get(index + 1).map_or(PathStep::End(end), |&next| PathStep::On(next));
            let mut passed = 0;
            self.graph.steps_from(block).find(|&choice| {
                passed += if choice == taken { 0 } else { self.ways_of(choice) };
                choice == taken
            })?;
            number += passed;
        }
        Some(number)
    }

    /// The path that has this number, which must be below [`Self::total`].
    pub fn path(&self, number: u64) -> Option<Path> {
        let mut rest = number;
        let mut pass = |ways: u64| {
            let here = rest < ways;
            rest -= if here { 0 } else { ways };
            here
        };
        let first = self.heads.iter().find(|&&head| pass(self.ways[head as usize]))?;
        let mut blocks = vec![*first];
        loop {
            let here = *blocks.last().expect("it has its first block");
            match self.graph.steps_from(here).find(|&choice| pass(self.ways_of(choice)))? {
                PathStep::On(next) => blocks.push(next),
                PathStep::End(end) => return Some(Path::whole(self.function, &blocks, end)),
            }
        }
    }

    fn ways_of(&self, choice: PathStep) -> u64 {
        match choice {
            PathStep::End(_) => 1,
            PathStep::On(block) => self.ways[block as usize],
        }
    }

    /// All blocks that paths reach, each after those that follow it.
    fn last_to_first(&self) -> Vec<u32> {
        let mut visited = vec![false; self.graph.blocks.len()];
        let mut order = Vec::new();
        for &head in &self.heads {
            let mut stack = vec![(head, 0)];
            if std::mem::replace(&mut visited[head as usize], true) {
                continue;
            }
            while let Some((block, next)) = stack.last_mut() {
                let edges = &self.graph.blocks[*block as usize].edges;
                let Some(edge) = edges.get(*next) else {
                    order.push(*block);
                    stack.pop();
                    continue;
                };
                *next += 1;
                if !edge.back && !std::mem::replace(&mut visited[edge.to as usize], true) {
                    stack.push((edge.to, 0));
                }
            }
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::path::PathEnd;

    /// The example of Ball and Larus 1996, figure 1: A to F, six paths.
    #[test]
    fn the_published_example_has_six_paths() {
        let edges: [&[u32]; 6] = [&[1, 2], &[2, 3], &[3], &[4, 5], &[5], &[]];
        let edges: Vec<_> = edges.map(|to| (to.to_vec(), false)).to_vec();
        let graph = FunctionGraph::of_edges(&edges);
        assert_eq!(Numbering::new(&graph, 0).unwrap().total(), 6);
    }

    #[test]
    fn a_loop_is_cut_at_its_back_edge() {
        // 0 -> 1, 1 -> 1 or 2. From the entry a path leads to the back edge or out, from the head
        // too.
        let graph =
            FunctionGraph::of_edges(&[(vec![1], false), (vec![1, 2], false), (vec![], false)]);
        let numbering = Numbering::new(&graph, 0).unwrap();
        assert_eq!(numbering.total(), 4);
        let path = Path::whole(0, &[1], PathEnd::Back(1));
        assert!(numbering.number(&path).is_some());
    }

    #[test]
    fn too_many_paths_are_refused() {
        let choice = |block: u32| (vec![block + 1, block + 2], false);
        let mut edges: Vec<_> = (0..200).map(choice).collect();
        edges.extend([(vec![201], false), (vec![], false)]);
        assert_eq!(Numbering::new(&FunctionGraph::of_edges(&edges), 0).unwrap_err(), TooManyPaths);
    }

    fn any_graph() -> impl Strategy<Value = FunctionGraph> {
        (1u32..9).prop_flat_map(|blocks| {
            let block = (prop::collection::btree_set(0..blocks, 0..4), any::<bool>())
                .prop_map(|(to, exits)| (to.into_iter().collect(), exits));
            prop::collection::vec(block, blocks as usize)
                .prop_map(|edges| FunctionGraph::of_edges(&edges))
        })
    }

    proptest! {
        #[test]
        fn paths_and_numbers_are_one_to_one(graph in any_graph()) {
            let numbering = Numbering::new(&graph, 3).unwrap();
            prop_assume!(numbering.total() < 3000);
            let paths: BTreeSet<Path> =
                (0..numbering.total()).map(|number| numbering.path(number).unwrap()).collect();
            prop_assert_eq!(paths.len() as u64, numbering.total());
            for number in 0..numbering.total() {
                let path = numbering.path(number).unwrap();
                prop_assert_eq!(numbering.number(&path), Some(number));
            }
            prop_assert_eq!(numbering.path(numbering.total()), None);
        }
    }
}
