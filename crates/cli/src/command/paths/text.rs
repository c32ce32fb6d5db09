//! The answer of `pinwise paths` as text: the answer, the hot paths, code if asked for, and totals.

use crate::output;
use comfy_table::{CellAlignment, ColumnConstraint, Table, presets};
use pinwise_paths::{ProfiledPath, RecordedProfile};
use pinwise_present::figures::percent;
use pinwise_present::{
    HOT_PATH_COLUMNS, LabelledLines, annotated_code, hot_path_rows, more_hot_paths, one_line,
    paths_totals, paths_verdict, recorded_name,
};
use std::fmt::Write as _;

/// Functions whose code is shown.
const FUNCTIONS: usize = 3;
/// Blocks of a path that the table shows.
const BLOCKS: usize = 10;

pub(super) fn text(profile: &RecordedProfile, top: usize, annotate: bool, width: usize) -> String {
    let mut lines = LabelledLines { text: String::new(), width };
    for line in paths_verdict(profile) {
        lines.paragraph("", 2, &one_line(&line));
    }
    let hot = profile.hot();
    if !hot.is_empty() {
        lines.text.push('\n');
        lines.text += &table(profile, &hot[..hot.len().min(top)], width);
        if let Some(more) = more_hot_paths(hot.len(), top) {
            let _ = writeln!(lines.text, " {more}");
        }
    }
    if annotate {
        for (binary, function, share) in profile.hottest_functions().into_iter().take(FUNCTIONS) {
            let name = one_line(profile.binaries[binary].name_of(function)).into_owned();
            let _ = write!(lines.text, "\n{name}: {} of the flow\n", percent(share));
            lines.text += &annotated_code(profile, binary, function, BLOCKS);
        }
    }
    lines.text.push('\n');
    for (label, value) in paths_totals(profile) {
        lines.line(label, &one_line(&value));
    }
    for unread in &profile.unread {
        // One that was hardly seen is not missed.
        if unread.branches * 100 >= profile.totals.branches && !profile.paths.is_empty() {
            let name = recorded_name(&unread.name);
            lines.line("not read", &one_line(&format!("{name}: {}", unread.reason)));
        }
    }
    lines.text
}

fn table(profile: &RecordedProfile, paths: &[&ProfiledPath], width: usize) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(HOT_PATH_COLUMNS);
    for row in hot_path_rows(profile, paths, BLOCKS) {
        table.add_row(row.map(|cell| one_line(&cell).into_owned()));
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        let is_text = index > 2;
        column.set_cell_alignment(if is_text { CellAlignment::Left } else { CellAlignment::Right });
        if index == 1 && paths.iter().all(|path| path.interval.is_none()) {
            column.set_constraint(ColumnConstraint::Hidden);
        }
    }
    output::fitted(table, width, &[2])
}
