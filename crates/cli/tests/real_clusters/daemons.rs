//! The daemons of a test cluster and everything that runs below them. All of it is ended by its
//! process id when the cluster is dropped, also by a test that panics.
//!
//! Every process of a cluster names the cluster's folder in its environment or in its command.
//! That is how those are found that outlive their parents.

use crate::support::{PATIENCE, Program, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

pub(crate) struct Daemons {
    folder: TempDir,
    started: Vec<(String, Program)>,
    /// What runs when nobody uses the cluster.
    idle: BTreeSet<u32>,
}

impl Daemons {
    pub(crate) fn new() -> Self {
        let folder = TempDir::new().unwrap();
        Self { folder, started: Vec::new(), idle: BTreeSet::new() }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }

    /// Starts a daemon that stays in the foreground. What it says on stderr is its log. The kernel
    /// kills it when the thread of the test ends without dropping it.
    pub(crate) fn start(&mut self, name: &str, program: &Path, words: &[&str]) {
        let log = File::create(self.path(&format!("{name}.log"))).unwrap();
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(program).args(words);
        command.env("PINWISE_TEST_CLUSTER", self.folder()).stdout(Stdio::null()).stderr(log);
        self.started.push((name.to_owned(), Program::start(&mut command)));
    }

    /// The process of a daemon.
    pub(crate) fn pid(&self, name: &str) -> u32 {
        let (_, daemon) = self.started.iter().find(|(started, _)| started == name).unwrap();
        daemon.pid()
    }

    /// Waits for a state that the daemons have to reach. Fails when one of them ends before.
    pub(crate) fn reach(&mut self, state: &str, mut reached: impl FnMut() -> bool) {
        wait_until(PATIENCE, state, || {
            for (name, daemon) in &mut self.started {
                let ended = daemon.0.try_wait().unwrap();
                assert!(ended.is_none(), "{name} ended before {state}: {ended:?}");
            }
            reached()
        });
    }

    /// From now on, what runs besides is somebody's use of the cluster.
    pub(crate) fn all_are_up(&mut self) {
        self.idle = processes_of(self.folder());
    }

    /// The processes of those who use the cluster.
    pub(crate) fn in_use(&self) -> BTreeSet<u32> {
        processes_of(self.folder()).difference(&self.idle).copied().collect()
    }
}

impl Drop for Daemons {
    fn drop(&mut self) {
        if thread::panicking() {
            for (name, _) in &self.started {
                let log = fs::read(self.path(&format!("{name}.log"))).unwrap_or_default();
                eprintln!("--- {name}\n{}", String::from_utf8_lossy(&log));
            }
            for pid in self.in_use() {
                eprintln!("--- still running: {pid} {}", command_of(pid));
            }
        }
        self.started.clear();
        // A daemon's child that is just being made is not seen at once.
        for _ in 0..100 {
            let left = processes_of(self.folder());
            if left.is_empty() {
                return;
            }
            for pid in left {
                send(Signal::KILL, pid);
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Sends a signal to one process, if it still runs.
pub(crate) fn send(signal: Signal, pid: u32) {
    let _ = kill_process(Pid::from_raw(pid as i32).unwrap(), signal);
}

/// What a process was started with, its words separated by blanks.
pub(crate) fn command_of(pid: u32) -> String {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&words).replace('\0', " ").trim_end().to_owned()
}

/// The processes whose environment or command names a folder. A process that has ended and waits
/// for its parent has neither.
fn processes_of(folder: &Path) -> BTreeSet<u32> {
    let folder = folder.as_os_str().as_encoded_bytes();
    let names = |file: PathBuf| {
        let text = fs::read(file).unwrap_or_default();
        text.windows(folder.len()).any(|part| part == folder)
    };
    let all = fs::read_dir("/proc").unwrap().flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| {
        let process = Path::new("/proc").join(pid.to_string());
        names(process.join("environ")) || names(process.join("cmdline"))
    })
    .collect()
}

/// Ports for daemons. The kernel gives higher ports to connections. So no connection takes one of
/// these before the daemon starts.
pub(crate) fn ports<const N: usize>() -> [u16; N] {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    const FIRST: u16 = 20_000;
    const COUNT: u16 = 12_000;
    let begin = (std::process::id() * 37 % u32::from(COUNT)) as u16;
    std::array::from_fn(|_| {
        let candidates = (0..COUNT).map(|_| {
            let next = NEXT.fetch_add(1, Ordering::Relaxed);
            FIRST + (begin + next % COUNT) % COUNT
        });
        let mut free = candidates.filter(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok());
        free.next().expect("a free port")
    })
}
