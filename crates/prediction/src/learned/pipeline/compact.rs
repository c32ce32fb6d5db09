//! The formula of a fitted pipeline without its derivatives, laid out for speed.
//!
//! A search asks for a prediction after every step of every draw, some millions in a campaign. So
//! levels that make no difference are left out. After a move, only what the move changes is
//! computed again. Either way the same numbers are added in the same order: equal to the last bit.

use super::{PipelinePredictor, pairs, turns};
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
    /// The threads of each instance, and the instance of each thread.
    instances: Vec<Vec<usize>>,
    instance_of: Vec<usize>,
    sharpness: f64,
}

#[derive(Clone, Debug)]
struct LevelWeights {
    /// By leaf.
    domains: Vec<usize>,
    count: usize,
    /// Where those of this level begin among the domains of all levels.
    first: usize,
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
    slow: Vec<f64>,
    /// By instance.
    rates: Vec<f64>,
}

/// A walk from assignment to assignment.
pub(super) struct CompactWalk<'a> {
    compact: &'a Compact,
    now: Workspace,
    /// The last step, and where it changed what: what was there before.
    change: Option<Change>,
    crowd: Vec<(usize, f64)>,
    slow: Vec<(usize, f64)>,
    rates: Vec<(usize, f64)>,
    /// The levels on which the last step changed domains: theirs by leaf, the one left and the one
    /// joined.
    crowded: Vec<(&'a [usize], usize, usize)>,
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
            domains: domains.clone(),
            count: domains.iter().max().map_or(0, |last| last + 1),
            first: 0,
            weights: parameters[pipeline.weight(level, 0, 0)..][..kinds * kinds].to_vec(),
            partners: parameters[pipeline.partner(level, 0, 0)..][..kinds * kinds].to_vec(),
            pairs: pairs_on(level),
            curvature: (!pipeline.takes_turns[level])
                .then(|| parameters[pipeline.curvature(level)]),
        };
        let matters = |level: &LevelWeights| {
            level
                .weights
                .iter()
                .chain(&level.partners)
                .chain(&level.pairs)
                .any(|worth| *worth != 0.0)
        };
        let levels = pipeline
            .levels
            .domains
            .iter()
            .enumerate()
            .map(|(number, domains)| level(number, domains));
        let mut levels: Vec<LevelWeights> = levels.filter(matters).collect();
        let mut first = 0;
        for level in &mut levels {
            level.first = first;
            first += level.count;
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
            instances: pipeline
                .instances
                .iter()
                .map(|own| own.iter().map(|(thread, _)| *thread).collect())
                .collect(),
            instance_of,
            sharpness: PipelinePredictor::sharpness(parameters),
        }
    }

    /// The logarithm of performance.
    pub(super) fn log_performance(&self, leaves: &[u32], work: &mut Workspace) -> f64 {
        let domains = self.levels.last().map_or(0, |level| level.first + level.count);
        work.held.clear();
        work.held.resize(domains * self.kinds, 0.0);
        for level in &self.levels {
            for (kind, leaf) in self.kind.iter().zip(leaves) {
                work.held[level.place(self.kinds, *leaf) + kind] += 1.0;
            }
        }
        work.crowd.clear();
        for level in &self.levels {
            for domain in 0..level.count {
                let held = &work.held[(level.first + domain) * self.kinds..][..self.kinds];
                work.crowd.extend((0..self.kinds).map(|kind| level.crowd(held, kind)));
            }
        }
        work.slow.clear();
        work.slow.extend((0..self.kind.len()).map(|thread| self.slow(thread, leaves, &work.crowd)));
        work.rates.clear();
        work.rates.extend(self.instances.iter().map(|instance| self.rate(instance, &work.slow)));
        work.rates.iter().sum::<f64>().ln()
    }

    /// The logarithm of how slow a thread is.
    fn slow(&self, thread: usize, leaves: &[u32], crowd: &[f64]) -> f64 {
        let (kind, leaf) = (self.kind[thread], leaves[thread]);
        let sort = self.sorts.get(leaf as usize).copied().unwrap_or_default();
        let mut slow = self.bases[sort * self.kinds + kind];
        for level in &self.levels {
            slow += crowd[level.place(self.kinds, leaf) + kind];
            let domain = level.domains[leaf as usize];
            for &partner in &self.instances[self.instance_of[thread]] {
                if partner != thread && level.domains[leaves[partner] as usize] == domain {
                    slow += level.partners[kind * self.kinds + self.kind[partner]];
                }
            }
        }
        slow
    }

    /// How fast an instance is.
    fn rate(&self, instance: &[usize], slow: &[f64]) -> f64 {
        let most = instance.iter().map(|thread| slow[*thread]).fold(f64::NEG_INFINITY, f64::max);
        let power = |thread: &usize| {
            let below = slow[*thread] - most;
            if below == 0.0 { 1.0 } else { (self.sharpness * below).exp() }
        };
        let powers: f64 = instance.iter().map(power).sum();
        (-most - powers.ln() / self.sharpness).exp()
    }
}

impl LevelWeights {
    /// Where the domain of a leaf begins among what is kept by level, domain and kind.
    fn place(&self, kinds: usize, leaf: u32) -> usize {
        (self.first + self.domains[leaf as usize]) * kinds
    }

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
        compact.log_performance(leaves, &mut now);
        Self {
            compact,
            now,
            change: None,
            crowd: Vec::new(),
            slow: Vec::new(),
            rates: Vec::new(),
            crowded: Vec::new(),
        }
    }

    /// Counts the threads of a change where they are after it.
    fn count(&mut self, Change { thread, other, from, to }: Change) {
        for level in &self.compact.levels {
            let kinds = self.compact.kinds;
            let (left, joined) = (level.place(kinds, from), level.place(kinds, to));
            let kind = self.compact.kind[thread];
            self.now.held[left + kind] -= 1.0;
            self.now.held[joined + kind] += 1.0;
            if let Some(other) = other {
                let kind = self.compact.kind[other];
                self.now.held[joined + kind] -= 1.0;
                self.now.held[left + kind] += 1.0;
            }
        }
    }
}

impl PredictedWalk for CompactWalk<'_> {
    fn step(&mut self, leaves: &[u32], change: Change) -> f64 {
        let (compact, kinds) = (self.compact, self.compact.kinds);
        let Change { thread, other, from, to } = change;
        for before in [&mut self.crowd, &mut self.slow, &mut self.rates] {
            before.clear();
        }
        self.change = Some(change);
        self.count(change);
        for level in &compact.levels {
            let places = [level.place(kinds, from), level.place(kinds, to)];
            if places[0] == places[1] {
                continue;
            }
            for place in places {
                for kind in 0..kinds {
                    let crowd = level.crowd(&self.now.held[place..place + kinds], kind);
                    self.crowd.push((
                        place + kind,
                        std::mem::replace(&mut self.now.crowd[place + kind], crowd),
                    ));
                }
            }
        }
        let moved = compact.instance_of[thread];
        let other = other.map_or(moved, |other| compact.instance_of[other]);
        self.crowded.clear();
        for level in &compact.levels {
            let (left, joined) = (level.domains[from as usize], level.domains[to as usize]);
            if left != joined {
                self.crowded.push((&level.domains, left, joined));
            }
        }
        for one in 0..compact.kind.len() {
            let instance = compact.instance_of[one];
            let leaf = leaves[one] as usize;
            let near = |(domains, left, joined): &(&[usize], usize, usize)| {
                domains[leaf] == *left || domains[leaf] == *joined
            };
            if instance == moved || instance == other || self.crowded.iter().any(near) {
                let slow = compact.slow(one, leaves, &self.now.crowd);
                let before = std::mem::replace(&mut self.now.slow[one], slow);
                if slow != before {
                    self.slow.push((one, before));
                }
            }
        }
        for (one, _) in &self.slow {
            let instance = compact.instance_of[*one];
            if self.rates.iter().all(|(known, _)| *known != instance) {
                let rate = compact.rate(&compact.instances[instance], &self.now.slow);
                self.rates.push((instance, std::mem::replace(&mut self.now.rates[instance], rate)));
            }
        }
        super::bounded(self.now.rates.iter().sum::<f64>().ln())
    }

    fn back(&mut self) {
        if let Some(Change { thread, other, from, to }) = self.change.take() {
            self.count(Change { thread, other, from: to, to: from });
        }
        self.crowd.drain(..).for_each(|(place, before)| self.now.crowd[place] = before);
        self.slow.drain(..).for_each(|(thread, before)| self.now.slow[thread] = before);
        self.rates.drain(..).for_each(|(instance, before)| self.now.rates[instance] = before);
    }
}
