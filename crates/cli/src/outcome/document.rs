//! An outcome as a JSON document.

use pinwise_campaign::CampaignInfo;
use pinwise_placement::{Best, Estimate, Outcome};
use pinwise_report::is_simulated;
use pinwise_topology::SharingTree;
use serde_json::{Value, json};
use std::path::Path;

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
    // As with `pinwise bound --minimize`: the lowest value is the low end, whichever direction is better.
    let (mut low, mut high) = (shown(bound.upb_low), shown(bound.upb_high));
    if unit.reciprocal {
        (low, high) = (high, low);
    }
    json!({
        "campaign": info.id,
        "advice": outcome.advice,
        "machine": info.new.machine.name,
        "simulated": is_simulated(&info.new.question),
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
        "upb_low": low,
        "upb_high": high,
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
