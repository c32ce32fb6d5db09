//! Starts a worker on a node. Its standard input and output are the connection: no port is opened.
//!
//! *ssh.* A first connection asks for the architecture. It also looks for this program in the cache
//! folder of the node, by version and digest. If it is not there, a second one copies it. Each copy
//! has its own name at first, so that a cut one is never run. Hosts may share the folder: the first
//! whole copy gets the program's name, and none replaces it. The last connection runs
//! `pinwise worker`.
//!
//! This program may be built anew meanwhile. What is copied is the file that was read at the start.
//!
//! *Slurm.* There is one `srun` for each node. It asks for a whole node. The program has to be at
//! its path there, as on a shared file system. All jobs of a campaign have one name, by which
//! `scancel` ends what is left of them. A shell waits at a pipe for the death of the coordinator:
//! then it ends them, those that wait in the queue too ([`JobGuard`]).
//!
//! No child is in the terminal's process group: Ctrl-C reaches the coordinator alone, which ends
//! the workers.

use crate::message::FrameError;
use crate::node::Nodes;
use pinwise_measure::Interrupt;
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Why a node does not measure, or not any more. With its remedy, where there is one.
#[derive(Debug, thiserror::Error)]
pub enum NodeLoss {
    /// The program that reaches nodes is not installed here.
    #[error("there is no {0} here: install it, or use --on {1}")]
    NoClient(&'static str, &'static str),
    /// The name is unknown.
    #[error("no host has this name: check --on and ~/.ssh/config")]
    HostUnknown,
    /// ssh does not know the key of the host.
    #[error("its host key is unknown: log in once with ssh {0}, and check the key")]
    HostKeyUnknown(String),
    /// ssh knows another key of the host.
    #[error("its host key has changed: if that is right, run ssh-keygen -R {0} and log in once")]
    HostKeyChanged(String),
    /// ssh has no key that the host accepts.
    #[error("no permission to log in without a password: set up a key (ssh-copy-id {0})")]
    NotPermitted(String),
    /// It cannot be reached.
    #[error("it cannot be reached ({0}): check that it runs and that ssh works")]
    Unreachable(String),
    /// There is no program for its architecture.
    #[error("it is {theirs}, and this pinwise is built for {own}: use nodes of one architecture")]
    Architecture {
        /// Of the node.
        theirs: String,
        /// Of this program.
        own: &'static str,
    },
    /// The program cannot be copied to it.
    #[error("pinwise cannot be copied to it ({0}): check the space in ~/.cache there")]
    NotCopied(String),
    /// There is no Slurm, only its programs.
    #[error("Slurm has no configuration here: log in where sinfo works, or use --on ssh:HOST")]
    NoSlurm,
    /// Slurm has no such partition.
    #[error("Slurm has no partition {0}: sinfo lists them")]
    NoPartition(String),
    /// Slurm gives no node.
    #[error("Slurm gives no node ({0})")]
    NotAllocated(String),
    /// Slurm gave the others long before it.
    #[error("it was not there {} s after the first node: ask for fewer --nodes", .0.as_secs())]
    Late(Duration),
    /// The program is still being copied to it.
    #[error(
        "pinwise was still being copied to it {} s after the first node was open: try again later",
        .0.as_secs()
    )]
    Copying(Duration),
    /// The program is not at its path there.
    #[error("there is no {0} on it: put pinwise on a file system that the nodes share")]
    NoProgram(String),
    /// A worker of another version answered.
    #[error("its pinwise is {theirs}, this one is {own}: remove it there from ~/.cache/pinwise")]
    OtherVersion {
        /// Of the worker.
        theirs: String,
        /// Of this program.
        own: String,
    },
    /// The worker cannot open what is measured.
    #[error("{0}")]
    Refused(String),
    /// The worker was asked to stop: by a signal, or by Slurm.
    #[error("its worker was asked to stop")]
    Stopped,
    /// Nothing was heard from it.
    #[error("nothing was heard from it for {} s: check the node and the network", .0.as_secs())]
    Silent(Duration),
    /// A program that reaches it does not end, or its worker does not greet.
    #[error("no answer within {} s: log in once by hand to see what waits", .0.as_secs())]
    Hangs(Duration),
    /// What it measures fails, and not on the others.
    #[error("its measurements fail ({0}): check the program and its files there")]
    Failing(String),
    /// What it should be told is too long.
    #[error("it cannot be told what to measure: {0}")]
    TooMuch(FrameError),
    /// The connection ended.
    #[error(
        "the connection was lost ({}): check the node and the network",
        .0.as_deref().unwrap_or("without a word")
    )]
    Gone(Option<String>),
    /// It sent what is no message.
    #[error("it sent {0}: something prints on its standard output, such as a login script")]
    Garbled(FrameError),
    /// It is not like the others.
    #[error("{0}: it is set aside")]
    Unlike(crate::likeness::NodeDifference),
    /// A program cannot be started here.
    #[error("{0} cannot be started: {1}")]
    NotStarted(&'static str, io::Error),
    /// The user asked to stop.
    #[error("interrupted")]
    Interrupted,
}

/// This program, as it is copied to nodes.
#[derive(Clone, Debug)]
pub struct OwnProgram {
    path: PathBuf,
    /// Open since it was read: its path may lead to another build by now.
    file: Arc<File>,
    version: String,
    bytes: u64,
    /// `VERSION-DIGEST`
    key: String,
    /// See [`Self::in_turn`].
    turn: Option<String>,
}

/// The FNV-1a digest. It tells builds and names apart, and does not have to resist anybody.
pub(crate) fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |digest, byte| {
        (digest ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

impl OwnProgram {
    /// The program in a file.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(path: &Path, version: &str) -> io::Result<Self> {
        // The path of this process leads to another build, or nowhere, if that is built anew.
        let own = std::env::current_exe().is_ok_and(|own| own == path);
        let mut file = File::open(if own { Path::new("/proc/self/exe") } else { path })?;
        let mut content = Vec::new();
        file.read_to_end(&mut content)?;
        let key = format!("{version}-{:016x}", fnv1a(&content));
        let (path, version, bytes) = (path.to_owned(), version.to_owned(), content.len() as u64);
        Ok(Self { path, file: Arc::new(file), version, bytes, key, turn: None })
    }

    /// Of the workers that are started with this name, a node lets one at a time measure real
    /// programs. See [`crate::NodeTurn`].
    #[must_use]
    pub fn in_turn(self, name: String) -> Self {
        Self { turn: Some(name), ..self }
    }

    /// Its version.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The file, from its first byte.
    fn content(&self) -> io::Result<File> {
        File::open(format!("/proc/self/fd/{}", self.file.as_raw_fd()))
    }

    /// Its path below the cache folder of a node.
    pub fn cached(&self) -> String {
        format!("pinwise/{}/pinwise", self.key)
    }
}

/// What a child wrote, the end of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Said(Arc<(Mutex<SaidBytes>, Condvar)>);

#[derive(Debug, Default)]
struct SaidBytes {
    kept: Vec<u8>,
    /// The child and whatever it left have closed the pipe.
    over: bool,
}

impl Said {
    /// How much is kept.
    const KEPT: usize = 4096;

    /// How long the end is waited for. What a child leaves running may keep its pipe.
    const PATIENCE: Duration = Duration::from_secs(5);

    pub(crate) fn collect(mut from: impl Read + Send + 'static) -> Self {
        let said = Self::default();
        let shared = said.clone();
        std::thread::spawn(move || {
            let mut bytes = [0; 1024];
            loop {
                let more = from.read(&mut bytes);
                let (said, changed) = &*shared.0;
                let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
                match more {
                    Ok(more @ 1..) => {
                        said.kept.extend_from_slice(&bytes[..more]);
                        let above = said.kept.len().saturating_sub(Self::KEPT);
                        said.kept.drain(..above);
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    _ => {
                        said.over = true;
                        changed.notify_all();
                        break;
                    }
                }
            }
        });
        said
    }

    /// Everything, after the child has ended.
    pub(crate) fn whole(&self) -> String {
        let (said, changed) = &*self.0;
        let said = said.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = changed.wait_timeout_while(said, Self::PATIENCE, |said| !said.over);
        drop(waited);
        self.text()
    }

    pub(crate) fn text(&self) -> String {
        let said = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        // What others wrote reaches a terminal: no control characters.
        let text = String::from_utf8_lossy(&said.kept).into_owned();
        text.chars().map(|letter| if letter == '\n' { letter } else { plain(letter) }).collect()
    }

    /// The last line that is not empty, after the child has ended.
    pub(crate) fn last(&self) -> Option<String> {
        let text = self.whole();
        text.lines().rev().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
    }
}

fn plain(letter: char) -> char {
    if letter.is_control() { ' ' } else { letter }
}

/// A worker that was started, before its first message.
#[derive(Debug)]
pub(crate) struct LaunchedWorker {
    pub(crate) child: Child,
    pub(crate) said: Said,
}

/// Starts the worker `number` of `nodes`. `job` is the name of the jobs of Slurm. If `late` is set
/// meanwhile, a copy goes on to its end, for the next time, and no worker starts.
pub(crate) fn launch(
    nodes: &Nodes,
    number: usize,
    own: &OwnProgram,
    job: &str,
    interrupt: &Interrupt,
    late: &AtomicBool,
) -> Result<LaunchedWorker, NodeLoss> {
    let (mut command, client, other) = match nodes {
        Nodes::Ssh(hosts) => {
            let host = &hosts[number];
            provide(host, own, interrupt)?;
            if late.load(Ordering::Relaxed) {
                return Err(NodeLoss::Interrupted);
            }
            let mut command = ssh(host);
            let mut run = format!("exec \"{CACHE}/{}\" worker", own.cached());
            // Two of the hosts may be one.
            if let Some(turn) = &own.turn {
                run += &format!(" --turn {turn}-{number}");
            }
            command.arg(in_sh(&run));
            (command, "ssh", "slurm")
        }
        Nodes::Slurm { partition, .. } => {
            let mut command = Command::new("srun");
            // In an allocation of the user's, srun would start as many workers as that has tasks.
            let given = std::env::vars_os().map(|(name, _)| name);
            for name in given.filter(|name| name.as_encoded_bytes().starts_with(b"SLURM_")) {
                if name != "SLURM_CONF" {
                    command.env_remove(name);
                }
            }
            // With a number of tasks, the one task would get one CPU of the node, where Slurm
            // confines tasks.
            command.args(["--nodes=1", "--exclusive", "--kill-on-bad-exit=1"]);
            command.args(["--mem=0", "--cpu-bind=none", "--quiet", "--job-name", job]);
            command.args(partition.iter().flat_map(|partition| ["--partition", partition]));
            command.arg(&own.path).arg("worker");
            (command, "srun", "ssh:HOST")
        }
    };
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    start(command, client, other)
}

/// The cache folder of a node, in its shell.
const CACHE: &str = "${XDG_CACHE_HOME:-$HOME/.cache}";

/// A command for a host whose login shell may be any.
fn in_sh(script: &str) -> String {
    format!("exec sh -c '{script}'")
}

fn ssh(host: &str) -> Command {
    let mut command = Command::new("ssh");
    // A network that pauses for half a minute is no loss.
    let options = ["BatchMode=yes", "ConnectTimeout=15", "ServerAliveInterval=15"];
    command.args(["-T", "-x", "-a"]).args(options.iter().flat_map(|option| ["-o", option]));
    // The user's later sessions must not hang on this one.
    command.args(["-o", "ControlMaster=no", "-o", "ServerAliveCountMax=4", "--", host]);
    command
}

fn start(
    mut command: Command,
    client: &'static str,
    other: &'static str,
) -> Result<LaunchedWorker, NodeLoss> {
    command.stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => NodeLoss::NoClient(client, other),
        _ => NodeLoss::NotStarted(client, error),
    })?;
    let said = child.stderr.take().map(Said::collect).unwrap_or_default();
    Ok(LaunchedWorker { child, said })
}

/// How often a child that should end soon is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// How long a host may take to answer a login. ssh itself waits 15 s for the connection.
pub(crate) const LOGIN: Duration = Duration::from_secs(40);

/// How long Slurm may take to cancel jobs.
const CANCEL: Duration = Duration::from_secs(20);

/// How long a host may take to receive the program.
const COPY: Duration = Duration::from_secs(300);

/// Runs a short command to its end. Returns what it printed.
fn run(
    mut command: Command,
    input: Stdio,
    limit: Duration,
    interrupt: &Interrupt,
) -> Result<(ExitStatus, String, Said), NodeLoss> {
    command.stdin(input).stdout(Stdio::piped());
    let LaunchedWorker { mut child, said } = start(command, "ssh", "slurm")?;
    let printed = child.stdout.take().map(Said::collect).unwrap_or_default();
    match ended(&mut child, limit, interrupt) {
        Ok(Some(status)) => Ok((status, printed.whole(), said)),
        Ok(None) if interrupt.came() => Err(NodeLoss::Interrupted),
        Ok(None) => Err(NodeLoss::Hangs(limit)),
        Err(error) => Err(NodeLoss::NotStarted("ssh", error)),
    }
}

/// Waits for the end of a child. `None`: the limit was over or the user asked to stop, and it was
/// killed.
pub(crate) fn ended(
    child: &mut Child,
    limit: Duration,
    interrupt: &Interrupt,
) -> io::Result<Option<ExitStatus>> {
    let begin = Instant::now();
    while !interrupt.came() && begin.elapsed() < limit {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        std::thread::sleep(LOOK_EVERY);
    }
    child.kill()?;
    child.wait()?;
    Ok(None)
}

/// How the line begins that answers what a host is.
const ANSWER: &str = "pinwise-host";

/// Makes sure that this program is in the cache folder of a host.
fn provide(host: &str, own: &OwnProgram, interrupt: &Interrupt) -> Result<(), NodeLoss> {
    let program = format!("{CACHE}/{}", own.cached());
    let mut look = ssh(host);
    // A login script may print, too.
    look.arg(in_sh(&format!(
        "printf \"\\n{ANSWER} %s \" $(uname -m); test -x \"{program}\" && echo there; exit 0"
    )));
    let (status, printed, said) = run(look, Stdio::null(), LOGIN, interrupt)?;
    if !status.success() {
        return Err(of_ssh(host, &said.whole()));
    }
    let answer = printed.lines().find_map(|line| line.strip_prefix(ANSWER)).unwrap_or_default();
    let mut words = answer.split_whitespace();
    let Some(theirs) = words.next().map(str::to_owned) else {
        let last = said.last().or_else(|| printed.lines().last().map(str::to_owned));
        return Err(NodeLoss::Unreachable(last.unwrap_or_else(|| "it says nothing".to_owned())));
    };
    if theirs != std::env::consts::ARCH {
        return Err(NodeLoss::Architecture { theirs, own: std::env::consts::ARCH });
    }
    if words.next() == Some("there") {
        return Ok(());
    }
    let mut copy = ssh(host);
    let bytes = own.bytes;
    // Nobody can plant a file or a link of this name, and none that is there is written to.
    let unpredictable = RandomState::new().build_hasher().finish();
    copy.arg(in_sh(&format!(
        "umask 077; set -C; p=\"{program}\"; t=\"$p.{unpredictable:016x}\"; \
         mkdir -p \"${{p%/*}}\" && \
         cat > \"$t\" && test $(wc -c < \"$t\") -eq {bytes} && chmod 700 \"$t\" && \
         {{ ln \"$t\" \"$p\" 2>/dev/null || test -x \"$p\" || mv \"$t\" \"$p\"; }}; \
         s=$?; rm -f \"$t\"; exit $s"
    )));
    let content = own.content().map_err(|error| NodeLoss::NotCopied(error.to_string()))?;
    let (status, _, said) = run(copy, content.into(), COPY, interrupt)?;
    let why = || said.last().unwrap_or_else(|| status.to_string());
    if status.success() { Ok(()) } else { Err(NodeLoss::NotCopied(why())) }
}

/// Why ssh did not reach a host, from what it said.
pub(crate) fn of_ssh(host: &str, said: &str) -> NodeLoss {
    let has = |words: &str| said.to_lowercase().contains(words);
    let last = said.lines().rev().map(str::trim).find(|line| !line.is_empty());
    match () {
        () if has("host identification has changed") => NodeLoss::HostKeyChanged(host.to_owned()),
        () if has("host key") => NodeLoss::HostKeyUnknown(host.to_owned()),
        () if has("permission denied") || has("too many authentication failures") => {
            NodeLoss::NotPermitted(host.to_owned())
        }
        () if has("could not resolve hostname") => NodeLoss::HostUnknown,
        () => NodeLoss::Unreachable(last.unwrap_or("ssh says nothing").to_owned()),
    }
}

/// Why a worker of Slurm ended before its first message, from what srun said.
fn of_slurm(partition: Option<&str>, own: &OwnProgram, said: &str) -> NodeLoss {
    let has = |words: &str| said.to_lowercase().contains(words);
    let last = said.lines().rev().map(str::trim).find(|line| !line.is_empty());
    match () {
        () if has("could not establish a configuration source") => NodeLoss::NoSlurm,
        () if has("invalid partition") => {
            NodeLoss::NoPartition(partition.unwrap_or("(the default)").to_owned())
        }
        () if has("no such file or directory") => {
            NodeLoss::NoProgram(own.path.display().to_string())
        }
        () => NodeLoss::NotAllocated(last.unwrap_or("srun says nothing").to_owned()),
    }
}

/// Why a worker that has ended did so before its first message.
pub(crate) fn before_hello(
    nodes: &Nodes,
    number: usize,
    own: &OwnProgram,
    said: &Said,
) -> NodeLoss {
    match nodes {
        Nodes::Ssh(hosts) => of_ssh(&hosts[number], &said.whole()),
        Nodes::Slurm { partition, .. } => of_slurm(partition.as_deref(), own, &said.whole()),
    }
}

/// Ends the jobs of a name if this process dies, however it dies.
#[derive(Debug)]
pub(crate) struct JobGuard(Option<Child>);

impl JobGuard {
    /// Waits from now on. Where no shell can be started, it does nothing.
    pub(crate) fn new(job: &str) -> Self {
        let mut command = Command::new("sh");
        // Its standard input ends with the last process that holds the pipe: this one.
        let script = "read -r _; exec scancel --quiet --name \"$0\"";
        command.args(["-c", script, job]).stdin(Stdio::piped()).stdout(Stdio::null());
        Self(command.stderr(Stdio::null()).process_group(0).spawn().ok())
    }
}

impl Drop for JobGuard {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

/// Ends every job of this name that Slurm still has, or only those that wait for a node.
pub(crate) fn cancel_jobs(job: &str, only_waiting: bool) {
    let mut command = Command::new("scancel");
    command.args(["--quiet", "--name", job]).stdin(Stdio::null());
    command.args(only_waiting.then_some("--state=PENDING"));
    command.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    // Where it fails, nobody can be told: squeue shows jobs of this name.
    if let Ok(mut child) = command.spawn() {
        drop(ended(&mut child, CANCEL, &Interrupt::default()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ssh_says_becomes_a_cause_with_a_remedy() {
        for (said, cause) in [
            ("ssh: Could not resolve hostname h1: Name or service not known", "no host has this"),
            (
                "No ED25519 host key is known for h1 and you have requested strict checking.\n\
                 Host key verification failed.",
                "ssh h1",
            ),
            (
                "@  WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!  @\n\
                 Host key verification failed.",
                "ssh-keygen -R h1",
            ),
            ("me@h1: Permission denied (publickey,password).", "ssh-copy-id h1"),
            ("ssh: connect to host h1 port 22: Connection refused", "Connection refused"),
            ("", "says nothing"),
        ] {
            let text = of_ssh("h1", said).to_string();
            assert!(text.contains(cause) && !text.contains('\n'), "{said}: {text}");
        }
    }

    #[test]
    fn what_slurm_says_becomes_a_cause_with_a_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pinwise");
        std::fs::write(&path, "program").unwrap();
        let own = OwnProgram::read(&path, "1.2").unwrap();
        assert!(own.cached().starts_with("pinwise/1.2-") && own.cached().ends_with("/pinwise"));
        let why = |said: &str| of_slurm(Some("short"), &own, said).to_string();
        let invalid = "srun: error: Unable to allocate resources: Invalid partition name specified";
        assert!(why(invalid).contains("no partition short: sinfo"), "{}", why(invalid));
        let missing = "slurmstepd: error: execve(): /x/pinwise: No such file or directory";
        assert!(why(missing).contains("share"), "{}", why(missing));
        let denied = "srun: error: Unable to allocate resources: Access/permission denied";
        assert!(why(denied).contains("permission denied"), "{}", why(denied));
        let none = "srun: fatal: Could not establish a configuration source";
        assert!(why(none).contains("--on ssh:HOST"), "{}", why(none));
    }

    #[test]
    fn only_the_end_of_what_is_said_is_kept_without_control_characters() {
        let mut text = "x".repeat(9000);
        text.push_str("\n\u{1b}[31mthe end\n\n");
        let said = Said::collect(io::Cursor::new(text));
        assert_eq!(said.last().as_deref(), Some("[31mthe end"));
        assert!(said.text().len() <= Said::KEPT);
    }

    #[test]
    fn what_is_copied_is_the_file_that_was_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pinwise");
        std::fs::write(&path, "this build").unwrap();
        let own = OwnProgram::read(&path, "1").unwrap();
        std::fs::write(folder.path().join("new"), "another build").unwrap();
        std::fs::rename(folder.path().join("new"), &path).unwrap();
        for _ in 0..2 {
            let mut content = String::new();
            own.content().unwrap().read_to_string(&mut content).unwrap();
            assert_eq!(content, "this build");
        }
    }

    fn sh(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn what_a_short_command_says_is_whole_and_one_that_hangs_is_ended() {
        let interrupt = Interrupt::default();
        let run = |script: &str, limit| run(sh(script), Stdio::null(), limit, &interrupt);
        // The status is known before the last line comes.
        let (status, printed, said) =
            run("(sleep 0.1; echo late; echo why >&2) & exit 3", Duration::MAX).unwrap();
        assert_eq!((status.code(), printed.as_str()), (Some(3), "late\n"));
        assert_eq!(said.last().as_deref(), Some("why"));
        let hangs = run("exec sleep 1000", Duration::ZERO);
        assert!(matches!(hangs, Err(NodeLoss::Hangs(Duration::ZERO))), "{hangs:?}");
        interrupt.flag().store(true, std::sync::atomic::Ordering::Relaxed);
        let stopped = run("exec sleep 1000", Duration::MAX);
        assert!(matches!(stopped, Err(NodeLoss::Interrupted)), "{stopped:?}");
    }
}
