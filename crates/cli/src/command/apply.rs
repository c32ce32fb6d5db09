//! `pinwise apply`.

use clap::Args;

/// Apply.
#[derive(Args)]
pub(crate) struct Apply {}

impl Apply {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        anyhow::bail!("not built yet")
    }
}
