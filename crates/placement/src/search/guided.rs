//! The guided search. A predictor that learns on the way chooses what to measure, and the bound
//! comes from its error.
//!
//! 1. [`UNIFORM`] random assignments. From them a [`Modeler`] learns how much each sharing costs or
//!    gains.
//! 2. *Warming up*: draws with probability proportional to prediction^(1/T), [`WARM_DRAWS`] at each
//!    of [`WARM`]. The predictor learns anew before each. It can only learn the top near the top.
//! 3. The assignments it predicts best ([`FAVOURITES`]) are measured. Then it learns anew and
//!    predicts others, as long as that finds something better.
//! 4. A *block* of steered draws, [`BLOCK`] in number, an equal share at each of [`STEERED`]. Their
//!    number is fixed before any of them is measured, and the predictor does not learn meanwhile.
//!    They show how wrong it is near the top, and the bound follows from that ([`ResidualBound`]).
//! 5. If the best is not within reach of the bound, it learns from the block. It then measures
//!    favourites again, and as many steered draws as there were. Every look at the bound is another
//!    chance of a lucky stop. The looks share one error budget ([`ResidualBound`]), and doubling
//!    limits them to two or three.
//! 6. The rest of the search's budget goes into climbing from the best.
//!
//! If instances can run alone, their performance alone bounds the whole from the beginning
//! ([`SoloBound`]). If the best comes near that bound, no block is needed.
//!
//! The announced best is always measured, never only predicted. The bound by prediction assumes
//! something of the predictor's error: for the best assignment it is not greater than near the top,
//! extrapolated. See [`ResidualBound`].

use crate::Bound;
use crate::StopReason;
use crate::search::VISITS;
use crate::search::climb::Climb;
use crate::search::history::History;
use crate::search::learned_predictor::{LearnedPredictor, Modeler};
use crate::search::proposer::{Next, Proposer, View, pinned};
use crate::search::residual_bound::ResidualBound;
use crate::search::solo_bound::{Alone, SoloBound};
use pinwise_campaign::{Purpose, Trial};
use pinwise_measure::Workload;
use pinwise_topology::{Assignment, Space};
use std::collections::BTreeSet;

/// Random assignments to learn from first.
pub(crate) const UNIFORM: u64 = 100;
/// Temperatures while warming up, an equal number of draws each.
const WARM: [f64; 3] = [0.01, 0.004, 0.0015];
/// Draws at each of them.
const WARM_DRAWS: usize = 30;
/// Temperatures of a block of steered draws, warm to cold, an equal share of the block each.
const STEERED: [f64; 3] = [0.003, 0.0015, 0.0008];
/// Draws of the first block.
const BLOCK: usize = 100;
/// From this relative noise of a window on, a block has [`NOISY_BLOCK`] windows, two of each
/// assignment. They show how much of their scatter is noise.
const NOISY: f64 = 0.004;
/// Windows of the first block then.
const NOISY_BLOCK: usize = 150;
/// Assignments predicted best that are measured at once.
const FAVOURITES: usize = 12;
/// The most draws until one is different from those of its block. Each is at twice the temperature
/// of the one before.
const TRIES: usize = 8;
/// Trials of all steps except climbing, with one block, if there is little noise. With more noise,
/// the budget may end within the block. The part of the block that was measured then counts. A
/// smaller budget is better spent on another strategy.
pub(crate) const LEAST: f64 =
    (UNIFORM as usize + WARM.len() * WARM_DRAWS + FAVOURITES + BLOCK) as f64;

#[derive(Debug)]
enum GuidedStage {
    Uniform,
    /// Which temperature comes next.
    Warm(usize),
    /// The best before the last favourites, and whether a block follows.
    Favourites(Option<f64>),
    /// A block was decided on.
    Block,
    Climb,
}

#[derive(Debug)]
pub(crate) struct Guided {
    modeler: Modeler,
    climb: Climb,
    /// The bound from instances alone, measured before.
    solo: Option<SoloBound>,
    stage: GuidedStage,
    /// The bound from the last block; `None` before the first.
    residual_bound: Option<ResidualBound>,
}

impl Guided {
    pub(crate) fn new(workload: &Workload, space: &Space, solo: Option<SoloBound>) -> Self {
        Self {
            modeler: Modeler::new(workload, space),
            climb: Climb::new(workload),
            solo,
            stage: GuidedStage::Uniform,
            residual_bound: None,
        }
    }

    /// The predictors learned from everything measured so far, the better one first.
    fn learn(&self, history: &History) -> Vec<LearnedPredictor> {
        let ranking = history.ranking();
        let means: Vec<(Assignment, f64)> =
            ranking.into_iter().map(|(assignment, mean)| (assignment.clone(), mean)).collect();
        self.modeler.learn(&means)
    }

    /// Assignments that are predicted best and were not measured yet.
    fn favourites(models: &[LearnedPredictor], view: &mut View<'_>) -> Vec<Trial> {
        let mut found = BTreeSet::new();
        // Every model has a turn; the better one begins.
        for turn in 0..FAVOURITES + FAVOURITES / 2 {
            let Some(model) = models.get(turn % models.len().max(1)) else { break };
            let drawn = model.favourite(view.space, view.random);
            if view.history.class(&drawn).is_none() {
                found.insert(drawn);
            }
            if found.len() == FAVOURITES {
                break;
            }
        }
        found.iter().map(|favourite| pinned(favourite, Purpose::Climb)).collect()
    }

    /// Draws steered by a model, at each of some temperatures.
    fn steered(
        model: &LearnedPredictor,
        temperatures: &[f64],
        each: usize,
        purpose: Purpose,
        view: &mut View<'_>,
    ) -> Vec<Trial> {
        let mut drawn: Vec<Assignment> = Vec::with_capacity(temperatures.len() * each);
        for temperature in temperatures {
            for _ in 0..each {
                // In a small space the same few assignments would recur. Repeating them shows
                // nothing new, so the temperature rises.
                let mut now = *temperature;
                let mut next = model.draw(view.space, now, view.random);
                for _ in 1..TRIES {
                    if !drawn.contains(&next) {
                        break;
                    }
                    now *= 2.0;
                    next = model.draw(view.space, now, view.random);
                }
                drawn.push(next);
            }
        }
        drawn.iter().map(|drawn| pinned(drawn, purpose)).collect()
    }

    /// The bound from instances alone, once it is known.
    fn alone(&self, view: &View<'_>) -> Option<Alone> {
        self.solo.as_ref()?.alone(view.history, view.question.confidence)
    }

    /// Whether the best so far is within reach of the bound.
    fn reached(&self, view: &View<'_>) -> Option<StopReason> {
        let confidence = view.question.confidence;
        let guesses = view.history.guesses(confidence).into_iter().map(|(_, guess)| guess);
        let best = guesses.max_by(|a, b| a.mean.total_cmp(&b.mean));
        let bound =
            Bound::while_searching(view.question, self.residual_bound, self.alone(view), best);
        let gap = bound.gap_high.filter(|gap| *gap <= view.question.within)?;
        Some(StopReason::NearBound { gap, within: view.question.within, method: bound.method })
    }

    /// Windows of the next block, and of each assignment in it. Each block has as many as all
    /// before it.
    fn block(history: &History) -> (usize, usize) {
        let noisy = history.noise().is_some_and(|noise| noise > NOISY);
        let (first, windows) = if noisy { (NOISY_BLOCK, 2) } else { (BLOCK, 1) };
        (first.max(history.steered_draws()), windows)
    }

    /// The next step when favourites find nothing better. The first block comes in any case, and
    /// another one if the budget has room. Otherwise it is climbing.
    fn after_favourites(&self, view: &View<'_>) -> GuidedStage {
        let cost = Self::block(view.history).0 as f64 * (1.0 + VISITS) * view.cost;
        if view.history.steered_draws() == 0 || view.used + cost <= view.until {
            GuidedStage::Block
        } else {
            GuidedStage::Climb
        }
    }
}

impl Proposer for Guided {
    fn next(&mut self, view: &mut View<'_>) -> Next {
        loop {
            match self.stage {
                GuidedStage::Uniform => {
                    self.stage = GuidedStage::Warm(0);
                    let draws = (0..UNIFORM)
                        .map(|_| pinned(&view.space.sample(view.random), Purpose::Sample));
                    return Next::Round(draws.collect());
                }
                GuidedStage::Warm(index) if index < WARM.len() => {
                    let Some(model) = self.learn(view.history).into_iter().next() else {
                        return Next::Done(StopReason::NoPredictor);
                    };
                    self.stage = GuidedStage::Warm(index + 1);
                    let round = Self::steered(
                        &model,
                        &WARM[index..=index],
                        WARM_DRAWS,
                        Purpose::Climb,
                        view,
                    );
                    return Next::Round(round);
                }
                GuidedStage::Warm(_) => self.stage = GuidedStage::Favourites(None),
                GuidedStage::Favourites(before) => {
                    let best = view.history.ranking().first().map(|(_, mean)| *mean);
                    if before.is_some_and(|before| best.is_none_or(|best| best <= before)) {
                        if let Some(why) = self.reached(view) {
                            return Next::Reached(why);
                        }
                        self.stage = self.after_favourites(view);
                        if let (GuidedStage::Block, Some(model)) =
                            (&self.stage, self.learn(view.history).into_iter().next())
                        {
                            let (draws, windows) = Self::block(view.history);
                            let each = draws.div_ceil(STEERED.len() * windows);
                            let round =
                                Self::steered(&model, &STEERED, each, Purpose::Steered, view);
                            return Next::Round(
                                std::iter::repeat_n(round, windows).flatten().collect(),
                            );
                        }
                        self.stage = GuidedStage::Climb;
                        continue;
                    }
                    let favourites = Self::favourites(&self.learn(view.history), view);
                    self.stage = GuidedStage::Favourites(best);
                    if !favourites.is_empty() {
                        return Next::Round(favourites);
                    }
                }
                GuidedStage::Block => {
                    let confidence = Alone::beside(self.alone(view), view.question.confidence);
                    self.residual_bound = ResidualBound::of(
                        view.history,
                        &self.modeler,
                        view.space,
                        confidence,
                        view.question.seed,
                    );
                    if let Some(why) = self.reached(view) {
                        return Next::Reached(why);
                    }
                    self.stage = GuidedStage::Favourites(None);
                }
                GuidedStage::Climb => {
                    return match self.reached(view) {
                        Some(why) => Next::Reached(why),
                        None => self.climb.next(view),
                    };
                }
            }
        }
    }

    fn foresee(&self, space: &Space, history: &History, most: usize) -> Vec<Trial> {
        match self.stage {
            GuidedStage::Climb => self.climb.foresee(space, history, most),
            _ => Vec::new(),
        }
    }
}
