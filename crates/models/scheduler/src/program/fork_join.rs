//! Fork-join programs as threads.
//!
//! In each iteration, the main thread first does the serial part. Then come the opening barrier,
//! everybody's share of the parallel part, and the closing barrier. A share is cut into segments
//! where there are critical sections or waits for input and output in it.

use super::{FittedCosts, ForkJoin};
use crate::kernel::Parts;
use crate::thread::{Action, Body, Span};
use crate::time::Nanos;

const OPEN: usize = 0;
const CLOSE: usize = 1;

pub(super) fn parts(shape: &ForkJoin, fitted: &FittedCosts, n: u32, endless: bool) -> Parts {
    let ForkJoin { main_works, helpers, iterations, units, locks } = *shape;
    let rounds = if endless { u64::MAX } else { u64::from(iterations) };
    let body = |role: &str, alone: Vec<Action>, together: Vec<Action>| {
        // A main thread that does not work waits for the end of others' work.
        let join = role == "main" && !main_works;
        let barrier = |barrier| Action::Barrier { barrier, join };
        let script = [alone, vec![barrier(OPEN)], together, vec![barrier(CLOSE)]].concat();
        Body { role: role.to_owned(), script: script.into(), rounds, output: None }
    };
    let parallel = fitted.work_ms * 1e6 * (1.0 - fitted.serial);
    let serial =
        Action::Compute(Span { mean: fitted.work_ms * 1e6 * fitted.serial, spread: fitted.spread });
    let mut shares =
        (0..n).map(|worker| share(fitted, locks, parallel * fraction(units, worker, n)));
    let main = if main_works { shares.next().unwrap_or_default() } else { Vec::new() };
    let mut bodies = vec![body("main", vec![serial], main)];
    bodies.extend(shares.map(|share| body("workers", Vec::new(), share)));
    let sleep =
        Action::Sleep { span: Span { mean: fitted.sleep_ms * 1e6, spread: 1.0 }, chance: 1.0 };
    bodies.extend((0..helpers).map(|_| body("helpers", Vec::new(), vec![sleep])));
    let parties = bodies.len();
    Parts {
        bodies,
        mutexes: locks as usize,
        barriers: vec![parties; 2],
        queues: Vec::new(),
        memory: fitted.memory,
        working_set: fitted.working_set_kib,
        create: Nanos::from_millis(fitted.create_ms),
    }
}

/// The part of the parallel work that `worker` of `n` does, in whole units. If they do not divide,
/// the first workers do one more.
fn fraction(units: Option<u32>, worker: u32, n: u32) -> f64 {
    match units {
        None => 1.0 / f64::from(n),
        Some(units) => f64::from(units / n + u32::from(worker < units % n)) / f64::from(units),
    }
}

/// `work` nanoseconds of the parallel part.
fn share(fitted: &FittedCosts, locks: u32, work: f64) -> Vec<Action> {
    let compute = |mean: f64| Action::Compute(Span { mean, spread: fitted.spread });
    let sleeps = fitted.sleep_every_ms > 0.0;
    let segment = if locks > 0 { fitted.segment_us * 1e3 } else { fitted.sleep_every_ms * 1e6 };
    if work <= 0.0 {
        return Vec::new();
    }
    if locks == 0 && !sleeps {
        return vec![compute(work)];
    }
    let segments = (work / segment).ceil();
    let each = work / segments;
    let critical = (fitted.critical_us * 1e3).min(each);
    let mut steps = Vec::new();
    for _ in 0..segments as usize {
        steps.push(compute(each - critical));
        if locks > 0 {
            steps.extend([
                Action::Lock { first: 0, count: locks as usize },
                compute(critical),
                Action::Unlock,
            ]);
        }
        if sleeps {
            let chance = each / (fitted.sleep_every_ms * 1e6);
            steps.push(Action::Sleep {
                span: Span { mean: fitted.sleep_ms * 1e6, spread: 1.0 },
                chance,
            });
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_spread_as_evenly_as_they_go() {
        let of = |n: u32| {
            (0..n).map(|worker| fraction(Some(128), worker, n) * 128.0).collect::<Vec<_>>()
        };
        assert_eq!(of(24).iter().filter(|&&units| units == 6.0).count(), 8);
        assert_eq!(of(24).iter().filter(|&&units| units == 5.0).count(), 16);
        assert_eq!(of(24).iter().sum::<f64>(), 128.0);
        assert!(of(32).iter().all(|&units| units == 4.0));
    }

    #[test]
    fn cutting_a_share_loses_no_work() {
        let fitted = FittedCosts {
            segment_us: 30.0,
            critical_us: 5.0,
            sleep_every_ms: 1.0,
            sleep_ms: 2.0,
            ..FittedCosts::default()
        };
        let steps = share(&fitted, 3, 1e6);
        let work = steps
            .iter()
            .map(|step| if let Action::Compute(span) = step { span.mean } else { 0.0 })
            .sum::<f64>();
        assert!((work - 1e6).abs() < 1e-3, "{work}");
        let chance = steps
            .iter()
            .map(|step| if let Action::Sleep { chance, .. } = step { *chance } else { 0.0 })
            .sum::<f64>();
        assert!((chance - 1.0).abs() < 1e-9, "one wait per millisecond, {chance}");
    }
}
