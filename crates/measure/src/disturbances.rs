//! What disturbed measurements.

use crate::note::{ProgramNote, values_or_text};
use serde::{Deserialize, Serialize};

/// What other programs took of the contexts, other guests of the hypervisor included.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct OtherLoad {
    /// CPU time that they took, in seconds. Right on average only; single values may be below 0.
    pub taken: f64,
    /// CPU time of all contexts, in seconds.
    pub of: f64,
    /// The part of `taken` that the hypervisor gave to other guests while a thread here was ready.
    /// This is steal time (proc_stat(5)), in seconds.
    #[serde(default)]
    pub stolen: f64,
    /// The share of the time in which some thread of the machine waited for a context, 0 to 1. It
    /// is `some` of `/proc/pressure/cpu`. `None` if the kernel does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pressure: Option<f64>,
}

impl OtherLoad {
    /// A load with unknown steal time and pressure.
    pub fn new(taken: f64, of: f64) -> Self {
        Self { taken, of, stolen: 0.0, pressure: None }
    }

    /// The load of this window and of another one together. The pressure is the mean over their
    /// time. It is not known if it is not known of one of them.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        let of = self.of + other.of;
        let mean = |(own, others)| (own * self.of + others * other.of) / of;
        Self {
            taken: self.taken + other.taken,
            of,
            stolen: self.stolen + other.stolen,
            pressure: self.pressure.zip(other.pressure).map(mean),
        }
    }

    /// The share of the contexts' time that a program with unwatched threads can have lost to
    /// others, 0 to 1. While nobody waited, nothing was lost but stolen time. `None` if it is not
    /// known whether somebody waited.
    pub fn lost_at_most(&self) -> Option<f64> {
        let (taken, stolen) = (self.taken / self.of, self.stolen / self.of);
        let lost = (taken - stolen).min(self.pressure?) + stolen;
        lost.is_finite().then(|| lost.clamp(0.0, 1.0))
    }
}

/// What disturbed a testbed while it measured. It qualifies every answer from these measurements.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Disturbances {
    /// The load by other programs; `None` if it was not watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others: Option<OtherLoad>,
    /// What else happened.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "values_or_text")]
    pub notes: Vec<ProgramNote>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_lost_than_others_took_while_somebody_waited() {
        let lost = |taken, stolen, pressure| {
            OtherLoad { stolen, pressure, ..OtherLoad::new(taken, 4.0) }.lost_at_most()
        };
        assert_eq!(lost(2.0, 0.0, None), None);
        assert_eq!(lost(2.0, 0.0, Some(0.0)), Some(0.0), "there was room for all");
        assert_eq!(
            (lost(2.0, 0.0, Some(0.9)), lost(2.0, 0.0, Some(0.25))),
            (Some(0.5), Some(0.25))
        );
        assert_eq!(lost(2.0, 1.0, Some(0.0)), Some(0.25), "who runs does not wait");
        assert_eq!(lost(-0.1, 0.0, Some(0.5)), Some(0.0));
    }

    #[test]
    fn the_load_of_two_windows_is_weighted_by_their_time() {
        let quiet = OtherLoad { pressure: Some(0.0), ..OtherLoad::new(0.0, 4.0) };
        let busy = OtherLoad { taken: 8.0, of: 12.0, stolen: 1.0, pressure: Some(0.5) };
        let both = OtherLoad { taken: 8.0, of: 16.0, stolen: 1.0, pressure: Some(0.375) };
        assert_eq!(quiet.with(busy), both);
        assert_eq!(OtherLoad::new(0.0, 4.0).with(busy).pressure, None);
    }

    #[test]
    fn a_load_that_an_earlier_version_stored_is_read() {
        let stored = r#"{"taken":1.0,"of":4.0}"#;
        assert_eq!(serde_json::from_str::<OtherLoad>(stored).unwrap(), OtherLoad::new(1.0, 4.0));
    }
}
