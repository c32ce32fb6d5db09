//! The job that places a program: where should each thread run?

use crate::campaign_run::{conclude, disturbances, measure};
use crate::error::JobError;
use crate::events::{Event, Events, note};
use crate::job::{Caller, Job, resume_job};
use crate::open_subject::OpenSubject;
use crate::placement_request::PlacementRequest;
use crate::plan_file;
use crate::prepare_placement::{
    PreparedSearch, ensure_choice, prepare_search, too_few, with_left_alone,
};
use crate::resume_check::{check_nodes, reopen};
use crate::stored_campaign;
use crate::subject::Subject;
use pinwise_campaign::{CampaignInfo, CampaignState, Kind, NewCampaign, Parent, Record, Store};
use pinwise_measure::{MemoryPolicy, MemoryUse, ProgramNote};
use pinwise_placement::{
    Budget, Gain, Outcome, PlacementQuestion, PlacementSearch, Plan, PlanNote, PlanOrigin,
    PlannedMemory, StopReason,
};
use pinwise_present::{Notice, Summary, tagged_notes};
use pinwise_topology::{Assignment, Fingerprint, SharingTree};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::PathBuf;
use std::time::Instant;

/// From this share of the budget on, a note reports what was spent before the first measurement.
const SPENT_NOTABLE: f64 = 0.2;

/// Asks where each thread of a program should run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlaceRequest {
    /// The program and the question.
    #[serde(flatten, deserialize_with = "pinwise_measure::by_value")]
    pub request: PlacementRequest,
    /// The path of the plan. `None`: beside the store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PathBuf>,
}

/// The answer of `place`: the outcome, and the plan if one was written.
#[derive(Debug)]
pub struct PlaceAnswer {
    /// The campaign.
    pub campaign: CampaignInfo,
    /// The question.
    pub question: PlacementQuestion,
    /// The outcome of the search.
    pub outcome: Outcome,
    /// The plan, if there is one to write.
    pub plan: Option<PathBuf>,
    /// Why the plan could not be written. The answer stands all the same.
    pub unwritten: Option<JobError>,
}

impl From<PlacementRequest> for PlaceRequest {
    fn from(request: PlacementRequest) -> Self {
        Self { request, plan: None }
    }
}

impl PlaceAnswer {
    /// An answer whose plan is written now.
    fn with_plan(
        store: &Store,
        campaign: CampaignInfo,
        question: PlacementQuestion,
        outcome: Outcome,
        fingerprint: Fingerprint,
        wanted: Option<PathBuf>,
    ) -> Self {
        let written = make_plan(store, &campaign, &outcome, fingerprint, wanted);
        let (plan, unwritten) = match written {
            Ok(plan) => (plan, None),
            Err(error) => (None, Some(error)),
        };
        Self { campaign, question, outcome, plan, unwritten }
    }
}

/// A placement that is ready to measure: the question, the program, and the search.
pub struct PreparedPlacement {
    request: PlacementRequest,
    testbed: Box<dyn OpenSubject>,
    search: PlacementSearch,
    plan: Option<PathBuf>,
}

impl Job for PlaceRequest {
    const KIND: Kind = Kind::Place;
    type Answer = PlaceAnswer;
    type Prepared = PreparedPlacement;

    fn prepare(
        self,
        caller: &Caller,
        store: &Store,
        events: &mut dyn Events,
    ) -> Result<(NewCampaign, PreparedPlacement), JobError> {
        let begin = Instant::now();
        let Self { request, plan } = self;
        plan_file::check_plan_path(store, plan.as_deref())?;
        let budget = request.question.budget;
        let prepared = prepare_search(request, None, begin, store, caller, events)?;
        if let (Budget::Time(asked), Budget::Time(left)) =
            (budget, prepared.request.question.budget)
            && left < asked.mul_f64(1.0 - SPENT_NOTABLE)
        {
            let [spent, left] = [asked - left, left].map(|time| time.as_secs_f64());
            note(events, Notice::BudgetSpent { spent, left })?;
        }
        with_left_alone(ensure_choice(&prepared), &*prepared.testbed, events)?;
        let PreparedSearch { request, testbed, new, search } = prepared;
        if let Some(few) = too_few(&request, &*testbed, &search, begin.elapsed())? {
            note(events, few)?;
        }
        let absolute = plan.as_deref().map(plan_file::absolute).transpose()?;
        let asked = Self { request, plan: absolute };
        let new = NewCampaign { question: serde_json::to_value(&asked)?, ..new };
        Ok((new, PreparedPlacement { request: asked.request, testbed, search, plan }))
    }

    fn reopen(
        info: &CampaignInfo,
        caller: &Caller,
        store: &Store,
        events: &mut dyn Events,
    ) -> Result<PreparedPlacement, JobError> {
        let Self { request, plan } = stored_campaign::question(info)?;
        let plan = plan_file::resumed_path(store, info, plan);
        let testbed = reopen(info, &request, caller, store, events)?;
        let tree = SharingTree::new(&info.new.machine, info.new.alike);
        let search = PlacementSearch::new(&request.question, &tree, &info.new.workload)?;
        Ok(PreparedPlacement { request, testbed, search, plan })
    }

    fn conduct(
        PreparedPlacement { request, mut testbed, search, plan }: PreparedPlacement,
        info: &CampaignInfo,
        caller: &Caller,
        store: &mut Store,
        events: &mut dyn Events,
    ) -> Result<PlaceAnswer, JobError> {
        for about in testbed.notes() {
            note(events, about)?;
        }
        let testbed = &mut *testbed;
        let question = request.question;
        let outcome = search_stored(store, info, &question, search, testbed, caller, events)?;
        let (fingerprint, info) = (testbed.fingerprint(), store.get(info.id)?);
        Ok(PlaceAnswer::with_plan(store, info, question, outcome, fingerprint, plan))
    }

    fn finished(
        info: &CampaignInfo,
        caller: &Caller,
        store: &mut Store,
    ) -> Result<PlaceAnswer, JobError> {
        let answer = Self::answer(info, caller, store)?;
        if answer.plan.is_some() {
            return Ok(answer);
        }
        let Self { plan, .. } = stored_campaign::question(info)?;
        let plan = plan_file::resumed_path(store, info, plan);
        // The kernel and the settings may have changed. Those of the search are not known any more.
        let fingerprint = Fingerprint::of(&info.new.machine);
        let PlaceAnswer { campaign, question, outcome, .. } = answer;
        Ok(PlaceAnswer::with_plan(store, campaign, question, outcome, fingerprint, plan))
    }

    fn answer(
        info: &CampaignInfo,
        caller: &Caller,
        store: &Store,
    ) -> Result<PlaceAnswer, JobError> {
        let outcome = outcome(caller, store, info, &store.records(info.id)?)?;
        // A `PlacementRequest` is stored flat, so its `PlacementQuestion` can be read alone.
        let question = stored_campaign::question(info)?;
        let plan = plan_file::plan_path(store, info);
        Ok(PlaceAnswer { campaign: info.clone(), question, outcome, plan, unwritten: None })
    }

    fn summary(conclusion: &Value) -> Option<Summary> {
        let Outcome { verdict, gain, .. } = Outcome::deserialize(conclusion).ok()?;
        let gain = gain.map(|(mean, low, high)| Gain { mean, low, high });
        Some(Summary::Place { verdict, gain })
    }
}

/// How many different assignments the space of a concluded placement has, as digits; `None` of
/// other campaigns. It is read alone: so it is known if another version wrote the rest.
pub fn assignment_count(info: &CampaignInfo) -> Option<String> {
    #[derive(Deserialize)]
    struct Counted {
        assignments: String,
    }
    let conclusion = info.conclusion.as_ref().filter(|_| info.new.kind == Kind::Place)?;
    Counted::deserialize(conclusion).ok().map(|counted| counted.assignments)
}

/// Runs the search of a campaign to its end.
pub(crate) fn search_stored(
    store: &mut Store,
    info: &CampaignInfo,
    question: &PlacementQuestion,
    mut search: PlacementSearch,
    testbed: &mut dyn OpenSubject,
    caller: &Caller,
    events: &mut dyn Events,
) -> Result<Outcome, JobError> {
    // A part is locked, too, until its conclusion is stored.
    let _lock = store.lock(info.id)?;
    let measured = measure(store, info, question.budget, &mut search, testbed, caller, events)?;
    let returned = testbed.give_memory_back();
    let testbed = &*testbed;
    conclude(store, info.id, measured, testbed, |records, mut notes| {
        let outcome = search.outcome(&info.new.unit, records, None);
        let best = outcome.best.as_ref().map(|best| &best.assignment);
        let memory = testbed.memory(best);
        let away = memory.as_ref().zip(best).and_then(|(held, best)| away(info, held, best));
        notes.extend(away.into_iter().chain(returned));
        Outcome { notes, memory, ..outcome }
    })
}

/// A note on memory that lies on other nodes than the threads of the best assignment.
fn away(info: &CampaignInfo, held: &MemoryUse, best: &Assignment) -> Option<ProgramNote> {
    /// A program also maps what others have loaded.
    const NOTABLE: f64 = 0.1;
    let machine = &info.new.machine;
    let tree = SharingTree::new(machine, info.new.alike);
    let cpus = best.leaves().iter().filter_map(|&leaf| tree.leaves().get(leaf as usize).copied());
    let nodes = machine.nearest_memory(&cpus.collect());
    let share = held.nodes.outside(&nodes);
    match held.policy {
        _ if share <= NOTABLE => None,
        MemoryPolicy::Leave => Some(ProgramNote::MemoryRemote { share }),
        MemoryPolicy::Follow if nodes.len() == 1 => Some(ProgramNote::MemoryNotMoved { share }),
        // Next to several nodes, memory is at home.
        MemoryPolicy::Follow | MemoryPolicy::Interleave => None,
    }
}

/// A search that has ended, as it is in the store.
#[derive(Clone, Debug)]
pub struct StoredSearch {
    /// The campaign.
    pub info: CampaignInfo,
    /// The question.
    pub question: PlacementQuestion,
    /// The outcome of the search.
    pub outcome: Outcome,
}

/// Places a program as a part of another campaign. A part that has finished is read, one that was
/// interrupted goes on.
///
/// # Errors
/// The errors of [`crate::run()`].
pub(crate) fn place_part(
    request: PlacementRequest,
    parent: Option<Parent>,
    caller: &Caller,
    store: &mut Store,
    events: &mut dyn Events,
) -> Result<StoredSearch, JobError> {
    if let Some(parent) = &parent
        && let Some(mut info) = stored_campaign::part(store, parent)?
    {
        // A program that pinwise launched is another process in another session.
        if matches!(request.subject, Subject::Pids(_)) {
            info.new.question["subject"] = serde_json::to_value(&request.subject)?;
        }
        let PlaceAnswer { question, outcome, .. } =
            resume_job::<PlaceRequest>(&info, caller, store, &mut Quiet(events))?;
        return Ok(StoredSearch { info: store.get(info.id)?, question, outcome });
    }
    let prepared = prepare_search(request, parent, Instant::now(), store, caller, events)?;
    let PreparedSearch { request, mut testbed, new, search } = prepared;
    if let (Some(parent), Some(_)) = (&new.parent, &request.on) {
        check_nodes(&store.get(parent.id)?, &new.machine)?;
    }
    let id = store.create(&new)?;
    let info = store.get(id)?;
    let question = request.question;
    let outcome = search_stored(store, &info, &question, search, &mut *testbed, caller, events)?;
    Ok(StoredSearch { info: store.get(id)?, question, outcome })
}

/// The events of a part, which has no separate answer.
struct Quiet<'a>(&'a mut dyn Events);

impl Events for Quiet<'_> {
    fn take(&mut self, event: Event<'_>) -> std::io::Result<()> {
        if matches!(event, Event::Begun(_)) { Ok(()) } else { self.0.take(event) }
    }
}

fn outcome(
    caller: &Caller,
    store: &Store,
    info: &CampaignInfo,
    records: &[Record],
) -> Result<Outcome, JobError> {
    if let Some(concluded) = stored_campaign::conclusion(info)? {
        return Ok(concluded);
    }
    let question: PlacementQuestion = stored_campaign::question(info)?;
    let tree = SharingTree::new(&info.new.machine, info.new.alike);
    let search = PlacementSearch::replay(&question, &tree, &info.new.workload, records)?;
    let ended = match info.state {
        CampaignState::Open if info.running => StopReason::Running,
        CampaignState::Open => {
            StopReason::Killed { campaign: info.id, store: caller.store.clone() }
        }
        _ => StopReason::Stopped { campaign: info.id, store: caller.store.clone() },
    };
    Ok(Outcome {
        notes: disturbances(store, [info.id])?,
        ..search.outcome(&info.new.unit, records, Some(ended))
    })
}

/// Whether the names of a placement's threads count those that had ended: each run was watched from
/// its start.
pub(crate) fn counts_ended_threads(info: &CampaignInfo) -> Result<bool, JobError> {
    let request: PlacementRequest = stored_campaign::question(info)?;
    Ok(matches!(request.subject, Subject::Rerun(_)))
}

/// Makes and writes the plan of an outcome, if it has one. The path is the user's, or one beside
/// the store. A part has no plan: its parent answers.
fn make_plan(
    store: &Store,
    info: &CampaignInfo,
    outcome: &Outcome,
    fingerprint: Fingerprint,
    wanted: Option<PathBuf>,
) -> Result<Option<PathBuf>, JobError> {
    if info.new.parent.is_some() {
        return Ok(None);
    }
    let tree = SharingTree::new(&info.new.machine, info.new.alike);
    let Some(mut plan) = Plan::from_outcome(&info.new.workload, &tree, fingerprint, outcome) else {
        return Ok(None);
    };
    plan.counts_ended_threads = counts_ended_threads(info)?;
    let request: PlacementRequest = stored_campaign::question(info)?;
    plan.memory = PlannedMemory::new(request.memory, &info.new.machine, &plan.cpus());
    plan.origin = Some(PlanOrigin {
        campaign: Some(store.identity(info)),
        verdict: outcome.verdict,
        simulated: info.new.simulated,
        notes: tagged_notes(info, outcome).iter().map(PlanNote::new).collect(),
    });
    match wanted {
        Some(path) => plan_file::write_plan(&path, &plan).map(|()| Some(path)),
        None => plan_file::keep_plan(store, &info.id.0.to_string(), &plan).map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stored_campaign::empty_store;
    use crate::{Silent, SimulatedProcessor, placement_request::simulated};
    use pinwise_topology::Machine;

    #[test]
    fn memory_away_from_the_threads_is_noted_by_its_policy() {
        let (_folder, mut store) = empty_store();
        let model = SimulatedProcessor::built_in("ultrasparc-t2");
        let asked = PlaceRequest::from(simulated(model, Budget::Measurements(100)));
        let (mut new, _) = asked.prepare(&Caller::default(), &store, &mut Silent).unwrap();
        new.machine = Machine::from_shape("numa:3 core:2").unwrap();
        let id = store.create(&new).unwrap();
        let info = store.get(id).unwrap();
        let note = |policy, leaves: &[u32]| {
            let nodes = [(0, 25), (1, 75)].into_iter().collect();
            away(
                &info,
                &MemoryUse { policy, nodes, local: None },
                &Assignment::new(leaves.to_vec()),
            )
        };
        let share = 0.75;
        assert_eq!(note(MemoryPolicy::Leave, &[0, 1]), Some(ProgramNote::MemoryRemote { share }));
        let unmoved = Some(ProgramNote::MemoryNotMoved { share });
        assert_eq!(note(MemoryPolicy::Follow, &[0, 1]), unmoved);
        assert_eq!(note(MemoryPolicy::Follow, &[0, 5]), None);
        assert_eq!(note(MemoryPolicy::Interleave, &[0]), None);
    }
}
