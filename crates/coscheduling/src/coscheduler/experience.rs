//! The speed of each program's threads next to each other program, learned while they run.
//!
//! **Problem.** A model needs events that not every processor counts, and it was fitted elsewhere.
//! But the co-scheduler sees the speed of each thread, and the threads on its siblings.
//!
//! **Method.** A sum models the logarithm of a thread's instructions per cycle. It has the level of
//! its program, and the effect of each neighbour times the neighbour's share of the time. Level and
//! effects follow the observations by normalised least mean squares (S. Haykin, "Adaptive filter
//! theory", chapter 7). The step of an effect is large at first and never below [`STEP`]. So the
//! model forgets effects of earlier phases. A pair that was not seen has the mean effect of the
//! neighbour. Pairs with few observations count as a little better than they seem, so that they are
//! tried (T. L. Lai, H. Robbins, "Asymptotically efficient adaptive allocation rules", 1985, has
//! the principle).
//!
//! **Limits.** Speeds are relative to the mean beside all others, as nothing runs alone. A phase
//! looks like an effect of the neighbours, until it is averaged out.

use std::collections::BTreeMap;

/// The smallest step towards an observation.
const STEP: f64 = 0.04;
/// The step of the level.
const LEVEL_STEP: f64 = 0.1;
/// The bonus of a pair that was never seen, as a logarithm.
const CURIOSITY: f64 = 0.05;
/// The factor by which observations fade in a quantum.
const KEPT: f64 = 0.999;

/// Levels of programs, and effects of their neighbours.
#[derive(Clone, Debug, Default)]
pub(super) struct Experience {
    /// Mean logarithms of instructions per cycle.
    levels: BTreeMap<usize, f64>,
    effects: BTreeMap<(usize, usize), NeighbourEffect>,
}

#[derive(Clone, Copy, Debug, Default)]
struct NeighbourEffect {
    /// Added to the logarithm.
    effect: f64,
    /// For how many quanta it was seen.
    seen: f64,
}

impl Experience {
    /// A thread of `program` made this many instructions per cycle. Meanwhile threads of other
    /// programs ran on its siblings for these shares of the time.
    pub(super) fn observe(&mut self, program: usize, rate: f64, beside: &[(usize, f64)]) {
        if !(rate > 0.0 && rate.is_finite()) {
            return;
        }
        let expected: f64 =
            beside.iter().map(|&(other, share)| share * self.effect(program, other)).sum();
        let level = *self.levels.entry(program).or_insert(rate.ln() - expected);
        let missed = rate.ln() - level - expected;
        self.levels.insert(program, level + LEVEL_STEP * missed);
        let squares: f64 = beside.iter().map(|(_, share)| share * share).sum();
        for &(other, share) in beside.iter().filter(|(_, share)| *share > 0.0) {
            let begin = self.effect(program, other);
            let one = self
                .effects
                .entry((program, other))
                .or_insert(NeighbourEffect { effect: begin, seen: 0.0 });
            let step = (1.0 / (one.seen + 2.0)).max(STEP);
            one.effect += step * share * missed / squares.max(0.25);
            one.seen += share;
        }
    }

    /// Only these programs are left, and a quantum has passed.
    pub(super) fn pass(&mut self, programs: &[usize]) {
        self.levels.retain(|program, _| programs.contains(program));
        self.effects.retain(|(one, other), _| programs.contains(one) && programs.contains(other));
        self.effects.values_mut().for_each(|one| one.seen *= KEPT);
    }

    /// The addend to the logarithm beside another program: the learned effect, or else that
    /// program's mean effect on all.
    fn effect(&self, program: usize, other: usize) -> f64 {
        if let Some(known) = self.effects.get(&(program, other)) {
            return known.effect;
        }
        let of_other = self.effects.iter().filter(|((_, beside), _)| *beside == other);
        let (sum, count) =
            of_other.fold((0.0, 0.0), |(sum, count), (_, one)| (sum + one.effect, count + 1.0));
        if count > 0.0 { sum / count } else { 0.0 }
    }

    /// The speed of a thread of the first program beside one of the other, relative to its mean.
    pub(super) fn speed(&self, program: usize, other: usize) -> f64 {
        let seen = self.effects.get(&(program, other)).map_or(0.0, |known| known.seen);
        (self.effect(program, other) + CURIOSITY / (1.0 + seen).sqrt()).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_topology::Random;

    #[test]
    fn effects_are_found_under_noise_and_mixed_neighbours() {
        let mut experience = Experience::default();
        let mut random = Random::new(2);
        let truth = [-0.3, 0.0, 0.3];
        for _ in 0..600 {
            let [one, other] = [0; 2].map(|_| random.below(3) as usize);
            let share = random.unit();
            let noise = 0.05 * (random.unit() - 0.5);
            let log = 0.4 + share * truth[one] + (1.0 - share) * truth[other] + noise;
            experience.observe(9, log.exp(), &[(one, share), (other, 1.0 - share)]);
        }
        let speeds = [0, 1, 2].map(|other| experience.speed(9, other).ln());
        assert!((speeds[2] - speeds[0] - 0.6).abs() < 0.06, "{speeds:?}");
        assert!((speeds[1] - speeds[0] - 0.3).abs() < 0.06, "{speeds:?}");
    }

    #[test]
    fn a_pair_that_was_not_seen_is_as_its_neighbour_is_to_others_and_a_little_better() {
        let mut experience = Experience::default();
        for _ in 0..100 {
            experience.observe(1, 0.5, &[(7, 1.0)]);
            experience.observe(1, 1.0, &[(8, 1.0)]);
            experience.observe(2, 1.0, &[(8, 1.0)]);
        }
        assert!(experience.speed(2, 7) < 0.8 * experience.speed(2, 8));
        let known = experience.speed(1, 7);
        assert!(experience.speed(2, 7) > known && experience.speed(2, 7) < 1.06 * known);
        experience.pass(&[1, 2, 8]);
        assert!(experience.speed(2, 7) > 1.0, "nothing is known of 7 any more");
        experience.observe(1, f64::NAN, &[(8, 1.0)]);
        assert!(experience.speed(1, 8).is_finite());
    }
}
