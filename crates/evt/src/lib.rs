//! From a sample of performances to the best possible one, with confidence.

use serde::{Deserialize, Serialize};

/// The estimator of the upper performance bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Bayesian GPD on a fixed number of deep exceedances; the default.
    #[default]
    Bayes,
    /// The published one: threshold by mean excess, maximum likelihood, profile likelihood.
    Profile,
}
