//! A command line that the parser refuses, as one line: what is wrong with it, what was probably
//! meant, and where to read more.

use crate::output::Usage;
use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::ffi::OsString;

/// The line; `None` for what is no error but an answer: help and the version.
pub(crate) fn refusal(
    error: &mut clap::Error,
    root: &Command,
    words: &[OsString],
) -> Option<Usage> {
    use ErrorKind::{DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand, DisplayVersion};
    if matches!(
        error.kind(),
        DisplayHelp | DisplayHelpOnMissingArgumentOrSubcommand | DisplayVersion
    ) {
        return None;
    }
    fit_suggestions(error);
    // Without the colours that it has on a terminal.
    let text = error.render().to_string();
    Some(Usage(format!("{}; see {} --help", flat(&text), path(root, words))))
}

/// The parser's first paragraph and its tips in a line; how the command is used stands in its help.
fn flat(text: &str) -> String {
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    let first = first.strip_prefix("error: ").unwrap_or(first);
    let rest: Vec<&str> =
        lines.by_ref().map(str::trim).take_while(|line| !line.is_empty()).collect();
    // What is missing, one a line; or which values there are.
    let rest = rest.join(if first.ends_with(':') { ", " } else { " " });
    let tips =
        lines.filter_map(|line| line.trim().strip_prefix("tip: ")).map(|tip| format!("; {tip}"));
    format!("{first} {rest}").trim_end().to_owned() + &tips.collect::<String>()
}

/// The command whose help tells more, as it is typed in full.
fn path(root: &Command, words: &[OsString]) -> String {
    let (mut command, mut path) = (root, root.get_name().to_owned());
    for word in words.iter().skip(1).map_while(|word| word.to_str()) {
        // As the parser takes them: shortened as far as they stay apart.
        let exact = command.get_subcommands().find(|known| known.get_name() == word);
        let mut begun =
            command.get_subcommands().filter(|known| known.get_name().starts_with(word));
        let Some(next) = exact.or_else(|| begun.next().filter(|_| begun.next().is_none())) else {
            break;
        };
        command = next;
        path = format!("{path} {}", command.get_name());
    }
    path
}

/// Of the commands with similar names, the parser's last is the most similar. That an unknown
/// option might be a value is no help.
fn fit_suggestions(error: &mut clap::Error) {
    if let Some(ContextValue::StyledStrs(mut tips)) = error.remove(ContextKind::Suggested) {
        tips.retain(|tip| !tip.to_string().contains("as a value"));
        if !tips.is_empty() {
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
        }
    }
    let similar = error.remove(ContextKind::SuggestedSubcommand);
    if let Some(ContextValue::Strings(names)) = similar {
        let best = names.into_iter().last().into_iter().collect();
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(best));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Arguments;
    use clap::{CommandFactory, Parser};

    fn of(line: &str) -> Option<String> {
        let words: Vec<OsString> = line.split(' ').map(Into::into).collect();
        let mut error =
            Arguments::try_parse_from(&words).err().unwrap_or_else(|| panic!("{line} is taken"));
        refusal(&mut error, &Arguments::command(), &words).map(|usage| usage.0)
    }

    #[test]
    fn every_refusal_is_one_line_with_what_is_meant_and_where_to_read() {
        for (line, told) in [
            (
                "pinwise plcae",
                "unrecognized subcommand 'plcae'; a similar subcommand exists: 'place'; see pinwise --help",
            ),
            (
                "pinwise camp lst",
                "unrecognized subcommand 'lst'; a similar subcommand exists: 'list'; see pinwise campaign --help",
            ),
            (
                "pinwise topo --machin host",
                "unexpected argument '--machin' found; a similar argument exists: '--machine'; see pinwise topo --help",
            ),
            (
                "pinwise topo --frob 8",
                "unexpected argument '--frob' found; see pinwise topo --help",
            ),
            (
                "pinwise export",
                "the following required arguments were not provided: --to <FORMAT>, <PLAN>; see pinwise export --help",
            ),
            (
                "pinwise sp --threads zero",
                "invalid value 'zero' for '--threads <N>': expected a whole number from 1 to 1,024; see pinwise space --help",
            ),
            (
                "pinwise campaign export 1 --format xml",
                "invalid value 'xml' for '--format <FORMAT>' [possible values: csv, json]; see pinwise campaign export --help",
            ),
        ] {
            assert_eq!(of(line).as_deref(), Some(told), "{line}");
        }
    }

    #[test]
    fn help_and_the_version_are_answers() {
        for line in
            ["pinwise", "pinwise --help", "pinwise -V", "pinwise campaign", "pinwise help topo"]
        {
            assert_eq!(of(line), None, "{line}");
        }
    }

    #[test]
    fn what_stands_in_a_refused_word_does_not_break_the_line() {
        assert_eq!(
            flat("error: unexpected argument 'a\nb' found\n\nUsage: pinwise\n"),
            "unexpected argument 'a b' found"
        );
    }
}
