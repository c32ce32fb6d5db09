//! How many threads and where: the count and the placement together, from a few of all combinations.
//!
//! An [`Arm`] is a number of threads placed in some way, or left to the operating system. What is known of arms before any is measured is their
//! shape: how many threads, on how many cores, in how many packages. Arms of like shape are believed to be alike fast: two policies
//! that fill all contexts differ in names only. Speed follows a scalability law of the number of threads ([`crate::Law`]), with departures
//! that depend on cores, packages and on being placed at all. What is measured next, and when it is known enough, is decided as by
//! [`crate::Surveyor`].

use crate::belief::{Belief, Departure, Noise, Prior, Reading};
use crate::law::Law;
use crate::matrix::Matrix;
use serde::{Deserialize, Serialize};

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
}

/// The search over arms: pure, knows only what it is told.
#[derive(Clone, Debug)]
pub struct Tuner {
    prior: Prior,
    arms: usize,
    readings: Vec<Reading>,
}

/// Relative standard error of a measurement where nothing is known of it.
const ERROR: f64 = 0.01;

impl Tuner {
    /// A search over `arms` on a machine of `contexts` contexts.
    pub fn new(arms: &[Arm], contexts: u32) -> Self {
        Self { prior: prior(arms, contexts), arms: arms.len(), readings: Vec::new() }
    }

    /// Takes the value (work per second, per joule, …; above 0, others are passed over) that was measured of an arm.
    pub fn observe(&mut self, arm: usize, value: f64) {
        if arm < self.arms && value > 0.0 && value.is_finite() {
            self.readings.push(Reading { place: arm, value: value.ln(), error: ERROR });
        }
    }

    /// The arm, of those not measured yet, that is worth most to measure; `None` when all were.
    pub fn next(&self) -> Option<usize> {
        let belief = Belief::new(&self.prior, &self.readings);
        let open = (0..self.arms).filter(|arm| self.readings.iter().all(|reading| reading.place != *arm));
        let worth = open.map(|arm| (arm, belief.worth(arm, ERROR)));
        worth.max_by(|(a, left), (b, right)| left.total_cmp(right).then(b.cmp(a))).map(|(arm, _)| arm)
    }

    /// The arm believed to be best.
    pub fn best(&self) -> usize {
        Belief::new(&self.prior, &self.readings).best()
    }
}

fn prior(arms: &[Arm], contexts: u32) -> Prior {
    let curve = |law: Law| arms.iter().map(|arm| law.speedup(f64::from(arm.threads)).ln()).collect();
    let laws = Law::family(contexts).into_iter().map(|(law, weight)| (curve(law), weight)).collect();
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
                    let placed = if left.free == right.free { 1.0 } else { 0.3 };
                    let in_packages = packages * packages * near(left.packages, right.packages) * placed * threads;
                    let on_cores = cores * cores * near(left.cores, right.cores) * placed * threads;
                    in_packages + on_cores + if a == b { own * own } else { 0.0 }
                });
                departures.push((Departure { covariance, noise: Noise::TOLD }, 1.0 / 18.0));
            }
        }
    }
    Prior { laws, departures }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1, 2, 4 and 8 threads on a machine of two packages of two cores of two contexts: packed, spread, or left alone.
    fn arms() -> Vec<Arm> {
        let counts = [1u32, 2, 4, 8];
        let packed = counts.map(|threads| Arm {
            threads,
            cores: threads.div_ceil(2),
            packages: threads.div_ceil(4),
            free: false,
        });
        let spread =
            counts.map(|threads| Arm { threads, cores: threads.min(4), packages: threads.min(2), free: false });
        let free = spread.map(|arm| Arm { free: true, ..arm });
        [packed, spread, free].concat()
    }

    fn search(speed: impl Fn(Arm) -> f64, most: usize) -> (Arm, Vec<usize>) {
        let arms = arms();
        let mut tuner = Tuner::new(&arms, 8);
        let mut measured = Vec::new();
        while let Some(arm) = tuner.next().filter(|_| measured.len() < most) {
            tuner.observe(arm, speed(arms[arm]));
            measured.push(arm);
        }
        (arms[tuner.best()], measured)
    }

    #[test]
    fn a_program_that_scales_gets_all_contexts() {
        let (best, _) = search(|arm| f64::from(arm.cores) + 0.25 * f64::from(arm.threads - arm.cores), 4);
        assert_eq!((best.threads, best.cores), (8, 4));
    }

    #[test]
    fn a_program_that_suffers_from_distance_stays_in_one_package() {
        let speed = |arm: Arm| f64::from(arm.cores).sqrt() / if arm.packages > 1 { 3.0 } else { 1.0 };
        let (best, measured) = search(speed, 6);
        assert_eq!((best.packages, best.cores), (1, 2), "after {measured:?}");
    }

    #[test]
    fn no_arm_is_measured_twice_and_impossible_values_are_passed_over() {
        let (_, measured) = search(|arm| f64::from(arm.threads), 100);
        let mut sorted = measured.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..arms().len()).collect::<Vec<_>>());
        let mut tuner = Tuner::new(&arms(), 8);
        tuner.observe(0, f64::NAN);
        tuner.observe(1, 0.0);
        tuner.observe(99, 1.0);
        assert_eq!(tuner.next(), Tuner::new(&arms(), 8).next());
    }
}
