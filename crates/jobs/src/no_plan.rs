//! [`NoPlan`]: why a campaign has no plan.

use crate::tune::TuneConclusion;
use pinwise_campaign::{CampaignId, CampaignInfo, CampaignState, Kind};
use pinwise_placement::{Outcome, StopReason};
use serde::Deserialize;

/// Why there is no plan of a campaign beside its store.
#[derive(Clone, Debug, PartialEq)]
pub enum NoPlan {
    /// Campaigns of its kind write none.
    Kind(Kind),
    /// It is a part of this campaign, which answers.
    Part(CampaignId),
    /// It is still running.
    Running,
    /// It was interrupted, or failed.
    NotFinished,
    /// It ended undecided, for these reasons.
    Undecided(Vec<StopReason>),
    /// It wrote one that is not there any more.
    Gone,
    /// Its answer has none.
    None,
}

impl NoPlan {
    /// The reason that follows from the conclusion of `info`.
    pub fn of(info: &CampaignInfo) -> Self {
        if let Some(parent) = &info.new.parent {
            return Self::Part(parent.id);
        }
        let conclusion = info.conclusion.as_ref();
        match (info.new.kind, info.state) {
            (Kind::Place, CampaignState::Finished) => match conclusion.map(Outcome::deserialize) {
                Some(Ok(Outcome { best: None, stopped_because, .. })) => {
                    Self::Undecided(stopped_because)
                }
                _ => Self::Gone,
            },
            (Kind::Tune, CampaignState::Finished) => {
                match conclusion.map(TuneConclusion::deserialize) {
                    Some(Ok(TuneConclusion { parameter: Some(_), .. })) => Self::Gone,
                    _ => Self::None,
                }
            }
            (Kind::Place | Kind::Tune, _) if info.running => Self::Running,
            (Kind::Place | Kind::Tune, _) => Self::NotFinished,
            (kind, _) => Self::Kind(kind),
        }
    }
}
