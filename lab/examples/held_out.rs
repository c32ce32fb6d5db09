//! The search that looks at speed on programs that a seed draws: `cargo run --release -p
//! pinwise-lab --example held_out`. Prints a table of docs/lab/fidelity-threads.md; with `--each`
//! also every search. Programs of six kinds, drawn from ranges about as wide as those of the
//! paper's sixteen descriptions. Deterministic by its seeds; takes some ten minutes of CPU time.

use pinwise_lab::sweep::{PAIR, ParameterSweep, quantile, survey_model, whole};
use pinwise_scheduler::{
    FittedCosts, ForkJoin, ModelProgram, Pipeline, Platform, Stage, Structure,
};
use pinwise_threads::{Interval, PROBE_SHARE};
use pinwise_topology::Random;
use std::error::Error;

/// What keeps a program from being n times as fast with n threads.
const KINDS: [&str; 6] = ["serial", "memory", "io", "locks", "pieces", "pipeline"];
/// Programs drawn of each kind.
const EACH: usize = 5;
/// The seed they are drawn with, the first one tried.
const SEED: u64 = 20_261_122;
/// Searches of each program, with consecutive seeds.
const SEARCHES: u64 = 4;
/// Fewer threads may cost this share of the best speed.
const TOLERANCE: f64 = 0.01;
/// Relative standard error that the speeds of a sweep should have, and runs that may be spent on
/// each.
const ERROR: f64 = 0.01;
const MOST_RUNS: u64 = 16;
/// Runs that show how far single ones are off.
const RUNS_TO_TELL: u64 = 8;
/// Runs of the best and the chosen numbers, for each of the sweep's.
const ANEW: u64 = 4;

/// A program of a kind.
struct Drawn {
    kind: &'static str,
    program: ModelProgram,
}

/// A search of a program.
struct Searched {
    kind: &'static str,
    /// Share of the best speed that its choice loses.
    loss: f64,
    /// Its time, of the parallel run's.
    share: f64,
    /// Relative standard error of the speeds that the loss is a ratio of.
    error: f64,
    /// Probes it made.
    probes: usize,
    /// The interval of its answer, 90 %, holds the fewest threads within the tolerance of the
    /// best.
    held: bool,
    /// Those of its speed-up and of its gain over the least number it probed hold them.
    speedup_held: bool,
    gain_held: bool,
}

fn main() -> Result<(), Box<dyn Error>> {
    let platform = Platform::opteron_24();
    let mut random = Random::new(SEED);
    let programs: Vec<Drawn> =
        (0..EACH * KINDS.len()).map(|index| drawn(index, &mut random)).collect();
    let each = std::env::args().any(|word| word == "--each");
    let searched: Vec<Result<Vec<Searched>, String>> = std::thread::scope(|scope| {
        let search = |drawn| search(&platform, drawn, each).map_err(|error| error.to_string());
        let jobs: Vec<_> =
            programs.iter().map(|drawn| scope.spawn(move || search(drawn))).collect();
        jobs.into_iter()
            .map(|job| job.join().unwrap_or_else(|_| Err("a search broke off".to_owned())))
            .collect()
    });
    let searched: Vec<Searched> =
        searched.into_iter().collect::<Result<Vec<_>, String>>()?.into_iter().flatten().collect();
    println!(
        "| what limits it | searches | loss, median | nine of ten | worst | speeds known to | \
         intervals that hold the fewest | probes, median | fewest | search, longest |"
    );
    println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    for kind in KINDS {
        println!("{}", row(kind, searched.iter().filter(|one| one.kind == kind)));
    }
    println!("{}", row("all", searched.iter()));
    let over = searched.iter().filter(|one| one.share > PROBE_SHARE).count();
    println!(
        "\n{over} of {} searches took more than {:.1} % of the parallel run.",
        searched.len(),
        PROBE_SHARE * 100.0
    );
    let held = |holds: fn(&Searched) -> bool| searched.iter().filter(|one| holds(one)).count();
    println!(
        "Their intervals hold the speed-up in {} and the gain over the least number that was \
         probed in {}.",
        held(|one| one.speedup_held),
        held(|one| one.gain_held)
    );
    Ok(())
}

fn row<'a>(name: &str, searched: impl Iterator<Item = &'a Searched> + Clone) -> String {
    let of = |value: fn(&Searched) -> f64, share: f64| {
        quantile(&searched.clone().map(value).collect::<Vec<_>>(), share)
    };
    let loss = |share: f64| of(|one| one.loss, share) * 100.0;
    let probes = |share: f64| of(|one| one.probes as f64, share);
    format!(
        "| {name} | {} | {:.1} % | {:.1} % | {:.1} % | {:.1} % | {} | {:.0} | {:.0} | {:.1} % |",
        searched.clone().count(),
        loss(0.5),
        loss(0.9),
        loss(1.0),
        of(|one| one.error, 0.5) * 100.0,
        searched.clone().filter(|one| one.held).count(),
        probes(0.5),
        probes(0.0),
        of(|one| one.share, 1.0) * 100.0
    )
}

/// The searches of one program. The best of many numbers measured with noise is better by luck,
/// too. It and the chosen one are measured again, longer.
fn search(platform: &Platform, drawn: &Drawn, each: bool) -> Result<Vec<Searched>, Box<dyn Error>> {
    let Drawn { kind, program } = drawn;
    let own = program.parameter(platform.contexts() as u32);
    let runs = (0..RUNS_TO_TELL).map(|seed| {
        ParameterSweep::at(platform, program, seed..seed + 1, std::iter::empty())?.speed(own)
    });
    let speeds = runs.collect::<Result<Vec<f64>, Box<dyn Error>>>()?;
    let deviation = relative_deviation(&speeds);
    let runs = ((deviation / ERROR).powi(2).ceil() as u64).clamp(PAIR.end - PAIR.start, MOST_RUNS);
    let sweep = ParameterSweep::new(platform, program, PAIR.start..PAIR.start + runs)?;
    let mut anew =
        ParameterSweep::at(platform, program, 1000..1000 + runs * ANEW, std::iter::empty())?;
    let ((best_n, _), (fewest, _)) = (sweep.best(), sweep.fewest(TOLERANCE));
    let best = anew.speed(best_n)?;
    let error = deviation / ((runs * ANEW) as f64).sqrt();
    let mut all = Vec::new();
    for seed in 1..=SEARCHES {
        let (found, advice) = survey_model(platform, program, seed)?;
        let speed = anew.speed(found.parameter)?;
        let share = found.cost().as_secs_f64() * speed / whole(program)?;
        let loss = (1.0 - speed / best).max(0.0);
        let (low, high) = advice.between;
        let held = (low..=high).contains(&program.threads(fewest));
        let holds =
            |interval: Interval<f64>, truth: f64| interval.low <= truth && truth <= interval.high;
        let reference = advice.reference.map_or(1, |threads| program.parameter(threads));
        let gain_held = holds(advice.gain, speed / anew.speed(reference)?);
        let speedup_held =
            holds(advice.clone().over_sequential(program.speedup_of_progress()).gain, speed);
        let probes = found.attempts.len();
        if each {
            let ended = advice.ended;
            eprintln!(
                "{}: best {best_n} ({best:.2}), fewest {fewest}, {runs} runs; {}, {:.1} %, \
                 {probes} probes, {ended:?}",
                program.name,
                found.parameter,
                loss * 100.0
            );
        }
        all.push(Searched { kind, loss, share, error, probes, held, speedup_held, gain_held });
    }
    Ok(all)
}

/// Standard deviation relative to the mean.
fn relative_deviation(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares: f64 = values.iter().map(|value| (value / mean - 1.0).powi(2)).sum();
    (squares / (values.len() - 1) as f64).sqrt()
}

/// The program with that index. What is no part of its kind is drawn too, so small that it seldom
/// decides.
fn drawn(index: usize, random: &mut Random) -> Drawn {
    let kind = KINDS[index % KINDS.len()];
    // Even in its logarithm.
    let mut within = |low: f64, high: f64| low * (high / low).powf(random.unit());
    let mut fitted = FittedCosts {
        initialization_s: within(0.05, 0.3),
        work_ms: within(5.0, 80.0),
        serial: within(0.002, 0.02),
        spread: within(0.04, 0.9),
        memory: within(0.01, 0.05),
        ..FittedCosts::default()
    };
    let mut shape = ForkJoin {
        main_works: within(0.5, 2.0) > 1.0,
        helpers: 0,
        iterations: 60,
        units: None,
        locks: 0,
    };
    let whole_s = Some(within(200.0, 3000.0));
    match kind {
        "serial" => fitted.serial = within(0.02, 0.25),
        "memory" => fitted.memory = within(0.06, 0.25),
        "io" => {
            fitted.sleep_every_ms = within(10.0, 100.0);
            fitted.sleep_ms = fitted.sleep_every_ms * within(0.05, 1.0);
        }
        "locks" => {
            shape.locks = within(1.0, 32.0) as u32;
            fitted.segment_us = within(50.0, 500.0);
            fitted.critical_us =
                fitted.segment_us * (f64::from(shape.locks) * within(0.02, 0.1)).min(0.5);
        }
        "pieces" => {
            shape.units = Some(within(40.0, 300.0) as u32);
            shape.iterations = 1;
            (fitted.work_ms, fitted.serial) = (60_000.0, 0.0);
            fitted.sleep_every_ms = within(50.0, 500.0);
            fitted.sleep_ms = fitted.sleep_every_ms * within(0.02, 0.2);
        }
        _ => {}
    }
    let structure = if kind == "pipeline" {
        // One thread reads; the work per item of the stages behind it differs by up to two orders
        // of magnitude.
        fitted.serial = 0.0;
        fitted.stage_ms =
            vec![within(0.5, 3.0), within(0.3, 30.0), within(0.3, 30.0), within(0.01, 1.0)];
        fitted.work_ms = fitted.stage_ms.iter().sum();
        let stage = |name: &str, many| Stage { name: name.to_owned(), many, threads: None };
        let stages = vec![
            stage("read", false),
            stage("first", true),
            stage("second", true),
            stage("write", false),
        ];
        Structure::Pipeline(Pipeline { stages, items: 1000, capacity: 20 })
    } else {
        Structure::ForkJoin(shape)
    };
    let name = format!("{kind} {}", index / KINDS.len() + 1);
    let program = ModelProgram {
        name,
        suite: "drawn".into(),
        about: String::new(),
        whole_s,
        structure,
        fitted,
    };
    Drawn { kind, program }
}
