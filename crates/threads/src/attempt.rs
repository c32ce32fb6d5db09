//! [`Attempt`]: one probe of a search.

use pinwise_measure::Probe;
use serde::{Deserialize, Serialize};

/// One probe of a search.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// T: what the search asked for.
    pub asked: u32,
    /// The probe. Its progress is the value that is maximised.
    pub probe: Probe,
    /// The share of the contexts' time that the program lost to others. `None`: it is not known.
    #[serde(default)]
    pub lost: Option<f64>,
    /// The program fell below the floor. The search does not ask for this number again.
    #[serde(default)]
    pub below_floor: bool,
}
