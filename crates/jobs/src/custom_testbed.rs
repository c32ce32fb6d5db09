//! [`place_on()`]: a placement on a testbed that the caller implements, with or without a store.

use crate::JobError;
use crate::campaign_run::together;
use pinwise_campaign::{Ending, Journal, StoreError, drive};
use pinwise_measure::{Interrupt, Testbed};
use pinwise_placement::{Outcome, PlacementQuestion, PlacementSearch, SearchError};
use pinwise_topology::SharingTree;
use std::time::Instant;

/// Why the threads of a testbed were not placed.
#[derive(Debug, thiserror::Error)]
pub enum CustomTestbedError {
    /// The question has no answer on this testbed.
    #[error(transparent)]
    Question(#[from] SearchError),
    /// The interrupt came.
    #[error("interrupted: the journal has {records} records; call place_on again to go on")]
    Interrupted {
        /// Records in the journal.
        records: u64,
    },
    /// The testbed cannot go on.
    #[error("{reason}: the journal has {records} records; call place_on again to go on")]
    Failed {
        /// The message.
        reason: String,
        /// Records in the journal.
        records: u64,
    },
    /// The journal cannot serve.
    #[error(transparent)]
    Journal(#[from] StoreError),
}

impl From<CustomTestbedError> for JobError {
    fn from(error: CustomTestbedError) -> Self {
        Self::failed(error)
    }
}

/// Finds where the threads of a testbed's workload run best. The testbed itself says what it can
/// do. The records go to `journal`: [`pinwise_campaign::MemoryJournal`], or a campaign of a store,
/// which the caller concludes ([`pinwise_campaign::Store::set_state`]). The notes of the outcome
/// say what disturbed the testbed, also in earlier sessions that the journal knows.
///
/// # Errors
/// See [`CustomTestbedError`]. With the same journal, the next call goes on where this one ended.
pub fn place_on(
    testbed: &mut dyn Testbed,
    question: PlacementQuestion,
    journal: &mut dyn Journal,
    interrupt: &Interrupt,
) -> Result<Outcome, CustomTestbedError> {
    let question = question.on(testbed);
    let tree = SharingTree::new(testbed.machine(), question.alike);
    let mut search = PlacementSearch::new(&question, &tree, testbed.workload())?;
    let (start, unit) = (Instant::now(), testbed.unit().clone());
    let stop = || interrupt.came();
    let clock = || start.elapsed();
    match drive(journal, &mut search, testbed, &clock, &stop, &mut |_| {})? {
        (Ending::Finished, records) => {
            let notes = together(journal.disturbances()?);
            Ok(Outcome { notes, ..search.outcome(&unit, &records, None) })
        }
        (Ending::Failed(reason), records) => {
            Err(CustomTestbedError::Failed { reason, records: records.len() as u64 })
        }
        (Ending::Interrupted, records) => {
            Err(CustomTestbedError::Interrupted { records: records.len() as u64 })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Caller;
    use crate::open_subject::{fixture::Altered, open};
    use crate::placement_request::simulated;
    use crate::simulation::SimulatedProcessor;
    use crate::subject::Subject;
    use pinwise_campaign::{MemoryJournal, Record};
    use pinwise_measure::{ProgramNote, Setting};
    use pinwise_placement::Budget;
    use std::time::Duration;

    #[test]
    fn what_a_testbed_says_reaches_the_search_and_the_outcome() {
        let profiles = |restart: Option<Duration>| {
            let budget = Budget::Time(Duration::from_millis(10));
            let mut request = simulated(SimulatedProcessor::built_in("ultrasparc-t2"), budget);
            let Subject::Simulated(simulation) = &mut request.subject else { unreachable!() };
            simulation.instances = 2;
            let testbed = open(&request, &Caller::default()).unwrap();
            let time = testbed.time();
            let mut testbed = Altered { testbed, restart, time, gone: false };
            let mut journal = MemoryJournal::default();
            let stop = Interrupt::default();
            let outcome = place_on(&mut testbed, request.question, &mut journal, &stop).unwrap();
            let moved = ProgramNote::from("moved".to_owned());
            assert_eq!(outcome.notes, [ProgramNote::Busy { share: 0.5 }, moved]);
            let alone = |record: &&Record| matches!(record.trial.setting, Setting::Profile(_));
            journal.records.iter().filter(alone).count()
        };
        let (windows, starts) = (profiles(None), profiles(Some(Duration::from_millis(5))));
        assert!(starts < windows, "{starts} of {windows}");
    }

    #[test]
    fn an_interruption_says_what_the_journal_has_and_the_next_call_goes_on() {
        let request =
            simulated(SimulatedProcessor::built_in("ultrasparc-t2"), Budget::Measurements(60));
        let mut testbed = open(&request, &Caller::default()).unwrap();
        let (mut journal, interrupt) = (MemoryJournal::default(), Interrupt::default());
        let mut place = |journal: &mut MemoryJournal| {
            place_on(&mut *testbed, request.question.clone(), journal, &interrupt)
        };
        let whole = place(&mut journal).unwrap();
        journal.records.truncate(20);
        interrupt.flag().store(true, std::sync::atomic::Ordering::Relaxed);
        let error = place(&mut journal).unwrap_err();
        assert!(matches!(error, CustomTestbedError::Interrupted { records: 20 }), "{error}");
        interrupt.flag().store(false, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(place(&mut journal).unwrap(), whole);
    }
}
