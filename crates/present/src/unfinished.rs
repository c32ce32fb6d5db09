//! How far a campaign is that has not ended, in the same words of every kind.

use crate::figures;
use crate::shell::Files;
use pinwise_campaign::{CampaignInfo, CampaignState};
use pinwise_placement::{Budget, PlacementQuestion};
use serde::{Deserialize, Serialize};

/// Where a campaign stands, in one word.
pub fn campaign_state(info: &CampaignInfo) -> &'static str {
    match info.state {
        CampaignState::Open if info.running => "running",
        CampaignState::Open => "killed",
        CampaignState::Finished => "finished",
        CampaignState::Stopped => "stopped",
    }
}

/// How far a campaign is that has not ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unfinished {
    /// What is measured.
    pub measured: u64,
    /// How many measurements there are in all, at most; `None`: the time decides.
    pub of: Option<u64>,
    /// The same as text, with the command that goes on.
    pub text: String,
}

/// How many measurements a campaign makes in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planned {
    /// This many.
    Exactly(u64),
    /// This many or fewer.
    AtMost(u64),
    /// As many as there is time for.
    ByTime,
}

impl From<Budget> for Planned {
    fn from(budget: Budget) -> Self {
        match budget {
            Budget::Measurements(most) => Self::AtMost(most),
            Budget::Time(_) => Self::ByTime,
        }
    }
}

impl Unfinished {
    /// `what` names one measurement, as `run`. `None` if the campaign has finished.
    pub fn of(
        info: &CampaignInfo,
        measured: u64,
        planned: Planned,
        what: &str,
        files: Files<'_>,
    ) -> Option<Self> {
        let made = figures::count(measured);
        let (of, far) = match planned {
            Planned::Exactly(all) => {
                (Some(all), format!("{made} of {}", figures::counted(all, what)))
            }
            Planned::AtMost(most) => {
                (Some(most), format!("{made} of at most {}", figures::counted(most, what)))
            }
            Planned::ByTime => (None, figures::counted(measured, what)),
        };
        let text = match info.state {
            CampaignState::Finished => return None,
            _ if info.running => format!("It is still running: {far} so far."),
            _ => {
                let resume = files.resume(info.id);
                format!("It is not finished: {far} so far; continue with: {resume}")
            }
        };
        Some(Self { measured, of, text })
    }

    /// Of a placement.
    pub fn of_placement(
        info: &CampaignInfo,
        question: &PlacementQuestion,
        files: Files<'_>,
    ) -> Option<Self> {
        Self::of(info, info.records, question.budget.into(), "measurement", files)
    }
}

/// In place of an answer that a search does not have yet.
pub fn no_answer_yet(info: &CampaignInfo) -> &'static str {
    match info.running {
        true => "No answer yet: the campaign is running.",
        false => "No answer yet: the search has not ended.",
    }
}
