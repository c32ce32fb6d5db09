//! A probe: one measurement of a program with n threads, and what it shows about the program.

use crate::{Detail, MeasureError, Measurement, OtherLoad, Retry, RoleTime, Unit};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// How the operating system schedules a program with n threads, over a short window (K. K. Pusukuri
/// et al., "Thread Reinforcer", IISWC 2011, section III).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SchedulingProfile {
    /// LOCK: share of its threads' time spent waiting for locks, condition variables and the like,
    /// in percent.
    pub lock: f64,
    /// VCX_RATE: voluntary context switches of all its threads, per second.
    pub vcx_rate: f64,
    /// MIGR_RATE: how often its threads moved to another context, per second.
    pub migr_rate: f64,
    /// CPU_UTIL: share of the machine's contexts that were busy, in percent.
    pub cpu_util: f64,
}

/// How a program's progress is measured, the most reliable way first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// A quantity that says what the program is for: packets, frames, bytes; on a model, work that
    /// is done.
    Metric,
    /// Whole runs: the reciprocal of the time from start to end.
    Runs,
    /// Instructions in user mode. Spinning counts, and so does work that one thread more makes
    /// necessary.
    Instructions,
    /// Seconds on a CPU per second, if nothing else can be read. Spinning and waiting for memory
    /// count as work. So it shows how many contexts are busy, and never that more threads make a
    /// program slower.
    CpuTime,
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Metric => "the metric",
            Self::Runs => "whole runs",
            Self::Instructions => "instructions",
            Self::CpuTime => "CPU time",
        })
    }
}

/// How fast a program gets on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Work per second of wall time. Higher is better, it is finite, and all probes of a search
    /// have one unit.
    pub rate: f64,
    /// Standard error of `rate`, if the probe has parts to estimate it from.
    pub error: Option<f64>,
    /// What was counted.
    pub measure: Measure,
}

/// One probe.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Probe {
    /// The parameter it was started with.
    pub parameter: u32,
    /// The threads that made.
    pub threads: u32,
    /// What was observed.
    pub profile: SchedulingProfile,
    /// How fast the program went.
    pub progress: Progress,
    /// Time the probe took, with the program's initialization.
    pub cost: Duration,
}

/// What a probe showed, as the detail of its measurement holds it
/// ([`Measurement::detail`](crate::Measurement::detail)). A testbed may store more next to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Probed {
    /// The probe. The measurement's performance is the rate of its progress.
    pub probe: Probe,
    /// What its progress is counted in.
    pub unit: Unit,
    /// Mean power of the machine meanwhile, in watts. `None` if it is not known.
    pub watts: Option<f64>,
    /// How the threads of each role spent the window.
    #[serde(alias = "parts")]
    pub roles: Vec<RoleTime>,
    /// What other programs took of the contexts meanwhile. `None` if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others: Option<OtherLoad>,
    /// The part of `others` in whole runs whose threads nobody watched, if there were such runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unwatched: Option<OtherLoad>,
    /// With this parameter the program fell below the floor.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub below_floor: bool,
}

impl Probed {
    /// The share of the time of `contexts` that this program lost to others, 0 to 1. It is what
    /// they took while its threads waited for a context, and its part of the stolen time. Of runs
    /// whose threads nobody watched it is the most that they can have lost. `None` if it is not
    /// known what others took.
    pub fn lost(&self, contexts: u32) -> Option<f64> {
        let all = self.others?;
        let Some((rest, most)) = self.unwatched.and_then(|rest| Some((rest, rest.lost_at_most()?)))
        else {
            return self.lost_while_watched(all, contexts);
        };
        let (taken, of) = (all.taken - rest.taken, all.of - rest.of);
        let watched = OtherLoad { stolen: all.stolen - rest.stolen, ..OtherLoad::new(taken, of) };
        let lost = self.lost_while_watched(watched, contexts).unwrap_or_default();
        Some((lost * of + most * rest.of) / all.of)
    }

    fn lost_while_watched(&self, others: OtherLoad, contexts: u32) -> Option<f64> {
        let (taken, stolen) = (others.taken / others.of, others.stolen / others.of);
        let here = taken - stolen;
        let share = |of: fn(&RoleTime) -> f64| {
            let threads = self.roles.iter().map(|role| f64::from(role.threads) * of(role));
            threads.sum::<f64>() / f64::from(contexts)
        };
        // The hypervisor stops the running thread.
        let (ran, waited) = (share(|role| role.ran), share(|role| role.waited));
        let its = if ran > 0.0 { stolen * ran / (ran + here.max(0.0)) } else { 0.0 };
        let lost = here.min(waited) + its;
        lost.is_finite().then(|| lost.clamp(0.0, 1.0))
    }

    /// The measurement of a probe that watched for `window`, with `more` stored next to it.
    pub fn measurement(&self, window: Duration, more: Option<&impl Serialize>) -> Measurement {
        #[derive(Serialize)]
        struct StoredProbe<'a, T> {
            #[serde(flatten)]
            probed: &'a Probed,
            #[serde(skip_serializing_if = "Option::is_none")]
            more: Option<&'a T>,
        }
        Measurement {
            performance: self.probe.progress.rate,
            duration: window,
            spread: self.probe.progress.error,
            detail: Detail::of(&StoredProbe { probed: self, more }),
        }
    }

    /// The probe of a measurement. Error: the measurement is not one of a probe.
    pub fn of(measurement: &Measurement) -> Result<Self, MeasureError> {
        let probed: Self = Self::read(measurement)?;
        // Where an earlier version stored it.
        #[derive(Deserialize)]
        struct More {
            others: Option<OtherLoad>,
        }
        let earlier = || Self::more::<More>(measurement).ok().and_then(|more| more.others);
        Ok(Self { others: probed.others.or_else(earlier), ..probed })
    }

    /// What the testbed stored next to the probe.
    pub fn more<T: DeserializeOwned>(measurement: &Measurement) -> Result<T, MeasureError> {
        #[derive(Deserialize)]
        struct StoredMore<T> {
            more: T,
        }
        Self::read(measurement).map(|StoredMore { more }| more)
    }

    fn read<T: DeserializeOwned>(measurement: &Measurement) -> Result<T, MeasureError> {
        let unreadable = |why: String| {
            let message = format!("the record of a probe cannot be read ({why})");
            MeasureError::new(Retry::Never, message)
        };
        let detail = measurement.detail.as_ref().ok_or_else(|| unreadable("no detail".into()))?;
        detail.read().map_err(|error| unreadable(error.to_string()))
    }
}

/// A probe is starved if it lost this much more than usual. A choice: on a quiet machine windows
/// differ by less.
const STARVED: f64 = 0.2;

/// How much more than usual a probe lost to others ([`Probed::lost`]), if it is starved. `others`
/// has what other probes lost: their median is usual. Without others nothing is unusual.
pub fn starved(lost: f64, others: &[f64]) -> Option<f64> {
    Some(lost - usual(others)?).filter(|&more| more > STARVED)
}

/// What is usual of these: the median, the upper one of two. `None` without any.
pub fn usual(values: &[f64]) -> Option<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// Progress has jumped if it is more than this many times the earlier progress with the same
/// number. It has also jumped if it is less than this part of it. A choice: windows of a busy
/// machine seldom differ by as much.
pub const JUMP: f64 = 4.0;

/// Whether progress that is this many `times` the earlier one has jumped. `eased`: others left the
/// program more than before, so it may be faster.
pub fn jumped(times: f64, eased: bool) -> bool {
    if times > 1.0 { times > JUMP && !eased } else { times < 1.0 / JUMP }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starved_is_what_lost_much_more_than_usual() {
        assert_eq!((starved(0.5, &[]), starved(0.5, &[0.0])), (None, Some(0.5)));
        assert_eq!((starved(0.5, &[0.5]), starved(0.75, &[0.9, 0.5, 0.0])), (None, Some(0.25)));
    }

    #[test]
    fn a_probe_that_an_earlier_version_stored_is_read() {
        let progress = Progress { rate: 2.0, error: None, measure: Measure::Runs };
        let profile = SchedulingProfile::default();
        let probe =
            Probe { parameter: 2, threads: 3, profile, progress, cost: Duration::from_secs(1) };
        let (unit, roles) = (Unit::rate("1/s"), Vec::new());
        let probed = Probed {
            probe,
            unit,
            watts: None,
            roles,
            others: None,
            unwatched: None,
            below_floor: false,
        };
        let mut stored = serde_json::to_value(&probed).unwrap();
        let stored_now = stored.as_object_mut().unwrap();
        let roles = stored_now.remove("roles").unwrap();
        stored_now.insert("parts".into(), roles);
        assert_eq!(serde_json::from_value::<Probed>(stored).unwrap(), probed);
        let others = OtherLoad::new(1.0, 4.0);
        let more = serde_json::json!({ "others": others });
        let measurement = probed.measurement(Duration::from_secs(1), Some(&more));
        assert_eq!(Probed::of(&measurement).unwrap().others, Some(others));
    }

    #[test]
    fn lost_is_what_others_took_while_threads_waited() {
        let role = |threads, waited| RoleTime {
            role: "worker".into(),
            threads,
            ran: 1.0 - waited,
            waited,
            locked: None,
            slept: 0.0,
            voluntary_rate: 0.0,
            involuntary_rate: 0.0,
            migration_rate: None,
            critical: false,
        };
        let progress = Progress { rate: 2.0, error: None, measure: Measure::Runs };
        let (profile, cost) = (SchedulingProfile::default(), Duration::from_secs(1));
        let probe = Probe { parameter: 2, threads: 4, profile, progress, cost };
        let unit = Unit::rate("1/s");
        let (roles, others, below_floor) = (vec![role(4, 0.5)], None, false);
        let unwatched = None;
        let mut probed = Probed { probe, unit, watts: None, roles, others, unwatched, below_floor };
        assert_eq!(probed.lost(4), None);
        probed.others = Some(OtherLoad::new(3.0, 4.0));
        assert_eq!(probed.lost(4), Some(0.5), "two threads waited on average");
        assert_eq!(probed.lost(2), Some(0.75), "more than others took is not lost");
        probed.others = Some(OtherLoad::new(-0.1, 4.0));
        assert_eq!(probed.lost(4), Some(0.0));
        // Nobody waits for a context that the hypervisor took. Two threads ran on average, and
        // others here on two contexts.
        probed.others = Some(OtherLoad { stolen: 1.0, ..OtherLoad::new(1.0, 4.0) });
        assert_eq!(probed.lost(4), Some(0.25), "nobody else was there to lose it");
        probed.others = Some(OtherLoad { stolen: 1.0, ..OtherLoad::new(3.0, 4.0) });
        assert_eq!(probed.lost(4), Some(0.5 + 0.125));
        // A quiet run that was watched, and one in a burst that was not.
        probed.roles = vec![role(4, 0.0)];
        let burst = OtherLoad { pressure: Some(0.9), ..OtherLoad::new(6.0, 8.0) };
        probed.others = Some(OtherLoad::new(0.0, 4.0).with(burst));
        assert_eq!(probed.lost(4), Some(0.0));
        probed.unwatched = Some(burst);
        assert_eq!(probed.lost(4), Some(0.5));
    }
}
