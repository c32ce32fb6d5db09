//! How long a characterization is going to take.

use crate::characterization::Conditions;
use crate::execute::{Task, run_all};
use crate::plan::{Experiment, Plan};
use pinwise_measure::{Bench, MeasureError};
use pinwise_topology::Random;
use std::time::Duration;

/// Sets with stressors that are tried.
const TRIED: usize = 16;

/// About how long [`crate::execute()`] takes. It runs every benchmark alone, and some sets with
/// stressors, and forgets the results. The latter show how many times longer sets take than
/// [`Bench::expected`] says. That depends on the machine's unrest.
///
/// A few sets take most of the time. So sets are drawn with probabilities in proportion to their
/// expected time, evenly over the plan, where neighbours are alike. The mean of their ratios then
/// estimates that of the sums. They run as many at once as later.
///
/// # Errors
/// As of [`crate::execute()`].
pub fn estimate(
    bench: &dyn Bench,
    plan: &Plan,
    conditions: &Conditions,
) -> Result<Duration, MeasureError> {
    let mut random = Random::new(conditions.seed);
    let mut took = |experiments: &[usize]| -> Result<Vec<Duration>, MeasureError> {
        let task = |&experiment: &usize| Task { experiment, round: 0, seed: random.bits() };
        let tasks: Vec<Task> = experiments.iter().map(task).collect();
        Ok(run_all(bench, plan, &conditions.fame, &tasks, &|_| {})?
            .into_iter()
            .map(|(_, took)| took)
            .collect())
    };
    let is_alone = |&index: &usize| plan.experiments[index].stressor.is_none();
    let (lonely, beside): (Vec<usize>, Vec<usize>) =
        (0..plan.experiments.len()).partition(is_alone);
    let mut alone = vec![Duration::ZERO; bench.benchmarks().len()];
    for (&index, took) in lonely.iter().zip(took(&lonely)?) {
        alone[plan.experiments[index].benchmark] = took;
    }
    let expected = |index: &usize| {
        let experiment: &Experiment = &plan.experiments[*index];
        bench.expected(&experiment.layout, &conditions.fame, &alone).as_secs_f64()
            * plan.runs_of(experiment) as f64
    };
    let thought: Vec<f64> = beside.iter().map(expected).collect();
    let drawn = in_proportion(&thought, TRIED);
    let tried: Vec<usize> = drawn.iter().map(|&place| beside[place]).collect();
    let ratios =
        drawn.iter().zip(took(&tried)?).map(|(&place, took)| took.as_secs_f64() / thought[place]);
    let times = if drawn.is_empty() { 1.0 } else { ratios.sum::<f64>() / drawn.len() as f64 };
    let once = lonely.iter().map(expected).sum::<f64>() + thought.iter().sum::<f64>() * times;
    Ok(Duration::from_secs_f64(once * conditions.rounds as f64 / bench.at_once().max(1) as f64))
}

/// `count` places in `weights`, evenly over their sum: each as often as its share of the sum says,
/// rounded up or down. None where the sum is 0.
fn in_proportion(weights: &[f64], count: usize) -> Vec<usize> {
    let step = weights.iter().sum::<f64>() / count as f64;
    let (mut sum, mut drawn) = (0.0, Vec::new());
    for (place, weight) in weights.iter().enumerate() {
        sum += weight;
        while step > 0.0 && drawn.len() < count && sum > (drawn.len() as f64 + 0.5) * step {
            drawn.push(place);
        }
    }
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_drawn_as_often_as_their_share() {
        assert_eq!(in_proportion(&[1.0, 1.0, 6.0, 0.0, 2.0], 10), [0, 1, 2, 2, 2, 2, 2, 2, 4, 4]);
        assert_eq!(in_proportion(&[1.0; 40], 4), [5, 15, 25, 35]);
        assert!(in_proportion(&[0.0, 0.0], 4).is_empty() && in_proportion(&[], 4).is_empty());
    }
}
