//! Pairs of programs as text.

use crate::output;
use comfy_table::{CellAlignment, Table, presets};
use pinwise_coscheduling::PairOutcome;
use pinwise_jobs::PairsAnswer;
use pinwise_present::{
    Files, LabelledLines, PairsFindings, note, one_line, pairs_ran, simulated, unmoved_memory,
};

/// Pairs that are shown one by one, half of them the best and half the worst.
const SHOWN: usize = 20;

pub(super) fn text(answer: &PairsAnswer, files: Files<'_>, width: usize) -> String {
    let findings = answer.findings();
    let mut sheet = LabelledLines { text: String::new(), width };
    sheet.paragraph("", 0, &findings.verdict());
    sheet.unfinished(answer.unfinished(files).as_ref());
    findings.sentences().iter().for_each(|sentence| sheet.paragraph("", 0, sentence));
    simulated(&answer.campaign).iter().for_each(|note| sheet.paragraph("", 0, note));
    let made = answer.outcome.measurements;
    sheet.paragraph("", 0, &pairs_ran(answer.seats.level, &answer.contexts(), made));
    if let Some(memory) = unmoved_memory(&answer.campaign) {
        sheet.paragraph("", 0, &format!("Memory: {}.", memory.name()));
    }
    for about in &answer.notes {
        sheet.paragraph("note: ", 6, &note(about));
    }
    let mut text = sheet.text;
    text += "\n";
    text += &table(&PairsFindings::PROGRAM_HEAD, programs(answer), &[1], width, &[3, 4]);
    let mut below = LabelledLines { text, width };
    findings.legend().iter().for_each(|line| below.paragraph("  ", 4, &one_line(line)));
    let mut text = below.text;
    if let Some(matrix) = matrix(&findings, width) {
        text += "\nWeighted speed-up of each pair, by number (1: as fast as one after the other)\n";
        if findings.model.is_some() {
            text += "~ is predicted, all others are measured.\n";
        }
        text += &matrix;
    }
    text += "\n";
    let best_first = findings.best_first();
    let rows: Vec<Vec<String>> =
        few(&best_first).into_iter().map(|pair| findings.pair_row(pair).to_vec()).collect();
    text += &table(&PairsFindings::PAIR_HEAD, rows, &[0], width, &[4, 5, 3, 6]);
    if best_first.len() > SHOWN {
        text += &format!("  the {SHOWN} best and worst of {} pairs\n", best_first.len());
    }
    let (id, flag) = (answer.campaign.id.0, files.flag());
    text += &format!("\nSee it all on a page: pinwise report {id}{flag}\n");
    text
}

/// All, or the first and the last of many.
fn few<'a>(pairs: &[&'a PairOutcome]) -> Vec<&'a PairOutcome> {
    if pairs.len() <= SHOWN {
        return pairs.to_vec();
    }
    [&pairs[..SHOWN / 2], &pairs[pairs.len() - SHOWN / 2..]].concat()
}

fn programs(answer: &PairsAnswer) -> Vec<Vec<String>> {
    let findings = answer.findings();
    (0..answer.names.len()).map(|program| findings.program_row(program).to_vec()).collect()
}

/// `None` if it is wider than `width`.
fn matrix(findings: &PairsFindings<'_>, width: usize) -> Option<String> {
    let programs = 0..findings.names.len();
    let head: Vec<String> = [String::new()]
        .into_iter()
        .chain(programs.clone().map(|one| (one + 1).to_string()))
        .collect();
    let cell = |one, other| findings.cell(one, other).unwrap_or_else(|| "-".into());
    let rows = programs.clone().map(|one| {
        let name = format!("{} {}", one + 1, findings.names[one]);
        let cells = programs.clone().map(|other| cell(one, other));
        [one_line(&name).into_owned()].into_iter().chain(cells).collect()
    });
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let text = table(&head, rows.collect(), &[0], usize::MAX, &[]);
    text.lines().all(|line| line.chars().count() <= width).then_some(text)
}

/// Rows of cells. The columns `words` begin at the left. Those of `spare` are left out if
/// there is no room.
fn table(
    head: &[&str],
    rows: Vec<Vec<String>>,
    words: &[usize],
    width: usize,
    spare: &[usize],
) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(head);
    for column in (0..head.len()).filter(|column| !words.contains(column)) {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.add_rows(rows);
    output::fitted(table, width, spare)
}
