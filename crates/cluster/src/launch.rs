//! Starts a worker on a node. Its standard input and output are the connection: no port is opened.
//!
//! *ssh.* A first connection asks for the architecture and for this program in the cache folder of
//! the node, by version and digest. If it is not there, a second one copies it: to another name
//! first, so that a cut copy is never run. The last one runs `pinwise worker`.
//!
//! *Slurm.* One `srun` for each node asks for a node of its own. The program has to be at its path
//! there, as on a shared file system. All jobs of a campaign have one name, by which `scancel` ends
//! what is left of them.
//!
//! No child is in the terminal's process group: Ctrl-C reaches the coordinator alone, which ends
//! the workers.

use crate::message::FrameError;
use crate::node::Nodes;
use pinwise_measure::Interrupt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Why a node does not measure, or not any more. With its remedy, where there is one.
#[derive(Debug, thiserror::Error)]
pub enum NodeLoss {
    /// The program that reaches nodes is not installed here.
    #[error("there is no {0} here: install it, or use --on {1}")]
    NoClient(&'static str, &'static str),
    /// The name is unknown.
    #[error("no host has this name: check --on and ~/.ssh/config")]
    HostUnknown,
    /// ssh does not know the key of the host, or another one.
    #[error("its host key is unknown or has changed: log in once with ssh {0}, and check the key")]
    HostKeyUnknown(String),
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
    /// Slurm has no such partition.
    #[error("Slurm has no partition {0}: sinfo lists them")]
    NoPartition(String),
    /// Slurm gives no node.
    #[error("Slurm gives no node ({0})")]
    NotAllocated(String),
    /// The others were there long before it.
    #[error("it was not there {} s after the first node: ask for fewer --nodes", .0.as_secs())]
    Late(Duration),
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
    /// The connection ended.
    #[error("the connection was lost ({})", .0.as_deref().unwrap_or("without a word"))]
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
    version: String,
    bytes: u64,
    /// `VERSION-DIGEST`
    key: String,
}

impl OwnProgram {
    /// The program in a file.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(path: &Path, version: &str) -> io::Result<Self> {
        let content = std::fs::read(path)?;
        // FNV-1a: it tells builds apart, and does not have to resist anybody.
        let digest = content.iter().fold(0xcbf2_9ce4_8422_2325_u64, |digest, byte| {
            (digest ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let key = format!("{version}-{digest:016x}");
        let (path, version, bytes) = (path.to_owned(), version.to_owned(), content.len() as u64);
        Ok(Self { path, version, bytes, key })
    }

    /// Its version.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Its path below the cache folder of a node.
    pub fn cached(&self) -> String {
        format!("pinwise/{}/pinwise", self.key)
    }
}

/// What a child wrote to its standard error, the end of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Said(Arc<Mutex<Vec<u8>>>);

impl Said {
    /// How much is kept.
    const KEPT: usize = 4096;

    pub(crate) fn collect(mut from: impl Read + Send + 'static) -> Self {
        let said = Self::default();
        let kept = said.clone();
        std::thread::spawn(move || {
            let mut bytes = [0; 1024];
            while let Ok(more @ 1..) = from.read(&mut bytes) {
                let mut kept = kept.0.lock().unwrap_or_else(PoisonError::into_inner);
                kept.extend_from_slice(&bytes[..more]);
                let above = kept.len().saturating_sub(Self::KEPT);
                kept.drain(..above);
            }
        });
        said
    }

    pub(crate) fn text(&self) -> String {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // What others wrote reaches a terminal: no control characters.
        let text = String::from_utf8_lossy(&kept).into_owned();
        text.chars().map(|letter| if letter == '\n' { letter } else { plain(letter) }).collect()
    }

    /// Its last line that is not empty.
    pub(crate) fn last(&self) -> Option<String> {
        let text = self.text();
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

/// Starts the worker `number` of `nodes`. `job` is the name of the jobs of Slurm.
pub(crate) fn launch(
    nodes: &Nodes,
    number: usize,
    own: &OwnProgram,
    job: &str,
    interrupt: &Interrupt,
) -> Result<LaunchedWorker, NodeLoss> {
    let (mut command, client, other) = match nodes {
        Nodes::Ssh(hosts) => {
            let host = &hosts[number];
            provide(host, own, interrupt)?;
            let mut command = ssh(host);
            let run = format!("exec \"{CACHE}/{}\" worker", own.cached());
            command.arg(in_sh(&run));
            (command, "ssh", "slurm")
        }
        Nodes::Slurm { partition, .. } => {
            let mut command = Command::new("srun");
            command.args(["--nodes=1", "--ntasks=1", "--exclusive", "--kill-on-bad-exit=1"]);
            command.args(["--cpu-bind=none", "--quiet", "--job-name", job]);
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
    command.args(["-o", "ServerAliveCountMax=4", "--", host]);
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

/// Runs a short command to its end. Returns what it printed.
fn run(
    mut command: Command,
    input: Stdio,
    interrupt: &Interrupt,
) -> Result<(ExitStatus, String, Said), NodeLoss> {
    command.stdin(input).stdout(Stdio::piped());
    let LaunchedWorker { mut child, said } = start(command, "ssh", "slurm")?;
    let printed = child.stdout.take().map(Said::collect).unwrap_or_default();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => {
                // What it wrote last may still be on its way to the threads that collect it.
                std::thread::sleep(LOOK_EVERY);
                return Ok((status, printed.text(), said));
            }
            Ok(None) if !interrupt.came() => std::thread::sleep(LOOK_EVERY),
            Ok(None) => {
                drop(child.kill());
                drop(child.wait());
                return Err(NodeLoss::Interrupted);
            }
            Err(error) => return Err(NodeLoss::NotStarted("ssh", error)),
        }
    }
}

/// Makes sure that this program is in the cache folder of a host.
fn provide(host: &str, own: &OwnProgram, interrupt: &Interrupt) -> Result<(), NodeLoss> {
    let program = format!("{CACHE}/{}", own.cached());
    let mut look = ssh(host);
    look.arg(in_sh(&format!("uname -m; test -x \"{program}\" && echo there; exit 0")));
    let (status, printed, said) = run(look, Stdio::null(), interrupt)?;
    if !status.success() {
        return Err(of_ssh(host, &said.text()));
    }
    let mut words = printed.split_whitespace();
    let theirs = words.next().unwrap_or("unknown").to_owned();
    if theirs != std::env::consts::ARCH {
        return Err(NodeLoss::Architecture { theirs, own: std::env::consts::ARCH });
    }
    if words.next() == Some("there") {
        return Ok(());
    }
    let mut copy = ssh(host);
    let bytes = own.bytes;
    copy.arg(in_sh(&format!(
        "umask 077; p=\"{program}\"; mkdir -p \"${{p%/*}}\" && cat > \"$p.$$\" && \
         test $(wc -c < \"$p.$$\") -eq {bytes} && chmod 700 \"$p.$$\" && mv \"$p.$$\" \"$p\" || \
         {{ rm -f \"$p.$$\"; exit 1; }}"
    )));
    let content = File::open(&own.path).map_err(|error| NodeLoss::NotCopied(error.to_string()))?;
    let (status, _, said) = run(copy, content.into(), interrupt)?;
    let why = || said.last().unwrap_or_else(|| status.to_string());
    if status.success() { Ok(()) } else { Err(NodeLoss::NotCopied(why())) }
}

/// Why ssh did not reach a host, from what it said.
pub(crate) fn of_ssh(host: &str, said: &str) -> NodeLoss {
    let has = |words: &str| said.to_lowercase().contains(words);
    let last = said.lines().rev().map(str::trim).find(|line| !line.is_empty());
    match () {
        () if has("host key") || has("host identification") => {
            NodeLoss::HostKeyUnknown(host.to_owned())
        }
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
        Nodes::Ssh(hosts) => of_ssh(&hosts[number], &said.text()),
        Nodes::Slurm { partition, .. } => of_slurm(partition.as_deref(), own, &said.text()),
    }
}

/// Ends every job of this name that Slurm still has, or only those that wait for a node.
pub(crate) fn cancel_jobs(job: &str, only_waiting: bool) {
    let mut command = Command::new("scancel");
    command.args(["--quiet", "--name", job]).stdin(Stdio::null());
    command.args(only_waiting.then_some("--state=PENDING"));
    // Where it fails, nobody can be told: squeue shows jobs of this name.
    drop(command.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0).status());
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
            ("@  WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!  @", "host key"),
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
    }

    #[test]
    fn only_the_end_of_what_is_said_is_kept_without_control_characters() {
        let mut text = "x".repeat(9000);
        text.push_str("\n\u{1b}[31mthe end\n\n");
        let said = Said::collect(io::Cursor::new(text));
        while said.last().is_none_or(|line| !line.ends_with("the end")) {
            std::thread::yield_now();
        }
        assert_eq!(said.last().as_deref(), Some("[31mthe end"));
        assert!(said.text().len() <= Said::KEPT);
    }
}
