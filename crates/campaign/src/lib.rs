#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

#[cfg(test)]
mod fixture;
mod journal;
mod record;
mod run;
mod store;

pub use journal::{Journal, MemoryJournal};
pub use record::{Purpose, Record, TRIES, Trial, settled};
pub use run::{Ending, Step, Strategy, TrialRounds, drive};
pub use store::{
    CampaignId, CampaignIdentity, CampaignInfo, CampaignLock, CampaignState, Kind, Listing,
    MachineDocument, NewCampaign, Parent, Store, StoreError, StoreJournal, private_folder,
    unpredictable,
};
