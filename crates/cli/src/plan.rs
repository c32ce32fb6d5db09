//! Plan files on the command line.

use crate::output::Usage;
use anyhow::Context as _;
use clap::Args;
use pinwise_placement::Plan;
use std::fs;
use std::path::PathBuf;

/// The plan a command is about.
#[derive(Args, Clone, Debug)]
pub(crate) struct PlanArgument {
    /// The plan, as `pinwise place` wrote it
    #[arg(value_name = "PLAN")]
    path: PathBuf,
}

impl PlanArgument {
    /// Reads the plan.
    pub(crate) fn load(&self) -> anyhow::Result<Plan> {
        let what = || format!("cannot read plan {}", self.path.display());
        let text = fs::read_to_string(&self.path).with_context(what)?;
        Plan::parse(&text).map_err(|error| Usage(error.to_string())).with_context(what)
    }
}
