//! Tests of the simulated scheduler.

use super::*;
use pinwise_topology::Machine;
use proptest::prelude::*;

fn platform(shape: &str) -> Platform {
    Platform::new(&Machine::from_shape(shape).unwrap()).unwrap()
}

fn body(script: Vec<Action>, rounds: u64) -> Body {
    Body { role: "threads".to_owned(), script: script.into(), rounds, output: None }
}

fn parts(bodies: Vec<Body>, mutexes: usize, barriers: Vec<usize>) -> Parts {
    Parts {
        bodies,
        mutexes,
        barriers,
        queues: Vec::new(),
        memory: 0.0,
        working_set: 0.0,
        create: Nanos(0),
    }
}

fn exactly(mean: f64) -> Span {
    Span { mean, spread: 0.0 }
}

#[test]
fn a_barrier_that_nobody_else_reaches_is_a_deadlock() {
    let platform = platform("2x1");
    let script = vec![Action::Compute(exactly(5e3)), Action::Barrier { barrier: 0, join: false }];
    let mut kernel = Kernel::new(
        &platform,
        parts(vec![body(script.clone(), 1), body(script, 1)], 0, vec![3]),
        1,
    );
    let error = kernel.advance(Nanos::from_seconds(10.0)).unwrap_err();
    let Stuck::Deadlock { waiting, .. } = error;
    assert_eq!(waiting, 2);
    assert!(!error.to_string().contains('\n'));
}

#[test]
fn two_threads_on_one_context_take_turns_by_time_slices() {
    let platform = platform("1x1");
    let threads = vec![body(vec![Action::Compute(exactly(2e9))], 1); 2];
    let mut kernel = Kernel::new(&platform, parts(threads, 0, vec![]), 1);
    kernel.advance(Nanos::from_seconds(2.0)).unwrap();
    let accounts = kernel.accounts();
    let [one, other] = [0, 1].map(|thread| accounts.threads[thread].account);
    assert!(one.user.seconds() > 0.8 && other.user.seconds() > 0.8, "{one:?} {other:?}");
    assert!(one.involuntary > 3 && one.voluntary == 0 && one.migrations == 0, "{one:?}");
}

#[test]
fn a_contended_mutex_serializes_and_its_waiters_account_for_it() {
    let platform = platform("4x1");
    let script =
        vec![Action::Lock { first: 0, count: 1 }, Action::Compute(exactly(1e6)), Action::Unlock];
    let mut kernel = Kernel::new(&platform, parts(vec![body(script, 100); 4], 1, vec![]), 1);
    kernel.advance(Nanos::NEVER).unwrap();
    let accounts = kernel.accounts();
    assert!(
        accounts.at >= Nanos::from_millis(400.0),
        "four times a hundred milliseconds cannot overlap: {:?}",
        accounts.at
    );
    assert!(accounts.at <= Nanos::from_millis(420.0), "{:?}", accounts.at);
    // The releasing thread takes it again before the woken one is there. So one finishes after the
    // other: 100 + 200 + 300 ms.
    assert!(accounts.total().lock > Nanos::from_millis(590.0), "{:?}", accounts.total());
}

#[test]
fn a_thread_wakes_where_its_cache_is_warm_and_moves_only_for_an_idle_context() {
    let platform = platform("4x1");
    let script =
        vec![Action::Compute(exactly(1e6)), Action::Sleep { span: exactly(1e6), chance: 1.0 }];
    let mut kernel = Kernel::new(&platform, parts(vec![body(script, 200); 4], 0, vec![]), 1);
    kernel.advance(Nanos::NEVER).unwrap();
    assert_eq!(kernel.accounts().total().migrations, 0, "as many threads as contexts");
    assert_eq!(kernel.accounts().total().voluntary, 800);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// No context is idle while a queued thread may be stolen. A thread may be stolen once it has
    /// waited for `nosteal`. The test looks every few microseconds.
    #[test]
    fn work_is_conserved(
        threads in 1usize..24,
        compute in 1e4..4e6,
        sleep in 1e4..4e6,
        critical in 0.0..1e5,
        seed in any::<u64>(),
    ) {
        let platform = platform("2x4x1");
        let any = |mean| Span { mean, spread: 1.0 };
        let script = vec![
            Action::Compute(any(compute)),
            Action::Lock { first: 0, count: 3 },
            Action::Compute(any(critical)),
            Action::Unlock,
            Action::Sleep { span: any(sleep), chance: 0.5 },
        ];
        let mut kernel =
            Kernel::new(&platform, parts(vec![body(script, u64::MAX); threads], 3, vec![]), seed);
        for look in 1..2000 {
            kernel.advance(Nanos(look * 7_000)).unwrap();
            if kernel.contexts.iter().any(|context| context.running.is_none()) {
                for (_, id) in kernel.contexts.iter().flat_map(|context| context.queue.iter()) {
                    let waited = kernel.now - kernel.threads[id].queued;
                    prop_assert!(waited <= platform.costs.nosteal, "waited {waited:?} beside an \
                        idle context");
                }
            }
        }
    }

    /// A thread that waits, runs or sleeps is in exactly one place.
    #[test]
    fn every_thread_is_where_its_state_says(
        threads in 1usize..40,
        compute in 1e4..1e6,
        seed in any::<u64>(),
    ) {
        let platform = platform("2x3x1");
        let any = |mean| Span { mean, spread: 1.0 };
        let script = vec![
            Action::Compute(any(compute)),
            Action::Barrier { barrier: 0, join: false },
            Action::Sleep { span: any(1e5), chance: 0.3 },
        ];
        let mut kernel = Kernel::new(
            &platform,
            parts(vec![body(script, u64::MAX); threads], 0, vec![threads]),
            seed,
        );
        for look in 1..500 {
            kernel.advance(Nanos(look * 31_000)).unwrap();
            for (id, thread) in kernel.threads.iter().enumerate() {
                let running =
                    kernel.contexts.iter().filter(|context| context.running == Some(id)).count();
                let queued = kernel
                    .contexts
                    .iter()
                    .flat_map(|context| context.queue.iter())
                    .filter(|&(_, other)| other == id)
                    .count();
                let expected = match thread.state {
                    State::Running(context) => {
                        prop_assert_eq!(kernel.contexts[context].running, Some(id));
                        (1, 0)
                    }
                    State::Queued => (0, 1),
                    State::New | State::Waiting(_) | State::Done => (0, 0),
                };
                prop_assert_eq!((running, queued), expected);
            }
        }
    }
}
