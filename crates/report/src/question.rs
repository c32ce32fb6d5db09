//! What was asked and what it cost, as rows of a table; what to do next, as commands.

use crate::evidence::Evidence;
use pinwise_campaign::{CampaignInfo, CampaignState};
use pinwise_placement::{Advice, Budget, Outcome, Question};
use pinwise_present::figures::{self, Scale};
use pinwise_present::{Files, notes, quoted, shell};
use pinwise_topology::SharingTree;

/// A term and what it is.
pub(crate) type Row = (&'static str, String);

/// What was asked.
pub(crate) fn asked(
    info: &CampaignInfo,
    question: &Question,
    outcome: &Outcome,
    tree: &SharingTree,
) -> Vec<Row> {
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
            format!("{}, lower is better", new.unit.name)
        } else {
            new.unit.name.clone()
        },
    ));
    rows.push(("Strategy", outcome.strategy.clone()));
    rows.push((
        "Stop when",
        format!(
            "within {} of the bound, or after {}",
            figures::percent(question.within),
            match question.budget {
                Budget::Measurements(most) => format!("{} measurements", figures::count(most)),
                Budget::Time(most) => figures::duration(most),
            }
        ),
    ));
    rows.push(("Stopped because", outcome.stopped_because.clone()));
    rows.push(("Confidence", figures::percent(question.confidence)));
    rows.push(("Seed", question.seed.to_string()));
    rows.push(("Begun", figures::date(info.started)));
    rows
}

/// What it cost.
pub(crate) fn cost(outcome: &Outcome) -> Vec<Row> {
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

/// The verdict: a heading and a sentence.
pub(crate) fn verdict(
    info: &CampaignInfo,
    outcome: &Outcome,
    scale: &Scale,
) -> (&'static str, String) {
    let (heading, mut sentence) = compared(outcome, scale);
    for more in notes(info, outcome) {
        sentence.push(' ');
        sentence.push_str(&more);
    }
    (heading, sentence)
}

/// The verdict on the best beside the unpinned windows.
fn compared(outcome: &Outcome, scale: &Scale) -> (&'static str, String) {
    let gain = outcome.gain.map(|(gain, low, high)| {
        format!("{} ({} to {})", figures::change(gain), figures::change(low), figures::change(high))
    });
    match (outcome.advice, &outcome.best, gain) {
        (Advice::Pin, Some(best), Some(gain)) => (
            "Pin the threads",
            format!(
                "The placement below reaches {}: {gain} against leaving the threads to the operating system.",
                scale.show(best.performance.mean)
            ),
        ),
        (Advice::Pin, Some(best), None) => (
            "Pin the threads",
            format!("The placement below reaches {}.", scale.show(best.performance.mean)),
        ),
        (Advice::KeepDefault, _, Some(gain)) => (
            "Keep the default",
            format!(
                "No placement beats the operating system's own beyond the intervals; the best found is {gain} against it."
            ),
        ),
        (Advice::KeepDefault, _, None) => (
            "Keep the default",
            "No placement beats the operating system's own beyond the intervals.".to_owned(),
        ),
        (_, Some(_), Some(gain)) => (
            "Undecided",
            format!(
                "The measurements do not tell the best placement from the operating system's own: it is {gain} against it."
            ),
        ),
        _ => (
            "Undecided",
            "The best placement or the baseline was not measured well enough to say.".to_owned(),
        ),
    }
}

/// What to do next: a command and what it does.
pub(crate) fn next(
    info: &CampaignInfo,
    outcome: &Outcome,
    files: Files<'_>,
) -> Vec<(String, &'static str)> {
    let (id, flag) = (info.id.0, files.flag());
    let mut commands = Vec::new();
    if info.state != CampaignState::Finished {
        commands.push((
            format!("pinwise campaign resume {id}{flag}"),
            "goes on where this campaign was left",
        ));
    }
    if let Some(plan) = files.plan
        && outcome.advice == Advice::Pin
    {
        let plan = quoted(&plan.to_string_lossy());
        commands.push((format!("pinwise apply {plan} --pid PID"), "re-pins the running program"));
        commands.push((format!("pinwise run {plan} -- CMD"), "starts it pinned"));
        commands.push((
            format!("pinwise export {plan} --to taskset"),
            "writes the placement for another tool",
        ));
    }
    commands.push((
        format!("pinwise campaign export {id}{flag}"),
        "writes every measurement behind this page",
    ));
    commands
}
