//! Probes and programs that can be probed, for the tests of this crate.

use crate::Attempt;
use pinwise_measure::{
    Effort, Measure, MeasureError, Measurement, Probe, Probed, Progress, RoleTime,
    SchedulingProfile, Setting, Testbed, ThreadCount, Unit, Workload,
};
use pinwise_topology::Machine;
use std::time::Duration;

/// A probe of `parameter` with only its rate known.
pub(crate) fn probe(parameter: u32, threads: u32, rate: f64) -> Probe {
    let progress = Progress { rate, error: None, measure: Measure::Metric };
    let cost = Duration::from_millis(100);
    Probe { parameter, threads, profile: SchedulingProfile::default(), progress, cost }
}

pub(crate) fn attempt(asked: u32, threads: u32, rate: f64) -> Attempt {
    Attempt { asked, probe: probe(asked, threads, rate) }
}

/// A program whose probes a function gives, from the parameter and the windows.
pub(crate) struct Bed<F> {
    machine: Machine,
    workload: Workload,
    unit: Unit,
    probe: F,
}

impl<F: FnMut(u32, f64) -> Result<Probe, MeasureError>> Bed<F> {
    pub(crate) fn new(probe: F) -> Self {
        let workload = Workload::new("program {n}", &[]);
        let machine = Machine::from_shape("1x4").unwrap();
        Self { machine, workload, unit: Unit::rate("1/s"), probe }
    }
}

impl<F: FnMut(u32, f64) -> Result<Probe, MeasureError>> Testbed for Bed<F> {
    fn machine(&self) -> &Machine {
        &self.machine
    }
    fn workload(&self) -> &Workload {
        &self.workload
    }
    fn unit(&self) -> &Unit {
        &self.unit
    }
    fn measure(&mut self, setting: &Setting, effort: Effort) -> Result<Measurement, MeasureError> {
        let Setting::Threads(ThreadCount { n: Some(n), placed: None }) = *setting else {
            panic!("{setting:?}")
        };
        let probe = (self.probe)(n, effort.windows)?;
        let roles: Vec<RoleTime> = Vec::new();
        let unit = self.unit.clone();
        let probed = Probed { probe, unit, watts: None, roles, others: None };
        Ok(probed.measurement(Duration::from_millis(100).mul_f64(effort.windows), None::<&()>))
    }
}
