//! What `place` says when it cannot. It is one line with what, why and what to do. The exit code
//! tells bad usage (2) from failure (1).

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use support::{PATIENCE, PINWISE, Program, affinities, wait_until};
use tempfile::TempDir;

/// Runs `place` and gives its exit code and its complaint, which is the last line on stderr. Checks
/// that nothing comes after it.
fn refused(words: &[&str]) -> (i32, String) {
    let folder = TempDir::new().unwrap();
    let store = folder.path().join("pinwise.db");
    let output =
        support::pinwise(["place", "--store", store.to_str().unwrap()].iter().chain(words));
    assert!(output.stdout.is_empty(), "{words:?}: {}", String::from_utf8_lossy(&output.stdout));
    let text = String::from_utf8(output.stderr).unwrap();
    let complaints: Vec<&str> = text.lines().filter(|line| !line.starts_with("note: ")).collect();
    assert_eq!(complaints.len(), 1, "{words:?}: {text}");
    (output.status.code().unwrap(), complaints[0].to_owned())
}

#[test]
fn a_program_that_cannot_be_started_is_named_with_the_remedy() {
    let (code, line) = refused(&["--", "/no/such/program"]);
    assert_eq!(code, 2);
    assert_eq!(
        line,
        "pinwise: cannot start /no/such/program: there is no such program; give its path, or add \
         its folder to PATH"
    );
    // A habit from hyperfine.
    let (code, line) = refused(&["--", "true -x"]);
    assert_eq!(code, 2);
    assert_eq!(
        line,
        "pinwise: cannot start true -x: no program has this name; leave the quotes out, or use -- \
         sh -c 'COMMAND'"
    );
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("text");
    fs::write(&file, "text").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let (code, line) = refused(&["--", file.to_str().unwrap()]);
    assert!(
        code == 1
            && line.ends_with("permission denied: is it a program, and executable (chmod +x)?"),
        "{line}"
    );
}

#[test]
fn an_output_that_cannot_be_opened_is_no_missing_program() {
    let folder = TempDir::new().unwrap();
    let store = folder.path().join("pinwise.db");
    let output = support::pinwise(["threads", "--store", store.to_str().unwrap()].iter().chain(&[
        "--output",
        "/no/such/file",
        "--",
        "sh",
        "-c",
        "sleep {n}",
    ]));
    let text = String::from_utf8(output.stderr).unwrap();
    let expected = "pinwise: cannot open /no/such/file for the program: No such file or directory \
                    (os error 2): name another file, or make its folder";
    assert_eq!(text.lines().last(), Some(expected), "{text}");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn an_output_that_is_there_is_never_emptied() {
    let folder = TempDir::new().unwrap();
    let kept = folder.path().join("out-2");
    fs::write(&kept, "precious").unwrap();
    let (store, output) = (folder.path().join("pinwise.db"), folder.path().join("out-{n}"));
    let program = ["--", "sh", "-c", "sleep 0.{n}"];
    for command in ["threads", "tune"] {
        let words = [command, "--max", "3", "--budget", "5s", "--store", store.to_str().unwrap()];
        let files = ["--output", output.to_str().unwrap()];
        let ended = support::pinwise(words.iter().chain(&files).chain(&program));
        let said = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(2), "{said}");
        assert!(said.contains(&format!("{} exists, ", kept.display())), "{said}");
        assert_eq!(fs::read_to_string(&kept).unwrap(), "precious");
    }
}

#[test]
fn what_is_about_a_metric_is_refused_without_one() {
    for (option, words) in [
        ("--pick", &["--pick", r"(\d+)", "--", "sleep", "100"][..]),
        ("--counter", &["--counter", "--", "sleep", "100"]),
        ("--gauge", &["--gauge", "--workload", "hash1_L1:1"]),
    ] {
        let (code, line) = refused(words);
        let expected = format!("pinwise: {option} needs a metric: add --metric");
        assert!(code == 2 && line.starts_with(&expected), "{line}");
    }
    for command in ["tune", "compare"] {
        let output = support::pinwise([command, "--pick", r"(\d+)", "--", "sleep", "100{n}"]);
        let line = String::from_utf8_lossy(&output.stderr);
        let told = line.starts_with("pinwise: --pick needs a metric: add --metric");
        assert!(output.status.code() == Some(2) && told, "{command}: {line}");
    }
}

#[test]
fn an_input_without_an_end_is_refused() {
    for file in ["/dev/zero", "-"] {
        let zeros = fs::File::open("/dev/zero").unwrap();
        let output = Command::new(PINWISE).args(["bound", file]).stdin(zeros).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        let told = text.contains("more than 256 MiB") && text.lines().count() == 1;
        assert!(output.status.code() == Some(2) && told, "{file}: {text}");
    }
}

#[test]
fn a_machine_or_a_store_that_is_no_file_is_refused_with_what_it_is() {
    let folder = TempDir::new().unwrap();
    let pipe = folder.path().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
    let pipe = pipe.to_str().unwrap();
    for (words, expected) in [
        (["topo", "--machine", "/dev/zero"], "machine '/dev/zero': it is a device: save"),
        (["topo", "--machine", pipe], "it is a FIFO: save"),
        (["campaign", "list", "--store=/dev/null"], "/dev/null: is no regular file; name"),
        (["campaign", "list", &format!("--store={pipe}")], "is no regular file; name"),
        (["place", "--store", "/dev/null"], "/dev/null: is no regular file; name"),
    ] {
        let output = support::pinwise(words);
        let line = String::from_utf8(output.stderr).unwrap();
        assert!(line.contains(expected) && line.lines().count() == 1, "{words:?}: {line}");
        assert!(!output.status.success(), "{words:?}");
    }
}

#[test]
fn a_file_in_a_folder_that_is_not_there_is_refused_at_once_and_no_folder_is_made() {
    let folder = TempDir::new().unwrap();
    let missing = folder.path().join("plnas");
    let file = missing.join("plan.toml");
    let (code, line) = refused(&["--plan", file.to_str().unwrap(), "--", "/no/such/program"]);
    assert_eq!(code, 2);
    let expected = format!(
        "pinwise: cannot write {}: its folder does not exist; make it, or name another file",
        file.display()
    );
    assert_eq!(line, expected);
    assert!(!missing.exists());
    let (code, line) = refused(&["--plan", folder.path().to_str().unwrap()]);
    assert!(code == 2 && line.ends_with("it is a directory; name a file in it"), "{line}");
}

#[test]
fn a_program_that_ends_at_once_is_reported_with_its_status_and_last_line() {
    // What a program prints while whole runs are timed is its product, not a message: it is not
    // read.
    for (metric, stream) in [
        (r"stdout:ops: (\d+)", 1),
        (r"stdout:ops: (\d+)", 2),
        ("cmd:echo 5", 1),
        ("cmd:echo 5", 2),
        ("runtime", 2),
    ] {
        let script = format!("echo cannot open device >&{stream}; exit 3");
        let (code, line) = refused(&["--metric", metric, "--", "sh", "-c", &script]);
        assert_eq!(code, 1, "{line}");
        assert!(line.starts_with("pinwise: sh ended (exit status: 3) "), "{metric}: {line}");
        let end = "; its last line was: cannot open device; run it by itself until it succeeds";
        assert!(line.ends_with(end), "{metric}: {line}");
    }
}

#[test]
fn a_metric_file_that_does_not_exist_yet_is_named_at_once() {
    let folder = TempDir::new().unwrap();
    let metric = format!(r"file:{}/log:n=(\d+)", folder.path().display());
    let store = folder.path().join("s.db");
    let expected = format!(
        "note: there is no file {}/log yet; waiting for the program to create it",
        folder.path().display()
    );
    for command in ["place", "threads", "tune"] {
        let words = [command, "--store", store.to_str().unwrap(), "--metric", &metric];
        let number = if command == "place" { "1" } else { "{n}" };
        let output = support::pinwise(words.iter().chain(&["--", "sh", "-c", "exit 3", number]));
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(text.lines().next(), Some(expected.as_str()), "{command}: {text}");
    }
}

#[test]
fn a_program_that_runs_to_its_end_without_a_number_is_measured_otherwise() {
    let script = r"printf '\033[31mdone\033[0m\n'";
    let (code, line) = refused(&["--metric", r"stdout:ops: (\d+)", "--", "sh", "-c", script]);
    assert_eq!(code, 1, "{line}");
    assert!(
        line.starts_with(
            r"pinwise: --metric 'stdout:ops: (\d+)' matched no line: sh ended (exit status: 0) "
        ),
        "{line}"
    );
    assert!(
        line.contains(
            r"; its last line was: \u{1b}[31mdone\u{1b}[0m; measure whole runs of a program "
        ),
        "{line}"
    );
    assert!(line.ends_with("--metric runtime, or --per-run for a number that it prints"), "{line}");
    let (_, line) =
        refused(&["--per-run", "--metric", r"stdout:ops: (\d+)", "--", "sh", "-c", script]);
    assert!(line.ends_with("correct the pattern, or time the run (--metric runtime)"), "{line}");
}

#[test]
fn a_metric_that_never_matches_says_how_long_was_waited_and_what_was_seen() {
    let script = "while :; do echo all is well; sleep 0.05; done";
    let (code, line) = refused(&["--metric", r"stdout:ops: (\d+)", "--", "sh", "-c", script]);
    assert_eq!(code, 1);
    assert!(
        line.contains("no number in 10 s")
            && line.contains("matched none; the last was 'all is well'"),
        "{line}"
    );
}

#[test]
fn a_metric_that_makes_no_sense_is_bad_usage() {
    for (metric, reason) in [
        (r"stdout:ops: \d+", "has no group"),
        (r"stdout:ops: (\d+", "is not a regular expression"),
        ("stduot:(x)", "did you mean"),
        ("io:nonsense", "unknown field"),
    ] {
        let (code, line) = refused(&["--metric", metric, "--", "yes"]);
        assert!(code == 2 && line.contains(reason), "{metric}: {code} {line}");
    }
}

#[test]
fn an_argument_that_cannot_be_read_is_named_with_what_is_expected() {
    for (name, value, reason) in [
        ("--cpus", "abc", "--cpus: 'abc' is not a CPU set: "),
        ("--within", "-5%", "'--within <PERCENT>': expected a percentage such as 2.5%"),
    ] {
        let (code, line) = refused(&[name, value, "--metric", "runtime", "--", "true"]);
        assert!(code == 2 && line.contains(reason), "{name}: {code} {line}");
    }
}

#[test]
fn a_metric_that_only_the_end_of_a_run_knows_is_refused_for_a_program_that_goes_on() {
    let own = std::process::id().to_string();
    let words = ["threads", "--metric", "runtime", "--set", "cmd:true {n}", "--pid", &own];
    let output = support::pinwise(words);
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("--metric runtime restart the program for each number"), "{told}");
}

#[test]
fn a_metric_that_cannot_be_there_is_refused_before_anything_is_started() {
    let folder = TempDir::new().unwrap();
    let (started, store) = (folder.path().join("started"), folder.path().join("pinwise.db"));
    let (started, store) = (started.to_str().unwrap(), store.to_str().unwrap());
    let own = std::process::id().to_string();
    let with_number = ["--", "touch", started, "{n}"];
    for command in [&["place", "--store", store][..], &["threads"], &["tune", "--store", store]] {
        let (launched, running) = if command[0] == "place" {
            (&with_number[..3], &["--pid", &own][..])
        } else {
            (&with_number[..], &["--set", "cmd:true {n}", "--pid", &own][..])
        };
        for (metric, program, why) in [
            ("netdev:eth99:tx_packets", launched, "there are only "),
            ("cmd:pinwise-nothing --stat", launched, "there is no program 'pinwise-nothing'"),
            (
                r"file:/no/such/log:n=(\d+)",
                running,
                "/no/such/log: there is no such file; name a readable file",
            ),
        ] {
            let output =
                support::pinwise(command.iter().chain(&["--metric", metric]).chain(program));
            let told = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(2), "{command:?} {metric}: {told}");
            assert!(
                told.starts_with("pinwise: metric '") && told.contains(why),
                "{command:?}: {told}"
            );
            assert_eq!(told.lines().count(), 1, "{told}");
        }
    }
    assert!(!Path::new(started).exists());
}

#[test]
fn contexts_and_processes_that_do_not_exist_are_bad_usage() {
    let (code, line) = refused(&["--cpus", "0-5000"]);
    assert!(
        code == 2
            && line.contains("--cpus 0-5000: not allowed here: ")
            && line.contains("-5000; allowed are "),
        "{line}"
    );
    let (code, line) = refused(&["--cpus", ""]);
    assert!(code == 2 && line.contains("--cpus names no CPU; allowed are "), "{line}");
    let (code, line) =
        refused(&["--cpus", "0", "--machine", "ultrasparc-t2", "--workload", "intadd:2"]);
    let nothing = "--cpus 0: one context leaves nothing to choose; name more";
    assert!(code == 2 && line.contains(nothing), "before that six threads do not fit: {line}");
    let (code, line) = refused(&["--pid", "2147483647", "--metric", "io:rchar"]);
    assert!(code == 2 && line.contains("there is no process 2147483647"), "{line}");
    let (code, line) = refused(&["--cgroup", "/no/such/group", "--metric", "io:rchar"]);
    assert_eq!(code, 2);
    assert!(
        line.ends_with(
            "cannot read cgroup /no/such/group: no such directory with a cgroup.procs file, nor \
             below /sys/fs/cgroup"
        ),
        "{line}"
    );
}

#[test]
fn what_the_command_line_names_and_is_not_there_is_bad_usage_for_every_command() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (absent, folder_path) = (path("absent"), path("folder"));
    fs::create_dir(&folder_path).unwrap();
    fs::write(path("bytes"), [0xff, 0xfe]).unwrap();
    fs::write(path("plan.toml"), PLAN).unwrap();
    let store = path("none.db");
    for (words, expected) in [
        (&["bound", &absent][..], "there is no such file"),
        (&["bound", &folder_path], "it is a directory"),
        (&["export", &absent, "--to", "taskset"], "there is no such file"),
        (&["export", &folder_path, "--to", "taskset"], "it is a directory"),
        (&["export", &path("bytes"), "--to", "taskset"], "it is not a text file"),
        (&["apply", &absent, "--pid", "1"], "there is no such file"),
        (&["run", &absent, "--", "true"], "there is no such file"),
        (
            &["run", &path("plan.toml"), "--force", "--", "/no/such/program"],
            "there is no such program",
        ),
        (&["topo", "--machine", &absent], "no such file"),
        (&["latency", "--from", &absent], "there is no such file"),
        (&["space", "--threads", "2", "--machine", &absent], "no such file"),
        (&["workload", "intadd", "--packets", "10", "--pcap", &absent], "No such file"),
        (&["campaign", "show", "1", "--store", &store], "there is no store yet"),
        (&["report", "1", "--store", &store], "there is no store yet"),
    ] {
        let output = support::pinwise(words);
        let text = String::from_utf8(output.stderr).unwrap();
        let complaint = text.lines().last().unwrap_or_default();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {text}");
        assert!(
            complaint.starts_with("pinwise: ") && complaint.contains(expected),
            "{words:?}: {text}"
        );
        assert!(output.stdout.is_empty(), "{words:?}");
    }
}

/// For no machine: only with --force.
const PLAN: &str = "version = 1\nprogram = \"true\"\n[machine]\nsummary = \"1 core\"\ntopology = \
    \"0\"\nmodel = \"abacus\"\n[[thread]]\nname = \"true\"\nrole = \"r\"\ninstance = 0\ncpus = \
    \"0\"\n";

#[test]
fn only_the_folder_of_the_default_store_is_made() {
    let folder = TempDir::new().unwrap();
    let store = folder.path().join("mistyped/x.db");
    let output = support::pinwise(["place", "--store", store.to_str().unwrap()]);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("there is no folder ") && text.lines().count() == 1, "{text}");
    assert!(!store.parent().unwrap().exists());
}

#[test]
fn a_store_that_is_none_is_left_alone() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("letter.txt");
    fs::write(&file, "Dear reader").unwrap();
    let output = support::pinwise(["place", "--store", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(
        text.contains("is not a store of pinwise")
            && text.contains("--store")
            && text.lines().count() == 1,
        "{text}"
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), "Dear reader");
}

#[test]
fn another_user_s_process_is_refused_with_the_capability_that_would_allow_it() {
    if !rustix::process::geteuid().is_root() {
        pinwise_synthetic::not_judged("only root can become another user");
        return;
    }
    let workload = ["workload", "intadd", "--instances", "1", "--seconds", "60"];
    let target = Program::start(Command::new(PINWISE).args(workload).stdout(Stdio::null()));
    wait_until(PATIENCE, "the workload's threads", || affinities(target.pid()).len() >= 4);
    let before = affinities(target.pid());
    let folder = TempDir::new().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    // A copy: the folder that tests are built in may be closed to others.
    let program = folder.path().join("pinwise");
    fs::copy(PINWISE, &program).unwrap();
    fs::write(folder.path().join("quiet"), "").unwrap();
    let output = Command::new(&program)
        .args([
            "place",
            "--pid",
            &target.pid().to_string(),
            // It gives no number: the refusal does not wait for one.
            "--metric",
            "file:quiet:([0-9]+)",
            "--store",
        ])
        .arg(folder.path().join("pinwise.db"))
        .current_dir(folder.path())
        .uid(65534)
        .gid(65534)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.contains("not permitted to move thread") && text.contains("cap_sys_nice"),
        "{text}"
    );
    assert_eq!(affinities(target.pid()), before);
}

/// The refusal names who confines the program: the command line of pinwise, or the program.
#[test]
fn a_program_with_one_cpu_is_refused_with_who_may_allow_more() {
    let Some(taskset) = support::tool("taskset") else { return };
    let own = affinities(std::process::id()).into_values().next().unwrap();
    let cpu = own.split(['-', ',']).next().unwrap();
    let confined = [taskset.to_str().unwrap(), "-c", cpu];
    let works = "w() { n=0; while [ $n -lt 100000 ]; do n=$((n + 1)); done; }; w & w & wait";
    let command = ["sh", "-c", works];
    let place = [PINWISE, "place", "--budget", "60s", "--store"];
    for (outer, inner, remedy) in [
        (&confined[..], &[][..], "start pinwise with more (taskset -c LIST pinwise ...)"),
        (&[], &confined, "it confines its own threads; let it use more"),
    ] {
        let folder = TempDir::new().unwrap();
        let store = folder.path().join("pinwise.db");
        let words = [outer, &place, &[store.to_str().unwrap(), "--"], inner, &command].concat();
        let mut run = Command::new(words[0]);
        run.args(&words[1..]).env("XDG_DATA_HOME", folder.path()).stdin(Stdio::null());
        let output = run.output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        let line = text.lines().last().unwrap();
        let refused =
            format!(" may only run on CPU {cpu}, so there is nothing to choose: {remedy}");
        assert!(output.status.code() == Some(1) && line.ends_with(&refused), "{text}");
    }
}

#[test]
fn a_limit_that_is_not_there_is_refused_before_anything_is_measured() {
    let own = std::process::id().to_string();
    for (set, file) in [("quota", "cpu.cfs_quota_us"), ("cpuset", "cpuset.cpus")] {
        let set = format!("{set}:/no/such/group");
        let output = support::pinwise(["threads", "--set", &set, "--pid", &own]);
        let line = String::from_utf8(output.stderr).unwrap();
        let begins = format!("pinwise: --set: /no/such/group/{file}: ");
        assert!(output.status.code() == Some(2) && line.starts_with(&begins), "{line}");
    }
}
