//! How a comparison is told: by `compare` at its end, and by `campaign show` at any time after.

use crate::output;
use crate::request::Compared;
use comfy_table::{CellAlignment, Table, presets};
use pinwise_campaign::{CampaignInfo, Record, Store};
use pinwise_placement::{Comparison, Contender, Judged, Row};
use pinwise_report::{Files, is_simulated};
use pinwise_testbed::figures::{self, Scale};
use pinwise_topology::SharingTree;
use serde_json::{Value, json};
use std::path::Path;

/// What a campaign compared, if it is a comparison.
pub(crate) fn of(info: &CampaignInfo) -> Option<Compared> {
    serde_json::from_value(info.new.question.clone()).ok()
}

/// Prints what the records of a comparison show.
pub(crate) fn print(
    info: &CampaignInfo,
    compared: &Compared,
    records: &[Record],
    named: Option<&Path>,
    json: bool,
) -> anyhow::Result<()> {
    let comparison = Comparison::new(&compared.lineup, &info.new.unit, records);
    if json {
        return output::print_json(&document(info, &comparison, records));
    }
    output::print(&tell(info, &comparison, Files { plan: None, store: named }))
}

/// The page of a comparison, with what its searches measured as far as that is still in the store.
pub(crate) fn page(
    store: &Store,
    info: &CampaignInfo,
    compared: &Compared,
    records: &[Record],
    files: Files<'_>,
) -> anyhow::Result<String> {
    let comparison = Comparison::new(&compared.lineup, &info.new.unit, records);
    let searched = |contender: &Contender| Some((contender.name.clone(), store.records(contender.campaign?).ok()?));
    let searches: Vec<_> = compared.lineup.contenders.iter().filter_map(searched).collect();
    Ok(pinwise_report::comparison_page(info, &comparison, &searches, files)?)
}

fn tell(info: &CampaignInfo, comparison: &Comparison, files: Files<'_>) -> String {
    let mut text = String::new();
    if is_simulated(&info.new.question) {
        let machine = &info.new.machine.name;
        text.push_str(&format!(
            "Simulated on a model of {machine}: performances are those of the model; unpinned stands for balanced placements.\n\n"
        ));
    }
    let scale = Scale::new(&comparison.unit, comparison.best().map_or(1.0, |best| best.performance.mean));
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(["", "PERFORMANCE", "INTERVAL", "N", "LOSS", "SPENT", "CLAIM"]);
    for column in [1, 3, 4, 5] {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let best = comparison.best().and_then(|best| best.assignment.as_ref());
    for row in &comparison.rows {
        let is_best = row.assignment.is_some() && row.assignment.as_ref() == best;
        table.add_row([
            row.name.clone(),
            scale.show(row.performance.mean),
            scale.range(row.performance.low, row.performance.high),
            figures::count(row.performance.n as u64),
            if is_best { "best known".to_owned() } else { figures::percent(row.loss.0) },
            if row.spent > 0 { figures::count(row.spent) } else { String::new() },
            match row.claim {
                None if row.campaign.is_some() => "none".to_owned(),
                judged => judged.map_or(String::new(), claim),
            },
        ]);
    }
    text.extend(table.lines().map(|line| format!("{}\n", line.trim_end())));
    text.push('\n');
    let confidence = figures::percent(comparison.confidence);
    text.push_str(&format!(
        "Intervals are {confidence}. Losses are against the best known assignment, on fresh windows.\n"
    ));
    for (name, reason) in &comparison.left_out {
        text.push_str(&format!("{name} is left out: {reason}.\n"));
    }
    let searched: Vec<String> = comparison.rows.iter().filter_map(|row| Some(row.campaign?.0.to_string())).collect();
    let flag = files.flag();
    text.push_str(&format!(
        "The searches are campaigns {}; see one with: pinwise campaign show {}{flag}\n",
        searched.join(", "),
        searched.last().map_or("ID", String::as_str),
    ));
    text.push_str(&format!("See it all on a page: pinwise report {}{flag}\n", info.id.0));
    text
}

/// `bound: within 12 % of the best possible, stands`
fn claim(judged: Judged) -> String {
    let gap = figures::percent(judged.claim.gap);
    let kind = if judged.certified { "certificate" } else { "bound" };
    let verdict = if judged.refuted { "FALSE" } else { "stands" };
    format!("{kind}: within {gap} of the best possible, {verdict}")
}

/// The comparison as one JSON document; the fields are a contract.
fn document(info: &CampaignInfo, comparison: &Comparison, records: &[Record]) -> Value {
    let tree = SharingTree::new(&info.new.machine, info.new.alike);
    let unit = &comparison.unit;
    let row = |row: &Row| {
        let ends = [unit.quantity(row.performance.low), unit.quantity(row.performance.high)];
        let assignment = row.assignment.as_ref().map(|assignment| {
            let threads = info.new.workload.threads.iter().enumerate();
            let placed =
                |(index, thread): (usize, &pinwise_testbed::Thread)| json!({"thread": thread.name, "cpu": tree.leaves()[assignment.leaf(index)].0});
            threads.map(placed).collect::<Vec<Value>>()
        });
        json!({
            "name": row.name,
            "performance": unit.quantity(row.performance.mean),
            "low": finite(ends[0].min(ends[1])),
            "high": finite(ends[0].max(ends[1])),
            "n": row.performance.n,
            "loss": row.loss.0,
            "loss_low": finite(row.loss.1),
            "loss_high": finite(row.loss.2),
            "measurements": row.spent,
            "campaign": row.campaign,
            "assignment": assignment,
            "claim": row.claim.map(|judged| json!({
                "upb": unit.quantity(judged.claim.bound),
                "gap": judged.claim.gap,
                "certified": judged.certified,
                "refuted": judged.refuted,
            })),
        })
    };
    json!({
        "campaign": info.id,
        "machine": info.new.machine.name,
        "simulated": is_simulated(&info.new.question),
        "workload": info.new.workload.name,
        "unit": unit.name,
        "lower_is_better": unit.reciprocal,
        "confidence": comparison.confidence,
        "within": comparison.within,
        "best": comparison.best().map(|best| &best.name),
        "ways": comparison.rows.iter().map(row).collect::<Vec<_>>(),
        "left_out": comparison.left_out.iter().map(|(name, reason)| json!({"name": name, "reason": reason})).collect::<Vec<_>>(),
        "measurements": records.len(),
        "seconds": records.last().map_or(0.0, |record| record.elapsed.as_secs_f64()),
        "seed": info.new.seed,
    })
}

/// JSON has no infinities.
fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}
