//! What the end-to-end tests share: programs that are ended when dropped, and what the kernel says
//! of their threads.
#![allow(dead_code, reason = "every test binary uses its own part")]

pub(crate) mod campaigns;
pub(crate) mod source;

use pinwise_synthetic::lacking;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::LazyLock;
use std::thread;
use std::time::{Duration, Instant};

/// The program under test.
pub(crate) const PINWISE: &str = env!("CARGO_BIN_EXE_pinwise");

/// How long a test waits for a state that has to come. It decides no test that passes: a machine
/// with much else to do reaches the state later.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// How often pinwise is killed. Set another number with `PINWISE_KILLS`.
pub(crate) fn number_of_kills(usual: u64) -> u64 {
    std::env::var("PINWISE_KILLS").map_or(usual, |kills| kills.parse().unwrap())
}

/// A program started for a test. It is killed by its own id when the test is done with it, however
/// that ends.
pub(crate) struct Program(pub(crate) Child);

impl Program {
    pub(crate) fn start(command: &mut Command) -> Self {
        let name = format!("{command:?}");
        Self(command.stdin(Stdio::null()).spawn().unwrap_or_else(|error| panic!("{name}: {error}")))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Waits until it ends; fails after `limit`.
    pub(crate) fn ended(&mut self, limit: Duration) -> std::process::ExitStatus {
        let mut status = None;
        wait_until(limit, "the program to end", || {
            status = self.0.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A built-in program that is measured while it runs, and the folder for what this makes.
pub(crate) struct Target {
    program: Program,
    folder: PathBuf,
}

impl Target {
    pub(crate) fn start(workload: &str, folder: &Path) -> Self {
        let words = ["--instances", "1", "--interval", "10ms", "--seconds", "1800"];
        let mut command = Command::new(PINWISE);
        command.args(["workload", workload]).args(words);
        command.stdout(fs::File::create(folder.join("counts")).unwrap());
        let program = Program::start(&mut command);
        let target = Self { program, folder: folder.to_owned() };
        wait_until(PATIENCE, "the workload's threads", || target.affinities().len() >= 4);
        target
    }

    pub(crate) fn pid(&self) -> u32 {
        self.program.pid()
    }

    pub(crate) fn affinities(&self) -> BTreeMap<i32, String> {
        affinities(self.pid())
    }

    /// `pinwise place` on it, with the store `pinwise.db` in the folder.
    pub(crate) fn place(&self, budget: &str) -> Command {
        let metric = format!(
            r"file:{}:packets=(?<value>\d+) seconds=(?<seconds>[\d.]+)",
            self.folder.join("counts").display()
        );
        let pid = self.pid().to_string();
        let mut command = Command::new(PINWISE);
        command.env("XDG_DATA_HOME", data());
        command.args(["place", "--pid", &pid, "--metric", &metric, "--counter"]);
        command.args(["--budget", budget, "--store"]).arg(self.folder.join("pinwise.db"));
        command
    }
}

/// An empty folder in the build folder, for what all tests of this process share. What is static is
/// never dropped: those of processes that are gone are removed here.
pub(crate) fn shared_folder(name: &str) -> PathBuf {
    let all = Path::new(env!("CARGO_TARGET_TMPDIR")).join(env!("CARGO_CRATE_NAME")).join(name);
    for old in fs::read_dir(&all).into_iter().flatten().flatten() {
        if !Path::new("/proc").join(old.file_name()).exists() {
            let _ = fs::remove_dir_all(old.path());
        }
    }
    let folder = all.join(std::process::id().to_string());
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// The data directory of this test run.
pub(crate) fn data() -> &'static Path {
    static DATA: LazyLock<PathBuf> = LazyLock::new(|| shared_folder("data"));
    &DATA
}

/// Runs pinwise to its end. What it stores goes to a folder of this test run, if the words name no
/// other.
pub(crate) fn pinwise<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(words: I) -> Output {
    Command::new(PINWISE)
        .args(words)
        .env("XDG_DATA_HOME", data())
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// The JSON document on stdout of a run that must succeed.
pub(crate) fn json(output: &Output) -> serde_json::Value {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {stderr}", output.status);
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stdout)))
}

/// The affinity list of every thread of a process.
pub(crate) fn affinities(pid: u32) -> BTreeMap<i32, String> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return BTreeMap::new() };
    let threads = tasks.filter_map(|task| task.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let list = |tid: i32| {
        let status = fs::read_to_string(format!("/proc/{pid}/task/{tid}/status")).ok()?;
        Some(
            status
                .lines()
                .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?
                .trim()
                .to_owned(),
        )
    };
    threads.filter_map(|tid| Some((tid, list(tid)?))).collect()
}

/// Polls `done` until it holds; fails the test after `limit`.
pub(crate) fn wait_until(limit: Duration, what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + limit;
    while !done() {
        assert!(Instant::now() < end, "waited {limit:?} for {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// A port nobody listens on.
pub(crate) fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// The path of a program that a test needs, or `None` after saying so; with `CI=true` it fails.
pub(crate) fn tool(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found =
        std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file());
    if found.is_none() {
        lacking(name);
    }
    found
}

/// Requires that a page says what the terminal says above its first empty line: each line of it, in
/// order.
pub(crate) fn agree(terminal: &str, page: &str) {
    let said = words_of_page(page);
    let mut rest = said.as_str();
    for line in terminal.lines().take_while(|line| !line.is_empty()) {
        let after = rest.split_once(line);
        rest = after.unwrap_or_else(|| panic!("{line:?} is not on the page: {terminal}\n{said}")).1;
    }
}

/// What a reader sees on a page, with one blank between words.
pub(crate) fn words_of_page(page: &str) -> String {
    let body = page.split_once("<body>").unwrap().1.split("<script").next().unwrap();
    let mut words = String::new();
    for (index, part) in body.split('<').enumerate() {
        words.push_str(if index == 0 { part } else { part.split_once('>').unwrap().1 });
        words.push(' ');
    }
    let mut said = words.split_whitespace().collect::<Vec<_>>().join(" ");
    for (escape, letter) in [("&#39;", "'"), ("&#43;", "+"), ("&#38;", "&")] {
        said = said.replace(escape, letter);
    }
    said
}
