//! A predictor learned from measurements alone that knows what an instance is: as fast as its
//! slowest thread.
//!
//! **Model.** The other threads on its domains slow a thread of kind k down by
//!
//! log slow = b(k) + sum over levels l of f(l, z) + sum over levels and partners that share the
//! domain of p(l, k, k'), z = sum of w(l, k, k') over the others in its domain of level l + sum of
//! q(l, k, {k', k''}) over each two of them, f(l, z) = z + c(l) z²,
//!
//! Threads on one context take turns. There f(l, z) = log(1 + z), and w is the share of its turns
//! that another thread uses: 1 if it never waits.
//!
//! An instance does 1 / (sum over its threads of slow^β)^(1/β), and the program the sum over its
//! instances. The exponent β says how much the slowest thread alone decides. It is large for a
//! pipeline and small for independent threads. Where contexts are not all alike, b depends on the
//! sort of context too. The *pairs* q stand for co-runners that are worse (or better) together than
//! apart.
//!
//! **Fit.** See [`fit`]: regularized least squares, first without pairs, then with them. Pairs stay
//! only if they predict left-out measurements clearly better.
//!
//! **Limits.** Those of [`crate::Colocation`]: it chooses what to measure and is never itself the
//! claim.

mod compact;
mod fit;
mod formula;

use crate::learned::levels::Levels;
use crate::{PredictedWalk, Predictor, ThreadKinds};
use compact::Compact;
use pinwise_topology::{Random, SharingTree};

/// What β is before anything is known.
const SHARPNESS: f64 = 12.0;
/// More parameters than this are not fitted: a few hundred measurements could not separate them,
/// and it would take seconds.
const MOST_PARAMETERS: usize = 250;

/// Which parameters there are, and where in the vector of all they are.
#[derive(Clone, Debug)]
pub struct PipelinePredictor {
    thread_kinds: ThreadKinds,
    levels: Levels,
    /// By level, whether threads take turns there.
    takes_turns: Vec<bool>,
    kinds: usize,
    /// Kinds of the threads by instance, flat, with the threads.
    instances: Vec<Vec<(usize, usize)>>,
    bases: usize,
    /// Where the pairs begin; none where there would be too many parameters.
    pairs: usize,
    parameters: usize,
}

/// A [`PipelinePredictor`] with its parameters.
#[derive(Clone, Debug)]
pub struct FittedPipeline {
    compact: Compact,
    /// See [`FittedPipeline::error`].
    error: f64,
    minima: fit::Minima,
    /// `None` if its parameters were given.
    posterior: Option<Box<fit::LaplacePosterior>>,
}

/// How many pairs of each two kinds are among the others of a thread of kind `own`. `held` counts
/// all threads, this one included. Order: kind 0 with 0, 1 with 0, 1 with 1, ….
fn pairs(held: &[f64], own: usize) -> impl Iterator<Item = f64> + '_ {
    let others = move |kind: usize| held[kind] - f64::from(u8::from(kind == own));
    let alike = move |kind: usize| others(kind) * (others(kind) - 1.0) / 2.0;
    (0..held.len()).flat_map(move |a| {
        (0..=a).map(move |b| if a == b { alike(a) } else { others(a) * others(b) })
    })
}

impl PipelinePredictor {
    /// The model for the workload of `thread_kinds` on `tree`; `None` if it has too many
    /// parameters to be fitted.
    pub fn new(thread_kinds: &ThreadKinds, tree: &SharingTree) -> Option<Self> {
        Self::over(thread_kinds, Levels::new(tree))
    }

    fn over(thread_kinds: &ThreadKinds, levels: Levels) -> Option<Self> {
        let kinds = thread_kinds.kinds().len();
        let bases = kinds * levels.sort_count.max(1);
        let plain = bases + levels.domains.len() * (2 * kinds * kinds + 1);
        let every_pair = plain + levels.domains.len() * kinds * (kinds * (kinds + 1) / 2);
        let parameters = 1 + if every_pair < MOST_PARAMETERS { every_pair } else { plain };
        let instances = thread_kinds
            .instances()
            .iter()
            .map(|instance| {
                instance
                    .threads
                    .iter()
                    .map(|thread| (*thread, thread_kinds.kind(*thread)))
                    .collect()
            })
            .collect();
        let takes_turns =
            (0..levels.domains.len()).map(|level| levels.are_contexts(level)).collect();
        (parameters <= MOST_PARAMETERS).then(|| Self {
            thread_kinds: thread_kinds.clone(),
            levels,
            takes_turns,
            kinds,
            instances,
            bases,
            pairs: plain,
            parameters,
        })
    }

    fn weight(&self, level: usize, kind: usize, other: usize) -> usize {
        self.bases + level * (2 * self.kinds * self.kinds + 1) + kind * self.kinds + other
    }

    fn partner(&self, level: usize, kind: usize, other: usize) -> usize {
        self.weight(level, kind, other) + self.kinds * self.kinds
    }

    fn curvature(&self, level: usize) -> usize {
        self.bases + level * (2 * self.kinds * self.kinds + 1) + 2 * self.kinds * self.kinds
    }

    /// Where the weights are of pairs on a kind; empty if there are none.
    fn pair(&self, level: usize, kind: usize) -> std::ops::Range<usize> {
        let each = (self.sharpest() - self.pairs) / (self.levels.domains.len() * self.kinds);
        let first = self.pairs + (level * self.kinds + kind) * each;
        first..first + each
    }

    /// Where log β is.
    fn sharpest(&self) -> usize {
        self.parameters - 1
    }

    /// How much the slowest thread of an instance decides alone: β.
    fn sharpness(parameters: &[f64]) -> f64 {
        parameters.last().map_or(SHARPNESS, |logarithm| logarithm.clamp(-2.0, 5.0).exp())
    }

    fn base(&self, kind: usize, leaf: u32) -> usize {
        if self.levels.sort_count > 1 {
            self.levels.sorts[leaf as usize] * self.kinds + kind
        } else {
            kind
        }
    }
}

/// What a load on a context adds to the logarithm of how slow a thread is, and its slope. The
/// others take their turns. A load below 0 would be of others that help.
fn turns(load: f64) -> (f64, f64) {
    if load > 0.0 { (load.ln_1p(), 1.0 / (1.0 + load)) } else { (load, 1.0) }
}

/// The power of β of how slow a thread is, whose logarithm is `below` that of the slowest of its
/// instance: 1 or less. What adds nothing to 1 is 0, which takes less time.
fn power(sharpness: f64, below: f64) -> f64 {
    let logarithm = sharpness * below;
    if logarithm == 0.0 {
        1.0
    } else if logarithm < -40.0 {
        0.0
    } else {
        logarithm.exp()
    }
}

/// The logarithm of the sum of the [`power`]s of an instance. One thread often decides alone.
fn log_of_powers(powers: f64) -> f64 {
    if powers == 1.0 { 0.0 } else { powers.ln() }
}

impl FittedPipeline {
    /// Root mean square of measured / predicted - 1 by generalized cross-validation. Each
    /// measurement is left out of what predicts it, and the better count for more.
    pub fn error(&self) -> f64 {
        self.error
    }

    /// A predictor that the measurements also allow: its parameters are drawn by how likely they
    /// are. Its best prediction is worth measuring: it is either good or little known (Thompson,
    /// Biometrika 25, 1933).
    pub fn plausible(&self, random: &mut Random) -> Self {
        let posterior = self.posterior.as_ref();
        let compact = posterior.map_or(self.compact.clone(), |posterior| posterior.draw(random));
        Self { compact, error: self.error, minima: fit::Minima::default(), posterior: None }
    }
}

impl Predictor for FittedPipeline {
    fn predict(&self, leaves: &[u32]) -> f64 {
        thread_local! {
            static WORK: std::cell::RefCell<compact::Workspace> = std::cell::RefCell::default();
        }
        WORK.with(|work| self.compact.performance(leaves, &mut work.borrow_mut()))
    }

    fn walk<'a>(&'a self, leaves: &[u32]) -> Box<dyn PredictedWalk + 'a> {
        Box::new(compact::CompactWalk::new(&self.compact, leaves))
    }
}

#[cfg(test)]
mod tests;
