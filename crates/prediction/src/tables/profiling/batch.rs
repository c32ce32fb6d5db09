//! Chooses the entries to measure next, and decides when no more are needed.

use crate::tables::profiling::check::ENOUGH;
use crate::tables::profiling::forecast::Forecast;
use crate::tables::profiling::{Profiling, ProfilingEnd};
use crate::{BlackBox, Predictor, draw};
use pinwise_topology::{Assignment, Random, Space};
use std::collections::BTreeSet;

/// The number of batches, unless that makes them too small or too large.
const BATCHES: usize = 12;
const SMALLEST: usize = 4;
const LARGEST: usize = 64;
/// One entry in this many of a batch is drawn at random: the held-out check.
const DRAWN: usize = 4;
/// Assignments whose entries are looked through for a batch.
const RANKED: usize = 16;
/// Walks of the search for the best assignments: [`BlackBox::optima`].
const WALKS: u64 = 4;
/// Temperature and steps per thread of draws.
pub(super) const TEMPERATURE: f64 = 0.01;
pub(super) const STEPS: usize = 120;
/// Deviations of an optimistic forecast.
const OPTIMISM: f64 = 1.0;

impl Profiling {
    /// The next entries, at most `left`, and those of them that were drawn.
    pub(super) fn batch(
        &self,
        space: &Space,
        random: &mut Random,
        left: usize,
    ) -> (Vec<usize>, BTreeSet<usize>) {
        let forecasts: Vec<Forecast> =
            (0..self.sites.len()).map(|number| self.forecast(number)).collect();
        let size = (self.most / BATCHES).clamp(SMALLEST, LARGEST).min(left);
        let predictor = self.blackbox();
        let mut drawn = BTreeSet::new();
        for _ in 0..2 * size.div_ceil(DRAWN) {
            if drawn.len() >= size.div_ceil(DRAWN) {
                break;
            }
            let assignment = draw(&predictor, space, TEMPERATURE, STEPS * space.threads(), random);
            let unknown: Vec<usize> =
                self.deciding(&predictor, assignment.leaves(), &forecasts).into_iter().collect();
            if !unknown.is_empty() {
                drawn.insert(unknown[random.below(unknown.len() as u64) as usize]);
            }
        }
        let optimistic = self.blackbox_of(0.0, |forecast| {
            // In 1 / share, as forecasts are.
            1.0 / (1.0 / forecast.share - OPTIMISM * forecast.deviation)
                .max(1.0 / forecast.high.max(forecast.share))
        });
        let mut chosen = Vec::new();
        for predictor in [&optimistic, &predictor] {
            for assignment in self.best(predictor, space, random) {
                for site in self.deciding(predictor, assignment.leaves(), &forecasts) {
                    if chosen.len() + drawn.len() < size
                        && !drawn.contains(&site)
                        && !chosen.contains(&site)
                    {
                        chosen.push(site);
                    }
                }
            }
        }
        chosen.extend(&drawn);
        (chosen, drawn)
    }

    /// The assignments predicted best.
    pub(super) fn best(
        &self,
        predictor: &BlackBox,
        space: &Space,
        random: &mut Random,
    ) -> Vec<Assignment> {
        let mut walks = 0;
        let found = predictor.optima(space, RANKED, random, &mut |_| {
            walks += 1;
            walks < WALKS
        });
        found.ranked.into_iter().map(|predicted| predicted.assignment).collect()
    }

    /// The entries not measured that an assignment's prediction hangs on.
    fn deciding(
        &self,
        predictor: &BlackBox,
        leaves: &[u32],
        forecasts: &[Forecast],
    ) -> BTreeSet<usize> {
        let around = predictor.layouts_around(leaves);
        let mut deciding = BTreeSet::new();
        for instance in self.thread_kinds.instances() {
            let read: Vec<usize> = instance
                .threads
                .iter()
                .filter_map(|&thread| {
                    self.sites.number(self.thread_kinds.kind(thread), around[thread])
                })
                .collect();
            let certain =
                read.iter().map(|site| forecasts[*site].high).fold(f64::INFINITY, f64::min);
            deciding.extend(
                read.into_iter().filter(|site| {
                    self.measured[*site].is_none() && forecasts[*site].low < certain
                }),
            );
        }
        deciding
    }

    /// Why no more has to be measured, if so.
    pub(super) fn enough(
        &self,
        space: &Space,
        random: &mut Random,
        batch: usize,
    ) -> Option<ProfilingEnd> {
        if batch == 0 {
            return Some(ProfilingEnd::GoodEntries);
        }
        if self.checked().drawn < ENOUGH {
            return None;
        }
        let [low, high] = self.ends();
        let best = self
            .best(&self.blackbox(), space, random)
            .first()
            .map(|best| low.predict(best.leaves()))?;
        let upper =
            self.best(&high, space, random).first().map(|best| high.predict(best.leaves()))?;
        let gap = upper / best - 1.0;
        (gap <= self.within).then(|| ProfilingEnd::Settled { gap: gap.max(0.0) })
    }
}
