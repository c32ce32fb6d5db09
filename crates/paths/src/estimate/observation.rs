//! Partial paths that fragments show, and how much each fragment counts.
//!
//! A record is sampled after a number of instructions. The code after the last branch of a fragment
//! may run long. Then a sample is more likely to fall there. After that, the next branch replaces
//! the oldest. Each window of the stream of branches should have the same chance. So a fragment
//! counts with the inverse of that length. The record does not contain it. But the same branch
//! comes earlier in other fragments. They show the mean length of code after it.
//!
//! With that, a path is seen as follows. Its first branch is in as many windows as the record is
//! deep. Each further branch adds one window. A branch that returns from a call adds one for each
//! branch in between, up to the record's depth. The sum is the *exposure* of the path. Its first
//! branch is the one that leads to it, and its last the one that leaves it. A path may lack both:
//! control may fall into a loop head.

use std::collections::HashMap;

use crate::fragments::{Branch, Fragments};
use crate::path::{START, destination};
use crate::program_graph::{BlockPlace, ProgramGraph};
use crate::walk::{Met, Walk};

/// The event whose number of occurrences ends a sampling period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampledBy {
    /// Instructions. Cycles are close to that.
    Instructions,
    /// Taken branches: each window has the same chance.
    TakenBranches,
}

/// The mean length of an instruction of x86-64, in bytes.
const BYTES: u64 = 4;

/// What one fragment shows.
#[derive(Debug, Clone)]
pub(crate) struct SeenFragment {
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
    pub(crate) fragments: Vec<SeenFragment>,
    /// By number: the function and the marks of a partial path.
    pub(crate) partials: Vec<(u32, Box<[u32]>)>,
    /// How many branches a fragment has, on average.
    pub(crate) depth: f64,
    /// By block with calls: how many windows a call adds, at most the depth.
    gaps: HashMap<(u32, u32), f64>,
    /// By head: the weight of its paths that begin without a taken branch.
    falls: HashMap<(u32, u32), f64>,
    /// By head: the share of such paths.
    fallen: HashMap<(u32, u32), f64>,
    /// Branches that cannot follow the one before.
    pub(crate) breaks: u64,
}

impl<'graph> Observations<'graph> {
    pub(crate) fn new(
        program: &'graph ProgramGraph,
        fragments: &Fragments,
        sampled_by: SampledBy,
    ) -> Self {
        let runs = RunLengths::new(program, fragments);
        let mut numbers: HashMap<(u32, Box<[u32]>), u32> = HashMap::new();
        let mut calls: HashMap<(u32, u32), (f64, f64)> = HashMap::new();
        let mut falls: HashMap<(u32, u32), f64> = HashMap::new();
        let mut heads: HashMap<(u32, u32), f64> = HashMap::new();
        let (mut branches, mut samples, mut breaks) = (0.0, 0.0, 0);
        let mut seen = Vec::with_capacity(fragments.distinct());
        for (fragment, times) in fragments.iter() {
            let weight = match sampled_by {
                SampledBy::Instructions => runs.overall() / runs.after(fragment),
                SampledBy::TakenBranches => 1.0,
            };
            let counted = weight * times as f64;
            let mut partials = Vec::new();
            let mut met = |met: Met| match met {
                Met::Path(function, marks) => {
                    if let [START, head, ..] = *marks {
                        *heads.entry((function, head)).or_default() += counted;
                    }
                    let next = numbers.len() as u32;
                    partials.push(*numbers.entry((function, marks.into())).or_insert(next));
                }
                Met::Call(BlockPlace { function, block }) => {
                    calls.entry((function, block)).or_default().0 += counted;
                }
                Met::Return(BlockPlace { function, block }) => {
                    calls.entry((function, block)).or_default().1 += counted;
                }
                Met::Fall(BlockPlace { function, block }) => {
                    *falls.entry((function, block)).or_default() += counted;
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
            seen.push(SeenFragment { times, weight, partials });
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
        let mut observations = Self {
            program,
            fragments: seen,
            partials,
            depth,
            gaps,
            falls,
            fallen: HashMap::new(),
            breaks,
        };
        for (&(function, head), &weight) in &heads {
            let fell = observations.falls.get(&(function, head)).copied().unwrap_or(0.0);
            let begun = observations.begun(function, head, weight);
            let taken = (weight - fell) / depth;
            observations.fallen.insert((function, head), 1.0 - taken / begun);
        }
        observations
    }

    /// How often paths began at a head, for each window of the stream, if so much weight saw it.
    pub(crate) fn begun(&self, function: u32, head: u32, weight: f64) -> f64 {
        let fell = self.falls.get(&(function, head)).copied().unwrap_or(0.0).min(weight);
        // A fall-through shows only together with the branches before and after it.
        (weight - fell) / self.depth + fell / (self.depth - 1.0).max(1.0)
    }

    /// How many windows of the stream show some of a whole path.
    pub(crate) fn exposure(&self, function: u32, marks: &[u32]) -> f64 {
        let graph = self.program.graph(function);
        let mut windows = self.depth;
        for pair in marks.windows(2) {
            if pair[0] == START {
                windows -= self.fallen.get(&(function, pair[1])).copied().unwrap_or(0.0);
                continue;
            }
            let block = &graph.blocks[pair[0] as usize];
            for _ in &block.calls {
                let gap = self.gaps.get(&(function, pair[0]));
                windows += 1.0 + gap.copied().unwrap_or(self.depth);
            }
            let next = destination(pair[1]).map(|next| &graph.blocks[next as usize]);
            windows += if next.is_some_and(|next| block.falls_to(next)) { 0.0 } else { 1.0 };
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

/// How many instructions run to the next taken branch, on average, after given branches.
///
/// How long code runs may depend on more than the last branch. So averages are taken after the last
/// few, and each is drawn towards that after fewer.
struct RunLengths {
    after: HashMap<Box<[Branch]>, (f64, f64)>,
    all: (f64, f64),
}

impl RunLengths {
    /// The most branches that an average is taken after.
    const CONTEXT: usize = 4;
    /// As many observations the average after fewer branches counts for.
    const PRIOR: f64 = 2.0;

    fn new(program: &ProgramGraph, fragments: &Fragments) -> Self {
        let mut runs = Self { after: HashMap::new(), all: (0.0, 0.0) };
        for (fragment, times) in fragments.iter() {
            let times = times as f64;
            for next in 1..fragment.len() {
                let (to, from) = (fragment[next - 1].to, fragment[next].from);
                let length = match program.site(from) {
                    Some(site) => program.graph(site.place.function).instructions(to, from),
                    // Code that is not known, such as a library.
                    None if to <= from => (from - to) / BYTES + 1,
                    None => continue,
                } as f64;
                runs.all.0 += length * times;
                runs.all.1 += times;
                for context in Self::contexts(&fragment[..next]) {
                    let sum = runs.after.entry(context).or_default();
                    sum.0 += length * times;
                    sum.1 += times;
                }
            }
        }
        runs
    }

    /// The last branches, the fewest first. Of the oldest one only the destination counts.
    fn contexts(branches: &[Branch]) -> impl Iterator<Item = Box<[Branch]>> + '_ {
        (1..=branches.len().min(Self::CONTEXT)).map(|count| {
            let mut last: Box<[Branch]> = branches[branches.len() - count..].into();
            last[0].from = 0;
            last
        })
    }

    fn overall(&self) -> f64 {
        if self.all.1 > 0.0 { self.all.0 / self.all.1 } else { 1.0 }
    }

    fn after(&self, branches: &[Branch]) -> f64 {
        Self::contexts(branches).fold(self.overall(), |fewer, context| {
            let (sum, count) = self.after.get(&context).copied().unwrap_or_default();
            (sum + Self::PRIOR * fewer) / (count + Self::PRIOR)
        })
    }
}
