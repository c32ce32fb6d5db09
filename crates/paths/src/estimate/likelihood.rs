//! The default method: the counts of whole paths under which the fragments are most likely.
//!
//! Candidates are the whole paths that may have run often enough to matter. The [`MarkContexts`]
//! give each its prior: how often its first block began a path, times the chances of what follows.
//!
//! A partial path was shown by some candidate that it fits. The counts of candidates are taken as
//! Poisson means. Then expectation and maximisation finds the most likely ones (Dempster, Laird and
//! Rubin 1977). The equations are those of emission tomography (Shepp and Vardi 1982, equation
//! 2.12). Each step shares every partial path out among the candidates that it fits, in proportion
//! to their counts. The new count of a candidate is its sum of shares divided by its exposure. Many
//! counts may be equally likely. Steps that begin at the prior end at one that is close to it.
//!
//! Whole paths conserve flow by themselves: what enters a block leaves it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::estimate::context::MarkContexts;
use crate::estimate::observation::Observations;
use crate::path::{START, is_end};

/// Paths below this share of all beginnings of paths are no candidates.
const RARE: f64 = 1e-5;
/// The most candidates of a function.
const CANDIDATES: usize = 20_000;
/// A longer path, in marks, is no candidate unless a fragment shows all of it.
const LONGEST: usize = 1000;

/// The candidates of one function.
#[derive(Debug)]
pub(crate) struct Candidates {
    pub(crate) function: u32,
    pub(crate) marks: Vec<Box<[u32]>>,
    /// Beginnings of paths for each window of the stream.
    pub(crate) prior: Vec<f64>,
    pub(crate) exposure: Vec<f64>,
    /// The partial paths of the function, by number, and which candidates each fits.
    pub(crate) fits: Vec<(u32, Vec<u32>)>,
}

/// The candidates of all functions that were seen.
pub(crate) fn candidates(observations: &Observations, weights: &[f64]) -> Vec<Candidates> {
    let contexts = MarkContexts::new(observations, weights);
    let mut heads: BTreeMap<u32, BTreeMap<u32, f64>> = BTreeMap::new();
    let mut of_function: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (number, ((function, marks), weight)) in
        observations.partials.iter().zip(weights).enumerate()
    {
        of_function.entry(*function).or_default().push(number as u32);
        if let [START, head, ..] = **marks {
            *heads.entry(*function).or_default().entry(head).or_default() += weight;
        }
    }
    let beginnings: f64 = heads.values().flat_map(BTreeMap::values).sum();
    let functions = of_function.into_iter();
    functions
        .map(|(function, partials)| {
            let heads = heads.get(&function).into_iter().flatten();
            let heads =
                heads.map(|(head, weight)| (*head, observations.begun(function, *head, *weight)));
            let rare = RARE * beginnings / observations.depth;
            let mut paths = likely_paths(observations, &contexts, function, heads, rare);
            let known: BTreeSet<Box<[u32]>> = paths.iter().map(|(path, _)| path.clone()).collect();
            for &partial in &partials {
                let marks = &observations.partials[partial as usize].1;
                if marks[0] == START && is_end(marks[marks.len() - 1]) && !known.contains(marks) {
                    let windows = observations.exposure(function, marks);
                    paths.push((marks.clone(), weights[partial as usize] / windows));
                }
            }
            let (marks, prior): (Vec<_>, Vec<_>) = paths.into_iter().unzip();
            let exposure =
                marks.iter().map(|marks| observations.exposure(function, marks)).collect();
            let fits = fits(observations, &partials, &marks);
            Candidates { function, marks, prior, exposure, fits }
        })
        .collect()
}

/// The whole paths from given heads, with how often each is begun.
fn likely_paths(
    observations: &Observations,
    contexts: &MarkContexts,
    function: u32,
    heads: impl Iterator<Item = (u32, f64)>,
    rare: f64,
) -> Vec<(Box<[u32]>, f64)> {
    let mut paths = Vec::new();
    let mut work: Vec<(Vec<u32>, f64)> =
        heads.map(|(head, begun)| (vec![START, head], begun)).collect();
    while let Some((beginning, begun)) = work.pop() {
        for (mark, chance) in contexts.chances(observations, function, &beginning) {
            let begun = begun * chance;
            let long = beginning.len() == LONGEST;
            if begun < rare || long || paths.len() == CANDIDATES {
                continue;
            }
            let mut marks = beginning.clone();
            marks.push(mark);
            match is_end(mark) {
                true => paths.push((marks.into(), begun)),
                false => work.push((marks, begun)),
            }
        }
    }
    paths
}

/// A tree of the partial paths of a function, by their marks.
#[derive(Default)]
struct TrieNode {
    next: HashMap<u32, usize>,
    partial: Option<usize>,
}

fn fits(
    observations: &Observations,
    partials: &[u32],
    candidates: &[Box<[u32]>],
) -> Vec<(u32, Vec<u32>)> {
    let mut nodes = vec![TrieNode::default()];
    for (index, &partial) in partials.iter().enumerate() {
        let mut node = 0;
        for mark in &observations.partials[partial as usize].1 {
            let new = nodes.len();
            node = *nodes[node].next.entry(*mark).or_insert(new);
            if node == new {
                nodes.push(TrieNode::default());
            }
        }
        nodes[node].partial = Some(index);
    }
    let mut fits: Vec<(u32, Vec<u32>)> =
        partials.iter().map(|&partial| (partial, Vec::new())).collect();
    for (number, marks) in candidates.iter().enumerate() {
        for from in 0..marks.len() {
            let mut node = 0;
            for mark in &marks[from..] {
                let Some(&next) = nodes[node].next.get(mark) else { break };
                node = next;
                if let Some(partial) = nodes[node].partial {
                    fits[partial].1.push(number as u32);
                }
            }
        }
    }
    fits.retain(|(_, candidates)| !candidates.is_empty());
    fits
}

impl Candidates {
    /// The counts after this number of steps from `counts`.
    pub(crate) fn steps(&self, weights: &[f64], counts: &[f64], steps: usize) -> Vec<f64> {
        let mut counts = counts.to_vec();
        for _ in 0..steps {
            let mut shares = vec![0.0; counts.len()];
            for (partial, candidates) in &self.fits {
                let weight = weights[*partial as usize];
                let sum: f64 = candidates.iter().map(|&it| counts[it as usize]).sum();
                if weight > 0.0 && sum > 0.0 {
                    for &candidate in candidates {
                        shares[candidate as usize] += weight * counts[candidate as usize] / sum;
                    }
                }
            }
            for ((count, share), exposure) in counts.iter_mut().zip(shares).zip(&self.exposure) {
                *count = share / exposure;
            }
        }
        counts
    }
}
