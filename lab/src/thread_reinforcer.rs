//! The Thread Reinforcer paper's programs on the model, compared with what the paper reports.

use crate::sweep;
use pinwise_scheduler::{ModelProber, ModelProgram, Nanos, Platform, Simulation, speedup};
use pinwise_threads::{
    FoundNumber, NumberSearchEnd, ProfilesByNumber, PublishedQuestion, SearchMethod, ThreadRange,
    Thresholds, calibrate,
};
use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

/// How long a probe takes, as published.
pub const WINDOW: Duration = Duration::from_millis(100);

/// Runs that a speed-up is the mean of.
pub const RUNS: u64 = 3;

/// The first seed of the searches.
pub const SEED: u64 = 1;

/// Searches with consecutive seeds that a reported choice is the most frequent of.
pub const SEARCHES: u64 = 10;

/// One line of the paper's tables.
#[derive(Clone, Debug)]
pub struct PublishedRow {
    /// Its name.
    pub program: String,
    /// Its benchmark suite.
    pub suite: String,
    /// Threads of the best measured speed-up.
    pub opt: u32,
    /// That speed-up.
    pub opt_speedup: f64,
    /// Threads that the published search chose.
    pub found: u32,
    /// The speed-up with these.
    pub found_speedup: f64,
    /// Why it stopped there.
    pub stop: String,
    /// Seconds of the program with the chosen number of threads.
    pub parallel_s: f64,
}

/// The folder of published figures, or `None`, said plainly, if it is absent.
///
/// # Panics
/// With `CI=true`, if it is absent.
pub fn folder() -> Option<PathBuf> {
    pinwise_synthetic::published("")
}

/// Rows of numbers and words, comments and the heading left out.
pub fn rows(table: &str) -> impl Iterator<Item = Vec<&str>> {
    table
        .lines()
        .filter(|line| !line.starts_with('#'))
        .skip(1)
        .map(|line| line.split(',').collect())
}

/// All of `thread_reinforcer.csv`.
///
/// # Errors
/// Where a line is too short or a number is none.
pub fn published(table: &str) -> Result<Vec<PublishedRow>, Box<dyn Error>> {
    rows(table)
        .map(|fields| {
            let field = |index: usize| fields.get(index).copied().ok_or("a line is too short");
            Ok(PublishedRow {
                program: field(0)?.to_owned(),
                suite: field(1)?.to_owned(),
                opt: field(2)?.parse()?,
                opt_speedup: field(3)?.parse()?,
                found: field(4)?.parse()?,
                found_speedup: field(5)?.parse()?,
                stop: field(6)?.to_owned(),
                parallel_s: field(8)?.parse()?,
            })
        })
        .collect()
}

impl PublishedRow {
    /// What the paper would report for `n`: all threads of PARSEC programs (its Table II), the
    /// parameter of others.
    pub fn reported(&self, program: &ModelProgram, n: u32) -> u32 {
        if self.suite == "PARSEC" { program.threads(n) } else { n }
    }

    /// The parameter for a number that the paper reports.
    pub fn parameter(&self, program: &ModelProgram, reported: u32) -> u32 {
        (1..=reported).rev().find(|&n| self.reported(program, n) <= reported).unwrap_or(1)
    }
}

/// Mean speed-up over [`RUNS`] whole runs, and its range.
///
/// # Errors
/// Where the program does not run on the model.
pub fn speedups(
    platform: &Platform,
    program: &ModelProgram,
    n: u32,
) -> Result<(f64, f64, f64), Box<dyn Error>> {
    let runs = (0..RUNS)
        .map(|seed| speedup(platform, program, n, 100 + seed))
        .collect::<Result<Vec<f64>, _>>()?;
    let low = runs.iter().copied().fold(f64::INFINITY, f64::min);
    let high = runs.iter().copied().fold(0.0, f64::max);
    Ok((runs.iter().sum::<f64>() / runs.len() as f64, low, high))
}

/// The parameter with the best speed-up, in steps of half a Tstep from 4 to Tmax, and that
/// speed-up.
///
/// # Errors
/// Where the program does not run on the model.
pub fn best(platform: &Platform, program: &ModelProgram) -> Result<(u32, f64), Box<dyn Error>> {
    let mut best = (0, 0.0);
    for threads in (4..=ThreadRange::PUBLISHED.max).step_by(4) {
        let n = program.parameter(threads);
        let (mean, ..) = speedups(platform, program, n)?;
        if mean > best.1 * 1.002 {
            best = (n, mean);
        }
    }
    Ok(best)
}

/// A program on a smaller input: less work per iteration, everything else alike. The factor is that
/// of fluidanimate's particles, simlarge to native (300,000 to 500,000), for all three.
fn small_input(name: &str) -> Result<ModelProgram, Box<dyn Error>> {
    let mut program = ModelProgram::built_in(name)?;
    program.fitted.work_ms *= 0.6;
    Ok(program)
}

/// Profiles of a small example with one thread and with every half Tstep to Tmax. Each is the mean
/// of three probes.
///
/// # Errors
/// Where there is no such program.
pub fn curve(platform: &Platform, name: &str) -> Result<ProfilesByNumber, Box<dyn Error>> {
    let program = small_input(name)?;
    let mut points = Vec::new();
    for threads in std::iter::once(1).chain((4..=ThreadRange::PUBLISHED.max).step_by(4)) {
        let mut sum = pinwise_measure::SchedulingProfile::default();
        for seed in 0..RUNS {
            let mut prober = ModelProber::new(platform.clone(), program.clone(), 1000 + seed);
            let seen = prober.probe(program.parameter(threads), WINDOW)?.probe.profile;
            sum.lock += seen.lock / RUNS as f64;
            sum.vcx_rate += seen.vcx_rate / RUNS as f64;
            sum.migr_rate += seen.migr_rate / RUNS as f64;
            sum.cpu_util += seen.cpu_util / RUNS as f64;
        }
        points.push((threads, sum));
    }
    Ok(ProfilesByNumber(points))
}

/// Thresholds from the paper's three examples on small inputs.
///
/// # Errors
/// Where the examples are not calibrated from.
pub fn thresholds(platform: &Platform) -> Result<Thresholds, Box<dyn Error>> {
    let [locks, switches, parallelism] =
        ["fluidanimate", "facesim", "blackscholes"].map(|name| curve(platform, name));
    Ok(calibrate(
        ThreadRange::PUBLISHED,
        platform.contexts() as u32,
        &locks?,
        &switches?,
        &parallelism?,
    )?)
}

/// The published search on the model.
///
/// # Errors
/// Where the search or a probe fails.
pub fn search(
    platform: &Platform,
    program: &ModelProgram,
    thresholds: Thresholds,
    seed: u64,
) -> Result<FoundNumber, Box<dyn Error>> {
    let contexts = platform.contexts() as u32;
    let question = PublishedQuestion { range: ThreadRange::PUBLISHED, contexts, thresholds };
    sweep::search(platform, program, SearchMethod::Reinforcer(question), seed)
}

/// The most frequent choice of several searches.
#[derive(Clone, Copy, Debug)]
pub struct Frequent {
    /// The parameter that gives the chosen number of threads.
    pub parameter: u32,
    /// Why those that made it stopped, the most frequent.
    pub stopped: NumberSearchEnd,
    /// How many made it.
    pub times: u64,
    /// What one of them cost in the model's time.
    pub cost: Duration,
}

/// What most of `searches` choose, each with its own seed.
///
/// # Errors
/// Where a search fails.
pub fn choice(
    platform: &Platform,
    program: &ModelProgram,
    thresholds: Thresholds,
    searches: u64,
) -> Result<Frequent, Box<dyn Error>> {
    let all = (SEED..SEED + searches).map(|seed| search(platform, program, thresholds, seed));
    let all = all.collect::<Result<Vec<FoundNumber>, _>>()?;
    let times =
        |found: &FoundNumber| all.iter().filter(|other| other.chosen == found.chosen).count();
    let choice = |found: &FoundNumber| (found.chosen, found.stopped.word());
    let same =
        |found: &FoundNumber| all.iter().filter(|other| choice(other) == choice(found)).count();
    let most = all.iter().max_by_key(|found| (times(found), same(found))).ok_or("no searches")?;
    let (times, cost) = (times(most) as u64, most.cost());
    Ok(Frequent { parameter: most.parameter, stopped: most.stopped, times, cost })
}

/// USR, LOCK in percent of the threads of one pipeline stage over a second, once the pipeline is
/// full.
///
/// # Errors
/// Where the program does not run on the model.
pub fn stage(
    platform: &Platform,
    program: &ModelProgram,
    n: u32,
    role: &str,
) -> Result<(f64, f64), Box<dyn Error>> {
    let mut simulation = Simulation::endless(platform, program, n, SEED)?;
    simulation.advance(Nanos::from_seconds(2.0))?;
    let before = simulation.accounts();
    simulation.advance(Nanos::from_seconds(4.0))?;
    let account = simulation.accounts().since(&before).role(role);
    let percent = |part: Nanos| part.seconds() / account.elapsed().seconds() * 100.0;
    Ok((percent(account.busy()), percent(account.lock)))
}
