//! The job that characterizes a machine: how programs on shared hardware slow each other down.

mod benchmarks;
mod caches;
mod on_nodes;

use crate::campaign_run::{EndContext, as_parent_error, conclude, measure_on};
use crate::error::JobError;
use crate::events::{Event, Events};
use crate::job::{Caller, Job};
use crate::node_worker::WorkerRequest;
use crate::open_subject::{OnNodes, OpenSubject as _, WithNodeNews, start_on_nodes};
use crate::simulation::SimulatedProcessor;
use crate::stored_campaign;
use benchmarks::{Benchmarks, PlanRuns};
use caches::look_at_caches;
pub(crate) use on_nodes::serve_benchmarks;
use pinwise_campaign::{CampaignInfo, Ending, Kind, NewCampaign, Parent, Record, Store};
use pinwise_characterization::{
    Characterization, Conditions, ExcerptReason, Reference, RoundPlan, RoundPlanError, RunsSoFar,
    StoredCharacterization,
};
use pinwise_cluster::Nodes;
use pinwise_hardware::HostBench;
use pinwise_measure::{
    Bench, Interrupt, Pace, Testbed, Unit, WorkingSets, Workload, optional_value_or_text,
};
use pinwise_placement::Budget;
use pinwise_present::{Files, Notice, Planned, Summary, Unfinished, did_you_mean};
use pinwise_processor::ModelBench;
use pinwise_topology::{Alike, Fingerprint, Machine};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;

/// Default maximum of stressors on other cores: enough to show what many do.
pub const DEFAULT_STRESSORS: usize = 8;

/// Asks what programs on shared hardware do to each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CharacterizeRequest {
    /// A simulated processor. `None`: this machine.
    #[serde(default, flatten, skip_serializing_if = "Option::is_none")]
    pub model: Option<SimulatedProcessor>,
    /// Only these benchmarks. Empty: all.
    pub benchmarks: Vec<String>,
    /// The most stressors on other cores.
    pub stressors: usize,
    /// How it is measured.
    pub conditions: Conditions,
    /// The nodes that measure. `None`: this machine does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<Nodes>,
}

/// A part of a characterization: its [`Parent::step`].
#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum CharacterizePart {
    /// Measures what a context of this machine gets of its caches. It comes first.
    Caches,
}

/// The answer of `characterize`: the slowdowns, and what they say about this machine.
#[derive(Clone, Debug)]
pub struct CharacterizeAnswer {
    /// The campaign.
    pub campaign: CampaignInfo,
    /// The characterization, as it is in the store. `None`: it is not complete.
    pub kept: Option<StoredCharacterization>,
    /// The results of each set of programs so far, if the characterization is not complete.
    pub so_far: Vec<RunsSoFar>,
    /// Runs that are made.
    pub runs: u64,
    /// Runs of the complete characterization.
    pub planned: u64,
    /// The time of all runs of the campaign, one after the other, with the look at the caches.
    pub time: Duration,
    /// Why other commands must not rely on these results; `None` if they may.
    pub excerpt: Option<ExcerptReason>,
}

impl CharacterizeAnswer {
    /// How far the campaign is; `None` if it has ended.
    pub fn unfinished(&self, files: Files<'_>) -> Option<Unfinished> {
        Unfinished::of(&self.campaign, self.runs, Planned::Exactly(self.planned), "run", files)
    }
}

/// The conclusion of a campaign of this kind.
#[derive(Serialize, Deserialize)]
struct Conclusion {
    characterization: Characterization,
    #[serde(default, deserialize_with = "optional_value_or_text")]
    excerpt: Option<ExcerptReason>,
}

/// The request, ready to measure, with the testbed of the benchmarks.
pub struct PreparedCharacterization {
    request: CharacterizeRequest,
    bench: OpenBench,
    nodes: Option<OnNodes>,
}

/// A bench on which nothing was measured yet.
enum OpenBench {
    /// This machine, whose caches are looked at first.
    Host(Box<HostBench>),
    Model(Box<dyn Bench>),
}

impl OpenBench {
    fn bench(&self) -> &dyn Bench {
        match self {
            Self::Host(host) => &**host,
            Self::Model(model) => &**model,
        }
    }
}

impl Job for CharacterizeRequest {
    const KIND: Kind = Kind::Characterize;
    type Answer = CharacterizeAnswer;
    type Prepared = PreparedCharacterization;

    fn prepare(
        self,
        caller: &Caller,
        _: &Store,
        events: &mut dyn Events,
    ) -> Result<(NewCampaign, PreparedCharacterization), JobError> {
        let nodes = on_nodes(&self, caller, events)?;
        let bench = open(&self, caller, nodes.as_ref())?;
        // A misspelt name is found before anything is measured.
        plan(&self, bench.bench())?;
        let new = NewCampaign {
            kind: Self::KIND,
            parent: None,
            command: caller.command.clone(),
            machine: bench.bench().machine().clone(),
            alike: Alike::ByStructure,
            workload: no_workload(),
            unit: Unit::cost(bench.bench().unit().name()),
            simulated: self.model.is_some(),
            question: serde_json::to_value(&self)?,
            seed: self.conditions.seed,
        };
        Ok((new, PreparedCharacterization { request: self, bench, nodes }))
    }

    fn reopen(
        info: &CampaignInfo,
        caller: &Caller,
        _: &Store,
        events: &mut dyn Events,
    ) -> Result<PreparedCharacterization, JobError> {
        let request: Self = stored_campaign::question(info)?;
        let nodes = on_nodes(&request, caller, events)?;
        let bench = open(&request, caller, nodes.as_ref())?;
        if Fingerprint::of(bench.bench().machine()).topology
            != Fingerprint::of(&info.new.machine).topology
        {
            return Err(JobError::failed(format!(
                "campaign {}: it was started on another machine; start a new one",
                info.id.0
            )));
        }
        Ok(PreparedCharacterization { request, bench, nodes })
    }

    fn conduct(
        PreparedCharacterization { request, mut bench, mut nodes }: PreparedCharacterization,
        info: &CampaignInfo,
        caller: &Caller,
        store: &mut Store,
        events: &mut dyn Events,
    ) -> Result<CharacterizeAnswer, JobError> {
        if let OpenBench::Host(host) = &mut bench {
            match look_at_caches(host, nodes.as_mut(), info, caller, store, events) {
                Ok(found) => {
                    // All nodes know them, too.
                    let asked = worker_request(&request, Some(found.clone()));
                    if let Some(nodes) = &mut nodes
                        && let Err(error) = nodes.reopen(&asked, events)
                    {
                        return Err(as_parent_error(error, store, info.id)?);
                    }
                    host.know_caches(found);
                }
                Err(error) => return Err(as_parent_error(error, store, info.id)?),
            }
        }
        let bench = bench.bench();
        // The look may have left out what was asked for.
        let plan = &match plan(&request, bench) {
            Ok(plan) => plan,
            Err(error) => return Err(as_parent_error(error, store, info.id)?),
        };
        announce(bench, plan, request.conditions, events)?;
        let tasks = plan.tasks(request.conditions);
        let runs = tasks.len() as u64;
        let mut strategy = PlanRuns::new(plan, tasks.clone());
        if let (Some(nodes), Some(first)) = (&mut nodes, tasks.first())
            && let Err(error) = nodes.keep_alike_in(&strategy.trial(first).setting, events)
        {
            return Err(as_parent_error(error, store, info.id)?);
        }
        let fingerprint = match &nodes {
            Some(nodes) => nodes.fingerprint(),
            None => fingerprint(&request, bench.machine()),
        };
        let news = nodes.as_ref().and_then(OnNodes::node_news);
        let mut own = Benchmarks::new(bench, request.conditions.fame);
        let testbed: &mut dyn Testbed = match &mut nodes {
            Some(nodes) => nodes,
            None => &mut own,
        };
        let budget = Budget::Measurements(runs);
        let events = &mut WithNodeNews::new(events, news);
        let measured = measure_on(store, info, budget, &mut strategy, testbed, caller, events)?;
        let found = (measured.ending == Ending::Finished).then(|| {
            let paces = tasks.iter().copied().zip(paces(&measured.records));
            let found = Characterization::of(bench, plan, request.conditions, fingerprint, paces);
            let excerpt = why_excerpt(&request, plan, bench, &found);
            Conclusion { characterization: found, excerpt }
        });
        let mut kept = None;
        if let Some(Conclusion { characterization, excerpt }) = &found {
            // Keep this before the campaign finishes, because a finished campaign is not resumed.
            // If pinwise were killed in between, the other commands would never find the
            // characterization.
            let (found, why) = (characterization.clone(), excerpt.clone());
            kept = Some(StoredCharacterization::keep(store, found, why)?);
        }
        let excerpt = found.as_ref().and_then(|found| found.excerpt.clone());
        let time = time(store, info, &measured.records)?;
        // Nodes may be back when it is resumed.
        let ends = match &nodes {
            Some(_) => EndContext::default(),
            None => EndContext::after(&measured.records),
        };
        conclude(store, info.id, measured, ends, |_, _| found)?;
        Ok(CharacterizeAnswer {
            campaign: store.get(info.id)?,
            kept,
            so_far: Vec::new(),
            runs,
            planned: runs,
            time,
            excerpt,
        })
    }

    /// The answer of a campaign, or its measurements so far.
    fn answer(
        info: &CampaignInfo,
        _: &Caller,
        store: &Store,
    ) -> Result<CharacterizeAnswer, JobError> {
        let (characterization, excerpt) = match stored_campaign::conclusion(info)? {
            Some(Conclusion { characterization, excerpt }) => (Some(characterization), excerpt),
            None => (None, None),
        };
        let kept = match &characterization {
            Some(found) => StoredCharacterization::latest(store, &found.fingerprint)?
                .filter(|kept| kept.characterization == *found)
                .or_else(|| {
                    let characterization = found.clone();
                    let (at, excerpt) = (info.started, excerpt.clone());
                    Some(StoredCharacterization { id: 0, at, excerpt, characterization })
                }),
            None => None,
        };
        let records = store.records(info.id)?;
        let (so_far, planned) = match &kept {
            Some(_) => (Vec::new(), info.records),
            None => so_far(info, store, &records)?,
        };
        Ok(CharacterizeAnswer {
            campaign: info.clone(),
            kept,
            so_far,
            runs: paces(&records).count() as u64,
            planned,
            time: time(store, info, &records)?,
            excerpt,
        })
    }

    fn finished(
        info: &CampaignInfo,
        caller: &Caller,
        store: &mut Store,
    ) -> Result<CharacterizeAnswer, JobError> {
        if let Some(Conclusion { characterization, excerpt }) = stored_campaign::conclusion(info)?
            && StoredCharacterization::latest(store, &characterization.fingerprint)?.is_none()
        {
            StoredCharacterization::keep(store, characterization, excerpt)?;
        }
        Self::answer(info, caller, store)
    }

    fn summary(conclusion: &Value) -> Option<Summary> {
        let found = Conclusion::deserialize(conclusion).ok()?.characterization.findings;
        let worst = found.worst();
        Some(Summary::Characterize { critical: worst.map(|worst| worst.resource.clone()) })
    }
}

/// Starts the workers of a request that names nodes.
fn on_nodes(
    request: &CharacterizeRequest,
    caller: &Caller,
    events: &mut dyn Events,
) -> Result<Option<OnNodes>, JobError> {
    let Some(nodes) = &request.on else { return Ok(None) };
    start_on_nodes(nodes, &worker_request(request, None), None, caller, events).map(Some)
}

impl CharacterizeRequest {
    /// The runs of a request, on a machine like this one or on its model.
    ///
    /// # Errors
    /// It names what is not there, or this machine cannot be read.
    pub fn runs(&self, caller: &Caller) -> Result<u64, JobError> {
        let bench = open(self, caller, None)?;
        Ok(plan(self, bench.bench())?.tasks(self.conditions).len() as u64)
    }
}

/// What a worker opens.
fn worker_request(request: &CharacterizeRequest, found: Option<WorkingSets>) -> WorkerRequest {
    let request = CharacterizeRequest { on: None, ..request.clone() };
    WorkerRequest::Characterize { request, found }
}

/// Opens the bench of this machine, or of that of the nodes.
fn open(
    request: &CharacterizeRequest,
    caller: &Caller,
    nodes: Option<&OnNodes>,
) -> Result<OpenBench, JobError> {
    let cancelled = caller.interrupt.clone();
    Ok(match &request.model {
        Some(model) => OpenBench::Model(Box::new(ModelBench::new(model.processor()?, cancelled))),
        None => {
            let machine = match nodes {
                Some(nodes) => nodes.machine().clone(),
                None => pinwise_linux::this_machine()?,
            };
            OpenBench::Host(Box::new(HostBench::new(machine, cancelled)?))
        }
    })
}

/// The benchmarks for which the indices of a campaign stand. Empty if that is not known: on an
/// architecture without microbenchmarks, or of another version's question.
pub fn benchmark_names(info: &CampaignInfo, store: &Store) -> Vec<String> {
    let bench = bench_of(info, store).ok();
    let names = bench.iter().flat_map(|(_, bench)| bench.benchmarks());
    names.map(|benchmark| benchmark.name.clone()).collect()
}

/// The request of a campaign, and its machine. The machine is that of the campaign: this one may be
/// another.
fn bench_of(
    info: &CampaignInfo,
    store: &Store,
) -> Result<(CharacterizeRequest, Box<dyn Bench>), JobError> {
    let request: CharacterizeRequest = stored_campaign::question(info)?;
    let bench: Box<dyn Bench> = match &request.model {
        Some(model) => Box::new(ModelBench::new(model.processor()?, Interrupt::default())),
        None => {
            let mut host = HostBench::new(info.new.machine.clone(), Interrupt::default())?;
            let look = Parent::new(info.id, &CharacterizePart::Caches);
            if let Some(part) = stored_campaign::part(store, &look)?
                && let Some(found) = stored_campaign::conclusion(&part)?
            {
                host.know_caches(found);
            }
            Box::new(host)
        }
    };
    Ok((request, bench))
}

/// The results of each set of programs in an incomplete campaign, and how many runs it will have.
fn so_far(
    info: &CampaignInfo,
    store: &Store,
    records: &[Record],
) -> Result<(Vec<RunsSoFar>, u64), JobError> {
    let (request, bench) = bench_of(info, store)?;
    let plan = plan(&request, &*bench)?;
    let tasks = plan.tasks(request.conditions);
    let planned = tasks.len() as u64;
    Ok((RunsSoFar::of(&*bench, &plan, tasks.into_iter().zip(paces(records))), planned))
}

/// The benchmarks are not the threads of a program.
fn no_workload() -> Workload {
    Workload::new("microbenchmarks", &[])
}

/// The time that `records` took, with the look at the caches.
fn time(store: &Store, info: &CampaignInfo, records: &[Record]) -> Result<Duration, JobError> {
    let parent = Parent::new(info.id, &CharacterizePart::Caches);
    let looked = match stored_campaign::part(store, &parent)? {
        Some(part) => store.records(part.id)?,
        None => Vec::new(),
    };
    let of = |records: &[Record]| records.last().map_or(Duration::ZERO, |record| record.elapsed);
    Ok(of(&looked) + of(records))
}

fn fingerprint(request: &CharacterizeRequest, machine: &Machine) -> Fingerprint {
    match request.model {
        Some(_) => Fingerprint::of(machine),
        None => pinwise_linux::fingerprint(machine),
    }
}

fn plan(request: &CharacterizeRequest, bench: &dyn Bench) -> Result<RoundPlan, JobError> {
    RoundPlan::new(bench.machine(), bench.benchmarks(), &request.benchmarks, request.stressors)
        .map_err(|error| {
            let known = bench.benchmarks().iter().map(|benchmark| benchmark.name.as_str());
            let similar = match &error {
                RoundPlanError::Unknown { name, .. } => did_you_mean(name, known),
                RoundPlanError::NoContexts => String::new(),
            };
            JobError::Usage(format!("{error}{similar}"))
        })
}

/// The paces of every run that ended, in order.
fn paces(records: &[Record]) -> impl Iterator<Item = Vec<Pace>> {
    let measured = records.iter().filter_map(|record| record.outcome.as_ref().ok());
    measured.filter_map(|measurement| measurement.detail.as_ref()?.read().ok())
}

/// The reason why the result is an excerpt, on which nothing is decided.
fn why_excerpt(
    request: &CharacterizeRequest,
    plan: &RoundPlan,
    bench: &dyn Bench,
    found: &Characterization,
) -> Option<ExcerptReason> {
    if plan.benchmarks.len() < bench.benchmarks().len() {
        return Some(ExcerptReason::SomeBenchmarks);
    }
    if request.stressors < DEFAULT_STRESSORS {
        return Some(ExcerptReason::FewStressors { enough: DEFAULT_STRESSORS });
    }
    found.noise.busy().then_some(ExcerptReason::Busy { share: found.noise.share })
}

/// Says how many runs there are.
fn announce(
    bench: &dyn Bench,
    plan: &RoundPlan,
    conditions: Conditions,
    events: &mut dyn Events,
) -> Result<(), JobError> {
    let levels = plan.references.iter().flat_map(|reference: &Reference| &reference.levels);
    let characterizing = Notice::Characterizing {
        machine: bench.machine().name.clone(),
        levels: levels.map(|level| level.name.clone()).collect(),
        benchmarks: plan.benchmarks.len(),
        sets: plan.experiments.len(),
        runs: plan.runs(conditions.rounds),
        rounds: conditions.rounds,
    };
    outlook(events, &characterizing)
}

fn outlook(events: &mut dyn Events, about: &Notice) -> Result<(), JobError> {
    events.take(Event::Outlook(about)).map_err(JobError::Output)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Failure;
    use crate::error::Remedy;
    use crate::events::Silent;
    use crate::job::{resume_job, run};
    use crate::stored_campaign::empty_store as store;
    use pinwise_campaign::Strategy as _;
    use pinwise_campaign::{CampaignState, Step, TRIES};
    use pinwise_measure::{Fame, MeasureError, Retry};
    use pinwise_measure::{Microbenchmark, PaceUnit, Seat};
    use rusqlite::Connection;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn request() -> CharacterizeRequest {
        CharacterizeRequest {
            model: Some(SimulatedProcessor::built_in("ultrasparc-t2")),
            benchmarks: vec!["intadd".into()],
            stressors: 1,
            conditions: Conditions { fame: Fame::default(), rounds: 1, seed: 1 },
            on: None,
        }
    }

    #[test]
    fn a_run_without_a_usable_pace_ends_the_campaign() {
        let (request, caller) = (request(), Caller::default());
        let bench = open(&request, &caller, None).unwrap();
        let plan = plan(&request, bench.bench()).unwrap();
        let tasks = plan.tasks(request.conditions);
        let mut rounds = PlanRuns::new(&plan, tasks);
        let Step::Measure(trial) = rounds.step(&[]) else { panic!() };
        let outcome = Err(MeasureError::new(Retry::Same, "no number"));
        let refused = Record { number: 0, trial, outcome, elapsed: Duration::ZERO };
        assert_eq!(rounds.step(&[refused]), Step::Fail("no number".into()));
    }

    fn model() -> Box<dyn Bench> {
        match open(&request(), &Caller::default(), None).unwrap() {
            OpenBench::Model(model) => model,
            OpenBench::Host(_) => panic!("a model was asked for"),
        }
    }

    /// Gives every program this time, or its own, or fails.
    struct Odd<F>(Box<dyn Bench>, F);

    impl<F: Fn() -> Result<Option<f64>, MeasureError> + Send + Sync> Bench for Odd<F> {
        fn machine(&self) -> &Machine {
            self.0.machine()
        }

        fn benchmarks(&self) -> &[Microbenchmark] {
            self.0.benchmarks()
        }

        fn unit(&self) -> PaceUnit {
            self.0.unit()
        }

        fn at_once(&self) -> usize {
            1
        }

        fn run(&self, seats: &[Seat], fame: &Fame, seed: u64) -> Result<Vec<Pace>, MeasureError> {
            let time = (self.1)()?;
            let paces = self.0.run(seats, fame, seed)?;
            let with_time = |pace: Pace| Pace { time: time.unwrap_or(pace.time), ..pace };
            Ok(paces.into_iter().map(with_time).collect())
        }
    }

    #[test]
    fn only_what_would_be_refused_again_is_asked_again() {
        let (_folder, mut store) = store();
        let caller = Caller::default();
        for (time, records) in [(Some(0.0), TRIES as u64), (None, 0)] {
            let (new, ready) = request().prepare(&caller, &store, &mut Silent).unwrap();
            let ended = MeasureError::new(Retry::Never, "it ended");
            let odd = Odd(model(), move || time.map(Some).ok_or(ended.clone()));
            let ready =
                PreparedCharacterization { bench: OpenBench::Model(Box::new(odd)), ..ready };
            let id = store.create(&new).unwrap();
            let info = store.get(id).unwrap();
            let ended =
                CharacterizeRequest::conduct(ready, &info, &caller, &mut store, &mut Silent);
            let Err(JobError::Failed(Failure { kept, remedy, .. })) = ended else {
                panic!("it cannot succeed")
            };
            assert_eq!(kept.map_or(0, |kept| kept.records), records);
            assert_eq!(matches!(remedy, Remedy::AskAgain), time.is_some());
        }
    }

    #[test]
    fn a_passing_failure_is_tried_again_and_a_lasting_one_ends_it() {
        let left = Arc::new(AtomicUsize::new(TRIES - 1));
        let failures = left.clone();
        let odd = Odd(model(), move || {
            match failures.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1))
            {
                Ok(_) => Err(MeasureError::new(Retry::Same, "a passing failure")),
                Err(_) => Ok(None),
            }
        });
        let plan = plan(&request(), &odd).unwrap();
        let tasks = plan.tasks(request().conditions);
        let trial = PlanRuns::new(&plan, tasks.clone()).trial(&tasks[0]);
        let run = || Benchmarks::new(&odd, Fame::default()).run(&trial.setting);
        run().unwrap();
        left.store(TRIES, Ordering::Relaxed);
        let error = run().unwrap_err();
        assert_eq!((error.message.as_str(), error.retry), ("a passing failure", Retry::Never));
    }

    /// A resumed campaign reads what a look found, and does not look twice.
    /// A kill between the two writes would leave this.
    #[test]
    fn a_characterization_that_was_not_stored_leaves_its_campaign_to_resume() {
        let (_folder, mut store) = store();
        let path = store.path().to_owned();
        let mut events = Silent;
        let caller = Caller::default();
        let sql = |text: &str| Connection::open(&path).unwrap().execute_batch(text).unwrap();
        sql("CREATE TABLE machine (in_the_way)");
        run(request(), &caller, &mut store, &mut events).unwrap_err();
        let begun = store.list().unwrap().campaigns.remove(0);
        assert!(begun.records > 0 && begun.state != CampaignState::Finished, "{begun:?}");
        sql("DROP TABLE machine");
        let answer =
            resume_job::<CharacterizeRequest>(&begun, &caller, &mut store, &mut events).unwrap();
        assert_eq!((answer.campaign.state, answer.runs), (CampaignState::Finished, begun.records));
        let kept = answer.kept.unwrap();
        let found =
            StoredCharacterization::latest(&store, &kept.characterization.fingerprint).unwrap();
        assert_eq!(found.map(|found| found.id), Some(kept.id));
        // It is stored again if it is gone.
        sql("DELETE FROM machine");
        let again =
            resume_job::<CharacterizeRequest>(&answer.campaign, &caller, &mut store, &mut events);
        let found =
            StoredCharacterization::latest(&store, &kept.characterization.fingerprint).unwrap();
        assert_eq!(again.unwrap().kept, found);
        assert!(found.is_some());
    }
}
