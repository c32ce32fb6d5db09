//! Core-to-core latencies: the time that a cache line takes between two contexts. The structure of
//! the machine follows from it.
//!
//! *Latency from A to B* is the time until B has a cache line that A has just written. It is in
//! nanoseconds or processor cycles. It is one way: half a round trip. A [`LatencyMatrix`] has one
//! for each ordered pair of contexts, with gaps where nothing is known.
//!
//! **From latencies to levels.** Contexts that share more are nearer. SMT siblings need some 10 ns,
//! cores of one package some 50, packages 100 and more. From a matrix alone, [`LatencyLevels`]
//! derives the tree of levels that it implies. That tree is compared with the declaration of the
//! firmware by [`LatencyComparison`]. The idea is that of G. Chatzopoulos, R. Guerraoui, T. Harris
//! and V. Trigonakis, "Abstracting Multi-Core Topologies with MCTOP", EuroSys 2017, section 3. They
//! find clusters in the distribution of the values, then build components from the nearest cluster
//! outwards. Here both are one step (see [`LatencyLevels`]). On real machines clusters of values
//! overlap and groups of contexts do not.
//!
//! **Robust reading.** Disturbances only ever add time, so of the two directions of a pair the
//! lower counts. Values that no machine has (0, or 100 times away from the median) are left out and
//! named ([`Oddity`]). Published tables contain one of 199,768,580.

mod comparison;
mod csv;
mod levels;
mod mct;

pub use comparison::{DeclaredGroups, Difference, LatencyComparison, LevelMatch};
pub use levels::{LatencyClass, LatencyLevel, LatencyLevels};
pub use mct::{HeaderCheck, MctCache, MctFile};

use crate::CpuId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// The unit of latencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LatencyUnit {
    /// Nanoseconds.
    Ns,
    /// Cycles, of the processor or of its time stamp counter.
    Cycles,
}

impl fmt::Display for LatencyUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ns => "ns",
            Self::Cycles => "cycles",
        })
    }
}

/// Latencies between the contexts of a machine.
#[derive(Clone, Debug, PartialEq)]
pub struct LatencyMatrix {
    contexts: Vec<CpuId>,
    unit: LatencyUnit,
    /// Row by row, the writer first; NaN where nothing is known.
    cells: Vec<f64>,
}

/// Why values are no latency matrix, or a text has none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LatencyError {
    /// The contexts or values cannot be those of a machine.
    #[error("no latency matrix: {0}")]
    Malformed(String),
    /// A line of a file cannot be read.
    #[error("line {line}: {reason}")]
    Line {
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// A file has less than it says it has.
    #[error("the file has {found} of {expected} {what}: it was cut short, get the whole file")]
    Incomplete {
        /// The name of the list, and for latencies the first that is missing.
        what: String,
        /// How many the file declares.
        expected: usize,
        /// How many it has.
        found: usize,
    },
}

/// A value that was not used as it stands.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Oddity {
    /// No machine has it: left out.
    Impossible {
        /// Who wrote.
        from: CpuId,
        /// Who read.
        to: CpuId,
        /// The value.
        value: f64,
    },
    /// The two directions differ by more than a factor of 2: the lower counts.
    Asymmetric {
        /// The direction of the lower value: who wrote.
        from: CpuId,
        /// Who read.
        to: CpuId,
        /// The value that counts.
        low: f64,
        /// The other one.
        high: f64,
    },
}

/// More contexts than were ever measured against each other. A larger number is a mistake in a
/// file, and would cost memory.
pub(crate) const MOST_CONTEXTS: usize = 2048;
/// A value this many times away from the median of its matrix is no latency. Even the largest
/// machines span only a factor of 100.
const IMPOSSIBLE: f64 = 100.0;

impl LatencyMatrix {
    /// A matrix over `contexts`, row by row, the writer first. The diagonal is ignored. Errors:
    /// fewer than two contexts, more than 2,048, or one twice. Also a pair without a value, or a
    /// value that is negative or not finite.
    pub fn new(
        contexts: Vec<CpuId>,
        unit: LatencyUnit,
        cells: Vec<Option<f64>>,
    ) -> Result<Self, LatencyError> {
        let malformed = |reason: String| Err(LatencyError::Malformed(reason));
        let n = contexts.len();
        if !(2..=MOST_CONTEXTS).contains(&n) {
            return malformed(format!("{n} contexts; expected 2 to {MOST_CONTEXTS}"));
        }
        if cells.len() != n * n {
            return malformed(format!(
                "{} values for {n} contexts; expected {}",
                cells.len(),
                n * n
            ));
        }
        let mut seen = BTreeSet::new();
        if let Some(twice) = contexts.iter().find(|&&cpu| !seen.insert(cpu)) {
            return malformed(format!("context {} appears twice", twice.0));
        }
        if let Some(value) =
            cells.iter().flatten().find(|value| !value.is_finite() || **value < 0.0)
        {
            return malformed(format!("{value} is not a latency"));
        }
        let cells = cells.into_iter().map(|cell| cell.unwrap_or(f64::NAN)).collect();
        Ok(Self { contexts, unit, cells })
    }

    /// The contexts, in the order of rows and columns.
    pub fn contexts(&self) -> &[CpuId] {
        &self.contexts
    }

    /// What the values are counted in.
    pub fn unit(&self) -> LatencyUnit {
        self.unit
    }

    /// The latency from context number `from` to number `to` (positions in [`Self::contexts`]), as
    /// given. `None` on the diagonal, and if nothing is known. Panics where there is no such
    /// context.
    pub fn get(&self, from: usize, to: usize) -> Option<f64> {
        let value = self.cells[from * self.contexts.len() + to];
        (from != to && !value.is_nan()).then_some(value)
    }

    /// The latency of each unordered pair, robustly: see the head of this module.
    pub fn pairs(&self) -> Pairs {
        Pairs::of(self)
    }
}

/// The latency of each unordered pair of contexts, robustly read from a [`LatencyMatrix`].
#[derive(Clone, Debug)]
pub struct Pairs {
    n: usize,
    /// Row by row, symmetric; NaN where nothing is known and on the diagonal.
    values: Vec<f64>,
    /// What was not used as it stands.
    pub oddities: Vec<Oddity>,
    /// How far the two directions of a pair are apart, as the logarithm of their ratio. It is the
    /// 90 % quantile over all pairs known in both directions. It is what is known about the noise;
    /// `None` where each pair is known in one direction only.
    pub asymmetry: Option<f64>,
}

impl Pairs {
    fn of(matrix: &LatencyMatrix) -> Self {
        let n = matrix.contexts.len();
        let mut known: Vec<f64> =
            (0..n * n).filter_map(|cell| matrix.get(cell / n, cell % n)).collect();
        known.retain(|&value| value > 0.0);
        known.sort_by(f64::total_cmp);
        let median = known.get(known.len() / 2).copied().unwrap_or(f64::NAN);
        let mut oddities = Vec::new();
        let mut read = |from: usize, to: usize| {
            let value = matrix.get(from, to)?;
            if value > median / IMPOSSIBLE && value < median * IMPOSSIBLE {
                return Some(value);
            }
            oddities.push(Oddity::Impossible {
                from: matrix.contexts[from],
                to: matrix.contexts[to],
                value,
            });
            None
        };
        let mut values = vec![f64::NAN; n * n];
        let mut differences = Vec::new();
        let mut asymmetric = Vec::new();
        for (a, b) in (0..n).flat_map(|a| (a + 1..n).map(move |b| (a, b))) {
            let (there, back) = (read(a, b), read(b, a));
            let Some(low) = there.into_iter().chain(back).reduce(f64::min) else { continue };
            (values[a * n + b], values[b * n + a]) = (low, low);
            let (Some(there), Some(back)) = (there, back) else { continue };
            differences.push((there / back).ln().abs());
            let high = there.max(back);
            if high > 2.0 * low {
                let (from, to) = if there < back { (a, b) } else { (b, a) };
                let (from, to) = (matrix.contexts[from], matrix.contexts[to]);
                asymmetric.push(Oddity::Asymmetric { from, to, low, high });
            }
        }
        oddities.append(&mut asymmetric);
        differences.sort_by(f64::total_cmp);
        let asymmetry = differences.get(differences.len() * 9 / 10).copied();
        Self { n, values, oddities, asymmetry }
    }

    /// How many contexts.
    pub fn contexts(&self) -> usize {
        self.n
    }

    /// The latency between contexts number `a` and `b`; `None` for one and the same, and where
    /// nothing is known. Panics where there is no such context.
    pub fn get(&self, a: usize, b: usize) -> Option<f64> {
        let value = self.values[a * self.n + b];
        (!value.is_nan()).then_some(value)
    }
}

/// The middle value (the upper of two), lowest and highest of some; `None` of none.
fn summary(mut values: Vec<f64>) -> Option<(f64, f64, f64)> {
    values.sort_by(f64::total_cmp);
    Some((*values.get(values.len() / 2)?, *values.first()?, *values.last()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(n: u32, cells: &[f64]) -> LatencyMatrix {
        let cells = cells.iter().map(|&value| (!value.is_nan()).then_some(value)).collect();
        LatencyMatrix::new((0..n).map(CpuId).collect(), LatencyUnit::Ns, cells).unwrap()
    }

    #[test]
    fn the_lower_direction_counts_and_great_differences_are_named() {
        let pairs = matrix(3, &[0.0, 50.0, 50.0, 52.0, 0.0, 40.0, 50.0, 130.0, 0.0]).pairs();
        assert_eq!(
            [pairs.get(0, 1), pairs.get(1, 0), pairs.get(2, 1)],
            [Some(50.0), Some(50.0), Some(40.0)]
        );
        let odd = Oddity::Asymmetric { from: CpuId(1), to: CpuId(2), low: 40.0, high: 130.0 };
        assert_eq!(pairs.oddities, [odd]);
        assert_eq!(pairs.asymmetry, Some((130.0f64 / 40.0).ln()));
    }

    #[test]
    fn an_impossible_value_is_left_out_and_its_other_direction_stands() {
        let corrupt = 199_768_580.0;
        let pairs = matrix(3, &[0.0, corrupt, 338.0, 338.0, 0.0, 0.0, 338.0, 0.0, 0.0]).pairs();
        assert_eq!(
            [pairs.get(0, 1), pairs.get(0, 2), pairs.get(1, 2)],
            [Some(338.0), Some(338.0), None]
        );
        let odd = |from, to, value| Oddity::Impossible { from: CpuId(from), to: CpuId(to), value };
        assert_eq!(pairs.oddities, [odd(0, 1, corrupt), odd(1, 2, 0.0), odd(2, 1, 0.0)]);
    }

    #[test]
    fn a_diagonal_is_not_looked_at_and_gaps_are_gaps() {
        let nan = f64::NAN;
        let pairs = matrix(2, &[7.0, nan, 30.0, 9.0]).pairs();
        assert_eq!([pairs.get(0, 0), pairs.get(0, 1)], [None, Some(30.0)]);
        assert_eq!(pairs.asymmetry, None);
        assert!(pairs.oddities.is_empty());
    }

    #[test]
    fn what_is_no_matrix_is_refused_with_the_reason() {
        let refuse = |contexts: &[u32], cells: &[f64]| {
            let contexts = contexts.iter().map(|&cpu| CpuId(cpu)).collect();
            let cells = cells.iter().map(|&value| Some(value)).collect();
            LatencyMatrix::new(contexts, LatencyUnit::Ns, cells).unwrap_err().to_string()
        };
        assert!(refuse(&[0], &[0.0]).contains("1 contexts; expected 2 to 2048"));
        assert!(refuse(&[0, 1], &[0.0; 3]).contains("3 values for 2 contexts; expected 4"));
        assert!(refuse(&[3, 3], &[0.0; 4]).contains("context 3 appears twice"));
        assert!(refuse(&[0, 1], &[0.0, -5.0, 5.0, 0.0]).contains("-5 is not a latency"));
        assert!(refuse(&[0, 1], &[0.0, f64::INFINITY, 5.0, 0.0]).contains("inf is not a latency"));
    }
}
