//! The mean excess plot and the threshold read off it.
//!
//! e(u) is the mean of x - u over the values x above u. For a GPD it is a straight line in u with
//! slope shape/(1 - shape) (optimal-assignment-evt, section 3.3.2, step 2). The paper picks the
//! threshold by eye. The plot to its right should be roughly straight, and at most 5 % of the
//! sample may exceed it. Here a weighted line replaces the eye. A point that averages k exceedances
//! has the weight k. Points of fewer than 5 are left out as noise. The line must explain 90 % of
//! the variation. The threshold is the lowest one within the 5 % limit at which it does. If there
//! is none, it is the lowest within the limit, with a note.

use crate::Sample;

/// The paper's cap on the share of the sample that may exceed the threshold.
pub(crate) const CAP: f64 = 0.05;
/// Points that average fewer exceedances are left out of the line.
const NOISE: usize = 5;
/// Share of the variation that a line must explain for a plot to count as straight.
const STRAIGHT: f64 = 0.9;

/// One point of the plot, for a threshold that is a value of the sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct MeanExcess {
    pub(crate) threshold: f64,
    pub(crate) exceedances: usize,
    pub(crate) mean: f64,
}

/// The plot, highest threshold first: a point for each different value but the best.
pub(crate) fn mean_excess(sample: &Sample) -> impl Iterator<Item = MeanExcess> {
    let values = sample.descending();
    let best = sample.best().unwrap_or(0.0);
    // A running mean of distances from the best: a large offset costs no digits, and nothing
    // overflows.
    let (mut exceedances, mut distance) = (0, 0.0);
    sample.distinct().iter().skip(1).map(move |&threshold| {
        while values[exceedances] > threshold {
            exceedances += 1;
            distance += (best - values[exceedances - 1] - distance) / exceedances as f64;
        }
        MeanExcess { threshold, exceedances, mean: (best - threshold) - distance }
    })
}

/// The chosen threshold and the share of variation explained by the line above it. `None` if no
/// threshold leaves at least `least` exceedances within the cap.
pub(crate) fn choose(sample: &Sample, least: usize) -> Option<(f64, f64)> {
    let most = (CAP * sample.n() as f64).floor() as usize;
    let best = sample.best()?;
    let mut line = LineFit::default();
    let mut chosen = None;
    let mut lowest = None;
    for point in mean_excess(sample).take_while(|point| point.exceedances <= most) {
        if point.exceedances >= NOISE {
            line.add(point.threshold - best, point.mean, point.exceedances as f64);
        }
        if point.exceedances >= least {
            let candidate = (point.threshold, line.r_squared());
            lowest = Some(candidate);
            if candidate.1 >= STRAIGHT {
                chosen = Some(candidate);
            }
        }
    }
    chosen.or(lowest)
}

/// The share of variation that a line explains for these points.
pub(crate) fn r_squared_above(sample: &Sample, threshold: f64) -> f64 {
    let best = sample.best().unwrap_or(0.0);
    let mut line = LineFit::default();
    for point in mean_excess(sample).take_while(|point| point.threshold >= threshold) {
        if point.exceedances >= NOISE {
            line.add(point.threshold - best, point.mean, point.exceedances as f64);
        }
    }
    line.r_squared()
}

/// Whether a plot with this share counts as straight.
pub(crate) fn straight(r_squared: f64) -> bool {
    r_squared >= STRAIGHT
}

/// Weighted least squares, point by point (West, CACM 22, 1979: means and deviations updated
/// together lose no digits).
#[derive(Default)]
struct LineFit {
    weight: f64,
    mean: [f64; 2],
    xx: f64,
    xy: f64,
    yy: f64,
}

impl LineFit {
    fn add(&mut self, x: f64, y: f64, weight: f64) {
        self.weight += weight;
        let (dx, dy) = (x - self.mean[0], y - self.mean[1]);
        self.mean[0] += dx * weight / self.weight;
        self.mean[1] += dy * weight / self.weight;
        self.xx += weight * dx * (x - self.mean[0]);
        self.xy += weight * dx * (y - self.mean[1]);
        self.yy += weight * dy * (y - self.mean[1]);
    }

    /// 1 for points on a line; 0 if there is no line.
    fn r_squared(&self) -> f64 {
        let share = (self.xy / self.xx) * (self.xy / self.yy);
        if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Gpd;

    #[test]
    fn the_plot_is_the_definition() {
        let sample = Sample::new([1.0, 2.0, 2.0, 4.0, 8.0]);
        let points: Vec<_> =
            mean_excess(&sample).map(|p| (p.threshold, p.exceedances, p.mean)).collect();
        assert_eq!(points, [(4.0, 1, 4.0), (2.0, 2, 4.0), (1.0, 4, 3.0)]);
    }

    #[test]
    fn a_tail_that_follows_the_model_uses_all_the_cap_allows() {
        let gpd = Gpd::new(-0.3, 1.0).unwrap();
        let sample =
            Sample::new((0..2000).map(|i| gpd.quantile((f64::from(i) + 0.5) / 2000.0).unwrap()));
        let (threshold, r_squared) = choose(&sample, 10).unwrap();
        assert_eq!(sample.descending().iter().filter(|&&x| x > threshold).count(), 100);
        assert!(r_squared > 0.99);
        assert_eq!(r_squared_above(&sample, threshold), r_squared);
    }

    #[test]
    fn a_kink_inside_the_cap_moves_the_threshold_above_it() {
        // The best 2 % follow a steep tail; below them a plateau of nearly equal values bends the
        // plot.
        let tail = (0..40).map(|i| 2.0 - 1.5 * (f64::from(i) / 40.0).powf(0.4));
        let plateau = (0..60).map(|i| 0.3 - 1e-4 * f64::from(i));
        let bulk = (0..1900).map(|i| -f64::from(i) / 1900.0);
        let sample = Sample::new(tail.chain(plateau).chain(bulk));
        let (threshold, _) = choose(&sample, 10).unwrap();
        assert!(threshold >= 0.29, "{threshold}");
    }

    #[test]
    fn too_small_a_sample_has_no_threshold() {
        assert_eq!(choose(&Sample::new((0..199).map(f64::from)), 10), None);
        assert!(choose(&Sample::new((0..200).map(f64::from)), 10).is_some());
    }
}
