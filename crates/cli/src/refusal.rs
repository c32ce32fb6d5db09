//! A refused command line on one line: what is wrong, what to type instead, where to read more.

use crate::output::Usage;
use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use pinwise_present::{did_you_mean, quoted};
use std::ffi::OsString;

/// Commands that take a program and its arguments behind `--`.
const WITH_PROGRAM: [&str; 5] = ["place", "threads", "tune", "compare", "run"];

/// Without these a search goes on with a default that was surely not meant.
const MEANT: [&str; 2] = ["--budget", "--metric"];

/// The line; `None` for what is no error but an answer: help and the version.
pub(crate) fn refusal(error: &clap::Error, root: &Command, words: &[OsString]) -> Option<Usage> {
    use ErrorKind::{DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand, DisplayVersion};
    if matches!(
        error.kind(),
        DisplayHelp | DisplayHelpOnMissingArgumentOrSubcommand | DisplayVersion
    ) {
        return None;
    }
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let known = || without_dashes(error, &words).or_else(|| mistyped(error, root, &words));
    Some(Usage(known().unwrap_or_else(|| {
        // Without the colours that it has on a terminal.
        format!("{}; see {} --help", flat(&error.render().to_string()), path(root, &words))
    })))
}

/// The command that was meant, if one is near. The parser puts others before it.
fn mistyped(error: &clap::Error, root: &Command, words: &[String]) -> Option<String> {
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    // Only where a command of pinwise stands, and not one of a command.
    words.get(1).filter(|word| *word == typed)?;
    let similar = did_you_mean(typed, root.get_subcommands().map(Command::get_name));
    (!similar.is_empty())
        .then(|| format!("unrecognized subcommand '{typed}'{similar} See pinwise --help"))
}

/// What to type if a program stands where only options do.
fn without_dashes(error: &clap::Error, words: &[String]) -> Option<String> {
    let refused =
        error.get(ContextKind::InvalidArg).or_else(|| error.get(ContextKind::InvalidSubcommand));
    let Some(ContextValue::String(refused)) = refused else { return None };
    let command = words.get(1).filter(|word| !word.is_empty())?;
    let name = WITH_PROGRAM.iter().find(|name| name.starts_with(command.as_str()))?;
    let at = words.iter().position(|word| word == refused).filter(|at| *at > 1)?;
    if refused.starts_with('-') || words.iter().any(|word| word == "--") {
        return None;
    }
    let line =
        |words: &[String]| words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
    let (options, program) = (line(&words[1..at]), line(&words[at..]));
    Some(format!(
        "'{refused}' is not an option of {name}: put a program after --, as in: pinwise \
         {options} -- {program}"
    ))
}

/// A note on an option of pinwise behind `--`, where the program gets it.
pub(crate) fn misplaced_option(words: &[OsString]) -> Option<String> {
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    let command = words.get(1)?;
    let name = WITH_PROGRAM[..4].iter().find(|name| name.starts_with(&**command))?;
    let (before, program) = words.split_at(words.iter().position(|word| word == "--")?);
    // Another -- is the program's own, and so is what stands behind it.
    let found = program[1..].iter().skip(1).take_while(|word| *word != "--").find(|word| {
        MEANT.contains(&option(word)) && !before.iter().any(|other| option(other) == option(word))
    })?;
    Some(format!(
        "{} stands behind --, so {} gets it; an option of pinwise {name} goes before --",
        option(found),
        program[1]
    ))
}

/// Options that say what to place, so that no command has to.
const NO_COMMAND: [&str; 4] = ["--pid", "--tree", "--cgroup", "--workload"];

/// What to do if `--` is the last word: a search would go on without the program that was meant.
pub(crate) fn no_program(words: &[OsString]) -> Option<Usage> {
    let command = words.get(1)?.to_string_lossy();
    let mut names = WITH_PROGRAM.iter().filter(|_| !command.is_empty());
    let name = names.find(|name| name.starts_with(&*command))?;
    if words.iter().position(|word| word == "--")? + 1 < words.len() {
        return None;
    }
    let remedy = match *name {
        _ if words.iter().any(|word| NO_COMMAND.contains(&option(&word.to_string_lossy()))) => {
            ", or leave -- out"
        }
        "threads" | "tune" => ", with {n} for its number of threads",
        _ => ", or leave -- out to use built-in programs",
    };
    Some(Usage(format!("nothing stands after --: put the program and its arguments there{remedy}")))
}

/// A word up to its `=`.
fn option(word: &str) -> &str {
    word.split('=').next().unwrap_or_default()
}

/// The parser's first paragraph and its tips on one line. The usage stands in the help.
fn flat(text: &str) -> String {
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    let first = first.strip_prefix("error: ").unwrap_or(first);
    let rest: Vec<&str> =
        lines.by_ref().map(str::trim).take_while(|line| !line.is_empty()).collect();
    // What is missing, one a line; or which values there are.
    let rest = rest.join(if first.ends_with(':') { ", " } else { " " });
    let tips = lines
        .filter_map(|line| line.trim().strip_prefix("tip: "))
        // The tip that an unknown option might be a value does not help.
        .filter(|tip| !tip.contains("as a value"))
        .map(|tip| format!("; {tip}"));
    format!("{first} {rest}").trim_end().to_owned() + &tips.collect::<String>()
}

/// The command that was typed, in full: commands may be shortened.
fn path(root: &Command, words: &[String]) -> String {
    let (mut command, mut path) = (root, root.get_name().to_owned());
    for word in words.iter().skip(1).filter(|word| !word.is_empty()) {
        let mut known = command.get_subcommands();
        let Some(next) = known.find(|known| known.get_name().starts_with(word.as_str())) else {
            break;
        };
        command = next;
        path = format!("{path} {}", command.get_name());
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Arguments;
    use clap::{CommandFactory, Parser};

    fn of(line: &str) -> Option<String> {
        let words: Vec<OsString> = line.split(' ').map(Into::into).collect();
        let error =
            Arguments::try_parse_from(&words).err().unwrap_or_else(|| panic!("{line} is taken"));
        refusal(&error, &Arguments::command(), &words).map(|usage| usage.0)
    }

    #[test]
    fn a_refusal_is_one_line_with_where_to_read() {
        for (line, expected) in [
            (
                "pinwise topo --frob 8",
                "unexpected argument '--frob' found; see pinwise topo --help",
            ),
            (
                "pinwise topo --machin host",
                "unexpected argument '--machin' found; a similar argument exists: '--machine'; see \
                 pinwise topo --help",
            ),
            (
                "pinwise export",
                "the following required arguments were not provided: --to <FORMAT>, <PLAN>; see \
                 pinwise export --help",
            ),
            (
                "pinwise campaign export 1 --format xml",
                "invalid value 'xml' for '--format <FORMAT>' [possible values: csv, json]; see \
                 pinwise campaign export --help",
            ),
        ] {
            assert_eq!(of(line).as_deref(), Some(expected), "{line}");
        }
        assert_eq!(flat("error: argument 'a\nb' found\n\nUsage: p\n"), "argument 'a b' found");
    }

    #[test]
    fn a_program_without_its_dashes_is_understood() {
        for (line, meant) in [
            ("pinwise place ./prog --flag", "pinwise place -- ./prog --flag"),
            ("pinwise place --budget 5s pigz -k f", "pinwise place --budget 5s -- pigz -k f"),
            ("pinwise tun pigz", "pinwise tun -- pigz"),
            ("pinwise run plan.toml pigz -p 2", "pinwise run plan.toml -- pigz -p 2"),
        ] {
            let line = of(line).unwrap();
            assert!(line.ends_with(&format!("put a program after --, as in: {meant}")), "{line}");
        }
        assert!(!of("pinwise place x -- pigz").unwrap().contains("put a program after"));
    }

    #[test]
    fn an_option_of_ours_behind_the_dashes_is_pointed_out_unless_one_is_before_them() {
        let of = |line: &str| {
            misplaced_option(&line.split(' ').map(Into::into).collect::<Vec<OsString>>())
        };
        let note = of("pinwise thr -- xz -k f --budget=10s").unwrap();
        assert_eq!(
            note,
            "--budget stands behind --, so xz gets it; an option of pinwise threads goes before --"
        );
        for line in [
            "pinwise place --budget 5s -- xz --budget 10s",
            "pinwise place -- xz -- --budget 10s",
            "pinwise place -- --budget",
            "pinwise topo -- x --budget",
            "pinwise run plan.toml -- xz --budget 10s",
            "pinwise place -- xz --seed 4 --json",
        ] {
            assert_eq!(of(line), None, "{line}");
        }
    }

    #[test]
    fn dashes_with_nothing_after_them_are_refused_where_a_program_goes() {
        let of = |line: &str| {
            let words = line.split(' ').map(Into::into).collect::<Vec<OsString>>();
            no_program(&words).map(|usage| usage.0)
        };
        for (line, remedy) in [
            ("pinwise place --", "leave -- out to use built-in programs"),
            ("pinwise compare --budget 5s --", "leave -- out to use built-in programs"),
            ("pinwise place --pid 7 --", "or leave -- out"),
            ("pinwise threads --", "{n} for its number of threads"),
            ("pinwise tu --json --", "{n} for its number of threads"),
        ] {
            let refused = of(line).unwrap_or_else(|| panic!("{line} is taken"));
            assert!(refused.ends_with(remedy), "{line}: {refused}");
        }
        for line in
            ["pinwise place", "pinwise place -- true", "pinwise place -- --", "pinwise topo --"]
        {
            assert_eq!(of(line), None, "{line}");
        }
    }

    #[test]
    fn help_and_the_version_are_answers() {
        for line in ["pinwise", "pinwise --help", "pinwise -V", "pinwise help topo"] {
            assert_eq!(of(line), None, "{line}");
        }
    }
}
