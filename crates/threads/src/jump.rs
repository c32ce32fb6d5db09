//! [`Jump`]: the load of a program that keeps running changed during a search.

use serde::{Deserialize, Serialize};

/// The progress with a number is far from what it was with the same number.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error(
    "with n = {n} its progress is {times:.2} times that of before: search again when its load is \
     steady"
)]
pub struct Jump {
    /// The number that was probed before and now.
    pub n: u32,
    /// The progress now, as a multiple of that before.
    pub times: f64,
}
