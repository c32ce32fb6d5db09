//! The outcome of a placement search, computed from its records.

mod as_found;
mod note;

pub use note::OutcomeNote;

use crate::fresh_windows::FreshWindows;
use crate::search::history::History;
use crate::search::learned_predictor::Modeler;
use crate::search::residual_bound::ResidualBound;
use crate::search::solo_bound::{Alone, SoloBound};
use crate::statistics::{Estimate, TIMES_FOR_POWER, estimate, mean, t_quantile, variance};
use crate::{BlackboxForecast, Bound, PlacementQuestion, StopReason, StrategyReason, Unmeasured};
use num_bigint::BigUint;
use pinwise_campaign::{Purpose, Record, settled};
use pinwise_measure::{
    MemoryUse, ProgramNote, Setting, Unit, Workload, optional_value_or_text, values_or_text,
};
use pinwise_topology::{Assignment, Space};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::time::Duration;

/// An assignment and how it performed on fresh windows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlacedAssignment {
    /// In canonical form, leaf indices of the sharing tree.
    pub assignment: Assignment,
    /// On fresh windows. The interval is corrected for the choice among several (Bonferroni over
    /// all that got fresh windows). The mean is not: on average the mean of the best is a little
    /// too high.
    pub performance: Estimate,
}

/// How a reference assignment changed during the search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Drift {
    /// Relative change from the first to the last third of its measurements.
    pub change: f64,
    /// Whether it is more than its noise explains.
    pub significant: bool,
    /// The number of measurements.
    pub n: usize,
}

/// The cost of a search.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SearchCost {
    /// Measurements made, failed ones included.
    pub measurements: u64,
    /// The failed ones among these.
    pub failed: u64,
    /// Different assignments measured.
    pub classes: u64,
    /// Time measuring.
    pub time: Duration,
    /// The part of it in which the machine or the program stood still. It is what measurements
    /// took beyond the median, if they took many times the median.
    #[serde(default)]
    pub stalled: Duration,
}

/// The verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlacementVerdict {
    /// The best beats the baseline: the whole interval of the gain is above 0.
    Pin,
    /// Nothing beats the default. The gain's interval is below 0, or it contains 0 and is narrow
    /// enough. The limit is [`PlacementQuestion::within`] to either side.
    KeepDefault,
    /// The best or the baseline could not be measured, or not well enough to say.
    Undecided,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The verdict.
    #[serde(alias = "advice")]
    pub verdict: PlacementVerdict,
    /// The unit of performance.
    pub unit: Unit,
    /// The best assignment.
    pub best: Option<PlacedAssignment>,
    /// If there is no best, the assignment with the highest mean of the search's own windows. Its
    /// interval comes from the same windows. They chose it, so they overstate it.
    #[serde(default)]
    pub so_far: Option<PlacedAssignment>,
    /// The unpinned baseline on fresh windows of the same length.
    pub baseline: Option<Estimate>,
    /// The program before pinwise pinned anything for the first time; `None` if that was not
    /// measured.
    #[serde(default)]
    pub as_found: Option<Estimate>,
    /// best / baseline - 1 with its interval, if both were measured twice or more: (estimate,
    /// low, high). The interval is paired by round, and corrected for the best having been
    /// chosen among several.
    pub gain: Option<(f64, f64, f64)>,
    /// Every other assignment with fresh windows that do not differ from those of the best beyond
    /// chance, best mean first. An assignment without fresh windows is not among them, even if it
    /// was the best by earlier windows ([`StopReason::FewLeft`]).
    pub ties: Vec<PlacedAssignment>,
    /// The bound on the best possible.
    pub bound: Bound,
    /// Number of different assignments in the space (decimal, exact).
    pub assignments: String,
    /// How a reference changed during the search, if it was measured often enough.
    pub drift: Option<Drift>,
    /// Notes on what disturbed the measurements: a busy machine, a metric that may be a total.
    #[serde(default, deserialize_with = "values_or_text")]
    pub notes: Vec<ProgramNote>,
    /// The memory under which the best assignment was measured; `None` if that is not known.
    #[serde(default)]
    pub memory: Option<MemoryUse>,
    /// The cost of the search.
    pub cost: SearchCost,
    /// Why the last measurement that failed did.
    #[serde(default, deserialize_with = "optional_value_or_text")]
    pub failure: Option<Unmeasured>,
    /// The strategy used and why it was chosen.
    #[serde(deserialize_with = "values_or_text")]
    pub strategy: Vec<StrategyReason>,
    /// Why the search stopped.
    #[serde(deserialize_with = "values_or_text")]
    pub stopped_because: Vec<StopReason>,
    /// The predictions, if the search was by prediction.
    #[serde(default)]
    pub forecast: Option<BlackboxForecast>,
}

impl Outcome {
    /// Computes the outcome of `records`: a pure function. `strategy` and `stopped_because` are
    /// passed on for the user.
    ///
    /// Performances announced come from fresh windows alone ([`Purpose::Final`]); without any there
    /// is no best, and the verdict is [`PlacementVerdict::Undecided`]. Failed trials count in the
    /// cost and nowhere else.
    pub fn new(
        question: &PlacementQuestion,
        space: &Space,
        workload: &Workload,
        unit: &Unit,
        records: &[Record],
        strategy: Vec<StrategyReason>,
        stopped_because: Vec<StopReason>,
    ) -> Self {
        let mut history = History::default();
        settled(records).for_each(|record| history.learn(record));
        let fresh = FreshWindows::new(settled(records), &history.baseline);
        let confidence = question.confidence;
        let count = space.count();

        let leader = fresh.leader();
        let announce = |assignment: Assignment| {
            fresh
                .estimate(&assignment, confidence)
                .map(|performance| PlacedAssignment { assignment, performance })
        };
        let mut ties: Vec<PlacedAssignment> = leader
            .iter()
            .flat_map(|leader| fresh.ties(leader, confidence))
            .filter_map(announce)
            .collect();
        ties.sort_by(|a, b| b.performance.mean.total_cmp(&a.performance.mean));
        let gain = leader
            .as_ref()
            .and_then(|leader| fresh.gain(leader, confidence))
            .map(|ratio| (ratio.value - 1.0, ratio.low - 1.0, ratio.high - 1.0));
        let best = leader.and_then(announce);
        let so_far = if best.is_none() { so_far(&history, confidence) } else { None };
        let performance = best.as_ref().map(|best| best.performance.mean);
        let as_found = as_found(records, confidence);
        let baseline = fresh.baseline(confidence);
        let drift = Drift::of(records, confidence);
        let below_floor =
            stopped_because.iter().any(|why| matches!(why, StopReason::BelowFloor { .. }));
        let bound = if best.is_none() && below_floor {
            Bound::none(question)
        } else if BigUint::from(history.classes().count()) == count {
            Bound::exact(question, &history, &fresh, performance)
        } else {
            let modeler = Modeler::new(workload, space);
            let alone = SoloBound::new(question, workload, space)
                .and_then(|solo| solo.alone(&history, confidence));
            let residual_bound = ResidualBound::of(
                &history,
                &modeler,
                None,
                space,
                Alone::beside(alone, confidence),
                question.seed,
            );
            let announced = best.as_ref().map(|best| (best.performance.mean, best.performance.low));
            Bound::of_all(question, residual_bound, alone, &history, announced)
        };
        let cost = SearchCost::of(records);
        // The reason was decided before the first measurement, from an estimate.
        let all = BigUint::from(cost.classes) == count;
        let strategy = strategy.into_iter().map(|reason| match reason {
            StrategyReason::ExhaustiveAsked { assignments, .. } if all => {
                StrategyReason::ExhaustiveAsked { assignments, fits: true }
            }
            other => other,
        });
        Self {
            verdict: verdict(gain, question.within),
            unit: unit.clone(),
            best,
            so_far,
            baseline,
            as_found,
            gain,
            ties,
            bound,
            assignments: count.to_string(),
            drift,
            notes: Vec::new(),
            memory: None,
            cost,
            failure: records.iter().rev().find_map(|record| {
                let error = record.outcome.as_ref().err()?.message.clone();
                Some(Unmeasured::Failed { error })
            }),
            strategy: strategy.collect(),
            stopped_because,
            forecast: None,
        }
    }

    pub(crate) fn with_forecast(
        mut self,
        question: &PlacementQuestion,
        forecast: Option<BlackboxForecast>,
    ) -> Self {
        if let Some(forecast) = &forecast {
            let best = self.best.as_ref().map(|best| best.performance);
            let alone = Alone { sum: forecast.solo, high: forecast.solo_high, n: forecast.base };
            let alone = alone.widened(question);
            let best = best.map(|best| (best.mean, best.low));
            self.bound = self.bound.or_solo(alone, best).over_nodes(question);
        }
        Self { forecast, ..self }
    }

    /// Without a bound if the unpinned program contradicts it, or the changes of the metric in
    /// `records` do.
    pub(crate) fn cautious(mut self, records: &[Record]) -> Self {
        let best = self.best.as_ref().map(|best| best.performance);
        // The mean of the many unpinned windows. The few windows before pinning count with their
        // lower end.
        let unpinned = self.baseline.map_or(f64::NEG_INFINITY, |baseline| baseline.mean);
        let unpinned = self.as_found.map_or(unpinned, |found| unpinned.max(found.low));
        self.bound = self.bound.unless_doubtful(best.as_ref(), unpinned, still(records));
        self
    }
}

/// The baseline's windows from before the first pinned trial. Later ones begin where pinning left
/// the threads, and a scheduler may leave them there. Only these windows show a program that had
/// found a good placement alone.
fn as_found(records: &[Record], confidence: f64) -> Option<Estimate> {
    let undisturbed = records.iter().take_while(|record| record.trial.setting == Setting::Unpinned);
    let values: Vec<f64> =
        undisturbed.filter_map(|record| Some(record.outcome.as_ref().ok()?.performance)).collect();
    estimate(&values, confidence)
}

/// The assignment that leads in the windows of the search.
fn so_far(history: &History, confidence: f64) -> Option<PlacedAssignment> {
    let (assignment, _) = history.ranking().into_iter().next()?;
    let performance = estimate(&history.class(assignment)?.windows, confidence)?;
    Some(PlacedAssignment { assignment: assignment.clone(), performance })
}

/// The share of the windows measured in which the metric did not move.
fn still(records: &[Record]) -> f64 {
    let measured = records.iter().filter_map(|record| record.outcome.as_ref().ok());
    let (still, all) = measured.fold((0, 0), |(still, all), window| {
        (still + u32::from(window.performance == 0.0), all + 1)
    });
    f64::from(still) / f64::max(f64::from(all), 1.0)
}

/// The verdict by the gain. The initial windows have no vote: they show one placement, which the
/// scheduler may leave a moment later. There are many unpinned windows in between.
fn verdict(gain: Option<(f64, f64, f64)>, within: f64) -> PlacementVerdict {
    gain.map_or(PlacementVerdict::Undecided, |(_, low, high)| {
        PlacementVerdict::by(low, high, within)
    })
}

impl PlacementVerdict {
    /// The factor by which more measurements would probably decide by this gain (estimate, low,
    /// high). An interval is half as wide after four times the measurements. The estimate may fall:
    /// see `TIMES_FOR_POWER`.
    pub fn times_to_decide((mean, low, high): (f64, f64, f64), within: f64) -> f64 {
        // The sign of a zero would make infinity negative.
        let rises = (mean - low) / mean.max(0.0).abs();
        let falls = (high - mean) / (-mean).max(0.0).abs();
        let narrows = (high - low) / (2.0 * within);
        TIMES_FOR_POWER * rises.min(falls).min(narrows).powi(2)
    }

    /// The verdict by the interval of a gain over the default.
    pub(crate) fn by(low: f64, high: f64, within: f64) -> Self {
        match (low, high) {
            (low, _) if low > 0.0 => Self::Pin,
            (low, high) if high <= 0.0 || high - low <= 2.0 * within => Self::KeepDefault,
            _ => Self::Undecided,
        }
    }
}

/// A measurement whose windows take more than this many times the median stood still. A choice: no
/// assignment of a usable program is that slow.
const STALL: u32 = 10;

impl SearchCost {
    fn of(records: &[Record]) -> Self {
        let ends = records.iter().map(|record| record.elapsed);
        let begins = std::iter::once(Duration::ZERO).chain(ends.clone());
        // A failure may take no time at all.
        let took: Vec<(Duration, f64)> = ends
            .zip(begins)
            .zip(records)
            .filter(|(_, record)| record.outcome.is_ok())
            .map(|((end, begin), record)| (end.saturating_sub(begin), record.trial.effort.windows))
            .collect();
        let median = |all: &mut dyn Iterator<Item = (Duration, f64)>| {
            let mut all: Vec<Duration> =
                all.map(|(took, windows)| took.div_f64(windows.max(1.0))).collect();
            all.sort_unstable();
            all.get(all.len() / 2).copied().unwrap_or_default()
        };
        let mut measured = records.iter().filter_map(|record| {
            let measured = record.outcome.as_ref().ok()?;
            Some((measured.duration, record.trial.effort.windows))
        });
        // On several nodes most results are there before their turn, and take no time then.
        let median = median(&mut took.iter().copied()).max(median(&mut measured));
        let beyond = |&(took, windows): &(Duration, f64)| {
            let usual = median.mul_f64(windows.max(1.0));
            (!usual.is_zero() && took > STALL * usual).then(|| took - usual)
        };
        let classes: BTreeSet<&Setting> = records
            .iter()
            .filter(|record| {
                record.outcome.is_ok() && matches!(record.trial.setting, Setting::Pinned(_))
            })
            .map(|record| &record.trial.setting)
            .collect();
        Self {
            measurements: records.len() as u64,
            failed: records.iter().filter(|record| record.outcome.is_err()).count() as u64,
            classes: classes.len() as u64,
            time: records.last().map_or(Duration::ZERO, |record| record.elapsed),
            stalled: took.iter().filter_map(beyond).sum(),
        }
    }
}

/// Measurements of the reference that are needed to separate drift from noise.
const LEAST_REFERENCES: usize = 6;

impl Drift {
    /// Compares the first and the last third of the reference's measurements (Welch's t test).
    fn of(records: &[Record], confidence: f64) -> Option<Self> {
        let values: Vec<f64> = records
            .iter()
            .filter(|record| record.trial.purpose == Purpose::Reference)
            .filter_map(|record| Some(record.outcome.as_ref().ok()?.performance))
            .collect();
        let third = values.len() / 3;
        if values.len() < LEAST_REFERENCES || mean(&values[..third]) == 0.0 {
            return None;
        }
        let (first, last) = (&values[..third], &values[values.len() - third..]);
        let difference = mean(last) - mean(first);
        let (a, b) = (variance(first) / third as f64, variance(last) / third as f64);
        // Welch-Satterthwaite degrees of freedom; without any variance every difference counts.
        let degrees = (a + b).powi(2) * (third - 1) as f64 / (a * a + b * b);
        let explained =
            if a + b > 0.0 { t_quantile(confidence, degrees) * (a + b).sqrt() } else { 0.0 };
        Some(Self {
            change: difference / mean(first),
            significant: difference.abs() > explained,
            n: values.len(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_campaign::Trial;
    use pinwise_measure::{Effort, MeasureError, Measurement};

    #[test]
    fn without_a_gain_the_width_of_its_interval_decides() {
        assert_eq!(verdict(Some((0.0, -0.01, 0.01)), 0.025), PlacementVerdict::KeepDefault);
        assert_eq!(verdict(Some((-0.1, -0.3, -0.01)), 0.025), PlacementVerdict::KeepDefault);
        assert_eq!(verdict(Some((0.1, -0.2, 0.4)), 0.025), PlacementVerdict::Undecided);
        assert_eq!(verdict(None, 0.025), PlacementVerdict::Undecided);
        let times = |gain| PlacementVerdict::times_to_decide(gain, 0.025);
        assert!((times((0.1, -0.2, 0.4)) - 18.0).abs() < 1e-9, "the lower end comes above 0");
        assert!((times((-0.1, -0.4, 0.2)) - 18.0).abs() < 1e-9, "the upper end comes below 0");
        assert!((times((0.0, -0.05, 0.05)) - 8.0).abs() < 1e-9, "the interval is narrow enough");
    }

    #[test]
    fn a_measurement_in_which_the_machine_stood_still_is_told_from_slow_ones() {
        // The seconds at which each measurement ended.
        let stalled_of = |own: Duration, measured: bool, last_windows: f64, ends: &[u64]| {
            let record = |(index, &end): (usize, &u64)| Record {
                number: 0,
                trial: Trial {
                    setting: Setting::Unpinned,
                    purpose: Purpose::Baseline,
                    effort: match index + 1 == ends.len() {
                        true => Effort { windows: last_windows },
                        false => Effort::default(),
                    },
                },
                outcome: match measured {
                    true => Ok(Measurement::new(1.0, own)),
                    false => Err(MeasureError::interrupted()),
                },
                elapsed: Duration::from_secs(end),
            };
            let cost = SearchCost::of(&ends.iter().enumerate().map(record).collect::<Vec<_>>());
            assert_eq!(cost.time.as_secs(), ends.last().copied().unwrap_or(0));
            cost.stalled.as_secs()
        };
        let stalled = |measured, last_windows, ends: &[u64]| {
            stalled_of(Duration::ZERO, measured, last_windows, ends)
        };
        assert_eq!(stalled(true, 1.0, &[1, 2, 92, 93, 94]), 89);
        assert_eq!(stalled(true, 1.0, &[1, 2, 12, 13, 14]), 0, "ten times the median");
        let ends = &[1, 2, 3, 23];
        assert_eq!([1.0, 20.0].map(|windows| stalled(true, windows, ends)), [19, 0]);
        assert_eq!(stalled(false, 1.0, &[1, 2, 92, 93, 94]), 0, "failures take any time");
        assert_eq!((stalled(true, 1.0, &[0, 0, 5]), stalled(true, 1.0, &[])), (0, 0));
        // On two nodes, every second result is there before its turn.
        let ends = &[20, 20, 40, 40, 60, 60, 61];
        assert_eq!(stalled_of(Duration::from_secs(20), true, 1.0, ends), 0);
    }

    #[test]
    fn windows_in_which_the_metric_stood_still_are_counted_among_those_measured() {
        let record = |performance: Option<f64>| {
            let (setting, purpose) = (Setting::Unpinned, Purpose::Baseline);
            let trial = Trial { setting, purpose, effort: Effort::default() };
            let outcome = match performance {
                Some(performance) => Ok(Measurement::new(performance, Duration::ZERO)),
                None => Err(MeasureError::interrupted()),
            };
            Record { number: 0, trial, outcome, elapsed: Duration::ZERO }
        };
        assert_eq!(still(&[Some(0.0), None, Some(25.0), Some(0.0), Some(0.0)].map(record)), 0.75);
        assert_eq!(still(&[]), 0.0);
    }
}
