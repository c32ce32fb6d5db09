//! The data behind an estimate, ready to be drawn.

use crate::bayes::TailEndPosterior;
use crate::mean_excess::mean_excess;
use crate::profile_likelihood::ProfileLikelihood;
use crate::{BoundEstimate, Estimator, Gpd, Sample, fit};
use serde::{Deserialize, Serialize};

/// A point; the unit of x is always that of the performances.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Horizontal.
    pub x: f64,
    /// Vertical.
    pub y: f64,
}

/// What the sample says of each possible end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "points", rename_all = "snake_case")]
pub enum EndpointCurve {
    /// For the published method: UPB against its profile log-likelihood, 0 at the estimate
    /// (optimal-assignment-evt, figure 7).
    Profile(Vec<Point>),
    /// For the Bayesian one: UPB against its posterior density per unit of performance.
    Posterior(Vec<Point>),
}

/// The plots by which an estimate is judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plots {
    /// Performance against the share of the sample at or below it, worst first.
    pub ecdf: Vec<Point>,
    /// Threshold against the mean excess over it, lowest threshold first: straight above the
    /// chosen threshold if the model fits.
    pub mean_excess: Vec<Point>,
    /// Exceedance that the fitted distribution expects at each rank against the one found: on the
    /// diagonal if it fits.
    pub quantile: Vec<Point>,
    /// What the sample says of each possible end; `None` for an exact result.
    pub curve: Option<EndpointCurve>,
}

/// The plots of `estimate`, which must have been made from `sample`.
pub fn plots(sample: &Sample, estimate: &BoundEstimate) -> Plots {
    let n = sample.n() as f64;
    let mut ecdf: Vec<Point> = Vec::with_capacity(sample.distinct().len());
    for (rank, &value) in sample.descending().iter().enumerate() {
        if ecdf.last().is_none_or(|point| point.x != value) {
            // All from this rank on are at or below it.
            ecdf.push(Point { x: value, y: (sample.n() - rank) as f64 / n });
        }
    }
    ecdf.reverse();
    let mut excess: Vec<Point> =
        mean_excess(sample).map(|p| Point { x: p.threshold, y: p.mean }).collect();
    excess.reverse();
    let exceedances =
        estimate.threshold.map_or(Vec::new(), |u| estimate.method.exceedances(sample, u));
    Plots {
        ecdf,
        mean_excess: excess,
        quantile: quantile(&exceedances, estimate),
        curve: curve(&exceedances, estimate),
    }
}

/// Expected against found, smallest first, at the probabilities (i - 0.5)/m.
fn quantile(descending: &[f64], estimate: &BoundEstimate) -> Vec<Point> {
    let Some(gpd) =
        estimate.shape.zip(estimate.scale).and_then(|(shape, scale)| Gpd::new(shape, scale))
    else {
        return Vec::new();
    };
    let m = descending.len() as f64;
    descending
        .iter()
        .rev()
        .enumerate()
        .filter_map(|(i, &y)| gpd.quantile((i as f64 + 0.5) / m).map(|x| Point { x, y }))
        .collect()
}

fn curve(exceedances: &[f64], estimate: &BoundEstimate) -> Option<EndpointCurve> {
    let u = estimate.threshold?;
    match estimate.method {
        Estimator::Exact => None,
        Estimator::Bayes => {
            let points = TailEndPosterior::new(exceedances)?.curve();
            Some(EndpointCurve::Posterior(
                points
                    .into_iter()
                    .map(|(end, density, _)| Point { x: u + end, y: density })
                    .collect(),
            ))
        }
        Estimator::Profile => {
            let points =
                ProfileLikelihood::new(exceedances, &fit(exceedances)?)?.curve(estimate.confidence);
            Some(EndpointCurve::Profile(
                points.into_iter().map(|(end, height)| Point { x: u + end, y: height }).collect(),
            ))
        }
    }
}
