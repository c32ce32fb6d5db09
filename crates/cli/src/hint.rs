//! What was probably meant by a command line that the parser refuses, where the parser's own tips
//! lead astray.

use crate::output::Usage;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use pinwise_present::quoted;
use std::ffi::OsString;

/// Commands that take a program and its arguments behind `--`.
const WITH_PROGRAM: [&str; 5] = ["place", "threads", "tune", "compare", "run"];

/// One line that says what to type, where that is known.
pub(crate) fn hint(error: &clap::Error, words: &[OsString]) -> Option<Usage> {
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let command = words.get(1).filter(|word| !word.is_empty())?;
    if command == "apply"
        && words.iter().any(|word| word == "--undo")
        && concerns_plan_or_pid(error)
    {
        let next = || words.iter().skip_while(|word| *word != "--pid").nth(1).map(String::as_str);
        let pid = words
            .iter()
            .find_map(|word| word.strip_prefix("--pid="))
            .or_else(next)
            .unwrap_or("PID");
        return Some(Usage(format!(
            "--undo takes a process and no plan: pinwise apply --undo --pid {pid}"
        )));
    }
    let refused =
        error.get(ContextKind::InvalidArg).or_else(|| error.get(ContextKind::InvalidSubcommand));
    let Some(ContextValue::String(refused)) = refused else { return None };
    if refused.starts_with('-') {
        return None;
    }
    let name = WITH_PROGRAM.iter().find(|name| name.starts_with(command.as_str()))?;
    let at = words.iter().position(|word| word == refused).filter(|at| *at > 1)?;
    if words.iter().any(|word| word == "--") {
        return None;
    }
    let line =
        |words: &[String]| words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
    let (options, program) = (line(&words[1..at]), line(&words[at..]));
    Some(Usage(format!(
        "'{refused}' is no option of {name}: a program goes behind --, as in: pinwise {options} -- {program}"
    )))
}

/// Whether `--undo` disagrees with the plan alone, or the process is missing.
fn concerns_plan_or_pid(error: &clap::Error) -> bool {
    let named = |kind| match error.get(kind) {
        Some(ContextValue::String(name)) => std::slice::from_ref(name),
        Some(ContextValue::Strings(names)) => names,
        _ => &[],
    };
    let mut all = named(ContextKind::InvalidArg).iter().chain(named(ContextKind::PriorArg));
    match error.kind() {
        ErrorKind::ArgumentConflict => all.all(|name| name == "--undo" || name.contains("PLAN")),
        ErrorKind::MissingRequiredArgument => all.any(|name| name.starts_with("--pid")),
        _ => false,
    }
}

/// Without these a search goes on with a default that was surely not meant.
const MEANT: [&str; 2] = ["--budget", "--metric"];

/// What to say of options of pinwise that stand behind `--`, where they are the program's: whoever
/// has no other of that name before it may have meant pinwise.
pub(crate) fn behind(root: &clap::Command, words: &[OsString]) -> Option<String> {
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    let dashes = words.iter().position(|word| word == "--")?;
    let (before, program) = (words.get(1..dashes)?, &words[dashes + 1..]);
    let name = WITH_PROGRAM
        .iter()
        .find(|name| before.first().is_some_and(|word| name.starts_with(&**word)))?;
    let command = root.find_subcommand(name)?;
    let own = |word: &str| {
        let option = word.split('=').next().unwrap_or(word);
        let long = MEANT.contains(&option).then(|| option.strip_prefix("--"))??;
        let is_own = command.get_arguments().any(|known| known.get_long() == Some(long));
        let elsewhere = before.iter().any(|word| word.split('=').next() == Some(option));
        (is_own && !elsewhere).then(|| option.to_owned())
    };
    // Another -- is the program's own, and so is what stands behind it.
    let option =
        program.iter().skip(1).take_while(|word| *word != "--").find_map(|word| own(word))?;
    let program = program.first()?;
    Some(format!(
        "{option} stands behind --, so {program} gets it; an option of pinwise {name} goes before --"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Arguments;
    use clap::Parser;

    fn of(line: &str) -> Option<String> {
        let words: Vec<OsString> = line.split(' ').map(Into::into).collect();
        let error =
            Arguments::try_parse_from(&words).err().unwrap_or_else(|| panic!("{line} is taken"));
        hint(&error, &words).map(|usage| usage.0)
    }

    #[test]
    fn a_program_without_its_dashes_is_understood() {
        for (line, meant) in [
            ("pinwise place ./prog --flag", "pinwise place -- ./prog --flag"),
            ("pinwise place --budget 5s pigz -k f", "pinwise place --budget 5s -- pigz -k f"),
            ("pinwise threads sysbench cpu run", "pinwise threads -- sysbench cpu run"),
            ("pinwise tun pigz", "pinwise tun -- pigz"),
            ("pinwise run plan.toml pigz -p 2", "pinwise run plan.toml -- pigz -p 2"),
        ] {
            let told = of(line).unwrap_or_else(|| panic!("{line}: no hint"));
            assert!(
                told.ends_with(&format!(": a program goes behind --, as in: {meant}")),
                "{told}"
            );
        }
    }

    #[test]
    fn undoing_says_what_to_type_instead() {
        for line in [
            "pinwise apply 4 --undo",
            "pinwise apply plan.toml --undo --pid 42",
            "pinwise apply plan.toml --undo --pid=42",
            "pinwise apply --undo",
        ] {
            let pid = if line.contains("42") { "42" } else { "PID" };
            let told = of(line).unwrap_or_else(|| panic!("{line}: no hint"));
            assert!(told.ends_with(&format!(": pinwise apply --undo --pid {pid}")), "{told}");
        }
        // Typed without the option it would do what was not asked.
        for option in ["--dry-run", "--watch", "--force", "--set"] {
            assert_eq!(of(&format!("pinwise apply --undo --pid 42 {option}")), None, "{option}");
        }
    }

    #[test]
    fn an_option_of_ours_behind_the_dashes_is_pointed_out_unless_one_is_before_them() {
        use clap::CommandFactory;
        let of = |line: &str| {
            behind(&Arguments::command(), &line.split(' ').map(Into::into).collect::<Vec<_>>())
        };
        let told = of("pinwise place -- xz -k f --budget 10s").unwrap();
        assert!(told.starts_with("--budget stands behind --, so xz gets it"), "{told}");
        assert!(
            of("pinwise thr -- xz --budget=10s")
                .is_some_and(|told| told.contains("pinwise threads goes before"))
        );
        for line in [
            "pinwise place --budget 5s -- xz --budget 10s",
            "pinwise place -- xz -- -k file",
            "pinwise place -- --budget",
            "pinwise place --budget 5s",
            "pinwise topo -- --budget",
            "pinwise run plan.toml -- xz --budget 10s",
            "pinwise place -- xz --seed 4 --json",
            "pinwise place -- sh -c x -- --budget 10s",
            "-- xz --budget 10s",
        ] {
            assert_eq!(of(line), None, "{line}");
        }
    }

    #[test]
    fn other_mistakes_are_left_to_the_parser() {
        for line in [
            "pinwise plcae",
            "pinwise place --budgte 5",
            "pinwise topo a b",
            "pinwise place x -- pigz",
        ] {
            assert_eq!(of(line), None, "{line}");
        }
    }
}
