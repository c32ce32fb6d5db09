//! `pinwise doctor`.

use clap::Args;

/// Doctor.
#[derive(Args)]
pub(crate) struct Doctor {}

impl Doctor {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        anyhow::bail!("not built yet")
    }
}
