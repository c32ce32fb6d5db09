//! `pinwise threads`: how many threads a program should run.

mod arguments;
mod calibrate;
mod document;
mod text;

pub(crate) use arguments::{Edges, Least, NumberArguments, RunFiles, Threads};
pub(crate) use calibrate::{json as calibration_json, tell as tell_calibration};
pub(crate) use document::ThreadsJson;
pub(crate) use text::{UNCONFIRMED, probed, watched};

use crate::events;
use crate::output::{self, Interrupted};
use arguments::ThreadsSubcommand;
use document::UnfinishedThreadsJson;
use pinwise_campaign::CampaignId;
use pinwise_jobs::{Failure, JobError, ThreadsAnswer};
use pinwise_present::Files;
use pinwise_present::figures::counted;
use pinwise_present::unfinished;
use serde_json::Value;
use std::path::Path;

impl Threads {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        if let Some(ThreadsSubcommand::Calibrate(calibrate)) = &self.action {
            return calibrate.run();
        }
        let request = self.asked.threads_request(&self.edges)?;
        let caller = events::caller(self.store.named())?;
        let mut store = self.store.open()?;
        // The probes took their time.
        let leave = |answer: &ThreadsAnswer, error: &JobError, _: &_| {
            let reason = match error {
                JobError::Failed(Failure { reason, .. }) => reason.clone(),
                error => error.to_string(),
            };
            let remains =
                UnfinishedThreadsJson::new(&answer.outcome, Some(answer.campaign.id), reason);
            print_remains(&remains, self.json)
        };
        let answer = events::run_or_leave(request, &caller, &mut store, self.json, leave)?;
        tell(&answer, self.store.named(), self.json, self.verbose)
    }
}

/// The JSON document of an answer.
pub(crate) fn json(answer: &ThreadsAnswer, named: Option<&Path>) -> serde_json::Result<Value> {
    match shown(answer, named) {
        Ok(document) => serde_json::to_value(document),
        Err(remains) => serde_json::to_value(remains),
    }
}

/// What a search found, or its probes if it has no answer yet.
fn shown(
    answer: &ThreadsAnswer,
    named: Option<&Path>,
) -> Result<ThreadsJson, Box<UnfinishedThreadsJson>> {
    let ThreadsAnswer { campaign, outcome, confirmation, .. } = answer;
    let id = campaign.id;
    match &outcome.found {
        Ok(found) => Ok(ThreadsJson::new(outcome, found, confirmation.as_ref(), Some(id))),
        Err(why) => {
            let why = why.as_ref().map_or_else(|| not_ended(id, named), ToString::to_string);
            Err(Box::new(UnfinishedThreadsJson::new(outcome, Some(id), why)))
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
    let confirmation = answer.confirmation.as_ref();
    let shown = shown(answer, named);
    let document = match &shown {
        Ok(document) => document,
        Err(remains) => {
            print_remains(remains, json)?;
            note_no_answer(answer.campaign.id, &remains.error);
            return Ok(());
        }
    };
    // The answer first: what went wrong after it does not take it away.
    if json {
        output::print_json(document)?;
    } else {
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

/// Why a search has no answer that nobody ended.
pub(crate) fn not_ended(id: CampaignId, named: Option<&Path>) -> String {
    format!("it has not ended; continue with: {}", Files::of_store(named).resume(id))
}

/// Says that a stored search has no answer, and why.
pub(crate) fn note_no_answer(id: CampaignId, why: &str) {
    output::aside(&format!("note: campaign {} has no answer: {why}", id.0));
}

fn print_remains(remains: &UnfinishedThreadsJson, json: bool) -> anyhow::Result<()> {
    match (remains.probes.is_empty(), json) {
        (true, false) => Ok(()),
        (_, true) => output::print_json(remains),
        (false, false) => output::print(&text::remains(remains, output::width())),
    }
}
