//! The quantity to maximise: speed, or speed and energy together.

use pinwise_measure::Unit;
use serde::{Deserialize, Serialize};

/// The quantity that a search maximises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Objective {
    /// Least time: work per second.
    #[default]
    Time,
    /// Least energy: work per joule.
    Energy,
    /// Least energy times time: it maximises work per second times work per joule. This is the
    /// energy-delay product (R. Gonzalez, M. Horowitz, "Energy dissipation in general purpose
    /// microprocessors", IEEE J. of Solid-State Circuits 31(9), 1996).
    Edp,
}

impl Objective {
    /// The value to maximise at `rate` work per second and `watts` of power. `None` if it needs a
    /// power that is not known (or not above 0).
    pub fn value(self, rate: f64, watts: Option<f64>) -> Option<f64> {
        let watts = watts.filter(|watts| *watts > 0.0);
        match self {
            Self::Time => Some(rate),
            Self::Energy => watts.map(|watts| rate / watts),
            Self::Edp => watts.map(|watts| rate * rate / watts),
        }
    }

    /// The unit of the value if progress is counted in `unit`. It is the work of a joule, or its
    /// reciprocal, the energy of a run.
    pub fn unit(self, unit: Unit) -> Unit {
        let Unit { name, reciprocal } = unit;
        let name = match (self, reciprocal, name.as_str()) {
            (Self::Time, ..) => name,
            (Self::Energy, true, "s") => "J".into(),
            (Self::Edp, true, "s") => "J s".into(),
            (Self::Energy, true, _) => format!("{name} W"),
            (Self::Edp, true, _) => format!("({name})² W"),
            (Self::Energy, false, _) => format!("{name} per W"),
            (Self::Edp, false, _) => format!("({name})² per W"),
        };
        Unit { name, reciprocal }
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
        // One job takes 10 s at 100 W, or 8 s at 150 W. That is 1,000 J and 1,200 J, 10,000 Js and
        // 9,600 Js.
        let (slow, fast) = ((0.1, Some(100.0)), (0.125, Some(150.0)));
        let better = |objective: Objective| {
            objective.value(fast.0, fast.1) > objective.value(slow.0, slow.1)
        };
        assert!(better(Objective::Time) && !better(Objective::Energy) && better(Objective::Edp));
    }

    #[test]
    fn a_run_of_a_second_at_a_hundred_watts_takes_a_hundred_joules() {
        let (runs, frames) = (Unit::cost("s"), Unit::rate("frames/s"));
        for (objective, cost, name, per) in [
            (Objective::Time, 2.0, "s", "frames/s"),
            (Objective::Energy, 200.0, "J", "frames/s per W"),
            (Objective::Edp, 400.0, "J s", "(frames/s)² per W"),
        ] {
            let unit = objective.unit(runs.clone());
            let value = objective.value(1.0 / 2.0, Some(100.0)).unwrap();
            assert!((unit.quantity(value) - cost).abs() < 1e-9, "{objective:?}");
            assert_eq!(
                (unit.name.as_str(), objective.unit(frames.clone()).name.as_str()),
                (name, per)
            );
        }
    }

    #[test]
    fn energy_needs_a_power() {
        assert_eq!(Objective::Time.value(2.0, None), Some(2.0));
        assert_eq!(Objective::Energy.value(2.0, None), None);
        assert_eq!(Objective::Edp.value(2.0, Some(0.0)), None);
    }
}
