//! A simulated processor whose every assignment has one performance, so that truth can be told from noise.
//!
//! What an assignment does is what one window from one start does, the same for all assignments and at every repetition: chance in the
//! simulation becomes part of the truth, and noise is added as on paper. Each assignment is simulated once, whichever campaign asks.

use pinwise_simulator::SimulatedTestbed;
use pinwise_testbed::{Disturbance, Effort, MeasureError, Measurement, Setting, Testbed, Time, Unit, Workload};
use pinwise_topology::Machine;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Different placements that stand for the unpinned program.
const UNPINNED: u64 = 8;

/// What was simulated so far, by setting and, where it is unpinned, by placement.
type Known = Arc<Mutex<BTreeMap<(Setting, u64), f64>>>;

/// See the module. Clones share what they know.
#[derive(Clone)]
pub(crate) struct Frozen {
    bed: Box<SimulatedTestbed>,
    known: Known,
    disturbance: Disturbance,
    number: u64,
}

impl Frozen {
    pub(crate) fn new(bed: SimulatedTestbed) -> Self {
        Self { bed: Box::new(bed), known: Known::default(), disturbance: Disturbance::default(), number: 0 }
    }

    pub(crate) fn disturbed(self, disturbance: Disturbance) -> Self {
        Self { disturbance, ..self }
    }

    /// What a setting does.
    pub(crate) fn truth(&self, setting: &Setting, start: u64) -> Result<f64, MeasureError> {
        let key = (setting.clone(), start);
        // A campaign that panicked ends the study.
        let known = || self.known.lock().expect("no campaign panics");
        if let Some(value) = known().get(&key) {
            return Ok(*value);
        }
        let mut bed = self.bed.as_ref().clone();
        bed.seek(start);
        let value = bed.measure(setting, Effort::default())?.performance;
        known().insert(key, value);
        Ok(value)
    }

    /// The best of all assignments simulated so far, and how many these are.
    pub(crate) fn best(&self) -> (f64, usize) {
        let known = self.known.lock().expect("no campaign panics");
        let pinned = known.iter().filter(|((setting, _), _)| matches!(setting, Setting::Pinned(_)));
        pinned.fold((0.0, 0), |(best, count), (_, value)| (value.max(best), count + 1))
    }
}

impl Testbed for Frozen {
    fn machine(&self) -> &Machine {
        self.bed.machine()
    }

    fn workload(&self) -> &Workload {
        self.bed.workload()
    }

    fn unit(&self) -> &Unit {
        self.bed.unit()
    }

    fn measure(&mut self, setting: &Setting, effort: Effort) -> Result<Measurement, MeasureError> {
        let number = self.number;
        self.number += 1;
        let start = if *setting == Setting::Unpinned { number % UNPINNED } else { 0 };
        let truth = self.truth(setting, start)?;
        let mut random = self.disturbance.chance(number)?;
        let performance = self.disturbance.disturbed(truth, number, effort, &mut random);
        Ok(Measurement { performance, duration: Duration::from_millis(1), spread: None })
    }

    fn profiles(&self) -> bool {
        true
    }

    fn time(&self) -> Time {
        Time::Virtual { width: 1 }
    }

    fn seek(&mut self, number: u64) {
        self.number = number;
    }
}
