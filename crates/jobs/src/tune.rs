//! How many threads, and where each of them runs, together.
//!
//! A campaign of this kind has no records of its own, but parts: the search for the number alone;
//! numbers under policies of placement; a placement of each number that may be best, by successive
//! halving; the last comparison. That one compares the default, the number alone, and the number
//! with its placement, on fresh windows. Only these are announced. Every part is found again by its
//! step, so that a campaign that was killed goes on where it was; what was spent before counts.

mod finals;
mod policies;
mod program;

use crate::campaign_run::{
    EndContext, answered, as_parent_error, conclude, measure_on, unanswered,
};
use crate::error::JobError;
use crate::events::{Event, Events, note};
use crate::job::{Caller, Job};
use crate::place::{PlaceRequest, StoredSearch, place_part};
use crate::plan_file;
use crate::resume_check::check_machine;
use crate::stored;
use crate::summary::Summary;
use crate::threads::{
    HeldProgram, Searched, ThreadsOutcome, ThreadsQuestion, ThreadsRequest, search_threads,
};
use finals::{Comparing, FEWEST_ROUNDS};
pub use finals::{Finals, FinalsQuestion};
use pinwise_campaign::{
    CampaignId, CampaignInfo, CampaignState, Ending, Kind, NewCampaign, Parent, Store,
};
use pinwise_linux::Pid;
use pinwise_measure::{optional_value_or_text, value_or_text, values_or_text};
use pinwise_placement::{
    Advice, Budget, Choice, Gain, Measured, Number, Origin, Plan, PlanNote, TuneNote, TuneStep,
    Unmeasured, Way,
};
use pinwise_present::{Notice, sentence, tagged, tune_note};
use pinwise_programs::LinuxProber;
use pinwise_threads::{FoundNumber, Note, Shortlist};
use pinwise_topology::{Machine, SharingTree};
use policies::{Policies, rates};
pub use policies::{PoliciesQuestion, PolicyMeasurement, PolicyMeasurements};
use program::TunedProgram;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Shares of the time: for the number, and for where; of that, the most for policies of placement,
/// the rest for searches. What is left is for the last comparison.
const NUMBER: f64 = 0.25;
const PLACING: f64 = 0.5;
const POLICIES: f64 = 1.0 / 3.0;

/// How many threads, and where: the question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TuneRequest {
    /// The program, and how its number is found. Its budget is that of the whole.
    pub threads: ThreadsRequest,
    /// The number that the program uses on its own, if the user gave it.
    pub default: Option<u32>,
    /// Where the plan goes. `None`: beside the store.
    pub plan: Option<PathBuf>,
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

/// A number that could not be placed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Unplaced {
    /// n.
    pub parameter: u32,
    /// Why.
    #[serde(deserialize_with = "value_or_text")]
    pub reason: Unmeasured,
}

/// What is known at the end, as the campaign stores it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TuneConclusion {
    /// What follows.
    pub choice: Choice,
    /// The plan's n; `None`: the program's own.
    pub parameter: Option<u32>,
    /// The choice over the default; `None` for the default.
    pub gain: Option<Gain>,
    /// How the program is started, as a shell takes it, where it is started with the number.
    pub command: Option<String>,
    /// Numbers that could not be placed.
    pub unplaced: Vec<Unplaced>,
    /// Why the comparison ended before its time, where it did. The campaign can be resumed then.
    #[serde(deserialize_with = "optional_value_or_text")]
    pub cut_short: Option<Unmeasured>,
    /// What to know that the parts do not show.
    #[serde(deserialize_with = "values_or_text")]
    pub notes: Vec<TuneNote>,
    /// The plan.
    pub plan: Option<PathBuf>,
    /// What everything took.
    pub time: Duration,
}

/// What was compared at last, what that showed, and what follows.
#[derive(Clone, Debug)]
pub struct Concluded {
    /// The part whose records are the windows.
    pub campaign: CampaignId,
    /// What was compared.
    pub compared: FinalsQuestion,
    /// What that showed.
    pub finals: Finals,
    /// What follows.
    pub conclusion: TuneConclusion,
}

/// The answer of `tune`: what each of its parts found, as far as it came.
#[derive(Clone, Debug)]
pub struct TuneAnswer {
    /// The campaign.
    pub campaign: CampaignInfo,
    /// What it may take.
    pub budget: Duration,
    /// The search for the number alone; `None` before its first probe.
    pub threads: Option<ThreadsOutcome>,
    /// Numbers under policies of placement.
    pub policies: PolicyMeasurements,
    /// The placements of the numbers near the best, in the order in which they were made last.
    pub placements: Vec<TunedPlacement>,
    /// The last comparison, and what follows; `None` before.
    pub concluded: Option<Concluded>,
    /// What to know, besides the notes of [`Self::threads`].
    pub notes: Vec<TuneNote>,
    /// What went wrong after the answer: the plan could not be written, the number not be set.
    pub unfinished: Vec<String>,
    /// Why this run ended before the comparison did. `None` where the answer was only read.
    pub cut_short: Option<Unmeasured>,
}

impl TunedPlacement {
    /// How fast it is at best, pinned or not, by its search's own fresh windows; `None` where
    /// nothing was measured.
    pub fn best(&self) -> Option<f64> {
        let outcome = &self.searched.as_ref()?.outcome;
        let pinned = outcome.best.as_ref().map(|best| best.performance.mean);
        let unpinned = outcome.baseline.as_ref().map(|baseline| baseline.mean);
        [pinned, unpinned].into_iter().flatten().max_by(f64::total_cmp)
    }
}

impl Job for TuneRequest {
    const KIND: Kind = Kind::Tune;
    type Answer = TuneAnswer;
    type Ready = TuneRequest;

    fn prepare(
        self,
        caller: &Caller,
        store: &Store,
        _: &mut dyn Events,
    ) -> Result<(NewCampaign, TuneRequest), JobError> {
        plan_file::check_plan_path(store, self.plan.as_deref())?;
        // Wherever it is resumed from.
        let plan = self.plan.as_deref().map(plan_file::absolute).transpose()?;
        let asked = Self { plan, ..self.clone() };
        let (question, machine) = number_question(&self)?;
        let asked = serde_json::to_value(&asked)?;
        let new = question.campaign(Self::KIND, machine, asked, caller);
        Ok((NewCampaign { seed: 1, ..new }, self))
    }

    fn reopen(
        info: &CampaignInfo,
        caller: &Caller,
        store: &Store,
    ) -> Result<TuneRequest, JobError> {
        let mut request: Self = stored::question(info)?;
        request.plan = plan_file::still_writable(store, info, request.plan);
        if let Some(number) = stored::part(store, &Parent::new(info.id, &TuneStep::Threads))? {
            // The program may use as many contexts as at its start.
            ThreadsRequest::reopen(&number, caller, store)?;
        }
        let (_, machine) = number_question(&request)?;
        check_machine(info, &machine)?;
        Ok(request)
    }

    fn conduct(
        request: TuneRequest,
        info: &CampaignInfo,
        caller: &Caller,
        store: &mut Store,
        events: &mut dyn Events,
    ) -> Result<TuneAnswer, JobError> {
        conduct(info, &request, caller, store, events)
    }

    fn answer(info: &CampaignInfo, _: &Caller, store: &Store) -> Result<TuneAnswer, JobError> {
        answer(store, info)
    }

    fn summary(conclusion: &Value) -> Option<Summary> {
        let TuneConclusion { choice, parameter: n, gain, .. } =
            TuneConclusion::deserialize(conclusion).ok()?;
        Some(Summary::Tune { choice, n, gain })
    }
}

/// The question of the search for the number alone.
fn number_question(request: &TuneRequest) -> Result<(ThreadsQuestion, Machine), JobError> {
    let budget = Some(request.threads.time().mul_f64(NUMBER));
    ThreadsQuestion::of(ThreadsRequest { budget, ..request.threads.clone() })
}

/// The time that the parts of a campaign took.
fn spent(store: &Store, id: CampaignId) -> Result<Duration, JobError> {
    let last = |part: &CampaignInfo| -> Result<Duration, JobError> {
        Ok(store.records(part.id)?.last().map_or(Duration::ZERO, |record| record.elapsed))
    };
    store.parts(id)?.iter().map(last).sum()
}

fn conduct(
    info: &CampaignInfo,
    request: &TuneRequest,
    caller: &Caller,
    store: &mut Store,
    events: &mut dyn Events,
) -> Result<TuneAnswer, JobError> {
    let ended = parts(info, request, caller, store, events);
    let (unfinished, cut_short) = match ended {
        Ok(ended) => ended,
        Err(error) => return Err(as_parent_error(error, store, info.id)?),
    };
    Ok(TuneAnswer { unfinished, cut_short, ..answer(store, &store.get(info.id)?)? })
}

/// Measures the parts one after the other, from where they are, and concludes the campaign. Returns
/// what went wrong after the answer, and why the comparison did not end.
fn parts(
    info: &CampaignInfo,
    request: &TuneRequest,
    caller: &Caller,
    store: &mut Store,
    events: &mut dyn Events,
) -> Result<(Vec<String>, Option<Unmeasured>), JobError> {
    let (budget, before) = (request.threads.time(), spent(store, info.id)?);
    let clock = TuneClock { budget, before, begin: Instant::now() };
    let (number, prober) = number(info, request, caller, store, events)?;
    let mut program = TunedProgram::new(&request.threads, prober, request.default, caller)?;
    let part = match stored::part(store, &Parent::new(info.id, &TuneStep::Finals))? {
        Some(part) => part,
        None => contenders(info, &number, &mut program, &clock, caller, store, events)?,
    };
    let placed = stored(store, info)?;
    let search = |n| placed.iter().find(|placed| placed.parameter == n)?.searched.as_ref();
    // Decided once: resumed, the campaign compares the same.
    let compared = opened_finals(&part)?;
    let (n, best) = (compared.n, search(compared.n));
    let finals = finals(&part, &compared, best, &mut program, caller, store, events)?;
    store.learn(info.id, &info.new.workload, &finals.unit)?;
    let fewer = compared.default.unwrap_or(program.cpus) > n;
    let choice = finals.contest.choice(fewer, request.threads.within);
    let parameter = if choice.way() == Way::Default { compared.default } else { Some(n) };
    let mut unfinished = Vec::new();
    let plan = plan(info, &program, choice, parameter, best, &finals, store)?;
    let plan = plan.and_then(|plan| match write(&plan, request, store) {
        Ok(path) => Some(path),
        Err(error) => {
            unfinished.push(error.to_string());
            None
        }
    });
    let mut notes: Vec<TuneNote> = compared.default_known.clone().into_iter().collect();
    notes.extend(finals.notes());
    match program.settle(parameter.unwrap_or(n)) {
        Ok(note) => notes.extend(note),
        Err(error) => unfinished.push(error.to_string()),
    }
    let state = match &finals.cut_short {
        None => CampaignState::Finished,
        Some(_) => CampaignState::Stopped,
    };
    let conclusion = TuneConclusion {
        choice,
        parameter,
        gain: finals.contest.gain_of(choice),
        command: program.command(),
        unplaced: compared.unplaced,
        cut_short: finals.cut_short,
        notes,
        plan,
        time: clock.used(),
    };
    answered(store, info.id, state, &conclusion)?;
    Ok((unfinished, conclusion.cut_short))
}

/// The time of a campaign, over all its sessions.
struct TuneClock {
    budget: Duration,
    /// What earlier sessions used.
    before: Duration,
    begin: Instant,
}

impl TuneClock {
    fn used(&self) -> Duration {
        self.before + self.begin.elapsed()
    }

    fn left(&self) -> Duration {
        self.budget.saturating_sub(self.used())
    }
}

/// Searches for what is compared at last. Returns the part of the campaign for the comparison.
fn contenders(
    info: &CampaignInfo,
    number: &NumberSearched,
    program: &mut TunedProgram<'_>,
    clock: &TuneClock,
    caller: &Caller,
    store: &mut Store,
    events: &mut dyn Events,
) -> Result<CampaignInfo, JobError> {
    // Where the number took longer than its share, it is placing that has less.
    let reserved = clock.budget.mul_f64(1.0 - NUMBER - PLACING);
    let placing = clock.left().saturating_sub(reserved).min(clock.budget.mul_f64(PLACING));
    let begin = Instant::now();
    let measured =
        policies(info, number, program, placing.mul_f64(POLICIES), caller, store, events)?;
    let rates = rates(&number.outcome);
    let list = measured.shortlist(&rates, number.found.parameter);
    let time = placing.saturating_sub(begin.elapsed());
    let (n, placed) = placements(info, program, list, time, caller, store, events)?;
    let unplaced = placed
        .into_iter()
        .filter_map(|one| Some(Unplaced { parameter: one.parameter, reason: one.reason? }));
    let unplaced = unplaced.collect();
    let placed = stored(store, info)?;
    let best = |n| {
        let placed = placed.iter().find(|placed| placed.parameter == n)?;
        placed.searched.as_ref()?.outcome.best.as_ref()
    };
    stored::part_for(store, info, &TuneStep::Finals, |new| {
        // Something has to be compared with the default.
        let alike = alike(&number.outcome.notes);
        let as_default = |n| {
            program
                .default
                .is_some_and(|own| own == n || [own, n].iter().all(|n| alike.contains(n)))
        };
        let others: Vec<(u32, f64)> =
            rates.iter().copied().filter(|&(n, _)| !as_default(n)).collect();
        let nothing = best(n).is_none() && as_default(n);
        let n = if nothing { runner_up(&others, n).unwrap_or(n) } else { n };
        let question = FinalsQuestion {
            n,
            default: program.default,
            as_default: as_default(n),
            default_known: program.note.clone(),
            placed: best(n).map(|best| best.assignment.clone()),
            time: clock.left(),
            windows: program.effort().windows,
            unplaced,
        };
        Ok(NewCampaign { kind: Kind::Finals, question: serde_json::to_value(&question)?, ..new })
    })
}

/// The numbers with which the program makes the same threads.
fn alike(notes: &[Note]) -> &[u32] {
    let capped = notes.iter().find_map(|note| match note {
        Note::Capped { numbers, pooled: true, .. } => Some(numbers.as_slice()),
        _ => None,
    });
    capped.unwrap_or_default()
}

/// Of the numbers that were probed the fastest one but `n`.
fn runner_up(rates: &[(u32, f64)], n: u32) -> Option<u32> {
    let mean = |n: u32| {
        let own = rates.iter().filter(|rate| rate.0 == n).map(|rate| rate.1);
        own.clone().sum::<f64>() / own.count() as f64
    };
    let others = rates.iter().map(|rate| rate.0).filter(|&other| other != n);
    others.max_by(|&one, &other| mean(one).total_cmp(&mean(other)))
}

fn opened_finals(part: &CampaignInfo) -> Result<FinalsQuestion, JobError> {
    stored::question(part)
}

/// Compares at last. `best`: the search for the placement of the number.
fn finals(
    part: &CampaignInfo,
    compared: &FinalsQuestion,
    best: Option<&StoredSearch>,
    program: &mut TunedProgram<'_>,
    caller: &Caller,
    store: &mut Store,
    events: &mut dyn Events,
) -> Result<Finals, JobError> {
    if part.state == CampaignState::Finished {
        return Ok(compared.finals(&store.records(part.id)?, None));
    }
    program.end();
    if let Some(best) = best {
        program.know(compared.n, best.info.new.workload.clone());
    }
    program.in_rounds_of(compared.ways().len());
    let mut strategy = Comparing(compared.clone());
    let time = Budget::Time(compared.time);
    events.take(Event::Comparison).map_err(JobError::Output)?;
    let measured = measure_on(store, part, time, &mut strategy, program, caller, events)?;
    program.end();
    let cut_short = match &measured.ending {
        Ending::Finished => None,
        Ending::Interrupted => Some(Unmeasured::Interrupted),
        Ending::Failed(reason) => Some(Unmeasured::Failed { error: reason.clone() }),
    };
    let finals = compared.finals(&measured.records, cut_short);
    if finals.cut_short.is_some() && finals.contest.rounds() >= FEWEST_ROUNDS {
        store.set_state(part.id, CampaignState::Stopped, None)?;
    } else {
        let ends = EndContext { restored: true, ..EndContext::default() };
        let ways = finals.contest.ways().iter();
        let means = ways.map(|&way| (way, finals.contest.estimate(way))).collect::<Vec<_>>();
        conclude(store, part.id, measured, ends, |_, _| means)?;
    }
    store.learn(part.id, &part.new.workload, &finals.unit)?;
    Ok(finals)
}

/// The number alone.
struct NumberSearched {
    outcome: ThreadsOutcome,
    found: FoundNumber,
}

/// Searches for the number alone, and keeps hold of a program that goes on running.
fn number(
    info: &CampaignInfo,
    request: &TuneRequest,
    caller: &Caller,
    store: &mut Store,
    events: &mut dyn Events,
) -> Result<(NumberSearched, LinuxProber), JobError> {
    let part = stored::part_for(store, info, &TuneStep::Threads, |new| {
        let (question, machine) = number_question(request)?;
        let question = serde_json::to_value(&question)?;
        Ok(NewCampaign { kind: Kind::Threads, machine, question, ..new })
    })?;
    let question: ThreadsQuestion = stored::question(&part)?;
    let searched = {
        let mut journal = store.journal(part.id)?;
        search_threads(&question, &part.new.machine, &mut journal, &caller.interrupt, events)
    };
    let searched = searched?;
    let ends = EndContext { restored: true, ..searched.ends() };
    let Searched { outcome, ending, program } = searched;
    if let Some(unit) = &outcome.unit {
        store.learn(part.id, &part.new.workload, unit)?;
    }
    match (&outcome.found, program, outcome.conclusion()) {
        (Ok(found), HeldProgram::Here(prober), Some(conclusion)) => {
            answered(store, part.id, CampaignState::Finished, &conclusion)?;
            let found = found.clone();
            Ok((NumberSearched { outcome, found }, *prober))
        }
        _ => Err(unanswered(store, part.id, ending, ends)?),
    }
}

/// Measures numbers under policies of placement, where there is time for some.
fn policies(
    info: &CampaignInfo,
    NumberSearched { outcome, found }: &NumberSearched,
    program: &mut TunedProgram<'_>,
    time: Duration,
    caller: &Caller,
    store: &mut Store,
    events: &mut dyn Events,
) -> Result<PolicyMeasurements, JobError> {
    let parent = Parent::new(info.id, &TuneStep::Policies);
    let known = stored::part(store, &parent)?;
    let machine = match &known {
        Some(part) => part.new.machine.clone(),
        None => usable_machine(program)?,
    };
    if known.is_none() {
        let asked = PoliciesQuestion::after(outcome, found, program, &machine, time);
        let Some(question) = asked else { return Ok(PolicyMeasurements::default()) };
        let question = serde_json::to_value(&question)?;
        stored::part_for(store, info, &TuneStep::Policies, |new| {
            Ok(NewCampaign { kind: Kind::Policies, machine, question, ..new })
        })?;
    }
    let Some(part) = stored::part(store, &parent)? else {
        return Ok(PolicyMeasurements::default());
    };
    let (mut strategy, question) = opened_policies(&part)?;
    if part.state == CampaignState::Finished {
        return Ok(strategy.measured(&store.records(part.id)?));
    }
    let budget = Budget::Time(question.time);
    let measured = measure_on(store, &part, budget, &mut strategy, program, caller, events)?;
    program.end();
    let found = strategy.measured(&measured.records);
    if let Some(unit) = &found.unit {
        store.learn(part.id, &part.new.workload, unit)?;
    }
    let ends = EndContext { restored: true, ..EndContext::default() };
    conclude(store, part.id, measured, ends, |_, _| found.values.clone())?;
    Ok(found)
}

fn opened_policies(part: &CampaignInfo) -> Result<(Policies, PoliciesQuestion), JobError> {
    let question: PoliciesQuestion = stored::question(part)?;
    Ok((Policies::new(question.clone(), &part.new.machine), question))
}

/// This machine, as far as the program may use it.
fn usable_machine(program: &TunedProgram<'_>) -> Result<Machine, JobError> {
    let mut machine = pinwise_linux::machine()?;
    let process = program.process().map(Pid);
    if let Some(Ok(allowed)) = process.map(pinwise_linux::process::allowed) {
        machine.allowed = machine.allowed.intersection(&allowed);
    }
    Ok(machine)
}

/// Places the numbers of `list` until one is left.
fn placements(
    info: &CampaignInfo,
    program: &mut TunedProgram<'_>,
    mut list: Shortlist,
    time: Duration,
    caller: &Caller,
    store: &mut Store,
    events: &mut dyn Events,
) -> Result<(u32, Vec<TunedPlacement>), JobError> {
    let (begin, rounds) = (Instant::now(), list.rounds());
    let of_round = time / rounds;
    let mut placed: Vec<TunedPlacement> = Vec::new();
    for round in 1..=rounds {
        let each = time.saturating_sub(begin.elapsed()).min(of_round);
        let each = each / list.numbers().len() as u32;
        for &n in list.numbers() {
            let parent = Parent::new(info.id, &TuneStep::Place { n, round });
            let placement = place_number(program, parent, n, each, caller, store, events)?;
            let earlier =
                placed.iter().any(|earlier| earlier.parameter == n && earlier.searched.is_some());
            if let Some(reason) = placement.reason.as_ref().filter(|_| earlier) {
                note(events, Notice::NotPlacedAgain { n, reason: reason.clone() })?;
                continue;
            }
            placed.retain(|earlier| earlier.parameter != n);
            placed.push(placement);
        }
        list.halve(|n| placed.iter().find(|placed| placed.parameter == n)?.best());
    }
    Ok((list.numbers()[0], placed))
}

/// Places the program with `n`, in a campaign of its own. What keeps a number from being placed
/// does not end the search for others.
fn place_number(
    program: &mut TunedProgram<'_>,
    parent: Parent,
    n: u32,
    time: Duration,
    caller: &Caller,
    store: &mut Store,
    events: &mut dyn Events,
) -> Result<TunedPlacement, JobError> {
    let known = stored::part(store, &parent)?;
    if time.is_zero() && known.is_none() {
        let reason = Some(Unmeasured::NoTime);
        return Ok(TunedPlacement { parameter: n, searched: None, reason });
    }
    let time = time.max(Duration::from_millis(1));
    let placed = program
        .request(Some(n), time)
        .and_then(|request| place_part(request, Some(parent), caller, store, events));
    let (searched, reason) = match placed {
        Ok(searched) => (Some(searched), None),
        Err(JobError::Failed(failure)) => {
            (None, Some(Unmeasured::Failed { error: failure.reason }))
        }
        Err(error) => return Err(error),
    };
    Ok(TunedPlacement { parameter: n, searched, reason })
}

/// The placements of a campaign that are in the store, the last one of each number, in order.
fn stored(store: &Store, info: &CampaignInfo) -> Result<Vec<TunedPlacement>, JobError> {
    let mut placed: Vec<TunedPlacement> = Vec::new();
    for part in store.parts(info.id)? {
        let step = part.new.parent.as_ref().and_then(Parent::step);
        let Some(TuneStep::Place { n: parameter, .. }) = step else { continue };
        if part.state != CampaignState::Finished {
            continue;
        }
        let outcome = PlaceRequest::answer(&part, &Caller::default(), store)?.outcome;
        placed.retain(|earlier| earlier.parameter != parameter);
        let searched = Some(StoredSearch { info: part, outcome });
        placed.push(TunedPlacement { parameter, searched, reason: None });
    }
    Ok(placed)
}

/// What a campaign answers as far as it came.
pub(crate) fn answer(store: &Store, info: &CampaignInfo) -> Result<TuneAnswer, JobError> {
    let request: TuneRequest = stored::question(info)?;
    let of = |step: TuneStep| stored::part(store, &Parent::new(info.id, &step));
    let threads = match of(TuneStep::Threads)? {
        Some(part) if part.records > 0 => {
            Some(ThreadsRequest::answer(&part, &Caller::default(), store)?.outcome)
        }
        _ => None,
    };
    let policies = match of(TuneStep::Policies)? {
        Some(part) => opened_policies(&part)?.0.measured(&store.records(part.id)?),
        None => PolicyMeasurements::default(),
    };
    let mut placements = stored(store, info)?;
    let conclusion = stored::conclusion::<Option<TuneConclusion>>(info)?;
    let concluded = match (conclusion.flatten(), of(TuneStep::Finals)?) {
        (Some(conclusion), Some(part)) => {
            for Unplaced { parameter, reason } in conclusion.unplaced.iter().cloned() {
                let reason = Some(reason);
                placements.push(TunedPlacement { parameter, searched: None, reason });
            }
            let compared = opened_finals(&part)?;
            let cut_short = conclusion.cut_short.clone();
            let finals = compared.finals(&store.records(part.id)?, cut_short);
            Some(Concluded { campaign: part.id, compared, finals, conclusion })
        }
        _ => None,
    };
    let mut notes = policies.notes.clone();
    for placed in &placements {
        let n = placed.parameter;
        let reason = placed.reason.iter().cloned();
        notes.extend(reason.map(|reason| TuneNote::NotPlaced { n, reason }));
        let met = placed.searched.iter().flat_map(|searched| searched.outcome.notes.clone());
        notes.extend(met.map(|note| TuneNote::WhilePlaced { n, note }));
    }
    notes.extend(concluded.iter().flat_map(|concluded| concluded.conclusion.notes.iter().cloned()));
    Ok(TuneAnswer {
        campaign: info.clone(),
        budget: request.threads.time(),
        threads,
        policies,
        placements,
        concluded,
        notes,
        unfinished: Vec::new(),
        cut_short: None,
    })
}

/// The plan for a choice; `None` where there is nothing to do that a plan could say.
fn plan(
    info: &CampaignInfo,
    program: &TunedProgram<'_>,
    choice: Choice,
    parameter: Option<u32>,
    searched: Option<&StoredSearch>,
    finals: &Finals,
    store: &Store,
) -> Result<Option<Plan>, JobError> {
    let Some(n) = parameter else { return Ok(None) };
    let fingerprint = pinwise_linux::fingerprint(&pinwise_linux::machine()?);
    let placed = match (searched, choice) {
        (Some(StoredSearch { info, outcome }), Choice::Placed) => {
            let tree = SharingTree::new(&info.new.machine, info.new.alike);
            Plan::from_outcome(&info.new.workload, &tree, fingerprint.clone(), outcome)
        }
        _ => None,
    };
    let default = finals.contest.estimate(Way::Default);
    let measured = finals.contest.estimate(choice.way());
    let measured =
        measured.map(|estimate| Measured::new(&finals.unit, &estimate, default.as_ref()));
    let number = Number { n, environment: program.environment(n), set: program.set_command(n) };
    let mut plan = placed.unwrap_or_else(|| Plan::new(program.name(), fingerprint, Vec::new()));
    (plan.measured, plan.number) = (measured, Some(number));
    // Of the search that found it only what speaks against the comparison by which it was chosen,
    // and, where it pins, what the threads did while they were placed.
    let met = searched.filter(|_| choice == Choice::Placed);
    let met = met.into_iter().flat_map(|searched| &searched.outcome.notes);
    let finals = finals.notes();
    let finals = finals.iter().map(|note| tagged(note, sentence(&tune_note(note))));
    let met = met.map(|met| tagged(met, sentence(&pinwise_present::note(met))));
    let notes = finals.chain(met).map(|note| PlanNote::new(&note)).collect();
    plan.origin = Some(Origin {
        campaign: Some(store.identity(info)),
        advice: match choice {
            Choice::Placed => Advice::Pin,
            Choice::Undecided => Advice::Undecided,
            Choice::Default | Choice::Number | Choice::Fewer => Advice::KeepDefault,
        },
        simulated: false,
        notes,
    });
    Ok(Some(plan))
}

/// Writes the plan where the user wants it, or beside the store.
fn write(plan: &Plan, request: &TuneRequest, store: &Store) -> Result<PathBuf, JobError> {
    let Some(path) = &request.plan else {
        return plan_file::keep_plan(store, &format!("tune-{}", plan.program), plan);
    };
    plan_file::write_plan(path, plan)?;
    Ok(path.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::{Silent, stopping_at};
    use crate::job::{resume_job, run};
    use crate::threads::{HereProgram, ThreadsMethod, ThreadsProgram};
    use pinwise_linux::{GUARDIAN_ARGUMENT, guardian_main};

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
        assert_eq!(read.unplaced, [Unplaced { parameter: 4, reason: text("it has ended") }]);
        assert_eq!(read.cut_short, Some(text("interrupted")));
        let cut_short = TuneNote::CutShort { rounds: 2, reason: text("interrupted") };
        assert_eq!(read.notes, [TuneNote::from("a thread came".to_owned()), cut_short]);
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
        let program = ThreadsProgram::Here(HereProgram {
            command: ["sleep", "0.{n}"].map(String::from).to_vec(),
            threads_per_n: Some("1".parse().unwrap()),
            ..HereProgram::default()
        });
        let threads = ThreadsRequest {
            method: ThreadsMethod::Sweep,
            min: Some(1),
            max: Some(2),
            rounds: Some(1),
            whole_run: true,
            budget: Some(Duration::from_secs(3600)),
            probe: Duration::from_millis(20),
            ..ThreadsRequest::new(program)
        };
        TuneRequest { threads, default: Some(1), plan: None }
    }

    #[test]
    fn a_comparison_that_was_cut_short_goes_on_and_nothing_new_is_searched() {
        let (_folder, mut store) = stored::empty_store();
        let caller = Caller::default();
        // It has its number when it is stopped.
        let mut events =
            stopping_at(&caller.interrupt, 1, |event| matches!(event, Event::MeasuringEnded));
        run(request(), &caller, &mut store, &mut events).unwrap_err();
        let whole = store.list().unwrap().campaigns.remove(0);
        let number = stored::part(&store, &Parent::new(whole.id, &TuneStep::Threads));
        assert_eq!(number.unwrap().map(|part| part.state), Some(CampaignState::Finished));
        let unplaced = vec![Unplaced { parameter: 2, reason: Unmeasured::NoTime }];
        let question = FinalsQuestion {
            n: 2,
            default: Some(1),
            as_default: false,
            default_known: None,
            placed: None,
            time: Duration::ZERO,
            windows: 1.0,
            unplaced: unplaced.clone(),
        };
        let question = serde_json::to_value(&question).unwrap();
        let parent = Some(Parent::new(whole.id, &TuneStep::Finals));
        let finals = NewCampaign { kind: Kind::Finals, parent, question, ..whole.new.clone() };
        let finals = store.create(&finals).unwrap();
        let earlier = TuneConclusion {
            choice: Choice::Number,
            parameter: Some(2),
            gain: None,
            command: None,
            unplaced: Vec::new(),
            cut_short: Some(Unmeasured::Interrupted),
            notes: Vec::new(),
            plan: None,
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
        assert_eq!(store.records(finals).unwrap().len(), 1);
        let info = store.get(whole.id).unwrap();
        assert_eq!(info.state, CampaignState::Stopped);
        let so_far = answer(&store, &info).unwrap();
        assert!(so_far.concluded.is_none(), "what was concluded rests on fewer windows");
        // The other one, and no part besides.
        let caller = Caller::default();
        let ended = resume_job::<TuneRequest>(&info, &caller, &mut store, &mut Silent).unwrap();
        assert_eq!(ended.campaign.state, CampaignState::Finished);
        assert_eq!(ended.concluded.unwrap().conclusion.unplaced, unplaced);
        assert_eq!(store.records(finals).unwrap().len(), 2);
        assert_eq!(store.parts(whole.id).unwrap().len(), 2);
    }

    #[test]
    fn other_contexts_than_at_the_start_are_refused_before_anything_runs() {
        let (_folder, mut store) = stored::empty_store();
        let caller = Caller::default();
        let (new, _) = request().prepare(&caller, &store, &mut Silent).unwrap();
        let id = store.create(&new).unwrap();
        let (mut question, _) = number_question(&request()).unwrap();
        let reopened = |question: &ThreadsQuestion, store: &mut Store| {
            let parent = Some(Parent::new(id, &TuneStep::Threads));
            let question = serde_json::to_value(question).unwrap();
            let part = NewCampaign { kind: Kind::Threads, parent, question, ..new.clone() };
            let part = store.create(&part).unwrap();
            let reopened = TuneRequest::reopen(&store.get(id).unwrap(), &caller, store);
            store.delete(part).unwrap();
            reopened.map_err(|error| error.to_string())
        };
        assert_eq!(reopened(&question, &mut store), Ok(request()));
        question.contexts += 1;
        let refused = reopened(&question, &mut store).unwrap_err();
        assert!(refused.contains("contexts at its start"), "{refused}");
    }

    #[test]
    fn numbers_that_count_as_one_are_alike() {
        let capped =
            |pooled| Note::Capped { threads: 3, numbers: vec![2, 4], pooled, follows: true };
        assert_eq!(alike(&[Note::Simulated, capped(true)]), [2, 4]);
        assert_eq!(alike(&[capped(false)]), [0; 0]);
    }

    #[test]
    fn the_runner_up_is_the_fastest_other_number_on_average() {
        let rates = [(2, 5.0), (4, 9.0), (4, 1.0), (3, 5.5), (1, 2.0)];
        assert_eq!([runner_up(&rates, 2), runner_up(&rates, 3)], [Some(3), Some(4)]);
        assert_eq!(runner_up(&[(2, 5.0), (2, 6.0)], 2), None);
    }
}
