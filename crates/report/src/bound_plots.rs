//! The plots by which a reader can check the bound. They are its curve and the bounds of smaller
//! samples. The mean excess plot and the quantile plot are those of optimal-assignment-evt,
//! section 3.

use crate::chart::{Axis, Chart, Ink, Series, Shape, thin};
use crate::evidence::Evidence;
use crate::figure::{Figure, Table};
use pinwise_evt::{BoundEstimate, EndpointCurve, Options, Plots, Point, Sample, estimate, plots};
use pinwise_measure::Unit;
use pinwise_placement::{BoundMethod, Outcome, PlacementQuestion};
use pinwise_present::figures::{self, Scale};

/// Points of a curve that one can distinguish on paper.
const POINTS: usize = 400;

/// The bound as it stood after some of the sample.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BoundStage {
    /// The record that completed this sample.
    pub(crate) number: u64,
    /// Sampled assignments until then.
    pub(crate) n: usize,
    /// Their best.
    pub(crate) best: f64,
    pub(crate) upb: f64,
    /// Infinite where the interval is open.
    pub(crate) upper: f64,
}

/// What is asked of the estimator.
fn options(question: &PlacementQuestion) -> Options {
    Options {
        method: question.method,
        confidence: question.confidence,
        cap: question.cap,
        ..Options::default()
    }
}

/// The bounds at the sample sizes at which the campaign asked for one, and at the end.
pub(crate) fn looks(evidence: &Evidence<'_>, question: &PlacementQuestion) -> Vec<BoundStage> {
    let sample = evidence.sample();
    let whole = sample.len() as u64;
    let sizes = pinwise_evt::looks(question.start, question.step)
        .take_while(|&size| size < whole)
        .chain([whole]);
    sizes
        .filter_map(|size| {
            let part = sample.get(..size as usize)?;
            let values = Sample::new(part.iter().map(|&(_, value)| value));
            let bound = estimate(&values, &options(question)).ok()?;
            let (upb, upper) = (bound.upb, bound.upb_high.unwrap_or(f64::INFINITY));
            Some(BoundStage { number: part.last()?.0, n: part.len(), best: bound.best, upb, upper })
        })
        .collect()
}

/// The three figures, or in words why there are none.
pub(crate) fn figures(
    evidence: &Evidence<'_>,
    question: &PlacementQuestion,
    outcome: &Outcome,
    scale: &Scale,
) -> Result<[Figure; 3], String> {
    if outcome.bound.method == BoundMethod::Exact {
        return Err(
            "Every assignment was measured, so the best is known and there is no estimate to draw."
                .to_owned(),
        );
    }
    if outcome.bound.method == BoundMethod::Predicted {
        return Err(
            "The bound comes from prediction, not from the tail of a sample: there is no tail to \
             draw."
                .to_owned(),
        );
    }
    let sample = Sample::new(evidence.sample().into_iter().map(|(_, value)| value));
    let bound = estimate(&sample, &options(question))
        .map_err(|_| "For this reason there is no bound to draw.".to_owned())?;
    let Plots { mean_excess, quantile, curve, .. } = plots(&sample, &bound);
    let linear = Scale::of_performance(&outcome.unit, bound.best);
    Ok([
        curve_figure(curve, &bound, outcome, scale),
        excess_figure(mean_excess, &bound, &linear),
        { quantile_figure(quantile, &bound, &outcome.unit) },
    ])
}

fn curve_figure(
    curve: Option<EndpointCurve>,
    bound: &BoundEstimate,
    outcome: &Outcome,
    scale: &Scale,
) -> Figure {
    let says = match bound.upb_high {
        Some(high) => format!(
            "From {} sampled assignments, the best possible is estimated at {}. With {} \
             confidence, it is no better than {}.",
            figures::count(bound.n as u64),
            scale.show(bound.upb),
            figures::percent(bound.confidence),
            scale.show(high)
        ),
        None => format!(
            "From {} sampled assignments, the best possible is estimated at {}. Its interval has \
             no upper end.",
            figures::count(bound.n as u64),
            scale.show(bound.upb)
        ),
    };
    let (title, y, points, reading) = match curve {
        Some(EndpointCurve::Posterior(points)) => (
            "What the sample says of the best possible",
            Axis::new("probability of a better one"),
            survival(&points),
            "Height: how probable it is that some assignment is better than the value below. The \
             line is at 50 % at the estimate. At the upper end of the interval, only what the \
             confidence leaves over remains.",
        ),
        Some(EndpointCurve::Profile(points)) => (
            "What the sample says of the best possible",
            Axis::new("profile log-likelihood"),
            points.iter().map(|point| (point.x, point.y)).collect(),
            "Height: how well a best possible of that value explains the sample, 0 at the \
             estimate. The band is the interval. A line that hardly falls to the right means that \
             the sample rules out little.",
        ),
        None => return Figure::absent("What the sample says of the best possible", says),
    };
    let x = Axis { reversed: scale.reversed(), ..Axis::new(&scale.label) };
    let shown = thin(&points, POINTS).into_iter().map(|(at, height)| (scale.value(at), height));
    let mut chart = Chart::new("chart-bound", x, y).series(Series::new(
        "best possible",
        Shape::Line,
        Ink::Bound,
        shown,
    ));
    if let Some(best) = &outcome.best {
        chart = chart.mark("best", Ink::Best, scale.value(best.performance.mean), None);
    }
    chart = chart.mark(
        "bound",
        Ink::Bound,
        scale.value(bound.upb),
        bound.upb_high.map(|high| scale.value(high)),
    );
    let mut table = Table::new(["", "Performance"]);
    table.row(["Best of the sample".to_owned(), scale.show(bound.best)]);
    table.row(["Lower end".to_owned(), scale.show(bound.upb_low)]);
    table.row(["Estimate".to_owned(), scale.show(bound.upb)]);
    table.row([
        "Upper end".to_owned(),
        bound.upb_high.map_or("none".to_owned(), |high| scale.show(high)),
    ]);
    Figure { title, says, reading, chart: Some(chart), table }
}

/// From a density to the probability of more than each x. A density on a reversed axis would need
/// another height, this does not.
fn survival(density: &[Point]) -> Vec<(f64, f64)> {
    let mut beyond = 0.0;
    let mut points: Vec<(f64, f64)> = Vec::with_capacity(density.len());
    for (index, point) in density.iter().enumerate().rev() {
        if let Some(next) = density.get(index + 1) {
            beyond += 0.5 * (point.y + next.y) * (next.x - point.x);
        }
        points.push((point.x, beyond));
    }
    let total = beyond;
    points.reverse();
    // What is left beyond 0.1 % would only stretch the axis.
    points
        .into_iter()
        .map(|(x, beyond)| (x, beyond / total))
        .take_while(|&(_, share)| share >= 0.001)
        .collect()
}

fn excess_figure(points: Vec<Point>, bound: &BoundEstimate, linear: &Scale) -> Figure {
    const TITLE: &str = "Mean excess";
    let (Some(threshold), false) = (bound.threshold, points.is_empty()) else {
        return Figure::absent(TITLE, "Without a threshold there is no excess to draw.");
    };
    let pairs: Vec<(f64, f64)> = points.iter().map(|point| (point.x, point.y)).collect();
    let shown =
        thin(&pairs, POINTS).into_iter().map(|(u, excess)| (linear.value(u), linear.value(excess)));
    let chart = Chart::new(
        "chart-excess",
        Axis::new(format!("threshold, {}", linear.label)),
        Axis::new(format!("mean excess, {}", linear.label)),
    )
    .series(Series::new(
        "mean of what lies above, minus the threshold",
        Shape::Line,
        Ink::Data,
        shown,
    ))
    .mark("threshold used", Ink::Bound, linear.value(threshold), None);
    let mut table = Table::new(["", "Value"]);
    table.row(["Threshold".to_owned(), linear.show(threshold)]);
    table.row(["Values above it".to_owned(), bound.exceedances.to_string()]);
    Figure {
        title: TITLE,
        says: format!(
            "The bound rests on the {} values above {}.",
            bound.exceedances,
            linear.show(threshold)
        ),
        reading: "Right of the threshold, the points should lie on a straight line that \
            falls. Then the tail has an end, and the bound can be trusted. The last few points, \
            means of a handful of values, may stray.",
        chart: Some(chart),
        table,
    }
}

fn quantile_figure(points: Vec<Point>, bound: &BoundEstimate, unit: &Unit) -> Figure {
    const TITLE: &str = "Quantiles: fitted against found";
    let largest = points.iter().fold(0.0, |most: f64, point| most.max(point.x).max(point.y));
    if points.is_empty() {
        return Figure::absent(TITLE, "No distribution was fitted.");
    }
    let linear = Scale::of_performance(unit, largest);
    let pairs: Vec<(f64, f64)> =
        points.iter().map(|point| (linear.value(point.x), linear.value(point.y))).collect();
    let top = linear.value(largest);
    let farthest = points.iter().map(|point| (point.y - point.x).abs()).fold(0.0, f64::max);
    let chart = Chart::new(
        "chart-quantile",
        Axis::new(format!("expected excess, {}", linear.label)),
        Axis::new(format!("found excess, {}", linear.label)),
    )
    .series(Series::new(
        "if the model were exact",
        Shape::Dashes,
        Ink::Faint,
        [(0.0, 0.0), (top, top)],
    ))
    .series(Series::new(
        "values above the threshold",
        Shape::Dots,
        Ink::Data,
        thin(&pairs, POINTS),
    ));
    let mut table = Table::new(["", "Value"]);
    let shown = |value: Option<f64>| value.map_or("none".to_owned(), |value| format!("{value:.3}"));
    table.row(["Shape".to_owned(), shown(bound.shape)]);
    table.row([
        "Scale".to_owned(),
        bound.scale.map_or("none".to_owned(), |scale| linear.show(scale)),
    ]);
    Figure {
        title: TITLE,
        says: format!(
            "Generalized Pareto distribution with shape {} and scale {}, against {} values. The \
             farthest value is {} from where the fit expects it.",
            shown(bound.shape),
            bound.scale.map_or("none".to_owned(), |scale| linear.show(scale)),
            points.len(),
            linear.show(farthest)
        ),
        reading: "Dots on the broken line mean that the fitted tail describes the values. Dots \
            that bend away at the right end mean that it does not. The bound is read off there.",
        chart: Some(chart),
        table,
    }
}
