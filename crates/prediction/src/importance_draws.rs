//! Assignments drawn where a predictor expects good ones: with probability proportional to
//! prediction^(1/T).
//!
//! The end of a distribution is the same under any law of sampling that can draw everything. But a
//! sample of mostly good assignments reaches the end in far fewer measurements. T is the
//! temperature: at T = 0.01 an assignment predicted 1 % better is drawn e times as often.
//!
//! Drawn by a walk over labelled assignments ([`MarkovChain`]). It starts anywhere and cools down
//! over its first half. It keeps its temperature over the second half and gives its last state.
//! Each draw has its own walk, so draws are independent. A walk that is so cold that it only climbs
//! may end earlier, once it has not come higher for some steps.

use crate::Predictor;
use crate::markov_chain::{MarkovChain, shares_contexts};
use pinwise_topology::{Assignment, Random, Space};

/// Temperature at which a chain begins. It hardly distinguishes predictions that differ by less
/// than half.
const HOT: f64 = 0.5;
/// The same where threads share contexts. There the choice between arrangements that differ much is
/// made at lower temperatures.
const HOT_SHARED: f64 = 0.1;

/// One draw from `predictor`^(1/`temperature`) over the labelled assignments of `space`, in
/// canonical form, after `steps` steps; temperatures above 0.
pub fn draw(
    predictor: &dyn Predictor,
    space: &Space,
    temperature: f64,
    steps: usize,
    random: &mut Random,
) -> Assignment {
    draw_until_still(predictor, space, temperature, (steps, steps), random)
}

/// The same for a temperature so low that the walk only climbs once it has cooled down. It ends
/// when it has not come higher for `patience` steps. So it may miss a rare step that leads higher.
pub fn draw_until_still(
    predictor: &dyn Predictor,
    space: &Space,
    temperature: f64,
    (steps, patience): (usize, usize),
    random: &mut Random,
) -> Assignment {
    let mut chain = MarkovChain::new(predictor, space, &space.sample(random));
    let cooling = steps / 2;
    let hot = if shares_contexts(space) { HOT_SHARED } else { HOT };
    let (mut highest, mut reached) = (f64::NEG_INFINITY, cooling);
    for step in 0..steps {
        let now = if step < cooling && temperature < hot {
            hot * (temperature / hot).powf(step as f64 / cooling as f64)
        } else {
            temperature
        };
        chain.step(now, random);
        if step >= cooling {
            if chain.predicted > highest {
                (highest, reached) = (chain.predicted, step);
            } else if step - reached > patience {
                break;
            }
        }
    }
    space.canonical(&Assignment::new(chain.leaves))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_topology::{Alike, Machine, PerContext, SharingTree};
    use std::collections::BTreeMap;

    /// Worth more the lower the sum of leaves, by a few percent each.
    struct Low;

    impl Predictor for Low {
        fn predict(&self, leaves: &[u32]) -> f64 {
            1.0 + 0.05 * (20 - leaves.iter().sum::<u32>().min(20)) as f64
        }
    }

    #[test]
    fn draws_follow_the_tilted_law() {
        // The last has large domains.
        for (per_context, shape, contexts, threads) in [
            (PerContext::AtMost(1), "4", 4u32, 3),
            (PerContext::AtMost(2), "3", 3, 3),
            (PerContext::Any, "3", 3, 3),
            (PerContext::AtMost(1), "2x8", 16, 2),
        ] {
            let machine = Machine::from_shape(shape).unwrap();
            let tree = SharingTree::new(&machine, Alike::ByStructure);
            let space = Space::new(tree, threads as usize, per_context).unwrap();
            let temperature = 0.1;
            let capacity = |leaves: &[u32]| {
                let most = (0..contexts)
                    .map(|leaf| leaves.iter().filter(|other| **other == leaf).count())
                    .max();
                match per_context {
                    PerContext::AtMost(allowed) => most.unwrap_or(0) <= allowed,
                    PerContext::Any => true,
                }
            };
            let all = (0..contexts.pow(threads)).map(|code| {
                (0..threads)
                    .map(|thread| code / contexts.pow(thread) % contexts)
                    .collect::<Vec<u32>>()
            });
            let weights: BTreeMap<Vec<u32>, f64> = all
                .filter(|leaves| capacity(leaves))
                .map(|leaves| (leaves.clone(), Low.predict(&leaves).powf(1.0 / temperature)))
                .collect();
            let total: f64 = weights.values().sum();
            // The walk itself, whose states are labelled; canonical form would hide them.
            let mut random = Random::new(9);
            let mut chain = MarkovChain::new(&Low, &space, &space.sample(&mut random));
            let (steps, mut seen) = (200_000, BTreeMap::new());
            for _ in 0..steps {
                chain.step(temperature, &mut random);
                *seen.entry(chain.leaves.clone()).or_insert(0.0) += 1.0 / f64::from(steps);
            }
            for (leaves, weight) in &weights {
                let share = seen.get(leaves).copied().unwrap_or(0.0);
                // Successive states are correlated: ten standard errors of independent ones.
                let expected = weight / total;
                let tolerance = 10.0 * (expected / f64::from(steps)).sqrt();
                assert!(
                    (share - expected).abs() < tolerance,
                    "{per_context:?} {leaves:?}: {share} {expected}"
                );
            }
        }
    }

    #[test]
    fn colder_draws_are_predicted_better() {
        let tree = SharingTree::new(&Machine::from_shape("2x4x2").unwrap(), Alike::ExceptNuma);
        let space = Space::new(tree, 5, PerContext::AtMost(1)).unwrap();
        let apart = |leaves: &[u32]| {
            let mut cores: Vec<u32> = leaves.iter().map(|leaf| leaf / 2).collect();
            cores.sort_unstable();
            cores.dedup();
            cores.len() as f64
        };
        struct Apart<F>(F);
        impl<F: Fn(&[u32]) -> f64> Predictor for Apart<F> {
            fn predict(&self, leaves: &[u32]) -> f64 {
                (self.0)(leaves)
            }
        }
        let predictor = Apart(apart);
        let mean = |temperature: f64| {
            let mut random = Random::new(1);
            let draws = (0..50).map(|_| draw(&predictor, &space, temperature, 500, &mut random));
            draws.map(|drawn| predictor.predict(drawn.leaves())).sum::<f64>() / 50.0
        };
        assert!(mean(0.01) > mean(0.3) && mean(0.3) > mean(100.0));
        assert!(mean(0.001) > 4.99);
    }
}
