//! A traced program: each taken branch, the exact counts of paths, and samples of a record.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path as FilePath, PathBuf};

use pinwise_paths::{
    Binary, BlockEnd, Branch, BranchRecord, Fragments, Path, PathCounter, PathEnd, ProgramGraph,
};

/// A path by its executed code. It has the first and the last address of each straight run, and
/// the loop head at its end. So graphs with other blocks may have the same path.
pub(crate) type AddressPath = (Box<[(u64, u64)]>, Option<u64>);

pub(crate) fn address_path(program: &ProgramGraph, path: &Path) -> AddressPath {
    let graph = program.graph(path.function);
    let mut runs: Vec<(u64, u64)> = Vec::new();
    let mut end = None;
    for block in path.blocks().iter().map(|&block| &graph.blocks[block as usize]) {
        match runs.last_mut() {
            Some(run) if end == Some(block.start) => run.1 = block.last,
            _ => runs.push((block.start, block.last)),
        }
        let may_fall = matches!(block.kind, BlockEnd::FallsThrough | BlockEnd::Conditional);
        end = may_fall.then_some(block.end);
    }
    let back = match path.end() {
        Some(PathEnd::Back(head)) => Some(graph.blocks[head as usize].start),
        _ => None,
    };
    (runs.into(), back)
}

/// So many branches go to each record before the next one's turn.
const AT_ONCE: usize = 512;

/// All traces of a folder. Each program lies beside its trace.
pub(crate) fn traces(folder: &FilePath) -> io::Result<Vec<PathBuf>> {
    let files = fs::read_dir(folder)?.map(|entry| entry.map(|it| it.path()));
    let mut traces: Vec<PathBuf> = files.collect::<Result<_, _>>()?;
    traces.retain(|path| path.extension().is_some_and(|it| it == "trace"));
    traces.sort();
    Ok(traces)
}

/// A program, and all that it did.
pub(crate) struct Traced<'data> {
    pub(crate) name: String,
    pub(crate) binary: Binary<'data>,
    /// Of all branches of the trace.
    pub(crate) graph: ProgramGraph,
    /// The exact profile: shares.
    pub(crate) paths: BTreeMap<Path, f64>,
    /// The same by address.
    pub(crate) exact: BTreeMap<AddressPath, f64>,
    branches: Branches,
}

/// Taken branches as the tracer wrote them. The upper 16 bits of a source count the instructions up
/// to it.
struct Branches {
    words: Vec<u8>,
    moved: u64,
}

impl Branches {
    /// Addresses are those of the binary's file.
    fn iter(&self) -> impl Iterator<Item = (u64, Branch)> {
        const ADDRESS: u64 = (1 << 48) - 1;
        self.words.chunks_exact(16).skip(1).map(|words| {
            let words = u128::from_ne_bytes(words.try_into().expect("16 bytes"));
            let (from, to) = (words as u64, (words >> 64) as u64);
            let from_here = (from & ADDRESS).wrapping_sub(self.moved);
            (from >> 48, Branch { from: from_here, to: to.wrapping_sub(self.moved) })
        })
    }
}

impl<'data> Traced<'data> {
    pub(crate) fn new(name: String, trace: &FilePath, program: &'data [u8]) -> io::Result<Self> {
        let binary = Binary::parse(program).map_err(io::Error::other)?;
        let words = fs::read(trace)?;
        let first = words.first_chunk().copied().map_or(0, u64::from_ne_bytes);
        let branches = Branches { words, moved: first.wrapping_sub(binary.lowest()) };
        let distinct: HashSet<Branch> = branches.iter().map(|it| it.1).collect();
        let distinct: BTreeSet<Branch> = distinct.into_iter().collect();
        let graph = ProgramGraph::new(&binary, distinct.into_iter());
        let mut counter = PathCounter::new(&graph);
        branches.iter().for_each(|(_, branch)| counter.take(branch));
        let (counts, _, breaks) = counter.finish();
        let total = counts.iter().map(|it| it.1).sum::<u64>();
        eprintln!(
            "{name}: {} functions, {} paths, {total} executions, {breaks} breaks",
            graph.len(),
            counts.len()
        );
        let share = |(path, count): (Path, u64)| (path, count as f64 / total as f64);
        let paths: BTreeMap<Path, f64> = counts.into_iter().map(share).collect();
        let mut exact: BTreeMap<AddressPath, f64> = BTreeMap::new();
        for (path, share) in &paths {
            *exact.entry(address_path(&graph, path)).or_default() += share;
        }
        Ok(Self { name, binary, graph, paths, exact, branches })
    }

    pub(crate) fn instructions(&self) -> u64 {
        self.branches.iter().map(|(ran, _)| ran).sum::<u64>().max(1)
    }

    /// What a record tells of each run, by the run's seed.
    pub(crate) fn sampled(
        &self,
        depth: usize,
        period: u64,
        seeds: Range<u64>,
    ) -> impl Iterator<Item = Fragments> {
        self.sampled_with(depth, period, period / 10, seeds)
    }

    /// The same, with another jitter.
    pub(crate) fn sampled_with(
        &self,
        depth: usize,
        period: u64,
        jitter: u64,
        seeds: Range<u64>,
    ) -> impl Iterator<Item = Fragments> {
        let mut records: Vec<BranchRecord> =
            seeds.map(|seed| BranchRecord::new(depth, period, jitter, seed)).collect();
        let mut branches = self.branches.iter();
        let mut some: Vec<(u64, Branch)> = Vec::new();
        loop {
            some.clear();
            some.extend(branches.by_ref().take(AT_ONCE));
            if some.is_empty() {
                break;
            }
            let ran = some.iter().map(|it| it.0).sum();
            records.iter_mut().for_each(|record| record.take_all(ran, &some));
        }
        records.into_iter().map(BranchRecord::finish)
    }

    /// The graph that a user has: of the binary and the branches in the samples.
    pub(crate) fn graph_of(&self, samples: &Fragments) -> ProgramGraph {
        let branches: BTreeSet<Branch> =
            samples.iter().flat_map(|(fragment, _)| fragment).copied().collect();
        ProgramGraph::new(&self.binary, branches.into_iter())
    }
}
