//! Time of the model: whole nanoseconds since its start.

use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};

/// Nanoseconds: a moment since the start of a run, or a span of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

impl Nanos {
    /// Later than anything.
    pub const NEVER: Self = Self(u64::MAX);

    /// `micros` µs; negative counts as none.
    pub fn from_micros(micros: f64) -> Self {
        Self((micros * 1e3).round() as u64)
    }

    /// `millis` ms; negative counts as none.
    pub fn from_millis(millis: f64) -> Self {
        Self((millis * 1e6).round() as u64)
    }

    /// `seconds` s; negative counts as none.
    pub fn from_seconds(seconds: f64) -> Self {
        Self((seconds * 1e9).round() as u64)
    }

    /// In seconds.
    pub fn seconds(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl Add for Nanos {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Nanos {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Nanos {
    fn sum<I: Iterator<Item = Self>>(spans: I) -> Self {
        spans.fold(Self::default(), Add::add)
    }
}
