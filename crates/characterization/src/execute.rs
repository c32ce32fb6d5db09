//! Running a plan: rounds, random order, runs alone in between.
//!
//! Every round runs every set once and each reference alone [`ALONE`] times, all in one random
//! order. Slow changes of the machine (frequency, temperature, other users) then look like noise,
//! which intervals show, and not like differences between sets. Each run has its own seed, so
//! rounds vary the start offsets on a model and the memory on the host.

use crate::characterization::{Characterization, Conditions, Runs};
use crate::plan::{Experiment, Plan};
use pinwise_measure::{Bench, Fame, MeasureError, Pace, Retry};
use pinwise_topology::{Fingerprint, Random};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Runs of each reference alone in a round.
const ALONE: usize = 3;
/// How often a run that failed for a passing reason is tried.
const TRIES: usize = 3;

/// Progress of an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunsDone {
    /// Runs that have ended.
    pub done: usize,
    /// Runs in all.
    pub all: usize,
}

/// The result of a run that may not have been made yet.
type Pending = Mutex<Option<Result<(Vec<Pace>, Duration), MeasureError>>>;

/// One run: an experiment in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// Index into [`Plan::experiments`].
    pub experiment: usize,
    /// The round, from 0.
    pub round: usize,
    /// The seed of start offsets and memory.
    pub seed: u64,
}

impl Plan {
    /// Runs in `rounds` rounds.
    pub fn runs(&self, rounds: usize) -> usize {
        self.experiments.iter().map(|experiment| self.runs_of(experiment)).sum::<usize>() * rounds
    }

    /// Runs of one experiment in a round.
    pub fn runs_of(&self, experiment: &Experiment) -> usize {
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

/// Runs `plan` on `bench`, as many sets at once as it allows, and calls `observe` after each.
///
/// # Errors
/// That of the first run, in the order of runs, that could not be made; see [`MeasureError`].
pub fn execute(
    bench: &dyn Bench,
    plan: &Plan,
    conditions: Conditions,
    fingerprint: Fingerprint,
    observe: &(dyn Fn(RunsDone) + Sync),
) -> Result<Characterization, MeasureError> {
    let tasks = plan.tasks(conditions);
    let results = run_all(bench, plan, &conditions.fame, &tasks, observe)?;
    let paces = tasks.iter().zip(results).map(|(task, (paces, _))| (*task, paces));
    Ok(Characterization::of(bench, plan, conditions, fingerprint, paces))
}

impl Characterization {
    /// From what every task of `plan` gave.
    pub fn of(
        bench: &dyn Bench,
        plan: &Plan,
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

/// Runs `tasks`, as many at once as `bench` allows: what each gave, and how long it took. Error:
/// see [`execute`].
pub(crate) fn run_all(
    bench: &dyn Bench,
    plan: &Plan,
    fame: &Fame,
    tasks: &[Task],
    observe: &(dyn Fn(RunsDone) + Sync),
) -> Result<Vec<(Vec<Pace>, Duration)>, MeasureError> {
    let results: Vec<Pending> = tasks.iter().map(|_| Mutex::new(None)).collect();
    let next = AtomicUsize::new(0);
    let done = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let worker = || {
        while !failed.load(Ordering::Relaxed) {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(task) = tasks.get(index) else { return };
            let begin = Instant::now();
            let result = try_run(bench, plan, fame, task).map(|paces| (paces, begin.elapsed()));
            failed.fetch_or(result.is_err(), Ordering::Relaxed);
            if let Ok(mut place) = results[index].lock() {
                *place = Some(result);
            }
            observe(RunsDone { done: done.fetch_add(1, Ordering::Relaxed) + 1, all: tasks.len() });
        }
    };
    match bench.at_once() {
        0 | 1 => worker(),
        several => std::thread::scope(|scope| {
            for _ in 0..several {
                scope.spawn(worker);
            }
        }),
    }
    let died = || MeasureError::new(Retry::Never, "a run was not made because another one failed");
    let take = |place: Mutex<Option<_>>| place.into_inner().ok().flatten();
    let mut missing = None;
    let mut paces = Vec::with_capacity(tasks.len());
    for result in results.into_iter().map(take) {
        match result {
            Some(Ok(result)) => paces.push(result),
            Some(Err(error)) => return Err(error),
            None => missing = Some(died()),
        }
    }
    missing.map_or(Ok(paces), Err)
}

fn try_run(
    bench: &dyn Bench,
    plan: &Plan,
    fame: &Fame,
    task: &Task,
) -> Result<Vec<Pace>, MeasureError> {
    let layout = &plan.experiments[task.experiment].layout;
    let mut tries = 0;
    loop {
        tries += 1;
        match bench.run(layout, fame, task.seed) {
            Err(error) if error.retry == Retry::Same && tries < TRIES && !error.interrupted => {}
            result => return result,
        }
    }
}
