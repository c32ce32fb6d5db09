//! BlackBox as published, on the same workloads: profile, predict, measure the best predicted.

use crate::campaign::Run;
use crate::workloads::Case;
use pinwise_lab::compiled::Compiled;
use pinwise_measure::{Effort, Testbed};
use pinwise_prediction::{CoreLocal, Predictor, Profiling, ThreadKinds, draw};
use pinwise_topology::{Assignment, PerContext, Random, Space};
use std::collections::BTreeSet;

/// How many of the assignments predicted best are measured.
pub(crate) const FINALISTS: [usize; 2] = [1, 5];
/// Threads that a core has room for, at most.
const CORE: usize = 8;
/// The most slowdown entries that are all measured, enough for three kinds of threads on the
/// UltraSPARC T2. Of more, only the tenth that `place` would measure is measured.
const MOST: usize = 2_200;
const SHARE: f64 = 0.1;
const PRECISION: f64 = 0.01;
/// Cold draws in which the best predicted assignments are looked for, and steps of each.
const DRAWS: usize = 24;
const STEPS: usize = 20_000;

/// The assignment measured best among the best predicted ones, for each number of [`FINALISTS`]; or
/// why there is no profile. Profiles and measurements are free of noise here: the paper reports
/// none. There is no bound.
pub(crate) fn blackbox(case: &Case) -> Result<Vec<Run>, String> {
    let mut testbed = case.quiet();
    let thread_kinds = ThreadKinds::new(testbed.workload());
    // As few threads on a context as possible. A domain has room for as many as a core of the
    // UltraSPARC T2.
    let per_context = thread_kinds.threads().div_ceil(case.tree.leaves().len());
    let level = CoreLocal::usual_level(&case.tree, CORE / per_context);
    let local =
        CoreLocal::new(&case.tree, level, per_context).map_err(|error| error.to_string())?;
    let profiling = |share| {
        Profiling::new(&case.tree, thread_kinds.clone(), local.clone(), share, PRECISION)
            .map_err(|error| error.to_string())
    };
    let mut profiling = match profiling(1.0)? {
        whole if whole.slowdown_entries().0 <= MOST => whole,
        _ => profiling(SHARE)?,
    };
    let space =
        Space::new(case.tree.clone(), thread_kinds.threads(), PerContext::AtMost(per_context));
    let (space, mut random) = (space.map_err(|error| error.to_string())?, Random::new(1));
    loop {
        let entries = profiling.next(&space, &mut random);
        if entries.is_empty() {
            break;
        }
        for entry in entries {
            let setting =
                profiling.experiment(&entry).map(|experiment| experiment.setting(&thread_kinds));
            let measured =
                setting.and_then(|setting| testbed.measure(&setting, Effort::default()).ok());
            profiling.learn(&entry, measured.map(|measured| measured.performance));
        }
    }
    let blackbox = profiling.blackbox();
    let compiled = Compiled::new(&blackbox, &case.tree);
    let predictor = compiled.as_ref().map_or(&blackbox as &dyn Predictor, |compiled| compiled);
    let found: BTreeSet<Assignment> =
        (0..DRAWS).map(|_| draw(predictor, &space, 1e-5, STEPS, &mut random)).collect();
    let mut predicted: Vec<Assignment> = found.into_iter().collect();
    predicted
        .sort_by(|a, b| predictor.predict(b.leaves()).total_cmp(&predictor.predict(a.leaves())));
    let experiments = profiling.base_measured() + profiling.slowdown_measured();
    let run = |finalists: usize| {
        let truths =
            predicted.iter().take(finalists).map(|assignment| testbed.truth(assignment.leaves()));
        let best = truths.fold(0.0, f64::max);
        let measurements = (experiments + finalists) as u64;
        Run {
            measurements,
            best,
            early: best,
            most: best,
            upper: None,
            claimed: None,
            ended: false,
            made: measurements,
            took: measurements as f64,
        }
    };
    Ok(FINALISTS.map(run).to_vec())
}
