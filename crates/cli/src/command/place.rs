//! `pinwise place`.

use clap::Args;

/// Place.
#[derive(Args)]
pub(crate) struct Place {}

impl Place {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        anyhow::bail!("not built yet")
    }
}
