//! The job that finds how many threads a program should run.
//!
//! The campaign's question is a [`ThreadsQuestion`]: the request with every default decided. Each
//! probe is a record, and so is the trial that shows how long a run takes. So a killed search goes
//! on where it was, and its time includes the time spent before. The outcome is computed from the
//! question and the records ([`ThreadsOutcome`]). The verdict comes only from fresh windows
//! ([`Confirmation`]), the records of a part.

mod confirmation;
mod host_program;
mod on_nodes;
mod outcome;
mod program_opening;
mod request;
mod watch_summary;

use crate::campaign_run::{EndContext, answered, as_parent_error, disturbances, unanswered};
use crate::error::{JobError, Remedy};
use crate::events::{Event, Events};
use crate::job::{Caller, Job};
use crate::open_subject::WithNodeNews;
use crate::resume_check::{check_machine, check_processes};
use crate::service_number::{give_back, own_number};
use crate::stored_campaign;
pub use confirmation::Confirmation;
use confirmation::{Confirmed, Confirming, confirm, confirmed};
pub use host_program::HostProgram;
pub(crate) use on_nodes::{AskedProbes, ThreadsOnNodes, look_in, serve_probes};
pub use outcome::{ShownProbe, ThreadsConclusion, ThreadsOutcome};
use pinwise_campaign::{
    CampaignInfo, CampaignState, Ending, Journal, Kind, NewCampaign, Parent, Record, Step, Store,
    Strategy as _, drive,
};
use pinwise_linux::{Pid, ProcessLock, described};
use pinwise_measure::{Interrupt, Probed, Setting, Testbed as _, ThreadCount, Unit, Workload};
use pinwise_placement::{Budget, LastComparisonVerdict, TunePart, Unmeasured};
use pinwise_present::{Files, Planned, Summary, Unfinished};
use pinwise_programs::{LinuxProber, ProbeError};
use pinwise_scheduler::ModelProber;
use pinwise_threads::{NumberSearch, ThreadsNote};
use pinwise_topology::{Alike, Machine};
pub(crate) use program_opening::seen;
use program_opening::{ProgramOpening, names_nothing};
pub(crate) use program_opening::{UsableContexts, usable_contexts};
pub(crate) use request::platform;
pub use request::{
    ModelledProgram, ThreadsMethod, ThreadsProgram, ThreadsQuestion, ThreadsRequest,
};
use serde::Deserialize;
use serde_json::Value;
use std::time::{Duration, Instant};
pub use watch_summary::WatchSummary;

/// The answer of `threads`: the number, and the probes it rests on.
#[derive(Debug)]
pub struct ThreadsAnswer {
    /// The campaign.
    pub campaign: CampaignInfo,
    /// The outcome of the search, as far as it came.
    pub outcome: ThreadsOutcome,
    /// The result of the fresh windows, which decides what is announced. `None`: there was no other
    /// number to compare with, or it has not come to that.
    pub confirmation: Option<Confirmation>,
    /// The user ended this run once there was an answer. False if the answer was only read.
    pub interrupted: bool,
    /// Why a program that goes on running does not have the number that was found. `None` if the
    /// answer was only read.
    pub unsettled: Option<ProbeError>,
}

impl ThreadsAnswer {
    /// The number to run the program with; `None`: there is no answer.
    pub fn number(&self) -> Option<u32> {
        self.outcome.number(self.confirmation.as_ref())
    }

    /// How far the campaign is; `None` if it has ended, or if it can have no answer.
    pub fn unfinished(&self, files: Files<'_>) -> Option<Unfinished> {
        let (made, what) = match (&self.outcome.found, &self.confirmation) {
            (Err(Some(_)), _) => return None,
            (_, Some(shown)) => (shown.comparison.rounds.count() as u64, "comparison round"),
            (_, None) => (self.campaign.records, "measurement"),
        };
        Unfinished::of(&self.campaign, made, Planned::ByTime, what, files)
    }
}

/// A question, with the nodes on which its program is open.
pub struct PreparedThreads {
    pub(crate) question: ThreadsQuestion,
    pub(crate) nodes: Option<ThreadsOnNodes>,
}

impl Job for ThreadsRequest {
    const KIND: Kind = Kind::Threads;
    type Answer = ThreadsAnswer;
    type Prepared = PreparedThreads;

    fn prepare(
        self,
        caller: &Caller,
        _: &Store,
        events: &mut dyn Events,
    ) -> Result<(NewCampaign, PreparedThreads), JobError> {
        let nodes = ThreadsOnNodes::start(&self, caller, events)?;
        let (question, machine) = ThreadsQuestion::on(nodes.as_ref(), self)?;
        question.check_output(None)?;
        if let (ThreadsProgram::Here(program), None) = (&question.request.program, &nodes) {
            program.note_awaited_file(events)?;
            program.note_forgotten(&machine, events)?;
        }
        let asked = serde_json::to_value(&question)?;
        let new = question.campaign(Self::KIND, machine, asked, caller);
        Ok((new, PreparedThreads { question, nodes }))
    }

    fn reopen(
        info: &CampaignInfo,
        caller: &Caller,
        _: &Store,
        events: &mut dyn Events,
    ) -> Result<PreparedThreads, JobError> {
        let question: ThreadsQuestion = stored_campaign::question(info)?;
        question.check_output(Some(info.started))?;
        let nodes = ThreadsOnNodes::start(&question.request, caller, events)?;
        question.check_resumed(nodes.as_ref(), info)?;
        Ok(PreparedThreads { question, nodes })
    }

    fn conduct(
        PreparedThreads { question, nodes }: PreparedThreads,
        info: &CampaignInfo,
        caller: &Caller,
        store: &mut Store,
        events: &mut dyn Events,
    ) -> Result<ThreadsAnswer, JobError> {
        let id = info.id;
        let news = nodes.as_ref().and_then(ThreadsOnNodes::news);
        let events: &mut dyn Events = &mut WithNodeNews::new(events, news);
        let _hold = match hold(&question.request) {
            Ok(hold) => hold,
            Err(error) => return Err(as_parent_error(error, store, id)?),
        };
        let searched = {
            let mut journal = store.journal(id)?;
            let machine = &info.new.machine;
            search_threads(&question, machine, nodes, &mut journal, &caller.interrupt, events)
        };
        let searched = match searched {
            Ok(searched) => searched,
            Err(error) => return Err(as_parent_error(error, store, id)?),
        };
        if let Some(unit) = &searched.outcome.counted {
            store.learn(id, &info.new.workload, unit)?;
        }
        let ends = searched.ends();
        let Searched { outcome, ending, mut program } = searched;
        let finished = ending == Ending::Finished;
        let confirmed = match &outcome.found {
            Ok(found) if finished && question.request.confirms() => {
                let confirming = Confirming { info, question: &question, outcome: &outcome, found };
                match confirm(&confirming, &mut program, caller, store, events) {
                    Ok(confirmed) => confirmed,
                    Err(error) => {
                        // Where nobody takes the note, the error says more.
                        let _ = program.give_back(events);
                        return Err(as_parent_error(error, store, id)?);
                    }
                }
            }
            _ => Confirmed { shown: None, note: None, uncompared: question.request.confirms() },
        };
        let Confirmed { shown: confirmation, note, uncompared } = confirmed;
        let cut_short = confirmation.as_ref().and_then(|shown| shown.comparison.cut_short.clone());
        let open = confirmation.as_ref().is_some_and(|shown| shown.comparison.is_open());
        let finished = finished && !open;
        let state = if finished { CampaignState::Finished } else { CampaignState::Stopped };
        let Some(mut conclusion) = outcome.conclusion() else {
            return Err(unanswered(store, id, ending, ends)?);
        };
        if let Ending::Failed(reason) = &ending {
            conclusion.notes.push(ThreadsNote::Unchecked { reason: reason.clone().into() });
        }
        if let Some((shown, n)) = confirmation.as_ref().zip(outcome.number(confirmation.as_ref())) {
            conclusion.parameter = n;
            conclusion.threads = question.threads_with(conclusion.parameter)?;
            (conclusion.choice, conclusion.gain) =
                (Some(shown.choice), shown.comparison.rounds.gain_of(shown.choice));
        }
        if uncompared {
            conclusion.choice = Some(LastComparisonVerdict::Undecided);
        }
        conclusion.cut_short = cut_short;
        conclusion.notes.extend(note);
        if question.request.on.is_some() {
            let part = stored_campaign::part(store, &Parent::new(id, &TunePart::LastComparison))?;
            let ids = std::iter::once(id).chain(part.map(|part| part.id));
            // Which nodes were lost, and how alike the others are.
            conclusion.notes.extend(disturbances(store, ids)?.into_iter().map(ThreadsNote::from));
        }
        let kept = match &confirmation {
            Some(_) => Some(conclusion.parameter),
            // Only a number that fresh windows confirm stays set.
            None => program.own(),
        };
        let unsettled = match program.leave(&question, conclusion.parameter, kept) {
            Ok(notes) => {
                conclusion.notes.extend(notes);
                None
            }
            Err(error) => Some(error),
        };
        answered(store, id, state, &conclusion)?;
        let interrupted =
            ending == Ending::Interrupted || conclusion.cut_short == Some(Unmeasured::Interrupted);
        let answer = Self::answer(&store.get(id)?, caller, store)?;
        Ok(ThreadsAnswer { interrupted, unsettled, ..answer })
    }

    fn answer(info: &CampaignInfo, _: &Caller, store: &Store) -> Result<ThreadsAnswer, JobError> {
        let records = store.records(info.id)?;
        let mut outcome = ThreadsOutcome::of(stored_campaign::question(info)?, &records)?;
        let (mut cut_short, mut undecided) = (None, false);
        if let Some(conclusion) = stored_campaign::conclusion::<ThreadsConclusion>(info)? {
            outcome.notes.extend(conclusion.notes);
            cut_short = conclusion.cut_short;
            undecided = conclusion.choice == Some(LastComparisonVerdict::Undecided);
        }
        let confirmation = confirmed(info, &outcome.question, cut_short, store)?;
        if let Some(shown) = &confirmation {
            outcome.notes.retain(|note| !shown.refutes(note));
        }
        let unfinished = info.state != CampaignState::Finished;
        let wanted = undecided || (unfinished && outcome.question.request.confirms());
        outcome.uncompared = wanted && confirmation.is_none();
        outcome.is_unfinished = unfinished;
        let campaign = info.clone();
        Ok(ThreadsAnswer { campaign, outcome, confirmation, interrupted: false, unsettled: None })
    }

    fn summary(conclusion: &Value) -> Option<Summary> {
        let ThreadsConclusion { parameter: n, choice, gain, .. } =
            ThreadsConclusion::deserialize(conclusion).ok()?;
        Some(Summary::Threads { n, verdict: choice, gain })
    }
}

impl ThreadsQuestion {
    /// Decides the question of a request: on the first of the nodes, or on this machine as it is
    /// now. Returns the machine, too.
    ///
    /// # Errors
    /// The errors of [`Self::of`].
    pub(crate) fn on(
        nodes: Option<&ThreadsOnNodes>,
        request: ThreadsRequest,
    ) -> Result<(Self, Machine), JobError> {
        match (nodes, &request.program) {
            (Some(nodes), ThreadsProgram::Here(_)) => {
                let UsableContexts { contexts, limited, .. } = nodes.usable()?.clone();
                Ok((Self::decide(request, contexts, limited)?, nodes.machine().clone()))
            }
            _ => Self::of(request),
        }
    }

    /// Refuses to go on where something has changed that the measurements depend on.
    pub(crate) fn check_resumed(
        &self,
        nodes: Option<&ThreadsOnNodes>,
        info: &CampaignInfo,
    ) -> Result<(), JobError> {
        if let ThreadsProgram::Here(HostProgram { pid, .. }) = &self.request.program {
            check_processes(info, pid.as_slice())?;
            let (now, contexts) = match nodes {
                Some(nodes) => (nodes.machine().clone(), nodes.usable()?.contexts),
                None => {
                    let now = pinwise_linux::this_machine()?;
                    let contexts = usable_contexts(&now, pid.map(Pid))?.contexts;
                    (now, contexts)
                }
            };
            if contexts != self.contexts {
                return Err(JobError::Usage(format!(
                    "campaign {} cannot be resumed: the program had {} contexts at its start, and \
                     has {contexts} now; start a new one",
                    info.id.0, self.contexts
                )));
            }
            // Which contexts they are does not matter to a number.
            check_machine(info, &Machine { allowed: info.new.machine.allowed.clone(), ..now })?;
        }
        Ok(())
    }

    /// A campaign that asks for a number of threads, among other things.
    pub(crate) fn campaign(
        &self,
        kind: Kind,
        machine: Machine,
        question: Value,
        caller: &Caller,
    ) -> NewCampaign {
        // So a placement of the process names it, too.
        let name = match &self.request.program {
            ThreadsProgram::Here(HostProgram { pid: Some(pid), .. }) => described(Pid(*pid)),
            _ => self.request.name(),
        };
        NewCampaign {
            kind,
            parent: None,
            command: caller.command.clone(),
            machine,
            alike: Alike::ExceptNuma,
            // How many threads there are is what is asked.
            workload: Workload::new(name, &[]),
            // Known from the first measurement on.
            unit: Unit::rate("1/s"),
            simulated: matches!(self.request.program, ThreadsProgram::Modelled(_)),
            question,
            seed: self.seed(),
        }
    }
}

/// A search that has ended.
pub(crate) struct Searched {
    /// The outcome of the search.
    pub outcome: ThreadsOutcome,
    /// How it ended.
    pub ending: Ending,
    /// The program that was probed. One that goes on running does so until this is dropped.
    pub program: ProgramProber,
}

impl Searched {
    pub(crate) fn ends(&self) -> EndContext {
        // The result of the probes does not change when the campaign is resumed.
        let over = matches!(self.outcome.found, Err(Some(_)));
        EndContext {
            restored: false,
            remedy: if over { Remedy::AskAgain } else { Remedy::Resume },
            names_nothing: self.program.names_nothing(),
        }
    }
}

/// The program that was probed.
pub(crate) enum ProgramProber {
    /// A program on this machine.
    Here(Box<LinuxProber>),
    /// A program on a model.
    Modelled(Box<ModelProber>),
    /// Either of them on several nodes.
    OnNodes(Box<ThreadsOnNodes>),
}

impl ProgramProber {
    /// Whether the last probe failed because what was asked for does not exist.
    fn names_nothing(&self) -> bool {
        match self {
            Self::Here(prober) => names_nothing(prober.error()),
            Self::Modelled(_) | Self::OnNodes(_) => false,
        }
    }

    /// The number that a process gets back; `None`: no command has changed it.
    fn own(&self) -> Option<u32> {
        let Self::Here(prober) = self else { return None };
        own_number(prober)
    }

    fn give_back(&mut self, events: &mut dyn Events) -> Result<(), JobError> {
        let Self::Here(prober) = self else { return Ok(()) };
        give_back(prober, events)
    }

    /// Leaves a process that goes on running with a number, after a search that found `n`. Returns
    /// what to know about it. `None`: it keeps the number that it has. Error: why that could not
    /// be done.
    fn leave(
        &mut self,
        question: &ThreadsQuestion,
        n: u32,
        kept: Option<u32>,
    ) -> Result<Vec<ThreadsNote>, ProbeError> {
        let (Self::Here(prober), ThreadsProgram::Here(program)) = (self, &question.request.program)
        else {
            return Ok(Vec::new());
        };
        let own = prober.own_parameter();
        let left = match kept {
            Some(kept) => prober.settle(kept)?.then_some(kept),
            None => None,
        };
        let (Some(set), Some(_)) = (&program.set, program.pid) else { return Ok(Vec::new()) };
        let Some(command) = set.command(n) else { return Ok(vec![ThreadsNote::LimitsRestored]) };
        let unset = left.or(own) != Some(n);
        let left = left.map(|n| ThreadsNote::Set { n });
        let unset = unset.then_some(ThreadsNote::NotSet { n, command });
        Ok(left.into_iter().chain(unset).collect())
    }
}

/// Searches on `machine` with the records of `journal`, from where these end. With `nodes`, these
/// measure.
///
/// # Errors
/// The program cannot be opened, or the journal cannot serve. A search that ended without an answer
/// is none.
pub(crate) fn search_threads(
    question: &ThreadsQuestion,
    machine: &Machine,
    mut nodes: Option<ThreadsOnNodes>,
    journal: &mut dyn Journal,
    interrupt: &Interrupt,
    events: &mut dyn Events,
) -> Result<Searched, JobError> {
    let counting = question.counting()?;
    let convert = |threads| counting.parameter(threads);
    let budget = Budget::Time(question.request.time());
    let unit = question.unit(&Unit::rate("1/s"));
    events.take(Event::Measuring { budget, unit: &unit }).map_err(JobError::Output)?;
    let mut ready = match &question.request.program {
        ThreadsProgram::Here(program) if nodes.is_none() => {
            Some(ProgramOpening::new(program, question, machine.clone(), interrupt)?)
        }
        ThreadsProgram::Here(_) | ThreadsProgram::Modelled(_) => None,
    };
    let start = Instant::now();
    let (clock, stop) = (|| start.elapsed(), || interrupt.came());
    let (ending, records, mut program) = loop {
        let records = journal.records()?;
        let progressed = question.search.progressed(&convert, &records);
        let mut searcher = NumberSearch::new(&question.search, &convert, &records);
        // A search that is complete measures nothing more. A failed probe may be tried again.
        let again = records.last().and_then(|record| record.outcome.as_ref().err());
        let again = again.is_some_and(|error| error.retry.is_same());
        let proposes = || {
            let next = NumberSearch::new(&question.search, &convert, &records).step(&records);
            matches!(next, Step::Measure(_))
        };
        if let Some(nodes) = &mut nodes
            && (again || proposes())
        {
            nodes.begin(question, progressed.stage, records.clone(), events)?;
        }
        // If nobody takes the events, the job has been asked to stop.
        let mut observe = |record: &Record| drop(events.take(Event::Measured(record)));
        match (&question.request.program, &mut ready) {
            _ if let Some(mut on_nodes) = nodes.take() => {
                let (ending, records) =
                    drive(journal, &mut searcher, &mut on_nodes, &clock, &stop, &mut observe)?;
                if !searcher.is_next_stage() || ending == Ending::Interrupted {
                    break (ending, records, ProgramProber::OnNodes(Box::new(on_nodes)));
                }
                nodes = Some(on_nodes);
            }
            (ThreadsProgram::Here(_), Some(ready)) => {
                let mut prober = ready.open(progressed, &records)?;
                let (ending, records) =
                    drive(journal, &mut searcher, &mut prober, &clock, &stop, &mut observe)?;
                if !searcher.is_next_stage() || ending == Ending::Interrupted {
                    break (ending, records, ProgramProber::Here(Box::new(prober)));
                }
                ready.learn(&prober);
            }
            (ThreadsProgram::Modelled(program), _) => {
                let prober = program.prober(question)?.after(records.iter().filter_map(probed));
                let mut prober = prober.cancelled_by(interrupt.clone());
                let (ending, records) =
                    drive(journal, &mut searcher, &mut prober, &clock, &stop, &mut observe)?;
                break (ending, records, ProgramProber::Modelled(Box::new(prober)));
            }
            (ThreadsProgram::Here(_), None) => {
                return Err(JobError::failed("the program was not opened"));
            }
        }
    };
    events.take(Event::MeasuringEnded).map_err(JobError::Output)?;
    let outcome = ThreadsOutcome::of(question.clone(), &records)?;
    if outcome.found.is_err() {
        program.give_back(events)?;
    }
    Ok(Searched { outcome, ending, program })
}

/// Keeps others from a process that runs already. It is let go after the prober has put its limits
/// back.
pub(crate) fn hold(request: &ThreadsRequest) -> Result<ProcessLock, JobError> {
    let pid = match &request.program {
        ThreadsProgram::Here(program) => program.pid.map(Pid),
        ThreadsProgram::Modelled(_) => None,
    };
    ProcessLock::of(pid.as_slice()).map_err(JobError::failed)
}

/// The parameter of a probe and what it cost, which is nothing if it failed.
pub(crate) fn probed(record: &Record) -> Option<(u32, Duration)> {
    let Setting::Threads(ThreadCount { n: Some(n), .. }) = record.trial.setting else {
        return None;
    };
    let measured = record.outcome.as_ref().ok();
    let cost = measured.and_then(|measured| Some(Probed::of(measured).ok()?.probe.cost));
    Some((n, cost.unwrap_or_default()))
}

#[cfg(test)]
mod tests;
