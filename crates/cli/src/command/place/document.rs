//! The outcome of a placement as a JSON document.

use pinwise_campaign::CampaignInfo;
use pinwise_measure::Unit;
use pinwise_placement::{
    BlackboxForecast, Estimate, Outcome, PlacedAssignment, PlacementQuestion, PredictedAssignment,
};
use pinwise_present::{
    level_source, profiling_end, stop_reason, strategy_reason, tagged, tagged_bound_notes,
    tagged_notes, typical, unmeasured, verdict,
};
use pinwise_topology::{Assignment, SharingTree};
use serde::Serialize;
use serde_json::{Value, json};
use std::path::Path;

/// The outcome as one JSON document; the fields are a contract.
pub(crate) fn document(
    info: &CampaignInfo,
    question: &PlacementQuestion,
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
    let placed = |best: &PlacedAssignment| {
        let mut figure = figure(&best.performance);
        figure["assignment"] = json!(cpus(&best.assignment));
        figure
    };
    let gain = |(mean, low, high)| json!({"mean": mean, "low": finite(low), "high": finite(high)});
    // A model is in no placement before it is placed.
    let simulated = info.new.simulated;
    let bound = &outcome.bound;
    let shown =
        |performance: Option<f64>| performance.map(|performance| unit.quantity(performance));
    // As with `pinwise bound --lower-is-better`, the lowest value is the low end, whichever is
    // better.
    let (mut low, mut high) = (shown(bound.upb_low), shown(bound.upb_high));
    if unit.reciprocal {
        (low, high) = (high, low);
    }
    let mut document = json!({
        "campaign": info.id,
        "verdict": {
            "kind": outcome.verdict,
            "text": verdict(info, question, outcome).to_string(),
        },
        // As versions before called it.
        "advice": outcome.verdict,
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
        "certified": pinwise_present::certified(question, bound)
            .is_some_and(|(certified, _)| certified),
        "confidence": bound.confidence,
        "method": bound.method,
        "n": bound.n,
        "diagnostics": tagged_bound_notes(bound, unit, typical(outcome)),
        "drift": outcome.drift,
        "notes": tagged_notes(info, outcome),
        "memory": outcome.memory,
        "measurements": outcome.cost.measurements,
        "failed": outcome.cost.failed,
        "failure": outcome.failure.as_ref().map(|failure| tagged(failure, unmeasured(failure))),
        "classes": outcome.cost.classes,
        "seconds": outcome.cost.time.as_secs_f64(),
        "strategy": reasons(&outcome.strategy, strategy_reason),
        "stopped_because": reasons(&outcome.stopped_because, stop_reason),
        "seed": info.new.seed,
        "plan": plan,
    });
    // Only where predictions are what it was searched by.
    if let Some(forecast) = &outcome.forecast {
        document["forecast"] = forecasted(forecast, unit, &cpus);
    }
    document
}

fn forecasted(
    forecast: &BlackboxForecast,
    unit: &Unit,
    cpus: &dyn Fn(&Assignment) -> Vec<Value>,
) -> Value {
    let finalist = |finalist: &PredictedAssignment| {
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
        "core_local_because": tagged(&forecast.because, level_source(&forecast.because)),
        "base": forecast.base,
        "base_sampled_of": forecast.sampled,
        "slowdown": forecast.slowdown,
        "slowdown_measured": forecast.measured,
        "ended": tagged(&forecast.ended, profiling_end(&forecast.ended)),
        "checked": forecast.checked,
        "held": forecast.held,
        "error": forecast.error,
        "ratio": forecast.ratio().map(|(mean, spread)| json!({"mean": mean, "spread": spread})),
        "gap": forecast.gap().and_then(finite),
        "exact": forecast.exact,
        "finalists": forecast.finalists.iter().map(finalist).collect::<Vec<_>>(),
    })
}

/// Each reason with its kind, its values and its text.
fn reasons<T: Serialize>(reasons: &[T], text: fn(&T) -> String) -> Vec<Value> {
    reasons.iter().map(|reason| tagged(reason, text(reason))).collect()
}

/// JSON has no infinities.
fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_campaign::{CampaignId, CampaignState, Kind, NewCampaign};
    use pinwise_measure::{Thread, Workload};
    use pinwise_placement::{
        Bound, BoundMethod, BoundNote, Budget, PlacementVerdict, SearchCost, StopReason,
        StrategyName, StrategyReason,
    };
    use pinwise_topology::{Alike, Machine};
    use std::time::Duration;

    fn campaign(unit: Unit) -> CampaignInfo {
        let thread = |name: &str| Thread::new(name, "r", 0);
        CampaignInfo {
            id: CampaignId(7),
            new: NewCampaign {
                kind: Kind::Place,
                parent: None,
                command: vec!["pinwise".into(), "place".into()],
                machine: Machine::from_shape("2x2").unwrap(),
                alike: Alike::ByStructure,
                workload: Workload {
                    name: "service".into(),
                    threads: vec![thread("rx"), thread("tx")],
                },
                unit,
                simulated: false,
                question: Value::Null,
                seed: 1,
            },
            started: 0,
            state: CampaignState::Finished,
            conclusion: None,
            records: 240,
            running: false,
        }
    }

    fn question() -> PlacementQuestion {
        PlacementQuestion::new(StrategyName::Auto, Budget::Measurements(240))
    }

    fn figure(mean: f64, half: f64) -> Estimate {
        Estimate {
            mean,
            low: mean - half,
            high: mean + half,
            n: 12,
            confidence: 0.95,
            spread: half,
        }
    }

    fn best(leaves: [u32; 2], mean: f64) -> PlacedAssignment {
        PlacedAssignment {
            assignment: Assignment::new(leaves.to_vec()),
            performance: figure(mean, mean / 100.0),
        }
    }

    fn outcome(unit: Unit, mean: f64) -> Outcome {
        Outcome {
            verdict: PlacementVerdict::Pin,
            unit,
            best: Some(best([0, 1], mean)),
            baseline: Some(figure(mean * 0.8, mean / 20.0)),
            so_far: None,
            as_found: None,
            gain: Some((0.25, 0.2, 0.3)),
            ties: vec![best([0, 2], mean * 0.999)],
            bound: Bound {
                upb: Some(mean),
                upb_low: Some(mean),
                upb_high: Some(mean * 1.02),
                gap: Some(0.0),
                gap_high: Some(0.02),
                confidence: 0.95,
                method: BoundMethod::Exact,
                n: 2,
                notes: vec![BoundNote::AllMeasured],
            },
            assignments: "2".into(),
            drift: None,
            notes: Vec::new(),
            cost: SearchCost {
                measurements: 240,
                failed: 3,
                classes: 2,
                time: Duration::from_secs(12),
                stalled: Duration::ZERO,
            },
            failure: Some("thread 125 may not run on CPU 3".to_owned().into()),
            strategy: vec![StrategyReason::Exhaustive { assignments: "2".into(), times: 3 }],
            stopped_because: vec![StopReason::Precise { windows: 12, precision: 0.01 }],
            memory: None,
            forecast: None,
        }
    }

    #[test]
    fn one_measurement_of_a_cost_has_no_interval() {
        let unit = Unit::cost("s");
        let mut once = outcome(unit.clone(), 0.5);
        let alone =
            Estimate { low: f64::NEG_INFINITY, high: f64::INFINITY, n: 1, ..figure(0.5, 0.0) };
        once.baseline = Some(alone);
        let told = document(&campaign(unit), &question(), &once, None);
        assert_eq!([&told["baseline"]["low"], &told["baseline"]["high"]], [&Value::Null; 2]);
        assert_eq!([&told["best"]["low"], &told["best"]["high"]], [1.0 / 0.505, 1.0 / 0.495]);
    }

    #[test]
    fn the_document_of_a_cost_has_its_ends_in_order() {
        let unit = Unit::cost("s");
        let document = document(&campaign(unit.clone()), &question(), &outcome(unit, 0.5), None);
        let number = |path: &str| document.pointer(path).and_then(Value::as_f64).unwrap();
        assert!(
            number("/best/low") < number("/best/performance")
                && number("/best/performance") < number("/best/high")
        );
        assert_eq!((number("/upb_low"), number("/upb_high")), (1.0 / 0.51, 2.0));
        assert_eq!(document["lower_is_better"], true);
    }

    #[test]
    fn what_leads_before_there_are_fresh_windows_is_not_the_best() {
        let unit = Unit::rate("packets/s");
        let so_far = Outcome {
            verdict: PlacementVerdict::Undecided,
            best: None,
            so_far: Some(best([0, 3], 1.5e6)),
            gain: None,
            ties: Vec::new(),
            ..outcome(unit.clone(), 1.72e6)
        };
        let told = document(&campaign(unit), &question(), &so_far, None);
        assert_eq!(
            (&told["best"], &told["so_far"]["performance"]),
            (&Value::Null, &serde_json::json!(1.5e6))
        );
        assert_eq!(told["so_far"]["assignment"][1]["cpu"], 3);
    }

    #[test]
    fn how_the_program_was_found_is_a_field_where_it_differs() {
        let unit = Unit::rate("packets/s");
        let info = campaign(unit.clone());
        // 1.38 unpinned; the best is 1.72.
        let found = |mean: f64| Outcome {
            as_found: Some(figure(mean, 2e4)),
            ..outcome(unit.clone(), 1.72e6)
        };
        let fields = |outcome: &Outcome| {
            let document = document(&info, &question(), outcome, None);
            ["found_apart", "gain_as_found"].map(|field| document[field].clone())
        };
        let [apart, gain] = fields(&found(1.6e6));
        assert!(
            apart.as_f64().is_some_and(|apart| (apart - (1.6 / 1.376 - 1.0)).abs() < 1e-9),
            "{apart}"
        );
        assert!(
            gain["mean"] == 1.72e6 / 1.6e6 - 1.0 && gain["low"].is_f64() && gain["high"].is_f64(),
            "{gain}"
        );
        assert_eq!(fields(&found(1.4e6))[0], Value::Null);
        assert_eq!(fields(&outcome(unit.clone(), 1.72e6)), [Value::Null, Value::Null]);
        let model = CampaignInfo {
            new: NewCampaign {
                kind: pinwise_campaign::Kind::Place,
                parent: None,
                simulated: true,
                ..info.new.clone()
            },
            ..info.clone()
        };
        assert_eq!(
            document(&model, &question(), &found(1.6e6), None)["found_apart"],
            Value::Null,
            "a model is not found in a placement"
        );
    }
}
