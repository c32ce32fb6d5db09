//! Paths from an edge profile alone: exact counts of edges, combined as if branches were
//! independent of each other.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use pinwise_paths::{HOT, Path, PathEnd, ProgramGraph, weight_matching};

/// Less frequent paths are not put together.
const RARE: f64 = 1e-6;
/// A path is far off if its estimate is wrong by more than this factor.
const FAR: f64 = 2.0;

/// How wrong that is: an accuracy by weight matching, and numbers of paths.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EdgeError {
    pub(crate) accuracy: f64,
    /// Hot paths in truth.
    pub(crate) hot: f64,
    /// Those that it does not rank among as many.
    pub(crate) wrong: f64,
    /// Those whose count it misses by more than a factor of two.
    pub(crate) far: f64,
    /// Paths that never ran and that it calls hot.
    pub(crate) false_hot: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    On(u32),
    End(PathEnd),
}

/// Takes the edges of an exact profile, and compares what they say with that profile.
pub(crate) fn error(exact: &BTreeMap<Path, f64>, program: &ProgramGraph) -> EdgeError {
    let estimate = from_edges(exact, program);
    let hot: Vec<(&Path, f64)> =
        exact.iter().map(|(path, share)| (path, *share)).filter(|it| it.1 >= HOT).collect();
    let mut ranked: Vec<(&Path, f64)> = estimate.iter().map(|it| (it.0, *it.1)).collect();
    ranked.sort_by(|one, other| other.1.total_cmp(&one.1).then_with(|| one.0.cmp(other.0)));
    let chosen: BTreeSet<&Path> = ranked.iter().take(hot.len()).map(|it| it.0).collect();
    let wrong = hot.iter().filter(|(path, _)| !chosen.contains(path)).count() as f64;
    let is_far = |path: &Path, share: f64| {
        let ratio = estimate.get(path).copied().unwrap_or_default() / share;
        !(1.0 / FAR..=FAR).contains(&ratio)
    };
    let never_ran = |it: &&(&Path, f64)| it.1 >= HOT && !exact.contains_key(it.0);
    EdgeError {
        accuracy: weight_matching(exact, &estimate, HOT).unwrap_or_default(),
        hot: hot.len() as f64,
        wrong,
        far: hot.iter().filter(|(path, share)| is_far(path, *share)).count() as f64,
        false_hot: ranked.iter().filter(never_ran).count() as f64,
    }
}

fn from_edges(exact: &BTreeMap<Path, f64>, program: &ProgramGraph) -> BTreeMap<Path, f64> {
    let mut begun: BTreeMap<(u32, u32), f64> = BTreeMap::new();
    let mut next: HashMap<(u32, u32), BTreeMap<Step, f64>> = HashMap::new();
    for (path, share) in exact {
        let blocks = path.blocks();
        *begun.entry((path.function, blocks[0])).or_default() += share;
        let steps = blocks[1..].iter().map(|&block| Step::On(block));
        for (block, step) in blocks.iter().zip(steps.chain(path.end().map(Step::End))) {
            *next.entry((path.function, *block)).or_default().entry(step).or_default() += share;
        }
    }
    let mut estimate = BTreeMap::new();
    for (&(function, head), &share) in &begun {
        let longest = program.graph(function).blocks.len();
        let mut work = vec![(vec![head], share)];
        while let Some((blocks, share)) = work.pop() {
            let steps = &next[&(function, blocks[blocks.len() - 1])];
            let all: f64 = steps.values().sum();
            for (step, times) in steps {
                let share = share * times / all;
                match step {
                    _ if share < RARE || blocks.len() > longest => {}
                    Step::End(end) => {
                        estimate.insert(Path::whole(function, &blocks, *end), share);
                    }
                    Step::On(block) => {
                        let mut longer = blocks.clone();
                        longer.push(*block);
                        work.push((longer, share));
                    }
                }
            }
        }
    }
    estimate
}
