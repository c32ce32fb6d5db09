//! Measuring where it pays: a predictor learned on the way chooses what to measure, and the bound comes from what it chose.
//!
//! 1. [`UNIFORM`] random assignments. From them [`Learned`] takes what each sharing of something is worth.
//! 2. *Steered* draws: with probability proportional to prediction^(1/T), a fixed number at each of [`TEMPERATURES`], the predictor
//!    learning anew before each. How many is decided before any of them is measured. The last complete block of them is the sample that
//!    the bound is computed from ([`Bound::from_draws`]).
//! 3. The assignments it predicts best ([`FAVOURITES`]), measured; then it learns anew and predicts others, as long as that finds
//!    something better.
//! 4. If the best is not within reach of the bound: as many steered draws again as there were (each further look at the bound
//!    is another chance of a lucky stop, and doubling keeps them few), and again the favourites.
//! 5. The rest of the search's budget goes into climbing from the best, which stops as soon as the best is within reach of the bound.
//!
//! Nothing rests on the predictor being right: the best is measured, and steered draws leave no assignment out. A
//! poor predictor steers badly; the sample is then further from its end and the bound wider.

use crate::Bound;
use crate::search::climb::Climb;
use crate::search::explorer::{Explorer, Next, View, pinned};
use crate::search::tally::Tally;
use pinwise_campaign::{Purpose, Trial};
use pinwise_prediction::{Cast, Colocation, Learned, draw};
use pinwise_testbed::Workload;
use pinwise_testbed::figures::percent;
use pinwise_topology::{Assignment, Space};
use std::collections::BTreeSet;

/// Random assignments to learn from first.
pub(crate) const UNIFORM: u64 = 100;
/// Temperatures of a block of steered draws, warm to cold, an equal share of the block each.
const TEMPERATURES: [f64; 4] = [0.01, 0.005, 0.003, 0.0015];
/// Draws at each temperature in the first block.
const DRAWS: usize = 50;
/// Draws of the first block.
pub(crate) const BLOCK: usize = DRAWS * TEMPERATURES.len();
/// Assignments predicted best that are measured at once.
const FAVOURITES: usize = 16;
/// Temperature at which favourites are looked for: predictions a tenth of a percent apart are told apart.
const COLD: f64 = 0.0002;
/// Steps of a draw per thread.
const STEPS: usize = 120;
/// Share of the budget left to the search, once the first block is over, from which no further block is begun: it is for climbing.
const CLIMB_SHARE: f64 = 0.3;

#[derive(Debug)]
enum Stage {
    Uniform,
    /// Which temperature of the block comes next.
    Steered(usize),
    /// The best there was before the last favourites.
    Favourites(Option<f64>),
    Climb,
}

#[derive(Debug)]
pub(crate) struct Guided {
    colocation: Colocation,
    climb: Climb,
    stage: Stage,
    /// Draws at each temperature of this block.
    draws: usize,
    /// The share of the budget that searching may use, and what was used when it began.
    until: f64,
    from: f64,
}

impl Guided {
    pub(crate) fn new(workload: &Workload, space: &Space, from: f64, until: f64) -> Self {
        Self {
            colocation: Colocation::new(&Cast::new(workload), space.tree()),
            climb: Climb::new(workload),
            stage: Stage::Uniform,
            draws: DRAWS,
            until,
            from,
        }
    }

    /// What was learned from everything measured so far.
    fn learn(&self, tally: &Tally) -> Option<Learned> {
        let ranking = tally.ranking();
        self.colocation.learn(ranking.iter().map(|(assignment, mean)| (assignment.leaves(), *mean)))
    }

    /// Assignments that are predicted best and were not measured yet, found by cold draws.
    fn favourites(&self, learned: &Learned, view: &mut View<'_>) -> Vec<Trial> {
        let mut found = BTreeSet::new();
        for _ in 0..FAVOURITES + FAVOURITES / 2 {
            let drawn = draw(learned, view.space, COLD, STEPS * view.space.threads(), view.random);
            if view.tally.class(&drawn).is_none() {
                found.insert(drawn);
            }
            if found.len() == FAVOURITES {
                break;
            }
        }
        found.iter().map(|favourite| pinned(favourite, Purpose::Climb)).collect()
    }

    /// Whether the best so far is within reach of the bound: the words that say so.
    fn reached(&self, view: &View<'_>) -> Option<String> {
        let best = view.tally.ranking().first().map(|(_, mean)| *mean);
        let bound = Bound::from_draws(view.question, view.tally, best, |value| value.to_string());
        let gap = bound.gap_high.filter(|gap| *gap <= view.question.within)?;
        let asked = percent(view.question.within);
        Some(format!("the best came within {} of the bound from {} draws ({asked} asked for)", percent(gap), bound.n))
    }

    /// Draws of the uniform law, for lack of anything learned.
    fn uniform(view: &mut View<'_>, count: u64) -> Vec<Trial> {
        (0..count).map(|_| pinned(&view.space.sample(view.random), Purpose::Sample)).collect()
    }
}

impl Explorer for Guided {
    fn next(&mut self, view: &mut View<'_>) -> Next {
        loop {
            match self.stage {
                Stage::Uniform => {
                    self.stage = Stage::Steered(0);
                    return Next::Round(Self::uniform(view, UNIFORM));
                }
                Stage::Steered(index) if index < TEMPERATURES.len() => {
                    let Some(learned) = self.learn(view.tally) else {
                        return Next::Done("too little could be measured to learn from".to_owned());
                    };
                    self.stage = Stage::Steered(index + 1);
                    let steps = STEPS * view.space.threads();
                    let mut one = || draw(&learned, view.space, TEMPERATURES[index], steps, view.random);
                    let drawn: Vec<Assignment> = (0..self.draws).map(|_| one()).collect();
                    return Next::Round(drawn.iter().map(|drawn| pinned(drawn, Purpose::Steered)).collect());
                }
                Stage::Steered(_) => self.stage = Stage::Favourites(None),
                Stage::Favourites(before) => {
                    let best = view.tally.ranking().first().map(|(_, mean)| *mean);
                    if before.is_some_and(|before| best.is_none_or(|best| best <= before)) {
                        if let Some(why) = self.reached(view) {
                            return Next::Reached(why);
                        }
                        // Another block doubles the draws there are: it costs what all blocks so far did.
                        let left = (self.until - view.used) / (self.until - self.from);
                        let block = (view.used - self.from) / (self.until - self.from);
                        self.stage = if left - block > CLIMB_SHARE {
                            if view.tally.steered_draws() > BLOCK {
                                self.draws *= 2;
                            }
                            Stage::Steered(0)
                        } else {
                            Stage::Climb
                        };
                        continue;
                    }
                    let favourites = self.learn(view.tally).map(|learned| self.favourites(&learned, view));
                    self.stage = Stage::Favourites(best);
                    if let Some(favourites) = favourites.filter(|favourites| !favourites.is_empty()) {
                        return Next::Round(favourites);
                    }
                }
                Stage::Climb => {
                    return match self.reached(view) {
                        Some(why) => Next::Reached(why),
                        None => self.climb.next(view),
                    };
                }
            }
        }
    }

    fn foresee(&self, space: &Space, tally: &Tally, most: usize) -> Vec<Trial> {
        match self.stage {
            Stage::Climb => self.climb.foresee(space, tally, most),
            _ => Vec::new(),
        }
    }
}
