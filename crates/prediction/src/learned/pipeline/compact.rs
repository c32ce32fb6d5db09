//! The formula of a fitted pipeline without its derivatives, laid out for speed.
//!
//! A search asks for a prediction after every step of every draw, some millions in a campaign. So
//! levels that make no difference are left out. After a move, only what the move changes is
//! computed again. Either way the same numbers are added in the same order: equal to the last bit.
//! A move between two packages changes what most threads share. So what is left to do for a thread
//! then is to add one number by level.

use super::{PipelinePredictor, log_of_powers, pairs, power, turns};
use crate::{Change, PredictedWalk};

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Compact {
    kinds: usize,
    /// By thread.
    kind: Vec<usize>,
    /// By sort of context and kind.
    bases: Vec<f64>,
    /// By leaf, where contexts are not all alike.
    sorts: Vec<usize>,
    levels: Vec<LevelWeights>,
    /// By leaf and level: where the domain of the leaf begins among what is kept by domain of any
    /// level and kind.
    places: Vec<usize>,
    /// The threads of each instance, and the instance of each thread.
    instances: Vec<Vec<usize>>,
    instance_of: Vec<usize>,
    sharpness: f64,
}

#[derive(Clone, Debug)]
struct LevelWeights {
    domains: usize,
    /// What others weigh on a thread, and what partners are worth to it: by its kind, then theirs.
    weights: Vec<f64>,
    partners: Vec<f64>,
    /// What each two others weigh on a thread, by its kind, then theirs; empty if they weigh
    /// nothing.
    pairs: Vec<f64>,
    /// `None` where threads take turns.
    curvature: Option<f64>,
}

/// What a prediction goes through; kept from one to the next.
#[derive(Clone, Debug, Default)]
pub(super) struct Workspace {
    /// Threads by level, domain and kind.
    held: Vec<f64>,
    /// What the others weigh on a thread, by level, its domain and kind.
    crowd: Vec<f64>,
    /// By thread and level: where that is.
    at: Vec<usize>,
    /// By thread: its base, and what its partners are worth to it.
    own: Vec<f64>,
    /// By instance.
    rates: Vec<f64>,
}

/// A walk from assignment to assignment.
pub(super) struct CompactWalk<'a> {
    compact: &'a Compact,
    now: Workspace,
    /// Where the last step changed `now.crowd`.
    changed: Vec<bool>,
    /// The last step, and where it changed what: what was there before.
    change: Option<Change>,
    crowd: Vec<(usize, f64)>,
    own: Vec<(usize, f64)>,
    rates: Vec<(usize, f64)>,
}

impl Compact {
    pub(super) fn new(pipeline: &PipelinePredictor, parameters: &[f64]) -> Self {
        let kinds = pipeline.kinds;
        let pairs_on = |level: usize| -> Vec<f64> {
            let pairs: Vec<f64> = (0..kinds)
                .flat_map(|kind| parameters[pipeline.pair(level, kind)].iter().copied())
                .collect();
            if pairs.iter().any(|worth| *worth != 0.0) { pairs } else { Vec::new() }
        };
        let level = |level: usize, domains: &Vec<usize>| LevelWeights {
            domains: domains.iter().max().map_or(0, |last| last + 1),
            weights: parameters[pipeline.weight(level, 0, 0)..][..kinds * kinds].to_vec(),
            partners: parameters[pipeline.partner(level, 0, 0)..][..kinds * kinds].to_vec(),
            pairs: pairs_on(level),
            curvature: (!pipeline.takes_turns[level])
                .then(|| parameters[pipeline.curvature(level)]),
        };
        let matters = |level: &LevelWeights| {
            let LevelWeights { weights, partners, pairs, .. } = level;
            weights.iter().chain(partners).chain(pairs).any(|worth| *worth != 0.0)
        };
        let all = &pipeline.levels.domains;
        let (levels, domains): (Vec<LevelWeights>, Vec<&Vec<usize>>) = all
            .iter()
            .enumerate()
            .map(|(number, domains)| (level(number, domains), domains))
            .filter(|(level, _)| matters(level))
            .unzip();
        let mut places = vec![0; levels.len() * all.first().map_or(0, Vec::len)];
        let mut first = 0;
        for (number, (level, domains)) in levels.iter().zip(domains).enumerate() {
            for (leaf, domain) in domains.iter().enumerate() {
                places[leaf * levels.len() + number] = (first + domain) * kinds;
            }
            first += level.domains;
        }
        let mut instance_of = vec![0; pipeline.thread_kinds.threads()];
        for (number, instance) in pipeline.instances.iter().enumerate() {
            instance.iter().for_each(|(thread, _)| instance_of[*thread] = number);
        }
        Self {
            kinds,
            kind: (0..pipeline.thread_kinds.threads())
                .map(|thread| pipeline.thread_kinds.kind(thread))
                .collect(),
            bases: parameters[..pipeline.bases].to_vec(),
            sorts: if pipeline.levels.sort_count > 1 {
                pipeline.levels.sorts.clone()
            } else {
                Vec::new()
            },
            levels,
            places,
            instances: pipeline
                .instances
                .iter()
                .map(|own| own.iter().map(|(thread, _)| *thread).collect())
                .collect(),
            instance_of,
            sharpness: PipelinePredictor::sharpness(parameters),
        }
    }

    /// Performance.
    pub(super) fn performance(&self, leaves: &[u32], work: &mut Workspace) -> f64 {
        let domains: usize = self.levels.iter().map(|level| level.domains).sum();
        work.held.clear();
        work.held.resize(domains * self.kinds, 0.0);
        work.at.clear();
        for (kind, leaf) in self.kind.iter().zip(leaves) {
            work.at.extend(self.places(*leaf).iter().map(|place| place + kind));
        }
        work.at.iter().for_each(|at| work.held[*at] += 1.0);
        work.crowd.clear();
        let mut held = work.held.chunks_exact(self.kinds.max(1));
        for level in &self.levels {
            for held in held.by_ref().take(level.domains) {
                work.crowd.extend((0..self.kinds).map(|kind| level.crowd(held, kind)));
            }
        }
        work.own.clear();
        work.own.extend((0..self.kind.len()).map(|thread| self.own(thread, leaves)));
        work.rates.clear();
        for instance in 0..self.instances.len() {
            work.rates.push(self.rate(instance, work));
        }
        total(&work.rates)
    }

    /// Where the domains around a leaf begin, by level.
    fn places(&self, leaf: u32) -> &[usize] {
        &self.places[leaf as usize * self.levels.len()..][..self.levels.len()]
    }

    /// The part of the logarithm of how slow a thread is that other instances do not change.
    fn own(&self, thread: usize, leaves: &[u32]) -> f64 {
        let (kind, leaf) = (self.kind[thread], leaves[thread]);
        let sort = self.sorts.get(leaf as usize).copied().unwrap_or_default();
        let mut own = self.bases[sort * self.kinds + kind];
        for &partner in &self.instances[self.instance_of[thread]] {
            if partner == thread {
                continue;
            }
            let both = self.places(leaf).iter().zip(self.places(leaves[partner]));
            for (level, (here, there)) in self.levels.iter().zip(both) {
                if here == there {
                    own += level.partners[kind * self.kinds + self.kind[partner]];
                }
            }
        }
        own
    }

    /// Where the crowds of a thread are.
    fn at<'a>(&self, thread: usize, work: &'a Workspace) -> &'a [usize] {
        &work.at[thread * self.levels.len()..][..self.levels.len()]
    }

    /// How fast an instance is.
    fn rate(&self, instance: usize, work: &Workspace) -> f64 {
        let slow = |thread: &usize| {
            let crowds = self.at(*thread, work).iter().map(|at| work.crowd[*at]);
            work.own[*thread] + crowds.sum::<f64>()
        };
        let threads = &self.instances[instance];
        let most = threads.iter().map(slow).fold(f64::NEG_INFINITY, f64::max);
        let powers: f64 =
            threads.iter().map(|thread| power(self.sharpness, slow(thread) - most)).sum();
        (-most - log_of_powers(powers) / self.sharpness).exp()
    }
}

/// What all instances do. Far outside of what was learned from, it stays a number.
fn total(rates: &[f64]) -> f64 {
    rates.iter().sum::<f64>().clamp(1e-260, 1e260)
}

impl LevelWeights {
    /// What all other threads in a domain weigh on one of kind `own`; 0 if there is none.
    fn crowd(&self, held: &[f64], own: usize) -> f64 {
        if held[own] == 0.0 {
            return 0.0;
        }
        let kinds = held.len();
        let weights = &self.weights[own * kinds..][..kinds];
        let mut load: f64 =
            held.iter().zip(weights).map(|(held, weight)| held * weight).sum::<f64>()
                - weights[own];
        if !self.pairs.is_empty() {
            let each = self.pairs.len() / kinds;
            let worth = &self.pairs[own * each..][..each];
            load +=
                worth.iter().zip(pairs(held, own)).map(|(worth, pairs)| worth * pairs).sum::<f64>();
        }
        match self.curvature {
            Some(curvature) => load + curvature * load * load,
            None => turns(load).0,
        }
    }
}

impl<'a> CompactWalk<'a> {
    /// From an assignment.
    pub(super) fn new(compact: &'a Compact, leaves: &[u32]) -> Self {
        let mut now = Workspace::default();
        compact.performance(leaves, &mut now);
        let changed = vec![false; now.crowd.len()];
        let (crowd, own, rates) = Default::default();
        Self { compact, now, changed, change: None, crowd, own, rates }
    }

    /// Counts the threads of a change where they are after it.
    fn count(&mut self, Change { thread, other, from, to }: Change) {
        let (compact, levels) = (self.compact, self.compact.levels.len());
        for (thread, from, to) in [(Some(thread), from, to), (other, to, from)] {
            let Some(thread) = thread else { continue };
            let kind = compact.kind[thread];
            let at = &mut self.now.at[thread * levels..][..levels];
            let places = compact.places(from).iter().zip(compact.places(to));
            for (at, (left, joined)) in at.iter_mut().zip(places) {
                self.now.held[left + kind] -= 1.0;
                self.now.held[joined + kind] += 1.0;
                *at = joined + kind;
            }
        }
    }
}

impl PredictedWalk for CompactWalk<'_> {
    fn step(&mut self, leaves: &[u32], change: Change) -> f64 {
        let (compact, kinds) = (self.compact, self.compact.kinds);
        let Change { thread, other, from, to } = change;
        for before in [&mut self.crowd, &mut self.own, &mut self.rates] {
            before.clear();
        }
        self.change = Some(change);
        self.count(change);
        let places = compact.places(from).iter().zip(compact.places(to));
        for (level, (left, joined)) in compact.levels.iter().zip(places) {
            if left == joined {
                continue;
            }
            for place in [*left, *joined] {
                for kind in 0..kinds {
                    let crowd = level.crowd(&self.now.held[place..place + kinds], kind);
                    let before = std::mem::replace(&mut self.now.crowd[place + kind], crowd);
                    if crowd != before {
                        self.crowd.push((place + kind, before));
                        self.changed[place + kind] = true;
                    }
                }
            }
        }
        let moved = compact.instance_of[thread];
        let other = other.map_or(moved, |other| compact.instance_of[other]);
        let both = [moved, other];
        for instance in both.iter().take(if moved == other { 1 } else { 2 }) {
            for &thread in &compact.instances[*instance] {
                let own = compact.own(thread, leaves);
                self.own.push((thread, std::mem::replace(&mut self.now.own[thread], own)));
            }
        }
        let crowded = !self.crowd.is_empty();
        for (instance, threads) in compact.instances.iter().enumerate() {
            let is_changed =
                |thread: &usize| compact.at(*thread, &self.now).iter().any(|at| self.changed[*at]);
            if both.contains(&instance) || crowded && threads.iter().any(is_changed) {
                let rate = compact.rate(instance, &self.now);
                self.rates.push((instance, std::mem::replace(&mut self.now.rates[instance], rate)));
            }
        }
        self.crowd.iter().for_each(|(place, _)| self.changed[*place] = false);
        total(&self.now.rates)
    }

    fn back(&mut self) {
        if let Some(Change { thread, other, from, to }) = self.change.take() {
            self.count(Change { thread, other, from: to, to: from });
        }
        self.crowd.drain(..).for_each(|(place, before)| self.now.crowd[place] = before);
        self.own.drain(..).for_each(|(thread, before)| self.now.own[thread] = before);
        self.rates.drain(..).for_each(|(instance, before)| self.now.rates[instance] = before);
    }
}
