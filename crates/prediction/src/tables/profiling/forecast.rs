//! Forecasts the entries of a slowdown table that were not measured.
//!
//! 1 / share - 1 is interpolated over the counts of co-runners by kind and level
//! ([`crate::tables::gaussian`]). There is one model for each kind of threads and build of domains.
//! Co-runners only slow down. So a forecast stays between the measured entries that have more
//! co-runners and those that have less. More and less go by kind and distance.

use crate::tables::gaussian::Gaussian;
use crate::tables::profiling::site::{Site, Sites};
use std::collections::BTreeMap;

/// Confidence of stated intervals, and the normal deviations that make it.
pub(super) const CONFIDENCE: f64 = 0.95;
pub(super) const DEVIATIONS: f64 = 1.959964;

/// What a table says of an entry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Forecast {
    pub(super) share: f64,
    /// The interval.
    pub(super) low: f64,
    pub(super) high: f64,
    /// Standard deviation of 1 / share.
    pub(super) deviation: f64,
}

impl Forecast {
    pub(super) const UNKNOWN: Self =
        Self { share: f64::NAN, low: f64::NAN, high: f64::NAN, deviation: f64::NAN };

    /// What was measured is that.
    pub(super) fn exact(share: f64) -> Self {
        Self { share, low: share, high: share, deviation: 0.0 }
    }
}

/// Standard deviation of 1 / share of a thread with co-runners. It holds if no co-runners of their
/// kind were measured in such a domain. The thread may keep a third as well as all.
const STRANGE: f64 = 1.0;

/// Forecasts every entry from those `measured`, by site, where an entry that cannot run keeps 0.
/// One measurement has the relative deviation `noise`; deviations are multiplied by `stretch` for
/// intervals. A kind without any measurement stays unknown.
pub(super) fn forecast(
    sites: &Sites,
    measured: &[Option<f64>],
    noise: f64,
    stretch: f64,
) -> Vec<Forecast> {
    let mut known: BTreeMap<(usize, usize), Vec<(&Site, f64)>> = BTreeMap::new();
    for (site, share) in sites.iter().zip(measured) {
        let known = known.entry((site.kind, site.build)).or_default();
        known.extend(share.filter(|share| *share > 0.0).map(|share| (site, share)));
    }
    let model = |known: &Vec<(&Site, f64)>| {
        let (rows, values): (Vec<_>, Vec<_>) =
            known.iter().map(|(site, share)| (site.counts.clone(), 1.0 / share - 1.0)).unzip();
        let levels = known.first().map(|(site, _)| sites.levels(site)).unwrap_or_default();
        Gaussian::fit(&rows, &values, &levels)
    };
    let models: BTreeMap<(usize, usize), Option<Gaussian>> =
        known.iter().map(|(of, known)| (*of, model(known))).collect();
    let one = |site: &Site| {
        let of = (site.kind, site.build);
        let Some(model) = &models[&of] else { return Forecast::UNKNOWN };
        let (mean, deviation) = model.predict(&site.counts);
        let company = |site: &Site| site.counts.iter().any(|count| *count > 0.0);
        let strange = company(site) && !known[&of].iter().any(|(other, _)| company(other));
        let deviation = if strange { deviation.max(STRANGE) } else { deviation };
        let (least, most) = enclosure(sites, site, &known[&of], noise);
        let share = |excess: f64| (1.0 / (1.0 + excess.max(0.0))).clamp(least, most);
        let reach = DEVIATIONS * stretch * deviation;
        Forecast {
            share: share(mean),
            low: share(mean + reach),
            high: share(mean - reach),
            deviation,
        }
    };
    sites.iter().map(one).collect()
}

/// The shares between which an entry lies if co-runners only slow down. They are the best measured
/// with at least its co-runners, and the worst with at most these.
fn enclosure(sites: &Sites, site: &Site, known: &[(&Site, f64)], noise: f64) -> (f64, f64) {
    let (mut least, mut most) = (0.0f64, 1.0f64);
    for (other, share) in known {
        if sites.burdens(&site.counts, &other.counts) {
            least = least.max(*share);
        }
        if sites.burdens(&other.counts, &site.counts) {
            most = most.min(*share);
        }
    }
    let stray = 1.0 + DEVIATIONS * noise;
    ((least / stray).min(most), (most * stray).min(1.0))
}
