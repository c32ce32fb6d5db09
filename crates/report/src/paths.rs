//! The paths of a program as a page. It draws the control-flow graphs of the hottest functions,
//! with their paths.
//!
//! A graph is one column of blocks, in the order of their addresses: as a disassembly has them.
//! Edges are arcs to the left of it. Each path has its own line to the right. The blocks of these
//! paths are there, and of others those with the most flow. Nothing on the page needs a script.

use crate::figure::Table;
use crate::heat_map::SHADES;
use crate::html_frame::ReportError;
use askama::Template;
use pinwise_paths::{PathBlock, ProfiledPath, RecordedProfile};
use pinwise_present::figures::{count, percent};
use pinwise_present::{
    HOT_PATH_COLUMNS, annotated_code, block_text, hot_path_rows, more_hot_paths, path_text,
    paths_totals, paths_verdict, share_interval,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Functions that are drawn.
const FUNCTIONS: usize = 5;
/// Paths that are drawn in each.
const PATHS: usize = 5;
/// Blocks that are drawn, unless the paths that are drawn have more.
const BLOCKS: usize = 48;
/// Blocks of a path that the table names.
const NAMED: usize = 24;
/// Where the blocks and the first path are, and what each takes, in the units of the drawing.
const LEFT: usize = 120;
const SHADE: usize = 26;
const BOX: usize = 300;
const LANE: usize = 30;
const ROW: usize = 26;

/// The page of a recording with this name: a complete HTML document that needs nothing else. It
/// lists `top` hot paths.
///
/// # Errors
/// The template could not be filled in.
pub fn paths_page(
    recording: &str,
    profile: &RecordedProfile,
    top: usize,
) -> Result<String, ReportError> {
    let hot = profile.hot();
    let shown = &hot[..hot.len().min(top)];
    let mut hottest = Table::new(HOT_PATH_COLUMNS);
    hot_path_rows(profile, shown, NAMED).into_iter().for_each(|row| hottest.row(row));
    let mut totals = Table::new(["what", "how much"]);
    for (label, value) in paths_totals(profile) {
        totals.row([label.to_owned(), value]);
    }
    let functions = profile.hottest_functions().into_iter().take(FUNCTIONS);
    let functions = functions.map(|(binary, it, share)| drawn(profile, binary, it, share));
    let page = PathsPage {
        recording,
        verdict: paths_verdict(profile),
        hottest,
        more: more_hot_paths(hot.len(), top),
        functions: functions.collect(),
        totals,
        version: env!("CARGO_PKG_VERSION"),
    };
    Ok(page.render()?)
}

#[derive(Template)]
#[template(path = "paths.html")]
struct PathsPage<'a> {
    recording: &'a str,
    verdict: Vec<String>,
    hottest: Table,
    /// How many hot paths are not in the table.
    more: Option<String>,
    functions: Vec<DrawnFunction>,
    totals: Table,
    version: &'static str,
}

struct DrawnFunction {
    name: String,
    says: String,
    /// An SVG element of our own making.
    drawing: String,
    paths: Table,
    /// Its instructions, with the paths through them.
    code: String,
}

fn drawn(profile: &RecordedProfile, binary: usize, function: u32, share: f64) -> DrawnFunction {
    let of = &profile.binaries[binary];
    let paths: Vec<&ProfiledPath> = profile
        .paths
        .iter()
        .filter(|path| path.binary == binary && path.path.function == function)
        .collect();
    let mut table = Table::new(["path", "flow", "90 % interval", "count", "blocks"]);
    for (letter, path) in ('A'..='Z').zip(paths.iter().take(PATHS)) {
        let apart = if path.group.is_some() { " (known with others only)" } else { "" };
        table.row([
            letter.to_string(),
            percent(path.share) + apart,
            share_interval(path).unwrap_or_default(),
            count(path.count.round() as u64),
            path_text(of, path, NAMED),
        ]);
    }
    let shares = profile.block_shares(binary, function);
    let blocks = of.blocks(function);
    let edges = of.edges(function);
    let shown = &paths[..paths.len().min(PATHS)];
    let held: f64 = shown.iter().map(|path| path.share).sum();
    let ran = shares.iter().filter(|share| **share > 0.0).count();
    let most = drawn_blocks(&shares, shown);
    DrawnFunction {
        name: of.name_of(function).to_owned(),
        says: format!(
            "{} of the flow, {} of it on the paths that are drawn. {ran} of {} blocks ran{}.",
            percent(share),
            percent((held / share).min(1.0)),
            blocks.len(),
            match ran > most.len() {
                true => format!(", {} are drawn", most.len()),
                false => String::new(),
            }
        ),
        drawing: drawing(&blocks, of.function_start(function), &edges, &shares, &most, shown),
        paths: table,
        code: annotated_code(profile, binary, function, NAMED),
    }
}

/// Those of the paths, and then those with the most flow, by address.
fn drawn_blocks(shares: &[f64], paths: &[&ProfiledPath]) -> Vec<usize> {
    let of_paths = paths.iter().flat_map(|path| path.path.blocks());
    let mut drawn: BTreeSet<usize> = of_paths.map(|&block| block as usize).collect();
    let mut others: Vec<usize> = (0..shares.len()).filter(|&it| shares[it] > 0.0).collect();
    others.sort_by(|&one, &other| shares[other].total_cmp(&shares[one]));
    others.retain(|it| !drawn.contains(it));
    drawn.extend(others.into_iter().take(BLOCKS.saturating_sub(drawn.len())));
    drawn.into_iter().collect()
}

/// Writing to a string cannot fail.
fn drawing(
    blocks: &[PathBlock<'_>],
    function_start: u64,
    edges: &[(u32, u32, bool)],
    shares: &[f64],
    most: &[usize],
    paths: &[&ProfiledPath],
) -> String {
    let rows: BTreeMap<u32, usize> =
        most.iter().enumerate().map(|(row, &block)| (block as u32, row)).collect();
    let middle = |row: usize| (row + 1) * ROW + ROW / 2;
    let (width, height) = (LEFT + BOX + LANE * (paths.len() + 1), (most.len() + 2) * ROW);
    let mut svg =
        format!(r#"<svg class="flow" viewBox="0 0 {width} {height}" aria-hidden="true">"#);
    // The longest arc has room.
    let apart = ((LEFT - 16) / most.len().max(1)).min(9);
    for (from, to, back) in edges {
        let (Some(&from), Some(&to)) = (rows.get(from), rows.get(to)) else { continue };
        let (start, end) = (middle(from), middle(to));
        if to == from + 1 {
            let x = LEFT + SHADE / 2;
            let _ = write!(svg, r#"<path class="edge" d="M{x} {start} V{end}"/>"#);
            continue;
        }
        let bulge = LEFT - 12 - apart * from.abs_diff(to);
        let class = if *back { "edge back" } else { "edge" };
        let curve = format!("M{LEFT} {start} C{bulge} {start} {bulge} {end} {LEFT} {end}");
        let _ = write!(svg, r#"<path class="{class}" d="{curve}"/>"#);
    }
    let highest = shares.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    for (row, &block) in most.iter().enumerate() {
        let shade = (shares[block] / highest * (SHADES as f64 - 1.0)).round() as usize;
        // Text stands beside the shade, so that it can be read on any.
        let (y, text) = (middle(row) - ROW / 2 + 2, middle(row) + 4);
        let (x, name) = (LEFT + SHADE + 8, escaped(&block_text(&blocks[block], function_start)));
        let (end, share) = (LEFT + BOX - 8, percent(shares[block]));
        let _ = write!(
            svg,
            r#"<rect class="s{shade}" x="{LEFT}" y="{y}" width="{SHADE}" height="{}"/>"#,
            ROW - 4
        );
        let _ = write!(svg, r#"<text x="{x}" y="{text}">{name}</text>"#);
        let _ = write!(svg, r#"<text class="soft" x="{end}" y="{text}" text-anchor="end">"#);
        let _ = write!(svg, "{share}</text>");
    }
    for (lane, path) in paths.iter().enumerate() {
        let x = LEFT + BOX + LANE * lane + LANE / 2;
        let letter = char::from(b'A' + lane as u8);
        let on: Vec<usize> =
            path.path.blocks().iter().filter_map(|block| rows.get(block)).copied().collect();
        let (Some(top), Some(bottom)) = (on.iter().min(), on.iter().max()) else { continue };
        // Above the first block: a long drawing has its first row out of sight.
        let above = middle(*top) - 9;
        let _ = write!(svg, r#"<text x="{x}" y="{above}" text-anchor="middle">{letter}</text>"#);
        let _ = write!(
            svg,
            r#"<line class="p{lane}" stroke-width="3" x1="{x}" x2="{x}" y1="{}" y2="{}"/>"#,
            middle(*top),
            middle(*bottom)
        );
        for row in on {
            let _ = write!(svg, r#"<circle class="p{lane}" cx="{x}" cy="{}" r="5"/>"#, middle(row));
        }
    }
    svg + "</svg>"
}

/// Names of files are others' text.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_paths::{Path, PathEnd};

    #[test]
    fn the_blocks_of_drawn_paths_are_drawn_however_rare_they_are() {
        let mut shares = vec![0.1; 2 * BLOCKS];
        shares[5] = 0.0;
        shares[90..92].fill(0.001);
        let path = ProfiledPath {
            binary: 0,
            path: Path::whole(0, &[90, 91], PathEnd::Exit),
            count: 1.0,
            share: 0.001,
            interval: None,
            group: None,
        };
        let drawn = drawn_blocks(&shares, &[&path]);
        assert_eq!(drawn.len(), BLOCKS);
        assert!(drawn.is_sorted() && drawn.contains(&90) && drawn.contains(&91));
        assert!(!drawn.contains(&5));
        let all = drawn_blocks(&shares[..10], &[]);
        assert_eq!(all, [0, 1, 2, 3, 4, 6, 7, 8, 9]);
    }
}
