//! The eight microbenchmarks of V. Čakarević et al., MICRO 2009, section 3.2 and Table 2.
//!
//! Each is a long sequence of one instruction, then the decrement of a counter and a taken branch
//! back. With 1,000 instructions to a round, the loop is less than 1 % of the time, as in the
//! paper. Those that load walk through an array by the pointers in it, a cache line at a time.

use super::{Address, ProgramStep, Region, SimulatedProgram};

/// A microbenchmark: stresses one resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PublishedBenchmark {
    /// Integer additions.
    IntAdd,
    /// Integer multiplications.
    IntMul,
    /// Integer divisions of 19, 20 and 19 cycles, repeated. The paper's operands are not known; the
    /// latency depends on them.
    IntDiv,
    /// Floating-point additions.
    FpAdd,
    /// Floating-point divisions.
    FpDiv,
    /// Loads from an array of 2 KiB, every 16 bytes: always in the first-level cache.
    Dcache,
    /// Loads from an array of 1.5 MiB, every 64 bytes: never in the first level, always in the
    /// second.
    L2cache,
    /// Loads from an array of 6 MiB, every 64 bytes: hardly ever in the second level.
    Mem,
}

/// Instructions between two branches.
const ROUND: u32 = 1000;
/// Latencies of the divisions of `intdiv`, repeating.
const DIVISIONS: [u32; 3] = [19, 20, 19];
/// Distance of the arrays of two instances. It exceeds the largest array and is skewed by one line
/// of the second level. So equal instances do not use the same sets at the same time.
const INSTANCE: u64 = (8 << 20) + 64;

impl PublishedBenchmark {
    /// All of them, in the order of Table 2.
    pub const ALL: [Self; 8] = [
        Self::IntAdd,
        Self::IntMul,
        Self::IntDiv,
        Self::FpAdd,
        Self::FpDiv,
        Self::Dcache,
        Self::L2cache,
        Self::Mem,
    ];

    /// Its name in the paper.
    pub fn name(self) -> &'static str {
        match self {
            Self::IntAdd => "intadd",
            Self::IntMul => "intmul",
            Self::IntDiv => "intdiv",
            Self::FpAdd => "FPadd",
            Self::FpDiv => "FPdiv",
            Self::Dcache => "Dcache",
            Self::L2cache => "L2cache",
            Self::Mem => "mem",
        }
    }

    /// The one with this name in the paper.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|benchmark| benchmark.name() == name)
    }

    /// Bytes of its array; 0 if it has none.
    pub fn array(self) -> u64 {
        match self {
            Self::Dcache => 2 << 10,
            Self::L2cache => 3 << 19,
            Self::Mem => 6 << 20,
            _ => 0,
        }
    }

    /// The array of one instance; empty if it has none.
    pub fn region(self, instance: u32) -> Region {
        Region { base: u64::from(instance) * INSTANCE, length: self.array() }
    }

    /// The program of one instance. Instances with different numbers have arrays of their own.
    pub fn program(self, instance: u32) -> SimulatedProgram {
        let Region { base, length } = self.region(instance);
        let walk = |stride| ProgramStep::Load(Address::Walk { base, stride, length });
        let body = match self {
            Self::IntAdd => vec![ProgramStep::Alu(ROUND)],
            Self::IntMul => unrolled(&[ProgramStep::Multiply]),
            Self::IntDiv => unrolled(&DIVISIONS.map(ProgramStep::Divide)),
            Self::FpAdd => unrolled(&[ProgramStep::FpAdd]),
            Self::FpDiv => unrolled(&[ProgramStep::FpDivide]),
            Self::Dcache => unrolled(&[walk(16)]),
            Self::L2cache | Self::Mem => unrolled(&[walk(64)]),
        };
        let steps =
            [body, vec![ProgramStep::Alu(1), ProgramStep::Branch, ProgramStep::Done]].concat();
        SimulatedProgram::new(steps).expect("each microbenchmark is a valid program")
    }
}

/// `steps` again and again without a branch, until a round is full.
fn unrolled(steps: &[ProgramStep]) -> Vec<ProgramStep> {
    let times = ROUND / steps.len() as u32;
    [&[ProgramStep::Loop { times, spread: 0 }], steps, &[ProgramStep::End]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_microbenchmark_is_a_program_found_by_its_name() {
        for benchmark in PublishedBenchmark::ALL {
            assert!(benchmark.program(0).steps().len() >= 4);
            assert_eq!(PublishedBenchmark::named(benchmark.name()), Some(benchmark));
            assert!(benchmark.array() < INSTANCE);
        }
        assert_eq!(PublishedBenchmark::named("intsub"), None);
    }
}
