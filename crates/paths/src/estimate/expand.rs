//! The published method: a partial path grows where only one block can precede or follow it (the
//! paper on hardware monitoring, section 3.2). It grows to a whole path, or stays out.

use std::collections::BTreeMap;

use crate::estimate::observation::Observations;
use crate::graph::FunctionGraph;
use crate::path::{Path, PathEnd, START, is_end};

/// How often each whole path was seen, and the share of partial paths that grew to no whole one.
pub(crate) fn expand(observations: &Observations) -> (BTreeMap<Path, f64>, f64) {
    let mut counts: BTreeMap<Path, f64> = BTreeMap::new();
    let (mut whole, mut left_out) = (0.0, 0.0);
    let mut times = vec![0.0; observations.partials.len()];
    for fragment in &observations.fragments {
        for &partial in &fragment.partials {
            times[partial as usize] += fragment.times as f64;
        }
    }
    for ((function, marks), times) in observations.partials.iter().zip(times) {
        let path = grown(observations.program.graph(*function), *function, marks);
        if path.is_whole() {
            whole += times;
            *counts.entry(path).or_default() += times;
        } else {
            left_out += times;
        }
    }
    (counts, if left_out > 0.0 { left_out / (whole + left_out) } else { 0.0 })
}

fn grown(graph: &FunctionGraph, function: u32, marks: &[u32]) -> Path {
    let mut before = Vec::new();
    let mut first = marks[0];
    while first != START {
        let heads = graph.heads().contains(&first).then_some(START);
        let blocks = (0..graph.blocks.len() as u32).filter(|&block| {
            let edges = &graph.blocks[block as usize].edges;
            edges.iter().any(|edge| edge.to == first && !edge.back)
        });
        let mut choices = heads.into_iter().chain(blocks);
        let (Some(only), None) = (choices.next(), choices.next()) else { break };
        before.push(only);
        first = only;
    }
    let mut path: Vec<u32> = before.into_iter().rev().chain(marks.iter().copied()).collect();
    loop {
        let last = path[path.len() - 1];
        if is_end(last) {
            break;
        }
        let mut choices = follows(graph, last);
        let (Some(only), None) = (choices.next(), choices.next()) else { break };
        path.push(only);
    }
    Path { function, marks: path.into() }
}

/// The marks that may follow a block.
pub(crate) fn follows(graph: &FunctionGraph, block: u32) -> impl Iterator<Item = u32> + '_ {
    let block = &graph.blocks[block as usize];
    let exit = (block.exits || block.edges.is_empty()).then(|| PathEnd::Exit.mark());
    exit.into_iter().chain(block.edges.iter().map(|edge| match edge.back {
        true => PathEnd::Back(edge.to).mark(),
        false => edge.to,
    }))
}
