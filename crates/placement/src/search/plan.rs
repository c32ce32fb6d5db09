//! Which space to search, and how.

use crate::forecast::room;
use crate::search::SearchError;
use crate::search::blackbox::Predicting;
use crate::search::budget::SEARCH_SHARE;
use crate::search::climb::Climb;
use crate::search::exhaustive::{Exhaustive, LEAST_ROUNDS};
use crate::search::explorer::Explorer;
use crate::search::guided::{Guided, LEAST, UNIFORM};
use crate::search::sample::Sample;
use crate::search::solo::Solo;
use crate::{Question, StrategyName};
use num_bigint::BigUint;
use pinwise_figures::{counted, group};
use pinwise_measure::Workload;
use pinwise_topology::{PerContext, SharingTree, Space};
use std::collections::VecDeque;

/// What measuring every class once may cost, as a multiple of their number, for that to be chosen:
/// rather all of a small space once than some of it at random, since a sample of few different
/// values supports no bound. The rest is slack, for trials that cost more than the first ones did.
const ONCE: f64 = 1.5;

/// Share of what can be afforded that may go into what instances do alone.
const SOLO_SHARE: f64 = 0.2;

/// The random start of a climb.
const START: u64 = 50;

/// More classes than this are not enumerated: measuring them would take days at ten a second.
const MOST_CLASSES: u32 = 5_000_000;

/// A way to search, and why.
#[derive(Debug)]
pub(crate) struct Approach {
    pub(crate) space: Space,
    pub(crate) explorers: VecDeque<Box<dyn Explorer>>,
    pub(crate) why: String,
}

/// The space before anything is known of the budget: as many threads per context as asked for, or
/// as few as fit.
pub(crate) fn narrow_space(
    question: &Question,
    tree: &SharingTree,
    threads: usize,
) -> Result<Space, SearchError> {
    let per_context = match question.per_context {
        Some(most) => PerContext::AtMost(most),
        // Its tables know of so many and no more.
        None if question.strategy == StrategyName::Blackbox => {
            PerContext::AtMost(room(tree, threads, None))
        }
        None if threads > tree.leaves().len() => PerContext::Any,
        None => PerContext::AtMost(1),
    };
    let space = Space::new(tree.clone(), threads, per_context)?;
    if question.strategy == StrategyName::Exhaustive && space.count() > BigUint::from(MOST_CLASSES)
    {
        return Err(SearchError::TooMany { count: group(&space.count().to_string()) });
    }
    Ok(space)
}

impl Approach {
    /// Chooses, where about `affordable` trials, each `cost` of the budget, can be spent on
    /// searching and a share `used` of it is gone.
    pub(crate) fn choose(
        question: &Question,
        narrow: &Space,
        workload: &Workload,
        affordable: f64,
        cost: f64,
        used: f64,
    ) -> Self {
        let fits = |space: &Space, rounds: f64| {
            space.count() <= BigUint::from((affordable.max(0.0) / rounds) as u64)
                && space.count() <= MOST_CLASSES.into()
        };
        let often = LEAST_ROUNDS as f64;
        let mut why = Vec::new();
        let mut space = narrow.clone();
        let as_it_is = question.strategy == StrategyName::Blackbox;
        if question.per_context.is_none() && narrow.per_context() != PerContext::Any && !as_it_is {
            match Space::new(narrow.tree().clone(), narrow.threads(), PerContext::Any) {
                Ok(wide) if fits(&wide, often) => {
                    space = wide;
                    why.push("any number of threads per context, since all such assignments fit the budget".to_owned());
                }
                _ => why.push("at most one thread per context".to_owned()),
            }
        }
        let count = group(&space.count().to_string());
        let mut explorers: VecDeque<Box<dyn Explorer>> = VecDeque::new();
        let start = question.start;
        let solo = Solo::new(question, workload, &space)
            .filter(|solo| solo.cost(question, cost) <= SOLO_SHARE * affordable);
        let alone = |explorers: &mut VecDeque<Box<dyn Explorer>>, why: &mut Vec<String>| {
            if let Some(solo) = &solo {
                why.push(
                    "first what instances do alone, which bounds what they do together".to_owned(),
                );
                explorers.push_back(Box::new(solo.clone()));
            }
        };
        match question.strategy {
            StrategyName::Auto | StrategyName::Guided if fits(&space, ONCE) => {
                let times = if fits(&space, often) {
                    format!("{LEAST_ROUNDS} times over")
                } else {
                    "once".to_owned()
                };
                why.insert(
                    0,
                    format!("exhaustive: the {count} assignments fit the budget {times}"),
                );
                explorers.push_back(Box::new(Exhaustive::new(&space)));
            }
            StrategyName::Auto | StrategyName::Guided if affordable >= LEAST => {
                why.insert(
                    0,
                    format!(
                        "guided: a predictor learned from {UNIFORM} random assignments and all later ones chooses what to measure; \
                         {count} assignments are too many to measure each"
                    ),
                );
                alone(&mut explorers, &mut why);
                explorers.push_back(Box::new(Guided::new(workload, &space, solo)));
            }
            StrategyName::Auto | StrategyName::Guided => {
                why.insert(
                    0,
                    format!(
                        "random sampling for the bound, then climbing from its best: searching has room for about {}, too few to measure \
                         each of {count} assignments or to learn from",
                        counted(affordable.max(0.0) as u64, "measurement")
                    ),
                );
                alone(&mut explorers, &mut why);
                explorers.push_back(Box::new(Sample::new(
                    None,
                    used + (SEARCH_SHARE - used) / 2.0,
                    start,
                    solo,
                )));
                explorers.push_back(Box::new(Climb::new(workload)));
            }
            StrategyName::Exhaustive => {
                let enough = if fits(&space, ONCE) {
                    ""
                } else {
                    ", more than the budget has measurements for: not all are seen"
                };
                why.insert(0, format!("exhaustive, as asked: {count} assignments{enough}"));
                explorers.push_back(Box::new(Exhaustive::new(&space)));
            }
            StrategyName::Random => {
                why.insert(0, format!("random sampling, as asked: {count} assignments"));
                explorers.push_back(Box::new(Sample::new(None, SEARCH_SHARE, start, None)));
            }
            StrategyName::Blackbox => {
                match Predicting::new(question, narrow.tree(), workload, affordable) {
                    Ok(predicting) => {
                        why.insert(0, predicting.why(question));
                        explorers.push_back(Box::new(predicting));
                    }
                    // It was made before, when the search was.
                    Err(error) => why.insert(0, error.to_string()),
                }
            }
            StrategyName::Climb => {
                why.insert(
                    0,
                    format!("climbing from the best of {START} random assignments, as asked: {count} in all"),
                );
                explorers.push_back(Box::new(Sample::new(Some(START), SEARCH_SHARE, start, None)));
                explorers.push_back(Box::new(Climb::new(workload)));
            }
        }
        Self { space, explorers, why: why.join("; ") }
    }
}
