//! `--on` and `--nodes`: which machines measure.

use crate::output::{self, Usage};
use clap::Args;
use pinwise_jobs::Nodes;
use pinwise_placement::Budget;
use pinwise_present::{NodesOutlook, nodes_outlook};

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

/// The same, for a command that says with `--dry-run` what they take.
#[derive(Args, Clone, Debug)]
pub(crate) struct OutlookArguments {
    #[command(flatten)]
    nodes: NodeArguments,
    /// Print what --on takes. Measure nothing
    #[arg(long, requires = "on", hide_short_help = true)]
    dry_run: bool,
}

impl OutlookArguments {
    /// The nodes; `None`: this machine measures.
    pub(crate) fn nodes(&self) -> Result<Option<Nodes>, Usage> {
        self.nodes.nodes()
    }

    /// Prints what a budget takes on the nodes, if that is all that is asked. False: it is not.
    pub(crate) fn only_looks_ahead(
        &self,
        json: bool,
        budget: impl FnOnce() -> anyhow::Result<Budget>,
    ) -> anyhow::Result<bool> {
        let Some(nodes) = self.nodes()?.filter(|_| self.dry_run) else { return Ok(false) };
        let outlook = NodesOutlook::of(nodes.count(), budget()?, None);
        match json {
            true => output::print_json(&outlook),
            false => output::print(&nodes_outlook(&outlook)),
        }?;
        Ok(true)
    }
}
