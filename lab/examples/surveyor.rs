//! The search that looks at speed, compared with the published one on the modelled machine. `cargo
//! run --release -p pinwise-lab --example surveyor` prints the table of
//! docs/lab/fidelity-threads.md; with names of programs, their rows. Deterministic by its seeds.

use pinwise_lab::sweep::{PAIR, ParameterSweep, quantile, survey_model, whole};
use pinwise_lab::thread_reinforcer::{self, PublishedRow};
use pinwise_scheduler::{ModelProgram, Platform};
use pinwise_threads::{PROBE_SHARE, Thresholds};
use std::error::Error;

/// Searches of each program, with consecutive seeds.
const SEARCHES: u64 = 5;
/// Share of the best speed that a program's searches are wanted to lose at most.
const WITHIN: f64 = 0.02;

fn main() -> Result<(), Box<dyn Error>> {
    let Some(folder) = thread_reinforcer::folder() else { return Ok(()) };
    let platform = Platform::opteron_24();
    let thresholds = thread_reinforcer::thresholds(&platform)?;
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let mut rows = thread_reinforcer::published(&std::fs::read_to_string(
        folder.join("thread_reinforcer.csv"),
    )?)?;
    rows.retain(|row| wanted.is_empty() || wanted.contains(&row.program));
    println!(
        "| program | best of the sweep | chosen, {SEARCHES} searches | loss, mean | median | worst \
         | search, longest | published: chosen | loss | search |"
    );
    println!("| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    let compared: Vec<Result<Compared, String>> = std::thread::scope(|scope| {
        let compare = |row| compare(&platform, thresholds, row).map_err(|error| error.to_string());
        let jobs: Vec<_> = rows.iter().map(|row| scope.spawn(move || compare(row))).collect();
        jobs.into_iter()
            .map(|job| job.join().unwrap_or_else(|_| Err("a comparison broke off".to_owned())))
            .collect()
    });
    let compared = compared.into_iter().collect::<Result<Vec<Compared>, String>>()?;
    compared.iter().for_each(|row| println!("{}", row.line));
    let sum = |count: fn(&Compared) -> usize| compared.iter().map(count).sum::<usize>();
    println!(
        "\n{} of {} are within {} % of the best, in the mean and the median of {SEARCHES} \
         searches. They take at most {:.1} % of the parallel run.",
        sum(|row| usize::from(row.within)),
        rows.len(),
        WITHIN * 100.0,
        PROBE_SHARE * 100.0
    );
    let searches = sum(|row| row.losses.len());
    let over = sum(|row| row.losses.iter().filter(|loss| **loss > WITHIN).count());
    let mean = compared.iter().flat_map(|row| &row.losses).sum::<f64>() / searches as f64;
    println!(
        "The {searches} searches lose {:.2} % in the mean, {over} of them more than {} %.",
        mean * 100.0,
        WITHIN * 100.0
    );
    println!("Their intervals hold the speed-up of the sweep in {}.", sum(|row| row.held));
    Ok(())
}

/// What came of one program's searches.
struct Compared {
    line: String,
    /// Share of the best speed that each lost.
    losses: Vec<f64>,
    /// They are within [`WITHIN`] of the best, in the mean and the median, and took no longer than
    /// they may.
    within: bool,
    /// Those whose interval of the speed-up, 90 %, holds that of the sweep.
    held: usize,
}

fn compare(
    platform: &Platform,
    thresholds: Thresholds,
    row: &PublishedRow,
) -> Result<Compared, Box<dyn Error>> {
    let program = ModelProgram::built_in(&row.program)?;
    let sequential = whole(&program)?;
    let mut sweep = ParameterSweep::new(platform, &program, PAIR)?;
    let (best_n, best) = sweep.best();
    let reinforcer =
        thread_reinforcer::choice(platform, &program, thresholds, thread_reinforcer::SEARCHES)?;
    let of_published = sweep.speed(reinforcer.parameter)?;
    let (mut losses, mut shares, mut chosen, mut held) = (Vec::new(), Vec::new(), Vec::new(), 0);
    for seed in 1..=SEARCHES {
        let (found, advice) = survey_model(platform, &program, seed)?;
        let speed = sweep.speed(found.parameter)?;
        losses.push((1.0 - speed / best).max(0.0));
        shares.push(found.cost().as_secs_f64() * speed / sequential);
        chosen.push(row.reported(&program, found.parameter).to_string());
        let told = advice.over_sequential(program.speedup_of_progress()).gain;
        held += usize::from(told.low <= speed && speed <= told.high);
    }
    let mean = losses.iter().sum::<f64>() / losses.len() as f64;
    let line = format!(
        "| {} | {} ({best:.2}) | {} | {:.1} % | {:.1} % | {:.1} % | {:.1} % | {} | {:.1} % | {:.1} \
         % |",
        program.name,
        row.reported(&program, best_n),
        chosen.join(" "),
        mean * 100.0,
        quantile(&losses, 0.5) * 100.0,
        quantile(&losses, 1.0) * 100.0,
        quantile(&shares, 1.0) * 100.0,
        row.reported(&program, reinforcer.parameter),
        (1.0 - of_published / best).max(0.0) * 100.0,
        reinforcer.cost.as_secs_f64() * of_published / sequential * 100.0,
    );
    let within =
        mean.max(quantile(&losses, 0.5)) <= WITHIN && quantile(&shares, 1.0) <= PROBE_SHARE;
    Ok(Compared { line, losses, within, held })
}
