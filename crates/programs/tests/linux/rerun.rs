//! Programs that are restarted for each measurement.

use crate::live::{launch, leaves_alone, whole};
use crate::programs::*;
use pinwise_linux::{Launch, TargetError, ThreadFilter, process};
use pinwise_measure::{Effort, Interrupt, LeftAlone, ProgramNote, Retry, Setting, Testbed, Unit};
use pinwise_metric::{MetricOptions, MetricSpec, Pattern};
use pinwise_programs::{RerunOptions, RerunTestbed, RunMetric};
use pinwise_topology::Assignment;
use std::time::{Duration, Instant};

fn printed(pattern: &str) -> RunMetric {
    let metric = MetricSpec::Stdout(Pattern::new(pattern).unwrap());
    let options = MetricOptions { unit: Some("things".into()), ..MetricOptions::default() };
    RunMetric::of(&metric, &options).unwrap()
}

fn testbed(launch: Launch, metric: RunMetric) -> RerunTestbed {
    RerunTestbed::new(launch, &machine(), metric, RerunOptions::default(), Interrupt::default())
        .unwrap()
}

fn pinned(leaves: &[u32]) -> Setting {
    Setting::Pinned(Assignment::new(leaves.to_vec()))
}

#[test]
fn the_threads_of_every_run_are_found_and_placed() {
    if !enough_cpus() {
        return;
    }
    let mut testbed = testbed(launch("work"), printed(r"confined to (\d+)"));
    let names: Vec<_> =
        testbed.workload().threads.iter().map(|thread| thread.name.clone()).collect();
    assert_eq!(names, ["w-0", "w-1"]);
    let notes = testbed.notes();
    assert!(
        matches!(notes[0], ProgramNote::LeftAlone { reason: LeftAlone::HardlyRuns, .. }),
        "{notes:?}"
    );
    let mut measure =
        |setting: &Setting| testbed.measure(setting, Effort::default()).unwrap().performance;
    assert_eq!(measure(&pinned(&[1, 0])), 10.0);
    assert_eq!(measure(&pinned(&[0, 1])), 1.0);
    assert_eq!(measure(&Setting::Unpinned), 99.0);
    assert_eq!(measure(&pinned(&[1, 1])), 11.0);
}

#[test]
fn a_run_whose_thread_chooses_its_own_cpus_does_not_count() {
    if !enough_cpus() {
        return;
    }
    let mut testbed = testbed(launch("wander"), RunMetric::Runtime);
    testbed.measure(&Setting::Unpinned, Effort::default()).unwrap();
    let mut measure = || testbed.measure(&pinned(&[0, 1]), Effort::default()).unwrap_err();
    let error = measure();
    assert_eq!(error.retry, Retry::Same, "{error}");
    assert!(error.message.contains("moved thread w-0 to CPU"), "{error}");
    let error = measure();
    assert_eq!(error.retry, Retry::Never, "{error}");
    assert!(error.message.contains("for the second time"), "{error}");
    let moved = |note: &ProgramNote| matches!(note, ProgramNote::ThreadsMoved { threads: 1, .. });
    assert!(testbed.disturbances().notes.iter().any(moved));
}

/// As `taskset` in its command line does.
#[test]
fn a_program_that_its_command_confines_is_placed_within_its_cpus() {
    if !enough_cpus() {
        return;
    }
    let second = whole().iter().nth(1).unwrap();
    let mut launch = launch("work");
    let program = std::mem::replace(&mut launch.program, "taskset".into());
    launch.arguments.splice(0..0, ["-c".into(), second.0.to_string().into(), program]);
    let testbed = testbed(launch, RunMetric::Runtime);
    assert_eq!(testbed.machine().allowed, [second].into_iter().collect());
}

#[test]
fn only_the_threads_that_were_chosen_are_placed() {
    let choice = |include, exclude| RerunOptions {
        filter: ThreadFilter::new(include, exclude).unwrap(),
        ..RerunOptions::default()
    };
    let open = |options| {
        RerunTestbed::new(
            launch("work"),
            &machine(),
            RunMetric::Runtime,
            options,
            Interrupt::default(),
        )
    };
    let chosen = open(choice(Some("^w-"), Some("-0$"))).unwrap();
    assert_eq!(chosen.workload().threads.len(), 1);
    assert_eq!(chosen.workload().threads[0].name, "w-1");
    assert!(leaves_alone(&chosen.notes(), LeftAlone::Excluded, "w-0"), "{:?}", chosen.notes());
    let error = open(choice(Some("nobody"), None)).err().unwrap().to_string();
    let told = "--include and --exclude leave no thread of linux";
    assert!(error.starts_with(told) && error.ends_with("those that run are w-0, w-1"), "{error}");
}

#[test]
fn a_program_without_the_threads_of_its_campaign_is_named_with_those_it_has() {
    let options = RerunOptions {
        filter: ThreadFilter::default().known(["gone".to_owned()]),
        ..RerunOptions::default()
    };
    let opened = RerunTestbed::new(
        launch("work"),
        &machine(),
        RunMetric::Runtime,
        options,
        Interrupt::default(),
    );
    let error = opened.err().unwrap();
    assert!(matches!(&error, TargetError::NoneKnown { known, .. } if known == "gone"), "{error}");
    let error = error.to_string();
    assert!(error.contains("(gone); those that run are w-0, w-1") && !error.contains("--include"));
}

#[test]
fn runtime_is_wall_time_and_effort_repeats_it() {
    // On a busy machine the first thread's start may be 1 % of the run.
    let workers = RerunOptions {
        filter: ThreadFilter::new(Some("^w-"), None).unwrap(),
        ..RerunOptions::default()
    };
    let mut testbed = RerunTestbed::new(
        launch("work"),
        &machine(),
        RunMetric::Runtime,
        workers,
        Interrupt::default(),
    )
    .unwrap();
    assert_eq!(testbed.unit(), &Unit::cost("s"));
    let begin = Instant::now();
    let measured = testbed.measure(&pinned(&[0, 0]), Effort { windows: 3.0 }).unwrap();
    let seconds = testbed.unit().quantity(measured.performance);
    // Time begins a moment after the exec.
    assert!(seconds >= 0.5, "each thread works for 0.6 s: {seconds} s");
    assert!(3.0 * seconds <= begin.elapsed().as_secs_f64() * 1.01, "mean of three: {seconds} s");
    assert!(measured.duration <= begin.elapsed() && measured.spread.is_some());
}

#[test]
fn no_output_is_too_large_and_the_last_match_counts() {
    let mut testbed = testbed(launch("flood"), printed(r"result (\d+)"));
    assert_eq!(testbed.measure(&Setting::Unpinned, Effort::default()).unwrap().performance, 7.0);
}

#[test]
fn threads_that_vary_from_run_to_run_get_a_note() {
    let directory = tempfile::tempdir().unwrap();
    let mark = directory.path().join("mark");
    std::fs::create_dir(directory.path().join("mark.first")).unwrap();
    let mut testbed = testbed(launch(&format!("vary {}", mark.display())), RunMetric::Runtime);
    assert_eq!(testbed.workload().threads.len(), 2);
    testbed.measure(&pinned(&[0, 0]), Effort { windows: 2.0 }).unwrap();
    let told = ProgramNote::ThreadUnknown { runs: 2, of: 2 };
    assert!(testbed.disturbances().notes.contains(&told), "{:?}", testbed.disturbances());
}

#[test]
fn a_run_that_fails_is_reported_with_status_and_last_line() {
    let error = RerunTestbed::new(
        launch("fail"),
        &machine(),
        RunMetric::Runtime,
        RerunOptions::default(),
        Interrupt::default(),
    );
    let message = error.err().unwrap().to_string();
    assert!(message.contains("ended (exit status: 3)"), "{message}");
    assert!(
        message.ends_with("cannot open the thing; run it by itself until it succeeds"),
        "{message}"
    );
}

#[test]
fn an_output_without_the_number_is_named() {
    let error = RerunTestbed::new(
        launch("work"),
        &machine(),
        printed("speed (x)?"),
        RerunOptions::default(),
        Interrupt::default(),
    );
    let message = error.err().unwrap().to_string();
    assert!(
        message.starts_with("'speed (x)?' matches nothing in the stdout of linux"),
        "{message}"
    );
}

#[test]
fn a_run_beyond_the_limit_or_the_users_patience_is_ended() {
    let options = RerunOptions { limit: Duration::from_millis(300), ..RerunOptions::default() };
    let (launched, runtime) = (launch("spin 1"), RunMetric::Runtime);
    let mut told = Vec::new();
    let mut lasts = |after| told.push(after);
    let error = RerunTestbed::learning(
        launched,
        &machine(),
        runtime,
        options,
        Interrupt::default(),
        &mut lasts,
    );
    assert!(matches!(told[..], [after] if after > Duration::from_millis(150)), "{told:?}");
    let error = pinwise_measure::MeasureError::from(error.err().unwrap());
    let said = "ran longer than the limit of 300 ms and was ended: raise --limit, or add --metric";
    assert!(error.message.contains(said), "{error}");
    assert_eq!(error.retry, Retry::Other);

    // The budget may end before the limit.
    let options = RerunOptions { left: Some(Duration::ZERO), ..RerunOptions::default() };
    let (launched, runtime) = (launch("spin 1"), RunMetric::Runtime);
    let error =
        RerunTestbed::new(launched, &machine(), runtime, options, Interrupt::default()).err();
    let error = error.unwrap().to_string();
    let said = "longer than the rest of the budget (0 s) and was ended: raise --budget, or add";
    assert!(error.contains(said), "{error}");

    let cancelled = Interrupt::default();
    let flag = cancelled.clone();
    let user = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        flag.give_up();
    });
    let error = RerunTestbed::new(
        launch("spin 1"),
        &machine(),
        RunMetric::Runtime,
        RerunOptions::default(),
        cancelled,
    );
    assert!(pinwise_measure::MeasureError::from(error.err().unwrap()).interrupted);
    user.join().unwrap();
    let left: Vec<_> =
        process::all().unwrap().into_iter().filter(|&pid| is_spinner_of_ours(pid)).collect();
    assert_eq!(left, []);
}

/// A child of this process that spins and is in its own group, as launched programs are.
fn is_spinner_of_ours(pid: pinwise_linux::Pid) -> bool {
    let stat = pinwise_linux::thread::Stat::read(pid, pid.main());
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let marked = String::from_utf8_lossy(&environment)
        .contains(&format!("PINWISE_RUN={}-", std::process::id()));
    stat.is_ok_and(|stat| !stat.dead() && stat.group == pid.0)
        && marked
        && String::from_utf8_lossy(&environment).contains("spin 1")
}
