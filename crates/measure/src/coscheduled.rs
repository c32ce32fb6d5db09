//! Threads that are moved while their programs run: their observations, and the results of a
//! period.

use crate::{CounterQuality, EventCounts};
use serde::{Deserialize, Serialize};

/// How the threads of running programs are moved between contexts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThreadMoves {
    /// Counts decide, quantum after quantum.
    Counted,
    /// Dealt once over all contexts, equally busy, by this seed. Threads that begin later go where
    /// least is to do.
    Dealt(u64),
    /// Dealt over one context of each core, so that no sibling is busy. Each thread then shows its
    /// speed alone, while it runs.
    Apart,
}

/// What a period showed, stored with its record.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CoscheduledPeriod {
    /// The programs, by name. Processes of one name are one program here.
    pub programs: Vec<ProgramProgress>,
    /// The time over which the programs were seen, in seconds, without the beginning of the period.
    pub seconds: f64,
    /// The whole period, in seconds.
    pub whole: f64,
    /// Quanta in the whole period.
    pub quanta: u64,
    /// Threads that were moved, each time counted.
    pub moves: u64,
    /// Threads that began.
    pub begun: u64,
    /// Threads that ended.
    pub ended: u64,
    /// CPU time of pinwise in the whole period, in seconds.
    pub cost: f64,
    /// How far the counts can be trusted, over all quanta since pinwise began. `None`: nothing was
    /// counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counters: Option<CounterQuality>,
}

/// What a program did in a period.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProgramProgress {
    /// The name of its processes.
    pub name: String,
    /// The largest number of its processes at once.
    pub processes: u64,
    /// CPU time of its threads, per second.
    pub ran: f64,
    /// The time in which its threads waited for a CPU, per second.
    pub waited: f64,
    /// Instructions, per second. `None`: they were not counted.
    pub instructions: Option<f64>,
    /// The contexts to which its busy threads were kept in the end, in ascending order.
    #[serde(default)]
    pub contexts: Vec<usize>,
}

impl ProgramProgress {
    /// The share of the CPU time that it wanted and got. `None` if it wanted none.
    pub fn got(&self) -> Option<f64> {
        let wanted = self.ran + self.waited;
        (wanted > 0.0).then(|| self.ran / wanted)
    }
}

/// A thread as a co-scheduler sees it after a quantum.
#[derive(Clone, Debug, PartialEq)]
pub struct ObservedThread {
    /// What tells it from others, also later.
    pub id: u64,
    /// Its program. Observations of a program hold for all of its threads.
    pub program: usize,
    /// The contexts on which it may run, in ascending order.
    pub allowed: Vec<usize>,
    /// The context to which it is kept, or on which it ran. `None`: it is new.
    pub context: Option<usize>,
    /// The share of the quantum in which it ran or waited to run, 0 to 1.
    pub busy: f64,
    /// The counts while it ran in the quantum. `None`: it is new, or nothing was counted.
    pub counts: Option<EventCounts>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_got_what_it_ran_of_what_it_wanted() {
        let of = |ran, waited| ProgramProgress {
            name: "a".into(),
            processes: 1,
            ran,
            waited,
            instructions: None,
            contexts: Vec::new(),
        };
        assert_eq!(of(0.5, 1.5).got(), Some(0.25));
        assert_eq!(of(0.0, 0.0).got(), None);
    }
}
