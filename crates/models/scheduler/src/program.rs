//! Programs described by their structure.
//!
//! A description is a TOML file in two parts that are never mixed. `[structure]` is what is known
//! of the program: its threads, its shape, how its threads wait. `[fitted]` are numbers chosen so
//! that the model reproduces published figures. Shapes:
//!
//! - `fork-join`: each iteration has three parts. The main thread works alone, then all threads
//!   share the parallel part, then all meet at a barrier.
//! - `pipeline`: items pass through stages connected by bounded queues; a stage has one thread or
//!   n.
//!
//! Lock-bound, input/output-bound and bandwidth-bound programs are these with critical sections,
//! sleeps and a memory share.

mod fork_join;
mod pipeline;

use crate::kernel::Parts;
use crate::time::Nanos;
use serde::{Deserialize, Serialize};

/// A program of the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelProgram {
    /// Its name.
    pub name: String,
    /// The collection it belongs to.
    pub suite: String,
    /// Why it is described so, for people.
    pub about: String,
    /// How long the whole run takes as a sequential program, in seconds, if that is known. For the
    /// built-in programs it is a product. It is the published parallel time times the speed-up (the
    /// paper's Tables VII, IX, X and XII). What is simulated to its end ([`Self::sequential`]) is
    /// shorter.
    #[serde(default)]
    pub whole_s: Option<f64>,
    /// What is known about it.
    pub structure: Structure,
    /// What was fitted.
    pub fitted: FittedCosts,
}

/// What is known about a program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "shape", rename_all = "kebab-case")]
pub enum Structure {
    /// Alone, together, alone, together.
    ForkJoin(ForkJoin),
    /// From stage to stage.
    Pipeline(Pipeline),
}

/// The structure of a fork-join program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForkJoin {
    /// Whether the main thread shares the parallel part (OpenMP) or waits for its workers (1 + n
    /// threads).
    pub main_works: bool,
    /// Threads other than main and workers that wait for input or output once per iteration.
    #[serde(default)]
    pub helpers: u32,
    /// Iterations of a run. Speed-up is a ratio: as many as it takes to be steady.
    pub iterations: u32,
    /// The parallel part of an iteration comes in this many units that are not divided further;
    /// absent: divided evenly.
    pub units: Option<u32>,
    /// How many mutexes the critical sections are spread over; 0: no critical sections.
    #[serde(default)]
    pub locks: u32,
}

/// The structure of a pipeline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pipeline {
    /// First to last; at least two, the first of one thread.
    pub stages: Vec<Stage>,
    /// Items of a run.
    pub items: u32,
    /// Places in each queue between stages.
    pub capacity: u32,
}

/// One stage of a pipeline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stage {
    /// Its name, the role of its threads.
    pub name: String,
    /// n threads, or one.
    pub many: bool,
    /// This many threads instead, whatever n is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,
}

impl Stage {
    /// How many threads it has for the parameter `n`.
    fn threads(&self, n: u32) -> u32 {
        self.threads.unwrap_or(if self.many { n } else { 1 })
    }
}

/// What was fitted. Absent numbers are 0: without effect.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FittedCosts {
    /// Before the threads begin, in seconds; the same for every number of threads.
    pub initialization_s: f64,
    /// Work of one iteration, in ms. The stages of a pipeline have their own work. There it is the
    /// work of one item in the sequential program.
    pub work_ms: f64,
    /// Share of an iteration that the main thread does alone.
    pub serial: f64,
    /// Each unit of work varies uniformly by this fraction of it, up or down.
    pub spread: f64,
    /// Work between two critical sections, these included, in µs.
    pub segment_us: f64,
    /// Work within a critical section, in µs.
    pub critical_us: f64,
    /// Work between two waits for input or output, mean, in ms.
    pub sleep_every_ms: f64,
    /// One wait for input or output, mean, in ms.
    pub sleep_ms: f64,
    /// Share of its time that one thread alone keeps the memory system busy.
    pub memory: f64,
    /// What a thread has to fetch again after a migration, in KiB.
    pub working_set_kib: f64,
    /// Work of each pipeline stage per item, in ms.
    pub stage_ms: Vec<f64>,
    /// Time from one thread's creation to the next one's, on top of what the system takes, in ms.
    pub create_ms: f64,
    /// Share of the runs that are slow from start to end.
    pub slow_runs: f64,
    /// Speed of a slow run, as a share of another's.
    pub slow_speed: f64,
    /// Progress shows after each so much work, in seconds. 0: at once.
    pub report_every_s: f64,
}

/// Why a description is no program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelProgramError {
    /// Not TOML, or not of this form.
    #[error("program description: {0}")]
    Malformed(String),
    /// A number that makes no sense.
    #[error("program '{program}': {reason}")]
    Senseless {
        /// Whose.
        program: String,
        /// Which and why.
        reason: String,
    },
    /// Not a built-in program.
    #[error("program '{name}' is unknown; built in: {}", known.join(", "))]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
}

/// More threads than this are not modelled.
pub const MOST_THREADS: u32 = 1024;

macro_rules! built_in {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../models/", $name, ".toml")))),*]
    };
}

/// The programs of the Thread Reinforcer paper, in the order of its tables.
const BUILT_IN: [(&str, &str); 16] = built_in![
    "facesim",
    "bodytrack",
    "swaptions",
    "ferret",
    "fluidanimate",
    "streamcluster",
    "canneal",
    "blackscholes",
    "ammp",
    "art",
    "fma3d",
    "gafort",
    "mgrid",
    "swim",
    "wupwise",
    "pbzip2",
];

impl ModelProgram {
    /// Reads a description. Errors: no such TOML, a number out of its range.
    pub fn parse(text: &str) -> Result<Self, ModelProgramError> {
        let program: Self = toml::from_str(text)
            .map_err(|error| ModelProgramError::Malformed(error.to_string()))?;
        program.check()?;
        Ok(program)
    }

    /// A built-in program. Error: no such name.
    pub fn built_in(name: &str) -> Result<Self, ModelProgramError> {
        let text = BUILT_IN.iter().find(|(known, _)| *known == name).map(|(_, text)| *text);
        let known = || Self::names().map(str::to_owned).collect();
        Self::parse(
            text.ok_or_else(|| ModelProgramError::Unknown {
                name: name.to_owned(),
                known: known(),
            })?,
        )
    }

    /// The names of the built-in programs, in the order of the paper's tables.
    pub fn names() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|(name, _)| *name)
    }

    /// How many threads there are for the parameter `n`.
    pub fn threads(&self, n: u32) -> u32 {
        match &self.structure {
            Structure::ForkJoin(shape) => n + shape.helpers + u32::from(!shape.main_works),
            Structure::Pipeline(shape) => {
                1 + shape.stages.iter().map(|stage| stage.threads(n)).sum::<u32>()
            }
        }
    }

    /// Convert() of the paper's figure 8: the parameter for a search's number of threads. A program
    /// with one group of threads takes the number unchanged. The paper reports 9 threads, 1 + n,
    /// where the search chose 8. A pipeline of several groups takes the largest n whose threads do
    /// not exceed the number (63 for 64). It is at least 1.
    pub fn parameter(&self, threads: u32) -> u32 {
        let groups = match &self.structure {
            Structure::ForkJoin(_) => 1,
            Structure::Pipeline(shape) => {
                let grows = |stage: &&Stage| stage.many && stage.threads.is_none();
                shape.stages.iter().filter(grows).count() as u32
            }
        };
        if groups < 2 {
            return threads.max(1);
        }
        let fixed = self.threads(1) - groups;
        (threads.saturating_sub(fixed) / groups).max(1)
    }

    /// Iterations or items of a run.
    fn times(&self) -> f64 {
        f64::from(match &self.structure {
            Structure::ForkJoin(shape) => shape.iterations,
            Structure::Pipeline(shape) => shape.items,
        })
    }

    /// Time that the run takes as a sequential program, alone on the machine. It is all its work
    /// and all its waiting for input and output.
    pub fn sequential(&self) -> Nanos {
        let fitted = &self.fitted;
        let sleeps =
            matches!(self.structure, Structure::ForkJoin(_)) && fitted.sleep_every_ms > 0.0;
        let parallel = fitted.work_ms * (1.0 - fitted.serial);
        let slept = if sleeps { parallel / fitted.sleep_every_ms * fitted.sleep_ms } else { 0.0 };
        Nanos::from_millis(self.times() * (fitted.work_ms + slept))
    }

    /// The computation of all threads in a run, as time alone on the machine. Probes count it as
    /// progress. Waiting for input and output is no part of it. For an item, the stages of a
    /// pipeline compute more or less than the sequential program does.
    fn computed(&self) -> Nanos {
        let each = match &self.structure {
            Structure::ForkJoin(_) => self.fitted.work_ms,
            Structure::Pipeline(_) => self.fitted.stage_ms.iter().sum(),
        };
        Nanos::from_millis(self.times() * each)
    }

    /// What the threads compute in the whole run, if its length is known, in seconds of a context.
    /// It counts as [`Self::speedup_of_progress`] does.
    pub fn work_s(&self) -> Option<f64> {
        self.whole_s.map(|whole| whole / self.speedup_of_progress())
    }

    /// The speed-up over the sequential program for a progress of 1. Probes count computed work.
    /// The sequential program also waits for input and output. For a pipeline it computes another
    /// amount than the stages do.
    pub fn speedup_of_progress(&self) -> f64 {
        self.sequential().seconds() / self.computed().seconds()
    }

    /// The program with parameter `n`, ready to run to its end. If `endless`, it runs as long as it
    /// is watched. Error: `n` is 0 or makes more than [`MOST_THREADS`] threads.
    pub(crate) fn parts(&self, n: u32, endless: bool) -> Result<Parts, ModelProgramError> {
        if n == 0 || n > MOST_THREADS || self.threads(n) > MOST_THREADS {
            return Err(self.senseless(format!(
                "{n} as its number of threads: 1 to {MOST_THREADS} threads are modelled"
            )));
        }
        Ok(match &self.structure {
            Structure::ForkJoin(shape) => fork_join::parts(shape, &self.fitted, n, endless),
            Structure::Pipeline(shape) => pipeline::parts(shape, &self.fitted, n, endless),
        })
    }

    fn senseless(&self, reason: String) -> ModelProgramError {
        ModelProgramError::Senseless { program: self.name.clone(), reason }
    }

    fn check(&self) -> Result<(), ModelProgramError> {
        let fitted = &self.fitted;
        let spans = [
            ("initialization_s", fitted.initialization_s),
            ("segment_us", fitted.segment_us),
            ("critical_us", fitted.critical_us),
            ("sleep_every_ms", fitted.sleep_every_ms),
            ("sleep_ms", fitted.sleep_ms),
            ("working_set_kib", fitted.working_set_kib),
            ("create_ms", fitted.create_ms),
            ("report_every_s", fitted.report_every_s),
        ];
        if self.whole_s.is_some_and(|whole| !(whole > 0.0 && whole <= 1e7)) {
            return Err(self.senseless(format!(
                "whole_s = {:?}: must be positive, at most 10,000,000",
                self.whole_s
            )));
        }
        let stages = fitted.stage_ms.iter().map(|&span| ("stage_ms", span));
        for (name, span) in spans.into_iter().chain(stages) {
            if !(0.0..=1e7).contains(&span) {
                return Err(self.senseless(format!("{name} = {span}: not within 0 and 10,000,000")));
            }
        }
        for (name, share) in [
            ("serial", fitted.serial),
            ("spread", fitted.spread),
            ("memory", fitted.memory),
            ("slow_runs", fitted.slow_runs),
            ("slow_speed", fitted.slow_speed),
        ] {
            if !(0.0..=1.0).contains(&share) {
                return Err(self.senseless(format!("{name} = {share}: a share is within 0 and 1")));
            }
        }
        if !(fitted.work_ms > 0.0 && fitted.work_ms <= 1e7) {
            return Err(self.senseless(format!(
                "work_ms = {}: must be positive, at most 10,000,000",
                fitted.work_ms
            )));
        }
        match &self.structure {
            Structure::ForkJoin(ForkJoin { iterations, locks, units, .. }) => {
                if *iterations == 0 || *units == Some(0) {
                    return Err(
                        self.senseless("no iterations or no units: nothing to do".to_owned())
                    );
                }
                let sections = fitted.critical_us > 0.0;
                if sections != (*locks > 0) || fitted.critical_us > fitted.segment_us {
                    return Err(self.senseless(
                        "critical sections need locks, locks critical_us, and segment_us at least \
                         critical_us"
                            .to_owned(),
                    ));
                }
            }
            Structure::Pipeline(Pipeline { stages, items, capacity }) => {
                if stages.len() < 2 || stages[0].many || *items == 0 || *capacity == 0 {
                    return Err(self.senseless(
                        "a pipeline has two stages or more, the first of one thread, items and \
                         places"
                            .to_owned(),
                    ));
                }
                let senseless = |stage: &Stage| {
                    stage.threads.is_some_and(|threads| !(1..=MOST_THREADS).contains(&threads))
                };
                if stages[0].threads(1) != 1 || stages.iter().any(senseless) {
                    return Err(self.senseless(format!(
                        "a stage has 1 to {MOST_THREADS} threads, the first one"
                    )));
                }
                if fitted.stage_ms.len() != stages.len() {
                    return Err(self.senseless(format!(
                        "{} stages, but stage_ms has {} numbers",
                        stages.len(),
                        fitted.stage_ms.len()
                    )));
                }
                if fitted.stage_ms.iter().sum::<f64>() <= 0.0 {
                    return Err(self.senseless("no stage has any work".to_owned()));
                }
            }
        }
        Ok(())
    }
}
