//! The initial program: its placement before pinwise pinned anything.

use super::Outcome;

impl Outcome {
    /// found / unpinned - 1. Given only if the initial interval and the interval of the later
    /// unpinned windows do not overlap. Either the placements of the operating system differ, or
    /// the program was still starting, or something else changed.
    pub fn found_apart(&self) -> Option<f64> {
        let (found, unpinned) = (self.as_found?, self.baseline?);
        (found.low > unpinned.high || found.high < unpinned.low)
            .then(|| found.mean / unpinned.mean - 1.0)
    }

    /// best / initial - 1 with its interval, (estimate, low, high). Their windows did not
    /// alternate, so the ends of their intervals are compared. If the initial interval reaches 0,
    /// there is no upper end (infinity). `None` if the initial mean is 0.
    pub fn gain_as_found(&self) -> Option<(f64, f64, f64)> {
        let (best, found) = (self.best.as_ref()?.performance, self.as_found?);
        if found.mean <= 0.0 {
            return None;
        }
        let over =
            |best: f64, found: f64| if found > 0.0 { best / found - 1.0 } else { f64::INFINITY };
        Some((over(best.mean, found.mean), over(best.low, found.high), over(best.high, found.low)))
    }

    /// Whether the best is better than the initial program. This matters if the initial program
    /// differs from unpinned, or beats the best. False if the gain over it may be 0 or less.
    pub fn beats_as_found(&self) -> bool {
        let apart = self.found_apart().is_some() || self.is_worse_than_found();
        !apart || self.gain_as_found().is_none_or(|(_, low, _)| low > 0.0)
    }

    /// Whether the initial program was better than the best, beyond the intervals.
    pub fn is_worse_than_found(&self) -> bool {
        let best = self.best.as_ref().map(|best| best.performance);
        self.as_found.zip(best).is_some_and(|(found, best)| found.low > best.high)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Estimate, Outcome, OutcomeNote, PlacedAssignment, PlacementQuestion};
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
        let question =
            PlacementQuestion::new(crate::StrategyName::Auto, crate::Budget::Measurements(1));
        let workload = Workload::new("", &[]);
        let (strategy, stopped) = (Vec::new(), Vec::new());
        let empty =
            Outcome::new(&question, &space, &workload, &Unit::rate("1/s"), &[], strategy, stopped);
        let outcome = |found: f64, unpinned: f64| Outcome {
            as_found: Some(estimate(found, 5.0)),
            baseline: Some(estimate(unpinned, 10.0)),
            best: Some(PlacedAssignment {
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
        let stopped = outcome(100.0, 0.0).qualifications(false);
        assert!(matches!(stopped[..], [OutcomeNote::AsFound { apart: None, .. }]), "{stopped:?}");
        assert_eq!(outcome(100.0, 0.0).qualifications(true), []);
    }
}
