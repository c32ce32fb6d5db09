//! [`NumberAdvice`]: the number that a search recommends, with its uncertainty.

use serde::{Deserialize, Serialize};

/// A value and its interval. The value is within it with a probability of 90 %. If fresh windows
/// show it, the probability is 95 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval<T> {
    /// Best estimate.
    pub value: T,
    /// 5 % are below.
    pub low: T,
    /// 5 % are above.
    pub high: T,
}

/// Why the survey ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpeedSearchEnd {
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
pub struct NumberAdvice {
    /// The number of threads to take: the fewest that are probably within the tolerance of the
    /// best.
    pub threads: u32,
    /// The range that has the fewest threads within the tolerance of the best, with a probability
    /// of 90 %. It leaves out a number only if that number was probed, or lies between two that
    /// were.
    pub between: (u32, u32),
    /// Probed numbers of fewer threads that may do as well, ascending. With a probability of 5 % or
    /// more, each is within the tolerance of the best.
    pub open: Vec<u32>,
    /// The value of the choice, in the unit of progress.
    pub value: Interval<f64>,
    /// How many times faster than with `reference` threads (of the objective: how many times
    /// better).
    pub gain: Interval<f64>,
    /// The reference of `gain`: the least number of threads that was probed. `None`: the sequential
    /// program.
    pub reference: Option<u32>,
    /// The threads that the program makes with `reference`.
    pub reference_threads: u32,
    /// `threads` was probed; otherwise the laws predict it from the probes of other numbers.
    pub probed: bool,
    /// Share of the best that the choice is expected to lose, at least 0.
    pub loss: f64,
    /// The greatest probed number of threads, and the share of the choice's speed that it costs.
    /// Negative: it is faster. `None` if no number above the choice was probed.
    pub more: Option<(u32, Interval<f64>)>,
    /// Why the search ended.
    pub ended: SpeedSearchEnd,
    /// Probes that were made.
    pub probes: usize,
    /// Different numbers that were probed. With a single one, everything about others comes from
    /// the laws alone.
    pub numbers: usize,
    /// Probes of `threads`. The error of a single one is unknown.
    pub readings: usize,
}

impl NumberAdvice {
    /// Advises the candidate with index `choice`. `draws`, at least one, are possible values of all
    /// candidates (logarithms). `probed` has the indices of those that were probed, ascending.
    /// Nothing is claimed of a number beyond them, because laws do not predict one far from all of
    /// them. The gain is over the first of these. The advice says nothing about the search itself.
    pub(crate) fn drawn(
        candidates: &[u32],
        draws: &[Vec<f64>],
        choice: usize,
        probed: &[usize],
        tolerance: f64,
    ) -> Self {
        let reference = probed.first().copied().unwrap_or(0);
        let most = probed.last().copied().filter(|&most| choice < most);
        let enough = (1.0 - tolerance).ln();
        let enough_of = |draw: &Vec<f64>| {
            let most = greatest(draw);
            draw.iter().position(|value| *value >= most + enough).unwrap_or(choice) as f64
        };
        let between = interval(draws.iter().map(enough_of).collect());
        let low = (between.low as usize).min(choice);
        let high = (between.high as usize).max(choice);
        let may_do = |place: usize| {
            let draws_that_do =
                draws.iter().filter(|draw| draw[place] >= greatest(draw) + enough).count();
            draws_that_do * 20 >= draws.len()
        };
        let fewer = probed.iter().copied().filter(|&place| place < choice);
        // Numbers below the least and above the greatest that was probed are not left out.
        let last = candidates.len() - 1;
        let below = probed.iter().rfind(|&&place| place < low).filter(|_| probed.contains(&0));
        let above = probed.iter().find(|&&place| place > high).filter(|_| probed.contains(&last));
        let low = below.map_or(0, |place| place + 1);
        let high = above.map_or(last, |place| place - 1);
        let cost = |most: usize| {
            let costs = draws.iter().map(|draw| 1.0 - (draw[most] - draw[choice]).exp());
            (candidates[most], interval(costs.collect()))
        };
        let threads = candidates[choice];
        Self {
            threads,
            between: (candidates[low], candidates[high]),
            open: fewer.filter(|&place| may_do(place)).map(|place| candidates[place]).collect(),
            value: interval(draws.iter().map(|draw| draw[choice].exp()).collect()),
            gain: interval(
                draws.iter().map(|draw| (draw[choice] - draw[reference]).exp()).collect(),
            ),
            reference: Some(candidates[reference]),
            reference_threads: candidates[reference],
            probed: false,
            loss: expected_loss(draws, choice),
            more: most.map(cost),
            ended: SpeedSearchEnd::AllTried,
            probes: 0,
            numbers: 0,
            readings: 0,
        }
    }

    /// Replaces the gain by the speed-up over the sequential program. A model knows `speedup`,
    /// which belongs to progress 1.
    pub fn over_sequential(self, speedup: f64) -> Self {
        let Interval { value, low, high } = self.value;
        let value = Interval { value: value * speedup, low: low * speedup, high: high * speedup };
        Self { value, gain: value, reference: None, reference_threads: 1, ..self }
    }

    /// The same, but for two numbers with the result of fresh windows instead of the probes.
    /// `ratio` is the speed of the first over that of the second. `announced` is the one to take.
    #[must_use]
    pub fn as_compared(self, pair: [u32; 2], ratio: Interval<f64>, announced: u32) -> Self {
        let Interval { value, low, high } = ratio;
        let of = |over: u32, under: u32| match [over, under] {
            numbers if numbers == pair => Some(ratio),
            [over, under] if [under, over] == pair => {
                Some(Interval { value: 1.0 / value, low: 1.0 / high, high: 1.0 / low.max(0.0) })
            }
            _ => None,
        };
        let threads = self.threads;
        let gain = self.reference.and_then(|reference| of(threads, reference));
        // The range has the announced number, unless that is beyond the probed ones.
        let least = self.reference.unwrap_or(threads).min(threads);
        let most = self.more.as_ref().map_or(threads, |(n, _)| *n);
        let between = match (least..=most).contains(&announced) {
            true => (self.between.0.min(announced), self.between.1.max(announced)),
            false => self.between,
        };
        // A slower number does not do as well. Numbers below it are not open any more.
        let slower =
            |other: &u32| *other < threads && of(threads, *other).is_some_and(|it| it.low > 1.0);
        let excluded = pair.into_iter().filter(slower).max();
        let open = self.open.into_iter().filter(|n| excluded.is_none_or(|slower| *n > slower));
        let more = self.more.and_then(|(n, probed)| match of(n, threads) {
            Some(Interval { value, low, high }) => {
                Some((n, Interval { value: 1.0 - value, low: 1.0 - high, high: 1.0 - low }))
            }
            None => Some((n, probed)).filter(|_| !pair.contains(&n)),
        });
        Self { gain: gain.unwrap_or(self.gain), more, between, open: open.collect(), ..self }
    }
}

/// Share of the best value that the candidate with index `choice` loses, over `draws` of all values
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

#[cfg(test)]
mod tests {
    use super::*;

    /// With 1 to 8 threads: 4 are as fast as 8, and 2 take twice the time.
    #[test]
    fn only_a_probed_number_that_is_not_slower_may_do_as_well() {
        let draws = vec![[0.0, 0.5, 1.0, 1.0].map(|speed: f64| speed.max(0.1).ln()).to_vec()];
        let open = |choice, probed: &[usize]| {
            let advice = NumberAdvice::drawn(&[1, 2, 4, 8], &draws, choice, probed, 0.01);
            (advice.between.0, advice.open)
        };
        assert_eq!(open(3, &[0, 1, 2, 3]), (4, vec![4]));
        assert_eq!(open(3, &[1, 2, 3]), (1, vec![4]), "1 was not probed, and 2 is slower");
        assert_eq!(open(3, &[1, 3]), (1, vec![]), "4 was not probed");
    }

    /// Probes say that 2 threads cost 62 %, as the program changed phase between them.
    #[test]
    fn what_fresh_windows_compared_comes_from_them() {
        let interval = |value, low, high| Interval { value, low, high };
        let probed = NumberAdvice {
            threads: 1,
            between: (1, 1),
            open: Vec::new(),
            value: interval(9.0, 8.0, 10.0),
            gain: interval(1.0, 1.0, 1.0),
            reference: Some(1),
            reference_threads: 1,
            probed: true,
            loss: 0.0,
            more: Some((2, interval(0.62, 0.5, 0.7))),
            ended: SpeedSearchEnd::Settled,
            probes: 4,
            numbers: 2,
            readings: 2,
        };
        let shown = probed.clone().as_compared([1, 2], interval(1.25, 1.0, 2.0), 2);
        let (n, cost) = shown.more.unwrap();
        assert!(n == 2 && (cost.value - 0.2).abs() < 1e-9, "{cost:?}");
        assert_eq!((cost.low, cost.high, shown.between), (0.0, 0.5, (1, 2)));
        assert_eq!(shown.gain, probed.gain, "the choice is its own reference");
        let found = NumberAdvice { threads: 2, more: None, ..probed.clone() };
        let shown = found.as_compared([1, 2], interval(0.5, 0.4, 0.8), 2);
        assert_eq!(shown.gain, interval(2.0, 1.25, 2.5));
        // The rival of the default is neither its reference nor what was probed most.
        let other = probed.clone().as_compared([3, 1], interval(0.9, 0.8, 1.0), 1);
        assert_eq!((other.more, other.between), (probed.more, probed.between));
        let beyond = probed.clone().as_compared([1, 8], interval(0.9, 0.8, 1.0), 8);
        assert_eq!(beyond.between, (1, 1), "8 was not probed");
        // Below a number that is slower nothing is left open.
        let four =
            NumberAdvice { threads: 4, between: (1, 4), open: vec![1, 2, 3], ..probed.clone() };
        let open = |pair, low| four.clone().as_compared(pair, interval(1.2, low, 1.4), 4).open;
        assert_eq!((open([4, 2], 1.1), open([4, 2], 0.9)), (vec![3], vec![1, 2, 3]));
        let kept = [open([8, 4], 1.1), open([3, 2], 1.1)];
        assert_eq!(kept, [[1, 2, 3], [1, 2, 3]], "not the choice over fewer");
        // What is no longer known of a compared number is left out.
        let alike = NumberAdvice { threads: 3, ..probed }.as_compared([2, 4], shown.gain, 2);
        assert_eq!((alike.more, alike.between), (None, (1, 2)));
    }
}
