//! [`History`]: the windows of each assignment that a search has seen so far.

use crate::statistics::{mean, squares, t_quantile};
use pinwise_campaign::{Purpose, Record};
use pinwise_measure::{Retry, Setting};
use pinwise_topology::Assignment;
use std::collections::BTreeMap;

/// The weight, in windows, of the noise pooled over all assignments, compared with an assignment's
/// own windows. With few windows each, their own variances are too unsteady for a comparison.
/// Sharing one estimate is the moderated t of Smyth, Stat. Appl. Genet. Mol. Biol. 3 (2004). The
/// degrees of freedom of the prior are fixed here.
const PRIOR: f64 = 4.0;

/// The assignments that were measured, in order, with their performance.
pub(crate) type Windows = Vec<(Assignment, f64)>;

/// The windows of one assignment.
#[derive(Clone, Debug, Default)]
pub(crate) struct AssignmentWindows {
    /// Every performance measured while searching, in order.
    pub(crate) windows: Vec<f64>,
    /// Those drawn as part of the sample.
    pub(crate) sampled: Vec<f64>,
    /// Those drawn as part of a steered sample.
    pub(crate) steered: Vec<f64>,
    /// A trial failed for good: not to be proposed again.
    pub(crate) failed: bool,
}

impl AssignmentWindows {
    /// Whether chance proposed it, and not a climb.
    pub(crate) fn was_drawn(&self) -> bool {
        !self.sampled.is_empty() || !self.steered.is_empty()
    }
}

/// The search's windows, by assignment in canonical form; fresh windows ([`Purpose::Final`]) are
/// not among them.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    classes: BTreeMap<Assignment, AssignmentWindows>,
    /// Every performance of instances of the workload, in order; nothing if they cannot run.
    profiles: BTreeMap<Setting, Vec<f64>>,
    /// Every pinned window, in order: of what, and why.
    trail: Vec<(Assignment, f64, Purpose)>,
    /// Every window of the unpinned baseline before the fresh ones.
    pub(crate) baseline: Vec<f64>,
    /// The target cannot be measured unpinned.
    pub(crate) baseline_failed: bool,
    /// Sum of squared relative deviations from each assignment's mean, and its degrees of freedom.
    noise: (f64, f64),
}

/// An estimate from the search's windows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Guess {
    pub(crate) mean: f64,
    /// Half-width of its interval.
    pub(crate) half: f64,
}

impl History {
    pub(crate) fn learn(&mut self, record: &Record) {
        let purpose = record.trial.purpose;
        if purpose == Purpose::Final {
            return;
        }
        match (&record.trial.setting, &record.outcome) {
            (Setting::Unpinned, Ok(measured)) => self.baseline.push(measured.performance),
            (Setting::Unpinned, Err(error)) => self.baseline_failed |= error.retry == Retry::Other,
            // Not of the workload as a whole.
            (setting @ Setting::Profile(_), outcome) => {
                let windows = self.profiles.entry(setting.clone()).or_default();
                windows.extend(outcome.as_ref().ok().map(|measured| measured.performance));
            }
            (Setting::Pinned(assignment), Err(_)) => {
                self.classes.entry(assignment.clone()).or_default().failed = true
            }
            (Setting::Pinned(assignment), Ok(measured)) => {
                let class = self.classes.entry(assignment.clone()).or_default();
                let before = relative_squares(&class.windows);
                class.windows.push(measured.performance);
                match purpose {
                    Purpose::Sample => class.sampled.push(measured.performance),
                    Purpose::Steered => class.steered.push(measured.performance),
                    _ => {}
                }
                self.trail.push((assignment.clone(), measured.performance, purpose));
                self.noise.0 += relative_squares(&class.windows) - before;
                self.noise.1 += if class.windows.len() > 1 { 1.0 } else { 0.0 };
            }
            // Other questions' settings say nothing of assignments.
            _ => {}
        }
    }

    /// The performance of instances of the workload, the last time; `None` if that was not
    /// measured.
    pub(crate) fn profile(&self, setting: &Setting) -> Option<f64> {
        self.alone(setting)?.last().copied()
    }

    /// Every performance of instances of the workload.
    pub(crate) fn alone(&self, setting: &Setting) -> Option<&[f64]> {
        self.profiles.get(setting).map(Vec::as_slice)
    }

    /// Everything tried, failed ones included.
    pub(crate) fn classes(&self) -> impl Iterator<Item = (&Assignment, &AssignmentWindows)> {
        self.classes.iter()
    }

    pub(crate) fn class(&self, assignment: &Assignment) -> Option<&AssignmentWindows> {
        self.classes.get(assignment)
    }

    pub(crate) fn failed(&self, assignment: &Assignment) -> bool {
        self.class(assignment).is_some_and(|class| class.failed)
    }

    /// The mean of an assignment that was measured.
    pub(crate) fn mean(&self, assignment: &Assignment) -> Option<f64> {
        self.class(assignment)
            .filter(|class| !class.windows.is_empty())
            .map(|class| mean(&class.windows))
    }

    /// One performance per sampled assignment, its repeats averaged.
    pub(crate) fn sample(&self) -> Vec<f64> {
        self.classes
            .values()
            .filter(|class| !class.sampled.is_empty())
            .map(|class| mean(&class.sampled))
            .collect()
    }

    /// The last complete block of steered draws: the windows before it, its windows, its number
    /// from 1. `None` without any such draw. A block ends when something else is tried. A block
    /// shorter than half of the largest does not count.
    pub(crate) fn last_block(&self) -> Option<(Windows, Windows, u32)> {
        let mut blocks: Vec<Vec<usize>> = Vec::new();
        let mut open = false;
        for (index, (_, _, purpose)) in self.trail.iter().enumerate() {
            match (purpose, blocks.last_mut().filter(|_| open)) {
                (Purpose::Steered, Some(block)) => block.push(index),
                (Purpose::Steered, None) => blocks.push(vec![index]),
                // The reference is measured in between.
                (Purpose::Reference, _) => continue,
                _ => {}
            }
            open = *purpose == Purpose::Steered;
        }
        let largest = blocks.iter().map(Vec::len).max()?;
        let last = blocks.iter().rposition(|block| 2 * block.len() >= largest)?;
        let block = &blocks[last];
        let window =
            |(assignment, value, _): &(Assignment, f64, Purpose)| (assignment.clone(), *value);
        let before = self.trail[..block[0]].iter().map(window).collect();
        Some((
            before,
            block.iter().map(|index| window(&self.trail[*index])).collect(),
            1 + last as u32,
        ))
    }

    /// All windows of assignments, also of those that failed later.
    pub(crate) fn windows(&self) -> Windows {
        self.trail.iter().map(|(assignment, value, _)| (assignment.clone(), *value)).collect()
    }

    /// How many steered windows.
    pub(crate) fn steered_draws(&self) -> usize {
        self.trail.iter().filter(|(_, _, purpose)| *purpose == Purpose::Steered).count()
    }

    /// How many sampled windows.
    pub(crate) fn sampled(&self) -> u64 {
        self.classes.values().map(|class| class.sampled.len() as u64).sum()
    }

    /// The assignments that can run, best mean first.
    pub(crate) fn ranking(&self) -> Vec<(&Assignment, f64)> {
        let mut ranking: Vec<_> = self
            .classes
            .iter()
            .filter(|(_, class)| !class.failed && !class.windows.is_empty())
            .map(|(assignment, class)| (assignment, mean(&class.windows)))
            .collect();
        ranking.sort_by(|a, b| b.1.total_cmp(&a.1));
        ranking
    }

    /// Degrees of freedom of [`History::noise`].
    pub(crate) fn noise_degrees(&self) -> f64 {
        self.noise.1
    }

    /// The standard deviation of one window, relative to its mean, pooled over all assignments
    /// measured more than once.
    pub(crate) fn noise(&self) -> Option<f64> {
        (self.noise.1 > 0.0).then(|| (self.noise.0.max(0.0) / self.noise.1).sqrt())
    }

    /// Means of all assignments that can run, with intervals at `confidence` each.
    pub(crate) fn guesses(&self, confidence: f64) -> Vec<(&Assignment, Guess)> {
        let prior = PRIOR.min(self.noise.1);
        let noise = self.noise().unwrap_or(0.0);
        // The quantile depends on the number of windows alone, and is the costly part.
        let mut quantiles: BTreeMap<usize, f64> = BTreeMap::new();
        self.classes
            .iter()
            .filter(|(_, class)| !class.failed && !class.windows.is_empty())
            .map(|(assignment, class)| {
                let n = class.windows.len();
                let mean = mean(&class.windows);
                let degrees = prior + (n - 1) as f64;
                let quantile =
                    *quantiles.entry(n).or_insert_with(|| t_quantile(confidence, degrees));
                let variance = (prior * (noise * mean).powi(2) + squares(&class.windows)) / degrees;
                let half = if degrees > 0.0 {
                    quantile * (variance / n as f64).sqrt()
                } else {
                    f64::INFINITY
                };
                (assignment, Guess { mean, half })
            })
            .collect()
    }
}

fn relative_squares(windows: &[f64]) -> f64 {
    if windows.len() < 2 {
        return 0.0;
    }
    let mean = mean(windows);
    if mean == 0.0 { 0.0 } else { squares(windows) / (mean * mean) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_campaign::Trial;
    use pinwise_measure::{Effort, MeasureError, Measurement};
    use std::time::Duration;

    fn record(leaf: u32, outcome: Result<f64, Retry>) -> Record {
        Record {
            number: 0,
            trial: Trial {
                setting: Setting::Pinned(Assignment::new(vec![leaf])),
                purpose: Purpose::Sample,
                effort: Effort::default(),
            },
            outcome: outcome
                .map(|performance| Measurement::new(performance, Duration::ZERO))
                .map_err(|retry| MeasureError::new(retry, "failed")),
            elapsed: Duration::ZERO,
        }
    }

    #[test]
    fn a_block_ends_where_something_else_is_tried_and_one_cut_short_does_not_count() {
        let mut history = History::default();
        let mut learn = |leaf: u32, purpose: Purpose| {
            let mut record = record(leaf, Ok(1.0));
            record.trial.purpose = purpose;
            history.learn(&record);
            let leaves = |block: Windows| block.iter().map(|(at, _)| at.leaf(0)).collect();
            history
                .last_block()
                .map(|(before, block, number)| (before.len(), leaves(block), number))
        };
        assert_eq!(learn(0, Purpose::Sample), None);
        (1..4).for_each(|leaf| drop(learn(leaf, Purpose::Steered)));
        learn(9, Purpose::Reference);
        assert_eq!(
            learn(4, Purpose::Steered),
            Some((1, vec![1, 2, 3, 4], 1)),
            "the reference is no part of it"
        );
        learn(5, Purpose::Climb);
        assert_eq!(learn(6, Purpose::Steered), Some((1, vec![1, 2, 3, 4], 1)));
        assert_eq!(learn(7, Purpose::Steered), Some((7, vec![6, 7], 2)));
    }

    #[test]
    fn a_single_window_borrows_the_noise_of_the_others() {
        let mut history = History::default();
        history.learn(&record(0, Ok(10.0)));
        assert_eq!(history.guesses(0.95)[0].1.half, f64::INFINITY);
        for value in [98.0, 100.0, 102.0] {
            history.learn(&record(1, Ok(value)));
        }
        assert!((history.noise().unwrap() - 0.02).abs() < 1e-12);
        let guesses = history.guesses(0.95);
        // t(0.975, 2) = 4.302653 with the two degrees of freedom there are.
        assert!((guesses[0].1.half - 4.302653 * 0.2).abs() < 1e-6);
        assert!(guesses[1].1.half < 4.302653 * 2.0);
        history.learn(&record(1, Err(Retry::Other)));
        assert_eq!(history.ranking().len(), 1);
    }
}
