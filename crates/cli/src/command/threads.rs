//! `pinwise threads`: how many threads a program should run.

mod arguments;
mod calibrate;
mod document;
mod placing;
mod text;

pub(crate) use arguments::{Asked, Edges, Files, Threads};
pub(crate) use document::Document;
pub(crate) use text::{probed, watched};

use crate::events::{self, Terminal};
use crate::output::{self, Interrupted, Usage};
use arguments::Action;
use document::Remains;
use pinwise_campaign::{Ending, Memory, Store};
use pinwise_jobs::{
    Answer, Caller, Failure, HeldProgram, Interruption, Job, JobError, Searched, ThreadsAnswer,
    ThreadsQuestion,
};
use pinwise_measure::{Probe, Unit};
use pinwise_present::Files as Stored;
use pinwise_present::figures;
use pinwise_programs::LinuxProber;
use std::path::Path;

impl Threads {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        if let Some(Action::Calibrate(calibrate)) = &self.action {
            return calibrate.run();
        }
        let request = self.asked.threads_request(&self.edges)?;
        let caller = events::caller(self.store.named())?;
        let mut store = self.store.open()?;
        let job = Job::Threads(Box::new(request));
        match pinwise_jobs::run(job, &caller, &mut store, &mut Terminal::new(self.json)) {
            Ok(Answer::Threads(answer)) => tell(&answer, self.store.named(), self.json),
            Ok(_) => Ok(()),
            Err(error) => {
                leave(&error, &caller, &store, self.json)?;
                Err(events::explained(error, &caller, &store))
            }
        }
    }
}

/// Prints what a search found, or its probes where it has no answer yet. `named` is the store,
/// where commands have to name it.
pub(crate) fn tell(answer: &ThreadsAnswer, named: Option<&Path>, json: bool) -> anyhow::Result<()> {
    let id = answer.campaign.id;
    let found = match &answer.outcome.found {
        Ok(found) => found,
        Err(why) => {
            let flag = Stored { plan: None, store: named }.flag();
            let resume = format!("go on with: pinwise campaign resume {}{flag}", id.0);
            let why = why.clone().unwrap_or_else(|| format!("it has not ended; {resume}"));
            print_remains(&Remains::new(&answer.outcome, Some(id), why.clone()), json)?;
            output::aside(&format!("note: campaign {} has no answer: {why}", id.0));
            return Ok(());
        }
    };
    // The answer first: what went wrong after it does not take it away.
    let document = Document::new(&answer.outcome, found, Some(id));
    if json {
        output::print_json(&document)?;
    } else {
        output::print(&text::result(&document, output::width()))?;
    }
    if let Some(reason) = &answer.unsettled {
        anyhow::bail!("{reason}");
    }
    if answer.interrupted {
        return Err(Interrupted(
            "interrupted after the answer was found, what was started has ended".into(),
        )
        .into());
    }
    Ok(())
}

/// The page of a search.
pub(crate) fn page(answer: &ThreadsAnswer, files: Stored<'_>) -> anyhow::Result<String> {
    let outcome = &answer.outcome;
    let (verdict, chosen) = match &outcome.found {
        Ok(found) => {
            let document = Document::new(outcome, found, None);
            (format!("{}. {}.", text::answer(&document), document.why), Some(found.parameter))
        }
        Err(why) => {
            let why = why.as_deref().unwrap_or("the search has not ended");
            (format!("No answer yet: {why}."), None)
        }
    };
    let unit = outcome.unit.clone().unwrap_or_else(|| Unit::rate("1/s"));
    let probes: Vec<Probe> = outcome.probes.iter().map(|shown| shown.probe).collect();
    let notes: Vec<String> = outcome.notes.iter().map(pinwise_present::threads_note).collect();
    let search = pinwise_report::ThreadsSearch {
        verdict,
        chosen,
        unit: &unit,
        probes: &probes,
        notes: &notes,
        simulated: outcome.question.request.machine() != "host",
    };
    Ok(pinwise_report::threads_page(&answer.campaign, &search, files)?)
}

/// Prints the probes of a search that ended in an error after some: they took their time.
pub(crate) fn leave(
    error: &JobError,
    caller: &Caller,
    store: &Store,
    json: bool,
) -> anyhow::Result<()> {
    let kept = match error {
        JobError::Interrupted(Interruption { kept, .. })
        | JobError::Failed(Failure { kept, .. }) => kept,
        _ => return Ok(()),
    };
    let Some(kept) = kept else { return Ok(()) };
    match pinwise_jobs::answer(kept.campaign, caller, store) {
        Ok(Answer::Threads(answer)) => {
            let reason = match error {
                JobError::Failed(Failure { reason, .. }) => reason.clone(),
                error => error.to_string(),
            };
            print_remains(&Remains::new(&answer.outcome, Some(kept.campaign), reason), json)
        }
        _ => Ok(()),
    }
}

/// Searches for the number of a program on this machine as a part of something else, and keeps hold
/// of a program that goes on running. The probes of a search that fails are printed.
pub(crate) fn probe_host(
    asked: &Asked,
    edges: &Edges,
    caller: &Caller,
    json: bool,
) -> anyhow::Result<(Document, LinuxProber)> {
    let request = asked.threads_request(edges)?;
    let told = |error: JobError| match error {
        JobError::Usage(reason) => Usage(reason).into(),
        error => anyhow::anyhow!("{error}"),
    };
    let (question, machine) = ThreadsQuestion::of(request).map_err(told)?;
    let (mut journal, mut terminal) = (Memory::default(), Terminal::new(json));
    let searched = pinwise_jobs::search_threads(
        &question,
        &machine,
        &mut journal,
        &caller.interrupt,
        &mut terminal,
    )
    .map_err(told)?;
    let names_nothing = searched.program.names_nothing();
    let Searched { outcome, ending, program } = searched;
    let reason = match (&outcome.found, ending, program) {
        (Ok(found), _, HeldProgram::Here(prober)) => {
            return Ok((Document::new(&outcome, found, None), *prober));
        }
        (_, Ending::Interrupted, _) => None,
        (_, Ending::Failed(reason) | Ending::Finished(reason), _) => Some(reason),
    };
    let probes = outcome.probes.len() as u64;
    let error = match reason {
        None => interrupted(probes),
        Some(reason) if names_nothing => Usage(reason).into(),
        Some(reason) => anyhow::anyhow!("{reason}"),
    };
    if probes > 0 {
        print_remains(&Remains::new(&outcome, None, format!("{error:#}")), json)?;
    }
    Err(error)
}

/// Probes that nobody stores were interrupted.
fn interrupted(probes: u64) -> anyhow::Error {
    let were = if probes == 1 { "was" } else { "were" };
    Interrupted(format!(
        "interrupted: {} {were} made, what was started has ended",
        figures::counted(probes, "probe")
    ))
    .into()
}

fn print_remains(remains: &Remains, json: bool) -> anyhow::Result<()> {
    match (remains.probes.is_empty(), json) {
        (true, false) => Ok(()),
        (_, true) => output::print_json(remains),
        (false, false) => output::print(&text::remains(remains)),
    }
}

fn usage(error: impl std::fmt::Display) -> Usage {
    Usage(error.to_string())
}
