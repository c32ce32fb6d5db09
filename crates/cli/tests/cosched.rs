//! `cosched` with real programs. Every thread has its own mask again, however pinwise ends.

mod support;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use support::{
    PATIENCE, PINWISE, Program, Target, affinities, json, number_of_kills, pinwise, wait_until,
};
use tempfile::TempDir;

/// Two programs of some threads each. One thread of the second has a mask of its own.
struct Targets {
    folder: TempDir,
    targets: [Target; 2],
}

impl Targets {
    /// `None` if there is one CPU: nothing can be moved.
    fn start() -> Option<Self> {
        if std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() < 2) {
            pinwise_synthetic::lacking("a second CPU");
            return None;
        }
        let folder = TempDir::new().unwrap();
        let target = |name: &str| {
            let own = folder.path().join(name);
            fs::create_dir(&own).unwrap();
            Target::start("intadd", &own)
        };
        let targets = [target("one"), target("other")];
        let (&thread, mask) = targets[1]
            .affinities()
            .iter()
            .next_back()
            .map(|(thread, mask)| (thread, mask.clone()))
            .unwrap();
        let last = mask.rsplit([',', '-']).next().unwrap().to_owned();
        let set = Command::new("taskset").args(["-cp", &last, &thread.to_string()]).output();
        assert!(set.unwrap().status.success());
        Some(Self { folder, targets })
    }

    fn masks(&self) -> [BTreeMap<i32, String>; 2] {
        self.targets.each_ref().map(Target::affinities)
    }

    fn store(&self) -> String {
        self.folder.path().join("pinwise.db").to_str().unwrap().to_owned()
    }

    /// The words of `cosched` on both, judged by what the first one counts.
    fn words(&self) -> Vec<String> {
        let counts = self.folder.path().join("one/counts");
        let [one, other] = self.targets.each_ref().map(|target| target.pid().to_string());
        let metric =
            format!(r"file:{}:packets=(?<value>\d+) seconds=(?<seconds>[\d.]+)", counts.display());
        let (store, metric) = (self.store(), metric.as_str());
        ["cosched", "--pid", &one, "--pid", &other, "--counter", "--metric", metric]
            .into_iter()
            .chain(["--quantum", "10ms", "--store", &store])
            .map(str::to_owned)
            .collect()
    }

    /// Starts it, and waits until it has moved threads.
    fn cosched(&self, before: &[BTreeMap<i32, String>; 2]) -> Program {
        let program = Program::start(
            Command::new(PINWISE).args(self.words()).stdout(Stdio::piped()).stderr(Stdio::null()),
        );
        wait_until(PATIENCE, "a moved thread", || self.masks() != *before);
        program
    }
}

#[test]
fn a_budget_ends_it_with_an_answer_and_every_mask_as_it_was() {
    let Some(targets) = Targets::start() else { return };
    let before = targets.masks();
    let words = [targets.words(), ["--budget", "8s", "--json"].map(str::to_owned).into()].concat();
    let document = json(&pinwise(words));
    assert_eq!(targets.masks(), before);
    assert!(document["tried"].as_u64().unwrap() > 0, "{document:#}");
    assert!(document["cost"]["moves"].as_u64().unwrap() > 0, "{document:#}");
    assert_eq!(document["counted"], false);
    assert_eq!(document["unfinished"], Value::Null);
    let store = targets.store();
    assert_eq!(json(&pinwise(["campaign", "show", "1", "--json", "--store", &store])), document);
    let page = targets.folder.path().join("page.html");
    let page = page.to_str().unwrap();
    let made = pinwise(["report", "1", "--store", &store, "--output", page]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let text = document["verdict"]["text"].as_str().unwrap();
    let start = text.split(':').next().unwrap();
    assert!(fs::read_to_string(page).unwrap().contains(start), "{text}");
}

#[test]
fn a_signal_or_a_kill_leaves_every_mask_as_it_was_and_the_campaign_can_go_on() {
    let Some(targets) = Targets::start() else { return };
    let before = targets.masks();
    let kills = (0..number_of_kills(1)).map(|_| Signal::KILL);
    for signal in [Signal::INT, Signal::TERM].into_iter().chain(kills) {
        let mut program = targets.cosched(&before);
        kill_process(Pid::from_child(&program.0), signal).unwrap();
        let status = program.ended(PATIENCE);
        wait_until(PATIENCE, "the original masks", || targets.masks() == before);
        if signal != Signal::KILL {
            assert_eq!(status.code(), Some(130), "{signal:?}");
        }
    }
    // To resume it takes the programs that it began with.
    let store = targets.store();
    let listed = json(&pinwise(["campaign", "list", "--json", "--store", &store]));
    let all = listed["campaigns"].as_array().unwrap();
    let begun = all.iter().find(|one| one["measurements"].as_u64() > Some(0));
    if let Some(begun) = begun {
        let id = begun["id"].to_string();
        let mut program = Program::start(
            Command::new(PINWISE)
                .args(["campaign", "resume", &id, "--trust", "--store", &store])
                .stdout(Stdio::piped())
                .stderr(Stdio::null()),
        );
        wait_until(PATIENCE, "a moved thread", || targets.masks() != before);
        kill_process(Pid::from_child(&program.0), Signal::INT).unwrap();
        assert_eq!(program.ended(PATIENCE).code(), Some(130));
        assert_eq!(targets.masks(), before);
        let mut answer = String::new();
        program.0.stdout.take().unwrap().read_to_string(&mut answer).unwrap();
        assert!(answer.contains("whether moving threads helps"), "the answer so far: {answer}");
    }
}

#[test]
fn the_end_of_the_programs_ends_it_with_an_answer() {
    let Some(targets) = Targets::start() else { return };
    let before = targets.masks();
    let mut program = targets.cosched(&before);
    let [one, other] = &targets.targets;
    kill_process(Pid::from_raw(other.pid() as i32).unwrap(), Signal::KILL).unwrap();
    assert!(program.ended(PATIENCE).success());
    let mut answer = String::new();
    program.0.stdout.take().unwrap().read_to_string(&mut answer).unwrap();
    assert!(answer.contains("note: it ended early"), "{answer}");
    assert_eq!(affinities(one.pid()), before[0]);
}

fn complaint(words: &[&str], folder: &Path) -> (Option<i32>, String) {
    let store = folder.join("none.db");
    let output = pinwise([words, &["--store", store.to_str().unwrap()]].concat());
    let text = String::from_utf8(output.stderr).unwrap();
    (output.status.code(), text.lines().last().unwrap_or_default().to_owned())
}

#[test]
fn what_cannot_be_co_scheduled_is_refused_on_one_line_and_a_dry_run_moves_nothing() {
    let Some(targets) = Targets::start() else { return };
    let before = targets.masks();
    let [one, other] = targets.targets.each_ref().map(|target| target.pid().to_string());
    let folder = targets.folder.path();
    let (code, line) = complaint(&["cosched", "--pid", &one], folder);
    assert!(code == Some(2) && line.contains("takes two running programs"), "{line}");
    let (code, line) = complaint(&["cosched", "--pid", "999999999"], folder);
    assert!(code == Some(2) && line.contains("there is no process"), "{line}");
    let (code, line) = complaint(&["cosched"], folder);
    assert!(code == Some(2) && line.contains("--pid"), "{line}");
    for (words, expected) in [
        (&["--weight", "fp=2"][..], "add --rule published"),
        (&["--rule", "published", "--weight", "tlb=2"], "there is no event 'tlb'"),
        (&["--rule", "published", "--weight", "fp=x"], "'x' is no number"),
        (&["--model", "none"], "add --rule model"),
        (&["--rule", "model", "--model", "none.json"], "none.json: "),
        (&["--rule", "model"], "--model"),
        (&["--rule", "seen", "--metric", "cmd:date"], "--metric"),
    ] {
        let output = pinwise([&["cosched", "--pid", &one, "--pid", &other][..], words].concat());
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && text.contains(expected), "{words:?}: {text}");
    }
    let dry = ["cosched", "--pid", &one, "--pid", &other, "--dry-run", "--json"];
    let document = json(&pinwise(dry));
    assert_eq!(document["quanta"].as_array().unwrap().len(), 5);
    assert!(document["notes"].is_array(), "{document}");
    assert_eq!(targets.masks(), before);
    if !document["uncounted"].is_null() {
        let (code, line) = complaint(&["cosched", "--pid", &one, "--pid", &other], folder);
        assert!(code == Some(1) && line.contains("--metric"), "{line}");
    }
}
