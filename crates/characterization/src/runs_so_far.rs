//! The runs of a plan that is not done: what each set of programs gave so far.

use crate::round_plan::RoundPlan;
use crate::run_order::Task;
use pinwise_measure::{Bench, Pace};
use serde::Serialize;

/// The runs of one set of programs so far. Nothing follows from them before the others are made.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunsSoFar {
    /// The benchmark that is timed.
    pub benchmark: String,
    /// The benchmark that runs next to it. `None` if it runs alone.
    pub stressor: Option<String>,
    /// How many stressors.
    pub count: usize,
    /// The levels that they are at; empty for none.
    #[serde(rename = "where")]
    pub place: String,
    /// Runs.
    pub runs: usize,
    /// The time of an operation of the benchmark, averaged over the runs, in the bench's unit.
    pub time: f64,
}

impl RunsSoFar {
    /// From the tasks of `plan` that were run: the sets with a run, in the plan's order.
    pub fn of(
        bench: &dyn Bench,
        plan: &RoundPlan,
        paces: impl IntoIterator<Item = (Task, Vec<Pace>)>,
    ) -> Vec<Self> {
        let mut times: Vec<Vec<f64>> = vec![Vec::new(); plan.experiments.len()];
        for (task, paces) in paces {
            times[task.experiment].extend(paces.first().map(|first| first.time));
        }
        let name = |benchmark: usize| bench.benchmarks()[benchmark].name.clone();
        let sets = plan.experiments.iter().zip(times).filter(|(_, times)| !times.is_empty());
        sets.map(|(set, times)| Self {
            benchmark: name(set.benchmark),
            stressor: set.stressor.map(name),
            count: set.count,
            place: set.place.clone(),
            runs: times.len(),
            time: times.iter().sum::<f64>() / times.len() as f64,
        })
        .collect()
    }

    /// What runs beside the benchmark: `3 intadd, pipe+core`; `alone`.
    pub fn beside(&self) -> String {
        match &self.stressor {
            Some(stressor) => format!("{} {stressor}, {}", self.count, self.place),
            None => "alone".to_owned(),
        }
    }
}
