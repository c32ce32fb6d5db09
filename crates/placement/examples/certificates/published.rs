//! BlackBox as published, on the same workloads: profile, predict, measure the best predicted.

use crate::Run;
use crate::workloads::Case;
use pinwise_prediction::{
    BaseSpace, BaseTable, BlackBox, Cast, Compiled, Experiment, Local, Placed, Predictor, SlowdownTable, draw,
};
use pinwise_testbed::{Effort, Setting, Testbed};
use pinwise_topology::{Assignment, DomainKind, Random};
use std::collections::BTreeSet;

/// Cold draws in which the best predicted assignments are looked for, and steps of each.
const DRAWS: usize = 24;
const STEPS: usize = 20_000;

/// The assignment measured best among the `finalists` predicted best. Profiles and measurements are free of noise here: the paper
/// reports none. There is no bound.
pub(crate) fn blackbox(case: &Case, finalists: usize) -> Run {
    let mut testbed = case.testbed(0);
    let cast = Cast::new(testbed.workload());
    // Of an 8x2x4 machine the levels are called packages, cores and contexts; a package is what the paper calls a core.
    let local = Local::new(&case.tree, DomainKind::Package, 1).expect("it has packages");
    let mut experiments = 0;
    let mut measure = |experiment: &Experiment| {
        experiments += 1;
        let measured = testbed.measure(&experiment.setting(&cast), Effort::default());
        measured.map(|measured| measured.performance)
    };
    let space = BaseSpace::new(&case.tree, &cast, 0, 1).expect("one instance fits");
    let base = BaseTable::fill(space, |assignment| {
        measure(&Experiment { instances: vec![Placed { application: 0, leaves: assignment.leaves().to_vec() }] })
    })
    .expect("nothing fails on paper");
    let mut slowdown = SlowdownTable::new(&cast, &local).expect("it is small");
    slowdown.fill(&cast, &local, &mut measure).expect("nothing fails on paper");
    let blackbox = BlackBox::new(cast, local, vec![base], slowdown);
    let predictor = Compiled::new(&blackbox, &case.tree).expect("8x2x4 has a compiled form");
    let mut random = Random::new(1);
    let found: BTreeSet<Assignment> =
        (0..DRAWS).map(|_| draw(&predictor, &case.space, 1e-5, STEPS, &mut random)).collect();
    let mut predicted: Vec<Assignment> = found.into_iter().collect();
    predicted.sort_by(|a, b| predictor.predict(b.leaves()).total_cmp(&predictor.predict(a.leaves())));
    predicted.truncate(finalists);
    let mut exact = case.testbed(0);
    let measured = predicted.iter().map(|assignment| {
        let measured = exact.measure(&Setting::Pinned(assignment.clone()), Effort::default());
        (measured.map_or(0.0, |measured| measured.performance), assignment)
    });
    let best = measured.max_by(|a, b| a.0.total_cmp(&b.0)).map_or(0.0, |(_, best)| testbed.truth(best.leaves()));
    Run { measurements: experiments + finalists as u64, best, early: best, upper: None, claimed: None, ended: false }
}
