//! Propose, measure, record, stop.
//!
//! A [`Strategy`] proposes the next trial from what is known so far and nothing else: no clock, no
//! hidden randomness. A [`Store`] makes every measurement durable before the next begins. [`run()`]
//! ties both to a testbed. Since a strategy is a function of its seed and the history, a campaign
//! resumed after any kill goes on as if nothing had happened. Where time is virtual, several trials
//! that a strategy foresees are measured at once; the records are the same.

mod claim;
#[cfg(test)]
mod fixture;
mod journal;
mod record;
mod run;
mod store;

pub use claim::Claim;
pub use journal::{Journal, Memory};
pub use record::{Purpose, Record, Trial};
pub use run::{Ending, Step, Strategy, TRIES, drive, run};
pub use store::{
    CampaignId, CampaignInfo, CampaignState, KeptCharacterization, Kind, Listing, NewCampaign,
    Parent, Store, StoreError, StoreJournal,
};
