//! What the search itself costs, without measuring: `cargo bench -p pinwise-placement --bench
//! search`. Divide by the number of measurements for the mean step.

use divan::Bencher;
use pinwise_campaign::{Record, Step, Strategy};
use pinwise_measure::Testbed;
use pinwise_placement::{Budget, PlacementQuestion, PlacementSearch, StrategyName};
use pinwise_synthetic::{Contention, Demand, Disturbance};
use pinwise_topology::{Alike, Machine, SharingTree};
use std::time::Duration;

fn main() {
    divan::main();
}

fn testbed(shape: &str, instances: usize) -> Contention {
    let machine = Machine::from_shape(shape).expect("the shapes of this file are valid");
    let demand = Demand {
        time: vec![1.0, 1.6, 0.9],
        burden: vec![vec![0.2, 0.3, 0.15], vec![0.05, 0.1, 0.02], vec![0.001, 0.002, 0.001]],
        distance: 0.03,
        near: 1,
        cap: None,
        needle: None,
    };
    let disturbance = Disturbance { noise: 0.002, seed: 5, ..Disturbance::default() };
    Contention::new(machine, instances, &["P", "R", "T"], demand, disturbance)
}

/// One whole campaign. The testbed is a formula and takes microseconds.
fn campaign(testbed: &mut Contention, budget: u64, seed: u64) -> usize {
    let usual = PlacementQuestion::new(StrategyName::Guided, Budget::Measurements(budget));
    let question = PlacementQuestion { per_context: Some(1), seed, ..usual }.on(testbed);
    let tree = SharingTree::new(testbed.machine(), Alike::ExceptNuma);
    let mut search = PlacementSearch::new(&question, &tree, testbed.workload())
        .expect("the questions of this file are valid");
    let mut records: Vec<Record> = Vec::new();
    while let Step::Measure(trial) = search.step(&records) {
        let number = records.len() as u64;
        testbed.seek(number);
        let outcome = testbed.measure(&trial.setting, trial.effort);
        records.push(Record { number, trial, outcome, elapsed: Duration::ZERO });
    }
    records.len()
}

/// Shape, instances of three threads, measurements. Each sample has another seed: some campaigns
/// make another block of draws.
#[divan::bench(sample_count = 5, sample_size = 1, args = [
    ("8x2x4", 8, 60),
    ("8x2x4", 8, 150),
    ("8x2x4", 8, 600),
    ("2x64x2", 21, 60),
    ("2x64x2", 21, 600),
])]
fn guided(bencher: Bencher, (shape, instances, budget): (&str, usize, u64)) {
    let mut seed = 0;
    let mut next = || {
        seed += 1;
        (testbed(shape, instances), seed)
    };
    bencher
        .with_inputs(&mut next)
        .bench_local_values(|(mut testbed, seed)| campaign(&mut testbed, budget, seed));
}
