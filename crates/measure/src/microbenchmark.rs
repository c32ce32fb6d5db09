//! Sets of small programs that each stress one resource of the processor, run together on chosen
//! contexts.
//!
//! A [`Bench`] executes and times a layout of microbenchmarks, as a [`crate::Testbed`] executes and
//! times a workload. The host runs machine code on pinned threads and counts nanoseconds. A
//! processor model runs instruction streams and counts cycles. The caller decides, in the same way
//! for both, which layouts run, in which order, and what follows.

use crate::{Fame, MeasureError};
use pinwise_topology::{DomainKind, Machine};
use serde::{Deserialize, Serialize};

/// A program that stresses one resource by a long sequence of one operation. The loop around it
/// takes below 1 % of the time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Microbenchmark {
    /// `intadd`, `FPdiv`, `L2cache`, `mem`: unique on its bench.
    pub name: String,
    /// What it is to stress: `floating-point unit`, `L2 cache`.
    pub resource: String,
    /// The innermost kind of domain whose contexts share that resource ([`DomainKind::Pu`]: nobody
    /// shares it).
    pub level: DomainKind,
    /// Whether the resource takes an operation every cycle, so that latency leaves room for
    /// others.
    pub pipelined: bool,
}

/// What time per operation is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PaceUnit {
    /// Cycles per instruction: models, whose clock is known.
    #[serde(rename = "cycles/instruction")]
    Cycles,
    /// Nanoseconds per operation: hosts, whose clock changes.
    #[serde(rename = "ns/operation")]
    Nanoseconds,
}

impl PaceUnit {
    /// `cycles/instruction`, `ns/operation`
    pub fn name(self) -> &'static str {
        match self {
            Self::Cycles => "cycles/instruction",
            Self::Nanoseconds => "ns/operation",
        }
    }
}

/// One program on one context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Seat {
    /// Leaf of the [`pinwise_topology::SharingTree`] by structure over the machine's allowed
    /// contexts.
    pub leaf: u32,
    /// Index into [`Bench::benchmarks`].
    pub benchmark: usize,
}

/// How fast one program of a layout ran.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pace {
    /// Time per operation over all repetitions, in the bench's unit; finite and above 0.
    pub time: f64,
    /// How often it was repeated.
    pub repetitions: usize,
    /// Operations executed in all repetitions together.
    pub operations: u64,
    /// Whether [`Fame::enough`] was reached, even if before the last repetition. Otherwise the set
    /// was given up as unsteady.
    pub steady: bool,
    /// Share of the time in which the program had its context, at most 1. The rest went to other
    /// programs. Always 1 on a model.
    pub share: f64,
    /// Time per operation of the first program in the pauses of all others. It is the reference for
    /// its time next to them, with the same machine, memory and neighbours. `None` if the bench
    /// needs no such reference.
    pub alone: Option<f64>,
}

impl Pace {
    /// From the time per operation of every repetition, each of `operations` operations, on a
    /// separate context. `None` without repetitions.
    pub fn new(times: &[f64], operations: u64, fame: &Fame) -> Option<Self> {
        let repetitions = times.len();
        (repetitions > 0).then(|| Self {
            time: times.iter().sum::<f64>() / repetitions as f64,
            repetitions,
            operations: operations * repetitions as u64,
            steady: fame.enough(times),
            share: 1.0,
            alone: None,
        })
    }
}

/// How long a load takes, by the size of what is loaded from. It shows what of its caches a core
/// really gets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkingSets {
    /// The curve.
    pub curve: Vec<WorkingSet>,
    /// The caches for data around the core, the first level first.
    pub caches: Vec<EffectiveCache>,
}

/// A point of the curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkingSet {
    /// Bytes that are loaded from again and again.
    pub bytes: u64,
    /// Nanoseconds of a load that waits for the one before.
    pub ns: f64,
}

/// A cache as declared and as measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EffectiveCache {
    /// Its level.
    pub level: u8,
    /// Bytes, as the kernel reports them.
    pub declared: Option<u64>,
    /// The largest working set that it serves; none if no step of the curve belongs to it.
    pub effective: Option<WorkingSet>,
}

impl EffectiveCache {
    /// Whether the measured size is below half or above twice the declared one, or there is none.
    pub fn disagrees(&self) -> bool {
        match (self.declared, self.effective) {
            (Some(declared), Some(seen)) => seen.bytes < declared / 2 || seen.bytes / 2 > declared,
            (Some(_), None) => true,
            (None, _) => false,
        }
    }
}

/// Something that can run sets of microbenchmarks and time each program of a set.
pub trait Bench: Sync {
    /// The machine whose contexts the leaves of a layout are.
    fn machine(&self) -> &Machine;

    /// The programs there are.
    fn benchmarks(&self) -> &[Microbenchmark];

    /// What time is counted in.
    fn unit(&self) -> PaceUnit;

    /// How many layouts can run at the same time without disturbing each other. It is 1 if the
    /// machine itself is measured, and the number of processors if it is computed.
    fn at_once(&self) -> usize;

    /// What was found about the caches by looking; none if nobody looked, and on models, whose
    /// caches are as described.
    fn working_sets(&self) -> Option<&WorkingSets> {
        None
    }

    /// Runs the programs of `layout` together, each on its leaf, at most one on a leaf. All are
    /// repeated until [`Fame::over`] is true of every one. Returns the pace of each, in the order
    /// of the layout.
    ///
    /// `seed` decides what the layout leaves open and should not matter: start offsets, orders of
    /// addresses, fresh memory. The same layout with the same seed gives the same result on a
    /// model.
    fn run(&self, layout: &[Seat], fame: &Fame, seed: u64) -> Result<Vec<Pace>, MeasureError>;
}
