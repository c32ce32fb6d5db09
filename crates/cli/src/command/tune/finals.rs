//! The last comparison: fresh windows of what was found and of doing nothing, in random order.

use super::beds::Beds;
use super::crew::Crew;
use crate::output::Interrupted;
use pinwise_jobs::{StoredSearch, Watched};
use pinwise_measure::{MeasureError, OtherLoad, Retry, Setting, Testbed, Unit};
use pinwise_placement::{Contest, Way};
use pinwise_topology::Random;
use std::time::{Duration, Instant};

/// What the last comparison showed.
pub(super) struct Finals {
    pub(super) contest: Contest,
    /// What performances are counted in.
    pub(super) unit: Unit,
    /// What others took of the contexts in each window.
    others: Vec<OtherLoad>,
    /// Why it ended before its time, where it did.
    pub(super) cut_short: Option<anyhow::Error>,
}

impl Finals {
    /// What to know of it: that others kept the machine busy, that it ended before its time, that
    /// it had little.
    pub(super) fn notes(&self) -> Vec<String> {
        let rounds = self.contest.rounds();
        let ended = match &self.cut_short {
            Some(error) => {
                Some(format!("the last comparison ended after {rounds} rounds: {error:#}"))
            }
            None if rounds < GOOD_ROUNDS => Some(format!(
                "the last comparison has {rounds} rounds only, since the time was over, and intervals as wide as that: a longer --budget has more"
            )),
            None => None,
        };
        pinwise_present::crowded(&self.others, "last comparison", "")
            .into_iter()
            .chain(ended)
            .collect()
    }

    /// Share of the contexts' time that others took meanwhile, where it is worth a word.
    pub(super) fn others(&self) -> Option<f64> {
        pinwise_present::crowd(&self.others)
    }

    /// What ends the command after its answer, where the comparison ended before its time: by the
    /// user, or by a failure.
    pub(super) fn failure(&self) -> Option<anyhow::Error> {
        let error = self.cut_short.as_ref()?;
        let told = format!("{error:#}; what was measured until then is told");
        Some(if error.is::<Interrupted>() {
            Interrupted(told).into()
        } else {
            anyhow::anyhow!(told)
        })
    }
}

/// Rounds: as many as there is time for, but no fewer than can tell anything (of two the intervals
/// are wider than what they are about), and no more than anybody wants.
const LEAST_ROUNDS: usize = 3;
/// One that is cut short is judged from as many rounds on: intervals are wide then, and say so.
const FEWEST_ROUNDS: usize = 2;
/// With fewer, intervals are so wide that it is worth a word.
const GOOD_ROUNDS: usize = 5;
const MOST_ROUNDS: usize = 40;
/// Of all intervals together.
const CONFIDENCE: f64 = 0.95;
/// Of the order.
const SEED: u64 = 1;

/// Measures the ways in rounds for `time`, and three rounds in any case. `searched` has the
/// placement of `n`, where there is one. Error: there is nothing to judge by.
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
    let known: Vec<String> =
        threads.into_iter().flatten().map(|thread| thread.name.clone()).collect();
    let setting = |way| match best {
        Some((_, best)) if way == Way::Placed => Setting::Pinned(best.assignment.clone()),
        _ => Setting::Unpinned,
    };
    let (anew, effort) = (crew.starts_anew(), crew.effort());

    let mut contest = Contest::new(ways.clone(), CONFIDENCE);
    let mut random = Random::new(SEED);
    let mut beds = Beds::default();
    let (mut unit, mut cut_short, mut others) = (None, None, Vec::new());
    let begin = Instant::now();
    'rounds: while is_time_for_another(contest.rounds(), begin.elapsed(), time) {
        let mut order: Vec<usize> = (0..ways.len()).collect();
        random.shuffle(&mut order);
        // Ways with one number after each other, so that a program that goes on running is started
        // once for both.
        let first = numbers[order[0]];
        order.sort_by_key(|&way| numbers[way] != first);
        let mut round = vec![None; ways.len()];
        for way in order {
            let same = numbers[way] == Some(n);
            let bed = match beds.get(crew, numbers[way], if same { &known } else { &[] }) {
                Ok(bed) => bed,
                Err(error) => {
                    cut_short = Some(error);
                    break 'rounds;
                }
            };
            let mut bed = Watched::new(bed);
            unit.get_or_insert_with(|| bed.unit().clone());
            if ways[way] == Way::Placed
                && threads.is_some_and(|threads| *threads != bed.workload().threads)
            {
                let note = "its threads were others when it was started again: that round has no pinned window";
                if !notes.iter().any(|known| known == note) {
                    notes.push(note.to_owned());
                }
                continue;
            }
            let measured = bed.measure(&setting(ways[way]), effort);
            others.extend(bed.met().others);
            round[way] = match measured {
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
            beds.end();
        }
    }
    match cut_short {
        Some(error) if contest.rounds() < FEWEST_ROUNDS => Err(error),
        cut_short => Ok(Finals {
            contest,
            unit: unit.unwrap_or_else(|| Unit::rate("1/s")),
            others,
            cut_short,
        }),
    }
}

/// Whether another round would end within `time`, if it is as long as those before were; the fewest
/// are made whatever they take.
fn is_time_for_another(rounds: usize, spent: Duration, time: Duration) -> bool {
    rounds < LEAST_ROUNDS || rounds < MOST_ROUNDS && spent + spent / rounds as u32 <= time
}

/// A window that ends the comparison, as what ends the command.
fn told(error: MeasureError) -> anyhow::Error {
    if error.interrupted {
        return Interrupted(
            "interrupted in the last comparison: what was pinned is as it was".into(),
        )
        .into();
    }
    error.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fewest_rounds_are_made_whatever_they_take_and_more_only_where_there_is_time() {
        let seconds = Duration::from_secs;
        for rounds in 0..LEAST_ROUNDS {
            assert!(is_time_for_another(rounds, seconds(100), Duration::ZERO), "{rounds}");
        }
        assert!(!is_time_for_another(LEAST_ROUNDS, Duration::from_nanos(1), Duration::ZERO));
        assert!(is_time_for_another(4, seconds(8), seconds(10)), "the fifth ends in time");
        assert!(!is_time_for_another(4, seconds(9), seconds(10)), "it would not");
        assert!(!is_time_for_another(MOST_ROUNDS, seconds(1), seconds(100)));
    }

    #[test]
    fn a_comparison_beside_others_or_of_few_rounds_says_so() {
        let finals = |rounds: usize, taken: f64| {
            let mut contest = Contest::new(vec![Way::Default], CONFIDENCE);
            (0..rounds).for_each(|_| contest.take(vec![Some(1.0)]));
            let others = vec![OtherLoad { taken, of: 10.0 }, OtherLoad { taken, of: 10.0 }];
            Finals { contest, unit: Unit::cost("s"), others, cut_short: None }
        };
        let quiet = finals(GOOD_ROUNDS, 0.1);
        assert_eq!((quiet.notes(), quiet.others()), (Vec::new(), None));
        let busy = finals(3, 8.0);
        assert_eq!(busy.others(), Some(0.8));
        let [crowd, few] = &busy.notes()[..] else { panic!("{:?}", busy.notes()) };
        assert!(
            crowd.contains(
                "other programs took 80 % of the contexts' time during the last comparison"
            ),
            "{crowd}"
        );
        assert!(few.contains("has 3 rounds only"), "{few}");
    }
}
