//! How fast the best predicted assignment is found and proven: `cargo run --release -p pinwise-prediction --example optimum`.

use pinwise_prediction::{BaseSpace, BaseTable, BlackBox, Cast, Experiment, Local, Placed, SlowdownTable};
use pinwise_testbed::{Contention, Demand, Disturbance, Testbed};
use pinwise_topology::{Alike, DomainKind, Machine, PerContext, Random, SharingTree, Space};
use std::convert::Infallible;
use std::time::Instant;

/// Seconds for each workload.
const LIMIT: f64 = 10.0;
const ROLES: [&str; 3] = ["R", "P", "T"];

fn main() {
    for number in 0..12 {
        let mut random = Random::new(1000 + number);
        let mut between = |low: f64, high: f64| low + (high - low) * random.unit();
        let mut each = |low: f64, high: f64| (0..3).map(|_| between(low, high)).collect::<Vec<f64>>();
        let time = each(0.6, 1.6);
        let burden = vec![each(0.05, 0.4), each(0.0, 0.15), each(0.0, 0.006)];
        let distance = each(0.0, 0.12)[0];
        let demand = Demand { time, burden, distance, near: 1, cap: None, needle: None };
        let instances = 8;
        let machine = Machine::from_shape("8x2x4").expect("a valid shape");
        let tree = SharingTree::new(&machine, Alike::ByStructure);
        let testbed = Contention::new(machine, instances, &ROLES, demand, Disturbance::default());
        let cast = Cast::new(testbed.workload());
        let local = Local::new(&tree, DomainKind::Package, 1).expect("it has packages");
        let watch = |experiment: &Experiment| Ok::<f64, Infallible>(watched(&testbed, &cast, experiment));
        let space = BaseSpace::new(&tree, &cast, 0, 1).expect("one instance fits");
        let Ok(base) = BaseTable::fill(space, |assignment| {
            watch(&Experiment { instances: vec![Placed { application: 0, leaves: assignment.leaves().to_vec() }] })
        });
        let mut slowdown = SlowdownTable::new(&cast, &local).expect("it is small");
        let Ok(()) = slowdown.fill(&cast, &local, watch);
        let blackbox = BlackBox::new(cast, local, vec![base], slowdown);
        let space = Space::new(tree.clone(), 3 * instances, PerContext::AtMost(1)).expect("they fit");
        let start = Instant::now();
        let optima = blackbox.optima(&space, 1, &mut Random::new(1), &mut |_| start.elapsed().as_secs_f64() < LIMIT);
        println!(
            "{number}: best {:.6} upper {:.6} gap {:.5} % complete {} steps {} {:.2} s",
            optima.best().map_or(0.0, |best| best.performance),
            optima.upper,
            100.0 * optima.gap(),
            optima.complete,
            optima.steps,
            start.elapsed().as_secs_f64()
        );
    }
}

/// What the first instance does. Roles are in the order of the cast's instances (by name), the testbed's in its own.
fn watched(testbed: &Contention, cast: &Cast, experiment: &Experiment) -> f64 {
    let order = &cast.instances()[0].threads;
    let mut leaves = Vec::new();
    for placed in &experiment.instances {
        let mut own = vec![0; order.len()];
        order.iter().zip(&placed.leaves).for_each(|(role, leaf)| own[*role] = *leaf);
        leaves.extend(own);
    }
    testbed.rates(&leaves)[0]
}
