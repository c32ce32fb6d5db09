//! The matrix, drawn: numbers where they fit, else one digit for each pair, else nothing; shaded
//! where colour is allowed.
//!
//! Rows and columns are in the order of the implied tree, so that groups are blocks along the
//! diagonal.

use super::document::LatencyJson;
use pinwise_present::figures;
use pinwise_topology::{LatencyLevels, Oddity};
use std::fmt::Write as _;

/// Backgrounds from the nearest to the farthest, of the 256 colours of terminals; the text on them
/// is white.
const SHADES: [u8; 8] = [22, 28, 64, 100, 136, 130, 124, 88];

/// Draws the matrix of `document` in at most `width` columns. If its signs are no latencies, it
/// says what they mean. `None` if it does not fit. Every line ends in a newline.
pub(super) fn map(
    document: &LatencyJson,
    levels: &LatencyLevels,
    width: usize,
    colour: bool,
) -> Option<(String, &'static str)> {
    let order = levels.order(&document.contexts);
    let label = order.iter().map(|&index| document.contexts[index].0.to_string().len()).max()?;
    let cells: Vec<Vec<String>> = order
        .iter()
        .map(|&from| order.iter().map(|&to| sign(document, from, to)).collect())
        .collect();
    let cell = cells.iter().flatten().map(String::len).max().unwrap_or(1).max(label) + 1;
    let numbers = 2 + label + order.len() * cell <= width;
    // A digit has to tell levels apart.
    if !numbers && (document.levels.len() > 9 || 3 + label + order.len() > width) {
        return None;
    }
    let shaded =
        |from: usize, to: usize, text: &str| match document.matrix[from][to].filter(|_| colour) {
            Some(value) => format!("\x1b[97;48;5;{}m{text}\x1b[0m", SHADES[shade(levels, value)]),
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
                (false, true) => (levels.together(document.contexts[from], document.contexts[to])
                    + 1)
                .to_string(),
                (false, false) => sign.clone(),
            };
            text += &shaded(from, to, &plain);
        }
        text.push('\n');
    }
    let legend = if numbers {
        ""
    } else {
        "\na digit is the level that brings two contexts together; see the latencies with --json\n"
    };
    Some((text, legend))
}

/// What stands for a direction: its latency, or a sign for none.
fn sign(document: &LatencyJson, from: usize, to: usize) -> String {
    let ends = (document.contexts[from], document.contexts[to]);
    let impossible = document
        .oddities
        .iter()
        .any(|odd| matches!(odd, Oddity::Impossible { from, to, .. } if (*from, *to) == ends));
    match document.matrix[from][to] {
        _ if from == to => "-".into(),
        _ if impossible => "!".into(),
        Some(value) => figures::latency(document.unit, value),
        None => ".".into(),
    }
}

fn shade(levels: &LatencyLevels, latency: f64) -> usize {
    (levels.place(latency) * SHADES.len() as f64).clamp(0.0, SHADES.len() as f64 - 1.0) as usize
}
