//! How much repeated measurements differ that should be equal.
//!
//! The same calculation is timed repeatedly. It uses no memory and no system call. It runs on each
//! of up to eight contexts, one after the other. Time beyond the median is time in which the
//! context was not available. The causes are interrupts, other programs, the hypervisor, or a
//! changed clock frequency. Quartiles and the maximum are in percent of the context's own median.
//! So contexts of different speed do not look like noise.

use super::{Finding, read};
use pinwise_linux::sys;
use pinwise_topology::{CpuId, CpuSet};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Time for all contexts together.
const BUDGET: Duration = Duration::from_millis(1000);
/// The most contexts that are looked at; they are spread over the allowed ones.
const CONTEXTS: usize = 8;
/// How long one calculation takes.
const CALCULATION: Duration = Duration::from_micros(500);

/// Steal time and the spread of repeated measurements. `None` when cancelled.
pub(super) fn checks(allowed: &CpuSet, cancelled: &dyn Fn() -> bool) -> Option<Vec<Finding>> {
    let cpus = spread(allowed);
    let steps = calibrate();
    let before = read("/proc/stat").as_deref().and_then(parse_times);
    let mut samples = Vec::new();
    let mut refused = None;
    for &cpu in &cpus {
        let until = Instant::now() + BUDGET / u32::try_from(cpus.len().max(1)).unwrap_or(1);
        match repeat_on(cpu, steps, until, cancelled) {
            Ok(times) => samples.push((cpu, times)),
            Err(error) => refused = Some((cpu, error)),
        }
        if cancelled() {
            return None;
        }
    }
    let after = read("/proc/stat").as_deref().and_then(parse_times);
    let noise = match (samples.is_empty(), refused) {
        (true, Some((cpu, error))) => {
            Finding::NotRepeatable { cpu: cpu.0, error: error.to_string() }
        }
        _ => judge_noise(&samples),
    };
    Some(vec![judge_steal(before, after), noise])
}

/// Up to [`CONTEXTS`] of the allowed ones, evenly spread.
fn spread(allowed: &CpuSet) -> Vec<CpuId> {
    let all: Vec<CpuId> = allowed.iter().collect();
    let count = all.len().min(CONTEXTS);
    (0..count).map(|index| all[index * all.len() / count]).collect()
}

/// A chain of dependent multiplications: every step waits for the one before.
fn work(steps: u64) -> u64 {
    (0..steps).fold(1, |x: u64, _| {
        std::hint::black_box(x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1))
    })
}

/// Steps that take about [`CALCULATION`].
fn calibrate() -> u64 {
    let mut steps = 1000;
    loop {
        let begin = Instant::now();
        std::hint::black_box(work(steps));
        if begin.elapsed() >= CALCULATION {
            return steps;
        }
        steps = steps * 3 / 2;
    }
}

/// Times the work on one context until `until`, in seconds.
fn repeat_on(
    cpu: CpuId,
    steps: u64,
    until: Instant,
    cancelled: &dyn Fn() -> bool,
) -> io::Result<Vec<f64>> {
    // A separate thread, so that this one's affinity stays as it is.
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let worker =
            std::thread::Builder::new().name("doctor".into()).spawn_scoped(scope, || {
                sys::set_affinity(0, &CpuSet::from_iter([cpu]))?;
                let mut times = Vec::new();
                while Instant::now() < until && !stop.load(Ordering::Relaxed) {
                    let begin = Instant::now();
                    std::hint::black_box(work(steps));
                    times.push(begin.elapsed().as_secs_f64());
                }
                Ok(times)
            })?;
        while !worker.is_finished() {
            if cancelled() {
                stop.store(true, Ordering::Relaxed);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        worker.join().unwrap_or_else(|_| Err(io::Error::other("the thread died")))
    })
}

/// The value below which a fraction `q` of the sorted sample lies (nearest rank).
fn quantile(sorted: &[f64], q: f64) -> f64 {
    let rank = (q * (sorted.len() - 1) as f64).round() as usize;
    sorted[rank.min(sorted.len() - 1)]
}

fn judge_noise(samples: &[(CpuId, Vec<f64>)]) -> Finding {
    let mut medians = Vec::new();
    // Percent of the context's own median.
    let mut relative = Vec::new();
    for (_, times) in samples {
        let mut sorted = times.clone();
        sorted.sort_by(f64::total_cmp);
        let Some(_) = sorted.first() else { continue };
        let median = quantile(&sorted, 0.5);
        medians.push(median);
        relative.extend(sorted.iter().map(|time| 100.0 * time / median));
    }
    relative.sort_by(f64::total_cmp);
    medians.sort_by(f64::total_cmp);
    let (Some(least), Some(most)) = (medians.first(), medians.last()) else {
        return Finding::NotRepeated;
    };
    Finding::Repeatability {
        milliseconds: quantile(&medians, 0.5) * 1e3,
        iqr: quantile(&relative, 0.75) - quantile(&relative, 0.25),
        longest: relative[relative.len() - 1] - 100.0,
        repetitions: relative.len(),
        contexts: medians.len(),
        apart: 100.0 * (most / least - 1.0),
    }
}

/// All CPU time and that stolen by the hypervisor, in ticks, from the first line of `/proc/stat`
/// (proc_stat(5)).
fn parse_times(stat: &str) -> Option<(u64, u64)> {
    let fields = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace().map(str::parse);
    // Guest time, in columns 9 and 10, is contained in the first two.
    let fields: Vec<u64> = fields.take(8).collect::<Result<_, _>>().ok()?;
    Some((fields.iter().sum(), *fields.get(7)?))
}

fn judge_steal(before: Option<(u64, u64)>, after: Option<(u64, u64)>) -> Finding {
    let (Some(before), Some(after)) = (before, after) else { return Finding::StealTimeUnknown };
    Finding::StealTime {
        stolen: after.1.saturating_sub(before.1),
        ticks: after.0.saturating_sub(before.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::FindingState;

    #[test]
    fn few_contexts_are_all_looked_at_and_many_are_spread() {
        assert_eq!(spread(&CpuSet::parse_list("1,3").unwrap()), [CpuId(1), CpuId(3)]);
        let many: Vec<u32> =
            spread(&CpuSet::parse_list("0-127").unwrap()).iter().map(|cpu| cpu.0).collect();
        assert_eq!(many, [0, 16, 32, 48, 64, 80, 96, 112]);
        assert!(spread(&CpuSet::new()).is_empty());
    }

    #[test]
    fn contexts_of_different_speed_are_not_noise() {
        let samples = [(CpuId(0), vec![1e-3; 50]), (CpuId(1), vec![2e-3; 50])];
        let Finding::Repeatability { iqr, repetitions, contexts, apart, .. } =
            judge_noise(&samples)
        else {
            panic!()
        };
        assert_eq!((iqr, repetitions, contexts, apart), (0.0, 100, 2, 100.0));
    }

    #[test]
    fn a_wide_middle_half_is_noise_and_a_single_outlier_is_not() {
        let mut times = vec![1e-3; 99];
        times.push(5e-3);
        let finding = judge_noise(&[(CpuId(0), times)]);
        assert!(finding.is_ok(), "{finding:?}");
        let Finding::Repeatability { longest, .. } = finding else { panic!() };
        assert!((longest - 400.0).abs() < 1e-9, "{longest}");
        let times = (0..100).map(|index| 1e-3 * (1.0 + f64::from(index) / 500.0)).collect();
        assert_eq!(judge_noise(&[(CpuId(0), times)]).state(), FindingState::Warning);
        assert_eq!(judge_noise(&[]).state(), FindingState::Missing);
    }

    #[test]
    fn steal_is_the_eighth_column() {
        let stat = "cpu  100 0 50 800 10 0 5 35 7 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n";
        assert_eq!(parse_times(stat), Some((1000, 35)));
        assert!(judge_steal(Some((1000, 35)), Some((1200, 36))).is_ok());
        assert_eq!(judge_steal(Some((1000, 35)), Some((1200, 55))).state(), FindingState::Warning);
        assert!(judge_steal(None, None).is_ok());
    }

    #[test]
    fn an_interrupted_examination_has_no_result() {
        let first = sys::affinity(0).unwrap();
        assert_eq!(checks(&first, &|| true), None);
    }
}
