//! `pinwise space`.

use clap::Args;

/// Space.
#[derive(Args)]
pub(crate) struct Space {}

impl Space {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        anyhow::bail!("not built yet")
    }
}
