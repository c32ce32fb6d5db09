//! The predictors that the guided search learns from its measurements.
//!
//! Two predictors are fitted to the same measurements. One assumes that an instance is as fast as
//! its slowest thread ([`PipelinePredictor`]). The other only counts which threads share what
//! ([`Colocation`]). The one with the smaller error steers. Both name favourites, since they are
//! wrong in different places.

use pinwise_measure::Workload;
use pinwise_prediction::{
    Colocation, FittedPipeline, Learned, PipelinePredictor, PredictedWalk, Predictor, ThreadKinds,
    draw, draw_until_still, highest,
};
use pinwise_topology::{Assignment, PerContext, Random, Space};
use std::collections::BTreeMap;

/// Temperature at which the assignments predicted best are looked for: predictions a hundredth of a
/// percent apart still differ.
const COLD: f64 = 0.0001;
/// Steps of a draw per thread.
const STEPS: usize = 120;
/// The factor on the steps of cold draws, which should end at the top.
const LONGER: usize = 8;
/// The same for what is only plausible.
const SHORTER: usize = 2;
/// Cold draws that the highest prediction is taken from.
const PEAKS: usize = 8;
/// Where threads share contexts: the factor on the steps of a draw, and steps per thread of a
/// search for the highest prediction. On the lab's formula, searches of 6,500 steps per thread
/// found the best in 81 of 100 cases. On the hardest of nine workloads they did so in 2 of 10.
const LONGER_SHARED: usize = 12;
const STEPS_SHARED: usize = 10_000;

/// The predictors that can be learned for a workload.
#[derive(Clone, Debug)]
pub(crate) struct Modeler {
    pipeline: Option<PipelinePredictor>,
    colocation: Colocation,
    /// The threads of each instance.
    instances: Vec<Vec<usize>>,
}

/// A predictor that was learned.
#[derive(Clone, Debug)]
pub(crate) enum LearnedPredictor {
    Pipeline(FittedPipeline),
    Counts(Learned),
}

impl Modeler {
    pub(crate) fn new(workload: &Workload, space: &Space) -> Self {
        let thread_kinds = ThreadKinds::new(workload);
        Self {
            pipeline: PipelinePredictor::new(&thread_kinds, space.tree()),
            colocation: Colocation::new(&thread_kinds, space.tree()),
            instances: thread_kinds.instances().iter().map(|own| own.threads.clone()).collect(),
        }
    }

    /// Learns from windows in any order, averaged by assignment. The better model comes first, then
    /// the other. None from too few windows. What was learned `earlier` from a part of them saves
    /// time.
    pub(crate) fn learn(
        &self,
        windows: &[(Assignment, f64)],
        earlier: &[LearnedPredictor],
    ) -> Vec<LearnedPredictor> {
        let mut classes: BTreeMap<&Assignment, (f64, f64)> = BTreeMap::new();
        for (assignment, value) in windows {
            let (sum, count) = classes.entry(assignment).or_default();
            *sum += value;
            *count += 1.0;
        }
        let rows =
            || classes.iter().map(|(assignment, (sum, count))| (assignment.leaves(), sum / count));
        let earlier = earlier.iter().find_map(|model| match model {
            LearnedPredictor::Pipeline(fitted) => Some(fitted),
            LearnedPredictor::Counts(_) => None,
        });
        let fitted = self.pipeline.as_ref().and_then(|pipeline| pipeline.learn(rows(), earlier));
        let counts = self.colocation.learn(rows());
        let mut models: Vec<(f64, LearnedPredictor)> = Vec::new();
        models.extend(fitted.map(|fitted| (fitted.error(), LearnedPredictor::Pipeline(fitted))));
        models.extend(counts.map(|counts| (counts.error(), LearnedPredictor::Counts(counts))));
        models.sort_by(|a, b| a.0.total_cmp(&b.0));
        models.into_iter().map(|(_, model)| model).collect()
    }

    /// The assignment that a model predicts best, by the longest search there is.
    pub(crate) fn highest(
        &self,
        model: &LearnedPredictor,
        space: &Space,
        random: &mut Random,
    ) -> Assignment {
        if shares_contexts(space) {
            highest(model, space, &self.instances, STEPS_SHARED * space.threads(), random)
        } else {
            draw(model, space, COLD, LONGER * STEPS * space.threads(), random)
        }
    }

    /// The highest possible prediction, by several long searches. They may all miss it. So if their
    /// ends differ, the distance of the best from the median is added.
    pub(crate) fn peak(&self, model: &LearnedPredictor, space: &Space, random: &mut Random) -> f64 {
        let mut ends: Vec<f64> = (0..PEAKS)
            .map(|_| model.predict(self.highest(model, space, random).leaves()))
            .collect();
        ends.sort_by(f64::total_cmp);
        let best = ends[PEAKS - 1];
        best + (best - ends[PEAKS / 2])
    }
}

impl LearnedPredictor {
    /// Draws with probability proportional to prediction^(1/`temperature`).
    pub(crate) fn draw(&self, space: &Space, temperature: f64, random: &mut Random) -> Assignment {
        let times = if shares_contexts(space) { LONGER_SHARED } else { 1 };
        draw(self, space, temperature, times * STEPS * space.threads(), random)
    }

    /// A predictor that the measurements also allow, drawn by how likely it is; itself if it knows
    /// none.
    pub(crate) fn plausible(&self, random: &mut Random) -> Self {
        match self {
            Self::Pipeline(fitted) => Self::Pipeline(fitted.plausible(random)),
            Self::Counts(learned) => Self::Counts(learned.clone()),
        }
    }

    /// An assignment predicted well, by a shorter search than [`LearnedPredictor::favourite`].
    pub(crate) fn good(&self, space: &Space, random: &mut Random) -> Assignment {
        let times = if shares_contexts(space) { SHORTER * SHORTER } else { SHORTER };
        self.climbed(space, times, random)
    }

    /// An assignment among those predicted best.
    pub(crate) fn favourite(&self, space: &Space, random: &mut Random) -> Assignment {
        let times = if shares_contexts(space) { LONGER_SHARED } else { LONGER };
        self.climbed(space, times, random)
    }

    /// The end of a cold walk. It has at most `times` the usual steps. Unless threads share
    /// contexts, it ends once it stands still for half as many steps as it has neighbours.
    fn climbed(&self, space: &Space, times: usize, random: &mut Random) -> Assignment {
        let steps = times * STEPS * space.threads();
        let neighbours = space.threads() * space.tree().leaves().len();
        let patience = if shares_contexts(space) { steps } else { neighbours / 2 };
        draw_until_still(self, space, COLD, (steps, patience), random)
    }
}

/// Whether threads may share contexts. Then single walks that cool down end far apart.
fn shares_contexts(space: &Space) -> bool {
    space.per_context() != PerContext::AtMost(1)
}

impl Predictor for LearnedPredictor {
    fn predict(&self, leaves: &[u32]) -> f64 {
        match self {
            Self::Pipeline(fitted) => fitted.predict(leaves),
            Self::Counts(learned) => learned.predict(leaves),
        }
    }

    fn walk<'a>(&'a self, leaves: &[u32]) -> Box<dyn PredictedWalk + 'a> {
        match self {
            Self::Pipeline(fitted) => fitted.walk(leaves),
            Self::Counts(learned) => learned.walk(leaves),
        }
    }
}
