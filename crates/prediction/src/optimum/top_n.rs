//! Collects the best assignments that a search comes across.

use crate::optimum::incremental::{AssignmentEntries, Incremental};
use std::collections::BTreeSet;

/// The best assignments found so far.
#[derive(Clone, Debug)]
pub(crate) struct TopN {
    count: usize,
    /// Best first.
    pub(super) places: Vec<(f64, Vec<u32>)>,
    descriptions: BTreeSet<AssignmentEntries>,
    /// In the order of `places`.
    described: Vec<AssignmentEntries>,
}

impl TopN {
    pub(super) fn new(count: usize) -> Self {
        Self { count, places: Vec::new(), descriptions: BTreeSet::new(), described: Vec::new() }
    }

    /// The best prediction; minus infinity before there is one.
    pub(crate) fn best(&self) -> f64 {
        self.places.first().map_or(f64::NEG_INFINITY, |(best, _)| *best)
    }

    /// What a prediction has to exceed to find a place.
    pub(crate) fn threshold(&self) -> f64 {
        if self.count == 0 {
            return f64::INFINITY;
        }
        let last = self.places.get(self.count - 1);
        last.map_or(f64::NEG_INFINITY, |(last, _)| *last)
    }

    /// Gives an assignment its place, unless it is known or not good enough.
    pub(crate) fn enter(&mut self, moving: &Incremental<'_>) {
        let (predicted, known) = moving.predicted();
        if !known || predicted <= self.threshold() {
            return;
        }
        let description = moving.description();
        if !self.descriptions.insert(description.clone()) {
            return;
        }
        let place = self.places.partition_point(|(other, _)| *other >= predicted);
        self.places.insert(place, (predicted, moving.leaves()));
        self.described.insert(place, description);
        if self.places.len() > self.count {
            self.places.pop();
            if let Some(last) = self.described.pop() {
                self.descriptions.remove(&last);
            }
        }
    }

    /// The leaves of the best.
    pub(crate) fn first(&self) -> Option<&[u32]> {
        self.places.first().map(|(_, leaves)| &leaves[..])
    }

    pub(super) fn into_leaves(self) -> impl Iterator<Item = Vec<u32>> {
        self.places.into_iter().map(|(_, leaves)| leaves)
    }
}
