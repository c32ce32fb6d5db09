//! Programs named by their cgroup or measured by the page they serve, and programs on an overloaded
//! machine.

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use support::{PATIENCE, PINWISE, Program, Target, affinities, json, pinwise, tool, wait_until};
use tempfile::TempDir;

/// A third-party exporter: Python's HTTP server on a port of its choice, beside a thread that
/// works. What it exports is a clock: how much a thread gets done depends on what else runs.
const EXPORTER: &str = r##"
import http.server, threading, time
begin = time.monotonic()
class Page(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        done = (time.monotonic() - begin) * 1e6
        text = ("# HELP jobs_total Jobs done.\n# TYPE jobs_total counter\n"
                'jobs_total{queue="a"} %d\njobs_total{queue="b"} 0\nqueue_depth 7\n' % done)
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())
    def log_message(self, *arguments):
        pass
server = http.server.HTTPServer(("127.0.0.1", 0), Page)
print(server.server_address[1], flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
while time.monotonic() < begin + 900:
    pass
"##;

/// Works until it is ended, or for five minutes of CPU time.
const SPIN: &str = "ulimit -t 300; while :; do :; done";

/// A plan for the first thread of a shell.
const PLAN: &str = r#"version = 1
program = "sh"
[machine]
summary = "1 core"
topology = "0"
model = "abacus"
[[thread]]
name = "sh"
role = "r"
instance = 0
cpus = "0"
"#;

#[test]
fn a_foreign_exporter_s_counter_is_the_performance_of_its_program() {
    let Some(python) = tool("python3") else { return };
    let folder = TempDir::new().unwrap();
    let exporter = Command::new(python)
        .args(["-c", EXPORTER])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn();
    let mut exporter = Program(exporter.unwrap());
    let mut port = String::new();
    BufReader::new(exporter.0.stdout.take().unwrap()).read_line(&mut port).unwrap();
    let metric =
        format!(r#"prom:http://127.0.0.1:{}/metrics#jobs_total{{queue="a"}}"#, port.trim());
    let store = folder.path().join("pinwise.db");
    let pid = exporter.pid().to_string();
    // One thread alone would have nothing to choose.
    let beside = Program::start(Command::new("sh").args(["-c", SPIN]));
    let other = beside.pid().to_string();
    let words = [
        "place", "--json", "--pid", &pid, "--pid", &other, "--metric", &metric, "--budget", "20",
        "--store",
    ];
    let result = json(&pinwise(words.into_iter().chain([store.to_str().unwrap()])));
    assert_eq!(result["unit"], "jobs/s");
    assert!(result["best"]["performance"].as_f64().is_some_and(|jobs| jobs > 0.0), "{result:#}");
}

/// The threads that were placed, by name.
fn workers(result: &serde_json::Value) -> Vec<&str> {
    let threads = result["threads"].as_array().unwrap().iter();
    let mut names: Vec<&str> = threads.filter_map(|thread| thread["name"].as_str()).collect();
    names.sort_unstable();
    names
}

#[test]
fn every_thread_that_works_is_found_on_an_overloaded_machine() {
    let mut crowd: Vec<Program> =
        (0..8).map(|_| Program::start(Command::new("sh").args(["-c", SPIN]))).collect();
    let folder = TempDir::new().unwrap();
    let store = folder.path().join("pinwise.db");
    let words = ["place", "--json", "--workload", "hash1_L1:2", "--budget", "40", "--store"];
    let result = json(&pinwise(words.into_iter().chain([store.to_str().unwrap()])));
    assert_eq!(
        workers(&result),
        ["ipfwd0-P", "ipfwd0-R", "ipfwd0-T", "ipfwd1-P", "ipfwd1-R", "ipfwd1-T"]
    );
    assert!(
        crowd.iter_mut().all(|spinner| spinner.0.try_wait().unwrap().is_none()),
        "it was not overloaded all the time"
    );
}

/// On a real cgroup v2, mounted where only the commands of this test see it.
#[test]
fn the_processes_of_a_cgroup_of_version_2_are_placed() {
    let (Some(unshare), Some(_)) = (tool("unshare"), tool("mount")) else { return };
    let folder = TempDir::new().unwrap();
    let mount = folder.path().join("cgroup");
    fs::create_dir(&mount).unwrap();
    let group = mount.join(format!("pinwise-test-{}", std::process::id()));
    let inside = |script: &str, words: &[&str]| {
        let script = format!("mount -t cgroup2 none \"$0\" || exit 77; {script}");
        let mut command = Command::new(&unshare);
        command
            .args(["--mount", "--propagation", "private", "sh", "-c", &script])
            .arg(&mount)
            .args(words);
        command.stdin(Stdio::null()).output().unwrap()
    };
    let made = inside("mkdir \"$1\"", &[group.to_str().unwrap()]);
    if !made.status.success() {
        let why = String::from_utf8_lossy(&made.stderr);
        pinwise_synthetic::not_judged(format_args!("cannot mount cgroup2: {}", why.trim()));
        return;
    }
    let target = Target::start("intadd", folder.path());
    let before = target.affinities();
    // A clock: how many packets the workload gets done depends on what else runs.
    let metric = r"file:/proc/uptime:^(?<value>[\d.]+)";
    let store = folder.path().join("pinwise.db");
    let place = "echo \"$2\" > \"$1/cgroup.procs\" && exec \"$3\" place --json --cgroup \"$1\" \
        --include ^ipfwd --metric \"$4\" --counter --budget 20 --store \"$5\"";
    let pid = target.pid().to_string();
    let words = [group.to_str().unwrap(), &pid, PINWISE, metric, store.to_str().unwrap()];
    let result = json(&inside(place, &words));
    assert_eq!(workers(&result), ["ipfwd0-P", "ipfwd0-R", "ipfwd0-T"]);
    assert!(result["best"]["performance"].as_f64().is_some_and(|rate| rate > 0.0), "{result:#}");
    assert_eq!(target.affinities(), before);
    drop(target);
    let removed = inside("rmdir \"$1\"", &[group.to_str().unwrap()]);
    assert!(removed.status.success(), "{}", String::from_utf8_lossy(&removed.stderr));
    assert!(!Path::new(&group).exists());
}

/// The first and the last CPU of threads that have the same ones; `None` if there is only one.
fn first_and_last(affinities: &BTreeMap<i32, String>) -> Option<[&str; 2]> {
    let cpus = affinities.values().next().unwrap();
    let [first, last] = [cpus.split(['-', ',']).next(), cpus.rsplit(['-', ',']).next()];
    Some([first?, last?]).filter(|[first, last]| first != last)
}

#[test]
fn threads_that_confined_themselves_are_placed_within_that() {
    let Some(taskset) = tool("taskset") else { return };
    let folder = TempDir::new().unwrap();
    let target = Target::start("intadd", folder.path());
    let before = target.affinities();
    let Some([cpu, other]) = first_and_last(&before) else { return };
    // Two of the three threads of the pipeline.
    for thread in before.keys().rev().take(2) {
        let thread = thread.to_string();
        let confined = Command::new(&taskset).args(["-pc", cpu, &thread]).output().unwrap();
        assert!(confined.status.success());
    }
    let confined = target.affinities();
    let both = format!("{cpu},{other}");
    // Beside other load the main thread, which prints, may look busy.
    let place = ["--include", "^ipfwd", "--cpus", &both, "--json"];
    let output = target.place("40").args(place).output().unwrap();
    let (placed, said) = (json(&output), String::from_utf8(output.stderr).unwrap());
    assert_eq!(target.affinities(), confined);
    let note = format!("placed only within their own affinity (CPU {cpu}): ipfwd0-P, ipfwd0-T");
    assert!(said.contains(&note), "{said}");
    assert_eq!(placed["assignments"], "2", "{placed:#}");
    for one in placed["best"]["assignment"].as_array().unwrap() {
        assert!(
            one["thread"] == "ipfwd0-R" || one["cpu"] == cpu.parse::<u32>().unwrap(),
            "{placed:#}"
        );
    }
}

#[test]
fn a_program_that_already_ran_may_use_cpus_that_pinwise_may_not() {
    let Some(taskset) = tool("taskset") else { return };
    let folder = TempDir::new().unwrap();
    let target = Target::start("intadd", folder.path());
    let before = target.affinities();
    let Some([cpu, _]) = first_and_last(&before) else { return };
    let place = target.place("40");
    let mut confined = Command::new(taskset);
    confined.args(["-c", cpu, PINWISE]).args(place.get_args());
    confined.args(["--include", "^ipfwd", "--json"]).env("XDG_DATA_HOME", folder.path());
    let placed = json(&confined.output().unwrap());
    let assignments: u64 = placed["assignments"].as_str().unwrap().parse().unwrap();
    assert!(assignments > 1, "{placed:#}");
    assert_eq!(target.affinities(), before);
}

#[test]
fn a_refusal_comes_with_the_threads_that_were_left_alone() {
    let folder = TempDir::new().unwrap();
    let target = Target::start("intadd", folder.path());
    // A busy machine keeps the program from its numbers. The kernel has others.
    let metric = ["--metric", r"file:/proc/stat:ctxt (\d+)", "--counter"];
    let mut place = Command::new(PINWISE);
    place.args(["place", "--pid", &target.pid().to_string(), "--exclude", "[PT]$|^pinwise$"]);
    place.args(metric).arg("--store").arg(folder.path().join("pinwise.db"));
    let refused = place.output().unwrap();
    let said = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(1), "{said}");
    let [.., note, error] = said.lines().collect::<Vec<_>>()[..] else { panic!("{said}") };
    assert!(error.contains("1 thread for "), "{said}");
    assert!(note.contains("ipfwd0-T") && note.contains("ipfwd0-P"), "{said}");
}

#[test]
fn an_idle_program_is_watched_no_longer_than_the_budget() {
    let folder = TempDir::new().unwrap();
    let idle = Program::start(Command::new("sh").args(["-c", "sleep 60 & wait"]));
    let refused = |pid: &str| {
        let words = ["place", "--metric", "cmd:date +%s%N", "--budget", "3s", "--pid", pid];
        let mut place = Command::new(PINWISE);
        place.args(words).arg("--store").arg(folder.path().join("pinwise.db"));
        let said = String::from_utf8(place.output().unwrap().stderr).unwrap();
        let watched = said.split_once("used less than 1 % of a CPU for ");
        let (time, remedy) = watched.unwrap_or_else(|| panic!("{said}")).1.split_once(':').unwrap();
        let seconds = time.strip_suffix(" ms").map_or_else(
            || time.trim_end_matches(" s").parse::<f64>().unwrap(),
            |time| time.parse::<f64>().unwrap() / 1e3,
        );
        assert!(seconds <= 3.0, "{said}");
        remedy.to_owned()
    };
    let remedy = refused(&idle.pid().to_string());
    let told = " put it under load, or add its child process with --tree PID";
    assert!(remedy.starts_with(told), "{remedy}");
    // The kernel's own, where this process sees them.
    if fs::read_to_string("/proc/2/comm").is_ok_and(|name| name == "kthreadd\n") {
        assert!(refused("2").starts_with(" put it under load"));
    }
}

#[test]
fn a_budget_that_the_start_uses_up_is_named_as_the_cause() {
    let folder = TempDir::new().unwrap();
    let mut place = Command::new(PINWISE);
    place.args(["place", "--budget", "1s", "--metric", r"stdout:(\d+)", "--store"]);
    place.arg(folder.path().join("pinwise.db")).args(["--", "sleep", "60"]);
    let output = place.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("the budget is too short: it left ") && said.contains("raise --budget"));
}

#[test]
fn a_process_that_is_being_searched_is_refused_to_others() {
    let folder = TempDir::new().unwrap();
    let program = Program::start(Command::new("sh").args(["-c", SPIN]));
    let beside = Program::start(Command::new("sh").args(["-c", SPIN]));
    let [pid, other] = [&program, &beside].map(|program| program.pid().to_string());
    let before = affinities(program.pid());
    let store = folder.path().join("pinwise.db");
    let store = store.to_str().unwrap();
    let search = |budget| {
        let metric = format!("cmd:cut -d' ' -f14 /proc/{pid}/stat");
        let words = ["place", "--pid", &pid, "--pid", &other, "--metric", &metric];
        let words = words.into_iter().chain(["--budget", budget, "--store", store]);
        words.map(str::to_owned).collect::<Vec<_>>()
    };
    let mut first = Program::start(Command::new(PINWISE).args(search("10m")));
    wait_until(PATIENCE, "the search runs", || {
        let list = pinwise(["campaign", "list", "--json", "--store", store]);
        String::from_utf8_lossy(&list.stdout).contains("\"running\"")
    });
    let held = format!("another pinwise (process {}) measures or pins process {pid}", first.pid());
    let set = folder.path().join("set");
    let set = format!("cmd:echo {{n}} > {}", set.display());
    let plan = folder.path().join("plan.toml");
    fs::write(&plan, PLAN).unwrap();
    let metric = format!("cmd:cut -d' ' -f14 /proc/{pid}/stat");
    let searches: [&[&str]; 5] = [
        &["place", "--tree", &pid, "--metric", &metric],
        &["cosched", "--pid", &pid, "--pid", &other, "--metric", &metric],
        &["compare", "--pid", &pid, "--metric", &metric],
        &["threads", "--pid", &pid, "--set", "cpuset:"],
        &["tune", "--pid", &pid, "--set", &set, "--default", "1", "--metric", &metric],
    ];
    let stored = searches.map(|words| [words, &["--store", store]].concat());
    let plan = ["apply", plan.to_str().unwrap(), "--pid", &pid, "--force"];
    let undo = ["apply", "--undo", "--pid", &pid];
    let words = stored.into_iter().chain([plan.to_vec(), undo.to_vec()]);
    let words = words.map(|words| words.into_iter().map(str::to_owned).collect());
    for words in std::iter::once(search("20")).chain(words) {
        let refused = pinwise(&words);
        let error = String::from_utf8_lossy(&refused.stderr);
        assert!(refused.status.code() == Some(1) && error.contains(&held), "{words:?}: {error}");
    }
    assert!(!folder.path().join("set").exists(), "no number was set");
    // What kills the search leaves a guardian, which is waited for.
    first.0.kill().unwrap();
    first.ended(PATIENCE);
    let after = pinwise(search("20"));
    assert!(after.status.success(), "{}", String::from_utf8_lossy(&after.stderr));
    assert_eq!(affinities(program.pid()), before);
}
