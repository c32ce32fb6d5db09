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
    /// Numbers of threads that may be chosen, ascending, each at least 1. If `Convert` turns two
    /// numbers into the same parameter, only one of them belongs here.
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
    /// The number of equal pieces of a run, at least one: files, frames, a static loop. Threads get
    /// equally many, as far as possible. With 128 pieces, 25 threads take as long as 22: some
    /// thread does six pieces in both cases. Only whole runs show that, so they do not need this.
    pub pieces: Option<u32>,
    /// A probe consists of whole runs. It has at least one, and as many as come nearest to its
    /// window. Values are runs per second.
    pub whole_runs: bool,
    /// Probes count threads. Each restarts the program, so a larger candidate should give more
    /// threads. From some candidate on, the program may make no more threads and run equally fast.
    /// Larger candidates then count as that one ([`ThreadCeiling`](crate::ThreadCeiling)).
    pub counted: bool,
    /// If time is left, the greatest number is probed once, like the least one. False in searches
    /// that an earlier version stored.
    #[serde(default)]
    pub probes_greatest: bool,
}

/// Possible errors of readings, with their probabilities. A reading reports its own error. The true
/// one is a multiple of it. On a machine that others use, 8 or 20 % may come on top.
const NOISES: [(ErrorModel, f64); 4] = [
    (ErrorModel { times: 0.8, beside: 0.0 }, 0.5),
    (ErrorModel { times: 2.4, beside: 0.0 }, 0.35),
    (ErrorModel { times: 0.8, beside: 0.08 }, 0.1),
    (ErrorModel { times: 0.8, beside: 0.2 }, 0.05),
];

impl SpeedQuestion {
    /// With the defaults: a tolerance of 0.01, 40 probes, any time, no pieces. More probes would
    /// hardly settle a search that is not settled after 40.
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

    /// Time that a probe with this window takes at the speed `value`, without its start and end.
    pub(super) fn takes(&self, value: f64, window: Duration) -> Duration {
        if !self.whole_runs {
            return window;
        }
        let runs = (window.as_secs_f64() * value).round().max(1.0);
        Duration::try_from_secs_f64(runs / value).unwrap_or(Duration::MAX)
    }

    /// The share of the speed that is left after the uneven end of a run, for each candidate.
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
