//! Forecasts what a base time table does not have, if only a sample of it was measured.
//!
//! The model is [`Learned`], of one instance: which kinds of its threads share what.

use crate::{CoreLocal, Learned, Predictor};
use std::collections::HashMap;

/// A sampled base time table and the model of the rest.
#[derive(Clone, Debug)]
pub(crate) struct BaseForecast {
    /// By [`crate::BaseSpace::shape`].
    measured: HashMap<u64, f64>,
    learned: Learned,
    /// Forecasts are multiplied by this: 1, or that for an end of their intervals.
    factor: f64,
    /// It knows only assignments over this many core-local domains; any, if `None`.
    within: Option<(CoreLocal, usize)>,
}

impl BaseForecast {
    /// Of what was measured, by shape; of anything else what `learned` says, times `factor`.
    pub(crate) fn new(learned: Learned, factor: f64, measured: HashMap<u64, f64>) -> Self {
        Self { measured, learned, factor, within: None }
    }

    /// For assignments over `domains` core-local domains alone.
    pub(crate) fn within(self, local: CoreLocal, domains: usize) -> Self {
        Self { within: Some((local, domains)), ..self }
    }

    /// The performance alone. The middle of a forecast is at most `best`, the best that was
    /// measured: a model that extrapolates is no reason to expect more.
    pub(crate) fn performance(&self, shape: u64, leaves: &[u32], best: f64) -> Option<f64> {
        let unknown = |(local, domains): &(CoreLocal, usize)| {
            leaves.len() < *domains || local.domains_of(leaves).len() != *domains
        };
        if self.within.as_ref().is_some_and(unknown) {
            return None;
        }
        let forecast = || self.learned.predict(leaves).min(best) * self.factor;
        Some(self.measured.get(&shape).copied().unwrap_or_else(forecast))
    }
}
