//! What commands print about one real campaign: the JSON documents that
//! `docs/reference/json.md` promises, and the report.

mod support;

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use support::{Program, json, pinwise};
use tempfile::TempDir;

/// A store with one campaign, number 1: a hundred measurements of a pipeline.
fn store() -> (&'static Path, &'static Value) {
    static STORE: OnceLock<(PathBuf, Value)> = OnceLock::new();
    let (folder, placed) = STORE.get_or_init(|| {
        let folder = support::shared_folder("store");
        let store = folder.join("pinwise.db");
        let placed = json(&pinwise(
            ["place", "--workload", "intadd:1", "--budget", "100", "--json", "--store"]
                .map(Path::new)
                .into_iter()
                .chain([store.as_path()]),
        ));
        (folder, placed)
    });
    (folder, placed)
}

/// A command about the campaign.
fn about(words: &[&str]) -> Value {
    let path = store().0.join("pinwise.db");
    json(&pinwise(words.iter().map(Path::new).chain([Path::new("--store"), &path])))
}

/// A plan of another machine, for a thread named `sleep`.
const PLAN: &str = "version = 1\nprogram = \"sleep\"\n[machine]\nsummary = \"1 core\"\ntopology = \
    \"0\"\nmodel = \"abacus\"\n[[thread]]\nname = \"sleep\"\nrole = \"r\"\ninstance = 0\ncpus = \
    \"CPU\"\n";

/// The document of a campaign, with what only BlackBox adds: its forecast, and what a dry run of it
/// says. The drift is also that of the model. A busy machine may measure too little for one.
fn placed(profiled: &str) -> Value {
    let mut document = store().1.clone();
    let ask = [
        "place",
        "--machine",
        "ultrasparc-t2",
        "--workload",
        "intadd:2",
        "--strategy",
        "blackbox",
        "--json",
    ];
    let some = [
        "--cycles", "20000", "--starts", "1", "--top", "3", "--budget", "400", "--store", profiled,
    ];
    let mut modelled = json(&pinwise([&ask[..], &some].concat()));
    ["forecast", "drift"].iter().for_each(|field| document[field] = modelled[field].take());
    for (field, value) in json(&pinwise([&ask[..], &["--dry-run"]].concat())).as_object().unwrap() {
        if document.get(field).is_none() {
            document[field.as_str()] = value.clone();
        }
    }
    document
}

/// The document of `tune`. What a budget in time has room for depends on how busy the machine is.
/// It grows until there are measurements of each stage.
fn tuned(folder: &Path) -> Value {
    let file = |name: String| folder.join(name).to_str().unwrap().to_owned();
    let question = ["tune", "--json", "--method", "reinforcer", "--max", "2", "--default", "1"];
    let spin = "i=0; while [ $i -lt 50000 ]; do i=$((i + 1)); done";
    for budget in ["15s", "1m", "4m"] {
        let (plan, store) = (file(format!("{budget}.toml")), file(format!("tuned-{budget}.db")));
        let options =
            ["--threads-per-n", "1", "--budget", budget, "--plan", &plan, "--store", &store];
        let output = pinwise([&question[..], &options, &["--", "sh", "-c", spin, "{n}"]].concat());
        let document: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let filled = |list: &&str| document[*list].as_array().is_some_and(|list| !list.is_empty());
        if ["trials", "placements", "ways"].iter().all(filled) {
            return document;
        }
    }
    panic!("tune compares nothing in 4 minutes");
}

/// Of two programs that compute, judged by a number that says nothing of them.
fn coscheduled(store: &str) -> Value {
    let programs =
        [(); 2].map(|()| Program::start(Command::new("sh").args(["-c", "while :; do :; done"])));
    let [one, other] = programs.each_ref().map(|program| program.pid().to_string());
    let words = ["cosched", "--pid", &one, "--pid", &other, "--metric", "cmd:date +%s%N"];
    let how = ["--counter", "--quantum", "10ms", "--budget", "20s", "--json", "--store", store];
    json(&pinwise([&words[..], &how].concat()))
}

/// The real document of every command.
fn documents() -> BTreeMap<&'static str, Value> {
    let folder = store().0;
    let file = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let values: String =
        (0..500).map(|n| format!("{}\n", 100.0 - f64::from(n * n) / 5000.0)).collect();
    fs::write(file("values"), values).unwrap();
    let sleep = Program::start(Command::new("sleep").arg("3600"));
    let cpu = support::affinities(sleep.pid()).into_values().next().unwrap();
    fs::write(file("plan.toml"), PLAN.replace("CPU", cpu.split(['-', ',']).next().unwrap()))
        .unwrap();
    let run = |words: &[&str]| json(&pinwise(words));
    BTreeMap::from([
        ("topo", run(&["topo", "--json"])),
        ("latency", run(&["latency", "--json"])),
        (
            "characterize",
            run(&[
                "characterize",
                "--machine",
                "ultrasparc-t2",
                "--benchmarks",
                "intadd,FPdiv",
                "--stressors",
                "4",
                "--json",
                "--store",
                &file("machine.db"),
            ]),
        ),
        (
            "compare",
            run(&[
                "compare",
                "--machine",
                "ultrasparc-t2",
                "--workload",
                "intadd:1",
                "--cycles",
                "20000",
                "--budget",
                "60",
                "--draws",
                "3",
                "--rounds",
                "5",
                "--json",
                "--store",
                &file("compared.db"),
            ]),
        ),
        (
            "select",
            run(&[
                "select",
                "--machine",
                "ultrasparc-t2",
                "--workload",
                "intadd:1+intmul:1",
                "--choose",
                "1",
                "--cycles",
                "20000",
                "--budget",
                "60",
                "--json",
                "--store",
                &file("selected.db"),
            ]),
        ),
        ("cosched", coscheduled(&file("coscheduled.db"))),
        (
            "paths",
            run(&[
                "paths",
                concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cmd/paths/paths.in/app.brstack"),
                "--binary",
                concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cmd/paths/paths.in/app"),
                "--json",
            ]),
        ),
        (
            "pairs",
            run(&[
                "pairs",
                "--machine",
                "pentium4-northwood",
                "--workload",
                "177.mesa",
                "--workload",
                "178.galgel",
                "--workload",
                "179.art",
                "--cycles",
                "50000",
                "--budget",
                "20",
                "--predict",
                concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/counter_model/sixteen.json"),
                "--json",
                "--store",
                &file("paired.db"),
            ]),
        ),
        (
            "threads",
            run(&[
                "threads",
                "--json",
                "--method",
                "reinforcer",
                "--max",
                "2",
                "--threads-per-n",
                "1",
                "--",
                "sh",
                "-c",
                "while :; do :; done",
                "{n}",
            ]),
        ),
        (
            "threads calibrate",
            run(&[
                "threads",
                "calibrate",
                "--machine",
                "2x4",
                "--max",
                "16",
                "--rounds",
                "1",
                "--json",
                "--store",
                &file("calibrated.db"),
            ]),
        ),
        ("tune", tuned(folder)),
        ("space", run(&["space", "--threads", "3", "--json"])),
        ("bound", run(&["bound", &file("values"), "--json"])),
        ("place", placed(&file("profiled.db"))),
        ("export", run(&["export", &file("plan.toml"), "--to", "taskset", "--json"])),
        ("campaign list", about(&["campaign", "list", "--json"])),
        ("campaign export", about(&["campaign", "export", "1", "--format", "json"])),
        ("report", about(&["report", "1", "-o", &file("document.html"), "--json"])),
        (
            "report characterization",
            run(&[
                "report",
                "characterization",
                "--machine",
                "ultrasparc-t2",
                "--store",
                &file("machine.db"),
                "-o",
                &file("machine.html"),
                "--json",
            ]),
        ),
        ("workload", run(&["workload", "intadd", "--packets", "1000", "--json"])),
        (
            "apply",
            run(&[
                "apply",
                &file("plan.toml"),
                "--pid",
                &sleep.pid().to_string(),
                "--force",
                "--json",
            ]),
        ),
        ("doctor", run(&["doctor", "--json"])),
    ])
}

/// Whether `value` has a field at `path`, such as `levels[].name`. Every element of a list, and at
/// least one, has to have it.
fn has(value: &Value, path: &str) -> bool {
    let (field, rest) =
        path.split_once('.').map_or((path, None), |(field, rest)| (field, Some(rest)));
    let deeper = |value: &Value| rest.is_none_or(|rest| has(value, rest));
    match field.strip_suffix("[]") {
        None => value.get(field).is_some_and(deeper),
        Some(field) => value
            .get(field)
            .and_then(Value::as_array)
            .is_some_and(|list| !list.is_empty() && list.iter().all(deeper)),
    }
}

#[test]
fn every_documented_field_is_in_the_real_document_and_the_other_way_round() {
    let text =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/json.md"))
            .unwrap();
    let documents = documents();
    let mut seen = BTreeSet::new();
    for section in text.split("\n## ").skip(1) {
        let command = section.lines().next().unwrap();
        let document = documents.get(command).unwrap_or_else(|| panic!("no document of {command}"));
        let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
        let cells = rows.map(|row| row.split(" | ").next().unwrap());
        let fields: Vec<&str> = cells
            .flat_map(|cell| cell.split('`').filter(|field| !field.trim().is_empty()))
            .collect();
        for field in &fields {
            assert!(
                has(document, field),
                "{command}: {field} is documented and not in {document:#}"
            );
        }
        let top: BTreeSet<&str> =
            fields.iter().map(|field| field.split(['.', '[']).next().unwrap()).collect();
        for field in document.as_object().unwrap().keys() {
            assert!(top.contains(field.as_str()), "{command}: {field} is not documented");
        }
        seen.insert(command);
    }
    assert!(documents.keys().all(|command| seen.contains(command)), "documented are only {seen:?}");
}

#[test]
fn showing_a_campaign_says_what_placing_said() {
    assert_eq!(&about(&["campaign", "show", "1", "--json"]), store().1);
    let exported = about(&["campaign", "export", "1", "--format", "json"]);
    assert_eq!(&exported["answer"], store().1);
    assert_eq!(&about(&["campaign", "resume", "1", "--json"]), store().1);
}

#[test]
fn resuming_a_finished_campaign_says_that_it_had_finished() {
    let path = store().0.join("pinwise.db");
    let words = ["campaign", "resume", "1", "--store"].map(Path::new);
    let output = pinwise(words.into_iter().chain([path.as_path()]));
    assert!(output.status.success());
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "note: campaign 1 has finished: there is nothing to resume\n"
    );
}

#[test]
fn a_report_is_one_page_written_anew_each_time() {
    let folder = store().0;
    let page = folder.join("page.html");
    fs::write(&page, "older").unwrap();
    let told = about(&["report", "1", "-o", page.to_str().unwrap(), "--json"]);
    let html = fs::read_to_string(&page).unwrap();
    assert_eq!(told["bytes"], html.len());
    assert!(
        html.to_lowercase().starts_with("<!doctype html>")
            && html.contains("</html>\n<!-- campaign 1 of ")
            && !html.contains("src=\"http")
    );
    assert!(
        html.contains("pinwise campaign export 1 --store"),
        "the page names the store it was made from"
    );
}

#[test]
fn a_file_that_is_no_text_keeps_its_name_from_a_report() {
    let folder = TempDir::new().unwrap();
    let foreign = folder.path().join("pinwise-1.html");
    fs::write(&foreign, b"<html>caf\xe9</html>").unwrap();
    let mut command = Command::new(support::PINWISE);
    command.args(["report", "1", "--json", "--store"]).arg(store().0.join("pinwise.db"));
    let told = json(&command.current_dir(folder.path()).output().unwrap());
    assert_eq!(told["file"], "pinwise-1-2.html");
    let page = fs::metadata(folder.path().join("pinwise-1-2.html")).unwrap();
    assert_eq!(page.permissions().mode() & 0o777, 0o600, "it has command lines");
    assert_eq!(fs::read(&foreign).unwrap(), b"<html>caf\xe9</html>");
}

#[test]
fn a_report_that_cannot_be_made_says_why_on_one_line() {
    let folder = store().0;
    let store = folder.join("pinwise.db");
    let missing = folder.join("missing.db");
    let nowhere = folder.join("no/such/folder/page.html");
    let run = |campaign: &str, store: &Path, output: &Path| {
        let words = [
            Path::new("report"),
            Path::new(campaign),
            Path::new("--store"),
            store,
            Path::new("-o"),
            output,
        ];
        let done = pinwise(words);
        let said = String::from_utf8(done.stderr).unwrap();
        assert!(said.starts_with("pinwise: ") && said.lines().count() == 1, "{said}");
        (done.status.code().unwrap(), said)
    };
    let (code, said) = run("1", &missing, &folder.join("x.html"));
    assert!(code == 2 && said.contains("no store yet") && !missing.exists(), "{code} {said}");
    let (code, said) = run("1", &store, &nowhere);
    assert!(code == 2 && said.contains("its folder does not exist"), "{code} {said}");
    let (code, said) = run("9", &store, &folder.join("x.html"));
    assert!(code == 2 && said.contains("there is no campaign 9"), "{code} {said}");
}

#[test]
fn deleting_names_what_is_gone_and_deletes_nothing_when_one_does_not_exist() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("copy.db");
    let store = pinwise_campaign::Store::open(&store().0.join("pinwise.db")).unwrap();
    let kept = store.list().unwrap().campaigns.remove(0);
    let id = pinwise_campaign::Store::open(&path).unwrap().create(&kept.new).unwrap().0.to_string();
    let run = |words: &[&str]| {
        let words = words.iter().map(Path::new).chain([Path::new("--store"), &path]);
        let done = pinwise([Path::new("campaign"), Path::new("delete")].into_iter().chain(words));
        (
            done.status.code().unwrap(),
            String::from_utf8([done.stdout, done.stderr].concat()).unwrap(),
        )
    };
    let (code, said) = run(&[&id, "99"]);
    assert!(code == 2 && said.contains("there is no campaign 99"), "{code} {said}");
    assert_eq!(run(&[&id]), (0, format!("campaign {id} deleted: 0 measurements\n")));
    let (code, said) = run(&[&id]);
    assert!(code == 2 && said.contains("it holds none"), "{code} {said}");
    // A part goes with its whole.
    let mut other = pinwise_campaign::Store::open(&path).unwrap();
    let whole = other.create(&kept.new).unwrap();
    let parent = Some(pinwise_campaign::Parent::new(whole, &"part"));
    let part = other.create(&pinwise_campaign::NewCampaign { parent, ..kept.new }).unwrap();
    drop(other);
    let [whole, part] = [whole, part].map(|id| id.0.to_string());
    let (code, said) = run(&[&part]);
    assert!(code == 2 && said.contains(&format!("campaign delete {whole}")), "{code} {said}");
    let deleted = format!("campaign {whole} and its 1 part deleted: 0 measurements\n");
    assert_eq!(run(&[&whole, &part]), (0, deleted));
}
