//! The program as it was found: before anything was pinned, in the placement that it had by then.

use super::{Advice, Drift, Outcome};
use pinwise_figures as figures;

impl Outcome {
    /// found / unpinned - 1, where the interval as found and the interval of the later unpinned
    /// windows do not overlap. Either the placements of the operating system differ, or the program
    /// was still starting, or something else changed.
    pub fn found_apart(&self) -> Option<f64> {
        let (found, unpinned) = (self.as_found?, self.baseline?);
        (found.low > unpinned.high || found.high < unpinned.low)
            .then(|| found.mean / unpinned.mean - 1.0)
    }

    /// best / as found - 1 with its interval, (estimate, low, high). They were not measured in
    /// turn, so the ends of their intervals are compared. Without an upper end (infinity) where the
    /// interval of the program as found reaches 0, `None` where its mean does.
    pub fn gain_as_found(&self) -> Option<(f64, f64, f64)> {
        let (best, found) = (self.best.as_ref()?.performance, self.as_found?);
        if found.mean <= 0.0 {
            return None;
        }
        let over =
            |best: f64, found: f64| if found > 0.0 { best / found - 1.0 } else { f64::INFINITY };
        Some((over(best.mean, found.mean), over(best.low, found.high), over(best.high, found.low)))
    }

    /// Whether the best is better than the program as it was found, where that was otherwise than
    /// unpinned after or than the best.
    pub fn beats_as_found(&self) -> bool {
        let apart = self.found_apart().is_some() || self.is_worse_than_found();
        !apart || self.gain_as_found().is_none_or(|(_, low, _)| low > 0.0)
    }

    /// Whether the program as it was found did better than the best, beyond the intervals.
    pub fn is_worse_than_found(&self) -> bool {
        let best = self.best.as_ref().map(|best| best.performance);
        self.as_found.zip(best).is_some_and(|(found, best)| found.low > best.high)
    }

    /// A sentence on a program that was found doing otherwise than it did unpinned after, and on
    /// what the gain is over that, unless the reference changed in the same direction
    /// meanwhile.
    pub fn qualification(&self) -> Option<String> {
        let (apart, found, unpinned) = (self.found_apart()?, self.as_found?, self.baseline?);
        let [windows, after] = [found.n, unpinned.n].map(|n| figures::count(n as u64));
        if unpinned.mean == 0.0 {
            return Some(format!(
                "The metric stood still: as found the program made progress, unpinned afterwards \
                 none ({windows} and {after} windows). Check that it still runs, and repeat."
            ));
        }
        let drifted = |drift: &Drift| drift.significant && (drift.change > 0.0) == (apart < 0.0);
        let ending = if self.drift.as_ref().is_some_and(drifted) {
            "; or something else changed meanwhile".to_owned()
        } else if let Some((gain, low, high)) =
            self.gain_as_found().filter(|_| self.advice == Advice::Pin)
        {
            let (gain, low) = (figures::change(gain), figures::change(low));
            let interval = if high.is_finite() {
                format!("{low} to {}", figures::change(high))
            } else {
                format!("at least {low}")
            };
            format!("; the gain over that is {gain} ({interval})")
        } else {
            String::new()
        };
        Some(format!(
            "As found it did {} {} than unpinned later ({windows} and {after} windows){ending}. \
             Repeat when it is warm.",
            figures::percent(apart.abs()),
            if apart > 0.0 { "better" } else { "worse" },
        ))
    }
}

#[cfg(test)]
mod tests {
    use crate::{Best, Estimate, Outcome, Question};
    use pinwise_measure::{Unit, Workload};
    use pinwise_topology::{Assignment, Space};

    #[test]
    fn the_program_as_found_is_apart_where_the_intervals_do_not_meet() {
        let estimate = |mean: f64, half: f64| Estimate {
            mean,
            low: mean - half,
            high: mean + half,
            n: 4,
            confidence: 0.95,
            spread: half,
        };
        let tree = pinwise_topology::SharingTree::new(
            &pinwise_topology::Machine::from_shape("2").unwrap(),
            pinwise_topology::Alike::ByStructure,
        );
        let space = Space::new(tree, 1, pinwise_topology::PerContext::AtMost(1)).unwrap();
        let question = Question::new(crate::StrategyName::Auto, crate::Budget::Measurements(1));
        let workload = Workload::new("", &[]);
        let (strategy, stopped) = (Vec::new(), Vec::new());
        let empty =
            Outcome::new(&question, &space, &workload, &Unit::rate("1/s"), &[], strategy, stopped);
        let outcome = |found: f64, unpinned: f64| Outcome {
            as_found: Some(estimate(found, 5.0)),
            baseline: Some(estimate(unpinned, 10.0)),
            best: Some(Best {
                assignment: Assignment::new(vec![0]),
                performance: estimate(120.0, 6.0),
            }),
            ..empty.clone()
        };
        assert_eq!(outcome(114.0, 100.0).found_apart(), None);
        assert_eq!(outcome(80.0, 100.0).found_apart(), Some(0.8 - 1.0));
        assert_eq!(outcome(150.0, 100.0).found_apart(), Some(0.5));
        let (gain, low, high) = outcome(120.0, 100.0).gain_as_found().unwrap();
        assert_eq!((gain, low, high), (0.0, 114.0 / 125.0 - 1.0, 126.0 / 115.0 - 1.0));
        // Four windows that tell little: 1 ± 5.
        let (gain, low, high) = outcome(1.0, 100.0).gain_as_found().unwrap();
        assert_eq!((gain, low, high), (119.0, 114.0 / 6.0 - 1.0, f64::INFINITY));
        assert_eq!((outcome(0.0, 100.0).gain_as_found(), empty.gain_as_found()), (None, None));
        let stopped = outcome(100.0, 0.0).qualification().unwrap();
        assert!(stopped.contains("The metric stood still"), "{stopped}");
    }
}
