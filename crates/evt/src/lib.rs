//! From a sample of performances to the best possible one, with confidence.
//!
//! # Terms
//! *Performance*: any number of which higher is better. *UPB*: the upper performance bound, the
//! performance of the best of all assignments. *Threshold* u: only values above it are used;
//! *exceedance*: such a value minus u. *GPD*: the generalized Pareto distribution, to which
//! exceedances over a high threshold tend (peaks over threshold, POT); with shape < 0 it ends at u
//! - scale/shape, the UPB. *Gap*: (UPB - best)/UPB, what the best so far may still miss.
//!
//! # What is asked and what is answered
//! A [`Sample`] holds one performance per measured assignment, drawn at random, all assignments
//! with equal chance and independently. [`estimate()`] gives an [`Estimate`] or a [`Refusal`] that
//! says why there is none: a number is never invented. Two estimators ([`Method`]): the published
//! one, and a Bayesian one that is better calibrated and the default. [`plots`] gives the data
//! behind an estimate for drawing. [`capture_probability`] and [`better_fraction`] need no model at
//! all; [`looks`] says at which sample sizes to ask.
//!
//! ```
//! use pinwise_evt::{Options, Sample, estimate};
//! // A thousand performances with a known end at 10 and a tail of shape -0.25.
//! let values = (0..1000).map(|i| 10.0 - 4.0 * ((i as f64 + 0.5) / 1000.0).powf(0.25));
//! let bound = estimate(&Sample::new(values), &Options::default()).unwrap();
//! assert!(bound.best < 10.0 && bound.upb_high.unwrap() > 10.0);
//! ```
//!
//! # Limits
//! The answer concerns the values as measured: noise of a measurement adds to the best value and to
//! the bound. No sample can speak of assignments far better than all the rest but too rare to be
//! drawn; [`better_fraction`] says how rare.
//!
//! Source of the method: *Optimal task assignment in multithreaded processors: a statistical
//! approach* (ASPLOS 2012), section 3.

#![forbid(unsafe_code)]

mod bayes;
mod capture;
mod diagnostic;
mod estimate;
mod fit;
mod gpd;
mod log_product;
mod mean_excess;
mod plot;
mod profile;
mod sample;

pub use capture::{better_fraction, capture_probability, looks, runs_to_capture};
pub use diagnostic::{Diagnostic, Limit, Refusal};
pub use estimate::{Estimate, Estimator, Method, Options, estimate};
pub use fit::{Fit, fit};
pub use gpd::Gpd;
pub use plot::{Curve, Plots, Point, plots};
pub use sample::Sample;
