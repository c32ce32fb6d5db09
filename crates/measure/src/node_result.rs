//! A result that came from one of several nodes.

use crate::{Effort, MeasureError, Measurement, Setting};

/// A result, and which node made it.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeResult {
    /// The name of the node.
    pub node: String,
    /// What was measured.
    pub setting: Setting,
    /// How long.
    pub effort: Effort,
    /// What came of it.
    pub outcome: Result<Measurement, MeasureError>,
}
