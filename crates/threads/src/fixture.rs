//! Probes and programs that can be probed, for the tests of this crate.

use crate::Attempt;
use pinwise_measure::{
    Effort, Measure, MeasureError, Measurement, OtherLoad, Probe, Probed, Progress, RoleTime,
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
    Attempt { asked, probe: probe(asked, threads, rate), lost: None, below_floor: false }
}

/// A program whose probes a function gives, from the parameter and the windows.
pub(crate) struct Bed<F> {
    machine: Machine,
    workload: Workload,
    unit: Unit,
    probe: F,
    /// What each probe loses to others, one after the other.
    lost: Vec<f64>,
    /// The power in each probe.
    watts: Vec<f64>,
    /// Rates below this are below the floor.
    floor: Option<f64>,
}

impl<F: FnMut(u32, f64) -> Result<Probe, MeasureError>> Bed<F> {
    pub(crate) fn new(probe: F) -> Self {
        let workload = Workload::new("program {n}", &[]);
        let machine = Machine::from_shape("1x4").unwrap();
        Self {
            machine,
            workload,
            unit: Unit::rate("1/s"),
            probe,
            lost: Vec::new(),
            watts: Vec::new(),
            floor: None,
        }
    }

    /// With a floor under its rates.
    pub(crate) fn with_floor(self, floor: f64) -> Self {
        Self { floor: Some(floor), ..self }
    }

    /// With this power in each probe, from the first.
    pub(crate) fn drawing(mut self, watts: &[f64]) -> Self {
        self.watts = watts.iter().rev().copied().collect();
        self
    }

    /// Beside others that take this share of the four contexts in each probe, from it.
    pub(crate) fn beside(mut self, lost: &[f64]) -> Self {
        self.lost = lost.iter().rev().copied().collect();
        self
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
        let Setting::Threads(ThreadCount { n: Some(n), placed: None, .. }) = *setting else {
            panic!("{setting:?}")
        };
        let probe = (self.probe)(n, effort.windows)?;
        let others = self.lost.pop().map(|lost| OtherLoad::new(lost, 1.0));
        let waits = RoleTime {
            role: "worker".into(),
            threads: 4,
            ran: 0.0,
            waited: 1.0,
            locked: None,
            slept: 0.0,
            voluntary_rate: 0.0,
            involuntary_rate: 0.0,
            migration_rate: None,
            critical: false,
        };
        let (unit, roles) = (self.unit.clone(), vec![waits]);
        let below_floor = self.floor.is_some_and(|floor| probe.progress.rate < floor);
        let watts = self.watts.pop();
        let unwatched = None;
        let probed = Probed { probe, unit, watts, roles, others, unwatched, below_floor };
        Ok(probed.measurement(Duration::from_millis(100).mul_f64(effort.windows), None::<&()>))
    }
}
