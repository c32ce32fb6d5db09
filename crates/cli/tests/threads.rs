//! `pinwise threads` on real programs: compressors, an OpenMP program, and programs that cannot be
//! probed. They check that it measures, answers within the limits given, ends what it started, and
//! reports failures in one line. See docs/lab/benchmarks.md for how good the answers are.

mod support;

use serde_json::Value;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use support::source::{OPENMP, compiled};
use support::{PATIENCE, PINWISE, Program, affinities, json, pinwise, tool, wait_until};
use tempfile::TempDir;

/// Text that compresses like text.
fn data(folder: &TempDir, bytes: usize) -> PathBuf {
    let file = folder.path().join("data");
    let mut random = pinwise_topology::Random::new(1);
    let text: Vec<u8> =
        (0..bytes).map(|_| b"aabbccdd etaoin shrdlu"[random.below(22) as usize]).collect();
    fs::write(&file, text).unwrap();
    file
}

/// The answer on a command, with numbers of threads from 1 to 5. Its budget is short: fresh windows
/// that decide nothing use all of it.
fn threads(options: &[&str], command: &[&OsStr]) -> Value {
    let budget: &[&str] = if options.contains(&"--budget") { &[] } else { &["--budget", "20s"] };
    let words = ["threads", "--json", "--min", "1", "--max", "5"]
        .iter()
        .chain(budget)
        .chain(options)
        .chain(&["--"])
        .map(OsStr::new);
    json(&pinwise(words.chain(command.iter().copied())))
}

/// What every answer must have.
fn check(answer: &Value, measure: &str) {
    let probes = answer["probes"].as_array().unwrap();
    assert!(probes.len() >= 2, "{answer:#}");
    for probe in probes {
        let number =
            |field: &str| probe[field].as_f64().unwrap_or_else(|| panic!("{field} in {probe:#}"));
        assert!(
            (0.0..=1.0).contains(&number("lock")) && (0.0..=1.0).contains(&number("cpu_util")),
            "{probe:#}"
        );
        assert!(
            number("vcx_rate") >= 0.0 && number("migr_rate") >= 0.0 && number("performance") > 0.0,
            "{probe:#}"
        );
        assert_eq!(probe["measure"], measure, "{probe:#}");
    }
    let parameter = answer["parameter"].as_u64().unwrap();
    assert!((1..=5).contains(&parameter), "{answer:#}");
    assert!(probes.iter().any(|probe| probe["parameter"] == parameter), "{answer:#}");
    assert!(
        answer["stopped_because"][0]["kind"].is_string()
            && answer["search_seconds"].as_f64().unwrap() > 0.0,
        "{answer:#}"
    );
    assert!(answer["monitor"]["layer"].is_string(), "{answer:#}");
}

/// More threads for a larger n, as far as was probed.
fn follows(answer: &Value) {
    let probes = answer["probes"].as_array().unwrap();
    let of =
        |field: &str| probes.iter().map(|probe| probe[field].as_u64().unwrap()).collect::<Vec<_>>();
    let mut pairs: Vec<(u64, u64)> = of("parameter").into_iter().zip(of("threads")).collect();
    pairs.sort_unstable();
    assert!(pairs.first().unwrap().1 < pairs.last().unwrap().1, "{pairs:?}");
}

#[test]
fn compressors_of_all_kinds_are_probed() {
    let folder = TempDir::new().unwrap();
    let file = data(&folder, 12 << 20);
    let programs: [(&str, &[&str]); 4] = [
        ("pigz", &["-p", "{n}", "-k", "-c"]),
        ("pbzip2", &["-p{n}", "-k", "-c"]),
        ("xz", &["-0", "-T{n}", "--block-size=1MiB", "-k", "-c"]),
        ("zstd", &["-9", "-q", "-T{n}", "-B1M", "-c"]),
    ];
    for (name, arguments) in programs {
        let Some(program) = tool(name) else { continue };
        let words = arguments.iter().map(OsStr::new);
        let command: Vec<&OsStr> =
            std::iter::once(program.as_os_str()).chain(words).chain([file.as_os_str()]).collect();
        let answer = threads(&["--method", "reinforcer", "--per-run"], &command);
        check(&answer, "runs");
        assert_eq!(answer["unit"]["name"], "s");
        follows(&answer);
    }
}

#[test]
fn a_survey_measures_short_programs_as_a_whole_and_says_how_sure_it_is() {
    let Some(pigz) = tool("pigz") else { return };
    let folder = TempDir::new().unwrap();
    let file = data(&folder, 4 << 20);
    let arguments = ["-p", "{n}", "-k", "-c"].map(OsStr::new);
    let command: Vec<&OsStr> = [&[pigz.as_os_str()], &arguments[..], &[file.as_os_str()]].concat();
    let answer = threads(&["--budget", "20s"], &command);
    check(&answer, "runs");
    assert_eq!(answer["method"], "survey");
    let (estimate, verdict) = (&answer["estimate"], &answer["verdict"]);
    // What is announced is one of the numbers that fresh windows compared.
    let compared = [&verdict["n"], &verdict["default"]];
    assert!(compared.contains(&&answer["parameter"]), "{answer:#}");
    assert_eq!(answer["notes"][0]["kind"], "short_runs", "{answer:#}");
    if estimate.is_null() {
        // Beside other programs the probes do not say how sure they are.
        return assert!(answer["others"].as_f64().is_some_and(|others| others >= 0.05));
    }
    assert!(compared.contains(&&estimate["threads"]), "{answer:#}");
    let (low, high) =
        (estimate["between"][0].as_u64().unwrap(), estimate["between"][1].as_u64().unwrap());
    assert!((1..=5).contains(&low) && low <= high && high <= 5, "{answer:#}");
    assert!(
        estimate["gain"]["low"].as_f64().unwrap() <= estimate["gain"]["high"].as_f64().unwrap(),
        "{answer:#}"
    );
}

#[test]
fn a_sweep_tries_every_number_and_knows_its_loss() {
    let folder = TempDir::new().unwrap();
    let Some(program) = compiled(&folder, OPENMP) else { return };
    let options = [
        "--method",
        "sweep",
        "--rounds",
        "2",
        "--env",
        "OMP_NUM_THREADS",
        "--metric",
        r"stdout:round (\d+)",
        "--counter",
    ];
    let answer = threads(&options, &[program.as_os_str()]);
    check(&answer, "metric");
    assert_eq!(answer["probes"].as_array().unwrap().len(), 10);
    let stopped = &answer["stopped_because"][0];
    assert_eq!((&stopped["kind"], &stopped["rounds"]), (&"all_tried".into(), &2.into()));
    assert!(answer["loss"].as_f64().is_some_and(|loss| (0.0..=0.01).contains(&loss)), "{answer:#}");
}

#[test]
fn an_openmp_program_takes_its_number_from_the_environment_and_is_measured_by_what_it_prints() {
    let folder = TempDir::new().unwrap();
    let Some(program) = compiled(&folder, OPENMP) else { return };
    let options = [
        "--method",
        "reinforcer",
        "--env",
        "OMP_NUM_THREADS",
        "--metric",
        r"stdout:round (\d+)",
        "--counter",
    ];
    let answer = threads(&options, &[program.as_os_str()]);
    check(&answer, "metric");
    follows(&answer);
}

#[test]
fn without_a_metric_the_published_search_uses_counters_and_shows_them() {
    let folder = TempDir::new().unwrap();
    let Some(program) = compiled(&folder, OPENMP) else { return };
    let store = folder.path().join("s.db");
    let search = ["threads", "--method", "reinforcer", "--max", "3", "--verbose", "--store"];
    let output = pinwise(search.map(OsStr::new).into_iter().chain([
        store.as_os_str(),
        OsStr::new("--env"),
        OsStr::new("OMP_NUM_THREADS"),
        OsStr::new("--"),
        program.as_os_str(),
    ]));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let first = "By the probes, not confirmed: n = ";
    assert!(text.starts_with(first), "the answer comes first: {text}");
    for word in ["CPU_UTIL", "critical", "  monitor ", "waits for CPU"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    let shown = pinwise(["campaign", "show", "1", "--store", store.to_str().unwrap()]);
    let text = String::from_utf8_lossy(&shown.stdout);
    assert!(text.starts_with(first) && !text.contains("  monitor "), "{text}");
}

/// A service that progresses by the clock, 100 a second. `given` is the numbers that the file
/// `sets` gave it. It is `step` times as fast while the condition on them holds. What others do
/// does not slow it, and takes no CPU time from it where it may run before them. It computes for a
/// fifth of the time. A millisecond that it waits is then a small share of what it wants.
const SERVICE: &str = r"
import os, time
try:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
except OSError:
    pass
log = open('count', 'w')
count, before = 0.0, time.monotonic()
while True:
    given = open('sets').read().split()
    now = time.monotonic()
    count, before = count + (now - before) * (100 * STEP if WHEN else 100), now
    print(int(count), flush=True, file=log)
    while time.monotonic() < now + 0.002:
        pass
    time.sleep(0.008)
";

/// Searches the number of a [`SERVICE`]. Returns the answer and the numbers that it was given.
/// Nothing where there is no Python.
fn number_of_a_service(step: u32, when: &str, options: &[&str]) -> Option<(Value, Vec<String>)> {
    let python = tool("python3")?;
    let folder = TempDir::new().unwrap();
    let sets = folder.path().join("sets");
    fs::write(&sets, "").unwrap();
    let script = SERVICE.replace("STEP", &step.to_string()).replace("WHEN", when);
    let mut service = Command::new(python);
    let running = Program::start(service.args(["-c", &script]).current_dir(folder.path()));
    let count = folder.path().join("count");
    wait_until(PATIENCE, "its first count", || count.exists());
    let (pid, metric) = (running.pid().to_string(), format!(r"file:{}:(\d+)", count.display()));
    let set = format!("cmd:echo {{n}} >>{}", sets.display());
    let budget: &[&str] = if options.contains(&"--budget") { &[] } else { &["--budget", "20s"] };
    let words = ["threads", "--json", "--max", "2", "--set", &set];
    let words = words.into_iter().chain(["--metric", &metric, "--counter", "--pid", &pid]);
    let output = pinwise(words.chain(budget.iter().chain(options).copied()));
    let given = fs::read_to_string(sets).unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let answer = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}"));
    Some((answer, given.lines().map(str::to_owned).collect()))
}

#[test]
fn a_program_that_comes_into_another_phase_while_it_is_searched_is_named() {
    // Three times as fast once it has been given 1, the second number.
    let search = || {
        number_of_a_service(3, "'1' in given", &["--window", "1s", "--default", "2"])
            .map(|(answer, _)| answer)
    };
    let Some(mut answer) = search() else { return };
    // A probe that others starved shows no change. There is only one on each side of it.
    for _ in 0..2 {
        if answer["others"].as_f64().is_some_and(|others| others > 0.1) && answer["shift"].is_null()
        {
            answer = search().unwrap();
        }
    }
    assert_eq!(answer["shift"]["sign"], "progress", "{answer:#}");
    // If 1 is probed twice between probes of 2, noise decides on which side of the first the cut
    // is.
    assert!(answer["shift"]["at"].as_u64().is_some_and(|at| (1..=2).contains(&at)), "{answer:#}");
    assert!(answer["shift"]["change"].as_f64().is_some_and(|change| change > 1.0), "{answer:#}");
    let notes = answer["notes"].as_array().unwrap();
    assert!(notes.iter().any(|note| note["kind"] == "shifted"), "{answer:#}");
}

#[test]
fn progress_that_jumps_ends_the_search_and_the_service_has_its_number_back() {
    let found = number_of_a_service(100, "'1' in given", &["--default", "7"]);
    let Some((answer, given)) = found else { return };
    // Where the closing probe shows it, there is an estimate next to the reason.
    let reason = answer["error"].as_str().or(answer["verdict"]["text"].as_str());
    let reason = reason.unwrap_or_default();
    assert!(reason.contains("is steady"), "{answer:#}");
    assert_eq!(given.last().map(String::as_str), Some("7"), "{given:?}");
}

#[test]
fn the_load_of_others_beside_a_service_is_reported() {
    let busy = |_| Program::start(Command::new("sh").args(["-c", "while :; do :; done"]));
    let cpus = std::thread::available_parallelism().unwrap().get();
    let others: Vec<Program> = (0..cpus).map(busy).collect();
    let found = number_of_a_service(1, "True", &["--default", "1", "--budget", "5s"]);
    drop(others);
    let Some((answer, _)) = found else { return };
    let taken = answer["verdict"]["others"].as_f64();
    assert!(taken.is_some_and(|taken| taken > 0.05), "{answer:#}");
    // The probes met the load, too.
    assert!(answer["others"].is_number() && answer["estimate"].is_null(), "{answer:#}");
}

#[test]
fn a_number_below_the_floor_is_given_up_at_once() {
    let options = ["--default", "1", "--floor", "50%"];
    let found = number_of_a_service(50, "given[-1:] != ['2']", &options);
    let Some((answer, given)) = found else { return };
    let notes = answer["notes"].as_array().unwrap();
    assert!(notes.iter().any(|note| note["kind"] == "below_floor" && note["n"] == 2), "{answer:#}");
    assert_eq!(answer["parameter"], 1, "{answer:#}");
    let after_two = given.windows(2).filter(|pair| pair[0] == "2");
    assert!(after_two.clone().count() > 0 && after_two.clone().all(|pair| pair[1] == "1"));
    assert_eq!(given.last().map(String::as_str), Some("1"), "{given:?}");
}

/// A command that gives a service its number, slowly.
const SLOWLY: &str = "cmd:echo >> begun; sleep 0.3; echo {n} >> sets";

/// How a search ends.
enum Ending<'a> {
    Answer,
    BadMetric,
    /// Once its command has begun.
    Signal(&'a str),
}

/// A search that gives a service its number by the command `set`. Returns the numbers that the
/// service was given, and what was said.
fn numbers_given(set: &str, ending: &Ending<'_>, own: &[&str]) -> (String, String) {
    let folder = TempDir::new().unwrap();
    let service = Program::start(Command::new("sh").args(["-c", "while :; do :; done"]));
    let (pid, path) = (service.pid().to_string(), |name: &str| folder.path().join(name));
    let works = format!("cmd:cut -d' ' -f14 /proc/{pid}/stat");
    let metric = if matches!(ending, Ending::BadMetric) { "cmd:echo moods" } else { &works };
    let words = ["threads", "--pid", &pid, "--set", set, "--metric", metric, "--counter"];
    let mut search = Command::new(PINWISE);
    search.args(words).args(own).arg("--store").arg(path("pinwise.db"));
    search.current_dir(folder.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut search = Program::start(&mut search);
    let read = |name: &str| fs::read_to_string(path(name)).unwrap_or_default();
    if let Ending::Signal(signal) = ending {
        wait_until(PATIENCE, "the first command", || !read("begun").is_empty());
        let sent = Command::new("kill").args([*signal, &search.pid().to_string()]).status();
        assert!(sent.unwrap().success());
    }
    search.ended(PATIENCE);
    let said = std::io::read_to_string(search.0.stderr.take().unwrap()).unwrap()
        + &std::io::read_to_string(search.0.stdout.take().unwrap()).unwrap();
    // The process is free for another search once the guardian of a killed one has ended.
    wait_until(PATIENCE, "the end of the guardian", || {
        let words = ["place", "--pid", &pid, "--metric", &works, "--budget", "2s"];
        let place =
            pinwise(words.into_iter().chain(["--store", path("other.db").to_str().unwrap()]));
        !String::from_utf8_lossy(&place.stderr).contains("another pinwise")
    });
    (read("sets"), said)
}

#[test]
fn a_service_has_its_own_number_back_however_the_search_is_ended() {
    for signal in ["-INT", "-TERM", "-HUP", "-KILL"] {
        let (given, said) =
            numbers_given(SLOWLY, &Ending::Signal(signal), &["--max", "3", "--default", "7"]);
        let lines: Vec<&str> = given.lines().collect();
        assert_eq!(lines.iter().filter(|&&n| n == "7").count(), 1, "{signal}: {given}");
        assert_eq!(lines.last(), Some(&"7"), "{signal}: {given} {said}");
    }
    let (given, said) =
        numbers_given(SLOWLY, &Ending::BadMetric, &["--max", "3", "--default", "7"]);
    assert!(given.ends_with("\n7\n"), "{given}");
    assert!(said.contains("n = 7 is set now\n"), "{said}");
}

#[test]
fn a_service_whose_own_number_is_unknown_is_not_changed() {
    let folder = TempDir::new().unwrap();
    let (sets, store) = (folder.path().join("sets"), folder.path().join("s.db"));
    let service = Program::start(Command::new("sh").args(["-c", "while :; do :; done"]));
    let (pid, set) = (service.pid().to_string(), format!("cmd:echo {{n}} >> {}", sets.display()));
    for command in ["threads", "tune"] {
        let words = [command, "--set", &set, "--metric", "io:wchar", "--pid", &pid, "--store"];
        let output = pinwise(words.into_iter().chain([store.to_str().unwrap()]));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(
            said.contains("search with --default N") && said.trim_end().lines().count() == 1,
            "{said}"
        );
        assert!(!sets.exists(), "{command}");
    }
}

#[test]
fn a_service_that_refuses_its_first_number_is_offered_its_own() {
    let refusing = "cmd:echo {n} >> sets; exit 1";
    let (given, said) =
        numbers_given(refusing, &Ending::BadMetric, &["--max", "3", "--default", "7"]);
    assert!(given.lines().count() > 1 && given.ends_with("\n7\n"), "{given} {said}");
    assert!(said.contains("did not get its number back"), "{said}");
}

#[test]
fn a_number_that_no_fresh_windows_confirm_does_not_stay() {
    let works = ["--method", "reinforcer", "--max", "2", "--default", "7"];
    let (given, said) = numbers_given("cmd:echo {n} >> sets", &Ending::Answer, &works);
    let lines: Vec<&str> = given.lines().collect();
    assert!(lines.len() > 1 && lines.last() == Some(&"7"), "{given} {said}");
    assert!(said.contains("n = 7 is set now"), "{said}");
    assert!(said.contains("so it is not set; set it with: echo "), "{said}");
}

#[test]
fn the_probes_of_a_search_that_fails_are_printed() {
    let folder = TempDir::new().unwrap();
    let flag = folder.path().join("once");
    // The second start fails, whichever number it has.
    let script = format!(
        "[ -e {0} ] && exit 3; touch {0}; while :; do :; done & while :; do :; done",
        flag.display()
    );
    let words = [
        "threads",
        "--json",
        "--method",
        "reinforcer",
        "--max",
        "3",
        "--threads-per-n",
        "1",
        "--",
        "sh",
        "-c",
    ];
    let output = pinwise(words.into_iter().chain([script.as_str(), "{n}"]));
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let left: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(left["probes"].as_array().unwrap().len(), 1, "{left:#}");
    assert!(left["error"].as_str().unwrap().contains("exit status: 3"), "{left:#}");
}

#[test]
fn numbers_with_which_a_program_makes_no_more_threads_are_no_answer() {
    // A second process where n is not 1, and never a third.
    let script = "[ $0 -gt 1 ] && { while :; do :; done & }; while :; do :; done";
    let command = ["sh", "-c", script, "{n}"].map(OsStr::new);
    for method in ["sweep", "survey"] {
        let answer = threads(&["--method", method, "--window", "50ms", "--budget", "8s"], &command);
        let notes = answer["notes"].to_string();
        // Beside other programs the speeds of two numbers may differ, and each is a number.
        if notes.contains("count as n = 2") {
            assert!(answer["parameter"].as_u64().is_some_and(|n| n <= 2), "{answer:#}");
            let most = &answer["estimate"]["between"][1];
            assert!(most.is_null() || most.as_u64().is_some_and(|n| n <= 2), "{answer:#}");
        } else {
            assert!(!notes.contains("made at most"), "{answer:#}");
        }
    }
}

#[test]
fn what_no_fresh_windows_compared_is_not_claimed() {
    let folder = TempDir::new().unwrap();
    let store = folder.path().join("s.db");
    let search = "threads --machine opteron-24 --workload facesim --min 8 --max 24 --step 8 \
                  --method sweep --rounds 2 --probe 20ms --store";
    let text = |more: &[&str]| {
        let words = search.split(' ').chain([store.to_str().unwrap()]);
        let output = pinwise(words.chain(more.iter().copied()));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let [plain, verbose] = [text(&[]), text(&["--verbose"])];
    assert!(plain.starts_with("Use n = 16") && !plain.contains("speed-up"), "{plain}");
    assert!(verbose.contains("by the probes, not confirmed: n = 16 ("), "{verbose}");
}

/// A command that ends soon and prints a number at its end: a hundred times n.
const RESULT: &str = r#"sleep 0.05; echo "ops $((100 * $0))""#;

#[test]
fn the_last_value_of_each_run_is_measured_by_either_name_of_the_option() {
    let command = ["sh", "-c", RESULT, "{n}"].map(OsStr::new);
    for option in ["--per-run", "--whole-run"] {
        let options = [option, "--metric", r"stdout:ops (\d+)", "--budget", "4s", "--default", "2"];
        let answer = threads(&options, &command);
        for probe in answer["probes"].as_array().unwrap() {
            let ops = 100.0 * probe["parameter"].as_f64().unwrap();
            assert_eq!(probe["performance"], ops, "{answer:#}");
            assert_eq!(probe["measure"], "metric", "{answer:#}");
        }
        assert_eq!(answer["unit"]["name"], "ops", "{answer:#}");
    }
}

/// One process beside the first does the work of every n, the faster the greater n is.
#[test]
fn a_number_that_makes_a_run_faster_by_the_same_threads_counts_by_itself() {
    let command = ["sh", "-c", "sleep 0.$((8 / $0)); :", "{n}"].map(OsStr::new);
    for options in [&["--method", "sweep", "--rounds", "1"][..], &[]] {
        let answer = threads(&[&["--per-run", "--budget", "5s"], options].concat(), &command);
        let seen = answer["probes"].as_array().unwrap();
        assert!(seen.iter().all(|probe| probe["threads"].as_u64() <= Some(2)), "{answer:#}");
        assert!(!answer["notes"].to_string().contains("made at most"), "{answer:#}");
        assert!(!answer["verdict"].is_null(), "fresh windows decide: {answer:#}");
    }
}

/// The one line of a search that must fail with `code`.
fn refused(code: i32, words: &[&str]) -> String {
    let output = pinwise(["threads", "--method", "reinforcer"].iter().chain(words));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{text}");
    assert!(text.starts_with("pinwise: ") && text.trim_end().lines().count() == 1, "{text}");
    text
}

#[test]
fn programs_that_cannot_be_probed_are_named_with_the_reason() {
    let workers = refused(1, &["--limit", "300ms", "--min", "2", "--", "sleep", "30", "{n}"]);
    assert!(workers.contains("sleep never started workers"), "{workers}");
    // Three processes whatever n is, 1 too, once they are there: "ready" comes long after them.
    let loops = "while :; do :; done & while :; do :; done & sleep 0.3; echo ready; wait";
    let follows = refused(1, &["--min", "1", "--after", "ready", "--", "sh", "-c", loops, "{n}"]);
    assert!(follows.contains("do not follow n"), "{follows}");
    let dies = refused(1, &["--", "sh", "-c", "echo no such input >&2; exit 7", "{n}"]);
    assert!(
        dies.contains("exit status: 7")
            && dies.contains("no such input")
            && dies.contains("run it by itself"),
        "{dies}"
    );
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("out");
    let path = file.to_str().unwrap();
    let fill = format!("of={path}");
    let words =
        ["--most-written", "1M", "--remove", path, "--window", "20s", "--threads-per-n", "1", "--"];
    let writes = refused(
        1,
        &[&words[..], &["dd", "if=/dev/zero", &fill, "bs=64k", "count={n}00000"]].concat(),
    );
    assert!(writes.contains("--most-written"), "{writes}");
    assert!(!file.exists(), "what --remove names is removed after a probe that failed, too");
    // The signal ends dd, and the shell goes on to tell it.
    let shell = format!("dd if=/dev/zero of={path} bs=64k count=100000 2>/dev/null; exit $?");
    let writes = refused(1, &[&words[..], &["sh", "-c", &shell, "{n}"]].concat());
    assert!(writes.contains("--most-written"), "{writes}");
}

#[test]
fn a_program_that_needs_the_terminal_is_named() {
    let Some(script) = tool("script") else { return };
    // A new terminal with pinwise in its foreground.
    let command = format!(
        "{PINWISE} threads --method reinforcer --threads-per-n 1 -- sh -c 'read x </dev/tty' {{n}}"
    );
    let output = Command::new(script)
        .args(["-q", "-e", "-c", &command, "/dev/null"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("needs a terminal") && text.contains("SIGTTIN"), "{text}");
    assert_eq!(output.status.code(), Some(1), "{text}");
}

#[test]
fn ctrl_c_ends_what_was_started() {
    let folder = TempDir::new().unwrap();
    let pid = folder.path().join("pid");
    let script = format!("echo $$ > {0}.new; mv {0}.new {0}; while :; do :; done", pid.display());
    let mut search = Program::start(
        Command::new(PINWISE)
            .args([
                "threads",
                "--method",
                "reinforcer",
                "--window",
                "5m",
                "--threads-per-n",
                "1",
                "--",
                "sh",
                "-c",
                &script,
                "{n}",
            ])
            .stdout(Stdio::null())
            .stderr(Stdio::piped()),
    );
    wait_until(PATIENCE, "the program", || pid.exists());
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&search.0),
        rustix::process::Signal::INT,
    )
    .unwrap();
    assert_eq!(search.ended(PATIENCE).code(), Some(130));
    let number: u32 = fs::read_to_string(&pid).unwrap().trim().parse().unwrap();
    assert!(affinities(number).is_empty(), "the program has ended with it");
}

#[test]
fn the_budget_bounds_a_program_that_never_starts_workers() {
    let output = pinwise([
        "threads",
        "--budget",
        "3s",
        "--min",
        "2",
        "--",
        "sh",
        "-c",
        "while :; do :; done",
        "{n}",
    ]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.contains("--budget") && text.contains("{n}") && text.trim_end().lines().count() == 1,
        "{text}"
    );
}

#[test]
fn sigterm_ends_a_search_on_a_model() {
    let mut search = Program::start(
        Command::new(PINWISE)
            .args([
                "threads",
                "--machine",
                "opteron-24",
                "--workload",
                "facesim",
                "--method",
                "sweep",
                "--rounds",
                "1000",
            ])
            .stdout(Stdio::null())
            .stderr(Stdio::piped()),
    );
    let pid = rustix::process::Pid::from_child(&search.0);
    let caught = || {
        let status =
            fs::read_to_string(format!("/proc/{}/status", search.0.id())).unwrap_or_default();
        let mask = status
            .lines()
            .find_map(|line| line.strip_prefix("SigCgt:")?.trim().get(..).map(str::to_owned));
        mask.is_some_and(|mask| {
            u64::from_str_radix(&mask, 16).is_ok_and(|mask| mask & (1 << 14) != 0)
        })
    };
    wait_until(PATIENCE, "its handlers", caught);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert_eq!(search.ended(PATIENCE).code(), Some(130));
}

#[test]
fn calibrated_thresholds_are_a_file_that_a_search_takes() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("calibrated.toml");
    let store = folder.path().join("pinwise.db");
    let at = ["--store", store.to_str().unwrap()];
    let calibrate = ["threads", "calibrate", "--machine", "opteron-24", "--rounds", "1"];
    let calibrated = pinwise(calibrate.iter().chain(&at));
    assert!(calibrated.status.success(), "{}", String::from_utf8_lossy(&calibrated.stderr));
    fs::write(&file, &calibrated.stdout).unwrap();
    let shown = pinwise(["campaign", "show", "1"].iter().chain(&at));
    assert_eq!(shown.stdout, calibrated.stdout, "as it was printed");
    let page = folder.path().join("calibrated.html");
    let written = pinwise(["report", "1", "-o", page.to_str().unwrap()].iter().chain(&at));
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    let text = String::from_utf8(calibrated.stdout).unwrap();
    let verdict = text.lines().next().unwrap().strip_prefix("# ").unwrap();
    assert!(verdict.starts_with("The thresholds are for steps of 8"), "{text}");
    assert!(fs::read_to_string(&page).unwrap().contains(verdict), "{verdict}");
    let listed = json(&pinwise(["campaign", "list", "--json"].iter().chain(&at)));
    assert_eq!(listed["campaigns"][0]["kind"], "calibrate");
    assert_eq!(listed["campaigns"].as_array().unwrap().len(), 4, "one part for each example");
    let words = [
        "threads",
        "--method",
        "reinforcer",
        "--json",
        "--machine",
        "2x4",
        "--workload",
        "canneal",
        "--thresholds",
    ];
    let answer = json(&pinwise(words.map(OsStr::new).into_iter().chain([file.as_os_str()])));
    let lock =
        text.lines().find_map(|line| line.strip_prefix("lock = ")).unwrap().parse::<f64>().unwrap();
    assert_eq!(answer["thresholds"]["lock"], lock);
}

#[test]
fn a_file_of_thresholds_is_read() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("thresholds.toml");
    let text = "lock = 50\ndelta_lock = 10\ndelta_vcx_rate = 1\ndelta_migr_rate = \
        1\ndelta_cpu_util = 0.5\n";
    let run = |path: &Path| {
        let words = [
            "threads",
            "--method",
            "reinforcer",
            "--json",
            "--machine",
            "2x4",
            "--workload",
            "canneal",
            "--thresholds",
        ];
        pinwise(words.map(OsStr::new).into_iter().chain([path.as_os_str()]))
    };
    fs::write(&file, text).unwrap();
    assert_eq!(json(&run(&file))["thresholds"]["lock"], 50.0);
    fs::write(&file, format!("{text}more = 1\n")).unwrap();
    let refused = run(&file);
    assert_eq!(refused.status.code(), Some(2), "{}", String::from_utf8_lossy(&refused.stderr));
}
