//! What every command says the same way: results on stdout, errors on one line, exit codes.

use pinwise_jobs::{JobError, check_writable, why_not};
use pinwise_present::{one_line, printable};
use std::fmt;
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

/// Exit code 2: the command line makes no sense, or what it names (a file, a program, a process, a
/// cgroup, a campaign) does not exist, or an input file is not what it should be.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// Exit code 130: stopped by Ctrl-C or SIGTERM, everything put back; the text says what was kept.
#[derive(Debug)]
pub(crate) struct Interrupted(pub(crate) String);

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Interrupted {}

/// The bytes of a file that the command line names.
pub(crate) fn read_input(path: &Path) -> anyhow::Result<Vec<u8>> {
    fs::read(path).map_err(no_input)
}

/// Why a file that the command line names could not be read.
pub(crate) fn no_input(error: io::Error) -> anyhow::Error {
    match error.kind() {
        io::ErrorKind::NotFound => Usage("there is no such file".into()).into(),
        io::ErrorKind::IsADirectory => Usage("it is a directory".into()).into(),
        io::ErrorKind::InvalidData => Usage("it is not a text file".into()).into(),
        _ => error.into(),
    }
}

/// That a file which the command line names can be written, before anything is measured.
pub(crate) fn check(path: &Path) -> anyhow::Result<()> {
    check_writable(path).map_err(|error| not_written(path, &error))
}

/// Writes a file that the command line names.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    fs::write(path, bytes).map_err(|error| not_written(path, &error))
}

/// Why a file cannot be written, with the exit code it deserves.
fn not_written(path: &Path, error: &io::Error) -> anyhow::Error {
    let reason = why_not("write", path, error);
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::IsADirectory => Usage(reason).into(),
        _ => anyhow::anyhow!(reason),
    }
}

/// Prints `text` (which ends in a newline) on stdout, for a person: names in it cannot control the
/// terminal.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    write_stdout(text).map_err(|error| Stdout(error).into())
}

/// As [`print()`].
pub(crate) fn write_stdout(text: &str) -> io::Result<()> {
    write_exact(&printable(text))
}

/// Prints `text` for another program: exactly as it is into a file or a pipe, safely on a terminal.
pub(crate) fn print_data(text: &str) -> anyhow::Result<()> {
    if io::stdout().is_terminal() { print(text) } else { print_exact(text) }
}

/// Prints `text` exactly as it is. It may contain colours, and no names from outside.
pub(crate) fn print_exact(text: &str) -> anyhow::Result<()> {
    write_exact(text).map_err(|error| Stdout(error).into())
}

fn write_exact(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush())
}

/// Stdout cannot be written. That it was closed is no failure.
#[derive(Debug)]
pub(crate) struct Stdout(pub(crate) io::Error);

impl fmt::Display for Stdout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot write to stdout: {}", self.0)
    }
}

impl std::error::Error for Stdout {}

/// Prints one JSON document on stdout.
pub(crate) fn print_json(document: &impl serde::Serialize) -> anyhow::Result<()> {
    print_data(&format!("{}\n", serde_json::to_string_pretty(document)?))
}

/// The exit code of a command, after one line on stderr where it failed. A closed pipe (`pinwise
/// topo | head`) is no failure.
pub(crate) fn exit(done: anyhow::Result<()>) -> ExitCode {
    let Err(error) = done else { return ExitCode::SUCCESS };
    let closed_pipe = |cause: &(dyn std::error::Error + 'static)| {
        cause
            .downcast_ref::<Stdout>()
            .is_some_and(|Stdout(error)| error.kind() == io::ErrorKind::BrokenPipe)
    };
    if error.chain().any(closed_pipe) {
        return ExitCode::SUCCESS;
    }
    let _ = writeln!(io::stderr(), "pinwise: {}", one_line(&format!("{error:#}")));
    let job = error.chain().find_map(|cause| cause.downcast_ref::<JobError>());
    let interrupted = matches!(job, Some(JobError::Interrupted(_)));
    let usage = matches!(job, Some(JobError::Usage(_)));
    if interrupted || error.chain().any(|cause| cause.is::<Interrupted>()) {
        ExitCode::from(130)
    } else if usage || error.chain().any(|cause| cause.is::<Usage>()) {
        ExitCode::from(2)
    } else {
        ExitCode::FAILURE
    }
}

/// Says something beside the result, on stderr. Nobody to tell when stderr is closed.
pub(crate) fn aside(line: &str) {
    let _ = writeln!(io::stderr(), "{}", one_line(line));
}

/// Columns to write for: the terminal's; where stdout is none, those of COLUMNS, or 100.
pub(crate) fn width() -> usize {
    let terminal =
        rustix::termios::tcgetwinsize(io::stdout()).ok().map(|size| usize::from(size.ws_col));
    columns(terminal, std::env::var("COLUMNS").ok().as_deref())
}

/// A terminal that does not know its width, and a variable that is no number, are as if they were
/// not there.
fn columns(terminal: Option<usize>, said: Option<&str>) -> usize {
    let known = |columns: &usize| *columns > 0;
    terminal.filter(known).or_else(|| said?.parse().ok().filter(known)).unwrap_or(100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_s_width_comes_before_what_columns_says() {
        assert_eq!(
            [
                columns(Some(80), Some("40")),
                columns(Some(0), Some("40")),
                columns(None, Some("40"))
            ],
            [80, 40, 40]
        );
        assert_eq!(
            [columns(None, None), columns(None, Some("0")), columns(None, Some("wide"))],
            [100; 3]
        );
    }

    /// A pipe to another program that breaks is a failure; only stdout may be closed.
    #[test]
    fn only_a_broken_stdout_is_no_failure() {
        let broken = || io::Error::from(io::ErrorKind::BrokenPipe);
        let code = |error: anyhow::Error| format!("{:?}", exit(Err(error)));
        assert_eq!(code(Stdout(broken()).into()), format!("{:?}", ExitCode::SUCCESS));
        let full = io::Error::from(io::ErrorKind::StorageFull);
        for error in [broken().into(), Stdout(full).into()] {
            assert_eq!(code(error), format!("{:?}", ExitCode::FAILURE));
        }
    }
}
