//! `pinwise workload`.

use clap::Args;

/// Workload.
#[derive(Args)]
pub(crate) struct Workload {}

impl Workload {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        anyhow::bail!("not built yet")
    }
}
