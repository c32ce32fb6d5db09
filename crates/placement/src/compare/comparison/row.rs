//! One row of a comparison: a way of placing with its performance, its loss, and whether its claim
//! holds.

use crate::Estimate;
use crate::compare::ways::BoundClaim;
use pinwise_campaign::CampaignId;
use pinwise_topology::Assignment;
use serde::{Deserialize, Serialize};

/// A share lost against the best known, with its interval. All losses of a comparison hold together
/// with its confidence (Bonferroni), since they are read together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Loss {
    /// 1 - performance / that of the best known, paired by round. It is negative infinity if the
    /// best known got nothing done and this did.
    pub estimate: f64,
    /// Lower end; negative infinity from fewer than 2 rounds.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// How a way stands to the best known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WayStanding {
    /// It is the best known.
    Best,
    /// The interval of its loss reaches 0: it may be as good.
    Tied,
    /// The whole interval of its loss is above 0.
    Worse,
    /// The whole interval of its loss is below 0. So the fresh windows contradict those by which
    /// the best known was chosen.
    Better,
}

/// The verdict of the fresh windows on a claim, by the loss against the best assignment in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClaimVerdict {
    /// The whole interval of the loss is within the gap claimed. Something unknown may still be
    /// better.
    Holds,
    /// Part of the interval is within the gap: the windows were too few to say.
    Open,
    /// The whole interval is beyond the gap.
    False,
}

/// A claim and whether it was true, as far as that is known.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct JudgedClaim {
    /// The claim.
    pub claim: BoundClaim,
    /// Whether the claimed gap is within the one asked for.
    pub certified: bool,
    /// Whether it was true. The verdict judges the gap. Both sides of the gap are measured here in
    /// the same rounds. The bound itself is from another time.
    pub verdict: ClaimVerdict,
    /// The largest loss of the claimed assignment against any other measured here; at least 0. Its
    /// ends are the greatest ends. The losses of all claims hold together with the comparison's
    /// confidence.
    pub loss: Loss,
}

/// One line of the comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComparisonRow {
    /// The way of placing: `naive, worst of 50`.
    pub name: String,
    /// The one assignment it stands for; `None` for the unpinned program and for means over draws.
    pub assignment: Option<Assignment>,
    /// Its performance, on windows that nothing was chosen by.
    pub performance: Estimate,
    /// Its loss against the best known.
    pub loss: Loss,
    /// The verdict on that loss.
    pub standing: WayStanding,
    /// Measurements spent on coming to it, those of this comparison left out.
    pub spent: u64,
    /// The campaign in which it searched.
    pub campaign: Option<CampaignId>,
    /// Its claim.
    pub claim: Option<JudgedClaim>,
}
