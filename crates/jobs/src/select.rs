//! The job that chooses which of the ready programs run together, and where.

use crate::campaign_run::{as_parent_error, conclude, measure};
use crate::error::JobError;
use crate::events::{Event, Events};
use crate::job::{Caller, Job};
use crate::open_subject::{OpenSubject, allowed_machine, open_ready};
use crate::place::place_part;
use crate::placement_request::PlacementRequest;
use crate::simulation::SimulationRequest;
use crate::stored_campaign;
use crate::subject::Subject;
use pinwise_campaign::{CampaignInfo, Kind, NewCampaign, Parent, Store};
use pinwise_measure::Testbed;
use pinwise_placement::{
    Budget, Outcome, SelectionError, SelectionOutcome, SelectionQuestion, SelectionSearch,
};
use pinwise_prediction::ThreadKinds;
use pinwise_present::{Files, Planned, Summary, Unfinished};
use pinwise_processor::SimulatedTestbed;
use pinwise_processor::program::PacketProgram;
use pinwise_topology::{Alike, SharingTree, SpaceError};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Which of the ready programs run together: the request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SelectRequest {
    /// The question of the selection.
    #[serde(flatten, deserialize_with = "pinwise_measure::by_value")]
    pub question: SelectionQuestion,
    /// The ready programs, on a simulated processor.
    pub subject: Subject,
    /// The performance of each instance alone, in packets/s. Empty in a question: parts of the
    /// campaign measure it first.
    pub alone: Vec<f64>,
    /// Only these contexts, as a CPU list.
    pub cpus: Option<String>,
    /// The name of the workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl SelectRequest {
    /// Why a request without a simulated processor is refused.
    pub const NEEDS_MODEL: &str = "select needs a simulated processor: add --machine \
        ultrasparc-t2. For programs that run together on this machine use pinwise place --workload";

    pub(crate) fn simulation(&self) -> Result<&SimulationRequest, JobError> {
        match &self.subject {
            Subject::Simulated(simulation) => Ok(simulation),
            _ => Err(JobError::usage(Self::NEEDS_MODEL)),
        }
    }

    fn open(&self) -> Result<SimulatedTestbed, JobError> {
        let Self { question, alone, cpus, .. } = self;
        open_ready(self.simulation()?, cpus.as_deref(), alone.clone(), question.seed)
    }

    /// The program of every ready instance.
    pub fn names(&self) -> Vec<String> {
        let Subject::Simulated(simulation) = &self.subject else { return Vec::new() };
        let programs = simulation.programs().unwrap_or_default();
        programs.iter().map(ToString::to_string).collect()
    }
}

/// The answer of `select`: the programs that were chosen, so far.
#[derive(Clone, Debug)]
pub struct SelectAnswer {
    /// The campaign.
    pub campaign: CampaignInfo,
    /// The question.
    pub request: SelectRequest,
    /// The outcome so far.
    pub outcome: SelectionOutcome,
}

impl SelectAnswer {
    /// How far the campaign is, without its parts; `None` if it has ended.
    pub fn unfinished(&self, files: Files<'_>) -> Option<Unfinished> {
        let most = Planned::AtMost(self.request.question.budget);
        Unfinished::of(&self.campaign, self.campaign.records, most, "measurement", files)
    }

    /// The instances that a drawn selection runs, from its number of each application.
    pub fn instances(&self, counts: &[usize]) -> Vec<usize> {
        let kinds = ThreadKinds::new(&self.campaign.new.workload);
        let of = |(application, count): (usize, &usize)| {
            let all = kinds.instances().iter().enumerate();
            let own = all.filter(move |(_, instance)| instance.application == application);
            own.map(|(index, _)| index).take(*count).collect::<Vec<_>>()
        };
        counts.iter().enumerate().flat_map(of).collect()
    }

    /// Each program, and what an instance of it reaches alone, in packets/s.
    pub fn alone(&self) -> Vec<(String, f64)> {
        let mut alone: Vec<(String, f64)> = Vec::new();
        for (name, rate) in self.request.names().into_iter().zip(&self.request.alone) {
            if alone.iter().all(|(known, _)| *known != name) {
                alone.push((name, *rate));
            }
        }
        alone
    }
}

/// Measurements of each program alone, to find what it does at best.
const ALONE: u64 = 100;

/// A part of a selection: its [`Parent::step`].
#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum SelectPart<'a> {
    /// One instance of a program is placed alone.
    Alone {
        /// The program.
        program: &'a str,
    },
}

impl Job for SelectRequest {
    const KIND: Kind = Kind::Select;
    type Answer = SelectAnswer;
    type Prepared = SelectRequest;

    fn prepare(
        self,
        caller: &Caller,
        _: &Store,
        _: &mut dyn Events,
    ) -> Result<(NewCampaign, Self), JobError> {
        let simulation = self.simulation()?;
        let processor = simulation.model.processor()?;
        let machine = allowed_machine(processor.machine(), self.cpus.as_deref())?;
        let programs = simulation
            .programs()
            .ok_or_else(|| JobError::failed("the model has no such program"))?;
        let tree = SharingTree::new(&machine, Alike::ByStructure);
        let ready = PacketProgram::workload(&programs);
        SelectionSearch::new(&self.question, &tree, &ready).map_err(|error| match error {
            SelectionError::Space(SpaceError::TooManyThreads { threads, contexts, .. }) => {
                JobError::Usage(format!(
                    "the {threads} threads of {} instances do not fit on {contexts} contexts, one \
                     each: choose fewer instances, or allow more contexts with --cpus",
                    self.question.choose
                ))
            }
            error => JobError::usage(error),
        })?;
        let testbed = self.open()?;
        let mut workload = testbed.workload().clone();
        if let Some(name) = &self.name {
            workload.name.clone_from(name);
        }
        let new = NewCampaign {
            kind: Self::KIND,
            parent: None,
            command: caller.command.clone(),
            machine,
            alike: Alike::ByStructure,
            workload,
            unit: testbed.unit().clone(),
            simulated: true,
            question: serde_json::to_value(&self)?,
            seed: self.question.seed,
        };
        Ok((new, self))
    }

    fn reopen(
        info: &CampaignInfo,
        _: &Caller,
        _: &Store,
        _: &mut dyn Events,
    ) -> Result<Self, JobError> {
        stored_campaign::question(info)
    }

    fn conduct(
        mut request: Self,
        info: &CampaignInfo,
        caller: &Caller,
        store: &mut Store,
        events: &mut dyn Events,
    ) -> Result<SelectAnswer, JobError> {
        if request.alone.is_empty() {
            request.alone = match place_alone(&request, info, caller, store, events) {
                Ok(alone) => alone,
                Err(error) => return Err(as_parent_error(error, store, info.id)?),
            };
        }
        let tree = SharingTree::new(&info.new.machine, info.new.alike);
        let opened = request.open().and_then(|testbed| {
            Ok((testbed, SelectionSearch::new(&request.question, &tree, &info.new.workload)?))
        });
        let (mut testbed, mut search) = match opened {
            Ok(opened) => opened,
            Err(error) => return Err(as_parent_error(error, store, info.id)?),
        };
        let budget = Budget::Measurements(request.question.budget);
        let measured = measure(store, info, budget, &mut search, &mut testbed, caller, events)?;
        let outcome =
            conclude(store, info.id, measured, &testbed as &dyn OpenSubject, |records, _| {
                search.outcome(records)
            })?;
        Ok(SelectAnswer { campaign: store.get(info.id)?, request, outcome })
    }

    fn answer(info: &CampaignInfo, _: &Caller, store: &Store) -> Result<SelectAnswer, JobError> {
        let mut request: Self = stored_campaign::question(info)?;
        if request.alone.is_empty() {
            request.alone = placed_alone(&request, info, store)?;
        }
        let tree = SharingTree::new(&info.new.machine, info.new.alike);
        let search = SelectionSearch::new(&request.question, &tree, &info.new.workload)?;
        let outcome = search.outcome(&store.records(info.id)?);
        Ok(SelectAnswer { campaign: info.clone(), request, outcome })
    }

    fn summary(conclusion: &Value) -> Option<Summary> {
        let best = SelectionOutcome::deserialize(conclusion).ok()?.best?;
        Some(Summary::Select { speedup: best.performance.mean })
    }
}

/// Places one instance of each program alone, in a part of the campaign. Returns what every ready
/// instance does at best, in packets/s.
fn place_alone(
    request: &SelectRequest,
    info: &CampaignInfo,
    caller: &Caller,
    store: &mut Store,
    events: &mut dyn Events,
) -> Result<Vec<f64>, JobError> {
    let names = request.names();
    let mut programs = names.clone();
    programs.sort_unstable();
    programs.dedup();
    let mut rates = BTreeMap::new();
    for (number, program) in programs.iter().enumerate() {
        let name = format!("{program} alone");
        let begun = Event::Search { number: number + 1, of: programs.len(), name: &name };
        events.take(begun).map_err(JobError::Output)?;
        let part = alone(request, program)?;
        let parent = Parent::new(info.id, &SelectPart::Alone { program });
        let placed = place_part(part, Some(parent), caller, store, events)?;
        let rate = at_best(&placed.outcome).ok_or_else(|| {
            JobError::failed(format!("nothing is known of {program} alone, so that no sum counts"))
        })?;
        rates.insert(program, rate);
    }
    Ok(names.iter().map(|name| rates[name]).collect())
}

/// The request to place one instance of `program` alone.
fn alone(request: &SelectRequest, program: &str) -> Result<PlacementRequest, JobError> {
    let simulation = SimulationRequest {
        program: program.to_owned(),
        instances: 1,
        others: Vec::new(),
        ..request.simulation()?.clone()
    };
    let mut alone = PlacementRequest::simulated(simulation);
    alone.name = None;
    alone.question.budget = Budget::Measurements(ALONE);
    alone.cpus.clone_from(&request.cpus);
    alone.question.seed = request.question.seed;
    Ok(alone)
}

/// The performance of a program's best placement on fresh windows. If a balanced placement performs
/// better, its performance.
fn at_best(outcome: &Outcome) -> Option<f64> {
    let best = outcome.best.as_ref().map(|best| best.performance.mean);
    best.into_iter().chain(outcome.baseline.map(|balanced| balanced.mean)).reduce(f64::max)
}

/// The performance of every ready instance alone. Empty until the campaign has all these parts.
fn placed_alone(
    request: &SelectRequest,
    info: &CampaignInfo,
    store: &Store,
) -> Result<Vec<f64>, JobError> {
    let rate = |program: &String| {
        let parent = Parent::new(info.id, &SelectPart::Alone { program });
        let Some(part) = stored_campaign::part(store, &parent)? else { return Ok(None) };
        Ok(stored_campaign::conclusion::<Outcome>(&part)?.as_ref().and_then(at_best))
    };
    let rates: Result<Option<Vec<f64>>, JobError> = request.names().iter().map(rate).collect();
    Ok(rates?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::Silent;
    use crate::job::run;
    use crate::job_table::{Answer, resume};
    use crate::placement_request::simulated;
    use crate::simulation::SimulatedProcessor;
    use pinwise_campaign::CampaignState;
    use pinwise_placement::SelectionQuestion;
    use std::io;

    fn request() -> SelectRequest {
        let Subject::Simulated(simulation) =
            simulated(SimulatedProcessor::built_in("ultrasparc-t2"), Budget::Measurements(1))
                .subject
        else {
            panic!()
        };
        let others = vec![("intmul".to_owned(), 1)];
        SelectRequest {
            question: SelectionQuestion { choose: 1, budget: 50, confidence: 0.95, seed: 1 },
            subject: Subject::Simulated(SimulationRequest { others, ..simulation }),
            alone: Vec::new(),
            cpus: Some("0-7".into()),
            name: None,
        }
    }

    /// Asks to stop after this number of measurements.
    struct Stop<'a>(u32, &'a Caller);

    impl Events for Stop<'_> {
        fn take(&mut self, event: Event<'_>) -> io::Result<()> {
            if let Event::Measured(_) = event {
                self.0 -= 1;
                if self.0 == 0 {
                    self.1.interrupt.flag().store(true, std::sync::atomic::Ordering::Relaxed);
                }
            }
            Ok(())
        }
    }

    #[test]
    fn what_programs_do_alone_is_stored_and_a_stop_meanwhile_loses_none_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::open(&folder.path().join("pinwise.db")).unwrap();
        let caller = Caller::default();
        let error = run(request(), &caller, &mut store, &mut Stop(7, &caller)).unwrap_err();
        assert!(matches!(error, JobError::Interrupted(_)), "{error}");
        let stopped = store.list().unwrap().campaigns;
        let ends: Vec<_> =
            stopped.iter().map(|info| (info.new.kind, info.state, info.records)).collect();
        assert_eq!(
            ends,
            [(Kind::Select, CampaignState::Stopped, 0), (Kind::Place, CampaignState::Stopped, 7)]
        );
        let answer = resume(stopped[0].id, &Caller::default(), &mut store, &mut Silent).unwrap();
        let Answer::Select(answer) = answer else { panic!("{answer:?}") };
        assert_eq!(answer.campaign.state, CampaignState::Finished);
        // Also when it is resumed itself, a part makes no plan.
        resume(stopped[1].id, &Caller::default(), &mut store, &mut Silent).unwrap();
        assert!(!folder.path().join("plans").exists());
        // It goes on as if nothing had happened, and the stored answer is the same.
        let mut other = Store::open(&folder.path().join("other.db")).unwrap();
        let at_once = run(request(), &Caller::default(), &mut other, &mut Silent).unwrap();
        assert_eq!(answer.outcome, at_once.outcome);
        assert_eq!(answer.request, at_once.request);
        assert!(answer.request.alone.iter().all(|rate| *rate > 1e5), "{:?}", answer.request.alone);
        let read = SelectRequest::answer(&answer.campaign, &caller, &store).unwrap();
        assert_eq!((read.request, read.outcome), (answer.request, answer.outcome));
    }
}
