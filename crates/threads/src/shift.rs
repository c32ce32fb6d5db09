//! Whether a program came into another phase between the probes of a search.
//!
//! A search compares numbers of threads that were probed at different times. Where the program, or the machine under it, changes meanwhile it compares
//! phases instead. Only probes of the *same* number tell the two apart: [`Shift::of`] cuts the search in two where that leaves the least scatter
//! among such probes, of progress, CPU_UTIL or LOCK, and reports a difference that matters.
//!
//! ```text
//! d(n) = mean of the probes of n after the cut - mean of those before it        (of the logarithm of progress)
//! E    = sum of w(n) d(n)²,   w(n) = a b / (a + b) for b probes before and a after
//! ```
//!
//! E is by how much the squared scatter is less with the cut than without, and the cut is where it is greatest. One phase need not be slower with all
//! numbers than the other: what counts is the size of the differences, sqrt(E / sum of w(n)), and F = E / (m s²) for m numbers on both sides, where s is the
//! scatter that is left (known once some number has two probes on a side).
//!
//! Limits: numbers probed once tell nothing. A program that is started anew for each probe shows the same part of its run each time: what comes
//! later than a probe's end nobody has seen.

use crate::Attempt;
use pinwise_testbed::Probe;
use serde::Serialize;
use std::collections::BTreeMap;

/// What differs between two phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Sign {
    /// How fast the program gets on.
    Progress,
    /// CPU_UTIL.
    CpuUtil,
    /// LOCK.
    Lock,
}

impl Sign {
    /// What a probe shows: the logarithm of its progress, else percent. `None`: it tells no progress.
    fn of(self, probe: &Probe) -> Option<f64> {
        match self {
            Self::Progress => probe.progress.map(|progress| progress.rate.ln()),
            Self::CpuUtil => Some(probe.profile.cpu_util),
            Self::Lock => Some(probe.profile.lock),
        }
    }
}

/// A change of phase between two probes of a search.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Shift {
    /// The first probe of the new phase, from 0.
    pub at: usize,
    /// What shows it most.
    pub sign: Sign,
    /// The parameter whose probes show it most.
    pub parameter: u32,
    /// From the old phase to the new one with that parameter: of progress the ratio less 1, else in percentage points.
    pub change: f64,
}

impl Shift {
    /// A smaller change of progress is not reported: a fifth.
    pub const LEAST_RATIO: f64 = 1.2;
    /// A smaller change of CPU_UTIL or LOCK is not reported, in percentage points.
    pub const LEAST_POINTS: f64 = 25.0;
    /// The least F, where the scatter of probes is known: a great one, since the cut was chosen for it.
    pub const LEAST_F: f64 = 10.0;

    /// The change of phase within a search that is largest against what is reported at all, if there is one.
    pub fn of(attempts: &[Attempt]) -> Option<Self> {
        let found = [Sign::Progress, Sign::CpuUtil, Sign::Lock].into_iter().filter_map(|sign| {
            let least = if sign == Sign::Progress { Self::LEAST_RATIO.ln() } else { Self::LEAST_POINTS };
            let values: Vec<(u32, Option<f64>)> =
                attempts.iter().map(|attempt| (attempt.probe.parameter, sign.of(&attempt.probe))).collect();
            // The earliest of equals.
            let cuts = (1..values.len()).filter_map(|at| Cut::new(&values, at));
            let cut = cuts.reduce(|best, cut| if cut.explained > best.explained { cut } else { best })?;
            let (parameter, difference) = cut.greatest;
            let change = if sign == Sign::Progress { difference.exp_m1() } else { difference };
            let size = cut.size() / least;
            (size >= 1.0 && cut.sure()).then_some((Self { at: cut.at, sign, parameter, change }, size))
        });
        found.max_by(|one, other| one.1.total_cmp(&other.1)).map(|(shift, _)| shift)
    }
}

/// A series of values of numbers, cut in two.
struct Cut {
    at: usize,
    /// E.
    explained: f64,
    /// Sum of w(n).
    weight: f64,
    /// Numbers on both sides.
    numbers: usize,
    /// The number that has the largest part of E, and its d.
    greatest: (u32, f64),
    /// s², where it is known.
    scatter: Option<f64>,
}

impl Cut {
    /// `None`: no number is on both sides, or a value is none.
    fn new(values: &[(u32, Option<f64>)], at: usize) -> Option<Self> {
        let mut sides: BTreeMap<u32, [Vec<f64>; 2]> = BTreeMap::new();
        for (index, &(number, value)) in values.iter().enumerate() {
            let value = value.filter(|value| value.is_finite())?;
            sides.entry(number).or_default()[usize::from(index >= at)].push(value);
        }
        // Of each number on both sides: d, w.
        let mut differences = Vec::new();
        let (mut squares, mut freedom) = (0.0, 0usize);
        for (&number, sides) in &sides {
            let means = sides.each_ref().map(|side| side.iter().sum::<f64>() / side.len() as f64);
            for (side, mean) in sides.iter().zip(means).filter(|(side, _)| side.len() > 1) {
                squares += side.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
                freedom += side.len() - 1;
            }
            let [b, a] = sides.each_ref().map(|side| side.len() as f64);
            if a > 0.0 && b > 0.0 {
                differences.push((number, means[1] - means[0], a * b / (a + b)));
            }
        }
        let part = |&(_, difference, weight): &(u32, f64, f64)| weight * difference * difference;
        let &(number, difference, _) = differences.iter().max_by(|one, other| part(one).total_cmp(&part(other)))?;
        Some(Self {
            at,
            explained: differences.iter().map(part).sum(),
            weight: differences.iter().map(|(.., weight)| weight).sum(),
            numbers: differences.len(),
            greatest: (number, difference),
            scatter: (freedom > 0).then(|| squares / freedom as f64),
        })
    }

    /// The size of the differences.
    fn size(&self) -> f64 {
        (self.explained / self.weight).sqrt()
    }

    /// Whether chance makes none as large, as far as can be told.
    fn sure(&self) -> bool {
        self.scatter.is_none_or(|scatter| self.explained >= Shift::LEAST_F * self.numbers as f64 * scatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_testbed::{Measure, Profile, Progress};
    use pinwise_topology::Random;
    use std::time::Duration;

    /// Probes of these numbers; the rate of one follows from its place in the search and its number.
    fn attempts(numbers: &[u32], rate: impl Fn(usize, u32) -> f64) -> Vec<Attempt> {
        let attempt = |(index, &parameter): (usize, &u32)| {
            let progress = Some(Progress { rate: rate(index, parameter), error: None, measure: Measure::Metric });
            let (profile, cost) = (Profile::default(), Duration::from_millis(100));
            Attempt { asked: parameter, probe: Probe { parameter, threads: parameter, profile, progress, cost } }
        };
        numbers.iter().enumerate().map(attempt).collect()
    }

    fn noisy(seed: u64, noise: f64, numbers: &[u32], rate: impl Fn(usize, u32) -> f64) -> Vec<Attempt> {
        let random = std::cell::RefCell::new(Random::new(seed));
        attempts(numbers, |index, n| rate(index, n) * (1.0 + noise * (2.0 * random.borrow_mut().unit() - 1.0)))
    }

    const ROUNDS: [u32; 15] = [1, 2, 4, 8, 16, 1, 2, 4, 8, 16, 1, 2, 4, 8, 16];

    #[test]
    fn a_change_is_found_where_it_is_whatever_the_numbers_do() {
        for seed in 0..20 {
            let slower = |index: usize, n: u32| f64::from(n) * if index < 7 { 1.0 } else { 0.6 };
            let shift = Shift::of(&noisy(seed, 0.05, &ROUNDS, slower)).unwrap();
            assert!((5..=9).contains(&shift.at) && shift.sign == Sign::Progress, "{shift:?}");
            assert!((shift.change + 0.4).abs() < 0.15, "{shift:?}");
        }
    }

    #[test]
    fn a_number_probed_again_at_the_end_is_enough() {
        let search = [8, 4, 12, 6, 8];
        let shift = Shift::of(&attempts(&search, |index, n| f64::from(n) * if index < 3 { 1.0 } else { 1.5 })).unwrap();
        assert_eq!(shift.sign, Sign::Progress);
        assert!((shift.change - 0.5).abs() < 1e-9, "{shift:?}");
        assert_eq!(Shift::of(&attempts(&search, |_, n| f64::from(n))), None);
        assert_eq!(
            Shift::of(&attempts(&search[..4], |index, n| f64::from(n) * (index + 1) as f64)),
            None,
            "no number twice"
        );
    }

    #[test]
    fn a_phase_that_is_faster_with_some_numbers_and_slower_with_others_is_one() {
        let turned = |index: usize, n: u32| if index < 5 { f64::from(n) } else { 16.0 / f64::from(n) };
        let shift = Shift::of(&attempts(&ROUNDS, turned)).unwrap();
        assert_eq!((shift.at, shift.sign), (5, Sign::Progress));
    }

    #[test]
    fn noise_is_no_phase() {
        let found =
            (0..200).filter(|&seed| Shift::of(&noisy(seed, 0.15, &ROUNDS, |_, n| f64::from(n))).is_some()).count();
        assert!(found <= 2, "{found} of 200");
    }

    #[test]
    fn the_profile_tells_where_progress_does_not() {
        let mut search = attempts(&[4, 2, 4, 2], |_, n| f64::from(n));
        for attempt in &mut search[2..] {
            attempt.probe.profile.lock = 40.0;
        }
        let shift = Shift::of(&search).unwrap();
        assert_eq!((shift.at, shift.sign, shift.parameter), (2, Sign::Lock, 4));
        assert!((shift.change - 40.0).abs() < 1e-9);
    }
}
