//! A placement on a testbed of one's own.

use pinwise_campaign::{Ending, Journal, StoreError, drive};
use pinwise_measure::{Interrupt, Testbed};
use pinwise_placement::{Outcome, Question, Search, SearchError};
use pinwise_topology::SharingTree;
use std::time::Instant;

/// Why the threads of a testbed were not placed.
#[derive(Debug, thiserror::Error)]
pub enum OwnTestbedError {
    /// The question has no answer on this testbed.
    #[error(transparent)]
    Question(#[from] SearchError),
    /// The interrupt came.
    #[error("interrupted: the journal has {records} records, from which place_on goes on")]
    Interrupted {
        /// Records in the journal.
        records: u64,
    },
    /// The testbed cannot go on.
    #[error("{reason}: the journal has {records} records, from which place_on goes on")]
    Failed {
        /// What failed.
        reason: String,
        /// Records in the journal.
        records: u64,
    },
    /// The journal cannot serve.
    #[error(transparent)]
    Journal(#[from] StoreError),
}

/// Finds where the threads of a testbed's workload run best. What the testbed can do, it says
/// itself. The records go to `journal`: [`pinwise_campaign::MemoryJournal`], or a campaign of a
/// store, which the caller concludes ([`pinwise_campaign::Store::set_state`]).
///
/// # Errors
/// See [`OwnTestbedError`]. With the same journal, the next call goes on where this one ended.
pub fn place_on(
    testbed: &mut dyn Testbed,
    question: Question,
    journal: &mut dyn Journal,
    interrupt: &Interrupt,
) -> Result<Outcome, OwnTestbedError> {
    let question = Question { pieces: testbed.profiles(), ..question };
    let tree = SharingTree::new(testbed.machine(), question.alike);
    let mut search = Search::new(&question, &tree, testbed.workload())?;
    let (start, unit) = (Instant::now(), testbed.unit().clone());
    let stop = || interrupt.came();
    let clock = || start.elapsed();
    match drive(journal, &mut search, testbed, &clock, &stop, &mut |_| {})? {
        (Ending::Finished, records) => Ok(search.outcome(&unit, &records, None)),
        (Ending::Failed(reason), records) => {
            Err(OwnTestbedError::Failed { reason, records: records.len() as u64 })
        }
        (Ending::Interrupted, records) => {
            Err(OwnTestbedError::Interrupted { records: records.len() as u64 })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Caller;
    use crate::model::Model;
    use crate::open_subject::open;
    use crate::request::simulated;
    use pinwise_campaign::MemoryJournal;
    use pinwise_placement::Budget;

    #[test]
    fn an_interruption_says_what_the_journal_has_and_the_next_call_goes_on() {
        let request = simulated(Model::built_in("ultrasparc-t2"), Budget::Measurements(60));
        let mut testbed = open(&request, &Caller::default()).unwrap();
        let (mut journal, interrupt) = (MemoryJournal::default(), Interrupt::default());
        let mut place = |journal: &mut MemoryJournal| {
            place_on(&mut *testbed, request.question.clone(), journal, &interrupt)
        };
        let whole = place(&mut journal).unwrap();
        journal.records.truncate(20);
        interrupt.flag().store(true, std::sync::atomic::Ordering::Relaxed);
        let error = place(&mut journal).unwrap_err();
        assert!(matches!(error, OwnTestbedError::Interrupted { records: 20 }), "{error}");
        interrupt.flag().store(false, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(place(&mut journal).unwrap(), whole);
    }
}
