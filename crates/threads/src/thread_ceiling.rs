//! [`ThreadCeiling`]: the number from which a program makes no more threads.
//!
//! The input has no work for more threads, or the program allows no more. `xz -T4` on an input of
//! two blocks makes as many threads as `xz -T2`. Differences between probes of the two are noise,
//! and the answer is at most 2.
//!
//! Other programs make the same threads and still go faster with a greater number. One hands more
//! work to a helper. Another makes its threads after the probe. So speeds have to agree too.

use pinwise_measure::{Measure, Probe};
use std::collections::BTreeMap;

/// Speeds disagree if they differ by more than this share of the greater one. They must also differ
/// by more than [`ERRORS`] standard errors. A choice: probes of one number seldom differ by both.
const DIFFER: f64 = 0.1;
const ERRORS: f64 = 3.0;

/// What a probe with a number showed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CountedProbe {
    /// The number of threads that was asked for.
    pub number: u32,
    /// The threads that were seen.
    pub threads: u32,
    /// The speed.
    pub speed: f64,
    /// Its standard error, if known.
    pub error: Option<f64>,
}

/// The most threads that a program makes. Several numbers made as many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadCeiling {
    /// The number of threads, the first one included.
    pub threads: u32,
    /// The numbers that made them, two at least, ascending: no greater number was probed.
    pub numbers: Vec<u32>,
    /// Whether a smaller number made fewer threads. Otherwise the threads may not follow the number
    /// at all.
    pub follows: bool,
}

impl ThreadCeiling {
    /// `None` in three cases. The greatest number made more threads than all others, or fewer
    /// than another one did. Or the least of the numbers that made the most threads promises fewer
    /// threads, a waiting first one included. Then work is not lacking: the program is a pool of
    /// fixed size, and the number only distributes work. Or the speeds of these numbers disagree.
    pub fn of(probes: impl IntoIterator<Item = CountedProbe>) -> Option<Self> {
        let mut seen: BTreeMap<u32, Vec<CountedProbe>> = BTreeMap::new();
        for probe in probes {
            seen.entry(probe.number).or_default().push(probe);
        }
        // A thread that lives shortly is not seen in every probe.
        let most = |probes: &Vec<CountedProbe>| probes.iter().map(|probe| probe.threads).max();
        let threads = seen.values().filter_map(most).max()?;
        let (&first, least) = seen.iter().find(|(_, probes)| most(probes) == Some(threads))?;
        let numbers: Vec<u32> = seen.range(first..).map(|(number, _)| *number).collect();
        let alike = seen
            .range(first..)
            .all(|(_, probes)| most(probes) == Some(threads) && agree(least, probes));
        let follows = numbers.len() < seen.len();
        (alike && numbers.len() > 1 && threads <= first + 1).then_some(Self {
            threads,
            numbers,
            follows,
        })
    }

    /// From probes with the number of threads that was asked for. `None` if they are whole runs:
    /// the time of these shows what a number does, however many threads it makes.
    pub fn of_probes<'a>(probes: impl IntoIterator<Item = (u32, &'a Probe)>) -> Option<Self> {
        let counted = |(number, probe): (u32, &Probe)| {
            let (speed, error) = (probe.progress.rate, probe.progress.error);
            let counted = CountedProbe { number, threads: probe.threads, speed, error };
            (probe.progress.measure != Measure::Runs).then_some(counted)
        };
        Self::of(probes.into_iter().map(counted).collect::<Option<Vec<_>>>()?)
    }

    /// The fewest of the numbers that were seen to make all the threads.
    pub fn fewest(&self) -> u32 {
        self.numbers[0]
    }

    /// Whether the program was seen to make no more with `number` either.
    pub fn reaches(&self, number: u32) -> bool {
        self.numbers.last().is_some_and(|&last| last >= number)
    }
}

/// Whether the probes of two numbers may be of the same program, by their speeds.
fn agree(one: &[CountedProbe], other: &[CountedProbe]) -> bool {
    let mean = |probes: &[CountedProbe]| {
        probes.iter().map(|probe| probe.speed).sum::<f64>() / probes.len() as f64
    };
    let error = |probes: &[CountedProbe]| {
        let squares = probes.iter().map(|probe| probe.error.unwrap_or(0.0).powi(2));
        squares.sum::<f64>().sqrt() / probes.len() as f64
    };
    let differ = (mean(one) - mean(other)).abs();
    let errors = ERRORS * error(one).hypot(error(other));
    differ <= DIFFER * mean(one).max(mean(other)) || differ <= errors
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of probes with the same speed.
    fn of(probes: &[(u32, u32)]) -> Option<ThreadCeiling> {
        let probe = |&(number, threads)| CountedProbe { number, threads, speed: 1.0, error: None };
        ThreadCeiling::of(probes.iter().map(probe))
    }

    #[test]
    fn numbers_with_different_speeds_are_no_cap() {
        let of = |speeds: [f64; 2], error| {
            let probe = |(number, speed)| CountedProbe { number, threads: 2, speed, error };
            ThreadCeiling::of([1, 2].into_iter().zip(speeds).map(probe)).is_some()
        };
        assert!(of([1.0, 1.05], None) && of([1.0, 1.05], Some(0.001)));
        assert!(!of([1.0, 1.9], None) && !of([1.9, 1.0], Some(0.1)));
        assert!(of([1.0, 1.9], Some(0.3)), "the speeds are hardly known");
    }

    #[test]
    fn numbers_that_make_the_most_threads_alike_are_a_cap() {
        let cap = |threads, numbers: &[u32], follows| {
            Some(ThreadCeiling { threads, numbers: numbers.to_vec(), follows })
        };
        // xz with an input of one block, of three, and with one that is large enough.
        assert_eq!(of(&[(2, 2), (4, 2), (1, 1), (4, 2)]), cap(2, &[2, 4], true));
        assert_eq!(
            of(&[(8, 4), (72, 4), (1, 1), (4, 4), (3, 4), (2, 3)]),
            cap(4, &[3, 4, 8, 72], true)
        );
        assert_eq!(of(&[(2, 3), (4, 5), (1, 1)]), None);
        assert_eq!(of(&[(1, 2), (2, 2)]), cap(2, &[1, 2], false));
        assert_eq!(of(&[(2, 2), (2, 2)]), None, "a single number");
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn a_pool_of_a_fixed_size_is_none() {
        // Eight workers with every number but 1; only the number asked for have work.
        assert_eq!(of(&[(1, 1), (3, 9), (5, 9), (7, 9)]), None);
        assert_eq!(of(&[(1, 1), (3, 9), (72, 9), (8, 9)]), None);
    }

    #[test]
    fn a_greater_number_with_more_or_fewer_threads_is_none() {
        assert_eq!(of(&[(3, 4), (4, 4), (6, 5)]), None);
        assert_eq!(of(&[(3, 4), (4, 4), (6, 3)]), None, "threads come and go");
        // One of two probes did not see a thread that lived shortly.
        assert_eq!(of(&[(3, 4), (6, 3), (6, 4)]).map(|cap| cap.numbers), Some(vec![3, 6]));
    }
}
