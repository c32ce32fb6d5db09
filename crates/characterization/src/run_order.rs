//! The runs of a plan in their order: rounds, random order, runs alone in between.
//!
//! Every round runs every set once and each reference alone [`ALONE`] times, all in one random
//! order. Slow changes of the machine (frequency, temperature, other users) then look like noise,
//! which intervals show. They do not look like differences between sets. Each run has its own seed.
//! So rounds vary the start offsets on a model and the memory on the host.

use crate::characterization::{Characterization, Conditions, Runs};
use crate::round_plan::{PlannedExperiment, RoundPlan};
use pinwise_measure::{Bench, Pace};
use pinwise_topology::{Fingerprint, Random};

/// Runs of each reference alone in a round.
const ALONE: usize = 3;

/// One run: an experiment in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// Index into [`RoundPlan::experiments`].
    pub experiment: usize,
    /// The round, from 0.
    pub round: usize,
    /// The seed of start offsets and memory.
    pub seed: u64,
}

impl RoundPlan {
    /// Runs in `rounds` rounds.
    pub fn runs(&self, rounds: usize) -> usize {
        self.experiments.iter().map(|experiment| self.runs_of(experiment)).sum::<usize>() * rounds
    }

    /// Runs of one experiment in a round.
    pub fn runs_of(&self, experiment: &PlannedExperiment) -> usize {
        if experiment.stressor.is_none() { ALONE } else { 1 }
    }

    /// Every run of every round, in the order in which they are begun.
    pub fn tasks(&self, conditions: Conditions) -> Vec<Task> {
        let mut random = Random::new(conditions.seed);
        let mut tasks = Vec::new();
        for round in 0..conditions.rounds {
            let mut order: Vec<usize> = Vec::new();
            for (index, experiment) in self.experiments.iter().enumerate() {
                order.extend(std::iter::repeat_n(index, self.runs_of(experiment)));
            }
            random.shuffle(&mut order);
            tasks.extend(order.into_iter().map(|experiment| Task {
                experiment,
                round,
                seed: random.bits(),
            }));
        }
        tasks
    }
}

impl Characterization {
    /// From what every task of `plan` gave.
    pub fn of(
        bench: &dyn Bench,
        plan: &RoundPlan,
        conditions: Conditions,
        fingerprint: Fingerprint,
        paces: impl IntoIterator<Item = (Task, Vec<Pace>)>,
    ) -> Self {
        let mut runs: Vec<Runs> = vec![vec![Vec::new(); conditions.rounds]; plan.experiments.len()];
        for (task, paces) in paces {
            runs[task.experiment][task.round].push(paces);
        }
        Self::new(bench, plan, conditions, fingerprint, &runs)
    }
}
