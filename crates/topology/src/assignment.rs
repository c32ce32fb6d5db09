//! An assignment of threads to hardware contexts.

use serde::{Deserialize, Serialize};

/// Thread `i` runs on the leaf `self.context(i)` of a [`crate::SharingTree`]. Several threads may
/// share a context.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Assignment(Vec<u32>);

impl Assignment {
    /// From the leaf index of every thread, in thread order.
    pub fn new(leaves: Vec<u32>) -> Self {
        Self(leaves)
    }

    /// How many threads it places.
    pub fn threads(&self) -> usize {
        self.0.len()
    }

    /// The leaf index of thread `thread`, which must exist.
    pub fn leaf(&self, thread: usize) -> usize {
        self.0[thread] as usize
    }

    /// The leaf index of every thread, in thread order.
    pub fn leaves(&self) -> &[u32] {
        &self.0
    }
}
