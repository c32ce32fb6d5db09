//! Joins the halves of an observation, and says whether the program did the same in both.
//!
//! A probe represents the whole run only if the program does the same all the time. If the second
//! half of a probe differs from the first, a phase began or ended in it. Its profile then describes
//! neither phase.

use pinwise_linux::thread::ThreadId;
use pinwise_monitor::{Activity, ThreadActivity};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// How the second half of a probe differed from the first.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct HalfDifference {
    /// CPU_UTIL in both, in percent.
    pub cpu_util: [f64; 2],
    /// LOCK in both, in percent; `None` if it is not known.
    pub lock: Option<[f64; 2]>,
}

/// A difference below this many percentage points is not another phase. The kernel's accounts of a
/// running thread are up to 8 ms old. That is 16 points of half a probe of 100 ms.
const NOTABLE: f64 = 25.0;
/// A sampled share must also differ by this many of its standard errors.
const SIGMAS: f64 = 4.0;

impl HalfDifference {
    /// `None`: no notable difference.
    pub(crate) fn between(one: &Activity, other: &Activity, contexts: u32) -> Option<Self> {
        let cpu_util = [one, other].map(|half| half.utilization(contexts as usize) * 100.0);
        let lock = one.lock().zip(other.lock()).map(|(one, other)| [one * 100.0, other * 100.0]);
        let busier = (cpu_util[0] - cpu_util[1]).abs() >= NOTABLE;
        let looks: f64 = [one, other]
            .iter()
            .flat_map(|half| &half.threads)
            .map(|thread| f64::from(thread.looks))
            .sum();
        let otherwise = lock.is_some_and(|[one, other]| {
            let mean = (one + other) / 200.0;
            // The standard error of the difference of two shares, each from half of the looks.
            let error = 200.0 * (mean * (1.0 - mean) / looks.max(1.0)).sqrt();
            (one - other).abs() >= NOTABLE.max(SIGMAS * error)
        });
        (busier || otherwise).then_some(Self { cpu_util, lock })
    }
}

/// Appends a later window to an earlier one.
pub(crate) fn join(mut one: Activity, other: Activity) -> Activity {
    // If the first was given up, the later one is in use.
    one.layer = other.layer;
    one.elapsed += other.elapsed;
    one.stretched = one.stretched.max(other.stretched);
    one.lost += other.lost;
    one.overhead += other.overhead;
    let index: HashMap<ThreadId, usize> =
        one.threads.iter().enumerate().map(|(index, thread)| (thread.id, index)).collect();
    for later in other.threads {
        match index.get(&later.id) {
            Some(&earlier) => add(&mut one.threads[earlier], later),
            None => one.threads.push(later),
        }
    }
    one
}

fn add(sum: &mut ThreadActivity, later: ThreadActivity) {
    sum.elapsed += later.elapsed;
    sum.ran += later.ran;
    sum.waited += later.waited;
    sum.slept += later.slept;
    sum.locked = sum.locked.zip(later.locked).map(|(one, other)| one + other);
    sum.looks += later.looks;
    sum.voluntary += later.voluntary;
    sum.involuntary += later.involuntary;
    sum.migrations = sum.migrations.zip(later.migrations).map(|(one, other)| one + other);
    // A thread often gets its name after it was created.
    sum.comm = later.comm;
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_linux::thread::{Pid, StartTime, Tid};
    use std::time::Duration;

    fn half(threads: &[(i32, u64, u64)]) -> Activity {
        let thread = |&(tid, ran, locked): &(i32, u64, u64)| ThreadActivity {
            id: ThreadId { pid: Pid(1), tid: Tid(tid), start: StartTime(1) },
            comm: "x".into(),
            elapsed: Duration::from_millis(100),
            ran: Duration::from_millis(ran),
            waited: Duration::ZERO,
            slept: Duration::from_millis(100 - ran),
            locked: Some(Duration::from_millis(locked)),
            looks: 10,
            voluntary: 3,
            involuntary: 2,
            migrations: Some(1),
            cpu: None,
        };
        Activity {
            threads: threads.iter().map(thread).collect(),
            ..Activity::none(Duration::from_millis(100))
        }
    }

    #[test]
    fn two_windows_are_one_and_threads_of_either_stay() {
        let both = join(half(&[(1, 50, 10), (2, 60, 0)]), half(&[(1, 70, 20), (3, 5, 0)]));
        assert_eq!(both.elapsed, Duration::from_millis(200));
        assert_eq!(both.threads.len(), 3);
        let first = &both.threads[0];
        assert_eq!(
            (first.ran, first.locked),
            (Duration::from_millis(120), Some(Duration::from_millis(30)))
        );
        assert_eq!((first.voluntary, first.migrations, first.looks), (6, Some(2), 20));
        assert_eq!(first.ran + first.waited + first.slept, first.elapsed);
    }

    #[test]
    fn a_phase_that_begins_within_a_probe_is_noticed() {
        assert_eq!(
            HalfDifference::between(&half(&[(1, 90, 0)]), &half(&[(1, 70, 0)]), 1),
            None,
            "stale accounts are no phase"
        );
        let drift = HalfDifference::between(
            &half(&[(1, 95, 0), (2, 0, 90)]),
            &half(&[(1, 95, 0), (2, 90, 0)]),
            2,
        )
        .unwrap();
        assert!((drift.cpu_util[0] - 47.5).abs() < 1e-9 && (drift.cpu_util[1] - 92.5).abs() < 1e-9);
        let many = |locked| (1..40).map(|tid| (tid, 10, locked)).collect::<Vec<_>>();
        assert!(HalfDifference::between(&half(&many(10)), &half(&many(80)), 8).is_some());
        let few = HalfDifference::between(&half(&[(1, 10, 30)]), &half(&[(1, 10, 60)]), 1);
        assert_eq!(few, None, "ten looks at one thread are too few");
    }
}
