//! What else searches: methods for any problem of this kind, which know nothing of threads. They
//! measure on the same testbed with the same noise. No measurement of theirs goes into a baseline
//! or into fresh windows, which `place` also takes from its budget.

use pinwise_lab::Bed;
use pinwise_measure::{Effort, Setting, Testbed};
use pinwise_topology::{Assignment, Random, Space};

/// Measures until the budget is used up, which is `None` from then on.
pub(crate) type Search = fn(&mut Trials<'_>, &mut Random) -> Option<()>;

pub(crate) const ALL: [(&str, Search); 5] = [
    ("random", random_search),
    ("climb", climb),
    ("annealing", annealing),
    ("annealing, short", annealing_short),
    ("genetic", genetic),
];

/// Neighbours in a row that are no better, after which a climb starts elsewhere.
const PATIENCE: usize = 60;
/// For annealing, at the beginning and at the end: the loss, as a share, at which a worse neighbour
/// is accepted with probability 1 / e.
const TEMPERATURES: [f64; 2] = [0.03, 0.0005];
/// The measurements over which the short annealing cools down. It goes on cold.
const SHORT: usize = 150;
/// For the genetic algorithm: the size of the population, the size of the tournament of parents,
/// and the chance of a mutation.
const POPULATION: usize = 20;
const TOURNAMENT: usize = 3;
const MUTATION: f64 = 0.7;

/// A testbed, and what was measured on it so far.
pub(crate) struct Trials<'a> {
    bed: Bed,
    space: &'a Space,
    budget: usize,
    pub(crate) trail: Vec<(Option<Assignment>, f64)>,
}

impl<'a> Trials<'a> {
    pub(crate) fn new(bed: Bed, space: &'a Space, budget: usize) -> Self {
        Self { bed, space, budget, trail: Vec::new() }
    }

    fn measure(&mut self, assignment: &Assignment) -> Option<f64> {
        if self.trail.len() >= self.budget {
            return None;
        }
        let class = self.space.canonical(assignment);
        let setting = Setting::Pinned(class.clone());
        let measured = self.bed.measure(&setting, Effort::default()).ok()?;
        self.trail.push((Some(class), measured.performance));
        Some(measured.performance)
    }
}

fn random_search(trials: &mut Trials<'_>, random: &mut Random) -> Option<()> {
    loop {
        trials.measure(&trials.space.sample(random))?;
    }
}

/// A thread elsewhere: on another context, which it exchanges with one that is there.
fn neighbour(from: &Assignment, space: &Space, random: &mut Random) -> Assignment {
    let mut leaves = from.leaves().to_vec();
    loop {
        let thread = random.below(leaves.len() as u64) as usize;
        let (old, new) = (leaves[thread], random.below(space.tree().leaves().len() as u64) as u32);
        if let Some(other) = leaves.iter().position(|leaf| *leaf == new) {
            leaves[other] = old;
        }
        leaves[thread] = new;
        let changed = Assignment::new(leaves.clone());
        // A change that leads to an alike assignment is none.
        if space.canonical(&changed) != space.canonical(from) {
            return changed;
        }
    }
}

/// Hill climbing: the first neighbour that is better; a new start at random where none is.
fn climb(trials: &mut Trials<'_>, random: &mut Random) -> Option<()> {
    loop {
        let mut at = trials.space.sample(random);
        let (mut height, mut futile) = (trials.measure(&at)?, 0);
        while futile < PATIENCE {
            let next = neighbour(&at, trials.space, random);
            let there = trials.measure(&next)?;
            if there > height {
                (at, height, futile) = (next, there, 0);
            } else {
                futile += 1;
            }
        }
    }
}

fn annealing(trials: &mut Trials<'_>, random: &mut Random) -> Option<()> {
    anneal(trials, random, trials.budget)
}

fn annealing_short(trials: &mut Trials<'_>, random: &mut Random) -> Option<()> {
    anneal(trials, random, SHORT)
}

/// Simulated annealing (Kirkpatrick, Gelatt and Vecchi, Science 220, 1983), cooling geometrically
/// over `steps` measurements.
fn anneal(trials: &mut Trials<'_>, random: &mut Random, steps: usize) -> Option<()> {
    let mut at = trials.space.sample(random);
    let mut height = trials.measure(&at)?;
    let [hot, cold] = TEMPERATURES;
    loop {
        let done = (trials.trail.len() as f64 / steps as f64).min(1.0);
        let temperature = hot * (cold / hot).powf(done);
        let next = neighbour(&at, trials.space, random);
        let there = trials.measure(&next)?;
        if there >= height || random.unit() < ((there / height - 1.0) / temperature).exp() {
            (at, height) = (next, there);
        }
    }
}

/// A genetic algorithm, steady state: a child of two of the better ones takes the place of the
/// worst. It has each thread where one or the other parent has it, if there is room.
fn genetic(trials: &mut Trials<'_>, random: &mut Random) -> Option<()> {
    let mut alive: Vec<(Assignment, f64)> = Vec::with_capacity(POPULATION + 1);
    for _ in 0..POPULATION {
        let born = trials.space.sample(random);
        let worth = trials.measure(&born)?;
        alive.push((born, worth));
    }
    loop {
        let parents = [0; 2].map(|_| {
            let drawn = (0..TOURNAMENT).map(|_| random.below(POPULATION as u64) as usize);
            drawn.max_by(|a, b| alive[*a].1.total_cmp(&alive[*b].1)).unwrap_or(0)
        });
        let [mother, father] = parents.map(|parent| alive[parent].0.leaves());
        let genes = mother.iter().zip(father);
        let child = genes.map(|(a, b)| if random.unit() < 0.5 { *a } else { *b }).collect();
        let mut child = trials.space.nearest(&Assignment::new(child));
        if random.unit() < MUTATION {
            child = neighbour(&child, trials.space, random);
        }
        let worth = trials.measure(&child)?;
        alive.push((child, worth));
        alive.sort_by(|a, b| b.1.total_cmp(&a.1));
        alive.pop();
    }
}
