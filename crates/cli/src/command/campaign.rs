//! `pinwise campaign`.

use clap::Subcommand;

/// What was measured: list, show, resume, export.
#[derive(Subcommand)]
pub(crate) enum Campaign {
    /// Every campaign in the store.
    List,
}

impl Campaign {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        anyhow::bail!("not built yet")
    }
}
