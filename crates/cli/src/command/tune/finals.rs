//! The last comparison: fresh windows of what was found and of doing nothing, in random order.

use super::crew::Crew;
use crate::command::place::{Bed, StoredSearch};
use crate::output::Interrupted;
use pinwise_placement::{Contest, Way};
use pinwise_testbed::{Effort, MeasureError, Retry, Setting, Unit};
use pinwise_topology::Random;
use std::time::{Duration, Instant};

/// What the last comparison showed.
pub(super) struct Finals {
    pub(super) contest: Contest,
    /// What performances are counted in.
    pub(super) unit: Unit,
    /// Why it ended before its time, where it did.
    pub(super) cut_short: Option<anyhow::Error>,
}

impl Finals {
    /// What to know where it ended before its time.
    pub(super) fn note(&self) -> Option<String> {
        let rounds = self.contest.rounds();
        self.cut_short.as_ref().map(|error| format!("the last comparison ended after {rounds} rounds: {error:#}"))
    }

    /// What ends the command after its answer, where the comparison ended before its time: by the user, or by a failure.
    pub(super) fn failure(&self) -> Option<anyhow::Error> {
        let error = self.cut_short.as_ref()?;
        let told = format!("{error:#}; what was measured until then is told");
        Some(if error.is::<Interrupted>() { Interrupted(told).into() } else { anyhow::anyhow!(told) })
    }
}

/// Rounds: as many as there is time for, but no fewer than tell an interval worth the name, and no more than anybody wants.
const LEAST_ROUNDS: usize = 5;
/// One that is cut short is judged from as many rounds on: intervals are wide then, and say so.
const FEWEST_ROUNDS: usize = 2;
const MOST_ROUNDS: usize = 40;
/// A program that goes on running is watched for so many windows at a time: it is started, or told its number, anew for each round.
const WINDOWS: f64 = 4.0;
/// Of all intervals together.
const CONFIDENCE: f64 = 0.95;
/// Of the order.
const SEED: u64 = 1;

/// Measures the ways in rounds for `time`. `searched` has the placement of `n`, where there is one. Error: there is nothing to judge by.
pub(super) fn measure(
    crew: &mut Crew<'_>,
    n: u32,
    searched: Option<&StoredSearch>,
    time: Duration,
    notes: &mut Vec<String>,
) -> anyhow::Result<Finals> {
    let best = searched.and_then(|searched| Some((searched, searched.outcome.best.as_ref()?)));
    let own = crew.default == Some(n);
    let mut ways = vec![Way::Default];
    ways.extend((!own).then_some(Way::Number));
    ways.extend(best.map(|_| Way::Placed));
    let number = |way| if way == Way::Default { crew.default } else { Some(n) };
    let numbers: Vec<Option<u32>> = ways.iter().map(|&way| number(way)).collect();
    let threads = best.map(|(searched, _)| &searched.info.new.workload.threads);
    let known: Vec<String> = threads.into_iter().flatten().map(|thread| thread.name.clone()).collect();
    let setting = |way| match best {
        Some((_, best)) if way == Way::Placed => Setting::Pinned(best.assignment.clone()),
        _ => Setting::Unpinned,
    };
    let anew = crew.starts_anew();
    let effort = Effort { windows: if anew { 1.0 } else { WINDOWS } };

    let mut contest = Contest::new(ways.clone(), CONFIDENCE);
    let mut random = Random::new(SEED);
    let mut beds: Vec<(Option<u32>, Bed)> = Vec::new();
    let (mut unit, mut cut_short) = (None, None);
    let begin = Instant::now();
    'rounds: while contest.rounds() < LEAST_ROUNDS || contest.rounds() < MOST_ROUNDS && begin.elapsed() < time {
        let mut order: Vec<usize> = (0..ways.len()).collect();
        random.shuffle(&mut order);
        // Ways with one number after each other, so that a program that goes on running is started once for both.
        let first = numbers[order[0]];
        order.sort_by_key(|&way| numbers[way] != first);
        let mut round = vec![None; ways.len()];
        for way in order {
            if !beds.iter().any(|(open, _)| *open == numbers[way]) {
                if !anew {
                    beds.clear();
                }
                let same = numbers[way] == Some(n);
                match crew.open(numbers[way], if same { &known } else { &[] }) {
                    Ok(bed) => beds.push((numbers[way], bed)),
                    Err(error) => {
                        cut_short = Some(error);
                        break 'rounds;
                    }
                }
            }
            let Some((_, bed)) = beds.iter_mut().find(|(open, _)| *open == numbers[way]) else { continue };
            let bed = bed.testbed_mut();
            unit.get_or_insert_with(|| bed.unit().clone());
            if ways[way] == Way::Placed && threads.is_some_and(|threads| *threads != bed.workload().threads) {
                let note = "its threads were others when it was started again: that round has no pinned window";
                if !notes.iter().any(|known| known == note) {
                    notes.push(note.to_owned());
                }
                continue;
            }
            round[way] = match bed.measure(&setting(ways[way]), effort) {
                Ok(measurement) => Some(measurement.performance),
                Err(error) if error.interrupted || error.retry == Retry::Never => {
                    cut_short = Some(told(error));
                    break 'rounds;
                }
                Err(_) => None,
            };
        }
        contest.take(round);
        if !anew {
            // Each round has a run of its own.
            beds.clear();
        }
    }
    match cut_short {
        Some(error) if contest.rounds() < FEWEST_ROUNDS => Err(error),
        cut_short => Ok(Finals { contest, unit: unit.unwrap_or_else(|| Unit::rate("1/s")), cut_short }),
    }
}

/// A window that ends the comparison, as what ends the command.
fn told(error: MeasureError) -> anyhow::Error {
    if error.interrupted {
        return Interrupted("interrupted in the last comparison: what was pinned is as it was".into()).into();
    }
    error.into()
}
