//! What every predictor can do.

/// Tells the performance of an assignment without measuring it.
pub trait Predictor {
    /// The predicted performance, higher is better, of thread i on leaf `leaves[i]`; finite.
    fn predict(&self, leaves: &[u32]) -> f64;
}
