//! Programs started with one number of threads after another.

use crate::programs::{LIFE, PROGRAM, arguments, machine, spin, threads_of, until};
use pinwise_linux::Scope;
use pinwise_measure::{Effort, Interrupt, Measure, Probe, Probed, Setting, Testbed, ThreadCount};
use pinwise_metric::{MetricOptions, MetricSpec, Pattern};
use pinwise_monitor::{Layer, LayerChoice, Power};
use pinwise_programs::{
    CommandTemplate, LinuxProber, NumberSetter, OwnParameter, ProbeDetails, ProbeError,
    ProbeOptions, ProbedProgram, ProgressSource, RunMetric,
};
use std::time::{Duration, Instant};
use std::{fs, thread};

const WINDOW: Duration = Duration::from_millis(60);

/// The test binary as a program `name`, with `{n}` in it.
fn template(name: &str) -> CommandTemplate {
    let command = std::iter::once("/proc/self/exe").chain(arguments()).map(str::to_owned).collect();
    CommandTemplate::new(command, &[format!("{PROGRAM}={name}")], None).unwrap()
}

fn options() -> ProbeOptions {
    ProbeOptions {
        contexts: 2,
        window: WINDOW,
        threads: None,
        after: None,
        limit: Duration::from_secs(20),
        progress: ProgressSource::Counters,
        remove: Vec::new(),
        most_written: None,
        until: None,
        floor: None,
        power: None,
    }
}

fn prober(template: CommandTemplate, options: ProbeOptions) -> LinuxProber {
    LinuxProber::new(machine(), ProbedProgram::Anew(template), options, Interrupt::default())
        .unwrap()
}

/// The message of a probe that must fail.
fn refused(prober: &mut LinuxProber, parameter: u32) -> String {
    let message = prober.probe(parameter, WINDOW).unwrap_err().message;
    assert!(!message.contains('\n'), "{message}");
    message
}

/// The first thread works alone for a while. Then it starts one thread per unit and prints what it
/// does.
pub(crate) fn late(count: usize) {
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_millis(120) {
        std::hint::spin_loop();
    }
    let threads: Vec<_> = (0..count).map(|_| spin("late", LIFE)).collect();
    // Each has its name once it has run.
    threads_of(pinwise_linux::Pid(std::process::id() as i32), "late", count);
    println!("\nready");
    for step in 0.. {
        println!("work {}", step * count);
        thread::sleep(Duration::from_millis(5));
        if begin.elapsed() > LIFE {
            break;
        }
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// Works and ends.
pub(crate) fn brief(count: usize) {
    let threads: Vec<_> = (0..count).map(|_| spin("brief", Duration::from_millis(150))).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// The best layer that is allowed here, if that adds a cost to context switches. Otherwise says why
/// no such layer is allowed.
fn costly() -> Option<(LayerChoice, Layer)> {
    let allowed = LayerChoice::new().unwrap();
    let layer = allowed.monitor(Scope::Processes(Vec::new())).unwrap().layer();
    if layer == Layer::Proc {
        allowed.refused().iter().for_each(pinwise_synthetic::not_judged);
    }
    (layer != Layer::Proc).then_some((allowed, layer))
}

#[test]
fn a_program_of_many_switches_is_soon_watched_by_looks_with_a_reason() {
    let Some((allowed, layer)) = costly() else { return };
    let threads = ProbeOptions { threads: Some(Box::new(|_| 8)), ..options() };
    let mut prober = prober(template("contend tokens {n}"), threads);
    // The warm-up shows the cost, or the first window in which the program gets to run.
    let mut layer_of = |n| {
        prober.probe(n, WINDOW).unwrap();
        prober.probes().last().unwrap().activity.layer
    };
    let mut numbers = [1, 2].into_iter().cycle().take(12);
    assert!(numbers.any(|n| layer_of(n) == Layer::Proc), "{layer} is never given up");
    assert_eq!([layer_of(1), layer_of(2)], [Layer::Proc; 2]);
    let told = prober.refused().last().unwrap();
    assert!(told.layer == layer && told.reason().starts_with("took "), "{told}");
    assert_eq!(prober.refused().len(), allowed.refused().len() + 1, "pinwise says it once");
}

#[test]
fn a_whole_run_that_a_layer_cost_too_much_is_watched_by_looks_soon_and_is_not_the_only_one() {
    let Some((_, layer)) = costly() else { return };
    let this = std::env::current_exe().unwrap();
    // It is given up before the end of a run that gets some CPU time.
    let prober = ["0.5", "5", "15", "60"].into_iter().find_map(|seconds| {
        let run = format!("timeout {seconds} \"$0\" \"$@\"; true");
        let command = ["sh", "-c", &run, this.to_str().unwrap()];
        let command = command.into_iter().chain(arguments()).map(str::to_owned).collect();
        let environment = [format!("{PROGRAM}=contend tokens {{n}}")];
        let template = CommandTemplate::new(command, &environment, None).unwrap();
        let options =
            ProbeOptions { progress: ProgressSource::Runs(RunMetric::Runtime), ..options() };
        let mut prober = prober(template, options);
        prober.probe(1, Duration::ZERO).unwrap();
        (prober.probes()[0].activity.layer == Layer::Proc).then_some(prober)
    });
    let prober = prober.expect("the layer is given up before the end of the run");
    let seen = &prober.probes()[0];
    assert!(!seen.disturbed, "a run that was not watched counts");
    let told = prober.refused().last().unwrap();
    assert!(told.layer == layer && told.reason().starts_with("took "), "{told}");
}

/// A probe in whose window the program got some CPU time.
fn probe_at_work(prober: &mut LinuxProber, n: u32) -> Probe {
    let windows = [1, 10, 100].map(|times| WINDOW * times).into_iter();
    let mut probes = windows.map(|window| prober.probe(n, window).unwrap().probe);
    let worked = |probe: &Probe| probe.progress.rate > 0.0;
    probes.find(worked).expect("the program gets some CPU time")
}

#[test]
fn the_threads_are_there_when_a_probe_begins_and_gone_after_it() {
    let mut prober = prober(template("late {n}"), options());
    for n in [1, 3] {
        let probe = probe_at_work(&mut prober, n);
        assert!(probe.threads >= n, "{probe:?}");
        assert!(probe.profile.cpu_util > 0.0 && probe.profile.cpu_util <= 100.0, "{probe:?}");
        assert!(probe.cost >= WINDOW);
    }
    let seen = prober.probes();
    let gone = seen.iter().flat_map(|seen| &seen.activity.threads).all(|thread| !thread.id.alive());
    assert!(gone, "a probe ends what it started");
}

#[test]
fn threads_are_told_apart_by_role_and_what_comes_before_them_is_initialization() {
    // The line comes when all threads have been started.
    let after = Some(regex_lite::Regex::new("^ready$").unwrap());
    let mut prober = prober(template("late {n}"), ProbeOptions { after, ..options() });
    let [one, three] = [1, 3].map(|n| prober.probe(n, WINDOW).unwrap());
    // libtest's own thread and the one that plays the program come on top.
    assert_eq!([one.probe.threads, three.probe.threads], [3, 5]);
    let roles = three.roles;
    let late = roles.iter().find(|role| role.role == "late").unwrap();
    assert_eq!(late.threads, 3, "{roles:?}");
    for seen in prober.probes() {
        assert!(seen.initialization >= Duration::from_millis(120), "{:?}", seen.initialization);
    }
}

#[test]
fn a_line_of_output_ends_the_initialization_or_never_comes() {
    let after = |text: &str| Some(regex_lite::Regex::new(text).unwrap());
    let mut prober_ =
        prober(template("late {n}"), ProbeOptions { after: after("^ready$"), ..options() });
    assert!(prober_.probe(2, WINDOW).unwrap().probe.threads >= 3);
    // Within the limit the program has to get as far as its first line.
    let messages = [1, 8, 60].map(Duration::from_secs).into_iter().map(|limit| {
        let options = ProbeOptions { after: after("steady"), limit, ..options() };
        let message = refused(&mut prober(template("late {n}"), options), 2);
        assert!(message.contains("--after 'steady'"), "{message}");
        message
    });
    let last = |message: &String| message.contains("its last line was: work");
    assert!(messages.into_iter().any(|message| last(&message)), "no message quotes the last line");
}

#[test]
fn threads_and_processes_that_start_within_the_window_count() {
    let script = "echo go; i=0; while [ $i -lt {n} ]; do sleep 20 & i=$((i + 1)); done; wait";
    let command = ["sh", "-c", script].map(str::to_owned).to_vec();
    let processes = CommandTemplate::new(command, &[], None).unwrap();
    // Of threads, two are libtest's own. It prints its line before any of the others begins.
    let threads = (template("late {n}"), "^running 1 test$", [3, 5]);
    for (program, begins, all) in [(processes, "^go$", [2, 4]), threads] {
        let after = Some(regex_lite::Regex::new(begins).unwrap());
        let mut prober = prober(program, ProbeOptions { after, ..options() });
        // The program has to get to start them within the window.
        let windows = [1, 20, 200].map(|times| WINDOW * times).into_iter();
        let mut seen =
            windows.map(|window| [1, 3].map(|n| prober.probe(n, window).unwrap().probe.threads));
        assert!(seen.any(|seen| seen == all), "no window saw all of them: {begins}");
    }
}

#[test]
fn a_metric_is_read_over_the_same_window() {
    let pattern = Pattern::new(r"^work (\d+)").unwrap();
    let metric = MetricOptions {
        interpretation: Some(pinwise_metric::Interpretation::Counter),
        ..MetricOptions::default()
    };
    let progress = ProgressSource::Metric(MetricSpec::Stdout(pattern), metric);
    let mut prober = prober(template("late {n}"), ProbeOptions { progress, ..options() });
    let setting = Setting::Threads(ThreadCount::unpinned(Some(2)));
    let measured = prober.measure(&setting, Effort { windows: 0.5 }).unwrap();
    assert_eq!(measured.duration, WINDOW / 2);
    let stored = Probed::of(&measured).unwrap();
    let (progress, unit) = (stored.probe.progress, stored.unit);
    assert_eq!((progress.measure, progress.rate), (Measure::Metric, measured.performance));
    assert!(progress.rate > 0.0, "{progress:?}");
    assert_eq!(&unit, prober.unit());
    assert_eq!(
        &Probed::more::<ProbeDetails>(&measured).unwrap(),
        &prober.probes()[0],
        "stored with it"
    );
    assert!(prober.measure(&Setting::Unpinned, Effort::default()).is_err());
    let seen = &prober.probes()[0].activity;
    assert!(seen.threads.len() > 2 && seen.ran() > Duration::ZERO, "{seen:?}");
}

#[test]
fn a_metric_that_never_comes_is_reported_when_the_time_ends() {
    let message = [1, 8, 60].map(Duration::from_secs).into_iter().find_map(|time| {
        let spec = MetricSpec::Stdout(Pattern::new(r"^nothing (\d+)").unwrap());
        let patience = Duration::from_secs(60);
        let progress =
            ProgressSource::Metric(spec, MetricOptions { patience, ..MetricOptions::default() });
        let until = Some(Instant::now() + time);
        let mut prober =
            prober(template("late {n}"), ProbeOptions { progress, until, ..options() });
        let error = prober.probe(2, WINDOW).unwrap_err();
        assert!(error.expired, "{error}");
        // Else the machine was too busy to get to the metric in time.
        matches!(prober.error(), Some(ProbeError::Unmetered(_))).then_some(error.message)
    });
    let message = message.expect("the metric was come to");
    assert!(
        message.contains("matched none; the last was 'work ") && message.contains("--budget"),
        "{message}"
    );
}

#[test]
fn a_program_that_goes_on_has_its_metric_read_probe_after_probe() {
    let command = std::iter::once("/proc/self/exe").chain(arguments()).map(str::to_owned).collect();
    let template = CommandTemplate::fixed(command, &[format!("{PROGRAM}=late 2")], None).unwrap();
    let metric = MetricSpec::Stdout(Pattern::new(r"^work (\d+)").unwrap());
    let interpretation = Some(pinwise_metric::Interpretation::Counter);
    let progress = ProgressSource::Metric(
        metric,
        MetricOptions { interpretation, ..MetricOptions::default() },
    );
    let subject = ProbedProgram::Launched(template, NumberSetter::Command("true {n}".into()));
    let mut prober = LinuxProber::new(
        machine(),
        subject,
        ProbeOptions { progress, ..options() },
        Interrupt::default(),
    )
    .unwrap();
    for n in 1..4 {
        let progress = prober.probe(n, WINDOW).unwrap().probe.progress;
        assert!(progress.rate > 0.0 && progress.measure == Measure::Metric, "{n}: {progress:?}");
    }
}

#[test]
fn a_program_that_ends_soon_says_so_and_is_measured_as_a_whole() {
    let mut short = prober(template("brief {n}"), options());
    let message = short.probe(2, Duration::from_secs(20)).unwrap_err().message;
    assert!(
        message.contains("--per-run") && matches!(short.error(), Some(ProbeError::Short { .. })),
        "{message}"
    );
    // Also one that prints its metric at its end.
    let spec = MetricSpec::Stdout(Pattern::new(r"ops (\d+)").unwrap());
    let progress = ProgressSource::Metric(spec, MetricOptions::default());
    let command = ["sh", "-c", "sleep 0.3; echo ops $0", "{n}"].map(str::to_owned).to_vec();
    let printing = CommandTemplate::new(command, &[], None).unwrap();
    let message = refused(&mut prober(printing, ProbeOptions { progress, ..options() }), 2);
    assert!(message.contains("--per-run"), "{message}");
    let mut whole = prober(
        template("brief {n}"),
        ProbeOptions { progress: ProgressSource::Runs(RunMetric::Runtime), ..options() },
    );
    let probe = whole.probe(2, WINDOW).unwrap().probe;
    let progress = probe.progress;
    assert_eq!(progress.measure, Measure::Runs);
    assert!(1.0 / progress.rate >= 0.15 && probe.threads >= 3, "{probe:?}");
    // What the kernel counted to the end, not what was seen up to the last look.
    assert!(probe.profile.cpu_util > 0.0 && probe.profile.vcx_rate > 0.0, "{probe:?}");
    let limit = Duration::from_millis(50);
    let mut long = prober(
        template("late {n}"),
        ProbeOptions { progress: ProgressSource::Runs(RunMetric::Runtime), limit, ..options() },
    );
    assert!(refused(&mut long, 1).contains("--limit"));
}

#[test]
fn a_program_without_workers_is_named() {
    let limit = Duration::from_millis(300);
    let sleeper =
        CommandTemplate::new(["sleep", "30", "{n}"].map(str::to_owned).to_vec(), &[], None)
            .unwrap();
    let mut prober = prober(sleeper, ProbeOptions { limit, ..options() });
    assert!(refused(&mut prober, 3).contains("sleep never started workers"));
}

#[test]
fn threads_that_do_not_follow_n_are_noticed_unless_they_need_not() {
    // On a busy machine a probe may else begin before all three are there.
    let after = Some(regex_lite::Regex::new("^spinning$").unwrap());
    let mut same = prober(template("spin 3 {n}"), ProbeOptions { after, ..options() });
    same.probe(1, WINDOW).unwrap();
    let message = refused(&mut same, 2);
    assert!(
        message.contains("do not follow n") && message.contains("n = 1 and with n = 2"),
        "{message}"
    );
    let constant = ProbeOptions { threads: Some(Box::new(|_| 4)), ..options() };
    let mut declared = prober(template("spin 3 {n}"), constant);
    declared.probe(1, WINDOW).unwrap();
    declared.probe(2, WINDOW).unwrap();
}

#[test]
fn with_a_metric_the_threads_need_not_follow_n() {
    let progress = || {
        let spec = "cmd:cut -d' ' -f1 /proc/uptime".parse().unwrap();
        let interpretation = Some(pinwise_metric::Interpretation::Counter);
        ProgressSource::Metric(spec, MetricOptions { interpretation, ..MetricOptions::default() })
    };
    let mut pool =
        prober(template("spin 3 {n}"), ProbeOptions { progress: progress(), ..options() });
    let alone = ["sh", "-c", "while :; do :; done", "{n}"].map(str::to_owned).to_vec();
    let alone = CommandTemplate::new(alone, &[], None).unwrap();
    let mut alone = prober(alone, ProbeOptions { progress: progress(), ..options() });
    for n in [1, 3] {
        assert!(pool.probe(n, WINDOW).is_ok(), "{n}");
        assert!(alone.probe(n, WINDOW).is_ok(), "{n}");
    }
}

#[test]
fn with_whole_runs_the_threads_need_not_follow_n() {
    let progress = ProgressSource::Runs(RunMetric::Runtime);
    let mut pool = prober(template("brief 6 {n}"), ProbeOptions { progress, ..options() });
    for n in [1, 2] {
        assert_eq!(pool.probe(n, WINDOW).map(|probed| probed.probe.parameter), Ok(n));
    }
}

#[test]
fn the_last_value_of_a_run_is_its_progress() {
    let script = "echo 'ops 1'; sleep 0.1; echo 'ops {n}.5k'";
    let program =
        CommandTemplate::new(["sh", "-c", script].map(str::to_owned).to_vec(), &[], None).unwrap();
    let metric = MetricSpec::Stdout(Pattern::new(r"ops ([\d.]+)").unwrap());
    let metric = RunMetric::of(&metric, &MetricOptions::default()).unwrap();
    let progress = ProgressSource::Runs(metric);
    let threads: Option<pinwise_programs::ThreadsForN> = Some(Box::new(|_| 1));
    let mut prober = prober(program, ProbeOptions { progress, threads, ..options() });
    for n in [2, 3] {
        let Probed { probe, unit, .. } = prober.probe(n, WINDOW).unwrap();
        assert_eq!(probe.progress.measure, Measure::Metric);
        assert_eq!((probe.progress.rate, unit.name.as_str()), (f64::from(n) * 1e3 + 500.0, "ops"));
        assert!(probe.cost >= Duration::from_millis(100), "{probe:?}");
    }
    // Several runs in a window.
    let probe = prober.probe(4, Duration::from_secs(2)).unwrap().probe;
    assert_eq!((probe.progress.rate, probe.progress.error), (4500.0, Some(0.0)));
}

#[test]
fn a_program_that_dies_is_quoted() {
    let mut prober = prober(template("fail {n}"), options());
    let message = refused(&mut prober, 2);
    assert!(message.contains("with n = 2 ended (exit status: 3)"), "{message}");
    assert!(message.contains("cannot open the thing"), "{message}");
}

#[test]
fn a_program_that_fills_the_disk_is_stopped_and_its_file_removed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("out-{n}");
    let name = format!("fill {} {{n}}", file.display());
    let options = ProbeOptions { most_written: Some(1 << 20), remove: vec![file], ..options() };
    let message = refused(&mut prober(template(&name), options), 2);
    assert!(message.contains("--most-written"), "{message}");
    assert!(fs::read_dir(folder.path()).unwrap().next().is_none(), "removed after the probe");
}

/// Writes without end.
pub(crate) fn fill(path: &str) {
    let mut file = fs::File::create(path).unwrap();
    let end = Instant::now() + LIFE;
    while Instant::now() < end {
        std::io::Write::write_all(&mut file, &[b'x'; 65536]).unwrap();
    }
}

#[test]
fn what_left_the_process_group_is_ended_too() {
    let folder = tempfile::tempdir().unwrap();
    let pid = folder.path().join("pid");
    // A daemon: a new session, its parent gone.
    let script = format!(
        "setsid sh -c 'echo $$ > {0}.new; mv {0}.new {0}; exec sleep 60' & while :; do :; done",
        pid.display()
    );
    let command = ["sh", "-c", &script, "{n}"].map(str::to_owned).to_vec();
    let constant = ProbeOptions { threads: Some(Box::new(|_| 1)), ..options() };
    let mut prober = prober(CommandTemplate::new(command, &[], None).unwrap(), constant);
    while !pid.exists() {
        prober.probe(1, WINDOW).unwrap();
    }
    let daemon: i32 = fs::read_to_string(&pid).unwrap().trim().parse().unwrap();
    until("the daemon to end", || pinwise_linux::process::ended(pinwise_linux::Pid(daemon)));
}

/// Keeps as many threads at work as a file says.
pub(crate) fn pool(path: &str) {
    let path = path.to_owned();
    let wanted = move || {
        fs::read_to_string(&path)
            .ok()
            .and_then(|text| text.trim().parse::<usize>().ok())
            .unwrap_or(1)
    };
    let end = Instant::now() + LIFE;
    let worker = |number: usize| {
        let wanted = wanted.clone();
        let work = move || {
            while Instant::now() < end {
                if number >= wanted() {
                    thread::sleep(Duration::from_millis(2));
                }
            }
        };
        thread::Builder::new().name("pool".into()).spawn(work).unwrap()
    };
    let workers: Vec<_> = (0..4).map(worker).collect();
    workers.into_iter().for_each(|worker| worker.join().unwrap());
}

#[test]
fn a_number_that_can_change_while_the_program_runs_is_changed_without_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("workers");
    let set = NumberSetter::Command(format!("echo {{n}} > {}", file.display()));
    let name = format!("pool {}", file.display());
    let command = std::iter::once("/proc/self/exe").chain(arguments()).map(str::to_owned).collect();
    let template = CommandTemplate::fixed(command, &[format!("{PROGRAM}={name}")], None).unwrap();
    let cancelled = Interrupt::default();
    let mut prober = LinuxProber::new(
        machine(),
        ProbedProgram::Launched(template, set.clone()),
        options(),
        cancelled.clone(),
    )
    .unwrap();
    let mut roots = Vec::new();
    for n in [1, 3, 2] {
        prober.probe(n, WINDOW).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap().trim(), n.to_string());
        roots.push(prober.probes().last().unwrap().activity.threads[0].id);
    }
    assert!(roots.iter().all(|id| *id == roots[0]), "one process all the time");
    assert!(roots[0].alive());
    drop(prober);
    assert!(!roots[0].alive(), "it ends with the prober");

    let running = crate::Program::start(&name);
    let fails = ProbedProgram::Running(running.pid(), NumberSetter::Command("exit {n}".into()));
    let mut attached = LinuxProber::new(machine(), fails, options(), cancelled.clone()).unwrap();
    assert!(refused(&mut attached, 3).contains("--set with n = 3 failed"));
    let works = ProbedProgram::Running(running.pid(), set);
    let mut attached = LinuxProber::new(machine(), works, options(), cancelled).unwrap();
    attached.probe(2, WINDOW).unwrap();
    attached.settle(4).unwrap();
    drop(attached);
    assert_eq!(fs::read_to_string(&file).unwrap().trim(), "4");
    assert!(!pinwise_linux::process::ended(running.pid()), "what was running goes on");
}

/// Works all the time, but hardly for a while after each change of a file. Then it does four times
/// as much every 30 ms.
pub(crate) fn warming(path: &str) {
    let (mut given, mut since) = (String::new(), Instant::now());
    let end = Instant::now() + LIFE;
    while Instant::now() < end {
        let now = fs::read_to_string(path).unwrap_or_default();
        if now != given {
            (given, since) = (now, Instant::now());
        }
        let step = Duration::from_millis(2);
        let share = (0.001 * 4_f64.powf(since.elapsed().as_secs_f64() / 0.03)).min(1.0);
        let begin = Instant::now();
        while begin.elapsed() < step.mul_f64(share) {
            std::hint::spin_loop();
        }
        thread::sleep(step.saturating_sub(begin.elapsed()));
    }
}

#[test]
fn what_comes_right_after_a_change_is_left_out_without_a_metric_too() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("workers");
    let set = NumberSetter::Command(format!("echo {{n}} > {}", file.display()));
    let running = crate::Program::start(&format!("warming {}", file.display()));
    let works = ProbedProgram::Running(running.pid(), set);
    let mut prober = LinuxProber::new(machine(), works, options(), Interrupt::default()).unwrap();
    // Of the time in which it did not wait for a CPU. Beside other programs two stretches may agree
    // by chance.
    let worked = (2..12).map(|n| {
        prober.probe(n, WINDOW).unwrap();
        let activity = &prober.probes().last().unwrap().activity;
        let waited: Duration = activity.threads.iter().map(|thread| thread.waited).sum();
        activity.ran().as_secs_f64() / activity.elapsed.saturating_sub(waited).as_secs_f64()
    });
    let worked: Vec<f64> = worked.collect();
    assert!(worked.iter().any(|&share| share > 0.5), "no probe waited: {worked:?}");
}

/// A service that is ten times as slow with 2 as with another number. What it is given is written
/// line by line. Its rate moves by less than 1: pinwise waits for a metric that stands still.
fn prober_with_floor(running: &crate::Program, sets: &std::path::Path, rate: u32) -> LinuxProber {
    let sets = sets.display();
    let slow = rate / 10;
    let read = format!(
        "cmd:test \"$(tail -n 1 {sets})\" = 2 && rate={slow} || rate={rate}; \
         test {rate} = 0 && rate=-0; echo $rate.$(date +%N)"
    );
    let metric = MetricOptions {
        interpretation: Some(pinwise_metric::Interpretation::Value),
        ..MetricOptions::default()
    };
    let progress = ProgressSource::Metric(read.parse().unwrap(), metric);
    let set = NumberSetter::Command(format!("echo {{n}} >> {sets}"));
    LinuxProber::new(
        machine(),
        ProbedProgram::Running(running.pid(), set),
        ProbeOptions { progress, floor: Some(0.5), ..options() },
        Interrupt::default(),
    )
    .unwrap()
    .with_own(OwnParameter { known: Some(1), guess: 1, most: 4 })
}

#[test]
fn a_number_below_the_floor_is_given_up_for_the_own_one_of_the_service() {
    let folder = tempfile::tempdir().unwrap();
    let sets = folder.path().join("sets");
    fs::write(&sets, "").unwrap();
    let given = || fs::read_to_string(&sets).unwrap().split_whitespace().collect::<String>();
    let running = crate::Program::start("spin 1");
    let mut prober = prober_with_floor(&running, &sets, 100);
    let slow = prober.probe(2, WINDOW).unwrap();
    assert_eq!((slow.probe.progress.rate.floor(), slow.below_floor), (10.0, true));
    assert_eq!(given(), "21", "its own number at once");
    let fast = prober.probe(3, WINDOW).unwrap();
    assert_eq!((fast.probe.progress.rate.floor(), fast.below_floor), (100.0, false));
    prober.settle(1).unwrap();
    drop(prober);
    assert_eq!(given(), "2131");
    // A search that was killed before it gave the number back is resumed.
    fs::write(&sets, "2\n").unwrap();
    let mut prober = prober_with_floor(&running, &sets, 100).resumed(Some(1));
    assert!(!prober.probe(3, WINDOW).unwrap().below_floor);
    assert_eq!(given(), "213", "the floor is a share of the rate with the own number");
    assert!(prober.probe(2, WINDOW).unwrap().below_floor);
    drop(prober);
    fs::write(&sets, "").unwrap();
    let mut idle = prober_with_floor(&running, &sets, 0);
    let message = refused(&mut idle, 3);
    assert!(message.contains("leave out --floor"), "{message}");
    assert_eq!(given(), "", "nothing is tried without a floor");
}

#[test]
fn a_wish_to_stop_ends_a_probe_at_once() {
    let cancelled = Interrupt::default();
    let mut prober = LinuxProber::new(
        machine(),
        ProbedProgram::Anew(template("late {n}")),
        options(),
        cancelled.clone(),
    )
    .unwrap();
    let stop = thread::spawn(move || {
        thread::sleep(Duration::from_millis(200));
        cancelled.give_up();
    });
    // A probe that took no notice would come to its end.
    let error = prober.probe(2, Duration::from_secs(60)).unwrap_err();
    assert!(error.interrupted, "{error}");
    stop.join().unwrap();
}

#[test]
fn the_energy_of_a_probe_is_what_was_counted_meanwhile() {
    let tree = tempfile::tempdir().unwrap();
    let zone = tree.path().join("intel-rapl:0");
    fs::create_dir(&zone).unwrap();
    let counter = zone.join("energy_uj");
    fs::write(zone.join("name"), "package-0\n").unwrap();
    fs::write(&counter, "1000000\n").unwrap();
    let power = Some(Power::open(tree.path()).unwrap());
    // A program that spends 7 J.
    let spend = format!("echo 8000000 > {}; sleep 0.05", counter.display());
    let command = ["sh", "-c", &spend, "{n}"].map(str::to_owned).to_vec();
    let options =
        ProbeOptions { power, progress: ProgressSource::Runs(RunMetric::Runtime), ..options() };
    let mut prober = prober(CommandTemplate::new(command, &[], None).unwrap(), options);
    let probed = prober.probe(1, Duration::ZERO).unwrap();
    let (probe, watts) = (probed.probe, probed.watts.unwrap());
    let run = 1.0 / probe.progress.rate;
    assert!(
        watts * run <= 7.0 && watts * probe.cost.as_secs_f64() >= 7.0,
        "{watts} W, {run} s of {:?}",
        probe.cost
    );
    // Nothing is counted any more.
    assert_eq!(prober.probe(1, Duration::ZERO).unwrap().watts, Some(0.0));
}
