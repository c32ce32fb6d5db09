#![doc = include_str!("../README.md")]
//!
//! # Terms
//!
//! *Performance*: a number, higher is better. *UPB*: the upper performance bound, the performance
//! of the best of all assignments. *Threshold* u: only values above it are used. *Exceedance*: such
//! a value minus u. *GPD*: the generalized Pareto distribution, to which exceedances over a high
//! threshold tend (peaks over threshold, POT). With shape < 0 it ends at `u - scale/shape`, the
//! UPB. *Gap*: (UPB - best)/UPB, the most that the best so far may be short of the UPB.
//!
//! # Questions and answers
//!
//! A [`Sample`] holds one performance per measured assignment. The assignments are drawn at random,
//! independently and with equal chance.
//!
//! [`estimate()`] returns a [`BoundEstimate`], or a [`Refusal`] with the reason why there is none.
//! There are two estimators ([`Method`]): the published one, and a Bayesian one. The Bayesian one
//! is better calibrated, and the default. [`plots`] returns the data behind an estimate.
//! [`capture_probability()`] and [`better_fraction`] need no model. [`looks`] lists the sample
//! sizes at which to ask. [`Better::estimate`] also bounds values for which lower is better.
//!
//! # Limits
//!
//! The answer concerns the values as measured. The noise of a measurement adds to the best value
//! and to the bound. Far better assignments may be too rare for any sample.
//! [`better_fraction`] bounds how rare.
//!
//! # Source
//!
//! *Optimal task assignment in multithreaded processors: a statistical approach* (ASPLOS 2012),
//! section 3.

#![forbid(unsafe_code)]

mod bayes;
mod better;
mod capture_probability;
mod diagnostic;
mod estimate;
mod fit;
mod gpd;
mod log_product;
mod mean_excess;
mod plot;
mod profile_likelihood;
mod sample;
mod stable_threshold;

pub use better::{Better, ValueBound};
pub use capture_probability::{better_fraction, capture_probability, looks};
pub use diagnostic::{Diagnostic, Limit, Refusal};
pub use estimate::{BoundEstimate, Estimator, Method, Options, estimate};
pub use fit::{Fit, fit};
pub use gpd::Gpd;
pub use plot::{EndpointCurve, Plots, Point, plots};
pub use sample::Sample;
