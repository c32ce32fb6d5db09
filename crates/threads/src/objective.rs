//! What is to be great: speed, or speed and energy together.

use serde::{Deserialize, Serialize};

/// What a search maximises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Objective {
    /// Least time: work per second.
    #[default]
    Time,
    /// Least energy: work per joule.
    Energy,
    /// Least energy times time ("energy-delay product"; R. Gonzalez, M. Horowitz, "Energy dissipation in general purpose microprocessors", IEEE J. of
    /// Solid-State Circuits 31(9), 1996): work per second times work per joule.
    Edp,
}

impl Objective {
    /// The value to maximise at `rate` work per second and `watts` of power; `None` where it needs a power that is not known (or not above 0).
    pub fn value(self, rate: f64, watts: Option<f64>) -> Option<f64> {
        let watts = watts.filter(|watts| *watts > 0.0);
        match self {
            Self::Time => Some(rate),
            Self::Energy => watts.map(|watts| rate / watts),
            Self::Edp => watts.map(|watts| rate * rate / watts),
        }
    }

    /// Relative error of the value by the relative error of the rate; power is taken as exact.
    pub fn error(self, relative: f64) -> f64 {
        if self == Self::Edp { 2.0 * relative } else { relative }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greatest_value_is_the_least_cost() {
        // One job: 10 s at 100 W, or 8 s at 150 W: 1,000 J and 1,200 J, 10,000 Js and 9,600 Js.
        let (slow, fast) = ((0.1, Some(100.0)), (0.125, Some(150.0)));
        let better = |objective: Objective| objective.value(fast.0, fast.1) > objective.value(slow.0, slow.1);
        assert!(better(Objective::Time) && !better(Objective::Energy) && better(Objective::Edp));
    }

    #[test]
    fn energy_needs_a_power() {
        assert_eq!(Objective::Time.value(2.0, None), Some(2.0));
        assert_eq!(Objective::Energy.value(2.0, None), None);
        assert_eq!(Objective::Edp.value(2.0, Some(0.0)), None);
    }
}
