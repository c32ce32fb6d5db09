//! [`Shortlist`]: the numbers that get a placement search; halved each round.
//!
//! The best number unpinned need not be the best one placed, nor even near it. In the published
//! tables ([`crate::JointSearch`]) kmeans is nearly twice as fast with 24 threads in one package.
//! No number unpinned comes near it. So numbers count by their estimates in the places that were
//! tried ([`Shortlist::believed`]). If none was tried, their unpinned speed counts.
//!
//! All numbers near the best are placed for a short time. Then the better half is placed for twice
//! as long, until one is left. This is successive halving (K. Jamieson, A. Talwalkar,
//! "Non-stochastic best arm identification and hyperparameter optimization", AISTATS 2016). Each
//! round takes the same time, whichever numbers are in it.

/// Numbers that may be the best one, the most promising first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortlist {
    numbers: Vec<u32>,
}

impl Shortlist {
    /// A number that loses more than this share of the best speed unpinned is not placed.
    pub const MARGIN: f64 = 0.2;
    /// More numbers than this are not placed.
    pub const MOST: usize = 4;

    /// From probes: a number (of threads, or the parameter for them) and its rate. A number may
    /// occur several times. The number that was `chosen` is first, whatever its rate. Then come
    /// those within [`Self::MARGIN`] of the best mean. There are [`Self::MOST`] in all.
    pub fn new(probes: &[(u32, f64)], chosen: u32) -> Self {
        let mut numbers: Vec<u32> =
            probes.iter().map(|(number, _)| *number).filter(|&number| number != chosen).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let mean = |number: u32| {
            let rates: Vec<f64> =
                probes.iter().filter(|probe| probe.0 == number).map(|probe| probe.1).collect();
            rates.iter().sum::<f64>() / rates.len() as f64
        };
        let mut means: Vec<(u32, f64)> =
            numbers.into_iter().map(|number| (number, mean(number))).collect();
        // Stable: of numbers that are as fast, the fewest threads first.
        means.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        let own = probes.iter().any(|(number, _)| *number == chosen).then(|| mean(chosen));
        let best = means.iter().map(|(_, mean)| *mean).chain(own).fold(0.0, f64::max);
        let near = means
            .iter()
            .filter(|(_, mean)| *mean >= best * (1.0 - Self::MARGIN))
            .map(|(number, _)| *number);
        Self { numbers: std::iter::once(chosen).chain(near).take(Self::MOST).collect() }
    }

    /// From the estimated value of each number in its best known place, measured or not. The number
    /// that was `chosen` is first if it is in the running, else the best.
    pub fn believed(values: &[(u32, f64)], chosen: u32) -> Self {
        let of = |number: u32| values.iter().find(|value| value.0 == number).map(|value| value.1);
        let best = values.iter().max_by(|(_, one), (_, other)| one.total_cmp(other));
        match (best, of(chosen)) {
            (Some(&(best, most)), own)
                if own.is_none_or(|own| own < most * (1.0 - Self::MARGIN)) =>
            {
                Self::new(values, best)
            }
            _ => Self::new(values, chosen),
        }
    }

    /// Those that are left, at least one.
    pub fn numbers(&self) -> &[u32] {
        &self.numbers
    }

    /// Rounds until one number is left, at least 1: a number without rivals is placed, too.
    pub fn rounds(&self) -> u32 {
        self.numbers.len().next_power_of_two().ilog2().max(1)
    }

    /// Keeps the better half, rounded up to the next number, by `value`: higher is better, `None`
    /// is worst. What was alike keeps its order.
    pub fn halve(&mut self, value: impl Fn(u32) -> Option<f64>) {
        let worth = |number: &u32| value(*number).unwrap_or(f64::NEG_INFINITY);
        self.numbers.sort_by(|one, other| worth(other).total_cmp(&worth(one)));
        self.numbers.truncate(self.numbers.len().div_ceil(2));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_the_best_means_in_the_running() {
        let probes =
            [(1, 1.0), (2, 2.0), (3, 1.9), (4, 2.1), (4, 1.5), (5, 1.61), (6, 1.7), (8, 1.59)];
        assert_eq!(Shortlist::new(&probes, 3).numbers(), [3, 2, 4, 6]);
        assert_eq!(
            Shortlist::new(&probes, 8).numbers(),
            [8, 2, 3, 4],
            "the choice itself, however it did"
        );
        assert_eq!(Shortlist::new(&[(1, 1.0), (2, 5.0)], 2).numbers(), [2]);
        assert_eq!(Shortlist::new(&[], 7).numbers(), [7]);
    }

    #[test]
    fn by_belief_a_choice_that_is_far_behind_is_no_longer_in_the_running() {
        let left_alone = [(12, 0.9), (24, 0.95), (96, 1.0)];
        assert_eq!(Shortlist::new(&left_alone, 96).numbers(), [96, 24, 12]);
        let believed = [(12, 1.7), (24, 1.9), (96, 1.0)];
        assert_eq!(Shortlist::believed(&believed, 96).numbers(), [24, 12]);
        assert_eq!(
            Shortlist::believed(&believed, 12).numbers(),
            [12, 24],
            "the choice, where it is near the best"
        );
        assert_eq!(
            Shortlist::believed(&believed, 48).numbers(),
            [24, 12],
            "nothing is known of it"
        );
        assert_eq!(Shortlist::believed(&[], 7).numbers(), [7]);
    }

    #[test]
    fn each_round_leaves_half_until_one_is_left() {
        for count in 1..=4u32 {
            let probes: Vec<(u32, f64)> = (1..=count).map(|number| (number, 1.0)).collect();
            let mut list = Shortlist::new(&probes, 1);
            assert_eq!(list.numbers().len(), count as usize);
            for _ in 0..list.rounds() {
                list.halve(|number| (number != 4).then_some(f64::from(number)));
            }
            assert_eq!(list.numbers(), [count.min(3)], "4 could not be placed");
        }
    }
}
