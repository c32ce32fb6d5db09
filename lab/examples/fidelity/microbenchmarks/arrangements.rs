//! Five copies of `L2cache` in three thread assignments (section 4.3): each copy slows down alike.

use pinwise_processor::program::PublishedBenchmark;
use pinwise_processor::published_experiments::BenchmarkExperiment;
use pinwise_processor::{Chip, ClockMode, PlacedThread, PlacementError, Processor, ProgramSet};
use pinwise_topology::Random;
use std::error::Error;
use std::fmt::Write;

/// The contexts of each assignment, the first of them R. A pipe has four contexts, a core eight.
const ASSIGNMENTS: [(&str, [usize; 5]); 3] = [
    ("1: all S in one pipe of core 1", [0, 8, 9, 10, 11]),
    ("2: two S in each pipe of core 1", [0, 8, 9, 12, 13]),
    ("3: an S in each pipe of cores 1 and 2", [0, 8, 12, 16, 20]),
];
const PUBLISHED: f64 = 9.2;
const SETS: u64 = 4;
/// Start offsets are below this many cycles.
const OFFSETS: u64 = 1000;
/// As for arrays that do not fit the second level ([`BenchmarkExperiment`]).
const SETTLE: u64 = 60_000_000;
const MEASURE: u64 = 100_000_000;

pub(super) fn section(processor: &Processor) -> Result<String, Box<dyn Error>> {
    let alone = BenchmarkExperiment::alone(PublishedBenchmark::L2cache).cpi(processor, 1)?.mean();
    let mut text = format!(
        "\n### Five copies of L2cache in three assignments (section 4.3)\n\nOne copy, *R*, is \
         alone on core 0. The others are *S*. The paper says that every copy is \
         {PUBLISHED}\ntimes slower, in every assignment. *Agrees*: each copy is within 5 %. The \
         figures are *free*. The\nrange is over {SETS} sets of start offsets, and over the copies \
         S.\n\n\
         | assignment | R | S | \
         agrees |\n|---|---:|---:|---|\n"
    );
    for (name, contexts) in ASSIGNMENTS {
        let mut slowdowns = [(f64::MAX, f64::MIN); 2];
        for set in 0..SETS {
            for (copy, cpi) in cpis(processor, contexts, set)?.into_iter().enumerate() {
                let (least, most) = &mut slowdowns[copy.min(1)];
                (*least, *most) = (least.min(cpi / alone), most.max(cpi / alone));
            }
        }
        let agrees = slowdowns.iter().all(|(least, most)| {
            [least, most].iter().all(|one| (*one / PUBLISHED - 1.0).abs() <= 0.05)
        });
        let [r, s] = slowdowns.map(|(least, most)| format!("{least:.2}–{most:.2}"));
        writeln!(text, "| {name} | {r} | {s} | {} |", if agrees { "yes" } else { "no" })?;
    }
    Ok(text)
}

/// Cycles per instruction of each copy.
fn cpis(processor: &Processor, contexts: [usize; 5], set: u64) -> Result<Vec<f64>, PlacementError> {
    let programs = (0..5).map(|copy| PublishedBenchmark::L2cache.program(copy)).collect();
    let mut random = Random::new(set);
    let placed = contexts.map(|context| PlacedThread {
        context,
        start: if set == 0 { 0 } else { random.below(OFFSETS) },
        seed: 0,
    });
    let programs = ProgramSet::independent(programs);
    let mut chip = Chip::new(processor, &programs, &placed, ClockMode::Events)?;
    let instructions = |chip: &Chip| -> Vec<u64> {
        chip.counters().iter().map(|counters| counters.instructions).collect()
    };
    chip.run(SETTLE);
    let before = instructions(&chip);
    chip.run(MEASURE);
    let after = instructions(&chip);
    Ok(after
        .iter()
        .zip(before)
        .map(|(after, before)| MEASURE as f64 / (after - before) as f64)
        .collect())
}
