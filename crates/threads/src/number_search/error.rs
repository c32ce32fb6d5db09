//! [`NumberSearchError`]: why a search for a number cannot go on.

use crate::{SpeedSearchError, ThreadRangeError};
use pinwise_measure::{MeasureError, Retry};
use serde::{Deserialize, Serialize};

/// Why a search cannot go on. Notes store it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum NumberSearchError {
    /// A probe failed, or does not compare with those before it.
    #[error(transparent)]
    Probe(#[from] MeasureError),
    /// A sweep has nothing to try.
    #[error("there are no numbers of threads to try")]
    NoNumbers,
    /// The timing run does not show how long a run takes.
    #[error("a run took no time")]
    NoTime,
    /// The progress of a program that keeps running jumped.
    #[error(transparent)]
    Jumped(#[from] Jump),
    /// A survey has nothing to choose from, or a probe shows nothing.
    #[error(transparent)]
    #[serde(untagged)]
    Survey(#[from] SpeedSearchError),
    /// The published search cannot try these numbers.
    #[error(transparent)]
    #[serde(untagged)]
    Range(#[from] ThreadRangeError),
}

/// The progress with a number is far from the earlier progress with the same number. The load of a
/// running program changed during the search.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error(
    "with n = {n} its progress is {times:.2} times its earlier one: search again when its load is \
     steady"
)]
pub struct Jump {
    /// The number that was probed before and now.
    pub n: u32,
    /// The progress now, as a multiple of that before.
    pub times: f64,
}

/// What was stored as text was the message of a probe, or stands for one.
impl From<String> for NumberSearchError {
    fn from(message: String) -> Self {
        Self::Probe(MeasureError::new(Retry::Never, message))
    }
}
