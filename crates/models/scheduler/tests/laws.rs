//! Laws that hold for any program on any machine, whatever was fitted.

use pinwise_scheduler::{
    Accounts, Costs, Daemons, FittedCosts, ForkJoin, ModelProgram, Nanos, OtherPrograms, Pipeline,
    Platform, Simulation, Stage, Structure,
};
use pinwise_scheduler::{ModelProber, run, speedup};
use pinwise_topology::Machine;
use proptest::prelude::*;
use std::time::Duration;

/// Contexts whose operating system costs nothing.
fn ideal(shape: &str) -> Platform {
    let free = Nanos(0);
    let mut platform = Platform::new(&Machine::from_shape(shape).unwrap()).unwrap();
    platform.costs = Costs {
        switch: free,
        idle_exit: free,
        wake: free,
        create: free,
        lock: free,
        transfer: free,
        ..Costs::opensolaris()
    };
    platform
}

fn fork_join(iterations: u32, fitted: FittedCosts) -> ModelProgram {
    let shape = ForkJoin {
        main_works: true,
        helpers: 0,
        iterations,
        units: None,
        locks: u32::from(fitted.critical_us > 0.0),
    };
    ModelProgram {
        name: "test".into(),
        suite: "tests".into(),
        about: String::new(),
        whole_s: None,
        structure: Structure::ForkJoin(shape),
        fitted,
    }
}

fn pipeline(stage_ms: Vec<f64>, items: u32) -> ModelProgram {
    let name = |index: usize| format!("stage{index}");
    let stage = |index| Stage { name: name(index), many: index == 1, threads: None };
    let stages = (0..stage_ms.len()).map(stage).collect();
    let fitted = FittedCosts { work_ms: stage_ms.iter().sum(), stage_ms, ..FittedCosts::default() };
    let structure = Structure::Pipeline(Pipeline { stages, items, capacity: 8 });
    ModelProgram {
        name: "test".into(),
        suite: "tests".into(),
        about: String::new(),
        whole_s: None,
        structure,
        fitted,
    }
}

#[test]
fn bound_threads_stay_and_share_their_context() {
    let free = ideal("1x4x1");
    let mut bound = free.clone();
    bound.bound = true;
    let program = fork_join(3, FittedCosts { work_ms: 900.0, ..FittedCosts::default() });
    // Of five threads two are on one context, which has two fifths of the work.
    let of = |platform| speedup(platform, &program, 5, 1).unwrap();
    assert!((of(&bound) - 2.5).abs() < 0.05, "{}", of(&bound));
    assert!(of(&free) > 3.0, "{}", of(&free));
    assert_eq!(run(&bound, &program, 5, 1).unwrap().total().migrations, 0);
}

#[test]
fn a_stage_may_have_a_number_of_its_own() {
    let mut program = pipeline(vec![0.1, 4.0, 1.0], 400);
    let Structure::Pipeline(shape) = &mut program.structure else { panic!("a pipeline") };
    shape.stages[1].threads = Some(4);
    assert_eq!(program.threads(9), 1 + 1 + 4 + 1);
    // Both stages behind the first take 1 ms per item, whatever n is.
    let of = |n| speedup(&ideal("1x8x1"), &program, n, 1).unwrap();
    assert!((of(1) / 5.1 - 1.0).abs() < 0.05, "{}", of(1));
    assert_eq!(of(1), of(9));
}

#[test]
fn without_sharing_the_speedup_is_amdahls() {
    let platform = ideal("4x6x1");
    for serial in [0.0, 0.05, 0.3] {
        let program =
            fork_join(10, FittedCosts { work_ms: 20.0, serial, ..FittedCosts::default() });
        for n in [1, 2, 3, 8, 24] {
            let amdahl = 1.0 / (serial + (1.0 - serial) / f64::from(n));
            let found = speedup(&platform, &program, n, 1).unwrap();
            assert!(
                (found / amdahl - 1.0).abs() < 1e-3,
                "serial {serial}, n {n}: {found}, Amdahl {amdahl}"
            );
        }
    }
}

#[test]
fn with_more_threads_than_contexts_it_does_not_exceed_the_contexts() {
    let platform = ideal("2x4x1");
    let program = fork_join(1, FittedCosts { work_ms: 200_000.0, ..FittedCosts::default() });
    for n in [9, 12, 16, 40] {
        let found = speedup(&platform, &program, n, 1).unwrap();
        // In a run of 25 s, slices of up to 200 ms are not quite even at the end.
        assert!((7.0..=8.000_001).contains(&found), "n {n}: {found}");
    }
}

#[test]
fn one_thread_takes_as_long_as_the_sequential_program() {
    let platform = Platform::opteron_24();
    for name in ModelProgram::names() {
        let mut program = ModelProgram::built_in(name).unwrap();
        if let Structure::ForkJoin(shape) = &mut program.structure {
            // Enough of them for work that varies by all of itself to average out.
            shape.iterations = if shape.locks == 0 && shape.units.is_none() {
                2000
            } else {
                shape.iterations.min(20)
            };
            let found = speedup(&platform, &program, 1, 1).unwrap();
            assert!((found - 1.0).abs() < 0.05, "{name}: {found}");
        }
    }
}

#[test]
fn a_pipeline_is_as_fast_as_its_slowest_stage_and_busy_by_the_utilization_law() {
    let platform = ideal("4x6x1");
    let program = pipeline(vec![1.0, 10.0, 0.5], 2000);
    for (n, slowest) in [(2, 5.0), (5, 2.0), (10, 1.0), (16, 1.0)] {
        let accounts = run(&platform, &program, n, 1).unwrap();
        let expected = 2000.0 * slowest / 1e3;
        assert!(
            (accounts.at.seconds() / expected - 1.0).abs() < 0.02,
            "n {n}: {} s, expected {expected}",
            accounts.at.seconds()
        );
        // U = X S: the threads of a stage are busy for items times service, however many they are.
        for (stage, service) in [("stage0", 1.0), ("stage1", 10.0), ("stage2", 0.5)] {
            let busy = accounts.role(stage).busy().seconds();
            assert!(
                (busy / (2000.0 * service / 1e3) - 1.0).abs() < 1e-3,
                "n {n}, {stage}: {busy} s"
            );
        }
    }
}

/// Little's law of the interactive system: N = X (R + Z) with waits for input and output as Z.
#[test]
fn sleeping_and_busy_time_make_the_cycle() {
    let platform = ideal("4x6x1");
    let program = fork_join(
        1,
        FittedCosts {
            work_ms: 20_000.0,
            sleep_every_ms: 2.0,
            sleep_ms: 6.0,
            ..FittedCosts::default()
        },
    );
    let accounts = run(&platform, &program, 16, 1).unwrap();
    let total = accounts.total();
    let ratio = total.sleep.seconds() / total.busy().seconds();
    assert!((ratio / 3.0 - 1.0).abs() < 0.05, "6 ms of sleep to 2 ms of work, {ratio}");
}

#[test]
fn built_in_programs_run_to_their_end_with_any_number_of_threads() {
    let platform = Platform::opteron_24();
    for name in ModelProgram::names() {
        let mut program = ModelProgram::built_in(name).unwrap();
        match &mut program.structure {
            Structure::ForkJoin(shape) => shape.iterations = shape.iterations.min(5),
            Structure::Pipeline(shape) => shape.items = 60,
        }
        for n in [1, 2, 7, 24, 25, 48, 128] {
            run(&platform, &program, n, u64::from(n)).unwrap_or_else(|error| panic!("{error}"));
        }
    }
}

fn sums(accounts: &Accounts, contexts: usize) {
    for thread in &accounts.threads {
        assert!(
            thread.account.elapsed() <= accounts.at + Nanos(1),
            "{thread:?} at {:?}",
            accounts.at
        );
    }
    assert!(accounts.busy.0 <= accounts.at.0 * contexts as u64);
    assert_eq!(
        accounts.total().busy(),
        accounts.busy,
        "contexts are busy with the program's threads and nothing else"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn a_run_is_determined_by_its_seed_and_not_by_who_looks(
        n in 1u32..40,
        seed in any::<u64>(),
        spread in 0.0..1.0,
        critical_us in 1.0..20.0,
        memory in 0.0..0.3,
        sleep_ms in 0.0..0.5,
    ) {
        let fitted = FittedCosts {
            work_ms: 5.0, serial: 0.05, spread, segment_us: 40.0, critical_us, memory, sleep_ms,
            sleep_every_ms: 0.5,
            working_set_kib: 64.0, ..FittedCosts::default()
        };
        let program = fork_join(10, fitted);
        let platform = Platform::opteron_24();
        let whole = run(&platform, &program, n, seed).unwrap();
        prop_assert_eq!(&whole, &run(&platform, &program, n, seed).unwrap());
        // Rounding to nanoseconds at each look may move a stretched burst by as much.
        let mut watched = Simulation::new(&platform, &program, n, seed).unwrap();
        if memory == 0.0 {
            let mut at = Nanos(0);
            while !watched.finished() {
                at += Nanos(333_333);
                watched.advance(at).unwrap();
            }
            prop_assert_eq!(watched.accounts().at, whole.at);
        }
    }

    #[test]
    fn microstates_fill_the_time_of_every_thread(
        n in 1u32..40,
        seed in any::<u64>(),
        spread in 0.0..1.0,
        sleep_ms in 0.0..0.5,
    ) {
        let program = fork_join(
            10,
            FittedCosts {
                work_ms: 5.0,
                serial: 0.1,
                spread,
                sleep_ms,
                sleep_every_ms: 0.5,
                ..FittedCosts::default()
            },
        );
        let mut platform = Platform::opteron_24();
        platform.daemons = Daemons::NONE;
        let mut simulation = Simulation::endless(&platform, &program, n, seed).unwrap();
        for look in 1..8 {
            simulation.advance(Nanos(look * 1_700_000)).unwrap();
            let accounts = simulation.accounts();
            sums(&accounts, 24);
            for (index, thread) in accounts.threads.iter().enumerate() {
                let lifetime = accounts.at - Nanos(platform.costs.create.0 * index as u64);
                prop_assert_eq!(thread.account.elapsed(), lifetime, "thread {}", index);
            }
        }
    }
}

/// A pipeline computes more than the sequential program, and swaptions also waits. All the same,
/// what probes see is a speed-up.
#[test]
fn progress_is_the_speedup_of_a_whole_run() {
    let platform = Platform::opteron_24();
    for (name, n) in [("ferret", 2), ("swaptions", 8), ("facesim", 8)] {
        let program = ModelProgram::built_in(name).unwrap();
        let probe = ModelProber::new(platform.clone(), program.clone(), 1)
            .probe(n, Duration::from_secs(1))
            .unwrap();
        let seen = probe.probe.progress.rate * program.speedup_of_progress();
        let whole = speedup(&platform, &program, n, 1).unwrap();
        assert!((seen / whole - 1.0).abs() < 0.05, "{name}: {seen:.2}, of a whole run {whole:.2}");
    }
}

/// The share of a run that a search may take follows from it. The stages of ferret compute 1.44
/// times as much as the sequential program. In swaptions, threads also wait.
#[test]
fn a_whole_run_computes_what_its_description_has() {
    let platform = Platform::opteron_24();
    for name in ["ferret", "pbzip2", "swaptions", "facesim"] {
        let program = ModelProgram::built_in(name).unwrap();
        let program = ModelProgram { whole_s: Some(program.sequential().seconds()), ..program };
        let (told, done) = (
            program.work_s().unwrap(),
            run(&platform, &program, 8, 1).unwrap().total().work.seconds(),
        );
        assert!((done / told - 1.0).abs() < 0.02, "{name}: {done:.2} s, told {told:.2}");
    }
}

/// Busy threads of other programs, and a program of threads that only compute.
fn beside(others: Vec<OtherPrograms>) -> ModelProber {
    let fitted = FittedCosts { work_ms: 20.0, spread: 0.2, ..FittedCosts::default() };
    ModelProber::new(ideal("4"), fork_join(1, fitted), 1).beside(others)
}

#[test]
fn other_programs_take_their_share_and_it_is_accounted_for() {
    let mut prober = beside(vec![OtherPrograms { threads: 4, burst_s: 1.0, pause_s: 0.0 }]);
    let probed = prober.probe(4, Duration::from_secs(8)).unwrap();
    let share = probed.others.map(|others| others.taken / others.of).unwrap();
    assert!((0.4..0.8).contains(&share), "half, and what spinning at barriers loses: {share}");
    assert!(probed.probe.progress.rate < 4.0 * (1.0 - share) + 0.01, "{probed:?}");
    let alone = beside(Vec::new()).probe(4, Duration::from_secs(8)).unwrap();
    assert_eq!(alone.others.map(|others| others.taken), Some(0.0));
    assert!(alone.probe.progress.rate > 3.0, "{alone:?}");
}

#[test]
fn a_program_that_is_probed_has_no_head_start_over_others() {
    let mean = |seconds: f64, probes: u32| {
        let mut prober = beside(vec![OtherPrograms { threads: 8, burst_s: 1.0, pause_s: 0.0 }]);
        let mut probe = || prober.probe(1, Duration::from_secs_f64(seconds)).unwrap();
        (0..probes).map(|_| probe().probe.progress.rate).sum::<f64>() / f64::from(probes)
    };
    let (short, long) = (mean(0.25, 200), mean(8.0, 40));
    assert!((short / long - 1.0).abs() < 0.2, "at first {short}, later {long}");
}

#[test]
fn a_burst_goes_on_from_one_probe_to_the_next_and_after_stored_ones() {
    // It has a context for itself.
    let prober = beside(vec![OtherPrograms { threads: 1, burst_s: 2.0, pause_s: 2.0 }]);
    let window = Duration::from_millis(100);
    let mut through = prober.clone();
    let probes: Vec<_> = (0..400).map(|_| through.probe(1, window).unwrap()).collect();
    let busy: Vec<bool> = (probes.iter())
        .map(|probed| probed.others.is_some_and(|others| others.taken / others.of > 0.12))
        .collect();
    let half = busy.iter().filter(|busy| **busy).count();
    assert!((100..300).contains(&half), "half the time: {half} of 400");
    let turns = busy.windows(2).filter(|two| two[0] != two[1]).count();
    assert!((8..40).contains(&turns), "every second one in 40 s: {turns}");
    let stored = probes[..200].iter().map(|probed| (1, probed.probe.cost));
    let mut resumed = prober.after(stored);
    assert_eq!(resumed.probe(1, window).unwrap(), probes[200]);
}

#[test]
fn what_hides_the_speed_from_a_window_does_not_change_it() {
    let pipeline = Pipeline {
        stages: [("read", false), ("work", true)]
            .map(|(name, many)| Stage { name: name.into(), many, threads: None })
            .into(),
        items: 1,
        capacity: 4,
    };
    let with = |fitted: FittedCosts| {
        let fitted = FittedCosts { work_ms: 4.0, stage_ms: vec![0.01, 4.0], ..fitted };
        let program = ModelProgram {
            structure: Structure::Pipeline(pipeline.clone()),
            ..fork_join(1, fitted)
        };
        move |seconds: u64| {
            let mut prober = ModelProber::new(ideal("4"), program.clone(), 3);
            let mut probe = || prober.probe(4, Duration::from_secs(seconds)).unwrap();
            (0..20).map(|_| probe().probe.progress.rate).collect::<Vec<f64>>()
        }
    };
    let plain = with(FittedCosts::default())(1);
    assert!(plain.iter().all(|rate| (rate - 4.0).abs() < 0.1), "{plain:?}");
    let slow = with(FittedCosts { slow_runs: 0.5, slow_speed: 0.25, ..FittedCosts::default() })(1);
    let is = |rate: f64| slow.iter().filter(|seen| (*seen - rate).abs() < 0.1).count();
    assert!(is(4.0) > 3 && is(1.0) > 3 && is(4.0) + is(1.0) == 20, "{slow:?}");
    let reported = with(FittedCosts { report_every_s: 3.0, ..FittedCosts::default() });
    assert!(reported(1).iter().all(|rate| rate % 3.0 < 1e-9), "{:?}", reported(1));
    let mean = reported(1).iter().sum::<f64>() / 20.0;
    assert!((3.0..5.0).contains(&mean), "{mean}");
    // The fourth worker is there after 5 seconds. A probe waits for it.
    let late = with(FittedCosts { create_ms: 1000.0, ..FittedCosts::default() });
    assert!(late(1)[0] > 3.5, "{:?}", late(1));
}
