//! Groups the threads of a window by their role.

use pinwise_linux::thread_names::{UnnamedThread, name};
use pinwise_measure::{RoleTime, mark_critical};
use pinwise_monitor::{Activity, ThreadActivity};
use std::collections::HashMap;
use std::time::Duration;

/// The roles of a window. The first thread of a process is a separate role, `main`, if workers have
/// the same name. The work that it does alone limits many programs. Workers are other threads of
/// the process, and the children of the program's first process.
pub(crate) fn roles(activity: &Activity) -> Vec<RoleTime> {
    let found: Vec<UnnamedThread<'_>> = activity
        .threads
        .iter()
        .map(|thread| UnnamedThread { comm: &thread.comm, process: 0 })
        .collect();
    let mut threads_of: Vec<(String, Vec<&ThreadActivity>)> = Vec::new();
    for (thread, named) in activity.threads.iter().zip(name(&found)) {
        let first = thread.id.tid == thread.id.pid.main();
        let root = activity.threads.first().is_some_and(|oldest| oldest.id == thread.id);
        let worker = |other: &ThreadActivity| {
            other.id != thread.id
                && other.comm == thread.comm
                && (root || other.id.pid == thread.id.pid)
        };
        let main = first && activity.threads.iter().any(worker);
        let role = if main { format!("{} (main)", named.role) } else { named.role };
        match threads_of.iter_mut().find(|(known, _)| *known == role) {
            Some((_, threads)) => threads.push(thread),
            None => threads_of.push((role, vec![thread])),
        }
    }
    let mut roles: Vec<RoleTime> =
        threads_of.into_iter().map(|(role, threads)| time_of(role, &threads)).collect();
    mark_critical(&mut roles);
    roles
}

fn time_of(role: String, threads: &[&ThreadActivity]) -> RoleTime {
    let sum = |of: fn(&ThreadActivity) -> Duration| {
        threads.iter().map(|thread| of(thread).as_secs_f64()).sum::<f64>()
    };
    let elapsed = sum(|thread| thread.elapsed);
    let share = |seconds: f64| if elapsed > 0.0 { seconds / elapsed } else { 0.0 };
    let count = |of: fn(&ThreadActivity) -> u64| {
        share(threads.iter().map(|thread| of(thread) as f64).sum())
    };
    let locked: Option<f64> = threads.iter().map(|thread| Some(thread.locked?.as_secs_f64())).sum();
    let migrations: Option<u64> = threads.iter().map(|thread| thread.migrations).sum();
    let locked = locked.map(share);
    RoleTime {
        role,
        threads: simultaneous(threads),
        ran: share(sum(|thread| thread.ran)),
        waited: share(sum(|thread| thread.waited)),
        locked,
        slept: (share(sum(|thread| thread.slept)) - locked.unwrap_or(0.0)).max(0.0),
        voluntary_rate: count(|thread| thread.voluntary),
        involuntary_rate: count(|thread| thread.involuntary),
        migration_rate: migrations.map(|migrations| share(migrations as f64)),
        critical: false,
    }
}

/// Threads with different numbers. A thread that ended within a window counts once, however often
/// it was watched.
fn simultaneous(threads: &[&ThreadActivity]) -> u32 {
    let ids: HashMap<_, ()> = threads.iter().map(|thread| (thread.id, ())).collect();
    ids.len() as u32
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use pinwise_linux::thread::{Pid, StartTime, ThreadId, Tid};

    pub(in crate::prober) fn thread(
        tid: i32,
        comm: &str,
        ran: u64,
        locked: Option<u64>,
    ) -> ThreadActivity {
        ThreadActivity {
            id: ThreadId { pid: Pid(7), tid: Tid(tid), start: StartTime(1) },
            comm: comm.into(),
            elapsed: Duration::from_millis(100),
            ran: Duration::from_millis(ran),
            waited: Duration::ZERO,
            slept: Duration::from_millis(100 - ran),
            locked: locked.map(Duration::from_millis),
            looks: 1,
            voluntary: 10,
            involuntary: 0,
            migrations: Some(1),
            cpu: None,
        }
    }

    #[test]
    fn the_first_thread_is_told_from_workers_of_the_same_name() {
        let threads = vec![
            thread(7, "pigz", 10, Some(90)),
            thread(8, "pigz", 100, Some(0)),
            thread(9, "pigz", 80, Some(10)),
        ];
        let roles = roles(&Activity { threads, ..Activity::none(Duration::from_millis(100)) });
        let told: Vec<(&str, u32, bool)> =
            roles.iter().map(|role| (role.role.as_str(), role.threads, role.critical)).collect();
        assert_eq!(told, [("pigz (main)", 1, false), ("pigz", 2, true)]);
        assert!(
            (roles[1].ran - 0.9).abs() < 1e-9 && (roles[1].locked.unwrap() - 0.05).abs() < 1e-9
        );
        assert!(
            (roles[1].voluntary_rate - 100.0).abs() < 1e-9 && roles[1].migration_rate == Some(10.0)
        );
    }

    /// `sh -c 'work & work & wait'`: the first shell waits for those it has forked, which have its
    /// name.
    #[test]
    fn children_that_work_are_told_from_the_process_that_waits_for_them() {
        let child = |pid: i32| {
            let thread = thread(pid, "sh", 100, Some(0));
            ThreadActivity { id: ThreadId { pid: Pid(pid), ..thread.id }, ..thread }
        };
        let threads = vec![thread(7, "sh", 0, Some(0)), child(8), child(9)];
        let roles = roles(&Activity { threads, ..Activity::none(Duration::from_millis(100)) });
        let told: Vec<(&str, u32, bool)> =
            roles.iter().map(|role| (role.role.as_str(), role.threads, role.critical)).collect();
        assert_eq!(told, [("sh (main)", 1, false), ("sh", 2, true)]);
    }

    #[test]
    fn locks_that_may_not_be_seen_are_part_of_sleep() {
        let roles = roles(&Activity {
            threads: vec![thread(7, "x", 40, None)],
            ..Activity::none(Duration::from_millis(100))
        });
        assert_eq!((roles[0].role.as_str(), roles[0].locked), ("x", None));
        assert!((roles[0].slept - 0.6).abs() < 1e-9);
    }
}
