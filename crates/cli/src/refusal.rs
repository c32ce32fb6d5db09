//! A refused command line on one line: what is wrong, what to type instead, where to read more.

use crate::help::subcommand;
use crate::output::Usage;
use clap::Command;
use clap::error::{ContextKind, ErrorKind};
use pinwise_present::{did_you_mean, quoted};
use std::error::Error;
use std::ffi::OsString;

/// Without these a search goes on with a default that was surely not meant.
const MEANT: [&str; 3] = ["--budget", "--metric", "--store"];

/// Options of taskset, numactl, perf and hyperfine, and ours that answers the same wish.
const ELSEWHERE: [(&str, &str); 12] = [
    ("-c", "--cpus"),
    ("-C", "--cpus"),
    ("--cpu-list", "--cpus"),
    ("--physcpubind", "--cpus"),
    ("-p", "--pid"),
    ("-e", "--metric"),
    ("--event", "--metric"),
    ("--membind", "--memory"),
    ("-r", "--budget"),
    ("--repeat", "--budget"),
    ("--runs", "--budget"),
    ("--min-runs", "--budget"),
];

/// The option of `command` that does what another tool calls `word`.
fn known_elsewhere(command: &Command, word: &str) -> Option<&'static str> {
    let (_, ours) = ELSEWHERE.iter().find(|(theirs, _)| *theirs == option(word))?;
    let has = |argument: &clap::Arg| argument.get_long() == ours.strip_prefix("--");
    command.get_arguments().any(has).then_some(*ours)
}

/// The option of `command` that `word` is, if few programs have one of its name.
fn meant<'a>(command: &'a Command, word: &str) -> Option<&'a clap::Arg> {
    let named = |known: &&clap::Arg| known.get_long() == option(word).strip_prefix("--");
    command.get_arguments().find(named).filter(|_| MEANT.contains(&option(word)))
}

/// The line; `None` for what is no error but an answer: help and the version.
pub(crate) fn refusal(error: &clap::Error, root: &Command, words: &[OsString]) -> Option<Usage> {
    use ErrorKind::{DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand, DisplayVersion};
    if matches!(
        error.kind(),
        DisplayHelp | DisplayHelpOnMissingArgumentOrSubcommand | DisplayVersion
    ) {
        return None;
    }
    let words = texts(words);
    let (command, path) = named(root, &words);
    let reason = || match reason(error, command, &path) {
        (reason, meant) if meant.is_empty() => format!("{reason}; see {path} --help"),
        (reason, meant) => reason + &meant,
    };
    let meant = takes_program(command).then(|| without_dashes(error, command, &words)).flatten();
    Some(Usage(meant.unwrap_or_else(reason)))
}

/// What is wrong, and the nearest name if one is mistyped.
fn reason(error: &clap::Error, command: &Command, path: &str) -> (String, String) {
    let get = |kind| error.get(kind).map(ToString::to_string).unwrap_or_default();
    let (argument, value) = (get(ContextKind::InvalidArg), get(ContextKind::InvalidValue));
    let reason = match error.kind() {
        ErrorKind::UnknownArgument if subcommand(command, &argument).is_some() => {
            format!("put {argument} right after {path}, before its options")
        }
        ErrorKind::UnknownArgument => {
            // Nobody is led to leave a check out.
            let nearest = error.get(ContextKind::SuggestedArg).map(ToString::to_string);
            let nearest = nearest.filter(|name| name != "--force");
            let nearest = known_elsewhere(command, &argument).map(str::to_owned).or(nearest);
            let nearest = nearest.map(|name| format!("; did you mean {name}?"));
            return (format!("unexpected argument '{argument}'"), nearest.unwrap_or_default());
        }
        // The parser's own guess puts `space` before `place`.
        ErrorKind::InvalidSubcommand => {
            let typed = get(ContextKind::InvalidSubcommand);
            let shown = || command.get_subcommands().filter(|one| !one.is_hide_set());
            let names = || shown().map(Command::get_name);
            let short: Vec<&str> = names().filter(|name| name.starts_with(&typed)).collect();
            if let [first, .., last] = &short[..] {
                let others = &short[1..short.len() - 1];
                let between: String = others.iter().map(|name| format!(", {name}")).collect();
                return (format!("'{typed}' may mean {first}{between} or {last}"), String::new());
            }
            return (format!("there is no command '{typed}'"), did_you_mean(&typed, names()));
        }
        ErrorKind::InvalidValue if value.is_empty() => format!("'{argument}' needs a value"),
        ErrorKind::InvalidValue => {
            let valid = get(ContextKind::ValidValue);
            format!("invalid value '{value}' for '{argument}': expected one of {valid}")
        }
        ErrorKind::ValueValidation => {
            let why = error.source().map(|why| format!(": {why}")).unwrap_or_default();
            format!("invalid value '{value}' for '{argument}'{why}")
        }
        ErrorKind::MissingRequiredArgument => format!("missing: {argument}"),
        ErrorKind::ArgumentConflict => match get(ContextKind::PriorArg) {
            prior if prior == argument => format!("'{argument}' is given more than once"),
            prior if argument.is_empty() => {
                let typed = get(ContextKind::InvalidSubcommand);
                format!("'{typed}' cannot be used with {prior}")
            }
            prior => format!("'{argument}' cannot be used with {prior}"),
        },
        ErrorKind::TooManyValues => format!("'{argument}' takes no value: leave '={value}' out"),
        kind => format!("{kind} {argument}").trim_end().to_owned(),
    };
    (reason, String::new())
}

/// What to type if a program stands where only options do.
fn without_dashes(error: &clap::Error, command: &Command, words: &[String]) -> Option<String> {
    let refused =
        error.get(ContextKind::InvalidArg).or_else(|| error.get(ContextKind::InvalidSubcommand));
    let refused = refused?.to_string();
    let at = words.iter().position(|word| *word == refused).filter(|at| *at > 1)?;
    let is_command = subcommand(command, &refused).is_some();
    if refused.starts_with('-') || is_command || words.iter().any(|word| word == "--") {
        return None;
    }
    let line =
        |words: &[String]| words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
    let (mut options, mut program) = (words[1..at].to_vec(), Vec::new());
    let mut rest = words[at..].iter();
    while let Some(word) = rest.next() {
        match meant(command, word) {
            None => program.push(word.clone()),
            Some(_) if word.contains('=') => options.push(word.clone()),
            Some(_) => options.extend([Some(word), rest.next()].into_iter().flatten().cloned()),
        }
    }
    let options = line(&options);
    // Words for whole programs. Each may have its own --.
    let apart = command.get_name() == "pairs" && program.iter().all(|word| !word.starts_with('-'));
    let program = match apart {
        true => program.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" -- "),
        false => line(&program),
    };
    Some(format!(
        "'{refused}' is not an option of {}: put a program after --, as in: pinwise \
         {options} -- {program}",
        command.get_name()
    ))
}

/// A note on an option of pinwise behind `--`, where the program gets it.
pub(crate) fn misplaced_option(root: &Command, words: &[OsString]) -> Option<String> {
    let words = texts(words);
    let (command, path) = named(root, &words);
    let (before, program) = words.split_at(words.iter().position(|word| word == "--")?);
    // Another -- is the program's own, and so is what stands behind it.
    let found = program[1..].iter().skip(1).take_while(|word| *word != "--").find(|word| {
        meant(command, word).is_some() && !before.iter().any(|other| option(other) == option(word))
    })?;
    Some(format!(
        "{} stands behind --, so {} gets it; an option of {path} goes before --",
        option(found),
        program[1]
    ))
}

/// Options that say what to place, so that no command has to.
const NO_COMMAND: [&str; 4] = ["--pid", "--tree", "--cgroup", "--workload"];

/// What to do if `--` is the last word: a search would go on without the program that was meant.
pub(crate) fn no_program(root: &Command, words: &[OsString]) -> Option<Usage> {
    let words = texts(words);
    let (command, _) = named(root, &words);
    if !takes_program(command) || words.iter().position(|word| word == "--")? + 1 < words.len() {
        return None;
    }
    let remedy = match command.get_name() {
        _ if words.iter().any(|word| NO_COMMAND.contains(&option(word))) => ", or leave -- out",
        "pairs" | "record" => "",
        "threads" | "tune" => ", with {n} for its number of threads",
        _ => ", or leave -- out to use built-in programs",
    };
    Some(Usage(format!("nothing stands after --: put the program and its arguments there{remedy}")))
}

fn texts(words: &[OsString]) -> Vec<String> {
    words.iter().map(|word| word.to_string_lossy().into_owned()).collect()
}

/// Whether a command takes a program and its arguments behind `--`.
fn takes_program(command: &Command) -> bool {
    command.get_arguments().any(clap::Arg::is_last_set)
}

/// A word up to its `=`.
fn option(word: &str) -> &str {
    word.split('=').next().unwrap_or_default()
}

/// The command that was typed, with its name in full: commands may be shortened.
fn named<'a>(root: &'a Command, words: &[String]) -> (&'a Command, String) {
    let named = |(command, path): (&'a Command, String), word: &String| {
        let next = subcommand(command, word).ok_or((command, path.clone()))?;
        Ok((next, format!("{path} {}", next.get_name())))
    };
    let root = (root, root.get_name().to_owned());
    words
        .iter()
        .skip(1)
        .filter(|word| !word.is_empty())
        .try_fold(root, named)
        .unwrap_or_else(|reached| reached)
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
            ("pinwise topo --frob 8", "unexpected argument '--frob'; see pinwise topo --help"),
            (
                "pinwise topo --machin host",
                "unexpected argument '--machin'; did you mean --machine?",
            ),
            (
                "pinwise doctor --store s.db",
                "unexpected argument '--store'; see pinwise doctor --help",
            ),
            ("pinwise place -c 0-3 -- x", "unexpected argument '-c'; did you mean --cpus?"),
            ("pinwise place -p 7", "unexpected argument '-p'; did you mean --pid?"),
            (
                "pinwise compare --runs 5 -- x",
                "unexpected argument '--runs'; did you mean --budget?",
            ),
            ("pinwise doctor -p 7", "unexpected argument '-p'; see pinwise doctor --help"),
            ("pinwise plce", "there is no command 'plce'; did you mean place?"),
            ("pinwise pa", "'pa' may mean pairs or paths; see pinwise --help"),
            ("pinwise camp lst", "there is no command 'lst'; did you mean list?"),
            ("pinwise frobnicate", "there is no command 'frobnicate'; see pinwise --help"),
            ("pinwise export", "missing: --to <FORMAT>, <PLAN>; see pinwise export --help"),
            (
                "pinwise campaign export 1 --format xml",
                "invalid value 'xml' for '--format <FORMAT>': expected one of csv, json; see \
                 pinwise campaign export --help",
            ),
            (
                "pinwise space --threads zero",
                "invalid value 'zero' for '--threads <N>': expected a whole number from 1 to \
                 1,024; see pinwise space --help",
            ),
            ("pinwise space --threads", "'--threads <N>' needs a value; see pinwise space --help"),
            (
                "pinwise space --threads 2 --threads 3",
                "'--threads <N>' is given more than once; see pinwise space --help",
            ),
            (
                "pinwise place --pid 7 --cgroup x",
                "'--pid <PID>' cannot be used with --cgroup <DIR>; see pinwise place --help",
            ),
            (
                "pinwise report 1 --json characterization",
                "'characterization' cannot be used with <ID>, --json; see pinwise report --help",
            ),
            (
                "pinwise threads --budget 5s calibrate",
                "put calibrate right after pinwise threads, before its options; see pinwise \
                 threads --help",
            ),
            (
                "pinwise place --json=1",
                "'--json' takes no value: leave '=1' out; see pinwise place --help",
            ),
        ] {
            assert_eq!(of(line).as_deref(), Some(expected), "{line}");
        }
    }

    #[test]
    fn a_program_without_its_dashes_is_understood() {
        for (line, meant) in [
            ("pinwise place ./prog --flag", "pinwise place -- ./prog --flag"),
            ("pinwise place --budget 5s pigz -k f", "pinwise place --budget 5s -- pigz -k f"),
            ("pinwise tun pigz", "pinwise tun -- pigz"),
            (
                "pinwise place ./prog 3 --store=s.db -k --budget 20s x",
                "pinwise place --store=s.db --budget 20s -- ./prog 3 -k x",
            ),
            ("pinwise run plan.toml pigz -p 2", "pinwise run plan.toml -- pigz -p 2"),
        ] {
            let line = of(line).unwrap();
            assert!(line.ends_with(&format!("put a program after --, as in: {meant}")), "{line}");
        }
        assert!(!of("pinwise place x -- pigz").unwrap().contains("put a program after"));
        let words = ["pinwise", "pairs", "xz -c a", "gzip -c b"].map(OsString::from);
        let error = Arguments::try_parse_from(&words).err().unwrap();
        let Usage(line) = refusal(&error, &Arguments::command(), &words).unwrap();
        assert!(line.ends_with("as in: pinwise pairs -- 'xz -c a' -- 'gzip -c b'"), "{line}");
    }

    #[test]
    fn an_option_of_ours_behind_the_dashes_is_pointed_out_unless_one_is_before_them() {
        let of = |line: &str| {
            let words = line.split(' ').map(Into::into).collect::<Vec<OsString>>();
            misplaced_option(&Arguments::command(), &words)
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
            no_program(&Arguments::command(), &words).map(|usage| usage.0)
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
