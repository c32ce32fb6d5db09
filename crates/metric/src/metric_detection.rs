//! Reads a new metric for a moment before pinwise measures with it. Do numbers come, and how often?
//! Are they a counter or values? How long does a reading take?

use crate::MetricError;
use crate::arrivals::{Arrival, Arrivals, Blocks, Renewals, Stop, read_dated};
use crate::cadence::{Cadence, WITHIN_A_BLOCK, cadence};
use crate::counter_detection::CounterDetection;
use crate::meter::MetricMeter;
use crate::on_demand::OnDemand;
use crate::paced::Paced;
use crate::reading::{Interpretation, RISES_OF_A_COUNTER, interpret};
use crate::source::{MetricValue, Source, SourceError, sleep_until};
use pinwise_measure::ProgramNote;
use std::time::{Duration, Instant};

/// What is known about the metric in advance.
pub(crate) struct Known<'a> {
    /// As typed, for messages.
    pub(crate) metric: &'a str,
    /// Stated by the user.
    pub(crate) stated: Option<Interpretation>,
    /// What the words around the number indicate.
    pub(crate) hint: Option<Interpretation>,
    /// How long to wait for a number.
    pub(crate) patience: Duration,
    /// When all waiting ends; `None`: when patience does.
    pub(crate) until: Option<Instant>,
    /// A source that fails so often in the same way is not going to answer.
    pub(crate) failures: Option<u32>,
}

/// What was found.
pub(crate) struct DetectedMetric {
    pub(crate) meter: Box<dyn MetricMeter>,
    pub(crate) interpretation: Interpretation,
    /// What was decided.
    pub(crate) notes: Vec<ProgramNote>,
    /// Windows shorter than this are stretched, to the pace at which numbers come.
    pub(crate) shortest_window: Duration,
    /// The unit that was printed behind the first number.
    pub(crate) unit: Option<&'static str>,
}

impl Known<'_> {
    /// `declared` by the source itself, which is more than its name.
    fn paced(
        &self,
        arrivals: Box<dyn Arrivals>,
        interpretation: Interpretation,
        declared: bool,
    ) -> Paced {
        // A value by its name alone; one that went down is none by its readings.
        let by_name = self.stated.is_none() && !declared && self.hint.is_some();
        let detection = by_name.then(|| (CounterDetection::default(), Instant::now()));
        let (patience, until) = (self.patience, self.until);
        Paced { arrivals, interpretation, patience, until, detection }
    }

    /// When to give up waiting for a number, if waiting began at `begin`.
    fn end(&self, begin: Instant) -> Instant {
        let end = begin + self.patience;
        self.until.map_or(end, |until| until.min(end))
    }

    fn undecided(&self, value: f64, waited: Duration) -> MetricError {
        MetricError::Undecided { metric: self.metric.into(), value, waited }
    }

    fn never(&self, waited: Duration, seen: String) -> MetricError {
        MetricError::NeverRead { metric: self.metric.into(), waited, seen }
    }

    fn failed(&self, stop: Stop, waited: Duration, numbers: usize) -> MetricError {
        match stop {
            Stop::Failed(SourceError::Cancelled) => MetricError::Interrupted,
            Stop::Failed(SourceError::Unreadable(why) | SourceError::Hopeless(why)) => {
                self.never(waited, why)
            }
            Stop::Failed(SourceError::TwoReadings(error)) => error,
            Stop::Closed(reason) => {
                MetricError::Closed { metric: self.metric.into(), reason, numbers }
            }
        }
    }
}

/// How the number is interpreted; empty if the user stated it.
fn decision(known: &Known<'_>, interpretation: Interpretation) -> Option<ProgramNote> {
    let counter = interpretation == Interpretation::Counter;
    let read = ProgramNote::MetricRead { counter, by_name: known.hint.is_some() };
    known.stated.is_none().then_some(read)
}

/// The most numbers that are listened to. A program may print millions a second.
const MOST_HEARD: usize = 65_536;

/// Listens to lines until their cadence and their kind are known.
pub(crate) fn lines(
    mut arrivals: Box<dyn Arrivals>,
    known: &Known<'_>,
    cancelled: &dyn Fn() -> bool,
) -> Result<DetectedMetric, MetricError> {
    let began = Instant::now();
    let mut heard: Vec<Arrival> = Vec::new();
    let mut said = known.stated.or(known.hint);
    // A look takes time for each number. So the pause before the next one grows with them.
    let mut next_look = 0;
    let too_few = |numbers, silent| MetricError::TooFew {
        metric: known.metric.into(),
        numbers,
        waited: began.elapsed(),
        silent,
    };
    loop {
        let expired = known.until.is_some_and(|until| Instant::now() > until);
        let last = expired || heard.len() >= MOST_HEARD;
        if last || heard.len() >= next_look {
            next_look = heard.len() + heard.len() / 64 + 1;
            let times: Vec<f64> = heard
                .iter()
                .map(|arrival| arrival.at.duration_since(heard[0].at).as_secs_f64())
                .collect();
            let late: Vec<f64> = heard.iter().map(|arrival| arrival.late.as_secs_f64()).collect();
            if let Some(cadence) = cadence(&times, &late) {
                let (lines, period) = match cadence {
                    Cadence::Lines { period } => (1, period),
                    Cadence::Blocks { lines, period } => (lines, period),
                    Cadence::Buffered { lines, period } => {
                        let period = Duration::from_secs_f64(period);
                        return Err(MetricError::Buffered {
                            metric: known.metric.into(),
                            lines,
                            period,
                        });
                    }
                };
                let values = reports(&heard, &times, lines, period);
                if said.is_none() {
                    said = interpret(&values);
                }
                if let Some(interpretation) = said {
                    let mut notes: Vec<ProgramNote> =
                        decision(known, interpretation).into_iter().collect();
                    if lines > 1 {
                        notes.push(ProgramNote::LinesAdded { lines, seconds: period });
                        arrivals = Box::new(Blocks::new(arrivals, lines, period));
                    }
                    if period > 0.1 {
                        notes.push(ProgramNote::MetricRare { seconds: period });
                    }
                    let meter = Box::new(known.paced(arrivals, interpretation, false));
                    return Ok(DetectedMetric {
                        meter,
                        interpretation,
                        notes,
                        shortest_window: Duration::from_secs_f64(period),
                        unit: heard[0].sample.unit,
                    });
                }
                let constant = || values.windows(2).all(|pair| pair[0] == pair[1]);
                if last || Instant::now() > known.end(began) && constant() {
                    return Err(known.undecided(heard[0].sample.value, began.elapsed()));
                }
            } else if heard.len() >= MOST_HEARD {
                let (metric, lines) = (known.metric.into(), heard.len());
                return Err(MetricError::Buffered { metric, lines, period: began.elapsed() });
            } else if let (true, Some(newest)) = (expired, heard.last()) {
                return Err(too_few(heard.len(), newest.at.elapsed()));
            }
        }
        let asked = Instant::now();
        match arrivals.next(known.end(asked), cancelled) {
            Ok(Some(arrival)) => heard.push(arrival),
            Ok(None) if heard.is_empty() => {
                return Err(known.never(known.end(began) - began, arrivals.received()));
            }
            Ok(None) => return Err(too_few(heard.len(), asked.elapsed())),
            Err(stop) => return Err(known.failed(stop, began.elapsed(), heard.len())),
        }
    }
}

/// The numbers of the complete reports among the lines; see [`Blocks`].
fn reports(heard: &[Arrival], times: &[f64], lines: usize, period: f64) -> Vec<f64> {
    if lines == 1 {
        return heard.iter().map(|arrival| arrival.sample.value).collect();
    }
    let mut starts = vec![0];
    starts.extend((1..times.len()).filter(|&i| times[i] - times[i - 1] > period * WITHIN_A_BLOCK));
    starts.push(times.len());
    let blocks =
        starts.windows(2).map(|pair| &heard[pair[0]..pair[1]]).filter(|block| block.len() == lines);
    blocks.map(|block| block.iter().map(|arrival| arrival.sample.value).sum()).collect()
}

/// The longest pause between two readings while a source is learned.
const LONGEST_PAUSE: Duration = Duration::from_millis(100);
/// Changes that show how often a number is renewed.
const RENEWALS: usize = 4;

/// Reads a source until its kind and the times of its renewals are known.
pub(crate) fn source(
    mut source: Box<dyn Source>,
    known: &Known<'_>,
    cancelled: &dyn Fn() -> bool,
) -> Result<DetectedMetric, MetricError> {
    let began = Instant::now();
    let first = first_reading(&mut *source, known, cancelled)?;
    let (first, unit) = (first.value, first.unit);
    let mut values = vec![first];
    // When the number was seen to be another than before.
    let mut changes: Vec<Instant> = Vec::new();
    let mut unchanged = 0;
    let mut cost = Duration::MAX;
    let mut pause = Duration::from_millis(5);
    loop {
        let hint = known.stated.or(source.declared()).or(known.hint);
        let interpretation = hint.or_else(|| interpret(&values));
        let enough = match interpretation {
            // Readings for the cost alone.
            Some(Interpretation::Counter) if source.exact() => values.len() >= RISES_OF_A_COUNTER,
            Some(Interpretation::Counter) => changes.len() + 1 >= RISES_OF_A_COUNTER,
            Some(Interpretation::Value) => {
                changes.len() >= RENEWALS || Instant::now() > known.end(began)
            }
            None => false,
        };
        if let Some(interpretation) = interpretation.filter(|_| enough) {
            let known = Known { hint: source.declared().or(known.hint), ..*known };
            let found = found(source, &known, interpretation, &changes, unchanged, cost);
            return Ok(DetectedMetric { unit, ..found });
        }
        let expired = known.until.is_some_and(|until| Instant::now() > until);
        if expired || began.elapsed() > known.patience.max(cost_of(cost) * 20) {
            let waited = began.elapsed();
            return Err(match changes.last() {
                Some(last) => {
                    let (metric, numbers) = (known.metric.into(), changes.len() + 1);
                    MetricError::TooFew { metric, numbers, waited, silent: last.elapsed() }
                }
                None => known.undecided(first, waited),
            });
        }
        pause = if unchanged > 0 {
            (pause * 3 / 2).min(LONGEST_PAUSE)
        } else {
            pause.max(cost_of(cost))
        };
        // A renewal is dated to within a pause: while one is being timed the pauses stay short.
        if !changes.is_empty() {
            pause = pause.min(Duration::from_millis(10).max(cost_of(cost) * 4));
        }
        sleep_until(Instant::now() + pause, cancelled).map_err(|_| MetricError::Interrupted)?;
        let asked = Instant::now();
        match read_dated(&mut *source, cancelled) {
            Ok(Arrival { sample, at, .. }) => {
                cost = cost.min(asked.elapsed());
                if values.last() == Some(&sample.value) {
                    unchanged += 1;
                } else {
                    changes.push(at);
                }
                values.push(sample.value);
            }
            // One bad reading among good ones (a file caught while it is written) is no reason to
            // give up.
            Err(SourceError::Unreadable(_)) if Instant::now() <= known.end(began) => {}
            Err(failure) => {
                return Err(known.failed(failure.into(), began.elapsed(), values.len()));
            }
        }
    }
}

/// Zero until a reading was timed.
fn cost_of(cost: Duration) -> Duration {
    if cost == Duration::MAX { Duration::ZERO } else { cost }
}

/// The first reading. Until patience ends, a failure counts as a program that is still starting,
/// unless it is known to run.
fn first_reading(
    source: &mut dyn Source,
    known: &Known<'_>,
    cancelled: &dyn Fn() -> bool,
) -> Result<MetricValue, MetricError> {
    let began = Instant::now();
    let (mut same, mut last) = (0, String::new());
    loop {
        match source.read(cancelled) {
            Ok(sample) => return Ok(sample),
            Err(SourceError::Unreadable(why)) => {
                same = if why == last { same + 1 } else { 1 };
                if Some(same) == known.failures || Instant::now() >= known.end(began) {
                    return Err(known.never(began.elapsed(), why));
                }
                last = why;
                sleep_until(Instant::now() + LONGEST_PAUSE, cancelled)
                    .map_err(|_| MetricError::Interrupted)?;
            }
            Err(failure) => return Err(known.failed(failure.into(), began.elapsed(), 0)),
        }
    }
}

fn found(
    source: Box<dyn Source>,
    known: &Known<'_>,
    interpretation: Interpretation,
    changes: &[Instant],
    unchanged: usize,
    cost: Duration,
) -> DetectedMetric {
    let (cost, declared) = (cost_of(cost), source.declared().is_some());
    let mut notes: Vec<ProgramNote> = decision(known, interpretation).into_iter().collect();
    if cost > Duration::from_millis(1) {
        notes.push(ProgramNote::MetricSlow { seconds: cost.as_secs_f64() });
    }
    // A reading or two without a change may be the program's doing. A number that is renewed stands
    // still more often.
    let on_demand = source.exact() || unchanged * 4 <= changes.len();
    if interpretation == Interpretation::Counter && on_demand {
        return DetectedMetric {
            meter: Box::new(OnDemand { source }),
            interpretation,
            notes,
            shortest_window: Duration::ZERO,
            unit: None,
        };
    }
    // The shortest time between two changes: missed renewals only make the others longer.
    let period = changes.windows(2).map(|pair| pair[1].duration_since(pair[0])).min();
    let poll = match period {
        Some(period) => (period / 20).clamp(Duration::from_millis(1), LONGEST_PAUSE),
        None => LONGEST_PAUSE,
    };
    let poll = poll.max(cost * 4);
    let period = period.unwrap_or(Duration::from_secs(1));
    notes.push(match changes.len() {
        0 => ProgramNote::MetricStill,
        _ => ProgramNote::MetricRenewed { seconds: period.as_secs_f64() },
    });
    let arrivals = Box::new(Renewals::new(source, interpretation, poll, period));
    let meter = Box::new(known.paced(arrivals, interpretation, declared));
    DetectedMetric { meter, interpretation, notes, shortest_window: period, unit: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrivals::tests::script;

    fn known(until: Option<Instant>) -> Known<'static> {
        let hint = Some(Interpretation::Value);
        let patience = Duration::from_secs(10);
        Known { metric: "m", stated: None, hint, patience, until, failures: None }
    }

    #[test]
    fn a_source_that_fails_in_the_same_way_is_given_up() {
        struct Failing(Vec<&'static str>);
        impl Source for Failing {
            fn read(&mut self, _: &dyn Fn() -> bool) -> Result<MetricValue, SourceError> {
                Err(SourceError::Unreadable(self.0.remove(0).into()))
            }
        }
        let known = Known { failures: Some(3), ..known(None) };
        let mut failing = Failing(vec!["refused", "refused", "busy", "busy", "busy", "beyond"]);
        match first_reading(&mut failing, &known, &|| false) {
            Err(MetricError::NeverRead { seen, .. }) => assert_eq!(seen, "busy"),
            other => panic!("{other:?}"),
        }
        assert_eq!(failing.0, ["beyond"]);
    }

    #[test]
    fn waiting_for_a_number_after_the_first_ends_with_all_waiting() {
        let script = || script(&[(250, 1.0), (400, 2.0), (550, 3.0), (700, 4.0), (850, 5.0)]);
        let learn = |until: Option<u64>| {
            let script = script();
            let until = until.map(|millis| script.start + Duration::from_millis(millis));
            lines(Box::new(script), &known(until), &|| false).map(|found| found.interpretation)
        };
        assert_eq!(learn(None), Ok(Interpretation::Value));
        assert!(
            matches!(learn(Some(300)), Err(MetricError::TooFew { numbers: 1, .. })),
            "{:?}",
            learn(Some(300))
        );
        assert!(
            matches!(learn(Some(200)), Err(MetricError::NeverRead { .. })),
            "{:?}",
            learn(Some(200))
        );
    }

    #[test]
    fn of_numbers_without_end_only_so_many_are_listened_to() {
        let hear = |count: usize| {
            let arrivals: Vec<(u64, f64)> = (0..count as u64).map(|n| (n / 10, 5.0)).collect();
            let known = Known { hint: None, ..known(None) };
            lines(Box::new(script(&arrivals)), &known, &|| false).map(drop)
        };
        assert!(matches!(hear(MOST_HEARD - 1), Err(MetricError::Closed { .. })));
        assert!(matches!(hear(MOST_HEARD), Err(MetricError::Undecided { .. })));
    }

    /// Another number at each reading, of a kind that the source may declare.
    struct Growing(f64, Option<Interpretation>);

    impl Source for Growing {
        fn read(&mut self, _: &dyn Fn() -> bool) -> Result<MetricValue, SourceError> {
            self.0 += 1.0;
            Ok(MetricValue::of(self.0))
        }

        fn declared(&self) -> Option<Interpretation> {
            self.1
        }
    }

    #[test]
    fn a_value_by_its_name_alone_is_looked_at_and_one_that_the_source_declares_is_not() {
        let looked_at = |declared: Option<Interpretation>| {
            let found =
                source(Box::new(Growing(0.0, declared)), &known(None), &|| false).ok().unwrap();
            assert_eq!(found.interpretation, Interpretation::Value);
            found.meter.counter_detection().is_some()
        };
        assert!(looked_at(None) && !looked_at(Some(Interpretation::Value)));
    }
}
