//! The question and its cost, as rows of a table; the next steps.

use crate::evidence::Evidence;
use pinwise_campaign::CampaignInfo;
use pinwise_placement::{Budget, Outcome, PlacementQuestion};
use pinwise_present::figures;
use pinwise_present::{
    Files, NextStep, next_steps, outcome_memory, profiling_end, shell, stop_reasons,
    strategy_reasons,
};
use pinwise_topology::SharingTree;

/// A term and what it is.
pub(crate) type Term = (&'static str, String);

/// What was asked.
pub(crate) fn asked(
    info: &CampaignInfo,
    question: &PlacementQuestion,
    outcome: &Outcome,
    tree: &SharingTree,
) -> Vec<Term> {
    let new = &info.new;
    let levels: Vec<String> = tree
        .levels()
        .into_iter()
        .map(|(kind, arity)| {
            let name = kind.name();
            arity.map_or_else(|| name.to_owned(), |arity| format!("{arity} × {name}"))
        })
        .collect();
    let contexts = format!("{} of {} online", tree.leaves().len(), new.machine.contexts.len());
    let mut rows = vec![
        ("Command", shell(&new.command)),
        ("Program", new.workload.name.clone()),
        ("Threads placed", new.workload.threads.len().to_string()),
        ("Machine", new.machine.name.clone()),
        ("Contexts allowed", contexts),
    ];
    if !levels.is_empty() {
        rows.push(("What they share", levels.join(", ")));
    }
    let crowd = question
        .per_context
        .map_or(String::new(), |most| format!(", at most {most} threads per context"));
    rows.push((
        "Different assignments",
        format!("{}{crowd}", figures::group(&outcome.assignments)),
    ));
    rows.push((
        "Performance is",
        if new.unit.reciprocal {
            format!("{}, lower is better", new.unit.label())
        } else {
            new.unit.label().to_owned()
        },
    ));
    rows.push(("Strategy", strategy_reasons(&outcome.strategy)));
    rows.push((
        "Stop when",
        format!(
            "within {} of the bound, or after {}",
            figures::percent(question.within),
            match question.asked_budget() {
                Budget::Measurements(most) => figures::counted(most, "measurement"),
                Budget::Time(most) => figures::duration(most),
            }
        ),
    ));
    rows.push(("Stopped because", stop_reasons(&outcome.stopped_because)));
    if let Some(forecast) = &outcome.forecast {
        rows.push(("Profiling ended because", profiling_end(&forecast.ended)));
    }
    rows.extend(outcome_memory(info, outcome).map(|memory| ("Memory", memory)));
    rows.push(("Confidence", figures::percent(question.confidence)));
    rows.push(("Seed", question.seed.to_string()));
    rows.push(("Begun", figures::date(info.started)));
    rows
}

/// What it cost.
pub(crate) fn cost(outcome: &Outcome) -> Vec<Term> {
    let cost = &outcome.cost;
    let mut rows = vec![
        ("Measurements", figures::count(cost.measurements)),
        ("Of these failed", figures::count(cost.failed)),
        ("Different assignments measured", figures::count(cost.classes)),
        ("Time measuring", figures::duration(cost.time)),
    ];
    if let Ok(measurements @ 1..) = u32::try_from(cost.measurements) {
        rows.push(("Time per measurement", figures::duration(cost.time / measurements)));
    }
    rows
}

/// Failures with how often each occurred.
pub(crate) fn failures(evidence: &Evidence<'_>) -> Vec<(String, String)> {
    evidence
        .failures
        .iter()
        .map(|&(message, times)| (message.to_owned(), figures::count(times as u64)))
        .collect()
}

/// What to do next. Last, the measurements behind the page.
pub(crate) fn next(info: &CampaignInfo, outcome: &Outcome, files: Files<'_>) -> Vec<NextStep> {
    let mut steps = next_steps(info, outcome, files);
    steps.push(NextStep {
        what: "write every measurement behind this page",
        command: format!("pinwise campaign export {}{}", info.id.0, files.flag()),
    });
    steps
}
