//! The answer of `pinwise latency` as text. It has the matrix, the levels, how they compare, how
//! far measurements spread, and what to doubt.

use super::document::{ImpliedLevel, LatencyJson, Pair};
use super::map::map;
use comfy_table::{CellAlignment, Table, presets};
use pinwise_hardware::Quantiles;
use pinwise_present::figures::{self, percent};
use pinwise_present::{LatencyFindings, domain_kinds, one_line, texts};
use pinwise_topology::{CpuSet, LatencyUnit};
use std::fmt::Write as _;
use std::time::Duration;

/// Directions that are shown one by one.
const SHOWN: usize = 12;

pub(super) fn text(
    document: &LatencyJson,
    said: &LatencyFindings,
    width: usize,
    colour: bool,
) -> String {
    let unit = document.unit;
    let n = document.contexts.len();
    let mut text = format!("{}\n", said.verdict());
    if let Some(unfinished) = &said.unfinished {
        let _ = writeln!(text, "{}", one_line(&unfinished.text));
    }
    let _ = write!(text, "{}: {n} contexts", one_line(&document.name));
    if let Some(seconds) = document.seconds {
        let _ = write!(
            text,
            ", measured in {}",
            figures::duration(Duration::from_secs_f64(seconds.clamp(0.0, 1e9)))
        );
    }
    let _ = writeln!(text, "\nlatency of a cache line, one way, in {unit}; rows write first\n");
    match map(document, &said.levels, width, colour) {
        Some((map, legend)) => {
            text += &map;
            text += legend;
        }
        None => {
            let _ = writeln!(
                text,
                "  {n} x {n} are too many for {width} columns; see all of them with --json"
            );
        }
    }
    text += "\nlevels that the latencies imply, nearest first\n";
    text += &levels(document);
    for note in said.notes() {
        let _ = writeln!(text, "{note}");
    }
    let compared = said.compared();
    if !compared.is_empty() {
        text += "\ncompared with what is declared\n";
    }
    for line in compared {
        let _ = writeln!(text, "  {line}");
    }
    if !document.pairs.is_empty() {
        text += &spread(&document.pairs);
    }
    if let Some(ghz) = document.tsc_ghz.filter(|_| unit == LatencyUnit::Ns) {
        let _ = writeln!(text, "\n1 ns is {ghz:.2} cycles of the time stamp counter");
    }
    for warning in texts(&document.warnings) {
        let _ = writeln!(text, "\nwarning: {}", one_line(&warning));
    }
    text
}

/// A table without lines, indented, numbers to the right.
fn table(titles: &[&str], left: &[usize], rows: Vec<Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(titles);
    table.add_rows(rows);
    for (index, column) in table.column_iter_mut().enumerate() {
        let right = !left.contains(&index);
        column.set_cell_alignment(if right { CellAlignment::Right } else { CellAlignment::Left });
    }
    table.trim_fmt().lines().fold(String::new(), |text, line| text + " " + line.trim_end() + "\n")
}

fn levels(document: &LatencyJson) -> String {
    let show = |value| figures::latency(document.unit, value);
    let rows = (1..).zip(&document.levels).map(|(number, level)| {
        let number: usize = number;
        let latency = level.latency.map_or(["?".into(), "?".into(), "0".into()], |latency| {
            let range = format!("{} to {}", show(latency.low), show(latency.high));
            [show(latency.median), range, latency.pairs.to_string()]
        });
        let [median, range, pairs] = latency;
        let declared = match (document.agrees, level.declared.is_empty()) {
            (None, _) => String::new(),
            (Some(_), false) => domain_kinds(&level.declared),
            (Some(_), true) if level.difference.is_some() => "no such level".into(),
            (Some(_), true) => String::new(),
        };
        vec![number.to_string(), size(level), median, range, pairs, groups(level), declared]
    });
    let mut titles = vec!["level", "contexts", "median", "range", "pairs", "groups", "declared as"];
    let mut rows: Vec<Vec<String>> = rows.collect();
    if rows.iter().all(|row| row[6].is_empty()) {
        titles.truncate(6);
        rows.iter_mut().for_each(|row| row.truncate(6));
    }
    table(&titles, &[5, 6], rows)
}

/// `48 x 2`
fn size(level: &ImpliedLevel) -> String {
    match level.size {
        Some(size) => format!("{} x {size}", level.groups.len()),
        None => {
            let sizes = level.groups.iter().map(CpuSet::len);
            let (low, high) =
                sizes.fold((usize::MAX, 0), |(low, high), size| (low.min(size), high.max(size)));
            format!("{} x {low} to {high}", level.groups.len())
        }
    }
}

/// The first groups, as far as they can be read.
fn groups(level: &ImpliedLevel) -> String {
    let mut text = String::new();
    for (index, group) in level.groups.iter().enumerate() {
        let group = group.to_string();
        if index > 0 && text.len() + group.len() > 30 {
            return text + "  …";
        }
        text += if index > 0 { "  " } else { "" };
        match group.char_indices().nth(40) {
            Some((cut, _)) => text += &format!("{}…", &group[..cut]),
            None => text += &group,
        }
    }
    text
}

/// How far the batches of a direction lie apart, and its lines.
fn spread(pairs: &[Pair]) -> String {
    let mut text = String::from("\ndistribution over batches of round trips, ns one way\n");
    let show = |value| figures::latency(LatencyUnit::Ns, value);
    if pairs.len() <= SHOWN {
        let rows = pairs.iter().map(|pair| {
            let Quantiles { q05, q25, median, q75, q95 } = pair.latency;
            let lines = match (pair.lines.first(), pair.lines.last()) {
                (Some(low), Some(high)) => format!("{} to {}", show(*low), show(*high)),
                _ => "?".into(),
            };
            let ends = [pair.from.0.to_string(), pair.to.0.to_string()];
            let quantiles = [q05, q25, median, q75, q95].map(show);
            let rest = [
                pair.batches.to_string(),
                format!("{lines} ({})", pair.lines.len()),
                percent(pair.spread),
            ];
            ends.into_iter().chain(quantiles).chain(rest).collect()
        });
        let titles = [
            "from",
            "to",
            "5 %",
            "25 %",
            "median",
            "75 %",
            "95 %",
            "batches",
            "medians of lines",
            "IQR in a line",
        ];
        return text + &table(&titles, &[], rows.collect());
    }
    let mut sorted: Vec<&Pair> = pairs.iter().collect();
    sorted.sort_by(|a, b| a.spread.total_cmp(&b.spread));
    let (middle, widest) = (sorted[sorted.len() / 2], sorted[sorted.len() - 1]);
    let batches: usize = pairs.iter().map(|pair| pair.batches).sum();
    let _ = writeln!(
        text,
        "  {} batches in {} directions. On one line the middle half of them spreads by {} of its \
         median.\n  In the worst direction ({} to {}) it spreads by {}. See each direction with \
         --json",
        figures::count(batches as u64),
        pairs.len(),
        percent(middle.spread),
        widest.from.0,
        widest.to.0,
        percent(widest.spread)
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_topology::CpuId;

    fn shown(group: CpuSet) -> String {
        groups(&ImpliedLevel {
            size: Some(group.len()),
            groups: vec![group],
            latency: None,
            classes: Vec::new(),
            contradictions: Vec::new(),
            declared: Vec::new(),
            difference: None,
        })
    }

    #[test]
    fn a_group_of_256_contexts_is_a_range_or_cut() {
        assert_eq!(shown((0..256).map(CpuId).collect()), "0-255");
        let even = shown((0..512).step_by(2).map(CpuId).collect());
        assert_eq!(even, "0,2,4,6,8,10,12,14,16,18,20,22,24,26,28,…");
    }
}
