//! Workloads of the processor on paper ([`Contention`]), and the best that they can do.

use pinwise_measure::Testbed;
use pinwise_prediction::{Predictor, ThreadKinds, draw, highest};
use pinwise_synthetic::{Contention, Demand};
use pinwise_topology::{Alike, PerContext, Random, SharingTree, Space};

/// Spaces up to this size are enumerated.
pub const ENUMERABLE: u32 = 10_000;
/// How the best is known there.
pub const ENUMERATED: &str = "enumerated";

/// Annealings of a workload that cannot be enumerated.
const RESTARTS: u64 = 6;
const STEPS: usize = 150_000;

/// Without disturbance, as if it were a prediction: what annealing goes by.
struct Truth<'a>(&'a Contention);

impl Predictor for Truth<'_> {
    fn predict(&self, leaves: &[u32]) -> f64 {
        self.0.truth(leaves)
    }
}

/// Demands of `roles` roles on a machine of three levels: pipe, core and the whole.
pub fn demand(roles: usize, random: &mut Random) -> Demand {
    let mut each = |low: f64, high: f64| {
        (0..roles).map(|_| low + (high - low) * random.unit()).collect::<Vec<f64>>()
    };
    Demand {
        time: each(0.6, 1.6),
        burden: vec![each(0.05, 0.4), each(0.0, 0.15), each(0.0, 0.006)],
        distance: each(0.0, 0.12)[0],
        near: 1,
        cap: None,
        needle: None,
    }
}

/// All assignments of the workload of a testbed.
///
/// # Panics
/// If there are more threads than `per_context` leaves room for.
pub fn space(bed: &dyn Testbed, per_context: PerContext) -> Space {
    let tree = SharingTree::new(bed.machine(), Alike::ByStructure);
    Space::new(tree, bed.workload().threads.len(), per_context).expect("there is room")
}

/// The best of a space, and how it is known.
pub fn best(bed: &Contention, space: &Space) -> (f64, String) {
    let truth = Truth(bed);
    if space.count() <= ENUMERABLE.into() {
        let best = space.classes().map(|class| truth.predict(class.leaves())).fold(0.0, f64::max);
        return (best, ENUMERATED.to_owned());
    }
    let instances: Vec<Vec<usize>> = ThreadKinds::new(bed.workload())
        .instances()
        .iter()
        .map(|own| own.threads.clone())
        .collect();
    let anneal = |seed| {
        let random = &mut Random::new(seed);
        let found = match space.per_context() {
            PerContext::AtMost(1) => draw(&truth, space, 1e-5, STEPS, random),
            // Annealings end far apart there.
            _ => highest(&truth, space, &instances, 2 * STEPS, random),
        };
        truth.predict(found.leaves())
    };
    let ends: Vec<f64> = (0..RESTARTS).map(anneal).collect();
    let best = ends.iter().copied().fold(0.0, f64::max);
    let reached = ends.iter().filter(|end| **end > best * 0.999).count();
    (best, format!("annealed, {reached} of {RESTARTS} within 0.1 %"))
}
