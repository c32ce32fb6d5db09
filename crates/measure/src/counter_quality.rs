//! How far counts can be trusted.

use crate::CounterEvent;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How often counters counted, and how well one quantum predicts the next.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CounterQuality {
    /// The share of the CPU time in which the least counted event was counted: the mean over all
    /// quanta. It is 1 if counters took no turns. Otherwise counts are scaled.
    pub counted: f64,
    /// The quanta, of all threads or of a program as a whole.
    pub quanta: u64,
    /// By event, per cycle; without cycles, per second. Events of few quanta are left out.
    pub autocorrelation: BTreeMap<CounterEvent, QuantumAutocorrelation>,
}

/// The correlation of counts with those of later quanta, -1 to 1: the mean of all threads.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct QuantumAutocorrelation {
    /// Of one quantum with the next.
    pub next: f64,
    /// Of the sum of six quanta with the next such sum; `None` from few of these.
    pub six: Option<f64>,
    /// The quanta behind it.
    pub quanta: u64,
}

impl CounterQuality {
    /// The mean of several, each weighed by its quanta; `None` of none.
    pub fn mean<'a>(all: impl IntoIterator<Item = &'a Self>) -> Option<Self> {
        let mut sum = Self::default();
        let mut events: BTreeMap<CounterEvent, Vec<QuantumAutocorrelation>> = BTreeMap::new();
        for one in all {
            sum.counted += one.counted * one.quanta as f64;
            sum.quanta += one.quanta;
            for (&event, &own) in &one.autocorrelation {
                events.entry(event).or_default().push(own);
            }
        }
        if sum.quanta == 0 {
            return None;
        }
        sum.counted /= sum.quanta as f64;
        let weighed = |values: &mut dyn Iterator<Item = (f64, u64)>| {
            let (value, weight) = values.fold((0.0, 0.0), |(value, weight), (one, quanta)| {
                (value + one * quanta as f64, weight + quanta as f64)
            });
            (weight > 0.0).then(|| value / weight)
        };
        sum.autocorrelation = events
            .into_iter()
            .filter_map(|(event, all)| {
                let next = weighed(&mut all.iter().map(|one| (one.next, one.quanta)))?;
                let six = &mut all.iter().filter_map(|one| Some((one.six?, one.quanta)));
                let (six, quanta) = (weighed(six), all.iter().map(|one| one.quanta).sum());
                Some((event, QuantumAutocorrelation { next, six, quanta }))
            })
            .collect();
        Some(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_weighs_each_by_its_quanta() {
        let one = |quanta, counted, next, six| CounterQuality {
            counted,
            quanta,
            autocorrelation: BTreeMap::from([(
                CounterEvent::L2Misses,
                QuantumAutocorrelation { next, six, quanta },
            )]),
        };
        let both = [one(30, 1.0, 0.9, None), one(10, 0.2, 0.5, Some(0.4))];
        let mean = CounterQuality::mean(&both).unwrap();
        assert!((mean.counted - 0.8).abs() < 1e-12 && mean.quanta == 40);
        let event = mean.autocorrelation[&CounterEvent::L2Misses];
        assert!((event.next - 0.8).abs() < 1e-12 && event.six == Some(0.4) && event.quanta == 40);
        assert_eq!(CounterQuality::mean(&[]), None);
    }
}
