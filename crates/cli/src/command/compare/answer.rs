//! A comparison as text and JSON, for `compare` at its end and `campaign show` later.

use crate::output;
use comfy_table::{CellAlignment, Table, presets};
use pinwise_campaign::{CampaignId, CampaignInfo, Record, Store};
use pinwise_characterization::StoredCharacterization;
use pinwise_jobs::{CompareAnswer, CompareQuestion};
use pinwise_measure::ProgramNote;
use pinwise_placement::{Comparison, ComparisonStrategy, JudgedClaim, Row, Standing};
use pinwise_present::Sheet;
use pinwise_present::figures::{self, Scale};
use pinwise_present::{
    Files, against, caveat, claim_verdict, comparison_verdict, left_out, loses, lost, note,
    sentence, simulated, standing, tagged, unfinished,
};
use pinwise_topology::SharingTree;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;

/// Prints what the records of a comparison show.
pub(crate) fn tell(
    store: &Store,
    answer: &CompareAnswer,
    named: Option<&Path>,
    json: bool,
) -> anyhow::Result<()> {
    let CompareAnswer { campaign, compared, comparison, notes } = answer;
    if json {
        let records = store.records(campaign.id)?;
        let tagged = |met| tagged(met, sentence(&note(met)));
        let notes: Vec<Value> = notes.iter().map(tagged).collect();
        return output::print_json(&document(campaign, comparison, &notes, &records));
    }
    let files = Files::of_store(named);
    output::print(&text(campaign, compared, comparison, notes, files, output::width()))
}

/// The page of a comparison, with what its searches measured as far as that is still in the store.
pub(crate) fn page(
    store: &Store,
    answer: &CompareAnswer,
    files: Files<'_>,
    characterization: Option<&StoredCharacterization>,
) -> anyhow::Result<String> {
    let CompareAnswer { campaign, compared, comparison, .. } = answer;
    let mut searches: Vec<(CampaignId, String, Vec<Record>)> = Vec::new();
    for way in &compared.ways.contenders {
        let Some((campaign, records)) =
            way.campaign.and_then(|id| Some((id, store.records(id).ok()?)))
        else {
            continue;
        };
        // If two ways have the same search, the last one ran to its end.
        searches.retain(|(known, ..)| *known != campaign);
        searches.push((campaign, way.name.clone(), records));
    }
    let searches: Vec<_> = searches.into_iter().map(|(_, name, records)| (name, records)).collect();
    Ok(pinwise_report::comparison_page(
        campaign,
        comparison,
        &answer.notes,
        &searches,
        files,
        characterization,
    )?)
}

/// How far a comparison is, for one that has not ended.
fn far(info: &CampaignInfo, compared: &CompareQuestion) -> String {
    format!(
        "{} of at most {} measurements of the comparison are made",
        figures::count(info.records),
        figures::count(ComparisonStrategy::measurements(&compared.ways))
    )
}

fn text(
    info: &CampaignInfo,
    compared: &CompareQuestion,
    comparison: &Comparison,
    notes: &[ProgramNote],
    files: Files<'_>,
    width: usize,
) -> String {
    let mut sheet = Sheet { text: String::new(), width };
    sheet.paragraph("", 0, &comparison_verdict(comparison));
    let caveats = [
        unfinished(info, &far(info, compared), files),
        simulated(info),
        caveat(comparison, info.new.simulated, notes),
    ];
    let met = notes.iter().map(|met| sentence(&note(met)));
    for caveat in caveats.into_iter().flatten().chain(met) {
        sheet.paragraph("", 0, &caveat);
    }
    if !comparison.rows.is_empty() {
        sheet.text.push('\n');
        sheet.text.push_str(&table(comparison, width));
        let (rounds, confidence) = (comparison.rounds, figures::percent(comparison.confidence));
        let how = format!(
            "Losses are against {}, from {rounds} rounds of fresh windows that chose nothing. \
             The {confidence} intervals of losses hold together, those of performances each \
             alone.",
            against(comparison)
        );
        sheet.text.push('\n');
        sheet.paragraph("", 0, &how);
    }
    let claims: Vec<String> = comparison.rows.iter().filter_map(claim).collect();
    if !claims.is_empty() {
        sheet.text.push_str(&format!(
            "\nWhat the searches claimed, and whether it was true:\n{}",
            claims.concat()
        ));
    }
    sheet.text.push('\n');
    for way in &comparison.left_out {
        sheet.paragraph("", 0, &format!("{} is left out: {}.", way.name, left_out(&way.reason)));
    }
    let searched = compared.ways.contenders.iter().filter_map(|way| way.campaign);
    let searched: BTreeSet<CampaignId> = searched.collect();
    let searched: Vec<String> = searched.iter().map(|id| id.0.to_string()).collect();
    let flag = files.flag();
    if let Some(last) = searched.last() {
        let all = searched.join(", ");
        sheet.text.push_str(&format!(
            "The searches are campaigns {all}; see one with: pinwise campaign show {last}{flag}\n"
        ));
    }
    sheet.text.push_str(&format!("See it all on a page: pinwise report {}{flag}\n", info.id.0));
    sheet.text
}

fn table(comparison: &Comparison, width: usize) -> String {
    let scale = Scale::new(&comparison.unit, comparison.typical());
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header([
        "",
        scale.label.as_str(),
        "INTERVAL",
        "N",
        "LOSS",
        "INTERVAL",
        "",
        "MEASURED",
    ]);
    for column in [1, 3, 4, 7] {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    for row in &comparison.rows {
        let Row { performance, loss, .. } = row;
        let best = row.standing == Standing::Best;
        table.add_row([
            row.name.clone(),
            performance.telling(&scale).number(performance.mean),
            scale.ends(performance.low, performance.high),
            figures::count(performance.n as u64),
            if best { String::new() } else { loses(loss) },
            if best { String::new() } else { lost(loss) },
            standing(comparison, row).to_owned(),
            if row.spent > 0 { figures::count(row.spent) } else { String::new() },
        ]);
    }
    // An interval that begins with 0 says the same.
    output::fitted(table, width, &[6, 7])
}

/// `hill climbing     within 12 % of the best possible: holds (it loses at most 3.1 %)`
fn claim(row: &Row) -> Option<String> {
    row.campaign?;
    let name = &row.name;
    let Some(judged) = row.claim else { return Some(format!("  {name:<18} nothing\n")) };
    let gap = figures::percent(judged.claim.gap);
    let certificate = match judged {
        JudgedClaim { claim, .. } if claim.estimated => {
            " by the bound's point estimate, not certified"
        }
        JudgedClaim { certified: true, .. } => ", a certificate",
        JudgedClaim { .. } => "",
    };
    let verdict = claim_verdict(&judged);
    Some(format!("  {name:<18} within {gap} of the best possible{certificate}; {verdict}\n"))
}

/// The comparison as one JSON document; the fields are a contract.
fn document(
    info: &CampaignInfo,
    comparison: &Comparison,
    notes: &[Value],
    records: &[Record],
) -> Value {
    let tree = SharingTree::new(&info.new.machine, info.new.alike);
    let unit = &comparison.unit;
    let row = |row: &Row| {
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
    json!({
        "campaign": info.id,
        "machine": info.new.machine.name,
        "simulated": info.new.simulated,
        "workload": info.new.workload.name,
        "unit": unit.name,
        "lower_is_better": unit.reciprocal,
        "confidence": comparison.confidence,
        "within": comparison.within,
        "best": comparison.best().map(|best| &best.name),
        "contradicted_by": comparison.contradiction().map(|better| &better.name),
        "rounds": comparison.rounds,
        "before": comparison.before,
        "rounds_needed": comparison.unclear().map(|unclear| unclear.rounds),
        "ways": comparison.rows.iter().map(row).collect::<Vec<_>>(),
        "left_out": comparison.left_out.iter().map(|way| {
            json!({"name": way.name, "reason": tagged(&way.reason, left_out(&way.reason))})
        }).collect::<Vec<_>>(),
        "notes": notes,
        "measurements": records.len(),
        "seconds": records.last().map_or(0.0, |record| record.elapsed.as_secs_f64()),
        "seed": info.new.seed,
    })
}

/// JSON has no infinities.
fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}
