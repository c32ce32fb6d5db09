//! The formula with its derivatives, for fitting.
//!
//! A fit evaluates it hundreds of times for the same assignments. Who shares what in them does not
//! change meanwhile, so it is counted once.

use super::{PipelinePredictor, log_of_powers, pairs, power, turns};
use crate::learned::ridge::dot;

/// Who shares what in one assignment.
///
/// A *crowd* is the threads of one kind in one domain that is not theirs alone. They have the same
/// co-runners, so each crowd is evaluated once.
#[derive(Clone, Debug)]
pub(super) struct SharingCounts {
    /// By thread: where its base is among the parameters.
    bases: Vec<usize>,
    /// By crowd: the place of its level among those counted, and its kind.
    crowds: Vec<(usize, usize)>,
    /// By crowd: how many others of each kind are in its domain. Then, for each two kinds, how many
    /// pairs of others. Order of pairs: kind 0 with 0, 1 with 0, 1 with 1, ….
    others: Vec<f64>,
    /// How many numbers of others there are by crowd.
    columns: usize,
    /// A thread, and a crowd that it belongs to.
    members: Vec<(usize, usize)>,
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
    /// By crowd: what the slowness of all its threads changes.
    crowd_slopes: Vec<f64>,
    /// What each weight changes, in the order of `weights`.
    slopes: Vec<f64>,
}

/// One assignment as the formula has it, from which derivatives follow.
#[derive(Clone, Debug, Default)]
pub(super) struct Evaluation {
    /// The logarithm of performance.
    pub(super) log_performance: f64,
    /// By thread: the logarithm of how slow it is.
    slow: Vec<f64>,
    /// By crowd: the load of the others, and what it adds to the logarithm.
    loads: Vec<(f64, f64)>,
    /// By thread: how slow it is compared with the slowest of its instance, to the power of β.
    powers: Vec<f64>,
    /// By instance.
    rates: Vec<Rate>,
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

impl SharingCounts {
    /// The others of a crowd, and the pairs of them.
    fn others(&self, crowd: usize) -> &[f64] {
        &self.others[crowd * self.columns..][..self.columns]
    }
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
        let (mut crowds, mut others, mut members) = (Vec::new(), Vec::new(), Vec::new());
        let mut known: Vec<Option<usize>> = vec![None; held.len()];
        for thread in 0..threads {
            let kind = self.thread_kinds.kind(thread);
            for level in 0..levels.len() {
                let place = place(level, thread);
                let there = &held[place..][..self.kinds];
                if there.iter().sum::<f64>() <= 1.0 {
                    continue;
                }
                let crowd = *known[place + kind].get_or_insert_with(|| {
                    others.extend_from_slice(there);
                    let own = others.len() - self.kinds + kind;
                    others[own] -= 1.0;
                    others.extend(pairs(there, kind).take(self.columns() - self.kinds));
                    crowds.push((level, kind));
                    crowds.len() - 1
                });
                members.push((thread, crowd));
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
        let (bases, columns) = ((0..threads).map(base).collect(), self.columns());
        SharingCounts { bases, crowds, others, columns, members, partners }
    }

    /// How many numbers of others there are by crowd.
    fn columns(&self) -> usize {
        let with_pairs = self.pairs < self.sharpest();
        self.kinds + if with_pairs { self.kinds * (self.kinds + 1) / 2 } else { 0 }
    }

    /// The formula at `parameters`, for assignments whose sharing on `levels` was counted.
    pub(super) fn formula<'a>(&'a self, levels: &'a [usize], with_pairs: bool) -> Formula<'a> {
        let columns = if with_pairs { self.columns() } else { self.kinds };
        Formula {
            pipeline: self,
            levels,
            columns,
            parameters: Vec::new(),
            weights: vec![0.0; levels.len() * self.kinds * columns],
            sharpness: 0.0,
            crowd_slopes: Vec::new(),
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

    /// Evaluates the formula, and returns the logarithm of performance.
    pub(super) fn evaluate(&self, counts: &SharingCounts, into: &mut Evaluation) -> f64 {
        let pipeline = self.pipeline;
        let Evaluation { log_performance, slow, loads, powers, rates } = into;
        loads.clear();
        for crowd in 0..counts.crowds.len() {
            let weights = &self.weights[self.row(counts, crowd)..][..self.columns];
            let load = dot(counts.others(crowd), weights);
            let level = self.levels[counts.crowds[crowd].0];
            let adds = if pipeline.takes_turns[level] {
                turns(load).0
            } else {
                load + self.parameters[pipeline.curvature(level)] * load * load
            };
            loads.push((load, adds));
        }
        slow.clear();
        slow.extend(counts.bases.iter().map(|base| self.parameters[*base]));
        for (thread, crowd) in &counts.members {
            slow[*thread] += loads[*crowd].1;
        }
        for (thread, parameter) in &counts.partners {
            slow[*thread] += self.parameters[*parameter];
        }
        powers.resize(slow.len(), 0.0);
        rates.clear();
        let mut sum = 0.0;
        for instance in &pipeline.instances {
            let all = instance.iter().map(|(thread, _)| slow[*thread]);
            let most = all.fold(f64::NEG_INFINITY, f64::max);
            let mut together = 0.0;
            for (thread, _) in instance {
                powers[*thread] = power(self.sharpness, slow[*thread] - most);
                together += powers[*thread];
            }
            let performance = (-most - log_of_powers(together) / self.sharpness).exp();
            sum += performance;
            rates.push(Rate { most, powers: together, performance });
        }
        *log_performance = sum.ln();
        *log_performance
    }

    /// The derivatives by parameter, at the parameters of an evaluation of this assignment. That
    /// has none after this.
    pub(super) fn gradient(
        &mut self,
        counts: &SharingCounts,
        evaluation: &mut Evaluation,
        gradient: &mut [f64],
    ) {
        let pipeline = self.pipeline;
        let Evaluation { slow, loads, powers, rates, .. } = evaluation;
        gradient.fill(0.0);
        self.slopes.fill(0.0);
        let sum: f64 = rates.iter().map(|rate| rate.performance).sum();
        for (rate, instance) in rates.iter().zip(&pipeline.instances) {
            let share = rate.performance / sum;
            let mut mean = 0.0;
            for &(thread, _) in instance {
                let own = powers[thread] / rate.powers;
                mean += own * (slow[thread] - rate.most);
                let by = -share * own;
                // From here on, what the slowness of the thread changes.
                powers[thread] = by;
                gradient[counts.bases[thread]] += by;
            }
            // d/dβ of ln(sum)/β, times β for log β.
            gradient[pipeline.sharpest()] -= share * (mean - rate.powers.ln() / self.sharpness);
        }
        self.crowd_slopes.clear();
        self.crowd_slopes.resize(counts.crowds.len(), 0.0);
        for (thread, crowd) in &counts.members {
            self.crowd_slopes[*crowd] += powers[*thread];
        }
        for (crowd, &(level, _)) in counts.crowds.iter().enumerate() {
            let (by, load) = (self.crowd_slopes[crowd], loads[crowd].0);
            let (number, row) = (self.levels[level], self.row(counts, crowd));
            let slope = if pipeline.takes_turns[number] {
                by * turns(load).1
            } else {
                let curvature = pipeline.curvature(number);
                gradient[curvature] += by * load * load;
                by * (1.0 + 2.0 * self.parameters[curvature] * load)
            };
            let slopes = self.slopes[row..][..self.columns].iter_mut();
            slopes.zip(counts.others(crowd)).for_each(|(sum, others)| *sum += slope * others);
        }
        for (thread, parameter) in &counts.partners {
            gradient[*parameter] += powers[*thread];
        }
        for (row, slopes) in self.slopes.chunks_exact(self.columns.max(1)).enumerate() {
            let (level, kind) = (self.levels[row / pipeline.kinds], row % pipeline.kinds);
            let (singly, by_pair) = slopes.split_at(pipeline.kinds);
            gradient[pipeline.weight(level, kind, 0)..][..singly.len()].copy_from_slice(singly);
            let first = pipeline.pair(level, kind).start;
            gradient[first..][..by_pair.len()].copy_from_slice(by_pair);
        }
    }

    /// Where the weights of the others of a crowd begin.
    fn row(&self, counts: &SharingCounts, crowd: usize) -> usize {
        let (level, kind) = counts.crowds[crowd];
        (level * self.pipeline.kinds + kind) * self.columns
    }
}
