//! The chart of all sampled assignments: the empirical distribution of performance.

use crate::chart::{Axis, Chart, Ink, Series, Shape};
use crate::evidence::Evidence;
use crate::figure::{Figure, Table};
use pinwise_placement::{BoundMethod, Outcome};
use pinwise_present::figures::{self, Scale};

/// Steps drawn below the top; the top, which the bound rests on, is drawn in full.
const STEPS: usize = 300;
const TOP: usize = 100;

/// The shares whose quantiles the table has.
const QUANTILES: [f64; 8] = [0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0];

/// The figure.
pub(crate) fn figure(evidence: &Evidence<'_>, outcome: &Outcome, scale: &Scale) -> Figure {
    const TITLE: &str = "How assignments perform: the distribution";
    let mut values: Vec<f64> = evidence.sample().into_iter().map(|(_, value)| value).collect();
    values.sort_by(f64::total_cmp);
    let n = values.len();
    let (Some(&worst), Some(&best)) = (values.first(), values.last()) else {
        return Figure::absent(TITLE, "No assignment has been sampled yet.");
    };
    if n < 2 {
        return Figure::absent(TITLE, "One assignment is no distribution.");
    }
    let quantile = |share: f64| values[((share * n as f64).ceil() as usize).clamp(1, n) - 1];
    let stride = n.saturating_sub(TOP).div_ceil(STEPS).max(1);
    let kept = (0..n).filter(|&index| index % stride == 0 || index + TOP >= n);
    let steps = kept.map(|index| (scale.value(values[index]), (index + 1) as f64 / n as f64));
    let x = Axis { reversed: scale.reversed(), ..Axis::new(&scale.label) };
    let mut chart =
        Chart::new("chart-ecdf", x, Axis::new("share of assignments that are no better"))
            .series(Series::new("sampled assignments", Shape::Steps, Ink::Data, steps));
    if let Some(baseline) = &outcome.baseline {
        chart = chart.mark("unpinned", Ink::Baseline, scale.value(baseline.mean), None);
    }
    if let Some(best) = &outcome.best {
        chart = chart.mark("best", Ink::Best, scale.value(best.performance.mean), None);
    }
    let (upb, upb_high) = (outcome.bound.upb, outcome.bound.upb_high);
    if let Some(upb) = upb {
        let high = upb_high.map(|high| scale.value(high));
        chart = chart.mark("bound", Ink::Bound, scale.value(upb), high);
    }
    let mut table = Table::new(["Share of assignments that are no better", "Performance"]);
    // Few values are listed: their quantiles would repeat them.
    let rows: Vec<(f64, f64)> = if n <= QUANTILES.len() {
        values.iter().zip(1..).map(|(&value, rank)| (f64::from(rank) / n as f64, value)).collect()
    } else {
        QUANTILES.map(|share| (share, quantile(share))).into()
    };
    for (share, value) in rows {
        table.row([figures::percent(share), scale.show(value)]);
    }
    let mut says = format!(
        "{} different assignments, {}, range over {}. Half of them are no better than {}.",
        figures::count(n as u64),
        if outcome.bound.method == BoundMethod::Exact {
            "all there are"
        } else {
            "drawn at random"
        },
        scale.range(worst, best),
        scale.show(quantile(0.5))
    );
    if upb.is_some() && upb_high.is_some() {
        let from = match outcome.bound.method {
            BoundMethod::Exact => "mean of the best",
            _ => "estimate of the best possible",
        };
        says += &format!(" The band reaches from the {from} to the bound at its confidence.");
    }
    Figure {
        title: TITLE,
        says,
        reading: "The line has one value for each assignment, the mean of its windows in the \
            sample. \"Best\" and \"unpinned\" are means of fresh windows, from another time: \
            compare these two with each other. The line rises where many assignments perform \
            alike. A long flat stretch at the right means that good assignments are rare.",
        chart: Some(chart),
        table,
    }
}
