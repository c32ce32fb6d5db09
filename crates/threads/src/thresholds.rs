//! The thresholds of the [`crate::Reinforcer`] (what counts as high), and where they come from.
//!
//! Its paper (Pusukuri, Gupta and Bhuyan, IISWC 2011) gives no numbers, but a procedure. The paper
//! ran three programs on small inputs with growing numbers of threads. It says "the threshold
//! values were chosen such that after reaching the threshold value, the value of the profile
//! characteristic became more sensitive to the number of threads and showed a rapid increase". Each
//! program is for one characteristic: "for fluidanimate both LOCK and MIGR_RATE are important; for
//! facesim VCX_RATE is important; and for blackscholes CPU_UTIL is important".
//!
//! [`calibrate`] makes that a rule. It fits two straight lines that meet to the characteristic of
//! the example, by number of threads. They meet at the point that gives the least squares. A Δ
//! threshold is half way between the slopes of the two, times Tstep. The absolute threshold is the
//! value where they meet. The paper also names an absolute threshold of VCX_RATE. Figure 8 never
//! uses it, so there is none here.

use crate::ThreadRange;
use pinwise_measure::SchedulingProfile;
use serde::{Deserialize, Serialize};
use std::fmt;

/// At or above its threshold a value is high, below it is low.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Thresholds {
    /// Threshold of LOCK, in percent.
    pub lock: f64,
    /// Threshold of ΔLOCK, in percentage points.
    pub delta_lock: f64,
    /// Threshold of ΔVCX_RATE, in switches per second.
    pub delta_vcx_rate: f64,
    /// Threshold of ΔMIGR_RATE, in migrations per second.
    pub delta_migr_rate: f64,
    /// Threshold of ΔCPU_UTIL, in percentage points.
    pub delta_cpu_util: f64,
}

impl Thresholds {
    /// The thresholds calibrated from the paper's three examples on the model of its machine
    /// (docs/lab/fidelity-threads.md). They are for steps of 8 threads on 24 contexts.
    pub const OPTERON_24: Self = Self {
        lock: 41.3,
        delta_lock: 8.26,
        delta_vcx_rate: 49_800.0,
        delta_migr_rate: 4080.0,
        delta_cpu_util: 5.44,
    };

    /// The names of all of them, as in a file.
    pub const NAMES: [&str; 5] =
        ["lock", "delta_lock", "delta_vcx_rate", "delta_migr_rate", "delta_cpu_util"];

    /// The thresholds themselves if each is a number above 0: others are never or always
    /// exceeded.
    pub fn check(self) -> Result<Self, ThresholdError> {
        let Self { lock, delta_lock, delta_vcx_rate, delta_migr_rate, delta_cpu_util } = self;
        let values = [lock, delta_lock, delta_vcx_rate, delta_migr_rate, delta_cpu_util];
        let unsound = |(_, value): &(&str, f64)| !(value.is_finite() && *value > 0.0);
        match Self::NAMES.into_iter().zip(values).find(unsound) {
            Some((name, value)) => Err(ThresholdError { name, value }),
            None => Ok(self),
        }
    }

    /// For steps of `step` threads on `contexts` contexts if nothing was calibrated: those of the
    /// model, in proportion. Thresholds that are shares of the machine's time scale with the share
    /// of its contexts in a step. As in the paper, that share is at most a third. Otherwise a
    /// threshold could exceed the possible rise of a share. Thresholds that are rates scale with
    /// the threads of a step. Treat all of them as a start: the cost of a switch or a migration
    /// differs between machines.
    pub fn scaled(step: u32, contexts: u32) -> Self {
        let model = Self::OPTERON_24;
        let threads = f64::from(step) / f64::from(ThreadRange::PUBLISHED.step);
        let part = (threads * 24.0 / f64::from(contexts.max(1))).min(1.0);
        Self {
            lock: model.lock,
            delta_lock: model.delta_lock * part,
            delta_vcx_rate: model.delta_vcx_rate * threads,
            delta_migr_rate: model.delta_migr_rate * threads,
            delta_cpu_util: model.delta_cpu_util * part,
        }
    }
}

/// A threshold that cannot be one.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("{name} = {value} is not a threshold: it must be a number above 0")]
pub struct ThresholdError {
    /// Which, as in a file.
    pub name: &'static str,
    /// The value.
    pub value: f64,
}

/// Profiles of one program by its number of threads, ascending.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProfilesByNumber(pub Vec<(u32, SchedulingProfile)>);

/// The three examples by what they show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Example {
    /// LOCK and MIGR_RATE: with more threads, they wait for locks and migrate more. fluidanimate in
    /// the paper.
    Locks,
    /// VCX_RATE: its threads switch voluntarily. facesim in the paper.
    Switches,
    /// CPU_UTIL: its parallelism ends early. blackscholes in the paper.
    Parallelism,
}

impl Example {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Locks, Self::Switches, Self::Parallelism];
}

impl fmt::Display for Example {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Locks => "locks",
            Self::Switches => "switches",
            Self::Parallelism => "parallelism",
        })
    }
}

/// A quantity of a profile that one of the examples shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Characteristic {
    /// The share of the threads' time that is spent waiting for locks, in percent.
    Lock,
    /// Migrations per second.
    MigrRate,
    /// Voluntary context switches per second.
    VcxRate,
    /// The share of the machine's time that the program uses, in percent.
    CpuUtil,
}

impl Characteristic {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Lock, Self::MigrRate, Self::VcxRate, Self::CpuUtil];

    /// The example that shows it.
    pub fn example(self) -> Example {
        match self {
            Self::Lock | Self::MigrRate => Example::Locks,
            Self::VcxRate => Example::Switches,
            Self::CpuUtil => Example::Parallelism,
        }
    }

    /// Its value with each number of threads that counts on `contexts` contexts, from its example.
    /// VCX_RATE is looked at up to as many threads as contexts, MIGR_RATE from there on, as the
    /// search does. LOCK and CPU_UTIL are looked at over all.
    pub fn points(self, curve: &ProfilesByNumber, contexts: u32) -> Vec<(f64, f64)> {
        let (from, to) = match self {
            Self::Lock | Self::CpuUtil => (1, u32::MAX),
            Self::MigrRate => (contexts, u32::MAX),
            Self::VcxRate => (1, contexts),
        };
        let value = |profile: &SchedulingProfile| match self {
            Self::Lock => profile.lock,
            Self::MigrRate => profile.migr_rate,
            Self::VcxRate => profile.vcx_rate,
            Self::CpuUtil => profile.cpu_util,
        };
        let inside = curve.0.iter().filter(|(threads, _)| (from..=to).contains(threads));
        inside.map(|(threads, profile)| (f64::from(*threads), value(profile))).collect()
    }
}

impl fmt::Display for Characteristic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Lock => "LOCK",
            Self::MigrRate => "MIGR_RATE",
            Self::VcxRate => "VCX_RATE",
            Self::CpuUtil => "CPU_UTIL",
        })
    }
}

/// Why there are no thresholds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no threshold of {characteristic} from the example for {}: {reason}",
    .characteristic.example()
)]
pub struct CalibrationError {
    /// What has no threshold.
    pub characteristic: Characteristic,
    /// The reason: what is missing.
    pub reason: &'static str,
}

/// Thresholds for searches over `range` on `contexts` contexts. Each comes from the curve of an
/// example: one for locks, one for switches, one for parallelism. Errors: fewer than four numbers
/// of threads to look at, or a characteristic that grows nowhere.
pub fn calibrate(
    range: ThreadRange,
    contexts: u32,
    locks: &ProfilesByNumber,
    switches: &ProfilesByNumber,
    parallelism: &ProfilesByNumber,
) -> Result<Thresholds, CalibrationError> {
    let knee = |characteristic: Characteristic| {
        let curve = match characteristic.example() {
            Example::Locks => locks,
            Example::Switches => switches,
            Example::Parallelism => parallelism,
        };
        let error = |reason| CalibrationError { characteristic, reason };
        let knee = Knee::of(&characteristic.points(curve, contexts))
            .ok_or_else(|| error("fewer than four numbers of threads were probed"))?;
        let delta = knee.delta(range.step);
        if delta > 0.0 {
            Ok((knee.value, delta))
        } else {
            Err(error("it does not grow with the number of threads"))
        }
    };
    let (lock, delta_lock) = knee(Characteristic::Lock)?;
    let (_, delta_migr_rate) = knee(Characteristic::MigrRate)?;
    let (_, delta_vcx_rate) = knee(Characteristic::VcxRate)?;
    let (_, delta_cpu_util) = knee(Characteristic::CpuUtil)?;
    Ok(Thresholds { lock, delta_lock, delta_vcx_rate, delta_migr_rate, delta_cpu_util })
}

/// Two straight lines that meet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Knee {
    /// The number of threads at which they meet.
    pub threads: f64,
    /// The value at which they meet.
    pub value: f64,
    /// Slope up to there.
    pub before: f64,
    /// Slope from there.
    pub after: f64,
}

impl Knee {
    /// The best two lines that meet at one of the inner points; `None` for fewer than four points.
    pub fn of(points: &[(f64, f64)]) -> Option<Self> {
        let inner = points.get(1..points.len().checked_sub(1)?)?;
        if points.len() < 4 {
            return None;
        }
        let fits = inner.iter().map(|&(meeting, _)| Self::meeting(meeting, points));
        fits.min_by(|(one, _), (other, _)| one.total_cmp(other)).map(|(_, knee)| knee)
    }

    /// The value of the lines with a number of threads.
    pub fn at(&self, threads: f64) -> f64 {
        let beyond = threads - self.threads;
        self.value + beyond * if beyond < 0.0 { self.before } else { self.after }
    }

    /// The Δ threshold: half way between the slopes, times a step of the search.
    pub fn delta(&self, step: u32) -> f64 {
        (self.before + self.after) / 2.0 * f64::from(step)
    }

    /// Least squares of y = value + before · min(x - meeting, 0) + after · max(x - meeting, 0).
    /// Also gives its squared error.
    fn meeting(meeting: f64, points: &[(f64, f64)]) -> (f64, Self) {
        let row = |x: f64| [1.0, (x - meeting).min(0.0), (x - meeting).max(0.0)];
        let mut normal = [[0.0; 4]; 3];
        for &(x, y) in points {
            let row = row(x);
            for i in 0..3 {
                for j in 0..3 {
                    normal[i][j] += row[i] * row[j];
                }
                normal[i][3] += row[i] * y;
            }
        }
        let [value, before, after] = solve(normal);
        let knee = Self { threads: meeting, value, before, after };
        let error = |&(x, y): &(f64, f64)| (y - knee.at(x)).powi(2);
        (points.iter().map(error).sum(), knee)
    }
}

/// Solves a symmetric positive definite system of three equations by elimination.
fn solve(mut system: [[f64; 4]; 3]) -> [f64; 3] {
    for pivot in 0..3 {
        for row in (0..3).filter(|&row| row != pivot) {
            let factor = system[row][pivot] / system[pivot][pivot];
            let reduced = system[pivot];
            for (value, subtrahend) in system[row].iter_mut().zip(reduced) {
                *value -= factor * subtrahend;
            }
        }
    }
    [0, 1, 2].map(|row| system[row][3] / system[row][row])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(of: impl Fn(f64) -> SchedulingProfile) -> ProfilesByNumber {
        ProfilesByNumber((1..=18).map(|step| (step * 4, of(f64::from(step * 4)))).collect())
    }

    #[test]
    fn a_knee_is_found_where_it_is() {
        let points: Vec<(f64, f64)> =
            (0..20).map(f64::from).map(|x| (x, 5.0 + x + 3.0 * (x - 12.0).max(0.0))).collect();
        let knee = Knee::of(&points).unwrap();
        assert!(
            knee.threads == 12.0
                && (knee.value - 17.0).abs() < 1e-9
                && (knee.before - 1.0).abs() < 1e-9
                && (knee.after - 4.0).abs() < 1e-9
        );
        assert_eq!(Knee::of(&points[..3]), None);
        assert_eq!(Knee::of(&[]), None);
    }

    #[test]
    fn thresholds_lie_between_the_slow_and_the_rapid_growth_of_the_examples() {
        let locks = curve(|n| SchedulingProfile {
            lock: 10.0 + 0.25 * n + 2.0 * (n - 24.0).max(0.0),
            migr_rate: 10.0 * n + 90.0 * (n - 40.0).max(0.0),
            ..SchedulingProfile::default()
        });
        let switches = curve(|n| SchedulingProfile {
            vcx_rate: 100.0 * n + 900.0 * (n - 16.0).max(0.0),
            ..SchedulingProfile::default()
        });
        let parallelism = curve(|n| SchedulingProfile {
            cpu_util: n.min(12.0) * 2.0,
            ..SchedulingProfile::default()
        });
        let found = calibrate(ThreadRange::PUBLISHED, 24, &locks, &switches, &parallelism).unwrap();
        let close = |one: f64, other: f64| (one - other).abs() < 1e-6 * other;
        assert!(close(found.lock, 16.0) && close(found.delta_lock, 10.0), "{found:?}");
        assert!(
            close(found.delta_migr_rate, 440.0) && close(found.delta_vcx_rate, 4400.0),
            "{found:?}"
        );
        assert!(close(found.delta_cpu_util, 8.0), "{found:?}");
    }

    #[test]
    fn thresholds_scale_with_the_step_and_the_machine() {
        assert_eq!(Thresholds::scaled(8, 24), Thresholds::OPTERON_24);
        let small = Thresholds::scaled(2, 6);
        assert_eq!(
            (small.lock, small.delta_cpu_util),
            (41.3, 5.44),
            "a third of the contexts as well"
        );
        assert_eq!((small.delta_vcx_rate, small.delta_migr_rate), (12_450.0, 1020.0));
        let coarse = Thresholds::scaled(8, 2);
        assert_eq!(
            (coarse.delta_lock, coarse.delta_cpu_util),
            (8.26, 5.44),
            "a step beyond all contexts"
        );
        assert_eq!(coarse.delta_vcx_rate, 49_800.0);
    }

    #[test]
    fn what_is_no_number_above_0_is_no_threshold() {
        let sound = Thresholds::OPTERON_24;
        assert_eq!(sound.check(), Ok(sound));
        for value in [-5.0, 0.0, f64::INFINITY] {
            let error = Thresholds { lock: value, ..sound }.check().unwrap_err();
            assert_eq!((error.name, error.value), ("lock", value));
        }
        let error = Thresholds { delta_cpu_util: f64::NAN, ..sound }.check().unwrap_err();
        assert!(
            error.to_string().starts_with("delta_cpu_util = NaN is not a threshold"),
            "{error}"
        );
    }

    #[test]
    fn examples_that_show_nothing_are_refused() {
        let flat = curve(|_| SchedulingProfile::default());
        let error = calibrate(ThreadRange::PUBLISHED, 24, &flat, &flat, &flat).unwrap_err();
        assert_eq!(error.characteristic, Characteristic::Lock);
        let expected = "no threshold of LOCK from the example for locks: it does not grow with";
        assert!(error.to_string().starts_with(expected), "{error}");
        let short = ProfilesByNumber(vec![(8, SchedulingProfile::default())]);
        assert!(
            calibrate(ThreadRange::PUBLISHED, 24, &short, &flat, &flat)
                .unwrap_err()
                .reason
                .contains("four")
        );
    }
}
