//! The share of its speed that each program keeps next to each other one. A model predicts it from
//! runs alone.

use crate::counter_model::{CounterModel, CounterModelError, LEAST_KEPT, PredictedPair};
use crate::pairs_search::RecordedProgram;
use pinwise_campaign::{Record, settled};
use pinwise_measure::{AccompaniedRuns, CounterQuality, EventCounts, Setting};
use pinwise_topology::Random;

/// The share of its speed that each program keeps beside each, with the residuals of the model.
#[derive(Clone, Debug)]
pub(crate) struct PredictedKept {
    kept: Vec<Vec<f64>>,
    /// Of each training program beside each.
    residuals: Vec<Vec<f64>>,
    /// The root mean square of these.
    error: f64,
}

/// What counters saw of each program alone: what was recorded, or else over all of its runs. `None`
/// of one that was not counted.
pub fn counts_alone(
    records: &[Record],
    programs: usize,
    recorded: &[RecordedProgram],
) -> Vec<Option<EventCounts>> {
    let mut all: Vec<Option<EventCounts>> = vec![None; programs];
    for record in settled(records) {
        let Setting::Profile(parts) = &record.trial.setting else { continue };
        let ([part], Some(detail)) = (&parts[..], record.detail()) else { continue };
        let runs = detail.read::<AccompaniedRuns>().ok().filter(|_| record.outcome.is_ok());
        let counts = runs.and_then(|runs| runs.counts.into_iter().next());
        let (Some(counts), Some(sum)) = (counts, all.get_mut(part.instance)) else { continue };
        match sum {
            None => *sum = Some(counts),
            Some(sum) => {
                sum.seconds += counts.seconds;
                sum.counted = sum.counted.min(counts.counted);
                for (event, count) in counts.counts {
                    *sum.counts.entry(event).or_default() += count;
                }
            }
        }
    }
    for RecordedProgram { program, counts, .. } in recorded {
        if let Some(own) = all.get_mut(*program) {
            *own = Some(counts.clone());
        }
    }
    all
}

/// How far the counts of each program alone can be trusted; `None` of one without quanta. Its last
/// measurement has those of all earlier ones in that session.
pub(crate) fn counters_alone(
    records: &[Record],
    programs: usize,
    recorded: &[RecordedProgram],
) -> Vec<Option<CounterQuality>> {
    let mut all = vec![None; programs];
    for record in settled(records).filter(|record| record.outcome.is_ok()) {
        let Setting::Profile(parts) = &record.trial.setting else { continue };
        let ([part], Some(detail)) = (&parts[..], record.detail()) else { continue };
        let runs = detail.read::<AccompaniedRuns>().ok();
        let known = runs.and_then(|runs| runs.counters.into_iter().next());
        if let (Some(own), Some(known)) = (all.get_mut(part.instance), known) {
            *own = Some(known);
        }
    }
    for RecordedProgram { program, counters, .. } in recorded {
        if let Some(own) = all.get_mut(*program) {
            own.clone_from(counters);
        }
    }
    all
}

impl PredictedKept {
    /// Of that many programs, from their runs alone.
    ///
    /// # Errors
    /// An event that the model needs was not counted, or it does not know all residuals.
    pub(crate) fn of(
        model: &CounterModel,
        records: &[Record],
        programs: usize,
        recorded: &[RecordedProgram],
    ) -> Result<Self, CounterModelError> {
        let named = |(number, counts): (usize, Option<EventCounts>)| {
            (format!("program {}", number + 1), counts.unwrap_or_default())
        };
        let counts = counts_alone(records, programs, recorded).into_iter().enumerate();
        let counts: Vec<(String, EventCounts)> = counts.map(named).collect();
        let mut kept = vec![vec![1.0; programs]; programs];
        for one in 0..programs {
            for other in one..programs {
                let PredictedPair { kept: both, .. } =
                    model.predict([&counts[one], &counts[other]])?;
                (kept[one][other], kept[other][one]) = (both[0], both[1]);
            }
        }
        Ok(Self { kept, residuals: model.all_residuals()?, error: model.error() })
    }

    pub(crate) fn kept(&self, one: usize, other: usize) -> f64 {
        self.kept[one][other]
    }

    /// The relative standard error of the time of `one` beside `other`.
    pub(crate) fn error(&self, one: usize, other: usize) -> f64 {
        self.error / self.kept[one][other]
    }

    /// A training program for each program.
    pub(crate) fn lots(&self, random: &mut Random) -> Vec<usize> {
        let training = self.residuals.len() as u64;
        self.kept.iter().map(|_| random.below(training) as usize).collect()
    }

    /// What `one` keeps beside `other` in one possible truth.
    pub(crate) fn drawn(&self, one: usize, other: usize, lots: &[usize]) -> f64 {
        (self.kept[one][other] + self.residuals[lots[one]][lots[other]]).max(LEAST_KEPT)
    }
}
