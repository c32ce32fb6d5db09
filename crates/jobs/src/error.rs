//! [`JobError`]: why a job has no answer.

use pinwise_campaign::{CampaignId, StoreError};
use pinwise_measure::MeasureError;
use pinwise_present::figures::counted;
use std::fmt::{self, Display};
use std::io;

/// Why a job has no answer. What was measured is stored in any case.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// The request makes no sense, or names something that does not exist.
    #[error("{0}")]
    Usage(String),
    /// The user or the system asked to stop. Everything is put back.
    #[error("{0}")]
    Interrupted(Interruption),
    /// Something failed.
    #[error("{0}")]
    Failed(Failure),
    /// The receiver of the events cannot take them.
    #[error(transparent)]
    Output(io::Error),
    /// The store cannot serve.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What an unfinished job left in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The campaign, which can be resumed.
    pub campaign: CampaignId,
    /// Its measurements, those of its parts included.
    pub records: u64,
}

/// A run that was asked to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interruption {
    /// The campaign that is left; `None` if nothing had been measured.
    pub kept: Option<Kept>,
    /// Whether a real program was measured, whose affinities are restored.
    pub restored: bool,
}

/// A run that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The message: what failed, on what, and why.
    pub reason: String,
    /// The campaign that is left; `None` if nothing had been measured.
    pub kept: Option<Kept>,
    /// The remedy.
    pub remedy: Remedy,
}

/// The remedy after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// The reason says it, or resuming once the cause is gone.
    Resume,
    /// Ask again, and say that the metric is a total that grows.
    AsCounter,
    /// Ask again in another way, as the reason says: resuming comes to the same end.
    AskAgain,
    /// Ask again with a larger budget.
    RaiseBudget,
}

impl Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let are = if self.records == 1 { "is" } else { "are" };
        let measurements = counted(self.records, "measurement");
        write!(f, "{measurements} {are} stored in campaign {}", self.campaign.0)
    }
}

impl Display for Interruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let when = if self.kept.is_none() { " before the first measurement" } else { "" };
        let restored = if self.restored { "the program's affinities are restored, " } else { "" };
        write!(f, "interrupted{when}: {restored}")?;
        match &self.kept {
            Some(kept) => kept.fmt(f),
            None => f.write_str("nothing is stored"),
        }
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)?;
        self.kept.map_or(Ok(()), |kept| write!(f, " ({kept})"))
    }
}

impl JobError {
    /// A failure before anything was measured.
    pub fn failed(reason: impl Display) -> Self {
        Self::Failed(Failure { reason: reason.to_string(), kept: None, remedy: Remedy::Resume })
    }

    /// The budget was over before anything was measured.
    pub(crate) fn budget_spent(reason: String) -> Self {
        Self::Failed(Failure { reason, kept: None, remedy: Remedy::RaiseBudget })
    }

    /// Bad usage, as a library's error describes it.
    pub(crate) fn usage(reason: impl Display) -> Self {
        Self::Usage(reason.to_string())
    }

    /// The user asked to stop before anything was measured.
    pub(crate) fn nothing_measured(restored: bool) -> Self {
        Self::Interrupted(Interruption { kept: None, restored })
    }

    /// The same error, with what was being done before it.
    pub(crate) fn context(self, what: impl Display) -> Self {
        match self {
            Self::Usage(reason) => Self::Usage(format!("{what}: {reason}")),
            Self::Failed(failure) => {
                Self::Failed(Failure { reason: format!("{what}: {}", failure.reason), ..failure })
            }
            other => other,
        }
    }
}

impl From<MeasureError> for JobError {
    fn from(error: MeasureError) -> Self {
        if error.interrupted { Self::nothing_measured(false) } else { Self::failed(error) }
    }
}

/// Errors of the libraries below that end a job as they are.
macro_rules! failures {
    ($($error:ty),* $(,)?) => {
        $(impl From<$error> for JobError {
            fn from(error: $error) -> Self {
                Self::failed(error)
            }
        })*
    };
}

failures!(
    pinwise_linux::CaptureError,
    pinwise_placement::SearchError,
    pinwise_placement::SelectionError,
    pinwise_topology::SpaceError,
    serde_json::Error,
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupted_measurement_is_no_failure() {
        let interrupted = JobError::from(MeasureError::interrupted());
        assert!(matches!(interrupted, JobError::Interrupted(_)));
        let failed = JobError::from(MeasureError::new(pinwise_measure::Retry::Same, "no answer"));
        assert!(matches!(failed, JobError::Failed(_)));
    }

    #[test]
    fn an_ending_says_what_is_stored_and_what_is_put_back() {
        let kept = Kept { campaign: CampaignId(3), records: 20 };
        let text = |kept, restored| Interruption { kept, restored }.to_string();
        assert_eq!(
            text(Some(kept), true),
            "interrupted: the program's affinities are restored, 20 measurements are stored in \
             campaign 3"
        );
        assert_eq!(
            text(None, false),
            "interrupted before the first measurement: nothing is stored"
        );
        let kept = Some(Kept { records: 1, ..kept });
        let failure = Failure { reason: "the disk is full".into(), kept, remedy: Remedy::Resume };
        assert_eq!(failure.to_string(), "the disk is full (1 measurement is stored in campaign 3)");
    }
}
