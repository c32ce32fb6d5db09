//! The formula with its derivatives, for fitting.
//!
//! A fit evaluates it hundreds of times for the same assignments. Who shares what in them does not
//! change meanwhile, so it is counted once.

use super::{PipelinePredictor, pairs, turns};
use crate::learned::ridge::dot;

/// Who shares what in one assignment.
#[derive(Clone, Debug)]
pub(super) struct SharingCounts {
    /// By thread: where its base is among the parameters.
    bases: Vec<usize>,
    /// By thread and level: how many others of each kind are in its domain. Then, for each two
    /// kinds, how many pairs of others. Order of pairs: kind 0 with 0, 1 with 0, 1 with 1, ….
    others: Vec<f64>,
    /// A thread, and the parameter of a partner that shares one of its domains.
    partners: Vec<(usize, usize)>,
}

/// The formula at some parameters.
pub(super) struct Formula<'a> {
    pipeline: &'a PipelinePredictor,
    /// The levels on whose domains threads have co-runners. The others make no difference.
    levels: &'a [usize],
    /// How many columns of [`SharingCounts::others`] weigh something: those of pairs or not.
    columns: usize,
    parameters: Vec<f64>,
    /// What others and pairs weigh: by level, kind and column.
    weights: Vec<f64>,
    sharpness: f64,
    /// Of the assignment that was evaluated last. By thread: the logarithm of how slow it is.
    slow: Vec<f64>,
    /// By thread and level.
    loads: Vec<f64>,
    /// By thread: how slow it is compared with the slowest of its instance, to the power of β.
    powers: Vec<f64>,
    /// By instance.
    rates: Vec<Rate>,
    /// What each weight changes, in the order of `weights`.
    slopes: Vec<f64>,
}

/// How slow an instance is.
#[derive(Clone, Copy, Debug, Default)]
struct Rate {
    /// The largest logarithm of its threads.
    most: f64,
    /// The sum of their powers.
    powers: f64,
    performance: f64,
}

impl PipelinePredictor {
    /// Who shares what on the domains of `levels`.
    pub(super) fn count(&self, leaves: &[u32], levels: &[usize]) -> SharingCounts {
        let threads = self.thread_kinds.threads();
        let mut held = vec![0.0; levels.len() * self.levels.most_domains * self.kinds];
        let place = |level: usize, thread: usize| {
            let domain = self.levels.domains[levels[level]][leaves[thread] as usize];
            (level * self.levels.most_domains + domain) * self.kinds
        };
        for level in 0..levels.len() {
            for thread in 0..threads {
                held[place(level, thread) + self.thread_kinds.kind(thread)] += 1.0;
            }
        }
        let mut others = Vec::with_capacity(threads * levels.len() * self.columns());
        for thread in 0..threads {
            for level in 0..levels.len() {
                let kind = self.thread_kinds.kind(thread);
                let held = &held[place(level, thread)..][..self.kinds];
                others.extend_from_slice(held);
                let own = others.len() - self.kinds + kind;
                others[own] -= 1.0;
                others.extend(pairs(held, kind).take(self.columns() - self.kinds));
            }
        }
        let mut partners = Vec::new();
        for instance in &self.instances {
            for (index, &(a, kind_a)) in instance.iter().enumerate() {
                for &(b, kind_b) in &instance[..index] {
                    let together = |level: &usize| place(*level, a) == place(*level, b);
                    for level in (0..levels.len()).filter(together).map(|level| levels[level]) {
                        partners.push((a, self.partner(level, kind_a, kind_b)));
                        partners.push((b, self.partner(level, kind_b, kind_a)));
                    }
                }
            }
        }
        let base = |thread| self.base(self.thread_kinds.kind(thread), leaves[thread]);
        SharingCounts { bases: (0..threads).map(base).collect(), others, partners }
    }

    /// How many numbers of others there are by thread and level.
    fn columns(&self) -> usize {
        let with_pairs = self.pairs < self.sharpest();
        self.kinds + if with_pairs { self.kinds * (self.kinds + 1) / 2 } else { 0 }
    }

    /// The formula at `parameters`, for assignments whose sharing on `levels` was counted.
    pub(super) fn formula<'a>(&'a self, levels: &'a [usize], with_pairs: bool) -> Formula<'a> {
        let columns = if with_pairs { self.columns() } else { self.kinds };
        let threads = self.thread_kinds.threads();
        Formula {
            pipeline: self,
            levels,
            columns,
            parameters: Vec::new(),
            weights: vec![0.0; levels.len() * self.kinds * columns],
            sharpness: 0.0,
            slow: vec![0.0; threads],
            loads: vec![0.0; threads * levels.len()],
            powers: vec![0.0; threads],
            rates: vec![Rate::default(); self.instances.len()],
            slopes: vec![0.0; levels.len() * self.kinds * columns],
        }
    }
}

impl Formula<'_> {
    /// Takes other parameters.
    pub(super) fn move_to(&mut self, parameters: &[f64]) {
        let pipeline = self.pipeline;
        self.parameters.clear();
        self.parameters.extend_from_slice(parameters);
        self.sharpness = PipelinePredictor::sharpness(parameters);
        let rows = self.weights.chunks_exact_mut(self.columns.max(1));
        for (row, weights) in rows.enumerate() {
            let (level, kind) = (self.levels[row / pipeline.kinds], row % pipeline.kinds);
            let (singly, by_pair) = weights.split_at_mut(pipeline.kinds);
            singly.copy_from_slice(&parameters[pipeline.weight(level, kind, 0)..][..singly.len()]);
            let first = pipeline.pair(level, kind).start;
            by_pair.copy_from_slice(&parameters[first..][..by_pair.len()]);
        }
    }

    /// The logarithm of performance.
    pub(super) fn log_performance(&mut self, counts: &SharingCounts) -> f64 {
        let pipeline = self.pipeline;
        for thread in 0..self.slow.len() {
            let mut slow = self.parameters[counts.bases[thread]];
            for (level, number) in self.levels.iter().enumerate() {
                let load = dot(self.others(counts, thread, level), self.weights(thread, level));
                self.loads[thread * self.levels.len() + level] = load;
                slow += if pipeline.takes_turns[*number] {
                    turns(load).0
                } else {
                    load + self.parameters[pipeline.curvature(*number)] * load * load
                };
            }
            self.slow[thread] = slow;
        }
        for (thread, parameter) in &counts.partners {
            self.slow[*thread] += self.parameters[*parameter];
        }
        let mut sum = 0.0;
        for (number, instance) in pipeline.instances.iter().enumerate() {
            let slow = instance.iter().map(|(thread, _)| self.slow[*thread]);
            let most = slow.fold(f64::NEG_INFINITY, f64::max);
            let mut powers = 0.0;
            for (thread, _) in instance {
                let power = (self.sharpness * (self.slow[*thread] - most)).exp();
                self.powers[*thread] = power;
                powers += power;
            }
            let performance = (-(most + powers.ln() / self.sharpness)).exp();
            sum += performance;
            self.rates[number] = Rate { most, powers, performance };
        }
        sum.ln()
    }

    /// The derivatives of the last [`Self::log_performance`], which was of the same assignment. By
    /// parameter.
    pub(super) fn gradient(&mut self, counts: &SharingCounts, gradient: &mut [f64]) {
        let pipeline = self.pipeline;
        gradient.fill(0.0);
        self.slopes.fill(0.0);
        let sum: f64 = self.rates.iter().map(|rate| rate.performance).sum();
        for (number, instance) in pipeline.instances.iter().enumerate() {
            let rate = self.rates[number];
            let share = rate.performance / sum;
            let mut mean = 0.0;
            for &(thread, kind) in instance {
                let own = self.powers[thread] / rate.powers;
                mean += own * (self.slow[thread] - rate.most);
                let by = -share * own;
                // From here on, what the slowness of the thread changes.
                self.powers[thread] = by;
                gradient[counts.bases[thread]] += by;
                for (level, number) in self.levels.iter().enumerate() {
                    let curvature = pipeline.curvature(*number);
                    let load = self.loads[thread * self.levels.len() + level];
                    let slope = if pipeline.takes_turns[*number] {
                        by * turns(load).1
                    } else {
                        gradient[curvature] += by * load * load;
                        by * (1.0 + 2.0 * self.parameters[curvature] * load)
                    };
                    let row = (level * pipeline.kinds + kind) * self.columns;
                    let others = self.others(counts, thread, level).iter();
                    for (column, others) in others.enumerate() {
                        self.slopes[row + column] += slope * others;
                    }
                }
            }
            // d/dβ of ln(sum)/β, times β for log β.
            gradient[pipeline.sharpest()] -= share * (mean - rate.powers.ln() / self.sharpness);
        }
        for (thread, parameter) in &counts.partners {
            gradient[*parameter] += self.powers[*thread];
        }
        for (row, slopes) in self.slopes.chunks_exact(self.columns.max(1)).enumerate() {
            let (level, kind) = (self.levels[row / pipeline.kinds], row % pipeline.kinds);
            let (singly, by_pair) = slopes.split_at(pipeline.kinds);
            gradient[pipeline.weight(level, kind, 0)..][..singly.len()].copy_from_slice(singly);
            let first = pipeline.pair(level, kind).start;
            gradient[first..][..by_pair.len()].copy_from_slice(by_pair);
        }
    }

    fn others<'a>(&self, counts: &'a SharingCounts, thread: usize, level: usize) -> &'a [f64] {
        let row = (thread * self.levels.len() + level) * self.pipeline.columns();
        &counts.others[row..][..self.columns]
    }

    fn weights(&self, thread: usize, level: usize) -> &[f64] {
        let kind = self.pipeline.thread_kinds.kind(thread);
        &self.weights[(level * self.pipeline.kinds + kind) * self.columns..][..self.columns]
    }
}
