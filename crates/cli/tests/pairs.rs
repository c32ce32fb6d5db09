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
    let words = ["pairs", "--json", "--budget", "8", "--store", store.to_str().unwrap()];
    let document = json(&pinwise([&words[..], &["--", &one, "--", &other]].concat()));
    assert_ne!(document["verdict"]["kind"], "incomplete", "{document:#}");
    assert_eq!(document["measurements"], 8);
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
