//! `place --strategy blackbox --dry-run`: what profiling would take.

use super::Place;
use crate::events::Terminal;
use crate::output::{self, Usage};
use anyhow::Context;
use num_bigint::BigUint;
use pinwise_jobs::{
    STARTING, Subject, allowed_machine as allowed, decide_core_local, decimal, experiments,
    long_time as time, merged_level as merged, simulated, virtual_time,
};
use pinwise_measure::{MeasureError, Thread, Workload};
use pinwise_placement::{SearchError, core_local};
use pinwise_prediction::{Build, Cast, ExperimentCount, Local, Profiling};
use pinwise_present::figures;
use pinwise_processor::program::Pipeline;
use pinwise_topology::{Alike, Fingerprint, Machine, PerContext, SharingTree, Space};
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// What profiling takes, as `--json` prints it. Numbers of experiments are decimal, exact.
#[derive(Serialize)]
struct Document {
    machine: String,
    contexts: usize,
    workload: String,
    threads: usize,
    applications: usize,
    core_local: String,
    core_local_because: String,
    /// Every thread of an instance told apart.
    base_published: String,
    slowdown_published: String,
    experiments_published: String,
    /// Threads of one role interchangeable, and only layouts that there are threads for; `null`
    /// where there are too many.
    base: String,
    slowdown: Option<usize>,
    experiments: Option<String>,
    /// At most this share of the experiments, as asked.
    profile: f64,
    slowdown_reduced: Option<usize>,
    experiments_reduced: Option<String>,
    seconds_each: f64,
    /// On a model, of this machine's time.
    seconds_each_here: Option<f64>,
    seconds_published: f64,
    seconds: Option<f64>,
    seconds_reduced: Option<f64>,
}

/// What `--dry-run` is about.
struct Paper {
    machine: Machine,
    workload: Workload,
    /// Threads that a context may hold; open where nobody says.
    per_context: Option<usize>,
    /// An experiment takes so long,
    seconds_each: f64,
    /// of a model's time,
    simulated: bool,
    /// for which this machine takes about so long.
    here: Option<f64>,
}

impl Place {
    /// Says what profiling would take.
    pub(super) fn rehearse(&self) -> anyhow::Result<()> {
        let Paper { machine, workload, per_context, seconds_each, simulated, here } =
            self.subject_on_paper()?;
        let tree = SharingTree::new(&machine, Alike::ByStructure);
        let store = self.store.open_existing()?;
        let mut profile = self.blackbox.profile();
        let fingerprint = Fingerprint::of(&machine);
        decide_core_local(&mut profile, store.as_ref(), &fingerprint, &mut Terminal::new(true))?;
        profile.core_local = profile.core_local.map(|level| merged(&machine, level));
        let cast = Cast::new(&workload);
        let local = core_local(&tree, workload.threads.len(), &profile, per_context)
            .map_err(|error| Usage(SearchError::Local(error).to_string()))?;
        let room = PerContext::AtMost(local.per_context());
        Space::new(tree.clone(), workload.threads.len(), room)
            .map_err(|error| Usage(error.to_string()))?;
        let count =
            ExperimentCount::new(&tree, &cast, &local).map_err(|error| Usage(error.to_string()))?;
        let seconds = |experiments: &BigUint| decimal(experiments) * seconds_each;
        let published = &count.base_published + &count.slowdown_published;
        let needed = count.needed();
        let base = decimal(&count.base);
        let slowdown_reduced =
            count.slowdown.map(|entries| Profiling::allowed(profile.share, base, entries));
        let reduced = slowdown_reduced.map(|slowdown| &count.base + slowdown);
        let document = Document {
            machine: machine.name.clone(),
            contexts: tree.leaves().len(),
            workload: workload.name.clone(),
            threads: workload.threads.len(),
            applications: cast.applications(),
            core_local: local.level().name().to_owned(),
            core_local_because: profile.core_local_because.clone(),
            base_published: count.base_published.to_string(),
            slowdown_published: count.slowdown_published.to_string(),
            seconds_published: seconds(&published),
            experiments_published: published.to_string(),
            base: count.base.to_string(),
            slowdown: count.slowdown,
            seconds: needed.as_ref().map(seconds),
            experiments: needed.map(|needed| needed.to_string()),
            profile: profile.share,
            slowdown_reduced,
            seconds_reduced: reduced.as_ref().map(seconds),
            experiments_reduced: reduced.map(|reduced| reduced.to_string()),
            seconds_each,
            seconds_each_here: here,
        };
        if self.json {
            output::print_json(&document)
        } else {
            output::print(&text(&document, &sizes(&local), simulated))
        }
    }

    /// What is asked about, without starting anything.
    fn subject_on_paper(&self) -> anyhow::Result<Paper> {
        let (cpus, per_context) = (self.search.cpus.as_deref(), self.search.per_context);
        if let Some(roles) = &self.blackbox.roles {
            return Ok(Paper {
                machine: allowed(self.subject.simulation.machine().load()?, cpus)?,
                workload: application(roles)?,
                per_context,
                seconds_each: self.subject.period().as_secs_f64(),
                simulated: false,
                here: None,
            });
        }
        let request = self.request()?;
        match &request.subject {
            Subject::Simulated(simulation) => {
                let processor = simulation.model.processor()?;
                // What the run refuses is refused here.
                let bed = simulated(simulation, &request)?;
                Ok(Paper {
                    seconds_each: virtual_time(simulation, &processor).as_secs_f64(),
                    machine: bed.testbed().machine().clone(),
                    workload: bed.testbed().workload().clone(),
                    per_context: request.question.per_context,
                    simulated: true,
                    here: bed.simulating().map(|each| each.as_secs_f64()),
                })
            }
            _ if self.built_in().is_some() => {
                let named = self.built_in().unwrap_or_default();
                // What runs here is what the model has by the same names.
                let named = super::subject::built_in(named)?;
                let modelled = |name| {
                    Pipeline::named(name).with_context(|| format!("there is no model of {name}"))
                };
                let programs = named.programs().iter().map(|program| modelled(program.name()));
                let programs: Vec<Pipeline> = programs.collect::<anyhow::Result<_>>()?;
                let machine =
                    pinwise_linux::machine().context("cannot read this machine's topology")?;
                Ok(Paper {
                    machine: allowed(machine, cpus)?,
                    workload: Pipeline::workload(&programs),
                    per_context,
                    seconds_each: (STARTING + self.subject.period()).as_secs_f64(),
                    simulated: false,
                    here: None,
                })
            }
            _ => {
                let name = self.subject.command_name().unwrap_or("a running program");
                Err(Usage(MeasureError::no_profiles(name).to_string()).into())
            }
        }
    }
}

/// `R,P,T:8`: eight instances of an application with these threads.
fn application(text: &str) -> Result<Workload, Usage> {
    let (roles, instances) = text.split_once(':').unwrap_or((text, "1"));
    let count = instances.parse().ok().filter(|instances| (1..=1024).contains(instances));
    let roles: Vec<&str> = roles.split(',').map(str::trim).collect();
    let (Some(instances), false) = (count, roles.iter().any(|role| role.is_empty())) else {
        return Err(Usage(format!(
            "--roles {text}: expected names of roles and a number of instances, as R,P,T:8"
        )));
    };
    let thread = |(instance, role): (usize, &&str)| Thread {
        name: format!("{role}{instance}"),
        role: (*role).to_owned(),
        instance,
    };
    let threads =
        (0..instances).flat_map(|instance| roles.iter().map(move |role| thread((instance, role))));
    Ok(Workload { name: text.to_owned(), threads: threads.collect() })
}

/// Contexts that a core-local domain has: `8 contexts`, `2 or 4 contexts`.
fn sizes(local: &Local) -> String {
    let sizes: BTreeSet<usize> = local.builds().iter().map(Build::size).collect();
    let last = sizes.last().copied().unwrap_or_default();
    let sizes: Vec<String> = sizes.iter().map(usize::to_string).collect();
    format!("{} context{}", sizes.join(" or "), if last == 1 { "" } else { "s" })
}

fn text(document: &Document, sizes: &str, simulated: bool) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name:<13} {value}");
    };
    let Document { machine, contexts, workload, threads, core_local, core_local_because, .. } =
        document;
    line("machine", format!("{machine}: {}", figures::counted(*contexts as u64, "context")));
    line(
        "core-local",
        format!(
            "{core_local} ({core_local_because}): threads on other {core_local}s are taken not to interfere; one has {sizes}"
        ),
    );
    let programs = if document.applications > 1 {
        format!(" of {} applications", document.applications)
    } else {
        String::new()
    };
    line(
        "workload",
        format!("{workload}: {}{programs}", figures::counted(*threads as u64, "thread")),
    );
    let count = |base: &str, slowdown: &str, all: &str, seconds: f64| {
        let [base, slowdown] = [base, slowdown].map(figures::group);
        format!(
            "{}, {}: {base} of one instance alone, {slowdown} of a thread beside others",
            experiments(all),
            time(seconds)
        )
    };
    line(
        "as published",
        count(
            &document.base_published,
            &document.slowdown_published,
            &document.experiments_published,
            document.seconds_published,
        ),
    );
    match (document.slowdown, &document.experiments, document.seconds) {
        (Some(slowdown), Some(all), Some(seconds)) => {
            line("needed", count(&document.base, &slowdown.to_string(), all, seconds));
            line(
                "",
                "threads of one role are interchangeable, and others than the workload has are never beside one".into(),
            );
        }
        _ => line("needed", "too many to go through".into()),
    }
    if let (Some(slowdown), Some(all), Some(seconds)) =
        (document.slowdown_reduced, &document.experiments_reduced, document.seconds_reduced)
    {
        let share = figures::percent(document.profile);
        let at_most = count(&document.base, &slowdown.to_string(), all, seconds);
        line("--profile", format!("{share}: at most {at_most}"));
    }
    let each = time(document.seconds_each);
    line(
        "time",
        format!("{each} per experiment{}", if simulated { ", of the model's time" } else { "" }),
    );
    if let Some(here) = document.seconds_each_here {
        let all = document.experiments_reduced.as_ref().and_then(|all| all.parse::<f64>().ok());
        let all =
            all.map(|all| format!(", {} for --profile", time(all * here))).unwrap_or_default();
        line("", format!("at most about {} of this machine's{all}", time(here)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_application_is_named_by_its_roles() {
        let workload = application("R,W,W:3").unwrap();
        assert_eq!(workload.threads.len(), 9);
        assert_eq!((workload.threads[8].role.as_str(), workload.threads[8].instance), ("W", 2));
        for text in ["", "R,", "R,P:0", "R,P:many", ":2"] {
            assert!(application(text).is_err(), "{text}");
        }
    }
}
