//! The most that further domains can be worth, by the threads of each kind that are left.

use super::piece::Pieces;
use std::collections::HashMap;

/// Steps of filling the table at most; beyond, the bound does without it.
const MOST_STEPS: usize = 60_000_000;
/// Entries at most.
const MOST_ENTRIES: usize = 1 << 23;

/// By number of domains and threads left of each kind, the largest sum of prices.
#[derive(Clone, Debug)]
pub(crate) enum Completion {
    /// `most[domains][threads]`, with exactly these threads.
    Table { most: Vec<Vec<f64>>, weights: Vec<usize> },
    /// What one domain can be worth at most, whatever it holds.
    Flat(f64),
}

impl Completion {
    /// For up to `domains` domains and `counts` threads of each kind; `values` are the prices of all holdings.
    pub(crate) fn new(pieces: &Pieces, values: &[f64], domains: usize, counts: &[usize]) -> Self {
        let flat = || Self::Flat(values.iter().copied().fold(f64::NEG_INFINITY, f64::max));
        let mut by_counts: HashMap<&[u8], f64> = HashMap::new();
        for (holding, &value) in pieces.holdings.iter().zip(values) {
            let best = by_counts.entry(&holding.counts).or_insert(value);
            *best = best.max(value);
        }
        let mut weights = Vec::with_capacity(counts.len());
        let mut entries = 1usize;
        for count in counts {
            weights.push(entries);
            entries = entries.saturating_mul(count + 1);
        }
        let steps = entries.saturating_mul(by_counts.len()).saturating_mul(domains);
        if steps > MOST_STEPS || entries.saturating_mul(domains + 1) > MOST_ENTRIES {
            return flat();
        }
        // Threads of each kind that an entry has left, to see whether what a holding takes is there.
        let left: Vec<Vec<u8>> = (0..entries)
            .map(|entry| {
                counts.iter().zip(&weights).map(|(count, weight)| (entry / weight % (count + 1)) as u8).collect()
            })
            .collect();
        let options: Vec<(&[u8], usize, f64)> = by_counts
            .iter()
            .map(|(taken, value)| {
                (*taken, taken.iter().zip(&weights).map(|(n, weight)| usize::from(*n) * weight).sum(), *value)
            })
            .collect();
        let mut most = vec![vec![f64::NEG_INFINITY; entries]];
        most[0][0] = 0.0;
        for domain in 0..domains {
            let before = &most[domain];
            let best = |entry: usize| {
                let fits = |taken: &[u8]| taken.iter().zip(&left[entry]).all(|(taken, left)| taken <= left);
                let values = options.iter().filter(|(taken, ..)| fits(taken));
                values.map(|(_, offset, value)| value + before[entry - offset]).fold(f64::NEG_INFINITY, f64::max)
            };
            let next = (0..entries).map(best).collect();
            most.push(next);
        }
        Self::Table { most, weights }
    }

    /// The most that `domains` domains can be worth with exactly these threads.
    pub(crate) fn most(&self, domains: usize, left: &[u8]) -> f64 {
        match self {
            Self::Table { most, weights } => {
                most[domains][left.iter().zip(weights).map(|(left, weight)| usize::from(*left) * weight).sum::<usize>()]
            }
            Self::Flat(value) => *value * domains as f64,
        }
    }
}
