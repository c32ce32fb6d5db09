//! How often a program is looked at: as often as wanted, unless that costs too much.

use std::time::Duration;

/// Of the time of one CPU the looks take at most this share. A program that keeps one busy loses no more of its CPU time, one that keeps several
/// busy less; one that mostly sleeps loses nothing, since there is a CPU to spare.
const SHARE: f64 = 0.01;

/// What the looks at a program took so far, in all windows.
#[derive(Debug, Default)]
pub(super) struct Budget {
    looks: u32,
    /// CPU time of all but the first: that one opens the files, and says nothing about those that follow.
    spent: Duration,
}

impl Budget {
    /// A look that took `spent` of CPU time.
    pub(super) fn take(&mut self, spent: Duration) {
        if self.looks > 0 {
            self.spent += spent;
        }
        self.looks = self.looks.saturating_add(1);
    }

    pub(super) fn looks(&self) -> u32 {
        self.looks
    }

    /// The time from one look to the next: `wanted`, or longer, so that looks that go on costing what they have keep to [`SHARE`].
    pub(super) fn pace(&self, wanted: Duration) -> Duration {
        let mean = self.spent.checked_div(self.looks.saturating_sub(1)).unwrap_or_default();
        wanted.max(mean.div_f64(SHARE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn cheap_looks_come_as_often_as_wanted_and_dear_ones_as_their_cost_allows() {
        let wanted = Duration::from_millis(10);
        let after = |looks: &[u64]| {
            let mut budget = Budget::default();
            looks.iter().for_each(|&micros| budget.take(Duration::from_micros(micros)));
            budget.pace(wanted)
        };
        assert_eq!(after(&[]), wanted);
        assert_eq!(after(&[9000]), wanted, "the first look is another kind");
        assert_eq!(after(&[9000, 100, 50, 150]), wanted);
        assert_eq!(after(&[9000, 1000, 2000, 3000]), Duration::from_millis(200));
    }

    proptest! {
        #[test]
        fn looks_keep_to_their_share_and_come_never_sooner_than_wanted(wanted in 1u64..1_000_000, spent in 0u64..10_000_000, looks in 1u32..1000) {
            let (wanted, spent) = (Duration::from_micros(wanted), Duration::from_micros(spent));
            let pace = Budget { looks: looks + 1, spent }.pace(wanted);
            prop_assert!(pace >= wanted);
            prop_assert!((spent / looks).as_secs_f64() <= pace.as_secs_f64() * SHARE + 1e-9);
            // No longer than that needs.
            prop_assert!(pace == wanted || pace.as_secs_f64() * SHARE <= (spent / looks).as_secs_f64() + 1e-9);
        }
    }
}
