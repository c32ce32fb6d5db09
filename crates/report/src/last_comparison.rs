//! The fresh windows of a last comparison: each way with its mean, and with its gain over the
//! default.

use crate::chart::{Axis, Chart, Ink, Series, Shape};
use crate::figure::{Figure, Table};
use pinwise_measure::Unit;
use pinwise_placement::{ComparedRounds, Way};
use pinwise_present::figures::{self, Scale};
use pinwise_present::gain_text;

/// The ways against each other. `name`: how each is called.
pub(crate) fn figure(
    title: &'static str,
    rounds: &ComparedRounds,
    unit: &Unit,
    name: impl Fn(Way) -> String,
) -> Figure {
    let estimates: Vec<_> =
        rounds.ways().iter().filter_map(|&way| Some((way, rounds.estimate(way)?))).collect();
    let Some((_, first)) = estimates.first() else {
        return Figure::absent(title, "No fresh window could be measured.");
    };
    let scale = Scale::new(unit, first.mean);
    let names = estimates.iter().rev().map(|(way, _)| name(*way)).collect();
    let x = Axis { reversed: scale.reversed(), ..Axis::new(&scale.label) };
    let mut chart = Chart::new("chart-ways", x, Axis { names, ..Axis::default() });
    chart.bars_along_x = true;
    let mut table =
        Table::new(["", "Mean", "95 % interval", "Windows", "Against the default, paired"]);
    let mut points = [Vec::new(), Vec::new()];
    for (index, (way, estimate)) in estimates.iter().enumerate() {
        let at = (estimates.len() - 1 - index) as f64;
        let ends = [estimate.low, estimate.high].map(|end| scale.value(end));
        let (low, high) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
        let mid = scale.value(estimate.mean);
        let is_default = *way == Way::Default;
        let ink = if is_default { Ink::Baseline } else { Ink::Best };
        chart = chart.bar(ink, at, (low, mid, high));
        points[usize::from(is_default)].push((mid, at));
        let gain = rounds.gain(*way, Way::Default).filter(|_| !is_default);
        table.row([
            name(*way),
            estimate.value(&scale),
            scale.range(estimate.low, estimate.high),
            figures::count(estimate.n as u64),
            gain.map_or(String::new(), gain_text),
        ]);
    }
    let [found, default] = points;
    chart = chart
        .series(Series::new("number found", Shape::Dots, Ink::Best, found))
        .series(Series::new("default", Shape::Rings, Ink::Baseline, default));
    Figure {
        title,
        says: format!(
            "{} of fresh windows, in random order.",
            figures::counted(rounds.count() as u64, "round")
        ),
        reading: "Each way was measured once in each round, in fresh windows. The bar is the \
            interval of the mean. Further to the right is better.",
        chart: Some(chart),
        table,
    }
}
