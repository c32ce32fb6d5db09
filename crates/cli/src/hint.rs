//! What was probably meant by a command line that the parser refuses, where the parser's own tips lead astray.

use crate::output::Usage;
use clap::error::{ContextKind, ContextValue};
use pinwise_report::quoted;
use std::ffi::OsString;

/// Commands that take a program and its arguments behind `--`.
const WITH_PROGRAM: [&str; 5] = ["place", "threads", "tune", "compare", "run"];

/// Options that one command has and another is asked for, with what that one does instead.
const ELSEWHERE: [(&str, &str, &str); 1] =
    [("threads", "--store", "since it keeps nothing: write what it prints to a file, with --json for other programs")];

/// One line that says what to type, where that is known.
pub(crate) fn hint(error: &clap::Error, words: &[OsString]) -> Option<Usage> {
    let refused = error.get(ContextKind::InvalidArg).or_else(|| error.get(ContextKind::InvalidSubcommand));
    let Some(ContextValue::String(refused)) = refused else { return None };
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let command = words.get(1).filter(|word| !word.is_empty())?;
    if refused.starts_with('-') {
        let (_, option, instead) = ELSEWHERE.iter().find(|(name, option, _)| name == command && option == refused)?;
        return Some(Usage(format!("{command} has no {option}, {instead}")));
    }
    let name = WITH_PROGRAM.iter().find(|name| name.starts_with(command.as_str()))?;
    let at = words.iter().position(|word| word == refused).filter(|at| *at > 1)?;
    if words.iter().any(|word| word == "--") {
        return None;
    }
    let line = |words: &[String]| words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
    let (options, program) = (line(&words[1..at]), line(&words[at..]));
    Some(Usage(format!(
        "'{refused}' is no option of {name}: a program goes behind --, as in: pinwise {options} -- {program}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Arguments;
    use clap::Parser;

    fn of(line: &str) -> Option<String> {
        let words: Vec<OsString> = line.split(' ').map(Into::into).collect();
        let error = Arguments::try_parse_from(&words).err().unwrap_or_else(|| panic!("{line} is taken"));
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
            assert!(told.ends_with(&format!(": a program goes behind --, as in: {meant}")), "{told}");
        }
    }

    #[test]
    fn other_mistakes_are_left_to_the_parser() {
        for line in ["pinwise plcae", "pinwise place --budgte 5", "pinwise topo a b", "pinwise place x -- pigz"] {
            assert_eq!(of(line), None, "{line}");
        }
        assert!(of("pinwise threads --store x.db -- pigz").is_some_and(|told| told.contains("keeps nothing")));
    }
}
