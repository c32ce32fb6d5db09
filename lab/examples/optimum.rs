//! How fast the best predicted assignment is found and proven: `cargo run --release -p
//! pinwise-lab --example optimum -- [NUMBER…]`.
//!
//! Seconds are CPU time, and they also end the search. So the load of the machine changes nothing.
//!
//! 24 threads in 8 instances on 8x2x4. Workloads 0 to 11 are of one application, on the testbed of
//! made-up contention. Workloads 12 to 15 are of two applications and 16 to 19 of four. Threads
//! slow each other depending on who shares their pipe and core. With four, threads are taken to
//! interfere within a pipe. Within a core, 12 kinds of threads would have 9.9 million entries.

use pinwise_measure::{Effort, Testbed, Thread, Workload};
use pinwise_prediction::{
    BaseSpace, BaseTable, BlackBox, CoreLocal, Experiment, PlacedInstance, ProofProgress,
    SlowdownTable, ThreadKinds,
};
use pinwise_synthetic::{Contention, Demand, Disturbance};
use pinwise_topology::{Alike, DomainKind, Machine, PerContext, Random, SharingTree, Space};
use std::error::Error;

/// Seconds of work after which the search for a workload ends, so that all of it takes less than
/// 10.
const LIMIT: f64 = 9.5;
const ROLES: [&str; 3] = ["R", "P", "T"];
const INSTANCES: usize = 8;

fn main() -> Result<(), Box<dyn Error>> {
    let chosen =
        std::env::args().skip(1).map(|number| number.parse()).collect::<Result<Vec<u64>, _>>()?;
    let machine = Machine::from_shape("8x2x4")?;
    let tree = SharingTree::new(&machine, Alike::ByStructure);
    let space = Space::new(tree.clone(), 3 * INSTANCES, PerContext::AtMost(1))?;
    println!(
        "| workload | best | no more than | gap | | steps | time |\n|--:|--:|--:|--:|---|--:|--:|"
    );
    for number in if chosen.is_empty() { (0..20).collect() } else { chosen } {
        let mut random = Random::new(1000 + number);
        let blackbox = match number {
            0..12 => alone(&machine, &tree, &mut random)?,
            12..16 => mixed(&tree, 2, DomainKind::Package, &mut random)?,
            _ => mixed(&tree, 4, DomainKind::Core, &mut random)?,
        };
        let start = worked()?;
        let mut go_on = |_: &ProofProgress| worked().is_ok_and(|now| now - start < LIMIT);
        let optima = blackbox.optima(&space, 1, &mut Random::new(1), &mut go_on);
        println!(
            "| {number} | {:.6} | {:.6} | {:.3} % | {} | {} | {:.1} s |",
            optima.best().map_or(0.0, |best| best.performance),
            optima.upper,
            100.0 * optima.gap(),
            if optima.complete { "exact" } else { "ended" },
            optima.steps,
            worked()? - start
        );
    }
    Ok(())
}

/// Seconds for which a processor has worked for this thread
/// (Documentation/scheduler/sched-stats.rst of Linux).
fn worked() -> Result<f64, Box<dyn Error>> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(text.split(' ').next().ok_or("no time in it")?.parse::<f64>()? * 1e-9)
}

/// The tables of `thread_kinds`, by what the watched instance of each experiment does.
fn tables<E: Error + 'static>(
    tree: &SharingTree,
    thread_kinds: ThreadKinds,
    level: DomainKind,
    mut measure: impl FnMut(&Experiment, &ThreadKinds) -> Result<f64, E>,
) -> Result<BlackBox, Box<dyn Error>> {
    let local = CoreLocal::new(tree, level, 1)?;
    let mut base = Vec::new();
    for application in 0..thread_kinds.applications() {
        base.push(BaseTable::fill(
            BaseSpace::new(tree, &thread_kinds, application, 1)?,
            |assignment| {
                let placed = PlacedInstance { application, leaves: assignment.leaves().to_vec() };
                measure(&Experiment { instances: vec![placed] }, &thread_kinds)
            },
        )?);
    }
    let mut slowdown = SlowdownTable::new(&thread_kinds, &local).ok_or("too many layouts")?;
    slowdown.fill(&thread_kinds, &local, |experiment| measure(experiment, &thread_kinds))?;
    Ok(BlackBox::new(thread_kinds, local, base, slowdown))
}

/// One application.
fn alone(
    machine: &Machine,
    tree: &SharingTree,
    random: &mut Random,
) -> Result<BlackBox, Box<dyn Error>> {
    let mut between = |low: f64, high: f64| low + (high - low) * random.unit();
    let mut each = |low: f64, high: f64| (0..3).map(|_| between(low, high)).collect::<Vec<f64>>();
    let time = each(0.6, 1.6);
    let burden = vec![each(0.05, 0.4), each(0.0, 0.15), each(0.0, 0.006)];
    let distance = each(0.0, 0.12)[0];
    let demand = Demand { time, burden, distance, near: 1, cap: None, needle: None };
    let mut testbed =
        Contention::new(machine.clone(), INSTANCES, &ROLES, demand, Disturbance::default());
    let thread_kinds = ThreadKinds::new(testbed.workload());
    tables(tree, thread_kinds, DomainKind::Package, |experiment, thread_kinds| {
        let measured = testbed.measure(&experiment.setting(thread_kinds), Effort::default());
        measured.map(|measured| measured.performance)
    })
}

/// Several applications, as many instances of each.
fn mixed(
    tree: &SharingTree,
    applications: usize,
    level: DomainKind,
    random: &mut Random,
) -> Result<BlackBox, Box<dyn Error>> {
    let threads = (0..3 * INSTANCES).map(|index| {
        Thread::new(
            format!("t{index}"),
            format!("{}{}", ROLES[index % 3], index / 3 % applications),
            index / 3,
        )
    });
    let thread_kinds =
        ThreadKinds::new(&Workload { name: "a mix".into(), threads: threads.collect() });
    let mut each = |low: f64, high: f64| -> Vec<f64> {
        (0..3 * applications).map(|_| low + (high - low) * random.unit()).collect()
    };
    let (time, near, far) = (each(0.6, 1.6), each(0.05, 0.4), each(0.0, 0.15));
    let distance = each(0.0, 0.12)[0];
    tables(tree, thread_kinds, level, |experiment, thread_kinds| {
        let placed = |placed: &PlacedInstance| {
            thread_kinds.roster(placed.application).into_iter().zip(placed.leaves.clone()).collect()
        };
        let instances: Vec<Vec<(usize, u32)>> = experiment.instances.iter().map(placed).collect();
        let burden = |leaf: u32| -> f64 {
            let others = instances
                .iter()
                .flatten()
                .filter(|(_, other)| *other != leaf && other / 8 == leaf / 8);
            others
                .map(|(kind, other)| if other / 4 == leaf / 4 { near[*kind] } else { far[*kind] })
                .sum()
        };
        let slowest = instances[0]
            .iter()
            .map(|(kind, leaf)| time[*kind] * (1.0 + burden(*leaf)))
            .fold(0.0, f64::max);
        let apart = instances[0].windows(2).filter(|pair| pair[0].1 / 8 != pair[1].1 / 8).count();
        Ok::<f64, std::convert::Infallible>(1.0 / (slowest + distance * apart as f64))
    })
}
