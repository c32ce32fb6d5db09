//! Tests of [`Reinforcer`].

use super::*;
use proptest::prelude::*;

const THRESHOLDS: Thresholds = Thresholds {
    lock: 30.0,
    delta_lock: 5.0,
    delta_vcx_rate: 1000.0,
    delta_migr_rate: 500.0,
    delta_cpu_util: 4.0,
};

fn search() -> Reinforcer {
    Reinforcer::new(ThreadRange::PUBLISHED, 24, THRESHOLDS).unwrap()
}

fn profile(lock: f64, vcx_rate: f64, migr_rate: f64, cpu_util: f64) -> SchedulingProfile {
    SchedulingProfile { lock, vcx_rate, migr_rate, cpu_util }
}

/// A search that stands at `threads` with everything calm so far, by steps of 8.
fn standing_at(threads: u32, lock: f64) -> Reinforcer {
    let mut search = search();
    while search.next() != ReinforcerStep::Try(threads) {
        let ReinforcerStep::Try(at) = search.next() else { panic!("ended before {threads}") };
        search.observe(profile(lock, 0.0, 0.0, f64::from(at)));
    }
    search
}

fn stopped(next: ReinforcerStep) -> (u32, ReinforcerEnd) {
    match next {
        ReinforcerStep::Stop(ReinforcerChoice { threads, reason }) => (threads, reason),
        ReinforcerStep::Try(threads) => panic!("went on to {threads}"),
    }
}

#[test]
fn the_first_two_probes_are_tmin_and_tmin_plus_tstep() {
    let mut search = search();
    assert_eq!(search.next(), ReinforcerStep::Try(8));
    assert_eq!(
        search.observe(profile(99.0, 9e9, 9e9, 0.0)),
        ReinforcerStep::Try(16),
        "nothing to compare the first with"
    );
}

#[test]
fn no_more_parallelism_ends_it_with_the_run_before() {
    let mut search = standing_at(24, 0.0);
    assert_eq!(
        stopped(search.observe(profile(0.0, 0.0, 0.0, 16.0 + 3.9))),
        (16, ReinforcerEnd::CpuUtil)
    );
}

#[test]
fn parallelism_is_asked_for_before_locks() {
    let mut search = standing_at(24, 40.0);
    assert_eq!(
        stopped(search.observe(profile(90.0, 9e9, 9e9, 16.0))),
        (16, ReinforcerEnd::CpuUtil)
    );
}

#[test]
fn high_lock_that_rises_fast_ends_it() {
    for threads in [16, 24, 32, 40] {
        let before = f64::from(threads - 8);
        let mut search = standing_at(threads, 28.0);
        let outcome = stopped(search.observe(profile(33.0, 0.0, 0.0, before + 8.0)));
        assert_eq!(outcome, (threads - 8, ReinforcerEnd::Lock));
    }
}

#[test]
fn low_lock_never_ends_it_however_everything_else_rises() {
    for threads in [16, 24, 32] {
        let mut search = standing_at(threads, 0.0);
        assert_eq!(search.observe(profile(29.9, 9e9, 9e9, 99.0)), ReinforcerStep::Try(threads + 8));
    }
}

#[test]
fn high_lock_and_rising_switches_end_it_up_to_as_many_threads_as_contexts() {
    let calm = 40.0;
    let mut within = standing_at(24, calm);
    assert_eq!(
        stopped(within.observe(profile(calm, 1000.0, 0.0, 24.0))),
        (16, ReinforcerEnd::VcxRate)
    );
    let mut beyond = standing_at(32, calm);
    assert_eq!(
        beyond.observe(profile(calm, 1000.0, 0.0, 32.0)),
        ReinforcerStep::Try(40),
        "not beyond"
    );
}

#[test]
fn high_lock_and_rising_migrations_end_it_beyond_as_many_threads_as_contexts() {
    let calm = 40.0;
    let mut beyond = standing_at(32, calm);
    assert_eq!(
        stopped(beyond.observe(profile(calm, 0.0, 500.0, 32.0))),
        (24, ReinforcerEnd::MigrRate)
    );
    let mut within = standing_at(24, calm);
    assert_eq!(
        within.observe(profile(calm, 0.0, 500.0, 24.0)),
        ReinforcerStep::Try(32),
        "not within"
    );
}

#[test]
fn tmax_is_taken_when_it_was_worth_it_and_left_when_not() {
    let mut worth = standing_at(72, 0.0);
    assert_eq!(
        stopped(worth.observe(profile(0.0, 0.0, 0.0, 72.0))),
        (72, ReinforcerEnd::MostThreads)
    );
    let mut not = standing_at(72, 0.0);
    assert_eq!(stopped(not.observe(profile(0.0, 0.0, 0.0, 64.0))), (64, ReinforcerEnd::CpuUtil));
}

/// ComputeNextT is reached only after Terminate refused. It takes half a step under nearly the same
/// conditions under which Terminate ends. With LOCK high, and ΔLOCK and ΔVCX_RATE high (or
/// ΔMIGR_RATE beyond the contexts), Terminate has ended the search already. So, by the figure,
/// FindN never reaches the half step. This tests ComputeNextT alone.
#[test]
fn the_step_is_halved_where_overheads_rise_fast() {
    let search = search();
    let next = |threads, lock, delta| search.compute_next(&ProbeChange { threads, lock, delta });
    let fast = profile(5.0, 1000.0, 500.0, 9.0);
    assert_eq!(next(16, 30.0, fast), 20);
    assert_eq!(next(16, 29.9, fast), 24, "low LOCK");
    assert_eq!(next(16, 30.0, profile(5.0, 999.0, 500.0, 9.0)), 24, "low ΔVCX_RATE");
    assert_eq!(next(16, 30.0, profile(4.9, 1000.0, 500.0, 9.0)), 24, "high LOCK, low ΔLOCK");
    assert_eq!(next(24, 30.0, fast), 28, "as many as contexts is not more");
    assert_eq!(next(32, 30.0, fast), 36);
    assert_eq!(next(32, 29.9, fast), 40, "low LOCK");
    assert_eq!(next(32, 30.0, profile(5.0, 1000.0, 499.0, 9.0)), 40, "low ΔMIGR_RATE");
    assert_eq!(next(70, 0.0, fast), 72, "at most Tmax");
}

#[test]
fn a_span_of_one_number_is_that_number_and_impossible_ones_are_refused() {
    let mut search =
        Reinforcer::new(ThreadRange { min: 4, max: 4, step: 2 }, 8, THRESHOLDS).unwrap();
    assert_eq!(
        stopped(search.observe(SchedulingProfile::default())),
        (4, ReinforcerEnd::MostThreads)
    );
    let mut short =
        Reinforcer::new(ThreadRange { min: 4, max: 6, step: 8 }, 8, THRESHOLDS).unwrap();
    assert_eq!(short.observe(SchedulingProfile::default()), ReinforcerStep::Try(6));
    for (min, max, step) in [(0, 8, 8), (8, 4, 8), (8, 16, 1)] {
        let error = Reinforcer::new(ThreadRange { min, max, step }, 8, THRESHOLDS).unwrap_err();
        assert!(!error.to_string().contains('\n'));
    }
}

#[test]
fn after_the_end_nothing_changes() {
    let mut search = standing_at(24, 0.0);
    let end = search.observe(profile(0.0, 0.0, 0.0, 16.0));
    assert_eq!(search.observe(profile(0.0, 0.0, 0.0, 99.0)), end);
}

proptest! {
    /// For all observations, the search ends within its range, on a number it has tried, and
    /// tries ascending numbers.
    #[test]
    fn it_always_ends_on_a_number_it_tried(
        profiles in proptest::collection::vec(
            (0.0..100.0, 0.0..5000.0, 0.0..2000.0, 0.0..100.0),
            80,
        ),
        min in 1u32..20, length in 0u32..100, step in 2u32..16, contexts in 1u32..64,
    ) {
        let range = ThreadRange { min, max: min + length, step };
        let mut search = Reinforcer::new(range, contexts, THRESHOLDS).unwrap();
        let mut tried = Vec::new();
        for (lock, vcx_rate, migr_rate, cpu_util) in profiles {
            let ReinforcerStep::Try(threads) = search.next() else { break };
            prop_assert!(tried.last().is_none_or(|&last| last < threads) && threads <= range.max);
            tried.push(threads);
            search.observe(profile(lock, vcx_rate, migr_rate, cpu_util));
        }
        let ReinforcerStep::Stop(choice) = search.next() else {
            return Err(TestCaseError::fail("did not end"));
        };
        prop_assert!(tried.contains(&choice.threads));
    }
}
