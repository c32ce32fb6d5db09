//! The best pairing of all programs: a perfect matching of the largest weight, exactly.
//!
//! The first remaining program gets each other one as its partner in turn. The best pairing of the
//! rest depends only on the set of remaining programs. So it is computed once for each set. The
//! first program is always paired first, so far fewer sets than all subsets occur. For 24 programs
//! it is 75,025 of 17 million (a Fibonacci number). They are listed once for all weights.
//!
//! **Why no library.** Weights are real numbers, and each look at the search needs the best pairing
//! of 200 draws of them. `petgraph` 0.8 matches as many programs as possible, without weights.
//! `integer-blossom` 1.2 takes integers, so rounding could choose another pairing than the best of
//! what is shown. It pays with many programs, and `pairs` takes 24 at most. Here all draws share
//! the list of sets, and a test compares the answer with every pairing.

use std::collections::HashMap;

/// The pairings of a number of programs.
#[derive(Clone, Debug)]
pub struct Matchings {
    /// The choices for each set of remaining programs. A choice pairs the first program of the set.
    /// It also has the index of the set that then remains. That set always comes earlier: the empty
    /// set is first, the set of all programs last.
    sets: Vec<Vec<Choice>>,
}

/// A pair, and the set that is left without it.
type Choice = ((usize, usize), usize);

impl Matchings {
    /// Of an even number of programs, at most 32.
    pub fn of(programs: usize) -> Self {
        let mut matchings = Self { sets: vec![Vec::new()] };
        let mut known = HashMap::from([(0, 0)]);
        matchings.number((0..programs).fold(0, |all, one| all | 1 << one), &mut known);
        matchings
    }

    /// Where the set `left` is. If it is new, it gets a place, after those that it leads to.
    fn number(&mut self, left: u32, known: &mut HashMap<u32, usize>) -> usize {
        if let Some(&number) = known.get(&left) {
            return number;
        }
        let first = left.trailing_zeros() as usize;
        let rest = left & (left - 1);
        let mut partners = Vec::new();
        for second in (first + 1..32).filter(|second| rest >> second & 1 == 1) {
            partners.push(((first, second), self.number(rest & !(1 << second), known)));
        }
        self.sets.push(partners);
        known.insert(left, self.sets.len() - 1);
        self.sets.len() - 1
    }

    /// The pairing with the largest sum of weights, which are symmetric.
    pub fn best(&self, weights: &[Vec<f64>]) -> Vec<(usize, usize)> {
        let mut found: Vec<(f64, Option<Choice>)> = vec![(0.0, None)];
        for partners in &self.sets[1..] {
            let sum = |&(pair, rest): &Choice| {
                (weights[pair.0][pair.1] + found[rest].0, Some((pair, rest)))
            };
            let best = partners.iter().map(sum).max_by(|one, other| one.0.total_cmp(&other.0));
            found.push(best.unwrap_or_default());
        }
        let next = |at: usize| found.get(at)?.1;
        std::iter::successors(next(found.len() - 1), |&(_, rest)| next(rest))
            .map(|(pair, _)| pair)
            .collect()
    }
}

/// Each two of that many programs, the smaller number first.
pub(crate) fn all_pairs(programs: usize) -> impl Iterator<Item = [usize; 2]> {
    (0..programs).flat_map(move |one| (one + 1..programs).map(move |other| [one, other]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_topology::Random;

    fn random_weights(count: usize, random: &mut Random) -> Vec<Vec<f64>> {
        let mut weights: Vec<Vec<f64>> =
            (0..count).map(|_| (0..count).map(|_| 0.7 + 0.6 * random.unit()).collect()).collect();
        for [one, other] in all_pairs(count) {
            weights[other][one] = weights[one][other];
        }
        weights
    }

    fn sum(pairs: &[(usize, usize)], weights: &[Vec<f64>]) -> f64 {
        pairs.iter().map(|&(first, second)| weights[first][second]).sum()
    }

    /// The largest sum over every order of the programs.
    fn by_force(left: &[usize], weights: &[Vec<f64>]) -> f64 {
        let Some((first, rest)) = left.split_first() else { return 0.0 };
        let with = |at: usize| {
            let others: Vec<usize> = [&rest[..at], &rest[at + 1..]].concat();
            weights[*first][rest[at]] + by_force(&others, weights)
        };
        (0..rest.len()).map(with).fold(f64::NEG_INFINITY, f64::max)
    }

    #[test]
    fn the_pairing_is_that_of_all_which_is_best() {
        let mut random = Random::new(5);
        for count in [2, 4, 6, 8] {
            for _ in 0..20 {
                let weights = random_weights(count, &mut random);
                let pairs = Matchings::of(count).best(&weights);
                let all: Vec<usize> = (0..count).collect();
                assert!((sum(&pairs, &weights) - by_force(&all, &weights)).abs() < 1e-12);
                let mut paired: Vec<usize> = pairs.iter().flat_map(|&(a, b)| [a, b]).collect();
                paired.sort_unstable();
                assert_eq!(paired, all);
            }
        }
        assert_eq!(Matchings::of(0).best(&[]), []);
    }

    #[test]
    fn twenty_four_programs_are_few() {
        let weights = random_weights(24, &mut Random::new(1));
        let matchings = Matchings::of(24);
        assert_eq!(matchings.sets.len(), 75_025);
        assert_eq!(matchings.best(&weights).len(), 12);
    }
}
