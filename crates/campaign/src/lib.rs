#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod campaign_lock;
#[cfg(test)]
mod fixture;
mod journal;
mod record;
mod run;
mod store;

pub use campaign_lock::CampaignLock;
pub use journal::{Journal, MemoryJournal};
pub use record::{Purpose, Record, Trial, settled};
pub use run::{Ending, Step, Strategy, TRIES, drive};
pub use store::{
    CampaignId, CampaignIdentity, CampaignInfo, CampaignState, Kind, Listing, MachineDocument,
    NewCampaign, Parent, Store, StoreError, StoreJournal,
};
