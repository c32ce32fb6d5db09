//! pinwise: arguments in; tables, JSON and progress out. What the program does is in the libraries; what the user sees is
//! in [`command`], one file per command.

mod command;
mod draw;
mod interrupt;
mod machine;
mod outcome;
mod outline;
mod output;
mod plan;
mod progress;
mod request;
mod store;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// How many threads, on which hardware context, and how far from the best possible: from measurement.
///
/// Start here:
///
///   pinwise place                                     the built-in packet pipelines on this machine
///   pinwise place --metric runtime -- pigz -k file    a program of your own, started anew for each measurement
///   pinwise place --pid 4242 --metric 'cmd:redis-cli info stats' --pick 'total_commands_processed:(\d+)'
///   pinwise topo                                      this machine and its sharing levels
///   pinwise doctor                                    what this machine allows and lacks
#[derive(Parser)]
#[command(name = "pinwise", version, max_term_width = 110, verbatim_doc_comment, infer_subcommands = true)]
#[command(after_help = "Exit codes: 0 done, 1 failure, 2 bad usage, 130 interrupted (everything put back).")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Place(Box<command::place::Place>),
    Topo(command::topo::Topo),
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
    Completions(command::completions::Completions),
    Man(command::completions::Man),
}

fn main() -> ExitCode {
    // The guardian is this program started again; it must do nothing else first.
    if std::env::args_os().nth(1).is_some_and(|word| word == pinwise_host::GUARDIAN_ARGUMENT) {
        pinwise_host::guardian_main();
        return ExitCode::SUCCESS;
    }
    let arguments = Arguments::parse();
    output::exit(match arguments.command {
        Command::Place(command) => command.run(),
        Command::Topo(command) => command.run(),
        Command::Space(command) => command.run(),
        Command::Bound(command) => command.run(),
        Command::Run(command) => command.run(),
        Command::Apply(command) => command.run(),
        Command::Export(command) => command.run(),
        Command::Campaign(command) => command.run(),
        Command::Report(command) => command.run(),
        Command::Workload(command) => command.run(),
        Command::Doctor(command) => command.run(),
        Command::Completions(command) => command.run(),
        Command::Man(command) => command.run(),
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        super::Arguments::command().debug_assert();
    }
}
