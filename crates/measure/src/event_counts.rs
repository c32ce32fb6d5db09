//! What counters see of a thread or a program.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// An event that a counter of the processor or of the kernel counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CounterEvent {
    /// Cycles of the processor while the thread ran.
    Cycles,
    /// Instructions that retired; on a model, micro-operations.
    Instructions,
    /// Branches that retired.
    Branches,
    /// Branches that retired and had been mispredicted.
    BranchMisses,
    /// Misses of what feeds the front end: the trace cache, or else the L1 instruction cache or the
    /// instruction TLB.
    FrontEndMisses,
    /// Loads and stores that miss the first-level data cache.
    L1DataMisses,
    /// Misses of the second-level cache.
    L2Misses,
    /// Misses of the last-level cache.
    LlcMisses,
    /// Floating point operations that retired.
    FpOperations,
    /// Nanoseconds on a CPU, counted by the kernel.
    TaskClock,
    /// Switches to another thread, counted by the kernel.
    ContextSwitches,
    /// Moves to another CPU, counted by the kernel.
    Migrations,
    /// Page faults, counted by the kernel.
    PageFaults,
}

/// The counts of one interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EventCounts {
    /// The length of the interval, in seconds; 0 if a recorded file does not tell it.
    pub seconds: f64,
    /// The count of each event. If counters took turns, it is scaled to the whole interval. An
    /// event is left out if no counter had time for it.
    pub counts: BTreeMap<CounterEvent, f64>,
    /// The smallest share of the CPU time in which one of these events was counted. It is 1 if no
    /// counters took turns.
    pub counted: f64,
}

impl EventCounts {
    /// The count of an event, if it was counted.
    pub fn get(&self, event: CounterEvent) -> Option<f64> {
        self.counts.get(&event).copied()
    }

    /// An event per cycle. `None` if one of both was not counted, or no cycle passed.
    pub fn per_cycle(&self, event: CounterEvent) -> Option<f64> {
        let cycles = self.get(CounterEvent::Cycles).filter(|&cycles| cycles > 0.0)?;
        Some(self.get(event)? / cycles)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_per_cycle_is_made_up() {
        let counts = BTreeMap::from([(CounterEvent::Cycles, 200.0), (CounterEvent::L2Misses, 3.0)]);
        let mut interval = EventCounts { seconds: 0.1, counts, counted: 1.0 };
        assert_eq!(interval.per_cycle(CounterEvent::L2Misses), Some(0.015));
        assert_eq!(interval.per_cycle(CounterEvent::Branches), None);
        interval.counts.insert(CounterEvent::Cycles, 0.0);
        assert_eq!(interval.per_cycle(CounterEvent::L2Misses), None);
    }
}
