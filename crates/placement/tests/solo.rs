//! The bound from instances alone, on a simulated processor where every performance is known.

use pinwise_campaign::{Purpose, Record, Step, Strategy};
use pinwise_measure::{Setting, Testbed};
use pinwise_placement::{
    BoundMethod, BoundNote, Budget, Outcome, PlacementQuestion, PlacementSearch, StopReason,
    StrategyName, StrategyReason,
};
use pinwise_synthetic::{Contention, Demand, Disturbance};
use pinwise_topology::{Alike, Machine, PerContext, SharingTree, Space};
use std::time::Duration;

fn demand() -> Demand {
    Demand {
        time: vec![1.0, 1.6, 0.9],
        burden: vec![vec![0.2, 0.3, 0.15], vec![0.05, 0.1, 0.02], vec![0.001, 0.002, 0.001]],
        distance: 0.03,
        near: 1,
        cap: None,
        needle: None,
    }
}

fn bed(instances: usize, demand: Demand, noise: f64) -> Contention {
    let machine = Machine::from_shape("8x2x4").unwrap();
    let disturbance = Disturbance { noise, seed: 5, ..Disturbance::default() };
    Contention::new(machine, instances, &["P", "R", "T"], demand, disturbance)
}

fn tree() -> SharingTree {
    SharingTree::new(&Machine::from_shape("8x2x4").unwrap(), Alike::ByStructure)
}

fn run(budget: u64, cap: Option<f64>, mut testbed: Contention) -> (Outcome, Vec<Record>) {
    let usual = PlacementQuestion::new(StrategyName::Auto, Budget::Measurements(budget));
    let question = PlacementQuestion { per_context: Some(1), cap, ..usual }.on(&testbed);
    let mut search = PlacementSearch::new(&question, &tree(), testbed.workload()).unwrap();
    let mut records: Vec<Record> = Vec::new();
    while let Step::Measure(trial) = search.step(&records) {
        testbed.seek(records.len() as u64);
        let outcome = testbed.measure(&trial.setting, trial.effort);
        records.push(Record {
            number: records.len() as u64,
            trial,
            outcome,
            elapsed: Duration::ZERO,
        });
    }
    let outcome = search.outcome(testbed.unit(), &records, None);
    let replayed =
        PlacementSearch::replay(&question, &tree(), testbed.workload(), &records).unwrap();
    assert_eq!(replayed.outcome(testbed.unit(), &records, None), outcome);
    (outcome, records)
}

#[test]
fn a_few_instances_are_certified_before_anything_is_extrapolated() {
    let truth = bed(2, demand(), 0.0);
    let space = Space::new(tree(), 6, PerContext::AtMost(1)).unwrap();
    let optimum = space.classes().map(|class| truth.truth(class.leaves())).fold(0.0, f64::max);
    // Each of the eleven assignments of one instance is measured twice. With noise, those that may
    // be the best are measured four times more: all of them at most. Estimated noise matters above
    // 0.2 %. So with just 0.2 % either may happen.
    let experiments = [(0.0, 22..=22), (0.001, 22..=22), (0.002, 22..=66), (0.01, 23..=66)];
    for (noise, experiments) in experiments {
        let (outcome, records) = run(600, None, bed(2, demand(), noise));
        let bound = &outcome.bound;
        assert_eq!(bound.method, BoundMethod::Solo, "{bound:?}");
        assert!(bound.notes.contains(&BoundNote::Limit { method: BoundMethod::Solo }), "{bound:?}");
        assert!(bound.gap_high.unwrap() <= 0.025, "{bound:?}");
        assert!(bound.upb_high.unwrap() >= optimum, "{bound:?}");
        let reached = |reason: &StopReason| match reason {
            StopReason::NearBound { method, .. } => *method == BoundMethod::Solo,
            _ => false,
        };
        assert!(outcome.stopped_because.iter().any(reached), "{:?}", outcome.stopped_because);
        let best = truth.truth(outcome.best.as_ref().unwrap().assignment.leaves());
        assert!(best >= 0.975 * optimum);
        let alone = records
            .iter()
            .filter(|record| matches!(record.trial.setting, Setting::Profile(_)))
            .count();
        assert!(experiments.contains(&alone), "noise {noise}: {alone}");
    }
}

#[test]
fn a_small_budget_has_the_bound_too() {
    let (outcome, _) = run(200, None, bed(2, demand(), 0.0));
    assert_eq!(outcome.bound.method, BoundMethod::Solo);
    assert!(outcome.bound.gap_high.unwrap() < 0.05, "{:?}", outcome.bound);
}

/// How many of the first 300 trials are of instances alone, and how many of random assignments.
/// They have 1.5 s, and a trial takes 50 ms.
fn shares(seconds: u64) -> (usize, usize) {
    let start = Duration::from_millis(1500);
    let mut testbed = bed(4, demand(), 0.002).starting_instances(start);
    let budget = Budget::Time(Duration::from_secs(seconds));
    let usual = PlacementQuestion::new(StrategyName::Auto, budget);
    let question = PlacementQuestion { per_context: Some(1), ..usual }.on(&testbed);
    let mut search = PlacementSearch::new(&question, &tree(), testbed.workload()).unwrap();
    let mut records: Vec<Record> = Vec::new();
    let mut elapsed = Duration::ZERO;
    while let (Step::Measure(trial), ..300) = (search.step(&records), records.len()) {
        elapsed += match trial.setting {
            Setting::Profile(_) => start,
            _ => Duration::from_millis(50),
        };
        testbed.seek(records.len() as u64);
        let outcome = testbed.measure(&trial.setting, trial.effort);
        records.push(Record { number: records.len() as u64, trial, outcome, elapsed });
    }
    let alone =
        records.iter().filter(|record| matches!(record.trial.setting, Setting::Profile(_))).count();
    let drawn = records.iter().filter(|record| record.trial.purpose == Purpose::Sample).count();
    (alone, drawn)
}

#[test]
fn instances_that_take_a_start_to_measure_do_not_use_up_the_time() {
    let (alone, drawn) = shares(30);
    assert!(alone == 0 && drawn >= 50, "{alone}, {drawn}");
    // 11 assignments of 1.5 s, up to 6 times: 99 s of the 675 s that searching has.
    let (alone, drawn) = shares(900);
    assert!(alone >= 22 && drawn >= 50, "{alone}, {drawn}");
}

#[test]
fn a_budget_with_room_for_one_block_is_guided() {
    // 500 measurements are about what 30 s are on a machine.
    let (outcome, _) = run(500, None, bed(4, demand(), 0.002));
    assert!(matches!(outcome.strategy[0], StrategyReason::Guided { .. }), "{:?}", outcome.strategy);
}

#[test]
fn what_is_predicted_beside_it_is_at_half_the_error() {
    let (outcome, records) = run(600, None, bed(8, demand(), 0.0));
    let space = Space::new(tree(), 24, PerContext::AtMost(1)).unwrap();
    let bed = bed(8, demand(), 0.0);
    let bound = |profiles: bool| {
        let question = PlacementQuestion::new(StrategyName::Auto, Budget::Measurements(600));
        let question = if profiles { question.on(&bed) } else { question };
        let (strategy, stopped) = (Vec::new(), Vec::new());
        Outcome::new(&question, &space, bed.workload(), bed.unit(), &records, strategy, stopped)
            .bound
    };
    // The same records, with and without that the instances alone are a bound.
    let (beside, only) = (bound(true), bound(false));
    assert_eq!(beside.upb_high, outcome.bound.upb_high);
    for bound in [&beside, &only] {
        assert_eq!((bound.method, bound.confidence), (BoundMethod::Predicted, 0.95), "{bound:?}");
    }
    assert!(beside.upb_high > only.upb_high, "{beside:?}, {only:?}");
}

#[test]
fn company_that_helps_refutes_it() {
    // On this made-up machine, an instance alone on a core gains a fifth over any instance alone on
    // the machine.
    let (outcome, _) = run(600, None, bed(8, Demand { needle: Some(1.2), ..demand() }, 0.0));
    let bound = &outcome.bound;
    let best = outcome.best.as_ref().unwrap().performance.mean;
    assert_ne!(bound.method, BoundMethod::Solo);
    assert_eq!(bound.confidence, 0.95);
    assert!(bound.notes.contains(&BoundNote::CompanyHelps), "{bound:?}");
    assert!(
        bound.upb_high.is_none_or(|high| high >= best) || bound.gap_high.is_none(),
        "{bound:?}"
    );
}

#[test]
fn the_cap_is_the_bound_where_it_is_lowest() {
    let (free, _) = run(600, None, bed(4, demand(), 0.0));
    let cap = 0.9 * free.best.unwrap().performance.mean;
    let (outcome, _) = run(600, Some(cap), bed(4, Demand { cap: Some(cap), ..demand() }, 0.0));
    assert_eq!(
        (outcome.bound.upb_high, outcome.bound.gap_high),
        (Some(cap), Some(0.0)),
        "{:?}",
        outcome.bound
    );
    assert_eq!(outcome.bound.method, BoundMethod::Cap);
    let (outcome, _) = run(600, Some(cap), bed(4, demand(), 0.0));
    assert!(outcome.bound.notes.contains(&BoundNote::WrongCap { cap }), "{:?}", outcome.bound);
}
