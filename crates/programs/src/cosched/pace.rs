//! How long a quantum is: long enough that looking at the threads costs little.

use std::time::Duration;

/// The share of the whole machine that looks and moves may take. They are measured by CPU time, and
/// what they disturb besides is not. So this is below the 1 % that is promised.
const AFFORDED: f64 = 0.006;
/// The longest quantum. With a longer one programs have begun and ended unseen.
const LONGEST: Duration = Duration::from_secs(5);
/// The weight of the last quantum in the mean of costs.
const NEWEST: f64 = 0.2;

/// The length of quanta.
#[derive(Clone, Debug)]
pub(super) struct Pace {
    wanted: Duration,
    contexts: usize,
    /// The mean cost of a quantum, in seconds of CPU time.
    cost: f64,
}

impl Pace {
    /// Quanta of this length, on a machine with that many contexts.
    pub(super) fn new(wanted: Duration, contexts: usize) -> Self {
        Self { wanted, contexts, cost: 0.0 }
    }

    /// Takes in what a quantum cost, in CPU time.
    pub(super) fn spent(&mut self, cost: Duration) {
        self.cost += NEWEST * (cost.as_secs_f64() - self.cost);
    }

    /// The length of the next quantum: as wanted, or so long that it costs the share
    /// [`AFFORDED`].
    pub(super) fn quantum(&self) -> Duration {
        let needed = self.cost / (AFFORDED * self.contexts.max(1) as f64);
        self.wanted.max(Duration::from_secs_f64(needed).min(LONGEST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantum_that_costs_much_becomes_long_and_short_again() {
        let wanted = Duration::from_millis(100);
        let mut pace = Pace::new(wanted, 2);
        pace.spent(Duration::from_micros(500));
        assert_eq!(pace.quantum(), wanted);
        (0..50).for_each(|_| pace.spent(Duration::from_millis(6)));
        let long = pace.quantum().as_secs_f64();
        // 6 ms of two contexts in that time.
        assert!((0.006 / (2.0 * long) - AFFORDED).abs() < 1e-4, "{long}");
        (0..50).for_each(|_| pace.spent(Duration::from_micros(500)));
        assert_eq!(pace.quantum(), wanted);
        (0..50).for_each(|_| pace.spent(Duration::from_secs(9)));
        assert_eq!(pace.quantum(), LONGEST);
    }
}
