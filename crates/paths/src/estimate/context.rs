//! The chance of each next block of a path, from the longest contexts that fragments show.
//!
//! The chance of a mark after a *context*, the marks before it, is estimated for contexts of
//! growing length. Each longer one is mixed with the shorter one: `(n(x) + d p(x)) / (n + d)`. Here
//! `n` counts the context, and `n(x)` counts how often `x` followed. `p` is the chance after the
//! shorter context, and `d` is the number of different marks that followed. The rule is method C of
//! Witten and Bell ("The Zero-Frequency Problem", IEEE Transactions on Information Theory 37(4),
//! 1991). So a mark that never followed a block gets no chance. A mark that did follow gets little
//! chance if a longer context contradicts it. The shortest context, one block, is the flow along
//! edges.

use std::collections::HashMap;

use crate::estimate::expand::follows;
use crate::estimate::observation::Observations;
use crate::path::{Path, START};

/// Lengths of contexts, besides the whole beginning of a path.
const LENGTHS: [usize; 11] = [1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32];

/// The marks that followed each context, with their counts.
#[derive(Debug, Default)]
pub(crate) struct MarkContexts {
    next: HashMap<Path, Vec<(u32, f64)>>,
}

impl MarkContexts {
    pub(crate) fn new(observations: &Observations, weights: &[f64]) -> Self {
        let mut contexts = Self::default();
        for ((function, marks), weight) in observations.partials.iter().zip(weights) {
            if *weight <= 0.0 {
                continue;
            }
            for (at, &next) in marks.iter().enumerate().skip(1) {
                for context in contexts_of(&marks[..at]) {
                    let key = Path { function: *function, marks: context.into() };
                    let follows = contexts.next.entry(key).or_default();
                    match follows.iter_mut().find(|(mark, _)| *mark == next) {
                        Some((_, count)) => *count += weight,
                        None => follows.push((next, *weight)),
                    }
                }
            }
        }
        contexts
    }

    /// The chances of what follows the beginning of a path: its marks from [`START`] on.
    pub(crate) fn chances(
        &self,
        observations: &Observations,
        function: u32,
        beginning: &[u32],
    ) -> Vec<(u32, f64)> {
        let last = beginning[beginning.len() - 1];
        let choices = follows(observations.program.graph(function), last);
        let mut chances: Vec<(u32, f64)> = choices.map(|mark| (mark, 0.0)).collect();
        let mut known = false;
        for context in contexts_of(beginning) {
            let key = Path { function, marks: context.into() };
            let Some(seen) = self.next.get(&key) else {
                if known {
                    break;
                } else {
                    continue;
                };
            };
            let total: f64 = seen.iter().map(|(_, count)| count).sum();
            let different = if known { seen.len() as f64 } else { 0.0 };
            for (mark, chance) in &mut chances {
                let count = seen.iter().find(|it| it.0 == *mark).map_or(0.0, |it| it.1);
                *chance = (count + different * *chance) / (total + different);
            }
            known = true;
        }
        if !known {
            let even = 1.0 / chances.len() as f64;
            chances.iter_mut().for_each(|(_, chance)| *chance = even);
        }
        chances
    }
}

/// The ends of `marks` that are contexts, the shorter ones first.
fn contexts_of(marks: &[u32]) -> impl Iterator<Item = &[u32]> {
    let whole = marks[0] == START;
    let lengths = LENGTHS.iter().copied().filter(move |&length| length < marks.len());
    let all = (whole || LENGTHS.contains(&marks.len())).then_some(marks.len());
    lengths.chain(all).map(|length| &marks[marks.len() - length..])
}
