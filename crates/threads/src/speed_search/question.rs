//! [`SpeedQuestion`]: the question of the survey, and its prior.

use crate::cholesky::Matrix;
use crate::equal_pieces::Evenness;
use crate::posterior::{Departure, ErrorModel, Prior};
use crate::scalability_law::Law;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The question of the survey.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpeedQuestion {
    /// Numbers of threads that may be chosen, ascending, each at least 1. If different numbers
    /// start the same program (`Convert`), only one of them belongs here.
    pub candidates: Vec<u32>,
    /// Contexts the program may use.
    pub contexts: u32,
    /// The ordinary length of a probe.
    pub window: Duration,
    /// Share of the best speed that fewer threads may cost: 0.01 by default.
    pub tolerance: f64,
    /// Upper limit of the number of probes.
    pub most_probes: usize,
    /// Upper limit of the time for all probes, their starts and ends included.
    pub most_time: Option<Duration>,
    /// The work of a whole run if that is known, in units of a value times a second, above 0.
    /// All probes then take at most [`PROBE_SHARE`](super::PROBE_SHARE) of the run with the best
    /// value, by the current estimate.
    pub work: Option<f64>,
    /// The number of equal pieces of a run, at least one. They are dealt out evenly (files, frames,
    /// a static loop). With 128 pieces, 25 threads take as long as 22 do, since some do six either
    /// way. A short probe does not show that. Whole runs do, and do not need it.
    pub pieces: Option<u32>,
    /// A probe consists of whole runs, at least one and as many as come nearest to its window.
    /// Values are runs per second.
    pub whole_runs: bool,
    /// The threads that probes see are counted: each starts the program anew, which promises more
    /// threads for a greater candidate. If it makes no more from some candidate on, and is no
    /// faster ([`ThreadCeiling`](crate::ThreadCeiling)), greater ones are that one.
    pub counted: bool,
    /// The greatest number is probed once if time is left, as the least is. False in searches that
    /// an earlier version stored.
    #[serde(default)]
    pub probes_greatest: bool,
}

/// How far readings are off, with probabilities: as far as they report, or more. On a machine that
/// others use, successive readings may also be off by 8 or 20 %, whatever they report.
const NOISES: [(ErrorModel, f64); 4] = [
    (ErrorModel { times: 0.8, beside: 0.0 }, 0.5),
    (ErrorModel { times: 2.4, beside: 0.0 }, 0.35),
    (ErrorModel { times: 0.8, beside: 0.08 }, 0.1),
    (ErrorModel { times: 0.8, beside: 0.2 }, 0.05),
];

impl SpeedQuestion {
    /// With the defaults: a tolerance of 0.01, 40 probes, any time, no pieces. A search that is not
    /// settled after 40 probes will not be.
    pub fn new(candidates: Vec<u32>, contexts: u32, window: Duration) -> Self {
        let (tolerance, most_probes) = (0.01, 40);
        let (most_time, work, pieces, whole_runs, counted) = (None, None, None, false, false);
        Self {
            candidates,
            contexts,
            window,
            tolerance,
            most_probes,
            most_time,
            work,
            pieces,
            whole_runs,
            counted,
            probes_greatest: true,
        }
    }

    /// Time that a probe with this window takes if `value` is seen, without what starts and ends
    /// it.
    pub(super) fn takes(&self, value: f64, window: Duration) -> Duration {
        if !self.whole_runs {
            return window;
        }
        let runs = (window.as_secs_f64() * value).round().max(1.0);
        Duration::try_from_secs_f64(runs / value).unwrap_or(Duration::MAX)
    }

    /// The part of the speed seen that the end of a run leaves, for each candidate.
    pub(super) fn ends(&self) -> Vec<Evenness> {
        let pieces = self.pieces.filter(|&pieces| pieces > 0 && !self.whole_runs);
        let of = |&threads: &u32| {
            pieces.map(|pieces| Evenness::new(pieces, threads, self.contexts.max(1)))
        };
        self.candidates.iter().map(|threads| of(threads).unwrap_or(Evenness::EVEN)).collect()
    }

    /// Laws over the candidates, and the possible departures from them.
    pub(super) fn prior(&self) -> Prior {
        let candidates = &self.candidates;
        let curve = |law: Law| {
            candidates.iter().map(|&threads| law.speedup(f64::from(threads)).ln()).collect()
        };
        let laws = Law::family(self.contexts)
            .into_iter()
            .map(|(law, weight)| (curve(law), weight))
            .collect();
        let mut departures = Vec::new();
        for (smooth, smooth_weight) in [(0.02, 0.5), (0.06, 0.3), (0.2, 0.2)] {
            for (rough, rough_weight) in [(0.003, 0.5), (0.02, 0.5)] {
                for (noise, noise_weight) in NOISES {
                    let covariance = Matrix::from_fn(candidates.len(), |a, b| {
                        let (a, b) = (candidates[a], candidates[b]);
                        let apart = (f64::from(a) / f64::from(b)).ln().abs();
                        let turns = a >= self.contexts && b >= self.contexts;
                        let near = smooth
                            * smooth
                            * ((-apart / 0.7).exp()
                                + if turns { (-apart / 0.3).exp() } else { 0.0 });
                        near + if a == b { rough * rough } else { 0.0 }
                    });
                    departures.push((
                        Departure { covariance, noise },
                        smooth_weight * rough_weight * noise_weight,
                    ));
                }
            }
        }
        Prior::new(laws, departures)
    }
}
