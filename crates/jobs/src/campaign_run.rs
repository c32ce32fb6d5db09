//! One session: measures a campaign, then stores its answer or how it stopped.

use crate::error::{Failure, Interruption, JobError, Kept, Remedy};
use crate::events::{Event, Events, note};
use crate::job::Caller;
use crate::open_subject::{OpenSubject, WithNodeNews};
use crate::with_other_load::WithOtherLoad;
use pinwise_campaign::{
    CampaignId, CampaignInfo, CampaignState, Ending, Kind, Record, Step, Store, StoreError,
    Strategy, Trial, TrialRounds, drive,
};
use pinwise_measure::{Disturbances, OtherLoad, ProgramNote, Testbed, Time};
use pinwise_placement::Budget;
use pinwise_present::{figures::counted, notable_share};
use serde::Serialize;
use std::time::Instant;

/// The measurements of a campaign's strategy, in all its sessions.
pub(crate) struct Measured {
    pub(crate) ending: Ending,
    pub(crate) records: Vec<Record>,
    /// Notes on what disturbed the measurements ([`pinwise_placement::Outcome::notes`]).
    pub(crate) notes: Vec<ProgramNote>,
    /// The metric shows no performance: measuring more of it does not help.
    pub(crate) always_zero: bool,
}

/// Windows of zero that show that a metric is no performance. A program may get no CPU in a few.
const ZEROS: usize = 10;

/// A strategy that fails if the metric shows no performance, so that no answer rests on it.
struct RefuseZeroMetric<'a> {
    strategy: &'a mut dyn Strategy,
    /// The option that makes a measurement longer.
    longer: &'static str,
    /// The number of records of earlier sessions. Replaying them never fails.
    known: u64,
    always_zero: bool,
}

impl Strategy for RefuseZeroMetric<'_> {
    fn step(&mut self, history: &[Record]) -> Step {
        let step = self.strategy.step(history);
        if (history.len() as u64) < self.known || !always_zero(history) {
            return step;
        }
        self.always_zero = true;
        Step::Fail(format!(
            "the metric was zero in each of {}, so it shows no performance: choose another \
             --metric, or measure longer ({})",
            counted(history.len() as u64, "window"),
            self.longer
        ))
    }

    fn foresee(&self, most: usize) -> Vec<Trial> {
        self.strategy.foresee(most)
    }

    fn rounds(&self, most: usize) -> Option<TrialRounds> {
        self.strategy.rounds(most)
    }
}

/// Whether the metric shows no performance: it was zero in every window.
fn always_zero(history: &[Record]) -> bool {
    let mut values = history.iter().filter_map(|record| record.outcome.as_ref().ok());
    values.clone().count() >= ZEROS && values.all(|measured| measured.performance == 0.0)
}

/// Runs a campaign's strategy on `testbed`.
pub(crate) fn measure(
    store: &mut Store,
    info: &CampaignInfo,
    budget: Budget,
    strategy: &mut dyn Strategy,
    testbed: &mut dyn OpenSubject,
    caller: &Caller,
    events: &mut dyn Events,
) -> Result<Measured, JobError> {
    let before = testbed.notes();
    let events: &mut dyn Events = &mut WithNodeNews::new(events, testbed.node_news());
    let mut watched = WithOtherLoad::new(&mut *testbed);
    let longer = match (watched.time(), info.new.kind) {
        (Time::Real, Kind::Cosched) => "--quantum",
        (Time::Real, _) => "--window",
        _ => "--cycles",
    };
    let known = info.records;
    let mut strategy = RefuseZeroMetric { strategy, longer, known, always_zero: false };
    let measured = measure_on(store, info, budget, &mut strategy, &mut watched, caller, events)?;
    let measured = Measured { always_zero: strategy.always_zero, ..measured };
    for about in testbed.notes().into_iter().filter(|about| !before.contains(about)) {
        note(events, about)?;
    }
    Ok(measured)
}

/// Runs a campaign's strategy on any testbed.
pub(crate) fn measure_on(
    store: &mut Store,
    info: &CampaignInfo,
    budget: Budget,
    strategy: &mut dyn Strategy,
    testbed: &mut dyn Testbed,
    caller: &Caller,
    events: &mut dyn Events,
) -> Result<Measured, JobError> {
    events.take(Event::Measuring { budget, unit: &info.new.unit }).map_err(JobError::Output)?;
    let start = Instant::now();
    let clock = || start.elapsed();
    let stop = || caller.interrupt.came();
    let mut journal = store.journal(info.id)?;
    // If nobody takes the events, the job has been asked to stop.
    let mut observe = |record: &Record| drop(events.take(Event::Measured(record)));
    let (ending, records) = drive(&mut journal, strategy, testbed, &clock, &stop, &mut observe)?;
    drop(journal);
    events.take(Event::MeasuringEnded).map_err(JobError::Output)?;
    let notes = disturbances(store, [info.id])?;
    // The answer so far of cosched is shown, with its notes.
    if ending != Ending::Finished && info.new.kind != Kind::Cosched {
        for about in &notes {
            note(events, about.clone())?;
        }
    }
    Ok(Measured { ending, records, notes, always_zero: false })
}

/// The report of a session without an answer: remedy, restored affinities, bad name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EndContext {
    /// A real program was measured, whose affinities are restored.
    pub(crate) restored: bool,
    /// The remedy after a failure.
    pub(crate) remedy: Remedy,
    /// It failed because something that was named does not exist.
    pub(crate) names_nothing: bool,
}

impl Default for EndContext {
    fn default() -> Self {
        Self { restored: false, remedy: Remedy::Resume, names_nothing: false }
    }
}

impl EndContext {
    /// For a strategy that fails at a failed measurement. A resumed campaign would replay that
    /// record and fail again, so the remedy is a new campaign.
    pub(crate) fn after(records: &[Record]) -> Self {
        let failed = records.last().is_some_and(|record| record.outcome.is_err());
        let remedy = if failed { Remedy::AskAgain } else { Remedy::Resume };
        Self { remedy, ..Self::default() }
    }
}

impl From<&dyn OpenSubject> for EndContext {
    fn from(testbed: &dyn OpenSubject) -> Self {
        let remedy = match testbed {
            _ if testbed.measures_a_total() => Remedy::AsCounter,
            _ if testbed.is_gone() => Remedy::AskAgain,
            _ if testbed.node_news().is_some() => Remedy::Resume,
            // A model fails again in the same way.
            _ if testbed.time() != Time::Real => Remedy::AskAgain,
            _ => Remedy::Resume,
        };
        Self { restored: testbed.pids().is_some(), remedy, names_nothing: false }
    }
}

/// Ends a session. A finished one has the answer that `finish` makes of it; any other has none.
pub(crate) fn conclude<A: Serialize>(
    store: &mut Store,
    id: CampaignId,
    measured: Measured,
    ends: impl Into<EndContext>,
    finish: impl FnOnce(&[Record], Vec<ProgramNote>) -> A,
) -> Result<A, JobError> {
    let Measured { ending, records, notes, always_zero } = measured;
    let mut ends = ends.into();
    if always_zero {
        ends.remedy = Remedy::AskAgain;
    }
    if ending == Ending::Finished {
        let answer = finish(&records, notes);
        answered(store, id, CampaignState::Finished, &answer)?;
        return Ok(answer);
    }
    Err(unanswered(store, id, ending, ends)?)
}

/// The one way to end a run with an answer. It stores the answer as the campaign's conclusion. A
/// `Stopped` campaign has the answer so far.
pub(crate) fn answered(
    store: &mut Store,
    id: CampaignId,
    state: CampaignState,
    answer: &impl Serialize,
) -> Result<(), JobError> {
    store.set_state(id, state, Some(&serde_json::to_value(answer)?))?;
    Ok(())
}

/// Ends a run without an answer, and returns its error. Deletes a campaign without measurements.
/// Any other can be resumed. Only [`part_left_open`] does the same.
pub(crate) fn unanswered(
    store: &mut Store,
    id: CampaignId,
    ending: Ending,
    ends: EndContext,
) -> Result<JobError, JobError> {
    let kept = stop(store, id)?;
    let EndContext { restored, remedy, names_nothing } = ends;
    let reason = match ending {
        Ending::Interrupted => {
            return Ok(JobError::Interrupted(Interruption { kept, restored }));
        }
        Ending::Failed(reason) if names_nothing => return Ok(JobError::Usage(reason)),
        Ending::Failed(reason) => reason,
        Ending::Finished => "its records give no answer".to_owned(),
    };
    Ok(JobError::Failed(Failure { reason, kept, remedy }))
}

/// Leaves a part open that can go on. Its parent answers with what the part shows so far, even
/// without a record.
pub(crate) fn part_left_open(store: &mut Store, id: CampaignId) -> Result<(), StoreError> {
    store.set_state(id, CampaignState::Stopped, None)
}

/// Turns the error that ended a part into the error of the campaign `id`, its parent.
pub(crate) fn as_parent_error(
    error: JobError,
    store: &mut Store,
    id: CampaignId,
) -> Result<JobError, JobError> {
    let kept = stop(store, id)?;
    Ok(match error {
        JobError::Interrupted(interruption) => {
            JobError::Interrupted(Interruption { kept, ..interruption })
        }
        JobError::Failed(Failure { reason, remedy, .. }) => {
            JobError::Failed(Failure { reason, kept, remedy })
        }
        other => other,
    })
}

/// Ends a campaign without an answer. One without a measurement is not left behind.
pub(crate) fn stop(store: &mut Store, id: CampaignId) -> Result<Option<Kept>, StoreError> {
    let records = record_count(store, id)?;
    if records == 0 {
        store.delete(id)?;
        return Ok(None);
    }
    store.set_state(id, CampaignState::Stopped, None)?;
    Ok(Some(Kept { campaign: id, records }))
}

/// The measurements of a campaign and of its parts.
///
/// # Errors
/// The store cannot be read.
pub fn record_count(store: &Store, id: CampaignId) -> Result<u64, StoreError> {
    let parts = store.parts(id)?;
    let parts = parts.iter().map(|part| record_count(store, part.id)).sum::<Result<u64, _>>()?;
    Ok(store.get(id)?.records + parts)
}

/// Notes on what disturbed several campaigns, all sessions together, each note once. Of a campaign
/// that measured nothing, the load of other programs is left out: it disturbed no measurement.
///
/// # Errors
/// The store cannot be read.
pub(crate) fn disturbances(
    store: &Store,
    ids: impl IntoIterator<Item = CampaignId>,
) -> Result<Vec<ProgramNote>, StoreError> {
    let mut all = Vec::new();
    for id in ids {
        let mut met = store.disturbances(id)?;
        let busy = met.iter().any(|session| session.others.is_some());
        if busy && store.records(id)?.iter().all(|record| record.outcome.is_err()) {
            met.iter_mut().for_each(|session| session.others = None);
        }
        all.extend(met);
    }
    Ok(together(all))
}

/// Notes on what disturbed these sessions, each note once.
pub(crate) fn together(runs: Vec<Disturbances>) -> Vec<ProgramNote> {
    let shares: Vec<OtherLoad> = runs.iter().filter_map(|met| met.others).collect();
    let mut notes: Vec<ProgramNote> =
        notable_share(&shares).map(|share| ProgramNote::Busy { share }).into_iter().collect();
    for note in runs.into_iter().flat_map(|met| met.notes) {
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::Silent;
    use crate::job::Job;
    use crate::open_subject::{fixture::Altered, open};
    use crate::place::PlaceRequest;
    use crate::placement_request::simulated;
    use crate::simulation::SimulatedProcessor;
    use crate::stored_campaign::empty_store;
    use pinwise_campaign::{Journal as _, Purpose};
    use pinwise_measure::{Effort, MeasureError, Measurement, Setting};
    use std::time::Duration;

    #[test]
    fn a_metric_that_is_always_zero_is_no_performance() {
        let history = |values: &[f64]| -> Vec<Record> {
            let record = |(number, &performance): (usize, &f64)| Record {
                number: number as u64,
                trial: Trial {
                    setting: Setting::Unpinned,
                    purpose: Purpose::Baseline,
                    effort: Effort { windows: 1.0 },
                },
                outcome: Ok(Measurement::new(performance, Duration::from_millis(40))),
                elapsed: Duration::ZERO,
            };
            values.iter().enumerate().map(record).collect()
        };
        let is_refused = |values: &[f64]| always_zero(&history(values));
        assert!(is_refused(&[0.0; 10]));
        assert!(!is_refused(&[0.0; 9]), "it may begin to move");
        assert!(!is_refused(&[]));
        assert!(!is_refused(&[&[0.0; 10][..], &[7.0]].concat()));
        assert!(!is_refused(&[60.0; 90]), "a limit that every assignment reaches");
        // The records of an earlier session are replayed, whatever they are.
        let step = |known| {
            let strategy = &mut Stops;
            RefuseZeroMetric { strategy, longer: "--window", known, always_zero: false }
                .step(&history(&[0.0; 10]))
        };
        assert_eq!(step(11), Stops.step(&[]));
        let Step::Fail(reason) = step(10) else { panic!() };
        assert!(reason.contains("zero in each of 10 windows"), "{reason}");
    }

    const VIRTUAL: Time = Time::Virtual { width: 1 };

    #[test]
    fn after_a_failure_a_model_is_asked_again_and_a_program_is_resumed() {
        let (_folder, mut store) = empty_store();
        let request =
            simulated(SimulatedProcessor::built_in("ultrasparc-t2"), Budget::Measurements(100));
        let caller = Caller::default();
        for (time, gone, told) in [
            (VIRTUAL, false, Remedy::AskAgain),
            (Time::Real, false, Remedy::Resume),
            (Time::Real, true, Remedy::AskAgain),
        ] {
            let (new, _) =
                PlaceRequest::from(request.clone()).prepare(&caller, &store, &mut Silent).unwrap();
            let id = store.create(&new).unwrap();
            let testbed = open(&request, &caller).unwrap();
            let testbed = Altered { testbed, restart: None, time, gone };
            let (ending, records, notes) = (Ending::Failed("no".into()), Vec::new(), Vec::new());
            let failed = Measured { ending, records, notes, always_zero: false };
            let testbed: &dyn OpenSubject = &testbed;
            let error = conclude(&mut store, id, failed, testbed, |_, _| ()).unwrap_err();
            let JobError::Failed(Failure { remedy, .. }) = error else { panic!("{error}") };
            assert_eq!(remedy, told);
        }
    }

    /// Wants nothing.
    struct Stops;

    impl Strategy for Stops {
        fn step(&mut self, _: &[Record]) -> Step {
            Step::Stop
        }
    }

    #[test]
    fn the_load_of_others_is_left_out_where_nothing_was_measured() {
        let (_folder, mut store) = empty_store();
        let request =
            simulated(SimulatedProcessor::built_in("ultrasparc-t2"), Budget::Measurements(100));
        let (new, _) =
            PlaceRequest::from(request).prepare(&Caller::default(), &store, &mut Silent).unwrap();
        let id = store.create(&new).unwrap();
        let note = ProgramNote::from("a thread came".to_owned());
        let met =
            Disturbances { others: Some(OtherLoad::new(5.0, 10.0)), notes: vec![note.clone()] };
        let take = |store: &mut Store, number, outcome| {
            let mut journal = store.journal(id).unwrap();
            journal.keep_disturbances(&met).unwrap();
            let (purpose, effort) = (Purpose::Baseline, Effort { windows: 1.0 });
            let trial = Trial { setting: Setting::Unpinned, purpose, effort };
            journal.append(&Record { number, trial, outcome, elapsed: Duration::ZERO }).unwrap();
        };
        take(&mut store, 0, Err(MeasureError::new(pinwise_measure::Retry::Other, "no number")));
        assert_eq!(disturbances(&store, [id]).unwrap(), std::slice::from_ref(&note));
        take(&mut store, 1, Ok(Measurement::new(1.0, Duration::from_millis(40))));
        assert_eq!(disturbances(&store, [id]).unwrap(), [ProgramNote::Busy { share: 0.5 }, note]);
    }

    #[test]
    fn others_count_over_all_runs_together_and_every_note_appears_once() {
        let runs = |met: &[(f64, &[&str])]| -> Vec<Disturbances> {
            let run = |(taken, notes): &(f64, &[&str])| Disturbances {
                others: Some(OtherLoad::new(*taken, 10.0)),
                notes: notes.iter().map(|note| ProgramNote::from((*note).to_owned())).collect(),
            };
            met.iter().map(run).collect()
        };
        assert_eq!(together(runs(&[(0.1, &[]), (0.2, &[])])), Vec::<ProgramNote>::new());
        let notes = together(runs(&[
            (0.1, &["a thread came", "x"]),
            (3.9, &["a thread came"]),
            (0.0, &["y"]),
        ]));
        let notes: Vec<String> = notes.iter().map(pinwise_present::note).collect();
        assert!(notes[0].contains("other programs took 13.3 % of it"), "{notes:?}");
        assert_eq!(notes[1..], ["a thread came", "x", "y"]);
    }
}
