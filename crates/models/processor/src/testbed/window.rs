//! How long a measurement is.

use crate::program::{PacketPipeline, PacketProgram};

/// How long and how often a measurement simulates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimulatedWindow {
    /// Cycles in which packets are counted, at least 1; a quarter as many pass before.
    pub cycles: u64,
    /// The least number of different starts, 1 or more. If they differ, two and more become up
    /// to 16.
    pub starts: u32,
}

impl SimulatedWindow {
    /// The window for one instance each of `programs`: measurements agree within 0.5 %
    /// (docs/lab/simulator.md has the figures). That takes three times 100,000 cycles. The packets
    /// of [`PacketProgram::AhoCorasick`] are long and differ more. It takes three times 600,000
    /// cycles in all its instances together, and at least 200,000. Shorter windows need more starts
    /// and take longer in all.
    pub fn of<P: Copy + Into<PacketPipeline>>(programs: &[P]) -> Self {
        let uneven = programs
            .iter()
            .filter(|&&program| program.into().program == PacketProgram::AhoCorasick)
            .count() as u64;
        let cycles = CYCLES_OF_UNEVEN
            .checked_div(uneven)
            .map_or(CYCLES, |cycles| cycles.max(LEAST_OF_UNEVEN));
        Self { cycles, starts: 3 }
    }
}

const CYCLES: u64 = 100_000;
const CYCLES_OF_UNEVEN: u64 = 600_000;
const LEAST_OF_UNEVEN: u64 = 200_000;
