//! A comparison as a JSON document.

use pinwise_campaign::Record;
use pinwise_jobs::CompareAnswer;
use pinwise_placement::ComparisonRow;
use pinwise_present::{
    Files, comparison_verdict, left_out, tagged, tagged_program_notes, unmoved_memory,
};
use pinwise_topology::SharingTree;
use serde_json::{Value, json};

/// The comparison as one JSON document; the fields are a contract.
pub(super) fn document(answer: &CompareAnswer, records: &[Record], files: Files<'_>) -> Value {
    let CompareAnswer { campaign: info, comparison, notes, .. } = answer;
    let tree = SharingTree::new(&info.new.machine, info.new.alike);
    let unit = &comparison.unit;
    let row = |row: &ComparisonRow| {
        let [low, high] = unit.interval(row.performance.low, row.performance.high);
        let assignment = row.assignment.as_ref().map(|assignment| {
            let threads = info.new.workload.threads.iter().enumerate();
            let placed = |(index, thread): (usize, &pinwise_measure::Thread)| {
                let cpu = tree.leaves()[assignment.leaf(index)].0;
                json!({"thread": thread.name, "cpu": cpu})
            };
            threads.map(placed).collect::<Vec<Value>>()
        });
        json!({
            "name": row.name,
            "performance": unit.quantity(row.performance.mean),
            "low": low,
            "high": high,
            "n": row.performance.n,
            "loss": finite(row.loss.estimate),
            "loss_low": finite(row.loss.low),
            "loss_high": finite(row.loss.high),
            "standing": row.standing,
            "measurements": row.spent,
            "campaign": row.campaign,
            "assignment": assignment,
            "claim": row.claim.map(|judged| json!({
                "upb": unit.quantity(judged.claim.bound),
                "gap": judged.claim.gap,
                "certified": judged.certified,
                "verdict": judged.verdict,
            })),
        })
    };
    let kind = match comparison.best() {
        None => "undecided",
        Some(_) if comparison.contradiction().is_some() => "contradicted",
        Some(_) => "best",
    };
    json!({
        "campaign": info.id,
        "unfinished": answer.unfinished(files),
        "machine": info.new.machine.name,
        "simulated": info.new.simulated,
        "memory": unmoved_memory(info),
        "workload": info.new.workload.name,
        "unit": unit.name,
        "lower_is_better": unit.reciprocal,
        "confidence": comparison.confidence,
        "within": comparison.within,
        "verdict": { "kind": kind, "text": comparison_verdict(comparison) },
        "best": comparison.best().map(|best| &best.name),
        "contradicted_by": comparison.contradiction().map(|better| &better.name),
        "rounds": comparison.rounds,
        "before": comparison.before,
        "rounds_needed": comparison.unclear().map(|unclear| unclear.rounds),
        "ways": comparison.rows.iter().map(row).collect::<Vec<_>>(),
        "left_out": comparison.left_out.iter().map(|way| {
            json!({"name": way.name, "reason": tagged(&way.reason, left_out(&way.reason))})
        }).collect::<Vec<_>>(),
        "notes": tagged_program_notes(notes),
        "measurements": records.len(),
        "seconds": records.last().map_or(0.0, |record| record.elapsed.as_secs_f64()),
        "seed": info.new.seed,
    })
}

/// JSON has no infinities.
fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}
