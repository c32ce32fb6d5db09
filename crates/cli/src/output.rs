//! What every command says the same way: results on stdout, errors on one line, exit codes.

use anyhow::Context;
use pinwise_monitor::OtherLoad;
use pinwise_present::figures;
use std::fmt;
use std::fs;
use std::io::{self, Write};
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

impl Interrupted {
    /// In the middle of a search that starts its program again and again.
    pub(crate) fn amid() -> Self {
        Self("interrupted: what was pinned is as it was".into())
    }

    /// `error` as the middle of a search tells it: to what is started again, that is before its
    /// first measurement.
    pub(crate) fn told_amid(error: anyhow::Error) -> anyhow::Error {
        if error.is::<Self>() { Self::amid().into() } else { error }
    }
}

/// The bytes of a file that the command line names.
pub(crate) fn read_input(path: &Path) -> anyhow::Result<Vec<u8>> {
    fs::read(path).map_err(no_input)
}

/// Why a file that the command line names could not be read.
pub(crate) fn no_input(error: io::Error) -> anyhow::Error {
    match error.kind() {
        io::ErrorKind::NotFound => Usage("there is no such file".into()).into(),
        io::ErrorKind::IsADirectory => Usage("it is a directory".into()).into(),
        io::ErrorKind::InvalidData => Usage("it is no text".into()).into(),
        _ => error.into(),
    }
}

/// Writes a file that the command line names.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    fs::write(path, bytes).map_err(|error| {
        let path = path.display();
        match error.kind() {
            io::ErrorKind::NotFound => {
                Usage(format!("cannot write {path}: its folder does not exist; make it, or name another file")).into()
            }
            io::ErrorKind::IsADirectory => {
                Usage(format!("cannot write {path}: it is a directory; name a file in it")).into()
            }
            io::ErrorKind::PermissionDenied => {
                anyhow::anyhow!("cannot write {path}: permission denied; name a file in a folder that you may write to")
            }
            _ => anyhow::anyhow!("cannot write {path}: {error}; make room, or name another file"),
        }
    })
}

/// Prints `text` (which ends in a newline) on stdout.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .context("cannot write to stdout")
}

/// Prints one JSON document on stdout.
pub(crate) fn print_json(document: &impl serde::Serialize) -> anyhow::Result<()> {
    print(&format!("{}\n", serde_json::to_string_pretty(document)?))
}

/// The exit code of a command, after one line on stderr where it failed. A closed pipe (`pinwise
/// topo | head`) is no failure.
pub(crate) fn exit(done: anyhow::Result<()>) -> ExitCode {
    let Err(error) = done else { return ExitCode::SUCCESS };
    let closed_pipe = |cause: &(dyn std::error::Error + 'static)| {
        cause
            .downcast_ref::<io::Error>()
            .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    };
    if error.chain().any(closed_pipe) {
        return ExitCode::SUCCESS;
    }
    let _ = writeln!(io::stderr(), "pinwise: {error:#}");
    if error.chain().any(|cause| cause.is::<Interrupted>()) {
        ExitCode::from(130)
    } else if error.chain().any(|cause| cause.is::<Usage>()) {
        ExitCode::from(2)
    } else {
        ExitCode::FAILURE
    }
}

/// Says something beside the result, on stderr. Nobody to tell when stderr is closed.
pub(crate) fn aside(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Says each of these beside the result.
pub(crate) fn note_all<'a>(notes: impl IntoIterator<Item = &'a String>) {
    notes.into_iter().for_each(|note| aside(&format!("note: {note}")));
}

/// What others take of the contexts is worth a word from here on.
const CROWD_NOTABLE: f64 = 0.05;

/// Share of the contexts' time that other programs took while a program was measured, where it is
/// worth a word.
pub(crate) fn crowd(shares: &[OtherLoad]) -> Option<f64> {
    let sum = |of: fn(&OtherLoad) -> f64| shares.iter().map(of).sum::<f64>();
    Some(sum(|share| share.taken) / sum(|share| share.of)).filter(|others| *others >= CROWD_NOTABLE)
}

/// What qualifies an answer beside such `others`, behind it in the same sentence.
pub(crate) fn beside(others: Option<f64>) -> String {
    others.map_or(String::new(), |others| {
        format!(", beside others that took {} of the contexts' time", figures::percent(others))
    })
}

/// That other programs took much of the machine while a program was measured, and what is to be
/// known of what they `left`.
pub(crate) fn crowded(shares: &[OtherLoad], meanwhile: &str, left: &str) -> Option<String> {
    crowd(shares).map(|others| {
        format!(
            "the machine was busy: other programs took {} of the contexts' time during the {meanwhile}, and the answer is for what they left{left}; \
             try again when they rest",
            figures::percent(others)
        )
    })
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

    #[test]
    fn what_is_started_again_does_not_speak_of_a_first_measurement() {
        let beginning =
            Interrupted("interrupted before the first measurement: nothing is kept".into());
        let told = Interrupted::told_amid(beginning.into());
        assert!(told.is::<Interrupted>() && !told.to_string().contains("first"), "{told}");
        let other = Interrupted::told_amid(Usage("there is no such program".into()).into());
        assert!(other.is::<Usage>() && other.to_string() == "there is no such program", "{other}");
    }

    #[test]
    fn others_are_told_from_a_twentieth_of_the_machine_on() {
        let share = |taken: f64| OtherLoad { taken, of: 10.0 };
        assert_eq!(crowded(&[], "probes", ""), None);
        assert_eq!(crowd(&[share(-0.1), share(2.1)]), Some(0.1));
        assert_eq!(crowd(&[share(0.4)]), None);
        assert_eq!(crowded(&[share(0.3), share(0.6)], "probes", ""), None);
        let told = crowded(&[share(-0.1), share(2.1)], "measurements", "").unwrap();
        assert!(told.contains("took 10 % of the contexts' time during the measurements"), "{told}");
    }
}
