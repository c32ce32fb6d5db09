//! A microbenchmark's program with its memory, and how much of it makes a repetition.

use super::cpu_time::timed;
use super::memory_sweep::MemorySweep;
use super::pointer_chase::PointerChain;
use super::random_loads::RandomLoads;
use super::{InstructionKind, kernel};
use pinwise_topology::Random;
use std::io;
use std::time::Duration;

/// CPU time of one repetition when nothing disturbs. It is long against the reading of the clock
/// (below 1 us), and short against a time slice.
pub(super) const REPETITION: Duration = Duration::from_millis(4);

/// What a thread executes, and over how many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BenchmarkProgram {
    pub(super) kind: InstructionKind,
    pub(super) footprint: usize,
    /// Bytes that the cache in question holds for sure, for programs that look how much it holds
    /// beyond.
    pub(super) small: usize,
    /// Whether its memory is to be in its cache before anything is timed.
    pub(super) warm: bool,
    /// Whether it goes beyond the second level, where what others leave of a cache takes its time
    /// to show.
    pub(super) far: bool,
}

/// A program with its memory.
pub(super) enum LoadedProgram {
    Compute(InstructionKind),
    Chain(PointerChain, bool),
    Stream(MemorySweep),
    Store(MemorySweep),
    Follow(RandomLoads, usize),
    Scatter(RandomLoads),
}

impl LoadedProgram {
    pub(super) fn new(
        program: BenchmarkProgram,
        line: usize,
        random: &mut Random,
    ) -> io::Result<Self> {
        let BenchmarkProgram { footprint, .. } = program;
        Ok(match program.kind {
            InstructionKind::Chase => {
                Self::Chain(PointerChain::new(footprint, line, random)?, program.warm)
            }
            InstructionKind::Stream => Self::Stream(MemorySweep::new(footprint)?),
            InstructionKind::Store => Self::Store(MemorySweep::new(footprint)?),
            InstructionKind::Follow => {
                Self::Follow(RandomLoads::new(footprint, line, random)?, program.small)
            }
            InstructionKind::Scatter => Self::Scatter(RandomLoads::new(footprint, line, random)?),
            kind => Self::Compute(kind),
        })
    }

    /// Finds out how much of its memory it is to use, if that depends on what the caches hold. It
    /// runs alone on the machine.
    pub(super) fn fit(&mut self) {
        if let Self::Follow(loads, small) = self {
            loads.fit(*small);
        }
    }

    /// Brings what belongs into a cache there: the chain twice from beginning to end.
    pub(super) fn warm_up(&mut self) {
        if let Self::Chain(chain, true) = self {
            let passes =
                2 * (chain.length as u64).div_ceil(kernel::operations(InstructionKind::Chase));
            chain.follow(passes);
        }
    }

    pub(super) fn run(&mut self, passes: u64) {
        match self {
            Self::Compute(kind) => kernel::compute(*kind, passes),
            Self::Chain(chain, _) => chain.follow(passes),
            Self::Stream(sweep) => sweep.read(passes),
            Self::Store(sweep) => sweep.write(passes),
            Self::Follow(loads, _) => loads.follow(passes),
            Self::Scatter(loads) => loads.scatter(passes),
        }
    }

    /// Passes that take about [`REPETITION`].
    pub(super) fn calibrate(&mut self) -> u64 {
        let mut passes = 1;
        loop {
            let time = timed(|| self.run(passes));
            if time >= REPETITION / 8 {
                let more = REPETITION.as_secs_f64() / time.as_secs_f64();
                return ((passes as f64 * more).round() as u64).max(1);
            }
            passes *= 2;
        }
    }
}
