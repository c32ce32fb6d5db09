//! pinwise: arguments in; tables, JSON and progress out. What the program does is in the libraries;
//! what the user sees is in `command`, one file per command.

mod command;
mod events;
mod help;
mod machine;
mod memory_argument;
mod node_arguments;
mod number_argument;
mod output;
mod own_stores;
mod page_file;
mod placement_header;
mod plan;
mod progress;
mod reading_arguments;
mod refusal;
mod store;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use pinwise_linux::take_precedence;
use pinwise_present::Notice;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::process::ExitCode;

/// If memory is refused, pinwise ends with one line. Its guardian puts everything back.
#[global_allocator]
static ALLOCATOR: pinwise_linux::ExitingAllocator = pinwise_linux::ExitingAllocator;

/// Find how many threads a program should run and where, and how far that is from the best possible
#[derive(Parser)]
#[command(
    name = "pinwise",
    version,
    max_term_width = 100,
    verbatim_doc_comment,
    infer_subcommands = true,
    after_help = "Start here:
  pinwise place                                try it on built-in pipelines
  pinwise place -- pigz -p 4 -k -c file        place a program of your own
  pinwise threads -- pigz -p {n} -k -c file    find its best number of threads
  pinwise tune -- pigz -p {n} -k -c file       find both, and save one plan
  pinwise doctor                               check what this machine allows

Exit codes: 0 success; 1 failure; 2 bad usage or missing input; 130 interrupted."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

/// Declares the commands: the variants of [`Command`], and that each of them runs. The last two are
/// made from the definition of all.
macro_rules! commands {
    ($($(#[$attribute:meta])* $name:ident($arguments:ty),)*) => {
        #[derive(Subcommand)]
        enum Command {
            $($(#[$attribute])* $name($arguments),)*
            Completions(command::completions::Completions),
            Man(command::completions::Man),
        }

        impl Command {
            fn run(self) -> anyhow::Result<()> {
                match self {
                    $(Self::$name(arguments) => arguments.run(),)*
                    Self::Completions(arguments) => arguments.run(Arguments::command()),
                    Self::Man(arguments) => arguments.run(Arguments::command()),
                }
            }
        }
    };
}

// In the order of the help.
commands! {
    Place(Box<command::place::Place>),
    Threads(Box<command::threads::Threads>),
    Tune(Box<command::tune::Tune>),
    Compare(Box<command::compare::Compare>),
    Select(command::select::Select),
    Pairs(command::pairs::Pairs),
    Cosched(command::cosched::Cosched),
    Paths(command::paths::Paths),
    Topo(command::topo::Topo),
    Latency(command::latency::Latency),
    Characterize(command::characterize::Characterize),
    Space(command::space::Space),
    Bound(command::bound::Bound),
    Run(command::run::Run),
    Apply(command::apply::Apply),
    Export(command::export::Export),
    #[command(subcommand)]
    Campaign(command::campaign::Campaign),
    Report(command::report::Report),
    Workload(command::workload::Workload),
    Doctor(command::doctor::Doctor),
    #[command(hide = true)]
    Worker(command::worker::Worker),
}

/// Does what the command line says. Returns the exit code.
pub fn main() -> ExitCode {
    // Holds for the guardian, too.
    pinwise_linux::capabilities::give_up_unneeded();
    pinwise_linux::sys::outlive_file_size_limit();
    // The guardian is this program started again; it must do nothing else first.
    if pinwise_jobs::served_as_guardian() {
        return ExitCode::SUCCESS;
    }
    let words = words();
    // Its threads must not keep pinwise from its own start.
    if names_a_running_program(&words) {
        take_precedence();
    }
    let root = Arguments::command();
    let arguments = match parse(&words) {
        Ok(arguments) => arguments,
        Err(error) => match refusal::refusal(&error, &root, &words) {
            Some(usage) => return output::exit(Err(usage.into())),
            None => return help::show(&error),
        },
    };
    if let Some(usage) = refusal::no_program(&root, &words) {
        return output::exit(Err(usage.into()));
    }
    if let Some(note) = refusal::misplaced_option(&root, &words) {
        output::aside(&format!("note: {note}"));
    }
    let tell = |notices: Vec<Notice>| {
        for about in &notices {
            output::aside(&format!("note: {}", pinwise_present::notice(about)));
        }
    };
    // Every command does it, not only jobs. Shell profiles run these two.
    if !matches!(arguments.command, Command::Completions(_) | Command::Man(_)) {
        tell(pinwise_jobs::put_back_leftovers());
    }
    let code = output::exit(arguments.command.run());
    let left = pinwise_jobs::not_put_back();
    if left.is_empty() {
        return code;
    }
    tell(left);
    ExitCode::FAILURE
}

fn parse(words: &[OsString]) -> Result<Arguments, clap::Error> {
    let mut command = help::laid_out(Arguments::command(), words);
    let mut matches = command.try_get_matches_from_mut(words)?;
    Arguments::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
}

/// Whether pinwise shall work on a program that runs already. Its own options end at `--`.
fn names_a_running_program(words: &[OsString]) -> bool {
    let mut options = words.iter().take_while(|word| *word != "--");
    options.any(|word| {
        let name = word.as_bytes().split(|&byte| byte == b'=').next().unwrap_or_default();
        [&b"--pid"[..], b"--tree", b"--cgroup"].contains(&name)
    })
}

/// The command line. Asking for help about help is asking for help, which the parser takes for a
/// command's name.
fn words() -> Vec<OsString> {
    let mut words: Vec<OsString> = std::env::args_os().collect();
    let is = |index: usize, name: &str| words.get(index).is_some_and(|word| word == name);
    if is(1, "help") || is(1, "campaign") && is(2, "help") {
        words.retain(|word| word != "-h" && word != "--help");
    }
    words
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        super::Arguments::command().debug_assert();
    }

    #[test]
    fn a_running_program_is_named_before_the_words_of_another() {
        let names = |line: &str| {
            let words: Vec<_> = line.split(' ').map(Into::into).collect();
            super::names_a_running_program(&words)
        };
        assert!(names("pinwise place --budget 6s --pid 7"));
        assert!(names("pinwise threads --pid=7"));
        assert!(names("pinwise cosched --cgroup=/sys/fs/cgroup/a --tree 7"));
        assert!(!names("pinwise topo"));
        assert!(!names("pinwise place -- program --pid 7"));
        assert!(!names("pinwise place --pids"));
    }

    /// Every command with its name, subcommands of subcommands too.
    fn commands(parent: &clap::Command, path: &str) -> Vec<(String, clap::Command)> {
        let children = parent.get_subcommands().filter(|child| child.get_name() != "help");
        children
            .flat_map(|child| {
                let path = format!("{path} {}", child.get_name());
                [vec![(path.clone(), child.clone())], commands(child, &path)].concat()
            })
            .collect()
    }

    #[test]
    fn every_command_is_explained_in_the_same_manner() {
        for (path, command) in commands(&super::Arguments::command(), "pinwise") {
            let about =
                command.get_about().unwrap_or_else(|| panic!("{path} says nothing")).to_string();
            assert!(
                about.starts_with(char::is_uppercase) && !about.ends_with('.'),
                "{path}: {about}"
            );
            for argument in command.get_arguments() {
                let id = argument.get_id();
                let help = argument
                    .get_help()
                    .unwrap_or_else(|| panic!("{path} {id} says nothing"))
                    .to_string();
                assert!(!help.ends_with('.'), "{path} {id}: {help}");
                assert!(
                    id != "json" || help.starts_with("Print one JSON document"),
                    "{path}: {help}"
                );
            }
        }
    }

    #[test]
    fn examples_fit_a_terminal_of_100_columns() {
        let root = super::Arguments::command();
        let every =
            [vec![("pinwise".to_owned(), root.clone())], commands(&root, "pinwise")].concat();
        let after = |command: &clap::Command| {
            command.get_after_help().map(ToString::to_string).unwrap_or_default()
        };
        let texts = every.iter().map(|(path, command)| (path, after(command)));
        for (path, text) in texts {
            assert!(text.lines().all(|line| line.chars().count() <= 100), "{path}: {text}");
        }
    }
}
