//! How well measurements of one assignment repeat: the table of docs/lab/simulator.md.
//!
//!     cargo run --release -p pinwise-lab --example repeats
//!
//! Two instances of each program run in every 60th of their 1,526 assignments. Each has 16
//! measurements of the default length, from different random starts.

use pinwise_measure::{Effort, Setting, Testbed};
use pinwise_processor::program::PacketProgram;
use pinwise_processor::{Processor, SimulatedTestbed, SimulatedWindow};
use pinwise_topology::{Alike, PerContext, SharingTree, Space};
use std::error::Error;

const INSTANCES: usize = 2;
const EVERY: usize = 60;
const MEASUREMENTS: usize = 16;

fn main() -> Result<(), Box<dyn Error>> {
    let processor = Processor::model("ultrasparc-t2")?;
    let machine = processor.machine();
    let tree = SharingTree::new(&machine, Alike::ByStructure);
    let space = Space::new(tree, 3 * INSTANCES, PerContext::AtMost(1))?;
    let trials: Vec<_> = space
        .classes()
        .step_by(EVERY)
        .flat_map(|assignment| vec![(Setting::Pinned(assignment), Effort::default()); MEASUREMENTS])
        .collect();
    println!(
        "Standard deviation of a measurement in percent, {} assignments, {MEASUREMENTS} \
         measurements each.\n",
        trials.len() / MEASUREMENTS
    );
    println!(
        "| program | cycles | starts | all | typical | most | best assignment | worst assignment |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|");
    for pipeline in PacketProgram::ALL {
        let programs = vec![pipeline; INSTANCES];
        let window = SimulatedWindow::of(&programs);
        let mut testbed =
            SimulatedTestbed::new(processor.clone(), machine.clone(), programs, window, 1)?;
        let measured = testbed.measure_all(&trials).into_iter().collect::<Result<Vec<_>, _>>()?;
        let performances: Vec<f64> =
            measured.iter().map(|measurement| measurement.performance).collect();
        let cycles: f64 =
            measured.iter().map(|measurement| measurement.duration.as_secs_f64()).sum::<f64>()
                * f64::from(processor.clock_mhz)
                * 1e6;
        let starts = cycles / window.cycles as f64 / measured.len() as f64;
        // Mean and relative deviation, from the worst assignment to the best.
        let mut by_mean: Vec<(f64, f64)> =
            performances.chunks(MEASUREMENTS).map(deviation).collect();
        by_mean.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut deviations: Vec<f64> = by_mean.iter().map(|&(_, deviation)| deviation).collect();
        let (worst, best) = (deviations[0], deviations[deviations.len() - 1]);
        deviations.sort_by(f64::total_cmp);
        let all = (deviations.iter().map(|deviation| deviation.powi(2)).sum::<f64>()
            / deviations.len() as f64)
            .sqrt();
        let (typical, most) = (deviations[deviations.len() / 2], deviations[deviations.len() - 1]);
        println!(
            "| {} | {} | {starts:.1} | {all:.2} | {typical:.2} | {most:.2} | {best:.2} | \
             {worst:.2} |",
            pipeline.name(),
            window.cycles
        );
    }
    Ok(())
}

/// Mean, and the standard deviation in percent of it.
fn deviation(values: &[f64]) -> (f64, f64) {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares: f64 = values.iter().map(|value| (value / mean - 1.0).powi(2)).sum();
    (mean, 100.0 * (squares / (values.len() - 1) as f64).sqrt())
}
