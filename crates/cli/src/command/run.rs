//! `pinwise run`: starts a program with the number of threads of a plan. It pins the program's
//! threads as they appear.

use crate::output;
use crate::plan::{self, PlanArgument};
use clap::Args;
use pinwise_jobs::{MissingThreads, PlanEvent, PlannedRun, PlannedStart, StartOptions};
use pinwise_linux::Pinned;
use pinwise_present::named_threads;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

/// Start a program with its threads pinned by a plan
///
/// Threads are found by name and pinned within milliseconds of their creation. The plan's number of
/// threads, if it has one, replaces {n} in the arguments. run also sets the plan's environment
/// variables whose value is this number. It needs --env for others. run prints only warnings. Its
/// exit code is the program's, or 128 + N if signal N ended it.
#[derive(Args)]
#[command(after_help = "Examples:
  pinwise run plan.toml -- pigz -p 6 -k -c big.file > big.file.gz
  pinwise run tuned.toml -- pigz -p {n} -k -c big.file > big.file.gz")]
pub(crate) struct Run {
    #[command(flatten)]
    plan: PlanArgument,
    /// Use the plan although it is for another machine. Differences become warnings
    #[arg(long)]
    force: bool,
    /// Also set this variable of the plan, which says more than the number. It can make the program
    /// run other code. Repeat for several
    #[arg(long = "env", value_name = "NAME")]
    environment: Vec<String>,
    /// The program and its arguments. {n} becomes the plan's number of threads
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

impl Run {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let plan = self.plan.load()?;
        let mut print_event = |event: PlanEvent<'_>| {
            plan::print_event(&event);
            if let PlanEvent::Pinned(Pinned { name, result: Err(error), .. }) = event {
                output::aside(&format!("warning: {name}: {error}"));
            }
            Ok(())
        };
        let options = StartOptions { force: self.force, environment: self.environment };
        let start = PlannedStart::new(&plan, &self.command, &options, &mut print_event)
            .map_err(plan::failed)?;
        // The program decides what a signal means, and we end with it.
        let signal = Arc::new(AtomicUsize::new(0));
        for number in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register_usize(number, signal.clone(), number as usize)?;
        }
        let PlannedRun { status, missing } =
            start.run(&signal, &mut print_event).map_err(plan::failed)?;
        if let Some(MissingThreads { names, program }) = missing {
            let names = named_threads(&names);
            output::aside(&format!(
                "warning: {names} never appeared: the plan's program is {program}; threads of a \
                 few ms go unseen"
            ));
        }
        if let Some(signal) = status.signal() {
            let name = signal_hook::low_level::signal_name(signal).unwrap_or("a signal");
            let program = self.command[0].to_string_lossy();
            output::aside(&format!("warning: {program} was ended by {name} ({signal})"));
        }
        // The program's exit code is ours; everything has been printed.
        std::process::exit(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)))
    }
}
