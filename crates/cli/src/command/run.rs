//! `pinwise run`.

use clap::Args;

/// Run.
#[derive(Args)]
pub(crate) struct Run {}

impl Run {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        anyhow::bail!("not built yet")
    }
}
