//! Co-scheduling as text.

use crate::output;
use comfy_table::{CellAlignment, Table, presets};
use pinwise_jobs::{CoschedAnswer, CoschedPreview, PreviewBasis};
use pinwise_present::{
    Files, LabelledLines, coscheduled_over, counter_sentences, figures, note, one_line,
    unmoved_memory,
};

pub(super) fn text(answer: &CoschedAnswer, files: Files<'_>, width: usize) -> String {
    let findings = answer.findings();
    let mut sheet = LabelledLines { text: String::new(), width };
    sheet.paragraph("", 0, &findings.verdict());
    sheet.unfinished(answer.unfinished(files).as_ref());
    findings.sentences().iter().for_each(|sentence| sheet.paragraph("", 0, sentence));
    let over = coscheduled_over(answer.level, &answer.outcome.cost, answer.campaign.records);
    sheet.paragraph("", 0, &over);
    if let Some(memory) = unmoved_memory(&answer.campaign) {
        sheet.paragraph("", 0, &format!("Memory: {}.", memory.name()));
    }
    for about in &answer.notes {
        sheet.paragraph("note: ", 6, &note(about));
    }
    let mut text = sheet.text;
    if !answer.outcome.programs.is_empty() {
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_header(findings.program_head());
        for column in 1..findings.program_head().len() {
            if let Some(column) = table.column_mut(column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        let rows = answer.outcome.programs.iter().map(|program| findings.program_row(program));
        table.add_rows(rows.map(|row| row.map(|cell| one_line(&cell).into_owned())));
        text += "\n";
        // Without counters nothing is known of runs alone.
        let spare: &[usize] = if findings.question.counted { &[3, 1] } else { &[4, 5, 3, 1] };
        text += &output::fitted(table, width, spare);
        if let Some(note) = findings.table_note() {
            let mut below = LabelledLines { text, width };
            below.paragraph("  ", 2, note);
            text = below.text;
        }
    }
    let (id, flag) = (answer.campaign.id.0, files.flag());
    text += &format!("\nSee it all on a page: pinwise report {id}{flag}\n");
    text
}

/// What would be moved.
pub(super) fn preview(preview: &CoschedPreview, width: usize) -> String {
    let mut sheet = LabelledLines { text: String::new(), width };
    let quanta = preview.quanta.len();
    let moves: usize = preview.quanta.iter().map(Vec::len).sum();
    sheet.paragraph(
        "",
        0,
        &format!(
            "{} in {quanta} quanta; nothing was moved. Siblings are contexts that share one {}.",
            figures::counted(moves as u64, "move"),
            preview.level.name()
        ),
    );
    let basis = match &preview.basis {
        PreviewBasis::Counted => None,
        PreviewBasis::Metric => {
            Some("threads are dealt at random; in a search --metric judges each split".to_owned())
        }
        PreviewBasis::Uncounted(error) => Some(format!("threads are dealt at random: {error}")),
    };
    for about in basis.into_iter().chain(preview.notes.iter().map(note)) {
        sheet.paragraph("note: ", 6, &about);
    }
    for sentence in preview.counters.iter().flat_map(counter_sentences) {
        sheet.paragraph("", 0, &sentence);
    }
    for (number, moves) in preview.quanta.iter().enumerate() {
        for one in moves {
            let (program, thread) = (one_line(&one.program), one.thread);
            let line = format!(
                "quantum {}: thread {} of {program} (pid {}) to context {}",
                number + 1,
                thread.tid,
                thread.pid,
                one.context
            );
            sheet.paragraph("  ", 4, &line);
        }
    }
    sheet.text
}
