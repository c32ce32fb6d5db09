//! The loop that ties a strategy, a testbed and the store together.

mod ahead;

use crate::store::assignment_text;
use crate::{CampaignId, Journal, Record, Store, StoreError, Trial};
use ahead::Ahead;
use pinwise_measure::{MeasureError, Measurement, Met, Retry, Testbed, Time};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How often a trial is made before its failure counts, where another try makes sense.
pub const TRIES: usize = 3;

/// How often what a testbed met is kept while it measures: looking costs a little time, and keeping
/// a write.
const KEEPING: Duration = Duration::from_secs(1);

/// What a strategy wants.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Measure this.
    Measure(Trial),
    /// Nothing more; the reason, as a sentence for the user.
    Stop(String),
    /// No answer can come of what was measured; why, as a sentence for the user.
    Fail(String),
}

/// Proposes the next trial from what is known so far.
pub trait Strategy {
    /// The next step. `history` holds every record so far. Each call comes with the outcome of what
    /// the call before proposed: one record more, or up to [`TRIES`] where tries failed and
    /// were repeated, also when a campaign is resumed.
    fn step(&mut self, history: &[Record]) -> Step;

    /// What it will probably propose after the trial it proposed last, at most that many. Where
    /// time is virtual these are measured at once with that trial; one foreseen wrongly costs
    /// its measurement and changes nothing else.
    fn foresee(&self, _most: usize) -> Vec<Trial> {
        Vec::new()
    }
}

/// How a run of a campaign ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// The strategy was done; its reason.
    Finished(String),
    /// Asked to stop; resumable.
    Interrupted,
    /// The testbed cannot go on; resumable once the cause is gone.
    Failed(String),
}

/// Runs campaign `id` until its strategy stops, `stop` says so, or the testbed cannot go on.
/// Recorded trials are replayed into the strategy first, so that a resumed campaign goes on as if
/// nothing had happened; a history that this strategy would not have made is refused.
///
/// `clock` tells the time since any fixed moment; the time from one measurement's end to the next
/// one's is recorded. Where the testbed's time is virtual, a measurement's own duration is recorded
/// instead, and several are made at once ([`Strategy::foresee`]); the records are the same as if
/// each had been made alone. `observe` is called with each record made now, not with those
/// replayed.
///
/// A failure that another try may mend ([`Retry::Same`]) is recorded and tried again, [`TRIES`]
/// times in all; one that concerns the setting ([`Retry::Other`]) is recorded and left to the
/// strategy; so is one that came because the time was over ([`MeasureError::expired`]). One that
/// ends everything ([`Retry::Never`]), like an interruption, says nothing about the setting and is
/// not recorded: the same trial comes first on resumption.
///
/// What the testbed meets meanwhile ([`Testbed::met`]) is kept with the campaign, about once a
/// second and at the end, so that a campaign that is killed and resumed knows what its measurements
/// before met ([`Store::met`]).
///
/// The campaign is noted as open while it runs. The caller notes how it ended
/// ([`Store::conclude`]).
pub fn run(
    store: &mut Store,
    id: CampaignId,
    strategy: &mut dyn Strategy,
    testbed: &mut dyn Testbed,
    clock: &dyn Fn() -> Duration,
    stop: &dyn Fn() -> bool,
    observe: &mut dyn FnMut(&Record),
) -> Result<(Ending, Vec<Record>), StoreError> {
    drive(&mut store.journal(id)?, strategy, testbed, clock, stop, observe)
}

/// As [`run()`], with the records in any [`Journal`].
pub fn drive(
    journal: &mut dyn Journal,
    strategy: &mut dyn Strategy,
    testbed: &mut dyn Testbed,
    clock: &dyn Fn() -> Duration,
    stop: &dyn Fn() -> bool,
    observe: &mut dyn FnMut(&Record),
) -> Result<(Ending, Vec<Record>), StoreError> {
    // What can be measured again bit for bit need not wait for the disk.
    journal.sync_each(testbed.time() == Time::Real)?;
    let mut ahead = Ahead::new(testbed, clock);
    let mut diary = Diary { kept: Met::default(), next: Duration::ZERO };
    let ended = go(journal, &mut diary, strategy, &mut ahead, stop, observe)?;
    diary.keep(journal, ahead.met())?;
    Ok(ended)
}

/// What the part of a campaign that runs now has met, as far as that is in the store.
struct Diary {
    kept: Met,
    /// From which [`Record::elapsed`] on it is looked at again.
    next: Duration,
}

impl Diary {
    fn keep(&mut self, journal: &mut dyn Journal, met: Met) -> Result<(), StoreError> {
        if met != self.kept {
            journal.keep_met(&met)?;
            self.kept = met;
        }
        Ok(())
    }
}

fn go(
    journal: &mut dyn Journal,
    diary: &mut Diary,
    strategy: &mut dyn Strategy,
    ahead: &mut Ahead<'_>,
    stop: &dyn Fn() -> bool,
    observe: &mut dyn FnMut(&Record),
) -> Result<(Ending, Vec<Record>), StoreError> {
    let id = journal.id();
    let recorded = journal.records()?;
    diary.next = recorded.last().map_or(Duration::ZERO, |record| record.elapsed) + KEEPING;
    let mut replayed = 0;
    let mut history: Vec<Record> = Vec::with_capacity(recorded.len());
    loop {
        let trial = match strategy.step(&history) {
            Step::Measure(trial) => trial,
            Step::Stop(_) | Step::Fail(_) if replayed < recorded.len() => {
                return Err(mismatch(id, &recorded[replayed], None));
            }
            Step::Stop(reason) => return Ok((Ending::Finished(reason), history)),
            Step::Fail(reason) => return Ok((Ending::Failed(reason), history)),
        };
        for try_number in 1.. {
            let record = match recorded.get(replayed) {
                Some(record) if record.trial == trial => record.clone(),
                Some(record) => return Err(mismatch(id, record, Some(&trial))),
                None if stop() => return Ok((Ending::Interrupted, history)),
                None => {
                    let number = history.len() as u64;
                    let (outcome, took) = ahead.measure(number, &trial, strategy);
                    match &outcome {
                        Err(error) if error.interrupted => {
                            return Ok((Ending::Interrupted, history));
                        }
                        Err(error) if error.retry == Retry::Never && !error.expired => {
                            return Ok((Ending::Failed(error.message.clone()), history));
                        }
                        _ => {}
                    }
                    let before = history.last().map_or(Duration::ZERO, |record| record.elapsed);
                    let record =
                        Record { number, trial: trial.clone(), outcome, elapsed: before + took };
                    journal.append(&record)?;
                    observe(&record);
                    if record.elapsed >= diary.next {
                        diary.keep(journal, ahead.met())?;
                        diary.next = record.elapsed + KEEPING;
                    }
                    record
                }
            };
            replayed += 1;
            let again = matches!(&record.outcome, Err(error) if error.retry == Retry::Same);
            history.push(record);
            if !again || try_number == TRIES {
                break;
            }
        }
    }
}

/// The sizes of performance that arithmetic can handle, beside 0. The square of the ratio of any
/// two is a number; beyond them means and spreads overflow.
const SIZES: std::ops::RangeInclusive<f64> = 1e-75..=1e75;

/// Refuses a performance or a spread that arithmetic cannot handle: no number, infinite, or extreme
/// (see [`SIZES`]).
fn in_range(measurement: Measurement) -> Result<Measurement, MeasureError> {
    let fits = |value: f64| value == 0.0 || SIZES.contains(&value.abs());
    let spread = measurement.spread.unwrap_or(0.0);
    if fits(measurement.performance) && spread <= *SIZES.end() {
        return Ok(measurement);
    }
    let value = if fits(measurement.performance) { spread } else { measurement.performance };
    let message = format!("the metric gave {value:e}, which is no performance; check --metric");
    Err(MeasureError::new(Retry::Same, message))
}

fn mismatch(id: CampaignId, record: &Record, proposed: Option<&Trial>) -> StoreError {
    let describe = |trial: &Trial| {
        format!("{:?} of {}", trial.purpose, assignment_text(&trial.setting)).to_lowercase()
    };
    StoreError::Mismatch {
        id,
        number: record.number,
        found: format!("the {}", describe(&record.trial)),
        expected: proposed
            .map_or_else(|| "none".to_owned(), |trial| format!("the {}", describe(trial))),
    }
}

#[cfg(test)]
mod tests;
