//! The formula of a fitted pipeline without its derivatives, laid out for speed.
//!
//! A search asks for a prediction after every step of every draw, some millions in a campaign: levels that make no difference are left out, and
//! what is looked up by level lies together.

use super::{Pipeline, pairs};

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
    levels: Vec<Level>,
    /// The threads of each instance.
    instances: Vec<Vec<usize>>,
    sharpness: f64,
}

#[derive(Clone, Debug)]
struct Level {
    /// By leaf.
    domains: Vec<usize>,
    count: usize,
    /// What others weigh on a thread, and what partners are worth to it: by its kind, then theirs.
    weights: Vec<f64>,
    partners: Vec<f64>,
    /// What each two others weigh on a thread, by its kind, then theirs; empty where they weigh nothing.
    pairs: Vec<f64>,
    curvature: f64,
}

/// What a prediction goes through; kept from one to the next.
#[derive(Default)]
pub(super) struct Workspace {
    /// Threads by domain and kind.
    held: Vec<f64>,
    /// What the others weigh on a thread, by its domain and kind.
    crowd: Vec<f64>,
    slow: Vec<f64>,
}

impl Compact {
    pub(super) fn new(pipeline: &Pipeline, parameters: &[f64]) -> Self {
        let kinds = pipeline.kinds;
        let pairs_on = |level: usize| -> Vec<f64> {
            let pairs: Vec<f64> =
                (0..kinds).flat_map(|kind| parameters[pipeline.pair(level, kind)].iter().copied()).collect();
            if pairs.iter().any(|worth| *worth != 0.0) { pairs } else { Vec::new() }
        };
        let level = |level: usize, domains: &Vec<usize>| Level {
            domains: domains.clone(),
            count: domains.iter().max().map_or(0, |last| last + 1),
            weights: parameters[pipeline.weight(level, 0, 0)..][..kinds * kinds].to_vec(),
            partners: parameters[pipeline.partner(level, 0, 0)..][..kinds * kinds].to_vec(),
            pairs: pairs_on(level),
            curvature: parameters[pipeline.curvature(level)],
        };
        let matters =
            |level: &Level| level.weights.iter().chain(&level.partners).chain(&level.pairs).any(|worth| *worth != 0.0);
        let levels = pipeline.levels.domains.iter().enumerate().map(|(number, domains)| level(number, domains));
        Self {
            kinds,
            kind: (0..pipeline.cast.threads()).map(|thread| pipeline.cast.kind(thread)).collect(),
            bases: parameters[..pipeline.bases].to_vec(),
            sorts: if pipeline.levels.sort_count > 1 { pipeline.levels.sorts.clone() } else { Vec::new() },
            levels: levels.filter(matters).collect(),
            instances: pipeline.instances.iter().map(|own| own.iter().map(|(thread, _)| *thread).collect()).collect(),
            sharpness: Pipeline::sharpness(parameters),
        }
    }

    /// The logarithm of performance.
    pub(super) fn log_performance(&self, leaves: &[u32], work: &mut Workspace) -> f64 {
        let kinds = self.kinds;
        work.slow.clear();
        work.slow.extend(self.kind.iter().zip(leaves).map(|(kind, leaf)| {
            let sort = self.sorts.get(*leaf as usize).copied().unwrap_or_default();
            self.bases[sort * kinds + kind]
        }));
        for level in &self.levels {
            let domain = |thread: usize| level.domains[leaves[thread] as usize];
            work.held.clear();
            work.held.resize(level.count * kinds, 0.0);
            for (thread, kind) in self.kind.iter().enumerate() {
                work.held[domain(thread) * kinds + kind] += 1.0;
            }
            work.crowd.clear();
            for held in work.held.chunks_exact(kinds) {
                work.crowd.extend((0..kinds).map(|kind| level.crowd(held, kind)));
            }
            for (thread, (kind, slow)) in self.kind.iter().zip(&mut work.slow).enumerate() {
                *slow += work.crowd[domain(thread) * kinds + kind];
            }
            for instance in &self.instances {
                for (index, &a) in instance.iter().enumerate() {
                    for &b in &instance[..index] {
                        if domain(a) == domain(b) {
                            work.slow[a] += level.partners[self.kind[a] * kinds + self.kind[b]];
                            work.slow[b] += level.partners[self.kind[b] * kinds + self.kind[a]];
                        }
                    }
                }
            }
        }
        let rate = |instance: &Vec<usize>| {
            let most = instance.iter().map(|thread| work.slow[*thread]).fold(f64::NEG_INFINITY, f64::max);
            let power = |thread: &usize| {
                let below = work.slow[*thread] - most;
                if below == 0.0 { 1.0 } else { (self.sharpness * below).exp() }
            };
            let powers: f64 = instance.iter().map(power).sum();
            (-most - powers.ln() / self.sharpness).exp()
        };
        self.instances.iter().map(rate).sum::<f64>().ln()
    }
}

impl Level {
    /// What all but one of the threads in a domain weigh on that one, of kind `own`; 0 where there is none.
    fn crowd(&self, held: &[f64], own: usize) -> f64 {
        if held[own] == 0.0 {
            return 0.0;
        }
        let kinds = held.len();
        let weights = &self.weights[own * kinds..][..kinds];
        let mut load: f64 = held.iter().zip(weights).map(|(held, weight)| held * weight).sum::<f64>() - weights[own];
        if !self.pairs.is_empty() {
            let each = self.pairs.len() / kinds;
            let worth = &self.pairs[own * each..][..each];
            load += worth.iter().zip(pairs(held, own)).map(|(worth, pairs)| worth * pairs).sum::<f64>();
        }
        load + self.curvature * load * load
    }
}
