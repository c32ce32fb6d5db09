//! A predictor learned from measurements alone that knows what an instance is: as fast as its slowest thread.
//!
//! **Model.** A thread of kind k is slowed by what the others on its domains weigh on it,
//!
//! log slow = b(k) + sum over levels l of f(l, z) + sum over levels and partners that share the domain of p(l, k, k'),
//! z = sum of w(l, k, k') over the others in its domain of level l, f(l, z) = z + c(l) z²,
//!
//! an instance does 1 / (sum over its threads of slow^β)^(1/β), and the program the sum over its instances. β says how much the slowest
//! thread alone decides: large for a pipeline, small where threads work side by side. Where contexts are not all alike, b depends
//! on the sort of context too.
//!
//! **Fit.** Regularized least squares on the logarithm of performance by the Levenberg-Marquardt algorithm (Marquardt, J. SIAM 11, 1963), from several
//! starting points, since which kind is the slowest makes separate minima. The penalty is that of a normal prior on every
//! parameter; its weight follows from the residuals.
//!
//! **Limits.** As of [`crate::Colocation`]: it chooses what to measure and is never itself the claim.

mod compact;

use crate::levels::Levels;
use crate::{Cast, Predictor};
use compact::Compact;
use pinwise_topology::SharingTree;

/// Standard deviations of the prior: of a base, of a weight or a partner's worth, of a curvature, and of log β.
const PRIOR: [f64; 4] = [1.0, 0.3, 0.5, 1.0];
/// What β is before anything is known.
const SHARPNESS: f64 = 12.0;
/// Kinds that a fit begins with as the slowest, at most; and once with none.
const STARTS: usize = 3;
/// Steps of a fit at most; it ends sooner where nothing improves.
const STEPS: usize = 40;
/// The least standard deviation that residuals are taken to have: formulas are never exact.
const LEAST_ERROR: f64 = 1e-4;
/// More parameters than this are not fitted: a few hundred measurements could not tell them apart, and it would take seconds.
const MOST_PARAMETERS: usize = 250;

/// Which parameters there are, and where in the vector of all they are.
#[derive(Clone, Debug)]
pub struct Pipeline {
    cast: Cast,
    levels: Levels,
    kinds: usize,
    /// Kinds of the threads by instance, flat, with the threads.
    instances: Vec<Vec<(usize, usize)>>,
    bases: usize,
    parameters: usize,
}

/// A [`Pipeline`] with its parameters.
#[derive(Clone, Debug)]
pub struct Fitted {
    compact: Compact,
    /// Root mean square of the residuals, degrees of freedom taken into account.
    error: f64,
}

/// What one assignment goes through while fitting; kept from one to the next.
#[derive(Default)]
struct Workspace {
    /// Threads by level, domain and kind.
    held: Vec<f64>,
    slow: Vec<f64>,
    /// By thread and level.
    loads: Vec<f64>,
}

impl Pipeline {
    /// The model for the workload of `cast` on `tree`; `None` where it has too many parameters to be fitted.
    pub fn new(cast: &Cast, tree: &SharingTree) -> Option<Self> {
        let levels = Levels::new(tree);
        let kinds = cast.kinds().len();
        let bases = kinds * levels.sort_count.max(1);
        let parameters = bases + levels.domains.len() * (2 * kinds * kinds + 1) + 1;
        let instances = cast
            .instances()
            .iter()
            .map(|instance| instance.threads.iter().map(|thread| (*thread, cast.kind(*thread))).collect())
            .collect();
        (parameters <= MOST_PARAMETERS).then(|| Self {
            cast: cast.clone(),
            levels,
            kinds,
            instances,
            bases,
            parameters,
        })
    }

    fn weight(&self, level: usize, kind: usize, other: usize) -> usize {
        self.bases + level * (2 * self.kinds * self.kinds + 1) + kind * self.kinds + other
    }

    fn partner(&self, level: usize, kind: usize, other: usize) -> usize {
        self.weight(level, kind, other) + self.kinds * self.kinds
    }

    fn curvature(&self, level: usize) -> usize {
        self.bases + level * (2 * self.kinds * self.kinds + 1) + 2 * self.kinds * self.kinds
    }

    fn prior(&self, parameter: usize) -> f64 {
        let of_level = (parameter.saturating_sub(self.bases)) % (2 * self.kinds * self.kinds + 1);
        if parameter < self.bases {
            PRIOR[0]
        } else if parameter + 1 == self.parameters {
            PRIOR[3]
        } else if of_level == 2 * self.kinds * self.kinds {
            PRIOR[2]
        } else {
            PRIOR[1]
        }
    }

    /// The logarithm of performance, and its derivatives where `gradient` is as long as there are parameters.
    fn log_performance(&self, leaves: &[u32], parameters: &[f64], work: &mut Workspace, gradient: &mut [f64]) -> f64 {
        let (kinds, levels) = (self.kinds, self.levels.domains.len());
        let (threads, wide) = (self.cast.threads(), self.levels.most_domains * kinds);
        work.held.clear();
        work.held.resize(levels * wide, 0.0);
        for (level, domains) in self.levels.domains.iter().enumerate() {
            for (thread, leaf) in leaves.iter().enumerate().take(threads) {
                work.held[level * wide + domains[*leaf as usize] * kinds + self.cast.kind(thread)] += 1.0;
            }
        }
        work.slow.clear();
        work.slow.resize(threads, 0.0);
        work.loads.clear();
        work.loads.resize(threads * levels, 0.0);
        for thread in 0..threads {
            let kind = self.cast.kind(thread);
            let mut slow = parameters[self.base(kind, leaves[thread])];
            for (level, domains) in self.levels.domains.iter().enumerate() {
                let held = &work.held[level * wide + domains[leaves[thread] as usize] * kinds..][..kinds];
                let weights = &parameters[self.weight(level, kind, 0)..][..kinds];
                let load: f64 =
                    held.iter().zip(weights).map(|(held, weight)| held * weight).sum::<f64>() - weights[kind];
                work.loads[thread * levels + level] = load;
                slow += load + parameters[self.curvature(level)] * load * load;
            }
            work.slow[thread] = slow;
        }
        for instance in &self.instances {
            for (index, &(a, kind_a)) in instance.iter().enumerate() {
                for &(b, kind_b) in &instance[..index] {
                    for (level, domains) in self.levels.domains.iter().enumerate() {
                        if domains[leaves[a] as usize] == domains[leaves[b] as usize] {
                            work.slow[a] += parameters[self.partner(level, kind_a, kind_b)];
                            work.slow[b] += parameters[self.partner(level, kind_b, kind_a)];
                        }
                    }
                }
            }
        }
        let sharpness = Self::sharpness(parameters);
        let mut sum = 0.0;
        let rate = |instance: &Vec<(usize, usize)>, slow: &[f64]| {
            let most = instance.iter().map(|(thread, _)| slow[*thread]).fold(f64::NEG_INFINITY, f64::max);
            let powers: f64 = instance.iter().map(|(thread, _)| (sharpness * (slow[*thread] - most)).exp()).sum();
            (most + powers.ln() / sharpness, most, powers)
        };
        for instance in &self.instances {
            sum += (-rate(instance, &work.slow).0).exp();
        }
        if !gradient.is_empty() {
            gradient.fill(0.0);
            for instance in &self.instances {
                let (slowest, most, powers) = rate(instance, &work.slow);
                let share = (-slowest).exp() / sum;
                let mut mean = 0.0;
                for &(a, kind) in instance {
                    let own = (sharpness * (work.slow[a] - most)).exp() / powers;
                    mean += own * (work.slow[a] - most);
                    let by = -share * own;
                    gradient[self.base(kind, leaves[a])] += by;
                    for (level, domains) in self.levels.domains.iter().enumerate() {
                        let load = work.loads[a * levels + level];
                        let slope = by * (1.0 + 2.0 * parameters[self.curvature(level)] * load);
                        let held = &work.held[level * wide + domains[leaves[a] as usize] * kinds..][..kinds];
                        let first = self.weight(level, kind, 0);
                        for (other, held) in held.iter().enumerate() {
                            gradient[first + other] += slope * held;
                        }
                        gradient[first + kind] -= slope;
                        gradient[self.curvature(level)] += by * load * load;
                        for &(b, other) in instance {
                            if b != a && domains[leaves[a] as usize] == domains[leaves[b] as usize] {
                                gradient[self.partner(level, kind, other)] += by;
                            }
                        }
                    }
                }
                // d/dβ of ln(sum)/β, times β for log β.
                gradient[self.parameters - 1] -= share * (mean - powers.ln() / sharpness);
            }
        }
        sum.ln()
    }

    /// How much the slowest thread of an instance decides alone: β.
    fn sharpness(parameters: &[f64]) -> f64 {
        parameters.last().map_or(SHARPNESS, |logarithm| logarithm.clamp(-2.0, 5.0).exp())
    }

    fn base(&self, kind: usize, leaf: u32) -> usize {
        if self.levels.sort_count > 1 { self.levels.sorts[leaf as usize] * self.kinds + kind } else { kind }
    }

    /// The parameters that measurements support: leaves of each thread, and the performance (only those above 0 are used). `None` where
    /// there are fewer than 20.
    pub fn learn<'a>(&self, measured: impl IntoIterator<Item = (&'a [u32], f64)>) -> Option<Fitted> {
        let rows: Vec<(&[u32], f64)> = measured
            .into_iter()
            .filter(|(_, performance)| *performance > 0.0 && performance.is_finite())
            .map(|(leaves, performance)| (leaves, performance.ln()))
            .collect();
        if rows.len() < 20 {
            return None;
        }
        let level = rows.iter().map(|(_, value)| value).sum::<f64>() / rows.len() as f64;
        let middle = (self.instances.len() as f64).ln() - level;
        let slowest = (0..self.kinds.min(STARTS)).map(Some);
        let starts = slowest.chain([None]).map(|slowest| {
            let base = |base: usize| {
                let faster = slowest.is_some_and(|slowest| base % self.kinds != slowest);
                middle - if faster { 0.7 } else { 0.3 }
            };
            let mut start: Vec<f64> = (0..self.bases).map(base).collect();
            start.resize(self.parameters, 0.0);
            start[self.parameters - 1] = SHARPNESS.ln();
            start
        });
        let fits = starts.map(|start| self.descend(&rows, &start));
        let (parameters, error, _) = fits.min_by(|a, b| a.2.total_cmp(&b.2))?;
        Some(Fitted { compact: Compact::new(self, &parameters), error })
    }

    /// Levenberg-Marquardt from `start`: parameters, residual error, and what was minimized.
    fn descend(&self, rows: &[(&[u32], f64)], start: &[f64]) -> (Vec<f64>, f64, f64) {
        let (n, p) = (rows.len(), self.parameters);
        let mut at = start.to_vec();
        let mut work = Workspace::default();
        let mut damping = 1e-2;
        let mut error = 0.05f64;
        let residuals = |at: &[f64], work: &mut Workspace| -> f64 {
            rows.iter().map(|(leaves, value)| (value - self.log_performance(leaves, at, work, &mut [])).powi(2)).sum()
        };
        // A start is what the prior expects, too.
        let penalty = |at: &[f64]| -> f64 { (0..p).map(|k| ((at[k] - start[k]) / self.prior(k)).powi(2)).sum() };
        let mut squares = residuals(&at, &mut work);
        let mut gradient = vec![0.0; p];
        for _ in 0..STEPS {
            let mut gram = vec![0.0; p * p];
            let mut right = vec![0.0; p];
            for (leaves, value) in rows {
                let residual = value - self.log_performance(leaves, &at, &mut work, &mut gradient);
                for i in 0..p {
                    if gradient[i] == 0.0 {
                        continue;
                    }
                    right[i] += gradient[i] * residual;
                    for j in 0..=i {
                        gram[i * p + j] += gradient[i] * gradient[j];
                    }
                }
            }
            let ridge = error * error;
            for k in 0..p {
                let precision = ridge / self.prior(k).powi(2);
                gram[k * p + k] += precision;
                right[k] -= precision * (at[k] - start[k]);
            }
            let objective = squares + ridge * penalty(&at);
            let mut improved = false;
            for _ in 0..8 {
                let mut damped = gram.clone();
                for k in 0..p {
                    damped[k * p + k] *= 1.0 + damping;
                    damped[k * p + k] += 1e-12;
                }
                let Some(step) = crate::ridge::solve(damped, &right, p) else {
                    damping *= 10.0;
                    continue;
                };
                let tried: Vec<f64> = at.iter().zip(&step).map(|(at, step)| at + step.clamp(-0.5, 0.5)).collect();
                let there = residuals(&tried, &mut work);
                if there + ridge * penalty(&tried) < objective {
                    improved = (objective - there - ridge * penalty(&tried)) > 1e-6 * objective;
                    at = tried;
                    squares = there;
                    damping = (damping * 0.3).max(1e-9);
                    break;
                }
                damping *= 4.0;
            }
            let free = (n as f64 - p as f64 * 0.7).max(n as f64 * 0.2);
            error = (squares / free).sqrt().max(LEAST_ERROR);
            if !improved {
                break;
            }
        }
        let minimized = squares + error * error * penalty(&at);
        (at, error, minimized)
    }
}

impl Fitted {
    /// Root mean square of measured / predicted - 1 over what it was fitted to, to first order, degrees of freedom taken into account.
    pub fn error(&self) -> f64 {
        self.error
    }
}

impl Predictor for Fitted {
    fn predict(&self, leaves: &[u32]) -> f64 {
        thread_local! {
            static WORK: std::cell::RefCell<compact::Workspace> = std::cell::RefCell::default();
        }
        // Far outside of what was learned from, a prediction stays a number.
        WORK.with(|work| self.compact.log_performance(leaves, &mut work.borrow_mut())).clamp(-600.0, 600.0).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cast::tests::workload;
    use pinwise_testbed::{Contention, Demand, Disturbance, Testbed};
    use pinwise_topology::{Alike, CpuSet, Machine, PerContext, Random, Space};

    #[test]
    fn derivatives_are_those_of_small_differences() {
        let tree = SharingTree::new(&Machine::from_shape("2x2x2").unwrap(), Alike::ByStructure);
        let cast = Cast::new(&workload("RPT RPT W"));
        let pipeline = Pipeline::new(&cast, &tree).unwrap();
        let mut random = Random::new(2);
        let space = Space::new(tree, 7, PerContext::AtMost(2)).unwrap();
        let mut work = Workspace::default();
        for _ in 0..20 {
            let drawn = space.sample(&mut random);
            let at: Vec<f64> = (0..pipeline.parameters).map(|_| random.unit() - 0.3).collect();
            let mut gradient = vec![0.0; at.len()];
            pipeline.log_performance(drawn.leaves(), &at, &mut work, &mut gradient);
            for (parameter, slope) in gradient.iter().enumerate() {
                let mut value = |by: f64| {
                    let mut moved = at.clone();
                    moved[parameter] += by;
                    pipeline.log_performance(drawn.leaves(), &moved, &mut work, &mut [])
                };
                let numeric = (value(1e-5) - value(-1e-5)) / 2e-5;
                assert!((numeric - slope).abs() < 1e-6, "{parameter}: {slope} {numeric}");
            }
        }
    }

    #[test]
    fn the_compact_formula_is_the_formula() {
        let machines = ["2x2x2", "hybrid"].map(|name| match name {
            "hybrid" => {
                let machine = Machine::from_shape("2x4").unwrap();
                let some = CpuSet::parse_list("0-4,6").unwrap();
                SharingTree::over(&machine, &some, Alike::ByStructure)
            }
            shape => SharingTree::new(&Machine::from_shape(shape).unwrap(), Alike::ByStructure),
        });
        let cast = Cast::new(&workload("RPT RPT W"));
        let mut random = Random::new(4);
        for tree in machines {
            let pipeline = Pipeline::new(&cast, &tree).unwrap();
            let space = Space::new(tree, 7, PerContext::AtMost(2)).unwrap();
            for _ in 0..50 {
                let drawn = space.sample(&mut random);
                let at: Vec<f64> = (0..pipeline.parameters).map(|_| random.unit() - 0.3).collect();
                let plain = pipeline.log_performance(drawn.leaves(), &at, &mut Workspace::default(), &mut []);
                let mut work = compact::Workspace::default();
                let compact = Compact::new(&pipeline, &at).log_performance(drawn.leaves(), &mut work);
                assert!((plain - compact).abs() < 1e-12 * plain.abs().max(1.0), "{plain} {compact}");
            }
        }
    }

    #[test]
    fn a_processor_on_paper_is_learned_from_random_runs_to_a_fraction_of_a_percent() {
        let machine = Machine::from_shape("4x2x4").unwrap();
        let demand = Demand {
            time: vec![1.0, 1.4, 0.8],
            burden: vec![vec![0.1, 0.3, 0.2], vec![0.05, 0.1, 0.0], vec![0.002, 0.004, 0.0]],
            distance: 0.08,
            near: 1,
            cap: None,
            needle: None,
        };
        let bed = Contention::new(machine.clone(), 4, &["R", "P", "T"], demand, Disturbance::default());
        let tree = SharingTree::new(&machine, Alike::ByStructure);
        let space = Space::new(tree.clone(), 12, PerContext::AtMost(1)).unwrap();
        let pipeline = Pipeline::new(&Cast::new(bed.workload()), &tree).unwrap();
        let mut random = Random::new(8);
        let drawn: Vec<_> = (0..220).map(|_| space.sample(&mut random)).collect();
        let (learn, held_out) = drawn.split_at(160);
        let fitted = pipeline.learn(learn.iter().map(|drawn| (drawn.leaves(), bed.truth(drawn.leaves())))).unwrap();
        let squares: f64 = held_out
            .iter()
            .map(|drawn| (fitted.predict(drawn.leaves()) / bed.truth(drawn.leaves()) - 1.0).powi(2))
            .sum();
        // Its curve of load is a parabola, the processor's a logarithm; performances differ by half.
        let error = (squares / held_out.len() as f64).sqrt();
        assert!(error < 0.004, "{error}");
        assert!(fitted.error() < 0.004, "{}", fitted.error());
        assert!(pipeline.learn([(drawn[0].leaves(), 1.0)]).is_none());
    }
}
