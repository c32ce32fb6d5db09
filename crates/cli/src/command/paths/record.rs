//! `pinwise paths record`: runs a program under perf, with the options that paths need.

use crate::output::{self, Interrupted};
use clap::Args;
use pinwise_jobs::{BranchesRecorded, RecordRequest, record_branches};
use pinwise_present::{one_line, quoted};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

/// Record the branches of a program with perf
///
/// It needs perf and a processor with branch records. `pinwise doctor` says whether this one shows
/// them. A sample is taken after 500,009 instructions in user mode. If that does not work, these
/// are cycles or branches. The exit code is the program's. Ctrl-C ends it, and keeps what was
/// recorded: exit code 130.
#[derive(Args)]
#[command(after_help = "Examples:
  pinwise paths record -- ./app --its option
  pinwise paths record -o app.data -- ./app && pinwise paths app.data")]
pub(super) struct PathsRecord {
    /// Write to FILE. perf renames an older one to FILE.old
    #[arg(short, long, value_name = "FILE", default_value = "perf.data")]
    output: PathBuf,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

impl PathsRecord {
    pub(super) fn run(self) -> anyhow::Result<()> {
        output::check(&self.output)?;
        let signal = Arc::new(AtomicUsize::new(0));
        for number in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register_usize(number, signal.clone(), number as usize)?;
        }
        let request = RecordRequest { output: self.output, command: self.command };
        let BranchesRecorded { status, signal } = record_branches(&request, &signal)?;
        let file = request.output.display().to_string();
        if signal != 0 {
            return Err(Interrupted(format!(
                "interrupted: {file} has what was recorded until then"
            ))
            .into());
        }
        output::aside(&one_line(&format!("recorded; next: pinwise paths {}", quoted(&file))));
        match status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)) {
            0 => Ok(()),
            // The program's exit code is ours.
            code => std::process::exit(code),
        }
    }
}
