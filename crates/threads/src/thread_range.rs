//! The numbers of threads a search looks at.

use serde::{Deserialize, Serialize};

/// From the first to the last, in steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadRange {
    /// Tmin: the first, at least 1.
    pub min: u32,
    /// Tmax: the last, at least `min`.
    pub max: u32,
    /// Tstep: at least 1; for the published search 2, since it takes half of it too.
    pub step: u32,
}

/// Why numbers cannot be searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ThreadRangeError {
    /// There are none, or steps are too small.
    #[error("cannot search {} to {} threads in steps of {}: use 1 <= first <= last, and a \
             step of at least {least}",
        .range.min, .range.max, .range.step)]
    Unsound {
        /// The numbers.
        range: ThreadRange,
        /// The smallest step.
        least: u32,
    },
    /// More than [`ThreadRange::MOST`].
    #[error("{} to {} threads in steps of {} are {numbers} numbers, and at most {} are possible: \
             use steps of {step}",
        .range.min, .range.max, .range.step, ThreadRange::MOST)]
    Many {
        /// The numbers.
        range: ThreadRange,
        /// How many they are.
        numbers: u32,
        /// The smallest step with which they are few enough.
        step: u32,
    },
}

impl ThreadRange {
    /// The published range: 8 to 72 in steps of 8, on 24 contexts.
    pub const PUBLISHED: Self = Self { min: 8, max: 72, step: 8 };

    /// The published range on a machine of `contexts` contexts, in the paper's proportions. Tstep
    /// is a third of them and at least 2 (half of it is a step, too). Tmin is Tstep, Tmax three
    /// times the contexts.
    pub fn published_on(contexts: u32) -> Self {
        let step = (contexts / 3).max(2);
        Self { min: step, max: contexts.saturating_mul(3).max(step), step }
    }

    /// The most numbers that are searched. The posterior has an entry for each pair.
    pub const MOST: u32 = 1000;

    /// The range itself if it has numbers, at most [`Self::MOST`], and steps of at least `least`, 1
    /// or more.
    pub fn check(self, least: u32) -> Result<Self, ThreadRangeError> {
        if self.min == 0 || self.max < self.min || self.step < least.max(1) {
            return Err(ThreadRangeError::Unsound { range: self, least });
        }
        let steps = |step: u32| (self.max - self.min) / step;
        if steps(self.step) >= Self::MOST {
            let numbers = steps(self.step).saturating_add(1);
            return Err(ThreadRangeError::Many {
                range: self,
                numbers,
                step: steps(Self::MOST) + 1,
            });
        }
        Ok(self)
    }

    /// Its numbers of threads, ascending; each starts another program. `parameter` is the program's
    /// Convert(), `threads` the number of threads it makes for a parameter. If several numbers
    /// make the same, [`counted_threads`] stands for them, or none if that is outside the range.
    /// Empty if nothing fits: 8 to 9 threads, of a program that makes 7 or 11.
    pub fn candidates(
        self,
        parameter: impl Fn(u32) -> u32,
        threads: impl Fn(u32) -> u32,
    ) -> Vec<u32> {
        let numbers = (self.min..=self.max).step_by(self.step.max(1) as usize);
        let mut all: Vec<u32> =
            numbers.map(|asked| counted_threads(parameter(asked), &parameter, &threads)).collect();
        all.dedup();
        all.retain(|threads| (self.min..=self.max).contains(threads));
        all
    }
}

/// The number of threads that stands for the parameter `n` of a program: those it makes. If each
/// n makes one thread, Convert() does not change the number, and it is n itself.
pub fn counted_threads(
    n: u32,
    parameter: impl Fn(u32) -> u32,
    threads: impl Fn(u32) -> u32,
) -> u32 {
    let made = threads(n);
    if parameter(made) == n { made } else { n }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ThreadsPerN;
    use proptest::prelude::*;

    #[test]
    fn too_many_numbers_are_refused_with_steps_that_are_long_enough() {
        assert!(ThreadRange { min: 1, max: ThreadRange::MOST, step: 1 }.check(1).is_ok());
        for (min, max, step) in
            [(1, ThreadRange::MOST + 1, 1), (1, u32::MAX, 1), (7, u32::MAX, 2), (1, 2_500, 2)]
        {
            let refused = ThreadRange { min, max, step }.check(1);
            let Err(ThreadRangeError::Many { step, .. }) = refused else { panic!("{refused:?}") };
            assert!(ThreadRange { min, max, step }.check(1).is_ok(), "{min} to {max} by {step}");
        }
        assert!(matches!(
            ThreadRange { min: 1, max: 8, step: 0 }.check(0),
            Err(ThreadRangeError::Unsound { .. })
        ));
    }

    fn candidates(formula: &str, min: u32, max: u32, step: u32) -> Vec<u32> {
        let formula: ThreadsPerN = formula.parse().unwrap();
        ThreadRange { min, max, step }
            .candidates(|threads| formula.parameter(threads), |n| formula.threads(n))
    }

    #[test]
    fn numbers_that_start_the_same_program_are_one() {
        assert_eq!(candidates("n", 1, 5, 1), [1, 2, 3, 4, 5]);
        assert_eq!(candidates("1+n", 2, 8, 3), [2, 5, 8]);
        // Ferret: 7 threads for n = 1, 11 for n = 2.
        assert_eq!(candidates("3+4n", 1, 20, 1), [7, 11, 15, 19]);
        assert_eq!(candidates("3+4n", 8, 20, 1), [11, 15, 19], "7 are fewer than 8");
        assert_eq!(candidates("3+4n", 8, 10, 1), [0; 0], "7 are too few, 11 too many");
        assert_eq!(candidates("3+4n", 1, 6, 1), [0; 0], "7 are too many");
        assert_eq!(candidates("4", 1, 3, 1), [1, 2, 3], "n changes something else");
    }

    #[test]
    fn the_error_names_the_least_step_of_the_search_it_is_for() {
        let range = ThreadRange { min: 4, max: 2, step: 1 };
        assert!(range.check(1).unwrap_err().to_string().ends_with("a step of at least 1"));
        assert!(
            ThreadRange { max: 9, ..range }
                .check(2)
                .unwrap_err()
                .to_string()
                .ends_with("a step of at least 2")
        );
        assert_eq!(ThreadRange::PUBLISHED.check(2), Ok(ThreadRange::PUBLISHED));
    }

    #[test]
    fn the_published_span_scales_with_the_contexts() {
        assert_eq!(ThreadRange::published_on(24), ThreadRange::PUBLISHED);
        assert_eq!(ThreadRange::published_on(2), ThreadRange { min: 2, max: 6, step: 2 });
        assert!((1..=256).all(|contexts| ThreadRange::published_on(contexts).check(2).is_ok()));
    }

    proptest! {
        #[test]
        fn candidates_ascend_and_each_starts_another_program(
            constant in 0u32..9,
            slope in 0u32..6,
            min in 1u32..40,
            more in 0u32..90,
            step in 1u32..9,
        ) {
            let formula: ThreadsPerN = format!("{constant}+{slope}n").parse().unwrap();
            let all = candidates(&formula.to_string(), min, min + more, step);
            let range = min..=min + more;
            prop_assert!(all.iter().all(|threads| range.contains(threads)), "{all:?}");
            prop_assert!(slope > 1 || !all.is_empty());
            let of = |threads: &u32| formula.parameter(*threads);
            let ascend = |pair: &[u32]| pair[0] < pair[1] && of(&pair[0]) < of(&pair[1]);
            prop_assert!(all.windows(2).all(ascend), "{all:?}");
        }
    }
}
