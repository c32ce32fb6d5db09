//! `pairs` with real programs. They are pinned to the contexts of their sides, and ended however
//! pinwise ends.

mod support;

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;
use support::{PATIENCE, PINWISE, Program, json, pinwise, wait_until};
use tempfile::TempDir;

#[test]
fn two_programs_run_alone_and_beside_each_other_on_their_contexts() {
    let folder = TempDir::new().unwrap();
    let (log, store) = (folder.path().join("log"), folder.path().join("pinwise.db"));
    let program = |name: &str, seconds: &str| {
        let mask = "grep Cpus_allowed_list /proc/self/status";
        format!("sh -c 'echo {name} $({mask}) >> {}; exec sleep {seconds}'", log.display())
    };
    let (one, other) = (program("one", "0.15"), program("other", "0.2"));
    let words = ["pairs", "--json", "--budget", "16", "--store", store.to_str().unwrap()];
    let document = json(&pinwise([&words[..], &["--", &one, "--", &other]].concat()));
    assert_ne!(document["verdict"]["kind"], "incomplete", "{document:#}");
    assert_eq!(document["measurements"], 16);
    assert!(document["weighted_speedup"]["value"].as_f64().unwrap() > 1.0, "{document:#}");
    let runs = |value: &Value| value.as_u64().unwrap();
    for program in document["programs"].as_array().unwrap() {
        assert!(runs(&program["runs"]) >= 2 && program["seconds"]["value"].as_f64().unwrap() > 0.1);
    }
    let pairs = document["pairs"].as_array().unwrap();
    assert_eq!(pairs.len(), 3);
    assert!(pairs.iter().all(|pair| runs(&pair["runs"][0]) >= 2 && runs(&pair["runs"][1]) >= 2));
    // Each ran on one context or the other, never on both.
    let cpus: Vec<&str> =
        document["cpus"].as_array().unwrap().iter().map(|cpu| cpu.as_str().unwrap()).collect();
    let text = fs::read_to_string(&log).unwrap();
    let masks: Vec<&str> = text.lines().map(|line| line.rsplit(' ').next().unwrap()).collect();
    assert!(masks.len() >= 10 && masks.iter().all(|mask| cpus.contains(mask)), "{cpus:?}: {text}");
    assert!(cpus.iter().all(|cpu| masks.contains(cpu)), "{cpus:?}: {text}");
    let shown = ["campaign", "show", "1", "--json", "--store", store.to_str().unwrap()];
    assert_eq!(json(&pinwise(shown)), document);
}

/// A program that writes its number and ends soon. It sleeps for ever if there is a file `endless`.
fn program(folder: &Path) -> String {
    format!(
        "sh -c 'cd {}; echo $$ >> pids; [ ! -e endless ] || exec sleep 300; exec sleep 0.12'",
        folder.display()
    )
}

fn lives(pid: &str) -> bool {
    // A zombie has no command line.
    fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty())
}

#[test]
fn programs_are_ended_however_pinwise_ends_and_a_resumed_campaign_goes_on() {
    for signal in [rustix::process::Signal::INT, rustix::process::Signal::KILL] {
        let folder = TempDir::new().unwrap();
        let (store, pids) = (folder.path().join("pinwise.db"), folder.path().join("pids"));
        let program = program(folder.path());
        let mut running = Program::start(
            Command::new(PINWISE)
                .args(["pairs", "--limit", "5m", "--store"])
                .arg(&store)
                .args(["--", &program, "--", &program])
                .stdout(Stdio::null())
                .stderr(Stdio::null()),
        );
        let started = || fs::read_to_string(&pids).unwrap_or_default();
        let sleep = || started().lines().any(lives);
        // A pair starts each program nine times at most.
        wait_until(PATIENCE, "a measurement", || started().lines().count() > 18);
        fs::write(folder.path().join("endless"), "").unwrap();
        wait_until(PATIENCE, "programs that sleep", || {
            let count = started().lines().count();
            thread::sleep(Duration::from_millis(200));
            sleep() && started().lines().count() == count
        });
        rustix::process::kill_process(rustix::process::Pid::from_child(&running.0), signal)
            .unwrap();
        running.0.wait().unwrap();
        wait_until(PATIENCE, "the end of all", || !started().lines().any(lives));
        let list = ["campaign", "list", "--json", "--store", store.to_str().unwrap()];
        let measured = |document: &Value| document["campaigns"][0]["measurements"].as_u64();
        let before = measured(&json(&pinwise(list))).unwrap();
        assert!(before >= 1, "{before}");
        fs::remove_file(folder.path().join("endless")).unwrap();
        let resume =
            ["campaign", "resume", "1", "--trust", "--json", "--store", store.to_str().unwrap()];
        let document = json(&pinwise(resume));
        assert_ne!(document["verdict"]["kind"], "incomplete", "{document:#}");
        assert!(measured(&json(&pinwise(list))).unwrap() > before);
        assert!(!started().lines().any(lives));
    }
}

#[test]
fn a_program_that_cannot_be_paired_is_refused_on_one_line() {
    let folder = TempDir::new().unwrap();
    let store = folder.path().join("pinwise.db");
    for (program, expected) in [
        ("false", "ended (exit status: 1)"),
        ("true", "too soon to run beside another program: give it more work"),
        ("sleep 300", "ran longer than the limit of 1 s and was ended: a program must end"),
        ("./none", "there is no such program"),
    ] {
        let words = ["pairs", "--limit", "1s", "--store", store.to_str().unwrap()];
        let output = pinwise([&words[..], &["--", program, "--", program]].concat());
        let complaint = String::from_utf8(output.stderr).unwrap();
        let line = complaint.lines().last().unwrap();
        assert!(line.starts_with("pinwise: ") && line.contains(expected), "{program}: {complaint}");
        // What was named does not exist: bad usage, found before the first measurement.
        let code = if program == "./none" { 2 } else { 1 };
        assert_eq!(output.status.code(), Some(code), "{program}");
    }
    let list = ["campaign", "list", "--json", "--store", store.to_str().unwrap()];
    assert_eq!(json(&pinwise(list))["campaigns"], serde_json::json!([]), "nothing was measured");
}

/// What `perf stat -x, -I 100` writes, with misses that come in waves.
fn recording(misses: usize) -> String {
    let mut text = String::from("# started on Mon Nov 30 00:00:00 2026\n\n");
    for number in 1..=60 {
        let end = number as f64 / 10.0;
        let wave = misses + misses * (number / 10 % 2);
        for (count, event) in [
            (1_000_000, "cycles"),
            (800_000, "instructions"),
            (120_000, "branches"),
            (3_000, "L1-icache-load-misses"),
            (20_000, "L1-dcache-load-misses"),
            (wave, "l2_rqsts.miss"),
            (5_000, "fp_ret_sse_avx_ops.all"),
        ] {
            text += &format!("{end:.3},{count},,{event},40000000,40.00,,\n");
        }
    }
    text
}

#[test]
fn pairs_are_predicted_from_recorded_counts_without_counters_here() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let here = json(&pinwise(["topo", "--json"]));
    let cpu = here["name"].as_str().unwrap();
    let sixteen =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/counter_model/sixteen.json");
    let mut model: Value = serde_json::from_str(&fs::read_to_string(sixteen).unwrap()).unwrap();
    model["cpu"] = cpu.into();
    fs::write(path("model"), model.to_string()).unwrap();
    for (name, misses) in [("a", 100), ("b", 2_000), ("c", 30_000)] {
        fs::write(path(name), recording(misses)).unwrap();
    }
    fs::write(path("poem"), "roses are red\n").unwrap();
    let store = path("pinwise.db");
    let run = |counts: &[&str], model: &str| {
        let mut words = vec!["pairs", "--json", "--store", &store, "--budget", "12"];
        words.extend(["--predict", model]);
        counts.iter().for_each(|given| words.extend(["--counts", given]));
        (0..3).for_each(|_| words.extend(["--", "sleep 0.13"]));
        pinwise(words)
    };
    let given = [("sleep#1", "a"), ("sleep#2", "b"), ("sleep#3", "c")]
        .map(|(name, file)| format!("{name}={}", path(file)));
    let all = given.each_ref().map(String::as_str);
    let document = json(&run(&all, &path("model")));
    assert!(document["model"]["saved"].is_u64(), "{document:#}");
    let programs = document["programs"].as_array().unwrap();
    for program in programs {
        let counters = &program["counters"];
        let counted = counters["counted"].as_f64().unwrap();
        assert!((counted - 0.4).abs() < 1e-9, "{counters:#}");
        assert_eq!(counters["quanta"], 60);
        assert!(counters["autocorrelation"]["l2_misses"]["next"].as_f64() > Some(0.5));
    }
    let shown = pinwise(["campaign", "show", "1", "--store", &store]);
    let text = String::from_utf8(shown.stdout).unwrap();
    assert!(text.contains("Counters took turns") && text.contains("L2 misses 0."), "{text}");
    let complaint = |counts: &[&str]| {
        let output = run(counts, &path("model"));
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap().lines().last().unwrap().to_owned()
    };
    let line = complaint(&[&format!("sleep#1={}", path("poem"))]);
    assert!(line.contains("poem: line 1: no line of 'perf stat -x,': record with"), "{line}");
    let line = complaint(&[&format!("sleep#1={}", path("none"))]);
    assert!(line.contains("none: No such file") && line.contains("perf stat -x,"), "{line}");
    let line = complaint(&[&format!("xz={}", path("a"))]);
    assert!(line.contains("use one of sleep#1, sleep#2, sleep#3"), "{line}");
    assert!(complaint(&["a"]).contains("give PROGRAM=FILE"));
    assert!(complaint(&[all[0], all[0]]).contains("has counts already"));
}
