//! The guided search. A predictor that learns on the way chooses what to measure, and the bound
//! comes from its error.
//!
//! 1. Assignments that you might pick by hand ([`structured`]), and [`FIRST`] random ones. From
//!    them a [`Modeler`] learns how much each sharing costs or gains.
//! 2. *Lessons* of [`LESSON`] trials. Each is the favourite of a predictor that the measurements
//!    also allow, drawn by how likely it is (Thompson sampling). So it is good, or too little is
//!    known of it. The predictor learns again before each lesson. It can only learn the top near
//!    the top.
//! 3. The rest of the random sample, if it is to be large enough for a bound.
//! 4. The assignments it predicts best ([`FAVOURITES`]) are measured. Then it learns again and
//!    predicts others, as long as that finds something better.
//! 5. A *block* of steered draws, [`BLOCK`] in number, an equal share at each of [`STEERED`]. Their
//!    number is fixed before any of them is measured, and the predictor does not learn meanwhile.
//!    They show how wrong it is near the top, and the bound follows from that ([`ResidualBound`]).
//! 6. If the best is not within reach of the bound, it learns from the block. It then measures
//!    favourites again, and as many steered draws as there were. Every look at the bound is another
//!    chance of a lucky stop. The looks share one error budget ([`ResidualBound`]), and doubling
//!    limits them to two or three.
//! 7. The rest of the search's budget goes into climbing from the best.
//!
//! Each step has a share of the trials that the budget affords. If they are too few for a block
//! ([`WORTH_A_BLOCK`]), lessons go on to the end.
//!
//! If instances can run alone, they are measured after the lessons, and before them if no block
//! follows. What they do bounds the whole ([`SoloBound`]). If the best comes near that bound, no
//! block is needed.
//!
//! **Where the numbers come from.** Two are limits of others. A predictor learns from 20
//! measurements on. A block supports a bound from [`LEAST_BLOCK`] assignments on. [`LEAST`],
//! [`LEAST_SAMPLE`] and [`WORTH_A_BLOCK`] follow from such limits. The other shares and counts were
//! chosen by hand, on the workloads *screen* of the lab's anytime study. That study's *held-out*
//! workloads had no part in it. An earlier search, which needed 600 measurements, gave the
//! temperatures, [`NOISY`], and the upper limits of steps 3 to 5.
//!
//! The announced best is always measured, never only predicted. The bound by prediction
//! extrapolates the predictor's error from near the top. It assumes that the error for the best
//! assignment is no greater. See [`ResidualBound`].

use crate::Bound;
use crate::StopReason;
use crate::search::VISITS;
use crate::search::climb::Climb;
use crate::search::history::History;
use crate::search::learned_predictor::{LearnedPredictor, Modeler};
use crate::search::proposer::{Next, Proposer, View, pinned};
use crate::search::residual_bound::{LEAST as LEAST_BLOCK, ResidualBound};
use crate::search::solo_bound::{Alone, SoloBound};
use crate::search::structured::structured;
use pinwise_campaign::{Purpose, Trial};
use pinwise_measure::Workload;
use pinwise_topology::{Assignment, Space};
use std::collections::BTreeSet;

/// Random assignments to learn from first, with those that are [`structured`].
pub(crate) const FIRST: usize = 12;
/// Random assignments in all, as a share of the trials that the budget affords, and at most.
const UNIFORM_SHARE: f64 = 0.25;
const UNIFORM: usize = 100;
/// Fewer random assignments than this support no bound: the estimate from a tail refuses them.
const LEAST_SAMPLE: usize = 40;
/// Trials chosen at once while the predictor learns.
const LESSON: usize = 8;
/// Trials so chosen, as a share, and at most.
const LESSONS_SHARE: f64 = 0.25;
const MOST_LESSONS: usize = 90;
/// Every fourth of these comes from the other predictor.
const OTHER: usize = 4;
/// Temperature of draws where all that is plausible was measured. It doubles from one to the next.
const COOL: f64 = 0.001;
/// Trials that are worth a block. With fewer, the search goes on learning. The 88 were picked by
/// hand: [`FIRST`], a quarter for lessons, 6 favourites, and the least block of 36.
const WORTH_A_BLOCK: f64 = 88.0;
/// Temperatures of a block of steered draws, warm to cold, an equal share of the block each.
const STEERED: [f64; 3] = [0.003, 0.0015, 0.0008];
/// Draws of the first block at most, and as a share of the trials that the budget affords. It has
/// at least as many as support a bound.
const BLOCK: usize = 100;
const BLOCK_SHARE: f64 = 0.3;
/// How many times as many as support a bound it has at least: some draws come twice.
const SPARE: f64 = 1.2;
/// From this relative noise of a window on, a block has more windows, two of each assignment or
/// more. They show how much of their scatter is noise, and their mean has less of it. The doubt
/// about the error falls more with the noise of a mean than it grows with fewer assignments.
const NOISY: f64 = 0.004;
/// How many times as many windows the first block has then.
const NOISY_WINDOWS: f64 = 1.5;
/// Assignments predicted best that are measured at once, at most and at least, and as a share.
const FAVOURITES: [usize; 2] = [4, 12];
const FAVOURITES_SHARE: f64 = 0.07;
/// The most draws until one is different from those of its block. Each is at twice the temperature
/// of the one before.
const TRIES: usize = 8;
/// A smaller number of trials is better spent on another strategy. A third of it is picked by hand.
/// With [`FIRST`] these are the 20 that a predictor learns from, and half a lesson remains.
pub(crate) const LEAST: f64 = 24.0;
/// Threads that a predictor is learned for, in all and on each context. The steps of its walks grow
/// with the number of threads. Beside more on each context, a search must not compute for long.
/// Both were picked by hand.
pub(crate) const MOST_THREADS: usize = 512;
pub(crate) const MOST_PER_CONTEXT: usize = 16;

#[derive(Debug)]
enum GuidedStage {
    First,
    /// How many trials were chosen so far.
    Lessons(usize),
    /// What instances do alone.
    Alone,
    /// The rest of the random sample.
    Uniform,
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
    structured: Vec<Assignment>,
    /// Trials that the budget affords.
    affordable: f64,
    /// The bound from instances alone, measured before.
    solo: Option<SoloBound>,
    stage: GuidedStage,
    /// The bound from the last block; `None` before the first.
    residual_bound: Option<ResidualBound>,
    /// What was learned last, the better predictor first.
    models: Vec<LearnedPredictor>,
    /// How many windows the models before the last block were learned from.
    learned_from: usize,
}

impl Guided {
    pub(crate) fn new(
        workload: &Workload,
        space: &Space,
        solo: Option<SoloBound>,
        affordable: f64,
    ) -> Self {
        Self {
            modeler: Modeler::new(workload, space),
            climb: Climb::new(workload),
            structured: structured(workload, space),
            affordable,
            solo,
            stage: GuidedStage::First,
            residual_bound: None,
            models: Vec::new(),
            learned_from: 0,
        }
    }

    /// Learns anew from all windows, as an outcome does from those before a block.
    fn learn_anew(&mut self, history: &History) {
        let windows = history.windows();
        self.models = self.modeler.learn(&windows, &[]);
        self.learned_from = windows.len();
    }

    /// Learns from everything measured so far.
    fn learn(&mut self, history: &History) {
        let ranking = history.ranking();
        let means: Vec<(Assignment, f64)> =
            ranking.into_iter().map(|(assignment, mean)| (assignment.clone(), mean)).collect();
        self.models = self.modeler.learn(&means, &self.models);
    }

    /// Random assignments in all.
    fn uniform(&self) -> usize {
        let wanted = ((UNIFORM_SHARE * self.affordable) as usize).min(UNIFORM);
        // Fewer support no bound.
        if wanted < LEAST_SAMPLE { FIRST } else { wanted }
    }

    fn has_block(&self, history: &History) -> bool {
        let times = if is_noisy(history) { NOISY_WINDOWS } else { 1.0 };
        self.affordable >= WORTH_A_BLOCK * times
    }

    /// Trials that are chosen while the predictor learns.
    fn lessons(&self, history: &History) -> usize {
        match self.has_block(history) {
            true => ((LESSONS_SHARE * self.affordable) as usize).min(MOST_LESSONS),
            false => usize::MAX,
        }
    }

    /// What plausible predictors predict best and was not measured yet.
    fn lesson(models: &[LearnedPredictor], view: &mut View<'_>) -> Vec<Trial> {
        let mut found: BTreeSet<Assignment> = BTreeSet::new();
        for turn in 0..2 * LESSON {
            let other = usize::from(turn % OTHER == OTHER - 1) % models.len().max(1);
            let Some(model) = models.get(other) else { break };
            let drawn = if turn < LESSON {
                model.plausible(view.random).good(view.space, view.random)
            } else {
                // All that is plausible is known: what is near it.
                let temperature = COOL * f64::from(1 << (turn - LESSON).min(8));
                model.draw(view.space, temperature, view.random)
            };
            if view.history.class(&drawn).is_none() {
                found.insert(drawn);
            }
            if found.len() == LESSON {
                break;
            }
        }
        let mut lesson: Vec<Trial> =
            found.iter().map(|found| pinned(found, Purpose::Climb)).collect();
        view.random.shuffle(&mut lesson);
        lesson
    }

    /// Assignments that are predicted best and were not measured yet.
    fn favourites(&self, view: &mut View<'_>) -> Vec<Trial> {
        let models = &self.models;
        let [least, most] = FAVOURITES;
        let wanted = ((FAVOURITES_SHARE * self.affordable) as usize).clamp(least, most);
        let mut found = BTreeSet::new();
        // Every model has a turn; the better one begins.
        for turn in 0..wanted + wanted / 2 {
            let Some(model) = models.get(turn % models.len().max(1)) else { break };
            let drawn = if turn < models.len() {
                self.modeler.highest(model, view.space, view.random)
            } else {
                model.favourite(view.space, view.random)
            };
            if view.history.class(&drawn).is_none() {
                found.insert(drawn);
            }
            if found.len() == wanted {
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

    /// The next trials of instances alone; `None` if all are made.
    fn measure_alone(&mut self, view: &mut View<'_>) -> Option<Next> {
        let next = self.solo.as_mut()?.next(view);
        (!matches!(next, Next::Done(_))).then_some(next)
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
    fn block(&self, history: &History) -> (usize, usize) {
        let least = SPARE * LEAST_BLOCK as f64;
        let first = (BLOCK_SHARE * self.affordable).clamp(least, BLOCK as f64);
        let (first, windows) = match history.noise().filter(|noise| *noise > NOISY) {
            Some(noise) => {
                let first = (NOISY_WINDOWS * first).max(2.0 * least);
                // The noise of their mean is then that of one window elsewhere.
                let wanted = (noise / NOISY).powi(2).ceil();
                (first, wanted.clamp(2.0, (first / least).floor()) as usize)
            }
            None => (first, 1),
        };
        ((first as usize).max(history.steered_draws()), windows)
    }

    /// The next step when favourites find nothing better. The first block comes in any case, and
    /// another one if the budget has room. Otherwise it is climbing.
    fn after_favourites(&self, view: &View<'_>) -> GuidedStage {
        let cost = self.block(view.history).0 as f64 * (1.0 + VISITS) * view.cost;
        if view.history.steered_draws() == 0 || view.used + cost <= view.until {
            GuidedStage::Block
        } else {
            GuidedStage::Climb
        }
    }
}

fn is_noisy(history: &History) -> bool {
    history.noise().is_some_and(|noise| noise > NOISY)
}

/// Random draws.
fn sample(count: usize, view: &mut View<'_>) -> Vec<Trial> {
    (0..count).map(|_| pinned(&view.space.sample(view.random), Purpose::Sample)).collect()
}

impl Proposer for Guided {
    fn next(&mut self, view: &mut View<'_>) -> Next {
        loop {
            match self.stage {
                GuidedStage::First => {
                    self.stage = GuidedStage::Lessons(0);
                    let structured = self.structured.iter().take(self.affordable as usize / 3);
                    let mut first: Vec<Trial> =
                        structured.map(|class| pinned(class, Purpose::Climb)).collect();
                    first.extend(sample(FIRST, view));
                    return Next::Round(first);
                }
                GuidedStage::Lessons(count) if count < self.lessons(view.history) => {
                    // Nothing follows these lessons.
                    if !self.has_block(view.history)
                        && let Some(next) = self.measure_alone(view)
                    {
                        return next;
                    }
                    self.learn(view.history);
                    let lesson = Self::lesson(&self.models, view);
                    self.stage = GuidedStage::Lessons(count.saturating_add(LESSON));
                    // A round would have a visit to the baseline and the reference each.
                    if !lesson.is_empty() {
                        return Next::Sequence(lesson);
                    }
                    if self.models.is_empty() {
                        self.stage = GuidedStage::Alone;
                    } else if !self.has_block(view.history) {
                        self.stage = GuidedStage::Climb;
                    }
                }
                GuidedStage::Lessons(_) => self.stage = GuidedStage::Alone,
                GuidedStage::Alone => match self.measure_alone(view) {
                    Some(next) => return next,
                    None => self.stage = GuidedStage::Uniform,
                },
                GuidedStage::Uniform => {
                    self.stage = GuidedStage::Favourites(None);
                    let rest = self.uniform().saturating_sub(view.history.sampled() as usize);
                    if rest > 0 {
                        return Next::Round(sample(rest, view));
                    }
                }
                GuidedStage::Favourites(before) => {
                    // Without it nothing can be learned, and no favourite would ever follow.
                    let Some(best) = view.history.ranking().first().map(|(_, mean)| *mean) else {
                        return Next::Done(StopReason::NoPredictor);
                    };
                    if before.is_some_and(|before| best <= before) {
                        if let Some(why) = self.reached(view) {
                            return Next::Reached(why);
                        }
                        self.stage = self.after_favourites(view);
                        if matches!(self.stage, GuidedStage::Block) {
                            self.learn_anew(view.history);
                        }
                        if let (GuidedStage::Block, Some(model)) =
                            (&self.stage, self.models.first())
                        {
                            let (draws, windows) = self.block(view.history);
                            let each = draws.div_ceil(STEERED.len() * windows);
                            let round =
                                Self::steered(model, &STEERED, each, Purpose::Steered, view);
                            return Next::Round(
                                std::iter::repeat_n(round, windows).flatten().collect(),
                            );
                        }
                        self.stage = GuidedStage::Climb;
                        continue;
                    }
                    self.learn(view.history);
                    let favourites = self.favourites(view);
                    self.stage = GuidedStage::Favourites(Some(best));
                    if !favourites.is_empty() {
                        return Next::Round(favourites);
                    }
                }
                GuidedStage::Block => {
                    let confidence = Alone::beside(self.alone(view), view.question.confidence);
                    self.residual_bound = ResidualBound::of(
                        view.history,
                        &self.modeler,
                        self.models.first().map(|model| (model, self.learned_from)),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::proposer::trial;
    use pinwise_campaign::Record;
    use pinwise_measure::{Measurement, Setting};
    use pinwise_topology::{Alike, Machine, PerContext, SharingTree};
    use std::time::Duration;

    #[test]
    fn the_noisier_windows_are_the_more_of_them_an_assignment_of_a_block_has() {
        let workload = Workload::new("pipelines", &[&["R", "P", "T"][..]; 8]);
        let tree = SharingTree::new(&Machine::from_shape("8x2x4").unwrap(), Alike::ByStructure);
        let space = Space::new(tree, 24, PerContext::AtMost(1)).unwrap();
        let block = |affordable: f64, noise: f64| {
            let mut history = History::default();
            for sign in [1.0, -1.0, 1.0, -1.0, 1.0, -1.0] {
                let setting = Setting::Pinned(space.sample(&mut pinwise_topology::Random::new(1)));
                let measured = Measurement::new(1.0 + sign * noise, Duration::ZERO);
                history.learn(&Record {
                    number: 0,
                    trial: trial(setting, Purpose::Reference),
                    outcome: Ok(measured),
                    elapsed: Duration::ZERO,
                });
            }
            Guided::new(&workload, &space, None, affordable).block(&history)
        };
        assert_eq!(
            [0.001, 0.005, 0.01].map(|noise| block(430.0, noise)),
            [(100, 1), (150, 2), (150, 4)]
        );
        // A small block has no more windows than leave enough assignments for a bound.
        assert_eq!(block(132.0, 0.01), (72, 2));
    }
}
