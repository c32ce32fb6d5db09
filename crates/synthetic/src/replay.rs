//! A population of assignments whose performances are known: recorded, computed or made up.

use pinwise_measure::{
    Effort, MeasureError, Measurement, Retry, Setting, Testbed, Time, Unit, Workload,
};
use pinwise_topology::{Assignment, Machine, Random};
use std::collections::BTreeMap;
use std::time::Duration;

/// How measurements differ from the truth.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Disturbance {
    /// Standard deviation of a window of ordinary length, relative to the truth; normal.
    pub noise: f64,
    /// Relative change of everything per measurement made.
    pub drift: f64,
    /// The share of measurements that fail and may be repeated ([`Retry::Same`]).
    pub misses: f64,
    /// Of all chance.
    pub seed: u64,
}

impl Disturbance {
    /// All chance of measurement `number`, whatever was measured before.
    ///
    /// # Errors
    /// Where it is missed.
    pub fn chance(&self, number: u64) -> Result<Random, MeasureError> {
        let mut random =
            Random::new(self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(number));
        if random.unit() < self.misses {
            return Err(MeasureError::new(Retry::Same, "a window was missed"));
        }
        Ok(random)
    }

    /// What measurement `number` of `truth` gives.
    pub fn disturbed(&self, truth: f64, number: u64, effort: Effort, random: &mut Random) -> f64 {
        truth
            * (1.0 + self.drift * number as f64)
            * (1.0 + self.noise * random.normal() / effort.windows.max(f64::MIN_POSITIVE).sqrt())
    }
}

/// A testbed that looks performances up. It repeats exactly: what measurement number n gives
/// depends on its setting, n and the seed alone. Its time is virtual.
#[derive(Debug)]
pub struct Replay {
    machine: Machine,
    workload: Workload,
    unit: Unit,
    population: BTreeMap<Assignment, f64>,
    baseline: Vec<f64>,
    disturbance: Disturbance,
    /// The number of the next measurement.
    number: u64,
    width: usize,
}

/// How long an ordinary window takes.
pub(crate) const WINDOW: Duration = Duration::from_millis(100);

impl Replay {
    /// A population by assignment, as the campaign will name them (in canonical form): one that is
    /// missing cannot run ([`Retry::Other`]). The unpinned baseline takes one of the values of
    /// `baseline` in each window, all equally often. Without any it cannot run.
    pub fn new(
        machine: Machine,
        workload: Workload,
        unit: Unit,
        population: impl IntoIterator<Item = (Assignment, f64)>,
        baseline: Vec<f64>,
        disturbance: Disturbance,
    ) -> Self {
        let population = population.into_iter().collect();
        Self { machine, workload, unit, population, baseline, disturbance, number: 0, width: 1 }
    }

    /// Asks for `width` trials at once, as a testbed on that many processors would.
    pub fn wide(self, width: usize) -> Self {
        Self { width, ..self }
    }

    fn truth(&self, setting: &Setting, random: &mut Random) -> Result<f64, MeasureError> {
        match setting {
            Setting::Unpinned if self.baseline.is_empty() => {
                Err(MeasureError::new(Retry::Other, "the population has no unpinned baseline"))
            }
            Setting::Unpinned => {
                Ok(self.baseline[random.below(self.baseline.len() as u64) as usize])
            }
            Setting::Pinned(assignment) => {
                self.population.get(assignment).copied().ok_or_else(|| {
                    MeasureError::new(
                        Retry::Other,
                        format!("{:?} is not in the population", assignment.leaves()),
                    )
                })
            }
            other => Err(MeasureError::unsupported(&self.workload.name, other)),
        }
    }
}

impl Testbed for Replay {
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
        let number = self.number;
        self.number += 1;
        let mut random = self.disturbance.chance(number)?;
        let truth = self.truth(setting, &mut random)?;
        let performance = self.disturbance.disturbed(truth, number, effort, &mut random);
        Ok(Measurement::new(performance, WINDOW))
    }

    fn time(&self) -> Time {
        Time::Virtual { width: self.width }
    }

    fn seek(&mut self, number: u64) {
        self.number = number;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replay(disturbance: Disturbance) -> Replay {
        let machine = Machine::from_shape("1x2").unwrap();
        let workload = Workload::new("made up", &[]);
        let population = [(Assignment::new(vec![0]), 100.0)];
        Replay::new(
            machine,
            workload,
            Unit::rate("ops/s"),
            population,
            vec![50.0, 80.0],
            disturbance,
        )
    }

    fn known() -> Setting {
        Setting::Pinned(Assignment::new(vec![0]))
    }

    #[test]
    fn without_disturbance_the_truth_is_measured() {
        let mut replay = replay(Disturbance::default());
        assert_eq!(replay.measure(&known(), Effort::default()).unwrap().performance, 100.0);
        let unknown = Setting::Pinned(Assignment::new(vec![1]));
        assert_eq!(replay.measure(&unknown, Effort::default()).unwrap_err().retry, Retry::Other);
        let states: Vec<f64> = (0..20)
            .map(|_| replay.measure(&Setting::Unpinned, Effort::default()).unwrap().performance)
            .collect();
        assert!(states.contains(&50.0) && states.contains(&80.0));
    }

    #[test]
    fn a_resumed_replay_goes_on_as_it_would_have() {
        let disturbance = Disturbance { noise: 0.1, drift: 0.001, misses: 0.2, seed: 3 };
        let go = |replay: &mut Replay, n| {
            (0..n).map(|_| replay.measure(&known(), Effort::default())).collect::<Vec<_>>()
        };
        let whole = go(&mut replay(disturbance), 40);
        let mut second = replay(disturbance);
        second.seek(15);
        assert_eq!(go(&mut second, 25), whole[15..]);
        assert!(whole.iter().any(Result::is_err));
    }

    #[test]
    fn noise_has_the_spread_it_was_given() {
        let mut replay = replay(Disturbance { noise: 0.05, seed: 1, ..Disturbance::default() });
        let values: Vec<f64> = (0..4000)
            .map(|_| replay.measure(&known(), Effort::default()).unwrap().performance)
            .collect();
        let mean = values.iter().sum::<f64>() / 4000.0;
        let spread =
            (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / 3999.0).sqrt();
        // 5 standard errors: of the mean 5/sqrt(4000), of the standard deviation 5/sqrt(8000).
        assert!((mean - 100.0).abs() < 0.4 && (spread - 5.0).abs() < 0.28, "{mean} {spread}");
    }
}
