//! Every measurement of every campaign, on disk before the next begins.

use crate::Record;
use pinwise_testbed::{Unit, Workload};
use pinwise_topology::{Alike, Machine};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The number of a campaign in its store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CampaignId(pub i64);

/// What is known of a campaign before its first measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NewCampaign {
    /// The command line that asked, for people and for resuming.
    pub command: Vec<String>,
    /// The machine assignments refer to.
    pub machine: Machine,
    /// Which domains of it count as alike.
    pub alike: Alike,
    /// The threads.
    pub workload: Workload,
    /// What performance is counted in.
    pub unit: Unit,
    /// The question, as its answerer's own type serializes it; opaque here.
    pub question: serde_json::Value,
    /// The seed of all its randomness.
    pub seed: u64,
}

/// Where a campaign stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CampaignState {
    /// Not ended properly: running now, or killed.
    Open,
    /// Its strategy was done.
    Finished,
    /// Asked to stop, or the testbed could not go on.
    Stopped,
}

/// A stored campaign without its records.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CampaignInfo {
    /// Its number.
    pub id: CampaignId,
    /// When it began, seconds since the Unix epoch.
    pub started: i64,
    /// What was known before the first measurement.
    pub new: NewCampaign,
    /// Where it stands.
    pub state: CampaignState,
    /// How many records it has.
    pub records: u64,
    /// The conclusion, as its answerer's own type serializes it, once there is one.
    pub conclusion: Option<serde_json::Value>,
}

/// Why the store cannot serve. One line for the user.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// See the message.
    #[error("{path}: {reason}", path = path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What is wrong and what to do.
        reason: String,
    },
}

/// A SQLite file of campaigns.
pub struct Store {}

impl Store {
    /// Opens or creates the store.
    pub fn open(_path: &Path) -> Result<Self, StoreError> {
        todo!()
    }

    /// Begins a campaign.
    pub fn create(&mut self, _campaign: &NewCampaign) -> Result<CampaignId, StoreError> {
        todo!()
    }

    /// Every campaign, oldest first.
    pub fn list(&self) -> Result<Vec<CampaignInfo>, StoreError> {
        todo!()
    }

    /// One campaign; an error that lists what there is, if there is no such one.
    pub fn get(&self, _id: CampaignId) -> Result<CampaignInfo, StoreError> {
        todo!()
    }

    /// Its records, in order.
    pub fn records(&self, _id: CampaignId) -> Result<Vec<Record>, StoreError> {
        todo!()
    }

    /// Adds a record, durable when this returns.
    pub fn append(&mut self, _id: CampaignId, _record: &Record) -> Result<(), StoreError> {
        todo!()
    }

    /// Notes where the campaign stands, and its conclusion.
    pub fn conclude(
        &mut self,
        _id: CampaignId,
        _state: CampaignState,
        _conclusion: Option<&serde_json::Value>,
    ) -> Result<(), StoreError> {
        todo!()
    }
}
