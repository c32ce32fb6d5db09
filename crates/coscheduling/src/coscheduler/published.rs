//! The published rule (T. Moseley and others, "Hardware monitoring for SMT scheduling and path
//! profiles", section 4.1; our readings are marked).
//!
//! **Terms.** The rule knows four events per cycle of each task's last quantum. They are branches
//! `b`, misses of the trace cache `tcm`, L2 misses `l2m` and floating point operations `f`.
//!
//! **The next task.** Beside task A, the task B of the highest value runs next:
//! v(B) = 4·|l2m(A)-l2m(B)| + |tcm(A)-tcm(B)| + |f(A)-f(B)| + 2·|b(A)-b(B)|. Tasks that differ run
//! together. Only the first few of the queue are compared, and none is passed over more than three
//! times. A task without counts is chosen first.
//!
//! **Groups.** Each task has a two-bit counter. It steps after the task's own intervals: up after
//! many L2 misses, down after few. A task with a full counter is kept to the context for high
//! misses. It is free again once its counter is 1 or less. At most half of the tasks are kept.
//!
//! **Readings.** The text has a window of four in one place and of three in another. It says that
//! the weight of `l2m` is four times that of `b`, which has 2. It says that `ipc` is subtracted,
//! but the formula has no such term. It counts misses of the data TLB, for which the model has no
//! term. It does not say how many misses are many. Here: more than the mean of all tasks.

use pinwise_measure::{CounterEvent, EventCounts};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a difference in each event per cycle is worth.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PublishedWeights {
    /// Of L2 misses.
    pub l2_misses: f64,
    /// Of misses of the trace cache, or of what feeds the front end here.
    pub front_end_misses: f64,
    /// Of floating point operations.
    pub fp: f64,
    /// Of branches.
    pub branches: f64,
    /// Of instructions; subtracted. The formula has none, so it is 0.
    pub instructions: f64,
}

impl PublishedWeights {
    /// The events that weigh something.
    pub fn events(&self) -> Vec<CounterEvent> {
        let weighed = self.terms().into_iter().filter(|(weight, _)| *weight != 0.0);
        weighed.map(|(_, event)| event).collect()
    }

    /// Each event with what a difference in it adds to the value.
    fn terms(&self) -> [(f64, CounterEvent); 5] {
        [
            (self.l2_misses, CounterEvent::L2Misses),
            (self.front_end_misses, CounterEvent::FrontEndMisses),
            (self.fp, CounterEvent::FpOperations),
            (self.branches, CounterEvent::Branches),
            (-self.instructions, CounterEvent::Instructions),
        ]
    }
}

impl Default for PublishedWeights {
    fn default() -> Self {
        Self { l2_misses: 4.0, front_end_misses: 1.0, fp: 1.0, branches: 2.0, instructions: 0.0 }
    }
}

/// The published rule with one reading of each place that has several.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PublishedRule {
    /// The weights of the value.
    pub weights: PublishedWeights,
    /// How many tasks at the head of a queue are compared: 4, or 3.
    pub window: usize,
    /// How often a task is passed over.
    pub most_passed_over: u32,
    /// Whether tasks with many misses are kept together.
    pub groups: bool,
}

impl Default for PublishedRule {
    fn default() -> Self {
        Self { weights: PublishedWeights::default(), window: 4, most_passed_over: 3, groups: true }
    }
}

/// A task of a queue, for [`PublishedRule::next`].
#[derive(Clone, Copy, Debug)]
pub struct QueuedTask<'a> {
    /// What it did in its last quantum; `None`: it is new.
    pub counts: Option<&'a EventCounts>,
    /// How often a later one has gone before it since it was queued.
    pub passed_over: u32,
}

impl PublishedRule {
    /// The value of two tasks on one core. An event that was not counted of both is left out.
    pub fn value(&self, tasks: [&EventCounts; 2]) -> f64 {
        let difference = |event| match tasks.map(|task| task.per_cycle(event)) {
            [Some(one), Some(other)] => (one - other).abs(),
            _ => 0.0,
        };
        self.weights.terms().into_iter().map(|(weight, event)| weight * difference(event)).sum()
    }

    /// The place in the queue of the task that a kernel runs next, beside a task with counts
    /// `beside`. `None`: the queue is empty.
    pub fn next(&self, beside: Option<&EventCounts>, queue: &[QueuedTask<'_>]) -> Option<usize> {
        let window = &queue[..queue.len().min(self.window)];
        let waited = |task: &QueuedTask<'_>| task.passed_over >= self.most_passed_over;
        if let Some(at) = window.iter().position(waited) {
            return Some(at);
        }
        let value = |task: &QueuedTask<'_>| match (beside, task.counts) {
            (_, None) => f64::INFINITY,
            (None, Some(_)) => 0.0,
            (Some(beside), Some(counts)) => self.value([beside, counts]),
        };
        let mut best: Option<(usize, f64)> = None;
        for (at, value) in window.iter().map(value).enumerate() {
            // Of equal ones, the first in the queue.
            if best.is_none_or(|(_, most)| value > most) {
                best = Some((at, value));
            }
        }
        best.map(|(at, _)| at)
    }
}

/// A task when an interval ends, for [`MissGroups::observe`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TaskInterval {
    /// The task.
    pub task: u64,
    /// L2 misses per cycle of its last interval; `None`: not counted.
    pub misses: Option<f64>,
    /// Whether its own interval ended now. If not, its counter stands.
    pub ended: bool,
}

/// The two-bit counters of tasks, and which of them are kept to the context for high misses.
#[derive(Clone, Debug, Default)]
pub struct MissGroups {
    tasks: BTreeMap<u64, (u8, bool)>,
}

impl MissGroups {
    /// Counts the intervals of tasks that ended. All tasks together say how many misses are many.
    /// Tasks that are not named are gone.
    pub fn observe(&mut self, tasks: &[TaskInterval]) {
        let known: Vec<f64> = tasks.iter().filter_map(|interval| interval.misses).collect();
        let mean = known.iter().sum::<f64>() / known.len().max(1) as f64;
        let before = std::mem::take(&mut self.tasks);
        for &TaskInterval { task, misses, ended } in tasks {
            let (counter, kept) = before.get(&task).copied().unwrap_or_default();
            let counter = match misses.filter(|_| ended) {
                Some(misses) if misses > mean => (counter + 1).min(3),
                Some(_) => counter.saturating_sub(1),
                None => counter,
            };
            self.tasks.insert(task, (counter, kept && counter > 1));
        }
        let most = tasks.len() / 2;
        let mut kept = self.tasks.values().filter(|(_, kept)| *kept).count();
        while kept > most {
            let last = self.tasks.values_mut().rev().find(|(_, kept)| *kept);
            last.expect("some are kept").1 = false;
            kept -= 1;
        }
        for (counter, is_kept) in self.tasks.values_mut() {
            if *counter == 3 && !*is_kept && kept < most {
                *is_kept = true;
                kept += 1;
            }
        }
    }

    /// Whether a task is kept to the context for high misses.
    pub fn is_kept(&self, task: u64) -> bool {
        self.tasks.get(&task).is_some_and(|&(_, kept)| kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn per_cycle(b: f64, tcm: f64, l2m: f64, f: f64, ipc: f64) -> EventCounts {
        let events = [
            (CounterEvent::Cycles, 1.0),
            (CounterEvent::Branches, b),
            (CounterEvent::FrontEndMisses, tcm),
            (CounterEvent::L2Misses, l2m),
            (CounterEvent::FpOperations, f),
            (CounterEvent::Instructions, ipc),
        ];
        EventCounts { seconds: 0.1, counts: BTreeMap::from(events), counted: 1.0 }
    }

    #[test]
    fn the_value_is_the_published_sum() {
        let [one, other] =
            [per_cycle(0.2, 0.01, 0.03, 0.0, 0.8), per_cycle(0.05, 0.0, 0.01, 0.3, 1.1)];
        let rule = PublishedRule::default();
        // 4 x 0.02 + 0.01 + 0.3 + 2 x 0.15.
        assert!((rule.value([&one, &other]) - 0.69).abs() < 1e-12);
        assert!((rule.value([&other, &one]) - 0.69).abs() < 1e-12);
        let weights = PublishedWeights { instructions: 1.0, ..PublishedWeights::default() };
        let subtracts = PublishedRule { weights, ..rule };
        assert!((subtracts.value([&one, &other]) - 0.39).abs() < 1e-12);
        let mut unknown = other.clone();
        unknown.counts.remove(&CounterEvent::FpOperations);
        assert!((rule.value([&one, &unknown]) - 0.39).abs() < 1e-12);
    }

    #[test]
    fn the_next_task_differs_most_but_none_waits_for_ever() {
        let [beside, alike, unlike] =
            [0.03, 0.03, 0.0].map(|misses| per_cycle(0.1, 0.0, misses, 0.0, 1.0));
        let task = |counts, passed_over| QueuedTask { counts, passed_over };
        let rule = PublishedRule::default();
        let next = |queue: &[QueuedTask<'_>]| rule.next(Some(&beside), queue);
        assert_eq!(next(&[]), None);
        assert_eq!(next(&[task(Some(&alike), 0), task(Some(&unlike), 0)]), Some(1));
        assert_eq!(next(&[task(Some(&alike), 3), task(Some(&unlike), 0)]), Some(0));
        assert_eq!(next(&[task(Some(&unlike), 0), task(None, 0)]), Some(1));
        let mut queue = vec![task(Some(&alike), 0); 4];
        queue.push(task(Some(&unlike), 0));
        assert_eq!(next(&queue), Some(0), "the fifth is not in the window");
        assert_eq!(rule.next(None, &queue), Some(0));
    }

    #[test]
    fn a_task_is_kept_after_three_intervals_and_until_its_counter_is_weak() {
        let mut groups = MissGroups::default();
        let [high, low] = [Some(0.1), Some(0.0)];
        let mut kept = |first| {
            groups.observe(&[(1, first), (2, Some(0.05)), (3, low), (4, low)].map(ended));
            groups.is_kept(1)
        };
        assert_eq!([kept(high), kept(high), kept(high)], [false, false, true]);
        // From 3 to 2, up again, then to 1.
        assert_eq!([kept(low), kept(high), kept(low), kept(low)], [true, true, true, false]);
    }

    fn ended((task, misses): (u64, Option<f64>)) -> TaskInterval {
        TaskInterval { task, misses, ended: true }
    }

    #[test]
    fn the_counter_of_a_task_steps_at_the_end_of_its_own_intervals_only() {
        let mut groups = MissGroups::default();
        let mut kept = |own| {
            let first = TaskInterval { task: 1, misses: Some(0.1), ended: own };
            groups.observe(&[first, ended((2, Some(0.0)))]);
            groups.is_kept(1)
        };
        assert_eq!([true, false, true, false, false, true].map(&mut kept)[4..], [false, true]);
    }

    #[test]
    fn at_most_half_of_the_tasks_are_kept() {
        let mut groups = MissGroups::default();
        let task = |number: u64| (number, Some(if number == 1 { 0.0 } else { 0.1 }));
        for _ in 0..5 {
            groups.observe(&(1..=6).map(task).map(ended).collect::<Vec<_>>());
        }
        let kept = |groups: &MissGroups| (1..=6).filter(|&task| groups.is_kept(task)).count();
        assert_eq!(kept(&groups), 3);
        // Two of the three that are kept end.
        groups.observe(&[task(1), task(4), task(5)].map(ended));
        assert!(kept(&groups) <= 1);
    }
}
