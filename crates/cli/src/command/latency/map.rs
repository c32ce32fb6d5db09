//! The matrix, drawn: numbers where they fit, else one digit for each pair, else nothing; shaded where colour is allowed.
//!
//! Rows and columns are in the order of the implied tree, so that groups are blocks along the diagonal.

use super::Document;
use pinwise_topology::{CpuId, LatencyUnit, Oddity};
use std::fmt::Write as _;

/// Backgrounds from the nearest to the farthest, of the 256 colours of terminals; the text on them is white.
const SHADES: [u8; 8] = [22, 28, 64, 100, 136, 130, 124, 88];

/// Draws the matrix of `document` in at most `width` columns, and says what its signs mean where they are no latencies; `None` where
/// it does not fit. Every line ends in a newline.
pub(super) fn map(document: &Document, width: usize, colour: bool) -> Option<(String, &'static str)> {
    let order = order(document);
    let label = order.iter().map(|&index| document.contexts[index].0.to_string().len()).max()?;
    let cells: Vec<Vec<String>> =
        order.iter().map(|&from| order.iter().map(|&to| sign(document, from, to)).collect()).collect();
    let cell = cells.iter().flatten().map(String::len).max().unwrap_or(1).max(label) + 1;
    let numbers = 2 + label + order.len() * cell <= width;
    // A digit has to tell levels apart.
    if !numbers && (document.levels.len() > 9 || 3 + label + order.len() > width) {
        return None;
    }
    let shade = |from: usize, to: usize, text: &str| match document.matrix[from][to].filter(|_| colour) {
        Some(value) => format!("\x1b[97;48;5;{}m{text}\x1b[0m", SHADES[step(document, value)]),
        None => text.to_owned(),
    };
    let mut text = String::new();
    if numbers {
        let _ = write!(text, "  {:label$}", "");
        order.iter().for_each(|&index| {
            let _ = write!(text, "{:>cell$}", document.contexts[index].0);
        });
        text.push('\n');
    }
    for (&from, row) in order.iter().zip(&cells) {
        let _ = write!(text, "  {:>label$}", document.contexts[from].0);
        text.push_str(if numbers { "" } else { " " });
        for (&to, sign) in order.iter().zip(row) {
            let known = document.matrix[from][to].or(document.matrix[to][from]).is_some();
            let plain = match (numbers, from != to && known) {
                (true, _) => format!("{sign:>cell$}"),
                (false, true) => level(document, from, to).to_string(),
                (false, false) => sign.clone(),
            };
            text += &shade(from, to, &plain);
        }
        text.push('\n');
    }
    let legend = if numbers {
        ""
    } else {
        "\na digit is the level that brings the two contexts together; --json has the latencies\n"
    };
    Some((text, legend))
}

/// A latency with three digits: `8.12`, `57.2`, `338`; whole cycles.
pub(super) fn figure(unit: LatencyUnit, value: f64) -> String {
    match value {
        value if unit == LatencyUnit::Cycles => format!("{value:.0}"),
        value if value < 9.995 => format!("{value:.2}"),
        value if value < 99.95 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    }
}

/// What stands for a direction: its latency, or a sign for none.
fn sign(document: &Document, from: usize, to: usize) -> String {
    let ends = (document.contexts[from], document.contexts[to]);
    let impossible =
        document.oddities.iter().any(|odd| matches!(odd, Oddity::Impossible { from, to, .. } if (*from, *to) == ends));
    match document.matrix[from][to] {
        _ if from == to => "-".into(),
        _ if impossible => "!".into(),
        Some(value) => figure(document.unit, value),
        None => ".".into(),
    }
}

/// Positions of the contexts, group by group.
fn order(document: &Document) -> Vec<usize> {
    let path = |cpu: CpuId| -> Vec<Option<usize>> {
        let levels = document.levels.iter().rev();
        levels.map(|level| level.groups.iter().position(|group| group.contains(cpu))).collect()
    };
    let mut order: Vec<usize> = (0..document.contexts.len()).collect();
    order.sort_by_cached_key(|&index| (path(document.contexts[index]), document.contexts[index]));
    order
}

/// The level that brings two contexts together, from 1.
fn level(document: &Document, a: usize, b: usize) -> usize {
    let (a, b) = (document.contexts[a], document.contexts[b]);
    let together = |level: &super::Level| level.groups.iter().any(|group| group.contains(a) && group.contains(b));
    document.levels.iter().position(together).map_or(document.levels.len(), |index| index + 1)
}

/// The shade of a latency, on a logarithmic scale from the lowest to the highest that a level has.
fn step(document: &Document, value: f64) -> usize {
    let of_levels = || document.levels.iter().filter_map(|level| level.latency);
    let low = of_levels().map(|latency| latency.low).fold(f64::INFINITY, f64::min);
    let high = of_levels().map(|latency| latency.high).fold(0.0, f64::max);
    // Within 5 % there is nothing to see.
    let place = (value / low).ln() / (high / low).max(1.05).ln();
    // A spoilt value may lie outside.
    (place * SHADES.len() as f64).clamp(0.0, SHADES.len() as f64 - 1.0) as usize
}
