//! A comparison as text.

use crate::output;
use comfy_table::{CellAlignment, Table, presets};
use pinwise_campaign::CampaignId;
use pinwise_jobs::CompareAnswer;
use pinwise_placement::{Comparison, ComparisonRow, JudgedClaim, WayStanding};
use pinwise_present::LabelledLines;
use pinwise_present::figures::{self, Scale};
use pinwise_present::{
    Files, against, caveat, claim_verdict, comparison_verdict, left_out, loses, lost, note,
    sentence, simulated, standing, unmoved_memory,
};
use std::collections::BTreeSet;

pub(super) fn text(answer: &CompareAnswer, files: Files<'_>, width: usize) -> String {
    let CompareAnswer { campaign: info, compared, comparison, notes } = answer;
    let mut sheet = LabelledLines { text: String::new(), width };
    sheet.paragraph("", 0, &comparison_verdict(comparison));
    sheet.unfinished(answer.unfinished(files).as_ref());
    let caveats = [simulated(info), caveat(comparison, notes)];
    let met = notes.iter().map(|met| sentence(&note(met)));
    for caveat in caveats.into_iter().flatten().chain(met) {
        sheet.paragraph("", 0, &caveat);
    }
    if !comparison.rows.is_empty() {
        sheet.text.push('\n');
        sheet.text.push_str(&table(comparison, width));
        let (rounds, confidence) = (comparison.rounds, figures::percent(comparison.confidence));
        let how = format!(
            "Losses are against {}. They come from {rounds} rounds of fresh windows, which chose \
             nothing. All {confidence} intervals of losses hold together. Each interval of a \
             performance holds alone.",
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
    if let Some(memory) = unmoved_memory(info) {
        sheet.paragraph("", 0, &format!("Memory: {}.", memory.name()));
    }
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
        "interval",
        "windows",
        "loss",
        "interval",
        "",
        "measured",
    ]);
    for column in [1, 3, 4, 7] {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    for row in &comparison.rows {
        let ComparisonRow { performance, loss, .. } = row;
        let best = row.standing == WayStanding::Best;
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
    // An interval that begins with 0 says it as well: tied.
    output::fitted(table, width, &[6, 7, 3])
}

/// `hill climbing     within 12 % of the best possible: holds (it loses at most 3.1 %)`
fn claim(row: &ComparisonRow) -> Option<String> {
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
