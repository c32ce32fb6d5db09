//! One store and several programs: a lock held by another, two campaigns at once, a user who may
//! only read. Also a campaign whose program changed before it was resumed, or whose machine was
//! busy until then.

mod support;

use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use support::{PATIENCE, PINWISE, Program, Target, json, pinwise, tool, wait_until};
use tempfile::TempDir;

/// How many records each campaign in a store has; none while there is no store yet.
fn recorded(store: &Path) -> Vec<u64> {
    if !store.exists() {
        return Vec::new();
    }
    let listed = pinwise_campaign::Store::open(store).and_then(|store| store.list());
    listed.unwrap_or_default().campaigns.iter().map(|campaign| campaign.records).collect()
}

/// Every record of every campaign is there, numbered without a gap.
fn check_records(store: &Path) {
    let store = pinwise_campaign::Store::open(store).unwrap();
    for campaign in store.list().unwrap().campaigns {
        let records = store.records(campaign.id).unwrap();
        assert!(
            records.iter().zip(0..).all(|(record, number)| record.number == number),
            "{:?}",
            campaign.id
        );
    }
}

/// `place` on a built-in workload, running.
fn place(store: &Path, budget: &str) -> Child {
    let mut command = Command::new(PINWISE);
    command
        .args(["place", "--workload", "intadd:1", "--budget", budget, "--json", "--store"])
        .arg(store);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// The lines on stderr that are no notes.
fn complaints(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stderr);
    text.lines().filter(|line| !line.starts_with("note: ")).map(str::to_owned).collect()
}

#[test]
fn a_store_that_another_program_locks_loses_nothing_and_is_named() {
    let Some(sqlite) = tool("sqlite3") else { return };
    let folder = TempDir::new().unwrap();
    let store = folder.path().join("pinwise.db");
    let mut place = place(&store, "60s");
    let mut ended = || place.try_wait().unwrap().is_some();
    let measured = || recorded(&store).first().is_some_and(|n| *n > 5);
    wait_until(PATIENCE, "some measurements", || measured() || ended());
    assert!(measured(), "{:?}", place.wait_with_output());
    let mut other = Program(
        Command::new(sqlite)
            .arg(&store)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap(),
    );
    let mut input = other.0.stdin.take().unwrap();
    // The lock is asked for until it is had: measurements are committed in between.
    input
        .write_all(b".timeout 20000\nBEGIN IMMEDIATE;\nSELECT 'locked', count(*) FROM record;\n")
        .unwrap();
    let mut line = String::new();
    BufReader::new(other.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let known: u64 =
        line.trim().strip_prefix("locked|").unwrap_or_else(|| panic!("{line}")).parse().unwrap();
    let output = place.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let complaints = complaints(&output);
    assert!(
        complaints.len() == 1
            && complaints[0].contains("is locked by another program for more than 10 s"),
        "{complaints:?}"
    );
    drop(input);
    other.ended(PATIENCE);
    assert_eq!(recorded(&store), [known]);
    check_records(&store);
    let resumable = pinwise(
        ["campaign", "list", "--json", "--store"]
            .map(Path::new)
            .into_iter()
            .chain([store.as_path()]),
    );
    assert_eq!(json(&resumable)["campaigns"][0]["state"], "killed");
}

#[test]
fn the_answers_of_stores_in_one_folder_do_not_overwrite_one_another() {
    let folder = TempDir::new().unwrap();
    let run = |words: &[&str]| {
        let mut command = Command::new(PINWISE);
        json(
            &command
                .args(words)
                .arg("--json")
                .current_dir(folder.path())
                .stdin(Stdio::null())
                .output()
                .unwrap(),
        )
    };
    let place = |store: &str| {
        let words = [
            "--cpus", "0-7", "--cycles", "10000", "--starts", "1", "--budget", "30", "--store",
            store,
        ];
        let what = ["place", "--machine", "ultrasparc-t2", "--workload", "intadd:1"];
        run(&[&what[..], &words].concat())["plan"].as_str().unwrap().to_owned()
    };
    let read = |file: &str| fs::read_to_string(folder.path().join(file)).unwrap();
    let plans = [place("a.db"), place("b.db")];
    assert_eq!(plans, ["plans/1.toml", "plans/1-2.toml"]);
    let first = read(&plans[0]);
    let names = |store: &str| format!("[origin.campaign]\nstore = \"{store}\"\nnumber = 1\n");
    assert!(first.contains(&names("a.db")) && read(&plans[1]).contains(&names("b.db")), "{first}");
    for (store, plan) in ["a.db", "b.db"].iter().zip(&plans) {
        assert_eq!(run(&["campaign", "show", "1", "--store", store])["plan"], plan.as_str());
    }
    let page =
        |store: &str| run(&["report", "1", "--store", store])["file"].as_str().unwrap().to_owned();
    let pages = ["a.db", "b.db", "a.db", "b.db"].map(page);
    assert_eq!(pages, ["pinwise-1.html", "pinwise-1-2.html", "pinwise-1.html", "pinwise-1-2.html"]);
    // A store that is begun again begins with number 1 again.
    for file in fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().path()) {
        if file.file_name().unwrap().to_str().unwrap().starts_with("a.db") {
            fs::remove_file(file).unwrap();
        }
    }
    assert_eq!(place("a.db"), "plans/1-3.toml");
    assert_eq!(read("plans/1.toml"), first);
}

#[test]
fn a_plan_that_does_not_say_whose_it_is_belongs_to_the_campaign_of_its_number() {
    let folder = TempDir::new().unwrap();
    let store = folder.path().join("pinwise.db");
    let shown = || {
        let words = [Path::new("campaign"), Path::new("show"), Path::new("1"), Path::new("--json")];
        json(&pinwise(words.into_iter().chain([Path::new("--store"), &store])))["plan"].clone()
    };
    let words = [
        "--cpus", "0-7", "--cycles", "10000", "--starts", "1", "--budget", "30", "--json",
        "--store",
    ];
    let what = ["place", "--machine", "ultrasparc-t2", "--workload", "intadd:1"];
    json(&pinwise(what.iter().chain(&words).map(Path::new).chain([store.as_path()])));
    let [first, second, third] =
        ["1.toml", "1-2.toml", "1-3.toml"].map(|name| folder.path().join("plans").join(name));
    assert_eq!(shown(), first.to_str().unwrap());
    let text = fs::read_to_string(&first).unwrap();
    let mut plan = pinwise_placement::Plan::parse(&text).unwrap();
    plan.origin = None;
    fs::rename(&first, &second).unwrap();
    fs::write(&third, plan.to_toml()).unwrap();
    fs::write(&first, plan.to_toml()).unwrap();
    assert_eq!(shown(), second.to_str().unwrap(), "its own before one that may be");
    fs::remove_file(&second).unwrap();
    assert_eq!(shown(), first.to_str().unwrap());
    fs::remove_file(&first).unwrap();
    assert!(shown().is_null(), "1-3.toml is not what a plan of before was called");
}

#[test]
fn a_number_finds_the_plan_that_names_its_campaign_whatever_its_file_is_called() {
    let folder = TempDir::new().unwrap();
    let run = |words: &[&str]| {
        let mut command = Command::new(PINWISE);
        let command = command.args(words).env("XDG_DATA_HOME", folder.path());
        command.stdin(Stdio::null()).output().unwrap()
    };
    let words = ["--cpus", "0-7", "--cycles", "10000", "--starts", "1", "--budget", "30", "--json"];
    let what = ["place", "--machine", "ultrasparc-t2", "--workload", "intadd:1"];
    let placed = json(&run(&[&what[..], &words].concat()));
    let [written, tuned] =
        ["1.toml", "tune-intadd.toml"].map(|name| folder.path().join("pinwise/plans").join(name));
    assert_eq!(placed["plan"], written.to_str().unwrap());
    let exported = || {
        let output = run(&["export", "1", "--to", "taskset"]);
        assert!(output.status.success(), "{output:?}");
        output.stdout
    };
    let first = exported();
    fs::rename(&written, &tuned).unwrap();
    assert_eq!(exported(), first);
    // As the version before named the campaign.
    let text = fs::read_to_string(&tuned).unwrap();
    let mut plan: toml::Table = text.parse().unwrap();
    let origin = plan["origin"].as_table_mut().unwrap();
    let started = origin["campaign"]["started"].clone();
    let sentence = format!("campaign 1 of pinwise.db, begun 2026-11-22 18:20 UTC ({started})");
    origin.insert("campaign".into(), sentence.into());
    fs::write(&tuned, plan.to_string()).unwrap();
    assert_eq!(exported(), first);
    let errors = String::from_utf8(run(&["run", "1", "--", "true"]).stderr).unwrap();
    assert!(errors.contains("the plan does not fit: "), "the plan is read: {errors}");
}

#[test]
fn two_processes_measure_into_one_store() {
    let folder = TempDir::new().unwrap();
    let store = folder.path().join("pinwise.db");
    let both = [place(&store, "30"), place(&store, "30")];
    let results: Vec<Value> =
        both.into_iter().map(|place| json(&place.wait_with_output().unwrap())).collect();
    let mut campaigns: Vec<u64> =
        results.iter().map(|result| result["campaign"].as_u64().unwrap()).collect();
    campaigns.sort_unstable();
    assert_eq!(campaigns, [1, 2]);
    let made: Vec<u64> =
        results.iter().map(|result| result["measurements"].as_u64().unwrap()).collect();
    assert_eq!(recorded(&store).iter().sum::<u64>(), made.iter().sum::<u64>());
    check_records(&store);
}

#[test]
fn a_user_who_may_only_read_a_store_gets_an_error_on_writing() {
    if !rustix::process::geteuid().is_root() {
        pinwise_synthetic::not_judged("only root can become another user");
        return;
    }
    let folder = TempDir::new().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    // What has a meaning in an address has none in a name.
    let store = folder.path().join("50%?#.db");
    json(&place(&store, "20").wait_with_output().unwrap());
    fs::set_permissions(&store, fs::Permissions::from_mode(0o644)).unwrap();
    let before = fs::read(&store).unwrap();
    // A copy: the folder that tests are built in may be closed to others.
    let program = folder.path().join("pinwise");
    fs::copy(PINWISE, &program).unwrap();
    let other_user = |words: &[&str]| {
        Command::new(&program)
            .args(words)
            .arg("--store")
            .arg(&store)
            .current_dir("/")
            .uid(65534)
            .gid(65534)
            .stdin(Stdio::null())
            .output()
            .unwrap()
    };
    let output = other_user(&["campaign", "show", "1", "--json"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(json(&output)["campaign"], 1);
    // Before the program is started: its run would be lost.
    let open = TempDir::new().unwrap();
    fs::set_permissions(open.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let ran = open.path().join("ran");
    let [named, marker] = [&store, &ran].map(|path| path.to_str().unwrap());
    let touch = ["place", "--store", named, "--", "sh", "-c", "touch \"$0\"", marker];
    let output = other_user(&touch);
    assert!(!ran.exists());
    assert_eq!(output.status.code(), Some(1));
    let complaints = complaints(&output);
    assert!(
        complaints.len() == 1
            && complaints[0].contains("writable")
            && complaints[0].contains("--store"),
        "{complaints:?}"
    );
    assert_eq!(fs::read(&store).unwrap(), before);
}

/// Every number that is printed of a comparison counts the same measurements.
#[test]
fn a_list_counts_what_a_campaign_and_its_parts_measured() {
    let folder = TempDir::new().unwrap();
    let store = folder.path().join("pinwise.db");
    let on_store = |words: &str| {
        let words = words.split(' ').chain(["--store", store.to_str().unwrap()]);
        pinwise(words)
    };
    let compared = json(&on_store(
        "compare --machine ultrasparc-t2 --workload intadd:1 --cycles 20000 --budget 20 --draws 2 \
         --rounds 5 --json",
    ));
    let listed = json(&on_store("campaign list --json"));
    let count = |one: &Value| one["measurements"].as_u64().unwrap();
    let of = |part: bool| {
        let listed = listed["campaigns"].as_array().unwrap().iter();
        listed.filter(move |one| one["parent"].is_null() != part).map(count).sum::<u64>()
    };
    assert!(of(true) > 0);
    assert_eq!(of(false), count(&compared) + of(true));
    let shown = json(&on_store("campaign show 1 --json"));
    assert_eq!(count(&shown), count(&compared));
    let deleted = on_store("campaign delete 1");
    let told = format!("{} measurements", of(false));
    assert!(String::from_utf8_lossy(&deleted.stdout).contains(&told), "{deleted:?}");
}

#[test]
fn a_campaign_is_not_resumed_on_threads_that_were_confined_since() {
    let Some(taskset) = tool("taskset") else { return };
    let folder = TempDir::new().unwrap();
    let store = folder.path().join("pinwise.db");
    let target = Target::start("intadd", folder.path());
    let before = target.affinities();
    let mut place = Program::start(target.place("60s").stdout(Stdio::null()).stderr(Stdio::null()));
    wait_until(PATIENCE, "some measurements", || recorded(&store).first().is_some_and(|n| *n > 5));
    place.0.kill().unwrap();
    place.0.wait().unwrap();
    wait_until(PATIENCE, "the original affinities", || target.affinities() == before);
    let known = recorded(&store);

    // The last thread is one of the pipeline; the others keep their CPUs, so the machine is the
    // same.
    let thread = *before.keys().next_back().unwrap();
    let cpu = before[&thread].split(['-', ',']).next().unwrap();
    assert!(
        Command::new(taskset)
            .args(["-pc", cpu, &thread.to_string()])
            .output()
            .unwrap()
            .status
            .success()
    );
    let words = ["campaign", "resume", "1", "--store"].map(Path::new);
    let output = pinwise(words.into_iter().chain([store.as_path()]));
    assert_eq!(output.status.code(), Some(1));
    let complaints = complaints(&output);
    assert_eq!(complaints.len(), 1, "{complaints:?}");
    // It would keep to that CPU.
    let told = format!(" then, and on {cpu} now (restore: ");
    assert!(
        complaints[0].contains(&told) && complaints[0].contains("start a new one: "),
        "{complaints:?}"
    );
    assert_eq!(recorded(&store), known, "nothing was measured");
}

#[test]
fn disturbances_from_before_a_kill_stay_with_the_answer() {
    let folder = TempDir::new().unwrap();
    let store = folder.path().join("pinwise.db");
    let target = Target::start("intadd", folder.path());
    let contexts = std::thread::available_parallelism().unwrap().get();
    let others: Vec<Program> = (0..2 * contexts)
        .map(|_| {
            Program::start(Command::new("sh").args(["-c", "ulimit -t 300; while :; do :; done"]))
        })
        .collect();
    let mut place = Program::start(target.place("100").stdout(Stdio::null()).stderr(Stdio::null()));
    let met = || {
        let found = store.exists().then(|| pinwise_campaign::Store::open(&store).ok()).flatten();
        found
            .and_then(|store| store.disturbances(pinwise_campaign::CampaignId(1)).ok())
            .unwrap_or_default()
    };
    // A second of every context: more than a twentieth of the whole campaign, so a note reports it.
    let crowded = || {
        met()
            .first()
            .and_then(|part| part.others)
            .is_some_and(|others| others.taken > contexts as f64)
    };
    wait_until(PATIENCE, "what others took", crowded);
    place.0.kill().unwrap();
    place.0.wait().unwrap();
    drop(others);
    let on_store =
        |words: &[&str]| pinwise(words.iter().map(Path::new).chain([Path::new("--store"), &store]));
    let told_in = |answer: &Value, what: &str| {
        answer["notes"]
            .as_array()
            .unwrap()
            .iter()
            .any(|note| note["text"].as_str().unwrap().contains(what))
    };
    let shown = json(&on_store(&["campaign", "show", "1", "--json"]));
    assert!(told_in(&shown, "The machine was busy: "), "of one that was killed: {shown:#}");

    let answer = json(&on_store(&["campaign", "resume", "1", "--json"]));
    assert_eq!(met().len(), 2);
    let parts = met().into_iter().filter_map(|part| part.others);
    let [taken, of] =
        parts.fold([0.0, 0.0], |[taken, of], part| [taken + part.taken, of + part.of]);
    let told = format!("other programs took {} of", pinwise_present::figures::percent(taken / of));
    assert!(told_in(&answer, &told), "{told}: {answer:#}");
    let page = folder.path().join("page.html");
    json(&on_store(&["report", "1", "--json", "-o", page.to_str().unwrap()]));
    let text = on_store(&["campaign", "show", "1"]);
    assert!(String::from_utf8_lossy(&text.stdout).replace('\n', " ").contains(&told));
    assert!(fs::read_to_string(page).unwrap().contains(&told));
    let Some(plan) = answer["plan"].as_str() else { panic!("no plan: {answer:#}") };
    assert!(fs::read_to_string(plan).unwrap().contains(&told));
}

/// Makes a store of what `sqlite3` dumped of one.
fn restored(sqlite: &Path, store: &Path, text: &str) {
    let mut command = Command::new(sqlite);
    let mut sqlite =
        Program(command.arg("-bail").arg(store).stdin(Stdio::piped()).spawn().unwrap());
    sqlite.0.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(sqlite.ended(PATIENCE).success());
}

/// Nothing is asked of the machine: all of it was simulated.
#[test]
fn a_store_of_the_version_before_is_listed_reported_and_resumed() {
    let Some(sqlite) = tool("sqlite3") else { return };
    let folder = TempDir::new().unwrap();
    let store = folder.path().join("pinwise.db");
    restored(sqlite.as_ref(), &store, include_str!("stores/second.sql"));
    let on_store =
        |words: &[&str]| pinwise(words.iter().map(Path::new).chain([Path::new("--store"), &store]));
    let listed = json(&on_store(&["campaign", "list", "--json"]));
    let kinds: Vec<(&Value, &Value)> = listed["campaigns"]
        .as_array()
        .unwrap()
        .iter()
        .map(|campaign| (&campaign["id"], &campaign["kind"]))
        .collect();
    let known = [(1, "place"), (5, "compare"), (6, "select"), (7, "place")]
        .map(|(id, kind)| (Value::from(id), Value::from(kind)));
    assert_eq!(kinds, known.iter().map(|(id, kind)| (id, kind)).collect::<Vec<_>>());
    for id in ["1", "5", "6", "7"] {
        json(&on_store(&["campaign", "show", id, "--json"]));
        let page = folder.path().join(format!("{id}.html"));
        json(&on_store(&["report", id, "--json", "-o", page.to_str().unwrap()]));
        assert!(fs::read_to_string(page).unwrap().contains("</html>"), "{id}");
    }
    let before = json(&on_store(&["campaign", "show", "7", "--json"]));
    assert_eq!((&before["measurements"], &before["simulated"]), (&30.into(), &true.into()));
    let resumed = json(&on_store(&["campaign", "resume", "7", "--trust", "--json"]));
    assert!(resumed["measurements"].as_u64() > Some(30), "{resumed}");
    assert_eq!(resumed["simulated"], true);
    let listed = json(&on_store(&["campaign", "list", "--json"]));
    assert_eq!(listed["campaigns"][3]["state"], "finished");
}

/// The only unfinished campaigns in these stores are placements. So others lose their answer and
/// their last records first.
#[test]
fn an_unfinished_campaign_of_any_kind_of_the_versions_before_is_resumed() {
    let Some(sqlite) = tool("sqlite3") else { return };
    for (text, id, kept) in [
        (include_str!("stores/second.sql"), "5", 20),
        (include_str!("stores/second.sql"), "6", 20),
        (include_str!("stores/third.sql"), "2", 0),
    ] {
        let folder = TempDir::new().unwrap();
        let store = folder.path().join("pinwise.db");
        restored(sqlite.as_ref(), &store, text);
        let on_store = |verb: &str| {
            let words = ["campaign", verb, id, "--json"].map(Path::new);
            let trust = (verb == "resume").then_some(Path::new("--trust"));
            let named = [Path::new("--store"), &store];
            json(&pinwise(words.into_iter().chain(trust).chain(named)))
        };
        let before = on_store("show");
        let cut = format!(
            "UPDATE campaign SET state = 'stopped', conclusion = NULL WHERE id = {id};
             DELETE FROM record WHERE campaign = {id} AND number >= {kept};"
        );
        restored(sqlite.as_ref(), &store, &cut);
        assert_eq!(on_store("resume"), before, "the model repeats what it measured");
        let listed = pinwise_campaign::Store::open(&store).unwrap().list().unwrap();
        let resumed = listed.campaigns.iter().find(|info| info.id.0.to_string() == id).unwrap();
        assert_eq!(resumed.state, pinwise_campaign::CampaignState::Finished);
        assert!(resumed.records > kept);
    }
}

/// Its six records begin with all three programs alone. This version mixes these with pairs.
#[test]
fn a_campaign_of_pairs_that_an_earlier_version_began_is_shown_and_not_resumed() {
    let Some(sqlite) = tool("sqlite3") else { return };
    let folder = TempDir::new().unwrap();
    let store = folder.path().join("pinwise.db");
    restored(sqlite.as_ref(), &store, include_str!("stores/fourth.sql"));
    let on_store = |words: &[&str]| {
        let words = words.iter().map(Path::new);
        json(&pinwise(words.chain([Path::new("--json"), Path::new("--store"), &store])))
    };
    assert_eq!(on_store(&["campaign", "list"])["campaigns"][0]["state"], "stopped");
    let page = folder.path().join("page.html");
    on_store(&["report", "1", "-o", page.to_str().unwrap()]);
    assert_eq!(on_store(&["campaign", "show", "1"])["measurements"], 6);
    let words = ["campaign", "resume", "1", "--trust", "--store"].map(Path::new);
    let resumed = pinwise(words.into_iter().chain([&*store]));
    let said = String::from_utf8_lossy(&resumed.stderr);
    assert_eq!(resumed.status.code(), Some(1), "{said}");
    assert!(said.contains("start a new campaign, or use the version that began it"), "{said}");
}

/// The version before campaigns said whether they are simulated.
#[test]
fn a_store_of_format_3_says_what_is_simulated_before_and_after_it_is_upgraded() {
    let Some(sqlite) = tool("sqlite3") else { return };
    let folder = TempDir::new().unwrap();
    let store = folder.path().join("pinwise.db");
    restored(sqlite.as_ref(), &store, include_str!("stores/third.sql"));
    let on_store =
        |words: &[&str]| pinwise(words.iter().map(Path::new).chain([Path::new("--store"), &store]));
    let copy = folder.path().join("pinwise.db.format-3");
    let look = || {
        let [place, threads] =
            ["1", "2"].map(|id| json(&on_store(&["campaign", "export", id, "--format", "json"])));
        for campaign in [&place, &threads, &threads["parts"][0]] {
            assert_eq!(campaign["campaign"]["new"]["simulated"], true, "{campaign}");
        }
        for id in ["1", "2", "3"] {
            json(&on_store(&["campaign", "show", id, "--json"]));
            let page = folder.path().join(format!("{id}.html"));
            json(&on_store(&["report", id, "--json", "-o", page.to_str().unwrap()]));
        }
        let shown = on_store(&["campaign", "show", "1"]);
        let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
        assert!(shown.contains("Simulated: numbers are those of the model"), "{shown}");
    };
    look();
    assert!(!copy.exists(), "nothing was written");
    let resumed = json(&on_store(&["campaign", "resume", "1", "--trust", "--json"]));
    assert!(resumed["measurements"].as_u64() > Some(30), "{resumed}");
    assert_eq!(resumed["simulated"], true);
    assert!(copy.exists());
    look();
}

#[test]
fn campaigns_of_the_first_version_are_looked_at_and_what_cannot_be_read_says_what_to_do() {
    let Some(sqlite) = tool("sqlite3") else { return };
    let folder = TempDir::new().unwrap();
    let store = folder.path().join("pinwise.db");
    let sql = |text: &str| restored(sqlite.as_ref(), &store, text);
    sql(include_str!("stores/first.sql"));
    let on_store =
        |words: &[&str]| pinwise(words.iter().map(Path::new).chain([Path::new("--store"), &store]));
    let listed = json(&on_store(&["campaign", "list", "--json"]));
    let made = |index: usize| {
        (
            listed["campaigns"][index]["state"].clone(),
            listed["campaigns"][index]["measurements"].clone(),
        )
    };
    assert_eq!((made(0), made(1)), (("finished".into(), 63.into()), ("stopped".into(), 20.into())));
    for words in [&["campaign", "show", "1"][..], &["campaign", "resume", "1", "--trust"]] {
        let answer = json(&on_store(&[words, &["--json"]].concat()));
        assert_eq!(
            (&answer["verdict"]["kind"], &answer["best"]["n"], &answer["notes"]),
            (&"pin".into(), &6.into(), &Value::Array(vec![]))
        );
        assert_eq!(answer["simulated"], false);
    }
    let page = folder.path().join("page.html");
    json(&on_store(&["report", "1", "--json", "-o", page.to_str().unwrap()]));
    assert!(fs::read_to_string(page).unwrap().contains("2.33 M packets/s"));
    assert_eq!(
        json(&on_store(&["campaign", "export", "2", "--format", "json"]))["records"]
            .as_array()
            .unwrap()
            .len(),
        20
    );
    assert_eq!(json(&on_store(&["campaign", "show", "2", "--json"]))["measurements"], 20);

    let line = |words: &[&str]| {
        let output = on_store(words);
        assert_eq!(output.status.code(), Some(1), "{words:?}: {output:?}");
        let complaints = complaints(&output);
        assert_eq!(complaints.len(), 1, "{complaints:?}");
        complaints[0].clone()
    };
    // Its workload is one that this program runs, in the words of before.
    let other = line(&["campaign", "resume", "2", "--trust"]);
    assert!(
        other.contains("the machine has changed: ") && other.contains("start a new one: "),
        "{other}"
    );
    sql("UPDATE campaign SET question = '{}'; UPDATE campaign SET conclusion = '{}' WHERE id = 1;");
    for (words, what) in [
        (&["show", "1"][..], "its answer"),
        (&["show", "2"], "its question"),
        (&["resume", "2", "--trust"], "its question"),
    ] {
        let told = line(&[&["campaign"], words].concat());
        assert!(
            told.contains(&format!("another version of pinwise wrote {what} (missing field")),
            "{told}"
        );
        assert!(
            told.contains("pinwise campaign export ")
                && told.contains("measure again: pinwise place"),
            "{told}"
        );
    }
    // What cannot be read at all is listed as that, and can be deleted.
    sql("UPDATE campaign SET workload = '{}' WHERE id = 2");
    let listed = json(&on_store(&["campaign", "list", "--json"]));
    assert_eq!(
        (&listed["campaigns"][0]["id"], &listed["unreadable"][0]["id"]),
        (&1.into(), &2.into())
    );
    let unreadable = &listed["unreadable"][0];
    assert_eq!(unreadable["kind"], "other_version");
    assert!(unreadable["error"].as_str().unwrap().contains("missing field"), "{unreadable}");
    assert!(unreadable["reason"].as_str().unwrap().contains("that this version cannot read"));
    let table = on_store(&["campaign", "list"]);
    assert!(table.status.success(), "{table:?}");
    assert!(String::from_utf8_lossy(&table.stdout).contains("unreadable"), "{table:?}");
    let copy = folder.path().join("pinwise.db.format-1");
    assert!(!copy.exists(), "nothing was written");
    assert!(on_store(&["campaign", "delete", "2"]).status.success());
    // Where the store itself cannot be read, nothing is deleted.
    sql("ALTER TABLE campaign RENAME COLUMN seed TO sown");
    assert!(!on_store(&["campaign", "delete", "1"]).status.success());
    sql("ALTER TABLE campaign RENAME COLUMN sown TO seed");
    assert!(copy.exists());
    let listed = json(&on_store(&["campaign", "list", "--json"]));
    assert_eq!(listed["unreadable"], Value::Array(vec![]));
    assert_eq!(listed["campaigns"][0]["id"], 1);
}

#[test]
fn an_answer_is_printed_before_its_plan_cannot_be_written() {
    let folder = TempDir::new().unwrap();
    let store = folder.path().join("pinwise.db");
    let words = "place --machine ultrasparc-t2 --workload intadd:1 --seed 3 --cycles 10000 \
        --starts 2 --budget 60 --cpus 0-7 --plan /dev/full --store";
    let output = pinwise(words.split_whitespace().map(Path::new).chain([store.as_path()]));
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.starts_with(b"Pin: "), "{output:?}");
    let complaints = complaints(&output);
    let last = complaints.last().unwrap();
    let expected = "pinwise: the answer is above, its plan is not written: cannot write /dev/full";
    assert!(last.starts_with(expected), "{complaints:?}");
}

#[test]
fn an_answer_that_stdout_does_not_take_is_in_the_store() {
    let folder = TempDir::new().unwrap();
    let store = folder.path().join("pinwise.db");
    let words =
        ["--cpus", "0-7", "--cycles", "10000", "--starts", "1", "--budget", "30", "--store"];
    let mut place = Command::new(PINWISE);
    place
        .args(["place", "--machine", "ultrasparc-t2", "--workload", "intadd:1"])
        .args(words)
        .arg(&store);
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = place
        .stdin(Stdio::null())
        .stdout(full)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
        .wait_with_output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(1));
    let complaints = complaints(&output);
    let last = complaints.last().unwrap();
    assert!(last.starts_with("pinwise: cannot write to stdout: "), "{complaints:?}");
    assert_eq!(recorded(&store), [30]);
    let shown = Command::new(PINWISE)
        .args(["campaign", "show", "1", "--store"])
        .arg(&store)
        .output()
        .unwrap();
    assert!(shown.status.success() && shown.stdout.starts_with(b"Undecided: "), "{shown:?}");
}
