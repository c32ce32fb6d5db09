//! Which thread to keep to which context, quantum after quantum.
//!
//! **Terms.** *Siblings* are contexts that share a core, or another level that was chosen. A
//! *quantum* is the time between two decisions. A *split* says which thread is kept to which
//! context. *Alone* is without a thread on a sibling.
//!
//! **Problem.** Threads of one context never run at once. Threads on siblings do. A program that
//! only sets affinities cannot say when a thread runs. So it decides by the split: bad neighbours
//! share a context, and good ones are on siblings.
//!
//! **Limits.** Which threads of two siblings meet, and how often, is the scheduler's choice.

use pinwise_measure::{EventCounts, ObservedThread};
use serde::{Deserialize, Serialize};
use std::fmt::Debug;
use std::sync::Arc;

/// How fast two threads run beside each other, from what each of them did.
pub trait PairSpeeds: Debug + Send + Sync {
    /// The speed of each beside the other, as a share of its speed alone. `None`: no answer, for
    /// instance without an event.
    fn speeds(&self, threads: [&EventCounts; 2]) -> Option<[f64; 2]>;
}

/// How the co-scheduler tells good neighbours from bad ones.
#[derive(Clone, Debug, Default)]
pub enum CoscheduleRule {
    /// By what was seen.
    #[default]
    Seen,
    /// By a model that was fitted to pairs.
    Predicted(Arc<dyn PairSpeeds>),
}

/// What a split shall give.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CoscheduleObjective {
    /// The largest sum of the speeds of all threads, each as a share of its speed alone.
    Throughput,
    /// The largest speed of the program that is slowed down most.
    Fairness,
    /// Throughput, but each program keeps most of its fair progress: what it makes if every other
    /// thread is beside it equally often.
    #[default]
    Both,
}

/// Decides quantum after quantum.
#[derive(Clone, Debug)]
pub struct Coscheduler {
    cores: Vec<Vec<usize>>,
    #[expect(dead_code, reason = "rules follow")]
    rule: CoscheduleRule,
    #[expect(dead_code, reason = "rules follow")]
    objective: CoscheduleObjective,
}

impl Coscheduler {
    /// With these contexts: each item has siblings.
    pub fn new(
        cores: Vec<Vec<usize>>,
        rule: CoscheduleRule,
        objective: CoscheduleObjective,
    ) -> Self {
        Self { cores, rule, objective }
    }

    /// The threads that shall be kept to another context than now, and to which.
    ///
    /// A new thread, or one on none of these contexts, gets one of those it may use. A thread that
    /// may use none of them is left alone. The answer follows from this and earlier observations
    /// alone.
    pub fn decide(&mut self, threads: &[ObservedThread]) -> Vec<(u64, usize)> {
        let contexts: Vec<usize> = self.cores.iter().flatten().copied().collect();
        let mut load = vec![0.0; contexts.len()];
        let mut moves = Vec::new();
        let seat = |context| contexts.iter().position(|&one| one == context);
        for thread in threads {
            if let Some(at) = thread.context.and_then(seat) {
                load[at] += thread.busy;
            }
        }
        for thread in threads.iter().filter(|one| one.context.and_then(seat).is_none()) {
            let least = (0..contexts.len())
                .filter(|&at| thread.allowed.contains(&contexts[at]))
                .min_by(|&one, &other| load[one].total_cmp(&load[other]));
            if let Some(at) = least {
                load[at] += thread.busy;
                moves.push((thread.id, contexts[at]));
            }
        }
        moves
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct NoAnswer;

    impl PairSpeeds for NoAnswer {
        fn speeds(&self, _: [&EventCounts; 2]) -> Option<[f64; 2]> {
            None
        }
    }

    fn new_thread(id: u64, allowed: &[usize]) -> ObservedThread {
        ObservedThread {
            id,
            program: 0,
            allowed: allowed.to_vec(),
            context: None,
            busy: 1.0,
            counts: None,
        }
    }

    #[test]
    fn new_threads_are_spread_over_the_contexts_they_may_use() {
        let rule = CoscheduleRule::Predicted(Arc::new(NoAnswer));
        let mut scheduler =
            Coscheduler::new(vec![vec![0, 2], vec![1, 3]], rule, CoscheduleObjective::Both);
        let threads = [
            new_thread(1, &[0]),
            new_thread(2, &[0, 1, 2, 3]),
            new_thread(3, &[0, 1, 2, 3]),
            new_thread(4, &[7]),
        ];
        let moves = scheduler.decide(&threads);
        assert_eq!(moves, [(1, 0), (2, 2), (3, 1)]);
        assert_eq!(scheduler.decide(&threads), moves);
    }
}
