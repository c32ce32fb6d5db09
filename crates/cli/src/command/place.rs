//! `pinwise place`: where each thread should run, how good that is, and how to apply it.

mod arguments;
mod blackbox;
mod document;
mod profiling_cost;
mod search;
mod simulation;
mod subject;

pub(crate) use arguments::Place;
pub(crate) use document::document;
pub(crate) use search::{SearchArguments, budget, confidence, fraction, percent, short, time};
pub(crate) use simulation::WindowArguments;
pub(crate) use subject::SubjectArguments;

use super::apply;
use crate::events;
use crate::output;
use crate::plan::{self, PlanArgument};
use crate::store;
use pinwise_jobs::{AppliedPlan, PlaceAnswer, PlaceRequest};
use pinwise_linux::Scope;
use pinwise_placement::{Outcome, PlacementVerdict};
use pinwise_present::{Files, Unfinished};
use serde_json::{Value, json};
use std::path::Path;

impl Place {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        if self.blackbox.dry_run && self.request()?.on.is_some() {
            let (request, caller) = (self.request()?, events::caller(self.store.named())?);
            let outlook = pinwise_jobs::nodes_cost(&request, &caller).map_err(events::failed)?;
            return match self.json {
                true => output::print_json(&outlook),
                false => output::print(&pinwise_present::nodes_outlook(&outlook)),
            };
        }
        if self.blackbox.dry_run {
            return self.print_profiling_cost();
        }
        let caller = events::caller(self.store.named())?;
        let request = self.request()?;
        let scope = pinwise_jobs::scope(&request.subject);
        let mut store = self.store.open()?;
        let job = PlaceRequest { request, plan: self.plan };
        let answer = events::run(job, &caller, &mut store, self.json)?;
        print_answer(&answer, self.store.named(), self.json)?;
        // What is pinned from here on stays.
        match (self.apply, scope, &answer.plan) {
            (true, Some(scope), Some(plan)) => stay(&answer.outcome, scope, plan, self.json),
            _ => Ok(()),
        }
    }
}

/// The JSON document of an answer.
pub(crate) fn json(answer: &PlaceAnswer, named: Option<&Path>) -> Value {
    let PlaceAnswer { campaign, question, outcome, plan, .. } = answer;
    let mut document = document(campaign, question, outcome, plan.as_deref());
    document["unfinished"] =
        json!(Unfinished::of_placement(campaign, question, Files::of_store(named)));
    document
}

/// Prints what a campaign found. The answer first: that its plan could not be written comes after.
pub(crate) fn print_answer(
    answer: &PlaceAnswer,
    named: Option<&Path>,
    json: bool,
) -> anyhow::Result<()> {
    let PlaceAnswer { campaign, question, outcome, plan, unwritten } = answer;
    if json {
        output::print_json(&self::json(answer, named))?;
    } else {
        let files = Files { plan: plan.as_deref(), store: named };
        let text =
            pinwise_present::outcome_text(campaign, question, outcome, files, output::width());
        output::print(&text)?;
    }
    match unwritten {
        Some(reason) => anyhow::bail!("the answer is above, its plan is not written: {reason}"),
        None => Ok(()),
    }
}

/// Pins the program for good where that is the advice.
fn stay(outcome: &Outcome, scope: Scope, plan: &Path, json: bool) -> anyhow::Result<()> {
    if outcome.verdict != PlacementVerdict::Pin {
        output::aside("note: nothing was applied, since pinning did not win");
        return Ok(());
    }
    let plan = PlanArgument::at(plan).load()?;
    let applied = AppliedPlan::of(scope, &plan, &store::undo_notes()?).map_err(plan::failed)?;
    // With --json the one document on stdout is the outcome.
    if !json {
        apply::print(&applied)?;
    }
    applied.complete().map_err(plan::failed)
}
