//! Which assignment is predicted best, proven: prices rule out most, and the rest is gone through.
//!
//! BlackBox's prediction of an instance depends on the other threads only through what is in its
//! domains. So an assignment chooses the contents of each domain, and which threads belong to one
//! instance. Both are listed by [`fragment`]. A bound on their worth together comes from [`price`],
//! and a bound on the part not chosen yet from [`completion`]. Finally, [`branch`] goes through all
//! choices above a floor that are not ruled out. It lowers the floor step by step to the best known
//! prediction.

mod branch;
mod completion;
mod fragment;
mod price;

use crate::BlackBox;
use crate::optimum::incremental::Incremental;
use crate::optimum::{ProofProgress, TopN};
use branch::{ASK, BranchFindings, ProofBranch, ROUNDING};
use completion::Completion;
use fragment::{Holding, ProofFragments};

/// Shares between which prices are linear, at most.
const MOST_KNOTS: usize = 10;
/// The floor begins this share of the way from the bound down to the best. The way doubles each
/// time.
const FIRST_STEP: f64 = 1.0 / 64.0;

/// What is proven.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Proof {
    /// No assignment is predicted above this.
    pub(crate) upper: f64,
    /// `top` holds all that are predicted better than its last.
    pub(crate) complete: bool,
    pub(crate) nodes: u64,
}

/// Proves what can be proven, and enters the assignments found on the way into `top`. `ceiling` is
/// a known bound. `None` if even a better bound would take too long.
pub(crate) fn prove(
    blackbox: &BlackBox,
    ceiling: f64,
    top: &mut TopN,
    moving: &mut Incremental<'_>,
    go_on: &mut dyn FnMut(&ProofProgress) -> bool,
) -> Option<Proof> {
    let best = top.best();
    let fragments = ProofFragments::new(blackbox, || {
        go_on(&ProofProgress { steps: 0, looked: 0, best, upper: ceiling })
    })?;
    let (thread_kinds, local) = (blackbox.thread_kinds(), blackbox.local());
    // Domains of one build come one after the other: only these are exchanged for each other.
    let mut domains: Vec<usize> = (0..local.domains()).collect();
    domains.sort_by_key(|domain| local.build(*domain));
    let builds: Vec<usize> = domains.iter().map(|domain| local.build(*domain)).collect();
    let number = |build: usize| builds.iter().filter(|other| **other == build).count();
    let numbers: Vec<usize> = (0..local.builds().len()).map(number).collect();
    let mut instances = vec![0; thread_kinds.applications()];
    thread_kinds.instances().iter().for_each(|instance| instances[instance.application] += 1);
    let counts = thread_kinds.counts();
    let left: Vec<u8> =
        counts.iter().map(|count| u8::try_from(*count).ok()).collect::<Option<_>>()?;
    let knots = knots(&fragments, top, moving)?;
    let mut nodes = 0;
    let prices = price::best(&fragments, knots, &instances, &numbers, &mut |upper| {
        nodes += 1;
        go_on(&ProofProgress { steps: nodes, looked: 0, best, upper: upper.min(ceiling) })
    });
    let values = fragments.values(|fragment, share| prices.of(fragment, share));
    let completion = Completion::new(&fragments, &values, &builds, &counts);
    // Without the first domain it is all others; the same for one of each further build.
    let without = |build: usize| {
        let mut others = builds.clone();
        others.remove(builds.partition_point(|other| *other < build));
        Completion::new(&fragments, &values, &others, &counts)
    };
    let further: Vec<Completion> = (1..numbers.len()).map(without).collect();
    let others: Vec<&Completion> = std::iter::once(&completion).chain(&further).collect();
    let paid = prices.besides(&instances);
    let mut upper = (paid + completion.most(builds.len(), &left)).min(ceiling);
    let (mut unresolved, mut elsewhere) = (f64::NEG_INFINITY, f64::NEG_INFINITY);
    let mut looked = 0;
    let mut step = FIRST_STEP * (upper - top.best()).max(ROUNDING * upper.abs());
    loop {
        // Below 0 there is no prediction.
        let floor = if step < upper { upper - step } else { f64::NEG_INFINITY };
        let bar = floor.max(top.threshold());
        // With the holding in a domain, the highest possible total must be above the floor.
        let mut tried = left.clone();
        let mut reaches = |number: &usize| {
            let Holding { build, counts: taken, .. } = &fragments.holdings[*number];
            tried
                .iter_mut()
                .zip(&left)
                .zip(taken)
                .for_each(|((rest, left), taken)| *rest = left - taken);
            paid + values[*number] + others[*build].most(builds.len() - 1, &tried) > bar
        };
        let mut candidates: Vec<Vec<usize>> = vec![Vec::new(); numbers.len()];
        for number in (0..values.len()).filter(|number| reaches(number)) {
            candidates[fragments.holdings[number].build].push(number);
        }
        candidates
            .iter_mut()
            .for_each(|candidates| candidates.sort_by(|a, b| values[*b].total_cmp(&values[*a])));
        let branch = ProofBranch {
            blackbox,
            fragments: &fragments,
            prices: &prices,
            completion: &completion,
            values: &values,
            candidates: &candidates,
            domains: &domains,
            builds: &builds,
        };
        let mut ask = |nodes: u64, looked: u64, best: f64| {
            go_on(&ProofProgress { steps: nodes, looked, best, upper: upper.max(best) })
        };
        let (ended, ask_at) = (false, looked + ASK);
        let mut findings = BranchFindings {
            top,
            moving,
            floor,
            unresolved,
            elsewhere,
            nodes,
            looked,
            ask_at,
            ended,
            go_on: &mut ask,
        };
        branch.give(0, 0, &left, paid, &mut Vec::new(), &mut findings);
        (nodes, looked) = (findings.nodes, findings.looked);
        (unresolved, elsewhere) = (findings.unresolved, findings.elsewhere);
        if findings.ended {
            break;
        }
        // Nothing above the floor was left out but what is unresolved.
        upper = upper.min((floor * (1.0 + ROUNDING)).max(top.best()).max(unresolved));
        if floor <= top.threshold() {
            return Some(Proof { upper, complete: elsewhere <= top.threshold(), nodes });
        }
        if unresolved > floor {
            break;
        }
        step *= 2.0;
    }
    Some(Proof { upper, complete: false, nodes })
}

/// The shares between which prices are linear. They are those that threads keep where it is best,
/// since there prices have to be right.
fn knots(fragments: &ProofFragments, top: &TopN, moving: &mut Incremental<'_>) -> Option<Vec<f64>> {
    let most = fragments
        .holdings
        .iter()
        .flat_map(|holding| &holding.parts)
        .map(|part| part.share)
        .fold(0.0, f64::max);
    if let Some(best) = top.first() {
        moving.place(best);
    }
    let mut shares: Vec<f64> =
        moving.shares().iter().copied().filter(|share| *share > 0.0 && *share < most).collect();
    shares.sort_by(f64::total_cmp);
    shares.dedup_by(|a, b| *a - *b < 0.002 * most);
    let keep = shares.len().min(MOST_KNOTS - 2);
    let inner = (0..keep).map(|index| shares[index * shares.len() / keep]);
    (most > 0.0).then(|| std::iter::once(0.0).chain(inner).chain([most]).collect())
}
