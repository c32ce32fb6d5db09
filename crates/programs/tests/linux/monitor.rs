//! The monitor's layers at the same time, on programs whose threads wait for each other.
//!
//! Two layers watch the same program at the same time. So a difference comes from the layers, not
//! from the program or the machine. The tests are here, not in the crate `monitor`, because they
//! need the test programs of this crate.

use crate::programs::{PROGRAM, Program, arguments, until};
use pinwise_linux::{Pid, Scope};
use pinwise_monitor::{Activity, Layer, LayerChoice, Monitor, MonitorError, ThreadActivity};
use pinwise_synthetic::not_judged;
use pinwise_synthetic::waiting::KINDS;
use std::cell::OnceCell;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::Barrier;
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

/// What two monitors see of the same window. `None`: a busy machine delayed one of them, and the
/// windows were not the same.
fn side_by_side(monitors: &mut [Monitor; 2], window: Duration) -> Option<[Activity; 2]> {
    let together = Barrier::new(2);
    let watch = |monitor: &mut Monitor| {
        // The first pause is after the first look.
        let begin = OnceCell::new();
        let pause = |time| {
            begin.get_or_init(Instant::now);
            thread::sleep(time);
        };
        together.wait();
        let activity = monitor.watch(window, &pause, &|| false).unwrap();
        (activity, begin.into_inner(), Instant::now())
    };
    let [one, other] = monitors;
    let [one, other] = thread::scope(|scope| {
        let one = scope.spawn(|| watch(one));
        let other = watch(other);
        [one.join().unwrap(), other]
    });
    let near = |one: Instant, other: Instant| one.max(other) - one.min(other) < window / 100;
    let same = near(one.1?, other.1?) && near(one.2, other.2);
    same.then_some([one.0, other.0])
}

/// Time of all threads, in seconds.
fn total(activity: &Activity, of: impl Fn(&ThreadActivity) -> Duration) -> f64 {
    activity.threads.iter().map(|thread| of(thread).as_secs_f64()).sum()
}

#[test]
fn the_sampled_share_of_time_at_locks_is_the_exact_one_within_a_tenth() {
    const TRIES: usize = 3;
    for (kind, _) in KINDS {
        // A hypervisor may make the two ways of watching differ for a moment. A way that is wrong
        // is wrong each time.
        for tried in 1.. {
            let Some([sampled, truth]) = time_at_locks(kind) else { break };
            let close = (sampled / truth - 1.0).abs() < TOLERANCE;
            assert!(
                close || tried < TRIES,
                "{kind}: sampled {sampled} s, exact {truth} s, the last of {TRIES} tries"
            );
            if close {
                break;
            }
        }
    }
}

/// Of how much the sampled share may be off.
const TOLERANCE: f64 = 0.10;

/// Seconds that the threads of a program wait for each other, sampled and exact, over the same
/// windows. `None` if there is no exact way, or too few looks for the tolerance.
fn time_at_locks(kind: &str) -> Option<[f64; 2]> {
    let program = Program::start(&format!("contend {kind}"));
    let exact = monitor(program.pid(), Layer::Ebpf)?;
    program.threads("", 5);
    let mut monitors = [monitor(program.pid(), Layer::Proc).unwrap(), exact];
    let (mut sampled, mut truth, mut elapsed, mut slept, mut looks) = (0.0, 0.0, 0.0, 0.0, 0.0);
    let deadline = Instant::now() + Duration::from_secs(20);
    // A share p of n looks has a relative standard deviation of sqrt((1 - p) / (p n)). It looks
    // until four of these are within the tolerance, so that chance fails this once in 10,000 runs.
    loop {
        if Instant::now() > deadline {
            not_judged(format_args!(
                "the sampled share of time at locks of {kind}: this busy machine gave it too few \
                 looks"
            ));
            return None;
        }
        let Some([proc, ebpf]) = side_by_side(&mut monitors, Duration::from_secs(1)) else {
            continue;
        };
        sampled += total(&proc, |thread| thread.locked.unwrap_or_default());
        truth += total(&ebpf, |thread| thread.locked.unwrap_or_default());
        elapsed += total(&ebpf, |thread| thread.elapsed);
        slept += total(&proc, |thread| thread.slept);
        let asleep = |thread: &ThreadActivity| {
            f64::from(thread.looks) * thread.slept.as_secs_f64()
                / thread.elapsed.as_secs_f64().max(1e-9)
        };
        looks += proc.threads.iter().map(asleep).sum::<f64>();
        let share = sampled / slept;
        if 4.0 * ((1.0 - share).max(0.0) / (share * looks)).sqrt() < TOLERANCE && looks > 500.0 {
            break;
        }
    }
    println!(
        "{kind}: LOCK sampled {:.4}, exact {:.4}, {looks:.0} looks asleep, {:.1} thread seconds",
        sampled / elapsed,
        truth / elapsed,
        elapsed
    );
    Some([sampled, truth])
}

/// Seconds of steal time since boot. A hypervisor gave them to others while a CPU here wanted to
/// run.
fn stolen() -> f64 {
    cpu_times([8].as_slice())
}

/// Seconds that the CPUs of this machine did something, since it was started.
fn busy() -> f64 {
    cpu_times([1, 2, 3, 6, 7].as_slice())
}

/// The sum of these fields of the first line of `/proc/stat`, from hundredths of a second.
fn cpu_times(fields: &[usize]) -> f64 {
    let stat = std::fs::read_to_string("/proc/stat").unwrap();
    let all: Vec<&str> = stat.lines().next().unwrap_or("").split_whitespace().collect();
    let time = |field: &usize| all.get(*field)?.parse::<f64>().ok();
    fields.iter().filter_map(time).sum::<f64>() / 100.0
}

#[test]
fn layers_with_privilege_count_what_the_kernel_counts() {
    for layer in [Layer::Perf, Layer::Ebpf] {
        let program = Program::start("contend queue");
        let Some(exact) = monitor(program.pid(), layer) else { continue };
        program.threads("", 7);
        let mut monitors = [monitor(program.pid(), Layer::Proc).unwrap(), exact];
        let same = (0..8).find_map(|_| {
            let before = [stolen(), busy()];
            // Records that the kernel had no room for are counted; such a window judges nothing.
            side_by_side(&mut monitors, Duration::from_secs(2))
                .filter(|[_, exact]| exact.lost == 0)
                .map(|activities| (activities, [stolen() - before[0], busy() - before[1]]))
        });
        let Some(([proc, exact], [stolen, busy])) = same else {
            not_judged(format_args!(
                "{layer} beside /proc: this busy machine gave them no window that was the same"
            ));
            continue;
        };
        assert_eq!(exact.layer, layer);
        for thread in proc.threads.iter().chain(&exact.threads) {
            assert_eq!(thread.ran + thread.waited + thread.slept, thread.elapsed, "{thread:?}");
            assert!(thread.locked.is_none_or(|locked| locked <= thread.slept), "{thread:?}");
        }
        let counts = |activity: &Activity| {
            let sum =
                |of: &dyn Fn(&ThreadActivity) -> u64| activity.threads.iter().map(of).sum::<u64>();
            [
                sum(&|thread| thread.voluntary),
                sum(&|thread| thread.involuntary),
                sum(&|thread| thread.migrations.unwrap_or(0)),
            ]
        };
        let (ran, waited) = (
            |activity| total(activity, |thread| thread.ran),
            |activity| total(activity, |thread| thread.waited),
        );
        println!(
            "{layer}: {:?} beside {:?}, overhead {:?}",
            counts(&exact),
            counts(&proc),
            exact.overhead
        );
        println!(
            "ran {:.4} s beside {:.4}, waited {:.4} beside {:.4}",
            ran(&exact),
            ran(&proc),
            waited(&exact),
            waited(&proc)
        );
        // The windows begin and end within a few milliseconds of each other. Up to 8 ms of running
        // are not accounted yet.
        let near =
            |one: f64, other: f64, slack: f64| (one - other).abs() <= 0.03 * one.max(other) + slack;
        let [[switches, taken, _], [switches_proc, taken_proc, _]] =
            [counts(&exact), counts(&proc)];
        assert!(
            near(switches as f64, switches_proc as f64, 20.0),
            "{switches} voluntary switches, {switches_proc}"
        );
        assert!(
            near(taken as f64, taken_proc as f64, 20.0),
            "{taken} involuntary switches, {taken_proc}"
        );
        // What a hypervisor takes from a thread's turn is not in the kernel's account of it.
        assert!(
            near(ran(&exact), ran(&proc), 0.05 + stolen),
            "{} s on CPUs, {}, {stolen} stolen",
            ran(&exact),
            ran(&proc)
        );
        // The kernel accounts for a wait when it ends. Behind other programs one may be long, and
        // reach into the window or out of it.
        if busy - ran(&exact) < 0.1 {
            assert!(
                near(waited(&exact), waited(&proc), 0.1 + stolen),
                "{} s waited, {}",
                waited(&exact),
                waited(&proc)
            );
        } else {
            not_judged(format_args!("time waited by {layer}: other programs had the CPUs"));
        }
        assert!(exact.overhead.switches >= switches, "{:?}", exact.overhead);
    }
}

#[test]
fn layers_with_privilege_miss_no_thread_however_short_its_life() {
    for layer in [Layer::Perf, Layer::Ebpf] {
        let own = Pid(std::process::id() as i32);
        let Some(mut monitor) = monitor(own, layer) else { continue };
        // What the whole machine does may be more than the kernel's buffers take. That is counted,
        // and judges nothing.
        let complete = (0..4).map(|_| brief_threads(&mut monitor)).find(|seen| seen.lost == 0);
        let Some(activity) = complete else {
            not_judged(format_args!("{layer}: other programs filled the kernel's buffers"));
            continue;
        };
        let brief: Vec<_> = activity.threads.iter().filter(|thread| thread.comm == BRIEF).collect();
        assert_eq!(brief.len(), BRIEF_THREADS, "{layer}");
        for thread in &brief {
            assert!(thread.ran <= thread.elapsed, "{thread:?}");
        }
        let seen = brief.iter().filter(|thread| thread.ran > Duration::ZERO).count();
        assert_eq!(seen, BRIEF_THREADS, "{layer}: whose only turn was seen");
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
fn a_layer_that_many_switches_make_dear_is_given_up_and_the_reason_is_told() {
    for layer in [Layer::Perf, Layer::Ebpf] {
        let program = Program::start("contend tokens");
        let Some(mut monitor) = monitor(program.pid(), layer) else { continue };
        program.threads("", 9);
        let mut layer_choice = LayerChoice::new().unwrap();
        let seen = watched_at_work(&mut monitor);
        drop(monitor);
        assert!(
            layer_choice.take_in(&seen),
            "{layer}: {:?} beside {:.4} s",
            seen.overhead,
            total(&seen, |thread| thread.ran)
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

#[test]
fn windows_that_follow_each_other_leave_nothing_out_and_count_nothing_twice() {
    for layer in Layer::ALL {
        let program = Program::start("contend queue");
        // All of them: one that is found within a window counts from its start.
        let tids = program.threads("", 7);
        let Some(mut monitor) = monitor(program.pid(), layer) else { continue };
        // By the kernel's own count from before the first window to after the last one.
        let count = || -> u64 {
            let counts = tids.iter().map(|tid| {
                let status =
                    std::fs::read_to_string(format!("/proc/{}/task/{tid}/status", program.pid()))
                        .unwrap();
                let line =
                    status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
                line.and_then(|count| count.trim().parse::<u64>().ok()).unwrap()
            });
            counts.sum()
        };
        let mut watch =
            |window: Duration| monitor.watch(window, &thread::sleep, &|| false).unwrap();
        // The first window of some length may begin where this one, of no length, has ended.
        let (earliest, first) = (count(), Instant::now());
        // Opens the layers that work here.
        watch(Duration::ZERO);
        let (before, begin) = (count(), Instant::now());
        let windows: Vec<Activity> = (0..20).map(|_| watch(Duration::from_millis(20))).collect();
        let (after, elapsed) = (count(), begin.elapsed());
        let counted =
            |seen: &Activity| seen.threads.iter().map(|thread| thread.voluntary).sum::<u64>();
        let sum: u64 = windows.iter().map(counted).sum();
        let watched: Duration = windows.iter().map(|seen| seen.elapsed).sum();
        assert!(windows.iter().all(|seen| seen.threads.len() >= 7), "{layer}");
        assert!(watched <= first.elapsed(), "{layer}: {watched:?} of {:?}", first.elapsed());
        assert!(sum <= after - earliest + 100, "{layer}: {sum} switches of {}", after - earliest);
        // `perf` begins its windows anew, and a busy machine comes between them.
        if watched > elapsed.mul_f64(0.98) && layer != Layer::Perf {
            assert!(
                sum as f64 >= 0.9 * (after - before) as f64,
                "{layer}: {sum} switches of {}",
                after - before
            );
        } else if layer != Layer::Perf {
            not_judged(format_args!(
                "windows by {layer} that follow each other: something came between them"
            ));
        }
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
fn without_privilege_the_program_is_still_watched_and_the_reason_is_told() {
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
