//! What a search recommends, with its uncertainty.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A value and where it is with a probability of 90 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval<T> {
    /// Best estimate.
    pub value: T,
    /// 5 % are below.
    pub low: T,
    /// 5 % are above.
    pub high: T,
}

/// Why a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// The choice may lose little enough, and everything that needs two probes has them.
    Settled,
    /// The next probe would have been one too many.
    Probes,
    /// The next probe would have taken longer than what is left of the time.
    Time,
    /// Every number was tried as often as was asked for.
    AllTried,
}

/// The choice of a search that looks at speed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Advice {
    /// The number of threads to take: the fewest that are probably within the tolerance of the
    /// best.
    pub threads: u32,
    /// Where the fewest threads within the tolerance of the best are, with a probability of 90 %.
    pub between: (u32, u32),
    /// The value of the choice, in the unit of progress.
    pub value: Interval<f64>,
    /// How many times faster than with `reference` threads (of the objective: how many times
    /// better).
    pub gain: Interval<f64>,
    /// What `gain` is relative to: the least number of threads that was probed. `None`: the
    /// sequential program.
    pub reference: Option<u32>,
    /// The threads that makes.
    pub reference_threads: u32,
    /// `threads` was probed; otherwise the laws predict it from the probes of other numbers.
    pub probed: bool,
    /// Share of the best that the choice is expected to lose, at least 0.
    pub loss: f64,
    /// Most threads that could have been chosen, and the share of the choice's speed they cost;
    /// negative: they are faster.
    pub more: Option<(u32, Interval<f64>)>,
    /// Why the search ended.
    pub ended: Ended,
    /// Probes that were made.
    pub probes: usize,
    /// Different numbers that were probed. With a single one, everything about others comes from
    /// the laws alone.
    pub numbers: usize,
    /// Probes of `threads`. The error of a single one is unknown.
    pub readings: usize,
}

impl Advice {
    /// To choose the candidate at place `choice`, from draws of all candidates' values (logarithms)
    /// by what is believed of them, at least one. Says nothing about the search itself: no
    /// candidate counts as probed. The gain is over the candidate at place `reference`. That one
    /// must have been probed: laws do not predict a number that is far from all probed ones.
    pub(crate) fn drawn(
        candidates: &[u32],
        draws: &[Vec<f64>],
        choice: usize,
        reference: usize,
        tolerance: f64,
    ) -> Self {
        let last = candidates.len() - 1;
        let enough = (1.0 - tolerance).ln();
        let fewest = |draw: &Vec<f64>| {
            let most = greatest(draw);
            let place = draw.iter().position(|value| *value >= most + enough).unwrap_or(choice);
            f64::from(candidates[place])
        };
        let between = interval(draws.iter().map(fewest).collect());
        let more =
            interval(draws.iter().map(|draw| 1.0 - (draw[last] - draw[choice]).exp()).collect());
        let threads = candidates[choice];
        Self {
            threads,
            between: ((between.low as u32).min(threads), (between.high as u32).max(threads)),
            value: interval(draws.iter().map(|draw| draw[choice].exp()).collect()),
            gain: interval(
                draws.iter().map(|draw| (draw[choice] - draw[reference]).exp()).collect(),
            ),
            reference: Some(candidates[reference]),
            reference_threads: candidates[reference],
            probed: false,
            loss: expected_loss(draws, choice),
            more: (choice < last).then_some((candidates[last], more)),
            ended: Ended::AllTried,
            probes: 0,
            numbers: 0,
            readings: 0,
        }
    }

    /// With a speed-up over the sequential program instead of a gain over some number, where it is
    /// known what speed-up progress of 1 is, as on a model.
    pub fn over_sequential(self, speedup: f64) -> Self {
        let Interval { value, low, high } = self.value;
        let value = Interval { value: value * speedup, low: low * speedup, high: high * speedup };
        Self { value, gain: value, reference: None, reference_threads: 1, ..self }
    }
}

/// Share of the best value that the candidate at place `choice` loses, over `draws` of all values
/// (logarithms).
pub(crate) fn expected_loss(draws: &[Vec<f64>], choice: usize) -> f64 {
    draws.iter().map(|draw| 1.0 - (draw[choice] - greatest(draw)).exp()).sum::<f64>()
        / draws.len() as f64
}

fn greatest(draw: &[f64]) -> f64 {
    draw.iter().copied().fold(f64::MIN, f64::max)
}

/// Median and middle 90 %.
fn interval(mut values: Vec<f64>) -> Interval<f64> {
    values.sort_by(f64::total_cmp);
    let at = |share: f64| values[((values.len() - 1) as f64 * share).round() as usize];
    Interval { value: at(0.5), low: at(0.05), high: at(0.95) }
}

/// `n = 26 (23-29), speed-up 11.4 ± 0.3, n = 72 costs 4 ± 2 %`
impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (low, high) = self.between;
        write!(
            f,
            "n = {} ({low}-{high}{})",
            self.threads,
            if self.probed { "" } else { ", not probed" }
        )?;
        if self.numbers == 1 && low < high {
            let only = if self.probed {
                "the only number probed"
            } else {
                "by probes of a single other number"
            };
            return write!(f, ", {only}: no speed-up is known");
        }
        let about = if self.probed { "" } else { "about " };
        let gain = format!("{about}{}", times(&self.gain));
        match (self.reference, self.reference_threads) {
            (Some(n), _) if self.threads == n => {}
            // One thread, or one in addition to the first, which waits for it.
            (None, _) | (Some(1), 1 | 2) => write!(f, ", speed-up {gain}")?,
            (Some(n), threads) if n == threads => write!(f, ", {gain} times n = {n}")?,
            (Some(n), threads) => write!(f, ", {gain} times n = {n} ({threads} threads)")?,
        }
        let Some((n, cost)) = &self.more else { return Ok(()) };
        let half = half(cost) * 100.0;
        let decimals = usize::from(half < 1.0);
        let percent = |share: f64| format!("{:.decimals$}", share * 100.0);
        // Of both what is divided is their ratio, 1 - cost.
        let skewed = is_skewed(&Interval {
            value: 1.0 - cost.value,
            low: 1.0 - cost.high,
            high: 1.0 - cost.low,
        });
        let told = |does: &str, value: f64, low: f64, high: f64| match skewed {
            true => {
                format!("{does} {} % ({} to {} %)", percent(value), percent(low), percent(high))
            }
            false => format!("{does} {} ± {half:.decimals$} %", percent(value)),
        };
        match cost.value {
            share if share >= 0.005 => {
                write!(f, ", n = {n} {}", told("costs", share, cost.low, cost.high))
            }
            share if share <= -0.005 => {
                write!(f, ", n = {n} {}", told("gains", -share, -cost.high, -cost.low))
            }
            _ if skewed => {
                write!(
                    f,
                    ", n = {n} is as fast (gains {} to {} %)",
                    percent(-cost.high),
                    percent(-cost.low)
                )
            }
            _ => write!(f, ", n = {n} is as fast (± {half:.decimals$} %)"),
        }
    }
}

/// Where half of an interval exceeds this share of its value, both ends are printed: such intervals
/// are skewed, and the value less half may be impossible.
const SKEWED: f64 = 0.3;

/// `11.4 ± 0.3`, or `1.6 (0.7 to 13.2)`.
fn times(interval: &Interval<f64>) -> String {
    let half = half(interval);
    let decimals = [0.1, 0.01].iter().position(|&least| half >= least).map_or(3, |index| index + 1);
    let Interval { value, low, high } = interval;
    if is_skewed(interval) {
        return format!("{value:.decimals$} ({low:.decimals$} to {high:.decimals$})");
    }
    format!("{value:.decimals$} ± {half:.decimals$}")
}

fn half(interval: &Interval<f64>) -> f64 {
    (interval.high - interval.low) / 2.0
}

/// Of a value that is above 0.
fn is_skewed(interval: &Interval<f64>) -> bool {
    half(interval) > SKEWED * interval.value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advice() -> Advice {
        Advice {
            threads: 26,
            between: (23, 29),
            value: Interval { value: 8.7, low: 8.5, high: 8.9 },
            gain: Interval { value: 11.4, low: 11.1, high: 11.7 },
            reference: Some(1),
            reference_threads: 1,
            probed: true,
            loss: 0.001,
            more: Some((72, Interval { value: 0.04, low: 0.02, high: 0.06 })),
            ended: Ended::Settled,
            probes: 7,
            numbers: 6,
            readings: 2,
        }
    }

    #[test]
    fn what_is_certain_and_what_is_not_is_told() {
        assert_eq!(
            advice().to_string(),
            "n = 26 (23-29), speed-up 11.4 ± 0.3, n = 72 costs 4 ± 2 %"
        );
        let gain = Interval { value: 1.234, low: 1.22, high: 1.26 };
        let unsure = Advice { probed: false, gain, more: None, ..advice() };
        assert_eq!(unsure.to_string(), "n = 26 (23-29, not probed), speed-up about 1.23 ± 0.02");
        // A pipeline of several pools: n = 1 is far from sequential.
        let pipeline = Advice { reference_threads: 7, gain, more: None, ..advice() };
        assert_eq!(pipeline.to_string(), "n = 26 (23-29), 1.23 ± 0.02 times n = 1 (7 threads)");
        let eight =
            Advice { reference: Some(8), reference_threads: 8, gain, more: None, ..advice() };
        assert_eq!(eight.to_string(), "n = 26 (23-29), 1.23 ± 0.02 times n = 8");
        let fewest = Advice {
            threads: 1,
            between: (1, 3),
            gain: Interval { value: 1.0, low: 1.0, high: 1.0 },
            ..advice()
        };
        assert_eq!(fewest.to_string(), "n = 1 (1-3), n = 72 costs 4 ± 2 %");
        let of = |value, low, high| Advice {
            more: Some((72, Interval { value, low, high })),
            ..fewest.clone()
        };
        assert_eq!(
            of(0.001, -0.004, 0.006).to_string(),
            "n = 1 (1-3), n = 72 is as fast (± 0.5 %)"
        );
        assert_eq!(of(-0.12, -0.20, -0.04).to_string(), "n = 1 (1-3), n = 72 gains 12 ± 8 %");
        let single = Advice { numbers: 1, ..advice() };
        assert_eq!(
            single.to_string(),
            "n = 26 (23-29), the only number probed: no speed-up is known"
        );
        let only = Advice { between: (26, 26), more: None, reference: Some(26), ..single };
        assert_eq!(only.to_string(), "n = 26 (26-26)", "there is no other");
        assert_eq!(
            advice().over_sequential(2.0).to_string(),
            "n = 26 (23-29), speed-up 17.4 ± 0.4, n = 72 costs 4 ± 2 %"
        );
    }

    #[test]
    fn wide_intervals_are_told_by_their_ends() {
        let of = |gain, more| Advice { gain, more: Some((72, more)), ..advice() }.to_string();
        let wide = Interval { value: 1.6, low: 0.7, high: 13.1 };
        let gains = Interval { value: -0.5, low: -1.31, high: 0.11 };
        assert_eq!(
            of(wide, gains),
            "n = 26 (23-29), speed-up 1.6 (0.7 to 13.1), n = 72 gains 50 % (-11 to 131 %)"
        );
        let costs = Interval { value: 0.5, low: 0.2, high: 0.7 };
        assert_eq!(
            of(wide, costs),
            "n = 26 (23-29), speed-up 1.6 (0.7 to 13.1), n = 72 costs 50 % (20 to 70 %)"
        );
        let none = Interval { value: 0.0, low: -0.6, high: 0.4 };
        assert_eq!(
            of(wide, none),
            "n = 26 (23-29), speed-up 1.6 (0.7 to 13.1), n = 72 is as fast (gains -40 to 60 %)"
        );
    }
}
