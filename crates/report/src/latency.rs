//! Core-to-core latencies as a page: the heat map, the levels, and the findings about them.
//!
//! Up to [`NUMBERS`] contexts the map is a table of numbers on shades. Beyond that it is a drawing.
//! Its squares have the shade of their latency, or beyond [`OWN`] contexts that of their level's
//! median. Neighbouring squares of one shade are drawn as one. Nothing on the page needs a script.

use crate::figure::Table;
use crate::heat_map::{HeatCell, HeatMap, SHADES};
use crate::html_frame::ReportError;
use askama::Template;
use pinwise_present::{LatencyFindings, Unfinished, domain_kinds, figures};
use pinwise_topology::{LatencyComparison, LatencyLevels, LatencyMatrix};
use std::fmt::Write as _;

/// The most contexts whose numbers can be read.
const NUMBERS: usize = 24;
/// The most contexts whose squares are shaded one by one.
const OWN: usize = 96;
/// Groups of a level that are listed.
const GROUPS: usize = 8;

/// The page of the latencies of the machine `name`: a complete HTML document. It holds what
/// follows from them, and `warnings` about them.
///
/// # Errors
/// The template could not be filled in.
pub fn latency_page(
    name: &str,
    findings: &LatencyFindings,
    warnings: &[String],
) -> Result<String, ReportError> {
    let LatencyFindings { matrix, levels, .. } = findings;
    let order = levels.order(matrix.contexts());
    let numbers = (order.len() <= NUMBERS).then(|| numbers(matrix, levels, &order));
    let drawing = if numbers.is_none() { drawing(matrix, levels, &order) } else { String::new() };
    let scale = (0..SHADES).map(|shade| format!("s{shade}")).collect();
    let warnings = warnings.iter().map(|warning| format!("Warning: {warning}"));
    let page = LatencyPage {
        name,
        unit: matrix.unit().to_string(),
        contexts: order.len(),
        verdict: findings.verdict(),
        unfinished: findings.unfinished.as_ref(),
        numbers,
        drawing,
        own: order.len() <= OWN,
        scale,
        levels: table(matrix, levels, findings.comparison.as_ref()),
        sentences: findings
            .notes()
            .into_iter()
            .chain(findings.compared())
            .chain(warnings)
            .collect(),
        version: env!("CARGO_PKG_VERSION"),
    };
    Ok(page.render()?)
}

#[derive(Template)]
#[template(path = "latency.html")]
struct LatencyPage<'a> {
    name: &'a str,
    unit: String,
    contexts: usize,
    verdict: String,
    unfinished: Option<&'a Unfinished>,
    numbers: Option<HeatMap>,
    /// An SVG element of our own making; empty if there are numbers.
    drawing: String,
    own: bool,
    scale: Vec<String>,
    levels: Table,
    sentences: Vec<String>,
    version: &'static str,
}

fn shade(levels: &LatencyLevels, latency: f64) -> usize {
    (levels.place(latency) * SHADES as f64).clamp(0.0, SHADES as f64 - 1.0) as usize
}

fn numbers(matrix: &LatencyMatrix, levels: &LatencyLevels, order: &[usize]) -> HeatMap {
    let name = |index: usize| matrix.contexts()[index].0.to_string();
    let cell = |from: usize, to: usize| match matrix.get(from, to) {
        Some(value) => HeatCell {
            shade: Some(shade(levels, value)),
            text: figures::latency(matrix.unit(), value),
        },
        None => HeatCell { shade: None, text: if from == to { "·".into() } else { "?".into() } },
    };
    let rows =
        order.iter().map(|&from| (name(from), order.iter().map(|&to| cell(from, to)).collect()));
    HeatMap {
        label: "latencies",
        corner: "from \\ to",
        head: order.iter().map(|&index| name(index)).collect(),
        rows: rows.collect(),
    }
}

/// The map as squares; runs of one shade in a row are one.
fn drawing(matrix: &LatencyMatrix, levels: &LatencyLevels, order: &[usize]) -> String {
    let n = order.len();
    let contexts = matrix.contexts();
    let pairs = matrix.pairs();
    let shade_of = |from: usize, to: usize| -> Option<usize> {
        // One direction is enough to see the other.
        let own = matrix.get(from, to).or(pairs.get(from, to)).filter(|_| from != to)?;
        let level = levels.levels.get(levels.together(contexts[from], contexts[to]));
        let median = level.and_then(|level| level.latency).map_or(own, |latency| latency.median);
        Some(shade(levels, if n <= OWN { own } else { median }))
    };
    let mut svg = format!(
        r#"<svg class="map" viewBox="0 0 {n} {n}" shape-rendering="crispEdges" aria-hidden="true">"#
    );
    for (y, &from) in order.iter().enumerate() {
        let shades: Vec<Option<usize>> = order.iter().map(|&to| shade_of(from, to)).collect();
        let mut x = 0;
        for run in shades.chunk_by(|a, b| a == b) {
            if let Some(shade) = run[0] {
                // Writing to a string cannot fail.
                let _ = write!(
                    svg,
                    r#"<rect class="s{shade}" x="{x}" y="{y}" width="{}" height="1"/>"#,
                    run.len()
                );
            }
            x += run.len();
        }
    }
    svg + "</svg>"
}

fn table(
    matrix: &LatencyMatrix,
    levels: &LatencyLevels,
    comparison: Option<&LatencyComparison>,
) -> Table {
    let mut table = Table::new([
        "Level",
        "Groups",
        "Contexts in each",
        "Median",
        "Range",
        "Pairs",
        "Declared as",
        "The groups",
    ]);
    for (index, level) in levels.levels.iter().enumerate() {
        let show = |value| figures::latency(matrix.unit(), value);
        let unit = matrix.unit();
        let unknown = || ("?".to_owned(), "?".to_owned(), "0".to_owned());
        let (median, range, pairs) = level.latency.map_or_else(unknown, |latency| {
            let range = format!("{} to {} {unit}", show(latency.low), show(latency.high));
            (
                format!("{} {unit}", show(latency.median)),
                range,
                figures::count(latency.pairs as u64),
            )
        });
        let kinds = comparison.and_then(|comparison| comparison.levels.get(index));
        let kinds = match kinds.map(|level| level.declared.as_slice()) {
            None => String::new(),
            Some([]) => "no such level".into(),
            Some(kinds) => domain_kinds(kinds),
        };
        let size = level.size().map_or("unequal".into(), |size| size.to_string());
        let count = level.groups.len();
        let groups: Vec<String> =
            level.groups.iter().take(GROUPS).map(ToString::to_string).collect();
        let more =
            if count > GROUPS { format!(" and {} more", count - GROUPS) } else { String::new() };
        let groups = groups.join(" | ") + &more;
        table.row([
            (index + 1).to_string(),
            count.to_string(),
            size,
            median,
            range,
            pairs,
            kinds,
            groups,
        ]);
    }
    table
}
