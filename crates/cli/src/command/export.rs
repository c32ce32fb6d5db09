//! `pinwise export`.

use clap::Args;

/// Export.
#[derive(Args)]
pub(crate) struct Export {}

impl Export {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        anyhow::bail!("not built yet")
    }
}
