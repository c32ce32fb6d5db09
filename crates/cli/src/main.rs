//! pinwise: arguments in; tables, JSON and progress out. What the program does is in the libraries; what the user sees is
//! in [`command`], one file per command.

mod command;
#[allow(dead_code)] // until `place` prints it
mod draw;
mod machine;
mod outline;
mod output;
mod plan;
mod store;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// How many threads, on which hardware context, and how far from the best possible: from measurement.
#[derive(Parser)]
#[command(name = "pinwise", version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Topo(command::topo::Topo),
    Space(command::space::Space),
    Bound(command::bound::Bound),
    Place(command::place::Place),
    Run(command::run::Run),
    Apply(command::apply::Apply),
    Export(command::export::Export),
    #[command(subcommand)]
    Campaign(command::campaign::Campaign),
    Report(command::report::Report),
    Workload(command::workload::Workload),
    Doctor(command::doctor::Doctor),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match arguments.command {
        Command::Topo(command) => command.run(),
        Command::Space(command) => command.run(),
        Command::Bound(command) => command.run(),
        Command::Place(command) => command.run(),
        Command::Run(command) => command.run(),
        Command::Apply(command) => command.run(),
        Command::Export(command) => command.run(),
        Command::Campaign(command) => command.run(),
        Command::Report(command) => command.run(),
        Command::Workload(command) => command.run(),
        Command::Doctor(command) => command.run(),
    };
    output::exit(done)
}
