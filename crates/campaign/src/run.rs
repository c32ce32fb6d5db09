//! The loop that ties a strategy, a testbed and the store together.

use crate::{CampaignId, Record, Store, StoreError, Trial};
use pinwise_testbed::Testbed;
use serde::{Deserialize, Serialize};

/// What a strategy wants.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Measure this.
    Measure(Trial),
    /// Nothing more; the reason, as a sentence for the user.
    Stop(String),
}

/// Proposes the next trial from what is known so far.
pub trait Strategy {
    /// The next step. `history` holds every record so far; a call always comes with one record more than the call before
    /// (the outcome of what that call proposed), also when a campaign is resumed.
    fn step(&mut self, history: &[Record]) -> Step;
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

/// Runs campaign `id` until its strategy stops, `stop` says so, or the testbed cannot go on. Recorded trials are replayed
/// into the strategy first.
pub fn run(
    _store: &mut Store,
    _id: CampaignId,
    _strategy: &mut dyn Strategy,
    _testbed: &mut dyn Testbed,
    _stop: &dyn Fn() -> bool,
    _observe: &mut dyn FnMut(&Record),
) -> Result<(Ending, Vec<Record>), StoreError> {
    todo!()
}
