//! Whole runs with every number of threads, and the search that looks at speed, on the model.

use pinwise_campaign::{MemoryJournal, drive};
use pinwise_scheduler::{ModelProber, ModelProgram, Platform, Structure, speedup};
use pinwise_threads::{
    FoundNumber, NumberAdvice, NumberQuestion, NumberSearch, Objective, SearchMethod,
    SpeedQuestion, ThreadRange, Unfound, WholeRuns,
};
use std::collections::BTreeMap;
use std::error::Error;
use std::ops::Range;
use std::time::Duration;

/// Whole runs are made this long, in seconds of the sequential program, so that creating threads
/// hardly counts.
const LENGTH: f64 = 6.0;
/// Seeds of the runs that a speed is the mean of, where two are enough.
pub const PAIR: Range<u64> = 500..502;

/// Speed-ups of whole runs by parameter, as far as they were asked for.
pub struct ParameterSweep {
    platform: Platform,
    long: ModelProgram,
    seeds: Range<u64>,
    speeds: BTreeMap<u32, f64>,
}

impl ParameterSweep {
    /// Every number of threads up to 32, every fourth up to 72. Every speed is the mean of runs
    /// with these `seeds`.
    ///
    /// # Errors
    /// Where the program does not run on the model.
    pub fn new(
        platform: &Platform,
        program: &ModelProgram,
        seeds: Range<u64>,
    ) -> Result<Self, Box<dyn Error>> {
        let threads = (1..=32).chain((36..=ThreadRange::PUBLISHED.max).step_by(4));
        Self::at(platform, program, seeds, threads.map(|threads| program.parameter(threads)))
    }

    /// These parameters, to begin with.
    ///
    /// # Errors
    /// Where the program does not run on the model.
    pub fn at(
        platform: &Platform,
        program: &ModelProgram,
        seeds: Range<u64>,
        parameters: impl Iterator<Item = u32>,
    ) -> Result<Self, Box<dyn Error>> {
        let mut long = program.clone();
        let times = (LENGTH / program.sequential().seconds()).ceil().max(1.0) as u32;
        match &mut long.structure {
            // The longer the pieces, the less their end matters. So they are as long as in the
            // whole run.
            Structure::ForkJoin(shape) if shape.units.is_some() => {
                long.fitted.work_ms *= whole(program)? / program.sequential().seconds();
            }
            Structure::ForkJoin(shape) => shape.iterations *= times,
            Structure::Pipeline(shape) => shape.items *= times,
        }
        let mut sweep = Self { platform: platform.clone(), long, seeds, speeds: BTreeMap::new() };
        for parameter in parameters {
            sweep.speed(parameter)?;
        }
        Ok(sweep)
    }

    /// The mean speed-up with `parameter`.
    ///
    /// # Errors
    /// Where the program does not run on the model.
    pub fn speed(&mut self, parameter: u32) -> Result<f64, Box<dyn Error>> {
        if let Some(speed) = self.speeds.get(&parameter) {
            return Ok(*speed);
        }
        let runs =
            self.seeds.clone().map(|seed| speedup(&self.platform, &self.long, parameter, seed));
        let runs = runs.collect::<Result<Vec<f64>, _>>()?;
        let speed = runs.iter().sum::<f64>() / runs.len() as f64;
        self.speeds.insert(parameter, speed);
        Ok(speed)
    }

    /// The parameter with the greatest speed-up, and that.
    pub fn best(&self) -> (u32, f64) {
        self.fewest(0.0)
    }

    /// The least parameter that loses at most `tolerance` of the greatest speed-up, and its own.
    pub fn fewest(&self, tolerance: f64) -> (u32, f64) {
        let enough = self.speeds.values().copied().fold(0.0, f64::max) * (1.0 - tolerance);
        let fewest = self.speeds.iter().find(|(_, speed)| **speed >= enough);
        fewest.map_or((1, 1.0), |(parameter, speed)| (*parameter, *speed))
    }
}

/// How long the whole run takes as a sequential program, in seconds.
///
/// # Errors
/// Where the description does not give it.
pub fn whole(program: &ModelProgram) -> Result<f64, Box<dyn Error>> {
    Ok(program.whole_s.ok_or("a program without the length of its run")?)
}

/// One search on the model, over 1 to the published Tmax threads, within
/// [`PROBE_SHARE`](pinwise_threads::PROBE_SHARE) of the run.
///
/// # Errors
/// Where the program does not run on the model.
pub fn survey_model(
    platform: &Platform,
    program: &ModelProgram,
    seed: u64,
) -> Result<(FoundNumber, NumberAdvice), Box<dyn Error>> {
    let range = ThreadRange { min: 1, step: 1, ..ThreadRange::PUBLISHED };
    let candidates = range.candidates(|threads| program.parameter(threads), |n| program.threads(n));
    let mut question =
        SpeedQuestion::new(candidates, platform.contexts() as u32, Duration::from_millis(100));
    question.work = program.work_s();
    if let Structure::ForkJoin(shape) = &program.structure {
        question.pieces = shape.units;
    }
    let found = search(platform, program, SearchMethod::Survey(question), seed)?;
    let advice = found.advice.clone().ok_or("a survey gives advice")?;
    Ok((found, advice))
}

/// One search on the model, with probes of 100 ms as published.
pub(crate) fn search(
    platform: &Platform,
    program: &ModelProgram,
    method: SearchMethod,
    seed: u64,
) -> Result<FoundNumber, Box<dyn Error>> {
    let window = Duration::from_millis(100);
    let (objective, runs, goes_on) = (Objective::Time, WholeRuns::Never, false);
    let doubts_on = Some(platform.contexts() as u32);
    let search = NumberQuestion { method, window, objective, runs, goes_on, doubts_on };
    let convert = |threads| program.parameter(threads);
    let mut searcher = NumberSearch::new(&search, &convert, &[]);
    let mut prober = ModelProber::new(platform.clone(), program.clone(), seed);
    let (clock, stop) = (|| Duration::ZERO, || false);
    let (_, records) = drive(
        &mut MemoryJournal::default(),
        &mut searcher,
        &mut prober,
        &clock,
        &stop,
        &mut |_| {},
    )?;
    let unfound = |unfound: Box<Unfound>| {
        unfound.why.map_or_else(|| "the search has not ended".to_owned(), |why| why.to_string())
    };
    Ok(search.answer(&convert, &records).map_err(unfound)?)
}

/// The value that a share of `values`, from 0 to 1, do not exceed. It is one of them, of two in the
/// middle the upper one.
pub fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().saturating_sub(1) as f64;
    sorted.get((last * share).round() as usize).copied().unwrap_or(f64::NAN)
}
