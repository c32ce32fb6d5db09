//! BlackBox on a processor on paper, where every performance is known.

use pinwise_campaign::{Purpose, Record, Step, Strategy};
use pinwise_measure::{Setting, Testbed};
use pinwise_placement::{
    BlackboxOptions, BoundMethod, Budget, FinalistRule, Outcome, PlacementQuestion,
    PlacementSearch, SearchError, StopReason, StrategyName,
};
use pinwise_synthetic::{Contention, Demand, Disturbance};
use pinwise_topology::{Alike, DomainKind, Machine, PerContext, SharingTree, Space};
use std::time::Duration;

fn demand() -> Demand {
    Demand {
        time: vec![1.0, 1.6, 0.9],
        burden: vec![vec![0.2, 0.3, 0.15], vec![0.05, 0.1, 0.02]],
        distance: 0.03,
        near: 1,
        cap: None,
        needle: None,
    }
}

fn bed(instances: usize, noise: f64) -> Contention {
    let machine = Machine::from_shape("4x2x4").unwrap();
    Contention::new(
        machine,
        instances,
        &["P", "R", "T"],
        demand(),
        Disturbance { noise, seed: 3, ..Disturbance::default() },
    )
}

fn question(share: f64, top: Option<usize>, budget: u64) -> PlacementQuestion {
    let profile = BlackboxOptions {
        core_local: Some(DomainKind::Package),
        share,
        top,
        ..BlackboxOptions::default()
    };
    PlacementQuestion {
        per_context: Some(1),
        profile,
        ..PlacementQuestion::new(StrategyName::Blackbox, Budget::Measurements(budget))
    }
}

fn tree() -> SharingTree {
    SharingTree::new(&Machine::from_shape("4x2x4").unwrap(), Alike::ByStructure)
}

fn run(question: &PlacementQuestion, mut testbed: Contention) -> (Outcome, Vec<Record>) {
    let mut search = PlacementSearch::new(question, &tree(), testbed.workload()).unwrap();
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
    (search.outcome(testbed.unit(), &records, None), records)
}

fn profiles(records: &[Record]) -> usize {
    records.iter().filter(|record| matches!(record.trial.setting, Setting::Profile(_))).count()
}

#[test]
fn the_best_of_few_threads_is_found_from_a_part_of_the_profile() {
    let testbed = bed(2, 0.0);
    let space = Space::new(tree(), 6, PerContext::AtMost(1)).unwrap();
    let optimum = space.classes().map(|class| testbed.truth(class.leaves())).fold(0.0, f64::max);
    for (share, noise) in [(1.0, 0.0), (0.1, 0.0), (0.1, 0.002)] {
        let (outcome, records) = run(&question(share, None, 2000), bed(2, noise));
        let best = outcome.best.as_ref().unwrap();
        let loss = 1.0 - testbed.truth(best.assignment.leaves()) / optimum;
        assert!(loss < 0.014, "share {share}, noise {noise}: {loss}");
        let forecast = outcome.forecast.as_ref().unwrap();
        assert_eq!(profiles(&records), forecast.base + forecast.measured);
        assert!(forecast.measured as f64 <= share * forecast.slowdown as f64);
        assert!(
            forecast.finalists.iter().all(|finalist| finalist.measured.is_some()),
            "{forecast:?}"
        );
        assert!(
            forecast.finalists.iter().all(|finalist| finalist.low <= finalist.predicted
                && finalist.predicted <= finalist.high)
        );
        // Others that are predicted alike, to half a percent, may come before the best predicted,
        // which is known here.
        let (upper, gap) = (forecast.upper.unwrap(), forecast.gap().unwrap());
        assert!(forecast.exact && gap < 0.0051, "{gap}");
        assert!(
            forecast.finalists.iter().all(|finalist| finalist.predicted <= upper * (1.0 + 1e-9))
        );
        // What instances do alone bounds what they do together, here by construction.
        assert_eq!(outcome.bound.method, BoundMethod::Solo);
        assert!(outcome.bound.upb_high.unwrap() >= optimum * (1.0 - 1e-9));
    }
}

#[test]
fn so_many_are_measured_as_were_asked_for() {
    let (outcome, records) = run(&question(0.1, Some(3), 2000), bed(3, 0.002));
    assert_eq!(outcome.forecast.unwrap().finalists.len(), 3);
    let candidates = records.iter().filter(|record| record.trial.purpose == Purpose::Climb).count();
    assert_eq!(candidates, 3);
}

#[test]
fn the_top_rule_measures_the_best_predicted_in_order() {
    let predicted = |select| {
        let mut asked = question(0.1, Some(6), 2000);
        asked.profile.select = select;
        let (outcome, _) = run(&asked, bed(3, 0.002));
        let forecast = outcome.forecast.unwrap();
        let finalists: Vec<f64> = forecast.finalists.iter().map(|it| it.predicted).collect();
        (forecast.upper.unwrap(), finalists)
    };
    let ((upper, top), (_, varied)) =
        (predicted(FinalistRule::Top), predicted(FinalistRule::Varied));
    assert!(top[0] > upper * (1.0 - 1e-9) && top.is_sorted_by(|a, b| a >= b), "{top:?}");
    // Of the same profile, no six are predicted better.
    assert!(top.iter().sum::<f64>() >= varied.iter().sum::<f64>(), "{varied:?}");
    assert_ne!(top, varied);
}

#[test]
fn a_profile_is_reduced_to_what_the_budget_affords() {
    let (outcome, records) = run(&question(1.0, Some(2), 120), bed(4, 0.0));
    assert!(records.len() <= 120 && profiles(&records) < 80, "{}", profiles(&records));
    assert!(outcome.best.is_some(), "{:?}", outcome.stopped_because);
}

#[test]
fn a_campaign_goes_on_as_if_nothing_had_happened() {
    let asked = question(0.1, None, 400);
    let (whole, records) = run(&asked, bed(3, 0.01));
    for cut in [7, 40, records.len() / 2] {
        let testbed = bed(3, 0.01);
        let replayed =
            PlacementSearch::replay(&asked, &tree(), testbed.workload(), &records[..cut]).unwrap();
        let (outcome, _) =
            (replayed.outcome(testbed.unit(), &records[..cut], Some(StopReason::Running)), ());
        assert!(outcome.forecast.is_some(), "after {cut}");
    }
    let testbed = bed(3, 0.01);
    let replayed = PlacementSearch::replay(&asked, &tree(), testbed.workload(), &records).unwrap();
    assert_eq!(replayed.outcome(testbed.unit(), &records, None).forecast, whole.forecast);
    assert_eq!(run(&asked, bed(3, 0.01)).1, records);
}

#[test]
fn a_level_that_is_not_there_is_refused_before_anything_is_measured() {
    let mut asked = question(0.1, None, 400);
    asked.profile.core_local = Some(DomainKind::L3);
    let error = PlacementSearch::new(&asked, &tree(), bed(2, 0.0).workload()).unwrap_err();
    assert!(
        matches!(error, SearchError::Local(_)) && error.to_string().contains("--core-local"),
        "{error}"
    );
}
