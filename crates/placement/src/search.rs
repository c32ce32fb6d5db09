//! The search for the best assignment, as a campaign strategy.
//!
//! A search has three stages. *Opening*: the unpinned baseline, then a reference assignment. They
//! also show how long a trial takes. The budget then decides which space to search and how.
//! *Looking*: proposers propose assignments. Between their trials the search measures the baseline
//! again, for its spread, and the reference, to see drift. *Fresh windows*: the winner, its rivals
//! and the baseline are measured again. Only these windows decide the answer.
//!
//! Every step is a function of the question, the machine, the seed and the records. The search
//! reads no clock: it compares a budget in time with the time recorded.

mod approach;
mod blackbox;
mod climb;
mod error;
mod exhaustive;
mod finalists;
pub(crate) mod guided;
pub(crate) mod history;
pub(crate) mod learned_predictor;
mod proposer;
mod random_sample;
pub(crate) mod residual_bound;
pub(crate) mod solo_bound;
mod structured;

use crate::fresh_windows::{BASELINE_WINDOWS, FreshWindows};
use crate::{
    BlackboxForecast, Budget, Outcome, PlacementQuestion, StopReason, StrategyName, StrategyReason,
};
use approach::{Approach, narrow_space};
use blackbox::Predicting;
pub use blackbox::core_local;
pub use error::SearchError;
use finalists::Finalists;
use history::History;
use num_bigint::BigUint;
use pinwise_campaign::{Purpose, Record, Step, Strategy, Trial, TrialRounds, settled};
use pinwise_measure::{MeasureError, Setting, Unit, Workload};
use pinwise_topology::{Assignment, PerContext, Random, SharingTree, Space};
use proposer::{Next, View, pinned, trial};
use std::collections::VecDeque;

/// The share of the budget that searching may use; the rest is for fresh windows.
const SEARCH_SHARE: f64 = 0.75;

/// How many assignments get fresh windows, at most.
pub(crate) const FINALISTS: usize = 8;

/// Windows of the baseline, and then of the reference, before anything else.
const OPENING: [usize; 2] = [4, 2];

/// A share of the budget whose rest has to be explained.
const LEFT_NOTABLE: f64 = 0.05;

/// Search trials between two visits to the baseline and the reference.
const VISIT_EVERY: usize = 20;

/// Windows of the baseline per visit; the reference gets one.
const BASELINE_PER_VISIT: usize = 2;

/// Trials of visits per search trial.
pub(crate) const VISITS: f64 = (BASELINE_PER_VISIT + 1) as f64 / VISIT_EVERY as f64;

#[derive(Debug)]
enum SearchStage {
    Opening,
    Looking,
    FreshWindows(Finalists),
    Stopped,
}

/// The strategy that answers a [`PlacementQuestion`].
#[derive(Debug)]
pub struct PlacementSearch {
    question: PlacementQuestion,
    workload: Workload,
    random: Random,
    space: Space,
    approach: Option<Approach>,
    /// The proposer of `--strategy blackbox`, until the approach takes it.
    predicting: Option<Predicting>,
    /// Measurements of the smallest profile and of its best predictions, if the search makes one.
    least_profile: Option<u64>,
    stage: SearchStage,
    /// Decided, not yet measured.
    queue: VecDeque<Trial>,
    /// How many trials the round of fresh windows had when it began.
    round: usize,
    /// How many records were taken into account.
    seen: usize,
    history: History,
    fresh: FreshWindows,
    reference: Assignment,
    /// Search trials since the last visit to baseline and reference.
    since_visit: usize,
    /// Why looking ended, then why everything did.
    reasons: Vec<StopReason>,
    /// The predictions of proposers that are done.
    forecast: Option<BlackboxForecast>,
}

impl PlacementSearch {
    /// The search for the best assignment of the workload's threads to the contexts of `tree`.
    pub fn new(
        question: &PlacementQuestion,
        tree: &SharingTree,
        workload: &Workload,
    ) -> Result<Self, SearchError> {
        let space = narrow_space(question, tree, workload)?;
        if space.is_masked() && question.strategy == StrategyName::Blackbox {
            return Err(SearchError::Masked { workload: workload.name.clone() });
        }
        // A search that cannot work is refused before anything is measured.
        let predicting = (question.strategy == StrategyName::Blackbox)
            .then(|| Predicting::new(question, tree, workload))
            .transpose()?;
        let least_profile = predicting.as_ref().map(Predicting::least);
        if let (Some(least), Budget::Measurements(budget)) = (least_profile, question.budget)
            && budget < least
        {
            return Err(SearchError::TooSmall { least, budget, enough: 2 * least });
        }
        let contexts = tree.leaves().len() as u32;
        // Threads in order, one on each context, within their affinities. Many people would do this
        // by hand.
        let in_turn = Assignment::new(
            (0..workload.threads.len() as u32).map(|thread| thread % contexts).collect(),
        );
        let mut search = Self {
            question: question.clone(),
            workload: workload.clone(),
            random: Random::new(question.seed),
            reference: space.canonical(&space.nearest(&in_turn)),
            space,
            approach: None,
            predicting,
            least_profile,
            stage: SearchStage::Opening,
            queue: VecDeque::new(),
            round: 0,
            seen: 0,
            history: History::default(),
            fresh: FreshWindows::default(),
            since_visit: 0,
            reasons: Vec::new(),
            forecast: None,
        };
        let baseline = trial(Setting::Unpinned, Purpose::Baseline);
        let reference = pinned(&search.reference, Purpose::Reference);
        // The baseline first: only now is the program in its initial placement.
        for (trial, times) in [baseline, reference].into_iter().zip(OPENING) {
            search.queue.extend(std::iter::repeat_n(trial, times));
        }
        Ok(search)
    }

    /// A search that has seen `records`, as after measuring them.
    pub fn replay(
        question: &PlacementQuestion,
        tree: &SharingTree,
        workload: &Workload,
        records: &[Record],
    ) -> Result<Self, SearchError> {
        let mut search = Self::new(question, tree, workload)?;
        search.step(&[]);
        for last in settled(records) {
            search.step(records.get(..=last.number as usize).unwrap_or(records));
        }
        Ok(search)
    }

    /// The space searched: chosen when the opening is over, before that the smallest that could be.
    pub fn space(&self) -> &Space {
        self.approach.as_ref().map_or(&self.space, |approach| &approach.space)
    }

    /// Whether there is only one assignment, with any number of threads on a context that the
    /// question allows.
    pub fn has_no_choice(&self) -> bool {
        let one = |space: &Space| space.count() == BigUint::from(1_u32);
        let open =
            self.question.per_context.is_none() && self.question.strategy != StrategyName::Blackbox;
        let wide = || self.space.with_per_context(PerContext::Any);
        one(&self.space) && (!open || wide().is_ok_and(|wide| one(&wide)))
    }

    /// About how many measurements a search takes until two assignments have as many fresh windows
    /// as a verdict needs. With few assignments, these follow the rounds after which assignments
    /// may be dropped. With many, they follow the share of the budget that searching may use.
    pub fn enough(&self) -> u64 {
        if let Some(least) = self.least_profile {
            return 2 * least;
        }
        let count = u64::try_from(self.space().count()).map_or(f64::INFINITY, |count| count as f64);
        let rounds = finalists::LEAST_ROUNDS as f64;
        let fresh = rounds * (count.min(2.0) + BASELINE_WINDOWS as f64)
            + rounds / finalists::REFERENCE_EVERY as f64;
        let visits = (count / VISIT_EVERY as f64).ceil() * (BASELINE_PER_VISIT + 1) as f64;
        let looking = OPENING.iter().sum::<usize>() as f64
            + exhaustive::LEAST_ROUNDS as f64 * (count + visits);
        (looking + fresh).min(fresh / (1.0 - SEARCH_SHARE)).ceil() as u64
    }

    /// The strategy in use and why it was chosen.
    pub fn describe(&self) -> Vec<StrategyReason> {
        self.approach
            .as_ref()
            .map_or_else(|| vec![StrategyReason::NotChosen], |approach| approach.why.clone())
    }

    /// The outcome of `records`, which are all that was measured. `ended` says why there are no
    /// more, if this search did not end itself.
    pub fn outcome(&self, unit: &Unit, records: &[Record], ended: Option<StopReason>) -> Outcome {
        let outcome = Outcome::new(
            &self.question,
            self.space(),
            &self.workload,
            unit,
            records,
            self.describe(),
            self.reasons.iter().cloned().chain(ended).collect(),
        );
        outcome.with_forecast(&self.question, self.forecast()).cautious(records)
    }

    /// The predictions, if it searches by prediction.
    fn forecast(&self) -> Option<BlackboxForecast> {
        let at_work = self.approach.as_ref().and_then(|approach| approach.proposers.front());
        let now = at_work.and_then(|proposer| proposer.forecast(&self.question, &self.history));
        now.or_else(|| self.forecast.clone())
    }

    fn learn(&mut self, history: &[Record]) {
        for record in settled(&history[self.seen..]) {
            self.history.learn(record);
            self.fresh.learn(record);
        }
        self.fresh.weigh(&self.history.baseline);
        self.seen = history.len();
    }

    /// The next trial already decided on that still makes sense.
    fn pop(&mut self) -> Option<Trial> {
        while let Some(trial) = self.queue.pop_front() {
            if !self.is_pointless(&trial) {
                return Some(trial);
            }
        }
        None
    }

    /// Whether a trial decided on turned out to be impossible since.
    fn is_pointless(&self, trial: &Trial) -> bool {
        let failed = match &trial.setting {
            Setting::Unpinned => self.history.baseline_failed,
            Setting::Pinned(assignment) => self.history.failed(assignment),
            _ => false,
        };
        failed && trial.purpose != Purpose::Final
    }

    /// The cost of one trial, as a share of the budget.
    fn cost(&self, used: f64) -> f64 {
        used / self.seen.max(1) as f64
    }

    /// The share of the budget that searching may use. It is more than usual if the fresh windows
    /// need less than the rest.
    fn until(&self, used: f64) -> f64 {
        let reserve = Finalists::likely_trials(&self.question, &self.history) * self.cost(used);
        (1.0 - reserve).max(SEARCH_SHARE)
    }

    fn open(&mut self, used: f64) {
        if self.history.failed(&self.reference) {
            self.reference = self.space.sample(&mut self.random);
        }
        // Visits to baseline and reference take a share of the rest for searching.
        let cost = self.cost(used);
        let affordable = (SEARCH_SHARE - used) / cost / (1.0 + VISITS);
        self.approach = Some(Approach::choose(
            &self.question,
            &self.space,
            &self.workload,
            self.predicting.take(),
            affordable,
            cost,
            used,
        ));
        self.stage = SearchStage::Looking;
    }

    /// One visit to the baseline and the reference.
    fn visit(&self) -> impl Iterator<Item = Trial> {
        let baseline = trial(Setting::Unpinned, Purpose::Baseline);
        std::iter::repeat_n(baseline, BASELINE_PER_VISIT)
            .chain([pinned(&self.reference, Purpose::Reference)])
    }

    /// A round in random order, with its visits.
    fn mixed(&self, mut trials: Vec<Trial>, random: &mut Random) -> Vec<Trial> {
        let visits = trials.len().div_ceil(VISIT_EVERY);
        trials.extend((0..visits).flat_map(|_| self.visit()));
        random.shuffle(&mut trials);
        trials
    }

    /// Lets the proposers fill the queue; why they do not, once looking is over.
    fn look(&mut self, used: f64) -> Option<StopReason> {
        let (until, cost) = (self.until(used), self.cost(used));
        let approach = self.approach.as_mut()?;
        let proposer = approach.proposers.front_mut()?;
        let (history, random) = (&self.history, &mut self.random);
        let (question, space) = (&self.question, &approach.space);
        match proposer.next(&mut View { question, space, history, random, used, until, cost }) {
            Next::Sequence(trials) => {
                self.since_visit += trials.len();
                self.queue.extend(trials);
                if self.since_visit >= VISIT_EVERY {
                    self.since_visit = 0;
                    let visit: Vec<_> = self.visit().collect();
                    self.queue.extend(visit);
                }
                None
            }
            Next::Round(trials) => {
                let mut random = self.random.clone();
                self.queue.extend(self.mixed(trials, &mut random));
                self.random = random;
                None
            }
            Next::Profile(mut trials) => {
                self.random.shuffle(&mut trials);
                self.queue.extend(trials);
                None
            }
            Next::Reached(why) => Some(why),
            Next::Done(why) => {
                self.forecast = proposer.forecast(&self.question, &self.history);
                approach.proposers.pop_front();
                approach.proposers.is_empty().then_some(why)
            }
        }
    }

    fn select(&mut self, why: StopReason, used: f64) {
        self.reasons.push(why);
        self.queue.clear();
        self.stage = SearchStage::FreshWindows(Finalists::new(
            &self.question,
            &self.history,
            (1.0 - used) / self.cost(used),
        ));
    }

    /// The reason that the budget is used up, with the cause if much of it is left.
    fn all_used(&self, used: f64) -> StopReason {
        let left = 1.0 - used;
        let (another_seconds, left_seconds) = match self.question.budget {
            Budget::Time(whole) if left >= LEFT_NOTABLE => {
                let whole = whole.as_secs_f64();
                (Some(whole * self.cost(used)), Some(whole * left))
            }
            _ => (None, None),
        };
        StopReason::BudgetUsed { another_seconds, left_seconds }
    }

    fn stop(&mut self, why: StopReason) -> Step {
        self.reasons.push(why);
        self.stage = SearchStage::Stopped;
        Step::Stop
    }
}

/// The floor as the reason that no assignment is left. It ended every trial that failed for good.
fn below_floor(history: &[Record]) -> Option<StopReason> {
    let failed = settled(history).filter_map(|record| record.outcome.as_ref().err());
    let failed: Vec<&MeasureError> = failed.collect();
    let error = failed.last()?.message.clone();
    failed.iter().all(|error| error.below_floor).then_some(StopReason::BelowFloor { error })
}

impl Strategy for PlacementSearch {
    fn step(&mut self, history: &[Record]) -> Step {
        self.learn(history);
        let used = self.question.budget.used(history);
        loop {
            if matches!(self.stage, SearchStage::Looking)
                && used >= SEARCH_SHARE
                && used >= self.until(used)
            {
                let reason = StopReason::SearchShareUsed { share: used.min(1.0), rest: used < 1.0 };
                self.select(reason, used);
            }
            // One more trial has to fit; half a trial's grace absorbs rounding.
            if !matches!(self.stage, SearchStage::Stopped) && used + 0.5 * self.cost(used) >= 1.0 {
                return self.stop(self.all_used(used));
            }
            if let Some(trial) = self.pop() {
                return Step::Measure(trial);
            }
            match &mut self.stage {
                SearchStage::Opening if history.iter().all(|record| record.outcome.is_err()) => {
                    let last =
                        history.iter().rev().find_map(|record| record.outcome.as_ref().err());
                    let error = last.map_or_else(String::new, |error| error.message.clone());
                    return self.stop(StopReason::NothingMeasured { error });
                }
                SearchStage::Opening => self.open(used),
                SearchStage::Looking => {
                    if let Some(why) = self.look(used) {
                        self.select(why, used);
                    }
                }
                SearchStage::FreshWindows(finalists) => {
                    match finalists.next(
                        &self.question,
                        &self.fresh,
                        &self.reference,
                        &mut self.random,
                    ) {
                        Ok(round) => {
                            self.round = round.len();
                            self.queue.extend(round);
                        }
                        Err(StopReason::NoAssignment) => {
                            let why = below_floor(history).unwrap_or(StopReason::NoAssignment);
                            return self.stop(why);
                        }
                        Err(why) => return self.stop(why),
                    }
                }
                SearchStage::Stopped => return Step::Stop,
            }
        }
    }

    fn foresee(&self, most: usize) -> Vec<Trial> {
        let mut foreseen: Vec<Trial> =
            self.queue.iter().filter(|trial| !self.is_pointless(trial)).cloned().collect();
        if let (SearchStage::Looking, Some(approach)) = (&self.stage, &self.approach)
            && let Some(proposer) = approach.proposers.front()
        {
            foreseen.extend(proposer.foresee(
                &approach.space,
                &self.history,
                most.saturating_sub(foreseen.len()),
            ));
            let (mut random, mut ahead) = (self.random.clone(), 0);
            while foreseen.len() < most {
                let round = proposer.foresee_round(&approach.space, ahead, &mut random);
                if round.is_empty() {
                    break;
                }
                ahead += round.len() as u64;
                foreseen.extend(self.mixed(round, &mut random));
            }
        }
        foreseen.truncate(most);
        foreseen
    }

    fn rounds(&self, most: usize) -> Option<TrialRounds> {
        let SearchStage::FreshWindows(finalists) = &self.stage else { return None };
        let rest = self.queue.iter().filter(|trial| !self.is_pointless(trial)).cloned().collect();
        let next = (1..=most).map(|ahead| finalists.round(ahead, &self.reference)).collect();
        Some(TrialRounds { continued: self.queue.len() + 1 < self.round, rest, next })
    }
}
