//! Branches that go together. Of two branches of a path, the first one decides the second one.

use std::collections::BTreeMap;

use pinwise_paths::{HOT, Path, PathEnd, PathProfile, ProgramGraph};

use crate::trace::Traced;

/// How many are shown of each program.
const SHOWN: usize = 5;

/// By the addresses of both branches: how often which destinations go together. 0 is the exit.
type Joint = BTreeMap<(u64, u64), BTreeMap<(u64, u64), f64>>;

/// The pairs of a profile in which most is known of the second choice by the first one.
pub(crate) fn strongest(
    traced: &Traced,
    program: &ProgramGraph,
    profile: &PathProfile,
) -> Vec<String> {
    let estimated = joint(program, profile.paths.iter().map(|it| (&it.path, it.share)));
    let exact = joint(&traced.graph, traced.paths.iter().map(|it| (it.0, *it.1)));
    let mut pairs: Vec<(f64, &(u64, u64))> =
        estimated.iter().map(|(pair, outcomes)| (information(outcomes), pair)).collect();
    pairs.sort_by(|one, other| other.0.total_cmp(&one.0).then_with(|| one.1.cmp(other.1)));
    let shown = pairs.into_iter().take(SHOWN).map(|(bits, pair)| {
        let function = traced.binary.function_at(pair.0);
        let name = function.and_then(|it| traced.binary.name(it)).unwrap_or("?");
        let shares = |joint: &Joint| {
            let outcomes = joint.get(pair).into_iter().flatten();
            let share = |(at, share): (&(u64, u64), &f64)| {
                format!("{:x},{:x}: {:.2}%", at.0, at.1, 100.0 * share)
            };
            outcomes.map(share).collect::<Vec<_>>().join(" ")
        };
        format!(
            "{}: {name} {:x} and {:x}, {bits:.4} bits a path: {} (exactly {})",
            traced.name,
            pair.0,
            pair.1,
            shares(&estimated),
            shares(&exact)
        )
    });
    shown.collect()
}

fn joint<'path>(program: &ProgramGraph, paths: impl Iterator<Item = (&'path Path, f64)>) -> Joint {
    let mut joint = Joint::new();
    for (path, share) in paths.filter(|it| it.1 >= HOT / 10.0) {
        let graph = program.graph(path.function);
        let block = |number: u32| &graph.blocks[number as usize];
        let end = match path.end() {
            Some(PathEnd::Back(head)) => block(head).start,
            _ => 0,
        };
        let blocks = path.blocks();
        let next = blocks[1..].iter().map(|&it| block(it).start).chain([end]);
        let choices: Vec<(u64, u64)> = blocks
            .iter()
            .zip(next)
            .filter(|(number, _)| block(**number).edges.len() > 1)
            .map(|(number, next)| (block(*number).last, next))
            .collect();
        for (at, first) in choices.iter().enumerate() {
            for second in &choices[at + 1..] {
                let outcomes = joint.entry((first.0, second.0)).or_default();
                *outcomes.entry((first.1, second.1)).or_default() += share;
            }
        }
    }
    joint
}

/// The mutual information of both choices, in bits, times how often both are made.
fn information(outcomes: &BTreeMap<(u64, u64), f64>) -> f64 {
    let (mut first, mut second) = (BTreeMap::new(), BTreeMap::new());
    for (at, share) in outcomes {
        *first.entry(at.0).or_insert(0.0) += share;
        *second.entry(at.1).or_insert(0.0) += share;
    }
    let all: f64 = outcomes.values().sum();
    let bits = |(at, share): (&(u64, u64), &f64)| {
        share * (share * all / (first[&at.0] * second[&at.1])).log2()
    };
    outcomes.iter().map(bits).sum()
}
