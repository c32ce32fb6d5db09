//! The search that looks at speed on the modelled machine, beside the published one: `cargo run --release -p pinwise-threads --example surveyor`.
//! Prints the table of docs/FIDELITY-THREADS.md; with names of programs, their rows. Deterministic by its seeds.

#[allow(dead_code)]
mod published;
mod sweep;

use pinwise_scheduler::{Platform, Program};
use pinwise_threads::{SHARE, Thresholds};
use published::Published;
use std::error::Error;
use sweep::{PAIR, Sweep, quantile, survey_model, whole};

/// Searches of each program, with consecutive seeds.
const SEARCHES: u64 = 5;

fn main() -> Result<(), Box<dyn Error>> {
    let Some(folder) = published::folder() else { return Ok(()) };
    let platform = Platform::opteron_24();
    let thresholds = published::thresholds(&platform)?;
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let mut rows = published::published(&std::fs::read_to_string(folder.join("thread_reinforcer.csv"))?)?;
    rows.retain(|row| wanted.is_empty() || wanted.contains(&row.program));
    println!(
        "| program | best of the sweep | chosen, {SEARCHES} searches | loss, mean | median | worst | search, longest | published: chosen | loss | search |"
    );
    println!("| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    let compared: Vec<Result<(String, bool), String>> = std::thread::scope(|scope| {
        let compare = |row| compare(&platform, thresholds, row).map_err(|error| error.to_string());
        let jobs: Vec<_> = rows.iter().map(|row| scope.spawn(move || compare(row))).collect();
        jobs.into_iter().map(|job| job.join().unwrap_or_else(|_| Err("a comparison broke off".to_owned()))).collect()
    });
    let mut within = 0;
    for line in compared {
        let (line, good) = line?;
        println!("{line}");
        within += u32::from(good);
    }
    println!(
        "\n{within} of {} are within 2 % of the best in the mean and in the median of {SEARCHES} searches, with at most {:.1} % of the parallel run.",
        rows.len(),
        SHARE * 100.0
    );
    Ok(())
}

/// One program's line, and whether its searches are within 2 % of the best, in the mean and in the median, and took no longer than they may.
fn compare(platform: &Platform, thresholds: Thresholds, row: &Published) -> Result<(String, bool), Box<dyn Error>> {
    let program = Program::built_in(&row.program)?;
    let sequential = whole(&program)?;
    let mut sweep = Sweep::new(platform, &program, PAIR)?;
    let (best_n, best) = sweep.best();
    let reinforcer = published::choice(platform, &program, thresholds, published::SEARCHES)?;
    let of_published = sweep.speed(reinforcer.parameter)?;
    let (mut losses, mut shares, mut chosen) = (Vec::new(), Vec::new(), Vec::new());
    for seed in 1..=SEARCHES {
        let found = survey_model(platform, &program, seed)?;
        let speed = sweep.speed(found.parameter)?;
        losses.push((1.0 - speed / best).max(0.0));
        shares.push(found.cost().as_secs_f64() * speed / sequential);
        chosen.push(row.reported(&program, found.parameter).to_string());
    }
    let mean = losses.iter().sum::<f64>() / losses.len() as f64;
    let line = format!(
        "| {} | {} ({best:.2}) | {} | {:.1} % | {:.1} % | {:.1} % | {:.1} % | {} | {:.1} % | {:.1} % |",
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
    Ok((line, mean.max(quantile(&losses, 0.5)) <= 0.02 && quantile(&shares, 1.0) <= SHARE))
}
