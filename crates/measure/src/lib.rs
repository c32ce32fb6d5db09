#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod accompanied;
mod coscheduled;
mod counter_quality;
mod disturbances;
mod event_counts;
mod fame;
mod flat;
mod interrupt;
mod measurement;
mod memory;
mod microbenchmark;
mod node_result;
mod note;
mod probe;
mod role_time;
mod workload;

pub use accompanied::AccompaniedRuns;
pub use coscheduled::{CoscheduledPeriod, ObservedThread, ProgramProgress, ThreadMoves};
pub use counter_quality::{CounterQuality, QuantumAutocorrelation};
pub use disturbances::{Disturbances, OtherLoad};
pub use event_counts::{CounterEvent, EventCounts};
pub use fame::Fame;
pub use flat::by_value;
pub use interrupt::Interrupt;
pub use measurement::{Detail, MeasureError, Measurement, Retry, SIZES, Unit};
pub use memory::{MemoryPolicy, MemoryUse, NodePages};
pub use microbenchmark::{
    Bench, EffectiveCache, Microbenchmark, Pace, PaceUnit, Seat, WorkingSet, WorkingSets,
};
pub use node_result::{NodeResult, NodeScale, to_begin};
pub use note::{
    LeftAlone, Pinner, ProgramNote, optional_value_or_text, value_or_text, values_or_text,
};
pub use probe::{
    JUMP, Measure, Probe, Probed, Progress, SchedulingProfile, jumped, starved, usual,
};
pub use role_time::{RoleTime, mark_critical};
pub use workload::{MOST_THREADS, PinnedInstance, Thread, Workload};

use pinwise_topology::{Assignment, CpuId, Machine, Policy};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What is run while performance is measured, and where.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Setting {
    /// Unpinned, as the operating system places them: the baseline.
    Unpinned,
    /// Every thread of the workload pinned: leaf indices of the testbed's sharing tree.
    Pinned(Assignment),
    /// Only these instances of the workload, pinned, with the rest of the machine free. Performance
    /// is that of the first instance, which the others disturb. Predictors are profiled with it:
    /// see [`Testbed::profiles`]. A testbed of ready instances counts all of them.
    Profile(Vec<PinnedInstance>),
    /// The program run with another number of threads.
    Threads(ThreadCount),
    /// No workload: the latency between two contexts, written from the first.
    Pair(CpuId, CpuId),
    /// No workload: microbenchmarks, each alone on its context.
    Benchmarks(Seating),
    /// No workload: what a context gets of its caches.
    Caches(CpuId),
    /// Running programs whose threads are moved between contexts that share a level.
    Coscheduled(ThreadMoves),
}

/// A program with a number of threads, and where they run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ThreadCount {
    /// n: what the program is started with, or set to while it runs. `None`: its own default.
    pub n: Option<u32>,
    /// Where the threads that this makes run. `None`: unpinned.
    pub placed: Option<Placed>,
    /// Where its memory lies meanwhile.
    #[serde(default, skip_serializing_if = "MemoryPolicy::is_leave")]
    pub memory: MemoryPolicy,
}

impl ThreadCount {
    /// A number of threads that the operating system places.
    pub fn unpinned(n: Option<u32>) -> Self {
        Self { n, placed: None, memory: MemoryPolicy::Leave }
    }
}

/// Where a number of threads runs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Placed {
    /// The placed threads have this assignment.
    At(Assignment),
    /// By a policy, once the number of threads is known.
    By(Policy),
}

/// Microbenchmarks that run together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Seating {
    /// The benchmarks and their contexts. The first is the one that is measured.
    pub seats: Vec<Seat>,
    /// The seed of start offsets and memory.
    pub seed: u64,
}

/// How long to measure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Effort {
    /// Multiple of the testbed's ordinary window: 1 while searching, more where a small difference
    /// matters.
    pub windows: f64,
}

impl Default for Effort {
    fn default() -> Self {
        Self { windows: 1.0 }
    }
}

/// What time measurements take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Time {
    /// Real time: two measurements at once would disturb each other. A clock says how long each
    /// took.
    Real,
    /// The testbed's own: measurements disturb nothing, and each takes its
    /// [`Measurement::duration`].
    Virtual {
        /// How many to hand [`Testbed::measure_all`] at once so that no processor stays idle; at
        /// least 1.
        width: usize,
    },
}

/// Something that can run a workload in a setting and say how fast it was.
pub trait Testbed {
    /// The machine assignments refer to. Leaf indices of a [`Setting::Pinned`] are those of
    /// [`pinwise_topology::SharingTree`] over this machine's allowed contexts.
    fn machine(&self) -> &Machine;

    /// The threads to place, in the order of the assignment's threads.
    fn workload(&self) -> &Workload;

    /// What performance is counted in.
    fn unit(&self) -> &Unit;

    /// Applies `setting`, lets it settle, measures.
    fn measure(&mut self, setting: &Setting, effort: Effort) -> Result<Measurement, MeasureError>;

    /// Whether it can measure a [`Setting::Profile`]: run any number of copies of each instance,
    /// and measure one of them.
    fn profiles(&self) -> bool {
        false
    }

    /// About how long it takes to start and measure one instance. `None`: it is not started for
    /// that, and takes a window. Only asked where [`Self::profiles`].
    fn restart(&self) -> Option<Duration> {
        None
    }

    /// What time measurements take.
    fn time(&self) -> Time {
        Time::Real
    }

    /// What has disturbed the measurements so far.
    fn disturbances(&self) -> Disturbances {
        Disturbances::default()
    }

    /// Says which number in its campaign, from 0, the next measurement has. A testbed that draws
    /// random numbers seeds them with this number. Then a campaign resumed after a kill goes on as
    /// it would have. A real program ignores it.
    fn seek(&mut self, _number: u64) {}

    /// The results of measuring each of `trials` one after the other, bit for bit. In virtual time,
    /// several run at once.
    fn measure_all(
        &mut self,
        trials: &[(Setting, Effort)],
    ) -> Vec<Result<Measurement, MeasureError>> {
        trials.iter().map(|(setting, effort)| self.measure(setting, *effort)).collect()
    }

    /// How many nodes measure at once in real time: one trial at a time on each. `None`: this
    /// machine does, and [`Self::measure_first`] cannot be used.
    fn nodes(&self) -> Option<usize> {
        None
    }

    /// By which share the performance of its nodes may differ, and so that of readings that are
    /// compared with each other. 0: one machine makes all of them.
    fn node_spread(&self) -> f64 {
        0.0
    }

    /// Measures trials on several nodes until the first has a result. Each of the `rounds` goes to
    /// one node, which measures its trials one after the other. Nodes that are free meanwhile begin
    /// the others. If a `node` is named that is not lost, it measures the first round. Then only
    /// its result ends the wait. `take` gets each result when it comes, also of trials that an
    /// earlier call had begun.
    ///
    /// # Errors
    /// No node is left, or the run was asked to stop.
    fn measure_first(
        &mut self,
        rounds: &[Vec<(Setting, Effort)>],
        _node: Option<&str>,
        _take: &mut dyn FnMut(NodeResult),
    ) -> Result<(), MeasureError> {
        match rounds.iter().flatten().next() {
            Some((setting, _)) => Err(MeasureError::unsupported(&self.workload().name, setting)),
            None => Ok(()),
        }
    }
}
