//! [`Posterior`]: what the probes so far say about the speed with every number.
//!
//! Speeds are logarithms here, so that differences are ratios. Before any measurement they are
//!
//! ```text
//! log speed(i) = level + law(i) + departure(i)          measured: + noise
//! ```
//!
//! The level is unknown: a normal distribution too wide to matter. The law is one of several. The
//! departure from it is normal with one of several covariances. So a wrong law cannot hide where
//! the best candidate is, because enough measurements outvote it.
//!
//! Each combination of law and covariance is a hypothesis. Given the measurements, each predicts
//! all speeds (regression of a normal process, C. E. Rasmussen, C. K. I. Williams, "Gaussian
//! Processes for Machine Learning", MIT Press 2006, section 2.2). Its weight is its prior
//! probability times the likelihood of the measurements (section 5.4.1). Predictions are averaged
//! with these weights, and their disagreement is part of the uncertainty.

use crate::cholesky::Matrix;
use pinwise_topology::Random;

/// The distribution before any measurement.
#[derive(Clone, Debug)]
pub(crate) struct Prior {
    /// Laws over all candidates, as logarithms.
    laws: Vec<Vec<f64>>,
    /// How speeds may depart from a law.
    departures: Vec<Departure>,
    /// Logarithms of the probabilities of all pairs: for each departure those of the laws.
    weights: Vec<f64>,
}

impl Prior {
    /// Of laws over all candidates, as logarithms, and departures, each with its probability.
    pub(crate) fn new(laws: Vec<(Vec<f64>, f64)>, departures: Vec<(Departure, f64)>) -> Self {
        let (laws, of_laws): (_, Vec<f64>) = laws.into_iter().unzip();
        let (departures, of_departures): (_, Vec<f64>) = departures.into_iter().unzip();
        let with =
            |of_departure: f64| of_laws.iter().map(move |of_law| (of_departure * of_law).ln());
        let weights = of_departures.into_iter().flat_map(with).collect();
        Self { laws, departures, weights }
    }
}

/// How speeds may depart from a law.
#[derive(Clone, Debug)]
pub(crate) struct Departure {
    /// Covariance of the departures of all candidates.
    pub(crate) covariance: Matrix,
    /// How far measurements are off.
    pub(crate) noise: ErrorModel,
}

/// How far measurements are off.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ErrorModel {
    /// The factor by which errors are larger than measurements report.
    pub(crate) times: f64,
    /// Standard deviation of an error that comes on top. No measurement can show it: the machine is
    /// not the same a moment later.
    pub(crate) beside: f64,
}

impl ErrorModel {
    /// Measurements have the errors that they report.
    pub(crate) const TOLD: Self = Self { times: 1.0, beside: 0.0 };

    /// Variance of a measurement that reports the standard error `error`.
    fn variance(self, error: f64) -> f64 {
        (error * self.times).powi(2) + self.beside.powi(2)
    }
}

/// One measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SpeedReading {
    /// The index of the candidate.
    pub(crate) place: usize,
    /// Logarithm of its speed.
    pub(crate) value: f64,
    /// Standard error of `value`.
    pub(crate) error: f64,
}

/// The least relative standard error that is believed of a measurement.
pub(crate) const LEAST_ERROR: f64 = 0.002;

/// Relative standard error of a measurement that reports none. It is the median of the finite ones
/// that others report, or `unknown` if none does.
pub(crate) fn common_error(told: impl Iterator<Item = f64>, unknown: f64) -> f64 {
    let mut errors: Vec<f64> = told.collect();
    errors.sort_by(f64::total_cmp);
    errors.get(errors.len() / 2).map_or(unknown, |error| error.max(LEAST_ERROR))
}

/// The belief after the measurements: a normal distribution with the moments of the average.
#[derive(Clone, Debug)]
pub(crate) struct Posterior {
    pub(crate) mean: Vec<f64>,
    pub(crate) covariance: Matrix,
    /// How far measurements are off, by root mean square.
    noise: ErrorModel,
    /// Probability that measurements scatter more than they report.
    noisy: f64,
}

/// Standard deviation of the level, far wider than everything else.
const LEVEL: f64 = 3.0;
/// The number of hypotheses that stand for all when their disagreement is computed.
const REPRESENTATIVES: f64 = 500.0;
/// For how many laws the evidence is computed at once.
const TOGETHER: usize = 16;
/// Pivots of covariances are at least this.
const FLOOR: f64 = 1e-10;

impl Posterior {
    pub(crate) fn new(prior: &Prior, readings: &[SpeedReading]) -> Self {
        let size = prior.laws.first().map_or(0, Vec::len);
        let centre = readings.iter().map(|reading| reading.value).sum::<f64>()
            / readings.len().max(1) as f64;
        let values: Vec<f64> = readings.iter().map(|reading| reading.value - centre).collect();
        let left = |law: &[f64]| -> Vec<f64> {
            values.iter().zip(readings).map(|(value, reading)| value - law[reading.place]).collect()
        };
        // The residuals of the measurements from the laws. Laws are taken together, for speed.
        let of_laws = |laws: &[Vec<f64>]| -> Vec<[f64; TOGETHER]> {
            let of = |(value, reading): (&f64, &SpeedReading)| {
                std::array::from_fn(|law| {
                    value - laws.get(law).map_or(0.0, |law| law[reading.place])
                })
            };
            values.iter().zip(readings).map(of).collect()
        };
        let of_laws: Vec<_> = prior.laws.chunks(TOGETHER).map(of_laws).collect();
        let conditions: Vec<ConditionedCovariance> = prior
            .departures
            .iter()
            .map(|departure| ConditionedCovariance::new(departure, readings, size))
            .collect();
        let mut evidence = Vec::with_capacity(prior.weights.len());
        let mut whitened = Vec::with_capacity(readings.len());
        for condition in &conditions {
            let of = of_laws.iter().flat_map(|left| condition.evidence(left, &mut whitened));
            evidence.extend(of.take(prior.laws.len()));
        }
        evidence.iter_mut().zip(&prior.weights).for_each(|(sum, weight)| *sum += weight);
        let most = evidence.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut weights = evidence;
        weights.iter_mut().for_each(|weight| *weight = (*weight - most).exp());
        let total: f64 = weights.iter().sum();
        weights.iter_mut().for_each(|weight| *weight /= total);
        let of_conditions = || conditions.iter().zip(weights.chunks_exact(prior.laws.len()));
        let mut posterior = Self {
            mean: vec![0.0; size],
            covariance: Matrix::from_fn(size, |_, _| 0.0),
            noise: ErrorModel::TOLD,
            noisy: 0.0,
        };
        let (mut times, mut beside) = (0.0, 0.0);
        // Predictions are linear in the law: the mean of a condition's predictions is that of its
        // mean law.
        for (condition, weights) in of_conditions() {
            let share: f64 = weights.iter().sum();
            let mut law = vec![0.0; size];
            for (weight, other) in weights.iter().zip(&prior.laws) {
                law.iter_mut().zip(other).for_each(|(sum, value)| *sum += weight * value);
            }
            let left: Vec<f64> = values
                .iter()
                .zip(readings)
                .map(|(value, reading)| share * value - law[reading.place])
                .collect();
            let prediction = condition.predict(&law, &left);
            posterior.mean.iter_mut().zip(&prediction).for_each(|(mean, value)| *mean += value);
            times += share * condition.noise.times.powi(2);
            beside += share * condition.noise.beside.powi(2);
            posterior.noisy += if condition.noise.beside > 0.0 { share } else { 0.0 };
            posterior.covariance.add(&condition.covariance, share);
        }
        posterior.noise = ErrorModel { times: times.sqrt(), beside: beside.sqrt() };
        // Their disagreement, from representatives at equal distances of cumulated weight.
        let mut cumulated = 0.0;
        let mut taken = 0.0;
        let hypotheses = of_conditions().flat_map(|(condition, weights)| {
            weights.iter().zip(&prior.laws).map(move |(weight, law)| (weight, condition, law))
        });
        for (weight, condition, law) in hypotheses {
            cumulated += weight * REPRESENTATIVES;
            if cumulated - taken >= 0.5 {
                let times = (cumulated - taken).round();
                taken += times;
                let mut prediction = condition.predict(law, &left(law));
                prediction.iter_mut().zip(&posterior.mean).for_each(|(value, mean)| *value -= mean);
                posterior.covariance.add_square(&prediction, times / REPRESENTATIVES);
            }
        }
        posterior.mean.iter_mut().for_each(|mean| *mean += centre);
        posterior
    }

    /// The posterior of quantities that differ from these by known factors, given as logarithms.
    pub(crate) fn shifted(mut self, factors: &[f64]) -> Self {
        self.mean.iter_mut().zip(factors).for_each(|(mean, factor)| *mean += factor);
        self
    }

    /// The candidate with the greatest mean.
    pub(crate) fn best(&self) -> usize {
        (0..self.mean.len()).max_by(|&a, &b| self.mean[a].total_cmp(&self.mean[b])).unwrap_or(0)
    }

    /// Whether measurements of the same candidate probably scatter more than they report.
    pub(crate) fn noisy(&self) -> bool {
        self.noisy > 0.5
    }

    /// The expected rise of the greatest mean by one more measurement of `place` with `error`: the
    /// knowledge gradient (P. Frazier, W. Powell, S. Dayanik, "The knowledge-gradient policy for
    /// correlated normal beliefs", INFORMS J. on Computing 21(4), 2009).
    pub(crate) fn worth(&self, place: usize, error: f64) -> f64 {
        let moves = self.covariance.row(place);
        let scale = (moves[place] + self.noise.variance(error)).max(FLOOR).sqrt();
        let best = self.mean[self.best()];
        let mut worth = 0.0;
        let mut weights = 0.0;
        for step in -12..=12 {
            let z = f64::from(step) * 0.25;
            let weight = (-z * z / 2.0).exp();
            let risen = self
                .mean
                .iter()
                .zip(moves)
                .map(|(mean, moved)| mean + moved / scale * z)
                .fold(f64::MIN, f64::max);
            worth += weight * (risen - best);
            weights += weight;
        }
        worth / weights
    }

    /// `count` draws of all speeds' logarithms.
    pub(crate) fn draws(&self, count: usize, random: &mut Random) -> Vec<Vec<f64>> {
        let lower = self.covariance.cholesky(FLOOR);
        let draw = |_| {
            let normals: Vec<f64> = self.mean.iter().map(|_| random.normal()).collect();
            lower
                .lower_times(&normals)
                .iter()
                .zip(&self.mean)
                .map(|(moved, mean)| mean + moved)
                .collect()
        };
        (0..count).map(draw).collect()
    }
}

/// One covariance, given which candidates were measured.
struct ConditionedCovariance {
    noise: ErrorModel,
    lower: Matrix,
    /// Logarithm of the product of its pivots.
    volume: f64,
    /// For each candidate the weights of the measurements in its prediction.
    weights: Vec<Vec<f64>>,
    /// The covariance of all candidates, given the measurements.
    covariance: Matrix,
}

impl ConditionedCovariance {
    fn new(departure: &Departure, readings: &[SpeedReading], size: usize) -> Self {
        let prior = |a: usize, b: usize| departure.covariance.at(a, b) + LEVEL * LEVEL;
        let among = Matrix::from_fn(readings.len(), |a, b| {
            let noise = if a == b { departure.noise.variance(readings[a].error) } else { 0.0 };
            prior(readings[a].place, readings[b].place) + noise
        });
        let lower = among.cholesky(FLOOR);
        let towards = |place: usize| -> Vec<f64> {
            readings.iter().map(|other| prior(place, other.place)).collect()
        };
        let halves: Vec<Vec<f64>> = (0..size).map(|place| lower.forward(&towards(place))).collect();
        let weights = halves.iter().map(|half| lower.backward(half)).collect();
        let explained =
            |a: usize, b: usize| halves[a].iter().zip(&halves[b]).map(|(x, y)| x * y).sum::<f64>();
        let covariance = Matrix::from_fn(size, |a, b| prior(a, b) - explained(a, b));
        let volume = (0..lower.size()).map(|index| lower.at(index, index).ln()).sum();
        Self { noise: departure.noise, lower, volume, weights, covariance }
    }

    /// Logarithms of the densities of the residuals of the measurements from the laws. `whitened`
    /// is a buffer.
    fn evidence<const N: usize>(
        &self,
        left: &[[f64; N]],
        whitened: &mut Vec<[f64; N]>,
    ) -> [f64; N] {
        self.lower.forward_each(left, whitened);
        let mut squares = [0.0; N];
        for values in whitened {
            squares.iter_mut().zip(values).for_each(|(sum, value)| *sum += *value * *value);
        }
        squares.map(|square| -square / 2.0 - self.volume)
    }

    fn predict(&self, law: &[f64], left: &[f64]) -> Vec<f64> {
        let from_law = law.iter().zip(&self.weights);
        from_law
            .map(|(value, weights)| {
                value + weights.iter().zip(left).map(|(a, b)| a * b).sum::<f64>()
            })
            .collect()
    }
}
