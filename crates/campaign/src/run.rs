//! The loop that ties a strategy, a testbed and the store together.
//!
//! A simulator has *virtual time* ([`Time::Virtual`]): its measurements disturb nothing, so several
//! can run at once.

mod lookahead;

use crate::store::assignment_text;
use crate::{CampaignId, Journal, Record, StoreError, TRIES, Trial};
use lookahead::Lookahead;
use pinwise_measure::{Disturbances, Retry, Testbed, Time};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How often the disturbances are stored while a testbed measures. Reading them takes a little
/// time, and storing them a write.
const STORE_EVERY: Duration = Duration::from_secs(1);

/// What a strategy wants.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Measure this.
    Measure(Trial),
    /// Nothing more. Why is known to the strategy, or follows from the records.
    Stop,
    /// No answer can come of what was measured; why, as a sentence for the user.
    Fail(String),
}

/// Proposes the next trial from the records so far.
pub trait Strategy {
    /// The next step. `history` holds every record so far. Each call sees the outcome of the trial
    /// that the previous call proposed. That is one more record, or up to [`TRIES`] if tries failed
    /// and were repeated. A resumed campaign replays the same calls.
    fn step(&mut self, history: &[Record]) -> Step;

    /// At most that many trials that it will probably propose after the last one. Where time is
    /// virtual, or there are several nodes, they are measured together with that trial. A wrong
    /// guess costs its measurement and changes nothing else.
    fn foresee(&self, _most: usize) -> Vec<Trial> {
        Vec::new()
    }

    /// The round to which the last proposed trial belongs, with at most `most` that will probably
    /// follow. One of several nodes measures all of a round, so that its values compare whatever
    /// the nodes differ by. `None`: the trial belongs to no round.
    fn rounds(&self, _most: usize) -> Option<TrialRounds> {
        None
    }
}

/// Trials that are compared with each other, round by round.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TrialRounds {
    /// The last proposed trial is not the first of its round.
    pub continued: bool,
    /// The trials of the round that follow.
    pub rest: Vec<Trial>,
    /// The next rounds, each in any order.
    pub next: Vec<Vec<Trial>>,
}

/// How a session of a campaign ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// The strategy was done.
    Finished,
    /// Asked to stop; resumable.
    Interrupted,
    /// The testbed cannot go on; resumable once the cause is gone.
    Failed(String),
}

/// Runs the campaign of a journal until its strategy stops, `stop` returns true, or the testbed
/// cannot go on.
///
/// *Resumption.* Recorded trials are replayed into the strategy first. A resumed campaign then goes
/// on as if nothing had happened. A history that this strategy would not have made is refused.
///
/// *Time.* `clock` returns the time since any fixed moment. Each record holds the time since the
/// first measurement began, pauses between sessions excluded. Where the testbed's time is virtual,
/// a measurement adds its own duration, and several are measured at once ([`Strategy::foresee`]).
/// The records are the same as if each had been measured alone.
///
/// *Nodes.* Where a testbed has several ([`Testbed::nodes`]), they measure foreseen trials at the
/// same time as the proposed one. A result that comes early is durable at once
/// ([`Journal::keep_result`]), and waits until its trial is proposed. The time of a record ends
/// when it does. A resumed campaign takes the results that wait. One node measures each round
/// ([`Strategy::rounds`]), unless it dies or a resumed campaign does not have it.
///
/// *Failures.* A failure of [`Retry::Same`] or [`Retry::Later`] is recorded. The trial is then
/// tried again, [`TRIES`] times in all. [`Retry::Other`] and
/// [`pinwise_measure::MeasureError::expired`] are recorded and left to the strategy.
/// [`Retry::Never`] and interruptions say nothing about the setting and are not recorded. A resumed
/// campaign tries that trial first.
///
/// *Disturbances* ([`Testbed::disturbances`]) are stored with the first record of a session, about
/// once a second, and at the end. So a campaign that is killed and resumed still knows those of its
/// earlier sessions ([`crate::Store::disturbances`]).
///
/// `observe` is called with each new record, not with those replayed. The campaign is open while it
/// runs. The caller stores how it ended ([`crate::Store::set_state`]).
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
    let mut ahead = Lookahead::new(testbed, clock, journal)?;
    let mut disturbances = DisturbanceLog { stored: Disturbances::default(), next: Duration::ZERO };
    let ended = go(journal, &mut disturbances, strategy, &mut ahead, stop, observe)?;
    disturbances.store(journal, ahead.disturbances())?;
    Ok(ended)
}

/// The disturbances of the session that runs now, as far as they are stored.
struct DisturbanceLog {
    stored: Disturbances,
    /// At which [`Record::elapsed`] they are stored again.
    next: Duration,
}

impl DisturbanceLog {
    fn store(&mut self, journal: &mut dyn Journal, now: Disturbances) -> Result<(), StoreError> {
        if now != self.stored {
            journal.keep_disturbances(&now)?;
            self.stored = now;
        }
        Ok(())
    }
}

fn go(
    journal: &mut dyn Journal,
    disturbances: &mut DisturbanceLog,
    strategy: &mut dyn Strategy,
    ahead: &mut Lookahead<'_>,
    stop: &dyn Fn() -> bool,
    observe: &mut dyn FnMut(&Record),
) -> Result<(Ending, Vec<Record>), StoreError> {
    let id = journal.id();
    let recorded = journal.records()?;
    disturbances.next = recorded.last().map_or(Duration::ZERO, |record| record.elapsed);
    let mut replayed = 0;
    let mut history: Vec<Record> = Vec::with_capacity(recorded.len());
    loop {
        let trial = match strategy.step(&history) {
            Step::Measure(trial) => trial,
            Step::Stop | Step::Fail(_) if replayed < recorded.len() => {
                return Err(mismatch(id, &recorded[replayed], None));
            }
            Step::Stop => return Ok((Ending::Finished, history)),
            Step::Fail(reason) => return Ok((Ending::Failed(reason), history)),
        };
        for try_number in 1.. {
            let record = match recorded.get(replayed) {
                Some(record) if record.trial == trial => record.clone(),
                Some(record) => return Err(mismatch(id, record, Some(&trial))),
                None if stop() => return Ok((Ending::Interrupted, history)),
                None => {
                    let number = history.len() as u64;
                    let (outcome, took, result) =
                        ahead.measure(number, &trial, strategy, journal)?;
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
                    match result {
                        Some(result) => journal.append_result(&record, result)?,
                        None => journal.append(&record)?,
                    }
                    observe(&record);
                    if record.elapsed >= disturbances.next {
                        disturbances.store(journal, ahead.disturbances())?;
                        disturbances.next = record.elapsed + STORE_EVERY;
                    }
                    record
                }
            };
            replayed += 1;
            let again = matches!(&record.outcome, Err(error) if error.retry.is_same());
            history.push(record);
            if !again || try_number == TRIES {
                break;
            }
        }
    }
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
