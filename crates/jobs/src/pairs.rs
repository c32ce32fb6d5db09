//! The job that runs programs beside each other: which of them to pair.

use crate::campaign_run::{conclude, disturbances, measure};
use crate::error::JobError;
use crate::events::Events;
use crate::job::{Caller, Job};
use crate::node_worker::{WorkerRequest, WorkingPlace};
use crate::open_subject::{
    OnNodes, OpenSubject, PairedRuns, counters, open_commands, open_pairs, open_smt_core,
    start_on_nodes,
};
use crate::resume_check::check_machine;
use crate::simulation::{SimulationRequest, SmtSimulation};
use crate::stored_campaign;
use pinwise_campaign::{CampaignInfo, CampaignState, Kind, NewCampaign, Store};
use pinwise_cluster::Nodes;
use pinwise_coscheduling::{
    CounterModel, CounterModelError, PairSeats, PairsOutcome, PairsQuestion, PairsSearch,
    RecordedProgram, TrainingPair, counts_alone,
};
use pinwise_counters::{CountSource, QuantumSeries, RecordedFile, RunCounts};
use pinwise_measure::{
    CounterEvent, EventCounts, PinnedInstance, ProgramNote, Setting, Testbed as _, Workload,
};
use pinwise_present::{Files, PairsFindings, Planned, Summary, Unfinished, shell};
use pinwise_topology::{Alike, CpuSet, DomainKind, Machine, SharingTree};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

/// The programs to pair.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PairedPrograms {
    /// Commands on this machine. Each runs to its end.
    Commands {
        /// The words of each.
        commands: Vec<Vec<String>>,
        /// A run that takes longer fails.
        limit: Duration,
    },
    /// One instance of each, on a simulated processor.
    Simulated(SimulationRequest),
    /// Each on a context of a simulated core.
    SmtCore(SmtSimulation),
}

impl PairedPrograms {
    /// The most programs. All their pairings are still compared exactly.
    pub const MOST: usize = 24;

    /// What each was called.
    pub fn commands(&self) -> Vec<String> {
        match self {
            Self::Commands { commands, .. } => commands.iter().map(|words| shell(words)).collect(),
            Self::Simulated(simulation) => {
                let programs = simulation.programs().unwrap_or_default();
                programs.iter().map(ToString::to_string).collect()
            }
            Self::SmtCore(simulation) => simulation.programs.clone(),
        }
    }

    /// A short name of each, with its number if several have it.
    pub fn names(&self) -> Vec<String> {
        let file = |words: &Vec<String>| {
            let program = Path::new(words.first().map_or("", String::as_str));
            program.file_name().unwrap_or_default().to_string_lossy().into_owned()
        };
        let names = match self {
            Self::Commands { commands, .. } => commands.iter().map(file).collect(),
            Self::Simulated(_) | Self::SmtCore(_) => self.commands(),
        };
        let numbered = |(index, name): (usize, &String)| {
            let before = names[..index].iter().filter(|other| *other == name).count();
            let alone = names.iter().filter(|other| *other == name).count() == 1;
            if alone { name.clone() } else { format!("{name}#{}", before + 1) }
        };
        names.iter().enumerate().map(numbered).collect()
    }

    /// The contexts that each of them takes.
    fn threads(&self) -> usize {
        match self {
            Self::Commands { .. } | Self::SmtCore(_) => 1,
            Self::Simulated(_) => THREADS_OF_A_PIPELINE,
        }
    }

    /// Refuses to predict or to fit on a processor without counters. `option` asks for it.
    fn check_counted(&self, option: &str) -> Result<(), JobError> {
        match self {
            Self::SmtCore(_) | Self::Commands { .. } => Ok(()),
            Self::Simulated(simulation) => Err(JobError::Usage(format!(
                "{option} needs counters of each program, and {} has no counters: use --machine \
                 {}, or leave {option} out",
                simulation.model.name,
                SmtSimulation::CORE
            ))),
        }
    }

    /// The counts of a command in a file of `perf stat -x,`. The sum is over all intervals and
    /// threads. `name` is the short name of the command.
    ///
    /// # Errors
    /// There is no such command, or the file is no recording.
    pub fn recorded(&self, name: &str, file: &Path) -> Result<RecordedProgram, JobError> {
        let names = self.names();
        let Self::Commands { .. } = self else {
            return Err(JobError::Usage(format!(
                "--counts {name}={} is for commands: a model counts its own programs",
                file.display()
            )));
        };
        let Some(program) = names.iter().position(|one| one == name) else {
            return Err(JobError::Usage(format!(
                "--counts {name}={}: there is no program of this name, use one of {}",
                file.display(),
                names.join(", ")
            )));
        };
        let recorded = RecordedFile::read(file).map_err(JobError::usage)?;
        let events: BTreeSet<CounterEvent> = recorded
            .intervals
            .iter()
            .flat_map(|interval| interval.values().flat_map(|one| one.counts.keys().copied()))
            .collect();
        let events: Vec<CounterEvent> = events.into_iter().collect();
        let (mut run, mut series) = (RunCounts::default(), QuantumSeries::default());
        for interval in &recorded.intervals {
            if let Some(quantum) = run.take(interval.values(), &events) {
                series.take((), &quantum);
            }
        }
        let counts = run.total().cloned().ok_or_else(|| {
            JobError::Usage(format!(
                "{}: no interval has a count of each event: record with fewer events, so that \
                 counters take no turns",
                file.display()
            ))
        })?;
        let several = recorded.intervals.len() > 1;
        let counters = series.quality().filter(|_| several);
        Ok(RecordedProgram { program, counts, counters })
    }
}

/// Every packet program has this many threads.
const THREADS_OF_A_PIPELINE: usize = 3;

/// Which programs run beside each other: the request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairsRequest {
    /// The question.
    #[serde(flatten, deserialize_with = "pinwise_measure::by_value")]
    pub question: PairsQuestion,
    /// The programs.
    pub programs: PairedPrograms,
    /// Whether a model of the pairs is saved: then commands are counted while they run alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub saves_model: bool,
    /// The name of the level that two programs share; the closest by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<String>,
    /// Only these contexts, as a CPU list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<String>,
    /// The nodes that measure. `None`: this machine does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<Nodes>,
}

/// What is stored of an answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct PairsConclusion {
    #[serde(flatten, deserialize_with = "pinwise_measure::by_value")]
    outcome: PairsOutcome,
    notes: Vec<ProgramNote>,
}

/// The answer of `pairs`: which programs run beside each other, so far.
#[derive(Clone, Debug)]
pub struct PairsAnswer {
    /// The campaign.
    pub campaign: CampaignInfo,
    /// The question.
    pub request: PairsRequest,
    /// Where two programs ran.
    pub seats: PairSeats,
    /// The outcome so far.
    pub outcome: PairsOutcome,
    /// Notes on what disturbed the runs.
    pub notes: Vec<ProgramNote>,
    /// A short name of each program.
    pub names: Vec<String>,
    /// The whole command of each.
    pub commands: Vec<String>,
}

impl PairsAnswer {
    /// How far the campaign is; `None` if it has ended.
    pub fn unfinished(&self, files: Files<'_>) -> Option<Unfinished> {
        let most = Planned::from(self.request.question.budget);
        Unfinished::of(&self.campaign, self.campaign.records, most, "measurement", files)
    }

    /// What follows from the outcome, in words.
    pub fn findings(&self) -> PairsFindings<'_> {
        let confidence = self.request.question.confidence;
        let Self { outcome, names, commands, request, .. } = self;
        let model = request.question.model.as_ref();
        let [one, other] = self.contexts();
        let fills = one.union(&other).len() >= self.campaign.new.machine.online().len();
        let is_busy = |note: &ProgramNote| matches!(note, ProgramNote::Busy { .. });
        let busy = fills && self.notes.iter().any(is_busy);
        // Beside others on a larger level than a core, pairs say too little of groups.
        let width = match self.seats.level {
            DomainKind::Pipe | DomainKind::Core => self.seats.width,
            _ => 2,
        };
        let unfinished = self.campaign.state != CampaignState::Finished;
        PairsFindings { outcome, names, commands, confidence, busy, unfinished, model, width }
    }

    /// The contexts of both sides.
    pub fn contexts(&self) -> [CpuSet; 2] {
        let tree = SharingTree::new(&self.campaign.new.machine, self.campaign.new.alike);
        let cpus = |side: &Vec<u32>| {
            side.iter().filter_map(|&leaf| tree.leaves().get(leaf as usize).copied()).collect()
        };
        [cpus(&self.seats.sides[0]), cpus(&self.seats.sides[1])]
    }

    /// A model of the pairs that were measured. It predicts those of other programs.
    ///
    /// # Errors
    /// Nothing was counted, a pair was not measured, or the pairs are too few.
    pub fn counter_model(&self, store: &Store) -> Result<CounterModel, JobError> {
        let recorded = &self.request.question.recorded;
        let records = store.records(self.campaign.id)?;
        let named = self.names.iter().zip(counts_alone(&records, self.names.len(), recorded));
        let programs: Vec<(String, EventCounts)> =
            named.map(|(name, counts)| (name.clone(), counts.unwrap_or_default())).collect();
        let measured = self.outcome.pairs.iter().filter(|pair| !pair.is_predicted());
        let pairs: Vec<TrainingPair> = measured
            .map(|pair| TrainingPair {
                programs: pair.programs,
                kept: pair.slowdowns.map(|slowdown| 1.0 / slowdown.value),
            })
            .collect();
        let cpu = &self.campaign.new.machine.name;
        let counted =
            |event: &CounterEvent| programs.iter().all(|(_, counts)| counts.get(*event).is_some());
        let mut events: Vec<CounterEvent> =
            CounterModel::EVENTS.into_iter().filter(counted).collect();
        if events.is_empty() {
            // The error names what is missing.
            events = CounterModel::EVENTS.to_vec();
        }
        let model = CounterModel::fit(cpu, &events, &programs, &pairs);
        let model = model.map_err(JobError::failed)?;
        model.all_residuals().map_err(JobError::failed)?;
        Ok(model)
    }

    fn new(
        campaign: CampaignInfo,
        request: PairsRequest,
        conclusion: PairsConclusion,
    ) -> Result<Self, JobError> {
        let seats = request.seats(&campaign.new.machine)?;
        let PairsConclusion { outcome, notes } = conclusion;
        let (names, commands) = (request.programs.names(), request.programs.commands());
        Ok(Self { campaign, request, seats, outcome, notes, names, commands })
    }
}

/// A short name of each program of a campaign of `pairs`; none if its question cannot be read.
pub fn paired_names(info: &CampaignInfo) -> Vec<String> {
    let request = stored_campaign::question::<PairsRequest>(info);
    request.map_or_else(|_| Vec::new(), |request| request.programs.names())
}

/// A request, with its programs ready to run.
pub struct PreparedPairs {
    request: PairsRequest,
    pub(crate) testbed: Box<dyn OpenSubject>,
}

impl PairsRequest {
    /// Refuses programs whose pairs make no model.
    ///
    /// # Errors
    /// Nothing counts their events, or they are too few.
    pub fn check_saves_model(&self) -> Result<(), JobError> {
        self.programs.check_counted("--save-model")?;
        self.open_counters()?;
        let programs = self.programs.commands().len();
        if programs < CounterModel::LEAST_PROGRAMS {
            return Err(JobError::usage(CounterModelError::TooFew { programs }));
        }
        Ok(())
    }

    /// The counters of this machine, for commands that run here. `None`: nothing needs them, or
    /// each program has a recording. To read them costs runs alone a little, and pairs nothing, so
    /// they are not read for their own sake.
    ///
    /// # Errors
    /// They are needed, and cannot be used.
    fn open_counters(&self) -> Result<Option<Box<dyn CountSource>>, JobError> {
        let PairedPrograms::Commands { commands, .. } = &self.programs else { return Ok(None) };
        let recorded = |one: usize| self.question.recorded.iter().any(|has| has.program == one);
        let needed = self.saves_model || self.question.model.is_some();
        if !needed || self.on.is_some() || (0..commands.len()).all(recorded) {
            return Ok(None);
        }
        counters("or give --counts PROGRAM=FILE for each, which perf stat -x, -I wrote").map(Some)
    }

    /// Refuses a model that needs an event that nothing counted.
    fn check_events(&self, source: Option<&dyn CountSource>) -> Result<(), JobError> {
        let PairedPrograms::Commands { commands, .. } = &self.programs else { return Ok(()) };
        let Some(model) = self.question.model.as_ref().filter(|_| self.on.is_none()) else {
            return Ok(());
        };
        let of_source = source.map_or(Vec::new(), |source| source.events());
        for (program, name) in (0..commands.len()).zip(self.programs.names()) {
            let recorded = self.question.recorded.iter().find(|has| has.program == program);
            let has = |event: &CounterEvent| match recorded {
                Some(recorded) => recorded.counts.get(*event).is_some(),
                None => of_source.contains(event),
            };
            let mut needed = [CounterEvent::Cycles].into_iter().chain(model.events());
            if let Some(event) = needed.find(|event| !has(event)) {
                let program = name;
                return Err(JobError::usage(CounterModelError::NotCounted { event, program }));
            }
        }
        Ok(())
    }

    fn seats(&self, machine: &Machine) -> Result<PairSeats, JobError> {
        let threads = self.programs.threads();
        PairSeats::of(machine, self.level.as_deref(), threads).map_err(JobError::usage)
    }

    /// Opens the programs. `path`: where they are looked for, if not in `PATH`.
    pub(crate) fn open(
        self,
        path: Option<String>,
        caller: &Caller,
        events: &mut dyn Events,
    ) -> Result<PreparedPairs, JobError> {
        let cpus = self.cpus.as_deref();
        let testbed: Box<dyn OpenSubject> = match (&self.on, &self.programs) {
            (Some(nodes), _) => Box::new(self.open_on(nodes, caller, events)?),
            (None, PairedPrograms::Commands { commands, limit }) => {
                let names = self.programs.names();
                let share = self.question.share(names.len());
                let counts = self.open_counters()?;
                self.check_events(counts.as_deref())?;
                let run = PairedRuns { path, limit: *limit, share, counts };
                Box::new(open_commands(commands, names, cpus, run, &caller.interrupt)?)
            }
            (None, PairedPrograms::Simulated(simulation)) => {
                let seed = self.question.seed;
                Box::new(open_pairs(simulation, cpus, seed)?)
            }
            (None, PairedPrograms::SmtCore(simulation)) => {
                Box::new(open_smt_core(simulation, cpus, self.question.seed)?)
            }
        };
        if let Some(model) = &self.question.model {
            self.programs.check_counted("--predict")?;
            model.check_cpu(&testbed.machine().name).map_err(JobError::usage)?;
        }
        Ok(PreparedPairs { request: self, testbed })
    }

    /// Opens it on nodes. They are alike if the first program alone is equally fast on all.
    fn open_on(
        &self,
        nodes: &Nodes,
        caller: &Caller,
        events: &mut dyn Events,
    ) -> Result<OnNodes, JobError> {
        let commands = matches!(self.programs, PairedPrograms::Commands { .. });
        let from = commands.then(WorkingPlace::here).transpose()?;
        let request = Box::new(Self { on: None, ..self.clone() });
        let asked = WorkerRequest::Pairs { request, from };
        let mut opened = start_on_nodes(nodes, &asked, None, caller, events)?;
        let leaves = self.seats(opened.machine())?.sides[0].clone();
        let alone = Setting::Profile(vec![PinnedInstance { instance: 0, leaves }]);
        opened.keep_alike_in(&alone, events)?;
        Ok(opened)
    }

    fn outcome(&self, records: &[pinwise_campaign::Record]) -> PairsOutcome {
        PairsOutcome::of(records, self.programs.commands().len(), &self.question)
    }
}

impl Job for PairsRequest {
    const KIND: Kind = Kind::Pairs;
    type Answer = PairsAnswer;
    type Prepared = PreparedPairs;

    fn prepare(
        self,
        caller: &Caller,
        _: &Store,
        events: &mut dyn Events,
    ) -> Result<(NewCampaign, PreparedPairs), JobError> {
        let programs = self.programs.commands().len();
        if !(2..=PairedPrograms::MOST).contains(&programs) {
            let remedy = match self.programs {
                PairedPrograms::Commands { .. } => {
                    "give each after its own --, as in -- 'xz -k a' -- 'gzip -k b'"
                }
                _ => "give each with its own --workload",
            };
            return Err(JobError::Usage(format!(
                "pairs takes 2 to {} programs, not {programs}: {remedy}",
                PairedPrograms::MOST
            )));
        }
        let ready = self.open(None, caller, events)?;
        ready.request.seats(ready.testbed.machine())?;
        let new = NewCampaign {
            kind: Self::KIND,
            parent: None,
            command: caller.command.clone(),
            machine: ready.testbed.machine().clone(),
            alike: Alike::ByStructure,
            workload: Workload {
                name: ready.request.programs.names().join(", "),
                threads: ready.testbed.workload().threads.clone(),
            },
            unit: ready.testbed.unit().clone(),
            simulated: !matches!(ready.request.programs, PairedPrograms::Commands { .. }),
            question: serde_json::to_value(&ready.request)?,
            seed: ready.request.question.seed,
        };
        Ok((new, ready))
    }

    fn reopen(
        info: &CampaignInfo,
        caller: &Caller,
        _: &Store,
        events: &mut dyn Events,
    ) -> Result<PreparedPairs, JobError> {
        let ready = stored_campaign::question::<Self>(info)?.open(None, caller, events)?;
        if !info.new.simulated {
            check_machine(info, ready.testbed.machine())?;
        }
        Ok(ready)
    }

    fn conduct(
        ready: PreparedPairs,
        info: &CampaignInfo,
        caller: &Caller,
        store: &mut Store,
        events: &mut dyn Events,
    ) -> Result<PairsAnswer, JobError> {
        let PreparedPairs { request, mut testbed } = ready;
        let seats = request.seats(&info.new.machine)?;
        let question = request.question.clone();
        let budget = question.budget;
        let programs = request.programs.commands().len();
        let mut search = PairsSearch::new(question, programs, seats);
        let measured = measure(store, info, budget, &mut search, &mut *testbed, caller, events)?;
        let conclusion = conclude(store, info.id, measured, &*testbed, |records, notes| {
            PairsConclusion { outcome: request.outcome(records), notes }
        })?;
        PairsAnswer::new(store.get(info.id)?, request, conclusion)
    }

    fn answer(info: &CampaignInfo, _: &Caller, store: &Store) -> Result<PairsAnswer, JobError> {
        let request: Self = stored_campaign::question(info)?;
        let conclusion = match stored_campaign::conclusion(info)? {
            Some(concluded) => concluded,
            None => PairsConclusion {
                outcome: request.outcome(&store.records(info.id)?),
                notes: disturbances(store, [info.id])?,
            },
        };
        PairsAnswer::new(info.clone(), request, conclusion)
    }

    fn summary(conclusion: &Value) -> Option<Summary> {
        let PairsOutcome { verdict, pairing, gain, .. } =
            PairsConclusion::deserialize(conclusion).ok()?.outcome;
        let pairs = pairing.map_or(0, |pairing| pairing.pairs.len());
        Some(Summary::Pairs { verdict, pairs, gain: gain.map(|gain| gain.value) })
    }
}
