//! Programs: small streams of typed instructions, run for ever.
//!
//! A [`SimulatedProgram`] is a list of [`ProgramStep`]s. When it is through it begins again,
//! without cost. Loops that cost something say so with an [`ProgramStep::Alu`] and a
//! [`ProgramStep::Branch`]. A [`ProgramStep::Loop`] or [`ProgramStep::Poll`] opens a body that
//! [`ProgramStep::End`] closes. A [`ProgramSet`] is the programs that run together and the rings
//! they pass items over. Both are plain data. The processor decides the cost of the instructions.
//!
//! **Draws** of [`ProgramStep::Wait`] and [`ProgramStep::Loop`] are uniform and come in pairs. The
//! second lies as far above the middle of its range as the first lay below it. So the order of long
//! and short draws is random, but their sum hardly is. A short run then says more about a long one.
//!
//! ```
//! use pinwise_processor::SimulatedProgram;
//! use pinwise_processor::program::{Address, Side, ProgramStep};
//!
//! // A consumer waits for an item of ring 0 and reads it. It works 25 ± 6 blocks on the item. Then
//! // it hands the slot back.
//! let consumer = SimulatedProgram::new(vec![
//!     // A load; the body only runs while there is nothing.
//!     ProgramStep::Poll { ring: 0, side: Side::Consumer },
//!     ProgramStep::Alu(28),
//!     ProgramStep::Branch,
//!     ProgramStep::End,
//!     ProgramStep::Load(Address::Slot { ring: 0, side: Side::Consumer, offset: 0 }),
//!     ProgramStep::Loop { times: 25, spread: 6 },
//!     ProgramStep::Alu(16),
//!     ProgramStep::Branch,
//!     ProgramStep::End,
//!     ProgramStep::Publish { ring: 0, side: Side::Consumer },
//!     ProgramStep::Done, // one unit of work
//! ]);
//! assert!(consumer.is_ok());
//! ```

mod check;
mod packet;
pub mod published_benchmark;
mod ring;

pub use check::{ProgramSetError, SimulatedProgramError};
pub use packet::{PacketPipeline, PacketProgram};
pub use published_benchmark::PublishedBenchmark;
pub use ring::{PacketRing, Side};

/// A step of a program. Those that are instructions take a fetch slot of the pipe; the others
/// ([`ProgramStep::Loop`], [`ProgramStep::End`], [`ProgramStep::Done`]) cost nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProgramStep {
    /// This many integer arithmetic or logical instructions, at least one.
    Alu(u32),
    /// A taken branch.
    Branch,
    /// An integer multiplication.
    Multiply,
    /// An integer division whose operands make it take this many cycles.
    Divide(u32),
    /// A floating-point addition or multiplication.
    FpAdd,
    /// A floating-point division.
    FpDivide,
    /// A load; the strand waits for the value.
    Load(Address),
    /// A store; the strand goes on unless its store buffer is full.
    Store(Address),
    /// An access to an interface outside the caches: the strand waits `mean` ± `spread` cycles,
    /// uniform, and holds no unit.
    Wait {
        /// Middle of the range.
        mean: u32,
        /// Half of its width, below `mean`.
        spread: u32,
    },
    /// The steps up to the matching [`ProgramStep::End`], `times` ± `spread` times (uniform, drawn
    /// on entry), possibly none.
    Loop {
        /// Middle of the range.
        times: u32,
        /// Half of its width, at most `times`.
        spread: u32,
    },
    /// Waits for its turn on a ring: loads the index that the other side writes. While the ring is
    /// full (producer) or empty (consumer), it repeats. It runs the steps up to the matching
    /// [`ProgramStep::End`] and loads again. The body is what a round of polling costs.
    Poll {
        /// Index into [`ProgramSet::rings`].
        ring: usize,
        /// Which end of the ring this program is.
        side: Side,
    },
    /// Ends the innermost [`ProgramStep::Loop`] or [`ProgramStep::Poll`].
    End,
    /// Passes the slot on: a store to the own index of the ring. The item is visible to the other
    /// side from this cycle on.
    Publish {
        /// Index into [`ProgramSet::rings`].
        ring: usize,
        /// Which end of the ring this program is.
        side: Side,
    },
    /// One unit of work is done when the instruction before has been fetched.
    Done,
}

/// What a load or store refers to. Addresses are physical, below 64 GiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// Always the same.
    Fixed(u64),
    /// `base`, `base + stride`, …, and from the start again after `length` bytes. Each such step
    /// has its own position.
    Walk {
        /// First address.
        base: u64,
        /// Bytes from one access to the next, a divisor of `length`.
        stride: u64,
        /// Bytes after which the walk begins again.
        length: u64,
    },
    /// A uniformly random multiple of `grain` bytes within `length` bytes from `base`.
    Random {
        /// First address.
        base: u64,
        /// Size of the table in bytes, a multiple of `grain`.
        length: u64,
        /// Distance of the entries in bytes.
        grain: u64,
    },
    /// The slot of a ring that it is this side's turn to fill or to read.
    Slot {
        /// Index into [`ProgramSet::rings`].
        ring: usize,
        /// Which end of the ring this program is.
        side: Side,
        /// Bytes from the beginning of the slot, below [`PacketRing::slot_bytes`].
        offset: u64,
    },
}

/// Steps that were checked to make sense: loops are closed, and every pass fetches an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimulatedProgram {
    steps: Vec<ProgramStep>,
}

impl SimulatedProgram {
    /// A program of these steps. Errors: see [`SimulatedProgramError`].
    pub fn new(steps: Vec<ProgramStep>) -> Result<Self, SimulatedProgramError> {
        check::steps(&steps)?;
        Ok(Self { steps })
    }

    /// Its steps.
    pub fn steps(&self) -> &[ProgramStep] {
        &self.steps
    }
}

/// Programs that run together and the rings between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramSet {
    /// One program per thread.
    pub threads: Vec<SimulatedProgram>,
    /// The rings that the programs name by index.
    pub rings: Vec<PacketRing>,
    /// Memory that has been in use for long. The part that fits the second-level cache beside the
    /// rest is there from the beginning.
    pub resident: Vec<Region>,
}

/// A range of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// The first.
    pub base: u64,
    /// How many bytes, at least one.
    pub length: u64,
}

impl ProgramSet {
    /// A job of threads that pass nothing to each other.
    pub fn independent(threads: Vec<SimulatedProgram>) -> Self {
        Self { threads, ..Self::default() }
    }
}
