//! The answer about a whole recording: the paths of all of its binaries, the most frequent first.
//!
//! Each binary has its own graphs and profile. A profile counts executions for each window of the
//! stream that shows its binary ([`PathProfile`]). So the count of a path is multiplied by the
//! number of windows that show its binary. The shares of all binaries then add up to 1. Times the
//! branches of a window, it is how often the path ran in the branches that were sampled. The
//! intervals leave out how uncertain the parts of binaries are. These parts are known well: each
//! sample shows them.

use std::collections::{BTreeMap, BTreeSet};

use pinwise_topology::Random;

use crate::accuracy::HOT;
use crate::binary::{Binary, BinaryError, Function};
use crate::exports::preaggregated_text;
use crate::path::{Path, PathEnd};
use crate::profile::{PathMethod, PathProfile};
use crate::program_graph::ProgramGraph;
use crate::readable_name::readable_name;
use crate::samples::{BinaryBranches, RecordingTotals};
use crate::segments::Segments;
use crate::source_lines::{SourceLines, SourceSpan};

/// A recording with the paths that its samples tell of.
#[derive(Debug)]
pub struct RecordedProfile {
    /// Counts over all of the recording.
    pub totals: RecordingTotals,
    /// The binaries with graphs, the one with the most branches first.
    pub binaries: Vec<ProfiledBinary>,
    /// The others, in the same order.
    pub unread: Vec<UnreadBinary>,
    /// All paths, the most frequent first.
    pub paths: Vec<ProfiledPath>,
    /// The number of groups of paths that no fragment tells apart.
    pub groups: usize,
    /// The share of the samples of read binaries that some path explains, from 0 to 1.
    pub coverage: f64,
}

/// A binary of the recording, read.
#[derive(Debug)]
pub struct ProfiledBinary {
    /// Its path in the recording. Empty where the recording names none.
    pub name: String,
    /// The file that was read.
    pub file: String,
    /// Its samples, at the addresses that the file states.
    pub seen: BinaryBranches,
    /// How many sampled branches lead into it.
    pub branches: u64,
    /// How many functions ran.
    pub functions: usize,
    /// The share of its samples that some path explains, from 0 to 1.
    pub coverage: f64,
    bytes: BinaryFiles,
    program: ProgramGraph,
    names: Vec<String>,
    lines: SourceLines,
    profile: PathProfile,
}

/// The content of a binary.
#[derive(Debug, Default)]
pub struct BinaryFiles {
    /// Its file.
    pub binary: Vec<u8>,
    /// Its separate file of debugging information, if there is one ([`crate::DebugFile`]).
    pub debug: Option<Vec<u8>>,
}

impl BinaryFiles {
    fn parse(&self) -> Result<Binary<'_>, BinaryError> {
        Binary::with_debug_file(&self.binary, self.debug.as_deref())
    }

    /// Source lines are where the compiler left them, or where a distribution put them.
    fn lines(&self, functions: &[Function]) -> SourceLines {
        let own = SourceLines::new(&self.binary, functions);
        match &self.debug {
            Some(debug) if own.is_empty() => SourceLines::new(debug, functions),
            _ => own,
        }
    }
}

/// A binary of the recording without graphs.
#[derive(Debug)]
pub struct UnreadBinary {
    /// Its path in the recording. Empty where the recording names none.
    pub name: String,
    /// Its samples.
    pub seen: BinaryBranches,
    /// How many sampled branches lead into it.
    pub branches: u64,
    /// Why it has none.
    pub reason: UnreadReason,
}

/// Why a binary has no graphs.
#[derive(Debug, thiserror::Error)]
pub enum UnreadReason {
    /// Other binaries were asked for.
    #[error("not asked for")]
    NotAskedFor,
    /// The recording names no file.
    #[error("the recording names no binary: name it with --binary")]
    Unnamed,
    /// There is no file at its path.
    #[error("it is not here: name a copy with --binary")]
    Missing,
    /// Its file could not be read.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The file changed since, or is of another machine.
    #[error(
        "another build than the recorded one (build id {found}, recorded {recorded}): name the \
         one that ran with --binary"
    )]
    OtherBuild {
        /// Of the file.
        found: String,
        /// Of the binary that ran.
        recorded: String,
    },
    /// It is no program with code that is known.
    #[error(transparent)]
    Binary(#[from] BinaryError),
    /// Its code is elsewhere.
    #[error(
        "no sampled address lies in its code: it is another binary, or the recording has no \
         mappings; give perf.data, or text of `perf script --show-mmap-events -F pid,ip,brstack`"
    )]
    Elsewhere,
}

/// How often a path ran.
#[derive(Debug, Clone, PartialEq)]
pub struct ProfiledPath {
    /// The number of its binary.
    pub binary: usize,
    /// The path.
    pub path: Path,
    /// How often it ran in the branches that were sampled.
    pub count: f64,
    /// Its flow: its executions as a share of those of all paths, from 0 to 1.
    pub share: f64,
    /// The 90 % interval of the share, if there is one ([`RecordingTotals::has_intervals`]).
    pub interval: Option<(f64, f64)>,
    /// The number of its group, if no fragment tells it from others.
    pub group: Option<usize>,
}

/// A block of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathBlock<'profile> {
    /// Its number in the function.
    pub number: u32,
    /// The address of its first instruction.
    pub start: u64,
    /// The first address behind it.
    pub end: u64,
    /// Its source lines.
    pub source: Option<SourceSpan<'profile>>,
}

/// An instruction of a function, with how often it ran.
#[derive(Debug, Clone, PartialEq)]
pub struct SharedInstruction {
    /// Its address.
    pub address: u64,
    /// Its text.
    pub text: String,
    /// The number of its block.
    pub block: u32,
    /// The share of the flow of all paths that goes through its block, from 0 to 1.
    pub share: f64,
}

/// The confidence of intervals.
pub const CONFIDENCE: f64 = 0.9;

impl UnreadBinary {
    /// The samples of a binary that is not read.
    pub fn new(name: String, seen: BinaryBranches, reason: UnreadReason) -> Self {
        Self { name, branches: seen.entries(), seen, reason }
    }
}

impl ProfiledBinary {
    /// Reads the file with these bytes and estimates the paths in it. `name` is its path in the
    /// recording, which has seen `recorded` of it. `totals` are those of the recording.
    ///
    /// # Errors
    /// If the file is no program, is for another processor, or is not the one that ran.
    pub fn new(
        name: &str,
        file: String,
        bytes: BinaryFiles,
        recorded: &BinaryBranches,
        totals: &RecordingTotals,
        method: PathMethod,
        random: &mut Random,
    ) -> Result<Self, UnreadReason> {
        let binary = bytes.parse()?;
        check_build(binary.build_id(), &recorded.build_ids)?;
        let segments = Segments::of_elf(&bytes.binary)
            .map_err(|error| BinaryError::NotElf(error.to_string()))?;
        let seen = recorded.at_addresses(&segments);
        let branches = seen.fragments.iter().flat_map(|(fragment, _)| fragment).copied();
        let program = ProgramGraph::new(&binary, branches);
        if program.is_empty() {
            return Err(UnreadReason::Elsewhere);
        }
        let numbers = (0..program.len() as u32).map(|graph| program.function(graph));
        let name_of = |function: usize| {
            let unnamed = || format!("0x{:x}", binary.functions()[function].start);
            binary.name(function).map_or_else(unnamed, readable_name)
        };
        let names: Vec<String> = numbers.clone().map(name_of).collect();
        let mut functions: Vec<_> = numbers.map(|number| binary.functions()[number]).collect();
        functions.sort_by_key(|function| function.start);
        let lines = bytes.lines(&functions);
        let (fragments, by) = (&seen.fragments, totals.sampled_by());
        let profile = match totals.has_intervals(method) {
            false => PathProfile::new(&program, fragments, by, method),
            true => PathProfile::with_intervals(&program, fragments, by, CONFIDENCE, random),
        };
        Ok(Self {
            name: name.to_owned(),
            file,
            branches: seen.entries(),
            seen,
            functions: program.len(),
            coverage: 1.0 - profile.left_out,
            bytes,
            program,
            names,
            lines,
            profile,
        })
    }

    /// The name of a path's function ([`readable_name`]), or its address.
    pub fn function_name(&self, path: &Path) -> &str {
        self.name_of(path.function)
    }

    /// The name of a function by its number, as [`Self::function_name`].
    pub fn name_of(&self, function: u32) -> &str {
        &self.names[function as usize]
    }

    /// The address of a path's function.
    pub fn function_start(&self, function: u32) -> u64 {
        self.program.graph(function).blocks.first().map_or(0, |block| block.start)
    }

    /// Blocks of a function by their numbers.
    fn block(&self, function: u32, number: u32) -> PathBlock<'_> {
        let block = &self.program.graph(function).blocks[number as usize];
        let (start, end) = (block.start, block.end);
        PathBlock { number, start, end, source: self.lines.of(start, end) }
    }

    /// All blocks of a function, by address.
    pub fn blocks(&self, function: u32) -> Vec<PathBlock<'_>> {
        let count = self.program.graph(function).blocks.len() as u32;
        (0..count).map(|number| self.block(function, number)).collect()
    }

    /// The edges of a function's graph: from, to, and whether it closes a loop.
    pub fn edges(&self, function: u32) -> Vec<(u32, u32, bool)> {
        let blocks = self.program.graph(function).blocks.iter().enumerate();
        blocks
            .flat_map(|(from, block)| {
                block.edges.iter().map(move |edge| (from as u32, edge.to, edge.back))
            })
            .collect()
    }

    /// The blocks of a path, in order.
    pub fn blocks_of(&self, path: &Path) -> Vec<PathBlock<'_>> {
        path.blocks().iter().map(|&number| self.block(path.function, number)).collect()
    }

    /// The loop head that a path goes back to, if it does.
    pub fn back_to(&self, path: &Path) -> Option<PathBlock<'_>> {
        match path.end()? {
            PathEnd::Exit => None,
            PathEnd::Back(head) => Some(self.block(path.function, head)),
        }
    }

    /// BOLT's pre-aggregated text of the samples.
    pub fn preaggregated(&self) -> String {
        // It was read from the same bytes before.
        let binary = self.bytes.parse().ok();
        preaggregated_text(
            &self.seen,
            |address| Some(binary.as_ref()?.function_at(address)? as u64),
        )
    }

    /// The samples, at offsets in the file.
    pub fn at_file_offsets(&self) -> BinaryBranches {
        Segments::of_elf(&self.bytes.binary)
            .map_or_else(|_| self.seen.clone(), |segments| self.seen.at_file_offsets(&segments))
    }
}

impl RecordedProfile {
    /// Puts the profiles of binaries together.
    pub fn new(
        totals: RecordingTotals,
        mut binaries: Vec<ProfiledBinary>,
        mut unread: Vec<UnreadBinary>,
    ) -> Self {
        let most = |branches: u64| std::cmp::Reverse(branches);
        binaries.sort_by_key(|binary| most(binary.branches));
        unread.sort_by_key(|binary| most(binary.branches));
        let windows: Vec<f64> =
            binaries.iter().map(|binary| binary.seen.fragments.total() as f64).collect();
        let of_all: f64 = binaries
            .iter()
            .zip(&windows)
            .map(|(it, windows)| {
                it.profile.paths.iter().map(|path| path.count * windows).sum::<f64>()
            })
            .sum();
        // BOLT's text has no samples: each of its branches stands for itself.
        let depth = match totals.samples {
            0 => 1.0,
            samples => totals.branches as f64 / samples as f64,
        };
        let mut groups = BTreeMap::new();
        let mut paths = Vec::new();
        for (number, (binary, windows)) in binaries.iter().zip(windows).enumerate() {
            for path in &binary.profile.paths {
                let share = path.count * windows / of_all;
                let scale = share / path.share;
                let next = groups.len();
                paths.push(ProfiledPath {
                    binary: number,
                    path: path.path.clone(),
                    count: path.count * windows * depth,
                    share,
                    interval: path
                        .interval
                        .map(|(low, high)| (low * scale, (high * scale).min(1.0))),
                    group: path.group.map(|group| *groups.entry((number, group)).or_insert(next)),
                });
            }
        }
        paths.sort_by(|one, other| {
            let tie = || (one.binary, &one.path).cmp(&(other.binary, &other.path));
            other.share.total_cmp(&one.share).then_with(tie)
        });
        let branches: u64 = binaries.iter().map(|binary| binary.branches).sum();
        let explained: f64 =
            binaries.iter().map(|binary| binary.coverage * binary.branches as f64).sum();
        let coverage = if branches > 0 { explained / branches as f64 } else { 0.0 };
        Self { totals, binaries, unread, paths, groups: groups.len(), coverage }
    }

    /// The hot paths: those with at least [`HOT`] of the flow. A group counts as one. If it is hot,
    /// its paths with a tenth of that are shown. Nobody tuned this tenth.
    pub fn hot(&self) -> Vec<&ProfiledPath> {
        let mut of_groups = vec![0.0; self.groups];
        for path in &self.paths {
            path.group.into_iter().for_each(|group| of_groups[group] += path.share);
        }
        let is_hot = |path: &&ProfiledPath| match path.group {
            Some(group) => of_groups[group] >= HOT && path.share >= HOT / 10.0,
            None => path.share >= HOT,
        };
        let mut hot: Vec<&ProfiledPath> = self.paths.iter().filter(is_hot).collect();
        // The paths of a group stand together, at the place of the group.
        let share = |path: &ProfiledPath| path.group.map_or(path.share, |group| of_groups[group]);
        hot.sort_by(|one, other| {
            share(other)
                .total_cmp(&share(one))
                .then_with(|| one.group.cmp(&other.group))
                .then_with(|| other.share.total_cmp(&one.share))
        });
        hot
    }

    /// The functions by the flow of their paths, most first: binary, number, share.
    pub fn hottest_functions(&self) -> Vec<(usize, u32, f64)> {
        let mut shares: BTreeMap<(usize, u32), f64> = BTreeMap::new();
        for path in &self.paths {
            *shares.entry((path.binary, path.path.function)).or_default() += path.share;
        }
        let mut functions: Vec<_> =
            shares.into_iter().map(|((binary, it), share)| (binary, it, share)).collect();
        functions.sort_by(|one, other| other.2.total_cmp(&one.2));
        functions
    }

    /// The share of the flow of all paths that goes through each block of a function.
    pub fn block_shares(&self, binary: usize, function: u32) -> Vec<f64> {
        let graph = self.binaries[binary].program.graph(function);
        let mut shares = vec![0.0; graph.blocks.len()];
        let paths = self.paths.iter();
        for path in paths.filter(|it| it.binary == binary && it.path.function == function) {
            path.path.blocks().iter().for_each(|&block| shares[block as usize] += path.share);
        }
        shares
    }

    /// The instructions of a function's blocks with their shares, by address.
    pub fn annotated(&self, binary: usize, function: u32) -> Vec<SharedInstruction> {
        let of = &self.binaries[binary];
        let Ok(parsed) = of.bytes.parse() else { return Vec::new() };
        let shares = self.block_shares(binary, function);
        let blocks = &of.program.graph(function).blocks;
        let mut instructions = Vec::new();
        for (number, block) in blocks.iter().enumerate() {
            let code = parsed.code(block.start, block.end).unwrap_or_default();
            instructions.extend(
                parsed.instruction_set().disassembled(code, block.start).into_iter().map(
                    |(address, text)| SharedInstruction {
                        address,
                        text,
                        block: number as u32,
                        share: shares[number],
                    },
                ),
            );
        }
        instructions
    }

    /// The stacks of all paths for flame graphs: binary, function and blocks, then the count.
    pub fn stacks(&self) -> impl Iterator<Item = (Vec<String>, f64)> + '_ {
        self.paths.iter().map(|path| {
            let binary = &self.binaries[path.binary];
            let start = binary.function_start(path.path.function);
            let mut frames = vec![file_name(&binary.file).to_owned()];
            frames.push(binary.function_name(&path.path).to_owned());
            frames.extend(binary.blocks_of(&path.path).iter().map(|block| match block.source {
                Some(source) => format!("{}:{}", file_name(source.file), source.lines()),
                None => format!("+0x{:x}", block.start.wrapping_sub(start)),
            }));
            (frames, path.count)
        })
    }
}

/// Refuses a file with another build id than those recorded, if it has one.
fn check_build(found: Option<&[u8]>, recorded: &BTreeSet<Box<[u8]>>) -> Result<(), UnreadReason> {
    let text = |id: &[u8]| id.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    match (found, recorded.first()) {
        // perf 3 to 5 pad short ids with zeros. All keep the first 20 bytes of longer ones.
        (Some(found), Some(first))
            if !recorded
                .iter()
                .any(|id| id.starts_with(found) || (id.len() == 20 && found.starts_with(id))) =>
        {
            Err(UnreadReason::OtherBuild { found: text(found), recorded: text(first) })
        }
        _ => Ok(()),
    }
}

/// The last part of a path.
fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_build_is_refused_and_an_unknown_one_is_not() {
        let recorded = |ids: &[&[u8]]| ids.iter().map(|id| (*id).into()).collect();
        let check =
            |found, ids: &[&[u8]]| check_build(found, &recorded(ids)).map_err(|it| it.to_string());
        assert_eq!(check(Some(&[1, 2]), &[&[1, 2]]), Ok(()));
        assert_eq!(check(Some(&[1, 2]), &[&[0, 9], &[1, 2, 0, 0]]), Ok(()));
        assert_eq!(check(Some(&[1, 2]), &[]), Ok(()));
        assert_eq!(check(None, &[&[1, 2]]), Ok(()));
        let refused = check(Some(&[1, 0xa]), &[&[1, 2]]).unwrap_err();
        assert!(refused.contains("(build id 010a, recorded 0102)"), "{refused}");
    }
}
