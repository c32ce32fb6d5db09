//! A campaign without its records.

use pinwise_measure::{Unit, Workload};
use pinwise_topology::{Alike, Machine};
use serde::{Deserialize, Serialize};

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
    /// Not ended properly: running now ([`CampaignInfo::running`]), or killed.
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
    /// Whether a process is adding records to it at this moment.
    pub running: bool,
    /// How many records it has.
    pub records: u64,
    /// The conclusion, as its answerer's own type serializes it, once there is one.
    pub conclusion: Option<serde_json::Value>,
}
