//! An outcome as a JSON document.

use pinwise_campaign::CampaignInfo;
use pinwise_measure::Unit;
use pinwise_placement::{Best, Estimate, Finalist, Forecast, Outcome};
use pinwise_report::{is_simulated, notes};
use pinwise_topology::{Assignment, SharingTree};
use serde_json::{Value, json};
use std::path::Path;

/// The outcome as one JSON document; the fields are a contract.
pub(crate) fn document(
    info: &CampaignInfo,
    outcome: &Outcome,
    plan: Option<&Path>,
) -> serde_json::Value {
    let tree = SharingTree::new(&info.new.machine, info.new.alike);
    let unit = &outcome.unit;
    let figure = |estimate: &Estimate| {
        let [low, high] = unit.interval(estimate.low, estimate.high);
        json!({
            "performance": unit.quantity(estimate.mean),
            "low": low,
            "high": high,
            "n": estimate.n,
            "confidence": estimate.confidence,
            "unit": unit.name,
        })
    };
    let cpus = |assignment: &Assignment| -> Vec<Value> {
        let threads = info.new.workload.threads.iter().enumerate();
        let cpu = |index: usize| tree.leaves()[assignment.leaf(index)].0;
        threads.map(|(index, thread)| json!({"thread": thread.name, "cpu": cpu(index)})).collect()
    };
    let placed = |best: &Best| {
        let mut figure = figure(&best.performance);
        figure["assignment"] = json!(cpus(&best.assignment));
        figure
    };
    let gain = |(mean, low, high)| json!({"mean": mean, "low": finite(low), "high": finite(high)});
    // A model is in no placement before it is placed.
    let simulated = is_simulated(&info.new.question);
    let bound = &outcome.bound;
    let shown =
        |performance: Option<f64>| performance.map(|performance| unit.quantity(performance));
    // As with `pinwise bound --minimize`: the lowest value is the low end, whichever direction is
    // better.
    let (mut low, mut high) = (shown(bound.upb_low), shown(bound.upb_high));
    if unit.reciprocal {
        (low, high) = (high, low);
    }
    let mut document = json!({
        "campaign": info.id,
        "advice": outcome.advice,
        "machine": info.new.machine.name,
        "simulated": simulated,
        "workload": info.new.workload.name,
        "threads": info.new.workload.threads,
        "unit": unit.name,
        "lower_is_better": unit.reciprocal,
        "best": outcome.best.as_ref().map(placed),
        "so_far": outcome.so_far.as_ref().map(placed),
        "baseline": outcome.baseline.as_ref().map(figure),
        "as_found": outcome.as_found.as_ref().map(figure),
        "found_apart": outcome.found_apart().filter(|_| !simulated),
        "gain": outcome.gain.map(gain),
        "gain_as_found": outcome.gain_as_found().filter(|_| !simulated).map(gain),
        "ties": outcome.ties.iter().map(placed).collect::<Vec<_>>(),
        "assignments": outcome.assignments,
        "upb": shown(bound.upb),
        "upb_low": low,
        "upb_high": high,
        "gap": bound.gap,
        "gap_high": bound.gap_high,
        "certified": super::certified(info, bound).is_some_and(|(certified, _)| certified),
        "confidence": bound.confidence,
        "method": bound.method,
        "n": bound.n,
        "diagnostics": bound.notes,
        "drift": outcome.drift,
        "notes": notes(info, outcome),
        "measurements": outcome.cost.measurements,
        "failed": outcome.cost.failed,
        "failure": outcome.failure,
        "classes": outcome.cost.classes,
        "seconds": outcome.cost.time.as_secs_f64(),
        "strategy": outcome.strategy,
        "stopped_because": outcome.stopped_because,
        "seed": info.new.seed,
        "plan": plan,
    });
    // Only where predictions are what it was searched by.
    if let Some(forecast) = &outcome.forecast {
        document["forecast"] = forecasted(forecast, unit, &cpus);
    }
    document
}

fn forecasted(forecast: &Forecast, unit: &Unit, cpus: &dyn Fn(&Assignment) -> Vec<Value>) -> Value {
    let finalist = |finalist: &Finalist| {
        let [low, high] = unit.interval(finalist.low, finalist.high);
        json!({
            "assignment": cpus(&finalist.assignment),
            "predicted": unit.quantity(finalist.predicted),
            "low": low,
            "high": high,
            "measured": finalist.measured.map(|measured| unit.quantity(measured)),
        })
    };
    json!({
        "core_local": forecast.core_local,
        "core_local_because": forecast.because,
        "base": forecast.base,
        "slowdown": forecast.slowdown,
        "slowdown_measured": forecast.measured,
        "ended": forecast.ended,
        "checked": forecast.checked,
        "held": forecast.held,
        "error": forecast.error,
        "ratio": forecast.ratio().map(|(mean, spread)| json!({"mean": mean, "spread": spread})),
        "gap": forecast.gap().and_then(finite),
        "exact": forecast.exact,
        "finalists": forecast.finalists.iter().map(finalist).collect::<Vec<_>>(),
    })
}

/// JSON has no infinities.
fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}
