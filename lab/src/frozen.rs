//! A simulated processor whose every assignment has one performance, so that truth and noise can be
//! separated.
//!
//! The performance of an assignment is that of one window from one start. All assignments and
//! repetitions share that start. So chance in the simulation becomes part of the truth, and noise
//! is added as on paper. Each assignment is simulated once, whichever campaign asks.

use pinwise_measure::{Effort, MeasureError, Measurement, Setting, Testbed, Time, Unit, Workload};
use pinwise_processor::SimulatedTestbed;
use pinwise_synthetic::Disturbance;
use pinwise_topology::Machine;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Different placements that stand for the unpinned program.
const UNPINNED: u64 = 8;

/// Contexts of a core of the UltraSPARC T2.
const CORE: u32 = 8;

/// What was simulated so far, by setting and, where it is unpinned, by placement.
type Known = Arc<Mutex<BTreeMap<(Setting, u64), f64>>>;

/// See the module. Clones share what they know.
#[derive(Clone)]
pub struct Frozen {
    bed: Box<SimulatedTestbed>,
    known: Known,
    /// What no assignment exceeds.
    cap: f64,
    /// Multiplies everything if every instance has its own core.
    needle: Option<f64>,
    disturbance: Disturbance,
    number: u64,
}

impl Frozen {
    /// Of a simulated processor.
    pub fn new(bed: SimulatedTestbed) -> Self {
        let (known, disturbance) = (Known::default(), Disturbance::default());
        Self { bed: Box::new(bed), known, cap: f64::INFINITY, needle: None, disturbance, number: 0 }
    }

    /// With a link that passes so much.
    pub fn capped(self, cap: f64) -> Self {
        Self { cap, ..self }
    }

    /// With an arrangement that is better by a factor than anything near it suggests.
    pub fn with_needle(self, factor: f64) -> Self {
        Self { needle: Some(factor), ..self }
    }

    /// With noise.
    pub fn disturbed(self, disturbance: Disturbance) -> Self {
        Self { disturbance, ..self }
    }

    /// What a setting does.
    ///
    /// # Errors
    /// The setting cannot be simulated.
    ///
    /// # Panics
    /// If another thread panicked while it looked here.
    pub fn truth(&self, setting: &Setting, start: u64) -> Result<f64, MeasureError> {
        let simulated = self.simulated(setting, start)?;
        let needle = match (self.needle, setting) {
            (Some(factor), Setting::Pinned(assignment))
                if self.every_instance_is_by_itself(assignment.leaves()) =>
            {
                factor
            }
            _ => 1.0,
        };
        Ok((needle * simulated).min(self.cap))
    }

    fn every_instance_is_by_itself(&self, leaves: &[u32]) -> bool {
        let threads = &self.workload().threads;
        let core = |thread: usize| leaves[thread] / CORE;
        let all = 0..threads.len();
        all.clone().all(|a| {
            all.clone()
                .all(|b| (core(a) == core(b)) == (threads[a].instance == threads[b].instance))
        })
    }

    fn simulated(&self, setting: &Setting, start: u64) -> Result<f64, MeasureError> {
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
        Ok(Measurement::new(performance, Duration::from_millis(1)))
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
