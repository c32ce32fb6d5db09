//! Groups of programs on wider cores: four or eight contexts share a level.
//!
//! **Problem.** Runs show pairs. The groups of four of 24 programs are 10,626.
//!
//! **Method.** Beside each other program of its group, a program keeps a share of its speed. The
//! product of these shares is what it keeps in the group. This is an *estimate*: it takes the
//! effects of neighbours for independent. The groups are as few as hold all programs, and as even
//! as can be. Two programs are swapped as long as that raises the sum of the weighted speed-ups.
//! This begins several times, and the best end counts. Such a local search may miss the best.
//!
//! **Limits.** A resource that two programs fill, such as the bus, is lost once, and the product
//! counts it twice. So the estimate is rather too low there. Three small working sets may fit a
//! cache two by two and not together. There it is too high.

use crate::pairs_outcome::PairsOutcome;
use pinwise_topology::Random;

/// Begins of the search.
const BEGINS: usize = 20;

/// Programs in groups of up to as many as share a level.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramGroups {
    /// The most programs of a group.
    pub width: usize,
    /// The groups, the best first.
    pub groups: Vec<ProgramGroup>,
    /// The mean of their weighted speed-ups.
    pub mean: f64,
}

/// Programs that share a level.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramGroup {
    /// The programs, in ascending order.
    pub programs: Vec<usize>,
    /// The sum of their speeds, each as a share of its speed alone. It is an estimate.
    pub weighted_speedup: f64,
}

impl ProgramGroups {
    /// For levels with `width` contexts for a program each. `None`: two share it, or a pair is
    /// neither measured nor predicted.
    pub fn of(outcome: &PairsOutcome, width: usize) -> Option<Self> {
        let programs = outcome.alone.len();
        if width < 3 || programs < 3 {
            return None;
        }
        let mut kept = vec![vec![f64::NAN; programs]; programs];
        for pair in &outcome.pairs {
            let [one, other] = pair.programs;
            let [first, second] = pair.slowdowns.map(|slowdown| 1.0 / slowdown.value);
            (kept[one][other], kept[other][one]) = (first, second);
        }
        let known = |one: usize| (0..programs).all(|other| one == other || kept[one][other] > 0.0);
        (0..programs).all(known).then(|| Self::best(&kept, width))
    }

    /// By what each program keeps beside each.
    fn best(kept: &[Vec<f64>], width: usize) -> Self {
        let programs = kept.len();
        let count = programs.div_ceil(width);
        let mut random = Random::new(programs as u64);
        let mut best: Option<(f64, Vec<usize>)> = None;
        for _ in 0..BEGINS {
            let mut order: Vec<usize> = (0..programs).collect();
            random.shuffle(&mut order);
            let mut group = vec![0; programs];
            order.iter().enumerate().for_each(|(at, &program)| group[program] = at % count);
            let sum = improve(kept, &mut group, count);
            if best.as_ref().is_none_or(|(most, _)| sum > most + 1e-12) {
                best = Some((sum, group));
            }
        }
        let (sum, group) = best.unwrap_or_default();
        let mut groups: Vec<ProgramGroup> = (0..count)
            .map(|number| {
                let programs = members(&group, number);
                ProgramGroup { weighted_speedup: weighted_speedup(kept, &programs), programs }
            })
            .collect();
        groups.sort_by(|one, other| other.weighted_speedup.total_cmp(&one.weighted_speedup));
        Self { width, groups, mean: sum / count as f64 }
    }
}

/// Swaps two programs as long as that makes the sum larger. Returns the sum.
fn improve(kept: &[Vec<f64>], group: &mut [usize], count: usize) -> f64 {
    let of = |group: &[usize], number| weighted_speedup(kept, &members(group, number));
    loop {
        let mut best = (1e-9, None);
        for one in 0..group.len() {
            for other in one + 1..group.len() {
                let [here, there] = [group[one], group[other]];
                if here == there {
                    continue;
                }
                let before = of(group, here) + of(group, there);
                group.swap(one, other);
                let gain = of(group, here) + of(group, there) - before;
                group.swap(one, other);
                if gain > best.0 {
                    best = (gain, Some((one, other)));
                }
            }
        }
        match best.1 {
            Some((one, other)) => group.swap(one, other),
            None => return (0..count).map(|number| of(group, number)).sum(),
        }
    }
}

fn members(group: &[usize], number: usize) -> Vec<usize> {
    (0..group.len()).filter(|&program| group[program] == number).collect()
}

fn weighted_speedup(kept: &[Vec<f64>], programs: &[usize]) -> f64 {
    let speed = |&one: &usize| -> f64 {
        programs.iter().filter(|&&other| other != one).map(|&other| kept[one][other]).product()
    };
    programs.iter().map(speed).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pairs_search::PairsQuestion;

    fn random(programs: usize, seed: u64) -> Vec<Vec<f64>> {
        let mut random = Random::new(seed);
        (0..programs).map(|_| (0..programs).map(|_| 0.4 + 0.6 * random.unit()).collect()).collect()
    }

    /// The largest sum of all ways to fill groups of these sizes.
    fn by_force(kept: &[Vec<f64>], left: &[usize], sizes: &[usize]) -> f64 {
        let Some((&size, sizes)) = sizes.split_first() else { return 0.0 };
        let subsets = (0..1usize << left.len()).filter(|set| set.count_ones() as usize == size);
        subsets
            .map(|set| {
                let part = |chosen: usize| -> Vec<usize> {
                    let held = left.iter().enumerate().filter(|(at, _)| set >> at & 1 == chosen);
                    held.map(|(_, &program)| program).collect()
                };
                weighted_speedup(kept, &part(1)) + by_force(kept, &part(0), sizes)
            })
            .fold(f64::NEG_INFINITY, f64::max)
    }

    #[test]
    fn groups_are_as_good_as_the_best_of_all() {
        for (programs, width, sizes) in [
            (8, 4, &[4, 4][..]),
            (6, 4, &[3, 3]),
            (9, 4, &[3, 3, 3]),
            (7, 8, &[7]),
            (5, 3, &[3, 2]),
        ] {
            for seed in 0..10 {
                let kept = random(programs, seed);
                let found = ProgramGroups::best(&kept, width);
                let all: Vec<usize> = (0..programs).collect();
                let best = by_force(&kept, &all, sizes) / sizes.len() as f64;
                assert!((found.mean - best).abs() < 1e-9, "{programs} {seed}: {found:?} {best}");
                let mut held: Vec<usize> =
                    found.groups.iter().flat_map(|group| group.programs.clone()).collect();
                held.sort_unstable();
                assert!(held == all && found.groups.iter().all(|one| one.programs.len() <= width));
            }
        }
    }

    #[test]
    fn two_contexts_or_an_unknown_pair_make_no_groups() {
        let outcome = PairsOutcome::of(&[], 4, &PairsQuestion::default());
        assert_eq!(ProgramGroups::of(&outcome, 4), None);
        assert_eq!(ProgramGroups::of(&outcome, 2), None);
    }
}
