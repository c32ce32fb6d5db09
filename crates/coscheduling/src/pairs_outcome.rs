//! What the runs of `pairs` show: the matrix of pairs, and the pairing that follows.
//!
//! A pairing fills slots, each with a pair, or with two programs one after the other. Such a slot
//! has the weighted speed-up 1, and so has that of the last one of an odd number. So a pair below 1
//! is never chosen. All slots count alike.

use crate::matching::{Matchings, all_pairs};
use crate::pairs_search::PairsQuestion;
use crate::predicted_kept::counters_alone;
use crate::run_times::{RunTimes, Times};
use pinwise_campaign::Record;
use pinwise_measure::CounterQuality;
use pinwise_topology::Random;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Draws behind each interval.
const DRAWS: usize = 1000;
/// Draws that say whether to go on.
const RIVALS: usize = 200;
/// A pairing that is better by less than this share is as good.
pub(crate) const AS_GOOD: f64 = 0.01;

/// A number with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Resampled {
    /// From the means of all runs.
    pub value: f64,
    /// Lower end of the interval; `None` without one.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

impl Resampled {
    /// Its interval is that of `draws`, without as many at each end as the confidence leaves out.
    fn new(value: f64, draws: impl Iterator<Item = f64>, confidence: f64) -> Self {
        let mut draws: Vec<f64> = draws.collect();
        draws.sort_by(f64::total_cmp);
        let out = ((1.0 - confidence) / 2.0 * draws.len() as f64).floor() as usize;
        let end = |at: usize| draws.get(at).copied().filter(|end| end.is_finite());
        let ends = (end(out), draws.len().checked_sub(out + 1).and_then(end));
        let (low, high) = if let (Some(_), Some(_)) = ends { ends } else { (None, None) };
        Self { value, low, high }
    }

    /// Whether it is above `bound` beyond its interval.
    pub fn is_above(&self, bound: f64) -> bool {
        self.low.is_some_and(|low| low > bound)
    }

    /// Whether it is below `bound` beyond its interval.
    pub fn is_below(&self, bound: f64) -> bool {
        self.high.is_some_and(|high| high < bound)
    }
}

/// A program alone.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SoloOutcome {
    /// The seconds of a run; on a model of a unit of work.
    pub seconds: Resampled,
    /// Its runs.
    pub runs: usize,
}

/// Two programs on one core.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairOutcome {
    /// The programs, the smaller number first.
    pub programs: [usize; 2],
    /// [`crate::PairTimes::weighted_speedup`]
    pub weighted_speedup: Resampled,
    /// [`crate::PairTimes::speedup`]
    pub speedup: Resampled,
    /// [`crate::PairTimes::unfairness`]
    pub unfairness: Resampled,
    /// [`crate::PairTimes::slowdowns`]
    pub slowdowns: [Resampled; 2],
    /// Their accompanied runs. Those of a program beside itself are all counted for both. None if
    /// a model predicts the pair.
    pub runs: [usize; 2],
}

impl PairOutcome {
    /// Whether a model predicts it, and no run was made.
    pub fn is_predicted(&self) -> bool {
        self.runs == [0, 0]
    }
}

/// What a program leaves to the others beside it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Neighbour {
    /// The program.
    pub program: usize,
    /// The speed of the others beside it, as a share of their speed alone: the mean over all
    /// others.
    pub leaves: Resampled,
}

/// Who runs beside whom.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pairing {
    /// The pairs.
    pub pairs: Vec<[usize; 2]>,
    /// Programs that run alone.
    pub alone: Vec<usize>,
}

impl Pairing {
    /// The best one if these were the true times.
    fn best(times: &Times, programs: usize, matchings: &Matchings) -> Self {
        let slots = places(programs);
        let weight = |one: usize, other: usize| match one.max(other) < programs && one != other {
            true => times.pair(one, other).weighted_speedup().max(1.0),
            false => 1.0,
        };
        let weights: Vec<Vec<f64>> =
            (0..slots).map(|one| (0..slots).map(|other| weight(one, other)).collect()).collect();
        let mut pairing = Self::default();
        for (one, other) in matchings.best(&weights) {
            if weights[one][other] > 1.0 {
                pairing.pairs.push([one, other]);
            } else {
                pairing.alone.extend([one, other].into_iter().filter(|&one| one < programs));
            }
        }
        pairing.alone.sort_unstable();
        pairing
    }

    /// The mean weighted speed-up of its slots.
    fn per_slot(&self, times: &Times) -> f64 {
        let slots = (2 * self.pairs.len() + self.alone.len()).div_ceil(2);
        let pairs = self.pairs.iter();
        let paired: f64 =
            pairs.map(|&[one, other]| times.pair(one, other).weighted_speedup()).sum();
        (paired + (slots - self.pairs.len()) as f64) / slots as f64
    }
}

/// The places in all slots.
fn places(programs: usize) -> usize {
    programs.div_ceil(2) * 2
}

/// The mean weighted speed-up of the slots of a pairing drawn by lot.
fn by_lot(times: &Times, programs: usize) -> f64 {
    let places = places(programs);
    let speedup = |[one, other]: [usize; 2]| times.pair(one, other).weighted_speedup();
    let sum: f64 = all_pairs(programs).map(speedup).sum();
    (sum / (places - 1) as f64 + (places - programs) as f64) / (places / 2) as f64
}

/// Whether the pairing is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PairsVerdict {
    /// No other pairing is better by 1 %, with the confidence of the question.
    Paired,
    /// The same, and every program runs alone.
    Alone,
    /// Another pairing may be better by more. Or fresh runs of the best one lose to a random
    /// pairing, or to one program after the other.
    Undecided,
    /// Not every pair has been measured.
    Incomplete,
}

/// What the records of a question show.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairsOutcome {
    /// Whether the pairing is known.
    pub verdict: PairsVerdict,
    /// The best pairing of the means; `None` before every pair was measured.
    pub pairing: Option<Pairing>,
    /// Its mean weighted speed-up, over all slots, from fresh runs; `None` without these.
    pub per_slot: Option<Resampled>,
    /// How much better it is than a pairing by lot, as a share. Fresh runs say what the pairing
    /// does.
    pub gain: Option<Resampled>,
    /// The pairing that is most often better, where the verdict is undecided.
    pub rival: Option<Pairing>,
    /// Programs that lose beside each other program, beyond the intervals.
    pub apart: Vec<usize>,
    /// Each program alone, in order; `None` for one that has not run.
    pub alone: Vec<Option<SoloOutcome>>,
    /// Each pair that was measured, or predicted.
    pub pairs: Vec<PairOutcome>,
    /// Each program as a neighbour, the best first; empty before every pair was measured.
    pub neighbours: Vec<Neighbour>,
    /// The measurements.
    pub measurements: u64,
    /// How far the counts of each program alone can be trusted; `None` of one without quanta.
    #[serde(default)]
    pub counters: Vec<Option<CounterQuality>>,
}

impl PairsOutcome {
    /// What `records` show of that many programs.
    pub fn of(records: &[Record], programs: usize, question: &PairsQuestion) -> Self {
        // The last runs may be of a faster or slower machine, and only some pairs have them.
        let search = RunTimes::of_search(records, programs).predicting(records, question);
        let means = search.means();
        let draws = search.draws(DRAWS, &mut Random::new(question.seed));
        let resampled = |of: &dyn Fn(&Times) -> f64| {
            Resampled::new(of(&means), draws.iter().map(of), question.confidence)
        };
        let alone = |program| {
            let count = search.count(program, None);
            let seconds = || resampled(&|times| times.alone(program));
            (count > 0).then(|| SoloOutcome { seconds: seconds(), runs: count })
        };
        let pair = |one: usize, other: usize| PairOutcome {
            programs: [one, other],
            weighted_speedup: resampled(&|times| times.pair(one, other).weighted_speedup()),
            speedup: resampled(&|times| times.pair(one, other).speedup(question.lengths)),
            unfairness: resampled(&|times| times.pair(one, other).unfairness()),
            slowdowns: [0, 1]
                .map(|side| resampled(&|times| times.pair(one, other).slowdowns()[side])),
            runs: [search.count(one, Some(other)), search.count(other, Some(one))],
        };
        // Of a predicted pair the draws are as narrow as errors within the training programs. Only
        // the weighted speed-up has a margin: the model's errors of other numbers are not known.
        let predicted = |pair: PairOutcome| match &question.model {
            Some(model) if pair.is_predicted() => {
                let (value, margin) =
                    (pair.weighted_speedup.value, model.margin(question.confidence).value());
                let (low, high) = (Some((value - margin).max(0.0)), Some(value + margin));
                PairOutcome { weighted_speedup: Resampled { value, low, high }, ..pair }
            }
            _ => pair,
        };
        let all = (0..programs).flat_map(|one| (one..programs).map(move |other| (one, other)));
        let pairs: Vec<PairOutcome> = all
            .filter(|&(one, other)| search.knows(one, other))
            .map(|(one, other)| predicted(pair(one, other)))
            .collect();
        let mut outcome = Self {
            verdict: PairsVerdict::Incomplete,
            pairing: None,
            per_slot: None,
            gain: None,
            rival: None,
            apart: Vec::new(),
            alone: (0..programs).map(alone).collect(),
            pairs,
            neighbours: Vec::new(),
            measurements: records.len() as u64,
            counters: counters_alone(records, programs, &question.recorded),
        };
        let Some(rivals) = RivalPairings::of(&search, programs, question) else { return outcome };
        let first = match question.model {
            Some(_) => {
                let first = RunTimes::of_first_each(records, programs);
                search.with_pairs(&first.predicting(records, question), all_pairs(programs))
            }
            // Alone as in pairs: of one part of the search.
            None => Some(RunTimes::of_first(records, programs)),
        };
        let last = RunTimes::of_last(records, programs);
        let last = search
            .with_pairs(&last, rivals.best.pairs.iter().copied())
            .and_then(|mixed| mixed.with_alone(&last, rivals.best.pairs.iter().flatten().copied()));
        if let (Some(first), Some(last)) = (first, last) {
            let draws = |runs: &RunTimes, seed| runs.draws(DRAWS, &mut Random::new(seed));
            let random = draws(&first, question.seed);
            let fresh = draws(&last, question.seed ^ 2);
            let per_slot = |times: &Times| rivals.best.per_slot(times);
            let gain = |(fresh, random): (&Times, &Times)| {
                per_slot(fresh) / by_lot(random, programs) - 1.0
            };
            let confidence = question.confidence;
            let (value, slots) = (last.means(), fresh.iter().map(per_slot));
            outcome.per_slot = Some(Resampled::new(per_slot(&value), slots, confidence));
            let value = gain((&value, &first.means()));
            let gains = fresh.iter().zip(&random).map(gain);
            // Two programs have one pairing, which gains nothing over itself.
            outcome.gain = (programs > 2).then(|| Resampled::new(value, gains, confidence));
        }
        let leaves = |program: usize| Neighbour {
            program,
            leaves: resampled(&|times| {
                let others = (0..programs).filter(|&other| other != program);
                let speeds = others.map(|other| 1.0 / times.pair(other, program).slowdowns()[0]);
                speeds.sum::<f64>() / (programs - 1) as f64
            }),
        };
        outcome.neighbours = (0..programs).map(leaves).collect();
        outcome.neighbours.sort_by(|one, other| other.leaves.value.total_cmp(&one.leaves.value));
        let loses = |&program: &usize| {
            let mut own = outcome.pairs.iter().filter(|pair| {
                pair.programs.contains(&program) && pair.programs[0] != pair.programs[1]
            });
            own.all(|pair| pair.weighted_speedup.is_below(1.0))
        };
        outcome.apart = (0..programs).filter(loses).collect();
        // Nothing is announced that fresh runs contradict. Their intervals are wide, so their means
        // count: a pair that lost in its fresh runs is not announced.
        let is_below =
            |value: Option<Resampled>, bound| value.is_some_and(|value| value.value < bound);
        let loses = !rivals.best.pairs.is_empty() && is_below(outcome.per_slot, 1.0);
        let contradicted = is_below(outcome.gain, -AS_GOOD) || loses;
        outcome.verdict = match rivals.is_decided(question) && !contradicted {
            false => PairsVerdict::Undecided,
            true if rivals.best.pairs.is_empty() => PairsVerdict::Alone,
            true => PairsVerdict::Paired,
        };
        if outcome.verdict == PairsVerdict::Undecided {
            let of_all = Pairing::best(&means, programs, &Matchings::of(places(programs)));
            let of_all = Some(of_all).filter(|other| *other != rivals.best);
            outcome.rival = rivals.rival().or(of_all);
        }
        outcome.pairing = Some(rivals.best);
        outcome
    }
}

/// What possible truths say of the best pairing.
pub(crate) struct RivalPairings {
    /// The best pairing of the means.
    pub(crate) best: Pairing,
    /// The best pairing of each draw in which it is better by more than [`AS_GOOD`].
    better: Vec<Pairing>,
    /// Whether something was measured twice, so that it is known how measurements vary.
    is_varied: bool,
}

impl RivalPairings {
    /// `None` if a pair has no run and no prediction.
    pub(crate) fn of(runs: &RunTimes, programs: usize, question: &PairsQuestion) -> Option<Self> {
        if !all_pairs(programs).all(|[one, other]| runs.knows(one, other)) {
            return None;
        }
        let matchings = Matchings::of(places(programs));
        let best = Pairing::best(&runs.means(), programs, &matchings);
        let draws = runs.draws(RIVALS, &mut Random::new(question.seed ^ 1)).into_iter();
        let better = draws.filter_map(|times| {
            let other = Pairing::best(&times, programs, &matchings);
            (other.per_slot(&times) > (1.0 + AS_GOOD) * best.per_slot(&times)).then_some(other)
        });
        Some(Self { better: better.collect(), best, is_varied: runs.is_varied() })
    }

    /// Another pairing is better no more often than the confidence leaves out. The intervals of all
    /// pairs stand beside the verdict *alone*. So it leaves out as much as one end of these.
    pub(crate) fn is_decided(&self, question: &PairsQuestion) -> bool {
        let left_out = match self.best.pairs.is_empty() {
            true => (1.0 - question.confidence) / 2.0,
            false => 1.0 - question.confidence,
        };
        self.is_varied && self.better.len() as f64 <= left_out * RIVALS as f64
    }

    /// The pairing that is most often better.
    fn rival(&self) -> Option<Pairing> {
        let count = |one: &Pairing| self.better.iter().filter(|other| *other == one).count();
        // The first of equals.
        self.better.iter().rev().max_by_key(|one| count(one)).cloned()
    }

    /// How often each pair is what a better pairing differs in.
    pub(crate) fn open_pairs(&self) -> Vec<([usize; 2], usize)> {
        let mut open: BTreeMap<[usize; 2], usize> = BTreeMap::new();
        for other in &self.better {
            let added = other.pairs.iter().filter(|pair| !self.best.pairs.contains(pair));
            let gone = self.best.pairs.iter().filter(|pair| !other.pairs.contains(pair));
            for pair in added.chain(gone) {
                *open.entry(*pair).or_default() += 1;
            }
        }
        open.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pairs_search::fixture::{Noisy, records_of};
    use pinwise_campaign::Purpose;
    use pinwise_measure::{AccompaniedRuns, Detail, Setting};
    use pinwise_placement::Budget;

    /// How many times longer each (row) takes beside each (column).
    fn slowdowns() -> Vec<Vec<f64>> {
        vec![
            vec![1.9, 1.1, 1.8, 1.5],
            vec![1.2, 1.4, 1.3, 1.6],
            vec![1.7, 1.4, 1.9, 1.2],
            vec![1.4, 1.7, 1.1, 1.8],
        ]
    }

    fn question() -> PairsQuestion {
        PairsQuestion { budget: Budget::Measurements(200), ..PairsQuestion::default() }
    }

    fn is_fresh_pair(record: &Record) -> bool {
        let is_pair = matches!(&record.trial.setting, Setting::Profile(parts) if parts.len() == 2);
        is_pair && record.trial.purpose == Purpose::Final
    }

    #[test]
    fn a_pairing_whose_fresh_runs_are_worse_than_chance_is_not_announced() {
        let mut records = records_of(&mut Noisy::new(slowdowns(), 0.01, 1), 3);
        assert_eq!(PairsOutcome::of(&records, 4, &question()).verdict, PairsVerdict::Paired);
        for record in records.iter_mut().filter(|one| is_fresh_pair(one)) {
            let measured = record.outcome.as_mut().unwrap();
            let mut runs: AccompaniedRuns = measured.detail.as_ref().unwrap().read().unwrap();
            runs.seconds.iter_mut().flatten().for_each(|seconds| *seconds *= 2.0);
            measured.detail = Detail::of(&runs);
        }
        let outcome = PairsOutcome::of(&records, 4, &question());
        assert!(outcome.gain.unwrap().is_below(0.0));
        assert_eq!(outcome.verdict, PairsVerdict::Undecided);
    }

    #[test]
    fn two_programs_that_lost_in_their_fresh_runs_are_not_paired() {
        let pair = vec![vec![1.5, 1.2], vec![1.3, 1.4]];
        let mut records = records_of(&mut Noisy::new(pair, 0.01, 1), 3);
        assert_eq!(PairsOutcome::of(&records, 2, &question()).verdict, PairsVerdict::Paired);
        let last = records.iter_mut().filter(|one| is_fresh_pair(one));
        for (number, record) in last.enumerate() {
            let measured = record.outcome.as_mut().unwrap();
            let mut runs: AccompaniedRuns = measured.detail.as_ref().unwrap().read().unwrap();
            let times = if number == 0 { 1.0 } else { 2.0 };
            runs.seconds.iter_mut().flatten().for_each(|seconds| *seconds *= times);
            measured.detail = Detail::of(&runs);
        }
        let outcome = PairsOutcome::of(&records, 2, &question());
        let fresh = outcome.per_slot.unwrap();
        assert!(fresh.value < 1.0 && !fresh.is_below(1.0), "its interval is wide: {fresh:?}");
        assert_eq!(outcome.verdict, PairsVerdict::Undecided);
    }

    #[test]
    fn two_programs_have_one_pairing_which_gains_nothing_over_itself() {
        let pair = vec![vec![1.5, 1.2], vec![1.3, 1.4]];
        let records = records_of(&mut Noisy::new(pair, 0.01, 1), 3);
        let outcome = PairsOutcome::of(&records, 2, &question());
        assert_eq!((outcome.verdict, outcome.gain), (PairsVerdict::Paired, None));
        assert!(outcome.per_slot.is_some_and(|shown| shown.is_above(1.0)));
    }

    #[test]
    fn exact_runs_give_the_pairing_and_its_gain_as_computed_by_hand() {
        let records = records_of(&mut Noisy::new(slowdowns(), 0.0, 1), 1);
        let outcome = PairsOutcome::of(&records, 4, &question());
        assert_eq!(outcome.verdict, PairsVerdict::Paired);
        let pairing = outcome.pairing.unwrap();
        assert_eq!((pairing.pairs, pairing.alone), (vec![[0, 1], [2, 3]], vec![]));
        let speedup = |one: f64, other: f64| 1.0 / one + 1.0 / other;
        let paired = (speedup(1.1, 1.2) + speedup(1.2, 1.1)) / 2.0;
        let all = [
            speedup(1.1, 1.2),
            speedup(1.8, 1.7),
            speedup(1.5, 1.4),
            speedup(1.3, 1.4),
            speedup(1.6, 1.7),
            speedup(1.2, 1.1),
        ];
        let lot = all.iter().sum::<f64>() / 6.0;
        let gain = outcome.gain.unwrap();
        assert!((outcome.per_slot.unwrap().value - paired).abs() < 1e-9);
        assert!((gain.value - (paired / lot - 1.0)).abs() < 1e-9);
        assert_eq!((gain.low, gain.high), (Some(gain.value), Some(gain.value)));
        let chosen = |record: &&Record| record.trial.purpose != pinwise_campaign::Purpose::Final;
        let search: Vec<Record> = records.iter().filter(chosen).cloned().collect();
        assert_eq!(PairsOutcome::of(&search, 4, &question()).gain, None, "no fresh runs");
        assert_eq!(outcome.pairs.len(), 10);
        let best = outcome.neighbours[0];
        let left = (1.0 / 1.1 + 1.0 / 1.4 + 1.0 / 1.7) / 3.0;
        let known = outcome.neighbours.iter().find(|one| one.program == 1).unwrap();
        assert!((known.leaves.value - left).abs() < 1e-9 && best.leaves.value >= left);
    }

    #[test]
    fn programs_that_lose_beside_each_other_run_alone() {
        let mut slow = vec![vec![3.0; 3]; 3];
        let records = records_of(&mut Noisy::new(slow.clone(), 0.0, 1), 1);
        let outcome = PairsOutcome::of(&records, 3, &question());
        assert_eq!((outcome.verdict, outcome.apart), (PairsVerdict::Alone, vec![0, 1, 2]));
        (slow[0][1], slow[1][0]) = (1.2, 1.3);
        let records = records_of(&mut Noisy::new(slow, 0.0, 1), 1);
        let outcome = PairsOutcome::of(&records, 3, &question());
        let pairing = outcome.pairing.unwrap();
        assert_eq!((pairing.pairs, pairing.alone), (vec![[0, 1]], vec![2]));
        assert_eq!((outcome.verdict, outcome.apart), (PairsVerdict::Paired, vec![2]));
        // Two slots: the pair, and the one alone.
        let expected = (1.0 / 1.2 + 1.0 / 1.3 + 1.0) / 2.0;
        assert!((outcome.per_slot.unwrap().value - expected).abs() < 1e-9);
    }

    /// Two programs that lose about as much beside each other as sharing gains.
    #[test]
    fn alone_is_no_verdict_where_an_interval_that_is_shown_allows_a_gain() {
        let (mut alone, mut undecided) = (0, 0);
        for seed in 1..=60 {
            let pair = vec![vec![2.0, 2.02], vec![2.03, 2.0]];
            let records = records_of(&mut Noisy::new(pair, 0.02, seed), 4);
            let outcome = PairsOutcome::of(&records, 2, &question());
            let high = outcome.pairs.iter().find(|pair| pair.programs == [0, 1]).unwrap();
            let high = high.weighted_speedup.high.unwrap();
            match outcome.verdict {
                PairsVerdict::Alone => {
                    alone += 1;
                    // Both are drawn, 200 and 1,000 times.
                    assert!(high < 1.0 + AS_GOOD + 0.003, "{outcome:?}");
                }
                _ => undecided += 1,
            }
        }
        assert!(alone > 5 && undecided > 5, "{alone} alone, {undecided} not");
    }

    #[test]
    fn without_every_pair_there_is_no_pairing() {
        let records = records_of(&mut Noisy::new(slowdowns(), 0.01, 1), 1);
        let is_alone = |record: &&pinwise_campaign::Record| match &record.trial.setting {
            pinwise_measure::Setting::Profile(parts) => parts.len() == 1,
            _ => false,
        };
        let alone = records.iter().filter(is_alone);
        let pairs = records.iter().filter(|record| !is_alone(record)).take(2);
        let some: Vec<_> = alone.chain(pairs).cloned().collect();
        let outcome = PairsOutcome::of(&some, 4, &question());
        assert_eq!((outcome.verdict, outcome.pairing), (PairsVerdict::Incomplete, None));
        assert_eq!(outcome.pairs.len(), 2, "four alone, two pairs");
        let nothing = PairsOutcome::of(&[], 4, &question());
        assert_eq!((nothing.alone, nothing.pairs), (vec![None; 4], vec![]));
    }

    #[test]
    fn an_outcome_is_read_back_as_it_was_stored() {
        let records = records_of(&mut Noisy::new(slowdowns(), 0.01, 1), 2);
        let outcome = PairsOutcome::of(&records, 4, &question());
        let stored = serde_json::to_string(&outcome).unwrap();
        assert_eq!(serde_json::from_str::<PairsOutcome>(&stored).unwrap(), outcome);
    }
}
