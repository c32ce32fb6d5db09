//! Quanta of threads as they come: the counts of a run, and how well a quantum predicts the next.
//!
//! **Problem.** A program may run for hours and have thousands of threads. Their counts cannot all
//! be kept.
//!
//! **Method.** The autocorrelation at a lag of one follows from five sums ([`GrowingSeries`]). The
//! coefficients of threads are averaged, each weighed by its quanta. A quantum in which a thread
//! did not run is left out: in the paper on hardware monitoring, intervals are those of the task.
//!
//! **Limits.** A series of n values has a coefficient that is too low by about 4 / n if the true
//! one is near 1 (M. G. Kendall, "Note on bias in the estimation of autocorrelation", Biometrika
//! 41, 1954). Series of fewer than [`LEAST`] values are left out.

use pinwise_measure::{CounterEvent, CounterQuality, EventCounts, QuantumAutocorrelation};
use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

/// The fewest values of a series.
const LEAST: usize = 20;
/// Quanta of a sum, as in the paper.
const TOGETHER: usize = 6;

/// The quanta of threads that come and go.
#[derive(Clone, Debug)]
pub struct QuantumSeries<K> {
    threads: HashMap<K, ThreadSeries>,
    /// Of threads that have ended: the sums of coefficients times values, and of values.
    ended: BTreeMap<CounterEvent, [(f64, f64); 2]>,
    counted: f64,
    quanta: u64,
}

/// The events of a thread: per quantum, and per sum of quanta.
#[derive(Clone, Debug, Default)]
struct ThreadSeries {
    events: BTreeMap<CounterEvent, [GrowingSeries; 2]>,
    sum: Option<EventCounts>,
    summed: usize,
}

impl<K> Default for QuantumSeries<K> {
    fn default() -> Self {
        Self { threads: HashMap::new(), ended: BTreeMap::new(), counted: 0.0, quanta: 0 }
    }
}

impl<K: Eq + Hash> QuantumSeries<K> {
    /// Takes in what a thread did in a quantum.
    pub fn take(&mut self, thread: K, counts: &EventCounts) {
        let ran = match counts.get(CounterEvent::Cycles) {
            Some(cycles) => cycles > 0.0,
            None => counts.counts.values().any(|&count| count > 0.0),
        };
        if !ran {
            return;
        }
        self.counted += counts.counted;
        self.quanta += 1;
        let own = self.threads.entry(thread).or_default();
        own.push(0, counts);
        match &mut own.sum {
            None => own.sum = Some(counts.clone()),
            Some(sum) => add(sum, counts),
        }
        own.summed += 1;
        if own.summed == TOGETHER
            && let Some(sum) = own.sum.take()
        {
            own.push(1, &sum);
            own.summed = 0;
        }
    }

    /// These threads have ended.
    pub fn end<'a>(&mut self, threads: impl IntoIterator<Item = &'a K>)
    where
        K: 'a,
    {
        for own in threads.into_iter().filter_map(|thread| self.threads.remove(thread)) {
            own.add_to(&mut self.ended);
        }
    }

    /// What is known so far; `None` before any thread ran.
    pub fn quality(&self) -> Option<CounterQuality> {
        let mut all = self.ended.clone();
        self.threads.values().for_each(|own| own.add_to(&mut all));
        let mean = |(sum, weight): (f64, f64)| (weight > 0.0).then(|| sum / weight);
        let of_event = |(event, [quantum, six]): (CounterEvent, [(f64, f64); 2])| {
            let next = mean(quantum)?;
            let quanta = quantum.1 as u64;
            Some((event, QuantumAutocorrelation { next, six: mean(six), quanta }))
        };
        (self.quanta > 0).then(|| CounterQuality {
            counted: self.counted / self.quanta as f64,
            quanta: self.quanta,
            autocorrelation: all.into_iter().filter_map(of_event).collect(),
        })
    }
}

impl ThreadSeries {
    /// Each event per cycle. If no cycles are counted, it is per second.
    fn push(&mut self, which: usize, counts: &EventCounts) {
        let with_cycles = counts.get(CounterEvent::Cycles).is_some();
        for &event in counts.counts.keys().filter(|&&event| event != CounterEvent::Cycles) {
            let rate = match with_cycles {
                true => counts.per_cycle(event),
                false => counts.get(event).map(|count| count / counts.seconds),
            };
            if let Some(rate) = rate.filter(|rate| rate.is_finite()) {
                self.events.entry(event).or_default()[which].push(rate);
            }
        }
    }

    fn add_to(&self, all: &mut BTreeMap<CounterEvent, [(f64, f64); 2]>) {
        for (&event, series) in &self.events {
            let sums = all.entry(event).or_default();
            for (one, (sum, weight)) in series.iter().zip(sums) {
                if let Some(coefficient) = one.coefficient().filter(|_| one.n >= LEAST) {
                    *sum += coefficient * one.n as f64;
                    *weight += one.n as f64;
                }
            }
        }
    }
}

/// A series of which only sums are kept. Values count from the first one, so that large equal parts
/// of them do not hide the rest.
#[derive(Clone, Copy, Debug, Default)]
struct GrowingSeries {
    n: usize,
    first: f64,
    last: f64,
    sum: f64,
    squares: f64,
    /// Of each value with the next.
    products: f64,
}

impl GrowingSeries {
    fn push(&mut self, value: f64) {
        if self.n == 0 {
            self.first = value;
        }
        let value = value - self.first;
        self.products += self.last * value;
        self.sum += value;
        self.squares += value * value;
        self.last = value;
        self.n += 1;
    }

    /// As [`crate::Autocorrelation::of`] at a lag of one; `None` of a constant or short series.
    fn coefficient(&self) -> Option<f64> {
        let n = self.n as f64;
        let mean = self.sum / n;
        let variance = self.squares - n * mean * mean;
        // The first value is 0, the last one has no next.
        let covariance =
            self.products - mean * (2.0 * self.sum - self.last) + (n - 1.0) * mean * mean;
        let known = self.n >= 3 && variance > 1e-12 * self.squares;
        known.then(|| covariance / variance).filter(|value| value.is_finite())
    }
}

/// The counts of a run, from those of its threads in each quantum.
#[derive(Clone, Debug, Default)]
pub struct RunCounts(Option<EventCounts>);

impl RunCounts {
    /// Adds a quantum of all threads, and returns its sum. Of a thread without one of `events`
    /// nothing is added: otherwise its cycles would count, and not the event.
    pub fn take<'a>(
        &mut self,
        threads: impl IntoIterator<Item = &'a EventCounts>,
        events: &[CounterEvent],
    ) -> Option<EventCounts> {
        let has_all =
            |counts: &&EventCounts| events.iter().all(|&event| counts.get(event).is_some());
        let mut quantum: Option<EventCounts> = None;
        for counts in threads.into_iter().filter(has_all) {
            match &mut quantum {
                None => quantum = Some(counts.clone()),
                Some(sum) => {
                    let seconds = sum.seconds.max(counts.seconds);
                    add(sum, counts);
                    sum.seconds = seconds;
                }
            }
        }
        if let Some(quantum) = &quantum {
            match &mut self.0 {
                Some(sum) => add(sum, quantum),
                None => self.0 = Some(quantum.clone()),
            }
        }
        quantum
    }

    /// The counts so far; `None` before any.
    pub fn total(&self) -> Option<&EventCounts> {
        self.0.as_ref()
    }
}

/// Adds the counts of another interval; events that only one has are dropped.
fn add(sum: &mut EventCounts, more: &EventCounts) {
    sum.seconds += more.seconds;
    sum.counted = sum.counted.min(more.counted);
    sum.counts.retain(|event, _| more.counts.contains_key(event));
    sum.counts.iter_mut().for_each(|(event, count)| *count += more.counts[event]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Autocorrelation;
    use proptest::prelude::*;

    const MISSES: CounterEvent = CounterEvent::L2Misses;

    fn quantum(misses: f64) -> EventCounts {
        let counts = BTreeMap::from([(CounterEvent::Cycles, 1e6), (MISSES, 1e6 * misses)]);
        EventCounts { seconds: 0.1, counts, counted: 0.5 }
    }

    fn coefficient(series: &[f64]) -> Option<f64> {
        let mut growing = GrowingSeries::default();
        series.iter().for_each(|&value| growing.push(value));
        growing.coefficient()
    }

    #[test]
    fn threads_are_weighed_by_their_quanta_and_idle_quanta_are_left_out() {
        let mut series = QuantumSeries::default();
        let up = |quantum: usize| quantum as f64 / 1000.0;
        let idle = EventCounts { counts: [(CounterEvent::Cycles, 0.0)].into(), ..quantum(0.0) };
        for number in 0..120 {
            series.take(1, &quantum(up(number)));
            series.take(1, &idle);
            if number < 40 {
                series.take(2, &quantum(up(number % 2)));
            }
            if number < LEAST - 1 {
                series.take(3, &quantum(up(number)));
            }
        }
        series.end(&[2, 9]);
        let known = series.quality().unwrap();
        assert_eq!((known.counted, known.quanta), (0.5, 120 + 40 + LEAST as u64 - 1));
        let values = |n: usize, of: fn(usize) -> usize| -> Vec<f64> {
            (0..n).map(|number| up(of(number))).collect()
        };
        let of = |series: &[f64]| Autocorrelation::of(series, 1).unwrap().coefficient;
        let (first, other) = (of(&values(120, |n| n)), of(&values(40, |n| n % 2)));
        let expected = (120.0 * first + 40.0 * other) / 160.0;
        let found = known.autocorrelation[&MISSES];
        assert!((found.next - expected).abs() < 1e-9 && found.quanta == 160, "{found:?}");
        // Only the first has enough sums of six.
        assert!((found.six.unwrap() - of(&values(20, |n| n))).abs() < 1e-9, "{found:?}");
        assert!(!known.autocorrelation.contains_key(&CounterEvent::Cycles));
        assert_eq!(QuantumSeries::<u8>::default().quality(), None);
    }

    #[test]
    fn a_run_is_the_sum_of_what_has_every_event() {
        let mut run = RunCounts::default();
        let events = [CounterEvent::Cycles, MISSES];
        let mut without = quantum(0.1);
        without.counts.remove(&MISSES);
        assert_eq!(run.take([&without], &events), None);
        let first = run.take([&quantum(0.1), &without, &quantum(0.2)], &events).unwrap();
        assert!(first.get(CounterEvent::Cycles) == Some(2e6) && first.seconds == 0.1, "{first:?}");
        run.take([&quantum(0.3)], &events);
        let total = run.total().unwrap();
        assert!((total.per_cycle(MISSES).unwrap() - 0.2).abs() < 1e-12);
        assert!((total.seconds - 0.2).abs() < 1e-12 && total.counted == 0.5);
    }

    proptest! {
        #[test]
        fn sums_give_what_the_whole_series_gives(
            series in proptest::collection::vec(-1e3..1e3f64, 3..80),
            offset in -1e6..1e6f64,
        ) {
            let moved: Vec<f64> = series.iter().map(|value| value + offset).collect();
            let whole = Autocorrelation::of(&moved, 1).map(|one| one.coefficient);
            match (coefficient(&moved), whole) {
                (Some(found), Some(whole)) => prop_assert!((found - whole).abs() < 1e-6),
                (found, whole) => prop_assert_eq!(found, whole),
            }
        }
    }

    #[test]
    fn a_constant_series_has_no_coefficient() {
        assert_eq!(coefficient(&[7.0; 30]), None);
        assert_eq!(coefficient(&[1.0, 2.0]), None);
    }
}
