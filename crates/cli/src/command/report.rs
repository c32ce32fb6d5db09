//! `pinwise report`.

use clap::Args;

/// Report.
#[derive(Args)]
pub(crate) struct Report {}

impl Report {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        anyhow::bail!("not built yet")
    }
}
