//! The request for a number of threads, and the decisions before the first probe.

use super::host_program::HostProgram;
use crate::error::JobError;
use pinwise_cluster::Nodes;
use pinwise_measure::Unit;
use pinwise_present::figures;
use pinwise_programs::NumberSetter;
use pinwise_scheduler::{ModelProber, ModelProgram, OtherPrograms, Platform, Structure};
use pinwise_threads::{
    NumberAdvice, NumberQuestion, Objective, PublishedQuestion, SearchMethod, SpeedQuestion,
    SweepQuestion, ThreadRange, ThreadsNote, ThreadsPerN, Thresholds, WholeRuns, counted_threads,
};
use pinwise_topology::{DomainKind, Machine};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The share of the budget for a survey. The rest is for fresh windows of the number it finds.
const SEARCH: f64 = 0.6;

/// How often a sweep tries each number if nothing is said.
const ROUNDS: u32 = 3;

/// How many threads a program should run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThreadsRequest {
    /// The program.
    pub program: ThreadsProgram,
    /// How the number is found.
    pub method: ThreadsMethod,
    /// The fewest threads. `None`: 1, or a step of the published search.
    pub min: Option<u32>,
    /// The most threads. `None`: a multiple of the contexts.
    pub max: Option<u32>,
    /// The step from one number to the next. `None`: 1, or as published.
    pub step: Option<u32>,
    /// The time of the whole search. A survey's probes get 60 % of it, its fresh windows the rest.
    /// `None`: two minutes, or a share of a run whose length is known.
    pub budget: Option<Duration>,
    /// How often a sweep tries each number. `None`: three times.
    pub rounds: Option<u32>,
    /// Share of the best speed that fewer threads may cost.
    pub within: f64,
    /// The quantity that is maximised.
    pub objective: Objective,
    /// How long a probe watches the threads.
    pub probe: Duration,
    /// The thresholds of the published search. `None`: in proportion to the model of the paper's
    /// machine.
    pub thresholds: Option<Thresholds>,
    /// The number of equal pieces of the work.
    pub pieces: Option<u32>,
    /// Every probe is a whole run. Earlier versions called it `whole_run`.
    #[serde(alias = "whole_run")]
    pub per_run: bool,
    /// How long the initialization may take, and a whole run.
    pub limit: Duration,
    /// Bytes that a probe may write to storage.
    pub most_written: u64,
    /// The number that the program uses on its own, if the user gave it.
    #[serde(default)]
    pub default: Option<u32>,
    /// Whether the number found is compared with that number on fresh windows.
    #[serde(default)]
    pub confirm: bool,
    /// The latest end of a running probe, if later than the budget. `None`: the budget.
    #[serde(default)]
    pub deadline: Option<Duration>,
    /// The nodes that measure. `None`: this machine does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<Nodes>,
}

/// How the number is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThreadsMethod {
    /// The search by measured speeds.
    Survey,
    /// The published search: rising numbers, by profiles alone.
    Reinforcer,
    /// Every number, several times.
    Sweep,
}

impl ThreadsMethod {
    /// The method's name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Survey => "survey",
            Self::Reinforcer => "reinforcer",
            Self::Sweep => "sweep",
        }
    }
}

/// The program whose number of threads is asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThreadsProgram {
    /// On this machine.
    Here(HostProgram),
    /// On the model of a scheduler.
    Modelled(ModelledProgram),
}

/// A program on the model of an operating system's scheduler.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelledProgram {
    /// The machine, as typed.
    pub machine: String,
    /// The machine that this stands for.
    pub model: Machine,
    /// The program, one of those of the paper unless it is described.
    pub program: String,
    /// The seed of all chance.
    pub seed: u64,
    /// Its description. The budget then counts as for a program on this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<Box<ModelProgram>>,
    /// What else runs on the machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<OtherPrograms>,
}

impl ModelledProgram {
    /// The description of the program.
    pub(super) fn description(&self) -> Result<ModelProgram, JobError> {
        match &self.description {
            Some(described) => Ok((**described).clone()),
            None => ModelProgram::built_in(&self.program).map_err(JobError::usage),
        }
    }

    /// It, ready to be probed for a question.
    pub(super) fn prober(&self, question: &ThreadsQuestion) -> Result<ModelProber, JobError> {
        let ((platform, _), description) = (self.platform()?, self.description()?);
        let prober = ModelProber::new(platform, description, self.seed);
        Ok(prober.watching_for(question.search.window).beside(self.others.clone()))
    }

    pub(super) fn platform(&self) -> Result<(Platform, bool), JobError> {
        platform(&self.machine, &self.model)
    }
}

/// A machine as the model of a scheduler has it, named as typed. Also whether its cores have
/// several contexts, which the model leaves out.
///
/// # Errors
/// The machine has more contexts than are modelled.
pub(crate) fn platform(name: &str, machine: &Machine) -> Result<(Platform, bool), JobError> {
    if name == "opteron-24" {
        return Ok((Platform::opteron_24(), false));
    }
    let platform = Platform::new(machine).ok_or_else(|| {
        JobError::Usage(format!(
            "machine '{name}' has more than the {} contexts that are modelled",
            Platform::MOST_CONTEXTS
        ))
    })?;
    let shared = machine.domains(DomainKind::Core).any(|core| core.cpus.len() > 1);
    Ok((platform, shared))
}

/// The question of a campaign: the request, with everything decided that a search depends on.
///
/// It contains the request, because the decisions follow from it. The other way round, a
/// [`crate::PlacementRequest`] contains the question of its search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThreadsQuestion {
    /// The request.
    #[serde(flatten, deserialize_with = "pinwise_measure::by_value")]
    pub request: ThreadsRequest,
    /// Contexts that the program may use.
    pub contexts: u32,
    /// The numbers.
    #[serde(rename = "span")]
    pub range: ThreadRange,
    /// The question of the search.
    pub search: NumberQuestion,
    /// A note if something keeps the program from using the whole machine.
    pub limited: Option<ThreadsNote>,
}

/// How many threads a program makes for its parameter, and back.
pub(super) enum Counting {
    ThreadsPerN(ThreadsPerN),
    Program(Box<ModelProgram>),
}

impl Counting {
    pub(super) fn of(request: &ThreadsRequest) -> Result<Self, JobError> {
        Ok(match &request.program {
            ThreadsProgram::Here(program) => Self::ThreadsPerN(program.formula()),
            ThreadsProgram::Modelled(program) => Self::Program(Box::new(program.description()?)),
        })
    }

    /// Convert() of the paper: the parameter for a number of threads.
    pub(super) fn parameter(&self, threads: u32) -> u32 {
        match self {
            Self::ThreadsPerN(formula) => formula.parameter(threads),
            Self::Program(program) => program.parameter(threads),
        }
    }

    /// The threads for a parameter.
    pub(super) fn threads(&self, n: u32) -> u32 {
        match self {
            Self::ThreadsPerN(formula) => formula.threads(n),
            Self::Program(program) => program.threads(n),
        }
    }

    /// Advice about numbers of threads as advice about the parameters they stand for.
    pub(super) fn in_parameters(&self, advice: NumberAdvice) -> NumberAdvice {
        let convert = |threads| self.parameter(threads);
        NumberAdvice {
            reference_threads: advice
                .reference
                .map_or(1, |reference| self.threads(convert(reference))),
            threads: convert(advice.threads),
            between: (convert(advice.between.0), convert(advice.between.1)),
            open: advice.open.into_iter().map(convert).collect(),
            reference: advice.reference.map(convert),
            more: advice.more.map(|(threads, cost)| (convert(threads), cost)),
            ..advice
        }
    }
}

impl ThreadsQuestion {
    /// Decides the question of a request, for a program that may use this number of contexts.
    pub(super) fn decide(
        request: ThreadsRequest,
        contexts: u32,
        limited: Option<ThreadsNote>,
    ) -> Result<Self, JobError> {
        let counting = Counting::of(&request)?;
        let range = request.range(contexts, &counting)?;
        let candidates =
            range.candidates(|threads| counting.parameter(threads), |n| counting.threads(n));
        let goes_on = match &request.program {
            ThreadsProgram::Here(program) => program.set.is_some(),
            ThreadsProgram::Modelled(_) => false,
        };
        let counted = request.counts_threads();
        let (within, window) = (request.within, request.probe);
        let method = match request.method {
            ThreadsMethod::Survey => {
                let (most_time, work, pieces) = request.bounds()?;
                SearchMethod::Survey(SpeedQuestion {
                    tolerance: within,
                    most_time,
                    work,
                    pieces,
                    counted,
                    ..SpeedQuestion::new(candidates, contexts, window)
                })
            }
            ThreadsMethod::Reinforcer => {
                let thresholds = request.thresholds;
                let scaled = || Thresholds::scaled(range.step, contexts);
                let thresholds = thresholds.unwrap_or_else(scaled);
                SearchMethod::Reinforcer(PublishedQuestion { range, contexts, thresholds })
            }
            ThreadsMethod::Sweep => {
                let rounds = request.rounds.unwrap_or(ROUNDS);
                SearchMethod::Sweep(SweepQuestion {
                    candidates,
                    rounds,
                    tolerance: within,
                    counted,
                    doubts: true,
                })
            }
        };
        let runs = match &request.program {
            ThreadsProgram::Here(_) if request.per_run => WholeRuns::Always,
            ThreadsProgram::Here(program) if program.metric.is_none() && !goes_on => {
                WholeRuns::WhereShort
            }
            _ => WholeRuns::Never,
        };
        let objective = request.objective;
        let doubts_on = Some(contexts);
        let search = NumberQuestion { method, window, objective, runs, goes_on, doubts_on };
        Ok(Self { request, contexts, range, search, limited })
    }

    /// All numbers that may be tried, as the program is given them.
    pub(crate) fn numbers(&self) -> Result<Vec<u32>, JobError> {
        let counting = self.counting()?;
        let (convert, threads) =
            (|threads| counting.parameter(threads), |n: u32| counting.threads(n));
        Ok(self.range.candidates(convert, threads).into_iter().map(convert).collect())
    }

    /// The unit in which progress is shown, if probes count it in `unit`.
    pub fn unit(&self, unit: &Unit) -> Unit {
        match &self.request.program {
            ThreadsProgram::Here(_) => self.request.objective.unit(unit.clone()),
            // The work of the program, relative to that of the sequential program in the same time.
            ThreadsProgram::Modelled(_) => Unit::rate("x sequential"),
        }
    }

    /// The seed of all chance.
    pub(super) fn seed(&self) -> u64 {
        match &self.request.program {
            ThreadsProgram::Here(_) => 0,
            ThreadsProgram::Modelled(program) => program.seed,
        }
    }
}

impl ThreadsRequest {
    /// The default budget if the length of the program's run is not known.
    pub const TIME: Duration = Duration::from_secs(120);
    /// The usual [`Self::within`].
    pub const WITHIN: f64 = 0.01;
    /// The usual [`Self::probe`].
    pub const PROBE: Duration = Duration::from_millis(100);
    /// The usual [`Self::limit`].
    pub const LIMIT: Duration = Duration::from_secs(60);
    /// The usual [`Self::most_written`].
    pub const MOST_WRITTEN: u64 = 1 << 30;

    /// Asks how many threads `program` should run, by its speed. Everything else has its usual
    /// value.
    pub fn new(program: ThreadsProgram) -> Self {
        Self {
            program,
            method: ThreadsMethod::Survey,
            min: None,
            max: None,
            step: None,
            budget: None,
            rounds: None,
            within: Self::WITHIN,
            objective: Objective::Time,
            probe: Self::PROBE,
            thresholds: None,
            pieces: None,
            per_run: false,
            limit: Self::LIMIT,
            most_written: Self::MOST_WRITTEN,
            default: None,
            confirm: true,
            deadline: None,
            on: None,
        }
    }

    /// The budget for everything.
    pub fn time(&self) -> Duration {
        self.budget.unwrap_or(Self::TIME)
    }

    /// When the last probe ends at the latest.
    pub fn deadline(&self) -> Duration {
        self.deadline.unwrap_or_default().max(self.time())
    }

    /// Whether fresh windows decide what is announced. The published search compares no speeds, so
    /// its answer stands without them.
    pub fn confirms(&self) -> bool {
        self.confirm && self.method != ThreadsMethod::Reinforcer
    }

    /// The name of the program, as the user would call it.
    pub fn name(&self) -> String {
        match &self.program {
            ThreadsProgram::Here(program) => program.name(),
            ThreadsProgram::Modelled(program) => program.program.clone(),
        }
    }

    /// Where it runs: `host`, or a model.
    pub fn machine(&self) -> &str {
        match &self.program {
            ThreadsProgram::Here(_) => "host",
            ThreadsProgram::Modelled(program) => &program.machine,
        }
    }

    /// The time for all probes of a survey. The work of a run, if known, and the number of its
    /// equal pieces.
    #[allow(clippy::type_complexity)]
    fn bounds(&self) -> Result<(Option<Duration>, Option<f64>, Option<u32>), JobError> {
        let built_in = match &self.program {
            ThreadsProgram::Modelled(program) if program.description.is_none() => program,
            ThreadsProgram::Modelled(_) | ThreadsProgram::Here(_) => {
                let search = if self.confirms() { SEARCH } else { 1.0 };
                return Ok((Some(self.time().mul_f64(search)), None, self.pieces));
            }
        };
        let program = built_in.description()?;
        let pieces = match &program.structure {
            Structure::ForkJoin(shape) => shape.units,
            Structure::Pipeline(_) => self.pieces,
        };
        Ok(match (self.budget, program.work_s()) {
            (None, Some(work)) => (None, Some(work), pieces),
            _ => (Some(self.time()), None, pieces),
        })
    }

    fn range(&self, contexts: u32, counting: &Counting) -> Result<ThreadRange, JobError> {
        let (convert, threads) = (|threads| counting.parameter(threads), |n| counting.threads(n));
        let published = ThreadRange::published_on(contexts);
        let is_published = self.method == ThreadsMethod::Reinforcer;
        let step = self.step.unwrap_or(if is_published { published.step } else { 1 });
        // If one n makes more than that, there are at least two to choose from.
        let most = || {
            self.min.unwrap_or(1).max(self.most(contexts)).max(counted_threads(2, convert, threads))
        };
        let max = self.max.unwrap_or_else(most);
        let min = self.min.unwrap_or(if is_published { step.min(max).max(1) } else { 1 });
        if max == 0 {
            return Err(JobError::Usage("--max 0: give 1 or more".into()));
        }
        if min > max {
            return Err(JobError::Usage(format!("--min {min} is above --max {max}: swap them")));
        }
        // Only the published search takes half a step.
        let least = if is_published { 2 } else { 1 };
        let range = ThreadRange { min, max, step }.check(least).map_err(JobError::usage)?;
        if !is_published && range.candidates(convert, threads).is_empty() {
            let n = convert(range.max);
            let made = [n, n + 1].map(|n| format!("n = {n} makes {}", threads(n)));
            return Err(JobError::Usage(format!(
                "no n makes {min} to {max} threads: {}; --min and --max count threads",
                made.join(", ")
            )));
        }
        Ok(range)
    }

    /// Options that do not go together.
    pub(super) fn check(&self) -> Result<(), JobError> {
        let (method, budget) = (self.method, self.time());
        let name = method.name();
        let refused = if method == ThreadsMethod::Survey && self.probe > budget {
            let (probe, budget) = (figures::duration(self.probe), figures::duration(budget));
            format!("--window {probe} is longer than --budget {budget}: no probe fits")
        } else if self.rounds.is_some() && method != ThreadsMethod::Sweep {
            format!(
                "--rounds is for a sweep, and --method {name} decides itself: leave it out, or add \
                 --method sweep"
            )
        } else if self.pieces.is_some() && method != ThreadsMethod::Survey {
            format!("--pieces is for a survey, --method {name} does not count them: leave one out")
        } else if self.pieces.is_some() && self.per_run {
            "whole runs already include how pieces divide: leave out --pieces".into()
        } else if self.thresholds.is_some() && method != ThreadsMethod::Reinforcer {
            format!(
                "--thresholds is for the published search, --method {name} looks at none: leave \
                 it out, or add --method reinforcer"
            )
        } else if self.objective != Objective::Time && method == ThreadsMethod::Reinforcer {
            "the published search ignores speed and energy: leave out --objective or --method"
                .into()
        } else if self.per_run
            && matches!(&self.program, ThreadsProgram::Here(HostProgram { set: Some(_), .. }))
        {
            "--per-run and --metric runtime restart the program for each number, --set does not: \
             leave one out"
                .into()
        } else {
            return self.check_floor();
        };
        Err(JobError::Usage(refused))
    }

    /// A floor is a share of the speed of a program that goes on running, by its metric.
    fn check_floor(&self) -> Result<(), JobError> {
        let ThreadsProgram::Here(program) = &self.program else { return Ok(()) };
        let Some(floor) = program.floor else { return Ok(()) };
        let refused = if program.set.is_none() || program.metric.is_none() {
            "--floor is for a program that goes on running: add --set and --metric, or leave it out"
                .to_owned()
        } else if self.method != ThreadsMethod::Survey {
            "a sweep and the published search try every number again: leave out --floor or --method"
                .to_owned()
        } else if !(floor > 0.0 && floor <= 1.0) {
            format!("--floor {floor} is no share of a speed: give more than 0 % and up to 100 %")
        } else {
            return Ok(());
        };
        Err(JobError::Usage(refused))
    }

    /// The greatest number to try if the user gives none. The system cannot grant more contexts
    /// than it has, but a program may start more threads.
    fn most(&self, contexts: u32) -> u32 {
        match self.method {
            _ if self.grants() => contexts,
            ThreadsMethod::Reinforcer => ThreadRange::published_on(contexts).max,
            ThreadsMethod::Survey | ThreadsMethod::Sweep => contexts.saturating_mul(2),
        }
    }

    /// Whether the threads that probes see show what n does. A metric and whole runs show it
    /// themselves.
    pub(super) fn counts_threads(&self) -> bool {
        match &self.program {
            ThreadsProgram::Here(program) => !self.per_run && program.counts_threads(),
            ThreadsProgram::Modelled(_) => false,
        }
    }

    /// See [`HostProgram::floor`].
    pub(crate) fn floor(&self) -> Option<f64> {
        match &self.program {
            ThreadsProgram::Here(program) => program.floor,
            ThreadsProgram::Modelled(_) => None,
        }
    }

    /// n is how many contexts the program may use. No system grants more contexts than it has.
    pub(super) fn grants(&self) -> bool {
        match &self.program {
            ThreadsProgram::Here(program) => {
                program.set.as_ref().is_some_and(NumberSetter::counts_contexts)
            }
            ThreadsProgram::Modelled(_) => false,
        }
    }
}
