//! The monitor's layers on programs whose threads wait for each other.
//!
//! The tests are here, not in the crate `monitor`, because they need the test programs of this
//! crate.

use crate::programs::{PROGRAM, Program, arguments, state, until};
use pinwise_linux::{Pid, Scope, Tid, thread::SchedulerTimes};
use pinwise_monitor::{Activity, Layer, LayerChoice, Monitor, MonitorError, ThreadActivity};
use pinwise_synthetic::not_judged;
use pinwise_synthetic::waiting::KINDS;
use rustix::process::{Pid as RawPid, Signal, kill_process};
use std::cell::Cell;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A monitor, or `None` with the reason on standard output where this user may not have it.
fn monitor(pid: Pid, layer: Layer) -> Option<Monitor> {
    match Monitor::with(Scope::Processes(vec![pid]), layer) {
        Ok(monitor) => Some(monitor),
        Err(MonitorError::Unavailable(reason)) => {
            not_judged(reason);
            None
        }
        Err(MonitorError::Threads(error)) => panic!("{error}"),
    }
}

/// Time of all threads in windows, in seconds.
fn time(windows: &[Activity], of: impl Fn(&ThreadActivity) -> Duration) -> f64 {
    windows.iter().flat_map(|seen| &seen.threads).map(|thread| of(thread).as_secs_f64()).sum()
}

/// How much of it is right is judged where the time is virtual, in the crate `monitor`.
#[test]
fn every_kind_of_waiting_for_threads_is_time_at_locks() {
    for (kind, _) in KINDS {
        for layer in [Layer::Proc, Layer::Ebpf] {
            let program = Program::start(&format!("contend {kind}"));
            let Some(mut monitor) = monitor(program.pid(), layer) else { continue };
            program.threads("", 5);
            until(&format!("{layer} to see {kind}"), || {
                let window = Duration::from_millis(100);
                let seen = monitor.watch(window, &thread::sleep, &|| false).unwrap();
                seen.threads.iter().any(|thread| thread.locked > Some(Duration::ZERO))
            });
        }
    }
}

/// Seconds of steal time since boot. A hypervisor gave them to others while a CPU here wanted to
/// run.
fn stolen() -> f64 {
    let stat = std::fs::read_to_string("/proc/stat").unwrap();
    let stolen = stat.split_whitespace().nth(8).and_then(|field| field.parse::<f64>().ok());
    stolen.unwrap_or(0.0) / 100.0
}

/// Windows of the test below.
const WINDOWS: usize = 20;

/// What the kernel has counted of threads since their start.
#[derive(Debug, Default)]
struct Counted {
    voluntary: u64,
    involuntary: u64,
    ran: f64,
    waited: f64,
}

impl Counted {
    fn of(pid: Pid, tids: &[Tid]) -> Self {
        let mut all = Self::default();
        for &tid in tids {
            let status = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/status")).unwrap();
            let field = |name: &str| -> u64 {
                let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
                line.trim().parse().unwrap()
            };
            all.voluntary += field("voluntary_ctxt_switches:");
            all.involuntary += field("nonvoluntary_ctxt_switches:");
            let times = SchedulerTimes::read(pid, tid).unwrap();
            all.ran += times.ran.as_secs_f64();
            all.waited += times.waited.as_secs_f64();
        }
        all
    }

    fn switches(&self) -> u64 {
        self.voluntary + self.involuntary
    }
}

/// Stops a program, and waits until none of its threads is on a CPU.
fn stop(pid: Pid, tids: &[Tid]) {
    kill_process(RawPid::from_raw(pid.0).unwrap(), Signal::STOP).unwrap();
    let rests = |tid: &Tid| {
        let file = |name| std::fs::read(format!("/proc/{pid}/task/{tid}/{name}")).unwrap();
        // One that is leaving its CPU is said to run, by this file alone.
        state(*tid) == Some('T') && !file("syscall").starts_with(b"running")
    };
    until("the program to stop", || tids.iter().all(rests));
}

/// A window in which a stopped program goes on until it has switched this often, and stops again.
fn watch_work(monitor: &mut Monitor, pid: Pid, tids: &[Tid], switches: u64) -> Activity {
    let before = Counted::of(pid, tids).switches();
    let (begun, done) = (Cell::new(false), Cell::new(false));
    // The first pause is after the first look.
    let pause = |time| {
        if !begun.replace(true) {
            kill_process(RawPid::from_raw(pid.0).unwrap(), Signal::CONT).unwrap();
        }
        if Counted::of(pid, tids).switches() < before + switches {
            thread::sleep(time);
        } else {
            stop(pid, tids);
            done.set(true);
        }
    };
    monitor.watch(Duration::from_secs(3600), &pause, &|| done.get()).unwrap()
}

/// The program is stopped whenever no window is open. So all it does is in some window, and the
/// kernel's counters stand still where they are read.
#[test]
fn windows_have_all_that_the_kernel_counts_and_nothing_twice() {
    for layer in Layer::ALL {
        let program = Program::start("contend queue");
        let (pid, tids) = (program.pid(), program.threads("", 8));
        let Some(mut monitor) = monitor(pid, layer) else { continue };
        stop(pid, &tids);
        let (begin, before) = (Instant::now(), (Counted::of(pid, &tids), stolen()));
        let windows: Vec<Activity> =
            (0..WINDOWS).map(|_| watch_work(&mut monitor, pid, &tids, 100)).collect();
        let after = (Counted::of(pid, &tids), stolen());
        let elapsed: Duration = windows.iter().map(|seen| seen.elapsed).sum();
        assert!(elapsed <= begin.elapsed(), "{layer}: {elapsed:?}");
        for seen in &windows {
            assert_eq!((seen.layer, seen.threads.len()), (layer, tids.len()));
            for thread in &seen.threads {
                assert_eq!(thread.ran + thread.waited + thread.slept, thread.elapsed, "{thread:?}");
                assert!(thread.locked.is_none_or(|locked| locked <= thread.slept), "{thread:?}");
            }
        }
        let count = |of: &dyn Fn(&ThreadActivity) -> u64| -> u64 {
            windows.iter().flat_map(|seen| &seen.threads).map(of).sum()
        };
        let [voluntary, involuntary] = [count(&|one| one.voluntary), count(&|one| one.involuntary)];
        let (counted, seen) = (after.0.switches() - before.0.switches(), voluntary + involuntary);
        // Records that the kernel had no room for are counted.
        let lost: u64 = windows.iter().map(|seen| seen.lost).sum();
        let missed = counted.checked_sub(seen).expect("no switch twice");
        assert!(missed <= lost, "{layer}: {missed} of {counted} switches missed, {lost} lost");
        // A signal may come as a thread goes to sleep. Then chance decides between the two kinds.
        let signals = (WINDOWS * tids.len()) as u64;
        let kind = (after.0.voluntary - before.0.voluntary).abs_diff(voluntary);
        assert!(kind <= lost + signals, "{layer}: {kind} of {voluntary} voluntary switches");
        let machine: u64 = windows.iter().map(|seen| seen.overhead.switches).sum();
        assert!(layer == Layer::Proc || machine >= seen, "{layer}: {machine}");
        // A hypervisor takes time from turns that the account of a thread leaves out.
        let slack = after.1 - before.1 + 0.05;
        for (what, seen, kernel) in [
            ("ran", time(&windows, |one| one.ran), after.0.ran - before.0.ran),
            ("waited", time(&windows, |one| one.waited), after.0.waited - before.0.waited),
        ] {
            let off = if lost > 0 { seen - kernel } else { (seen - kernel).abs() };
            assert!(off < 0.03 * kernel + slack, "{layer}: {what} {seen} s, {kernel} s");
        }
    }
}

#[test]
fn layers_with_privilege_miss_no_thread_however_short_its_life() {
    for layer in [Layer::Perf, Layer::Ebpf] {
        let own = Pid(std::process::id() as i32);
        let Some(mut monitor) = monitor(own, layer) else { continue };
        let activity = brief_threads(&mut monitor);
        let brief: Vec<_> = activity.threads.iter().filter(|thread| thread.comm == BRIEF).collect();
        for thread in &brief {
            assert!(thread.ran <= thread.elapsed, "{thread:?}");
        }
        let seen = brief.iter().filter(|thread| thread.ran > Duration::ZERO).count();
        // What the whole machine does may be more than the kernel's buffers take. That is counted.
        // A thread whose only turn is not seen has a record or more among these.
        let missed = BRIEF_THREADS.checked_sub(seen).expect("no more than there are");
        assert!(missed as u64 <= activity.lost, "{layer}: {missed} missed, {} lost", activity.lost);
    }
}

const BRIEF: &str = "mon-brief";
const BRIEF_THREADS: usize = 100;

/// What a monitor of this process sees of threads that live for a moment, one after the other.
fn brief_threads(monitor: &mut Monitor) -> Activity {
    let (looked, done) = (AtomicBool::new(false), AtomicBool::new(false));
    // The first pause is after the first look, when all that the layer needs is at work.
    let pause = |time| {
        looked.store(true, Ordering::Relaxed);
        thread::sleep(time);
    };
    let cancelled = || done.load(Ordering::Relaxed);
    thread::scope(|scope| {
        scope.spawn(|| {
            until("the first look", || looked.load(Ordering::Relaxed));
            for _ in 0..BRIEF_THREADS {
                let brief = thread::Builder::new().name(BRIEF.into());
                let work = || std::hint::black_box((0..20_000u64).product::<u64>());
                brief.spawn(work).unwrap().join().unwrap();
            }
            done.store(true, Ordering::Relaxed);
        });
        monitor.watch(Duration::from_secs(120), &pause, &cancelled).unwrap()
    })
}

/// A window in which the program's threads ran for more than 20 ms in all.
fn watched_at_work(monitor: &mut Monitor) -> Activity {
    let windows = [200, 2000, 20_000].map(Duration::from_millis).into_iter();
    let mut watched =
        windows.map(|window| monitor.watch(window, &thread::sleep, &|| false).unwrap());
    let worked = |seen: &Activity| seen.ran() > Duration::from_millis(20);
    watched.find(worked).expect("the program gets some CPU time")
}

#[test]
fn a_layer_that_many_switches_make_expensive_is_given_up_with_a_reason() {
    for layer in [Layer::Perf, Layer::Ebpf] {
        let program = Program::start("contend tokens");
        let Some(mut monitor) = monitor(program.pid(), layer) else { continue };
        program.threads("", 9);
        let mut layer_choice = LayerChoice::new().unwrap();
        let mut seen = watched_at_work(&mut monitor);
        drop(monitor);
        // The switches are counted. What one costs is stated here: beside other programs it is
        // measured as more or less.
        seen.overhead.switching = Duration::from_micros(seen.overhead.switches);
        assert!(
            layer_choice.take_in(&seen),
            "{layer}: {:?} beside {:?}",
            seen.overhead,
            seen.ran()
        );
        let told = layer_choice.refused().last().unwrap();
        assert!(told.layer == layer && told.reason().starts_with("took "), "{told}");
        let mut monitor = layer_choice.monitor(Scope::Processes(vec![program.pid()])).unwrap();
        let seen = watched_at_work(&mut monitor);
        assert_eq!((seen.layer, seen.overhead.switching), (Layer::Proc, Duration::ZERO));
        // Nor would who has given up nothing so far.
        assert!(
            seen.lock().unwrap() > 0.0 && !LayerChoice::new().unwrap().take_in(&seen),
            "{seen:?}"
        );
    }
}

/// The program of the test below. Once there is a file `go`, its second thread becomes a shell. The
/// shell computes for 30 s at most.
pub(crate) fn replace(go: &str) {
    let go = go.to_owned();
    let second = thread::Builder::new().name("second".into()).spawn(move || {
        while !Path::new(&go).exists() {
            thread::sleep(Duration::from_millis(2));
        }
        panic!("{}", Command::new("sh").args(["-c", "ulimit -t 30; while :; do :; done"]).exec())
    });
    second.unwrap().join().unwrap();
}

#[test]
fn a_program_that_a_second_thread_replaces_is_watched_on() {
    let folder = tempfile::tempdir().unwrap();
    let go = folder.path().join("go");
    let program = Program::start(&format!("replace {}", go.display()));
    let pid = program.pid();
    let Some(mut monitor) = monitor(pid, Layer::Ebpf) else { return };
    program.threads("second", 1);
    // The first pause is after the first look.
    let pause = |time| {
        std::fs::write(&go, "").unwrap();
        thread::sleep(time);
    };
    let file =
        |name: &str| std::fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
    let ran = || {
        file("schedstat")
            .split_whitespace()
            .next()
            .and_then(|ran| ran.parse::<u64>().ok())
            .unwrap_or(0)
    };
    let computed = || file("comm") == "sh\n" && ran() > 300_000_000;
    let activity = monitor.watch(Duration::from_secs(60), &pause, &computed).unwrap();
    let shell = activity.threads.iter().find(|thread| thread.id.tid.0 == pid.0).unwrap();
    assert!(shell.comm == "sh" && shell.ran > Duration::from_millis(150), "{:?}", activity.threads);
}

/// The program of the test below.
pub(crate) fn ask_for_the_best() {
    let monitor = Monitor::best(Scope::Processes(vec![Pid(std::process::id() as i32)])).unwrap();
    println!("layer {}", monitor.layer());
    monitor.refused().iter().for_each(|refused| println!("refused {refused}"));
}

#[test]
fn without_privilege_the_program_is_still_watched_and_the_reason_is_given() {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(arguments()).env(PROGRAM, "monitor");
    if rustix::process::geteuid().is_root() {
        // nobody
        command.uid(65_534).gid(65_534);
    }
    let output = match command.output() {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            not_judged(format_args!("another user may not execute this test: {error}"));
            return;
        }
        output => output.unwrap(),
    };
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("layer proc"), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let refused: Vec<&str> = text.lines().filter(|line| line.starts_with("refused")).collect();
    assert_eq!(refused.len(), 2, "{text}");
    assert!(
        refused[0].starts_with("refused ebpf: ") && refused[1].starts_with("refused perf: "),
        "{text}"
    );
    let told = |line: &str| {
        line.contains("setcap")
            || line.contains("not in this build")
            || line.contains("PID namespace")
    };
    assert!(refused.iter().all(|line| told(line)), "{text}");
}
