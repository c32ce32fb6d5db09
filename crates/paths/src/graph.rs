//! The control-flow graph of a function: its blocks, and the edges between them.
//!
//! A *block* is code that runs from its first instruction to its last. Code behind a call belongs
//! to the same block, because control comes back there. An *edge* leads from a block to one that
//! may follow. A depth-first search begins at the entries in the order of their addresses. An edge
//! is a *back edge* if it leads to a block that the search has begun and not finished. Its
//! destination is a *loop head*. An *entry* is a place where control comes from other functions.
//! The first instruction is one. So is each destination of a sampled jump from outside. Such a
//! place is a part that a compiler moved away, or a handler of exceptions.
//!
//! The decoder follows the code from the entries. The destinations of indirect jumps are those that
//! were observed, and those of tables that it finds. An unseen case of another jump has no edge.

use std::collections::HashMap;

use crate::instruction_set::{InstructionSet, Transfer};
use crate::jump_table::JumpTable;
use crate::path::{PathEnd, PathStep};
use iced_x86::{Decoder, DecoderOptions};

/// The longest function that is decoded, in bytes. A longer one is unknown code.
pub const LONGEST_FUNCTION: u64 = 1 << 20;

/// How a block ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockEnd {
    /// The next block begins behind it.
    FallsThrough,
    /// A jump to one place.
    Jump,
    /// A jump or the next block.
    Conditional,
    /// A jump to a computed place.
    IndirectJump,
    /// Back to the caller.
    Return,
    /// Execution cannot go on: a trap, or bytes that are no code of the function.
    Stops,
}

/// Where control goes from a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// The number of the block that follows.
    pub to: u32,
    /// Whether it closes a loop.
    pub back: bool,
}

/// A call within a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallSite {
    /// The address of the call.
    pub at: u64,
    /// Where its callee returns to.
    pub after: u64,
}

/// Code that runs from its first instruction to its last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BasicBlock {
    /// The address of its first instruction.
    pub start: u64,
    /// The address of its last instruction.
    pub last: u64,
    /// The first address behind it.
    pub end: u64,
    /// How it ends.
    pub kind: BlockEnd,
    /// Whether control may leave the function here: by a return, or by a jump to another one.
    pub exits: bool,
    /// The blocks that may follow, by number.
    pub edges: Vec<Edge>,
    /// Its calls, by address.
    pub calls: Vec<CallSite>,
}

impl BasicBlock {
    /// Whether control comes to `next` without a taken branch.
    pub(crate) fn falls_to(&self, next: &BasicBlock) -> bool {
        matches!(self.kind, BlockEnd::FallsThrough | BlockEnd::Conditional)
            && next.start == self.end
    }
}

/// The blocks of a function.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FunctionGraph {
    /// By address.
    pub blocks: Vec<BasicBlock>,
    /// The numbers of the blocks where control enters, by address.
    pub entries: Vec<u32>,
    /// The addresses of all instructions, in order.
    instructions: Vec<u64>,
}

/// The samples of a function, in addition to its code.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ObservedEdges {
    /// Indirect jumps within it and their destinations.
    pub(crate) jumps: Vec<(u64, u64)>,
    /// Where control entered from elsewhere, besides its start.
    pub(crate) entries: Vec<u64>,
}

impl FunctionGraph {
    /// The graph of the function whose code begins at `start`. `bytes` gives those of a range of
    /// addresses, where jump tables may lie.
    pub(crate) fn new<'data>(
        set: InstructionSet,
        code: &[u8],
        start: u64,
        seen: &ObservedEdges,
        bytes: impl Fn(u64, u64) -> Option<&'data [u8]>,
    ) -> Self {
        let mut decoded = Decoded::new(set, code, start);
        decoded.follow(start);
        for &(_, to) in &seen.jumps {
            decoded.follow(to);
        }
        for &entry in &seen.entries {
            decoded.follow(entry);
        }
        let tables = decoded.follow_tables(bytes);
        let mut graph = Self { blocks: decoded.blocks(), ..Self::default() };
        graph.instructions = decoded.instructions().collect();
        let endings: HashMap<u64, usize> =
            graph.blocks.iter().enumerate().map(|(number, block)| (block.last, number)).collect();
        for (from, to) in seen.jumps.iter().chain(&tables) {
            if let (Some(&from), Some(to)) = (endings.get(from), graph.starting_at(*to)) {
                graph.blocks[from].edges.push(Edge { to, back: false });
            }
        }
        // Its table tells all that such a jump does.
        for of_jump in tables.chunk_by(|one, other| one.0 == other.0) {
            if let Some(&from) = endings.get(&of_jump[0].0)
                && of_jump.iter().all(|(_, to)| graph.starting_at(*to).is_some())
            {
                graph.blocks[from].exits = false;
            }
        }
        for block in &mut graph.blocks {
            block.edges.sort_by_key(|edge| edge.to);
            block.edges.dedup();
        }
        let entries = [start].into_iter().chain(seen.entries.iter().copied());
        graph.entries = entries.filter_map(|entry| graph.starting_at(entry)).collect();
        graph.entries.sort_unstable();
        graph.entries.dedup();
        graph.mark_back_edges();
        graph
    }

    /// A graph of given edges, for tests and studies. Block `b` has addresses `16 b` to
    /// `16 b + 15`. A block without edges returns; one whose second mark is set may leave as well.
    pub fn of_edges(edges: &[(Vec<u32>, bool)]) -> Self {
        let block = |(number, (edges, exits)): (usize, &(Vec<u32>, bool))| BasicBlock {
            start: number as u64 * 16,
            last: number as u64 * 16 + 15,
            end: number as u64 * 16 + 16,
            kind: if edges.is_empty() { BlockEnd::Return } else { BlockEnd::IndirectJump },
            exits: *exits || edges.is_empty(),
            edges: edges.iter().map(|&to| Edge { to, back: false }).collect(),
            calls: Vec::new(),
        };
        let mut graph = Self {
            blocks: edges.iter().enumerate().map(block).collect(),
            entries: if edges.is_empty() { Vec::new() } else { vec![0] },
            instructions: (0..edges.len() as u64 * 4).map(|number| number * 4).collect(),
        };
        graph.mark_back_edges();
        graph
    }

    /// The block whose first instruction is there.
    pub fn starting_at(&self, address: u64) -> Option<u32> {
        let found = self.blocks.binary_search_by_key(&address, |block| block.start);
        found.ok().map(|number| number as u32)
    }

    /// How many instructions begin from `start` to `last`, both included. At least 1.
    pub fn instructions(&self, start: u64, last: u64) -> u64 {
        let before = |address| self.instructions.partition_point(|&at| at < address);
        (before(last.saturating_add(1)).saturating_sub(before(start)) as u64).max(1)
    }

    /// Where paths may begin: entries and loop heads, by number.
    pub fn heads(&self) -> Vec<u32> {
        let edges = self.blocks.iter().flat_map(|block| &block.edges);
        let loops = edges.filter(|edge| edge.back).map(|edge| edge.to);
        let mut heads: Vec<u32> = loops.chain(self.entries.iter().copied()).collect();
        heads.sort_unstable();
        heads.dedup();
        heads
    }

    /// What a path may do at a block.
    pub(crate) fn steps_from(&self, block: u32) -> impl Iterator<Item = PathStep> + '_ {
        let block = &self.blocks[block as usize];
        // Where an endless loop has no other edge, or code stops, the path ends.
        let exits = block.exits || block.edges.is_empty();
        let exit = exits.then_some(PathStep::End(PathEnd::Exit));
        exit.into_iter().chain(block.edges.iter().map(|edge| match edge.back {
            true => PathStep::End(PathEnd::Back(edge.to)),
            false => PathStep::On(edge.to),
        }))
    }

    fn mark_back_edges(&mut self) {
        #[derive(Clone, Copy, PartialEq)]
        enum Visit {
            New,
            Begun,
            Finished,
        }
        let mut visits = vec![Visit::New; self.blocks.len()];
        // Blocks that no entry reaches come last, so that no cycle is left without a back edge.
        let all = 0..self.blocks.len() as u32;
        for entry in self.entries.clone().into_iter().chain(all) {
            if visits[entry as usize] != Visit::New {
                continue;
            }
            visits[entry as usize] = Visit::Begun;
            let mut stack = vec![(entry as usize, 0)];
            while let Some((block, next)) = stack.last_mut() {
                let block = *block;
                let Some(edge) = self.blocks[block].edges.get_mut(*next) else {
                    visits[block] = Visit::Finished;
                    stack.pop();
                    continue;
                };
                *next += 1;
                let to = edge.to as usize;
                match visits[to] {
                    Visit::New => {
                        visits[to] = Visit::Begun;
                        stack.push((to, 0));
                    }
                    Visit::Begun => edge.back = true,
                    Visit::Finished => {}
                }
            }
        }
    }
}

/// The instructions of a function as far as control was followed.
struct Decoded<'code> {
    set: InstructionSet,
    code: &'code [u8],
    start: u64,
    /// By offset: the length of the instruction there, 0 if none was found.
    lengths: Vec<u8>,
    /// By offset: whether a block begins there.
    leads: Vec<bool>,
    /// The offsets of indirect jumps whose table was not sought yet.
    indirect: Vec<usize>,
}

impl<'code> Decoded<'code> {
    fn new(set: InstructionSet, code: &'code [u8], start: u64) -> Self {
        let (lengths, leads) = (vec![0; code.len()], vec![false; code.len()]);
        Self { set, code, start, lengths, leads, indirect: Vec::new() }
    }

    fn offset(&self, address: u64) -> Option<usize> {
        let offset = usize::try_from(address.checked_sub(self.start)?).ok()?;
        (offset < self.code.len()).then_some(offset)
    }

    fn instructions(&self) -> impl Iterator<Item = u64> {
        let lengths = self.lengths.iter().enumerate();
        lengths.filter(|(_, length)| **length > 0).map(|(offset, _)| self.start + offset as u64)
    }

    /// Follows the cases of all jump tables. Gives each jump with each of its destinations.
    fn follow_tables<'data>(
        &mut self,
        bytes: impl Fn(u64, u64) -> Option<&'data [u8]>,
    ) -> Vec<(u64, u64)> {
        let mut jumps = Vec::new();
        if self.set != InstructionSet::X86_64 {
            return jumps;
        }
        // Cases may have jumps of their own.
        while let Some(offset) = self.indirect.pop() {
            let decode = |offset: usize| {
                let address = self.start + offset as u64;
                Decoder::with_ip(64, &self.code[offset..], address, DecoderOptions::NONE).decode()
            };
            let before = std::iter::successors(self.before(offset), |&at| self.before(at));
            let Some(mut cases) = JumpTable::of(&decode(offset), before.map(decode))
                .and_then(|table| table.destinations(&bytes))
            else {
                continue;
            };
            // Many numbers may be of one case.
            cases.sort_unstable();
            cases.dedup();
            // The work is bounded by the code, whatever it claims.
            if jumps.len() + cases.len() > self.code.len() {
                continue;
            }
            for to in cases {
                jumps.push((self.start + offset as u64, to));
                self.follow(to);
            }
        }
        jumps
    }

    /// The instruction in front of another one.
    fn before(&self, offset: usize) -> Option<usize> {
        const LONGEST_INSTRUCTION: usize = 15;
        (1..=LONGEST_INSTRUCTION.min(offset))
            .find(|&length| usize::from(self.lengths[offset - length]) == length)
            .map(|length| offset - length)
    }

    fn transfer(&self, offset: usize) -> (Transfer, u64) {
        self.set.transfer(&self.code[offset..], self.start + offset as u64)
    }

    /// Decodes all that direct control reaches from `root`, where a block begins.
    fn follow(&mut self, root: u64) {
        let mut work = vec![root];
        while let Some(address) = work.pop() {
            let Some(mut offset) = self.offset(address) else { continue };
            self.leads[offset] = true;
            while self.lengths[offset] == 0 {
                let (transfer, length) = self.transfer(offset);
                if length == 0 {
                    break;
                }
                self.lengths[offset] = length as u8;
                let next = self.start + offset as u64 + length;
                match transfer {
                    Transfer::Jump(to) => work.push(to),
                    Transfer::Conditional(to) => work.extend([to, next]),
                    Transfer::IndirectJump => self.indirect.push(offset),
                    _ => {}
                }
                if !matches!(transfer, Transfer::Next | Transfer::Call) {
                    break;
                }
                let Some(next) = self.offset(next) else { break };
                offset = next;
            }
        }
    }

    fn blocks(&self) -> Vec<BasicBlock> {
        let starts: Vec<usize> = (0..self.code.len())
            .filter(|&offset| self.leads[offset] && self.lengths[offset] > 0)
            .collect();
        let number = |address: u64| {
            let found = starts.binary_search(&self.offset(address)?);
            found.ok().map(|number| number as u32)
        };
        starts.iter().map(|&start| self.block(start, &number)).collect()
    }

    fn block(&self, start: usize, number: &impl Fn(u64) -> Option<u32>) -> BasicBlock {
        let mut block = BasicBlock {
            start: self.start + start as u64,
            last: 0,
            end: 0,
            kind: BlockEnd::Stops,
            exits: false,
            edges: Vec::new(),
            calls: Vec::new(),
        };
        let mut offset = start;
        let destinations = loop {
            let (transfer, length) = self.transfer(offset);
            block.last = self.start + offset as u64;
            block.end = block.last + length;
            let (kind, destinations) = match transfer {
                Transfer::Next | Transfer::Call => {
                    if transfer == Transfer::Call {
                        block.calls.push(CallSite { at: block.last, after: block.end });
                    }
                    match self.offset(block.end) {
                        Some(next) if !self.leads[next] && self.lengths[next] > 0 => {
                            offset = next;
                            continue;
                        }
                        Some(_) => (BlockEnd::FallsThrough, [Some(block.end), None]),
                        None => (BlockEnd::Stops, [None, None]),
                    }
                }
                Transfer::Jump(to) => (BlockEnd::Jump, [Some(to), None]),
                Transfer::Conditional(to) => (BlockEnd::Conditional, [Some(block.end), Some(to)]),
                Transfer::IndirectJump => (BlockEnd::IndirectJump, [None, None]),
                Transfer::Return => (BlockEnd::Return, [None, None]),
                Transfer::Stop => (BlockEnd::Stops, [None, None]),
            };
            block.kind = kind;
            break destinations;
        };
        for address in destinations.into_iter().flatten() {
            match number(address) {
                Some(to) if block.edges.iter().any(|edge| edge.to == to) => {}
                Some(to) => block.edges.push(Edge { to, back: false }),
                None => block.exits = true,
            }
        }
        // Without a table, where an indirect jump leads is only known from observation.
        block.exits |=
            matches!(block.kind, BlockEnd::Return | BlockEnd::IndirectJump | BlockEnd::Stops);
        block
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Also blocks that no entry reaches: a case of a jump table whose jump was not decoded.
        #[test]
        fn without_back_edges_there_is_no_cycle(
            edges in prop::collection::vec(prop::collection::vec(0u32..8, 0..3), 8),
        ) {
            let edges: Vec<_> = edges.into_iter().map(|to| (to, false)).collect();
            let graph = FunctionGraph::of_edges(&edges);
            // Blocks that only follow finished ones are taken away until none is left.
            let mut left: Vec<usize> = (0..8).collect();
            while !left.is_empty() {
                let before = left.len();
                let still = left.clone();
                left.retain(|&block| {
                    let edges = graph.blocks[block].edges.iter().filter(|edge| !edge.back);
                    edges.into_iter().any(|edge| still.contains(&(edge.to as usize)))
                });
                prop_assert!(left.len() < before, "a cycle in {left:?}");
            }
        }
    }
}
