//! A campaign without its records.

use pinwise_measure::{Unit, Workload};
use pinwise_topology::{Alike, Machine};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The number of a campaign in its store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CampaignId(pub i64);

/// Names a campaign in a file outside its store, such as a plan. Campaigns of other stores have the
/// same numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CampaignIdentity {
    /// The file name of its store, without the folder.
    pub store: String,
    /// Its number in that store.
    pub number: CampaignId,
    /// When it began, seconds since the Unix epoch. A store that was made again has the number
    /// again.
    pub started: i64,
}

/// The question that a campaign answers. It decides which type its question, its conclusion and
/// the details of its records have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Where each thread runs.
    Place,
    /// How strategies compare.
    Compare,
    /// Which of the ready programs run together.
    Select,
    /// How many threads.
    Threads,
    /// What counts as high for the published search for a number of threads.
    Calibrate,
    /// The probes of one example program, as a part of [`Kind::Calibrate`].
    Example,
    /// How many threads, and where.
    Tune,
    /// Numbers of threads under policies of placement, as a part of [`Kind::Tune`].
    Policies,
    /// The last comparison of [`Kind::Tune`] or [`Kind::Threads`], as a part of it.
    #[serde(alias = "finals")]
    LastComparison,
    /// What programs on shared hardware do to each other.
    Characterize,
    /// What a context gets of its caches, as a part of [`Kind::Characterize`].
    Caches,
    /// Core-to-core latency.
    Latency,
    /// Which programs to pair.
    Pairs,
    /// Whether running programs gain if their threads are moved between siblings.
    Cosched,
}

impl Kind {
    /// Whether its campaigns are parts of others, and have no answer of their own.
    pub fn is_part(self) -> bool {
        matches!(self, Self::Policies | Self::LastComparison | Self::Caches | Self::Example)
    }

    /// The word for it in the store and in JSON: `place`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Place => "place",
            Self::Compare => "compare",
            Self::Select => "select",
            Self::Threads => "threads",
            Self::Calibrate => "calibrate",
            Self::Example => "example",
            Self::Tune => "tune",
            Self::Policies => "policies",
            Self::LastComparison => "last_comparison",
            Self::Characterize => "characterize",
            Self::Caches => "caches",
            Self::Latency => "latency",
            Self::Pairs => "pairs",
            Self::Cosched => "cosched",
        }
    }
}

/// The campaign that another one is a part of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parent {
    /// The campaign.
    pub id: CampaignId,
    /// Which of its steps the part is, unique among its parts. The type of the campaign's kind
    /// serializes it. It is opaque here.
    pub step: serde_json::Value,
}

impl Parent {
    /// Names a step of a campaign. A step that has no form in JSON equals no other one.
    pub fn new(id: CampaignId, step: &impl Serialize) -> Self {
        Self { id, step: serde_json::to_value(step).unwrap_or_default() }
    }

    /// The step, where it is one of this type.
    pub fn step<T: DeserializeOwned>(&self) -> Option<T> {
        T::deserialize(&self.step).ok()
    }
}

/// What is known about a campaign before its first measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NewCampaign {
    /// What is asked.
    pub kind: Kind,
    /// The campaign that it is a part of, if it is one.
    pub parent: Option<Parent>,
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
    /// Whether performances and times are those of a model, not of this machine. So it is for the
    /// parts of such a campaign, too.
    pub simulated: bool,
    /// The question, as the type of its kind serializes it; opaque here.
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
    /// Whether another process, or another open [`crate::Store`], has it locked at this moment to
    /// add records.
    pub running: bool,
    /// How many records it has.
    pub records: u64,
    /// The conclusion, as the type of its kind serializes it, once there is one.
    pub conclusion: Option<serde_json::Value>,
}
