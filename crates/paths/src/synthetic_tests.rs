//! Estimates on made-up functions, whose exact counts are known.

use std::collections::BTreeMap;

use pinwise_topology::Random;
use proptest::prelude::*;

use crate::accuracy::{HOT, weight_matching};
use crate::estimate::likelihood::candidates;
use crate::estimate::observation::{Observations, SampledBy};
use crate::fragments::{Branch, Fragments};
use crate::graph::FunctionGraph;
use crate::path::Path;
use crate::profile::{PathMethod, PathProfile};
use crate::program_graph::ProgramGraph;
use crate::truth::{BranchRecord, PathCounter};

/// Outside of all functions.
const CALLER: u64 = 1 << 40;

/// The trace of `calls` calls of a function, and the samples of a record of this depth. The
/// branches depend on earlier blocks.
fn run(
    program: &ProgramGraph,
    calls: usize,
    depth: usize,
    period: u64,
    seed: u64,
    choose: impl Fn(&[u32], usize, &mut Random) -> usize,
) -> (BTreeMap<Path, f64>, Fragments) {
    let graph = program.graph(0);
    let mut random = Random::new(seed);
    let mut counter = PathCounter::new(program);
    let mut record = BranchRecord::new(depth, period, 0, seed);
    let mut take = |from, to| {
        counter.take(Branch { from, to });
        record.take(4, Branch { from, to });
    };
    for _ in 0..calls {
        take(CALLER, graph.blocks[0].start);
        let mut blocks = vec![0];
        loop {
            let block = &graph.blocks[blocks[blocks.len() - 1] as usize];
            if block.edges.is_empty() {
                take(block.last, CALLER + 4);
                break;
            }
            let edge = block.edges[choose(&blocks, block.edges.len(), &mut random)];
            take(block.last, graph.blocks[edge.to as usize].start);
            blocks.push(edge.to);
        }
    }
    let (paths, _, breaks) = counter.finish();
    assert_eq!(breaks, 0);
    (paths.into_iter().map(|(path, count)| (path, count as f64)).collect(), record.finish())
}

/// Two choices, a loop around both, and the way out.
fn two_diamonds() -> ProgramGraph {
    let edges: [&[u32]; 8] = [&[1, 2], &[3], &[3], &[4, 5], &[6], &[6], &[0, 7], &[]];
    let edges: Vec<_> = edges.map(|to| (to.to_vec(), false)).to_vec();
    ProgramGraph::of_graphs(vec![FunctionGraph::of_edges(&edges)])
}

/// The second choice repeats the first one, seven times out of eight.
fn correlated(blocks: &[u32], choices: usize, random: &mut Random) -> usize {
    if blocks.len() >= 3 && blocks[blocks.len() - 1] == 3 && random.below(8) > 0 {
        return blocks[blocks.len() - 2] as usize - 1;
    }
    random.below(choices as u64) as usize
}

fn worst(exact: &BTreeMap<Path, f64>, profile: &PathProfile) -> f64 {
    let total: f64 = exact.values().sum();
    let shares = profile.shares();
    let error = |(path, count): (&Path, &f64)| {
        (count / total - shares.get(path).copied().unwrap_or(0.0)).abs()
    };
    exact.iter().map(error).fold(0.0, f64::max)
}

#[test]
fn a_deep_record_sampled_densely_gives_the_exact_profile() {
    let program = two_diamonds();
    let (exact, fragments) = run(&program, 4000, 32, 1, 3, correlated);
    let by = SampledBy::Instructions;
    let profile = PathProfile::new(&program, &fragments, by, PathMethod::Likelihood);
    // Only the first and the last windows of the stream of some 30,000 branches are special.
    assert!(worst(&exact, &profile) < 0.002, "{}", worst(&exact, &profile));
    assert_eq!(weight_matching(&exact, &profile.shares(), HOT), Some(1.0));
}

#[test]
fn correlation_within_the_record_is_found() {
    let program = two_diamonds();
    let (exact, fragments) = run(&program, 20_000, 6, 100, 5, correlated);
    let by = SampledBy::Instructions;
    let profile = PathProfile::new(&program, &fragments, by, PathMethod::Likelihood);
    assert!(worst(&exact, &profile) < 0.02, "{}", worst(&exact, &profile));
}

#[test]
fn choices_that_no_fragment_spans_are_a_group() {
    let program = two_diamonds();
    // One branch: 1 -> 3 or 3 -> 4, never both choices.
    let (_, fragments) = run(&program, 20_000, 1, 50, 5, correlated);
    let deep = run(&program, 20_000, 16, 50, 5, correlated).1;
    let groups = |fragments: &Fragments| {
        let mut random = Random::new(1);
        let by = SampledBy::TakenBranches;
        let profile = PathProfile::with_intervals(&program, fragments, by, 0.9, &mut random);
        profile.paths.iter().filter(|path| path.share > 0.01 && path.group.is_some()).count()
    };
    assert_eq!(groups(&deep), 0);
    assert!(groups(&fragments) >= 4);
}

proptest! {
    /// Each step keeps the flow: counts times exposures are all weights that fit a candidate.
    #[test]
    fn counts_sum_to_the_flow(seed in 0u64..1000, depth in 1usize..9, steps in 1usize..4) {
        let program = two_diamonds();
        let (_, fragments) = run(&program, 300, depth, 37, seed, correlated);
        let observations = Observations::new(&program, &fragments, SampledBy::Instructions);
        let weights = observations.sampled_weights();
        for of in candidates(&observations, &weights) {
            let counts = of.steps(&weights, &of.prior, steps);
            let flow: f64 = counts.iter().zip(&of.exposure).map(|(count, it)| count * it).sum();
            let fitting: f64 = of.fits.iter().map(|it| weights[it.0 as usize]).sum();
            prop_assert!((flow - fitting).abs() < 1e-6 * fitting.max(1.0), "{flow} {fitting}");
        }
    }

    /// Whatever the branches are, a walk ends and a profile is one.
    #[test]
    fn any_fragments_give_a_profile(
        branches in prop::collection::vec(
            prop::collection::vec((0u64..140, 0u64..140), 1..12), 0..20),
    ) {
        let mut fragments = Fragments::default();
        for branches in branches {
            let branches: Vec<Branch> =
                branches.into_iter().map(|(from, to)| Branch { from, to }).collect();
            fragments.add(&branches, 1);
        }
        let program = two_diamonds();
        for method in [PathMethod::Expand, PathMethod::Likelihood] {
            let profile = PathProfile::new(&program, &fragments, SampledBy::Instructions, method);
            let sum: f64 = profile.paths.iter().map(|path| path.share).sum();
            prop_assert!(profile.paths.is_empty() || (sum - 1.0).abs() < 1e-9);
        }
    }
}
