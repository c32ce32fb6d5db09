//! The assignment predicted best, where walks that cool down end far apart.
//!
//! Threads that share contexts take turns. So the best arrangement may cram some instances on a few
//! contexts, to give the others contexts of their own. Between such arrangements lie worse ones,
//! and a walk that has cooled down stays where it is. *Replica exchange* goes on: walks at several
//! temperatures take steps side by side, and neighbours in temperature change places with the
//! probability that keeps the law of each (Swendsen and Wang, Phys. Rev. Lett. 57, 1986; Geyer
//! 1991). So the cold walk gets new arrangements from the hot ones. Each walk begins with some
//! instances, drawn by chance, on contexts of their own, and the others crammed on the rest. The
//! best that any walk met then climbs: a thread moves, or two change places, until nothing is
//! better.

use crate::markov_chain::MarkovChain;
use crate::{Change, Predictor};
use pinwise_topology::{Assignment, PerContext, Random, Space};

/// Temperatures of the hottest and the coldest walk; the others are between, in equal ratios.
const TEMPERATURES: [f64; 2] = [0.05, 0.004];
/// Walks.
const WALKS: usize = 4;

/// The best of `predictor` over `space` that a search of `steps` steps finds, in canonical form.
/// `instances` has the threads of each instance.
pub fn highest(
    predictor: &dyn Predictor,
    space: &Space,
    instances: &[Vec<usize>],
    steps: usize,
    random: &mut Random,
) -> Assignment {
    let [hot, cold] = TEMPERATURES;
    let temperature = |walk: usize| hot * (cold / hot).powf(walk as f64 / (WALKS - 1) as f64);
    let mut walks: Vec<MarkovChain<'_>> = (0..WALKS)
        .map(|_| MarkovChain::new(predictor, space, &start(space, instances, random)))
        .collect();
    let mut best = (f64::NEG_INFINITY, Vec::new());
    let sweep = space.threads().max(1);
    for round in 0..steps.div_ceil(WALKS * sweep) {
        for (number, walk) in walks.iter_mut().enumerate() {
            for _ in 0..sweep {
                walk.step(temperature(number), random);
                if walk.predicted > best.0 {
                    best = (walk.predicted, walk.leaves.clone());
                }
            }
        }
        for hotter in (round % 2..WALKS - 1).step_by(2) {
            let gain = (walks[hotter].predicted / walks[hotter + 1].predicted).ln();
            let colder = 1.0 / temperature(hotter + 1) - 1.0 / temperature(hotter);
            if random.unit() < (gain * colder).exp() {
                walks.swap(hotter, hotter + 1);
            }
        }
    }
    climb(predictor, space, &mut best.1);
    space.canonical(&Assignment::new(best.1))
}

/// Some instances with a context for each of their threads, and the others on what is left.
fn start(space: &Space, instances: &[Vec<usize>], random: &mut Random) -> Assignment {
    let contexts = space.tree().leaves().len();
    let mut order: Vec<&Vec<usize>> = instances.iter().collect();
    random.shuffle(&mut order);
    let mut free = 0;
    let apart = order
        .iter()
        .take_while(|instance| {
            free += instance.len();
            free < contexts
        })
        .count();
    let apart = random.below(apart as u64 + 1) as usize;
    let mut alone: Vec<usize> = order[..apart].iter().flat_map(|own| own.iter().copied()).collect();
    random.shuffle(&mut alone);
    let rest = (contexts - alone.len()) as u64;
    let mut crammed = || alone.len() as u32 + random.below(rest) as u32;
    let mut leaves: Vec<u32> = (0..space.threads()).map(|_| crammed()).collect();
    alone.iter().enumerate().for_each(|(leaf, thread)| leaves[*thread] = leaf as u32);
    space.nearest(&Assignment::new(leaves))
}

/// Moves threads, and exchanges each two, until nothing is better.
fn climb(predictor: &dyn Predictor, space: &Space, leaves: &mut [u32]) {
    let contexts = space.tree().leaves().len();
    let mut walk = predictor.walk(leaves);
    let mut best = predictor.predict(leaves);
    let mut since = 0;
    let steps = leaves.len() * (contexts + leaves.len());
    for turn in (0..steps).cycle() {
        if since == steps {
            return;
        }
        since += 1;
        let (thread, which) = (turn % leaves.len(), turn / leaves.len());
        let (other, to) = match which.checked_sub(contexts) {
            None => (None, which as u32),
            Some(other) => (Some(other), leaves[other]),
        };
        let from = leaves[thread];
        let is_full = |most: usize| leaves.iter().filter(|leaf| **leaf == to).count() >= most;
        let room = match space.per_context() {
            PerContext::AtMost(most) => other.is_some() || !is_full(most),
            PerContext::Any => true,
        };
        let may = space.may(thread, to) && other.is_none_or(|other| space.may(other, from));
        if from == to || !room || !may {
            continue;
        }
        leaves[thread] = to;
        other.into_iter().for_each(|other| leaves[other] = from);
        let predicted = walk.step(leaves, Change { thread, other, from, to });
        // Rounding is no gain.
        if predicted > best * (1.0 + 1e-12) {
            (best, since) = (predicted, 0);
        } else {
            walk.back();
            leaves[thread] = from;
            other.into_iter().for_each(|other| leaves[other] = to);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw;
    use pinwise_synthetic::{Contention, Demand, Disturbance};
    use pinwise_topology::{Alike, Machine, SharingTree};

    struct Truth(Contention);

    impl Predictor for Truth {
        fn predict(&self, leaves: &[u32]) -> f64 {
            self.0.truth(leaves)
        }
    }

    /// Instances of three threads on a machine with fewer contexts.
    fn crowded(shape: &str, instances: usize, random: &mut Random) -> (Truth, Space) {
        let machine = Machine::from_shape(shape).unwrap();
        let tree = SharingTree::new(&machine, Alike::ByStructure);
        let mut each = |low: f64, high: f64| -> Vec<f64> {
            (0..3).map(|_| low + (high - low) * random.unit()).collect()
        };
        let demand = Demand {
            time: each(0.6, 1.6),
            burden: vec![each(0.05, 0.4), each(0.0, 0.15)],
            distance: 0.05,
            near: 0,
            cap: None,
            needle: None,
        };
        let roles = ["R", "P", "T"];
        let bed = Contention::new(machine, instances, &roles, demand, Disturbance::default());
        let space = Space::new(tree, 3 * instances, PerContext::Any).unwrap();
        (Truth(bed), space)
    }

    fn instances(count: usize) -> Vec<Vec<usize>> {
        (0..count).map(|instance| (3 * instance..3 * instance + 3).collect()).collect()
    }

    #[test]
    fn the_best_of_all_assignments_is_found() {
        let mut random = Random::new(31);
        for _ in 0..4 {
            let (truth, space) = crowded("2x2", 2, &mut random);
            let all = space.classes().map(|class| truth.predict(class.leaves()));
            let best = all.fold(0.0, f64::max);
            let found = highest(&truth, &space, &instances(2), 20_000, &mut random);
            assert!(space.allows(&found) && found == space.canonical(&found));
            assert!((truth.predict(found.leaves()) / best - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn it_finds_the_best_more_often_than_as_many_steps_of_cooling() {
        let mut random = Random::new(12);
        let (mut searched, mut cooled) = (0, 0);
        for _ in 0..2 {
            let (truth, space) = crowded("2x2x2", 5, &mut random);
            let performance = |found: Assignment| truth.predict(found.leaves());
            let cool = |_| performance(draw(&truth, &space, 1e-4, 60_000, &mut random));
            let by_cooling: Vec<f64> = (0..3).map(cool).collect();
            let search =
                |_| performance(highest(&truth, &space, &instances(5), 60_000, &mut random));
            let ends: Vec<f64> = (0..3).map(search).collect();
            let best = ends.iter().chain(&by_cooling).copied().fold(0.0, f64::max);
            let reach = |ends: &[f64]| ends.iter().filter(|end| **end > 0.999 * best).count();
            (searched, cooled) = (searched + reach(&ends), cooled + reach(&by_cooling));
        }
        assert!(searched >= 5 && searched > cooled, "{searched} {cooled}");
    }
}
