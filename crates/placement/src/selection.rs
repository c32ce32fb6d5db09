//! Which of the ready instances run together, and where.
//!
//! Scheduling has two steps if hardware is shared at several levels. *Workload selection* is which
//! of the ready instances run. *Assignment* is where their threads run. The statistical approach
//! was published for the second and leaves both together to future work (optimal-assignment-evt,
//! section 5.4). Here one draw is both. It has a set of the ready instances, and a uniform
//! placement of the set's threads. Every set of the wanted size is equally likely. Draws are
//! independent and from one distribution. The bound of section 3 needs no more, so it holds for the
//! best selection on its best assignment.
//!
//! Packets of different programs do not add up. Performance is the *weighted speedup* (Snavely and
//! Tullsen, *Symbiotic jobscheduling*, ASPLOS 2000). Divide each running instance's packets/s by
//! what the instance does alone on the machine. The sum is the weighted speedup. As long as
//! co-runners make no instance faster, it is at most the number of instances, which caps the bound.
//!
//! [`SelectionSearch`] spends [`SAMPLE_SHARE`] of the budget on draws and the rest on fresh windows
//! of the [`FINALISTS`] best. Only these are announced.

use crate::search::FINALISTS;
use crate::statistics::{estimate, mean, ratio};
use crate::{Bound, Budget, Estimate, Gain, PlacementQuestion, StrategyName};
use pinwise_campaign::{Purpose, Record, Step, Strategy, Trial, settled};
use pinwise_measure::{Effort, PinnedInstance, Setting, Workload};
use pinwise_prediction::ThreadKinds;
use pinwise_topology::{PerContext, Random, SharingTree, Space, SpaceError};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// Share of the budget that is drawn; the rest is for fresh windows.
const SAMPLE_SHARE: f64 = 0.75;

/// The question of a selection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SelectionQuestion {
    /// How many of the ready instances run together.
    pub choose: usize,
    /// Measurements that may be made.
    pub budget: u64,
    /// Confidence of every interval and of the bound.
    pub confidence: f64,
    /// The seed of all randomness.
    pub seed: u64,
}

/// Why there is nothing to choose from.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectionError {
    /// More instances are wanted than are ready, or none.
    #[error("{choose} of {ready} ready instances cannot be chosen: choose from 1 to {ready}")]
    Number {
        /// Wanted.
        choose: usize,
        /// Ready.
        ready: usize,
    },
    /// The chosen do not fit on the machine.
    #[error(transparent)]
    Space(#[from] SpaceError),
}

/// Instances that run together, where they run, and their performance on fresh windows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlacedSelection {
    /// The instances, each with the leaf of each of its threads.
    #[serde(alias = "pieces")]
    pub instances: Vec<PinnedInstance>,
    /// On fresh windows. The interval is corrected for the best having been chosen among several
    /// (Bonferroni over the finalists).
    pub performance: Estimate,
}

/// The result of the draws of one selection, over all assignments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DrawnSelection {
    /// How many instances of each application run.
    pub counts: Vec<usize>,
    /// Over random assignments.
    pub performance: Estimate,
    /// The best single window of them.
    pub best: f64,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SelectionOutcome {
    /// The best.
    pub best: Option<PlacedSelection>,
    /// Other finalists whose fresh windows do not differ from those of the best beyond chance, best
    /// mean first.
    pub ties: Vec<PlacedSelection>,
    /// The performance over all draws: both steps are left to chance.
    pub chance: Option<Estimate>,
    /// The bound on the best selection on its best assignment.
    pub bound: Bound,
    /// Every selection that was drawn, best mean first.
    pub selections: Vec<DrawnSelection>,
    /// The number of different selections. Instances of one application are alike.
    pub different: u64,
    /// Measurements made.
    pub measurements: u64,
}

impl SelectionOutcome {
    /// The best over the mean of all draws. Its ends come from the ends of the two intervals that
    /// are the furthest apart, since both are estimates.
    pub fn gain(&self) -> Option<Gain> {
        let (best, chance) = (self.best.as_ref()?.performance, self.chance?);
        Some(Gain {
            mean: best.mean / chance.mean - 1.0,
            low: best.low / chance.high - 1.0,
            high: best.high / chance.low - 1.0,
        })
    }
}

/// The strategy that answers a [`SelectionQuestion`].
#[derive(Debug)]
pub struct SelectionSearch {
    question: SelectionQuestion,
    thread_kinds: ThreadKinds,
    tree: SharingTree,
    random: Random,
    /// Decided, not yet measured.
    queue: VecDeque<Trial>,
    sampled: bool,
}

impl SelectionSearch {
    /// The search for the best of the instances of `workload` on the contexts of `tree`, one thread
    /// per context.
    ///
    /// # Errors
    /// There are not that many instances, or no room for them.
    pub fn new(
        question: &SelectionQuestion,
        tree: &SharingTree,
        workload: &Workload,
    ) -> Result<Self, SelectionError> {
        let thread_kinds = ThreadKinds::new(workload);
        let (choose, ready) = (question.choose, thread_kinds.instances().len());
        if choose == 0 || choose > ready {
            return Err(SelectionError::Number { choose, ready });
        }
        let mut sizes: Vec<usize> =
            thread_kinds.instances().iter().map(|instance| instance.threads.len()).collect();
        sizes.sort_unstable();
        let most = sizes.iter().rev().take(choose).sum();
        Space::new(tree.clone(), most, PerContext::AtMost(1))?;
        let random = Random::new(question.seed);
        let mut search = Self {
            question: question.clone(),
            thread_kinds,
            tree: tree.clone(),
            random,
            queue: VecDeque::new(),
            sampled: false,
        };
        let draws = (SAMPLE_SHARE * question.budget as f64).ceil() as u64;
        for _ in 0..draws {
            let instances = search.draw()?;
            search.queue.push_back(trial(instances, Purpose::Sample));
        }
        Ok(search)
    }

    /// One set of instances, every set equally likely, on a uniform placement. Among alike
    /// instances it takes the first ones.
    fn draw(&mut self) -> Result<Vec<PinnedInstance>, SpaceError> {
        let instances = self.thread_kinds.instances();
        let mut order: Vec<usize> = (0..instances.len()).collect();
        self.random.shuffle(&mut order);
        let counts = self.counts(&order[..self.question.choose]);
        let mut left = counts;
        let takes = |instance: &usize| {
            let left = &mut left[instances[*instance].application];
            *left > 0 && {
                *left -= 1;
                true
            }
        };
        let chosen: Vec<usize> = (0..instances.len()).filter(takes).collect();
        let threads = chosen.iter().map(|instance| instances[*instance].threads.len()).sum();
        let space = Space::new(self.tree.clone(), threads, PerContext::AtMost(1))?;
        let assignment = space.sample(&mut self.random);
        let mut leaves = assignment.leaves().iter().copied();
        let pinned = |instance: usize| PinnedInstance {
            instance,
            leaves: leaves.by_ref().take(instances[instance].threads.len()).collect(),
        };
        Ok(chosen.into_iter().map(pinned).collect())
    }

    /// How many of these instances run each application.
    fn counts(&self, instances: &[usize]) -> Vec<usize> {
        let mut counts = vec![0; self.thread_kinds.applications()];
        instances
            .iter()
            .for_each(|&instance| counts[self.thread_kinds.instances()[instance].application] += 1);
        counts
    }

    /// Fresh windows of the best of the sample, as many as the rest of the budget has.
    fn finals(&mut self, history: &[Record]) {
        let mut sample: Vec<(&Vec<PinnedInstance>, f64)> =
            means(history, Purpose::Sample).into_iter().collect();
        sample.sort_by(|a, b| b.1.total_cmp(&a.1));
        let finalists: Vec<Vec<PinnedInstance>> =
            sample.into_iter().take(FINALISTS).map(|(instances, _)| instances.clone()).collect();
        let left = self.question.budget.saturating_sub(history.len() as u64) as usize;
        for _ in 0..left / finalists.len().max(1) {
            let mut round = finalists.clone();
            self.random.shuffle(&mut round);
            self.queue.extend(round.into_iter().map(|instances| trial(instances, Purpose::Final)));
        }
    }

    /// The outcome of `records`, which are all that was measured.
    pub fn outcome(&self, records: &[Record]) -> SelectionOutcome {
        let confidence = self.question.confidence;
        let sample = windows(records, Purpose::Sample);
        let finals = windows(records, Purpose::Final);
        let together = 1.0 - (1.0 - confidence) / finals.len().max(1) as f64;
        let announce = |(instances, windows): (&&Vec<PinnedInstance>, &Vec<f64>)| {
            let performance = Estimate { confidence, ..estimate(windows, together)? };
            Some(PlacedSelection { instances: (*instances).clone(), performance })
        };
        let mut announced: Vec<PlacedSelection> = finals.iter().filter_map(announce).collect();
        announced.sort_by(|a, b| b.performance.mean.total_cmp(&a.performance.mean));
        let mut announced = announced.into_iter();
        let best = announced.next();
        let is_tie = |other: &PlacedSelection| {
            let best = best.as_ref().and_then(|best| finals.get(&best.instances));
            let pairs = best.zip(finals.get(&other.instances));
            let pairs = pairs.map(|(best, other)| {
                other.iter().copied().zip(best.iter().copied()).collect::<Vec<_>>()
            });
            pairs
                .and_then(|pairs| ratio(&pairs, 0.0, together))
                .is_none_or(|ratio| ratio.high >= 1.0)
        };
        let ties: Vec<PlacedSelection> = announced.filter(is_tie).collect();
        let question = PlacementQuestion {
            confidence,
            cap: Some(self.question.choose as f64),
            ..PlacementQuestion::new(
                StrategyName::Random,
                Budget::Measurements(self.question.budget),
            )
        };
        let values = sample.values().map(|windows| mean(windows)).collect();
        let top = best.as_ref().map(|best| best.performance.mean);
        let bound = Bound::from_sample(&question, values, top);
        let all: Vec<f64> = sample.values().flatten().copied().collect();
        let mut selections: BTreeMap<Vec<usize>, Vec<f64>> = BTreeMap::new();
        for (drawn, windows) in &sample {
            let instances: Vec<usize> = drawn.iter().map(|pinned| pinned.instance).collect();
            selections.entry(self.counts(&instances)).or_default().extend(windows);
        }
        let drawn = |(counts, windows): (Vec<usize>, Vec<f64>)| {
            let best = windows.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            Some(DrawnSelection { counts, performance: estimate(&windows, confidence)?, best })
        };
        let mut selections: Vec<DrawnSelection> =
            selections.into_iter().filter_map(drawn).collect();
        selections.sort_by(|a, b| b.performance.mean.total_cmp(&a.performance.mean));
        SelectionOutcome {
            best,
            ties,
            chance: estimate(&all, confidence),
            bound,
            selections,
            different: self.different(),
            measurements: records.len() as u64,
        }
    }

    /// The number of ways to choose this number of instances, if those of one application are
    /// alike. It is the coefficient of x^choose in the product of 1 + x + … + x^ready over the
    /// applications.
    fn different(&self) -> u64 {
        let all: Vec<usize> = (0..self.thread_kinds.instances().len()).collect();
        let mut ways = vec![0u64; self.question.choose + 1];
        ways[0] = 1;
        for ready in self.counts(&all) {
            let before = ways.clone();
            for (taken, ways) in ways.iter_mut().enumerate() {
                *ways = (0..=ready.min(taken))
                    .fold(0, |sum: u64, own| sum.saturating_add(before[taken - own]));
            }
        }
        ways[self.question.choose]
    }
}

/// The windows of each selection that were made for `purpose`, in order.
fn windows(records: &[Record], purpose: Purpose) -> BTreeMap<&Vec<PinnedInstance>, Vec<f64>> {
    let mut windows: BTreeMap<&Vec<PinnedInstance>, Vec<f64>> = BTreeMap::new();
    for record in settled(records).filter(|record| record.trial.purpose == purpose) {
        if let (Setting::Profile(instances), Ok(measured)) =
            (&record.trial.setting, &record.outcome)
        {
            windows.entry(instances).or_default().push(measured.performance);
        }
    }
    windows
}

fn means(records: &[Record], purpose: Purpose) -> BTreeMap<&Vec<PinnedInstance>, f64> {
    windows(records, purpose)
        .into_iter()
        .map(|(instances, windows)| (instances, mean(&windows)))
        .collect()
}

fn trial(instances: Vec<PinnedInstance>, purpose: Purpose) -> Trial {
    Trial { setting: Setting::Profile(instances), purpose, effort: Effort::default() }
}

impl Strategy for SelectionSearch {
    fn step(&mut self, history: &[Record]) -> Step {
        if self.queue.is_empty() && !self.sampled {
            self.sampled = true;
            self.finals(history);
        }
        match self.queue.pop_front() {
            Some(trial) => Step::Measure(trial),
            None => Step::Stop,
        }
    }

    fn foresee(&self, most: usize) -> Vec<Trial> {
        self.queue.iter().take(most).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::recorded;
    use pinwise_topology::{Alike, Machine};

    /// Three instances each of a light and a heavy program, one thread each.
    fn ready() -> Workload {
        let (light, heavy): (&[&str], &[&str]) = (&["light"], &["heavy"]);
        Workload::new("light+heavy", &[light, light, light, heavy, heavy, heavy])
    }

    fn question(choose: usize) -> SelectionQuestion {
        SelectionQuestion { choose, budget: 400, confidence: 0.95, seed: 5 }
    }

    fn tree() -> SharingTree {
        SharingTree::new(&Machine::from_shape("3x2").unwrap(), Alike::ByStructure)
    }

    /// Alone all do 1. A heavy instance on a core takes 0.4 from the others on it. Distance costs a
    /// little, so that no two selections are equal.
    fn speedup(instances: &[PinnedInstance]) -> f64 {
        let core = |pinned: &PinnedInstance| pinned.leaves[0] / 2;
        let one = |pinned: &PinnedInstance| {
            let beside =
                instances.iter().filter(|other| *other != pinned && core(other) == core(pinned));
            1.0 - 0.4 * beside.filter(|other| other.instance >= 3).count() as f64
                - 0.002 * f64::from(pinned.leaves[0])
        };
        instances.iter().map(one).sum()
    }

    fn run(
        question: &SelectionQuestion,
        mut noise: impl FnMut() -> f64,
    ) -> (SelectionSearch, Vec<Record>) {
        let mut search = SelectionSearch::new(question, &tree(), &ready()).unwrap();
        let records = recorded(&mut search, |setting, _| {
            let Setting::Profile(instances) = setting else { panic!("{setting:?}") };
            Ok(speedup(instances) * noise())
        });
        (search, records)
    }

    #[test]
    fn the_best_selection_is_found_on_its_best_assignment() {
        let (search, records) = run(&question(5), || 1.0);
        // Whole rounds of eight.
        assert_eq!(records.len(), 300 + 12 * 8);
        let outcome = search.outcome(&records);
        let best = outcome.best.unwrap();
        // Five on three cores of two. Of the two heavy ones one is alone and one is with a light
        // one. With three heavy ones two would suffer.
        assert_eq!(
            search.counts(&best.instances.iter().map(|pinned| pinned.instance).collect::<Vec<_>>()),
            [3, 2]
        );
        assert!(
            (best.performance.mean - speedup(&best.instances)).abs() < 1e-12
                && best.performance.mean > 4.5
        );
        assert_eq!((outcome.different, outcome.selections.len()), (2, 2));
        assert!(
            outcome.bound.upb_high.is_none_or(|high| (best.performance.mean..=5.0).contains(&high))
        );
        assert!(outcome.chance.unwrap().mean < best.performance.mean);
    }

    #[test]
    fn every_set_is_equally_likely_and_the_same_question_asks_the_same() {
        let (search, records) = run(&SelectionQuestion { budget: 4000, ..question(2) }, || 1.0);
        // Of 15 pairs 3 are light, 3 heavy, 9 mixed.
        let outcome = search.outcome(&records);
        let share = |counts: &[usize]| {
            outcome
                .selections
                .iter()
                .find(|drawn| drawn.counts == counts)
                .map_or(0, |drawn| drawn.performance.n) as f64
                / 3000.0
        };
        // Three standard errors of a share of 0.6 of 3,000.
        assert!(
            (share(&[1, 1]) - 0.6).abs() < 0.027 && (share(&[2, 0]) - 0.2).abs() < 0.022,
            "{}",
            share(&[1, 1])
        );
        assert_eq!(outcome.different, 3);
        assert_eq!(run(&SelectionQuestion { budget: 4000, ..question(2) }, || 1.0).1, records);
    }

    #[test]
    fn only_fresh_windows_are_announced_and_what_they_cannot_tell_apart_is_named() {
        let mut random = Random::new(2);
        let (search, records) = run(&question(5), || 1.0 + 0.1 * (random.unit() - 0.5));
        let outcome = search.outcome(&records);
        let best = outcome.best.unwrap();
        // 100 windows for 8 finalists.
        assert_eq!(best.performance.n, 12);
        let truth = speedup(&best.instances);
        assert!(
            (best.performance.low..=best.performance.high).contains(&truth),
            "{truth} {:?}",
            best.performance
        );
        assert!(!outcome.ties.is_empty());
    }

    #[test]
    fn what_cannot_be_chosen_is_refused() {
        for choose in [0, 7] {
            let error = SelectionSearch::new(&question(choose), &tree(), &ready()).unwrap_err();
            assert_eq!(error, SelectionError::Number { choose, ready: 6 });
        }
        let small = SharingTree::new(&Machine::from_shape("2x2").unwrap(), Alike::ByStructure);
        assert!(matches!(
            SelectionSearch::new(&question(5), &small, &ready()),
            Err(SelectionError::Space(_))
        ));
        assert!(SelectionSearch::new(&question(4), &small, &ready()).is_ok());
    }
}
