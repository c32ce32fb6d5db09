//! The output that all commands share: results on stdout, errors on one line, exit codes.

use comfy_table::{ColumnConstraint, ContentArrangement, Table};
use pinwise_jobs::{JobError, check_writable, unwritable_reason};
use pinwise_present::{one_line, printable, printable_json};
use std::fmt;
use std::fs::{self, File};
use std::io::{self, IsTerminal, Read as _, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Exit code 2: bad usage. The command line makes no sense, or an input file is malformed. Or a
/// named file, program, process, cgroup or campaign does not exist.
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
    read_limited(File::open(path).map_err(no_input)?)
}

/// The bytes of an open input.
pub(crate) fn read_limited(input: impl io::Read) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    input.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(no_input)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(Usage("it has more than 256 MiB".into()).into());
    }
    Ok(bytes)
}

/// The longest input. A device would fill the memory.
const MOST_BYTES: u64 = 256 << 20;

/// Why a file that the command line names could not be read.
pub(crate) fn no_input(error: io::Error) -> anyhow::Error {
    match error.kind() {
        io::ErrorKind::NotFound => Usage("there is no such file".into()).into(),
        io::ErrorKind::IsADirectory => Usage("it is a directory".into()).into(),
        io::ErrorKind::InvalidData => Usage("it is not a text file".into()).into(),
        _ => error.into(),
    }
}

/// Checks, before anything is measured, that a file on the command line can be written.
pub(crate) fn check(path: &Path) -> anyhow::Result<()> {
    check_writable(path).map_err(|error| not_written(path, &error))
}

/// Writes the page of an answer that is printed. Its folder was there when the command began.
pub(crate) fn write_page_after_answer(path: &Path, page: &str) -> anyhow::Result<()> {
    let reason = |error: io::Error| unwritable_reason("write", path, &error);
    fs::write(path, page)
        .map_err(|error| anyhow::anyhow!("the answer is above, its page is not: {}", reason(error)))
}

/// Writes a page for the folder in which the command runs, if the command line names no file. It
/// tells command lines, which may be secret: it is readable to its owner alone.
pub(crate) fn write_page(
    named: Option<PathBuf>,
    free: impl FnOnce() -> PathBuf,
    page: &str,
) -> anyhow::Result<PathBuf> {
    if let Some(file) = named {
        write(&file, page.as_bytes())?;
        return Ok(file);
    }
    let file = free();
    // An earlier page, or a link that somebody planted, is replaced and not written to.
    let written = match fs::remove_file(&file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file),
    };
    let written = written.and_then(|mut open| open.write_all(page.as_bytes()));
    written.map_err(|error| not_written(&file, &error))?;
    Ok(file)
}

/// Writes a file that the command line names.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    fs::write(path, bytes).map_err(|error| not_written(path, &error))
}

/// Why a file cannot be written, with the exit code it deserves.
fn not_written(path: &Path, error: &io::Error) -> anyhow::Error {
    let reason = unwritable_reason("write", path, error);
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

/// Stdout cannot be written. A closed stdout is no failure.
#[derive(Debug)]
pub(crate) struct Stdout(pub(crate) io::Error);

impl fmt::Display for Stdout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot write to stdout: {}", self.0)
    }
}

impl std::error::Error for Stdout {}

/// Prints one JSON document on stdout, with its fields in their order. Names in it cannot control a
/// terminal, also after a pipe.
pub(crate) fn print_json(document: &impl serde::Serialize) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(document)?;
    print_exact(&format!("{}\n", printable_json(&text)))
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

/// Says something beside the result, on stderr. If stderr is closed, nobody can read the message.
pub(crate) fn aside(line: &str) {
    let _ = writeln!(io::stderr(), "{}", one_line(line));
}

/// Columns that stdout has: the terminal's or those of COLUMNS. `None`: any number, as a file has.
pub(crate) fn bounded_width() -> Option<usize> {
    let bounded = io::stdout().is_terminal() || std::env::var_os("COLUMNS").is_some();
    bounded.then(width)
}

/// Columns to write for: the terminal's; where stdout is none, those of COLUMNS, or 100.
pub(crate) fn width() -> usize {
    let terminal =
        rustix::termios::tcgetwinsize(io::stdout()).ok().map(|size| usize::from(size.ws_col));
    columns(terminal, std::env::var("COLUMNS").ok().as_deref())
}

/// The lines of a table, at most `width` columns wide. If it is wider, it loses columns of `spare`,
/// which other text or JSON has, one after the other. Then cells are broken.
pub(crate) fn fitted(mut table: Table, width: usize, spare: &[usize]) -> String {
    // A terminal fits what its 16 bits can tell.
    let columns = width.clamp(40, usize::from(u16::MAX));
    let is_wide =
        |table: &Table| table.lines().any(|line| line.trim_end().chars().count() > columns);
    for &column in spare {
        if !is_wide(&table) {
            break;
        }
        if let Some(column) = table.column_mut(column) {
            column.set_constraint(ColumnConstraint::Hidden);
        }
    }
    if is_wide(&table) {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(columns as u16);
    }
    table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// A terminal that does not know its width counts as absent. So does a variable that is no number.
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

    #[test]
    fn a_table_that_is_too_wide_loses_what_it_can_spare_and_then_breaks_cells() {
        let fit = |width| {
            let mut table = Table::new();
            table.load_style(comfy_table::presets::NOTHING);
            table.add_row([
                "a name of thirty-two columns ...",
                "1.14 to 1.25",
                "not distinguished",
            ]);
            fitted(table, width, &[2])
        };
        assert_eq!(fit(80), " a name of thirty-two columns ...  1.14 to 1.25  not distinguished\n");
        assert_eq!(fit(60), " a name of thirty-two columns ...  1.14 to 1.25\n");
        let narrow = fit(40);
        assert!(narrow.lines().count() > 1, "{narrow}");
        assert!(narrow.lines().all(|line| line.chars().count() <= 40), "{narrow}");
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
