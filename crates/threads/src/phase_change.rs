//! [`PhaseChange`]: a program changed to another phase between the probes of a search.
//!
//! A search compares numbers of threads that were probed at different times. If the program or the
//! machine changes meanwhile, the search compares phases instead. Only probes of the *same* number
//! show that. The function [`PhaseChange::of`] cuts the search in two, where this leaves the least
//! scatter among such probes. It looks at progress, CPU_UTIL and LOCK. It reports a difference that
//! matters.
//!
//! ```text
//! d(n) = mean of the probes of n after the cut - mean of those before it      (log of progress)
//! E    = sum of w(n) d(n)²,   w(n) = a b / (a + b) for b probes before and a after
//! ```
//!
//! E is how much the cut reduces the squared scatter. The cut is where E is greatest. A phase may
//! be slower with some numbers and faster with others. So what counts is the size of the
//! differences, sqrt(E / sum of w(n)). F = E / (m s²) tests them, for m numbers on both sides. Here
//! s is the remaining scatter.
//!
//! s and its degrees of freedom are known once some number has two probes on a side. Otherwise, for
//! progress, s comes from the standard errors of the probes, one degree of freedom each. The change
//! is beyond scatter if chance makes so large an F in at most a twentieth of all searches. F then
//! follows Fisher's distribution. The twentieth is divided by the number of cuts and signs. If s is
//! unknown, or known from a handful of probes, the change is only possible ([`PhaseChange::sure`]).
//!
//! Two causes other than a phase are left out. A probe shows nothing if others took more than
//! [`PhaseChange::MOST_LOST`] of what the program wanted. A number whose difference the standard
//! errors of its probes explain is not reported. It still counts in E, m and s: a test of large
//! differences alone would overstate them. If no number is left, no change is reported. A single
//! difference of CPU_UTIL or LOCK is not reported either, as its scatter is unknown.
//!
//! Limits: a number probed once shows no change. A program that is restarted for each probe
//! shows the same part of its run each time. It shows nothing later.

use crate::Attempt;
use pinwise_measure::Probe;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, FisherSnedecor};
use std::collections::BTreeMap;

/// The sign by which two phases differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    /// The value of a probe: the logarithm of its progress, else percent.
    fn of(self, probe: &Probe) -> f64 {
        match self {
            Self::Progress => probe.progress.rate.ln(),
            Self::CpuUtil => probe.profile.cpu_util,
            Self::Lock => probe.profile.lock,
        }
    }
}

/// A change of phase between two probes of a search.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseChange {
    /// The first probe of the new phase, from 0.
    pub at: usize,
    /// The sign that shows it most.
    pub sign: Sign,
    /// The parameter whose probes show it most.
    pub parameter: u32,
    /// The change with that parameter, from the old phase to the new one. For progress it is the
    /// ratio less 1, else percentage points.
    pub change: f64,
    /// Whether the change is beyond chance. `false`: chance may explain it, and there are too few
    /// probes to know.
    pub sure: bool,
}

impl PhaseChange {
    /// A smaller change of progress is not reported: a fifth.
    pub const LEAST_RATIO: f64 = 1.2;
    /// A smaller change of CPU_UTIL or LOCK is not reported, in percentage points.
    pub const LEAST_POINTS: f64 = 25.0;
    /// The least F that is reported at all, if the scatter of probes is known.
    pub const LEAST_F: f64 = 10.0;
    /// A probe counts if others took at most this share of what the program wanted.
    pub const MOST_LOST: f64 = 1.0 / 3.0;
    /// Share of searches without a change in which chance may make a sure one.
    pub const CHANCE: f64 = 0.05;

    /// The change of phase within a search that exceeds its reporting limit the most, if there is
    /// one.
    pub fn of(attempts: &[Attempt]) -> Option<Self> {
        let signs = [Sign::Progress, Sign::CpuUtil, Sign::Lock];
        let counted: Vec<(usize, &Attempt)> =
            attempts.iter().enumerate().filter(|(_, attempt)| !is_starved(attempt)).collect();
        let found = signs.into_iter().filter_map(|sign| {
            let least =
                if sign == Sign::Progress { Self::LEAST_RATIO.ln() } else { Self::LEAST_POINTS };
            let value = |&(index, attempt): &(usize, &Attempt)| ProbeValue {
                index,
                number: attempt.probe.parameter,
                value: sign.of(&attempt.probe),
                square: Some(attempt).filter(|_| sign == Sign::Progress).and_then(own_square),
            };
            let values: Vec<ProbeValue> = counted.iter().map(value).collect();
            // The earliest of equals.
            let cuts: Vec<SeriesSplit> = values
                .iter()
                .skip(1)
                .filter_map(|first| SeriesSplit::new(&values, first.index, least))
                .collect();
            // Cuts without such a number count too: chance had as many tries.
            let chance = Self::CHANCE / (cuts.len() * signs.len()) as f64;
            let cut = cuts
                .into_iter()
                .filter(|cut| cut.shown.is_some())
                .reduce(|best, cut| if cut.explained > best.explained { cut } else { best })?;
            let (parameter, difference) = cut.shown?;
            let change = if sign == Sign::Progress { difference.exp_m1() } else { difference };
            let size = cut.size() / least;
            let told = size >= 1.0
                && match cut.f() {
                    Some(f) => f >= Self::LEAST_F,
                    None => sign == Sign::Progress || cut.numbers > 1,
                };
            told.then(|| {
                (Self { at: cut.at, sign, parameter, change, sure: cut.sure(chance) }, size)
            })
        });
        found.max_by(|one, other| one.1.total_cmp(&other.1)).map(|(shift, _)| shift)
    }
}

/// Whether others took too much of what the program wanted.
fn is_starved(attempt: &Attempt) -> bool {
    let ran = attempt.probe.profile.cpu_util / 100.0;
    attempt.lost.is_some_and(|lost| lost > PhaseChange::MOST_LOST * (lost + ran))
}

/// The squared standard error of the logarithm of progress that a probe reports.
fn own_square(attempt: &Attempt) -> Option<f64> {
    let progress = attempt.probe.progress;
    Some((progress.error? / progress.rate).powi(2))
}

/// What one probe shows of a sign.
struct ProbeValue {
    /// The index among all probes.
    index: usize,
    /// The parameter.
    number: u32,
    value: f64,
    /// The square of its standard error, if it is known.
    square: Option<f64>,
}

/// The mean square of the standard errors, and their number. `None`: not all are known.
fn own_scatter(values: &[ProbeValue]) -> Option<(f64, usize)> {
    let squares: Vec<f64> = values.iter().map(|value| value.square).collect::<Option<_>>()?;
    Some((squares.iter().sum::<f64>() / squares.len() as f64, squares.len()))
}

/// A series of values of numbers, cut in two.
struct SeriesSplit {
    at: usize,
    /// E.
    explained: f64,
    /// Sum of w(n).
    weight: f64,
    /// Numbers on both sides.
    numbers: usize,
    /// A number and its d. Its d is large enough to report, and its own errors do not explain it.
    /// Of all such numbers it has the largest part of E.
    shown: Option<(u32, f64)>,
    /// s² and its degrees of freedom, if it is known.
    scatter: Option<(f64, usize)>,
}

impl SeriesSplit {
    /// `None`: no number is on both sides, or a value is none. `least`: the least d to report.
    fn new(values: &[ProbeValue], at: usize, least: f64) -> Option<Self> {
        let mut sides: BTreeMap<u32, [Vec<&ProbeValue>; 2]> = BTreeMap::new();
        for probe in values {
            if !probe.value.is_finite() {
                return None;
            }
            sides.entry(probe.number).or_default()[usize::from(probe.index >= at)].push(probe);
        }
        // For each number on both sides: d, w, and whether its own errors do not explain d.
        let mut differences = Vec::new();
        let (mut squares, mut freedom) = (0.0, 0usize);
        for (&number, sides) in &sides {
            let mean = |side: &Vec<&ProbeValue>| {
                side.iter().map(|probe| probe.value).sum::<f64>() / side.len() as f64
            };
            let means = sides.each_ref().map(mean);
            for (side, mean) in sides.iter().zip(means).filter(|(side, _)| side.len() > 1) {
                squares += side.iter().map(|probe| (probe.value - mean).powi(2)).sum::<f64>();
                freedom += side.len() - 1;
            }
            let [b, a] = sides.each_ref().map(|side| side.len() as f64);
            // The squared standard error of the difference, as far as the probes report it.
            let square = |side: &Vec<&ProbeValue>| {
                side.iter().filter_map(|probe| probe.square).sum::<f64>()
                    / (side.len() as f64).powi(2)
            };
            let difference = means[1] - means[0];
            let own = sides.iter().map(square).sum::<f64>();
            if a > 0.0 && b > 0.0 {
                let shown =
                    difference.abs() >= least && difference.powi(2) >= PhaseChange::LEAST_F * own;
                differences.push((number, difference, a * b / (a + b), shown));
            }
        }
        let part = |&(_, d, weight, _): &(u32, f64, f64, bool)| weight * d * d;
        let shown = differences.iter().filter(|(.., shown)| *shown);
        let shown = shown.max_by(|one, other| part(one).total_cmp(&part(other)));
        (!differences.is_empty()).then(|| Self {
            at,
            explained: differences.iter().map(part).sum(),
            weight: differences.iter().map(|(_, _, weight, _)| weight).sum(),
            numbers: differences.len(),
            shown: shown.map(|&(number, difference, ..)| (number, difference)),
            scatter: (freedom > 0)
                .then(|| (squares / freedom as f64, freedom))
                .or_else(|| own_scatter(values)),
        })
    }

    /// The size of the differences.
    fn size(&self) -> f64 {
        (self.explained / self.weight).sqrt()
    }

    /// F, if the scatter is known.
    fn f(&self) -> Option<f64> {
        self.scatter.map(|(scatter, _)| self.explained / (self.numbers as f64 * scatter))
    }

    /// Whether chance makes one as large with this probability at most.
    fn sure(&self, chance: f64) -> bool {
        let Some(((_, freedom), f)) = self.scatter.zip(self.f()) else { return false };
        FisherSnedecor::new(self.numbers as f64, freedom as f64)
            .is_ok_and(|fisher| fisher.sf(f) <= chance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::attempt;
    use pinwise_topology::Random;

    /// Probes of these numbers; the rate of one follows from its place in the search and its
    /// number.
    fn attempts(numbers: &[u32], rate: impl Fn(usize, u32) -> f64) -> Vec<Attempt> {
        let attempt = |(index, &n): (usize, &u32)| attempt(n, n, rate(index, n));
        numbers.iter().enumerate().map(attempt).collect()
    }

    fn noisy(
        seed: u64,
        noise: f64,
        numbers: &[u32],
        rate: impl Fn(usize, u32) -> f64,
    ) -> Vec<Attempt> {
        let random = std::cell::RefCell::new(Random::new(seed));
        attempts(numbers, |index, n| {
            rate(index, n) * (1.0 + noise * (2.0 * random.borrow_mut().unit() - 1.0))
        })
    }

    const ROUNDS: [u32; 15] = [1, 2, 4, 8, 16, 1, 2, 4, 8, 16, 1, 2, 4, 8, 16];

    #[test]
    fn a_change_is_found_where_it_is_whatever_the_numbers_do() {
        for seed in 0..20 {
            let slower = |index: usize, n: u32| f64::from(n) * if index < 7 { 1.0 } else { 0.6 };
            let shift = PhaseChange::of(&noisy(seed, 0.05, &ROUNDS, slower)).unwrap();
            assert!((5..=9).contains(&shift.at) && shift.sign == Sign::Progress, "{shift:?}");
            assert!((shift.change + 0.4).abs() < 0.15 && shift.sure, "{shift:?}");
        }
    }

    #[test]
    fn a_number_probed_again_at_the_end_is_enough() {
        let search = [8, 4, 12, 6, 8];
        let shift = PhaseChange::of(&attempts(&search, |index, n| {
            f64::from(n) * if index < 3 { 1.0 } else { 1.5 }
        }))
        .unwrap();
        assert_eq!(shift.sign, Sign::Progress);
        assert!((shift.change - 0.5).abs() < 1e-9 && !shift.sure, "one probe a side: {shift:?}");
        assert_eq!(PhaseChange::of(&attempts(&search, |_, n| f64::from(n))), None);
        assert_eq!(
            PhaseChange::of(&attempts(&search[..4], |index, n| f64::from(n) * (index + 1) as f64)),
            None,
            "no number twice"
        );
    }

    #[test]
    fn a_phase_that_is_faster_with_some_numbers_and_slower_with_others_is_one() {
        let turned =
            |index: usize, n: u32| if index < 5 { f64::from(n) } else { 16.0 / f64::from(n) };
        let shift = PhaseChange::of(&attempts(&ROUNDS, turned)).unwrap();
        assert_eq!((shift.at, shift.sign), (5, Sign::Progress));
    }

    #[test]
    fn noise_is_no_phase() {
        let found = (0..200)
            .filter(|&seed| {
                PhaseChange::of(&noisy(seed, 0.15, &ROUNDS, |_, n| f64::from(n))).is_some()
            })
            .count();
        assert!(found <= 2, "{found} of 200");
    }

    #[test]
    fn noise_of_a_short_search_is_no_sure_phase_and_a_change_beyond_it_is() {
        const ERROR: f64 = 0.1;
        // The deviates of a probe in a search, about normal.
        let search = |seed: u64, numbers: &[u32], errors: bool, rate: &dyn Fn(usize) -> f64| {
            let random = std::cell::RefCell::new(Random::new(seed));
            let normal = || (0..12).map(|_| random.borrow_mut().unit()).sum::<f64>() - 6.0;
            let mut search = attempts(numbers, |index, _| rate(index) * (ERROR * normal()).exp());
            for attempt in search.iter_mut().filter(|_| errors) {
                attempt.probe.progress.error = Some(ERROR * attempt.probe.progress.rate);
            }
            PhaseChange::of(&search).is_some_and(|shift| shift.sure)
        };
        for numbers in [&[8, 4, 12, 6, 8][..], &[4, 8, 6, 6, 4], &[8, 4, 4, 8, 8, 4], &ROUNDS] {
            for errors in [false, true] {
                let found =
                    (0..400).filter(|&seed| search(seed, numbers, errors, &|_| 1.0)).count();
                assert!(found <= 20, "{numbers:?}, told their errors: {errors}: {found} of 400");
            }
        }
        let halved = |index: usize| if index < 3 { 1.0 } else { 0.3 };
        let found = (0..400).filter(|&seed| search(seed, &[8, 4, 12, 6, 8], true, &halved)).count();
        assert!(found >= 360, "{found} of 400");
    }

    /// A test of large differences alone finds more.
    #[test]
    fn errors_that_are_too_small_make_no_phase_sure() {
        const ERROR: f64 = 0.2;
        const SEARCHES: u64 = 1000;
        let numbers: Vec<u32> = [2, 4, 8, 16].repeat(3);
        for ratio in [1.0, 2.0, 3.0] {
            let found = (0..SEARCHES).filter_map(|seed| {
                let random = std::cell::RefCell::new(Random::new(seed));
                let normal = || (0..12).map(|_| random.borrow_mut().unit()).sum::<f64>() - 6.0;
                let mut search = attempts(&numbers, |_, n| f64::from(n) * (ERROR * normal()).exp());
                for attempt in &mut search {
                    attempt.probe.progress.error =
                        Some(ERROR / ratio * attempt.probe.progress.rate);
                }
                PhaseChange::of(&search)
            });
            let sure = found.filter(|found| found.sure).count();
            // A third of the chance, as progress is one of three signs.
            assert!(sure as f64 <= SEARCHES as f64 * PhaseChange::CHANCE / 3.0, "{ratio}: {sure}");
        }
    }

    #[test]
    fn a_number_of_noise_does_not_make_the_small_change_of_another_a_phase() {
        let probes = [
            (8, 1.0, 0.001),
            (8, 1.002, 0.001),
            (4, 1.0, 0.25),
            (8, 1.05, 0.001),
            (8, 1.052, 0.001),
            (4, 1.8, 0.25),
        ];
        let mut search = attempts(&probes.map(|(n, ..)| n), |index, _| probes[index].1);
        for (attempt, (_, rate, error)) in search.iter_mut().zip(probes) {
            attempt.probe.progress.error = Some(rate * error);
        }
        assert_eq!(PhaseChange::of(&search), None);
    }

    #[test]
    fn a_phase_begins_with_a_probe_that_counts() {
        let mut search = attempts(&[4, 2, 3, 4, 2], |index, _| if index < 2 { 1.0 } else { 0.4 });
        for attempt in &mut search {
            (attempt.probe.profile.cpu_util, attempt.lost) = (90.0, Some(0.05));
        }
        assert_eq!(PhaseChange::of(&search).map(|shift| shift.at), Some(2));
        (search[2].probe.profile.cpu_util, search[2].lost) = (6.4, Some(0.9));
        assert_eq!(PhaseChange::of(&search).map(|shift| shift.at), Some(3));
    }

    #[test]
    fn a_probe_that_others_starved_or_that_may_be_as_far_off_shows_no_phase() {
        let search =
            || attempts(&[2, 1, 4, 3, 3, 2], |index, _| if index == 3 { 0.13 } else { 1.0 });
        assert_eq!(PhaseChange::of(&search()).map(|shift| shift.parameter), Some(3));
        let mut inexact = search();
        for (index, attempt) in inexact.iter_mut().enumerate() {
            let relative = if index == 3 { 1.008 } else { 0.02 };
            attempt.probe.progress.error = Some(relative * attempt.probe.progress.rate);
        }
        assert_eq!(PhaseChange::of(&inexact), None, "its error is as large");
        let mut starved = search();
        for attempt in &mut starved {
            (attempt.probe.profile.cpu_util, attempt.lost) = (90.0, Some(0.05));
        }
        (starved[3].probe.profile.cpu_util, starved[3].lost) = (6.4, Some(0.9));
        assert_eq!(PhaseChange::of(&starved), None, "others took its time");
        let mut waits = attempts(&[2, 1, 4, 2], |_, n| f64::from(n));
        waits[3].probe.profile.lock = 40.0;
        assert_eq!(PhaseChange::of(&waits), None, "one pair of LOCK without a known scatter");
    }

    #[test]
    fn the_profile_shows_a_change_that_progress_does_not() {
        let mut search = attempts(&[4, 2, 4, 2], |_, n| f64::from(n));
        for attempt in &mut search[2..] {
            attempt.probe.profile.lock = 40.0;
        }
        let shift = PhaseChange::of(&search).unwrap();
        assert_eq!((shift.at, shift.sign, shift.parameter), (2, Sign::Lock, 4));
        assert!((shift.change - 40.0).abs() < 1e-9);
    }
}
