//! `--on` and `--nodes`: which machines measure.

use crate::output::Usage;
use clap::Args;
use pinwise_jobs::Nodes;

/// The machines that measure.
#[derive(Args, Clone, Debug)]
pub(crate) struct NodeArguments {
    /// Measure on `ssh:HOST,HOST` or `slurm[:PARTITION]`
    #[arg(
        long,
        help = "Measure on ssh:HOST,HOST or slurm[:PARTITION]",
        value_name = "NODES",
        hide_short_help = true
    )]
    on: Option<String>,
    /// Take N nodes of Slurm
    #[arg(long, value_name = "N", requires = "on", hide_short_help = true)]
    nodes: Option<usize>,
}

impl NodeArguments {
    /// The nodes; `None`: this machine measures.
    pub(crate) fn nodes(&self) -> Result<Option<Nodes>, Usage> {
        let parsed = self.on.as_deref().map(|on| Nodes::parse(on, self.nodes));
        parsed.transpose().map_err(|error| Usage(error.to_string()))
    }
}
