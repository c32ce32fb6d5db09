//! Workloads on a processor on paper, with their best possible performance.

use pinwise_prediction::{Predictor, draw};
use pinwise_testbed::{Contention, Demand, Disturbance, Testbed};
use pinwise_topology::{Alike, Machine, PerContext, Random, SharingTree, Space};

/// One workload.
pub(crate) struct Case {
    pub(crate) name: String,
    /// Looked at while constants were chosen, or kept for the judgement.
    pub(crate) held_out: bool,
    pub(crate) noise: f64,
    demand: Demand,
    instances: usize,
    pub(crate) tree: SharingTree,
    pub(crate) space: Space,
    pub(crate) optimum: f64,
    /// How the optimum is known.
    pub(crate) known: String,
}

/// Without disturbance, as if it were a prediction: what annealing goes by.
struct Truth(Contention);

impl Predictor for Truth {
    fn predict(&self, leaves: &[u32]) -> f64 {
        self.0.truth(leaves)
    }
}

const ROLES: [&str; 3] = ["R", "P", "T"];
const CASES: usize = 42;
/// Annealings of a workload that cannot be enumerated.
const RESTARTS: u64 = 6;
const STEPS: usize = 150_000;
/// Spaces up to this size are enumerated.
const ENUMERABLE: u32 = 10_000;

/// All workloads: demands drawn from fixed seeds, noise 0, 0.2 and 1 % in turn, every third held out. Most have 24 threads on
/// an 8x2x4 processor, every seventh 6 and every seventh 12; number 9 has a needle for its optimum and number 20 a capped link.
pub(crate) fn all() -> Vec<Case> {
    let numbers: Vec<usize> = (0..CASES).collect();
    crate::each(&numbers, |number| Case::new(*number))
}

impl Case {
    fn new(number: usize) -> Self {
        let mut random = Random::new(1000 + number as u64);
        let mut between = |low: f64, high: f64| low + (high - low) * random.unit();
        let mut each = |low: f64, high: f64| (0..3).map(|_| between(low, high)).collect::<Vec<f64>>();
        let time = each(0.6, 1.6);
        let burden = vec![each(0.05, 0.4), each(0.0, 0.15), each(0.0, 0.006)];
        let distance = each(0.0, 0.12)[0];
        let instances = match number % 7 {
            3 => 2,
            5 => 4,
            _ => 8,
        };
        let noise = [0.0, 0.002, 0.01][number / 3 % 3];
        let mut demand = Demand { time, burden, distance, near: 1, cap: None, needle: None };
        let machine = Machine::from_shape("8x2x4").expect("a valid shape");
        let tree = SharingTree::new(&machine, Alike::ByStructure);
        let space = Space::new(tree.clone(), 3 * instances, PerContext::AtMost(1)).expect("they fit");
        let mut name = format!("{} threads", 3 * instances);
        match number {
            9 => {
                demand.needle = Some(1.12);
                name.push_str(", needle");
            }
            20 => {
                let free = Self::best(&demand, instances, &space).0;
                demand.cap = Some(0.9 * free);
                name.push_str(", capped link");
            }
            _ => {}
        }
        let (optimum, known) = Self::best(&demand, instances, &space);
        Self { name, held_out: number % 3 == 2, noise, demand, instances, tree, space, optimum, known }
    }

    /// The testbed; `seed` is of its noise.
    pub(crate) fn testbed(&self, seed: u64) -> Contention {
        bed(&self.demand, self.instances, Disturbance { noise: self.noise, seed, ..Disturbance::default() })
    }

    fn best(demand: &Demand, instances: usize, space: &Space) -> (f64, String) {
        let truth = Truth(bed(demand, instances, Disturbance::default()));
        if space.count() <= ENUMERABLE.into() {
            let best = space.classes().map(|class| truth.predict(class.leaves())).fold(0.0, f64::max);
            return (best, "enumerated".to_owned());
        }
        let anneal = |seed| truth.predict(draw(&truth, space, 1e-5, STEPS, &mut Random::new(seed)).leaves());
        let ends: Vec<f64> = (0..RESTARTS).map(anneal).collect();
        let best = ends.iter().copied().fold(0.0, f64::max);
        let reached = ends.iter().filter(|end| **end > best * 0.999).count();
        if demand.needle.is_some() {
            let needle = needle(&truth, instances);
            return (
                best.max(needle),
                format!("every instance on a core of its own, {:+.1} %", 100.0 * (needle / best - 1.0)),
            );
        }
        (best, format!("annealed, {reached} of {RESTARTS} within 0.1 %"))
    }
}

fn bed(demand: &Demand, instances: usize, disturbance: Disturbance) -> Contention {
    let machine = Machine::from_shape("8x2x4").expect("a valid shape");
    Contention::new(machine, instances, &ROLES, demand.clone(), disturbance)
}

/// The best of the assignments in which all instances have a core each, and are alike.
fn needle(truth: &Truth, instances: usize) -> f64 {
    let within = SharingTree::new(&Machine::from_shape("2x4").expect("a valid shape"), Alike::ByStructure);
    let core = Space::new(within, 3, PerContext::AtMost(1)).expect("3 threads on 8 contexts");
    let everywhere = |class: &[u32]| -> Vec<u32> {
        (0..instances as u32).flat_map(|instance| class.iter().map(move |leaf| instance * 8 + leaf)).collect()
    };
    debug_assert_eq!(truth.0.workload().threads.len(), 3 * instances);
    core.classes().map(|class| truth.predict(&everywhere(class.leaves()))).fold(0.0, f64::max)
}
