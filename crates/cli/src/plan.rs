//! Plan files: on the command line, and beside the store.

use crate::output::{self, Usage, aside, read_input};
use crate::store;
use anyhow::Context as _;
use clap::Args;
use pinwise_campaign::{CampaignId, CampaignInfo, Store};
use pinwise_placement::Plan;
use pinwise_topology::CpuSet;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// The plan a command is about.
#[derive(Args, Clone, Debug)]
pub(crate) struct PlanArgument {
    /// The plan, as `pinwise place` wrote it, or the number of the campaign that found it
    #[arg(value_name = "PLAN")]
    path: PathBuf,
}

impl PlanArgument {
    /// A plan that pinwise itself wrote.
    pub(crate) fn at(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// Reads the plan, and says on stderr what its search did not advise.
    pub(crate) fn load(&self) -> anyhow::Result<Plan> {
        let path = if self.path.exists() { None } else { self.of_campaign()? };
        let path = path.as_deref().unwrap_or(&self.path);
        let what = || format!("cannot read plan {}", path.display());
        let bytes = read_input(path).with_context(what)?;
        let text = String::from_utf8(bytes).map_err(|_| Usage("it is no text".into())).with_context(what)?;
        let plan = Plan::parse(&text).map_err(|error| Usage(error.to_string())).with_context(what)?;
        plan.cautions().iter().for_each(|caution| aside(&format!("warning: {caution}")));
        Ok(plan)
    }

    /// The plan of a campaign of the store that is found by itself, where a number is given.
    fn of_campaign(&self) -> anyhow::Result<Option<PathBuf>> {
        let number = self.path.to_str().and_then(|word| word.parse().ok());
        let Some(number) = number else { return Ok(None) };
        let store = store::default_existing()?;
        let plan = store.and_then(|store| beside(&store, &store.get(CampaignId(number)).ok()?));
        let none = || {
            format!(
                "there is no file {number}, and no plan of campaign {number} beside the default store: name the plan's file (those of \
                 `pinwise tune` have names, no numbers)"
            )
        };
        plan.map(Some).ok_or_else(|| Usage(none()).into())
    }
}

/// Which campaign of which store, and when it began: what tells the files of one campaign from another's of the same number.
pub(crate) fn identity(store: &Store, info: &CampaignInfo) -> String {
    let file = store.path().file_name().unwrap_or_default().to_string_lossy();
    let begun = pinwise_testbed::figures::date(info.started);
    format!("campaign {} of {file}, begun {begun} ({})", info.id.0, info.started)
}

/// The folder of the plans of a store.
fn folder(store: &Store) -> PathBuf {
    store.path().with_file_name("plans")
}

/// The plan of a campaign beside its store, where there is one: the latest that says so, or else `N.toml` if that does not say whose it is
/// (written by hand, or before plans did).
pub(crate) fn beside(store: &Store, info: &CampaignInfo) -> Option<PathBuf> {
    let identity = identity(store, info);
    let number = info.id.0.to_string();
    let of_number = |path: &PathBuf| {
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        name == number || name.strip_prefix(&number).is_some_and(|rest| rest.starts_with('-'))
    };
    let origin = |path: &Path| Some(Plan::parse(&fs::read_to_string(path).ok()?).ok()?.origin);
    let its_own = |path: &PathBuf| origin(path).flatten().is_some_and(|origin| origin.campaign == identity);
    let files = fs::read_dir(folder(store)).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    let latest = files
        .filter(of_number)
        .filter(its_own)
        .max_by_key(|path| fs::metadata(path).and_then(|file| file.modified()).ok());
    latest.or_else(|| Some(folder(store).join(format!("{number}.toml"))).filter(|path| origin(path) == Some(None)))
}

/// Writes a plan beside the store as `NAME.toml`, or where that is taken as `NAME-2.toml` and so on: another campaign's answer, or
/// one that was edited, is never lost.
pub(crate) fn keep(store: &Store, name: &str, plan: &Plan) -> anyhow::Result<PathBuf> {
    let folder = folder(store);
    fs::create_dir_all(&folder).with_context(|| format!("{}: cannot make the folder", folder.display()))?;
    let names = std::iter::once(format!("{name}.toml")).chain((2_u64..).map(|copy| format!("{name}-{copy}.toml")));
    for path in names.map(|name| folder.join(name)) {
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(mut file) => {
                if let Err(error) = file.write_all(plan.to_toml().as_bytes()) {
                    // What there is of it is no plan, and would take its name.
                    let _ = fs::remove_file(&path);
                    return Err(error).with_context(|| format!("cannot write {}", path.display()));
                }
                return Ok(path);
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error).with_context(|| format!("cannot write {}", path.display())),
        }
    }
    anyhow::bail!("{}: no name is free for the plan", folder.display())
}

/// Writes a plan where the user wants it.
pub(crate) fn write(path: &Path, plan: &Plan) -> anyhow::Result<()> {
    let folder = path.parent().unwrap_or(Path::new(""));
    fs::create_dir_all(folder).with_context(|| format!("{}: cannot make the folder", folder.display()))?;
    output::write(path, plan.to_toml().as_bytes())
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

/// `thread a`, `threads a, b and c`, and of many some.
pub(crate) fn named(names: &[&str]) -> String {
    const SHOWN: usize = 8;
    let more = names.len().saturating_sub(SHOWN);
    let shown = &names[..names.len() - more];
    match (shown, more) {
        ([only], _) => format!("thread {only}"),
        ([first @ .., last], 0) => format!("threads {} and {last}", first.join(", ")),
        (shown, more) => format!("threads {} and {more} more", shown.join(", ")),
    }
}

/// Threads and their CPUs, as [`pinwise_host::Pinner`] wants them.
pub(crate) fn wanted(plan: &Plan) -> Vec<(String, CpuSet)> {
    plan.threads.iter().map(|thread| (thread.name.clone(), thread.cpus.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_threads_are_named_in_one_line() {
        assert_eq!(named(&["a"]), "thread a");
        assert_eq!(named(&["a", "b", "c"]), "threads a, b and c");
        assert_eq!(named(&["x"; 11]), format!("threads {} and 3 more", ["x"; 8].join(", ")));
    }
}
