//! The parts of a `tune` campaign, measured one after the other.
//!
//! 1. *Number*: the search for the number of threads alone.
//! 2. *Policies*: promising numbers under simple policies of placement.
//! 3. *Placements*: a separate search for each number that may be best, by successive halving.
//! 4. *Last comparison*: on fresh windows.
//!
//! Each part is a campaign that names its step. A part in the store is not measured again. If it
//! has ended, its records are read. Otherwise it continues. So a killed campaign goes on where it
//! was. The ways of the last comparison are chosen once, when its part is made. At the end the
//! whole campaign is concluded.

use super::policies::{Policies, PoliciesQuestion, PolicyMeasurements, rates};
use super::program_testbed::{TunedProgram, seen};
use super::{
    LeftUndone, NUMBER, TuneConclusion, TuneRequest, TunedPlacement, number_question,
    stored_placements,
};
use crate::campaign_run::{EndContext, answered, conclude, measure_on, unanswered};
use crate::error::{Failure, JobError, Remedy};
use crate::events::{Events, note};
use crate::job::Caller;
use crate::last_comparison::{
    Comparing, GOOD_ROUNDS, JUDGED_ROUNDS, LastComparison, LastComparisonQuestion, UnplacedNumber,
};
use crate::open_subject::WithNodeNews;
use crate::place::{StoredSearch, place_part};
use crate::resume_check::no_longer;
use crate::stored_campaign;
use crate::threads::{
    ProgramProber, Searched, ThreadsOnNodes, ThreadsOutcome, ThreadsProgram, ThreadsQuestion,
    ThreadsRequest, search_threads,
};
use pinwise_campaign::{
    CampaignId, CampaignInfo, CampaignState, Ending, Kind, NewCampaign, Parent, Store,
};
use pinwise_linux::Pid;
use pinwise_measure::MemoryPolicy;
use pinwise_placement::{Budget, LastComparisonNote, PlannedNumber, TunePart, Unmeasured, Way};
use pinwise_present::Notice;
use pinwise_threads::{FoundNumber, Shortlist};
use pinwise_topology::Machine;
use std::time::{Duration, Instant};

/// Share of the budget for finding assignments. The number has its own share ([`NUMBER`]), and the
/// last comparison gets the rest.
const PLACING: f64 = 0.5;
/// Share of the time for assignments that policies may use. Searches get the rest.
const POLICIES: f64 = 1.0 / 3.0;

/// Measures the parts one after the other, from where they are, and concludes the campaign. Returns
/// what went wrong after the answer, and why the comparison did not end.
pub(super) fn measure_parts(
    info: &CampaignInfo,
    request: &TuneRequest,
    nodes: Option<ThreadsOnNodes>,
    caller: &Caller,
    store: &mut Store,
    events: &mut dyn Events,
) -> Result<(Vec<LeftUndone>, Option<Unmeasured>), JobError> {
    let (budget, before) = (request.threads.time(), spent(store, info.id)?);
    let clock = TuneClock { budget, before, begin: Instant::now() };
    let (number, prober) = number(info, request, nodes, caller, store, events)?;
    let mut program = TunedProgram::after(&request.threads, prober, caller)?;
    if stored_campaign::part(store, &Parent::new(info.id, &TunePart::LastComparison))?.is_none()
        && let Some(short) = short(&number.outcome, &clock, program.effort().windows)
    {
        note(events, short)?;
    }
    let session = TuneSession { info, request, caller, clock };
    let measured = place_and_compare(&session, &number, &mut program, store, events);
    if measured.is_err() {
        // Where nobody takes the note, the error says more.
        let _ = program.give_back(events);
    }
    measured
}

/// Warns if the budget is too short for good intervals. Assumes that a window takes as long as a
/// probe, with this many `windows`. If the only round ends after the budget, it says how long the
/// search takes. It names no budget, because the comparison may take less time than expected. At
/// its end the comparison says which budget would decide it.
pub(super) fn short(outcome: &ThreadsOutcome, clock: &TuneClock, windows: f64) -> Option<Notice> {
    let probes = outcome.probes.iter().map(|shown| shown.probe.cost.as_secs_f64());
    let probe = probes.clone().sum::<f64>() / probes.len().max(1) as f64;
    let each = probe + outcome.window.as_secs_f64() * (windows - 1.0).max(0.0);
    // The default, the number, and its placement.
    let round = 3.0 * each;
    let needed = GOOD_ROUNDS as f64 * round / (1.0 - NUMBER - PLACING);
    let budget = clock.budget.as_secs_f64();
    let takes = (clock.used() + clock.placing()).as_secs_f64() + round;
    let takes = Some(takes).filter(|&takes| takes > budget);
    (needed > budget).then_some(Notice::WideIntervals { each, takes })
}

/// What all parts after the number share.
struct TuneSession<'a> {
    info: &'a CampaignInfo,
    request: &'a TuneRequest,
    caller: &'a Caller,
    clock: TuneClock,
}

/// Places the number, compares at last, and concludes the campaign.
fn place_and_compare(
    session: &TuneSession<'_>,
    number: &NumberSearched,
    program: &mut TunedProgram<'_>,
    store: &mut Store,
    events: &mut dyn Events,
) -> Result<(Vec<LeftUndone>, Option<Unmeasured>), JobError> {
    let &TuneSession { info, request, caller, ref clock } = session;
    let part = match stored_campaign::part(store, &Parent::new(info.id, &TunePart::LastComparison))?
    {
        Some(part) => part,
        None => contenders(session, number, program, store, events)?,
    };
    let placed = stored_placements(store, info)?;
    let search = |n| placed.iter().find(|placed| placed.parameter == n)?.searched.as_ref();
    // Decided once: resumed, the campaign compares the same.
    let compared: LastComparisonQuestion = stored_campaign::question(&part)?;
    program.know_own(compared.default_number().sure());
    let (n, best) = (compared.n, search(compared.n));
    let comparison = comparison(&part, &compared, best, program, caller, store, events)?;
    store.learn(info.id, &info.new.workload, &comparison.unit)?;
    let fewer = compared.default.unwrap_or(program.cpus) > n;
    let choice = comparison.choice(fewer, request.threads.within);
    let parameter = if choice.way() == Way::Default { compared.default } else { Some(n) };
    let mut left_undone = Vec::new();
    let mut notes: Vec<LastComparisonNote> = compared.default_known.clone().into_iter().collect();
    notes.extend(comparison.notes(choice));
    match program.leave(parameter.unwrap_or(n)) {
        Ok(true) => notes.push(LastComparisonNote::Set {
            n: parameter.unwrap_or(n),
            pins: choice.way() == Way::Placed,
        }),
        Ok(false) => {}
        Err(error) => left_undone.push(LeftUndone::Number(error)),
    }
    let state = if comparison.is_open() { CampaignState::Stopped } else { CampaignState::Finished };
    let conclusion = TuneConclusion {
        choice,
        parameter,
        gain: comparison.rounds.gain_of(choice),
        command: program.command(),
        named: named_variables(&request.threads, parameter)?,
        unplaced: compared.unplaced,
        cut_short: comparison.cut_short,
        notes,
        time: clock.used(),
    };
    answered(store, info.id, state, &conclusion)?;
    Ok((left_undone, conclusion.cut_short))
}

/// The variables that a plan with this number sets only if the user names them.
fn named_variables(request: &ThreadsRequest, n: Option<u32>) -> Result<Vec<String>, JobError> {
    let (Some(n), ThreadsProgram::Here(program)) = (n, &request.program) else {
        return Ok(Vec::new());
    };
    if program.pid.is_some() {
        return Ok(Vec::new());
    }
    let environment = program.template()?.environment(n);
    let number = PlannedNumber { n, environment, set: None };
    Ok(number.beyond_number().map(|(name, _)| name.to_owned()).collect())
}

/// The time of a campaign, over all its sessions.
pub(super) struct TuneClock {
    pub(super) budget: Duration,
    /// The time that earlier sessions used.
    pub(super) before: Duration,
    pub(super) begin: Instant,
}

impl TuneClock {
    fn used(&self) -> Duration {
        self.before + self.begin.elapsed()
    }

    fn left(&self) -> Duration {
        self.budget.saturating_sub(self.used())
    }

    /// The time for finding assignments. If the number took longer than its share, it is less.
    fn placing(&self) -> Duration {
        let reserved = self.budget.mul_f64(1.0 - NUMBER - PLACING);
        self.left().saturating_sub(reserved).min(self.budget.mul_f64(PLACING))
    }
}

/// Searches for what is compared at last. Returns the part of the campaign for the comparison.
fn contenders(
    session: &TuneSession<'_>,
    number: &NumberSearched,
    program: &mut TunedProgram<'_>,
    store: &mut Store,
    events: &mut dyn Events,
) -> Result<CampaignInfo, JobError> {
    let &TuneSession { info, request, ref clock, .. } = session;
    let placing = clock.placing();
    let begin = Instant::now();
    let measured = policies(session, number, program, placing.mul_f64(POLICIES), store, events)?;
    let rates = rates(&number.outcome);
    let list = measured.shortlist(&rates, number.found.parameter);
    let time = placing.saturating_sub(begin.elapsed());
    let (n, placed) = placements(session, program, &measured, list, time, store, events)?;
    let unplaced = placed
        .into_iter()
        .filter_map(|one| Some(UnplacedNumber { parameter: one.parameter, reason: one.reason? }));
    let unplaced = unplaced.collect();
    let mut numbers = number.outcome.question.numbers()?;
    // With a floor an unprobed number may hurt the program in every round.
    numbers.retain(|_| request.threads.floor().is_none());
    let placed = stored_placements(store, info)?;
    let best = |n| {
        let placed = placed.iter().find(|placed| placed.parameter == n)?;
        placed.searched.as_ref()?.outcome.best.as_ref()
    };
    stored_campaign::part_for(store, info, &TunePart::LastComparison, |new| {
        let (own, notes) = (&program.default, &number.outcome.notes);
        // Something has to be compared with the default, if there is another number.
        let rival = || own.rival(n, &rates, &numbers, notes).unwrap_or(n);
        let n = if best(n).is_some() { n } else { rival() };
        let question = LastComparisonQuestion {
            n,
            default: own.n,
            // The time of runs that take a fixed time is no speed.
            as_default: own.counts_as(n, notes) || number.outcome.fixed_time().is_some(),
            default_known: own.known.clone(),
            placed: best(n).map(|best| best.assignment.clone()),
            memory: best(n).map_or(MemoryPolicy::Leave, |_| measured.memory_of(n)),
            time: clock.left(),
            windows: program.effort().windows,
            precision: None,
            looks: 1,
            ranked_on: number.outcome.ranked_on(program.contexts()),
            own_load: true,
            goes_on: program.goes_on(),
            unplaced,
        };
        Ok(NewCampaign {
            kind: Kind::LastComparison,
            question: serde_json::to_value(&question)?,
            ..new
        })
    })
}

/// Makes the last comparison. `best`: the search for the assignment of the number.
fn comparison(
    part: &CampaignInfo,
    compared: &LastComparisonQuestion,
    best: Option<&StoredSearch>,
    program: &mut TunedProgram<'_>,
    caller: &Caller,
    store: &mut Store,
    events: &mut dyn Events,
) -> Result<LastComparison, JobError> {
    let comparing = Comparing { part, question: compared, read: &seen, fewest: JUDGED_ROUNDS };
    if let Some(comparison) = comparing.ended(store)? {
        return Ok(comparison);
    }
    program.end();
    if let Some(best) = best {
        program.know(compared.n, best.info.new.workload.clone());
    }
    program.in_rounds_of(compared.ways().len());
    program.open_on_nodes(part, events)?;
    let events = &mut WithNodeNews::new(events, program.news());
    let comparison = comparing.measure(program, caller, store, events);
    program.end();
    comparison
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
    nodes: Option<ThreadsOnNodes>,
    caller: &Caller,
    store: &mut Store,
    events: &mut dyn Events,
) -> Result<(NumberSearched, ProgramProber), JobError> {
    let events = &mut WithNodeNews::new(events, nodes.as_ref().and_then(ThreadsOnNodes::news));
    let part = stored_campaign::part_for(store, info, &TunePart::Threads, |new| {
        let (question, machine) = number_question(request, nodes.as_ref())?;
        let question = serde_json::to_value(&question)?;
        Ok(NewCampaign { kind: Kind::Threads, machine, question, ..new })
    })?;
    let question: ThreadsQuestion = stored_campaign::question(&part)?;
    let searched = {
        let mut journal = store.journal(part.id)?;
        let machine = &part.new.machine;
        search_threads(&question, machine, nodes, &mut journal, &caller.interrupt, events)
    };
    let searched = searched?;
    let ends = EndContext { restored: true, ..searched.ends() };
    let Searched { outcome, ending, program } = searched;
    if let Some(unit) = &outcome.unit {
        store.learn(part.id, &part.new.workload, unit)?;
    }
    match (&outcome.found, program, outcome.conclusion()) {
        // What was found under another load is not placed.
        (Ok(found), ..) if let Some(why) = found.jumped() => {
            Err(unanswered(store, part.id, Ending::Failed(why.to_string()), ends)?)
        }
        (Ok(found), program, Some(conclusion)) => {
            answered(store, part.id, CampaignState::Finished, &conclusion)?;
            let found = found.clone();
            Ok((NumberSearched { outcome, found }, program))
        }
        _ => Err(unanswered(store, part.id, ending, ends)?),
    }
}

/// Measures numbers under policies of placement, if there is time for some.
fn policies(
    &TuneSession { info, request, caller, .. }: &TuneSession<'_>,
    NumberSearched { outcome, found }: &NumberSearched,
    program: &mut TunedProgram<'_>,
    time: Duration,
    store: &mut Store,
    events: &mut dyn Events,
) -> Result<PolicyMeasurements, JobError> {
    let parent = Parent::new(info.id, &TunePart::Policies);
    let known = stored_campaign::part(store, &parent)?;
    let machine = match &known {
        Some(part) => part.new.machine.clone(),
        None => usable_machine(program)?,
    };
    if known.is_none() {
        let memory = program.tried_memory(request.memory, &machine);
        let asked = PoliciesQuestion::after(outcome, found, program, &machine, memory, time);
        let Some(question) = asked else { return Ok(PolicyMeasurements::default()) };
        let question = serde_json::to_value(&question)?;
        stored_campaign::part_for(store, info, &TunePart::Policies, |new| {
            Ok(NewCampaign { kind: Kind::Policies, machine, question, ..new })
        })?;
    }
    let Some(part) = stored_campaign::part(store, &parent)? else {
        return Ok(PolicyMeasurements::default());
    };
    let question: PoliciesQuestion = stored_campaign::question(&part)?;
    let mut strategy = Policies::new(question.clone(), &part.new.machine);
    if part.state == CampaignState::Finished {
        return Ok(strategy.measured(&store.records(part.id)?));
    }
    if question.is_of_other_order(&part.new.machine) {
        return Err(no_longer(info, "this version orders cores of several kinds in another way"));
    }
    let budget = Budget::Time(question.time);
    program.open_on_nodes(&part, events)?;
    let events = &mut WithNodeNews::new(events, program.news());
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

/// The machine that measures, as far as the program may use it.
fn usable_machine(program: &TunedProgram<'_>) -> Result<Machine, JobError> {
    let mut machine = program.machine_now()?;
    let process = program.process().map(Pid);
    if let Some(Ok(allowed)) = process.map(pinwise_linux::process::allowed_to_any) {
        // A process that already ran may use more CPUs than pinwise.
        machine.allowed = allowed.intersection(machine.online());
    }
    Ok(match process {
        Some(process) => pinwise_linux::memory::machine_of(process, machine),
        None => machine,
    })
}

/// Places the numbers of `list` until one is left. Memory lies where it was best under `policies`.
fn placements(
    &TuneSession { info, caller, .. }: &TuneSession<'_>,
    program: &mut TunedProgram<'_>,
    policies: &PolicyMeasurements,
    mut list: Shortlist,
    time: Duration,
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
            let parent = Parent::new(info.id, &TunePart::Place { n, round });
            let number = (n, policies.memory_of(n));
            let placement = place_number(program, parent, number, each, caller, store, events)?;
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

/// Places the program with `n`, in a separate campaign. What keeps a number from being placed does
/// not end the search for others.
fn place_number(
    program: &mut TunedProgram<'_>,
    parent: Parent,
    (n, memory): (u32, MemoryPolicy),
    time: Duration,
    caller: &Caller,
    store: &mut Store,
    events: &mut dyn Events,
) -> Result<TunedPlacement, JobError> {
    let known = stored_campaign::part(store, &parent)?;
    if time.is_zero() && known.is_none() {
        let reason = Some(Unmeasured::NoTime);
        return Ok(TunedPlacement { parameter: n, searched: None, reason });
    }
    let time = time.max(Duration::from_millis(1));
    let placed = program
        .request(Some(n), memory, time)
        .and_then(|request| place_part(request, Some(parent), caller, store, events));
    let (searched, reason) = match placed {
        Ok(searched) => (Some(searched), None),
        // The budget that the message names is that of the part.
        Err(JobError::Failed(Failure { remedy: Remedy::RaiseBudget, .. })) => {
            (None, Some(Unmeasured::NoTime))
        }
        Err(JobError::Failed(failure)) => {
            (None, Some(Unmeasured::Failed { error: failure.reason }))
        }
        Err(error) => return Err(error),
    };
    Ok(TunedPlacement { parameter: n, searched, reason })
}

/// The time that the parts of a campaign took.
fn spent(store: &Store, id: CampaignId) -> Result<Duration, JobError> {
    let last = |part: &CampaignInfo| -> Result<Duration, JobError> {
        Ok(store.records(part.id)?.last().map_or(Duration::ZERO, |record| record.elapsed))
    };
    store.parts(id)?.iter().map(last).sum()
}
