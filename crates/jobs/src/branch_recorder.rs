//! Records the branches of a program: starts it under perf, which has the right options.
//!
//! Which event perf can sample with branch records differs between processors. So perf is asked to
//! record a program that does nothing, event by event. The first event that perf accepts is used
//! for the program.

use pinwise_hardware::doctor::{Finding, branch_records};
use pinwise_linux::pass_on;
use pinwise_present::{finding, finding_remedy};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

/// How often signals are passed on.
const INTERVAL: Duration = Duration::from_millis(20);

/// Events in user mode, the best one first. Estimates assume that instructions or cycles pass
/// between samples. On a hybrid processor perf opens an event on each kind of core. The branch
/// records of AMD's Zen 3 take an event of their own.
const EVENTS: [&str; 3] = ["instructions:u", "cycles:u", "branch-brs:u"];

/// Events between two samples. The number is prime, so no loop keeps its step.
const PERIOD: &str = "500009";

/// A program whose branches are to be recorded.
#[derive(Debug, Clone)]
pub struct RecordRequest {
    /// Where perf writes the recording.
    pub output: PathBuf,
    /// The program and its arguments.
    pub command: Vec<OsString>,
}

/// A recording that was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BranchesRecorded {
    /// How perf ended: as the program did.
    pub status: ExitStatus,
    /// The signal that ended it early, or 0.
    pub signal: i32,
}

/// Why there is no recording.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// perf is not installed.
    #[error(
        "perf is not here: install it (Debian: linux-perf; Ubuntu: linux-tools-generic; Fedora: \
         perf)"
    )]
    NoPerf,
    /// perf cannot be started.
    #[error("cannot start perf: {0}")]
    Start(io::Error),
    /// This machine has no branch records, or they are not permitted.
    #[error("no branch records: {}{}", finding(.0), remedy(.0))]
    NotHere(Finding),
    /// perf can record none, and says why.
    #[error("perf records no branches here: {0}")]
    Refused(String),
    /// perf ended without a recording.
    #[error("perf ended without a recording ({0}): its message is above")]
    NotWritten(ExitStatus),
}

fn remedy(found: &Finding) -> String {
    finding_remedy(found).map(|remedy| format!("; {remedy}")).unwrap_or_default()
}

/// Runs a program under perf to its end, and keeps its branches in a file. The program has our
/// terminal. `signal` is the number of a signal that this process got, or 0. The signal goes on to
/// perf, which then writes its data.
///
/// # Errors
/// If perf is missing, cannot record branches here, or wrote nothing.
pub fn record_branches(
    request: &RecordRequest,
    signal: &AtomicUsize,
) -> Result<BranchesRecorded, RecordError> {
    let event = event()?;
    let begin = SystemTime::now();
    let mut perf = perf(event, &request.output);
    let mut child = perf.arg("--").args(&request.command).spawn().map_err(not_started)?;
    let mut last = 0;
    let status = loop {
        if let Some(status) = child.try_wait().map_err(RecordError::Start)? {
            break status;
        }
        match signal.swap(0, Ordering::Relaxed) {
            0 => {}
            number => {
                last = number as i32;
                pass_on(last, &child);
            }
        }
        std::thread::sleep(INTERVAL);
    };
    if last == 0 {
        last = signal.swap(0, Ordering::Relaxed) as i32;
    }
    if !is_written(&request.output, begin) {
        return Err(RecordError::NotWritten(status));
    }
    Ok(BranchesRecorded { status, signal: last })
}

/// `perf record` with the options for branches of user mode. It says nothing but errors.
fn perf(event: &str, output: &Path) -> Command {
    let mut perf = Command::new("perf");
    perf.args(["record", "-q", "-j", "any,u", "-e", event, "-c", PERIOD, "-o"]).arg(output);
    perf
}

fn not_started(error: io::Error) -> RecordError {
    match error.kind() {
        io::ErrorKind::NotFound => RecordError::NoPerf,
        _ => RecordError::Start(error),
    }
}

/// The first event that perf can sample here.
fn event() -> Result<&'static str, RecordError> {
    let mut said = Vec::new();
    for event in EVENTS {
        let mut perf = perf(event, Path::new("/dev/null"));
        let tried = perf.args([OsStr::new("--"), OsStr::new("true")]).stdin(Stdio::null()).output();
        let tried = tried.map_err(not_started)?;
        if tried.status.success() {
            return Ok(event);
        }
        if said.is_empty() {
            said = tried.stderr;
        }
    }
    match branch_records() {
        found if !found.is_ok() => Err(RecordError::NotHere(found)),
        _ => Err(RecordError::Refused(complaint(&said))),
    }
}

/// What perf complains of, on one line.
fn complaint(said: &[u8]) -> String {
    let said = String::from_utf8_lossy(said);
    let lines = said.lines().map(str::trim).filter(|line| !line.is_empty() && *line != "Error:");
    let line: String = lines.take(1).collect();
    if line.is_empty() { "it says nothing".into() } else { line }
}

/// Whether a recording was written since then. perf keeps an older one under another name.
fn is_written(file: &Path, begin: SystemTime) -> bool {
    let mut magic = [0; 8];
    let read = File::open(file).and_then(|mut file| {
        file.read_exact(&mut magic)?;
        file.metadata()?.modified()
    });
    // File systems may keep times less exactly than clocks.
    let earliest = begin.checked_sub(Duration::from_secs(2)).unwrap_or(begin);
    read.is_ok_and(|written| written >= earliest) && &magic == b"PERFILE2"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_complaint_of_perf_is_kept() {
        assert_eq!(complaint(b"Error:\nNo permission.\n\nTry this.\n"), "No permission.");
        assert_eq!(complaint(b""), "it says nothing");
    }

    #[test]
    fn an_old_file_and_a_file_of_another_kind_are_no_recording() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("perf.data");
        let now = SystemTime::now();
        assert!(!is_written(&file, now));
        std::fs::write(&file, b"PERFILE2 and more").unwrap();
        assert!(is_written(&file, now));
        assert!(!is_written(&file, now + Duration::from_secs(60)));
        std::fs::write(&file, b"PERF").unwrap();
        assert!(!is_written(&file, now));
    }
}
