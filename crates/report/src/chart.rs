//! A chart as data: what `page.js` draws with uPlot.
//!
//! The page's script knows nothing of performance, bounds or placements. It gets axes, series,
//! marks and bars, all in displayed units. Colours are names that the style sheet defines for
//! light, dark and paper.
//!
//! Values that are not finite never reach the page: JSON has no word for them. They are left out
//! here, once.

use serde::Serialize;

/// What a colour stands for; the style sheet has a custom property of that name. Shape or label
/// always says the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Ink {
    /// The best assignment.
    Best,
    /// The unpinned baseline.
    Baseline,
    /// The bound on the best possible.
    Bound,
    /// What was measured.
    Data,
    /// What only guides the eye.
    Faint,
}

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Shape {
    /// Filled circles.
    Dots,
    /// Circles with a hole.
    Rings,
    /// A line through the points.
    Line,
    /// A broken line through the points.
    Dashes,
    /// A line that keeps its height until the next point.
    Steps,
}

/// One axis.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Axis {
    /// What is shown, with its unit.
    pub(crate) label: String,
    /// Larger values are to the left or below. So better stays right or up for quantities that are
    /// better when lower.
    pub(crate) reversed: bool,
    /// Names for the positions 0, 1, 2, … instead of numbers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) names: Vec<String>,
}

impl Axis {
    pub(crate) fn new(label: impl Into<String>) -> Self {
        Self { label: label.into(), ..Self::default() }
    }
}

/// Points that belong together.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) shape: Shape,
    pub(crate) ink: Ink,
    x: Vec<f64>,
    y: Vec<f64>,
}

impl Series {
    /// The finite ones of `points`, to six significant digits: finer than any screen, half the
    /// bytes.
    pub(crate) fn new(
        name: impl Into<String>,
        shape: Shape,
        ink: Ink,
        points: impl IntoIterator<Item = (f64, f64)>,
    ) -> Self {
        let finite = points.into_iter().filter(|(x, y)| x.is_finite() && y.is_finite());
        let (x, y) = finite.map(|(x, y)| (six_digits(x), six_digits(y))).unzip();
        Self { name: name.into(), shape, ink, x, y }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.x.is_empty()
    }
}

/// A labelled vertical line, or the band between two, over the whole height.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Mark {
    label: String,
    ink: Ink,
    at: f64,
    to: Option<f64>,
}

/// A bar with whiskers: an interval with its estimate.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Bar {
    ink: Ink,
    /// Where it stands on the other axis.
    at: f64,
    /// `None` ends at the edge of the chart.
    low: Option<f64>,
    mid: f64,
    /// `None` ends at the edge of the chart.
    high: Option<f64>,
}

/// One chart.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Chart {
    /// The element that it is drawn into.
    pub(crate) id: &'static str,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) series: Vec<Series>,
    pub(crate) marks: Vec<Mark>,
    /// Bars along x where `true`, along y where not.
    pub(crate) bars_along_x: bool,
    pub(crate) bars: Vec<Bar>,
}

impl Chart {
    pub(crate) fn new(id: &'static str, x: Axis, y: Axis) -> Self {
        Self {
            id,
            x,
            y,
            series: Vec::new(),
            marks: Vec::new(),
            bars_along_x: false,
            bars: Vec::new(),
        }
    }

    /// Adds a series unless it is empty.
    pub(crate) fn series(mut self, series: Series) -> Self {
        if !series.is_empty() {
            self.series.push(series);
        }
        self
    }

    /// Marks `at`, or the band from `at` to `to`; nothing if `at` is not finite.
    pub(crate) fn mark(
        mut self,
        label: impl Into<String>,
        ink: Ink,
        at: f64,
        to: Option<f64>,
    ) -> Self {
        if at.is_finite() {
            let to = to.filter(|to| to.is_finite()).map(six_digits);
            self.marks.push(Mark { label: label.into(), ink, at: six_digits(at), to });
        }
        self
    }

    /// Adds a bar at `at`; ends that are not finite reach the edge.
    pub(crate) fn bar(mut self, ink: Ink, at: f64, (low, mid, high): (f64, f64, f64)) -> Self {
        let end = |value: f64| value.is_finite().then(|| six_digits(value));
        if at.is_finite() && mid.is_finite() {
            self.bars.push(Bar {
                ink,
                at: six_digits(at),
                low: end(low),
                mid: six_digits(mid),
                high: end(high),
            });
        }
        self
    }
}

/// At most about `limit` of `points`, which are ordered in x. Of each run of neighbours it has the
/// lowest and the highest, so that no extreme is lost.
pub(crate) fn thin(points: &[(f64, f64)], limit: usize) -> Vec<(f64, f64)> {
    if points.len() <= limit {
        return points.to_vec();
    }
    let run = points.len().div_ceil((limit / 2).max(1));
    let mut kept = Vec::with_capacity(limit + 2);
    for neighbours in points.chunks(run) {
        let by_height = |a: &(usize, f64), b: &(usize, f64)| a.1.total_cmp(&b.1);
        let heights = || neighbours.iter().map(|point| point.1).enumerate();
        let (Some((low, _)), Some((high, _))) =
            (heights().min_by(by_height), heights().max_by(by_height))
        else {
            continue;
        };
        kept.push(neighbours[low.min(high)]);
        if low != high {
            kept.push(neighbours[low.max(high)]);
        }
    }
    kept
}

fn six_digits(value: f64) -> f64 {
    if value == 0.0 {
        return 0.0;
    }
    let places = 5 - value.abs().log10().floor() as i32;
    // Beyond 10^22 a power of ten is no longer exact, and nothing measured is so large or so small.
    if !(-16..=22).contains(&places) {
        return value;
    }
    let power = 10f64.powi(places.abs());
    if places >= 0 { (value * power).round() / power } else { (value / power).round() * power }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_are_not_finite_never_reach_the_page() {
        let chart = Chart::new("c", Axis::new("x"), Axis::new("y"))
            .series(Series::new(
                "s",
                Shape::Dots,
                Ink::Data,
                [(1.0, f64::NAN), (f64::INFINITY, 1.0), (2.0, 3.0)],
            ))
            .series(Series::new("none", Shape::Dots, Ink::Data, [(f64::NAN, 0.0)]))
            .mark("nowhere", Ink::Best, f64::NAN, None)
            .mark("open band", Ink::Bound, 1.0, Some(f64::INFINITY))
            .bar(Ink::Best, 0.0, (f64::NEG_INFINITY, 1.0, f64::INFINITY));
        let json = serde_json::to_value(&chart).unwrap();
        assert_eq!(json["series"].as_array().unwrap().len(), 1);
        assert_eq!(json["series"][0]["x"], serde_json::json!([2.0]));
        assert_eq!(json["marks"].as_array().unwrap().len(), 1);
        assert_eq!(json["marks"][0]["to"], serde_json::Value::Null);
        assert_eq!(json["bars"][0]["high"], serde_json::Value::Null);
    }

    #[test]
    fn six_significant_digits_are_kept_at_any_size() {
        assert_eq!(six_digits(1_723_456.789), 1_723_460.0);
        assert_eq!(six_digits(-0.001_234_567_8), -0.001_234_57);
        assert_eq!(six_digits(0.0), 0.0);
        assert_eq!(six_digits(1e300), 1e300);
    }

    #[test]
    fn thinning_keeps_the_extremes_and_the_order() {
        let points: Vec<(f64, f64)> =
            (0..5000).map(|i| (f64::from(i), f64::from((i * 7919) % 4999))).collect();
        let kept = thin(&points, 600);
        assert!(kept.len() <= 602, "{}", kept.len());
        assert!(kept.is_sorted_by(|a, b| a.0 < b.0));
        assert!(
            kept.iter().any(|point| point.1 == 4998.0) && kept.iter().any(|point| point.1 == 0.0)
        );
        assert_eq!(thin(&points[..10], 600), points[..10]);
    }
}
