//! BlackBox: profile, predict, measure what is most promising.
//!
//! 1. The profile, by [`Profiling`]: instances of the workload in chosen places.
//! 2. The assignments predicted best, out of all there are
//!    ([`pinwise_prediction::BlackBox::optima`]).
//! 3. The measurement of the best predicted (the *selection phase* of blackbox-scheduler.txt,
//!    section 3.1.3). The best N of them are measured, and others that need fewer assumptions. Of
//!    those predicted alike, the ones with the fewest co-runners come first
//!    ([`pinwise_prediction::BlackBox::selected`]). With N, [`FinalistRule::Top`] measures
//!    the best N only, as published. Without N, the first [`FIRST`] are measured.
//!    The scatter of measurements about predictions says which others may be as good
//!    ([`crate::blackbox_forecast::reach`]). Those are measured too, [`MOST`] at most.
//!
//! The search goes on with fresh windows for those that lead.

use crate::StrategyReason;
use crate::blackbox_forecast::{
    BlackboxForecast, PredictedAssignment, blackbox_per_context, reach,
};
use crate::search::SearchError;
use crate::search::history::History;
use crate::search::proposer::{Next, Proposer, View, pinned, trial};
use crate::statistics::t_quantile;
use crate::{BlackboxOptions, FinalistRule, PlacementQuestion};
use crate::{ProfilingEnd, StopReason};
use pinwise_campaign::Purpose;
use pinwise_measure::{Setting, Workload};
use pinwise_prediction::{
    BlackBox, CoreLocal, Predicted, Predictor, Profiling, ProofProgress, TableEntry, ThreadKinds,
};
use pinwise_topology::{DomainKind, SharingTree};

/// How many are measured before the scatter of predictions is known.
const FIRST: usize = 5;
/// How many are measured at most by default.
const MOST: usize = 32;
/// The most contexts of a core-local domain by default: a core of the UltraSPARC T2.
const USUAL: usize = 8;
/// Steps of the search for the best predicted, and what its proof looks at: seconds. Counted, so
/// that a campaign repeats.
const STEPS: u64 = 3_000_000;
const LOOKED: u64 = 300_000_000;
/// Share of what can be afforded that profiling may take.
const PROFILE_SHARE: f64 = 0.8;

/// The core-local domains of `tree` for `threads` threads.
///
/// # Errors
/// A level that the machine does not have, or whose domains are not alike.
pub fn core_local(
    tree: &SharingTree,
    threads: usize,
    profile: &BlackboxOptions,
    per_context: Option<usize>,
) -> Result<CoreLocal, pinwise_prediction::CoreLocalError> {
    let level: DomainKind =
        profile.core_local.unwrap_or_else(|| CoreLocal::usual_level(tree, USUAL));
    CoreLocal::new(tree, level, blackbox_per_context(tree, threads, per_context))
}

#[derive(Debug)]
enum PredictingStage {
    Profile,
    /// The number of ranked assignments that was asked for.
    Finalists(usize),
}

#[derive(Debug)]
pub(crate) struct Predicting {
    thread_kinds: ThreadKinds,
    local: CoreLocal,
    profiling: Profiling,
    /// Asked for and not learned yet.
    asked: Vec<(TableEntry, Setting)>,
    stage: PredictingStage,
    ranked: Vec<Predicted>,
    /// The highest prediction that any assignment can have, and whether the best found has it.
    proven: Option<(f64, bool)>,
    /// Predictors of the ends of intervals.
    ends: Option<[BlackBox; 2]>,
}

impl Predicting {
    /// With the whole profile that is asked for.
    pub(crate) fn new(
        question: &PlacementQuestion,
        tree: &SharingTree,
        workload: &Workload,
    ) -> Result<Self, SearchError> {
        let thread_kinds = ThreadKinds::new(workload);
        let local =
            core_local(tree, workload.threads.len(), &question.profile, question.per_context)
                .map_err(SearchError::Local)?;
        let share = question.profile.share;
        let profiling =
            Profiling::new(tree, thread_kinds.clone(), local.clone(), share, question.precision)
                .map_err(SearchError::Profiling)?;
        Ok(Self {
            thread_kinds,
            local,
            profiling,
            asked: Vec::new(),
            stage: PredictingStage::Profile,
            ranked: Vec::new(),
            proven: None,
            ends: None,
        })
    }

    /// `affordable` measurements can be made. If the profile takes more than its part, it is
    /// reduced.
    pub(crate) fn affording(self, affordable: f64) -> Self {
        let whole = self.profiling.whole_base_experiments() as f64;
        let sample = self.profiling.base_experiments() as f64 - whole;
        let entries = self.profiling.slowdown_entries().0 as f64;
        let room = PROFILE_SHARE * affordable - sample;
        let fits = if room > whole { room / (whole + entries) } else { 0.0 };
        Self { profiling: self.profiling.reduced(fits), ..self }
    }

    /// The fewest measurements that it takes: the profile, and the first of the assignments that it
    /// predicts.
    pub(crate) fn least(&self) -> u64 {
        let whole = self.profiling.whole_base_experiments() as f64;
        let (entries, _) = self.profiling.slowdown_entries();
        let most = Profiling::allowed(0.0, whole, entries).min(self.profiling.most());
        (self.profiling.base_experiments() + most + FIRST) as u64
    }

    /// How the profile is made.
    pub(crate) fn why(&self, question: &PlacementQuestion) -> StrategyReason {
        let (entries, _) = self.profiling.slowdown_entries();
        StrategyReason::BlackBoxAsked {
            base: self.profiling.base_experiments() as u64,
            level: self.local.level().name().to_owned(),
            because: question.profile.core_local_because.clone(),
            most: self.profiling.most() as u64,
            of: entries as u64,
            sampled: self.sampled(),
        }
    }

    /// How many assignments each instance alone has whose base time table is sampled.
    fn sampled(&self) -> Vec<String> {
        self.profiling.sampled().map(|base| base.count().to_string()).collect()
    }

    fn learn(&mut self, history: &History) {
        for (entry, setting) in self.asked.drain(..) {
            self.profiling.learn(&entry, history.profile(&setting));
        }
    }

    /// The next of the ranked that have not been asked for, up to `until`.
    fn finalists(&mut self, from: usize, until: usize) -> Next {
        let until = until.min(self.ranked.len());
        self.stage = PredictingStage::Finalists(until);
        Next::Round(
            self.ranked[from..until]
                .iter()
                .map(|ranked| pinned(&ranked.assignment, Purpose::Climb))
                .collect(),
        )
    }

    /// Predicted and measured.
    fn compared(&self, history: &History, count: usize) -> Vec<(f64, f64)> {
        let pair =
            |ranked: &Predicted| Some((ranked.performance, history.mean(&ranked.assignment)?));
        self.ranked[..count].iter().filter_map(pair).collect()
    }
}

impl Proposer for Predicting {
    fn next(&mut self, view: &mut View<'_>) -> Next {
        self.learn(view.history);
        let top = view.question.profile.top;
        match self.stage {
            PredictingStage::Profile => {
                let entries = self.profiling.next(view.space, view.random);
                let asked = |entry: TableEntry| {
                    let setting = self.profiling.experiment(&entry)?.setting(&self.thread_kinds);
                    Some((entry, setting))
                };
                self.asked = entries.into_iter().filter_map(asked).collect();
                if !self.asked.is_empty() {
                    return Next::Profile(
                        self.asked
                            .iter()
                            .map(|(_, setting)| trial(setting.clone(), Purpose::Profile))
                            .collect(),
                    );
                }
                let most = top.unwrap_or(MOST).max(MOST);
                let blackbox = self.profiling.blackbox();
                let mut optima = |blackbox: &BlackBox| {
                    let mut go_on = |progress: &ProofProgress| {
                        progress.steps < STEPS && progress.looked < LOOKED
                    };
                    let mut optima = blackbox.optima(view.space, most, view.random, &mut go_on);
                    optima.ranked.retain(|ranked| ranked.performance > 0.0);
                    optima
                };
                let all = optima(&blackbox);
                self.proven = Some((all.upper, all.is_exact()));
                let mut found = all.ranked;
                self.ranked = match view.question.profile.select {
                    FinalistRule::Varied => {
                        let spread = optima(&blackbox.spread()).ranked;
                        blackbox.selected(view.space, &found, &spread, top.unwrap_or(FIRST))
                    }
                    FinalistRule::Top => Vec::new(),
                };
                // The others after them, as predicted: how far down to go is decided later.
                found.retain(|ranked| !self.ranked.contains(ranked));
                self.ranked.extend(found);
                self.ends = Some(self.profiling.ends());
                if self.ranked.is_empty() {
                    return Next::Done(StopReason::NoProfile);
                }
                self.finalists(0, top.unwrap_or(FIRST))
            }
            PredictingStage::Finalists(count) => {
                if top.is_none() && count == FIRST {
                    let reach =
                        reach(&self.compared(view.history, count), view.question.confidence);
                    let others = self.ranked[count..].iter();
                    let likely = others
                        .filter(|ranked| reach.is_some_and(|reach| ranked.performance >= reach))
                        .count();
                    if likely > 0 {
                        return self.finalists(count, (count + likely).min(MOST));
                    }
                }
                Next::Done(StopReason::Predicted {
                    measured: count as u64,
                    by_error: top.is_none(),
                })
            }
        }
    }

    fn forecast(
        &self,
        question: &PlacementQuestion,
        history: &History,
    ) -> Option<BlackboxForecast> {
        let (slowdown, _) = self.profiling.slowdown_entries();
        let (count, unended) = match self.stage {
            PredictingStage::Profile => (0, ProfilingEnd::Unended),
            PredictingStage::Finalists(count) => (count, ProfilingEnd::AllMade),
        };
        let finalist = |ranked: &Predicted| {
            let leaves = ranked.assignment.leaves();
            let [low, high] = self.ends.as_ref()?.each_ref().map(|end| end.predict(leaves));
            let measured = history.mean(&ranked.assignment);
            Some(PredictedAssignment {
                assignment: ranked.assignment.clone(),
                predicted: ranked.performance,
                low,
                high,
                measured,
            })
        };
        // If nothing says how measurements scatter, the instances alone give no bound. Nor if they
        // may do better in an assignment that was not sampled.
        let sampled = self.sampled();
        let solo = Some(self.profiling.solo());
        let solo = solo.filter(|solo| solo.degrees > 0.0 && sampled.is_empty());
        let sum = solo.map_or(0.0, |solo| solo.sum);
        let stray =
            solo.map_or(0.0, |solo| solo.noise * t_quantile(question.confidence, solo.degrees));
        let (upper, exact) = self.proven.unzip();
        Some(BlackboxForecast {
            upper,
            exact: exact.unwrap_or_default(),
            base: self.profiling.base_measured(),
            sampled,
            slowdown,
            measured: self.profiling.slowdown_measured(),
            ended: self.profiling.ended().cloned().unwrap_or(unended),
            finalists: self.ranked[..count].iter().filter_map(finalist).collect(),
            solo: sum,
            solo_high: sum * (1.0 + stray),
            ..BlackboxForecast::new(
                &self.local,
                &question.profile.core_local_because,
                self.profiling.checked(),
            )
        })
    }
}
