//! How help is laid out. `-h` shows the options most people need, `--help` all of them. Both put an
//! option and its text on one line if that fits. Clap's own long form takes three lines each.

use clap::builder::{Resettable, StyledStr};
use clap::{Arg, Command};
use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

/// The command line as the parser gets it: `command` with the help that `words` ask for.
pub(crate) fn laid_out(command: Command, words: &[OsString]) -> Command {
    let own: Vec<&str> = words
        .iter()
        .skip(1)
        .take_while(|word| *word != "--")
        .filter_map(|word| word.to_str())
        .filter(|word| *word != "help")
        .collect();
    literal(if own.contains(&"-h") { command } else { full(command, &own) })
}

/// Moves what only the long form shows into the short form, which is compact. The first of `words`
/// name the command. Lists of commands stay short.
fn full(command: Command, words: &[&str]) -> Command {
    let inner = words.first().and_then(|word| subcommand(&command, word));
    let Some(inner) = inner.map(|inner| inner.get_name().to_owned()) else {
        return complete(command);
    };
    command.mut_subcommand(inner, |inner| full(inner, &words[1..]))
}

/// The command that `word` is, or the only one that it begins.
pub(crate) fn subcommand<'a>(command: &'a Command, word: &str) -> Option<&'a Command> {
    let mut begun = command.get_subcommands().filter(|known| known.get_name().starts_with(word));
    let exact = command.get_subcommands().find(|known| known.get_name() == word);
    exact.or_else(|| begun.next().filter(|_| begun.next().is_none()))
}

fn complete(command: Command) -> Command {
    let about = command.get_long_about().or(command.get_about()).cloned();
    let after = command.get_after_long_help().or(command.get_after_help()).cloned();
    command
        .about(resettable(about))
        .after_help(resettable(after))
        .long_about(Resettable::Reset)
        .after_long_help(Resettable::Reset)
        .mut_args(full_argument)
}

fn full_argument(argument: Arg) -> Arg {
    let help = argument.get_long_help().or(argument.get_help()).map(ToString::to_string);
    let values = argument.get_possible_values();
    let described = values.iter().any(|value| value.get_help().is_some());
    let argument = argument.hide_short_help(false).long_help(Resettable::Reset);
    let Some(mut help) = help else { return argument };
    if !described || argument.is_hide_possible_values_set() {
        return argument.help(help);
    }
    if let [default] = argument.get_default_values() {
        help += &format!(" [default: {}]", default.to_string_lossy());
    }
    let widest = values.iter().map(|value| value.get_name().len()).max().unwrap_or_default();
    for value in &values {
        let about = value.get_help().map(ToString::to_string).unwrap_or_default();
        help += &format!("\n- {:widest$}  {about}", value.get_name());
    }
    argument.help(help).hide_possible_values(true).hide_default_value(true)
}

/// What stands for `{n}` until help is shown: the parser takes `{n}` for the end of a line.
const PLACE: &str = "\u{27e6}n\u{27e7}";

/// Puts [`PLACE`] where texts have `{n}`.
fn literal(command: Command) -> Command {
    let placed = |text: Option<&StyledStr>| text.map(|text| text.to_string().replace("{n}", PLACE));
    let about = placed(command.get_about());
    let after = placed(command.get_after_help());
    command
        .about(about.map_or(Resettable::Reset, |text| Resettable::Value(text.into())))
        .after_help(after.map_or(Resettable::Reset, |text| Resettable::Value(text.into())))
        .mut_args(|argument| match placed(argument.get_help()) {
            Some(help) => argument.help(help),
            None => argument,
        })
        .mut_subcommands(literal)
}

/// Prints help, or the version; an error is none of it.
pub(crate) fn show(error: &clap::Error) -> ExitCode {
    let text = error.render();
    let coloured = io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let text = if coloured { text.ansi().to_string() } else { text.to_string() };
    let text = text.replace(PLACE, "{n}");
    if error.use_stderr() {
        let _ = io::stderr().write_all(text.as_bytes());
    } else if io::stdout().write_all(text.as_bytes()).is_err() {
        return ExitCode::FAILURE;
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(1))
}

fn resettable(text: Option<StyledStr>) -> Resettable<StyledStr> {
    text.map_or(Resettable::Reset, Resettable::Value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Arguments;
    use clap::CommandFactory;

    /// The help of every command at `columns`, with the path to it.
    fn every(option: &str, columns: usize) -> Vec<(String, String)> {
        fn paths(command: &Command, path: &str) -> Vec<String> {
            let inner = command.get_subcommands().flat_map(|inner| {
                paths(inner, format!("{path} {}", inner.get_name()).trim_start())
            });
            inner.chain([path.to_owned()]).collect()
        }
        let help = |path: String| {
            let words: Vec<OsString> =
                format!("pinwise {path} {option}").split_whitespace().map(Into::into).collect();
            let mut command = laid_out(Arguments::command(), &words).term_width(columns);
            let text = command.try_get_matches_from_mut(&words).unwrap_err().to_string();
            (path, text.replace(PLACE, "{n}"))
        };
        paths(&Arguments::command(), "").into_iter().map(help).collect()
    }

    #[test]
    fn help_fits_two_screens_and_brief_help_one() {
        for (option, columns, most) in
            [("--help", 80, 92), ("--help", 100, 92), ("-h", 80, 46), ("-h", 100, 46)]
        {
            let all = every(option, columns);
            assert!(all.len() > 20, "only {} commands", all.len());
            let long = |(path, help): &(String, String)| {
                let lines = help.lines().count();
                (lines > most).then(|| format!("{path}: {lines}"))
            };
            let long: Vec<String> = all.iter().filter_map(long).collect();
            assert!(long.is_empty(), "{option}, {columns} columns: {long:?}");
        }
    }

    #[test]
    fn the_place_of_the_number_survives() {
        for columns in [80, 100] {
            let all = every("--help", columns);
            for command in ["", "threads", "tune", "run", "threads calibrate"] {
                let (_, help) = all.iter().find(|(path, _)| path == command).unwrap();
                assert!(help.contains("{n}"), "{help}");
            }
            for (path, help) in all {
                assert!(!help.lines().any(|line| line.ends_with('{')), "{path}: {help}");
            }
        }
        // Pages and scripts are made of the plain command.
        let mut page = Vec::new();
        let threads = Arguments::command().find_subcommand("threads").cloned().unwrap();
        clap_mangen::Man::new(threads).render(&mut page).unwrap();
        assert!(String::from_utf8(page).unwrap().contains("{n}"));
    }

    #[test]
    fn brief_help_leaves_out_what_is_rare() {
        let (brief, full) = (every("-h", 100), every("--help", 100));
        for ((path, brief), (_, full)) in brief.iter().zip(&full) {
            assert!(brief.lines().count() <= full.lines().count(), "{path}");
        }
        let place = |all: &[(String, String)]| {
            all.iter().find(|(path, _)| path == "place").unwrap().1.clone()
        };
        assert!(!place(&brief).contains("--core-local") && place(&full).contains("--core-local"));
    }
}
