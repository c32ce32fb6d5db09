//! A signal ends `place` at any moment. The exit code is 130, affinities are as before, and a
//! launched program has ended. pinwise prints the command that resumes.

mod support;

use pinwise_synthetic::not_judged;
use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use support::{PATIENCE, PINWISE, Program, Target, affinities, wait_until};
use tempfile::TempDir;

const SIGNALS: [rustix::process::Signal; 3] =
    [rustix::process::Signal::INT, rustix::process::Signal::TERM, rustix::process::Signal::HUP];
/// More than enough for a program that ends at once, and less than the time it was given to
/// measure.
const AT_ONCE: Duration = Duration::from_secs(120);

fn signal(program: &Program, signal: rustix::process::Signal) {
    rustix::process::kill_process(rustix::process::Pid::from_child(&program.0), signal).unwrap();
}

fn complaint(program: &mut Program) -> String {
    let mut text = String::new();
    program.0.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    text.lines().last().unwrap_or_default().to_owned()
}

/// Held by a test with threads that spin. On Linux 6.18, threads that spin on one CPU kept all
/// others off it for up to 228 s. Among those were the kernel's own, for which pinwise waits
/// when it closes a file.
static SPINNING: Mutex<()> = Mutex::new(());

#[test]
fn every_signal_puts_the_affinities_back_and_says_how_to_go_on() {
    let _alone = SPINNING.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = TempDir::new().unwrap();
    let target = Target::start("hash1_L1", folder.path());
    let before = target.affinities();
    let mut stored = String::new();
    for number in SIGNALS {
        let mut place =
            Program::start(target.place("10m").stdout(Stdio::null()).stderr(Stdio::piped()));
        wait_until(PATIENCE, "a pinned thread", || target.affinities() != before);
        signal(&place, number);
        assert_eq!(place.ended(AT_ONCE).code(), Some(130));
        assert_eq!(target.affinities(), before, "{number:?}");
        let line = complaint(&mut place);
        assert!(
            line.contains(" stored in campaign ")
                && line.contains("; continue with: pinwise campaign resume "),
            "{line}"
        );
        stored = line;
    }
    // A resumed search takes the real-time class. It leaves the class once it has attached.
    if !Command::new("chrt").args(["-f", "1", "true"]).status().is_ok_and(|status| status.success())
    {
        return not_judged("this user may not have a real-time class");
    }
    let (_, words) = stored.rsplit_once("pinwise ").unwrap();
    let mut resume = Command::new(PINWISE);
    resume.args(words.split(' ')).stdout(Stdio::null()).stderr(Stdio::null());
    let mut resumed = Program::start(resume.env("XDG_DATA_HOME", support::data()));
    wait_until(PATIENCE, "a resumed search that has left the real-time class", || {
        let shown = Command::new("chrt").args(["-p", &resumed.pid().to_string()]).output().unwrap();
        let shown = String::from_utf8(shown.stdout).unwrap();
        shown.contains("policy: SCHED_OTHER|SCHED_RESET_ON_FORK")
    });
    signal(&resumed, SIGNALS[0]);
    assert_eq!(resumed.ended(AT_ONCE).code(), Some(130));
    assert_eq!(target.affinities(), before);
}

#[test]
fn an_interrupt_before_the_first_measurement_says_so() {
    let folder = TempDir::new().unwrap();
    // A metric that never comes keeps it waiting.
    let mut place = Program::start(
        Command::new(PINWISE)
            .args(["place", "--metric", r"stdout:never (\d+)", "--store"])
            .arg(folder.path().join("pinwise.db"))
            .args(["--", "sh", "-c"])
            .arg(format!(
                "echo $$ > {0}/pid.new; mv {0}/pid.new {0}/pid; sleep 300",
                folder.path().display()
            ))
            .stderr(Stdio::piped()),
    );
    let pid = folder.path().join("pid");
    wait_until(PATIENCE, "the launched program", || pid.exists());
    signal(&place, rustix::process::Signal::INT);
    assert_eq!(place.ended(AT_ONCE).code(), Some(130));
    let line = complaint(&mut place);
    assert!(line.contains("interrupted before the first measurement"), "{line}");
    let pid: u32 = std::fs::read_to_string(pid).unwrap().trim().parse().unwrap();
    assert!(affinities(pid).is_empty(), "the launched program has ended with it");
}

#[test]
fn a_campaign_without_a_measurement_is_not_kept() {
    let folder = TempDir::new().unwrap();
    // The first run shows the threads; the second, which would be measured, does not end.
    let runs = folder.path().join("runs");
    let script = format!(
        "echo >> {0}; [ $(wc -l < {0}) = 1 ] || exec sleep 300; (n=0; while [ $n -lt 300000 ]; do \
         n=$((n + 1)); done) & n=0; while [ $n -lt 300000 ]; do n=$((n + 1)); done; wait",
        runs.display()
    );
    let store = folder.path().join("pinwise.db");
    let mut place = Program::start(
        Command::new(PINWISE)
            .args([
                "place",
                "--store",
                store.to_str().unwrap(),
                "--limit",
                "300s",
                "--",
                "sh",
                "-c",
                &script,
            ])
            .stdout(Stdio::null())
            .stderr(Stdio::piped()),
    );
    let second = || std::fs::read_to_string(&runs).is_ok_and(|runs| runs.len() == 2);
    wait_until(PATIENCE, "the run to be measured", second);
    signal(&place, rustix::process::Signal::INT);
    assert_eq!(place.ended(AT_ONCE).code(), Some(130));
    let line = complaint(&mut place);
    assert!(
        line.starts_with("pinwise: interrupted before the first measurement: ")
            && line.ends_with("nothing is stored"),
        "{line}"
    );
    let listed = support::json(&support::pinwise([
        "campaign",
        "list",
        "--json",
        "--store",
        store.to_str().unwrap(),
    ]));
    assert_eq!(listed["campaigns"], serde_json::json!([]));
}

#[test]
fn masks_that_the_user_set_are_respected_and_come_back() {
    let _alone = SPINNING.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = TempDir::new().unwrap();
    let target = Target::start("hash1_L1", folder.path());
    // Every thread confined to the first CPU by the user.
    let cpu = affinities(std::process::id()).into_values().next().unwrap();
    let cpu = cpu.split(['-', ',']).next().unwrap().to_owned();
    let confined =
        Command::new("taskset").args(["-a", "-c", "-p", &cpu, &target.pid().to_string()]).output();
    if !confined.is_ok_and(|output| output.status.success()) {
        pinwise_synthetic::lacking("taskset");
        return;
    }
    let before = target.affinities();
    assert!(before.values().all(|list| *list == cpu), "{before:?}");
    let output = target.place("12").output().unwrap();
    // One CPU leaves nothing to choose; what matters is that the others are not taken all the same.
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success()
            && message.contains(&format!("may only run on CPU {cpu}"))
            && message.contains("allow more (taskset -apc LIST PID)"),
        "{message}"
    );
    assert_eq!(target.affinities(), before);
}
