//! Thread Reinforcer (K. K. Pusukuri, R. Gupta and L. N. Bhuyan, IISWC 2011), the search of its
//! figure 8, line by line.
//!
//! ```text
//! FindN() {
//!   Tbest ← Tmin; Nbest ← Convert(Tbest)
//!   Pbest ← profile of a 100 milliseconds run with parameter Nbest
//!   Ttry ← Tmin + Tstep; Ntry ← Convert(Ttry)
//!   Ptry ← profile of a 100 milliseconds run with parameter Ntry
//!   loop
//!     if Terminate(Pbest, Ptry) = true then return(Nbest)
//!     else
//!       Tbest ← Ttry; Nbest ← Ntry; Pbest ← Ptry
//!       Ttry ← ComputeNextT(Pbest, Ptry); Ntry ← Convert(Ttry)
//!       Ptry ← profile of a 100 milliseconds run with parameter Ntry
//! }
//! ComputeNextT(Pbest, Ptry) {
//!   if Ttry ≤ NumCores then
//!     if low(Ptry.LOCK) or low(Ptry.ΔVCX_RATE) or (high(Ptry.LOCK) and low(Ptry.ΔLOCK))
//!       then ΔT = Tstep else ΔT = Tstep/2
//!   else
//!     if low(Ptry.LOCK) or low(Ptry.ΔMIGR_RATE) then ΔT = Tstep else ΔT = Tstep/2
//!   return(minimum(Ttry + ΔT, Tmax))
//! }
//! Terminate(Pbest, Ptry) {
//!   if low(Ptry.ΔCPU_UTIL) then return(true)
//!   if high(Ptry.LOCK) then
//!     if high(Ptry.ΔLOCK) or Ttry ≤ NumCores and high(Ptry.ΔVCX_RATE)
//!       or Ttry > NumCores and high(Ptry.ΔMIGR_RATE)
//!       then return(true)
//!   if Ttry = Tmax then Tbest ← Ttry; Nbest ← Ntry; return(true)
//!   return(false)
//! }
//! ```
//!
//! with ΔP.field = Ptry.field - Pbest.field, and each value either low or high. One place needs
//! interpretation. FindN sets Pbest ← Ptry just before it calls ComputeNextT(Pbest, Ptry). Taken
//! literally, every Δ in there would be 0, always low, and Tstep/2 never taken. The text says that
//! "the changes of these values over the past two runs" decide. So the Δ of a run is taken here
//! against the run before it, and stored. `Convert` turns a number of threads T into the program's
//! parameter N ([`crate::ThreadsPerN`]). The caller that probes applies it.

use crate::Thresholds;
use crate::thread_range::{ThreadRange, ThreadRangeError};
use pinwise_measure::SchedulingProfile;
use serde::{Deserialize, Serialize};

/// Why the published search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ReinforcerEnd {
    /// More threads kept hardly more contexts busy: "no more parallelism was found".
    CpuUtil,
    /// Waiting for locks was high and rose fast.
    Lock,
    /// Waiting for locks was high and voluntary switches rose fast, with at most as many threads as
    /// contexts.
    VcxRate,
    /// Waiting for locks was high and migrations rose fast, with more threads than contexts.
    MigrRate,
    /// There was nothing left to try.
    MostThreads,
}

/// The result of the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReinforcerChoice {
    /// Tbest.
    pub threads: u32,
    /// Why it went no further.
    pub reason: ReinforcerEnd,
}

/// The next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReinforcerStep {
    /// Probe with this number of threads.
    Try(u32),
    /// Done.
    Stop(ReinforcerChoice),
}

/// The search: a pure function of its observations.
#[derive(Clone, Debug, PartialEq)]
pub struct Reinforcer {
    range: ThreadRange,
    contexts: u32,
    thresholds: Thresholds,
    best: Option<(u32, SchedulingProfile)>,
    next: ReinforcerStep,
}

/// A probe against the one before it.
struct ProbeChange {
    threads: u32,
    lock: f64,
    delta: SchedulingProfile,
}

impl Reinforcer {
    /// A search on a machine of `contexts` contexts. Error: a range without numbers or steps.
    pub fn new(
        range: ThreadRange,
        contexts: u32,
        thresholds: Thresholds,
    ) -> Result<Self, ThreadRangeError> {
        let range = range.check(2)?;
        Ok(Self { range, contexts, thresholds, best: None, next: ReinforcerStep::Try(range.min) })
    }

    /// The next step; the same until the next observation.
    pub fn next(&self) -> ReinforcerStep {
        self.next
    }

    /// Skips the number asked for, which stands for the same parameter as the one before. A probe
    /// of the same program would show no change and end the search. Figure 8 assumes that each step
    /// changes the parameter.
    pub fn pass(&mut self) -> ReinforcerStep {
        if let (ReinforcerStep::Try(threads), Some((best, _))) = (self.next, self.best) {
            self.next = if threads == self.range.max {
                ReinforcerStep::Stop(ReinforcerChoice {
                    threads: best,
                    reason: ReinforcerEnd::MostThreads,
                })
            } else {
                ReinforcerStep::Try((threads + self.range.step).min(self.range.max))
            };
        }
        self.next
    }

    /// Takes what a probe with the number asked for saw. After the end, nothing changes any more.
    pub fn observe(&mut self, profile: SchedulingProfile) -> ReinforcerStep {
        let ReinforcerStep::Try(threads) = self.next else { return self.next };
        self.next = match self.best {
            // The figure assumes that Tmin + Tstep is in the range. In a range shorter than a step,
            // the second number is its end.
            None if threads == self.range.max => ReinforcerStep::Stop(ReinforcerChoice {
                threads,
                reason: ReinforcerEnd::MostThreads,
            }),
            None => ReinforcerStep::Try((threads + self.range.step).min(self.range.max)),
            Some((best, before)) => {
                let seen =
                    ProbeChange { threads, lock: profile.lock, delta: difference(profile, before) };
                match self.terminate(&seen) {
                    // "Tbest ← Ttry; Nbest ← Ntry; return(true)"
                    Some(ReinforcerEnd::MostThreads) => ReinforcerStep::Stop(ReinforcerChoice {
                        threads,
                        reason: ReinforcerEnd::MostThreads,
                    }),
                    Some(reason) => return self.stop(best, reason),
                    None => ReinforcerStep::Try(self.compute_next(&seen)),
                }
            }
        };
        self.best = Some((threads, profile));
        self.next
    }

    fn stop(&mut self, threads: u32, reason: ReinforcerEnd) -> ReinforcerStep {
        self.next = ReinforcerStep::Stop(ReinforcerChoice { threads, reason });
        self.next
    }

    fn terminate(&self, seen: &ProbeChange) -> Option<ReinforcerEnd> {
        let high = &self.thresholds;
        // "terminate if no more parallelism was found"
        if seen.delta.cpu_util < high.delta_cpu_util {
            return Some(ReinforcerEnd::CpuUtil);
        }
        // "terminate for high lock contention, VCX rate, and migration rate"
        if seen.lock >= high.lock {
            if seen.delta.lock >= high.delta_lock {
                return Some(ReinforcerEnd::Lock);
            }
            if seen.threads <= self.contexts && seen.delta.vcx_rate >= high.delta_vcx_rate {
                return Some(ReinforcerEnd::VcxRate);
            }
            if seen.threads > self.contexts && seen.delta.migr_rate >= high.delta_migr_rate {
                return Some(ReinforcerEnd::MigrRate);
            }
        }
        // "terminate if no more threads can be created"
        (seen.threads == self.range.max).then_some(ReinforcerEnd::MostThreads)
    }

    fn compute_next(&self, seen: &ProbeChange) -> u32 {
        let high = &self.thresholds;
        let low_lock = seen.lock < high.lock;
        let slow = if seen.threads <= self.contexts {
            low_lock
                || seen.delta.vcx_rate < high.delta_vcx_rate
                || seen.delta.lock < high.delta_lock
        } else {
            low_lock || seen.delta.migr_rate < high.delta_migr_rate
        };
        let step = if slow { self.range.step } else { self.range.step / 2 };
        (seen.threads + step).min(self.range.max)
    }
}

/// ΔP.field = Ptry.field - Pbest.field
fn difference(after: SchedulingProfile, before: SchedulingProfile) -> SchedulingProfile {
    SchedulingProfile {
        lock: after.lock - before.lock,
        vcx_rate: after.vcx_rate - before.vcx_rate,
        migr_rate: after.migr_rate - before.migr_rate,
        cpu_util: after.cpu_util - before.cpu_util,
    }
}

#[cfg(test)]
mod tests;
