//! Fits numbers of a description to the published speed-ups: `cargo run --release -p pinwise-lab
//! --example fit -- PROGRAM NUMBER...`.
//!
//! It varies the named numbers (`serial`, `work_ms`, ...), one after the other and by shrinking
//! factors. It minimises the error of the speed-up at two published numbers of threads: the best,
//! and the search's choice. A number of threads that is faster than the published best counts as
//! error too. It looks at nothing else: no profile, no search, no threshold. It prints the
//! description with the fitted numbers.

use pinwise_scheduler::{FittedCosts, ModelProgram, Platform, speedup};
use std::error::Error;

/// An error to be content with: speed-ups within 1 %, no other number of threads faster by 0.3 %.
const CLOSE: f64 = 1e-4;

/// A published speed-up.
struct Target {
    n: u32,
    speedup: f64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().ok_or("which program? facesim, ferret, ...")?;
    let vary: Vec<String> = arguments.collect();
    let mut program = match name.strip_suffix(".toml") {
        Some(_) => ModelProgram::parse(&std::fs::read_to_string(&name)?)?,
        None => ModelProgram::built_in(&name)?,
    };
    let targets = published(&program)?;
    let platform = Platform::opteron_24();
    let mut best = error(&platform, &program, &targets)?;
    eprintln!("begins with error {best:.5}");
    'search: for factor in [1.6, 1.25, 1.1, 1.04] {
        for _ in 0..2 {
            for number in &vary {
                if best < CLOSE {
                    break 'search;
                }
                for change in [factor, 1.0 / factor] {
                    while let Some(candidate) = changed(&program, number, change)? {
                        let found = error(&platform, &candidate, &targets)?;
                        if found >= best * 0.999 {
                            break;
                        }
                        (best, program) = (found, candidate);
                        eprintln!("{best:.5} {number} x {change:.3}");
                    }
                }
            }
        }
    }
    for target in &targets {
        let (mean, _) = mean_speedup(&platform, &program, target.n)?;
        eprintln!("n = {}: {mean:.2}, published {}", target.n, target.speedup);
    }
    println!("{}", toml::to_string(&program.fitted)?);
    Ok(())
}

fn published(program: &ModelProgram) -> Result<Vec<Target>, Box<dyn Error>> {
    let path =
        pinwise_synthetic::published("thread_reinforcer.csv").ok_or("no published figures")?;
    let table = std::fs::read_to_string(path)?;
    let row = table
        .lines()
        .find(|line| line.starts_with(&format!("{},", program.name)))
        .ok_or("not in the table")?;
    let fields: Vec<&str> = row.split(',').collect();
    // The paper counts all threads of PARSEC programs (its Table II) and the parameter of the
    // others.
    let parameter = |threads: &str| -> Result<u32, Box<dyn Error>> {
        let threads: u32 = threads.parse()?;
        let fits = |&n: &u32| {
            if program.suite == "PARSEC" { program.threads(n) <= threads } else { n <= threads }
        };
        Ok((1..=threads).rev().find(fits).unwrap_or(1))
    };
    let mut targets = vec![
        Target { n: parameter(fields[2])?, speedup: fields[3].parse()? },
        Target { n: parameter(fields[4])?, speedup: fields[5].parse()? },
    ];
    if program.name == "swaptions" {
        // "from 20 for 25 threads to 21.9 for 33 threads" (section II.D)
        targets.push(Target { n: 24, speedup: 20.0 });
    }
    Ok(targets)
}

fn error(
    platform: &Platform,
    program: &ModelProgram,
    targets: &[Target],
) -> Result<f64, Box<dyn Error>> {
    let mut error = 0.0;
    for target in targets {
        let (mean, _) = mean_speedup(platform, program, target.n)?;
        error += (mean / target.speedup - 1.0).powi(2);
    }
    let (best, _) = mean_speedup(platform, program, targets[0].n)?;
    for threads in [8, 12, 20, 24, 28, 32, 40] {
        let (other, _) = mean_speedup(platform, program, program.parameter(threads))?;
        error += (other / best - 1.0).max(0.0).powi(2) * 10.0;
    }
    Ok(error)
}

/// Over two runs, and the number of them.
fn mean_speedup(
    platform: &Platform,
    program: &ModelProgram,
    n: u32,
) -> Result<(f64, u64), Box<dyn Error>> {
    const RUNS: u64 = 2;
    let mut sum = 0.0;
    for seed in 0..RUNS {
        sum += speedup(platform, program, n, seed)?;
    }
    Ok((sum / RUNS as f64, RUNS))
}

/// The program with one fitted number multiplied; `None` if that makes no sense.
fn changed(
    program: &ModelProgram,
    number: &str,
    factor: f64,
) -> Result<Option<ModelProgram>, Box<dyn Error>> {
    let mut table = toml::Table::try_from(&program.fitted)?;
    let value = match number.split_once('/') {
        None => table.get_mut(number),
        Some((list, place)) => {
            let place: usize = place.parse()?;
            table
                .get_mut(list)
                .and_then(toml::Value::as_array_mut)
                .and_then(|list| list.get_mut(place))
        }
    };
    let value = value.ok_or_else(|| format!("no fitted number '{number}'"))?;
    *value = toml::Value::Float(value.as_float().ok_or("not a number")? * factor);
    let fitted: FittedCosts = table.try_into()?;
    let candidate = ModelProgram { fitted, ..program.clone() };
    Ok(ModelProgram::parse(&toml::to_string(&candidate)?).ok())
}
