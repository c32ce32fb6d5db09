//! The parameters that measurements support.
//!
//! Least squares on the logarithm of performance by the Levenberg-Marquardt algorithm (Marquardt,
//! J. SIAM 11, 1963), from several starting points, since which kind is the slowest makes separate
//! minima. The penalty is that of a normal prior on every parameter; its weight follows from the
//! residuals.
//!
//! **Pairs.** Without them, which kind is the slowest may be mistaken. So a fit with pairs begins
//! at each minimum without them, not at the least alone. Starts that came to one minimum count
//! once. Fewer measurements than parameters can be met exactly. Then cross-validation shows
//! nothing, and pairs are left out.
//!
//! **Again.** A search learns after every few measurements, and its minima hardly move. So a fit
//! begins at the minima of the one before, and one with pairs at its least, too. It begins anew
//! once there are twice as many measurements. Until then it may miss another minimum.
//!
//! **Better measurements count more.** No formula is right everywhere, and it has to be right near
//! the top. A measurement that is d below the best in the logarithm has weight 1 / (1 + (d /
//! [`NEAR`])²). That is as if the formula's error grew with the distance.
//!
//! **Left out.** Generalized cross-validation rates a fit (Golub, Heath and Wahba, Technometrics
//! 21, 1979). A left-out row with leverage h has the residual e / (1 - h), to first order without a
//! refit. The mean of all leverages stands for h. `learned/ridge.rs` uses a row's own leverage in
//! its place. Then the only row that has some rare co-runners (h = 0.99) decides alone what all
//! others are worth.
//!
//! **What else the measurements allow.** Near the minimum, a normal distribution approximates
//! likelihood times prior (Laplace; MacKay, Neural Computation 4, 1992). That holds in its
//! neighbourhood alone: the formula curves, most of all in β. A draw that the measurements refute
//! comes half way back until they do not.

use super::formula::{Evaluation, Formula, SharingCounts};
use super::{Compact, FittedPipeline, PipelinePredictor, SHARPNESS};
use crate::learned::ridge::{Cholesky, dot, solve};
use pinwise_topology::Random;

/// Standard deviations of the prior. They are of a base, a partner's worth, a curvature, a pair,
/// and log β.
const PRIOR: [f64; 5] = [1.0, 0.1, 0.5, 0.1, 1.0];
/// The prior's standard deviation of what all others on a full domain add to a thread's log
/// slowness. A domain of more contexts has more of what is shared. So each of the others weighs
/// less there.
const FULL: f64 = 1.2;
/// The most that one of them weighs, likewise.
const WEIGHT: f64 = 0.3;
/// What is expected of a weight, as a share of its standard deviation: sharing costs.
const COSTS: f64 = 0.5;
/// What is expected of a weight on one context: the other thread never waits.
const TURN: f64 = 1.0;
/// How much less than the weight itself it differs between the kinds that are disturbed. A kind
/// that demands much disturbs all others.
const LIKEWISE: f64 = 0.4;
/// How much smaller the cross-validation error has to be with pairs. A near tie is no evidence, and
/// rounding would decide it.
const PAIRS: f64 = 0.9;
/// Kinds that a fit begins with as the slowest, at most; and once with none.
const STARTS: usize = 3;
/// How many times as many measurements there are before a fit begins anew.
const ANEW: usize = 2;
/// Steps of a fit at most.
const STEPS: usize = 40;
/// A fit ends when a step improves what is minimized by less than this share.
const NEGLIGIBLE: f64 = 1e-4;
/// Fits whose parameters differ by no more are one minimum. Nearly all are logarithms, so this is
/// a tenth.
const SAME: f64 = 0.1;
/// The least standard deviation that residuals are taken to have: formulas are never exact.
const LEAST_ERROR: f64 = 1e-4;
/// Fewer measurements than this are not learned from.
const LEAST_ROWS: usize = 20;
/// How far below the best, in the logarithm, a measurement has half the weight.
const NEAR: f64 = 0.1;
/// How many times as much as the normal distribution says a draw may raise what was minimized.
const ALLOWED: f64 = 2.0;
/// How often a draw comes half way back at most. Then it is the fit but for a thousandth.
const HALVINGS: usize = 10;

/// A measurement: of what, the logarithm of its performance, its weight.
#[derive(Clone, Debug)]
struct WeighedMeasurement {
    counts: SharingCounts,
    value: f64,
    weight: f64,
}

/// Where a fit came to.
#[derive(Clone, Debug)]
struct CurveFit {
    /// The kind that it took for the slowest at first; `None`: none.
    slowest: Option<usize>,
    parameters: Vec<f64>,
    /// What was expected of them.
    prior: Vec<f64>,
    /// Root mean square of the residuals, degrees of freedom taken into account.
    error: f64,
    /// What was minimized.
    minimized: f64,
}

/// What the next fit begins with.
#[derive(Clone, Debug, Default)]
pub(super) struct Minima {
    /// Without pairs.
    plain: Vec<CurveFit>,
    /// The least with pairs.
    paired: Option<CurveFit>,
    /// How many measurements there were when a fit last began anew.
    pub(super) rows: usize,
}

impl CurveFit {
    fn begin(&self) -> (Option<usize>, Option<&[f64]>) {
        (self.slowest, Some(&self.parameters))
    }

    /// The largest difference between two parameters.
    fn distance(&self, other: &Self) -> f64 {
        let apart = |(a, b): (&f64, &f64)| (a - b).abs();
        self.parameters.iter().zip(&other.parameters).map(apart).fold(0.0, f64::max)
    }
}

impl PipelinePredictor {
    /// The parameters that measurements support: leaves of each thread, and the performance (only
    /// those above 0 are used). `None` if there are fewer than 20. `earlier` is what a part of them
    /// showed; it saves time.
    pub fn learn<'a>(
        &self,
        measured: impl IntoIterator<Item = (&'a [u32], f64)>,
        earlier: Option<&FittedPipeline>,
    ) -> Option<FittedPipeline> {
        let values: Vec<(&[u32], f64)> = measured
            .into_iter()
            .filter(|(_, performance)| *performance > 0.0 && performance.is_finite())
            .map(|(leaves, performance)| (leaves, performance.ln()))
            .collect();
        if values.len() < LEAST_ROWS {
            return None;
        }
        let best = values.iter().map(|(_, value)| *value).fold(f64::NEG_INFINITY, f64::max);
        let weight = |value: f64| 1.0 / (1.0 + ((best - value) / NEAR).powi(2));
        let levels = self.shared_levels(values.iter().map(|(leaves, _)| *leaves));
        let mut rows: Vec<WeighedMeasurement> = values
            .iter()
            .map(|(leaves, value)| WeighedMeasurement {
                counts: self.count(leaves, &levels),
                value: *value,
                weight: weight(*value),
            })
            .collect();
        // Weights of mean 1, so that errors compare with those of other fits.
        let mean = rows.iter().map(|row| row.weight).sum::<f64>() / rows.len() as f64;
        rows.iter_mut().for_each(|row| row.weight /= mean);
        let level = rows.iter().map(|row| row.value).sum::<f64>() / rows.len() as f64;
        let plain = self.fitted(&levels, false);
        let earlier = earlier.map(|fitted| &fitted.minima);
        let earlier = earlier.filter(|minima| rows.len() < ANEW * minima.rows);
        let begins: Vec<(Option<usize>, Option<&[f64]>)> = match earlier {
            Some(minima) => minima.plain.iter().map(CurveFit::begin).collect(),
            None => {
                let slowest = (0..self.kinds.min(STARTS)).map(Some).chain([None]);
                slowest.map(|slowest| (slowest, None)).collect()
            }
        };
        let mut fits: Vec<CurveFit> = begins
            .into_iter()
            .map(|(slowest, begin)| {
                let prior = self.prior_mean(level, &levels, slowest);
                let begin = begin.unwrap_or(&prior);
                self.descend(&rows, &levels, (slowest, &prior), begin, &plain)
            })
            .collect();
        fits.sort_by(|a, b| a.minimized.total_cmp(&b.minimized));
        let mut minima: Vec<CurveFit> = Vec::new();
        for fit in fits {
            if minima.iter().all(|known| known.distance(&fit) > SAME) {
                minima.push(fit);
            }
        }
        let mut fit = minima.first()?.clone();
        let (mut error, mut factor) = self.left_out(&rows, &levels, &fit, &plain)?;
        let mut free = plain;
        let every = self.fitted(&levels, true);
        let mut least_paired = None;
        if every.len() > free.len() && rows.len() > every.len() {
            let known = earlier.and_then(|minima| minima.paired.as_ref());
            let paired = minima
                .iter()
                .chain(known)
                .map(|fit| {
                    let prior = self.prior_mean(level, &levels, fit.slowest);
                    let expected = (fit.slowest, &prior[..]);
                    self.descend(&rows, &levels, expected, &fit.parameters, &every)
                })
                .min_by(|a, b| a.minimized.total_cmp(&b.minimized))?;
            least_paired = Some(paired.clone());
            let then = self.left_out(&rows, &levels, &paired, &every);
            if let Some(then) = then.filter(|(then, _)| *then < PAIRS * error) {
                (fit, (error, factor), free) = (paired, then, every);
            }
        }
        let compact = Compact::new(self, &fit.parameters);
        let begun_with = earlier.map_or(rows.len(), |minima| minima.rows);
        let minima = Minima { plain: minima, paired: least_paired, rows: begun_with };
        let posterior =
            LaplacePosterior { pipeline: self.clone(), rows, levels, fit, free, factor };
        Some(FittedPipeline { compact, error, minima, posterior: Some(Box::new(posterior)) })
    }

    /// The formula with the parameters that are `free`; the others are 0.
    fn formula_of<'a>(&'a self, levels: &'a [usize], free: &[usize]) -> Formula<'a> {
        let is_pair = |parameter: &usize| (self.pairs..self.sharpest()).contains(parameter);
        self.formula(levels, free.iter().any(is_pair))
    }

    /// What is expected where performance is e^`level` in the middle and threads of one kind, or
    /// none, are the slowest.
    fn prior_mean(&self, level: f64, levels: &[usize], slowest: Option<usize>) -> Vec<f64> {
        let middle = (self.instances.len() as f64).ln() - level;
        let base = |base: usize| {
            let faster = slowest.is_some_and(|slowest| base % self.kinds != slowest);
            middle - if faster { 0.7 } else { 0.3 }
        };
        let mut mean: Vec<f64> = (0..self.bases).map(base).collect();
        mean.resize(self.parameters, 0.0);
        for &level in levels {
            let weights = self.weight(level, 0, 0)..self.partner(level, 0, 0);
            mean[weights].fill(if self.takes_turns[level] {
                TURN
            } else {
                COSTS * self.weight_spread(level)
            });
        }
        mean[self.sharpest()] = SHARPNESS.ln();
        mean
    }

    /// The standard deviation of the prior of a weight at a level.
    fn weight_spread(&self, level: usize) -> f64 {
        let domains = &self.levels.domains[level];
        let count = domains.iter().max().map_or(1, |last| last + 1);
        let others = (domains.len() as f64 / count as f64 - 1.0).max(1.0);
        (FULL / others).min(WEIGHT)
    }

    /// The variances of a weight at a level. The first is common to all kinds that are disturbed,
    /// the second is of each kind.
    pub(super) fn weight_variances(&self, level: usize) -> (f64, f64) {
        let whole = self.weight_spread(level).powi(2);
        (whole, LIKEWISE * LIKEWISE * whole)
    }

    /// The precision of the prior: the entries of its lower triangle that are not 0. What a kind
    /// weighs on each of the kinds varies together.
    pub(super) fn precision(&self) -> Vec<(usize, usize, f64)> {
        let mut entries: Vec<(usize, usize, f64)> = (0..self.parameters)
            .filter(|parameter| !self.is_weight(*parameter))
            .map(|parameter| (parameter, parameter, self.prior_spread(parameter).powi(-2)))
            .collect();
        for (level, _) in self.levels.domains.iter().enumerate() {
            let ((whole, own), kinds) = (self.weight_variances(level), self.kinds as f64);
            // Of own · 1 + whole · J, J all ones, by Sherman and Morrison.
            let together = whole / (own * (own + kinds * whole));
            for other in 0..self.kinds {
                for a in 0..self.kinds {
                    for b in 0..=a {
                        let alone = if a == b { 1.0 / own } else { 0.0 };
                        let [a, b] = [a, b].map(|kind| self.weight(level, kind, other));
                        entries.push((a, b, alone - together));
                    }
                }
            }
        }
        entries
    }

    fn is_weight(&self, parameter: usize) -> bool {
        let each = 2 * self.kinds * self.kinds + 1;
        (self.bases..self.pairs).contains(&parameter)
            && (parameter - self.bases) % each < self.kinds * self.kinds
    }

    /// The standard deviation of the prior of a parameter that is no weight.
    fn prior_spread(&self, parameter: usize) -> f64 {
        let of_level = parameter.saturating_sub(self.bases) % (2 * self.kinds * self.kinds + 1);
        if parameter < self.bases {
            PRIOR[0]
        } else if parameter == self.sharpest() {
            PRIOR[4]
        } else if parameter >= self.pairs {
            PRIOR[3]
        } else if of_level == 2 * self.kinds * self.kinds {
            PRIOR[2]
        } else {
            PRIOR[1]
        }
    }

    /// The levels on whose domains any thread ever had co-runners.
    fn shared_levels<'a>(&self, all: impl Iterator<Item = &'a [u32]> + Clone) -> Vec<usize> {
        let is_shared = |level: &usize| {
            let domains = &self.levels.domains[*level];
            let mut seen = vec![usize::MAX; self.levels.most_domains];
            all.clone().enumerate().any(|(number, leaves)| {
                leaves.iter().any(|leaf| {
                    std::mem::replace(&mut seen[domains[*leaf as usize]], number) == number
                })
            })
        };
        (0..self.levels.domains.len()).filter(is_shared).collect()
    }

    /// The parameters that are fitted, with pairs or without. Of a level on whose domains nobody
    /// ever had co-runners there is nothing to learn.
    fn fitted(&self, levels: &[usize], pairs: bool) -> Vec<usize> {
        let of_level = |index: usize, all: usize| {
            levels.contains(&(index * self.levels.domains.len() / all.max(1)))
        };
        let has_no_curve = |parameter| {
            let is_it =
                |(level, turns): (usize, &bool)| *turns && self.curvature(level) == parameter;
            self.takes_turns.iter().enumerate().any(is_it)
        };
        let is_fitted = |parameter: &usize| match *parameter {
            own if own < self.bases => true,
            own if has_no_curve(own) => false,
            own if own < self.pairs => of_level(own - self.bases, self.pairs - self.bases),
            own if own < self.sharpest() => {
                pairs && of_level(own - self.pairs, self.sharpest() - self.pairs)
            }
            _ => true,
        };
        (0..self.parameters).filter(is_fitted).collect()
    }

    /// Levenberg-Marquardt from `begin` over the parameters `free`. The prior takes a kind for the
    /// slowest, and expects these parameters.
    fn descend(
        &self,
        rows: &[WeighedMeasurement],
        levels: &[usize],
        (slowest, prior): (Option<usize>, &[f64]),
        begin: &[f64],
        free: &[usize],
    ) -> CurveFit {
        let (n, p) = (rows.len(), self.parameters);
        let mut at = begin.to_vec();
        let mut formula = self.formula_of(levels, free);
        let mut damping = 1e-2;
        let mut error = 0.05f64;
        let precision = self.precision();
        let penalty = |at: &[f64]| penalty(&precision, prior, at);
        let place = places(free, p);
        let [mut here, mut beyond] = [(); 2].map(|()| vec![Evaluation::default(); n]);
        let mut squares = sum_of_squares(&mut formula, rows, &at, &mut here);
        let mut gradient = vec![0.0; p];
        for _ in 0..STEPS {
            let mut gram = Gram::new(free.len());
            let mut right = vec![0.0; free.len()];
            formula.move_to(&at);
            for (row, evaluation) in rows.iter().zip(&mut here) {
                let residual = row.value - evaluation.log_performance;
                formula.gradient(&row.counts, evaluation, &mut gradient);
                let slopes: Vec<f64> = free.iter().map(|k| gradient[*k]).collect();
                gram.add(&slopes, row.weight);
                right
                    .iter_mut()
                    .zip(&slopes)
                    .for_each(|(right, slope)| *right += row.weight * slope * residual);
            }
            let ridge = error * error;
            gram.add_prior(&precision, &place, ridge);
            for &(a, b, precision) in &precision {
                for (own, other) in [(a, b), (b, a)].iter().take(if a == b { 1 } else { 2 }) {
                    if let Some(own) = place[*own] {
                        right[own] -= ridge * precision * (at[*other] - prior[*other]);
                    }
                }
            }
            let objective = squares + ridge * penalty(&at);
            let mut improved = false;
            for _ in 0..8 {
                let mut damped = gram.clone();
                (0..free.len()).for_each(|i| {
                    *damped.diagonal(i) = *damped.diagonal(i) * (1.0 + damping) + 1e-12
                });
                let Some(step) = solve(damped.lower, &right, free.len()) else {
                    damping *= 10.0;
                    continue;
                };
                let mut tried = at.clone();
                free.iter().zip(&step).for_each(|(k, step)| tried[*k] += step.clamp(-0.5, 0.5));
                let there = sum_of_squares(&mut formula, rows, &tried, &mut beyond);
                if there + ridge * penalty(&tried) < objective {
                    improved = objective - there - ridge * penalty(&tried) > NEGLIGIBLE * objective;
                    at = tried;
                    squares = there;
                    std::mem::swap(&mut here, &mut beyond);
                    damping = (damping * 0.3).max(1e-9);
                    break;
                }
                damping *= 4.0;
            }
            let degrees = (n as f64 - free.len() as f64 * 0.7).max(n as f64 * 0.2);
            error = (squares / degrees).sqrt().max(LEAST_ERROR);
            if !improved {
                break;
            }
        }
        let minimized = squares + error * error * penalty(&at);
        CurveFit { slowest, parameters: at, prior: prior.to_vec(), error, minimized }
    }

    /// The generalized cross-validation error of a weighted fit, and the factor of its normal
    /// equations. `None` if the fit is no minimum.
    fn left_out(
        &self,
        rows: &[WeighedMeasurement],
        levels: &[usize],
        fit: &CurveFit,
        free: &[usize],
    ) -> Option<(f64, Cholesky)> {
        let mut formula = self.formula_of(levels, free);
        let mut gram = Gram::new(free.len());
        let (mut gradient, mut evaluation) = (vec![0.0; self.parameters], Evaluation::default());
        let mut squares = 0.0;
        let mut slopes: Vec<Vec<f64>> = Vec::with_capacity(rows.len());
        formula.move_to(&fit.parameters);
        for row in rows {
            let predicted = formula.evaluate(&row.counts, &mut evaluation);
            formula.gradient(&row.counts, &mut evaluation, &mut gradient);
            squares += row.weight * (row.value - predicted).powi(2);
            let own: Vec<f64> = free.iter().map(|k| gradient[*k]).collect();
            gram.add(&own, row.weight);
            slopes.push(own);
        }
        gram.add_prior(&self.precision(), &places(free, self.parameters), fit.error.powi(2));
        let factor = Cholesky::new(gram.lower, free.len())?;
        let leverage = |(row, slopes): (&WeighedMeasurement, &Vec<f64>)| {
            row.weight * dot(slopes, &factor.solve(slopes))
        };
        let mean = rows.iter().zip(&slopes).map(leverage).sum::<f64>() / rows.len() as f64;
        let error = (squares / rows.len() as f64).sqrt() / (1.0 - mean).max(1e-3);
        Some((error.max(LEAST_ERROR), factor))
    }
}

/// Parameters as likely as the measurements leave them: about the fit, normal (Laplace).
#[derive(Clone, Debug)]
pub(super) struct LaplacePosterior {
    pipeline: PipelinePredictor,
    rows: Vec<WeighedMeasurement>,
    levels: Vec<usize>,
    fit: CurveFit,
    free: Vec<usize>,
    /// Of the precision times the squared error of the fit.
    factor: Cholesky,
}

impl LaplacePosterior {
    /// One draw.
    pub(super) fn draw(&self, random: &mut Random) -> Compact {
        let Self { pipeline, rows, fit, .. } = self;
        let (ridge, precision) = (fit.error * fit.error, pipeline.precision());
        let mut formula = pipeline.formula_of(&self.levels, &self.free);
        let mut evaluations = vec![Evaluation::default(); rows.len()];
        let mut objective = |at: &[f64]| {
            sum_of_squares(&mut formula, rows, at, &mut evaluations)
                + ridge * penalty(&precision, &fit.prior, at)
        };
        let normal: Vec<f64> = self.free.iter().map(|_| random.normal()).collect();
        let most = objective(&fit.parameters) + ALLOWED * ridge * dot(&normal, &normal);
        let mut step = self.factor.back_solve(normal);
        step.iter_mut().for_each(|step| *step *= fit.error);
        let mut drawn = fit.parameters.clone();
        for _ in 0..=HALVINGS {
            for (&parameter, step) in self.free.iter().zip(&step) {
                drawn[parameter] = fit.parameters[parameter] + step;
            }
            if objective(&drawn) <= most {
                break;
            }
            step.iter_mut().for_each(|step| *step /= 2.0);
        }
        Compact::new(pipeline, &drawn)
    }
}

/// The sum of the weighted squares of the residuals. `evaluations` takes what each measurement is
/// by the formula.
fn sum_of_squares(
    formula: &mut Formula<'_>,
    rows: &[WeighedMeasurement],
    at: &[f64],
    evaluations: &mut [Evaluation],
) -> f64 {
    formula.move_to(at);
    let square = |(row, into): (&WeighedMeasurement, &mut Evaluation)| {
        row.weight * (row.value - formula.evaluate(&row.counts, into)).powi(2)
    };
    rows.iter().zip(evaluations).map(square).sum()
}

/// What a prior of some precision, its lower triangle, adds to the squares at `at`.
fn penalty(precision: &[(usize, usize, f64)], prior: &[f64], at: &[f64]) -> f64 {
    let term = |&(a, b, precision): &(usize, usize, f64)| {
        let twice = if a == b { 1.0 } else { 2.0 };
        twice * precision * (at[a] - prior[a]) * (at[b] - prior[b])
    };
    precision.iter().map(term).sum()
}

/// By parameter, where it is among those that are free.
fn places(free: &[usize], parameters: usize) -> Vec<Option<usize>> {
    let mut places = vec![None; parameters];
    free.iter().enumerate().for_each(|(place, parameter)| places[*parameter] = Some(place));
    places
}

/// A symmetric matrix, its lower triangle row by row.
#[derive(Clone)]
struct Gram {
    lower: Vec<f64>,
    width: usize,
}

impl Gram {
    fn new(width: usize) -> Self {
        Self { lower: vec![0.0; width * width], width }
    }

    /// Adds the product of a vector with itself.
    fn add(&mut self, vector: &[f64], weight: f64) {
        for (i, &own) in vector.iter().enumerate().filter(|(_, own)| **own != 0.0) {
            let row = &mut self.lower[i * self.width..=i * self.width + i];
            row.iter_mut().zip(vector).for_each(|(sum, other)| *sum += weight * own * other);
        }
    }

    /// Adds the precision of a prior, times `by`.
    fn add_prior(&mut self, precision: &[(usize, usize, f64)], place: &[Option<usize>], by: f64) {
        for &(a, b, precision) in precision {
            if let (Some(a), Some(b)) = (place[a], place[b]) {
                self.lower[a.max(b) * self.width + a.min(b)] += by * precision;
            }
        }
    }

    fn diagonal(&mut self, index: usize) -> &mut f64 {
        &mut self.lower[index * self.width + index]
    }
}
