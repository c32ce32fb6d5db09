//! How often a program is looked at: as often as wanted, unless that costs too much.

use std::time::Duration;

/// Of the time of one CPU the looks take at most this share. A program that keeps one busy loses no more of its CPU time, one that keeps several
/// busy less; one that mostly sleeps loses nothing, since there is a CPU to spare.
const SHARE: f64 = 0.01;

/// The time from one look to the next, where the `looks` so far took `spent` of CPU time together: `wanted`, or longer, so that looks that go on
/// costing what they have keep to [`SHARE`].
pub(super) fn pace(wanted: Duration, spent: Duration, looks: u32) -> Duration {
    if looks == 0 { wanted } else { wanted.max((spent / looks).div_f64(SHARE)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn cheap_looks_come_as_often_as_wanted_and_dear_ones_as_their_cost_allows() {
        let wanted = Duration::from_millis(10);
        assert_eq!(pace(wanted, Duration::ZERO, 0), wanted);
        assert_eq!(pace(wanted, Duration::from_micros(300), 3), wanted);
        assert_eq!(pace(wanted, Duration::from_millis(6), 3), Duration::from_millis(200));
    }

    proptest! {
        #[test]
        fn looks_keep_to_their_share_and_come_never_sooner_than_wanted(wanted in 1u64..1_000_000, spent in 0u64..10_000_000, looks in 1u32..1000) {
            let (wanted, spent) = (Duration::from_micros(wanted), Duration::from_micros(spent));
            let pace = pace(wanted, spent, looks);
            prop_assert!(pace >= wanted);
            prop_assert!((spent / looks).as_secs_f64() <= pace.as_secs_f64() * SHARE + 1e-9);
            // No longer than that needs.
            prop_assert!(pace == wanted || pace.as_secs_f64() * SHARE <= (spent / looks).as_secs_f64() + 1e-9);
        }
    }
}
