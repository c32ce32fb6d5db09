//! The one source of randomness: a named generator whose draws do not change between versions of
//! any library.

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64;

/// PCG XSL RR 128/64 with bounded draws and shuffles of our own. So a recorded seed repeats a
/// campaign for ever.
#[derive(Clone, Debug)]
pub struct Random(Pcg64);

impl Random {
    /// The generator that `seed` starts.
    pub fn new(seed: u64) -> Self {
        Self(Pcg64::seed_from_u64(seed))
    }

    /// 64 uniform bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A uniform number below `bound` (which must not be 0), by Lemire's multiplication with
    /// rejection.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "an empty range has no numbers");
        loop {
            let wide = u128::from(self.bits()) * u128::from(bound);
            // The threshold of rejection is below the bound; mostly that is enough to know, and
            // saves a division.
            if wide as u64 >= bound || wide as u64 >= bound.wrapping_neg() % bound {
                return (wide >> 64) as u64;
            }
        }
    }

    /// A uniform number in `[0, 1)` with 53 bits.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A standard normal number (Box and Muller 1958).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// Puts `items` in a uniformly random order (Fisher-Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let chosen = self.below(last as u64 + 1) as usize;
            items.swap(last, chosen);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_draws_for_ever() {
        let mut random = Random::new(42);
        let draws: Vec<u64> = (0..4).map(|_| random.below(1000)).collect();
        let mut again = Random::new(42);
        assert_eq!(draws, (0..4).map(|_| again.below(1000)).collect::<Vec<_>>());
        assert_ne!(Random::new(43).bits(), Random::new(42).bits());
    }

    #[test]
    fn bounded_draws_are_uniform() {
        let mut random = Random::new(7);
        let mut seen = [0u32; 6];
        for _ in 0..60_000 {
            seen[random.below(6) as usize] += 1;
        }
        // 5 standard deviations of a binomial with n = 60,000, p = 1/6.
        assert!(seen.iter().all(|n| n.abs_diff(10_000) < 457), "{seen:?}");
    }
}
