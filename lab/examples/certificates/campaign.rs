//! One campaign of one strategy on one workload, and its result.

use crate::nodes::Nodes;
use crate::workloads::Case;
use pinwise_campaign::{MemoryJournal, Record, drive};
use pinwise_evt::Method;
use pinwise_lab::Bed;
use pinwise_measure::{Setting, Testbed};
use pinwise_placement::{
    Budget, Outcome, PlacementQuestion, PlacementSearch, StopReason, StrategyName,
};
use pinwise_topology::{Assignment, PerContext};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// Asked for.
pub(crate) const WITHIN: f64 = 0.025;
/// Measurements that each strategy may make, fresh windows included.
const BUDGET: u64 = 600;
/// How many of these it has made when its best so far is judged.
pub(crate) const EARLY: usize = 300;
/// What the published iteration may make: the paper's largest sample.
const PUBLISHED_BUDGET: u64 = 5000;
/// On the simulator less: it goes beyond its first sample of 1,000 in steps of 100.
const PUBLISHED_SIMULATED: u64 = 1500;

/// A way to answer.
pub(crate) struct Way {
    pub(crate) name: &'static str,
    strategy: StrategyName,
    method: Method,
    budget: u64,
    /// How many on each workload, from seeds of their own.
    pub(crate) campaigns: u64,
    /// Nodes that measure at once.
    pub(crate) nodes: usize,
}

pub(crate) const WAYS: [Way; 6] = [
    Way {
        name: "published",
        strategy: StrategyName::Random,
        method: Method::Profile,
        budget: PUBLISHED_BUDGET,
        campaigns: 1,
        nodes: 1,
    },
    Way {
        name: "random",
        strategy: StrategyName::Random,
        method: Method::Bayes,
        budget: BUDGET,
        campaigns: 1,
        nodes: 1,
    },
    Way {
        name: "climb",
        strategy: StrategyName::Climb,
        method: Method::Bayes,
        budget: BUDGET,
        campaigns: 1,
        nodes: 1,
    },
    Way {
        name: "default",
        strategy: StrategyName::Auto,
        method: Method::Bayes,
        budget: BUDGET,
        campaigns: 3,
        nodes: 1,
    },
    on_nodes("4 nodes", 4),
    on_nodes("16 nodes", 16),
];

/// The default on several nodes.
const fn on_nodes(name: &'static str, nodes: usize) -> Way {
    let (strategy, method) = (StrategyName::Auto, Method::Bayes);
    Way { name, strategy, method, budget: BUDGET, campaigns: 1, nodes }
}

/// What one campaign came to.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Run {
    /// Measurements made.
    pub(crate) measurements: u64,
    /// What the announced assignment does in truth.
    pub(crate) best: f64,
    /// What the best so far did in truth after [`EARLY`] measurements, or at the end.
    pub(crate) early: f64,
    /// The most that any assignment it measured does in truth.
    pub(crate) most: f64,
    /// The upper end of the bound; `None` if none was given.
    pub(crate) upper: Option<f64>,
    /// The gap that was claimed.
    pub(crate) claimed: Option<f64>,
    /// A bound ended the search before the budget did.
    pub(crate) ended: bool,
    /// Measurements on all nodes, also those that the search did not use.
    pub(crate) made: u64,
    /// The time until the end, in windows.
    pub(crate) took: f64,
}

impl Run {
    /// The campaign of a way with a seed.
    pub(crate) fn of(case: &Case, way: &Way, seed: u64) -> Self {
        let published = way.method == Method::Profile;
        let simulated = published && case.is_simulated();
        let testbed = case.testbed(seed);
        let question = PlacementQuestion {
            start: if published { 1000 } else { 500 },
            step: published.then_some(100),
            method: way.method,
            seed,
            ..question(way.strategy, if simulated { PUBLISHED_SIMULATED } else { way.budget }, case)
        };
        Self::answer(case, &question.on(&testbed), Nodes::new(testbed, way.nodes, seed))
    }

    /// A search for the best of a workload, without noise and without an end but the budget.
    pub(crate) fn long(case: &Case) -> Self {
        let question = question(StrategyName::Auto, BUDGET, case);
        let question = PlacementQuestion { within: 1e-9, seed: 99, ..question };
        Self::answer(case, &question, Nodes::new(case.quiet(), 1, 99))
    }

    /// A campaign without a store.
    fn answer(case: &Case, question: &PlacementQuestion, mut nodes: Nodes) -> Self {
        let mut search = PlacementSearch::new(question, &case.tree, nodes.workload())
            .expect("the workload fits");
        let journal = &mut MemoryJournal::default();
        let clock = || Duration::ZERO;
        let driven = drive(journal, &mut search, &mut nodes, &clock, &|| false, &mut |_| ());
        let (_, records) = driven.expect("memory has no errors");
        let testbed = nodes.bed();
        let outcome: Outcome = search.outcome(testbed.unit(), &records, None);
        let truths = pinned(&records).map(|(assignment, _)| testbed.truth(assignment.leaves()));
        Self {
            measurements: outcome.cost.measurements,
            best: outcome.best.as_ref().map_or(0.0, |best| testbed.truth(best.assignment.leaves())),
            early: early(testbed, &records),
            most: truths.fold(0.0, f64::max),
            upper: outcome.bound.upb_high,
            claimed: outcome.bound.gap_high,
            ended: outcome.stopped_because.iter().any(|reason| {
                matches!(reason, StopReason::NearBound { .. } | StopReason::SampleNearBound { .. })
            }),
            made: nodes.made,
            took: nodes.now,
        }
    }
}

/// The question about a workload, as far as all strategies are asked the same. Not on a testbed
/// yet: instances are not measured by themselves.
fn question(strategy: StrategyName, budget: u64, case: &Case) -> PlacementQuestion {
    let per_context = match case.space.per_context() {
        PerContext::AtMost(most) => Some(most),
        PerContext::Any => None,
    };
    PlacementQuestion {
        within: WITHIN,
        per_context,
        ..PlacementQuestion::new(strategy, Budget::Measurements(budget))
    }
}

/// What assignments were measured, and what that gave.
fn pinned(records: &[Record]) -> impl Iterator<Item = (&Assignment, f64)> {
    records.iter().filter_map(|record| match (&record.trial.setting, &record.outcome) {
        (Setting::Pinned(assignment), Ok(measured)) => Some((assignment, measured.performance)),
        _ => None,
    })
}

/// What the assignment with the best mean after [`EARLY`] measurements does in truth.
fn early(testbed: &Bed, records: &[Record]) -> f64 {
    let mut means: BTreeMap<&Assignment, (f64, f64)> = BTreeMap::new();
    for (assignment, performance) in pinned(&records[..records.len().min(EARLY)]) {
        let (sum, count) = means.entry(assignment).or_default();
        *sum += performance;
        *count += 1.0;
    }
    let best = means.into_iter().max_by(|a, b| (a.1.0 / a.1.1).total_cmp(&(b.1.0 / b.1.1)));
    best.map_or(0.0, |(assignment, _)| testbed.truth(assignment.leaves()))
}
