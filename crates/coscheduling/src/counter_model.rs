//! The speed-up of a pair from what counters saw of each program alone.
//!
//! **Terms.** What a program *keeps* is its speed beside another one, as a share of its speed
//! alone. The weighted speed-up of a pair is the sum of what both keep.
//!
//! **Problem.** 24 programs make 276 pairs. Runs alone are 24. If these tell which pairs are good,
//! most pairs need no run.
//!
//! **Method.** Ridge regression predicts what a program keeps ([`PairFeatures::Sides`]). The
//! features are the logarithms of the events per cycle of both programs, and all their products.
//! The penalty minimises the error on programs that were left out, with all of their pairs. Leaving
//! out a single row would show nothing: both programs would still be in other rows.
//!
//! The *residuals* are those of fits without either program of the pair. Their quantile is the
//! interval of a pair of two new programs, as in the plain jackknife, by program. It lacks the
//! guarantee of the jackknife+ (R. F. Barber, E. J. Candès, A. Ramdas, R. J. Tibshirani,
//! "Predictive inference with the jackknife+", Annals of Statistics 49, 2021). The penalty, the
//! offsets and the ranges of counts come from all programs. A fit without a program still uses
//! them. So residuals may be too small. The lab checks how often the interval holds.
//!
//! The published model ([`PairFeatures::Sums`]) takes sums over both programs, and products of
//! different sums. Its source is "Hardware monitoring for SMT scheduling and path profiles",
//! section 4. Its "256 terms" cannot be reconstructed: five sums have 32 products, ten counts
//! 1,024.
//!
//! **Limits.** A count outside the range of the training programs counts as the nearest end of that
//! range. The prediction names the event. Counters do not show how large data are. Two programs
//! with the same counts may need different parts of a cache.

mod pair_regression;

pub use pair_regression::{FitQuality, PairFeatures, quality};

use pair_regression::PairRegression;
use pinwise_measure::{CounterEvent, EventCounts};
use pinwise_prediction::LinearFit;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A program keeps at least this, whatever a model says: a time is no negative number.
pub(crate) const LEAST_KEPT: f64 = 0.05;
/// And at most this. Nothing is much faster beside another program.
const MOST_KEPT: f64 = 2.0;
/// A larger number in a stored model is no result of a fit.
const LARGEST: f64 = 1e6;
/// The order of the products in a model for predictions.
const ORDER: usize = 2;

/// The measurement of two programs on one core.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrainingPair {
    /// Their places among the training programs.
    pub programs: [usize; 2],
    /// What each keeps of its speed.
    pub kept: [f64; 2],
}

impl TrainingPair {
    /// All pairs of this many programs. Each program is paired with itself, too. `kept` is the
    /// share of its speed that the first program keeps beside the second one.
    pub fn all(programs: usize, kept: impl Fn(usize, usize) -> f64) -> Vec<Self> {
        let all = (0..programs).flat_map(|one| (one..programs).map(move |other| [one, other]));
        all.map(|[one, other]| Self {
            programs: [one, other],
            kept: [kept(one, other), kept(other, one)],
        })
        .collect()
    }
}

/// A fitted model. One that was stored is read with all checks, also inside a question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "StoredModel")]
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
    /// What each training program (row) keeps beside each (column), minus the prediction of a fit
    /// without both. `None` only of a program beside itself, if that was not measured.
    residuals: Vec<Vec<Option<f64>>>,
}

/// The fields of a [`CounterModel`], before the checks.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredModel {
    version: u32,
    cpu: String,
    programs: Vec<String>,
    pairs: usize,
    scales: Vec<EventScale>,
    penalty: f64,
    intercept: f64,
    weights: Vec<f64>,
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
    #[error("this is no model of pairs: {0}")]
    Syntax(String),
    /// It is of another version.
    #[error(
        "the model has version {found}, and this pinwise reads {}: save it again with \
             --save-model",
        CounterModel::VERSION
    )]
    Version {
        /// Its version.
        found: u32,
    },
    /// Its numbers do not belong together.
    #[error("the {field} do not fit the rest of the model: save it again with --save-model")]
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
    #[error(
        "{programs} programs are too few for a model: measure the pairs of {} or more",
        CounterModel::LEAST_PROGRAMS
    )]
    TooFew {
        /// The programs.
        programs: usize,
    },
    /// A pair was not measured.
    #[error(
        "{} beside {} was not measured, and a model needs every pair: save one with a larger \
         --budget",
        .programs[0],
        .programs[1]
    )]
    NotMeasured {
        /// The two programs.
        programs: [String; 2],
    },
}

/// How far the weighted speed-up of a pair of new programs is from the predicted one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PairMargin {
    /// At most this, with the confidence that was asked for.
    Confident(f64),
    /// The largest error of all training programs. They are too few for the confidence: of n
    /// programs it is at most n / (n + 1).
    LargestError(f64),
}

impl PairMargin {
    /// The distance, a weighted speed-up.
    pub fn value(self) -> f64 {
        match self {
            Self::Confident(value) | Self::LargestError(value) => value,
        }
    }
}

/// What two programs on one core keep, as predicted.
#[derive(Clone, Debug, PartialEq)]
pub struct PredictedPair {
    /// What each keeps.
    pub kept: [f64; 2],
    /// Events that one of both has more or less often than every training program. There the model
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
    /// saw of it alone. `pairs` are all pairs of two of them. A model for intervals also needs each
    /// program beside itself.
    ///
    /// # Errors
    /// An event or a pair of two programs is missing, or the pairs are too few.
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
        let names: Vec<String> = programs.iter().map(|(name, _)| name.clone()).collect();
        for (a, row) in residuals.iter().enumerate() {
            if let Some(b) = (0..names.len()).find(|&b| b != a && row[b].is_none()) {
                let programs = [a, b].map(|program| names[program].clone());
                return Err(CounterModelError::NotMeasured { programs });
            }
        }
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
        struct ModelVersion {
            version: u32,
        }
        let syntax = |error: serde_json::Error| CounterModelError::Syntax(error.to_string());
        let ModelVersion { version: found } = serde_json::from_str(text).map_err(syntax)?;
        if found != Self::VERSION {
            return Err(CounterModelError::Version { found });
        }
        serde_json::from_str::<StoredModel>(text).map_err(syntax)?.try_into()
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

    /// What two programs on one core keep. Each is a name and its counts alone.
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
        let kept = |one: usize| {
            fit.value(&features.row(&logs[one], &logs[1 - one])).clamp(LEAST_KEPT, MOST_KEPT)
        };
        Ok(PredictedPair { kept: [kept(0), kept(1)], beyond })
    }

    /// The largest error of a predicted weighted speed-up, for a pair of new programs, with this
    /// confidence.
    pub fn margin(&self, confidence: f64) -> PairMargin {
        let programs = self.programs.len();
        // A program beside itself is no pair of two new programs.
        let all = (0..programs).flat_map(|a| (a + 1..programs).map(move |b| (a, b)));
        let sum = |(a, b): (usize, usize)| Some(self.residuals[a][b]? + self.residuals[b][a]?);
        let mut errors: Vec<f64> = all.filter_map(sum).map(f64::abs).collect();
        errors.sort_by(f64::total_cmp);
        // As if the new program were one more of them. Pairs are more, but those of one program are
        // alike.
        let share = confidence * (programs + 1) as f64 / programs as f64;
        let rank = (share * errors.len() as f64).ceil() as usize;
        let value = errors[rank.clamp(1, errors.len()) - 1];
        // Rounding alone takes no confidence away.
        if share > 1.0 + 1e-9 {
            PairMargin::LargestError(value)
        } else {
            PairMargin::Confident(value)
        }
    }

    /// The residuals of each training program (row) beside each (column).
    ///
    /// # Errors
    /// A program was not measured beside itself.
    pub fn all_residuals(&self) -> Result<Vec<Vec<f64>>, CounterModelError> {
        let known = |(a, b): (usize, usize)| {
            let programs = || [a, b].map(|program| self.programs[program].clone());
            self.residuals[a][b]
                .ok_or_else(|| CounterModelError::NotMeasured { programs: programs() })
        };
        let all = 0..self.programs.len();
        all.clone().map(|a| all.clone().map(|b| known((a, b))).collect()).collect()
    }

    /// The root mean square of all residuals of one side.
    pub(crate) fn error(&self) -> f64 {
        let known = self.residuals.iter().flatten().flatten();
        let (sum, count) =
            known.fold((0.0, 0.0), |(sum, count), one| (sum + one * one, count + 1.0));
        f64::sqrt(sum / count)
    }
}

impl TryFrom<StoredModel> for CounterModel {
    type Error = CounterModelError;

    fn try_from(stored: StoredModel) -> Result<Self, CounterModelError> {
        let StoredModel { version, cpu, programs, pairs, scales, penalty, .. } = stored;
        let StoredModel { intercept, weights, residuals, .. } = stored;
        if version != Self::VERSION {
            return Err(CounterModelError::Version { found: version });
        }
        let count = programs.len();
        if count < Self::LEAST_PROGRAMS {
            return Err(CounterModelError::TooFew { programs: count });
        }
        let inconsistent = |field| Err(CounterModelError::Inconsistent { field });
        let finite = |numbers: &[f64]| numbers.iter().all(|number| number.abs() <= LARGEST);
        let is_scale = |scale: &EventScale| {
            scale.event != CounterEvent::Cycles
                && scale.offset > 0.0
                && finite(&[scale.offset, scale.range[0], scale.range[1]])
                && 0.0 <= scale.range[0]
                && scale.range[0] <= scale.range[1]
        };
        // Each event once: so the terms are few, however long the text is.
        let events: BTreeSet<CounterEvent> = scales.iter().map(|scale| scale.event).collect();
        if scales.is_empty() || events.len() != scales.len() || !scales.iter().all(is_scale) {
            return inconsistent("events");
        }
        let terms = PairFeatures::Sides { order: ORDER }.terms(scales.len());
        if weights.len() != terms || !finite(&weights) || !finite(&[intercept]) {
            return inconsistent("weights");
        }
        if residuals.len() != count || residuals.iter().any(|row| row.len() != count) {
            return inconsistent("residuals");
        }
        let model =
            Self { version, cpu, programs, pairs, scales, penalty, intercept, weights, residuals };
        if !model.all_residuals()?.iter().all(|row| finite(row)) {
            return inconsistent("residuals");
        }
        Ok(model)
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

/// What a published rank says of two programs; higher is better.
///
/// Events count per cycle, summed over both. Branches weigh 5.2, floating point operations 1.5, L2
/// misses -23, and misses of the trace cache -1. Source: "Hardware monitoring for SMT scheduling
/// and path profiles", section 4.
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
    let counts =
        per_cycle(&weights.map(|(event, _)| event), programs.map(Clone::clone).as_slice())?;
    let rank =
        |own: &Vec<f64>| own.iter().zip(weights).map(|(count, (_, w))| w * count).sum::<f64>();
    Ok(counts.iter().map(rank).sum())
}

#[cfg(test)]
pub(crate) mod fixture {
    use super::*;
    use pinwise_topology::Random;

    /// Programs with counts at random. What one keeps beside another follows from the counts of
    /// both, and `noise`.
    pub(crate) struct CountedWorld {
        pub(crate) programs: Vec<(String, EventCounts)>,
        pub(crate) kept: Vec<Vec<f64>>,
    }

    impl CountedWorld {
        pub(crate) fn new(count: usize, noise: f64, random: &mut Random) -> Self {
            let cycles = 1e6;
            let mut program = |number: usize| {
                // A factor of 1 to 100.
                let mut event = |event| (event, cycles * 1e-3 * 100f64.powf(random.unit()));
                let mut counts: std::collections::BTreeMap<CounterEvent, f64> =
                    CounterModel::EVENTS.into_iter().map(&mut event).collect();
                counts.insert(CounterEvent::Cycles, cycles);
                (format!("p{number}"), EventCounts { seconds: 1.0, counts, counted: 1.0 })
            };
            let programs: Vec<(String, EventCounts)> = (0..count).map(&mut program).collect();
            let law = |one: usize, other: usize| {
                let log = |program: usize, event| {
                    let counts: &EventCounts = &programs[program].1;
                    (counts.per_cycle(event).unwrap() * 1e2).ln() / 2.3
                };
                let misses = |program| log(program, CounterEvent::L2Misses);
                0.7 - 0.08 * misses(other) - 0.05 * misses(one) * misses(other)
                    + 0.05 * log(one, CounterEvent::Instructions)
            };
            let mut normal = || (0..12).map(|_| random.unit()).sum::<f64>() - 6.0;
            let mut kept = vec![vec![0.0; count]; count];
            for (one, row) in kept.iter_mut().enumerate() {
                for (other, kept) in row.iter_mut().enumerate() {
                    *kept = law(one, other) + noise * normal();
                }
            }
            Self { programs, kept }
        }

        /// Each pair of the first `count` programs.
        pub(crate) fn pairs(&self, count: usize) -> Vec<TrainingPair> {
            TrainingPair::all(count, |one, other| self.kept[one][other])
        }

        pub(crate) fn model(&self, count: usize) -> CounterModel {
            let programs = &self.programs[..count];
            CounterModel::fit("cpu", &CounterModel::EVENTS, programs, &self.pairs(count)).unwrap()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::fixture::CountedWorld;
    use super::*;
    use crate::pairs_search::PairsQuestion;
    use pinwise_topology::Random;

    #[test]
    fn a_law_of_the_counts_is_found_and_predicts_programs_that_were_left_out() {
        let world = CountedWorld::new(20, 0.0, &mut Random::new(3));
        let made = |features, penalty| {
            let pairs = world.pairs(20);
            quality(features, &CounterModel::EVENTS, &world.programs, &pairs, penalty).unwrap()
        };
        let sides = made(PairFeatures::Sides { order: 2 }, None);
        assert_eq!(sides.terms, 12 + 78);
        assert!(sides.r2 > 0.98 && sides.out_of_sample.unwrap() > 0.9, "{sides:?}");
        // Sums of six events, and every product of different ones.
        let sums = made(PairFeatures::Sides { order: 1 }, Some(0.0));
        assert!(sums.terms == 12 && sums.r2 < sides.r2);
        assert_eq!(PairFeatures::Sums { order: 5 }.terms(5), 31);
    }

    #[test]
    fn without_a_law_the_sample_is_described_and_nothing_is_predicted() {
        let mut random = Random::new(4);
        let world = CountedWorld::new(12, 0.0, &mut random);
        let mut pairs = world.pairs(12);
        pairs.iter_mut().for_each(|pair| pair.kept = [0.5 + random.unit(), 0.5 + random.unit()]);
        let features = PairFeatures::Sums { order: 3 };
        let made =
            quality(features, &CounterModel::EVENTS, &world.programs, &pairs, Some(0.0)).unwrap();
        assert_eq!(made.terms, 41);
        assert!(made.r2 > 0.4 && made.adjusted.unwrap() < made.r2 - 0.2, "{made:?}");
        assert!(made.out_of_sample.unwrap() < 0.0, "{made:?}");
    }

    #[test]
    fn ninety_percent_intervals_hold_for_pairs_of_new_programs() {
        let mut random = Random::new(5);
        let (mut inside, mut all) = (0, 0);
        for _ in 0..30 {
            let world = CountedWorld::new(20, 0.06, &mut random);
            let model = world.model(16);
            let PairMargin::Confident(margin) = model.margin(0.9) else { panic!("16 are enough") };
            for (one, other) in [(16, 17), (18, 19), (16, 19), (17, 18)] {
                let both = [&world.programs[one], &world.programs[other]];
                let predicted = model.predict(both).unwrap().weighted_speedup();
                let value = world.kept[one][other] + world.kept[other][one];
                inside += usize::from((value - predicted).abs() <= margin);
                all += 1;
            }
        }
        let share = inside as f64 / f64::from(all);
        assert!((0.84..=0.96).contains(&share), "{share} of {all}");
    }

    #[test]
    fn a_model_is_read_back_and_a_broken_one_is_refused() {
        let model = CountedWorld::new(8, 0.02, &mut Random::new(6)).model(8);
        assert_eq!(CounterModel::parse(&model.text()).unwrap(), model);
        let changed = |from: &str, to: &str| {
            let text = model.text();
            assert!(text.contains(from), "{from}");
            CounterModel::parse(&text.replacen(from, to, 1)).unwrap_err()
        };
        let version = changed("\"version\":1", "\"version\":2");
        assert_eq!(version, CounterModelError::Version { found: 2 });
        for (from, to, field) in [
            ("\"programs\":[\"p0\",", "\"programs\":[", "residuals"),
            ("\"weights\":[", "\"weights\":[0.5,", "weights"),
            ("\"offset\":", "\"offset\":-", "events"),
        ] {
            assert_eq!(changed(from, to), CounterModelError::Inconsistent { field });
        }
        let events = CounterModelError::Inconsistent { field: "events" };
        for event in ["cycles", "branches"] {
            assert_eq!(changed("\"instructions\"", &format!("\"{event}\"")), events);
        }
        let unknown = {
            let mut model = model.clone();
            model.residuals[2][2] = None;
            CounterModel::parse(&model.text()).unwrap_err()
        };
        let programs = ["p2", "p2"].map(str::to_owned);
        assert_eq!(unknown, CounterModelError::NotMeasured { programs });
        let syntax = changed("\"cpu\"", "\"cpus\"");
        assert!(matches!(syntax, CounterModelError::Syntax(_)), "{syntax}");
        let other = model.check_cpu("mine").unwrap_err().to_string();
        assert!(other.contains("the model is of cpu, and this machine is mine"), "{other}");
        assert_eq!(model.check_cpu("cpu"), Ok(()));
    }

    #[test]
    fn a_model_inside_a_stored_question_is_checked_too() {
        let model = CountedWorld::new(8, 0.02, &mut Random::new(6)).model(8);
        let question = PairsQuestion { model: Some(model), ..PairsQuestion::default() };
        let mut stored = serde_json::to_value(&question).unwrap();
        let read = |stored: &serde_json::Value| {
            serde_json::from_value::<PairsQuestion>(stored.clone()).map_err(|one| one.to_string())
        };
        assert_eq!(read(&stored), Ok(question));
        stored["model"]["residuals"] = serde_json::json!([]);
        let error = read(&stored).unwrap_err();
        assert!(error.contains("the residuals do not fit the rest of the model"), "{error}");
        stored["model"]["programs"] = serde_json::json!([]);
        let error = read(&stored).unwrap_err();
        assert!(error.contains("0 programs are too few"), "{error}");
    }

    #[test]
    fn a_model_needs_every_pair() {
        let world = CountedWorld::new(8, 0.02, &mut Random::new(8));
        let without = |missing: [usize; 2]| {
            let mut pairs = world.pairs(8);
            pairs.retain(|pair| pair.programs != missing);
            CounterModel::fit("cpu", &CounterModel::EVENTS, &world.programs, &pairs)
        };
        let not_measured = |programs: [&str; 2]| CounterModelError::NotMeasured {
            programs: programs.map(str::to_owned),
        };
        assert_eq!(without([2, 5]).unwrap_err(), not_measured(["p2", "p5"]));
        // Such a model predicts, but has no intervals.
        let error = without([3, 3]).unwrap().all_residuals().unwrap_err();
        assert_eq!(error, not_measured(["p3", "p3"]));
    }

    #[test]
    fn few_programs_show_their_largest_error_and_not_a_confidence() {
        let world = CountedWorld::new(9, 0.05, &mut Random::new(9));
        let mut model = world.model(9);
        let largest = |model: &CounterModel| {
            let residuals = model.all_residuals().unwrap();
            let pairs = (0..9).flat_map(|a| (a + 1..9).map(move |b| (a, b)));
            pairs.map(|(a, b)| (residuals[a][b] + residuals[b][a]).abs()).fold(0.0, f64::max)
        };
        let error = largest(&model);
        assert_eq!(model.margin(0.91), PairMargin::LargestError(error));
        // Nine tenths is what nine programs can show.
        assert_eq!(model.margin(0.9), PairMargin::Confident(error));
        assert!(model.margin(0.5).value() < error);
        // No program is beside itself in a pair of two new ones.
        model.residuals[4][4] = Some(50.0);
        assert_eq!(model.margin(0.91).value(), error);
    }

    #[test]
    fn counts_beyond_those_of_training_are_named_and_count_as_the_nearest() {
        let world = CountedWorld::new(9, 0.02, &mut Random::new(7));
        let model = world.model(8);
        let inside = [&world.programs[0], &world.programs[1]];
        assert_eq!(model.predict(inside).unwrap().beyond, []);
        let with = |misses: f64| {
            let mut other = world.programs[1].clone();
            other.1.counts.insert(CounterEvent::L2Misses, misses);
            model.predict([&world.programs[0], &other]).unwrap()
        };
        assert_eq!(with(9e5).beyond, [CounterEvent::L2Misses]);
        assert_eq!(with(9e5).kept, with(5e5).kept);
        let mut uncounted = world.programs[1].clone();
        uncounted.1.counts.remove(&CounterEvent::L2Misses);
        let error = model.predict([&world.programs[0], &uncounted]).unwrap_err();
        let (event, program) = (CounterEvent::L2Misses, "p1".to_owned());
        assert_eq!(error, CounterModelError::NotCounted { event, program });
        let few = CounterModel::fit("cpu", &CounterModel::EVENTS, &world.programs[..5], &[]);
        assert_eq!(few.unwrap_err(), CounterModelError::TooFew { programs: 5 });
    }

    #[test]
    fn the_published_rank_is_that_computed_by_hand() {
        let program = |misses: f64| {
            let counts = [
                (CounterEvent::Cycles, 100.0),
                (CounterEvent::L2Misses, misses),
                (CounterEvent::FpOperations, 20.0),
                (CounterEvent::Branches, 10.0),
                (CounterEvent::FrontEndMisses, 5.0),
            ];
            (String::new(), EventCounts { seconds: 1.0, counts: counts.into(), counted: 1.0 })
        };
        let rank = published_rank([&program(1.0), &program(2.0)]).unwrap();
        let expected = -23.0 * 0.03 + 1.5 * 0.4 + 5.2 * 0.2 - 0.1;
        assert!((rank - expected).abs() < 1e-12, "{rank}");
    }
}
