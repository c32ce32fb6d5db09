//! The chart of progress: the best so far and the bound against the measurements made.

use crate::bound_plots::BoundStage;
use crate::chart::{Axis, Chart, Ink, Series, Shape, thin};
use crate::evidence::Evidence;
use crate::figure::{Figure, Table};
use pinwise_campaign::Purpose;
use pinwise_measure::Setting;
use pinwise_placement::Outcome;
use pinwise_present::figures::{self, Scale};

/// More single measurements than this are thinned; the lowest and highest of each run of neighbours
/// stay.
const POINTS: usize = 1200;

/// The figure; `looks` are the bounds as the campaign saw them.
pub(crate) fn figure(
    evidence: &Evidence<'_>,
    outcome: &Outcome,
    looks: &[BoundStage],
    scale: &Scale,
) -> Figure {
    const TITLE: &str = "Best so far and bound, against measurements made";
    let pinned: Vec<(f64, f64)> = evidence
        .shots
        .iter()
        .filter(|shot| matches!(shot.setting, Setting::Pinned(_)))
        .filter(|shot| matches!(shot.purpose, Purpose::Sample | Purpose::Steered | Purpose::Climb))
        .map(|shot| (shot.number as f64 + 1.0, shot.performance))
        .collect();
    let Some(&(last, _)) = pinned.last() else {
        return Figure::absent(TITLE, "No assignment has been measured yet.");
    };
    let mut best = f64::NEG_INFINITY;
    let mut records: Vec<(f64, f64)> = Vec::new();
    for &(number, value) in &pinned {
        if value > best {
            best = value;
            records.push((number, value));
        }
    }
    let shown = |points: Vec<(f64, f64)>| {
        points.into_iter().map(|(n, value)| (n, scale.value(value))).collect::<Vec<_>>()
    };
    let mut table =
        Table::new(["Measurements", "Best so far", "Bound", "Upper end", "Sampled assignments"]);
    for &(number, value) in records.iter().rev().take(15).rev() {
        table.row([
            figures::count(number as u64),
            scale.show(value),
            String::new(),
            String::new(),
            String::new(),
        ]);
    }
    let mut steps = records.clone();
    steps.push((last, best));
    let y = Axis { reversed: scale.reversed(), ..Axis::new(&scale.label) };
    let mut chart = Chart::new("chart-progress", Axis::new("measurements made"), y)
        .series(Series::new(
            "one measurement",
            Shape::Dots,
            Ink::Faint,
            shown(thin(&pinned, POINTS)),
        ))
        .series(Series::new("best so far (single windows)", Shape::Steps, Ink::Best, shown(steps)));
    if let Some(baseline) = &outcome.baseline {
        let level = vec![(1.0, baseline.mean), (last, baseline.mean)];
        chart =
            chart.series(Series::new("unpinned, mean", Shape::Dashes, Ink::Baseline, shown(level)));
    }
    let estimates = looks.iter().map(|look| (look.number as f64 + 1.0, look.upb)).collect();
    chart = chart.series(Series::new(
        "bound, with its upper end",
        Shape::Rings,
        Ink::Bound,
        shown(estimates),
    ));
    for look in looks {
        let ends = (scale.value(look.best), scale.value(look.upb), scale.value(look.upper));
        chart = chart.bar(Ink::Bound, look.number as f64 + 1.0, ends);
        table.row([
            figures::count(look.number + 1),
            scale.show(look.best),
            scale.show(look.upb),
            if look.upper.is_finite() { scale.show(look.upper) } else { "none".to_owned() },
            figures::count(look.n as u64),
        ]);
    }
    let mut says = match records.as_slice() {
        [(first, _)] => {
            format!("The first measurement of an assignment, number {first:.0}, stayed the best.")
        }
        _ => format!(
            "The best single window so far improved {}. It improved last at measurement {} of {}.",
            if records.len() == 2 {
                "once".to_owned()
            } else {
                format!("{} times", records.len() - 1)
            },
            figures::count(records.last().map_or(0.0, |record| record.0) as u64),
            figures::count(last as u64)
        ),
    };
    if let (Some(first), Some(look)) = (looks.first(), looks.last())
        && first.n != look.n
    {
        says += &format!(
            " From {} to {} sampled assignments the bound went from {} to {}. A bound that comes \
             down to meet the line means that more measurements would gain little.",
            figures::count(first.n as u64),
            figures::count(look.n as u64),
            scale.show(first.upb),
            scale.show(look.upb)
        );
    }
    if pinned.len() > POINTS {
        says += &format!(
            " Of {} single measurements, the extremes of each run of neighbours are drawn.",
            pinned.len()
        );
    }
    Figure {
        title: TITLE,
        says,
        reading: "The line can only improve, and the noise of single windows flatters it. The \
            figure announced is that of fresh windows.",
        chart: Some(chart),
        table,
    }
}
