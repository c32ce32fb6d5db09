//! Names in a store, a plan or a recorded machine are others' text. None of them reaches a terminal
//! as control characters.

mod support;

use pinwise_campaign::{Kind, NewCampaign, Purpose, Record, Store, Trial};
use pinwise_measure::{Effort, MeasureError, Measurement, Retry, Setting, Thread, Unit, Workload};
use pinwise_placement::{Budget, PlacementQuestion, StrategyName};
use pinwise_topology::{Alike, Assignment, Machine};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;
use support::PINWISE;
use tempfile::TempDir;

/// A name that colours the terminal red, rings its bell and forges a verdict.
const HOSTILE: &str = "\u{1b}[31mrx\u{7}\nPin: forged\u{9b}\u{202e}";

fn pinwise(arguments: &[&str], folder: &Path) -> Output {
    Command::new(PINWISE).args(arguments).env("XDG_DATA_HOME", folder).output().unwrap()
}

/// Fails where a terminal would have obeyed something, or where a line is not from pinwise.
fn assert_safe(output: &Output) {
    for stream in [&output.stdout, &output.stderr] {
        let text = std::str::from_utf8(stream).unwrap();
        let obeyed = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!text.contains(obeyed), "{text:?}");
        assert!(!text.lines().any(|line| line.starts_with("Pin: forged")), "{text}");
    }
}

/// A store from a stranger.
fn store(path: &Path) {
    let machine = Machine { name: HOSTILE.into(), ..Machine::from_shape("2").unwrap() };
    let thread = |number: usize| Thread::new(format!("{HOSTILE}{number}"), HOSTILE, 0);
    let question = PlacementQuestion::new(StrategyName::Exhaustive, Budget::Measurements(9));
    let campaign = NewCampaign {
        kind: Kind::Place,
        parent: None,
        command: vec!["pinwise".into(), HOSTILE.into()],
        machine,
        alike: Alike::ByStructure,
        workload: Workload { name: HOSTILE.into(), threads: vec![thread(0), thread(1)] },
        unit: Unit::rate(format!("{HOSTILE}/s")),
        simulated: false,
        question: serde_json::to_value(question).unwrap(),
        seed: 1,
    };
    let mut store = Store::open(path).unwrap();
    let id = store.create(&campaign).unwrap();
    let measured = || {
        let duration = Duration::from_secs(1);
        Ok(Measurement::new(5.0, duration))
    };
    let failed = MeasureError::new(Retry::Other, HOSTILE);
    let pinned = Setting::Pinned(Assignment::new(vec![0, 1]));
    for (number, (setting, outcome)) in [
        (Setting::Unpinned, measured()),
        (pinned.clone(), measured()),
        (pinned.clone(), measured()),
        (pinned, Err(failed)),
    ]
    .into_iter()
    .enumerate()
    {
        let trial = Trial { setting, purpose: Purpose::Sample, effort: Effort::default() };
        let elapsed = Duration::from_secs(number as u64);
        store.append(id, &Record { number: number as u64, trial, outcome, elapsed }).unwrap();
    }
}

#[test]
fn a_stranger_s_store_cannot_control_the_terminal() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("stranger.db");
    store(&path);
    let path = path.to_str().unwrap();
    for command in [&["campaign", "list"][..], &["campaign", "show", "1"]] {
        let output = pinwise(&[command, &["--store", path]].concat(), folder.path());
        assert!(output.status.success(), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stdout).contains(r"\u{1b}[31mrx"), "{output:?}");
        assert_safe(&output);
    }
    // Also in a pipe, whose other end may be a terminal. JSON reads back as the names are.
    for format in ["csv", "json"] {
        let words = ["campaign", "export", "1", "--format", format, "--store", path];
        let output = pinwise(&words, folder.path());
        assert!(output.status.success(), "{output:?}");
        let text = std::str::from_utf8(&output.stdout).unwrap();
        let obeyed = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(text.contains("Pin: forged") && !text.contains(obeyed), "{text:?}");
        if format == "json" {
            let document: serde_json::Value = serde_json::from_str(text).unwrap();
            assert!(document.to_string().contains("forged\u{9b}\u{202e}"), "{text}");
        }
    }
    // What fails names the workload as well.
    assert_safe(&pinwise(&["campaign", "resume", "1", "--trust", "--store", path], folder.path()));
    assert_safe(&pinwise(&["campaign", "resume", "1", "--store", path], folder.path()));
}

#[test]
fn a_stranger_s_plan_cannot_control_the_terminal() {
    let folder = TempDir::new().unwrap();
    let plan = folder.path().join("plan.toml");
    let name = r#""\u001B[31mrx\u0007\nPin: forged\u009B\u202E""#;
    fs::write(
        &plan,
        format!(
            "version = 1\nprogram = {name}\n\n[machine]\nmodel = {name}\nsummary = {name}\n\
             topology = \"x\"\n\n[[thread]]\nname = {name}\nrole = {name}\ninstance = 0\n\
             cpus = \"0\"\n"
        ),
    )
    .unwrap();
    let pid = std::process::id().to_string();
    let plan = plan.to_str().unwrap();
    let output = pinwise(&["apply", plan, "--force", "--pid", &pid], folder.path());
    assert!(!output.status.success() && !output.stderr.is_empty(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains(r"the process has no thread \u{1b}[31mrx"), "{said}");
    assert_safe(&output);
}

/// XML has no escape character. It has others that a terminal obeys.
#[test]
fn a_stranger_s_topology_cannot_control_the_terminal() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("machine.xml");
    let name = "rx&#x9b;31m&#10;Pin: forged&#x7f;&#x202e;";
    let core = |cpu: u32| {
        let set = format!("cpuset=\"{:#x}\"", 1 << cpu);
        format!(
            "<object type=\"Core\" os_index=\"{cpu}\" {set}><object type=\"PU\" \
             os_index=\"{cpu}\" {set}/></object>"
        )
    };
    let kind = |cpu: u32| {
        format!(
            "<cpukind cpuset=\"{:#x}\"><info name=\"CoreType\" value=\"{name}{cpu}\"/></cpukind>",
            1 << cpu
        )
    };
    let xml = format!(
        "<topology version=\"2.0\"><object type=\"Machine\" cpuset=\"0x3\"><info \
         name=\"CPUModel\" value=\"{name}\"/>{}{}</object>{}{}</topology>",
        core(0),
        core(1),
        kind(0),
        kind(1)
    );
    fs::write(&file, xml).unwrap();
    let file = file.to_str().unwrap();
    for words in [
        &["topo", "--machine", file][..],
        &["topo", "--json", "--machine", file],
        &["space", "--threads", "2", "--machine", file],
    ] {
        let output = pinwise(words, folder.path());
        assert!(output.status.success(), "{output:?}");
        assert_safe(&output);
    }
    let topo = pinwise(&["topo", "--machine", file], folder.path());
    let shown = String::from_utf8(topo.stdout).unwrap();
    assert!(shown.matches(r"rx\u{9b}31m").count() >= 3, "its name, and two kinds: {shown}");
    fs::write(file, format!("<topology version=\"{name}\">")).unwrap();
    let output = pinwise(&["topo", "--machine", file], folder.path());
    assert!(!output.status.success() && !output.stderr.is_empty(), "{output:?}");
    assert_safe(&output);
}
