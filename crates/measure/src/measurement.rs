//! A measured performance, and what can go wrong while measuring.

use crate::Setting;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What performance is counted in. Performance is always higher-is-better. A quantity that is
/// better when lower (seconds, latency) is stored as its reciprocal and shown as itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unit {
    /// The unit of the quantity the user asked for: `packets/s`, `s`, `ops/s`, `1/s` when unknown.
    pub name: String,
    /// The quantity is better when lower: performance is its reciprocal.
    pub reciprocal: bool,
}

impl Unit {
    /// A quantity that is better when higher.
    pub fn rate(name: impl Into<String>) -> Self {
        Self { name: name.into(), reciprocal: false }
    }

    /// A quantity that is better when lower.
    pub fn cost(name: impl Into<String>) -> Self {
        Self { name: name.into(), reciprocal: true }
    }

    /// The name as a reader takes it: `per second` for `1/s`.
    pub fn label(&self) -> &str {
        if self.name == "1/s" { "per second" } else { &self.name }
    }

    /// The quantity, as the user knows it, that a performance stands for (and back: it is its own
    /// inverse).
    pub fn quantity(&self, performance: f64) -> f64 {
        if self.reciprocal { 1.0 / performance } else { performance }
    }

    /// The interval of the quantity that performances from `low` to `high` stand for, its lower end
    /// first. `None` for an end if nothing bounds it.
    pub fn interval(&self, low: f64, high: f64) -> [Option<f64>; 2] {
        let end = |performance: f64| {
            // A cost grows without end as the performance falls to nothing.
            let bounded = performance.is_finite() && !(self.reciprocal && performance <= 0.0);
            bounded.then(|| self.quantity(performance))
        };
        if self.reciprocal { [end(high), end(low)] } else { [end(low), end(high)] }
    }
}

/// One measured performance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// Performance in the testbed's [`Unit`], higher is better, finite.
    pub performance: f64,
    /// The time measured over, without settling.
    pub duration: Duration,
    /// Standard deviation of the parts the window consists of, if there were several.
    pub spread: Option<f64>,
    /// What else the testbed observed, stored with the record. `None` if there is nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Detail>,
}

impl Measurement {
    /// A performance, measured over `duration`, without further details.
    pub fn new(performance: f64, duration: Duration) -> Self {
        Self { performance, duration, spread: None, detail: None }
    }

    /// The measurement, if arithmetic can handle its performance and its spread.
    ///
    /// # Errors
    /// One of them is no number, infinite, or extreme (see [`SIZES`]).
    pub fn in_range(self) -> Result<Self, MeasureError> {
        let fits = |value: f64| value == 0.0 || SIZES.contains(&value.abs());
        let spread = self.spread.unwrap_or(0.0);
        if fits(self.performance) && spread <= *SIZES.end() {
            return Ok(self);
        }
        let value = if fits(self.performance) { spread } else { self.performance };
        let message =
            format!("the metric gave {value:e}, which is not a performance; check --metric");
        Err(MeasureError::new(Retry::Same, message))
    }
}

/// The sizes of performance, other than 0, that arithmetic can handle. The square of the ratio of
/// any two is finite. Beyond them, means and spreads overflow.
pub const SIZES: std::ops::RangeInclusive<f64> = 1e-75..=1e75;

/// What a testbed observed besides performance, as the testbed's own type serializes it.
///
/// Campaigns store it without knowing the type. The code that made the campaign reads it back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Detail(serde_json::Value);

impl Detail {
    /// The detail that stands for `value`; `None` if it cannot be serialized.
    pub fn of(value: &impl Serialize) -> Option<Self> {
        serde_json::to_value(value).ok().map(Self)
    }

    /// The value back. Error: it is of another type.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        T::deserialize(&self.0)
    }
}

/// Whether another try makes sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Retry {
    /// The same setting may work the next time.
    Same,
    /// The same setting may work once what is missing is back. The next try waits for it.
    Later,
    /// Other settings may work; this one will not.
    Other,
    /// Nothing will work any more; the campaign can be resumed once the cause is gone.
    Never,
}

impl Retry {
    /// Whether the same setting is worth another try.
    pub fn is_same(self) -> bool {
        matches!(self, Self::Same | Self::Later)
    }
}

/// Why there is no measurement. One line: what failed, on what, why, what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("{message}")]
pub struct MeasureError {
    /// The line for the user.
    pub message: String,
    /// Whether to try again.
    pub retry: Retry,
    /// The user or the system asked to stop (Ctrl-C, SIGTERM): not a failure of the target.
    pub interrupted: bool,
    /// The time for all measurements together was over before this one was: what was measured
    /// before stands.
    #[serde(default)]
    pub expired: bool,
    /// With this setting the program fell below the floor that the user gave.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub below_floor: bool,
    /// What the testbed observed all the same, stored with the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Box<Detail>>,
}

impl MeasureError {
    /// A failure; see [`Retry`] for what to do next.
    pub fn new(retry: Retry, message: impl Into<String>) -> Self {
        let (interrupted, expired, below_floor) = (false, false, false);
        let message = message.into();
        Self { message, retry, interrupted, expired, below_floor, detail: None }
    }

    /// What a testbed that has no [`crate::Testbed::profiles`] says to a profile of the workload
    /// `name`.
    pub fn no_profiles(name: &str) -> Self {
        let message = format!(
            "{name} cannot run here with fewer or more instances, as profiling needs: use another \
             strategy, or simulate (--machine ultrasparc-t2)"
        );
        Self::new(Retry::Never, message)
    }

    /// The testbed of the workload `name` has no way to measure `setting`.
    pub fn unsupported(name: &str, setting: &Setting) -> Self {
        match setting {
            Setting::Profile(_) => Self::no_profiles(name),
            _ => Self::new(Retry::Never, format!("{name} has no way to measure {setting:?}")),
        }
    }

    /// The time for all measurements ended before this one did.
    pub fn expired(message: impl Into<String>) -> Self {
        Self { expired: true, ..Self::new(Retry::Never, message) }
    }

    /// With this setting the program fell below the floor.
    pub fn below_floor(message: impl Into<String>) -> Self {
        Self { below_floor: true, ..Self::new(Retry::Other, message) }
    }

    /// The run was asked to stop.
    pub fn interrupted() -> Self {
        Self { interrupted: true, ..Self::new(Retry::Never, "interrupted") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_of_a_cost_has_its_ends_in_order_or_none() {
        let interval = |low, high| Unit::cost("s").interval(low, high);
        assert_eq!(interval(2.0, 4.0), [Some(0.25), Some(0.5)]);
        assert_eq!([interval(0.0, 4.0), interval(-1.0, 4.0)], [[Some(0.25), None]; 2]);
        assert_eq!(interval(f64::NEG_INFINITY, f64::INFINITY), [None, None]);
        assert_eq!(Unit::rate("packets/s").interval(-1.0, f64::INFINITY), [Some(-1.0), None]);
    }
}
