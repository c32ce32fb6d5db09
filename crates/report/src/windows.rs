//! The chart of best and baseline: every window, with the mean and its interval.
//!
//! A bar chart of two means hides what decides. That is how far the windows scatter, and
//! whether the baseline has two modes.

use crate::chart::{Axis, Chart, Ink, Series, Shape};
use crate::evidence::Evidence;
use crate::figure::{Figure, Table};
use pinwise_campaign::Purpose;
use pinwise_measure::Setting;
use pinwise_placement::{Estimate, Outcome, PlacedAssignment};
use pinwise_present::figures::{self, Scale};
use pinwise_present::placement_gain;

/// Nobody could distinguish more rows than this at 400 px. The table of ties has them all.
const TIES_SHOWN: usize = 4;

/// One row of the chart.
struct ChartRow {
    name: String,
    ink: Ink,
    estimate: Estimate,
    fresh: Vec<f64>,
    earlier: Vec<f64>,
}

/// The figure.
pub(crate) fn figure(evidence: &Evidence<'_>, outcome: &Outcome, scale: &Scale) -> Figure {
    const TITLE: &str = "Best and baseline, every window";
    let rows = rows(evidence, outcome);
    if rows.is_empty() {
        return Figure::absent(
            TITLE,
            "Neither the best nor the baseline has been measured on fresh windows yet.",
        );
    }
    // The first row on top: position 0 is at the bottom.
    let position = |index: usize| (rows.len() - 1 - index) as f64;
    let x = Axis { reversed: scale.reversed(), ..Axis::new(&scale.label) };
    let names = rows.iter().rev().map(|row| row.name.clone()).collect();
    let mut chart = Chart::new("chart-windows", x, Axis { names, ..Axis::default() });
    chart.bars_along_x = true;
    let mut table = Table::new(["", "Mean", "Interval", "Windows", "Worst window", "Best window"]);
    let points =
        |wanted: fn(&ChartRow) -> bool, values: fn(&ChartRow) -> &Vec<f64>| -> Vec<(f64, f64)> {
            let rows = rows.iter().enumerate().filter(|(_, row)| wanted(row));
            rows.flat_map(|(index, row)| jitter(values(row), position(index), scale)).collect()
        };
    let pinned = points(|row| row.ink == Ink::Best, |row| &row.fresh);
    let unpinned = points(|row| row.ink == Ink::Baseline, |row| &row.fresh);
    let searching = points(|_| true, |row| &row.earlier);
    chart = chart
        .series(Series::new("unpinned during the search", Shape::Rings, Ink::Faint, searching))
        .series(Series::new("pinned, fresh windows", Shape::Dots, Ink::Best, pinned))
        .series(Series::new("unpinned, fresh windows", Shape::Rings, Ink::Baseline, unpinned));
    for (index, row) in rows.iter().enumerate() {
        let Estimate { low, mean, high, .. } = row.estimate;
        chart = chart.bar(
            row.ink,
            position(index),
            (scale.value(low), scale.value(mean), scale.value(high)),
        );
        let every = || row.fresh.iter().chain(&row.earlier).copied();
        table.row([
            row.name.clone(),
            row.estimate.value(scale),
            row.estimate.interval(scale),
            match row.earlier.len() {
                0 => format!("{}", row.fresh.len()),
                earlier => format!("{} fresh, {earlier} during the search", row.fresh.len()),
            },
            scale.show(every().fold(f64::INFINITY, f64::min)),
            scale.show(every().fold(f64::NEG_INFINITY, f64::max)),
        ]);
    }
    Figure {
        title: TITLE,
        says: says(outcome, scale),
        reading: "Each circle is one window. Heights within a row only keep circles apart. \
            The bar is the interval of the mean of the fresh windows. They were measured after \
            the search, and they alone decide.",
        chart: Some(chart),
        table,
    }
}

fn rows(evidence: &Evidence<'_>, outcome: &Outcome) -> Vec<ChartRow> {
    let pinned = |name: String, best: &PlacedAssignment| ChartRow {
        name,
        ink: Ink::Best,
        estimate: best.performance,
        fresh: evidence.of(Purpose::Final, &Setting::Pinned(best.assignment.clone())),
        earlier: Vec::new(),
    };
    let best = outcome.best.iter().map(|best| pinned("Best".to_owned(), best));
    let ties = outcome
        .ties
        .iter()
        .take(TIES_SHOWN)
        .zip(1..)
        .map(|(tie, n)| pinned(format!("Tie {n}"), tie));
    let baseline = outcome.baseline.iter().map(|&estimate| ChartRow {
        name: "Unpinned".to_owned(),
        ink: Ink::Baseline,
        estimate,
        fresh: evidence.of(Purpose::Final, &Setting::Unpinned),
        earlier: evidence.of(Purpose::Baseline, &Setting::Unpinned),
    });
    best.chain(ties).chain(baseline).collect()
}

fn says(outcome: &Outcome, scale: &Scale) -> String {
    let mut text = String::new();
    if let Some(best) = &outcome.best {
        text += &format!("Best: {}. ", best.performance.show(scale));
    }
    if let Some(baseline) = &outcome.baseline {
        text += &format!("Unpinned: {}. ", baseline.show(scale));
    }
    if let Some((gain, interval)) = placement_gain(outcome) {
        let interval = interval.unwrap_or_else(|none| none.to_owned());
        text += &format!("The best is {gain} against unpinned ({interval}).");
    }
    match outcome.ties.len().saturating_sub(TIES_SHOWN) {
        0 => text,
        more => format!("{text} Not drawn: {}.", figures::counted(more as u64, "more tie")),
    }
}

/// The values at `row`, spread by the golden ratio: even, and the same each time.
fn jitter(values: &[f64], row: f64, scale: &Scale) -> Vec<(f64, f64)> {
    let spread = |index: usize| ((index as f64 + 0.5) * 0.618_033_988_749_895).fract() - 0.5;
    values
        .iter()
        .enumerate()
        .map(|(index, &value)| (scale.value(value), row + 0.6 * spread(index)))
        .collect()
}
