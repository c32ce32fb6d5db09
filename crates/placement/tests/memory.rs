//! Searches on a machine of two nodes on paper, where remote memory makes threads slow.

use pinwise_campaign::{Ending, MemoryJournal, drive};
use pinwise_measure::{MemoryPolicy, Testbed};
use pinwise_placement::{
    Budget, Outcome, PlacementQuestion, PlacementSearch, PlacementVerdict, StrategyName,
};
use pinwise_synthetic::{Contention, Demand, Disturbance, RemoteMemory};
use pinwise_topology::{Alike, Machine, SharingTree};
use std::collections::BTreeSet;
use std::time::Duration;

/// Memory lies on the second node.
fn run(strategy: StrategyName, policy: MemoryPolicy) -> Outcome {
    let demand = Demand {
        time: vec![1.0],
        burden: vec![vec![0.3], vec![0.02]],
        distance: 0.0,
        near: 0,
        cap: None,
        needle: None,
    };
    let machine = Machine::from_shape("numa:2 core:4 pu:2").unwrap();
    let disturbance = Disturbance { noise: 0.005, seed: 3, ..Disturbance::default() };
    let mut testbed = Contention::new(machine.clone(), 3, &["w"], demand, disturbance)
        .with_memory(RemoteMemory { policy, home: 1, latency: 0.6 });
    let tree = || SharingTree::new(&machine, Alike::ExceptNuma);
    let usual = PlacementQuestion::new(strategy, Budget::Measurements(600));
    let question = PlacementQuestion { per_context: Some(1), ..usual }.on(&testbed);
    let mut search = PlacementSearch::new(&question, &tree(), testbed.workload()).unwrap();
    let clock = || Duration::ZERO;
    let (ending, records) = drive(
        &mut MemoryJournal::default(),
        &mut search,
        &mut testbed,
        &clock,
        &|| false,
        &mut |_| {},
    )
    .unwrap();
    assert_eq!(ending, Ending::Finished);
    search.outcome(testbed.unit(), &records, None)
}

/// The nodes on which the best assignment has threads.
fn nodes(outcome: &Outcome) -> BTreeSet<u32> {
    outcome.best.as_ref().unwrap().assignment.leaves().iter().map(|leaf| leaf / 8).collect()
}

#[test]
fn every_strategy_finds_the_node_of_memory_that_stays() {
    for strategy in
        [StrategyName::Auto, StrategyName::Random, StrategyName::Climb, StrategyName::Guided]
    {
        let outcome = run(strategy, MemoryPolicy::Leave);
        assert_eq!(nodes(&outcome), [1].into(), "{strategy:?}");
        assert_eq!(outcome.verdict, PlacementVerdict::Pin, "{strategy:?}");
    }
}

#[test]
fn memory_that_is_spread_favours_no_node() {
    let best = |policy| run(StrategyName::Auto, policy).best.unwrap().performance.mean;
    let [leave, follow, interleave] =
        [MemoryPolicy::Leave, MemoryPolicy::Follow, MemoryPolicy::Interleave].map(best);
    // Half of all reads are remote, from any reader.
    assert!(interleave < leave / 1.2, "{interleave} {leave}");
    // Each instance has its memory: they may use both nodes, and crowd each other less.
    assert!(follow >= leave * 0.995, "{follow} {leave}");
}
