//! `pinwise threads`: how many threads a program should run.

mod arguments;
mod calibrate;
mod document;
mod text;

pub(crate) use arguments::{Edges, NumberArguments, ObjectiveArgument, RunFiles, Threads};
pub(crate) use calibrate::{json as calibration_json, print_answer as print_calibration};
pub(crate) use document::{ThreadsJson, performance, rows, ways};
pub(crate) use text::{notes, probed, probed_so_far, watched};

use crate::events;
use crate::output::{self, Interrupted};
use arguments::ThreadsSubcommand;
use document::UnfinishedThreadsJson;
use pinwise_jobs::{Failure, JobError, ThreadsAnswer, ThreadsRequest};
use pinwise_placement::Budget;
use pinwise_present::{Files, no_answer_yet, unmoved_memory};
use serde_json::Value;
use std::path::Path;

impl Threads {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        if let Some(ThreadsSubcommand::Calibrate(calibrate)) = &self.action {
            return calibrate.run();
        }
        let request = self.asked.threads_request(&self.edges)?;
        let request = ThreadsRequest { on: self.nodes.nodes()?, ..request };
        if self.nodes.only_looks_ahead(self.json, || Ok(Budget::Time(request.time())))? {
            return Ok(());
        }
        let caller = events::caller(self.store.named())?;
        let mut store = self.store.open()?;
        let named = self.store.named();
        // The probes took their time.
        let leave = |answer: &ThreadsAnswer, error: &JobError, _: &_| {
            let reason = match error {
                JobError::Failed(Failure { reason, .. }) => reason.clone(),
                error => error.to_string(),
            };
            print_remains(answer, reason, Files::of_store(named), self.json)
        };
        let answer = events::run_or_leave(request, &caller, &mut store, self.json, leave)?;
        print_answer(&answer, named, self.json, self.verbose)
    }
}

/// The JSON document of an answer.
pub(crate) fn json(answer: &ThreadsAnswer, named: Option<&Path>) -> serde_json::Result<Value> {
    let files = Files::of_store(named);
    match shown(answer, files) {
        Ok(document) => serde_json::to_value(document),
        Err(why) => serde_json::to_value(UnfinishedThreadsJson::new(answer, why, files)),
    }
}

/// What a search found, or why it has no answer.
fn shown(answer: &ThreadsAnswer, files: Files<'_>) -> Result<ThreadsJson, String> {
    let ThreadsAnswer { campaign, outcome, confirmation, .. } = answer;
    let id = campaign.id;
    match &outcome.found {
        Ok(found) => Ok(ThreadsJson {
            unfinished: answer.unfinished(files),
            memory: unmoved_memory(&answer.campaign),
            ..ThreadsJson::new(outcome, found, confirmation.as_ref(), Some(id))
        }),
        Err(why) => {
            Err(why.as_ref().map_or_else(|| no_answer_yet(campaign).into(), ToString::to_string))
        }
    }
}

/// Prints what a search found, or its probes if it has no answer yet. `named` is the store,
/// where commands have to name it.
pub(crate) fn print_answer(
    answer: &ThreadsAnswer,
    named: Option<&Path>,
    json: bool,
    verbose: bool,
) -> anyhow::Result<()> {
    let files = Files::of_store(named);
    let document = match shown(answer, files) {
        Ok(document) => document,
        Err(why) => return print_remains(answer, why, files, json),
    };
    // The answer first: what went wrong after it does not take it away.
    if json {
        output::print_json(&document)?;
    } else {
        output::print(&text::result(&document, output::width(), verbose))?;
    }
    if let Some(reason) = &answer.unsettled {
        anyhow::bail!("{reason}");
    }
    if answer.interrupted {
        let id = answer.campaign.id.0;
        return Err(Interrupted(format!(
            "interrupted after campaign {id} had found a number; all that was started has ended"
        ))
        .into());
    }
    Ok(())
}

fn print_remains(
    answer: &ThreadsAnswer,
    why: String,
    files: Files<'_>,
    json: bool,
) -> anyhow::Result<()> {
    match json {
        true => output::print_json(&UnfinishedThreadsJson::new(answer, why, files)),
        false => output::print(&text::remains(answer, files, output::width())),
    }
}
