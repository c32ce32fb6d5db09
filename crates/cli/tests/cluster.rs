//! Campaigns on several nodes, without a network. A script in place of ssh runs the remote command.
//! All hosts are this machine.

mod support;

use rusqlite::Connection;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;
use support::{PATIENCE, PINWISE, Program, wait_until};
use tempfile::TempDir;

/// A quick question about a model, which has a few hundred measurements.
const MODEL: [&str; 11] = [
    "place",
    "--machine",
    "ultrasparc-t2",
    "--workload",
    "intadd:2",
    "--cycles",
    "20000",
    "--starts",
    "1",
    "--budget",
    "300",
];

/// Programs that stand for ssh and Slurm, the home of all nodes, and stores.
struct Site(TempDir);

impl Site {
    fn new() -> Self {
        let site = Self(TempDir::new().unwrap());
        for folder in ["bin", "home"] {
            fs::create_dir(site.path(folder)).unwrap();
        }
        site.script("ssh", "for last; do :; done\nexec sh -c \"$last\"");
        site
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn script(&self, name: &str, text: &str) {
        let path = self.path("bin").join(name);
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    }

    /// pinwise with these words. What it starts has this site's word in its environment.
    fn command(&self, words: &[&str], store: &str) -> Command {
        let path = format!("{}:{}", self.path("bin").display(), std::env::var("PATH").unwrap());
        let mut command = Command::new(PINWISE);
        let end = words.iter().position(|word| *word == "--").unwrap_or(words.len());
        command.args(&words[..end]).arg("--store").arg(self.path(store)).args(&words[end..]);
        command.env("PATH", path).env("HOME", self.path("home")).stdin(Stdio::null());
        command.env_remove("XDG_CACHE_HOME").env("XDG_DATA_HOME", self.path("home"));
        command.env("PINWISE_TEST_SITE", self.0.path());
        command
    }

    fn run(&self, words: &[&str], store: &str) -> Output {
        self.command(words, store).output().unwrap()
    }

    /// The processes of this site that are workers.
    fn workers(&self) -> Vec<u32> {
        self.processes("worker")
    }

    /// The processes of this site with a word in their command.
    fn processes(&self, word: &str) -> Vec<u32> {
        let own = format!("PINWISE_TEST_SITE={}", self.0.path().display());
        let is_worker = |pid: &u32| {
            let read = |file: &str| fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
            let has = |bytes: Vec<u8>, word: &str| {
                bytes.split(|byte| *byte == 0).any(|one| one == word.as_bytes())
            };
            has(read("cmdline"), word) && has(read("environ"), &own)
        };
        let pids = fs::read_dir("/proc").unwrap().flatten();
        let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter(is_worker).collect()
    }

    fn no_worker_is_left(&self) {
        wait_until(PATIENCE, "the workers to end", || self.workers().is_empty());
    }

    /// Waits until this many measurements are stored.
    fn measured(&self, store: &str, count: usize) {
        wait_until(PATIENCE, "measurements", || rows(&self.path(store)).len() >= count);
    }
}

/// All records, as they are in a store. Empty if there is none yet.
fn rows(store: &Path) -> Vec<String> {
    if !store.exists() {
        return Vec::new();
    }
    let read = || -> rusqlite::Result<Vec<String>> {
        let connection = Connection::open(store)?;
        connection.busy_timeout(PATIENCE)?;
        let mut statement = connection.prepare(
            "SELECT json_array(number, purpose, assignment, windows, performance, duration_s,
             spread, error, retry, detail, elapsed_s) FROM record ORDER BY campaign, number",
        )?;
        statement.query_map([], |row| row.get(0))?.collect()
    };
    read().unwrap_or_default()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// `words` on two hosts.
fn on_hosts<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let place = words.iter().position(|word| *word == "--").unwrap_or(words.len());
    let mut all = words.to_vec();
    all.splice(place..place, ["--on", "ssh:h1,h2"]);
    all
}

/// Kills one process.
fn kill(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid as i32).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

const KILL: rustix::process::Signal = rustix::process::Signal::KILL;

#[test]
fn a_model_on_two_hosts_is_measured_as_on_one_machine_whoever_dies() {
    let site = Site::new();
    assert!(site.run(&MODEL, "one.db").status.success());
    let alone = rows(&site.path("one.db"));
    assert_eq!(alone.len(), 300);

    let both = site.run(&on_hosts(&MODEL), "both.db");
    assert!(both.status.success(), "{}", said(&both));
    assert_eq!(rows(&site.path("both.db")), alone);
    site.no_worker_is_left();

    // A worker dies midway: its trials go to the other one.
    let told = site.path("told");
    let words = [&MODEL[..], &["--json"]].concat();
    let mut command = site.command(&on_hosts(&words), "killed.db");
    let mut coordinator =
        Program::start(command.stdout(Stdio::null()).stderr(fs::File::create(&told).unwrap()));
    site.measured("killed.db", 20);
    kill(site.workers()[0], KILL);
    assert!(coordinator.ended(PATIENCE).success());
    let told = fs::read_to_string(&told).unwrap();
    assert!(told.contains("note: node h") && told.contains("the connection was lost"), "{told}");
    assert_eq!(rows(&site.path("killed.db")), alone);

    // All workers die: what was measured is kept, and goes on when it is resumed.
    let folder = site.path("left");
    let mut command = site.command(&on_hosts(&MODEL), "left.db");
    let mut coordinator =
        Program::start(command.stdout(Stdio::null()).stderr(fs::File::create(&folder).unwrap()));
    site.measured("left.db", 20);
    site.workers().into_iter().for_each(|worker| kill(worker, KILL));
    assert_eq!(coordinator.ended(PATIENCE).code(), Some(1));
    let complaint = fs::read_to_string(&folder).unwrap();
    for part in ["no node is left", "node h", "the connection was lost", "campaign resume 1"] {
        assert!(complaint.contains(part), "{part}: {complaint}");
    }
    assert!(rows(&site.path("left.db")).len() < alone.len());
    let resumed = site.run(&["campaign", "resume", "1"], "left.db");
    assert!(resumed.status.success(), "{}", said(&resumed));
    assert_eq!(rows(&site.path("left.db")), alone);

    // The coordinator dies: its workers end by themselves.
    let mut coordinator = Program::start(
        site.command(&on_hosts(&MODEL), "dead.db").stdout(Stdio::null()).stderr(Stdio::null()),
    );
    site.measured("dead.db", 20);
    kill(coordinator.pid(), KILL);
    coordinator.ended(PATIENCE);
    site.no_worker_is_left();
    assert!(site.run(&["campaign", "resume", "1"], "dead.db").status.success());
    assert_eq!(rows(&site.path("dead.db")), alone);

    // Ctrl-C.
    let mut coordinator = Program::start(
        site.command(&on_hosts(&MODEL), "stopped.db").stdout(Stdio::null()).stderr(Stdio::null()),
    );
    site.measured("stopped.db", 20);
    kill(coordinator.pid(), rustix::process::Signal::INT);
    assert_eq!(coordinator.ended(PATIENCE).code(), Some(130));
    assert_eq!(site.workers(), [0; 0], "none is left when it has ended");
    assert!(site.run(&["campaign", "resume", "1"], "stopped.db").status.success());
    assert_eq!(rows(&site.path("stopped.db")), alone);
}

/// A command with two busy threads of control, whose run takes about 0.1 s.
const COMMAND: [&str; 6] = ["place", "--budget", "20", "--", "sh", "-c"];
const SCRIPT: &str = "busy() { i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; }; \
                      busy & busy; wait";

#[test]
fn a_command_is_measured_on_both_hosts_and_each_record_has_its_node() {
    let site = Site::new();
    let words = [&COMMAND[..], &[SCRIPT]].concat();
    let words: Vec<&str> = on_hosts(&words);
    let mut coordinator =
        Program::start(site.command(&words, "real.db").stdout(Stdio::null()).stderr(Stdio::null()));
    site.measured("real.db", 3);
    kill(coordinator.pid(), KILL);
    coordinator.ended(PATIENCE);
    site.no_worker_is_left();
    let resumed = site.run(&["campaign", "resume", "1"], "real.db");
    assert!(resumed.status.success(), "{}", said(&resumed));
    let connection = Connection::open(site.path("real.db")).unwrap();
    let count = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(count("SELECT count(*) FROM record"), 20);
    let of = "SELECT count(DISTINCT record.number) FROM record JOIN result ON
              result.record = record.number";
    assert_eq!(count(of), 20, "each record has its node");
    assert_eq!(count("SELECT count(DISTINCT node) FROM result"), 2);
    assert_eq!(
        count("SELECT count(*) - count(DISTINCT record) FROM result WHERE record IS NOT NULL"),
        0
    );
}

#[test]
fn microbenchmarks_run_on_hosts() {
    let site = Site::new();
    let words = ["characterize", "--benchmarks", "intadd", "--stressors", "1", "--rounds", "2"];
    let done = site.run(&on_hosts(&words), "bench.db");
    assert!(done.status.success(), "{}", said(&done));
    let model = ["characterize", "--machine", "ultrasparc-t2", "--benchmarks", "intadd,FPdiv"];
    let model = [&model[..], &["--stressors", "1"]].concat();
    assert!(site.run(&model, "one.db").status.success());
    let done = site.run(&on_hosts(&model), "both.db");
    assert!(done.status.success(), "{}", said(&done));
    // The time that a simulation takes here differs.
    let results = |store: &str| {
        let connection = Connection::open(site.path(store)).unwrap();
        let of =
            "SELECT json_array(number, assignment, performance, detail) FROM record ORDER BY 1";
        let mut statement = connection.prepare(of).unwrap();
        let rows = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
        rows.collect::<Result<Vec<_>, _>>().unwrap()
    };
    let alone = results("one.db");
    assert_eq!(results("both.db"), alone);
    let ahead = site.run(&on_hosts(&[&model[..], &["--dry-run"]].concat()), "none.db");
    let told = String::from_utf8(ahead.stdout).unwrap();
    assert!(told.contains(&format!("at most {} measurements", alone.len())), "{told}");
}

#[test]
fn what_cannot_be_used_is_named_with_its_remedy() {
    let site = Site::new();
    let fails = |words: &[&str], parts: &[&str]| {
        let output = site.run(words, "none.db");
        let said = said(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert_eq!(said.lines().filter(|line| line.starts_with("pinwise: ")).count(), 1, "{said}");
        parts.iter().for_each(|part| assert!(said.contains(part), "{part}: {said}"));
    };
    // Another version is where this one should be.
    assert!(site.run(&on_hosts(&MODEL), "first.db").status.success());
    let cache = site.path("home/.cache/pinwise");
    let program = fs::read_dir(&cache).unwrap().next().unwrap().unwrap().path().join("pinwise");
    fs::remove_file(&program).unwrap();
    let hello = r#"{"kind":"hello","protocol":9,"version":"9.9","host":"h"}"#;
    let other =
        format!("#!/bin/sh\nprintf '\\000\\000\\000\\{:03o}%s' '{hello}'\nsleep 5\n", hello.len());
    fs::write(&program, other).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
    fails(&on_hosts(&MODEL), &["node h1: its pinwise is 9.9 (protocol 9)", "remove it there"]);
    fs::write(&program, "#!/bin/sh\necho welcome to this host\n").unwrap();
    fails(&on_hosts(&MODEL), &["node h1: ", "login script"]);
    // ssh cannot reach it.
    for (words, part) in [
        ("Host key verification failed.", "host key is unknown"),
        ("me@h1: Permission denied (publickey).", "ssh-copy-id h1"),
    ] {
        site.script("ssh", &format!("echo '{words}' >&2; exit 255"));
        fails(&on_hosts(&MODEL), &["node h1: ", part]);
    }
    // A login script greets before.
    site.script("ssh", "echo sparc welcomes you; echo pinwise-host sparc64");
    fails(&on_hosts(&MODEL), &["node h1: it is sparc64", "one architecture"]);
    // Slurm.
    let slurm = [&MODEL[..], &["--on", "slurm:nope", "--nodes", "2"]].concat();
    site.script("scancel", "exit 0");
    site.script(
        "srun",
        "echo 'srun: error: Unable to allocate: Invalid partition name' >&2; exit 1",
    );
    fails(&slurm, &["node 1: Slurm has no partition nope: sinfo"]);
    let lists: [(&[&str], &str); 3] = [
        (&["--on", "slurm"], "add --nodes N"),
        (&["--on", "ssh:-oProxyCommand=x"], "is no name of a host"),
        (&["--on", "ssh:h1", "--workload", "intadd"], "started anew"),
    ];
    let live: (&[&str], &str) =
        (&["--on", "ssh:h1", "--set", "cpuset:", "--pid", "1"], "started anew");
    let file: (&[&str], &str) =
        (&["--on", "ssh:h1", "--output", "o", "--", "job", "{n}"], "--output");
    let numbers = [live, file].map(|(words, part)| ("threads", words, part));
    let moments: &[&str] = &["--on", "ssh:h1", "--metric", "stdout:(.)", "--", "job", "{n}"];
    let tuned = [("tune", moments, "--per-run"), ("tune", file.0, file.1)];
    let places = lists.map(|(words, part)| ("place", words, part));
    for (command, words, part) in places.into_iter().chain(numbers).chain(tuned) {
        let output = site.run(&[&[command], words].concat(), "none.db");
        assert!(
            output.status.code() == Some(2) && said(&output).contains(part),
            "{}",
            said(&output)
        );
    }
}

/// srun's standard input and output are the connection; scancel ends what is left.
#[test]
fn slurm_gives_nodes_and_gets_them_back() {
    let site = Site::new();
    let log = site.path("log");
    let keep = |name: &str| format!("echo {name} \"$@\" >> {}", log.display());
    site.script(
        "srun",
        &format!(
            "{}\n[ \"$SLURM_NTASKS$SLURM_CONF\" = mine ] || exit 9\n\
             while [ \"$1\" != worker ]; do p=$1; shift; done; exec \"$p\" worker",
            keep("srun")
        ),
    );
    site.script("scancel", &keep("scancel"));
    let words = [&MODEL[..], &["--on", "slurm:short", "--nodes", "2"]].concat();
    // In an allocation of the user's, which srun must not see.
    let mut command = site.command(&words, "slurm.db");
    let done = command.env("SLURM_NTASKS", "4").env("SLURM_CONF", "mine").output().unwrap();
    assert!(done.status.success(), "{}", said(&done));
    assert!(site.run(&MODEL, "one.db").status.success());
    assert_eq!(rows(&site.path("slurm.db")), rows(&site.path("one.db")));
    site.no_worker_is_left();
    let calls = fs::read_to_string(log).unwrap();
    let named = |call: &str| {
        let words: Vec<&str> = call.split(' ').collect();
        let place = words.iter().position(|word| word.ends_with("name")).unwrap();
        words[place + 1].to_owned()
    };
    let names: Vec<String> = calls.lines().map(named).collect();
    // Two nodes, jobs that still wait, and what is left.
    assert!(names.len() == 4 && names.iter().all(|name| *name == names[0]), "{calls}");
    assert!(calls.lines().all(|call| call.starts_with("scancel") || call.contains("--exclusive")));
}

/// The queue has no node, and the coordinator dies without a word.
#[test]
fn jobs_that_wait_in_a_queue_are_told_and_end_with_their_coordinator() {
    let site = Site::new();
    let (log, said) = (site.path("log"), site.path("said"));
    site.script("srun", "exec sleep 1000");
    site.script("scancel", &format!("echo \"$@\" >> {}", log.display()));
    let words = [&MODEL[..], &["--on", "slurm", "--nodes", "2"]].concat();
    let mut command = site.command(&words, "queued.db");
    let mut coordinator =
        Program::start(command.stdout(Stdio::null()).stderr(fs::File::create(&said).unwrap()));
    let told = || fs::read_to_string(&said).unwrap();
    wait_until(PATIENCE, "word of the queue", || told().contains("waiting for 2 nodes"));
    assert_eq!(told().matches("waiting for").count(), 1, "{}", told());
    assert!(!log.exists());
    kill(coordinator.pid(), KILL);
    coordinator.ended(PATIENCE);
    // The shell makes the log first and writes its line then.
    let cancelled = || fs::read_to_string(&log).unwrap_or_default();
    wait_until(PATIENCE, "scancel", || cancelled().ends_with('\n'));
    assert!(cancelled().contains("--name pinwise-"), "{}", cancelled());
    // The test's own srun does not know scancel.
    let no_job = || site.processes("sleep").into_iter().for_each(|pid| kill(pid, KILL));
    no_job();

    // A campaign that is resumed waits with the same words.
    let worker = "while [ \"$1\" != worker ]; do p=$1; shift; done; exec \"$p\" worker";
    site.script("srun", worker);
    let mut command = site.command(&words, "later.db");
    let mut coordinator = Program::start(command.stdout(Stdio::null()).stderr(Stdio::null()));
    site.measured("later.db", 20);
    kill(coordinator.pid(), rustix::process::Signal::INT);
    assert_eq!(coordinator.ended(PATIENCE).code(), Some(130));
    site.script("srun", "exec sleep 1000");
    let mut command = site.command(&["campaign", "resume", "1"], "later.db");
    let mut coordinator =
        Program::start(command.stdout(Stdio::null()).stderr(fs::File::create(&said).unwrap()));
    wait_until(PATIENCE, "word of the queue", || told().contains("waiting for 2 nodes"));
    kill(coordinator.pid(), KILL);
    coordinator.ended(PATIENCE);
    no_job();
}

/// ssh greets at every login, and starts in another folder.
#[test]
fn a_command_runs_on_hosts_in_the_folder_and_with_the_path_of_the_caller() {
    let site = Site::new();
    site.script(
        "ssh",
        "cd /; PATH=/usr/bin:/bin; for last; do :; done\n\
         case \"$last\" in *worker*) ;; *) echo Welcome to this host ;; esac\n\
         exec sh -c \"$last\"",
    );
    fs::write(site.path("home/work"), SCRIPT).unwrap();
    site.script("job", &format!("exec sh {}", "work"));
    let place: &[&str] = &["place", "--budget", "12", "--json", "--", "job"];
    for words in [place, &["pairs", "--budget", "8", "--", "job", "--", "job"]] {
        let mut command = site.command(&on_hosts(words), "here.db");
        let done = command.current_dir(site.path("home")).output().unwrap();
        assert!(done.status.success(), "{}", said(&done));
    }
}

#[test]
fn comparisons_and_pairs_on_hosts_are_those_of_one_machine() {
    let site = Site::new();
    let compare = ["compare", "--machine", "ultrasparc-t2", "--workload", "intadd:2"];
    let compare =
        [&compare[..], &["--cycles", "20000", "--starts", "1", "--budget", "40"]].concat();
    let compare = [&compare[..], &["--draws", "3", "--rounds", "5"]].concat();
    let pairs = ["pairs", "--machine", "ultrasparc-t2", "--workload", "intadd", "--workload"];
    let pairs = [&pairs[..], &["hash1_L1", "--cycles", "20000", "--starts", "1"]].concat();
    let pairs = [&pairs[..], &["--budget", "20"]].concat();
    for (number, words) in [compare, pairs].iter().enumerate() {
        let (one, both) = (format!("one{number}.db"), format!("both{number}.db"));
        let done = site.run(words, &one);
        assert!(done.status.success(), "{}", said(&done));
        let done = site.run(&on_hosts(words), &both);
        assert!(done.status.success(), "{}", said(&done));
        let alone = rows(&site.path(&one));
        assert!(alone.len() > 9 && rows(&site.path(&both)) == alone);
    }
    // Real programs.
    let words = ["pairs", "--budget", "16", "--", "sh", "-c", SCRIPT, "--", "sh", "-c", SCRIPT];
    let done = site.run(&on_hosts(&words), "real.db");
    assert!(done.status.success(), "{}", said(&done));
    let words = ["compare", "--draws", "2", "--rounds", "5", "--budget", "12", "--", "sh", "-c"];
    // The threads of a short run may go unseen. Another host then measures it again.
    let long = SCRIPT.replace("60000", "120000");
    let done = site.run(&on_hosts(&[&words[..], &[&long]].concat()), "compared.db");
    assert!(done.status.success(), "{}", said(&done));
    // One host measured each round of the verdict: all of a round, and both hosts measured some.
    let connection = Connection::open(site.path("compared.db")).unwrap();
    let of = "SELECT result.node FROM record JOIN result ON result.record = record.number AND
              result.campaign = record.campaign WHERE record.campaign = 1 AND purpose = 'final'
              ORDER BY record.number";
    let mut statement = connection.prepare(of).unwrap();
    let nodes = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
    let nodes: Vec<String> = nodes.collect::<Result<_, _>>().unwrap();
    let changes = nodes.windows(2).filter(|two| two[0] != two[1]).count();
    assert!(nodes.len() >= 10 && changes < 5, "5 rounds: {nodes:?}");
    site.no_worker_is_left();
}

#[test]
fn a_dry_run_says_what_it_takes_and_starts_nothing() {
    let site = Site::new();
    site.script("ssh", "exit 9");
    let words = on_hosts(&[&MODEL[..], &["--dry-run"]].concat());
    let told = site.run(&words, "none.db");
    assert!(told.status.success(), "{}", said(&told));
    let told = String::from_utf8(told.stdout).unwrap();
    assert!(told.contains("at most 300 measurements") && told.contains("2 nodes"), "{told}");
    // The others say the same of theirs.
    let asked: [(Vec<&str>, &str); 4] = [
        (vec!["threads", "--budget", "5m", "--", "job", "{n}"], "5 min on 2 nodes"),
        (vec!["tune", "--budget", "6m", "--", "job", "{n}"], "6 min on 2 nodes"),
        (vec!["pairs", "--budget", "70", "--", "job", "--", "job"], "at most 70 measurements"),
        // Three searches and the comparison, of a command without a profile.
        (vec!["compare", "--budget", "2m", "--", "job"], "8 min on 2 nodes"),
    ];
    for (words, part) in asked {
        let mut words = on_hosts(&words);
        words.insert(1, "--dry-run");
        let told = site.run(&words, "none.db");
        assert!(told.status.success(), "{}", said(&told));
        let told = String::from_utf8(told.stdout).unwrap();
        assert!(told.contains(part) && told.contains("if a node dies"), "{part}: {told}");
    }
    assert!(!site.path("none.db").exists());
}

#[test]
fn a_program_on_hosts_that_does_not_end_ends_with_the_budget() {
    let site = Site::new();
    let endless = ["place", "--budget", "2s", "--", "sh", "-c", "sleep 1000 & sleep 1000; wait"];
    let done = site.run(&on_hosts(&endless), "endless.db");
    let told = said(&done);
    assert_eq!(done.status.code(), Some(1), "{told}");
    assert!(told.contains("node h1") && told.contains("--budget"), "{told}");
    site.no_worker_is_left();
}

/// A worker is stopped when its coordinator is killed, so it still runs when that is resumed.
#[test]
fn a_host_measures_for_a_resumed_campaign_once_the_earlier_worker_has_ended() {
    let site = Site::new();
    // In the coordinator's session, the kernel would have it go on when that dies.
    site.script("ssh", "for last; do :; done\nexec setsid --wait sh -c \"$last\"");
    let words = ["place", "--on", "ssh:h1", "--budget", "30", "--json", "--", "sh", "-c", SCRIPT];
    let mut command = site.command(&words, "turn.db");
    let mut coordinator = Program::start(command.stdout(Stdio::null()).stderr(Stdio::null()));
    site.measured("turn.db", 3);
    let [earlier] = site.workers()[..] else { panic!("{:?}", site.workers()) };
    kill(earlier, rustix::process::Signal::STOP);
    kill(coordinator.pid(), KILL);
    coordinator.ended(PATIENCE);
    let before = rows(&site.path("turn.db")).len();
    assert!(before < 30, "it was killed before its end");
    let mut command = site.command(&["campaign", "resume", "1"], "turn.db");
    let mut resumed = Program::start(command.stdout(Stdio::null()).stderr(Stdio::null()));
    wait_until(PATIENCE, "the next worker", || site.workers().len() == 2);
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(rows(&site.path("turn.db")).len(), before, "two workers measure at once");
    kill(earlier, rustix::process::Signal::CONT);
    assert!(resumed.ended(PATIENCE).success());
    assert_eq!(rows(&site.path("turn.db")).len(), 30);
    site.no_worker_is_left();
}

/// The program says on the second host that it is half as fast. No clock decides that.
#[test]
fn a_slow_host_is_scaled_where_the_user_says_so() {
    let site = Site::new();
    let ssh = |hosts: &str| {
        let script = format!(
            "for last; do :; done\ncase \"$*\" in *' h2 '*) export RATE=50 ;; esac\n\
             case \"$*\" in {hosts}) exec sh -c \"$last\" ;; esac\nexit 255"
        );
        site.script("ssh", &script);
    };
    ssh("*");
    let words = ["place", "--scale-nodes", "--budget", "60", "--json", "--per-run", "--metric"];
    let script = format!("({SCRIPT}); echo rate=${{RATE:-100}}");
    let words = [&words[..], &["stdout:rate=(\\d+)", "--", "sh", "-c", &script]].concat();
    let mut command = site.command(&on_hosts(&words), "scaled.db");
    let mut coordinator = Program::start(command.stdout(Stdio::null()).stderr(Stdio::null()));
    site.measured("scaled.db", 8);
    kill(coordinator.pid(), KILL);
    coordinator.ended(PATIENCE);
    site.no_worker_is_left();
    let before = rows(&site.path("scaled.db")).len();
    assert!(before < 60, "it was killed before its end");
    // The host on whose scale the results are does not answer any more.
    ssh("*' h2 '*");
    let resumed = site.run(&["campaign", "resume", "1", "--json"], "scaled.db");
    assert!(resumed.status.success(), "{}", said(&resumed));
    let answer: serde_json::Value = serde_json::from_slice(&resumed.stdout).unwrap();
    let notes = answer["notes"].to_string();
    assert!(notes.contains("node_scaled"), "{answer:#}");
    let connection = Connection::open(site.path("scaled.db")).unwrap();
    let of = "SELECT node, json_extract(scale, '$.factor'), performance,
              json_extract(outcome, '$.Ok.performance') FROM record JOIN result ON
              result.record = record.number ORDER BY record.number";
    let mut statement = connection.prepare(of).unwrap();
    type Row = (String, Option<f64>, f64, f64);
    let row = |row: &rusqlite::Row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
    let rows: Vec<Row> = statement.query_map([], row).unwrap().collect::<Result<_, _>>().unwrap();
    let scaled = rows.iter().all(|(node, factor, record, own)| {
        (node == "h2") == factor.is_some() && (record / own - factor.unwrap_or(1.0)).abs() < 1e-9
    });
    let factors: Vec<f64> = rows.iter().filter_map(|row| row.1).collect();
    let mut resumed = rows.iter().skip(before);
    assert!(scaled && rows.len() > before && resumed.all(|row| row.0 == "h2"), "{rows:?}");
    assert!(factors.iter().all(|factor| (*factor - 2.0).abs() < 1e-9), "{rows:?}");
}

/// A search on a model.
const NUMBERS: [&str; 13] = [
    "threads",
    "--machine",
    "opteron-24",
    "--workload",
    "ferret",
    "--min",
    "8",
    "--max",
    "48",
    "--step",
    "4",
    "--window",
    "200ms",
];

#[test]
fn a_number_of_threads_on_hosts_is_that_of_one_machine_whoever_dies() {
    let site = Site::new();
    // The sweep takes so long that there is time to end a worker.
    let methods: [&[&str]; 3] = [&["survey"], &["reinforcer"], &["sweep", "--rounds", "12"]];
    let methods = methods.map(|method| [&["--method"], method].concat());
    for (number, method) in methods.iter().enumerate() {
        let words = [&NUMBERS[..], &method[..]].concat();
        let (one, both) = (format!("one{number}.db"), format!("both{number}.db"));
        for (words, store) in [(words.clone(), &one), (on_hosts(&words), &both)] {
            let done = site.run(&words, store);
            assert!(done.status.success(), "{}", said(&done));
        }
        let alone = rows(&site.path(&one));
        assert!(alone.len() > 4, "{alone:?}");
        assert_eq!(rows(&site.path(&both)), alone, "{method:?}");
    }
    site.no_worker_is_left();
    let alone = rows(&site.path("one2.db"));
    let sweep = on_hosts(&[&NUMBERS[..], &methods[2]].concat());
    let begin = |store: &str| {
        let mut command = site.command(&sweep, store);
        let coordinator = Program::start(command.stdout(Stdio::null()).stderr(Stdio::null()));
        site.measured(store, 4);
        coordinator
    };
    // A worker dies midway.
    let mut coordinator = begin("killed.db");
    kill(site.workers()[0], KILL);
    assert!(coordinator.ended(PATIENCE).success());
    assert_eq!(rows(&site.path("killed.db")), alone);
    // Ctrl-C.
    let mut coordinator = begin("stopped.db");
    kill(coordinator.pid(), rustix::process::Signal::INT);
    assert_eq!(coordinator.ended(PATIENCE).code(), Some(130));
    assert_eq!(site.workers(), [0; 0]);
    assert!(rows(&site.path("stopped.db")).len() < alone.len());
    let resumed = site.run(&["campaign", "resume", "1"], "stopped.db");
    assert!(resumed.status.success(), "{}", said(&resumed));
    assert_eq!(rows(&site.path("stopped.db")), alone);
}

#[test]
fn a_program_is_probed_on_hosts_and_each_round_on_one_of_them() {
    let site = Site::new();
    fs::write(site.path("home/work"), SCRIPT.replace("60000", "20000")).unwrap();
    site.script("job", "n=$1; while [ $n -gt 0 ]; do sh work & n=$((n-1)); done; wait");
    // PATH is that of the caller, and so is the folder.
    site.script("ssh", "cd /; PATH=/usr/bin:/bin; for last; do :; done\nexec sh -c \"$last\"");
    let words = ["threads", "--method", "sweep", "--rounds", "4", "--max", "3", "--per-run"];
    // With a default among them, there is always something to compare.
    let words = [&words[..], &["--default", "2", "--budget", "6s", "--", "job", "{n}"]].concat();
    let words = on_hosts(&words);
    let mut command = site.command(&words, "real.db");
    command.current_dir(site.path("home")).stdout(Stdio::null()).stderr(Stdio::null());
    let mut coordinator = Program::start(&mut command);
    site.measured("real.db", 2);
    kill(coordinator.pid(), KILL);
    coordinator.ended(PATIENCE);
    site.no_worker_is_left();
    // The next session loses a worker.
    let told = site.path("told");
    let mut command = site.command(&["campaign", "resume", "1"], "real.db");
    command.current_dir(site.path("home")).stdout(Stdio::null());
    let mut resumed = Program::start(command.stderr(fs::File::create(&told).unwrap()));
    site.measured("real.db", 4);
    kill(site.workers()[0], KILL);
    assert!(resumed.ended(PATIENCE).success(), "{}", fs::read_to_string(&told).unwrap());
    let connection = Connection::open(site.path("real.db")).unwrap();
    let nodes = |campaign: i64| -> Vec<String> {
        let of = "SELECT result.node FROM record JOIN result ON result.record = record.number AND
                  result.campaign = record.campaign WHERE record.campaign = ?1
                  ORDER BY record.number";
        let mut statement = connection.prepare(of).unwrap();
        let nodes = statement.query_map([campaign], |row| row.get(0)).unwrap();
        nodes.collect::<Result<_, _>>().unwrap()
    };
    let sweep = nodes(1);
    if sweep.len() > 12 {
        pinwise_synthetic::not_judged("others starved a probe, and it was made again");
        return;
    }
    assert_eq!(sweep.len(), 12);
    let split = |rounds: &[String], size| {
        let differ = |round: &&[String]| round.iter().any(|node| *node != round[0]);
        rounds.chunks(size).filter(differ).count()
    };
    let told = fs::read_to_string(told).unwrap();
    // The worker may have died in a round. The session that was killed left none to another host.
    let lost = usize::from(told.contains("did not measure to the end"));
    assert!(lost == 1 && split(&sweep, 3) <= lost, "{sweep:?}\n{told}");
    // The last comparison has rounds of two.
    let last = nodes(2);
    assert!(!last.is_empty() && split(&last, 2) <= lost, "{last:?}\n{told}");
    site.no_worker_is_left();
}

#[test]
fn a_number_and_its_placement_are_found_on_hosts() {
    let site = Site::new();
    fs::write(site.path("home/work"), SCRIPT.replace("60000", "20000")).unwrap();
    site.script("job", "n=$1; while [ $n -gt 1 ]; do sh work & n=$((n-1)); done; sh work; wait");
    site.script("ssh", "cd /; PATH=/usr/bin:/bin; for last; do :; done\nexec sh -c \"$last\"");
    let tune = ["tune", "--method", "sweep", "--rounds", "2", "--max", "2", "--budget", "10s"];
    let words = on_hosts(&[&tune[..], &["--json", "--", "job", "{n}"]].concat());
    let from_home = |words: &[&str]| {
        let mut command = site.command(words, "tuned.db");
        command.current_dir(site.path("home"));
        command
    };
    // Ctrl-C during the first part.
    let mut command = from_home(&words);
    let mut coordinator = Program::start(command.stdout(Stdio::null()).stderr(Stdio::null()));
    site.measured("tuned.db", 1);
    kill(coordinator.pid(), rustix::process::Signal::INT);
    assert_eq!(coordinator.ended(PATIENCE).code(), Some(130));
    assert_eq!(site.workers(), [0; 0]);
    let done = from_home(&["campaign", "resume", "1", "--json"]).output().unwrap();
    assert!(done.status.success(), "{}", said(&done));
    let answer: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert!(answer["choice"].is_string(), "{answer:#}");
    // The answer says what happened to the hosts in its parts.
    let notes = answer["notes"].to_string();
    assert!(notes.contains("nodes_alike") || notes.contains("node_lost"), "{answer:#}");
    site.no_worker_is_left();
    // One host measured each round of the last comparison: the default, the number, its placement.
    let connection = Connection::open(site.path("tuned.db")).unwrap();
    let of = "SELECT record.assignment, result.node FROM record JOIN result ON
              result.record = record.number AND result.campaign = record.campaign
              WHERE purpose = 'final' AND record.campaign =
              (SELECT id FROM campaign WHERE kind = 'last_comparison') ORDER BY record.number";
    let mut statement = connection.prepare(of).unwrap();
    let windows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    let windows: Vec<(String, String)> = windows.collect::<Result<_, _>>().unwrap();
    let ways = windows.iter().map(|(way, _)| way).collect::<std::collections::BTreeSet<_>>().len();
    let one = |round: &[(String, String)]| round.iter().all(|(_, node)| *node == round[0].1);
    let split = windows.chunks(ways).filter(|round| !one(round)).count();
    // A host that is set aside, as a note says, may leave a round to the other one.
    let lost = usize::from(notes.contains("node_lost"));
    assert!(ways > 1 && split <= lost, "{windows:?}\n{notes}");
}

/// From the third worker on, the program may use one CPU less.
#[test]
fn a_part_on_hosts_that_are_unlike_those_before_is_refused() {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let cpus = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    let Some((first, _)) = cpus.trim().split_once([',', '-']) else { return };
    let site = Site::new();
    let log = site.path("log");
    site.script(
        "ssh",
        &format!(
            "cd /; for last; do :; done\ncase \"$last\" in *worker*) echo >> {0}\n\
             [ $(wc -l < {0}) -le 2 ] || exec taskset -c {first} sh -c \"$last\" ;; esac\n\
             exec sh -c \"$last\"",
            log.display()
        ),
    );
    site.script("job", "i=0; while [ $i -lt 5000 ]; do i=$((i+1)); done");
    let tune = ["tune", "--method", "sweep", "--rounds", "1", "--max", "2", "--budget", "6s"];
    let words = on_hosts(&[&tune[..], &["--", "job", "{n}"]].concat());
    let refused = site.run(&words, "unlike.db");
    let told = said(&refused);
    assert!(refused.status.code() == Some(2) && told.contains("unlike those before"), "{told}");
    site.no_worker_is_left();
    site.script("ssh", "cd /; for last; do :; done\nexec sh -c \"$last\"");
    let resumed = site.run(&["campaign", "resume", "1"], "unlike.db");
    assert!(resumed.status.success(), "{}", said(&resumed));
}

/// A quick search on a model.
fn quick() -> Vec<&'static str> {
    on_hosts(&[&NUMBERS[..], &["--method", "reinforcer"]].concat())
}

#[test]
fn hosts_that_share_a_home_share_one_copy_which_none_replaces() {
    let site = Site::new();
    // No host sees what others have copied: each copies.
    site.script(
        "ssh",
        "for last; do :; done\ncase \"$last\" in\n\
         *'echo there'*) sh -c \"$last\" | sed 's/there$//' ;;\n\
         *) exec sh -c \"$last\" ;;\nesac",
    );
    let copies = || -> Vec<(PathBuf, u64)> {
        let cache = fs::read_dir(site.path("home/.cache/pinwise")).unwrap().flatten();
        let files = cache.flat_map(|folder| fs::read_dir(folder.path()).unwrap().flatten());
        files.map(|file| (file.path(), file.metadata().unwrap().ino())).collect()
    };
    let mut first = None;
    for store in ["first.db", "second.db"] {
        let done = site.run(&quick(), store);
        assert!(done.status.success(), "{}", said(&done));
        let copies = copies();
        assert!(copies.len() == 1 && copies[0].0.ends_with("pinwise"), "{copies:?}");
        assert_eq!(*first.get_or_insert(copies[0].1), copies[0].1, "it is still the first file");
    }
    site.no_worker_is_left();
}

#[test]
fn a_node_opens_while_another_one_still_gets_its_copy() {
    let site = Site::new();
    let (home, go, waits) = (site.path("home2"), site.path("go"), site.path("waits"));
    fs::create_dir(&home).unwrap();
    site.script(
        "ssh",
        &format!(
            "for last; do :; done\ncase \"$*\" in *' h2 '*) export HOME={} ;; esac\n\
             case \"$*\" in *' h2 '*'cat >'*) echo yes > {}; \
             while ! test -e {}; do sleep 0.1; done ;; esac\nexec sh -c \"$last\"",
            home.display(),
            waits.display(),
            go.display()
        ),
    );
    let mut command = site.command(&quick(), "both.db");
    let mut coordinator = Program::start(command.stdout(Stdio::null()).stderr(Stdio::null()));
    let copying = || fs::read_to_string(&waits).unwrap_or_default().ends_with('\n');
    wait_until(PATIENCE, "the copy to wait", copying);
    wait_until(PATIENCE, "the other worker", || site.workers().len() == 1);
    fs::write(&go, "").unwrap();
    assert!(coordinator.ended(PATIENCE).success());
    site.no_worker_is_left();
}
