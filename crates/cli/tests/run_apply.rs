//! `run` and `apply` on real processes.

mod support;

use rustix::process::Signal;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::LazyLock;

/// The program; what it notes of replaced affinities goes to a folder of this test run.
fn command(arguments: &[&str]) -> Command {
    static DATA: LazyLock<PathBuf> = LazyLock::new(|| support::shared_folder("applied"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_pinwise"));
    command.args(arguments).env("XDG_DATA_HOME", &*DATA);
    command
}

fn pinwise(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

fn allowed(pid: u32) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))
        .unwrap()
        .trim()
        .to_owned()
}

/// A kernel's CPU list as pinwise writes it.
fn shown(list: &str) -> String {
    pinwise_topology::CpuSet::parse_list(list).unwrap().to_string()
}

/// The first CPU this test may use.
fn cpu() -> String {
    allowed(std::process::id()).split(['-', ',']).next().unwrap().to_owned()
}

/// A plan of another machine for threads of these names.
fn plan(directory: &Path, names: &[&str]) -> PathBuf {
    let mut text = String::from(
        "version = 1\nprogram = \"sh\"\n[machine]\nsummary = \"1 core\"\ntopology = \"0\"\nmodel = \
         \"abacus\"\n",
    );
    for name in names {
        text += &format!(
            "[[thread]]\nname = \"{name}\"\nrole = \"r\"\ninstance = 0\ncpus = \"{}\"\n",
            cpu()
        );
    }
    let path = directory.join("plan.toml");
    fs::write(&path, text).unwrap();
    path
}

/// A shell that waits; it ends with its standard input, at the latest when this is dropped.
struct Shell(Child);

impl Shell {
    fn start() -> Self {
        let mut child = Command::new("sh")
            .args(["-c", "echo started; read -r line"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut String::new()).unwrap();
        Self(child)
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

#[test]
fn apply_pins_a_running_program_and_says_what_it_did_not_find() {
    let directory = tempfile::tempdir().unwrap();
    let plan = plan(directory.path(), &["sh", "worker#1"]);
    let shell = Shell::start();
    let pid = shell.0.id().to_string();
    let output = pinwise(&["apply", plan.to_str().unwrap(), "--pid", &pid, "--force", "--json"]);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(
        errors.contains("warning: the plan is for another topology (abacus: 1 core; here "),
        "{errors}"
    );
    assert!(
        errors.lines().last().unwrap().starts_with(
            "pinwise: 1 of 2 threads of the plan are not pinned: the process has no thread \
             worker#1; the plan is for sh. Check the program"
        ),
        "{errors}"
    );
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["pinned"][0]["name"], "sh");
    assert_eq!(document["pinned"][0]["cpus"], cpu().as_str());
    assert_eq!(document["not_found"], serde_json::json!(["worker#1"]));
    assert_eq!(allowed(shell.0.id()), cpu());
}

#[test]
fn a_dry_run_says_what_would_be_done_and_does_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let plan = plan(directory.path(), &["sh", "worker"]);
    let shell = Shell::start();
    let before = shown(&allowed(shell.0.id()));
    let pid = shell.0.id().to_string();
    let dry_run = ["apply", plan.to_str().unwrap(), "--pid", &pid, "--force", "--dry-run"];
    let output = pinwise(&dry_run);
    assert_eq!(
        output.status.code(),
        Some(1),
        "a thread is missing, as it would be when this is done"
    );
    let text = String::from_utf8(output.stdout).unwrap();
    let expected = format!(
        "{:<16} thread {pid} would be pinned to CPU {}, may run on {before} now\n",
        "sh",
        cpu()
    );
    assert_eq!(text, expected);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.contains("the process has no thread worker; the plan is for sh"), "{errors}");
    let document: serde_json::Value =
        serde_json::from_slice(&pinwise(&[&dry_run[..], &["--json"]].concat()).stdout).unwrap();
    assert_eq!(document["would_pin"][0]["now"], before.as_str());
    assert!(document.get("pinned").is_none());
    assert_eq!(shown(&allowed(shell.0.id())), before);
    let undo = pinwise(&["apply", "--undo", "--pid", &pid]);
    assert_eq!(undo.status.code(), Some(1), "nothing was noted, since nothing was done");
}

#[test]
fn undo_gives_back_what_there_was_before_the_first_plan() {
    let directory = tempfile::tempdir().unwrap();
    let plan = plan(directory.path(), &["sh"]);
    let shell = Shell::start();
    let before = shown(&allowed(shell.0.id()));
    let pid = shell.0.id().to_string();
    let apply = ["apply", plan.to_str().unwrap(), "--pid", &pid, "--force"];
    assert!(pinwise(&apply).status.success());
    assert!(pinwise(&apply).status.success(), "the second time it is pinned already");
    assert_eq!(allowed(shell.0.id()), cpu());
    let rehearsal = ["apply", "--undo", "--dry-run", "--pid", &pid];
    let now = cpu();
    assert_eq!(
        String::from_utf8(pinwise(&rehearsal).stdout).unwrap(),
        format!("{:<16} thread {pid} would get CPU {before} back, may run on {now} now\n", "sh")
    );
    let document = pinwise(&[&rehearsal[..], &["--json"]].concat()).stdout;
    let document: serde_json::Value = serde_json::from_slice(&document).unwrap();
    let thread = &document["would_release"][0];
    assert_eq!((&thread["cpus"], &thread["now"]), (&before.as_str().into(), &now.into()));
    assert_eq!(allowed(shell.0.id()), cpu(), "nothing was changed");
    let output = pinwise(&["apply", "--undo", "--pid", &pid]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        format!("{:<16} thread {pid} may run on CPU {before} again\n", "sh")
    );
    assert_eq!(shown(&allowed(shell.0.id())), before);
    let again = pinwise(&["apply", "--undo", "--pid", &pid]);
    let errors = String::from_utf8(again.stderr).unwrap();
    assert_eq!(again.status.code(), Some(1));
    assert!(
        errors.contains("nothing to undo: no plan applied, ") && errors.lines().count() == 1,
        "{errors}"
    );
}

#[test]
fn undo_leaves_a_thread_alone_that_was_moved_after_the_plan() {
    let Some(taskset) = support::tool("taskset") else { return };
    let directory = tempfile::tempdir().unwrap();
    let plan = plan(directory.path(), &["sh"]);
    let shell = Shell::start();
    let all = allowed(shell.0.id());
    let Some(other) = shown(&all).rsplit([',', '-']).next().map(str::to_owned) else { return };
    let pid = shell.0.id().to_string();
    assert!(pinwise(&["apply", plan.to_str().unwrap(), "--pid", &pid, "--force"]).status.success());
    assert_eq!(allowed(shell.0.id()), cpu());
    if other == cpu() {
        pinwise_synthetic::lacking("a second CPU");
        return;
    }
    assert!(Command::new(taskset).args(["-pc", &other, &pid]).output().unwrap().status.success());
    let told = |words: &[&str]| {
        let output = pinwise(&[&["apply", "--undo", "--pid", &pid], words].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let document: serde_json::Value =
        serde_json::from_str(&told(&["--dry-run", "--json"])).unwrap();
    assert_eq!(document["would_release"], serde_json::json!([]));
    assert_eq!(document["left"][0]["now"], other.as_str());
    let why = "something else has moved it since the plan was applied";
    assert_eq!(told(&[]), format!("{:<16} thread {pid} keeps CPU {other}: {why}\n", "sh"));
    assert_eq!(allowed(shell.0.id()), other);
}

#[test]
fn a_refused_thread_has_a_kind_and_a_reason() {
    let directory = tempfile::tempdir().unwrap();
    let plan = plan(directory.path(), &["sh"]);
    let text = fs::read_to_string(&plan).unwrap();
    fs::write(&plan, text.replace(&format!("cpus = \"{}\"", cpu()), "cpus = \"4095\"")).unwrap();
    let shell = Shell::start();
    let pid = shell.0.id().to_string();
    let output = pinwise(&["apply", plan.to_str().unwrap(), "--pid", &pid, "--force", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let refused = &document["refused"][0];
    assert_eq!((&refused["name"], &refused["kind"]), (&"sh".into(), &"excluded".into()));
    assert!(refused["reason"].as_str().unwrap().contains("may not run on CPU 4095"), "{refused}");
}

#[test]
fn undo_wants_no_plan_and_anything_else_wants_one() {
    for words in [&["apply", "--undo", "plan.toml", "--pid", "1"][..], &["apply", "--pid", "1"]] {
        assert_eq!(pinwise(words).status.code(), Some(2), "{words:?}");
    }
}

#[test]
fn a_plan_for_another_machine_is_refused_and_touches_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let plan = plan(directory.path(), &["sh"]);
    let shell = Shell::start();
    let before = allowed(shell.0.id());
    let pid = shell.0.id().to_string();
    for arguments in [&["apply", "PLAN", "--pid", &pid][..], &["run", "PLAN", "--", "true"]] {
        let arguments: Vec<&str> = arguments
            .iter()
            .map(|word| if *word == "PLAN" { plan.to_str().unwrap() } else { word })
            .collect();
        let output = pinwise(&arguments);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{errors}");
        assert!(
            errors.contains("the plan does not fit: the plan is for another topology"),
            "{errors}"
        );
        assert!(errors.contains("--force") && errors.lines().count() == 1, "{errors}");
    }
    assert_eq!(allowed(shell.0.id()), before);
}

#[test]
fn run_pins_the_program_while_it_runs_and_ends_with_its_exit_code() {
    let directory = tempfile::tempdir().unwrap();
    let plan = plan(directory.path(), &["sh"]);
    // Ends with 7 once the shell is where the plan wants it, with 9 after 20 s.
    let script = format!(
        "n=0; while [ $n -lt 200 ]; do while read -r key value; do [ \"$key\" = Cpus_allowed_list: \
         ] && [ \"$value\" = {} ] && exit 7; done < /proc/$$/status; sleep 0.1; n=$((n + 1)); \
         done; exit 9",
        cpu()
    );
    let output = pinwise(&["run", plan.to_str().unwrap(), "--force", "--", "sh", "-c", &script]);
    assert_eq!(output.status.code(), Some(7), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stdout.is_empty());
    let killed =
        pinwise(&["run", plan.to_str().unwrap(), "--force", "--", "sh", "-c", "kill -9 $$"]);
    assert_eq!(killed.status.code(), Some(128 + 9));
    let told = String::from_utf8(killed.stderr).unwrap();
    assert!(told.ends_with("warning: sh was ended by SIGKILL (9)\n"), "{told}");
    let missing = pinwise(&["run", plan.to_str().unwrap(), "--force", "--", "/no/such/program"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("cannot start /no/such/program"));
}

#[test]
fn using_a_plan_against_the_advice_prints_a_warning() {
    let directory = tempfile::tempdir().unwrap();
    let path = plan(directory.path(), &["sh"]);
    let text = fs::read_to_string(&path).unwrap();
    let origin = "[origin]\ncampaign = \"campaign 1 of a.db\"\nadvice = \"undecided\"\nsimulated = \
        true\nnotes = [\"The machine was busy.\", \"Something else.\"]\n[machine]";
    fs::write(&path, text.replacen("[machine]", origin, 1)).unwrap();
    let path = path.to_str().unwrap();
    let shell = Shell::start();
    let pid = shell.0.id().to_string();
    for words in [
        &["apply", path, "--pid", &pid, "--force", "--dry-run"][..],
        &["run", path, "--force", "--", "sh", "-c", "sleep 0.1"],
        &["export", path, "--to", "taskset"],
    ] {
        let output = pinwise(words);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{words:?}: {errors}");
        let warnings: Vec<&str> = errors
            .lines()
            .filter(|line| line.starts_with("warning: this plan may not help"))
            .collect();
        let [only] = warnings[..] else { panic!("{words:?}: {errors}") };
        for part in ["Its search was undecided", "a simulated processor", "2 notes", "[origin]"] {
            assert!(only.contains(part), "{words:?}: {only}");
        }
        assert!(!errors.contains("Something else."), "{errors}");
    }
}

#[test]
fn an_export_notes_a_cpu_that_the_machine_of_the_plan_lacks() {
    let directory = tempfile::tempdir().unwrap();
    let path = plan(directory.path(), &["sh"]);
    let text = fs::read_to_string(&path).unwrap();
    let own = pinwise_linux::fingerprint(&pinwise_linux::this_machine().unwrap()).topology;
    let absent = text.replace(&format!("cpus = \"{}\"", cpu()), "cpus = \"4095\"");
    let ours = absent.replace("topology = \"0\"", &format!("topology = \"{own}\""));
    for (text, noted) in [(&ours, true), (&absent, false)] {
        fs::write(&path, text).unwrap();
        let output = pinwise(&["export", path.to_str().unwrap(), "--to", "taskset"]);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{errors}");
        assert_eq!(errors.contains("note: the plan uses CPU 4095, which is offline"), noted);
    }
}

#[test]
fn the_number_of_a_campaign_that_does_not_exist_is_bad_usage() {
    let output = pinwise(&["apply", "7", "--pid", &std::process::id().to_string()]);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(
        errors.starts_with("pinwise: there is no file 7 and no campaign 7 in /")
            && errors.ends_with("pinwise.db: name the plan's file, or the store with --store\n"),
        "{errors}"
    );
}

#[test]
fn a_store_is_for_the_number_of_a_campaign_and_no_file() {
    let directory = tempfile::tempdir().unwrap();
    let plan = plan(directory.path(), &["a"]);
    let output = pinwise(&["export", plan.to_str().unwrap(), "--to", "json", "--store", "s.db"]);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.ends_with("plan.toml is a file: leave --store out\n"), "{errors}");
}

#[test]
fn a_place_for_a_number_that_the_plan_does_not_have_is_bad_usage() {
    let directory = tempfile::tempdir().unwrap();
    let plan = plan(directory.path(), &["a", "b"]);
    let output = pinwise(&["run", plan.to_str().unwrap(), "--force", "--", "echo", "-p{n}"]);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.starts_with("pinwise: {n}: the plan has no number of threads: "), "{errors}");
    assert!(output.stdout.is_empty() && errors.lines().count() == 1, "{errors}");
    let output = pinwise(&["run", plan.to_str().unwrap(), "--force", "--", "true"]);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(
        errors.lines().last().unwrap().starts_with("warning: threads a and b never appeared: "),
        "{errors}"
    );
}

#[test]
fn a_process_that_does_not_exist_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let plan = plan(directory.path(), &["sh"]);
    let output = pinwise(&["apply", plan.to_str().unwrap(), "--pid", "2147483647", "--force"]);
    let undo = pinwise(&["apply", "--undo", "--pid", "2147483647"]);
    for output in [output, undo] {
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&output.stderr).contains("there is no process 2147483647"));
    }
}

#[test]
fn apply_with_watch_pins_a_thread_that_takes_its_name_later_and_ends_with_the_program() {
    let directory = tempfile::tempdir().unwrap();
    let plan = plan(directory.path(), &["late"]);
    // The shell becomes a program of another name when it reads a line, and ends with its input.
    let late = directory.path().join("late");
    fs::copy("/bin/cat", &late).unwrap();
    let mut child = Command::new("sh")
        .args(["-c", "read -r line; exec \"$0\""])
        .arg(&late)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .map(Shell)
        .unwrap();
    let pid = child.0.id();
    let mut apply = command(&[
        "apply",
        plan.to_str().unwrap(),
        "--pid",
        &pid.to_string(),
        "--force",
        "--watch",
    ])
    .stdout(Stdio::piped())
    .stderr(Stdio::piped())
    .spawn()
    .unwrap();
    let mut notes = BufReader::new(apply.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(notes.any(|line| line.starts_with("note: the process has no thread late; ")));
    let mut lines = BufReader::new(apply.stdout.take().unwrap()).lines();
    std::io::Write::write_all(child.0.stdin.as_mut().unwrap(), b"go\n").unwrap();
    let line = lines.next().unwrap().unwrap();
    assert!(
        line.starts_with("late ") && line.ends_with(&format!("thread {pid} on CPU {}", cpu())),
        "{line}"
    );
    assert_eq!(allowed(pid), cpu());
    drop(child);
    assert!(apply.wait().unwrap().success());
}

#[test]
fn a_watch_that_never_found_a_thread_ends_with_1() {
    let directory = tempfile::tempdir().unwrap();
    let plan = plan(directory.path(), &["sh", "never"]);
    let shell = Shell::start();
    let pid = shell.0.id().to_string();
    let watch = ["apply", plan.to_str().unwrap(), "--pid", &pid, "--force", "--watch"];
    let mut apply = command(&watch).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut notes = BufReader::new(apply.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(notes.any(|line| line.starts_with("note: the process has no thread never; ")));
    drop(shell);
    assert!(notes.any(|line| line.starts_with("pinwise: 1 of 2 threads of the plan are not ")));
    assert_eq!(apply.wait().unwrap().code(), Some(1));
}

#[test]
fn a_signal_to_run_reaches_the_program_and_its_exit_code_comes_back() {
    let directory = tempfile::tempdir().unwrap();
    let plan = plan(directory.path(), &["sh"]);
    let handled = "trap 'exit 5' TERM; echo ready; for i in $(seq 1000); do sleep 0.01; done";
    let unhandled = "echo ready; exec sleep 10";
    for (script, signal, code) in
        [(handled, Signal::TERM, 5), (unhandled, Signal::TERM, 143), (unhandled, Signal::INT, 130)]
    {
        let mut run = Command::new(env!("CARGO_BIN_EXE_pinwise"))
            .args(["run", plan.to_str().unwrap(), "--force", "--", "sh", "-c", script])
            // In no terminal's foreground, whatever the test runs in.
            .process_group(0)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        BufReader::new(run.stdout.take().unwrap()).read_line(&mut String::new()).unwrap();
        rustix::process::kill_process(rustix::process::Pid::from_child(&run), signal).unwrap();
        assert_eq!(run.wait().unwrap().code(), Some(code), "{signal:?}: {script}");
    }
}

#[test]
fn after_a_kill_of_run_the_program_goes_on_pinned() {
    let directory = tempfile::tempdir().unwrap();
    let plan = plan(directory.path(), &["sh"]);
    let script = "echo $$; for i in $(seq 30000); do sleep 0.01; done";
    let mut run = command(&["run", plan.to_str().unwrap(), "--force", "--", "sh", "-c", script])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(run.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let pid: u32 = line.trim().parse().unwrap();
    support::wait_until(support::PATIENCE, "the pin", || allowed(pid) == cpu());
    run.kill().unwrap();
    run.wait().unwrap();
    // It writes to no pipe: a second later it is still there.
    std::thread::sleep(std::time::Duration::from_secs(1));
    assert_eq!(allowed(pid), cpu());
    let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
    rustix::process::kill_process(pid, Signal::KILL).unwrap();
}
