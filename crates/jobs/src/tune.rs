//! The job that finds the number of threads and their placement together: the question and its
//! answer.
//!
//! A campaign of this kind has no records. It has four parts (`parts`). The first is the search for
//! the number alone. The second tries numbers under policies of placement. The third places each
//! number that may be best. The fourth is the last comparison. It compares the default, the number
//! alone, and the number with its placement, on fresh windows. Only these results are announced.
//! The answer and the plan are read from the parts, however far they came.

mod on_nodes;
mod parts;
mod policies;
mod program_testbed;

use crate::campaign_run::{as_parent_error, disturbances};
use crate::error::JobError;
use crate::events::Events;
use crate::job::{Caller, Job};
use crate::last_comparison::{
    ComparedNumbers, LastComparison, LastComparisonQuestion, UnplacedNumber,
};
use crate::place::{PlaceAnswer, PlaceRequest, StoredSearch, counts_ended_threads};
use crate::placement_request::PlacementRequest;
use crate::plan_file;
use crate::prepare_placement::usable_memory;
use crate::resume_check::{check_machine, check_processes};
use crate::stored_campaign;
use crate::threads::{
    HostProgram, ThreadsOnNodes, ThreadsOutcome, ThreadsProgram, ThreadsQuestion, ThreadsRequest,
    hold,
};
pub(crate) use on_nodes::serve_tuned;
use parts::measure_parts;
use pinwise_campaign::{CampaignId, CampaignInfo, CampaignState, Kind, NewCampaign, Parent, Store};
use pinwise_measure::{MemoryPolicy, ProgramNote, optional_value_or_text, values_or_text};
use pinwise_placement::{
    Gain, LastComparisonNote, LastComparisonVerdict, PlacementVerdict, Plan, PlanEvidence,
    PlanNote, PlanOrigin, PlannedMemory, PlannedNumber, TunePart, Unmeasured, Way,
};
use pinwise_present::{
    Files, NoPlacement, Planned, Summary, TuneVerdict, Unfinished, tagged_tune_notes,
};
use pinwise_programs::ProbeError;
use pinwise_threads::ThreadsNote;
use pinwise_topology::{Fingerprint, Machine, SharingTree};
use policies::Policies;
pub use policies::{PoliciesQuestion, PolicyMeasurement, PolicyMeasurements};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// The number's share of the time.
const NUMBER: f64 = 0.25;

/// How many threads, and where: the question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "StoredTuneRequest")]
pub struct TuneRequest {
    /// The program, and how its number is found. Its budget is that of the whole.
    pub threads: ThreadsRequest,
    /// The path of the plan. `None`: beside the store.
    pub plan: Option<PathBuf>,
    /// The memory policy to try besides leaving memory where it is. `None`: all that apply to a
    /// program that pinwise starts, none for one that goes on running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryPolicy>,
}

/// A request as stores have it.
#[derive(Deserialize)]
struct StoredTuneRequest {
    threads: ThreadsRequest,
    /// In an earlier version: the number that the program uses on its own, if the user gave it.
    #[serde(default)]
    default: Option<u32>,
    plan: Option<PathBuf>,
    #[serde(default)]
    memory: Option<MemoryPolicy>,
}

impl From<StoredTuneRequest> for TuneRequest {
    fn from(stored: StoredTuneRequest) -> Self {
        let StoredTuneRequest { mut threads, default, plan, memory } = stored;
        threads.default = default.or(threads.default);
        Self { threads, plan, memory }
    }
}

/// A number that was placed, or why it could not be.
#[derive(Clone, Debug)]
pub struct TunedPlacement {
    /// n.
    pub parameter: u32,
    /// The search for its placement.
    pub searched: Option<StoredSearch>,
    /// Why there is none.
    pub reason: Option<Unmeasured>,
}

/// The conclusion of `tune`, as the campaign stores it. In an earlier version it named its plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TuneConclusion {
    /// The verdict.
    pub choice: LastComparisonVerdict,
    /// The plan's n; `None`: the program's own.
    pub parameter: Option<u32>,
    /// The choice over the default; `None` for the default.
    pub gain: Option<Gain>,
    /// How the program is started, as a shell takes it, if it is started with the number.
    pub command: Option<String>,
    /// The variables of its environment that `run` sets only if they are named.
    #[serde(default)]
    pub named: Vec<String>,
    /// Numbers that could not be placed.
    pub unplaced: Vec<UnplacedNumber>,
    /// Why the comparison ended before its time, if it did. The campaign can be resumed, unless the
    /// program jumped or fell below the floor.
    #[serde(deserialize_with = "optional_value_or_text")]
    pub cut_short: Option<Unmeasured>,
    /// Notes that the parts do not show.
    #[serde(deserialize_with = "values_or_text")]
    pub notes: Vec<LastComparisonNote>,
    /// The time that everything took.
    pub time: Duration,
}

/// The last comparison of `tune`: its question, its result, and the conclusion.
#[derive(Clone, Debug)]
pub struct TuneLastComparison {
    /// The part whose records are the windows.
    pub campaign: CampaignId,
    /// The question.
    pub compared: LastComparisonQuestion,
    /// The result.
    pub comparison: LastComparison,
    /// The verdict.
    pub conclusion: TuneConclusion,
}

/// The answer of `tune`: what each of its parts found, as far as it came.
#[derive(Debug)]
pub struct TuneAnswer {
    /// The campaign.
    pub campaign: CampaignInfo,
    /// The measurements of its parts.
    pub measured: u64,
    /// The budget.
    pub budget: Duration,
    /// The tolerance: a gain up to this share counts as none.
    pub within: f64,
    /// The search for the number alone; `None` before its first probe.
    pub threads: Option<ThreadsOutcome>,
    /// Numbers under policies of placement.
    pub policies: PolicyMeasurements,
    /// The placements of the numbers near the best, in the order in which they were made last.
    pub placements: Vec<TunedPlacement>,
    /// The last comparison, and what follows; `None` before.
    pub concluded: Option<TuneLastComparison>,
    /// The plan, if there is one.
    pub plan: Option<PathBuf>,
    /// Notes, besides those of [`Self::threads`].
    pub notes: Vec<LastComparisonNote>,
    /// Failures after the answer.
    pub left_undone: Vec<LeftUndone>,
    /// Why this run ended before the comparison did. `None` if the answer was only read.
    pub cut_short: Option<Unmeasured>,
}

/// A step that failed after an answer of `tune`. The answer stands all the same.
#[derive(Debug, thiserror::Error)]
pub enum LeftUndone {
    /// The plan is not written.
    #[error(transparent)]
    Plan(JobError),
    /// The process does not have the number.
    #[error(transparent)]
    Number(ProbeError),
}

impl TuneAnswer {
    /// The last comparison, as `present` takes it; `None` before it.
    pub fn verdict(&self) -> Option<TuneVerdict<'_>> {
        let TuneLastComparison { compared, comparison, conclusion, .. } =
            self.concluded.as_ref()?;
        let n = compared.n;
        let own = self.placements.iter().find(|placed| placed.parameter == n);
        let unplaced =
            || own.into_iter().chain(&self.placements).find_map(TunedPlacement::unplaced);
        Some(TuneVerdict {
            rounds: &comparison.rounds,
            choice: conclusion.choice,
            within: self.within,
            budget: self.budget,
            n,
            default: compared.default,
            unplaced: compared.placed.is_none().then(unplaced).flatten(),
            others: comparison.others(),
            cut_short: comparison.cut_short.as_ref(),
        })
    }

    /// How far the campaign is; `None` if it has ended.
    pub fn unfinished(&self, files: Files<'_>) -> Option<Unfinished> {
        Unfinished::of(&self.campaign, self.measured, Planned::ByTime, "measurement", files)
    }

    /// What the last comparison shows of the number alone; `None`: too little.
    pub fn compared_numbers(&self) -> Option<ComparedNumbers> {
        let TuneLastComparison { compared, comparison, conclusion, .. } =
            self.concluded.as_ref()?;
        comparison.numbers(compared, conclusion.parameter.unwrap_or(compared.n))
    }

    /// The answer with its plan, which is written now.
    fn with_plan(
        mut self,
        store: &Store,
        request: &TuneRequest,
        fingerprint: Fingerprint,
    ) -> Result<Self, JobError> {
        if let Some(plan) = plan(&self, &request.threads, fingerprint, store)? {
            let written = match &request.plan {
                Some(path) => plan_file::write_plan(path, &plan).map(|()| path.clone()),
                None => plan_file::keep_plan(store, &format!("tune-{}", plan.program), &plan),
            };
            // The plan of an earlier answer is not kept: it rests on fewer windows.
            self.plan = None;
            match written {
                Ok(path) => self.plan = Some(path),
                Err(error) => self.left_undone.push(LeftUndone::Plan(error)),
            }
        }
        Ok(self)
    }

    /// Notes on the search for the number. With nodes, also what happened to them in other parts.
    pub fn number_notes(&self) -> &[ThreadsNote] {
        self.threads.as_ref().map_or(&[], |threads| &threads.notes)
    }
}

impl TunedPlacement {
    /// Why there is no placement of it that could be compared; `None` if there is one.
    fn unplaced(&self) -> Option<NoPlacement<'_>> {
        match &self.searched {
            None => self.reason.as_ref().map(NoPlacement::Unsearched),
            Some(StoredSearch { outcome, .. }) => {
                outcome.best.is_none().then_some(NoPlacement::Unannounced(outcome))
            }
        }
    }

    /// Its best speed, pinned or not, by the fresh windows of its search. `None`: nothing was
    /// measured.
    pub fn best(&self) -> Option<f64> {
        let outcome = &self.searched.as_ref()?.outcome;
        let pinned = outcome.best.as_ref().map(|best| best.performance.mean);
        let unpinned = outcome.baseline.as_ref().map(|baseline| baseline.mean);
        [pinned, unpinned].into_iter().flatten().max_by(f64::total_cmp)
    }
}

/// A request, with the nodes on which its program is open.
pub struct PreparedTune {
    request: TuneRequest,
    nodes: Option<ThreadsOnNodes>,
}

impl Job for TuneRequest {
    const KIND: Kind = Kind::Tune;
    type Answer = TuneAnswer;
    type Prepared = PreparedTune;

    fn prepare(
        self,
        caller: &Caller,
        store: &Store,
        events: &mut dyn Events,
    ) -> Result<(NewCampaign, PreparedTune), JobError> {
        plan_file::check_plan_path(store, self.plan.as_deref())?;
        // Also if it is resumed from another directory.
        let plan = self.plan.as_deref().map(plan_file::absolute).transpose()?;
        let asked = Self { plan, ..self.clone() };
        on_nodes::check(&self.threads)?;
        check_memory(&self, events)?;
        let nodes = ThreadsOnNodes::start(&self.threads, caller, events)?;
        let (question, machine) = number_question(&self, nodes.as_ref())?;
        question.check_output(None)?;
        if let (ThreadsProgram::Here(program), None) = (&question.request.program, &nodes) {
            program.note_awaited_file(events)?;
        }
        let asked = serde_json::to_value(&asked)?;
        let new = question.campaign(Self::KIND, machine, asked, caller);
        Ok((NewCampaign { seed: 1, ..new }, PreparedTune { request: self, nodes }))
    }

    fn reopen(
        info: &CampaignInfo,
        caller: &Caller,
        store: &Store,
        events: &mut dyn Events,
    ) -> Result<PreparedTune, JobError> {
        let mut request: Self = stored_campaign::question(info)?;
        request.plan = plan_file::resumed_path(store, info, request.plan);
        if let ThreadsProgram::Here(HostProgram { pid, .. }) = &request.threads.program {
            check_processes(info, pid.as_slice())?;
        }
        let nodes = ThreadsOnNodes::start(&request.threads, caller, events)?;
        if let Some(number) =
            stored_campaign::part(store, &Parent::new(info.id, &TunePart::Threads))?
        {
            // The program may use as many contexts as at its start.
            let question: ThreadsQuestion = stored_campaign::question(&number)?;
            question.check_resumed(nodes.as_ref(), &number)?;
        }
        let (question, machine) = number_question(&request, nodes.as_ref())?;
        question.check_output(Some(info.started))?;
        check_machine(info, &machine)?;
        Ok(PreparedTune { request, nodes })
    }

    fn conduct(
        PreparedTune { request, nodes }: PreparedTune,
        info: &CampaignInfo,
        caller: &Caller,
        store: &mut Store,
        events: &mut dyn Events,
    ) -> Result<TuneAnswer, JobError> {
        let earlier = || earlier_plan(store, info, &request.threads);
        let path = request.plan.clone().or_else(earlier);
        let request = TuneRequest { plan: path, ..request };
        let held = hold(&request.threads);
        let on_nodes = nodes.as_ref().map(ThreadsOnNodes::fingerprint);
        let measure = |_hold| measure_parts(info, &request, nodes, caller, store, events);
        let measured = held.and_then(measure);
        let (left_undone, cut_short) =
            measured.or_else(|error| Err(as_parent_error(error, store, info.id)?))?;
        let answer = answer(store, &store.get(info.id)?)?;
        let fingerprint = match on_nodes {
            Some(fingerprint) => fingerprint,
            None => pinwise_linux::fingerprint(&pinwise_linux::this_machine()?),
        };
        TuneAnswer { left_undone, cut_short, ..answer }.with_plan(store, &request, fingerprint)
    }

    fn finished(
        info: &CampaignInfo,
        _: &Caller,
        store: &mut Store,
    ) -> Result<TuneAnswer, JobError> {
        let answer = answer(store, info)?;
        if answer.plan.is_some() {
            return Ok(answer);
        }
        let mut request: Self = stored_campaign::question(info)?;
        request.plan = plan_file::resumed_path(store, info, request.plan);
        // Kernel and settings may be others by now: those of the search are not known any more.
        answer.with_plan(store, &request, Fingerprint::of(&info.new.machine))
    }

    fn answer(info: &CampaignInfo, _: &Caller, store: &Store) -> Result<TuneAnswer, JobError> {
        answer(store, info)
    }

    fn summary(conclusion: &Value) -> Option<Summary> {
        let TuneConclusion { choice, parameter: n, gain, .. } =
            TuneConclusion::deserialize(conclusion).ok()?;
        Some(Summary::Tune { verdict: choice, n, gain })
    }
}

/// Checks that the memory of the program can lie where the request wants to try it.
fn check_memory(request: &TuneRequest, events: &mut dyn Events) -> Result<(), JobError> {
    let (threads, Some(policy)) = (&request.threads, request.memory) else { return Ok(()) };
    if threads.on.is_some() && !policy.is_leave() {
        return Err(JobError::usage(
            "--memory is not known on several nodes: leave it or --on out",
        ));
    }
    let runs = matches!(&threads.program, ThreadsProgram::Here(program) if program.set.is_some());
    usable_memory(policy, runs, events).map(drop)
}

/// Where memory lay in the search for a placement.
fn memory_of(placed: &CampaignInfo) -> Result<MemoryPolicy, JobError> {
    let request: PlacementRequest = stored_campaign::question(placed)?;
    Ok(request.memory)
}

/// The question of the search for the number alone.
fn number_question(
    request: &TuneRequest,
    nodes: Option<&ThreadsOnNodes>,
) -> Result<(ThreadsQuestion, Machine), JobError> {
    let whole = request.threads.time();
    let budget = Some(whole.mul_f64(NUMBER));
    // The fewest probes that show a number may take longer than this budget. This search compares
    // nothing: the whole job ends with the last comparison.
    let deadline = Some(whole);
    let alone = ThreadsRequest { budget, deadline, confirm: false, ..request.threads.clone() };
    ThreadsQuestion::on(nodes, alone)
}

/// The placements of a campaign that are in the store, the last one of each number, in order.
fn stored_placements(store: &Store, info: &CampaignInfo) -> Result<Vec<TunedPlacement>, JobError> {
    let mut placed: Vec<TunedPlacement> = Vec::new();
    for part in store.parts(info.id)? {
        let step = part.new.parent.as_ref().and_then(Parent::step);
        let Some(TunePart::Place { n: parameter, .. }) = step else { continue };
        if part.state != CampaignState::Finished {
            continue;
        }
        let PlaceAnswer { campaign: info, question, outcome, .. } =
            PlaceRequest::answer(&part, &Caller::default(), store)?;
        placed.retain(|earlier| earlier.parameter != parameter);
        let searched = Some(StoredSearch { info, question, outcome });
        placed.push(TunedPlacement { parameter, searched, reason: None });
    }
    Ok(placed)
}

/// Reads the answer of a campaign, as far as it is known.
pub(crate) fn answer(store: &Store, info: &CampaignInfo) -> Result<TuneAnswer, JobError> {
    let request: TuneRequest = stored_campaign::question(info)?;
    let of = |step: TunePart| stored_campaign::part(store, &Parent::new(info.id, &step));
    let mut threads = match of(TunePart::Threads)? {
        Some(part) if part.records > 0 => {
            Some(ThreadsRequest::answer(&part, &Caller::default(), store)?.outcome)
        }
        _ => None,
    };
    if let (Some(threads), Some(_)) = (&mut threads, &request.threads.on) {
        // Which nodes were lost, and how alike the others are. A placement has its own notes.
        let mut parts = store.parts(info.id)?;
        parts.retain(|part| part.new.kind != Kind::Place);
        let mut met = disturbances(store, parts.iter().map(|part| part.id))?;
        // Each part says by itself how busy its machine was.
        met.retain(|note| !matches!(note, ProgramNote::Busy { .. }));
        threads.notes.extend(met.into_iter().map(ThreadsNote::from));
    }
    let policies = match of(TunePart::Policies)? {
        Some(part) => {
            let policies = Policies::new(stored_campaign::question(&part)?, &part.new.machine);
            policies.measured(&store.records(part.id)?)
        }
        None => PolicyMeasurements::default(),
    };
    let mut placements = stored_placements(store, info)?;
    let conclusion = stored_campaign::conclusion::<Option<TuneConclusion>>(info)?;
    let concluded = match (conclusion.flatten(), of(TunePart::LastComparison)?) {
        (Some(conclusion), Some(part)) => {
            for UnplacedNumber { parameter, reason } in conclusion.unplaced.iter().cloned() {
                let reason = Some(reason);
                placements.push(TunedPlacement { parameter, searched: None, reason });
            }
            let compared: LastComparisonQuestion = stored_campaign::question(&part)?;
            let cut_short = conclusion.cut_short.clone();
            let comparison =
                compared.comparison(&store.records(part.id)?, &program_testbed::seen, cut_short);
            Some(TuneLastComparison { campaign: part.id, compared, comparison, conclusion })
        }
        _ => None,
    };
    let mut notes = policies.notes.clone();
    for placed in &placements {
        let n = placed.parameter;
        let reason = placed.reason.iter().cloned();
        notes.extend(reason.map(|reason| LastComparisonNote::NotPlaced { n, reason }));
    }
    notes.extend(while_placed(placements.iter().flat_map(|placed| {
        let met = placed.searched.iter().flat_map(|searched| &searched.outcome.notes);
        met.map(|note| (placed.parameter, note))
    })));
    notes.extend(concluded.iter().flat_map(|concluded| concluded.conclusion.notes.iter().cloned()));
    let planned = concluded.as_ref().is_some_and(|it| it.conclusion.parameter.is_some());
    Ok(TuneAnswer {
        campaign: info.clone(),
        measured: store.parts(info.id)?.iter().map(|part| part.records).sum(),
        budget: request.threads.time(),
        within: request.threads.within,
        threads,
        policies,
        placements,
        concluded,
        plan: plan_file::plan_path(store, info).filter(|_| planned),
        notes,
        left_undone: Vec::new(),
        cut_short: None,
    })
}

/// The file of the plan of an earlier answer, if it still has that plan. An edited file stays.
fn earlier_plan(store: &Store, info: &CampaignInfo, request: &ThreadsRequest) -> Option<PathBuf> {
    let answer = answer(store, info).ok()?;
    let path = answer.plan.clone()?;
    let text = std::fs::read_to_string(&path).ok()?;
    // The machine may have another kernel or other settings now.
    let there = Plan::parse(&text).ok()?.machine;
    let plan = plan(&answer, request, there, store).ok()??;
    (plan.to_toml() == text).then_some(path)
}

/// The plan of an answer. `None`: there is nothing that a plan could change.
fn plan(
    answer: &TuneAnswer,
    request: &ThreadsRequest,
    fingerprint: Fingerprint,
    store: &Store,
) -> Result<Option<Plan>, JobError> {
    let Some(TuneLastComparison { comparison, conclusion, .. }) = &answer.concluded else {
        return Ok(None);
    };
    let (Some(n), ThreadsProgram::Here(program)) = (conclusion.parameter, &request.program) else {
        return Ok(None);
    };
    let (choice, workload) = (conclusion.choice, &answer.campaign.new.workload);
    let (name, environment) = match program.pid {
        Some(_) => (workload.name.clone(), BTreeMap::new()),
        None => {
            let template = program.template()?;
            (template.name(), template.environment(n))
        }
    };
    let of_n = |placed: &&TunedPlacement| placed.parameter == n;
    let searched = answer.placements.iter().find(of_n).and_then(|of_n| of_n.searched.as_ref());
    let placed = match (searched, choice) {
        (Some(StoredSearch { info, outcome, .. }), LastComparisonVerdict::Placed) => {
            let tree = SharingTree::new(&info.new.machine, info.new.alike);
            let mut plan =
                Plan::from_outcome(&info.new.workload, &tree, fingerprint.clone(), outcome);
            if let Some(plan) = &mut plan {
                plan.counts_ended_threads = counts_ended_threads(info)?;
                plan.memory = PlannedMemory::new(memory_of(info)?, &info.new.machine, &plan.cpus());
            }
            plan
        }
        _ => None,
    };
    let default = comparison.rounds.estimate(Way::Default);
    let measured = comparison.rounds.estimate(choice.way());
    let measured =
        measured.map(|estimate| PlanEvidence::new(&comparison.unit, &estimate, default.as_ref()));
    let set = program.set.as_ref().and_then(|set| set.command(n));
    let mut plan = placed.unwrap_or_else(|| Plan::new(name, fingerprint, Vec::new()));
    (plan.measured, plan.number) = (measured, Some(PlannedNumber { n, environment, set }));
    plan.origin = Some(PlanOrigin {
        campaign: Some(store.identity(&answer.campaign)),
        verdict: match choice {
            LastComparisonVerdict::Placed => PlacementVerdict::Pin,
            LastComparisonVerdict::Undecided => PlacementVerdict::Undecided,
            LastComparisonVerdict::Default
            | LastComparisonVerdict::Number
            | LastComparisonVerdict::Fewer => PlacementVerdict::KeepDefault,
        },
        simulated: false,
        notes: tagged_tune_notes(answer.number_notes(), &answer.notes)
            .iter()
            .map(PlanNote::new)
            .collect(),
    });
    Ok(Some(plan))
}

/// The notes of the searches for placements, each with its number. Equal ones are one note.
fn while_placed<'a>(met: impl Iterator<Item = (u32, &'a ProgramNote)>) -> Vec<LastComparisonNote> {
    let mut causes: Vec<(&ProgramNote, Vec<u32>)> = Vec::new();
    for (n, note) in met {
        match causes.iter_mut().find(|(cause, _)| *cause == note) {
            Some((_, numbers)) => numbers.push(n),
            None => causes.push((note, vec![n])),
        }
    }
    let told = |(note, numbers): (&ProgramNote, _)| LastComparisonNote::WhilePlaced {
        numbers,
        note: note.clone(),
    };
    causes.into_iter().map(told).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::campaign_run::answered;
    use crate::events::{Event, Listening, Silent, stopping_at};
    use crate::job::{resume_job, run};
    use crate::no_plan::NoPlan;
    use crate::threads::ThreadsMethod;
    use pinwise_linux::{GUARDIAN_ARGUMENT, guardian_main};
    use pinwise_present::Notice;
    use std::time::Instant;

    #[test]
    fn equal_notes_of_several_numbers_are_one_note() {
        let (lines, replaced) =
            (ProgramNote::MetricStill, ProgramNote::ThreadsReplaced { times: 2 });
        let met = [(4, &lines), (4, &replaced), (2, &lines)];
        let note = |numbers: &[u32], note| LastComparisonNote::WhilePlaced {
            numbers: numbers.to_vec(),
            note,
        };
        let told = while_placed(met.into_iter());
        assert_eq!(told, [note(&[4, 2], lines.clone()), note(&[4], replaced.clone())]);
    }

    #[test]
    fn a_conclusion_of_an_earlier_version_has_its_reasons_as_text() {
        let text = |text: &str| Unmeasured::Text { text: text.to_owned() };
        let stored = serde_json::json!({
            "choice": "default", "parameter": 2, "gain": null, "command": null,
            "unplaced": [[4, "it has ended"]], "cut_short": "interrupted",
            "notes": [
                "a thread came",
                { "kind": "cut_short", "rounds": 2, "error": "interrupted" },
            ],
            "plan": null, "time": { "secs": 30, "nanos": 0 },
        });
        let read = TuneConclusion::deserialize(&stored).unwrap();
        assert_eq!(read.unplaced, [UnplacedNumber { parameter: 4, reason: text("it has ended") }]);
        assert_eq!(read.cut_short, Some(text("interrupted")));
        let cut_short = LastComparisonNote::CutShort { rounds: 2, reason: text("interrupted") };
        assert_eq!(read.notes, [LastComparisonNote::from("a thread came".to_owned()), cut_short]);
        let written = serde_json::to_value(&read).unwrap();
        assert_eq!(TuneConclusion::deserialize(&written).unwrap(), read);
    }

    /// This program is the guardian of what it starts, too.
    #[test]
    fn __guardian() {
        if std::env::args().nth(1).as_deref() == Some(GUARDIAN_ARGUMENT) {
            guardian_main();
        }
    }

    /// Runs of a program that ends at once.
    fn request() -> TuneRequest {
        let program = ThreadsProgram::Here(HostProgram {
            command: ["sleep", "0.{n}"].map(String::from).to_vec(),
            threads_per_n: Some("1".parse().unwrap()),
            ..HostProgram::default()
        });
        let threads = ThreadsRequest {
            method: ThreadsMethod::Sweep,
            min: Some(1),
            max: Some(2),
            rounds: Some(1),
            per_run: true,
            budget: Some(Duration::from_secs(3600)),
            probe: Duration::from_millis(20),
            default: Some(1),
            ..ThreadsRequest::new(program)
        };
        TuneRequest { threads, plan: None, memory: None }
    }

    #[test]
    fn a_request_of_an_earlier_version_keeps_its_default() {
        let mut stored = serde_json::to_value(request()).unwrap();
        assert_eq!(TuneRequest::deserialize(&stored).unwrap(), request());
        stored["threads"]["default"] = Value::Null;
        stored["default"] = 1.into();
        assert_eq!(TuneRequest::deserialize(&stored).unwrap(), request());
    }

    #[test]
    fn a_comparison_that_was_cut_short_goes_on_and_nothing_new_is_searched() {
        let (folder, mut store) = stored_campaign::empty_store();
        let plans = folder.path().join("mine");
        std::fs::create_dir(&plans).unwrap();
        let asked = TuneRequest { plan: Some(plans.join("tuned.toml")), ..request() };
        let caller = Caller::default();
        // It has its number when it is stopped.
        let mut events =
            stopping_at(&caller.interrupt, 1, |event| matches!(event, Event::MeasuringEnded));
        run(asked, &caller, &mut store, &mut events).unwrap_err();
        let whole = store.list().unwrap().campaigns.remove(0);
        let number = stored_campaign::part(&store, &Parent::new(whole.id, &TunePart::Threads));
        assert_eq!(number.unwrap().map(|part| part.state), Some(CampaignState::Finished));
        let unplaced = vec![UnplacedNumber { parameter: 2, reason: Unmeasured::NoTime }];
        let question = LastComparisonQuestion {
            n: 2,
            default: Some(1),
            as_default: false,
            default_known: None,
            placed: None,
            memory: MemoryPolicy::Leave,
            time: Duration::ZERO,
            windows: 1.0,
            precision: None,
            looks: 1,
            ranked_on: None,
            own_load: false,
            goes_on: false,
            unplaced: unplaced.clone(),
        };
        let question = serde_json::to_value(&question).unwrap();
        let parent = Some(Parent::new(whole.id, &TunePart::LastComparison));
        let comparison =
            NewCampaign { kind: Kind::LastComparison, parent, question, ..whole.new.clone() };
        let comparison = store.create(&comparison).unwrap();
        let earlier = TuneConclusion {
            choice: LastComparisonVerdict::Number,
            parameter: Some(2),
            gain: None,
            command: None,
            named: Vec::new(),
            unplaced: Vec::new(),
            cut_short: Some(Unmeasured::Interrupted),
            notes: Vec::new(),
            time: Duration::ZERO,
        };
        answered(&mut store, whole.id, CampaignState::Stopped, &earlier).unwrap();
        let info = store.get(whole.id).unwrap();
        assert!(answer(&store, &info).unwrap().concluded.is_some());
        // One of the two windows of a round.
        let caller = Caller::default();
        let mut events =
            stopping_at(&caller.interrupt, 1, |event| matches!(event, Event::Measured(_)));
        resume_job::<TuneRequest>(&info, &caller, &mut store, &mut events).unwrap_err();
        assert_eq!(store.records(comparison).unwrap().len(), 1);
        let info = store.get(whole.id).unwrap();
        assert_eq!(info.state, CampaignState::Stopped);
        let so_far = answer(&store, &info).unwrap();
        assert!(so_far.concluded.is_none(), "what was concluded rests on fewer windows");
        // The other one, and no part besides. The answer stands though its plan cannot be written.
        let caller = Caller::default();
        let mut events = Listening(|event: Event<'_>| match event {
            Event::Measured(_) => std::fs::remove_dir(&plans),
            _ => Ok(()),
        });
        let ended = resume_job::<TuneRequest>(&info, &caller, &mut store, &mut events).unwrap();
        assert_eq!(ended.campaign.state, CampaignState::Finished);
        let [LeftUndone::Plan(unwritten)] = &ended.left_undone[..] else {
            panic!("{:?}", ended.left_undone)
        };
        assert!(unwritten.to_string().contains("mine/tuned.toml"), "{unwritten}");
        let of_campaign = |answer: &TuneAnswer| {
            let TuneAnswer { campaign, threads, policies, placements, concluded, notes, .. } =
                answer;
            format!("{campaign:?} {threads:?} {policies:?} {placements:?} {concluded:?} {notes:?}")
        };
        let read = answer(&store, &store.get(whole.id).unwrap()).unwrap();
        assert_eq!(of_campaign(&ended), of_campaign(&read));
        assert_eq!(ended.concluded.unwrap().conclusion.unplaced, unplaced);
        assert_eq!(store.records(comparison).unwrap().len(), 2);
        assert_eq!(store.parts(whole.id).unwrap().len(), 2);
        // A plan that is absent is written again, now beside the store. One that is there is
        // replaced by that of the next session, unless somebody edited it.
        let caller = Caller::default();
        let plans = folder.path().join("plans");
        let written = plans.join("tune-sleep.toml");
        let mut again = |state| {
            let known = store.get(whole.id).unwrap().conclusion;
            store.set_state(whole.id, state, known.as_ref()).unwrap();
            let info = store.get(whole.id).unwrap();
            resume_job::<TuneRequest>(&info, &caller, &mut store, &mut Silent).unwrap().plan
        };
        for state in [CampaignState::Finished, CampaignState::Stopped] {
            assert_eq!(again(state).as_ref(), Some(&written));
            assert_eq!(std::fs::read_dir(&plans).unwrap().count(), 1);
        }
        let edited = std::fs::read_to_string(&written).unwrap() + "\n# mine\n";
        std::fs::write(&written, &edited).unwrap();
        let second = plans.join("tune-sleep-2.toml");
        assert_eq!(again(CampaignState::Stopped).as_ref(), Some(&second));
        assert_eq!(std::fs::read_to_string(&written).unwrap(), edited);
        std::fs::remove_file(second).unwrap();
        std::fs::remove_file(written).unwrap();
        let info = store.get(whole.id).unwrap();
        assert_eq!(NoPlan::of(&info), NoPlan::Gone);
        assert_eq!(answer(&store, &info).unwrap().plan, None);
    }

    #[test]
    fn the_search_for_the_number_may_take_the_whole_budget_for_its_least() {
        let asked = request();
        let (question, _) = number_question(&asked, None).unwrap();
        let whole = asked.threads.time();
        assert_eq!(question.request.deadline(), whole);
        assert!(question.request.time() < whole, "its share");
    }

    #[test]
    fn a_budget_without_room_for_the_last_comparison_is_noted_without_a_second_amount() {
        let (question, _) = number_question(&request(), None).unwrap();
        let outcome = ThreadsOutcome::of(question, &[]).unwrap();
        // No probe is known to take any time: three ways, five rounds, a quarter of the budget.
        let window = outcome.window.as_secs_f64();
        let short = |budget: f64, before: f64| {
            let [budget, before] = [budget, before].map(Duration::from_secs_f64);
            parts::short(&outcome, &parts::TuneClock { budget, before, begin: Instant::now() }, 4.0)
        };
        let needed = 3.0 * 5.0 * 3.0 * window / 0.25;
        assert_eq!(short(needed + 0.01, 0.0), None);
        let told = pinwise_present::notice(&short(needed - 0.01, 0.0).unwrap());
        assert!(told.contains("narrow") && told.ends_with("the answer names a --budget"), "{told}");
        // The number took the budget, and one round of three ways follows.
        let Some(Notice::WideIntervals { takes: Some(takes), .. }) = short(1.0, 1.0) else {
            panic!("no overrun")
        };
        assert!(takes >= 1.0 + 3.0 * 3.0 * window, "{takes}");
    }

    #[test]
    fn other_contexts_than_at_the_start_are_refused_before_anything_runs() {
        let (_folder, mut store) = stored_campaign::empty_store();
        let caller = Caller::default();
        let (new, _) = request().prepare(&caller, &store, &mut Silent).unwrap();
        let id = store.create(&new).unwrap();
        let (mut question, _) = number_question(&request(), None).unwrap();
        let reopened = |question: &ThreadsQuestion, store: &mut Store| {
            let parent = Some(Parent::new(id, &TunePart::Threads));
            let question = serde_json::to_value(question).unwrap();
            let part = NewCampaign { kind: Kind::Threads, parent, question, ..new.clone() };
            let part = store.create(&part).unwrap();
            let reopened =
                TuneRequest::reopen(&store.get(id).unwrap(), &caller, store, &mut Silent);
            store.delete(part).unwrap();
            reopened.map(|ready| ready.request).map_err(|error| error.to_string())
        };
        assert_eq!(reopened(&question, &mut store), Ok(request()));
        question.contexts += 1;
        let refused = reopened(&question, &mut store).unwrap_err();
        assert!(refused.contains("contexts at its start"), "{refused}");
    }
}
