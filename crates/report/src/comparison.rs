//! A comparison as a page: what every way of placing loses against the best known, and what each measurement bought.
//!
//! The first chart is that of BlackBox scheduler, figures 7 and 9; the second shows by what number of measurements a loss is
//! reached, as its figure 8 and figure 14 of the statistical approach do.

use crate::chart::{Axis, Chart, Ink, Series, Shape};
use crate::figure::{Figure, Table};
use crate::page::{ReportError, Shell};
use crate::question::{Files, is_simulated};
use askama::Template;
use pinwise_campaign::{CampaignInfo, Purpose, Record};
use pinwise_placement::{Comparison, Row};
use pinwise_testbed::Setting;
use pinwise_testbed::figures::{self, Scale};

/// The page of a comparison: a complete HTML document that needs nothing else. `searches` are the records of the campaigns in which its
/// ways searched, by name.
///
/// # Errors
/// The data could not be written, or the template not filled in.
pub fn comparison_page(
    info: &CampaignInfo,
    comparison: &Comparison,
    searches: &[(String, Vec<Record>)],
    files: Files<'_>,
) -> Result<String, ReportError> {
    let scale = Scale::new(&comparison.unit, comparison.best().map_or(1.0, |best| best.performance.mean));
    let document = ComparisonDocument {
        info,
        simulated: is_simulated(&info.new.question),
        verdict: verdict(comparison, &scale),
        losses: losses(comparison, &scale),
        progress: progress(comparison, searches),
        claims: claims(comparison, &scale),
        left_out: &comparison.left_out,
        next: next(comparison, files),
        version: env!("CARGO_PKG_VERSION"),
    };
    let charts: Vec<&Chart> =
        [&document.losses, &document.progress].into_iter().filter_map(|figure| figure.chart.as_ref()).collect();
    let title = format!("{}: ways of placing, campaign {}", info.new.workload.name, info.id.0);
    Shell::page(title, document.render()?, &charts)
}

/// What there is to read.
#[derive(Template)]
#[template(path = "comparison.html")]
struct ComparisonDocument<'a> {
    info: &'a CampaignInfo,
    simulated: bool,
    verdict: String,
    losses: Figure,
    progress: Figure,
    claims: Table,
    left_out: &'a [(String, String)],
    next: Vec<(String, &'static str)>,
    version: &'static str,
}

fn verdict(comparison: &Comparison, scale: &Scale) -> String {
    let Some(best) = comparison.best() else { return "Nothing could be measured.".to_owned() };
    let unpinned = comparison.rows.iter().find(|row| row.assignment.is_none() && row.campaign.is_none());
    let against = unpinned.map_or(String::new(), |row| {
        format!(" The program {} loses {} against it.", row.name, figures::percent(row.loss.0))
    });
    format!("The best known assignment reaches {}; {} found it.{against}", best.performance.show(scale), best.name)
}

fn losses(comparison: &Comparison, scale: &Scale) -> Figure {
    const TITLE: &str = "Loss against the best known assignment";
    let rows = &comparison.rows;
    if rows.is_empty() {
        return Figure::absent(TITLE, "Nothing could be measured.");
    }
    let names = rows.iter().rev().map(|row| row.name.clone()).collect();
    let y = Axis { names, ..Axis::default() };
    let mut chart = Chart::new("chart-losses", Axis::new("loss, %"), y);
    chart.bars_along_x = true;
    let mut table = Table::new(["", "Loss", "Interval", "Performance", "Windows", "Measurements spent"]);
    for (index, row) in rows.iter().enumerate() {
        let (loss, low, high) = row.loss;
        let at = (rows.len() - 1 - index) as f64;
        chart = chart.bar(ink(row), at, (100.0 * low, 100.0 * loss, 100.0 * high));
        table.row([
            row.name.clone(),
            figures::percent(loss),
            format!("{} to {}", figures::percent(low), figures::percent(high)),
            scale.show(row.performance.mean),
            figures::count(row.performance.n as u64),
            if row.spent > 0 { figures::count(row.spent) } else { "none".to_owned() },
        ]);
    }
    let points = |wanted: Ink| {
        let rows = rows.iter().enumerate().filter(move |(_, row)| ink(row) == wanted);
        rows.map(|(index, row)| (100.0 * row.loss.0, (comparison.rows.len() - 1 - index) as f64)).collect::<Vec<_>>()
    };
    chart = chart.series(Series::new("searched for", Shape::Dots, Ink::Best, points(Ink::Best))).series(Series::new(
        "left to the system or to chance",
        Shape::Rings,
        Ink::Baseline,
        points(Ink::Baseline),
    ));
    let worst = rows.iter().max_by(|a, b| a.loss.0.total_cmp(&b.loss.0));
    Figure {
        title: TITLE,
        says: worst.map_or(String::new(), |worst| {
            format!("The largest loss is that of {}: {}.", worst.name, figures::percent(worst.loss.0))
        }),
        reading: "Everything was measured again side by side, in random order; the bar is the interval of the loss. Further to the \
                  left is better; the best known is at 0.",
        chart: Some(chart),
        table,
    }
}

fn ink(row: &Row) -> Ink {
    if row.campaign.is_some() { Ink::Best } else { Ink::Baseline }
}

fn progress(comparison: &Comparison, searches: &[(String, Vec<Record>)]) -> Figure {
    const TITLE: &str = "Loss of the best so far, against measurements made";
    let Some(best) = comparison.best().filter(|_| !searches.is_empty()) else {
        return Figure::absent(TITLE, "The campaigns of the searches are not in the store any more.");
    };
    let looks = [
        (Shape::Dashes, Ink::Baseline),
        (Shape::Dashes, Ink::Data),
        (Shape::Steps, Ink::Bound),
        (Shape::Steps, Ink::Best),
    ];
    let mut chart = Chart::new("chart-progress", Axis::new("measurements made"), Axis::new("loss, %"));
    let mut table = Table::new(["", "Measurements", "Loss of the best so far"]);
    let mut says = Vec::new();
    for (index, (name, records)) in searches.iter().enumerate() {
        let mut steps: Vec<(f64, f64)> = Vec::new();
        let mut most = f64::NEG_INFINITY;
        for record in records {
            let searching = matches!(record.trial.purpose, Purpose::Sample | Purpose::Steered | Purpose::Climb);
            let (Setting::Pinned(_), Ok(measured), true) = (&record.trial.setting, &record.outcome, searching) else {
                continue;
            };
            if measured.performance > most {
                most = measured.performance;
                let loss = 100.0 * (1.0 - most / best.performance.mean);
                steps.push((record.number as f64 + 1.0, loss));
                table.row([name.clone(), figures::count(record.number + 1), figures::percent(loss / 100.0)]);
            }
        }
        if let Some(&(number, loss)) = steps.last() {
            says.push(format!("{name}: {} after {number:.0} measurements", figures::percent(loss / 100.0)));
            steps.push((records.len() as f64, loss));
        }
        // As many looks as there are searches; the last one is drawn the strongest.
        let (shape, ink) = looks[(index + looks.len() - searches.len().min(looks.len())) % looks.len()];
        chart = chart.series(Series::new(name.clone(), shape, ink, steps));
    }
    Figure {
        title: TITLE,
        says: format!("The last improvement of {}.", says.join("; ")),
        reading: "Single windows flatter a search by their noise, so a line may end below 0; what was announced is in the chart of losses.",
        chart: Some(chart),
        table,
    }
}

fn claims(comparison: &Comparison, scale: &Scale) -> Table {
    let mut table = Table::new(["", "Bound", "Claimed gap", "Within what was asked", "So far"]);
    for row in &comparison.rows {
        let Some(judged) = row.claim else { continue };
        table.row([
            row.name.clone(),
            scale.show(judged.claim.bound),
            figures::percent(judged.claim.gap),
            if judged.certified { "yes" } else { "no" }.to_owned(),
            if judged.refuted { "false: the best known is above the bound" } else { "stands" }.to_owned(),
        ]);
    }
    table
}

fn next(comparison: &Comparison, files: Files<'_>) -> Vec<(String, &'static str)> {
    let campaign = comparison.best().and_then(|best| best.campaign);
    let flag = files.flag();
    let show = campaign.map(|campaign| {
        (format!("pinwise campaign show {}{flag}", campaign.0), "says what the search that found the best announced")
    });
    show.into_iter().collect()
}
