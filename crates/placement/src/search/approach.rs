//! The approach of a search: which space it searches, with which strategies, and why.

use crate::StrategyReason;
use crate::blackbox_forecast::blackbox_per_context;
use crate::search::SEARCH_SHARE;
use crate::search::SearchError;
use crate::search::blackbox::Predicting;
use crate::search::climb::Climb;
use crate::search::exhaustive::{Exhaustive, LEAST_ROUNDS};
use crate::search::guided::{FIRST, Guided, LEAST, MOST_PER_CONTEXT, MOST_THREADS};
use crate::search::proposer::Proposer;
use crate::search::random_sample::RandomSample;
use crate::search::solo_bound::SoloBound;
use crate::{PlacementQuestion, StrategyName};
use num_bigint::BigUint;
use pinwise_figures::group;
use pinwise_measure::Workload;
use pinwise_topology::{PerContext, SharingTree, Space, SpaceError};
use std::collections::VecDeque;

/// Every different assignment is measured once if the budget affords this multiple of their number.
/// A sample of few different values supports no bound. So measuring all of a small space once is
/// better than some of it at random. The excess over 1 is slack for trials that cost more than the
/// first ones did.
const ONCE: f64 = 1.5;

/// Share of what can be afforded that may go into what instances do alone.
const SOLO_SHARE: f64 = 0.2;

/// The random start of a climb.
const START: u64 = 50;

/// More different assignments than this are not enumerated. At ten a second, measuring them would
/// take days.
const MOST_CLASSES: u32 = 5_000_000;

/// A way to search, and why.
#[derive(Debug)]
pub(crate) struct Approach {
    pub(crate) space: Space,
    pub(crate) proposers: VecDeque<Box<dyn Proposer>>,
    pub(crate) why: Vec<StrategyReason>,
}

/// The space before anything is known of the budget. It has as many threads per context as asked
/// for, or as few as fit.
pub(crate) fn narrow_space(
    question: &PlacementQuestion,
    tree: &SharingTree,
    workload: &Workload,
) -> Result<Space, SearchError> {
    let (threads, masks) = (workload.threads.len(), workload.masks());
    let per_context = match question.per_context {
        Some(most) => PerContext::AtMost(most),
        // Its tables have no more threads on a context than this.
        None if question.strategy == StrategyName::Blackbox => {
            PerContext::AtMost(blackbox_per_context(tree, threads, None))
        }
        None if threads > tree.leaves().len() => PerContext::Any,
        None => PerContext::AtMost(1),
    };
    let space = match Space::masked(tree.clone(), &masks, per_context) {
        // Threads that keep to few contexts may have to share them.
        Err(SpaceError::TooNarrow { .. }) if question.per_context.is_none() => {
            Space::masked(tree.clone(), &masks, PerContext::Any)?
        }
        space => space?,
    };
    if question.strategy == StrategyName::Exhaustive && space.count() > BigUint::from(MOST_CLASSES)
    {
        return Err(SearchError::TooMany { count: group(&space.count().to_string()) });
    }
    Ok(space)
}

impl Approach {
    /// Chooses an approach. `predicting` is there for BlackBox. About `affordable` trials, each
    /// `cost` of the budget, can be spent on searching. A share `used` of the budget is gone.
    pub(crate) fn choose(
        question: &PlacementQuestion,
        narrow: &Space,
        workload: &Workload,
        predicting: Option<Predicting>,
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
            match narrow.with_per_context(PerContext::Any) {
                Ok(wide) if fits(&wide, often) => {
                    space = wide;
                    why.push(StrategyReason::AnyPerContext);
                }
                _ => why.push(StrategyReason::OnePerContext),
            }
        }
        let assignments = space.count().to_string();
        let mut proposers: VecDeque<Box<dyn Proposer>> = VecDeque::new();
        let start = question.start;
        let solo = SoloBound::new(question, workload, &space)
            .filter(|solo| solo.cost(question, cost) <= SOLO_SHARE * affordable);
        let alone = |proposers: &mut VecDeque<Box<dyn Proposer>>, why: &mut Vec<StrategyReason>| {
            if let Some(solo) = &solo {
                why.push(StrategyReason::AloneFirst);
                proposers.push_back(Box::new(solo.clone()));
            }
        };
        let per_context = MOST_PER_CONTEXT * space.tree().leaves().len();
        let is_crowd = workload.threads.len() > MOST_THREADS.min(per_context);
        match question.strategy {
            StrategyName::Auto | StrategyName::Guided if fits(&space, ONCE) => {
                let times = if fits(&space, often) { LEAST_ROUNDS as u64 } else { 1 };
                why.insert(0, StrategyReason::Exhaustive { assignments, times });
                proposers.push_back(Box::new(Exhaustive::new(&space)));
            }
            StrategyName::Auto | StrategyName::Guided if affordable >= LEAST && !is_crowd => {
                why.insert(0, StrategyReason::Guided { uniform: FIRST as u64, assignments });
                if solo.is_some() {
                    why.push(StrategyReason::AloneFirst);
                }
                proposers.push_back(Box::new(Guided::new(workload, &space, solo, affordable)));
            }
            StrategyName::Auto | StrategyName::Guided => {
                let room = affordable.max(0.0) as u64;
                let threads = workload.threads.len() as u64;
                let reason = match affordable >= LEAST {
                    true => StrategyReason::SampleOfMany { threads, assignments },
                    false => StrategyReason::SampleThenClimb { room, assignments },
                };
                why.insert(0, reason);
                alone(&mut proposers, &mut why);
                proposers.push_back(Box::new(RandomSample::new(
                    None,
                    used + (SEARCH_SHARE - used) / 2.0,
                    start,
                    solo,
                )));
                proposers.push_back(Box::new(Climb::new(workload)));
            }
            StrategyName::Exhaustive => {
                let fits = fits(&space, ONCE);
                why.insert(0, StrategyReason::ExhaustiveAsked { assignments, fits });
                proposers.push_back(Box::new(Exhaustive::new(&space)));
            }
            StrategyName::Random => {
                why.insert(0, StrategyReason::RandomAsked { assignments });
                proposers.push_back(Box::new(RandomSample::new(None, SEARCH_SHARE, start, None)));
            }
            StrategyName::Blackbox => {
                if let Some(predicting) = predicting {
                    let predicting = predicting.affording(affordable);
                    why.insert(0, predicting.why(question));
                    proposers.push_back(Box::new(predicting));
                }
            }
            StrategyName::Climb => {
                why.insert(0, StrategyReason::ClimbAsked { start: START, assignments });
                proposers.push_back(Box::new(RandomSample::new(
                    Some(START),
                    SEARCH_SHARE,
                    start,
                    None,
                )));
                proposers.push_back(Box::new(Climb::new(workload)));
            }
        }
        Self { space, proposers, why }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Budget;
    use pinwise_topology::{Alike, Machine};

    #[test]
    fn more_threads_than_can_be_learned_from_are_sampled_and_climbed() {
        let question = PlacementQuestion::new(StrategyName::Auto, Budget::Measurements(200));
        let why = |shape: &str, threads: usize| {
            let workload = Workload::new("busy", &[&vec!["busy"; threads][..]]);
            let tree = SharingTree::new(&Machine::from_shape(shape).unwrap(), Alike::ByStructure);
            let narrow = narrow_space(&question, &tree, &workload).unwrap();
            let chosen = Approach::choose(&question, &narrow, &workload, None, 200.0, 0.005, 0.0);
            (chosen.why[0].clone(), chosen.proposers.len())
        };
        for (shape, most) in [("2", 32), ("64", 512)] {
            assert!(matches!(why(shape, most), (StrategyReason::Guided { .. }, 1)));
            let (reason, proposers) = why(shape, most + 1);
            assert!(matches!(reason, StrategyReason::SampleOfMany { .. }));
            assert_eq!(proposers, 2);
        }
    }
}
