//! The effect of co-runners in the innermost domain on a thread.

/// How the demands of the others in a thread's innermost domain slow it down. The processor's
/// formula has a sum. The others test a predictor that expects a sum.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Crowding {
    /// By 1 + sum of D.
    #[default]
    Sum,
    /// By 1 + 2 max(0, sum of D - free): a unit that is felt only when it is full.
    Full {
        /// What it has room for.
        free: f64,
    },
    /// By 1 + sum of D + clash for each two others of different roles. Such co-runners are worse
    /// together than apart.
    Clash {
        /// What two cost.
        clash: f64,
    },
    /// By 1 + L / (1 - L / full), L = sum of D, at most 20 L. A queue grows before such a unit.
    Queue {
        /// The demand at which it would grow without end, above 0.
        full: f64,
    },
    /// By 1 + the greatest D among the others, and a share of what the rest demand. Turns are then
    /// as long as the longest.
    Greatest {
        /// The share.
        rest: f64,
    },
}

impl Crowding {
    /// What it multiplies the time of a thread of `role` by. `held` counts the threads in its
    /// domain by role, itself included.
    pub(super) fn factor(self, demand: &[f64], held: &[f64], role: usize) -> f64 {
        let count = |other: usize| held[other] - f64::from(u8::from(other == role));
        let sum: f64 = (0..held.len()).map(|other| count(other) * demand[other]).sum();
        match self {
            Self::Sum => 1.0 + sum,
            Self::Full { free } => 1.0 + 2.0 * (sum - free).max(0.0),
            Self::Clash { clash } => {
                let unlike: f64 =
                    (0..held.len()).map(|a| count(a) * (0..a).map(count).sum::<f64>()).sum();
                1.0 + sum + clash * unlike
            }
            Self::Queue { full } => 1.0 + sum / (1.0 - sum / full).max(0.05),
            Self::Greatest { rest } => {
                let there = (0..held.len()).filter(|other| count(*other) > 0.0);
                let greatest = there.map(|other| demand[other]).fold(0.0, f64::max);
                1.0 + greatest + rest * (sum - greatest)
            }
        }
    }
}
