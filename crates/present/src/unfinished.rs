//! How far a campaign is that has not ended, in the same words of every kind.

use crate::figures;
use crate::shell::Files;
use pinwise_campaign::{CampaignInfo, CampaignState};
use serde::{Deserialize, Serialize};

/// How far a campaign is that has not ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unfinished {
    /// What is measured.
    pub measured: u64,
    /// How many measurements there are in all.
    pub of: u64,
    /// The same as text, with the command that goes on.
    pub text: String,
}

impl Unfinished {
    /// `what` counts, as `runs are made`. `None` if the campaign has finished.
    pub fn of(
        info: &CampaignInfo,
        measured: u64,
        of: u64,
        what: &str,
        files: Files<'_>,
    ) -> Option<Self> {
        let far = format!("{} of {} {what}", figures::count(measured), figures::count(of));
        Some(Self { measured, of, text: unfinished(info, &far, files)? })
    }
}

/// How far a campaign is, and how to go on with it: `far` is a clause. `None` if it has
/// finished.
pub fn unfinished(info: &CampaignInfo, far: &str, files: Files<'_>) -> Option<String> {
    match info.state {
        CampaignState::Finished => None,
        _ if info.running => Some(format!("It is still running: {far}.")),
        _ => Some(format!("It is not finished: {far}; continue with: {}", files.resume(info.id))),
    }
}
