//! The job that finds how many threads a program should run.
//!
//! The campaign's question is a [`ThreadsQuestion`]: the request with every default decided. Each
//! probe is a record, and so is the trial that shows how long a run takes. So a killed search goes
//! on where it was, and its time includes the time spent before. The outcome is computed from the
//! question and the records ([`ThreadsOutcome`]). The verdict comes only from fresh windows
//! ([`Confirmation`]), the records of a part.

mod confirmation;
mod host_program;
mod outcome;
mod program_opening;
mod request;
mod watch_summary;

use crate::campaign_run::{EndContext, answered, as_parent_error, unanswered};
use crate::error::{JobError, Remedy};
use crate::events::{Event, Events};
use crate::job::{Caller, Job};
use crate::resume_check::{check_machine, check_processes};
use crate::service_number::{give_back, own_number};
use crate::stored_campaign;
pub use confirmation::Confirmation;
use confirmation::{Confirmed, Confirming, confirm, confirmed};
pub use host_program::HostProgram;
pub use outcome::{ShownProbe, ThreadsConclusion, ThreadsOutcome};
use pinwise_campaign::{
    CampaignInfo, CampaignState, Ending, Journal, Kind, NewCampaign, Record, Store, drive,
};
use pinwise_linux::{Pid, ProcessLock, described};
use pinwise_measure::{Interrupt, Probed, Setting, ThreadCount, Unit, Workload};
use pinwise_placement::{Budget, LastComparisonVerdict, Unmeasured};
use pinwise_present::{Files, Planned, Summary, Unfinished};
use pinwise_programs::{LinuxProber, ProbeError};
use pinwise_scheduler::ModelProber;
use pinwise_threads::{NumberSearch, ThreadsNote};
use pinwise_topology::{Alike, Machine};
pub(crate) use program_opening::seen;
pub(crate) use program_opening::usable_contexts;
use program_opening::{ProgramOpening, names_nothing};
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

impl Job for ThreadsRequest {
    const KIND: Kind = Kind::Threads;
    type Answer = ThreadsAnswer;
    type Prepared = ThreadsQuestion;

    fn prepare(
        self,
        caller: &Caller,
        _: &Store,
        _: &mut dyn Events,
    ) -> Result<(NewCampaign, ThreadsQuestion), JobError> {
        let (question, machine) = ThreadsQuestion::of(self)?;
        question.check_output(None)?;
        let asked = serde_json::to_value(&question)?;
        Ok((question.campaign(Self::KIND, machine, asked, caller), question))
    }

    fn reopen(info: &CampaignInfo, _: &Caller, _: &Store) -> Result<ThreadsQuestion, JobError> {
        let question: ThreadsQuestion = stored_campaign::question(info)?;
        question.check_output(Some(info.started))?;
        if let ThreadsProgram::Here(HostProgram { pid, .. }) = &question.request.program {
            check_processes(info, pid.as_slice())?;
            let now = pinwise_linux::this_machine()?;
            let contexts = usable_contexts(&now, pid.map(Pid))?.contexts;
            if contexts != question.contexts {
                return Err(JobError::Usage(format!(
                    "campaign {} cannot be resumed: the program had {} contexts at its start, and \
                     has {contexts} now; start a new one",
                    info.id.0, question.contexts
                )));
            }
            // Which contexts they are does not matter to a number.
            check_machine(info, &Machine { allowed: info.new.machine.allowed.clone(), ..now })?;
        }
        Ok(question)
    }

    fn conduct(
        question: ThreadsQuestion,
        info: &CampaignInfo,
        caller: &Caller,
        store: &mut Store,
        events: &mut dyn Events,
    ) -> Result<ThreadsAnswer, JobError> {
        let id = info.id;
        let _hold = match hold(&question.request) {
            Ok(hold) => hold,
            Err(error) => return Err(as_parent_error(error, store, id)?),
        };
        let searched = {
            let mut journal = store.journal(id)?;
            search_threads(&question, &info.new.machine, &mut journal, &caller.interrupt, events)
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
}

impl ProgramProber {
    /// Whether the last probe failed because what was asked for does not exist.
    fn names_nothing(&self) -> bool {
        match self {
            Self::Here(prober) => names_nothing(prober.error()),
            Self::Modelled(_) => false,
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

/// Searches on `machine` with the records of `journal`, from where these end.
///
/// # Errors
/// The program cannot be opened, or the journal cannot serve. A search that ended without an answer
/// is none.
pub(crate) fn search_threads(
    question: &ThreadsQuestion,
    machine: &Machine,
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
        ThreadsProgram::Here(program) => {
            Some(ProgramOpening::new(program, question, machine.clone(), interrupt)?)
        }
        ThreadsProgram::Modelled(_) => None,
    };
    let start = Instant::now();
    let (clock, stop) = (|| start.elapsed(), || interrupt.came());
    let (ending, records, mut program) = loop {
        let records = journal.records()?;
        let progressed = question.search.progressed(&convert, &records);
        let mut searcher = NumberSearch::new(&question.search, &convert, &records);
        // If nobody takes the events, the job has been asked to stop.
        let mut observe = |record: &Record| drop(events.take(Event::Measured(record)));
        match (&question.request.program, &mut ready) {
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
                let ((platform, _), description) = (program.platform()?, program.description()?);
                let mut prober = ModelProber::new(platform, description, program.seed)
                    .watching_for(question.search.window)
                    .after(records.iter().filter_map(probed))
                    .beside(program.others.clone())
                    .cancelled_by(interrupt.clone());
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
mod tests {
    use super::*;
    use crate::error::Interruption;
    use crate::events::{Silent, stopping_at};
    use crate::job::{resume_job, run};
    use crate::stored_campaign::empty_store as store;
    use pinwise_campaign::{CampaignId, Parent};
    use pinwise_measure::Probe;
    use pinwise_placement::{Gain, TunePart, Way};
    use pinwise_scheduler::{ModelProgram, OtherPrograms};

    fn request(method: ThreadsMethod) -> ThreadsRequest {
        let model = Machine::model("opteron-24").unwrap();
        let program = ModelledProgram {
            machine: "opteron-24".into(),
            model,
            program: "facesim".into(),
            seed: 1,
            description: None,
            others: Vec::new(),
        };
        ThreadsRequest {
            method,
            min: Some(8),
            max: Some(24),
            step: Some(8),
            rounds: Some(1).filter(|_| method == ThreadsMethod::Sweep),
            probe: Duration::from_millis(20),
            ..ThreadsRequest::new(ThreadsProgram::Modelled(program))
        }
    }

    #[test]
    fn a_stored_range_is_still_called_a_span() {
        let (question, _) = ThreadsQuestion::of(request(ThreadsMethod::Sweep)).unwrap();
        assert_eq!(serde_json::to_value(question).unwrap()["span"]["max"], 24);
    }

    #[test]
    fn a_search_that_was_interrupted_ends_as_it_would_have() {
        for method in [ThreadsMethod::Sweep, ThreadsMethod::Reinforcer] {
            let (_folder, mut store) = store();
            let whole = run(request(method), &Caller::default(), &mut store, &mut Silent).unwrap();
            assert_eq!(whole.campaign.state, CampaignState::Finished);
            assert_eq!(whole.campaign.new.unit, Unit::rate("s/s"), "as the records count");
            let caller = Caller::default();
            let mut events =
                stopping_at(&caller.interrupt, 2, |event| matches!(event, Event::Measured(_)));
            let error = run(request(method), &caller, &mut store, &mut events).unwrap_err();
            let JobError::Interrupted(Interruption { kept: Some(kept), .. }) = error else {
                panic!("{error}")
            };
            assert_eq!(kept.records, 2);
            let info = store.get(kept.campaign).unwrap();
            let open = ThreadsRequest::answer(&info, &caller, &store).unwrap().outcome;
            assert_eq!((open.found, open.probes.len()), (Err(None), 2));
            let caller = Caller::default();
            let resumed =
                resume_job::<ThreadsRequest>(&info, &caller, &mut store, &mut Silent).unwrap();
            assert_eq!(resumed.outcome, whole.outcome, "{method:?}");
            // The stored campaign gives the same answer.
            let again = ThreadsRequest::answer(&resumed.campaign, &caller, &store).unwrap();
            assert_eq!(again.outcome, whole.outcome, "{method:?}");
            assert!(whole.outcome.notes.contains(&ThreadsNote::Simulated));
        }
    }

    #[test]
    fn a_described_program_meets_the_same_load_when_its_search_is_resumed() {
        let (_folder, mut store) = store();
        let mut described = request(ThreadsMethod::Sweep);
        let ThreadsProgram::Modelled(program) = &mut described.program else { panic!() };
        let plain = serde_json::to_value(&*program).unwrap();
        assert!(plain.get("description").is_none() && plain.get("others").is_none());
        program.description = Some(Box::new(ModelProgram::built_in("facesim").unwrap()));
        program.others = vec![OtherPrograms { threads: 24, burst_s: 0.5, pause_s: 0.5 }];
        program.program = "described".into();
        described.budget = Some(Duration::from_secs(2));
        let whole = run(described.clone(), &Caller::default(), &mut store, &mut Silent).unwrap();
        let values = |answer: &ThreadsAnswer| {
            let shown = answer.confirmation.as_ref().unwrap();
            (
                shown.comparison.rounds.count(),
                shown.comparison.rounds.gain(Way::Number, Way::Default),
            )
        };
        // Three probes, and then one of the fresh windows.
        let caller = Caller::default();
        let mut events =
            stopping_at(&caller.interrupt, 4, |event| matches!(event, Event::Measured(_)));
        let cut = run(described, &caller, &mut store, &mut events).unwrap();
        let (caller, info) = (Caller::default(), cut.campaign);
        let resumed = resume_job::<ThreadsRequest>(&info, &caller, &mut store, &mut Silent);
        assert_eq!(values(&resumed.unwrap()), values(&whole));
    }

    #[test]
    fn beside_others_a_comparison_uses_its_time_and_all_rounds() {
        let compared = |others: Vec<OtherPrograms>| {
            let (_folder, mut store) = store();
            let mut asked = request(ThreadsMethod::Sweep);
            let ThreadsProgram::Modelled(program) = &mut asked.program else { panic!() };
            program.description = Some(Box::new(ModelProgram::built_in("facesim").unwrap()));
            (program.others, asked.budget) = (others, Some(Duration::from_secs(2)));
            let answer = run(asked, &Caller::default(), &mut store, &mut Silent).unwrap();
            let compared = answer.confirmation.unwrap().compared;
            (compared.ranked_on, compared.precision)
        };
        assert_eq!(compared(Vec::new()), (Some(24), Some(0.005)));
        let bursts = OtherPrograms { threads: 24, burst_s: 5.0, pause_s: 5.0 };
        assert_eq!(compared(vec![bursts]), (None, None));
    }

    #[test]
    fn runs_of_a_fixed_time_are_compared_with_nothing() {
        let (_folder, mut store) = store();
        let caller = Caller::default();
        let (question, machine) = ThreadsQuestion::of(request(ThreadsMethod::Sweep)).unwrap();
        let asked = serde_json::to_value(&question).unwrap();
        let new = question.campaign(Kind::Threads, machine.clone(), asked, &caller);
        let id = store.create(&new).unwrap();
        let mut journal = store.journal(id).unwrap();
        let searched =
            search_threads(&question, &machine, &mut journal, &caller.interrupt, &mut Silent);
        drop(journal);
        let Searched { mut outcome, mut program, .. } = searched.unwrap();
        outcome.notes.push(ThreadsNote::FixedTime { seconds: 1.0, more_work: true });
        let found = outcome.found.clone().unwrap();
        let info = &store.get(id).unwrap();
        let confirming = Confirming { info, question: &question, outcome: &outcome, found: &found };
        let confirmed = confirm(&confirming, &mut program, &caller, &mut store, &mut Silent);
        let Confirmed { shown, uncompared, .. } = confirmed.unwrap();
        assert!(shown.is_none() && uncompared);
        outcome.uncompared = uncompared;
        let told = outcome.answer(&found, None, None).text();
        assert!(told.starts_with("Undecided: every run took 1.00 s whatever n."), "{told}");
    }

    #[test]
    fn what_is_announced_is_what_fresh_windows_show_and_they_are_resumed() {
        let (_folder, mut store) = store();
        let sweep = request(ThreadsMethod::Sweep);
        let whole = run(sweep.clone(), &Caller::default(), &mut store, &mut Silent).unwrap();
        let shown = whole.confirmation.unwrap();
        // In the model, 16 threads are a third faster than 24, the contexts.
        assert_eq!((shown.compared.n, shown.compared.default), (16, Some(24)));
        assert_eq!((shown.choice, shown.announced()), (LastComparisonVerdict::Number, 16));
        let gain = shown.comparison.rounds.gain_of(shown.choice).unwrap();
        assert!(0.2 < gain.low && gain.high < 0.6, "{gain:?}");
        let summary = crate::summary(&whole.campaign);
        let (n, choice, gain) = (16, Some(shown.choice), Some(gain));
        assert_eq!(summary, Some(Summary::Threads { n, verdict: choice, gain }));
        // Three probes, and then one of the fresh windows.
        let caller = Caller::default();
        let mut events =
            stopping_at(&caller.interrupt, 4, |event| matches!(event, Event::Measured(_)));
        let cut = run(sweep, &caller, &mut store, &mut events).unwrap();
        assert!(cut.interrupted && cut.campaign.state == CampaignState::Stopped);
        let cut_short = cut.confirmation.unwrap();
        assert_eq!(
            (cut_short.choice, cut_short.announced()),
            (LastComparisonVerdict::Undecided, 24)
        );
        let caller = Caller::default();
        let resumed =
            resume_job::<ThreadsRequest>(&cut.campaign, &caller, &mut store, &mut Silent).unwrap();
        let same = |answer: &ThreadsAnswer| {
            let resumed = answer.confirmation.as_ref().unwrap();
            let gains = [&shown, resumed].map(|one| one.comparison.rounds.gain_of(one.choice));
            assert_eq!((resumed.choice, gains[0]), (shown.choice, gains[1]));
        };
        same(&resumed);
        assert_eq!(resumed.campaign.state, CampaignState::Finished);
        same(&ThreadsRequest::answer(&resumed.campaign, &caller, &store).unwrap());
    }

    #[test]
    fn the_default_itself_is_compared_with_the_next_best() {
        let (_folder, mut store) = store();
        let asked = ThreadsRequest { default: Some(16), ..request(ThreadsMethod::Sweep) };
        let answer = run(asked, &Caller::default(), &mut store, &mut Silent).unwrap();
        let shown = answer.confirmation.unwrap();
        assert_eq!((shown.compared.n, shown.compared.default), (8, Some(16)));
        assert_eq!((shown.choice, shown.announced()), (LastComparisonVerdict::Default, 16));
        // The published search compares no speeds.
        let asked = request(ThreadsMethod::Reinforcer);
        let answer = run(asked, &Caller::default(), &mut store, &mut Silent).unwrap();
        assert!(answer.confirmation.is_none());
        let told = answer.outcome.answer(answer.outcome.found.as_ref().unwrap(), None, None).text();
        assert!(told.starts_with("By the probes, not confirmed: n = "), "{told}");
    }

    #[test]
    fn a_number_that_was_compared_with_none_is_undecided_everywhere() {
        let (_folder, mut store) = store();
        // The first probe is of the default, and there is no time for another.
        let budget = Some(Duration::from_millis(21));
        let (min, max) = (Some(24), Some(32));
        let one = ThreadsRequest { min, max, budget, ..request(ThreadsMethod::Survey) };
        let answer = run(one.clone(), &Caller::default(), &mut store, &mut Silent).unwrap();
        let again = ThreadsRequest::answer(&answer.campaign, &Caller::default(), &store).unwrap();
        assert_eq!(answer.outcome, again.outcome);
        let choice = Some(LastComparisonVerdict::Undecided);
        let summary = Some(Summary::Threads { n: 24, verdict: choice, gain: None });
        assert_eq!(crate::summary(&answer.campaign), summary);
        for outcome in [&answer.outcome, &again.outcome] {
            assert!(outcome.uncompared);
            let told = outcome.answer(outcome.found.as_ref().unwrap(), None, None).text();
            assert!(told.starts_with("Undecided: n = 24 was the only number probed"), "{told}");
        }
        // There is no other number.
        let only = ThreadsRequest { max: min, ..one };
        let answer = run(only, &Caller::default(), &mut store, &mut Silent).unwrap();
        assert!(!answer.outcome.uncompared && answer.confirmation.is_none());
        let summary = Some(Summary::Threads { n: 24, verdict: None, gain: None });
        assert_eq!(crate::summary(&answer.campaign), summary);
    }

    #[test]
    fn the_only_number_that_was_probed_is_compared_with_another_one_in_the_time_left() {
        let (_folder, mut store) = store();
        let (min, max) = (Some(24), Some(32));
        let mut asked = ThreadsRequest { min, max, ..request(ThreadsMethod::Survey) };
        let ThreadsProgram::Modelled(program) = &mut asked.program else { panic!() };
        program.description = Some(Box::new(ModelProgram::built_in("facesim").unwrap()));
        // Its share is too short for another probe of the search.
        asked.budget = Some(Duration::from_millis(900));
        asked.probe = Duration::from_millis(20);
        let answer = run(asked, &Caller::default(), &mut store, &mut Silent).unwrap();
        assert_eq!(answer.outcome.probes.len(), 1, "{:?}", answer.outcome.probes);
        let shown = answer.confirmation.unwrap();
        assert_eq!((shown.compared.n, shown.compared.default), (32, Some(24)));
        assert!(shown.comparison.rounds.count() > 0);
    }

    #[test]
    fn the_default_is_compared_even_where_the_search_may_not_reach_it() {
        let (_folder, mut store) = store();
        let asked = ThreadsRequest { max: Some(16), ..request(ThreadsMethod::Sweep) };
        let answer = run(asked, &Caller::default(), &mut store, &mut Silent).unwrap();
        let shown = answer.confirmation.unwrap();
        assert_eq!((shown.compared.n, shown.compared.default), (16, Some(24)));
        assert_eq!(shown.choice, LastComparisonVerdict::Number);
    }

    #[test]
    fn nothing_is_announced_before_the_first_fresh_window() {
        let (_folder, mut store) = store();
        let caller = Caller::default();
        let mut events =
            stopping_at(&caller.interrupt, 1, |event| matches!(event, Event::Comparison));
        let sweep = request(ThreadsMethod::Sweep);
        let cut = run(sweep, &caller, &mut store, &mut events).unwrap();
        assert_eq!(cut.campaign.state, CampaignState::Stopped);
        let stored = ThreadsRequest::answer(&cut.campaign, &caller, &store).unwrap();
        for answer in [cut, stored] {
            let shown = answer.confirmation.unwrap();
            assert_eq!((shown.choice, shown.announced()), (LastComparisonVerdict::Undecided, 24));
            assert_eq!(shown.comparison.rounds.count(), 0);
            let text = shown.verdict().text();
            assert!(text.ends_with("To decide it, resume the search."), "{text}");
            let conclusion = answer.campaign.conclusion.unwrap();
            let conclusion = ThreadsConclusion::deserialize(conclusion).unwrap();
            assert_eq!(conclusion.parameter, 24);
            assert_eq!(conclusion.threads, answer.outcome.question.threads_with(24).unwrap());
        }
    }

    /// Parameters and rates relative to the first one, in millionths.
    fn relative(probes: impl Iterator<Item = Probe>) -> Vec<(u32, i64)> {
        let probes: Vec<(u32, f64)> =
            probes.map(|probe| (probe.parameter, probe.progress.rate)).collect();
        let relative = |rate: f64| (1e6 * rate / probes[0].1).round() as i64;
        probes.iter().map(|&(n, rate)| (n, relative(rate))).collect()
    }

    /// What the windows of a campaign show, without a search.
    fn measured(store: &Store, campaign: CampaignId) -> Vec<(u32, i64)> {
        let records = store.records(campaign).unwrap();
        relative(
            records
                .iter()
                .map(|record| Probed::of(record.outcome.as_ref().unwrap()).unwrap().probe),
        )
    }

    #[test]
    fn an_answer_is_what_the_records_of_its_campaign_show() {
        let (_folder, mut store) = store();
        let model = request(ThreadsMethod::Sweep);
        let published = request(ThreadsMethod::Reinforcer);
        for (request, cut) in [(model.clone(), usize::MAX), (published, usize::MAX), (model, 4)] {
            let caller = Caller::default();
            let mut events =
                stopping_at(&caller.interrupt, cut, |event| matches!(event, Event::Measured(_)));
            let ran = run(request, &caller, &mut store, &mut events).unwrap();
            let info = store.get(ran.campaign.id).unwrap();
            let read = ThreadsRequest::answer(&info, &caller, &store).unwrap();
            let rates = measured(&store, info.id);
            let shown = ran.outcome.probes.iter().map(|shown| shown.probe);
            assert_eq!(relative(shown), rates);
            let conclusion =
                stored_campaign::conclusion::<ThreadsConclusion>(&info).unwrap().unwrap();
            assert_eq!(Some(conclusion.parameter), ran.number());
            let found = ran.outcome.found.as_ref().unwrap().parameter;
            if ran.outcome.question.request.method == ThreadsMethod::Sweep {
                assert_eq!(Some(found), rates.iter().max_by_key(|(_, rate)| rate).map(|one| one.0));
            }
            let parent = Parent::new(info.id, &TunePart::LastComparison);
            let part = stored_campaign::part(&store, &parent).unwrap();
            assert_eq!(part.is_some(), ran.confirmation.is_some());
            if let Some((part, shown)) = part.zip(ran.confirmation.as_ref()) {
                let fresh = measured(&store, part.id);
                let of = |n| fresh.iter().filter(move |one| one.0 == n).map(|one| one.1 as f64);
                let (n, default) = (shown.compared.n, shown.compared.default.unwrap());
                let rounds = of(n).count().min(of(default).count());
                assert_eq!(shown.comparison.rounds.count(), rounds);
                let gain = shown.comparison.rounds.gain(Way::Number, Way::Default);
                if let Some(Gain { low, high, .. }) = gain {
                    let ratio =
                        of(n).take(rounds).sum::<f64>() / of(default).take(rounds).sum::<f64>();
                    assert!((1.0 + low..=1.0 + high).contains(&ratio), "{ratio}, {low} to {high}");
                }
            }
            let cut = cut == 4;
            assert_eq!((ran.interrupted, read.interrupted), (cut, false));
            assert_eq!(ran.outcome.is_unfinished, cut);
            assert_eq!(info.state == CampaignState::Stopped, cut);
            if cut {
                // One that was killed had no time to store its answer. Its comparison had begun.
                let killed =
                    CampaignInfo { state: CampaignState::Open, conclusion: None, ..info.clone() };
                let read = ThreadsRequest::answer(&killed, &caller, &store).unwrap().outcome;
                assert_eq!((read.uncompared, read.is_unfinished), (false, true));
            }
        }
    }

    #[test]
    fn a_question_without_sense_makes_no_campaign() {
        let (_folder, mut store) = store();
        let refused = |request: ThreadsRequest, store: &mut Store| {
            run(request, &Caller::default(), store, &mut Silent).unwrap_err().to_string()
        };
        let sweep = request(ThreadsMethod::Sweep);
        let error = refused(ThreadsRequest { min: Some(30), ..sweep.clone() }, &mut store);
        assert!(error.contains("--min 30 is above --max 24: swap them"), "{error}");
        let thresholds = Some(pinwise_threads::Thresholds::OPTERON_24);
        let error = refused(ThreadsRequest { thresholds, ..sweep.clone() }, &mut store);
        assert!(error.contains("--thresholds is for the published search"), "{error}");
        let error = refused(ThreadsRequest { pieces: Some(3), ..sweep }, &mut store);
        assert!(error.contains("--pieces is for a survey"), "{error}");
        let floor = |floor, set: &str, metric: Option<&str>| {
            let (set, metric) = (set.parse().ok(), metric.map(str::to_owned));
            let pid = Some(std::process::id() as i32);
            let program =
                HostProgram { floor: Some(floor), set, pid, metric, ..HostProgram::default() };
            ThreadsRequest::new(ThreadsProgram::Here(program))
        };
        let of_sweep = ThreadsRequest {
            method: ThreadsMethod::Sweep,
            ..floor(0.5, "cmd:true {n}", Some("io:wchar"))
        };
        let own = pinwise_linux::process::allowed(Pid(std::process::id() as i32)).unwrap();
        let more = own.len() as u32 + 1;
        let granted = |set: &str| {
            let (set, pid) = (set.parse().ok(), Some(std::process::id() as i32));
            let program = ThreadsProgram::Here(HostProgram { set, pid, ..HostProgram::default() });
            ThreadsRequest { max: Some(more), ..ThreadsRequest::new(program) }
        };
        let error = refused(granted("cpuset:"), &mut store);
        let told = format!("n = {more} needs {more} CPUs, and --set has {} CPU", more - 1);
        assert!(error.starts_with(&told), "{error}");
        assert!(error.ends_with(&format!("use --max {}", more - 1)), "{error}");
        assert!(ThreadsQuestion::of(granted("quota:/none")).is_ok(), "a quota may be any");
        for (floor, told) in [
            (of_sweep, "leave out --floor or --method"),
            (floor(0.5, "cmd:true {n}", None), "add --set and --metric"),
            (floor(0.5, "", Some("io:wchar")), "add --set and --metric"),
            (floor(0.0, "cmd:true {n}", Some("io:wchar")), "--floor 0 is no share"),
            (floor(f64::NAN, "cmd:true {n}", Some("io:wchar")), "--floor NaN is no share"),
            (floor(1.5, "cmd:true {n}", Some("io:wchar")), "up to 100 %"),
        ] {
            let error = refused(floor, &mut store);
            assert!(error.contains(told), "{error}");
        }
        assert!(store.list().unwrap().campaigns.is_empty());
    }

    #[test]
    fn a_question_is_read_back_as_it_was() {
        let deadline = Some(Duration::from_secs(90));
        let asked = ThreadsRequest { deadline, ..request(ThreadsMethod::Survey) };
        let (question, _) = ThreadsQuestion::of(asked).unwrap();
        let stored = serde_json::to_string(&question).unwrap();
        let runs = ThreadsQuestion {
            request: ThreadsRequest { per_run: true, ..question.request.clone() },
            ..question.clone()
        };
        let earlier = serde_json::to_string(&runs).unwrap().replace("per_run", "whole_run");
        assert_eq!(serde_json::from_str::<ThreadsQuestion>(&earlier).unwrap(), runs);
        assert_eq!(serde_json::from_str::<ThreadsQuestion>(&stored).unwrap(), question);
        let program = HostProgram {
            command: vec!["pigz".into(), "{n}".into()],
            set: Some("cpuset:".parse().unwrap()),
            pid: Some(7),
            threads_per_n: Some("2+4n".parse().unwrap()),
            ..HostProgram::default()
        };
        let stored = serde_json::to_string(&program).unwrap();
        assert_eq!(serde_json::from_str::<HostProgram>(&stored).unwrap(), program);
    }
}
