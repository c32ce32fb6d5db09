//! The guardian: whatever happens to pinwise, it puts back what was changed and ends what was
//! launched.

use crate::live::{all_on, quick, testbed, whole};
use crate::programs::*;
use pinwise_linux::{
    LeftChanged, Pid, Restored, Scope, Target, Tid, affinity, process, restore_abandoned,
};
use pinwise_measure::{Effort, Setting, Testbed};
use pinwise_topology::CpuSet;
use rustix::process::{Pid as RawPid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Pins and measures until it is killed, or its time is over.
pub(crate) fn tune(target: Target) {
    let mut testbed = testbed(target, quick()).unwrap();
    println!("\ntuning {}", testbed.workload().threads.len());
    let end = Instant::now() + LIFE;
    for round in 0u32.. {
        let setting = if round % 5 == 4 { Setting::Unpinned } else { all_on(&testbed, round % 2) };
        testbed.measure(&setting, Effort::default()).unwrap();
        if round == 0 {
            println!("\npinned");
        }
        if Instant::now() > end {
            return;
        }
    }
}

/// Pins once, and waits to be killed.
pub(crate) fn pin(target: Target) {
    let mut testbed = testbed(target, quick()).unwrap();
    testbed.measure(&all_on(&testbed, 0), Effort::default()).unwrap();
    println!("\npinned");
    std::thread::sleep(LIFE);
}

/// Pins, and panics with the threads pinned.
pub(crate) fn panic(target: Target) {
    let mut testbed = testbed(target, quick()).unwrap();
    testbed.measure(&all_on(&testbed, 0), Effort::default()).unwrap();
    println!("\npinned");
    panic!("a bug");
}

/// Pins, stops its guardian, and ends.
pub(crate) fn end_with_stopped_guardian(pid: Pid) {
    let target = Target::attach(Scope::Processes(vec![pid])).unwrap();
    let mut testbed = testbed(target, quick()).unwrap();
    testbed.measure(&all_on(&testbed, 0), Effort::default()).unwrap();
    let own = Pid(std::process::id() as i32);
    stop(process::descendants(&[own], &process::all().unwrap())[0]);
    println!("\npinned");
}

/// Stops a process. A thread that runs on another CPU stops a little later, after one more system
/// call.
fn stop(pid: Pid) {
    signal(pid, Signal::STOP);
    until("it to stop", || {
        process::threads(pid).unwrap().into_iter().all(|tid| state(tid) == Some('T'))
    });
}

/// A program with as many busy threads, the threads, and their affinities.
fn spinning(count: usize) -> (Program, Vec<Tid>, Vec<CpuSet>) {
    let program = Program::start(&format!("spin {count}"));
    let threads = program.threads("spin-", count);
    let before = masks(&threads);
    (program, threads, before)
}

fn signal(pid: Pid, signal: Signal) {
    kill_process(RawPid::from_raw(pid.0).unwrap(), signal).unwrap();
}

/// After the last window, and pinwise is killed.
#[test]
fn the_guardian_leaves_a_thread_alone_that_another_has_moved() {
    if !enough_cpus() {
        return;
    }
    let (program, threads, _) = spinning(2);
    let mut tuner = tuner(&format!("pin {}", program.pid()));
    stop(tuner.pid());
    let pin = masks(&threads)[1].clone();
    let other: CpuSet = whole().difference(&pin).first().into_iter().collect();
    affinity::set(threads[1], &other).unwrap();
    tuner.0.kill().unwrap();
    until("the first thread as it was", || masks(&threads)[0] == whole());
    until("the guardian to end", || !is_held(program.pid()));
    assert_eq!(masks(&threads)[1], other);
}

/// Whether a pinwise or its guardian holds a process.
pub(crate) fn is_held(pid: Pid) -> bool {
    let folder = std::fs::File::open(format!("/proc/{pid}")).unwrap();
    rustix::fs::flock(&folder, rustix::fs::FlockOperation::NonBlockingLockExclusive).is_err()
}

#[test]
fn a_killed_pinwise_leaves_no_thread_pinned() {
    if !enough_cpus() {
        return;
    }
    let (program, threads, before) = spinning(4);
    for kill in 0..6 {
        let mut tuner = tuner(&format!("tune {}", program.pid()));
        // Not on a schedule: each at another moment of the 10 ms in which threads are moved and
        // measured.
        std::thread::sleep(Duration::from_micros(1700 * kill));
        tuner.0.kill().unwrap();
        until("all threads as they were", || masks(&threads) == before);
    }
}

#[test]
fn a_panic_puts_everything_back() {
    if !enough_cpus() {
        return;
    }
    let (program, threads, before) = spinning(3);
    let mut panicking = tuner(&format!("panic {}", program.pid()));
    let status = panicking.0.wait().unwrap();
    assert!(!status.success(), "it did panic");
    until("all threads as they were", || masks(&threads) == before);
}

#[test]
fn a_killed_pinwise_ends_what_it_launched_with_its_children() {
    let mut tuner = tuner("launch");
    let launched = process::descendants(&[tuner.pid()], &process::all().unwrap());
    assert!(launched.len() >= 3, "a guardian, the program and its child: {launched:?}");
    tuner.0.kill().unwrap();
    until("nothing it started is left", || launched.iter().all(|&pid| process::ended(pid)));
}

#[test]
fn a_guardian_that_is_stopped_restores_all_the_same() {
    if !enough_cpus() {
        return;
    }
    let (program, threads, before) = spinning(2);
    let tuner = tuner(&format!("end {}", program.pid()));
    let guardian = process::descendants(&[tuner.pid()], &process::all().unwrap());
    let end = Instant::now() + Duration::from_secs(60);
    while !process::ended(tuner.pid()) && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(2));
    }
    // Nothing stopped is left behind.
    guardian.iter().filter(|&&pid| !process::ended(pid)).for_each(|&pid| signal(pid, Signal::CONT));
    assert!(process::ended(tuner.pid()), "it waits for its guardian");
    assert_eq!(masks(&threads), before);
}

#[test]
fn a_guardian_that_is_killed_is_replaced() {
    if !enough_cpus() {
        return;
    }
    let (program, threads, before) = spinning(2);
    let mut tuner = tuner(&format!("tune {}", program.pid()));
    let guardians = || process::descendants(&[tuner.pid()], &process::all().unwrap());
    let first = guardians();
    assert_eq!(first.len(), 1);
    signal(first[0], Signal::TERM);
    signal(first[0], Signal::INT);
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(guardians(), first, "it ignores what ends ordinary programs");
    signal(first[0], Signal::KILL);
    until("another guardian", || {
        guardians().iter().any(|pid| *pid != first[0] && !process::ended(*pid))
    });
    // The tuner moves threads only when its guardian knows how to put them back. So after two moves
    // the new guardian knows.
    for _ in 0..2 {
        let now = masks(&threads);
        until("the threads to be moved", || masks(&threads) != now);
    }
    tuner.0.kill().unwrap();
    until("all threads as they were", || masks(&threads) == before);
}

/// As with the out-of-memory killer, or `systemctl kill`.
#[test]
fn what_a_killed_pinwise_and_its_guardian_left_is_put_back_later() {
    if !enough_cpus() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (program, threads, before) = spinning(2);
    let mut tuner = tuner(&format!("keep {} {}", program.pid(), folder.path().display()));
    let guardian = process::descendants(&[tuner.pid()], &process::all().unwrap())[0];
    // One window in five is unpinned.
    until("the threads to be pinned", || {
        stop(tuner.pid());
        let pinned = masks(&threads).iter().all(|mask| mask.len() == 1);
        if !pinned {
            signal(tuner.pid(), Signal::CONT);
        }
        pinned
    });
    // Before that, pinwise would let it go on.
    stop(guardian);
    assert_eq!(restore_abandoned(folder.path()), [], "they live");
    tuner.0.kill().unwrap();
    tuner.0.wait().unwrap();
    assert_eq!(restore_abandoned(folder.path()), [], "the guardian lives");
    signal(guardian, Signal::KILL);
    until("the guardian to end", || process::ended(guardian));
    assert!(masks(&threads).iter().all(|mask| mask.len() == 1));
    let what = LeftChanged::Affinities(program.pid());
    assert_eq!(restore_abandoned(folder.path()), [Restored { what, worked: true }]);
    assert_eq!(masks(&threads), before);
    assert_eq!(restore_abandoned(folder.path()), []);
}

#[test]
fn what_a_killed_pinwise_and_its_guardian_had_launched_is_ended_later() {
    let folder = tempfile::tempdir().unwrap();
    let mut tuner = tuner(&format!("keep {}", folder.path().display()));
    let started = process::descendants(&[tuner.pid()], &process::all().unwrap());
    let is_guardian = |pid: &Pid| {
        std::fs::read(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|c| c.starts_with(b"affinity-guard"))
    };
    let (guardians, launched): (Vec<Pid>, Vec<Pid>) = started.into_iter().partition(is_guardian);
    let [guardian] = guardians[..] else { panic!("{guardians:?}") };
    assert!(launched.len() >= 2, "the program and its child: {launched:?}");
    // The tuner wakes its guardian when it tells it something.
    stop(tuner.pid());
    stop(guardian);
    tuner.0.kill().unwrap();
    tuner.0.wait().unwrap();
    signal(guardian, Signal::KILL);
    until("the guardian to end", || process::ended(guardian));
    assert!(launched.iter().all(|&pid| !process::ended(pid)), "nobody is left to end them");
    let restored = restore_abandoned(folder.path());
    for &pid in &launched {
        let what = LeftChanged::Program(pid);
        assert!(restored.contains(&Restored { what, worked: true }), "{pid}: {restored:?}");
    }
    until("nothing it started is left", || launched.iter().all(|&pid| process::ended(pid)));
    assert_eq!(restore_abandoned(folder.path()), []);
}

/// A process that pins and measures until it is killed.
pub(crate) fn tuner(program: &str) -> Program {
    let mut command = Command::new("/proc/self/exe");
    command
        .args(arguments())
        .env(PROGRAM, program)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut tuner = Program(command.spawn().unwrap());
    let mut lines = BufReader::new(tuner.0.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "pinned"), "the tuner did not get as far as pinning");
    // Nobody reads its output any more, and it prints none.
    tuner
}
