//! The answer of `pinwise paths` as text: the answer, the hot paths, code if asked for, and totals.

use crate::output;
use comfy_table::{CellAlignment, ColumnConstraint, Table, presets};
use pinwise_paths::{ProfiledPath, RecordedProfile};
use pinwise_present::figures::{count, percent};
use pinwise_present::{
    LabelledLines, one_line, path_text, paths_totals, paths_verdict, recorded_name, share_interval,
};
use std::fmt::Write as _;

/// Functions whose code is shown, and paths that are marked in each.
const FUNCTIONS: usize = 3;
const MARKED: usize = 5;
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
        if hot.len() > top {
            let rest = count((hot.len() - top) as u64);
            let _ = writeln!(lines.text, " {rest} more hot paths: see them with --top or --json");
        }
    }
    if annotate {
        for (binary, function, share) in profile.hottest_functions().into_iter().take(FUNCTIONS) {
            lines.text += &annotated(profile, binary, function, share);
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
    table.set_header(["flow", "90 % interval", "count", "function", "blocks"]);
    let mut before = None;
    for path in paths {
        let binary = &profile.binaries[path.binary];
        let function = one_line(binary.function_name(&path.path));
        if path.group.is_some() && path.group != before {
            let members = profile.paths.iter().filter(|other| other.group == path.group);
            let (share, times) =
                members.fold((0.0, 0.0), |sum, it| (sum.0 + it.share, sum.1 + it.count));
            let times = count(times.round() as u64);
            let known = "a group, known together:";
            table.add_row([&percent(share), "", &times, &*function, known]);
        }
        before = path.group;
        let indent = if path.group.is_some() { "- " } else { "" };
        table.add_row([
            percent(path.share),
            share_interval(path).unwrap_or_default(),
            count(path.count.round() as u64),
            format!("{indent}{function}"),
            one_line(&format!("{indent}{}", path_text(binary, path, BLOCKS))).into_owned(),
        ]);
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

/// The code of a function. Letters mark its hottest paths, A first.
fn annotated(profile: &RecordedProfile, binary: usize, function: u32, share: f64) -> String {
    let of = &profile.binaries[binary];
    let paths = profile.paths.iter();
    let marked: Vec<&ProfiledPath> = paths
        .filter(|path| path.binary == binary && path.path.function == function)
        .take(MARKED)
        .collect();
    let Some(first) = marked.first() else { return String::new() };
    let name = one_line(of.function_name(&first.path)).into_owned();
    let mut text = format!("\n{name}: {} of the flow\n", percent(share));
    let letters = || ('A'..='Z').zip(&marked);
    for (letter, path) in letters() {
        let blocks = path_text(of, path, BLOCKS);
        let _ = writeln!(text, "  {letter} {:>8}  {}", percent(path.share), one_line(&blocks));
    }
    let blocks = of.blocks(function);
    let mut before = None;
    for line in profile.annotated(binary, function) {
        if before != Some(line.block) {
            before = Some(line.block);
            let block = &blocks[line.block as usize];
            let through: String = letters()
                .map(|(letter, path)| match path.path.blocks().contains(&line.block) {
                    true => letter,
                    false => '.',
                })
                .collect();
            let place = pinwise_present::block_text(block);
            let share = percent(line.share);
            let _ = writeln!(text, "{share:>9}  {through:MARKED$}  {}", one_line(&place));
        }
        let _ = writeln!(text, "{:>30x}  {}", line.address, line.text);
    }
    text
}
