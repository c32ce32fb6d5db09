//! What the search finds, and whether its bound holds, where the truth is known. Two instances of a
//! packet program on the simulated UltraSPARC T2 have 1,526 different assignments, which are all
//! measured first.
//!
//!     cargo run --release -p pinwise-lab --example simulated -- 50 intadd intmul
//!
//! Each search then runs RUNS times on that population, each time with another seed. The noise is
//! that of one measurement of the default length.

use pinwise_campaign::{Record, Step, Strategy};
use pinwise_measure::{Effort, Setting, Testbed};
use pinwise_placement::{Budget, Outcome, PlacementQuestion, PlacementSearch, StrategyName};
use pinwise_processor::program::PacketProgram;
use pinwise_processor::{Processor, SimulatedTestbed, SimulatedWindow};
use pinwise_synthetic::{Disturbance, Replay};
use pinwise_topology::{Alike, Assignment, PerContext, SharingTree, Space};
use std::error::Error;
use std::time::Duration;

/// Measurements of each assignment in the population.
const REPEATS: usize = 2;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [runs, names @ ..] = arguments.as_slice() else {
        return Err("usage: simulated RUNS PROGRAM...".into());
    };
    let runs: u64 = runs.parse()?;
    println!(
        "| program | one measurement \u{b1} | search | measurements | optimum announced | loss, \
         mean | loss, worst | bound holds | bound above best, median |"
    );
    println!("|---|---:|---|---:|---:|---:|---:|---:|---:|");
    names.iter().try_for_each(|name| program(name, runs))
}

fn program(name: &str, runs: u64) -> Result<(), Box<dyn Error>> {
    let pipeline = PacketProgram::named(name)
        .ok_or("there is no such program; pinwise workload --list names them")?;
    let processor = Processor::model("ultrasparc-t2")?;
    let machine = processor.machine();
    let window = SimulatedWindow::of(&[pipeline; 2]);
    let mut testbed =
        SimulatedTestbed::new(processor, machine.clone(), vec![pipeline; 2], window, 1)?;
    let tree = SharingTree::new(&machine, Alike::ByStructure);
    let assignments: Vec<Assignment> =
        Space::new(tree.clone(), 6, PerContext::AtMost(1))?.classes().collect();
    let trials: Vec<_> = assignments
        .iter()
        .flat_map(|assignment| {
            vec![(Setting::Pinned(assignment.clone()), Effort::default()); REPEATS]
        })
        .collect();
    let measured = testbed.measure_all(&trials).into_iter().collect::<Result<Vec<_>, _>>()?;
    let unpinned = testbed.measure_all(&vec![(Setting::Unpinned, Effort::default()); 50]);
    let unpinned: Vec<f64> =
        unpinned.into_iter().filter_map(Result::ok).map(|window| window.performance).collect();
    let mut squares = 0.0;
    let mut population = Vec::new();
    for (assignment, windows) in assignments.iter().zip(measured.chunks(REPEATS)) {
        let mean = windows.iter().map(|window| window.performance).sum::<f64>() / REPEATS as f64;
        squares +=
            windows.iter().map(|window| (window.performance / mean - 1.0).powi(2)).sum::<f64>();
        population.push((assignment.clone(), mean));
    }
    let noise = (squares / ((REPEATS - 1) * population.len()) as f64).sqrt();
    let optimum = population.iter().map(|(_, performance)| *performance).fold(f64::MIN, f64::max);
    for (strategy, budget) in [
        (StrategyName::Auto, 4000),
        (StrategyName::Random, 1000),
        (StrategyName::Climb, 400),
        (StrategyName::Auto, 400),
    ] {
        let truth = |assignment: &Assignment| {
            population
                .iter()
                .find(|(known, _)| known == assignment)
                .map_or(f64::NAN, |(_, performance)| *performance)
        };
        let (mut found, mut held, mut bounds) = (0, 0, Vec::new());
        let mut losses = Vec::new();
        for seed in 1..=runs {
            let disturbance = Disturbance { noise, seed, ..Disturbance::default() };
            let unit = testbed.unit().clone();
            let known = population.iter().cloned();
            let mut replay = Replay::new(
                machine.clone(),
                testbed.workload().clone(),
                unit,
                known,
                unpinned.clone(),
                disturbance,
            );
            let outcome = search(&question(strategy, budget, seed), &tree, &mut replay)?;
            let announced =
                outcome.best.iter().chain(&outcome.ties).map(|best| truth(&best.assignment));
            found += u64::from(announced.fold(f64::MIN, f64::max) == optimum);
            losses
                .extend(outcome.best.as_ref().map(|best| 1.0 - truth(&best.assignment) / optimum));
            if let (Some(high), Some(gap)) = (outcome.bound.upb_high, outcome.bound.gap_high) {
                held += u64::from(high >= optimum);
                bounds.push(gap);
            }
        }
        bounds.sort_by(f64::total_cmp);
        println!(
            "| {name} | {:.2} % | {strategy:?} | {budget} | {found} of {runs} | {:.2} % | {:.2} % \
             | {held} of {} | {} |",
            100.0 * noise,
            100.0 * losses.iter().sum::<f64>() / losses.len() as f64,
            100.0 * losses.iter().copied().fold(0.0, f64::max),
            bounds.len(),
            bounds
                .get(bounds.len() / 2)
                .map_or("-".to_owned(), |gap| format!("{:.1} %", 100.0 * gap))
        );
    }
    Ok(())
}

fn question(strategy: StrategyName, budget: u64, seed: u64) -> PlacementQuestion {
    PlacementQuestion {
        per_context: Some(1),
        seed,
        ..PlacementQuestion::new(strategy, Budget::Measurements(budget))
    }
}

/// A campaign without a store.
fn search(
    question: &PlacementQuestion,
    tree: &SharingTree,
    testbed: &mut Replay,
) -> Result<Outcome, Box<dyn Error>> {
    let mut search = PlacementSearch::new(question, tree, testbed.workload())?;
    let mut records: Vec<Record> = Vec::new();
    let mut elapsed = Duration::ZERO;
    while let Step::Measure(trial) = search.step(&records) {
        let outcome = testbed.measure(&trial.setting, trial.effort);
        elapsed += outcome.as_ref().map_or(Duration::ZERO, |measured| measured.duration);
        records.push(Record { number: records.len() as u64, trial, outcome, elapsed });
    }
    Ok(search.outcome(testbed.unit(), &records, None))
}
