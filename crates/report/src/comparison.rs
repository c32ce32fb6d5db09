//! A comparison as a page. It has each way's loss against the best known, the progress by
//! measurements, and which claims were true.
//!
//! The first chart is that of BlackBox scheduler, figures 7 and 9. The second shows what more
//! measurements bring, as its figure 8 does. The table after it lists the measurements that reach a
//! loss, as figure 14 of the statistical approach does.

use crate::characterization::Sharing;
use crate::chart::{Axis, Chart, Ink, Series, Shape};
use crate::figure::{Figure, Table};
use crate::html_frame::{HtmlFrame, ReportError};
use askama::Template;
use pinwise_campaign::{CampaignId, CampaignInfo, Purpose, Record, Store};
use pinwise_characterization::StoredCharacterization;
use pinwise_jobs::CompareQuestion;
use pinwise_measure::{ProgramNote, Setting};
use pinwise_placement::{Comparison, ComparisonRow, Loss, WayStanding};
use pinwise_present::figures::{self, Scale};
use pinwise_present::{
    Files, NextStep, Unfinished, caveat, claim_verdict, comparison_verdict, left_out, loses, lost,
    note, sentence, simulated, standing,
};
use pinwise_topology::Assignment;
use std::collections::BTreeMap;

/// Losses by which measurements are counted: those of figure 14, and one closer.
const REACHED: [f64; 4] = [0.10, 0.05, 0.025, 0.01];

/// In place of a figure that needs a best way.
const NOTHING_YET: &str = "Nothing is compared yet.";

/// The page of a comparison: a complete HTML document that needs nothing else. `searches` are the
/// records of the campaigns in which its ways searched, by name.
///
/// # Errors
/// The data could not be written, or the template not filled in.
pub fn comparison_page(
    info: &CampaignInfo,
    unfinished: Option<&Unfinished>,
    comparison: &Comparison,
    notes: &[ProgramNote],
    searches: &[(String, Vec<Record>)],
    files: Files<'_>,
    characterization: Option<&StoredCharacterization>,
) -> Result<String, ReportError> {
    let scale = Scale::new(&comparison.unit, comparison.typical());
    let document = ComparisonDocument {
        info,
        simulated: simulated(info),
        verdict: comparison_verdict(comparison),
        unfinished,
        caveat: caveat(comparison, notes),
        notes: notes.iter().map(|met| sentence(&note(met))).collect(),
        losses: losses(comparison, &scale),
        progress: progress(comparison, searches),
        reached: reached(comparison, searches),
        claims: claims(comparison, &scale),
        left_out: left_out_ways(comparison),
        sharing: characterization.map(|kept| Sharing::of(kept, files)),
        next: next(comparison, files),
        version: env!("CARGO_PKG_VERSION"),
    };
    let charts: Vec<&Chart> = [&document.losses, &document.progress]
        .into_iter()
        .filter_map(|figure| figure.chart.as_ref())
        .collect();
    let title = format!("{}: ways of placing, campaign {}", info.new.workload.name, info.id.0);
    HtmlFrame::page(title, document.render()?, &charts)
}

/// What the searches of a comparison measured, by name, as far as it is still in the store.
pub(crate) fn searches(store: &Store, compared: &CompareQuestion) -> Vec<(String, Vec<Record>)> {
    let mut searches: Vec<(CampaignId, String, Vec<Record>)> = Vec::new();
    for way in &compared.ways.contenders {
        let Some((id, records)) = way.campaign.and_then(|id| Some((id, store.records(id).ok()?)))
        else {
            continue;
        };
        // If two ways have the same search, the last one ran to its end.
        searches.retain(|(known, ..)| *known != id);
        searches.push((id, way.name.clone(), records));
    }
    searches.into_iter().map(|(_, name, records)| (name, records)).collect()
}

/// The ways that are not compared, and why.
fn left_out_ways(comparison: &Comparison) -> Vec<(&str, String)> {
    let ways = comparison.left_out.iter();
    ways.map(|way| (way.name.as_str(), left_out(&way.reason))).collect()
}

/// What the page shows.
#[derive(Template)]
#[template(path = "comparison.html")]
struct ComparisonDocument<'a> {
    info: &'a CampaignInfo,
    simulated: Option<String>,
    verdict: String,
    unfinished: Option<&'a Unfinished>,
    caveat: Option<String>,
    notes: Vec<String>,
    losses: Figure,
    progress: Figure,
    reached: Table,
    claims: Table,
    left_out: Vec<(&'a str, String)>,
    sharing: Option<Sharing>,
    next: Vec<NextStep>,
    version: &'static str,
}

fn losses(comparison: &Comparison, scale: &Scale) -> Figure {
    let title = match comparison.contradiction() {
        Some(_) => "Loss against what led before",
        None => "Loss against the best known",
    };
    let rows = &comparison.rows;
    if rows.is_empty() {
        return Figure::absent(title, NOTHING_YET);
    }
    let names = rows.iter().rev().map(|row| row.name.clone()).collect();
    let y = Axis { names, ..Axis::default() };
    let mut chart = Chart::new("chart-losses", Axis::new("loss, %"), y);
    chart.bars_along_x = true;
    let mut table =
        Table::new(["", "Loss", "Interval", "", "Performance", "Windows", "Measurements spent"]);
    for (index, row) in rows.iter().enumerate() {
        let Loss { estimate, low, high } = row.loss;
        let at = (rows.len() - 1 - index) as f64;
        // The bar of a loss that may be none begins at the edge.
        let told = low > 0.0 || matches!(row.standing, WayStanding::Best | WayStanding::Better);
        let low = if told { low } else { f64::NEG_INFINITY };
        chart = chart.bar(ink(row), at, (100.0 * low, 100.0 * estimate, 100.0 * high));
        let best = row.standing == WayStanding::Best;
        table.row([
            row.name.clone(),
            loses(&row.loss),
            if best { String::new() } else { lost(&row.loss) },
            standing(comparison, row).to_owned(),
            row.performance.show(scale),
            figures::count(row.performance.n as u64),
            if row.spent > 0 { figures::count(row.spent) } else { "none".to_owned() },
        ]);
    }
    let points = |wanted: Ink| {
        let rows = rows.iter().enumerate().filter(move |(_, row)| ink(row) == wanted);
        rows.map(|(index, row)| {
            (100.0 * row.loss.estimate, (comparison.rows.len() - 1 - index) as f64)
        })
        .collect::<Vec<_>>()
    };
    chart = chart
        .series(Series::new("searched for", Shape::Dots, Ink::Best, points(Ink::Best)))
        .series(Series::new(
            "left to the system or to chance",
            Shape::Rings,
            Ink::Baseline,
            points(Ink::Baseline),
        ));
    let worst = rows.iter().max_by(|a, b| a.loss.estimate.total_cmp(&b.loss.estimate));
    Figure {
        title,
        says: match worst {
            Some(worst) if !comparison.is_idle() => {
                format!(
                    "The largest loss is that of {}: {}.",
                    worst.name,
                    figures::percent(worst.loss.estimate)
                )
            }
            _ => {
                "The reference got nothing done, so there are no losses relative to it.".to_owned()
            }
        },
        reading: "Everything was measured side by side, in random order, in fresh windows. The bar \
            is the interval of the loss. A bar that begins at the edge may mean no loss at all. \
            Further to the left is better. The way that all others are compared with is at 0.",
        chart: Some(chart).filter(|_| !comparison.is_idle()),
        table,
    }
}

fn ink(row: &ComparisonRow) -> Ink {
    if row.campaign.is_some() { Ink::Best } else { Ink::Baseline }
}

/// How the best so far changed in a search: after how many measurements, and what the new best
/// loses. The best so far is what has the highest mean by then. What it loses comes from its later
/// windows, if it had any. Those by which it came to lead flatter it.
fn leads(records: &[Record], best: f64) -> Vec<(u64, f64)> {
    let mut windows: BTreeMap<&Assignment, Vec<(u64, f64)>> = BTreeMap::new();
    let measured =
        |record: &'_ Record| record.outcome.as_ref().ok().map(|measured| measured.performance);
    for record in records {
        if let (Setting::Pinned(assignment), Some(performance)) =
            (&record.trial.setting, measured(record))
        {
            windows.entry(assignment).or_default().push((record.number, performance));
        }
    }
    let mean = |values: &[(u64, f64)]| {
        values.iter().map(|(_, value)| value).sum::<f64>() / values.len() as f64
    };
    let until = |assignment: &Assignment, number: u64| {
        let own = &windows[assignment];
        own.split_at(own.partition_point(|(at, _)| *at <= number))
    };
    let mut leads = Vec::new();
    let mut leader: Option<(&Assignment, f64)> = None;
    for record in records {
        let (Setting::Pinned(assignment), Some(_)) = (&record.trial.setting, measured(record))
        else {
            continue;
        };
        let searching =
            matches!(record.trial.purpose, Purpose::Sample | Purpose::Steered | Purpose::Climb);
        let (so_far, later) = until(assignment, record.number);
        let height = mean(so_far);
        match &mut leader {
            Some((led, top)) if *led == assignment => *top = height,
            Some((_, top)) if height <= *top => {}
            _ if !searching => {}
            leader => {
                *leader = Some((assignment, height));
                let judged = if later.is_empty() { height } else { mean(later) };
                leads.push((record.number + 1, 1.0 - judged / best));
            }
        }
    }
    leads
}

fn progress(comparison: &Comparison, searches: &[(String, Vec<Record>)]) -> Figure {
    const TITLE: &str = "Loss of the best so far";
    let Some(best) = comparison.best() else { return Figure::absent(TITLE, NOTHING_YET) };
    if searches.is_empty() {
        return Figure::absent(
            TITLE,
            "The campaigns of the searches are not in the store any more.",
        );
    }
    let looks = [
        (Shape::Dashes, Ink::Baseline),
        (Shape::Dashes, Ink::Data),
        (Shape::Line, Ink::Bound),
        (Shape::Line, Ink::Best),
    ];
    let mut chart =
        Chart::new("chart-progress", Axis::new("measurements made"), Axis::new("loss, %"));
    let mut table = Table::new(["", "Measurements", "Loss of the best so far"]);
    let mut says = Vec::new();
    for (index, (name, records)) in searches.iter().enumerate() {
        let leads = leads(records, best.performance.mean);
        let mut steps: Vec<(f64, f64)> = Vec::new();
        for &(number, loss) in &leads {
            // A broken line has no steps.
            steps.extend(steps.last().map(|&(_, before)| (number as f64, before)));
            steps.push((number as f64, 100.0 * loss));
        }
        for (number, loss) in &leads {
            table.row([name.clone(), figures::count(*number), figures::percent(*loss)]);
        }
        if let Some((number, loss)) = leads.last() {
            says.push(format!(
                "{name} {} from {} on",
                figures::percent(*loss),
                figures::count(*number)
            ));
            steps.push((records.len() as f64, 100.0 * loss));
        }
        // One line style for each search; the last one is the strongest.
        let (shape, ink) =
            looks[(index + looks.len() - searches.len().min(looks.len())) % looks.len()];
        chart = chart.series(Series::new(name.clone(), shape, ink, steps));
    }
    Figure {
        title: TITLE,
        says: format!("At last: {}.", says.join("; ")),
        reading: "The best so far is judged by its later windows where it had any. Fresh windows \
            at the end of a search count as measurements. A search that profiles has no best \
            before its profile is made.",
        chart: Some(chart),
        table,
    }
}

/// After how many measurements each search's best so far was within a loss for good.
fn reached(comparison: &Comparison, searches: &[(String, Vec<Record>)]) -> Table {
    let mut table = Table { head: vec![String::new()], rows: Vec::new() };
    table.head.extend(REACHED.map(|loss| format!("Within {}", figures::percent(loss))));
    let Some(best) = comparison.best() else { return table };
    for (name, records) in searches {
        let leads = leads(records, best.performance.mean);
        let by = |within: f64| {
            let beyond =
                leads.iter().rposition(|(_, loss)| *loss > within).map_or(0, |last| last + 1);
            leads
                .get(beyond)
                .map_or("not reached".to_owned(), |(number, _)| figures::count(*number))
        };
        table.rows.push(std::iter::once(name.clone()).chain(REACHED.map(by)).collect());
    }
    table
}

fn claims(comparison: &Comparison, scale: &Scale) -> Table {
    let mut table =
        Table::new(["", "Nothing is better than", "Its own is within", "Certificate", "True?"]);
    for row in &comparison.rows {
        let Some(judged) = row.claim else { continue };
        table.row([
            row.name.clone(),
            scale.show(judged.claim.bound),
            figures::percent(judged.claim.gap),
            if judged.certified { "yes" } else { "no" }.to_owned(),
            claim_verdict(&judged),
        ]);
    }
    table
}

fn next(comparison: &Comparison, files: Files<'_>) -> Vec<NextStep> {
    let campaign = comparison.best().and_then(|best| best.campaign);
    let flag = files.flag();
    let show = campaign.map(|campaign| NextStep {
        what: "show what the search that found the best announced",
        command: format!("pinwise campaign show {}{flag}", campaign.0),
    });
    show.into_iter().collect()
}
