//! The published method: T. Moseley and others, "Hardware monitoring for SMT scheduling and path
//! profiles", section 3.2. A partial path grows as long as only one block can precede or follow it.
//! It grows to a whole path, or stays out.

use std::collections::{BTreeMap, HashMap};

use crate::estimate::observation::Observations;
use crate::graph::FunctionGraph;
use crate::path::{Path, PathStep, START, is_end};

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
    let mut before: HashMap<u32, Vec<Vec<u32>>> = HashMap::new();
    for ((function, marks), times) in observations.partials.iter().zip(times) {
        let graph = observations.program.graph(*function);
        let before = before.entry(*function).or_insert_with(|| precedes(graph));
        let path = Path { function: *function, marks: grown(graph, before, marks).into() };
        if path.is_whole() {
            whole += times;
            *counts.entry(path).or_default() += times;
        } else {
            left_out += times;
        }
    }
    (counts, if left_out > 0.0 { left_out / (whole + left_out) } else { 0.0 })
}

/// By block: the marks that may precede it.
fn precedes(graph: &FunctionGraph) -> Vec<Vec<u32>> {
    let mut before = vec![Vec::new(); graph.blocks.len()];
    graph.heads().into_iter().for_each(|head| before[head as usize].push(START));
    for (number, block) in graph.blocks.iter().enumerate() {
        for edge in block.edges.iter().filter(|edge| !edge.back) {
            before[edge.to as usize].push(number as u32);
        }
    }
    before
}

fn grown(graph: &FunctionGraph, before: &[Vec<u32>], marks: &[u32]) -> Vec<u32> {
    let mut beginning = Vec::new();
    let mut first = marks[0];
    while first != START
        && let [only] = before[first as usize][..]
    {
        beginning.push(only);
        first = only;
    }
    let mut path: Vec<u32> = beginning.into_iter().rev().chain(marks.iter().copied()).collect();
    loop {
        let last = path[path.len() - 1];
        if is_end(last) {
            return path;
        }
        let mut choices = follows(graph, last);
        let (Some(only), None) = (choices.next(), choices.next()) else { return path };
        path.push(only);
    }
}

/// The marks that may follow a block.
pub(crate) fn follows(graph: &FunctionGraph, block: u32) -> impl Iterator<Item = u32> + '_ {
    graph.steps_from(block).map(PathStep::mark)
}
