//! A campaign on several nodes, to see what batches cost.
//!
//! A search sees its records in their own order, however many nodes there are. So its certificate
//! rests on the same rule. What changes is the cost: nodes measure what the search foresees, and
//! some of that is never wanted.

use crate::workloads::Bed;
use pinwise_measure::{
    Effort, MeasureError, Measurement, NodeResult, Setting, Testbed, Time, Unit, Workload,
};
use pinwise_topology::{Machine, Random};
use std::collections::VecDeque;

/// How much longer or shorter a measurement takes on a node, as a share: nodes do not keep step.
const JITTER: f64 = 0.1;

/// Nodes that are alike. Each measures one trial at a time.
pub(crate) struct Nodes {
    bed: Bed,
    count: usize,
    /// When each trial in flight ends, in windows.
    in_flight: Vec<(f64, (Setting, Effort))>,
    /// In windows since the begin.
    pub(crate) now: f64,
    /// Measurements so far.
    pub(crate) made: u64,
    random: Random,
}

impl Nodes {
    pub(crate) fn new(bed: Bed, count: usize, seed: u64) -> Self {
        let (in_flight, random) = (Vec::new(), Random::new(seed));
        Self { bed, count, in_flight, now: 0.0, made: 0, random }
    }

    /// The workload without what the nodes add.
    pub(crate) fn bed(&self) -> &Bed {
        &self.bed
    }
}

impl Testbed for Nodes {
    fn machine(&self) -> &Machine {
        self.bed.machine()
    }

    fn workload(&self) -> &Workload {
        self.bed.workload()
    }

    fn unit(&self) -> &Unit {
        self.bed.unit()
    }

    fn profiles(&self) -> bool {
        self.bed.profiles()
    }

    fn time(&self) -> Time {
        Time::Real
    }

    fn nodes(&self) -> Option<usize> {
        Some(self.count)
    }

    /// Noise follows the number of the measurement, not that of the record.
    fn measure(&mut self, setting: &Setting, effort: Effort) -> Result<Measurement, MeasureError> {
        self.bed.seek(self.made);
        self.made += 1;
        self.bed.measure(setting, effort)
    }

    fn measure_first(
        &mut self,
        trials: &[(Setting, Effort)],
        take: &mut dyn FnMut(NodeResult),
    ) -> Result<(), MeasureError> {
        let Some(first) = trials.first() else { return Ok(()) };
        let mut flying: Vec<_> = self.in_flight.iter().map(|(_, trial)| trial.clone()).collect();
        let mut waiting: VecDeque<_> = trials.iter().cloned().collect();
        waiting.retain(|trial| match flying.iter().position(|flying| flying == trial) {
            Some(place) => {
                flying.swap_remove(place);
                false
            }
            None => true,
        });
        loop {
            while self.in_flight.len() < self.count
                && let Some(trial) = waiting.pop_front()
            {
                let pace = 1.0 + JITTER * (2.0 * self.random.unit() - 1.0);
                self.in_flight.push((self.now + trial.1.windows * pace, trial));
            }
            let ends = self.in_flight.iter().enumerate();
            let Some((next, _)) = ends.min_by(|(_, one), (_, other)| one.0.total_cmp(&other.0))
            else {
                return Ok(());
            };
            let (end, (setting, effort)) = self.in_flight.swap_remove(next);
            self.now = end;
            let outcome = self.measure(&setting, effort);
            let came = (&setting, effort) == (&first.0, first.1);
            take(NodeResult { node: String::new(), setting, effort, outcome });
            if came {
                return Ok(());
            }
        }
    }
}
