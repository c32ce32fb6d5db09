//! [`JointSearch`]: which number under which policy to measure next.
//!
//! It finds both together, from a few of all combinations. An [`Arm`] is a number of threads placed
//! in some way, or left to the operating system. Before any measurement, only the shape of an arm
//! is known. The shape is how many threads it has, on how many cores, in how many packages. Arms of
//! like shape should be equally fast: two policies that fill all contexts differ in name only.
//! Speed follows a scalability law of the number of threads ([`crate::Law`]). Departures from it
//! depend on cores, packages, on being placed at all, and on where memory lies. Next comes the arm
//! that is expected to raise the best known speed most. This is the knowledge gradient, as in
//! [`crate::SpeedSearch`]. The search ends if that is too little.

use crate::cholesky::Matrix;
use crate::posterior::{
    Departure, ErrorModel, LEAST_ERROR, Posterior, Prior, SpeedReading, common_error,
};
use crate::scalability_law::Law;
use pinwise_measure::MemoryPolicy;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Threads in a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arm {
    /// How many threads, at least 1.
    pub threads: u32,
    /// On how many cores, at least 1.
    pub cores: u32,
    /// In how many packages, at least 1.
    pub packages: u32,
    /// Left to the operating system.
    pub free: bool,
    /// Where its memory lies.
    #[serde(default, skip_serializing_if = "MemoryPolicy::is_leave")]
    pub memory: MemoryPolicy,
}

/// The search over arms: a pure function of its observations.
#[derive(Clone, Debug)]
pub struct JointSearch {
    prior: Prior,
    arms: usize,
    /// Arm, logarithm of the value, relative standard error as reported.
    readings: Vec<(usize, f64, Option<f64>)>,
    /// Arms that cannot be measured.
    closed: BTreeSet<usize>,
}

/// Relative standard error of a measurement if nothing is known of it.
const ERROR: f64 = 0.01;
/// An arm is measured only if it may raise the best speed by this share. It is a tenth of a
/// percent, as in a search by speed with a tolerance of 1 %.
const WORTHLESS: f64 = 0.001;

impl JointSearch {
    /// A search over `arms` on a machine of `contexts` contexts.
    pub fn new(arms: &[Arm], contexts: u32) -> Self {
        Self {
            prior: prior(arms, contexts),
            arms: arms.len(),
            readings: Vec::new(),
            closed: BTreeSet::new(),
        }
    }

    /// Takes the measured value of an arm (work per second, per joule, …). `error` is its relative
    /// standard error, if that is known. It ignores values that are not above 0.
    pub fn observe(&mut self, arm: usize, value: f64, error: Option<f64>) {
        if arm < self.arms && value > 0.0 && value.is_finite() {
            self.readings.push((arm, value.ln(), error.filter(|error| error.is_finite())));
        }
    }

    /// Gives up an arm that cannot be measured: it is not asked for again.
    pub fn close(&mut self, arm: usize) {
        self.closed.insert(arm);
    }

    /// The arm, of those not measured yet, that is worth most to measure; `None` when none is worth
    /// it.
    pub fn next(&self) -> Option<usize> {
        let (posterior, error) = (self.posterior(), self.reported_error().max(self.repeat_error()));
        let open =
            (0..self.arms).filter(|arm| !self.is_measured(*arm) && !self.closed.contains(arm));
        let worth = open.map(|arm| (arm, posterior.worth(arm, error)));
        let most = worth.max_by(|(a, left), (b, right)| left.total_cmp(right).then(b.cmp(a)));
        most.filter(|(_, worth)| *worth >= WORTHLESS).map(|(arm, _)| arm)
    }

    /// The arm believed to be best.
    pub fn best(&self) -> usize {
        self.posterior().best()
    }

    /// The expected value of each arm, measured or not.
    pub fn values(&self) -> Vec<f64> {
        self.posterior().mean.into_iter().map(f64::exp).collect()
    }

    /// Whether an arm has a value that was measured.
    pub fn is_measured(&self, arm: usize) -> bool {
        self.readings.iter().any(|(place, ..)| *place == arm)
    }

    /// The error of a measurement is the one it reports, and at least the scatter of repeats.
    fn posterior(&self) -> Posterior {
        let (reported, repeated) = (self.reported_error(), self.repeat_error());
        let reading = |&(place, value, error): &(usize, f64, Option<f64>)| SpeedReading {
            place,
            value,
            error: error.unwrap_or(reported).max(repeated).max(LEAST_ERROR),
        };
        Posterior::new(&self.prior, &self.readings.iter().map(reading).collect::<Vec<_>>())
    }

    /// Relative standard error of a measurement that reports none: the median of the others'.
    fn reported_error(&self) -> f64 {
        common_error(self.readings.iter().filter_map(|(.., error)| *error), ERROR)
    }

    /// Standard deviation of the measurements of the same arm; 0 if none was measured twice.
    fn repeat_error(&self) -> f64 {
        let (mut squares, mut freedom) = (0.0, 0);
        for arm in 0..self.arms {
            let values: Vec<f64> = self
                .readings
                .iter()
                .filter(|(place, ..)| *place == arm)
                .map(|(_, value, _)| *value)
                .collect();
            let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
            squares += values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
            freedom += values.len().saturating_sub(1);
        }
        (squares / freedom.max(1) as f64).sqrt()
    }
}

fn prior(arms: &[Arm], contexts: u32) -> Prior {
    let curve =
        |law: Law| arms.iter().map(|arm| law.speedup(f64::from(arm.threads)).ln()).collect();
    let laws =
        Law::family(contexts).into_iter().map(|(law, weight)| (curve(law), weight)).collect();
    let mut departures = Vec::new();
    // How much packages and cores matter: hardly, by a sixth, by half.
    let scales = [0.05, 0.15, 0.4];
    for packages in scales {
        for cores in scales {
            for own in [0.02, 0.08] {
                let covariance = Matrix::from_fn(arms.len(), |a, b| {
                    let (left, right) = (arms[a], arms[b]);
                    let near = |a: u32, b: u32| (-(f64::from(a) / f64::from(b)).ln().abs()).exp();
                    let threads = near(left.threads, right.threads);
                    let memory = if left.memory == right.memory { 1.0 } else { 0.5 };
                    let placed = if left.free == right.free { memory } else { 0.3 * memory };
                    let in_packages = packages
                        * packages
                        * near(left.packages, right.packages)
                        * placed
                        * threads;
                    let on_cores = cores * cores * near(left.cores, right.cores) * placed * threads;
                    in_packages + on_cores + if a == b { own * own } else { 0.0 }
                });
                departures.push((Departure { covariance, noise: ErrorModel::TOLD }, 1.0 / 18.0));
            }
        }
    }
    Prior::new(laws, departures)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1, 2, 4 and 8 threads on a machine of two packages of two cores of two contexts. They are
    /// packed, spread, or left alone.
    fn arms() -> Vec<Arm> {
        let counts = [1u32, 2, 4, 8];
        let packed = counts.map(|threads| Arm {
            threads,
            cores: threads.div_ceil(2),
            packages: threads.div_ceil(4),
            free: false,
            memory: MemoryPolicy::Leave,
        });
        let spread = counts.map(|threads| Arm {
            threads,
            cores: threads.min(4),
            packages: threads.min(2),
            free: false,
            memory: MemoryPolicy::Leave,
        });
        let free = spread.map(|arm| Arm { free: true, ..arm });
        [packed, spread, free].concat()
    }

    fn search(speed: impl Fn(Arm) -> f64, most: usize) -> (Arm, Vec<usize>) {
        let arms = arms();
        let mut joint = JointSearch::new(&arms, 8);
        let mut measured = Vec::new();
        while let Some(arm) = joint.next().filter(|_| measured.len() < most) {
            joint.observe(arm, speed(arms[arm]), None);
            measured.push(arm);
        }
        (arms[joint.best()], measured)
    }

    #[test]
    fn a_program_that_scales_gets_all_contexts() {
        let (best, _) =
            search(|arm| f64::from(arm.cores) + 0.25 * f64::from(arm.threads - arm.cores), 4);
        assert_eq!((best.threads, best.cores), (8, 4));
    }

    #[test]
    fn a_program_that_suffers_from_distance_stays_in_one_package() {
        let speed =
            |arm: Arm| f64::from(arm.cores).sqrt() / if arm.packages > 1 { 3.0 } else { 1.0 };
        let (best, measured) = search(speed, 6);
        assert_eq!((best.packages, best.cores), (1, 2), "after {measured:?}");
    }

    #[test]
    fn no_arm_is_measured_twice_and_impossible_values_are_passed_over() {
        let (_, measured) = search(|arm| f64::from(arm.threads), 100);
        let mut sorted = measured.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), measured.len(), "{measured:?}");
        let mut joint = JointSearch::new(&arms(), 8);
        joint.observe(0, f64::NAN, None);
        joint.observe(1, 0.0, None);
        joint.observe(99, 1.0, None);
        assert_eq!(joint.next(), JointSearch::new(&arms(), 8).next());
        assert!((0..arms().len()).all(|arm| !joint.is_measured(arm)));
    }

    #[test]
    fn what_cannot_be_measured_is_not_asked_for_again() {
        let mut joint = JointSearch::new(&arms(), 8);
        let mut asked = Vec::new();
        while let Some(arm) = joint.next() {
            joint.close(arm);
            asked.push(arm);
        }
        assert!(asked.len() > 2, "nothing was seen, so others are worth it: {asked:?}");
        assert_eq!(joint.closed.len(), asked.len(), "{asked:?}");
    }

    #[test]
    fn a_search_ends_where_nothing_is_worth_a_measurement() {
        // Placed or not, a thread more is worth nothing and four are far worse. So what is left
        // cannot be the best.
        let speed = |arm: Arm| f64::from(arm.threads).powi(-2);
        let (best, measured) = search(speed, 100);
        assert_eq!(best.threads, 1);
        assert!(measured.len() < arms().len(), "{measured:?}");
    }

    #[test]
    fn measurements_are_as_far_off_as_repeats_are_from_each_other() {
        let mut joint = JointSearch::new(&arms(), 8);
        assert_eq!((joint.reported_error(), joint.repeat_error()), (ERROR, 0.0));
        joint.observe(0, 1.0, Some(0.004));
        joint.observe(1, 5.0, None);
        assert_eq!((joint.reported_error(), joint.repeat_error()), (0.004, 0.0));
        joint.observe(1, 5.0 * 0.2f64.exp(), None);
        assert!(
            (joint.repeat_error() - 0.2 / 2.0f64.sqrt()).abs() < 1e-12,
            "{}",
            joint.repeat_error()
        );
    }

    #[test]
    fn placed_arms_are_believed_by_what_is_known_of_free_ones_and_by_one_another() {
        let arms = arms();
        let mut joint = JointSearch::new(&arms, 8);
        let place = |arm: Arm| arms.iter().position(|other| *other == arm).unwrap();
        for arm in arms.iter().filter(|arm| arm.free) {
            joint.observe(place(*arm), f64::from(arm.threads), Some(0.01));
        }
        let packed = |threads: u32| Arm {
            threads,
            cores: threads.div_ceil(2),
            packages: threads.div_ceil(4),
            free: false,
            memory: MemoryPolicy::Leave,
        };
        let before = joint.values();
        assert!(before[place(packed(4))] > before[place(packed(2))], "as the numbers left alone");
        // Four in one package turn out three times as fast. Four spread over two and eight are less
        // sure to be worse.
        joint.observe(place(packed(4)), 12.0, Some(0.01));
        let after = joint.values();
        assert_eq!(joint.best(), place(packed(4)));
        assert!(after[place(packed(2))] > before[place(packed(2))]);
    }
}
