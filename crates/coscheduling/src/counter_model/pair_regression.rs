//! Linear models of pairs, and how well they predict programs that they have not seen.

use super::{CounterModelError, TrainingPair, event_scales, logarithms, per_cycle};
use pinwise_measure::{CounterEvent, EventCounts};
use pinwise_prediction::{LinearFit, NormalEquations, PENALTIES};

/// What a linear model of pairs is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairFeatures {
    /// The published form. A pair is one row. It has each event per cycle, summed over both
    /// programs, and products of up to `order` different sums. The value is the weighted speed-up.
    Sums {
        /// Factors of a product at most.
        order: usize,
    },
    /// A pair is two rows, one of what each program keeps beside the other. The features are the
    /// logarithms of the events per cycle, of the program and of the other one. They include
    /// products of up to `order` of these, with squares.
    Sides {
        /// Factors of a product at most.
        order: usize,
    },
}

impl PairFeatures {
    /// The factors of each term, the intercept left out.
    fn products(self, events: usize) -> Vec<Vec<usize>> {
        let (columns, order, squares) = match self {
            Self::Sums { order } => (events, order, false),
            Self::Sides { order } => (2 * events, order, true),
        };
        let mut all: Vec<Vec<usize>> = Vec::new();
        let mut last: Vec<Vec<usize>> = vec![Vec::new()];
        for _ in 0..order {
            let longer = |product: &Vec<usize>| {
                let from = product.last().map_or(0, |last| last + usize::from(!squares));
                let product = product.clone();
                (from..columns).map(move |factor| [&product[..], &[factor]].concat())
            };
            last = last.iter().flat_map(longer).collect();
            all.extend(last.iter().cloned());
        }
        all
    }

    /// The number of terms, the intercept left out.
    pub fn terms(self, events: usize) -> usize {
        self.products(events).len()
    }

    /// The features of a program with these counts beside one with those.
    pub(super) fn row(self, own: &[f64], other: &[f64]) -> Vec<f64> {
        self.terms_of(&self.products(own.len()), own, other)
    }

    fn terms_of(self, products: &[Vec<usize>], own: &[f64], other: &[f64]) -> Vec<f64> {
        let columns: Vec<f64> = match self {
            Self::Sums { .. } => own.iter().zip(other).map(|(own, other)| own + other).collect(),
            Self::Sides { .. } => [own, other].concat(),
        };
        let term = |product: &Vec<usize>| product.iter().map(|&factor| columns[factor]).product();
        products.iter().map(term).collect()
    }

    /// The values of the rows of a pair.
    fn values(self, pair: &TrainingPair) -> Vec<f64> {
        match self {
            Self::Sums { .. } => vec![pair.kept[0] + pair.kept[1]],
            Self::Sides { .. } => pair.kept.to_vec(),
        }
    }
}

/// Pairs as rows of a linear model.
pub(super) struct PairRegression<'a> {
    features: PairFeatures,
    products: Vec<Vec<usize>>,
    counts: &'a [Vec<f64>],
    pairs: &'a [TrainingPair],
    /// Of each pair, its rows with their values.
    rows: Vec<Vec<(Vec<f64>, f64)>>,
    equations: NormalEquations,
    /// Which programs occur.
    programs: Vec<usize>,
}

impl<'a> PairRegression<'a> {
    pub(super) fn new(
        features: PairFeatures,
        counts: &'a [Vec<f64>],
        pairs: &'a [TrainingPair],
    ) -> Self {
        let products = features.products(counts.first().map_or(0, Vec::len));
        let of_pair = |pair: &TrainingPair| {
            let [one, other] = pair.programs.map(|program| &counts[program]);
            let sides = [(one, other), (other, one)];
            let row = |((own, other), value): ((&Vec<f64>, &Vec<f64>), f64)| {
                (features.terms_of(&products, own, other), value)
            };
            sides.into_iter().zip(features.values(pair)).map(row).collect()
        };
        let rows: Vec<Vec<(Vec<f64>, f64)>> = pairs.iter().map(of_pair).collect();
        let (all, values): (Vec<Vec<f64>>, Vec<f64>) = rows.iter().flatten().cloned().unzip();
        let equations = NormalEquations::of(&all, &values);
        let mut programs: Vec<usize> = pairs.iter().flat_map(|pair| pair.programs).collect();
        programs.sort_unstable();
        programs.dedup();
        Self { features, products, counts, pairs, rows, equations, programs }
    }

    /// The fit without any pair of the programs `without`.
    pub(super) fn fit(&self, penalty: f64, without: &[usize]) -> Option<LinearFit> {
        self.equations_without(without).solve(penalty)
    }

    fn equations_without(&self, without: &[usize]) -> NormalEquations {
        let mut equations = self.equations.clone();
        for (pair, rows) in self.pairs.iter().zip(&self.rows) {
            if pair.programs.iter().any(|program| without.contains(program)) {
                rows.iter().for_each(|(row, value)| equations.remove(row, *value));
            }
        }
        equations
    }

    /// The values of the rows of a pair, by a fit that knows neither of `without`. Counts beyond
    /// those of the others count as the nearest, if the features are logarithms.
    fn predicted(&self, fit: &LinearFit, pair: usize, without: &[usize]) -> Vec<f64> {
        let [one, other] = self.pairs[pair].programs.map(|program| self.counts[program].clone());
        let [one, other] = match self.features {
            PairFeatures::Sums { .. } => [one, other],
            PairFeatures::Sides { .. } => [one, other].map(|own| self.within(own, without)),
        };
        let sides = [(&one, &other), (&other, &one)].into_iter().take(self.rows[pair].len());
        sides
            .map(|(own, other)| fit.value(&self.features.terms_of(&self.products, own, other)))
            .collect()
    }

    fn within(&self, mut own: Vec<f64>, without: &[usize]) -> Vec<f64> {
        for (at, count) in own.iter_mut().enumerate() {
            let known = self.programs.iter().filter(|program| !without.contains(program));
            let known = known.map(|&program| self.counts[program][at]);
            let (least, most) = known
                .fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), one| {
                    (least.min(one), most.max(one))
                });
            if least <= most {
                *count = count.clamp(least, most);
            }
        }
        own
    }

    /// For each penalty, two sums of squared errors of the weighted speed-up. Each program is left
    /// out in turn, and its pairs are predicted. The second sum is that of a constant. `None`: the
    /// other programs determine no fit.
    fn left_out(&self, penalties: &[f64]) -> Vec<Option<(f64, f64)>> {
        let mut sums = vec![Some(0.0); penalties.len()];
        let mut judged: Vec<f64> = Vec::new();
        for &program in &self.programs {
            let equations = self.equations_without(&[program]);
            let own: Vec<usize> = (0..self.pairs.len())
                .filter(|&at| self.pairs[at].programs.contains(&program))
                .collect();
            judged.extend(own.iter().map(|&at| self.value(at)));
            for (sum, penalty) in sums.iter_mut().zip(penalties) {
                let fit = equations.solve(*penalty);
                let squares = fit.map(|fit| {
                    let predicted =
                        |at: usize| -> f64 { self.predicted(&fit, at, &[program]).iter().sum() };
                    own.iter().map(|&at| (self.value(at) - predicted(at)).powi(2)).sum::<f64>()
                });
                *sum = sum.zip(squares).map(|(sum, squares)| sum + squares);
            }
        }
        let constant = variation(&judged);
        sums.into_iter().map(|sum| Some((sum?, constant))).collect()
    }

    /// The weighted speed-up of a pair.
    fn value(&self, pair: usize) -> f64 {
        self.pairs[pair].kept.iter().sum()
    }

    /// The penalty that best predicts the pairs of a left-out program. Then the share of their
    /// variance that it predicts.
    pub(super) fn best_penalty(&self) -> Option<(f64, f64)> {
        let errors = self.left_out(&PENALTIES);
        let known = PENALTIES.iter().zip(errors).filter_map(|(penalty, errors)| {
            let (squares, constant) = errors?;
            Some((*penalty, 1.0 - squares / constant))
        });
        known.max_by(|one, other| one.1.total_cmp(&other.1))
    }

    /// Of both sides of each pair, the value less what a fit without both programs predicts.
    pub(super) fn residuals(&self, penalty: f64) -> Vec<[f64; 2]> {
        let of_pair = |(at, pair): (usize, &TrainingPair)| {
            let fit = self.fit(penalty, &pair.programs);
            let predicted =
                fit.map_or_else(Vec::new, |fit| self.predicted(&fit, at, &pair.programs));
            let side = |side: usize| pair.kept[side] - predicted.get(side).copied().unwrap_or(1.0);
            [side(0), side(1)]
        };
        self.pairs.iter().enumerate().map(of_pair).collect()
    }
}

/// The sum of squared differences from the mean.
fn variation(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

/// How well a linear model describes the weighted speed-up of pairs, and predicts it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FitQuality {
    /// Terms, the intercept left out.
    pub terms: usize,
    /// The penalty; 0 of ordinary least squares.
    pub penalty: f64,
    /// The share of the variance that the fit describes.
    pub r2: f64,
    /// The same, less what so many terms describe of pure chance; `None` if there are as many terms
    /// as pairs.
    pub adjusted: Option<f64>,
    /// The predicted share of the variance of the pairs of a left-out program, over all programs in
    /// turn. Below 0: a constant predicts better. `None` if the others determine no fit.
    pub out_of_sample: Option<f64>,
}

/// The quality of a model of `pairs`; see [`super::CounterModel::fit`]. Without `penalty` the best
/// one is chosen.
///
/// # Errors
/// An event was not counted, or the pairs determine no model.
pub fn quality(
    features: PairFeatures,
    events: &[CounterEvent],
    programs: &[(String, EventCounts)],
    pairs: &[TrainingPair],
    penalty: Option<f64>,
) -> Result<FitQuality, CounterModelError> {
    let mut counts = per_cycle(events, programs)?;
    if let PairFeatures::Sides { .. } = features {
        counts = logarithms(&event_scales(events, &counts), &counts);
    }
    let regression = PairRegression::new(features, &counts, pairs);
    let too_few = CounterModelError::TooFew { programs: programs.len() };
    let (penalty, out_of_sample) = match penalty {
        None => {
            let (penalty, predicted) = regression.best_penalty().ok_or(too_few.clone())?;
            (penalty, Some(predicted))
        }
        Some(penalty) => {
            let errors = regression.left_out(&[penalty])[0];
            (penalty, errors.map(|(squares, constant)| 1.0 - squares / constant))
        }
    };
    let fit = regression.fit(penalty, &[]).ok_or(too_few)?;
    let values: Vec<f64> = (0..pairs.len()).map(|pair| regression.value(pair)).collect();
    let squares = |(pair, value): (usize, &f64)| {
        (value - regression.predicted(&fit, pair, &[]).iter().sum::<f64>()).powi(2)
    };
    let left: f64 = values.iter().enumerate().map(squares).sum();
    let (terms, rows) = (features.terms(events.len()), pairs.len());
    let r2 = 1.0 - left / variation(&values);
    let adjusted = (rows > terms + 1)
        .then(|| 1.0 - (1.0 - r2) * (rows - 1) as f64 / (rows - terms - 1) as f64);
    Ok(FitQuality { terms, penalty, r2, adjusted, out_of_sample })
}
