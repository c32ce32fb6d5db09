//! Plan files on the command line.

use crate::output::{Usage, read_input};
use anyhow::Context as _;
use clap::Args;
use pinwise_placement::Plan;
use pinwise_topology::CpuSet;
use std::path::{Path, PathBuf};

/// The plan a command is about.
#[derive(Args, Clone, Debug)]
pub(crate) struct PlanArgument {
    /// The plan, as `pinwise place` wrote it
    #[arg(value_name = "PLAN")]
    path: PathBuf,
}

impl PlanArgument {
    /// A plan that pinwise itself wrote.
    pub(crate) fn at(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// Reads the plan.
    pub(crate) fn load(&self) -> anyhow::Result<Plan> {
        let what = || format!("cannot read plan {}", self.path.display());
        let bytes = read_input(&self.path).with_context(what)?;
        let text = String::from_utf8(bytes).map_err(|_| Usage("it is no text".into())).with_context(what)?;
        Plan::parse(&text).map_err(|error| Usage(error.to_string())).with_context(what)
    }
}

/// Checks that a plan is for this machine. What differs is an error, or with `force` a warning.
pub(crate) fn check(plan: &Plan, force: bool) -> anyhow::Result<()> {
    let machine = pinwise_host::machine()?;
    let mut differences = plan.differences(&pinwise_host::fingerprint(&machine));
    let cannot = plan.cpus().difference(&machine.allowed);
    if !cannot.is_empty() {
        differences.push(format!("the plan uses CPU {cannot}, which is offline here or not allowed"));
    }
    if force {
        differences.iter().for_each(|difference| crate::output::aside(&format!("warning: {difference}")));
    } else if !differences.is_empty() {
        anyhow::bail!(
            "the plan does not fit: {}; run `pinwise place` again, or use --force if the placement still makes sense",
            differences.join("; ")
        );
    }
    Ok(())
}

/// Threads and their CPUs, as [`pinwise_host::Pinner`] wants them.
pub(crate) fn wanted(plan: &Plan) -> Vec<(String, CpuSet)> {
    plan.threads.iter().map(|thread| (thread.name.clone(), thread.cpus.clone())).collect()
}
