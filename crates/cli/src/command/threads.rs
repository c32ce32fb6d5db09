//! `pinwise threads`: how many threads a program should run.

mod arguments;
mod calibrate;
mod document;
mod text;

pub(crate) use arguments::{Asked, Edges, Least, RunFiles, Threads};
pub(crate) use calibrate::{json as calibration_json, tell as tell_calibration};
pub(crate) use document::ThreadsJson;
pub(crate) use text::{UNCONFIRMED, probed, watched};

use crate::events::{self, Terminal};
use crate::output::{self, Interrupted};
use arguments::Action;
use document::Remains;
use pinwise_campaign::Store;
use pinwise_jobs::{Caller, Failure, JobError, ThreadsAnswer, ThreadsRequest};
use pinwise_present::Files;
use pinwise_present::figures::counted;
use pinwise_present::unfinished;
use std::path::Path;

impl Threads {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        if let Some(Action::Calibrate(calibrate)) = &self.action {
            return calibrate.run();
        }
        let request = self.asked.threads_request(&self.edges)?;
        let caller = events::caller(self.store.named())?;
        let mut store = self.store.open()?;
        match pinwise_jobs::run(request, &caller, &mut store, &mut Terminal::new(self.json)) {
            Ok(answer) => tell(&answer, self.store.named(), self.json, self.verbose),
            Err(error) => {
                leave(&error, &caller, &store, self.json)?;
                Err(events::explained(error, &caller, &store))
            }
        }
    }
}

/// The JSON document of an answer, as text.
pub(crate) fn json(answer: &ThreadsAnswer, named: Option<&Path>) -> anyhow::Result<String> {
    match shown(answer, named) {
        Ok(document) => output::json(&document),
        Err(remains) => output::json(&remains),
    }
}

/// What a search found, or its probes if it has no answer yet.
fn shown(answer: &ThreadsAnswer, named: Option<&Path>) -> Result<ThreadsJson, Box<Remains>> {
    let ThreadsAnswer { campaign, outcome, confirmation, .. } = answer;
    let id = campaign.id;
    match &outcome.found {
        Ok(found) => Ok(ThreadsJson::new(outcome, found, confirmation.as_ref(), Some(id))),
        Err(why) => {
            let resume = Files::of_store(named).resume(id);
            let why = match why {
                Some(why) => why.to_string(),
                None => format!("it has not ended; continue with: {resume}"),
            };
            Err(Box::new(Remains::new(outcome, Some(id), why)))
        }
    }
}

/// Prints what a search found, or its probes if it has no answer yet. `named` is the store,
/// where commands have to name it.
pub(crate) fn tell(
    answer: &ThreadsAnswer,
    named: Option<&Path>,
    json: bool,
    verbose: bool,
) -> anyhow::Result<()> {
    let id = answer.campaign.id;
    let confirmation = answer.confirmation.as_ref();
    let shown = shown(answer, named);
    if json {
        output::print_data(&self::json(answer, named)?)?;
    }
    let document = match &shown {
        Ok(document) => document,
        Err(remains) => {
            if !json {
                print_remains(remains, false)?;
            }
            output::aside(&format!("note: campaign {} has no answer: {}", id.0, remains.error));
            return Ok(());
        }
    };
    // The answer first: what went wrong after it does not take it away.
    if !json {
        output::print(&text::result(document, output::width(), verbose))?;
    }
    let rounds = confirmation.map_or(0, |shown| shown.comparison.rounds.count() as u64);
    let far = format!("{} of fresh windows made", counted(rounds, "round"));
    let files = Files { plan: None, store: named };
    if answer.outcome.question.request.confirms()
        && let Some(text) = unfinished(&answer.campaign, &far, files)
    {
        output::aside(&format!("note: {text}"));
    }
    if let Some(reason) = &answer.unsettled {
        anyhow::bail!("{reason}");
    }
    if answer.interrupted {
        return Err(Interrupted(
            "interrupted after a number was found; all that was started has ended".into(),
        )
        .into());
    }
    Ok(())
}

/// Prints the probes of a search that ended in an error after some: they took their time.
fn leave(error: &JobError, caller: &Caller, store: &Store, json: bool) -> anyhow::Result<()> {
    let Some(answer) = events::left::<ThreadsRequest>(error, caller, store) else { return Ok(()) };
    let reason = match error {
        JobError::Failed(Failure { reason, .. }) => reason.clone(),
        error => error.to_string(),
    };
    print_remains(&Remains::new(&answer.outcome, Some(answer.campaign.id), reason), json)
}

fn print_remains(remains: &Remains, json: bool) -> anyhow::Result<()> {
    match (remains.probes.is_empty(), json) {
        (true, false) => Ok(()),
        (_, true) => output::print_json(remains),
        (false, false) => output::print(&text::remains(remains, output::width())),
    }
}
