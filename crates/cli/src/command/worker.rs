//! `pinwise worker`: what runs on the nodes of a campaign. People do not type it.

use crate::events;
use clap::Args;
use std::io;

/// Measure for a pinwise on another machine, over standard input and output
#[derive(Args)]
pub(crate) struct Worker {
    /// Measure real programs only while no other worker of this name runs
    #[arg(long, value_name = "NAME")]
    turn: Option<String>,
}

impl Worker {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let caller = events::caller(None)?;
        // Several nodes of Slurm may be on one host.
        let host = std::env::var("SLURMD_NODENAME")
            .unwrap_or_else(|_| rustix::system::uname().nodename().to_string_lossy().into_owned());
        // What a person typed it for is said at once.
        if rustix::termios::isatty(io::stdin()) {
            anyhow::bail!("worker is started by --on, over ssh or Slurm: see place --help");
        }
        let version = env!("CARGO_PKG_VERSION");
        let (input, output) = (io::stdin(), io::stdout());
        let turn = self.turn.as_deref();
        pinwise_jobs::serve_as_worker(input, output, (version, &host), turn, &caller)?;
        Ok(())
    }
}
