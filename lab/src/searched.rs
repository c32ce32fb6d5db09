//! A search for a placement from its first step to its last, on a testbed without a clock.

use pinwise_campaign::{MemoryJournal, drive};
use pinwise_measure::Testbed;
use pinwise_placement::{Outcome, PlacementQuestion, PlacementSearch};
use pinwise_topology::SharingTree;
use std::error::Error;
use std::time::Duration;

/// What a search says in the end.
///
/// # Errors
/// The question does not fit the testbed, or a measurement fails for good.
pub fn searched<T: Testbed>(
    question: PlacementQuestion,
    tree: &SharingTree,
    testbed: &mut T,
) -> Result<Outcome, Box<dyn Error>> {
    let question = question.on(testbed);
    let mut search = PlacementSearch::new(&question, tree, testbed.workload())?;
    let (journal, clock) = (&mut MemoryJournal::default(), || Duration::ZERO);
    let (_, records) = drive(journal, &mut search, testbed, &clock, &|| false, &mut |_| ())?;
    Ok(search.outcome(testbed.unit(), &records, None))
}
