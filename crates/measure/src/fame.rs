//! How often to repeat a program in a set before its average rate means anything.
//!
//! *Problem.* Programs that run together end at different times, and disturb each other differently
//! while caches fill.
//!
//! *Method.* FAME repeats every program of the set until each is near its steady state. Sources: J.
//! Vera et al., "FAME: FAirly MEasuring Multithreaded Architectures", PACT 2007; V. Čakarević et
//! al., MICRO 2009, section 3.3. A program's rate over all repetitions must be within the Maximum
//! Allowable IPC Variation (MAIV) of the steady rate.
//!
//! The steady rate is the rate over the later half of the repetitions. While a set warms up, the
//! halves differ, and the accumulated rate lags behind the steady one.
//!
//! *Noise.* Let repetition times vary by a standard deviation s around a constant. After k
//! repetitions both rates differ by s/sqrt(k), half the difference of the two halves' means. So
//! noise alone does not keep a set running for long.

use serde::{Deserialize, Serialize};

/// When enough repetitions were made.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fame {
    /// Largest allowed relative difference between the accumulated and the steady rate, above 0
    /// and below 1.
    pub maiv: f64,
    /// Repetitions to make in any case, at least 2.
    pub least: usize,
    /// Repetitions after which a set that does not become steady is given up; at least `least`.
    pub most: usize,
}

impl Default for Fame {
    /// MAIV 1 % and at least 5 repetitions, as published (MICRO 2009, section 3.3).
    fn default() -> Self {
        Self { maiv: 0.01, least: 5, most: 200 }
    }
}

impl Fame {
    /// Whether the repetitions are enough. Each has the same number of operations and is given by
    /// the time it took (any unit).
    pub fn enough(&self, times: &[f64]) -> bool {
        times.len() >= self.least.max(2)
            && self.distance(times).is_some_and(|distance| distance <= self.maiv)
    }

    /// Whether to stop: there are enough repetitions, or more will not help.
    pub fn over(&self, times: &[f64]) -> bool {
        self.enough(times) || times.len() >= self.most
    }

    /// The relative difference between the accumulated and the steady rate. `None` before there are
    /// two repetitions, or if a time is not positive.
    pub fn distance(&self, times: &[f64]) -> Option<f64> {
        if times.len() < 2 || times.iter().any(|&time| !(time.is_finite() && time > 0.0)) {
            return None;
        }
        // Rates are the reciprocals: |1/a - 1/s| / (1/s) = |s - a| / a.
        let (accumulated, steady) = (mean(times), mean(&times[times.len() / 2..]));
        Some((steady - accumulated).abs() / accumulated)
    }
}

/// The mean of a series that is not empty.
fn mean(times: &[f64]) -> f64 {
    times.iter().sum::<f64>() / times.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of the repetitions are enough.
    fn needed(fame: Fame, times: &[f64]) -> Option<usize> {
        (1..=times.len()).find(|&made| fame.enough(&times[..made]))
    }

    #[test]
    fn constant_repetitions_need_the_five_of_the_paper() {
        assert_eq!(needed(Fame::default(), &[2.0; 20]), Some(5));
    }

    #[test]
    fn a_cold_start_is_diluted_until_it_weighs_less_than_the_maiv() {
        // The first repetition takes 1.5 times as long. The accumulated time is (k + 0.5)/k against
        // 1. It is within 1 % if 0.5/(k + 0.5) <= 0.01, so k >= 49.5.
        let mut times = vec![1.0; 200];
        times[0] = 1.5;
        assert_eq!(needed(Fame::default(), &times), Some(50));
        assert_eq!(needed(Fame { maiv: 0.1, ..Fame::default() }, &times), Some(5));
    }

    #[test]
    fn what_keeps_slowing_down_is_never_steady() {
        let times: Vec<f64> = (0..200).map(|repetition| 1.1f64.powi(repetition)).collect();
        assert_eq!(needed(Fame::default(), &times), None);
        assert!(Fame::default().over(&times) && !Fame::default().over(&times[..199]));
    }

    #[test]
    fn a_time_that_is_no_time_is_not_enough() {
        let mut times = vec![1.0; 10];
        times[3] = 0.0;
        assert!(!Fame::default().enough(&times));
        assert_eq!(Fame::default().distance(&[1.0]), None);
    }

    #[test]
    fn noise_alone_does_not_prolong() {
        // With 1 % standard deviation, the rates differ by 0.4 % after 5 repetitions. So more than
        // a few extra are rare.
        let mut random = pinwise_topology::Random::new(1);
        let mut noise = || (0..12).map(|_| random.unit()).sum::<f64>() - 6.0;
        let made: Vec<usize> = (0..200)
            .map(|_| {
                let times: Vec<f64> = (0..200).map(|_| 1.0 + 0.01 * noise()).collect();
                needed(Fame::default(), &times).unwrap_or(200)
            })
            .collect();
        assert!(made.iter().filter(|&&made| made <= 8).count() >= 190, "{made:?}");
    }
}
