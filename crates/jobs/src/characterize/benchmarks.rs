//! The benchmarks of a characterization: their order, and the testbed that runs them.

use super::no_workload;
use pinwise_campaign::{Purpose, Record, Step, Strategy, TRIES, Trial};
use pinwise_characterization::{RoundPlan, Task};
use pinwise_measure::{
    Bench, Detail, Effort, Fame, MeasureError, Measurement, Retry, Seating, Setting, Testbed, Time,
    Unit, Workload,
};
use pinwise_topology::Machine;
use std::time::Instant;

/// The runs of a plan, in their order.
pub(super) struct PlanRuns<'a> {
    plan: &'a RoundPlan,
    tasks: Vec<Task>,
    /// The task proposed last.
    at: usize,
}

impl<'a> PlanRuns<'a> {
    pub(super) fn new(plan: &'a RoundPlan, tasks: Vec<Task>) -> Self {
        Self { plan, tasks, at: 0 }
    }

    pub(super) fn trial(&self, task: &Task) -> Trial {
        let seats = self.plan.experiments[task.experiment].layout.clone();
        Trial {
            setting: Setting::Benchmarks(Seating { seats, seed: task.seed }),
            purpose: Purpose::Other,
            effort: Effort::default(),
        }
    }
}

impl Strategy for PlanRuns<'_> {
    fn step(&mut self, history: &[Record]) -> Step {
        self.at = history.iter().filter(|record| record.outcome.is_ok()).count();
        // The loop itself refused what a run gave: the next try would be refused as well.
        if let Some(Err(error)) = history.last().map(|record| &record.outcome) {
            return Step::Fail(error.message.clone());
        }
        match self.tasks.get(self.at) {
            Some(task) => Step::Measure(self.trial(task)),
            None => Step::Stop,
        }
    }

    fn foresee(&self, most: usize) -> Vec<Trial> {
        self.tasks.iter().skip(self.at + 1).take(most).map(|task| self.trial(task)).collect()
    }
}

/// A bench as a testbed.
pub(super) struct Benchmarks<'a> {
    bench: &'a dyn Bench,
    fame: Fame,
    machine: Machine,
    workload: Workload,
    unit: Unit,
}

impl<'a> Benchmarks<'a> {
    pub(super) fn new(bench: &'a dyn Bench, fame: Fame) -> Self {
        Self {
            bench,
            fame,
            machine: bench.machine().clone(),
            workload: no_workload(),
            unit: Unit::cost(bench.unit().name()),
        }
    }

    pub(super) fn run(&self, setting: &Setting) -> Result<Measurement, MeasureError> {
        let Setting::Benchmarks(Seating { seats, seed }) = setting else {
            return Err(MeasureError::unsupported(&self.workload.name, setting));
        };
        let begin = Instant::now();
        let mut tries = 1;
        let paces = loop {
            match self.bench.run(seats, &self.fame, *seed) {
                Err(error) if error.retry.is_same() && tries < TRIES && !error.interrupted => {
                    tries += 1;
                }
                // A run that is missing ends all of them: a resumed campaign begins with it.
                Err(error) => return Err(MeasureError { retry: Retry::Never, ..error }),
                Ok(paces) => break paces,
            }
        };
        let first = paces.first().map(|pace| 1.0 / pace.time);
        let performance = first
            .ok_or_else(|| MeasureError::new(Retry::Never, "a set without programs was run"))?;
        let detail = Detail::of(&paces);
        Ok(Measurement { performance, duration: begin.elapsed(), spread: None, detail })
    }
}

impl Testbed for Benchmarks<'_> {
    fn machine(&self) -> &Machine {
        &self.machine
    }

    fn workload(&self) -> &Workload {
        &self.workload
    }

    fn unit(&self) -> &Unit {
        &self.unit
    }

    fn time(&self) -> Time {
        match self.bench.at_once() {
            0 | 1 => Time::Real,
            width => Time::Virtual { width },
        }
    }

    fn measure(&mut self, setting: &Setting, _: Effort) -> Result<Measurement, MeasureError> {
        self.run(setting)
    }

    fn measure_all(
        &mut self,
        trials: &[(Setting, Effort)],
    ) -> Vec<Result<Measurement, MeasureError>> {
        let this = &*self;
        std::thread::scope(|scope| {
            let threads: Vec<_> =
                trials.iter().map(|(setting, _)| scope.spawn(move || this.run(setting))).collect();
            let died = || Err(MeasureError::new(Retry::Never, "a run's thread died"));
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| died())).collect()
        })
    }
}
