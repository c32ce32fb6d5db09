//! Populations of assignments with a known optimum, as test cases for the search.

use pinwise_campaign::{Kind, NewCampaign, Record, Step, Strategy, TRIES};
use pinwise_measure::{Retry, Testbed, Thread, Unit, Workload};
use pinwise_placement::{Budget, Outcome, PlacementQuestion, PlacementSearch, StrategyName};
use pinwise_synthetic::{Disturbance, Replay};
use pinwise_topology::{
    Alike, Assignment, CpuSet, Machine, PerContext, Random, SharingTree, Space,
};
use std::time::Duration;

/// A machine, threads, and a population of performances for them.
pub(crate) struct Case {
    pub(crate) machine: Machine,
    pub(crate) workload: Workload,
    pub(crate) tree: SharingTree,
    pub(crate) population: Vec<(Assignment, f64)>,
    pub(crate) baseline: Vec<f64>,
    pub(crate) disturbance: Disturbance,
}

impl Case {
    /// Threads `R P T R P T …` on a machine of `shape`, at most one per context. Every assignment
    /// has its `performance`.
    pub(crate) fn new(
        shape: &str,
        threads: usize,
        performance: impl Fn(usize, &Assignment) -> f64,
    ) -> Self {
        Self::masked(shape, &vec![""; threads], performance)
    }

    /// Threads that keep to these lists of CPUs; "" is none.
    pub(crate) fn masked(
        shape: &str,
        masks: &[&str],
        performance: impl Fn(usize, &Assignment) -> f64,
    ) -> Self {
        let machine = Machine::from_shape(shape).unwrap();
        let tree = SharingTree::new(&machine, Alike::ByStructure);
        let mask = |list: &&str| (!list.is_empty()).then(|| CpuSet::parse_list(list).unwrap());
        let masks: Vec<Option<CpuSet>> = masks.iter().map(mask).collect();
        let space = Space::masked(tree.clone(), &masks, PerContext::AtMost(1)).unwrap();
        let population = space
            .classes()
            .enumerate()
            .map(|(rank, class)| (class.clone(), performance(rank, &class)));
        let thread = |(index, keeps_to): (usize, Option<CpuSet>)| {
            let role = ["R", "P", "T"][index % 3];
            let name = format!("ipfwd{}-{role}", index / 3);
            Thread { keeps_to, ..Thread::new(name, role, index / 3) }
        };
        Self {
            population: population.collect(),
            workload: Workload {
                name: "made up".into(),
                threads: masks.into_iter().enumerate().map(thread).collect(),
            },
            baseline: vec![80.0],
            disturbance: Disturbance::default(),
            machine,
            tree,
        }
    }

    pub(crate) fn disturbed(mut self, noise: f64, seed: u64) -> Self {
        self.disturbance = Disturbance { noise, seed, ..self.disturbance };
        self
    }

    pub(crate) fn testbed(&self) -> Replay {
        let population = self.population.iter().cloned();
        let (machine, workload) = (self.machine.clone(), self.workload.clone());
        Replay::new(
            machine,
            workload,
            Unit::rate("ops/s"),
            population,
            self.baseline.clone(),
            self.disturbance,
        )
    }

    pub(crate) fn search(&self, question: &PlacementQuestion) -> PlacementSearch {
        PlacementSearch::new(question, &self.tree, &self.workload).unwrap()
    }

    /// A campaign of a store.
    pub(crate) fn campaign(&self, question: &PlacementQuestion) -> NewCampaign {
        NewCampaign {
            kind: Kind::Place,
            parent: None,
            command: vec!["pinwise".into(), "place".into()],
            machine: self.machine.clone(),
            alike: question.alike,
            workload: self.workload.clone(),
            unit: Unit::rate("ops/s"),
            simulated: false,
            question: serde_json::to_value(question).unwrap(),
            seed: question.seed,
        }
    }

    /// A campaign without a store, which is what makes hundreds of them quick.
    pub(crate) fn run(&self, question: &PlacementQuestion) -> (Outcome, Vec<Record>) {
        self.run_on(question, &mut self.testbed())
    }

    /// The same on another testbed.
    pub(crate) fn run_on(
        &self,
        question: &PlacementQuestion,
        testbed: &mut dyn Testbed,
    ) -> (Outcome, Vec<Record>) {
        let mut search = self.search(question);
        let mut records: Vec<Record> = Vec::new();
        let mut elapsed = Duration::ZERO;
        while let Step::Measure(trial) = search.step(&records) {
            for _ in 0..TRIES {
                let outcome = testbed.measure(&trial.setting, trial.effort);
                let again = matches!(&outcome, Err(error) if error.retry == Retry::Same);
                let number = records.len() as u64;
                elapsed += outcome.as_ref().map_or(Duration::ZERO, |measured| measured.duration);
                records.push(Record { number, trial: trial.clone(), outcome, elapsed });
                if !again {
                    break;
                }
            }
        }
        (search.outcome(&Unit::rate("ops/s"), &records, None), records)
    }

    pub(crate) fn truth(&self, assignment: &Assignment) -> f64 {
        self.population.iter().find(|(class, _)| class == assignment).unwrap().1
    }

    pub(crate) fn optimum(&self) -> f64 {
        self.population.iter().map(|(_, performance)| *performance).fold(f64::MIN, f64::max)
    }

    /// Whether an assignment as good as any is announced as the best or as one of its ties.
    pub(crate) fn announces_an_optimum(&self, outcome: &Outcome) -> bool {
        outcome
            .best
            .iter()
            .chain(&outcome.ties)
            .any(|best| self.truth(&best.assignment) == self.optimum())
    }
}

pub(crate) fn question(strategy: StrategyName, budget: u64, seed: u64) -> PlacementQuestion {
    PlacementQuestion {
        per_context: Some(1),
        seed,
        ..PlacementQuestion::new(strategy, Budget::Measurements(budget))
    }
}

/// Performances between 50 and 95, all different, but for the best, 100, and one close to it.
pub(crate) fn scattered(rank: usize, _: &Assignment) -> f64 {
    match rank {
        5 => 100.0,
        2 => 99.5,
        _ => 50.0 + 45.0 * Random::new(rank as u64).unit(),
    }
}

pub(crate) fn small() -> Case {
    Case::new("2x2x2", 4, scattered)
}
