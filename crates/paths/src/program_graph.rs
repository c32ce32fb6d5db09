//! The graphs of all functions that were seen to run.
//!
//! Decoded code gives direct jumps. Observed branches complete it in two ways. A destination of an
//! indirect jump within a function gets an edge. A place that other functions jump to becomes an
//! entry. A place right behind a call is neither: control returns there.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::binary::Binary;
use crate::fragments::Branch;
use crate::graph::{FunctionGraph, LONGEST_FUNCTION, ObservedEdges};
use crate::instruction_set::Transfer;

/// The graphs of a binary's functions, and what each address of a branch means in them.
#[derive(Debug, Default)]
pub struct ProgramGraph {
    /// The number that the binary gives each function, by the number of its graph.
    functions: Vec<usize>,
    graphs: Vec<FunctionGraph>,
    sites: HashMap<u64, BranchSite>,
    landings: HashMap<u64, Landing>,
}

/// A place in a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockPlace {
    pub(crate) function: u32,
    pub(crate) block: u32,
}

/// An instruction that a branch may come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BranchSite {
    pub(crate) place: BlockPlace,
    pub(crate) kind: SiteKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SiteKind {
    Jump,
    /// Its callee returns to the address.
    Call(u64),
    Return,
}

/// An address that a branch may lead to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Landing {
    pub(crate) place: BlockPlace,
    /// It lies behind a call.
    pub(crate) returned: bool,
}

impl ProgramGraph {
    /// The graphs of the functions of `binary` that `branches` touch.
    pub fn new(binary: &Binary, branches: impl Iterator<Item = Branch>) -> Self {
        let mut seen: BTreeMap<usize, ObservedEdges> = BTreeMap::new();
        let mut returns: Vec<(usize, u64)> = Vec::new();
        // Most were seen often, and decoding takes longer than finding that out.
        let branches: HashSet<Branch> = branches.collect();
        for Branch { from, to } in branches {
            let (source, target) = (binary.function_at(from), binary.function_at(to));
            let kind = source.map(|function| {
                let function = binary.functions()[function];
                let code = binary.code(from, function.end).unwrap_or_default();
                binary.instruction_set().transfer(code, from).0
            });
            for function in source.into_iter().chain(target) {
                seen.entry(function).or_default();
            }
            let Some(target) = target else { continue };
            if binary.functions()[target].start == to {
                // Where it is entered anyway: an edge if a jump comes from within.
                if source == Some(target) && kind == Some(Transfer::IndirectJump) {
                    seen.entry(target).or_default().jumps.push((from, to));
                }
                continue;
            }
            let seen = seen.entry(target).or_default();
            match kind {
                Some(Transfer::Jump(_) | Transfer::Conditional(_)) if source == Some(target) => {}
                Some(Transfer::IndirectJump) if source == Some(target) => {
                    seen.jumps.push((from, to));
                }
                Some(Transfer::Jump(_) | Transfer::Conditional(_) | Transfer::Call) => {
                    seen.entries.push(to)
                }
                // A return, or a jump from code that is not known: mostly behind a call.
                _ => returns.push((target, to)),
            }
        }
        let mut graphs: BTreeMap<usize, FunctionGraph> = BTreeMap::new();
        for (&function, seen) in &mut seen {
            seen.jumps.sort_unstable();
            seen.jumps.dedup();
            seen.entries.sort_unstable();
            seen.entries.dedup();
            graphs.insert(function, graph_of(binary, function, seen));
        }
        returns.sort_unstable();
        returns.dedup();
        for of_function in returns.chunk_by(|one, other| one.0 == other.0) {
            let function = of_function[0].0;
            let calls = graphs[&function].blocks.iter().flat_map(|block| &block.calls);
            let mut behind: Vec<u64> = calls.map(|call| call.after).collect();
            behind.sort_unstable();
            let entries = of_function.iter().map(|(_, to)| *to);
            let others = entries.filter(|to| behind.binary_search(to).is_err());
            let seen = seen.get_mut(&function).expect("each target was entered above");
            let before = seen.entries.len();
            seen.entries.extend(others);
            if seen.entries.len() > before {
                graphs.insert(function, graph_of(binary, function, seen));
            }
        }
        let mut program = Self::default();
        for (function, graph) in graphs {
            if !graph.blocks.is_empty() {
                program.push(function, graph);
            }
        }
        program
    }

    /// A program of given graphs, for tests and studies. Their addresses must differ.
    pub fn of_graphs(graphs: Vec<FunctionGraph>) -> Self {
        let mut program = Self::default();
        for (function, graph) in graphs.into_iter().enumerate() {
            program.push(function, graph);
        }
        program
    }

    fn push(&mut self, function: usize, graph: FunctionGraph) {
        let number = self.graphs.len() as u32;
        for (block, content) in graph.blocks.iter().enumerate() {
            let place = BlockPlace { function: number, block: block as u32 };
            for call in &content.calls {
                let kind = SiteKind::Call(call.after);
                self.sites.insert(call.at, BranchSite { place, kind });
                let landing = Landing { place, returned: true };
                self.landings.entry(call.after).or_insert(landing);
            }
            use crate::graph::BlockEnd::{Conditional, IndirectJump, Jump, Return};
            let kind = match content.kind {
                Jump | Conditional | IndirectJump => SiteKind::Jump,
                Return => SiteKind::Return,
                _ => continue,
            };
            self.sites.insert(content.last, BranchSite { place, kind });
        }
        // A block may begin behind a call. Then it also lies there.
        for (block, content) in graph.blocks.iter().enumerate() {
            let place = BlockPlace { function: number, block: block as u32 };
            let returned = self.landings.get(&content.start).is_some_and(|old| old.returned);
            self.landings.insert(content.start, Landing { place, returned });
        }
        self.functions.push(function);
        self.graphs.push(graph);
    }

    /// How many functions ran.
    pub fn len(&self) -> usize {
        self.graphs.len()
    }

    /// Whether no function ran.
    pub fn is_empty(&self) -> bool {
        self.graphs.is_empty()
    }

    /// A graph by its number, which must be below [`Self::len`].
    pub fn graph(&self, number: u32) -> &FunctionGraph {
        &self.graphs[number as usize]
    }

    /// The number that the binary gives the function of a graph.
    pub fn function(&self, number: u32) -> usize {
        self.functions[number as usize]
    }

    pub(crate) fn site(&self, address: u64) -> Option<BranchSite> {
        self.sites.get(&address).copied()
    }

    pub(crate) fn landing(&self, address: u64) -> Option<Landing> {
        self.landings.get(&address).copied()
    }
}

fn graph_of(binary: &Binary, function: usize, seen: &ObservedEdges) -> FunctionGraph {
    let function = binary.functions()[function];
    if function.end - function.start > LONGEST_FUNCTION {
        return FunctionGraph::default();
    }
    let code = binary.code(function.start, function.end).unwrap_or_default();
    FunctionGraph::new(binary.instruction_set(), code, function.start, seen, |start, end| {
        binary.bytes(start, end)
    })
}
