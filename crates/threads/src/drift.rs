//! Whether a program has come into another phase while it was watched.
//!
//! A choice holds for the part of a run that was probed. Whether the run goes on like this shows in what is watched anyway: a series of readings
//! at equal distances (progress, LOCK, CPU_UTIL, ...). [`Drift::of`] asks whether the series is one phase or two: it cuts it where the
//! means before and after differ most for their scatter (the CUSUM statistic at its maximum; E. S. Page, "Continuous inspection schemes", Biometrika 41,
//! 1954), and judges that difference against the same series with its readings shuffled, which have no phases (a permutation
//! test: no assumption about their distribution). Readings are taken in pairs, so that scatter from one to the next, as at the edge of a
//! program's iterations, does not count.

use pinwise_topology::Random;
use serde::Serialize;

/// A change of phase within a series.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Drift {
    /// The first reading of the new phase, from 0.
    pub at: usize,
    /// Mean up to there.
    pub before: f64,
    /// Mean from there.
    pub after: f64,
    /// Share of shuffled series that differ as much: at most [`Drift::LEVEL`].
    pub chance: f64,
}

/// Shuffled series.
const SHUFFLES: usize = 999;
const SEED: u64 = 0x0d21_f7ed;

impl Drift {
    /// A change is reported when chance makes one as large at most this often.
    pub const LEVEL: f64 = 0.01;
    /// A change of less than this share of the larger mean is not reported.
    pub const LEAST: f64 = 0.05;
    /// Fewer readings tell nothing.
    pub const FEWEST: usize = 16;

    /// The change of phase in `readings`, if there is one: beyond chance and large enough to matter.
    pub fn of(readings: &[f64]) -> Option<Self> {
        if readings.len() < Self::FEWEST || readings.iter().any(|reading| !reading.is_finite()) {
            return None;
        }
        let pairs: Vec<f64> = readings.chunks_exact(2).map(|pair| f64::midpoint(pair[0], pair[1])).collect();
        let (cut, statistic) = most_different(&pairs);
        let mut random = Random::new(SEED);
        let mut shuffled = pairs.clone();
        let as_much = (0..SHUFFLES).filter(|_| {
            random.shuffle(&mut shuffled);
            most_different(&shuffled).1 >= statistic
        });
        let chance = (as_much.count() + 1) as f64 / (SHUFFLES + 1) as f64;
        let at = cut * 2;
        let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
        let (before, after) = (mean(&readings[..at]), mean(&readings[at..]));
        let matters = (before - after).abs() >= Self::LEAST * before.abs().max(after.abs());
        (chance <= Self::LEVEL && matters).then_some(Self { at, before, after, chance })
    }
}

/// Where to cut, at least two readings from either end, and how much the means then differ: squared, times k (n - k) / n.
fn most_different(series: &[f64]) -> (usize, f64) {
    let n = series.len();
    let total: f64 = series.iter().sum();
    let mut sum = 0.0;
    let mut best = (2, 0.0);
    for (index, value) in series.iter().enumerate() {
        sum += value;
        let k = index + 1;
        if k >= 2 && n - k >= 2 {
            let (k, rest) = (k as f64, (n - k) as f64);
            let difference = sum / k - (total - sum) / rest;
            let statistic = difference * difference * k * rest / n as f64;
            if statistic > best.1 {
                best = (index + 1, statistic);
            }
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noisy(count: usize, seed: u64, mean: impl Fn(usize) -> f64) -> Vec<f64> {
        let mut random = Random::new(seed);
        (0..count).map(|index| mean(index) * (1.0 + 0.1 * (2.0 * random.unit() - 1.0))).collect()
    }

    #[test]
    fn a_change_is_found_where_it_is() {
        for seed in 0..20 {
            let drift = Drift::of(&noisy(60, seed, |index| if index < 40 { 10.0 } else { 8.0 })).unwrap();
            assert!(drift.at.abs_diff(40) <= 4, "{drift:?}");
            assert!((drift.before - 10.0).abs() < 0.5 && (drift.after - 8.0).abs() < 0.5, "{drift:?}");
        }
    }

    #[test]
    fn noise_alone_is_one_phase() {
        let found = (0..200).filter(|&seed| Drift::of(&noisy(40, seed, |_| 5.0)).is_some()).count();
        // A hundredth by chance, fewer since a change has to matter.
        assert!(found <= 6, "{found} of 200");
    }

    #[test]
    fn alternating_readings_are_one_phase() {
        let alternating: Vec<f64> = (0..40).map(|index| if index % 2 == 0 { 1.0 } else { 9.0 }).collect();
        assert_eq!(Drift::of(&alternating), None);
    }

    #[test]
    fn too_little_tells_nothing() {
        assert_eq!(Drift::of(&[1.0, 1.0, 1.0, 9.0, 9.0, 9.0]), None);
        assert_eq!(Drift::of(&[f64::NAN; 40]), None);
        assert_eq!(Drift::of(&[3.0; 40]), None);
    }
}
