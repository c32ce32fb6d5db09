//! The highest possible worth of further domains, by the threads of each kind that are left.

use super::fragment::ProofFragments;
use std::collections::HashMap;

/// Steps of filling the table at most; beyond, the bound does without it.
const MOST_STEPS: usize = 60_000_000;
/// Entries at most.
const MOST_ENTRIES: usize = 1 << 23;

/// By number of domains left and threads left of each kind, the largest sum of prices.
#[derive(Clone, Debug)]
pub(crate) enum Completion {
    /// `most[domains][threads]`, with exactly these threads.
    Table { most: Vec<Vec<f64>>, weights: Vec<usize> },
    /// `most[domains]`, whatever they hold.
    Flat(Vec<f64>),
}

impl Completion {
    /// For the domains of these `builds`, which are filled from the first to the last. There are
    /// `counts` threads of each kind. `values` are the prices of all holdings.
    pub(crate) fn new(
        fragments: &ProofFragments,
        values: &[f64],
        builds: &[usize],
        counts: &[usize],
    ) -> Self {
        let mut by_counts: Vec<HashMap<&[u8], f64>> = Vec::new();
        for (holding, &value) in fragments.holdings.iter().zip(values) {
            by_counts.resize(by_counts.len().max(holding.build + 1), HashMap::new());
            let best = by_counts[holding.build].entry(&holding.counts).or_insert(value);
            *best = best.max(value);
        }
        let flat = || {
            let mut most = vec![0.0];
            for build in builds.iter().rev() {
                let best = by_counts[*build].values().copied().fold(f64::NEG_INFINITY, f64::max);
                most.push(most[most.len() - 1] + best);
            }
            Self::Flat(most)
        };
        let mut weights = Vec::with_capacity(counts.len());
        let mut entries = 1usize;
        for count in counts {
            weights.push(entries);
            entries = entries.saturating_mul(count + 1);
        }
        let options: usize = builds.iter().map(|build| by_counts[*build].len()).sum();
        if entries.saturating_mul(options) > MOST_STEPS
            || entries.saturating_mul(builds.len() + 1) > MOST_ENTRIES
        {
            return flat();
        }
        // Threads of each kind that an entry has left. They show whether a holding still fits.
        let left: Vec<Vec<u8>> = (0..entries)
            .map(|entry| {
                counts
                    .iter()
                    .zip(&weights)
                    .map(|(count, weight)| (entry / weight % (count + 1)) as u8)
                    .collect()
            })
            .collect();
        let weight = |taken: &[u8]| {
            taken.iter().zip(&weights).map(|(n, weight)| usize::from(*n) * weight).sum()
        };
        let options: Vec<Vec<(&[u8], usize, f64)>> = by_counts
            .iter()
            .map(|options| {
                options.iter().map(|(taken, value)| (*taken, weight(taken), *value)).collect()
            })
            .collect();
        let mut most = vec![vec![f64::NEG_INFINITY; entries]];
        most[0][0] = 0.0;
        for (before, build) in builds.iter().rev().enumerate() {
            let before = &most[before];
            let best = |entry: usize| {
                let fits = |taken: &[u8]| {
                    taken.iter().zip(&left[entry]).all(|(taken, left)| taken <= left)
                };
                let values = options[*build].iter().filter(|(taken, ..)| fits(taken));
                values
                    .map(|(_, offset, value)| value + before[entry - offset])
                    .fold(f64::NEG_INFINITY, f64::max)
            };
            let next = (0..entries).map(best).collect();
            most.push(next);
        }
        Self::Table { most, weights }
    }

    /// The most that the last `domains` domains can be worth with exactly these threads.
    pub(crate) fn most(&self, domains: usize, left: &[u8]) -> f64 {
        match self {
            Self::Table { most, weights } => {
                most[domains][left
                    .iter()
                    .zip(weights)
                    .map(|(left, weight)| usize::from(*left) * weight)
                    .sum::<usize>()]
            }
            Self::Flat(most) => most[domains],
        }
    }
}
