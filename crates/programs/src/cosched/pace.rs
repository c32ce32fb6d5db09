//! How long a quantum is: long enough that looking at the threads costs little.

use std::time::Duration;

/// The share of the whole machine that pinwise may take. It is measured by CPU time, and what that
/// disturbs besides is not. So this is below the 1 % that is promised.
const AFFORDED: f64 = 0.006;
/// The share left for looks, however much the metric costs.
const LEAST_AFFORDED: f64 = 0.001;
/// The longest quantum. With a longer one programs have begun and ended unseen.
const LONGEST: Duration = Duration::from_secs(5);
/// The weight of the last quantum in means.
const NEWEST: f64 = 0.2;

/// The length of quanta.
#[derive(Clone, Debug)]
pub(super) struct QuantumPace {
    wanted: Duration,
    contexts: f64,
    /// The mean cost of a look, in seconds of CPU time.
    look: f64,
    /// The mean cost of all else, such as the metric, in seconds of CPU time per second.
    rest: f64,
}

impl QuantumPace {
    /// Quanta of this length, on a machine with that many contexts.
    pub(super) fn new(wanted: Duration, contexts: usize) -> Self {
        Self { wanted, contexts: contexts.max(1) as f64, look: 0.0, rest: 0.0 }
    }

    /// Adds the CPU time of a look, and all other CPU time since the last one. `past` is the time
    /// since then.
    pub(super) fn spent(&mut self, look: Duration, rest: Duration, past: Duration) {
        self.look += NEWEST * (look.as_secs_f64() - self.look);
        let rest = rest.as_secs_f64() / past.as_secs_f64().max(1e-6);
        self.rest += NEWEST * (rest - self.rest);
    }

    /// The length of the next quantum. It is as wanted, or longer if looks exceed the rest of
    /// [`AFFORDED`].
    pub(super) fn quantum(&self) -> Duration {
        let afforded = (AFFORDED - self.rest / self.contexts).max(LEAST_AFFORDED);
        let needed = self.look / (afforded * self.contexts);
        self.wanted.max(Duration::from_secs_f64(needed).min(LONGEST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantum_that_costs_much_becomes_long_and_short_again() {
        let wanted = Duration::from_millis(100);
        let (none, past) = (Duration::ZERO, wanted);
        let mut pace = QuantumPace::new(wanted, 2);
        pace.spent(Duration::from_micros(500), none, past);
        assert_eq!(pace.quantum(), wanted);
        (0..50).for_each(|_| pace.spent(Duration::from_millis(6), none, past));
        let long = pace.quantum().as_secs_f64();
        // 6 ms of two contexts in that time.
        assert!((0.006 / (2.0 * long) - AFFORDED).abs() < 1e-4, "{long}");
        // The metric takes two thirds of the allowed share: 0.4 % of two contexts.
        (0..50).for_each(|_| pace.spent(Duration::from_millis(6), past.mul_f64(0.008), past));
        assert!((pace.quantum().as_secs_f64() / long - 3.0).abs() < 0.01);
        (0..50).for_each(|_| pace.spent(Duration::from_micros(100), past, past));
        assert_eq!(pace.quantum(), wanted, "longer quanta would not make the metric cheaper");
        (0..50).for_each(|_| pace.spent(Duration::from_secs(9), none, past));
        assert_eq!(pace.quantum(), LONGEST);
    }
}
