//! Partial paths that fragments show, and how much each fragment counts.
//!
//! A record is sampled after a number of instructions. So a fragment is the likelier to be sampled
//! the longer the code that runs after its last branch, before the next one replaces the oldest.
//! What is wanted is each window of the stream of branches with the same chance. So a fragment
//! counts with the inverse of that length. The record does not tell it. But other fragments tell how
//! long code runs on average from the same place: there it was not the last branch.
//!
//! With that, a path is seen as follows. Each branch of it is in as many windows as the record is
//! deep. So its first branch is in so many windows, and each further branch adds one window, or as
//! many as branches came between, if it returns from a call: but not more than the record is deep.
//! The sum is the *exposure* of the path.

use std::collections::{BTreeMap, HashMap};

use crate::fragments::{Branch, Fragments};
use crate::path::{START, is_end};
use crate::program_graph::{Place, ProgramGraph};
use crate::walk::{Met, Walk};

/// What one fragment shows.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    /// How often it was sampled.
    pub(crate) times: u64,
    /// How much one sample counts; 1 on average.
    pub(crate) weight: f64,
    /// The numbers of its partial paths.
    pub(crate) partials: Vec<u32>,
}

/// All that fragments show.
#[derive(Debug)]
pub(crate) struct Observations<'graph> {
    pub(crate) program: &'graph ProgramGraph,
    pub(crate) fragments: Vec<Seen>,
    /// By number: the function and the marks of a partial path.
    pub(crate) partials: Vec<(u32, Box<[u32]>)>,
    /// How many branches a fragment has, on average.
    pub(crate) depth: f64,
    /// By block with calls: how many windows a call adds, at most the depth.
    gaps: HashMap<(u32, u32), f64>,
    /// Branches that cannot follow the one before.
    pub(crate) breaks: u64,
}

impl<'graph> Observations<'graph> {
    pub(crate) fn new(program: &'graph ProgramGraph, fragments: &Fragments) -> Self {
        let runs = Runs::new(program, fragments);
        let mut numbers: HashMap<(u32, Box<[u32]>), u32> = HashMap::new();
        let mut calls: HashMap<(u32, u32), (f64, f64)> = HashMap::new();
        let (mut branches, mut samples, mut breaks) = (0.0, 0.0, 0);
        let mut seen = Vec::with_capacity(fragments.distinct());
        for (fragment, times) in fragments.iter() {
            let last = fragment.last().expect("fragments are not empty");
            let weight = runs.overall() / runs.after(last.to);
            let counted = weight * times as f64;
            let mut partials = Vec::new();
            let mut met = |met: Met| match met {
                Met::Path(function, marks) => {
                    let next = numbers.len() as u32;
                    partials.push(*numbers.entry((function, marks.into())).or_insert(next));
                }
                Met::Call(Place { function, block }) => {
                    calls.entry((function, block)).or_default().0 += counted;
                }
                Met::Return(Place { function, block }) => {
                    calls.entry((function, block)).or_default().1 += counted;
                }
                Met::Break => breaks += times,
            };
            let mut walk = Walk::new(program);
            for &branch in fragment {
                walk.take(branch, &mut met);
            }
            walk.finish(&mut met);
            branches += counted * fragment.len() as f64;
            samples += counted;
            seen.push(Seen { times, weight, partials });
        }
        let depth = if samples > 0.0 { branches / samples } else { 1.0 };
        let gaps = calls
            .into_iter()
            .map(|(place, (calls, returns))| {
                (place, depth * (1.0 - returns / calls).clamp(1.0 / depth, 1.0))
            })
            .collect();
        let mut partials = vec![Default::default(); numbers.len()];
        for (partial, number) in numbers {
            partials[number as usize] = partial;
        }
        Self { program, fragments: seen, partials, depth, gaps, breaks }
    }

    /// How many windows of the stream show some of a whole path.
    pub(crate) fn exposure(&self, function: u32, marks: &[u32]) -> f64 {
        let graph = self.program.graph(function);
        let mut windows = self.depth;
        for pair in marks.windows(2) {
            if pair[0] == START {
                continue;
            }
            let block = &graph.blocks[pair[0] as usize];
            for _ in &block.calls {
                let gap = self.gaps.get(&(function, pair[0]));
                windows += 1.0 + gap.copied().unwrap_or(self.depth);
            }
            let falls = !is_end(pair[1]) && graph.blocks[pair[1] as usize].start == block.end;
            windows += if falls { 0.0 } else { 1.0 };
        }
        windows
    }

    /// How much each partial path counts, if fragment `f` was sampled `times(f)` times.
    pub(crate) fn weights(&self, times: impl Fn(usize) -> f64) -> Vec<f64> {
        let mut weights = vec![0.0; self.partials.len()];
        for (number, fragment) in self.fragments.iter().enumerate() {
            let weight = fragment.weight * times(number);
            for &partial in &fragment.partials {
                weights[partial as usize] += weight;
            }
        }
        weights
    }

    /// The same for the samples that were taken.
    pub(crate) fn sampled_weights(&self) -> Vec<f64> {
        self.weights(|fragment| self.fragments[fragment].times as f64)
    }
}

/// How many instructions run from a place to the next taken branch, on average.
struct Runs {
    after: BTreeMap<u64, (f64, f64)>,
    all: (f64, f64),
}

impl Runs {
    fn new(program: &ProgramGraph, fragments: &Fragments) -> Self {
        let mut runs = Self { after: BTreeMap::new(), all: (0.0, 0.0) };
        for (fragment, times) in fragments.iter() {
            for pair in fragment.windows(2) {
                let [Branch { to, .. }, Branch { from, .. }] = pair else { continue };
                let Some(site) = program.site(*from) else { continue };
                let graph = program.graph(site.place.function);
                let length = graph.instructions(*to, *from) as f64;
                for sum in [&mut runs.all, runs.after.entry(*to).or_default()] {
                    sum.0 += length * times as f64;
                    sum.1 += times as f64;
                }
            }
        }
        runs
    }

    fn overall(&self) -> f64 {
        if self.all.1 > 0.0 { self.all.0 / self.all.1 } else { 1.0 }
    }

    /// Half an observation of the overall mean keeps rare places from extremes.
    fn after(&self, to: u64) -> f64 {
        const PRIOR: f64 = 0.5;
        let (sum, count) = self.after.get(&to).copied().unwrap_or_default();
        (sum + PRIOR * self.overall()) / (count + PRIOR)
    }
}
