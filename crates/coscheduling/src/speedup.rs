//! The gain or loss of two programs on one core: weighted speed-up, speed-up, slowdown and
//! unfairness.

use serde::{Deserialize, Serialize};

/// How much work a run of each program is, compared with the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lengths {
    /// A run of each is as long as it is.
    Own,
    /// Programs that never end: each counts as long as the other, alone.
    Equal,
}

/// The times of two programs, of whole runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairTimes {
    /// A run alone.
    pub alone: [f64; 2],
    /// A run beside the other, from its begin to its end.
    pub together: [f64; 2],
}

impl PairTimes {
    /// How many times longer each takes beside the other.
    pub fn slowdowns(&self) -> [f64; 2] {
        [0, 1].map(|one| self.together[one] / self.alone[one])
    }

    /// The sum of the speeds, each as a share of the speed alone: 2 if neither feels the other, 1
    /// if nothing is gained over one after the other (A. Snavely, D. M. Tullsen, "Symbiotic
    /// jobscheduling for a simultaneous multithreading processor", ASPLOS 2000, section 3).
    pub fn weighted_speedup(&self) -> f64 {
        self.slowdowns().iter().map(|slowdown| 1.0 / slowdown).sum()
    }

    /// The largest slowdown over the smallest: 1 if both feel the other alike (O. Mutlu, T.
    /// Moscibroda, "Stall-time fair memory access scheduling", MICRO 2007, section 5).
    pub fn unfairness(&self) -> f64 {
        let [one, other] = self.slowdowns();
        one.max(other) / one.min(other)
    }

    /// The time of one after the other, divided by the time of both together. Source: figure 1 of
    /// "Hardware monitoring for SMT scheduling and path profiles".
    ///
    /// Both begin at once. The one that ends first was accompanied all the time. The other has then
    /// done a share of its run, at its accompanied speed. It does the rest alone.
    pub fn speedup(&self, lengths: Lengths) -> f64 {
        let scale = |one: usize| match lengths {
            Lengths::Own => 1.0,
            Lengths::Equal => 1.0 / self.alone[one],
        };
        let alone = [0, 1].map(|one| self.alone[one] * scale(one));
        let together = [0, 1].map(|one| self.together[one] * scale(one));
        let last = usize::from(together[1] > together[0]);
        let first = 1 - last;
        let rest = 1.0 - together[first] / together[last];
        (alone[0] + alone[1]) / (together[first] + rest * alone[last])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(one: f64, other: f64) -> bool {
        (one - other).abs() < 1e-12
    }

    #[test]
    fn the_formulas_give_the_values_computed_by_hand() {
        // The first takes 4 s alone and 5 s beside the second; the second 10 s and 20 s.
        let times = PairTimes { alone: [4.0, 10.0], together: [5.0, 20.0] };
        assert_eq!(times.slowdowns(), [1.25, 2.0]);
        assert!(close(times.weighted_speedup(), 0.8 + 0.5));
        assert!(close(times.unfairness(), 1.6));
        // After 5 s the second has done a quarter. The other three take 7.5 s alone.
        assert!(close(times.speedup(Lengths::Own), 14.0 / 12.5));
        // Of equal length: after 1.25 the second has done 0.625, and the rest takes 0.375.
        assert!(close(times.speedup(Lengths::Equal), 2.0 / 1.625));
        let turned = PairTimes { alone: [10.0, 4.0], together: [20.0, 5.0] };
        assert!(close(turned.speedup(Lengths::Own), times.speedup(Lengths::Own)));
        assert!(close(turned.unfairness(), times.unfairness()));
    }

    #[test]
    fn equal_programs_have_one_speedup() {
        let times = PairTimes { alone: [3.0; 2], together: [4.0; 2] };
        assert!(close(times.speedup(Lengths::Own), 1.5) && close(times.weighted_speedup(), 1.5));
        assert_eq!(times.unfairness(), 1.0);
        let alike = PairTimes { alone: [3.0; 2], together: [3.0; 2] };
        assert_eq!((alike.speedup(Lengths::Equal), alike.weighted_speedup()), (2.0, 2.0));
    }
}
