//! The default search on populations of a simulated processor that are known in full. It finds
//! their optimum, and its bound holds.
//!
//! Two cores of the UltraSPARC T2 have 515 different assignments of six threads. The example
//! `simulated` of the lab does the same with all eight cores and all programs, which takes minutes.

use pinwise_campaign::{Record, Step, Strategy};
use pinwise_measure::{Effort, Setting, Testbed};
use pinwise_placement::{Budget, Outcome, PlacementQuestion, PlacementSearch, StrategyName};
use pinwise_processor::program::PacketProgram;
use pinwise_processor::{Processor, SimulatedTestbed, SimulatedWindow};
use pinwise_synthetic::{Disturbance, Replay};
use pinwise_topology::{Alike, Assignment, CpuId, PerContext, SharingTree, Space};
use std::time::Duration;

/// One window of every assignment, which is the truth from then on.
fn population(pipeline: PacketProgram) -> (SimulatedTestbed, SharingTree, Vec<(Assignment, f64)>) {
    let processor = Processor::model("ultrasparc-t2").unwrap();
    let mut machine = processor.machine();
    machine.allowed = (0..16).map(CpuId).collect();
    let tree = SharingTree::new(&machine, Alike::ByStructure);
    let window = SimulatedWindow { cycles: 20_000, starts: 1 };
    let mut testbed =
        SimulatedTestbed::new(processor, machine, vec![pipeline; 2], window, 1).unwrap();
    let space = Space::new(tree.clone(), 6, PerContext::AtMost(1)).unwrap();
    let assignments: Vec<Assignment> = space.classes().collect();
    let pinned = |assignment: &Assignment| (Setting::Pinned(assignment.clone()), Effort::default());
    let measured = testbed.measure_all(&assignments.iter().map(pinned).collect::<Vec<_>>());
    let performances = measured.into_iter().map(|measured| measured.unwrap().performance);
    let population = assignments.iter().cloned().zip(performances).collect();
    (testbed, tree, population)
}

/// A campaign without a store, on the population with 0.3 % of noise.
fn search(
    seed: u64,
    testbed: &SimulatedTestbed,
    tree: &SharingTree,
    population: &[(Assignment, f64)],
) -> Outcome {
    let disturbance = Disturbance { noise: 0.003, seed, ..Disturbance::default() };
    let unpinned = population.iter().step_by(20).map(|&(_, performance)| performance).collect();
    let (machine, workload) = (testbed.machine().clone(), testbed.workload().clone());
    let known = population.iter().cloned();
    let mut replay =
        Replay::new(machine, workload, testbed.unit().clone(), known, unpinned, disturbance);
    let budget = Budget::Measurements(1500);
    let question = PlacementQuestion {
        per_context: Some(1),
        seed,
        ..PlacementQuestion::new(StrategyName::Auto, budget)
    };
    let mut search = PlacementSearch::new(&question, tree, testbed.workload()).unwrap();
    let mut records: Vec<Record> = Vec::new();
    while let Step::Measure(trial) = search.step(&records) {
        let outcome = replay.measure(&trial.setting, trial.effort);
        records.push(Record {
            number: records.len() as u64,
            trial,
            outcome,
            elapsed: Duration::ZERO,
        });
    }
    search.outcome(testbed.unit(), &records, None)
}

#[test]
fn the_known_optimum_is_found_and_the_bound_is_not_below_it() {
    for pipeline in [PacketProgram::IntDiv, PacketProgram::HashNL2] {
        let (testbed, tree, population) = population(pipeline);
        assert_eq!(population.len(), 515);
        let optimum =
            population.iter().map(|&(_, performance)| performance).fold(f64::MIN, f64::max);
        let truth =
            |sought: &Assignment| population.iter().find(|(known, _)| known == sought).unwrap().1;
        for seed in 1..=4 {
            let outcome = search(seed, &testbed, &tree, &population);
            let announced =
                outcome.best.iter().chain(&outcome.ties).map(|best| truth(&best.assignment));
            assert_eq!(
                announced.fold(f64::MIN, f64::max),
                optimum,
                "{} with seed {seed}",
                pipeline.name()
            );
            let high = outcome.bound.upb_high;
            assert!(
                high.is_none_or(|high| high >= optimum),
                "{} with seed {seed}: {high:?}",
                pipeline.name()
            );
        }
    }
}
