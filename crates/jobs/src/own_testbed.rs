//! A placement on a testbed of one's own.

use crate::error::{Failure, JobError, Remedy};
use crate::interrupt::Interrupt;
use pinwise_campaign::{Ending, Journal, drive};
use pinwise_measure::Testbed;
use pinwise_placement::{Outcome, Question, Search};
use pinwise_topology::SharingTree;
use std::time::Instant;

/// Finds where the threads of a testbed's workload run best. What the testbed can do, it says
/// itself. The records go to `journal`: [`pinwise_campaign::MemoryJournal`], or a campaign of a store.
///
/// # Errors
/// The question has no answer on this testbed; the testbed cannot go on; `interrupt` came.
pub fn place_on(
    testbed: &mut dyn Testbed,
    question: Question,
    journal: &mut dyn Journal,
    interrupt: &Interrupt,
) -> Result<Outcome, JobError> {
    let question = Question { pieces: testbed.profiles(), ..question };
    let tree = SharingTree::new(testbed.machine(), question.alike);
    let mut search = Search::new(&question, &tree, testbed.workload())?;
    let (start, unit) = (Instant::now(), testbed.unit().clone());
    let stop = || interrupt.came();
    let clock = || start.elapsed();
    match drive(journal, &mut search, testbed, &clock, &stop, &mut |_| {})? {
        (Ending::Finished(_), records) => Ok(search.outcome(&unit, &records, None)),
        (Ending::Failed(reason), _) => {
            Err(JobError::Failed(Failure { reason, kept: None, remedy: Remedy::Resume }))
        }
        (Ending::Interrupted, _) => Err(JobError::nothing_measured(false)),
    }
}
