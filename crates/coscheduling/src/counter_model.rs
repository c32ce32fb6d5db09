//! The speed-up of a pair from what counters saw of each program alone.
//!
//! **Terms.** What a program *keeps* is its speed beside another one, as a share of its speed
//! alone. The weighted speed-up of a pair is the sum of what both keep.
//!
//! **Problem.** 24 programs make 276 pairs. Runs alone are 24. If these tell which pairs are good,
//! most pairs need no run.
//!
//! **Method.** A linear model of what a program keeps ([`PairFeatures::Sides`]): the logarithms of
//! the events per cycle of both, and all their products. Ridge regression. Its penalty is the one
//! that predicts best the pairs of a program that was left out, with all of its pairs. To leave out
//! one row would show nothing: both programs would still be in other rows.
//!
//! The *residuals* are those of fits without either program of the pair. Their quantile is the
//! interval of a pair of two new programs, as in the jackknife (R. F. Barber, E. J. Candès, A.
//! Ramdas, R. J. Tibshirani, "Predictive inference with the jackknife+", Annals of Statistics 49,
//! 2021), by program. The lab checks how often it holds.
//!
//! The published model ([`PairFeatures::Sums`]) takes sums over both programs and the products of
//! different sums ("Hardware monitoring for SMT scheduling and path profiles", section 4). Its "256
//! terms" cannot be reconstructed: five sums have 32 products, ten counts 1,024.
//!
//! **Limits.** A count beyond those of the training programs counts as the nearest of these, and
//! the prediction names the event. Counters do not show how large data are. Two programs with the
//! same counts may need different parts of a cache.

mod pair_regression;

pub use pair_regression::{FitQuality, PairFeatures, quality};

use pair_regression::PairRegression;
use pinwise_measure::{CounterEvent, EventCounts};
use pinwise_prediction::LinearFit;
use serde::{Deserialize, Serialize};

/// A program keeps at least this, whatever a model says: a time is no negative number.
const LEAST_KEPT: f64 = 0.05;
/// The order of the products in a model for predictions.
const ORDER: usize = 2;

/// What was measured of two programs beside each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrainingPair {
    /// Their places among the training programs.
    pub programs: [usize; 2],
    /// What each keeps of its speed.
    pub kept: [f64; 2],
}

/// A fitted model, as it is stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CounterModel {
    /// [`CounterModel::VERSION`]
    version: u32,
    /// The CPU model that it was fitted on.
    pub cpu: String,
    /// The names of the training programs.
    pub programs: Vec<String>,
    /// The measured pairs that it was fitted to.
    pub pairs: usize,
    /// By event, what its logarithm is of.
    scales: Vec<EventScale>,
    /// The penalty, a multiple of the number of rows.
    pub penalty: f64,
    intercept: f64,
    weights: Vec<f64>,
    /// What each training program (row) keeps beside each (column), less what a fit without both
    /// predicts; `None` where it was not measured.
    residuals: Vec<Vec<Option<f64>>>,
}

/// An event per cycle, as a feature.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EventScale {
    event: CounterEvent,
    /// What is added before the logarithm is taken. It is a tenth of the median of the training
    /// programs: less than that is as good as nothing.
    offset: f64,
    /// The least and the most of the training programs.
    range: [f64; 2],
}

/// Why a pair has no prediction, or a model no fit.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CounterModelError {
    /// The text is no model.
    #[error("it is no model of pairs: {0}")]
    Syntax(String),
    /// It is of another version.
    #[error("it is a model of version {found}, and this pinwise reads {}: save it anew with \
             --save-model", CounterModel::VERSION)]
    Version {
        /// Its version.
        found: u32,
    },
    /// Its numbers do not belong together.
    #[error("its {field} do not fit the rest of the model: save it anew with --save-model")]
    Inconsistent {
        /// The field.
        field: &'static str,
    },
    /// It is of another CPU.
    #[error("the model is of {model}, and this machine is {here}: save one here with --save-model")]
    OtherCpu {
        /// The model's.
        model: String,
        /// This machine's.
        here: String,
    },
    /// An event was not counted.
    #[error("nothing counted {event:?} of {program}, and the model needs it")]
    NotCounted {
        /// The event.
        event: CounterEvent,
        /// The program.
        program: String,
    },
    /// The pairs determine no model.
    #[error("{programs} programs are too few for a model: measure the pairs of {} or more",
            CounterModel::LEAST_PROGRAMS)]
    TooFew {
        /// The programs.
        programs: usize,
    },
}

/// What two programs keep beside each other, as predicted.
#[derive(Clone, Debug, PartialEq)]
pub struct PredictedPair {
    /// What each keeps.
    pub kept: [f64; 2],
    /// Events of which one of both has more or less than every training program. There the model
    /// says what the nearest count would give.
    pub beyond: Vec<CounterEvent>,
}

impl PredictedPair {
    /// [`crate::PairTimes::weighted_speedup`]
    pub fn weighted_speedup(&self) -> f64 {
        self.kept[0] + self.kept[1]
    }
}

impl CounterModel {
    /// The version of the file.
    pub const VERSION: u32 = 1;
    /// With fewer programs, a fit without two of them says nothing.
    pub const LEAST_PROGRAMS: usize = 6;
    /// The events that a model is fitted to if all were counted.
    pub const EVENTS: [CounterEvent; 6] = [
        CounterEvent::Instructions,
        CounterEvent::Branches,
        CounterEvent::FrontEndMisses,
        CounterEvent::L1DataMisses,
        CounterEvent::L2Misses,
        CounterEvent::FpOperations,
    ];

    /// A model of `pairs`. `programs` are the training programs: the name of each and what counters
    /// saw of it alone.
    ///
    /// # Errors
    /// An event was not counted, or the pairs are too few.
    pub fn fit(
        cpu: &str,
        events: &[CounterEvent],
        programs: &[(String, EventCounts)],
        pairs: &[TrainingPair],
    ) -> Result<Self, CounterModelError> {
        let too_few = CounterModelError::TooFew { programs: programs.len() };
        if programs.len() < Self::LEAST_PROGRAMS {
            return Err(too_few);
        }
        let counts = per_cycle(events, programs)?;
        let scales = event_scales(events, &counts);
        let logs = logarithms(&scales, &counts);
        let features = PairFeatures::Sides { order: ORDER };
        let regression = PairRegression::new(features, &logs, pairs);
        let (penalty, _) = regression.best_penalty().ok_or(too_few.clone())?;
        let LinearFit { intercept, weights } = regression.fit(penalty, &[]).ok_or(too_few)?;
        let mut residuals = vec![vec![None; programs.len()]; programs.len()];
        for (pair, [one, other]) in pairs.iter().zip(regression.residuals(penalty)) {
            let [a, b] = pair.programs;
            (residuals[a][b], residuals[b][a]) = if a == b {
                // Both rows are of the same program beside itself.
                (Some((one + other) / 2.0), Some((one + other) / 2.0))
            } else {
                (Some(one), Some(other))
            };
        }
        let names = programs.iter().map(|(name, _)| name.clone()).collect();
        Ok(Self {
            version: Self::VERSION,
            cpu: cpu.to_owned(),
            programs: names,
            pairs: pairs.len(),
            scales,
            penalty,
            intercept,
            weights,
            residuals,
        })
    }

    /// Reads a stored model.
    ///
    /// # Errors
    /// It is none, or of another version, or its numbers do not belong together.
    pub fn parse(text: &str) -> Result<Self, CounterModelError> {
        #[derive(Deserialize)]
        struct Versioned {
            version: u32,
        }
        let syntax = |error: serde_json::Error| CounterModelError::Syntax(error.to_string());
        let Versioned { version: found } = serde_json::from_str(text).map_err(syntax)?;
        if found != Self::VERSION {
            return Err(CounterModelError::Version { found });
        }
        let model: Self = serde_json::from_str(text).map_err(syntax)?;
        let inconsistent = |field| Err(CounterModelError::Inconsistent { field });
        let finite = |numbers: &[f64]| numbers.iter().all(|number| number.is_finite());
        let programs = model.programs.len();
        let is_scale = |scale: &EventScale| {
            scale.offset > 0.0
                && finite(&[scale.offset, scale.range[0], scale.range[1]])
                && 0.0 <= scale.range[0]
                && scale.range[0] <= scale.range[1]
        };
        if model.scales.is_empty() || !model.scales.iter().all(is_scale) {
            return inconsistent("events");
        }
        let terms = PairFeatures::Sides { order: ORDER }.terms(model.scales.len());
        if model.weights.len() != terms || !finite(&model.weights) || !model.intercept.is_finite() {
            return inconsistent("weights");
        }
        let residuals = &model.residuals;
        let square = residuals.len() == programs && residuals.iter().all(|row| row.len() == programs);
        let known: Vec<f64> = residuals.iter().flatten().flatten().copied().collect();
        let symmetric = || {
            let mut all = (0..programs).flat_map(|a| (0..programs).map(move |b| (a, b)));
            all.all(|(a, b)| residuals[a][b].is_some() == residuals[b][a].is_some())
        };
        if !square || known.is_empty() || !finite(&known) || !symmetric() {
            return inconsistent("residuals");
        }
        Ok(model)
    }

    /// The text that [`Self::parse`] reads.
    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }

    /// The events that it needs of each program, besides cycles.
    pub fn events(&self) -> Vec<CounterEvent> {
        self.scales.iter().map(|scale| scale.event).collect()
    }

    /// Whether it is of this CPU model.
    ///
    /// # Errors
    /// It is of another one.
    pub fn check_cpu(&self, here: &str) -> Result<(), CounterModelError> {
        if self.cpu == here {
            return Ok(());
        }
        Err(CounterModelError::OtherCpu { model: self.cpu.clone(), here: here.to_owned() })
    }

    /// What two programs keep beside each other. Each is a name and its counts alone.
    ///
    /// # Errors
    /// An event was not counted.
    pub fn predict(
        &self,
        programs: [&(String, EventCounts); 2],
    ) -> Result<PredictedPair, CounterModelError> {
        let counts = per_cycle(&self.events(), programs.map(Clone::clone).as_slice())?;
        let is_beyond = |at: &usize| {
            let [least, most] = self.scales[*at].range;
            counts.iter().any(|own| own[*at] < least || own[*at] > most)
        };
        let beyond = (0..self.scales.len()).filter(is_beyond).map(|at| self.scales[at].event);
        let beyond = beyond.collect();
        let logs = logarithms(&self.scales, &counts);
        let fit = LinearFit { intercept: self.intercept, weights: self.weights.clone() };
        let features = PairFeatures::Sides { order: ORDER };
        let kept = |one: usize| fit.value(&features.row(&logs[one], &logs[1 - one])).max(LEAST_KEPT);
        Ok(PredictedPair { kept: [kept(0), kept(1)], beyond })
    }

    /// How far the weighted speed-up of a pair of new programs is from the predicted one at most,
    /// with this confidence. `None` if the training pairs are too few to tell.
    pub fn margin(&self, confidence: f64) -> Option<f64> {
        let programs = self.programs.len();
        let all = (0..programs).flat_map(|a| (a..programs).map(move |b| (a, b)));
        let sum = |(a, b): (usize, usize)| Some(self.residuals[a][b]? + self.residuals[b][a]?);
        let mut errors: Vec<f64> = all.filter_map(sum).map(f64::abs).collect();
        errors.sort_by(f64::total_cmp);
        // As if the new pair were one more of them.
        let rank = (confidence * (errors.len() + 1) as f64).ceil() as usize;
        errors.get(rank.max(1) - 1).copied()
    }

    /// The residuals of training program `one` beside `other`, of each; `None` if not measured.
    pub(crate) fn residual(&self, one: usize, other: usize) -> Option<f64> {
        self.residuals[one][other]
    }

    /// The root mean square of all residuals of one side.
    pub(crate) fn error(&self) -> f64 {
        let known = self.residuals.iter().flatten().flatten();
        let (sum, count) = known.fold((0.0, 0.0), |(sum, count), one| (sum + one * one, count + 1.0));
        f64::sqrt(sum / count)
    }
}

/// By program, each event per cycle.
pub(crate) fn per_cycle(
    events: &[CounterEvent],
    programs: &[(String, EventCounts)],
) -> Result<Vec<Vec<f64>>, CounterModelError> {
    let of_one = |(program, counts): &(String, EventCounts)| {
        let count = |&event: &CounterEvent| {
            let not_counted = CounterModelError::NotCounted { event, program: program.clone() };
            counts.per_cycle(event).filter(|count| count.is_finite()).ok_or(not_counted)
        };
        events.iter().map(count).collect()
    };
    programs.iter().map(of_one).collect()
}

fn event_scales(events: &[CounterEvent], counts: &[Vec<f64>]) -> Vec<EventScale> {
    let scale = |(at, &event): (usize, &CounterEvent)| {
        let mut all: Vec<f64> = counts.iter().map(|own| own[at]).collect();
        all.sort_by(f64::total_cmp);
        let median = (all[(all.len() - 1) / 2] + all[all.len() / 2]) / 2.0;
        // One in a million cycles, where most programs have none.
        let offset = 0.1 * median + 1e-6;
        EventScale { event, offset, range: [all[0], all[all.len() - 1]] }
    };
    events.iter().enumerate().map(scale).collect()
}

/// By program, the logarithm of each count, within the range of the training programs.
fn logarithms(scales: &[EventScale], counts: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let of_one = |own: &Vec<f64>| {
        let log = |(scale, count): (&EventScale, &f64)| {
            (count.clamp(scale.range[0], scale.range[1]) + scale.offset).ln()
        };
        scales.iter().zip(own).map(log).collect()
    };
    counts.iter().map(of_one).collect()
}

/// What a published rank says of two programs: higher is better. -23 L2 misses + 1.5 floating point
/// + 5.2 branches - misses of the trace cache, per cycle and summed over both ("Hardware monitoring
/// for SMT scheduling and path profiles", section 4).
///
/// # Errors
/// One of these was not counted.
pub fn published_rank(programs: [&(String, EventCounts); 2]) -> Result<f64, CounterModelError> {
    let weights = [
        (CounterEvent::L2Misses, -23.0),
        (CounterEvent::FpOperations, 1.5),
        (CounterEvent::Branches, 5.2),
        (CounterEvent::FrontEndMisses, -1.0),
    ];
    let counts = per_cycle(&weights.map(|(event, _)| event), programs.map(Clone::clone).as_slice())?;
    let rank = |own: &Vec<f64>| own.iter().zip(weights).map(|(count, (_, w))| w * count).sum::<f64>();
    Ok(counts.iter().map(rank).sum())
}
