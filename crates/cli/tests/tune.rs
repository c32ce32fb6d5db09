//! `pinwise tune` on real programs: one ends, one goes on running, one gets its number while it
//! runs. They check that the answer has what it promises, agrees with itself, and is a plan that
//! starts the program. See docs/lab/benchmarks.md for how good answers are.

mod support;

use pinwise_campaign::{CampaignId, CampaignState, Store};
use serde_json::Value;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use support::source::{OPENMP, TEAM, compiled};
use support::{PATIENCE, PINWISE, Program, affinities, json, pinwise, tool, wait_until};
use tempfile::TempDir;

/// The answer of a search with few numbers and little time.
fn tune(folder: &TempDir, options: &[&str], command: &[&OsStr]) -> (Value, PathBuf) {
    let (plan, store) = (folder.path().join("tuned.toml"), folder.path().join("tune.db"));
    let budget: &[&str] = if options.contains(&"--budget") { &[] } else { &["--budget", "16s"] };
    let words =
        ["tune", "--json", "--max", "3"].iter().chain(budget).chain(options).map(OsStr::new);
    let files = [OsStr::new("--plan"), plan.as_os_str(), OsStr::new("--store"), store.as_os_str()];
    let dashes: &[&OsStr] = if command.is_empty() { &[] } else { &[OsStr::new("--")] };
    let answer = json(&pinwise(
        words.chain(files).chain(dashes.iter().copied()).chain(command.iter().copied()),
    ));
    (answer, plan)
}

/// What every answer must have, and how its parts follow from each other.
fn check(answer: &Value) {
    let ways: Vec<&str> =
        answer["ways"].as_array().unwrap().iter().map(|way| way["way"].as_str().unwrap()).collect();
    assert_eq!(ways[0], "default", "doing nothing always takes part");
    for way in answer["ways"].as_array().unwrap() {
        let number =
            |field: &str| way[field].as_f64().unwrap_or_else(|| panic!("{field} in {answer:#}"));
        // Few rounds of a cost may give no upper end, and a single one gives no end.
        let high = if way["high"].is_null() { f64::INFINITY } else { number("high") };
        let low = if way["n"] == 1 { 0.0 } else { number("low") };
        assert!(low <= number("performance") && number("performance") <= high, "{way:#}");
        assert!(number("n") >= 1.0, "{way:#}");
    }
    let others = answer["probes"].as_array().unwrap().iter();
    let others = others.filter(|probe| probe["parameter"] != answer["default"]).count();
    assert!(ways.len() > 1 || others == 0, "something is compared with the default: {answer:#}");
    let rounds = answer["rounds"].as_u64().unwrap();
    assert!(rounds >= 2 || rounds == 1 && answer["verdict"]["kind"] == "undecided", "{answer:#}");
    let placements = answer["placements"].as_array().unwrap();
    assert!((1..=4).contains(&placements.len()), "{answer:#}");
    assert!(
        placements
            .iter()
            .all(|placed| placed["campaign"].is_u64() || placed["reason"]["text"].is_string()),
        "{answer:#}"
    );
    let low = |gain: &Value| gain["low"].as_f64().unwrap();
    match answer["verdict"]["kind"].as_str().unwrap() {
        "default" | "undecided" => assert!(
            answer["gain"].is_null() && answer["parameter"] == answer["default"],
            "{answer:#}"
        ),
        "number" => assert!(low(&answer["gain"]) > 0.0, "{answer:#}"),
        "fewer" => assert!(low(&answer["gain"]) >= -0.01, "{answer:#}"),
        "placed" => assert!(
            low(&answer["gain"]) > 0.0 && low(&answer["gain_of_pinning"]) > 0.0,
            "{answer:#}"
        ),
        other => panic!("{other}"),
    }
    let [used, budget] = ["seconds", "budget_seconds"].map(|field| answer[field].as_f64().unwrap());
    let open = answer["verdict"]["kind"] == "undecided";
    assert!(!open || used >= budget / 2.0, "an open question is worth the budget: {answer:#}");
    let verdict = answer["verdict"]["text"].as_str().unwrap();
    let pinned = answer["verdict"]["kind"] == "placed";
    assert!(
        pinned
            || verdict.contains("Pinning ")
            || verdict.contains("The plan does not pin")
            || verdict.contains("No placement was compared: "),
        "{verdict}"
    );
}

#[test]
fn a_program_that_runs_to_its_end_is_tuned_and_its_plan_starts_it() {
    let Some(pigz) = tool("pigz") else { return };
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("data");
    let mut random = pinwise_topology::Random::new(1);
    let text: Vec<u8> =
        (0..3 << 20).map(|_| b"aabbccdd etaoin shrdlu"[random.below(22) as usize]).collect();
    fs::write(&file, &text).unwrap();
    let words = ["-p", "{n}", "-k", "-c"].map(OsStr::new);
    let command: Vec<&OsStr> = [&[pigz.as_os_str()], &words[..], &[file.as_os_str()]].concat();
    // Its output is kept for the time of a run, under a name for each number.
    let output = folder.path().join("out-{n}.gz").display().to_string();
    let files = ["--output", &output, "--remove", &output, "--budget", "40s"];
    let (answer, plan) = tune(&folder, &files, &command);
    let left = fs::read_dir(folder.path())
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("out-"));
    assert_eq!(left.count(), 0, "what every run has written is removed");
    check(&answer);
    assert_eq!(
        (answer["unit"].as_str(), answer["lower_is_better"].as_bool()),
        (Some("s"), Some(true))
    );
    // The windows of the last comparison are the records of a part, and the campaign shows it
    // again.
    let (store, id) = (folder.path().join("tune.db"), answer["campaign"].to_string());
    let comparison = answer["comparison"].to_string();
    let on_store = |words: &[&str]| {
        json(&pinwise(words.iter().copied().chain(["--store", store.to_str().unwrap()])))
    };
    let exported = on_store(&["campaign", "export", &comparison, "--format", "json"]);
    let windows = exported["records"].as_array().unwrap();
    assert!(windows.iter().all(|window| window["purpose"] == "final"), "{exported}");
    let ways = answer["ways"].as_array().unwrap().len() as u64;
    assert!(windows.len() as u64 >= answer["rounds"].as_u64().unwrap() * ways, "{exported}");
    let shown = on_store(&["campaign", "show", &id, "--json"]);
    for field in ["verdict", "ways", "probes", "placements", "plan"] {
        assert_eq!(shown[field], answer[field], "{field}");
    }
    let of_part = on_store(&["campaign", "show", &comparison, "--json"]);
    assert_eq!(of_part, shown, "a part without an answer of its own shows that of the whole");
    // One that was killed after its last window, before its end, ends the same.
    let measured = |store: &Store| {
        let parts = store.list().unwrap().campaigns;
        parts.iter().map(|part| (part.id, part.records)).collect::<Vec<_>>()
    };
    let mut killed = Store::open(&store).unwrap();
    let before = measured(&killed);
    for part in [&id, &comparison] {
        let part = CampaignId(part.parse().unwrap());
        killed.set_state(part, CampaignState::Open, Some(&Value::Null)).unwrap();
    }
    let resumed = on_store(&["campaign", "resume", &id, "--json"]);
    for (field, value) in answer.as_object().unwrap() {
        if !["seconds", "plan"].contains(&field.as_str()) {
            assert_eq!(&resumed[field], value, "{field}");
        }
    }
    assert_eq!(measured(&killed), before, "nothing is measured again");
    // What cannot be read is no campaign without an answer.
    let number = CampaignId(id.parse().unwrap());
    let conclusion = killed.get(number).unwrap().conclusion;
    let damaged = serde_json::json!({ "choice": "somewhere" });
    killed.set_state(number, CampaignState::Finished, Some(&damaged)).unwrap();
    let shown = pinwise(["campaign", "show", &id, "--store", store.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&shown.stderr).into_owned();
    assert!(!shown.status.success() && said.contains("wrote its answer"), "{said}");
    killed.set_state(number, CampaignState::Finished, conclusion.as_ref()).unwrap();
    let written = fs::read_to_string(&plan).unwrap();
    assert!(written.contains(&format!("n = {}", answer["parameter"])), "{written}");
    let planned: toml::Table = written.parse().unwrap();
    let named = &planned["origin"]["campaign"];
    assert_eq!(named["store"].as_str(), Some("tune.db"), "{written}");
    assert_eq!(named["number"].as_integer(), answer["campaign"].as_i64(), "{written}");
    // The plan carries the caveats of the answer, in its words.
    let notes = answer["notes"].as_array().unwrap();
    let cpus = notes.iter().find(|note| note["kind"] == "default_assumed");
    assert_eq!(cpus.map(|note| &note["n"]), Some(&answer["default"]), "{notes:?}");
    let answered: Vec<&str> = notes.iter().map(|note| note["text"].as_str().unwrap()).collect();
    let of_plan =
        planned["origin"].get("notes").and_then(toml::Value::as_array).cloned().unwrap_or_default();
    let of_plan: Vec<&str> = of_plan.iter().map(|note| note["text"].as_str().unwrap()).collect();
    assert_eq!(of_plan, answered, "{written}");
    assert_eq!(written.contains("[[thread]]"), answer["verdict"]["kind"] == "placed", "{written}");
    let run =
        Command::new(PINWISE).arg("run").arg(&plan).arg("--").args(&command).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let compressed = folder.path().join("data.gz");
    fs::write(&compressed, &run.stdout).unwrap();
    let back = Command::new(&pigz).arg("-dc").arg(&compressed).output().unwrap();
    assert!(back.stdout == text, "n took its place in the arguments and the output went through");
}

/// A team of threads that work for as long as they may, each in its turn. `workers FILE` follows
/// the number in FILE.
const WORKERS: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <fcntl.h>
#include <unistd.h>
static volatile int number = 1;
static void *work(void *own) {
  long index = (long)own;
  int out = open("/dev/null", O_WRONLY);
  while (1) {
    if (index >= number) { usleep(2000); continue; }
    volatile double sum = 0;
    for (int i = 1; i < 20000; i++) sum += 1.0 / i;
    if (write(out, "done", 4) != 4) exit(1);
  }
}
int main(int count, char **words) {
  pthread_t thread;
  for (long index = 0; index < 3; index++) pthread_create(&thread, 0, work, (void *)index);
  while (1) {
    FILE *file = fopen(words[1], "r");
    int wanted;
    if (file && fscanf(file, "%d", &wanted) == 1) number = wanted;
    if (file) fclose(file);
    usleep(2000);
  }
}
"#;

#[test]
fn the_last_value_of_each_run_is_what_is_tuned() {
    let folder = TempDir::new().unwrap();
    let script = r#"sleep 0.05; echo "ops $((100 * $0))""#;
    let options =
        ["--per-run", "--metric", r"stdout:ops (\d+)", "--budget", "6s", "--default", "2"];
    let (answer, _) = tune(&folder, &options, &["sh", "-c", script, "{n}"].map(OsStr::new));
    check(&answer);
    let default = &answer["ways"][0];
    assert_eq!((&default["performance"], &answer["unit"]), (&200.0.into(), &"ops".into()));
}

#[test]
fn a_program_that_goes_on_running_is_told_its_number_and_is_as_it_was_afterwards() {
    let folder = TempDir::new().unwrap();
    let Some(program) = compiled(&folder, WORKERS) else { return };
    let file = folder.path().join("number");
    fs::write(&file, "1").unwrap();
    let running = Program::start(Command::new(&program).arg(&file).stdout(Stdio::null()));
    wait_until(PATIENCE, "its threads", || affinities(running.pid()).len() == 4);
    let before = affinities(running.pid());
    let set = format!("cmd:echo {{n}} > {}", file.display());
    let pid = running.pid().to_string();
    let options = ["--set", &set, "--default", "1", "--metric", "io:wchar", "--pid", &pid];
    let (answer, plan) = tune(&folder, &options, &[]);
    check(&answer);
    assert_eq!(affinities(running.pid()), before, "its affinities are back");
    let told = || fs::read_to_string(&file).unwrap().trim().to_owned();
    assert_eq!(told(), answer["parameter"].to_string(), "it goes on with what was found");
    fs::write(&file, "9").unwrap();
    let apply = |set: Option<&str>| {
        let words = [Path::new("apply"), &plan, Path::new("--pid"), Path::new(&pid)];
        let applied = pinwise(words.into_iter().chain(set.map(Path::new)));
        (applied.status.success(), String::from_utf8_lossy(&applied.stderr).into_owned())
    };
    let (_, said) = apply(None);
    assert!(
        said.contains("add --set to run: echo") && told() == "9",
        "a plan's command runs only where that is asked for: {said}"
    );
    let (success, said) = apply(Some("--set"));
    assert!(success, "{said}");
    assert!(said.contains("was set with: echo"), "{said}");
    assert_eq!(told(), answer["parameter"].to_string(), "apply tells it the plan's number");
}

#[test]
fn a_service_has_its_own_number_back_however_tune_is_ended() {
    let folder = TempDir::new().unwrap();
    let Some(program) = compiled(&folder, WORKERS) else { return };
    let (file, store) = (folder.path().join("number"), folder.path().join("tune.db"));
    let marker = folder.path().join("placing");
    let ended = |by: &dyn Fn(u32) -> String, back| {
        let _none = (fs::remove_file(&store), fs::remove_file(&marker));
        fs::write(&file, "7").unwrap();
        let running = Program::start(Command::new(&program).arg(&file).stdout(Stdio::null()));
        wait_until(PATIENCE, "its threads", || affinities(running.pid()).len() == 4);
        let (pid, file, found) = (running.pid(), file.display(), marker.display());
        let once = format!("[ {{n}} != 7 ] && rm {found} 2>&-");
        let set = format!("cmd:echo {{n}} > {file}; if {once}; then {}; sleep 1; fi", by(pid));
        let pid = pid.to_string();
        // The sweep ends by its count, and the budget never does, however busy the machine is.
        let words = [
            "tune",
            "--max",
            "3",
            "--default",
            "7",
            "--method",
            "sweep",
            "--rounds",
            "1",
            "--budget",
            "10m",
            "--set",
            &set,
            "--metric",
            "io:wchar",
            "--pid",
            &pid,
        ];
        let mut tune = Program::start(
            Command::new(PINWISE)
                .args(words)
                .arg("--store")
                .arg(&store)
                .stdout(Stdio::null())
                .stderr(Stdio::piped()),
        );
        // The number has been found once its campaign has finished: from then on the script acts.
        let list = ["campaign", "list", "--json", "--store", store.to_str().unwrap()];
        let found = || {
            // Looking must not keep it from measuring.
            std::thread::sleep(Duration::from_millis(200));
            let listed = store.exists().then(|| pinwise(list)).filter(|it| it.status.success());
            listed.is_some_and(|listed| {
                let campaigns = json(&listed)["campaigns"].as_array().cloned().unwrap_or_default();
                campaigns.iter().any(|one| one["kind"] == "threads" && one["state"] == "finished")
            })
        };
        let mut over = None;
        wait_until(PATIENCE, "the number", || {
            over = tune.0.try_wait().unwrap();
            over.is_some() || found()
        });
        if over.is_some() {
            panic!("{}", std::io::read_to_string(tune.0.stderr.take().unwrap()).unwrap());
        }
        fs::write(&marker, "").unwrap();
        let code = tune.ended(PATIENCE).code();
        let said = std::io::read_to_string(tune.0.stderr.take().unwrap()).unwrap();
        let told = || fs::read_to_string(folder.path().join("number")).unwrap();
        if back {
            // After a kill the guardian gives it back.
            wait_until(PATIENCE, "its own number", || told() == "7\n");
        }
        (code, said)
    };
    for signal in ["INT", "TERM", "KILL"] {
        let (code, said) = ended(&|_| format!("kill -{signal} $PPID"), true);
        if signal != "KILL" {
            assert_eq!(code, Some(130), "{said}");
            assert!(said.lines().last().unwrap().starts_with("pinwise: interrupted"), "{said}");
            assert!(said.contains("n = 7 is set now"), "{said}");
        }
    }
    let (code, said) = ended(&|pid| format!("kill {pid}"), false);
    // It ends while a number is measured, or before one can be placed.
    assert!(matches!(code, Some(1 | 2)), "{said}");
    assert!(said.contains(" ended"), "{said}");
}

#[test]
fn a_number_that_is_far_behind_unpinned_is_placed_where_a_policy_shows_that_it_is_the_best() {
    if std::thread::available_parallelism().is_ok_and(|contexts| contexts.get() < 2) {
        return pinwise_synthetic::lacking("a second CPU");
    }
    let folder = TempDir::new().unwrap();
    let Some(program) = compiled(&folder, TEAM) else { return };
    let options = ["--method", "sweep", "--rounds", "1", "--min", "2", "--default", "2"];
    let metric = ["--metric", r"stdout:speed (\d+)", "--gauge"];
    let of = |answer: &Value, field: &str, n: u32| -> Vec<Value> {
        let rows = answer[field].as_array().unwrap().iter();
        rows.filter(|row| row["parameter"] == n).cloned().collect()
    };
    let pinned = |answer: &Value| {
        of(answer, "trials", 3).into_iter().find(|trial| trial["policy"].is_string())
    };
    let placed = |answer: &Value| answer["placements"][0]["placed"].is_object();
    // If other programs keep the machine busy, the parts take longer than their share of a short
    // time.
    let answers = ["20s", "60s", "180s"]
        .map(|budget| [&options[..], &metric, &["--budget", budget]].concat())
        .into_iter();
    let mut answers =
        answers.map(|options| tune(&folder, &options, &[program.as_os_str(), OsStr::new("{n}")]).0);
    let answer = answers.find(|answer| pinned(answer).is_some() && placed(answer));
    let answer = answer.expect("three, pinned, are tried and placed");
    check(&answer);
    let speed = |row: &Value| row["performance"].as_f64().unwrap();
    let unpinned = [2, 3].map(|n| speed(&of(&answer, "probes", n)[0]));
    // Several windows of a number on a busy machine have a weighted mean.
    let near = |speed: f64, expected: f64| (speed - expected).abs() < 1e-9;
    assert!(near(unpinned[0], 20.0) && near(unpinned[1], 12.0), "{unpinned:?}: {answer:#}");
    let pinned = pinned(&answer).unwrap();
    assert!(
        pinned["threads"] == 3 && pinned["unit"] == answer["unit"] && speed(&pinned) > 50.0,
        "{answer:#}"
    );
    let placed = answer["placements"].as_array().unwrap();
    assert!(
        placed.len() == 1 && placed[0]["parameter"] == 3,
        "the others are far behind now: {answer:#}"
    );
    let way = answer["ways"].as_array().unwrap().last().unwrap();
    assert!(way["way"] == "placed" && way["parameter"] == 3, "{answer:#}");
}

/// A folder that a file has replaced cannot be written, whatever the permissions.
#[test]
fn the_answer_is_printed_though_its_plan_cannot_be_written() {
    let folder = TempDir::new().unwrap();
    let plans = folder.path().join("plans");
    fs::create_dir(&plans).unwrap();
    let script = "[ -d \"$2\" ] && rmdir \"$2\" && : > \"$2\"; exec sleep 0.0$1";
    let mut command = Command::new(PINWISE);
    command.args(["tune", "--max", "2", "--method", "sweep", "--rounds", "1", "--default", "1"]);
    command.args(["--threads-per-n", "1", "--budget", "8s", "--plan"]);
    command.arg(plans.join("tuned.toml")).arg("--store").arg(folder.path().join("tune.db"));
    command.args(["--", "sh", "-c", script, "sh", "{n}"]).arg(&plans);
    let ended = command.stdin(Stdio::null()).output().unwrap();
    let [told, error] = [ended.stdout, ended.stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(plans.is_file(), "it was checked at the start: {error}");
    assert_eq!(ended.status.code(), Some(1), "{told}{error}");
    assert!(error.contains("the answer is above, but ") && error.contains("tuned.toml"), "{error}");
    assert!(told.contains("On fresh windows"), "{told}");
}

#[test]
fn an_openmp_program_without_its_variable_is_the_default() {
    let folder = TempDir::new().unwrap();
    let Some(program) = compiled(&folder, OPENMP) else { return };
    let options = ["--env", "OMP_NUM_THREADS", "--metric", r"stdout:round (\d+)", "--counter"];
    let (answer, plan) = tune(&folder, &options, &[program.as_os_str()]);
    check(&answer);
    assert!(answer["default"].is_null(), "{answer:#}");
    if answer["parameter"].is_null() {
        assert!(answer["plan"].is_null() && !plan.exists(), "{answer:#}");
    } else {
        let written = fs::read_to_string(&plan).unwrap();
        assert!(
            written.contains(&format!("OMP_NUM_THREADS = \"{}\"", answer["parameter"])),
            "{written}"
        );
    }
}

#[test]
fn ctrl_c_ends_a_search_and_prints_what_was_found_by_then_and_how_to_go_on() {
    let Some(pigz) = tool("pigz") else { return };
    let folder = TempDir::new().unwrap();
    let (file, store) = (folder.path().join("data"), folder.path().join("tune.db"));
    fs::write(&file, vec![b'x'; 24 << 20]).unwrap();
    let mut search = Program::start(
        Command::new(PINWISE)
            .args(["tune", "--budget", "10m", "--max", "2", "--store"])
            .arg(&store)
            .arg("--")
            .arg(pigz)
            .args(["-p", "{n}", "-k", "-c"])
            .arg(&file)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped()),
    );
    let list = || pinwise(["campaign", "list", "--json", "--store", store.to_str().unwrap()]);
    // Looking must not keep it from measuring.
    let measured = || {
        std::thread::sleep(Duration::from_millis(200));
        let listed = store.exists().then(|| json(&list())["campaigns"].clone());
        let campaigns = listed.as_ref().and_then(Value::as_array).into_iter().flatten();
        campaigns
            .filter(|campaign| campaign["kind"] == "place")
            .any(|campaign| campaign["measurements"].as_u64() > Some(0))
    };
    wait_until(PATIENCE, "its first measurement", measured);
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&search.0),
        rustix::process::Signal::INT,
    )
    .unwrap();
    assert_eq!(search.ended(PATIENCE).code(), Some(130));
    let told = std::io::read_to_string(search.0.stdout.take().unwrap()).unwrap();
    assert!(
        told.contains("The number alone:")
            && told.starts_with("No answer yet: the search has not ended"),
        "{told}"
    );
    let unfinished = told.lines().nth(1).unwrap();
    assert!(unfinished.starts_with("It is not finished: "), "{told}");
    let said = std::io::read_to_string(search.0.stderr.take().unwrap()).unwrap();
    let next = format!("continue with: pinwise campaign resume 1 --store {}", store.display());
    assert!(said.lines().last().unwrap_or_default().contains(&next), "{said}");
    let listed = json(&list());
    assert_eq!(
        (&listed["campaigns"][0]["kind"], &listed["campaigns"][0]["part_of"]),
        (&"tune".into(), &Value::Null)
    );
    let parts = &listed["campaigns"].as_array().unwrap()[1..];
    assert!(parts.iter().all(|part| part["part_of"] == "tune" && part["parent"] == 1), "{listed}");
}
