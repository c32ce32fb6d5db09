//! `pinwise bound`.

use clap::Args;

/// Bound.
#[derive(Args)]
pub(crate) struct Bound {}

impl Bound {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        anyhow::bail!("not built yet")
    }
}
