//! Judges the last comparison: the default, the number alone, the number with its placement.
//! `threads` and `tune` end with it.
//!
//! The parts before it searched for the best, and so overstate it. Here each [`Way`] is measured
//! once a round, in random order, in windows that the search did not use. Ways are compared within
//! rounds, so that a disturbance affects all alike. Each pair of ways may be compared, and the
//! intervals of all pairs hold together (Bonferroni). A search for the number alone ends with the
//! same comparison, of two ways.
//!
//! Ranks decide ([`crate::signed_rank`]). Means decide while there are too few rounds for ranks,
//! and beside other programs ([`crate::statistics::ratio_beside_load`]). A load in bursts makes
//! some rounds odd, and these are part of the speed in the long run.
//!
//! A comparison may look at its gains and end before its time ([`ComparedRounds::is_settled`]). It
//! looks after 5 rounds, and after twice as many each. Only widths and the verdict decide. The end
//! of the time is the last look. The looks share the error (Bonferroni), so any of them may end it.

use crate::Estimate;
use crate::signed_rank;
use crate::statistics::{TIMES_FOR_POWER, estimate, ratio, ratio_beside_load};
use crate::statistics::{no_high, no_low};
use serde::{Deserialize, Serialize};

/// How the program is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// The default: the program's own number of threads, unpinned.
    Default,
    /// With the number that was found, unpinned.
    Number,
    /// With that number, pinned.
    Placed,
}

/// How much faster one way is than another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gain {
    /// Estimated ratio of the performances, less 1. By means it is the ratio of the means, by ranks
    /// the Hodges-Lehmann estimate.
    pub mean: f64,
    /// Lower end of its interval.
    #[serde(deserialize_with = "no_low")]
    pub low: f64,
    /// Upper end.
    #[serde(deserialize_with = "no_high")]
    pub high: f64,
}

/// The verdict of a last comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LastComparisonVerdict {
    /// Nothing that was compared is better than doing nothing.
    Default,
    /// Another number of threads is faster.
    Number,
    /// Fewer threads are as fast, as far as was asked.
    Fewer,
    /// Pinning is faster than both.
    Placed,
    /// The intervals do not show whether anything is better than doing nothing.
    Undecided,
}

impl LastComparisonVerdict {
    /// How the program is run then.
    pub fn way(self) -> Way {
        match self {
            Self::Default | Self::Undecided => Way::Default,
            Self::Number | Self::Fewer => Way::Number,
            Self::Placed => Way::Placed,
        }
    }
}

/// Fresh windows of each way, round by round.
#[derive(Clone, Debug)]
pub struct ComparedRounds {
    ways: Vec<Way>,
    rounds: Vec<Vec<Option<f64>>>,
    confidence: f64,
    looks: usize,
    rule: GainRule,
    least: usize,
}

/// How gains are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GainRule {
    /// By ranks, once there are enough rounds. Before that, as `Means`.
    Ranks,
    /// By means of independent rounds.
    Means,
    /// By means. Rounds that are alike in time count as fewer, as beside other programs.
    MeansBesideLoad,
}

impl ComparedRounds {
    /// Rounds at the first look. With fewer the intervals are wide.
    pub const FIRST_LOOK: usize = 5;
    /// The looks of a comparison that may end early. More of them would widen all intervals.
    pub const LOOKS: usize = 6;

    /// Between `ways`, without a round yet; `confidence` is that of all comparisons together.
    pub fn new(ways: Vec<Way>, confidence: f64) -> Self {
        Self { ways, rounds: Vec::new(), confidence, looks: 1, rule: GainRule::Means, least: 0 }
    }

    /// The same, if this number of looks at the gains may end the comparison. The last one is the
    /// end of its time.
    #[must_use]
    pub fn with_looks(mut self, looks: usize) -> Self {
        self.looks = looks.max(1);
        self
    }

    /// The same, with gains by this rule.
    #[must_use]
    pub fn by(mut self, rule: GainRule) -> Self {
        self.rule = rule;
        self
    }

    /// The same, but fewer rounds than `least` decide nothing. A few starved windows may be alike,
    /// and their interval narrow.
    #[must_use]
    pub fn with_least(mut self, least: usize) -> Self {
        self.least = least;
        self
    }

    /// Those that take part.
    pub fn ways(&self) -> &[Way] {
        &self.ways
    }

    /// How many rounds there are so far.
    pub fn count(&self) -> usize {
        self.rounds.len()
    }

    /// The confidence of all intervals of gains together.
    pub fn confidence(&self) -> f64 {
        self.confidence
    }

    /// Rounds in which both ways were measured: what [`ComparedRounds::gain`] rests on.
    pub fn common_rounds(&self, way: Way, other: Way) -> usize {
        let (Some(one), Some(two)) = (self.values(way), self.values(other)) else { return 0 };
        one.zip(two).filter(|(one, two)| one.is_some() && two.is_some()).count()
    }

    /// Takes a round: the performance of each way, higher is better, in the order of
    /// [`ComparedRounds::ways`]; `None` if it failed.
    pub fn take(&mut self, round: Vec<Option<f64>>) {
        self.rounds.push(round);
    }

    /// The mean of a way's windows; `None` without any.
    pub fn estimate(&self, way: Way) -> Option<Estimate> {
        let values: Vec<f64> = self.values(way)?.flatten().collect();
        estimate(&values, self.confidence)
    }

    /// How much faster `way` is than `other`, over the rounds in which both were measured; `None`
    /// from fewer than 2.
    pub fn gain(&self, way: Way, other: Way) -> Option<Gain> {
        let pairs: Vec<(f64, f64)> = self
            .values(way)?
            .zip(self.values(other)?)
            .filter_map(|(one, other)| Some((one?, other?)))
            .collect();
        let together = 1.0 - (1.0 - self.confidence) / (self.comparisons() * self.looks as f64);
        let means = || ratio(&pairs, 0.0, together);
        let ratio = match self.rule {
            GainRule::Ranks => signed_rank::ratio(&pairs, together).or_else(means),
            GainRule::Means => means(),
            GainRule::MeansBesideLoad => ratio_beside_load(&pairs, together),
        }?;
        Some(Gain { mean: ratio.value - 1.0, low: ratio.low - 1.0, high: ratio.high - 1.0 })
    }

    /// Pairs of ways.
    fn comparisons(&self) -> f64 {
        let ways = self.ways.len().max(2) as f64;
        ways * (ways - 1.0) / 2.0
    }

    /// Whether every gain over the default is known to `precision`, or to a quarter of itself. Then
    /// more rounds would change a digit and no decision.
    fn is_precise(&self, precision: f64) -> bool {
        let mut others = self.ways.iter().filter(|&&way| way != Way::Default);
        others.all(|&way| {
            self.gain(way, Way::Default).is_some_and(|Gain { mean, low, high }| {
                (high - mean).max(mean - low) <= precision.max(mean.abs() / 4.0)
            })
        })
    }

    /// Whether the comparison ends before its time. It must look now, and the verdict must be
    /// decided. Every gain must be known to `precision`, half of the tolerance, or to a quarter of
    /// itself. `fewer` as for [`Self::choice`].
    pub fn is_settled(&self, fewer: bool, precision: f64) -> bool {
        let looks = (1..self.looks).any(|look| self.count() == Self::FIRST_LOOK << (look - 1));
        looks
            && self.is_precise(precision)
            && self.choice(fewer, 2.0 * precision) != LastComparisonVerdict::Undecided
    }

    /// Whether the gain of `way` over the default may exceed the share `within`, and may also be 0
    /// or less.
    pub fn is_open(&self, way: Way, within: f64) -> bool {
        let gain = self.gain(way, Way::Default);
        gain.is_none_or(|gain| gain.low <= 0.0 && gain.high > within)
    }

    /// How many times the rounds would probably decide whether each open way is better. An interval
    /// is half as wide after four times the rounds. The means may come closer: see
    /// `TIMES_FOR_POWER`. `None`: no interval is known yet.
    pub fn times_to_decide(&self, within: f64) -> Option<f64> {
        let ways = self.ways.iter().filter(|&&way| way != Way::Default);
        let times = ways.filter(|&&way| self.is_open(way, within)).map(|&way| {
            let Gain { mean, low, high } = self.gain(way, Way::Default)?;
            // The lower end has to come above 0, or the upper one down to the tolerance.
            let [rises, falls] =
                [(mean - low) / mean.max(0.0), (high - mean) / (within - mean).max(0.0)];
            Some(TIMES_FOR_POWER * rises.min(falls).powi(2))
        });
        times.reduce(|one, other| Some(one?.max(other?))).flatten()
    }

    /// The gain of a choice over the default; `None` if it is the default.
    pub fn gain_of(&self, choice: LastComparisonVerdict) -> Option<Gain> {
        let way = choice.way();
        self.gain(way, Way::Default).filter(|_| way != Way::Default)
    }

    /// The verdict, if [`Way::Default`] is compared. `fewer`: the number that was found is below
    /// the default. Then being as fast, but for a share of `within`, is enough. Pinning has to be
    /// faster than the same number unpinned, and than doing nothing. Doing nothing is chosen if the
    /// intervals show that no other way is better by more than `within`.
    pub fn choice(&self, fewer: bool, within: f64) -> LastComparisonVerdict {
        let gain = |way, other| {
            self.gain(way, other).filter(|_| self.common_rounds(way, other) >= self.least)
        };
        let better = |way, other| gain(way, other).is_some_and(|gain| gain.low > 0.0);
        let takes_part = |way| self.ways.contains(&way);
        let rival = if takes_part(Way::Number) { Way::Number } else { Way::Default };
        if better(Way::Placed, rival) && better(Way::Placed, Way::Default) {
            return LastComparisonVerdict::Placed;
        }
        match gain(Way::Number, Way::Default) {
            Some(gain) if gain.low > 0.0 => return LastComparisonVerdict::Number,
            Some(gain) if fewer && gain.low >= -within => return LastComparisonVerdict::Fewer,
            _ => {}
        }
        let mut others = self.ways.iter().filter(|&&way| way != Way::Default).peekable();
        let worse = |way| gain(way, Way::Default).is_some_and(|gain| gain.high <= within);
        if others.peek().is_some() && others.all(|&way| worse(way)) {
            LastComparisonVerdict::Default
        } else {
            LastComparisonVerdict::Undecided
        }
    }

    fn values(&self, way: Way) -> Option<impl Iterator<Item = Option<f64>>> {
        let place = self.ways.iter().position(|&own| own == way)?;
        Some(self.rounds.iter().map(move |round| round.get(place).copied().flatten()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten rounds. A disturbance halves the machine in every third, the same for all. Each window
    /// differs by up to `noise`.
    fn rounds(speeds: &[(Way, f64)], noise: f64) -> ComparedRounds {
        let mut random = pinwise_topology::Random::new(7);
        let mut rounds = ComparedRounds::new(speeds.iter().map(|(way, _)| *way).collect(), 0.95);
        for round in 0..10 {
            let machine = if round % 3 == 0 { 0.5 } else { 1.0 };
            let mut window = |(_, speed): &(Way, f64)| {
                Some(speed * machine * (1.0 + noise * (random.unit() - 0.5)))
            };
            rounds.take(speeds.iter().map(&mut window).collect());
        }
        rounds
    }

    #[test]
    fn what_is_better_beyond_its_interval_is_chosen() {
        let of = |default, number, placed, fewer| {
            rounds(&[(Way::Default, default), (Way::Number, number), (Way::Placed, placed)], 0.04)
                .choice(fewer, 0.03)
        };
        assert_eq!(of(1.0, 1.2, 1.4, false), LastComparisonVerdict::Placed);
        assert_eq!(
            of(1.0, 1.2, 1.2, false),
            LastComparisonVerdict::Number,
            "pinning that does not help is left out"
        );
        assert_eq!(of(1.0, 1.2, 0.9, false), LastComparisonVerdict::Number);
        assert_eq!(of(1.0, 1.0, 1.0, false), LastComparisonVerdict::Default);
        assert_eq!(
            of(1.0, 0.8, 0.9, true),
            LastComparisonVerdict::Default,
            "faster than the number alone is not enough"
        );
        assert_eq!(of(1.0, 1.0, 1.0, true), LastComparisonVerdict::Fewer);
        assert_eq!(of(1.0, 0.95, 0.95, true), LastComparisonVerdict::Default);
    }

    #[test]
    fn the_default_is_kept_only_where_intervals_show_that_nothing_beats_it() {
        let of = |number, noise| {
            rounds(&[(Way::Default, 1.0), (Way::Number, number)], noise).choice(false, 0.01)
        };
        assert_eq!(of(1.0, 0.02), LastComparisonVerdict::Default);
        assert_eq!(of(1.0, 1.0), LastComparisonVerdict::Undecided);
        assert_eq!(of(1.1, 1.0), LastComparisonVerdict::Undecided);
        assert_eq!(
            of(0.3, 0.4),
            LastComparisonVerdict::Default,
            "the interval is wide, but below 0"
        );
        let mut narrow = ComparedRounds::new(vec![Way::Default, Way::Number], 0.95);
        (0..10).for_each(|round| narrow.take(vec![Some(1.0), Some([0.994, 1.014][round % 2])]));
        let gain = narrow.gain(Way::Number, Way::Default).unwrap();
        assert!(gain.low < 0.0 && gain.high > 0.01 && gain.high - gain.low < 0.02, "{gain:?}");
        let verdict = narrow.choice(false, 0.01);
        assert_eq!(verdict, LastComparisonVerdict::Undecided, "it may be 1 % better");
        let mut once = ComparedRounds::new(vec![Way::Default, Way::Number], 0.95);
        once.take(vec![Some(1.0), Some(3.0)]);
        assert_eq!(
            once.choice(false, 0.01),
            LastComparisonVerdict::Undecided,
            "one round has no interval"
        );
    }

    #[test]
    fn a_gain_is_precise_by_its_width_alone_and_two_ways_are_one_comparison() {
        let of = |ways: &[(Way, f64)], noise| rounds(ways, noise);
        let two = [(Way::Default, 1.0), (Way::Number, 1.0)];
        assert!(of(&two, 0.01).is_precise(0.01) && !of(&two, 0.5).is_precise(0.01));
        let large = [(Way::Default, 1.0), (Way::Number, 3.0)];
        assert!(of(&large, 0.5).is_precise(0.01), "a quarter of the gain");
        let three = [two[0], two[1], (Way::Placed, 1.0)];
        let width = |rounds: &ComparedRounds| {
            let gain = rounds.gain(Way::Number, Way::Default).unwrap();
            gain.high - gain.low
        };
        let mut alone = of(&three, 0.1);
        alone.ways.pop();
        assert!(width(&alone) < width(&of(&three, 0.1)));
        // 1 comparison in 3 looks has the error of 3 comparisons in one.
        let looked = width(&alone.clone().with_looks(3));
        assert!((looked - width(&of(&three, 0.1))).abs() < 1e-12 && alone.confidence() == 0.95);
    }

    #[test]
    fn a_comparison_ends_early_only_at_a_look_once_it_is_decided() {
        let ended = |noise: f64, number: f64, looks: usize, precision: f64, most: usize| {
            let new = ComparedRounds::new(vec![Way::Default, Way::Number], 0.95);
            let mut rounds = new.with_looks(looks);
            (1..=most).find(|round| {
                let off = if round % 2 == 0 { 1.0 + noise } else { 1.0 - noise };
                rounds.take(vec![Some(1.0), Some(number * off)]);
                rounds.is_settled(false, precision)
            })
        };
        assert_eq!(ended(0.0, 1.2, 6, 0.005, 200), Some(5));
        assert_eq!(ended(0.0, 1.2, 1, 0.005, 200), None, "the end is its only look");
        assert_eq!(ended(0.01, 1.0, 6, 0.005, 200), Some(40));
        assert_eq!(ended(0.01, 1.0, 4, 0.005, 200), None, "looks after 5, 10 and 20 rounds");
        assert_eq!(ended(0.5, 1.0, 6, 0.005, 200), None, "too wide at all looks");
    }

    /// In one round of twenty the default got hardly anything done.
    #[test]
    fn one_starved_window_hides_no_gain_from_ranks() {
        let mut rounds = ComparedRounds::new(vec![Way::Default, Way::Number], 0.95).with_looks(4);
        for round in 0..20 {
            let default = if round == 7 { 0.01 } else { 1.0 };
            rounds.take(vec![Some(default), Some(1.05 + 0.001 * f64::from(round % 4))]);
        }
        let ranked = rounds.clone().by(GainRule::Ranks);
        assert_eq!(rounds.choice(false, 0.01), LastComparisonVerdict::Undecided);
        assert_eq!(ranked.choice(false, 0.01), LastComparisonVerdict::Number);
        let gain = ranked.gain(Way::Number, Way::Default).unwrap();
        assert!(gain.low > 0.049 && gain.high < 0.055, "{gain:?}");
    }

    /// Windows of a machine on which others run in bursts. Chance slows every window, by up to
    /// twenty times. As many looks as a search for a number has.
    #[test]
    fn intervals_by_ranks_hold_the_truth_as_often_as_they_say_on_a_busy_machine() {
        let mut random = pinwise_topology::Random::new(11);
        let (mut missed, comparisons) = (0, 1000);
        for _ in 0..comparisons {
            let new = || ComparedRounds::new(vec![Way::Default, Way::Number], 0.95);
            let mut rounds = new().with_looks(ComparedRounds::LOOKS).by(GainRule::Ranks);
            let wrong = (1..=40).any(|round| {
                let mut window = |speed: f64| {
                    let slow = if random.unit() < 0.3 { 1.0 - 0.95 * random.unit() } else { 1.0 };
                    Some(speed * slow * (1.0 + 0.04 * (random.unit() - 0.5)))
                };
                rounds.take(vec![window(1.0), window(1.05)]);
                let look = [10, 20, 40].contains(&round);
                let gain = look.then(|| rounds.gain(Way::Number, Way::Default)).flatten();
                gain.is_some_and(|gain| gain.low > 0.05 || gain.high < 0.05)
            });
            missed += u32::from(wrong);
        }
        assert!(missed * 20 <= comparisons, "{missed} of {comparisons} missed");
    }

    #[test]
    fn fewer_than_five_rounds_decide_nothing() {
        let decided = |least, count: usize| {
            let rounds = ComparedRounds::new(vec![Way::Default, Way::Number], 0.95);
            let mut rounds = rounds.with_least(least);
            (0..count).for_each(|_| rounds.take(vec![Some(1.0), Some(0.001)]));
            rounds.choice(false, 0.01)
        };
        assert_eq!(decided(5, 4), LastComparisonVerdict::Undecided);
        assert_eq!(decided(5, 5), LastComparisonVerdict::Default);
        let stored = decided(0, 2);
        assert_eq!(stored, LastComparisonVerdict::Default, "as an earlier version said");
    }

    #[test]
    fn the_default_number_needs_no_arm_of_its_own() {
        let placed = rounds(&[(Way::Default, 1.0), (Way::Placed, 1.3)], 0.04);
        assert_eq!(placed.choice(false, 0.01), LastComparisonVerdict::Placed);
        assert_eq!(placed.gain(Way::Number, Way::Default), None);
        let alone = rounds(&[(Way::Default, 1.0)], 0.0);
        assert_eq!(
            alone.choice(false, 0.01),
            LastComparisonVerdict::Undecided,
            "nothing was compared with it"
        );
    }

    #[test]
    fn a_disturbed_machine_does_not_blur_a_gain_and_failures_are_passed_over() {
        let mut rounds = rounds(&[(Way::Default, 1.0), (Way::Placed, 1.1)], 0.0);
        rounds.take(vec![None, Some(5.0)]);
        let gain = rounds.gain(Way::Placed, Way::Default).unwrap();
        assert!((gain.mean - 0.1).abs() < 1e-9 && gain.high - gain.low < 1e-9, "{gain:?}");
        assert_eq!((rounds.count(), rounds.estimate(Way::Default).unwrap().n), (11, 10));
        assert_eq!(ComparedRounds::new(vec![Way::Default], 0.95).estimate(Way::Default), None);
    }
}
