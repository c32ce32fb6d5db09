//! What casts doubt on measured latencies.

use super::{DirectedLatency, Latencies};
use pinwise_topology::CpuId;
use serde::{Deserialize, Serialize};

/// A thread that waits for its CPU for a larger share of the time was not alone.
const WAITED: f64 = 0.01;
/// The middle half of the batches on a line spreads less than this, relative to their median, where
/// nothing disturbs.
const SPREAD: f64 = 0.1;

/// A reason to doubt measured latencies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum LatencyWarning {
    /// Measuring threads waited for their CPUs.
    Busy {
        /// Directions in which one did.
        directions: usize,
        /// All directions.
        of: usize,
        /// The largest share of the time.
        waited: f64,
        /// Where that was: the writer.
        from: CpuId,
        /// The other context.
        to: CpuId,
    },
    /// Batches on one line differ.
    Unsteady {
        /// Directions in which they do.
        directions: usize,
        /// All directions.
        of: usize,
        /// The largest spread of the middle half, relative to the median.
        spread: f64,
        /// Where that was: the writer.
        from: CpuId,
        /// The other context.
        to: CpuId,
    },
    /// There was no time to measure some directions.
    NoTime {
        /// From, to.
        directions: Vec<(CpuId, CpuId)>,
    },
}

impl Latencies {
    /// What casts doubt on them.
    pub fn warnings(&self) -> Vec<LatencyWarning> {
        let of = self.directions.len();
        let worst = |measure: &dyn Fn(&DirectedLatency) -> Option<f64>, least: f64| {
            let all = self.directions.iter().filter_map(|one| Some((one, measure(one)?)));
            let beyond: Vec<(&DirectedLatency, f64)> =
                all.filter(|(_, value)| *value > least).collect();
            let worst = *beyond.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
            Some((worst.0, worst.1, beyond.len()))
        };
        let busy = worst(&|one| Some(one.waited), WAITED).map(|(one, waited, directions)| {
            LatencyWarning::Busy { directions, of, waited, from: one.from, to: one.to }
        });
        let unsteady = worst(&DirectedLatency::spread, SPREAD).map(|(one, spread, directions)| {
            LatencyWarning::Unsteady { directions, of, spread, from: one.from, to: one.to }
        });
        let missing = self.directions.iter().filter(|direction| direction.batches() == 0);
        let directions: Vec<(CpuId, CpuId)> = missing.map(|one| (one.from, one.to)).collect();
        let missing = (!directions.is_empty()).then_some(LatencyWarning::NoTime { directions });
        busy.into_iter().chain(unsteady).chain(missing).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn waiting_scatter_and_missing_batches_are_warned_of_with_the_worst_direction() {
        let direction = |from: u32, waited: f64, lines: Vec<Vec<f64>>| DirectedLatency {
            from: CpuId(from),
            to: CpuId(9),
            lines,
            waited,
        };
        let steady = vec![vec![50.0; 8]];
        let of = |directions: Vec<DirectedLatency>| {
            Latencies::new(directions, None, Duration::ZERO).warnings()
        };
        assert_eq!(of(vec![direction(0, 0.0, steady.clone())]), []);
        let wide = vec![vec![25.0, 25.0, 25.0, 50.0, 75.0, 75.0, 75.0]];
        let (from, to) = (CpuId(1), CpuId(9));
        assert_eq!(
            of(vec![
                direction(0, 0.2, steady.clone()),
                direction(1, 0.3, wide),
                direction(2, 0.0, Vec::new()),
            ]),
            [
                LatencyWarning::Busy { directions: 2, of: 3, waited: 0.3, from, to },
                LatencyWarning::Unsteady { directions: 1, of: 3, spread: 1.0, from, to },
                LatencyWarning::NoTime { directions: vec![(CpuId(2), to)] },
            ]
        );
    }
}
