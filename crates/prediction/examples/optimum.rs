//! How fast the best predicted assignment is found and proven: `cargo run --release -p pinwise-prediction --example optimum`.

use pinwise_prediction::{BaseSpace, BaseTable, BlackBox, Cast, Experiment, Local, Placed, SlowdownTable};
use pinwise_testbed::{Contention, Demand, Disturbance, Effort, Testbed};
use pinwise_topology::{Alike, DomainKind, Machine, PerContext, Random, SharingTree, Space};
use std::error::Error;
use std::time::Instant;

/// Seconds for each workload.
const LIMIT: f64 = 10.0;
const ROLES: [&str; 3] = ["R", "P", "T"];

fn main() -> Result<(), Box<dyn Error>> {
    for number in 0..12 {
        let mut random = Random::new(1000 + number);
        let mut between = |low: f64, high: f64| low + (high - low) * random.unit();
        let mut each = |low: f64, high: f64| (0..3).map(|_| between(low, high)).collect::<Vec<f64>>();
        let time = each(0.6, 1.6);
        let burden = vec![each(0.05, 0.4), each(0.0, 0.15), each(0.0, 0.006)];
        let distance = each(0.0, 0.12)[0];
        let demand = Demand { time, burden, distance, near: 1, cap: None, needle: None };
        let instances = 8;
        let machine = Machine::from_shape("8x2x4")?;
        let tree = SharingTree::new(&machine, Alike::ByStructure);
        let mut testbed = Contention::new(machine, instances, &ROLES, demand, Disturbance::default());
        let cast = Cast::new(testbed.workload());
        let local = Local::new(&tree, DomainKind::Package, 1)?;
        let mut measure = |experiment: &Experiment| {
            let measured = testbed.measure(&experiment.setting(&cast), Effort::default());
            measured.map(|measured| measured.performance)
        };
        let base = BaseTable::fill(BaseSpace::new(&tree, &cast, 0, 1)?, |assignment| {
            measure(&Experiment { instances: vec![Placed { application: 0, leaves: assignment.leaves().to_vec() }] })
        })?;
        let mut slowdown = SlowdownTable::new(&cast, &local).ok_or("too many layouts")?;
        slowdown.fill(&cast, &local, measure)?;
        let blackbox = BlackBox::new(cast, local, vec![base], slowdown);
        let space = Space::new(tree.clone(), 3 * instances, PerContext::AtMost(1))?;
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
    Ok(())
}
