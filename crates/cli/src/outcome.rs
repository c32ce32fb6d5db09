//! How an outcome is told: by `place` at its end, and by `campaign show` at any time after.

use crate::figures::{duration, estimate, percent, quantity};
use pinwise_campaign::CampaignInfo;
use pinwise_placement::{Advice, Best, Bound, Estimate, Outcome};
use pinwise_topology::{CpuId, SharingTree};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;

/// Rivals beyond this many are counted, not listed.
const RIVALS_SHOWN: usize = 8;

/// The outcome as text, drawn for a terminal `width` columns wide; ends in a newline.
pub(crate) fn tell(info: &CampaignInfo, outcome: &Outcome, plan: Option<&Path>, width: usize) -> String {
    let mut text = String::new();
    let tree = SharingTree::new(&info.new.machine, info.new.alike);
    let names: Vec<String> = info.new.workload.threads.iter().map(|thread| thread.name.clone()).collect();
    // Writing to a String cannot fail.
    let _ = verdict(&mut text, info, outcome, &tree, &names, width);
    let _ = evidence(&mut text, info, outcome, &tree);
    let _ = next(&mut text, info, outcome, plan);
    text
}

fn verdict(
    text: &mut String,
    info: &CampaignInfo,
    outcome: &Outcome,
    tree: &SharingTree,
    names: &[String],
    width: usize,
) -> std::fmt::Result {
    match outcome.advice {
        Advice::Pin => writeln!(text, "Pin: the best assignment beats the operating system's own placement.\n")?,
        Advice::KeepDefault => {
            writeln!(text, "Keep the default: no assignment is better than leaving the threads unpinned.\n")?;
        }
        Advice::Undecided => {
            writeln!(text, "Undecided: the measurements do not tell the best assignment from the default.\n")?
        }
    }
    if let Some(best) = &outcome.best {
        text.push_str(&crate::draw::draw_assignment(&info.new.machine, tree.leaves(), names, &best.assignment, width));
        text.push('\n');
    }
    Ok(())
}

fn evidence(text: &mut String, info: &CampaignInfo, outcome: &Outcome, tree: &SharingTree) -> std::fmt::Result {
    let unit = &outcome.unit;
    match &outcome.best {
        Some(best) => line(text, "best", &estimate(&best.performance, unit))?,
        None => line(text, "best", "none: no assignment could be measured")?,
    }
    match &outcome.baseline {
        Some(baseline) => line(text, "unpinned", &estimate(baseline, unit))?,
        None => line(text, "unpinned", "not measured")?,
    }
    if let Some(found) = &outcome.as_found {
        line(text, "as found", &format!("{}, before anything was pinned", estimate(found, unit)))?;
    }
    if let Some((gain, low, high)) = outcome.gain {
        line(text, "gain", &format!("{} ({} to {})", percent(gain, true), percent(low, true), percent(high, true)))?;
    }
    for rival in outcome.ties.iter().take(RIVALS_SHOWN) {
        line(text, "ties", &format!("{}  {}", place(rival, tree, info), estimate(&rival.performance, unit)))?;
    }
    if outcome.ties.len() > RIVALS_SHOWN {
        line(text, "ties", &format!("and {} more (pinwise campaign show --json)", outcome.ties.len() - RIVALS_SHOWN))?;
    }
    bound(text, &outcome.bound, outcome)?;
    if let Some(drift) = &outcome.drift
        && drift.significant
    {
        let change = percent(drift.change, true);
        line(text, "drift", &format!("a reference changed by {change} during the run (n = {}): repeat it", drift.n))?;
    }
    let cost = &outcome.cost;
    let failed = if cost.failed > 0 { format!(", {} failed", cost.failed) } else { String::new() };
    line(
        text,
        "cost",
        &format!(
            "{} measurements{failed} of {} of {} different assignments in {}",
            cost.measurements,
            cost.classes,
            outcome.assignments,
            duration(cost.time)
        ),
    )?;
    line(text, "strategy", &outcome.strategy)?;
    line(text, "stopped", &outcome.stopped_because)
}

fn bound(text: &mut String, bound: &Bound, outcome: &Outcome) -> std::fmt::Result {
    let unit = &outcome.unit;
    let confidence = percent(bound.confidence, false);
    match (bound.upb_high, bound.gap_high) {
        (Some(high), Some(gap)) if bound.method == "exact" => line(
            text,
            "bound",
            &format!(
                "every assignment was measured: none is better than {} with {confidence} confidence; at most {} above the best",
                quantity(unit.quantity(high), &unit.name),
                percent(gap, false)
            ),
        )?,
        (Some(high), Some(gap)) => {
            let point = bound.upb.map(|upb| format!("about {}, ", quantity(unit.quantity(upb), &unit.name)));
            line(
                text,
                "bound",
                &format!(
                    "the best possible is {}at most {} with {confidence} confidence ({}, n = {}): the gap is at most {}",
                    point.unwrap_or_default(),
                    quantity(unit.quantity(high), &unit.name),
                    bound.method,
                    bound.n,
                    percent(gap, false)
                ),
            )?;
        }
        _ => line(text, "bound", "none")?,
    }
    for note in &bound.notes {
        line(text, "", note)?;
    }
    Ok(())
}

fn next(text: &mut String, info: &CampaignInfo, outcome: &Outcome, plan: Option<&Path>) -> std::fmt::Result {
    writeln!(text)?;
    if let Some(plan) = plan
        && outcome.advice == Advice::Pin
    {
        let plan = plan.display();
        writeln!(text, "  pinwise apply {plan} --pid PID      pin the threads of a running process")?;
        writeln!(text, "  pinwise run {plan} -- COMMAND       start the program pinned")?;
        writeln!(text, "  pinwise export {plan} --to FORMAT   for taskset, OpenMP, DPDK, systemd, …")?;
    }
    writeln!(text, "  pinwise report {}      a page with every measurement", info.id.0)
}

/// `name value`, the value hanging behind an indented label.
fn line(text: &mut String, label: &str, value: &str) -> std::fmt::Result {
    writeln!(text, "  {label:<9} {value}")
}

/// An assignment in one line: the threads on each used context, by the kernel's numbers.
fn place(best: &Best, tree: &SharingTree, info: &CampaignInfo) -> String {
    let mut cpus: Vec<(CpuId, Vec<&str>)> = Vec::new();
    for (thread, found) in info.new.workload.threads.iter().enumerate() {
        let cpu = tree.leaves()[best.assignment.leaf(thread)];
        match cpus.iter_mut().find(|(known, _)| *known == cpu) {
            Some((_, names)) => names.push(&found.name),
            None => cpus.push((cpu, vec![&found.name])),
        }
    }
    cpus.sort_by_key(|(cpu, _)| *cpu);
    let texts: Vec<String> = cpus.iter().map(|(cpu, names)| format!("{}:{}", cpu.0, names.join("+"))).collect();
    texts.join(" ")
}

/// The outcome as one JSON document; the fields are a contract.
pub(crate) fn document(info: &CampaignInfo, outcome: &Outcome, plan: Option<&Path>) -> serde_json::Value {
    let tree = SharingTree::new(&info.new.machine, info.new.alike);
    let unit = &outcome.unit;
    // As the user knows it; a cost's interval changes its ends.
    let figure = |estimate: &Estimate| {
        let ends = [unit.quantity(estimate.low), unit.quantity(estimate.high)];
        json!({
            "performance": unit.quantity(estimate.mean),
            "low": finite(ends[0].min(ends[1])),
            "high": finite(ends[0].max(ends[1])),
            "n": estimate.n,
            "confidence": estimate.confidence,
            "unit": unit.name,
        })
    };
    let placed = |best: &Best| {
        let mut figure = figure(&best.performance);
        let threads = info.new.workload.threads.iter().enumerate();
        let assignment: Vec<Value> = threads
            .map(|(index, thread)| json!({"thread": thread.name, "cpu": tree.leaves()[best.assignment.leaf(index)].0}))
            .collect();
        figure["assignment"] = json!(assignment);
        figure
    };
    let bound = &outcome.bound;
    let shown = |performance: Option<f64>| performance.map(|performance| unit.quantity(performance));
    json!({
        "campaign": info.id,
        "advice": outcome.advice,
        "machine": info.new.machine.name,
        "workload": info.new.workload.name,
        "threads": info.new.workload.threads,
        "unit": unit.name,
        "lower_is_better": unit.reciprocal,
        "best": outcome.best.as_ref().map(placed),
        "baseline": outcome.baseline.as_ref().map(figure),
        "as_found": outcome.as_found.as_ref().map(figure),
        "gain": outcome.gain.map(|(mean, low, high)| json!({"mean": mean, "low": finite(low), "high": finite(high)})),
        "ties": outcome.ties.iter().map(placed).collect::<Vec<_>>(),
        "assignments": outcome.assignments,
        "upb": shown(bound.upb),
        "upb_low": shown(bound.upb_low),
        "upb_high": shown(bound.upb_high),
        "gap": bound.gap,
        "gap_high": bound.gap_high,
        "confidence": bound.confidence,
        "method": bound.method,
        "n": bound.n,
        "diagnostics": bound.notes,
        "drift": outcome.drift,
        "measurements": outcome.cost.measurements,
        "failed": outcome.cost.failed,
        "classes": outcome.cost.classes,
        "seconds": outcome.cost.time.as_secs_f64(),
        "strategy": outcome.strategy,
        "stopped_because": outcome.stopped_because,
        "seed": info.new.seed,
        "plan": plan,
    })
}

/// JSON has no infinities.
fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}
