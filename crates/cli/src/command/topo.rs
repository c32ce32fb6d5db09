//! `pinwise topo`.

use clap::Args;

/// Topo.
#[derive(Args)]
pub(crate) struct Topo {}

impl Topo {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        anyhow::bail!("not built yet")
    }
}
