//! The part of `pinwise place` that is about `--strategy blackbox`: what is typed, and what it would take.

use super::Place;
use super::search::fraction;
use super::testbed::{Bed, allowed, simulated, virtual_time};
use crate::output::{self, Usage};
use crate::request::{Request, Subject};
use anyhow::Context;
use clap::Args;
use num_bigint::BigUint;
use pinwise_campaign::Store;
use pinwise_placement::{Budget, Profile, SearchError, core_local};
use pinwise_prediction::{Cast, ExperimentCount, Profiling};
use pinwise_simulator::Processor;
use pinwise_simulator::program::Pipeline;
use pinwise_testbed::{MeasureError, Thread, Workload, figures};
use pinwise_topology::{Alike, CpuSet, Domain, DomainKind, Fingerprint, Machine, PerContext, SharingTree, Space};
use serde::Serialize;
use std::fmt::Write as _;
use std::time::Duration;

/// Starting two programs for an experiment on this machine takes about so long, until they run steadily, where that was not
/// measured yet.
const STARTING: Duration = Duration::from_secs(3);
/// Share of a budget of time that profiling may take.
const PROFILE_SHARE: f64 = 0.6;
/// Where one instance alone has as many assignments, the search says itself that there is no profile.
const MOST_SAID: f64 = 1e6;

/// How the strategy goes about it.
#[derive(Args)]
pub(crate) struct BlackBoxArguments {
    /// Make at most this share of the experiments, chosen on the way; all of one instance alone and 20 of a thread beside others are made
    /// in any case, and below 100% never more than 800 of the latter; 100% makes all, as published [default: 10%].
    #[arg(long, value_name = "PERCENT", value_parser = share)]
    profile: Option<f64>,
    /// Measure so many assignments: what is predicted best, then in turn the best predicted of those whose instances are spread over domains,
    /// and of all [default: as many as may be the best, by how far predictions are off].
    #[arg(long, value_name = "N", value_parser = top)]
    top: Option<usize>,
    /// Threads interfere within a domain of this level: Core, L2, … [default: what characterize found here, else the outermost of at most
    /// 8 contexts].
    #[arg(long, value_name = "LEVEL", value_parser = level)]
    core_local: Option<DomainKind>,
    /// Say how many experiments profiling takes, and how long; measure nothing.
    #[arg(long)]
    pub(super) dry_run: bool,
    /// With --dry-run: an application with threads of these roles instead of a program, on any machine that topo knows.
    #[arg(long, value_name = "ROLE,ROLE,…[:INSTANCES]", requires = "dry_run", conflicts_with = "subject")]
    roles: Option<String>,
}

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
    /// Threads of one role interchangeable, and only layouts that there are threads for; `null` where there are too many.
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

impl BlackBoxArguments {
    /// Another strategy has no use for any of this.
    pub(super) fn refuse(&self) -> Result<(), Usage> {
        let given = [
            (self.profile.is_some(), "--profile"),
            (self.top.is_some(), "--top"),
            (self.core_local.is_some(), "--core-local"),
            (self.dry_run, "--dry-run"),
        ];
        match given.iter().find(|(given, _)| *given) {
            Some((_, name)) => Err(Usage(format!("{name} is about profiling: add --strategy blackbox"))),
            None => Ok(()),
        }
    }

    /// As asked; a level that was not stays open.
    pub(super) fn profile(&self) -> Profile {
        Profile {
            core_local: self.core_local,
            core_local_because: self.core_local.map_or("", |_| "--core-local").to_owned(),
            share: self.profile.unwrap_or(Profile::default().share),
            top: self.top,
        }
    }
}

/// Decides which level is core-local where nobody said: as characterized, or the usual one.
pub(crate) fn decide(profile: &mut Profile, store: Option<&Store>, fingerprint: &Fingerprint) -> anyhow::Result<()> {
    if profile.core_local.is_some() {
        return Ok(());
    }
    let characterized = store.map(|store| store.characterization(fingerprint)).transpose()?.flatten();
    profile.core_local = characterized.and_then(|found| found.findings.local);
    let because =
        if profile.core_local.is_some() { "found by characterize" } else { "the usual one; characterize finds out" };
    profile.core_local_because = because.to_owned();
    Ok(())
}

/// What a sharing tree calls a level: of levels whose domains have the same contexts only one is there, and a domain of one context is
/// that context.
fn merged(machine: &Machine, level: DomainKind) -> DomainKind {
    fn find(domain: &Domain, level: DomainKind) -> Option<&CpuSet> {
        let here = (domain.kind == level).then_some(&domain.cpus);
        here.or_else(|| domain.children.iter().find_map(|child| find(child, level)))
    }
    let number = [DomainKind::L2, DomainKind::L3, DomainKind::L4].iter().position(|cache| *cache == level);
    let cache =
        || machine.caches.iter().find(|cache| number.is_some_and(|number| usize::from(cache.level) == number + 2));
    let Some(cpus) = find(&machine.root, level).or_else(|| cache().map(|cache| &cache.cpus)) else { return level };
    let cpus = cpus.intersection(&machine.allowed);
    let tree = SharingTree::new(machine, Alike::ByStructure);
    let around = tree.leaves().iter().position(|leaf| cpus.contains(*leaf)).map(|leaf| tree.around(leaf as u32));
    let same = |(_, leaves): &&(DomainKind, std::ops::Range<u32>)| leaves.len() == cpus.len();
    match around.as_ref().and_then(|around| around.iter().find(same)) {
        Some((kind, _)) => *kind,
        None if cpus.len() == 1 => DomainKind::Pu,
        None => level,
    }
}

/// Refuses what has no profile, and says what profiling will take; as much of it is done as the budget has time for. `name` is the
/// workload's, for the user.
pub(crate) fn prepare(request: &mut Request, bed: &Bed, name: &str) -> anyhow::Result<()> {
    let testbed = bed.testbed();
    let (machine, workload) = (testbed.machine(), testbed.workload());
    let cast = Cast::new(workload);
    if cast.instances().len() < 2 {
        return Err(Usage(format!(
            "blackbox predicts what instances do to each other, and {name} is one instance: run more of them (--workload NAME:2), or use \
             --strategy auto, which measures it as a whole"
        ))
        .into());
    }
    let Some((each, simulated)) = bed.experiment(request) else {
        return Err(Usage(MeasureError::no_profiles(name).to_string()).into());
    };
    let question = &mut request.question;
    question.profile.core_local = question.profile.core_local.map(|level| merged(machine, level));
    let tree = SharingTree::new(machine, question.alike);
    // Where this fails, the search says so in a moment.
    let Ok(local) = core_local(&tree, workload.threads.len(), &question.profile, question.per_context) else {
        return Ok(());
    };
    let count = ExperimentCount::new(&tree, &cast, &local).map_err(|error| Usage(error.to_string()))?;
    let base = decimal(&count.base);
    let Some(entries) = count.slowdown.filter(|_| base < MOST_SAID) else { return Ok(()) };
    let seconds = |experiments: f64| time(experiments * each.as_secs_f64());
    if let (Budget::Time(budget), false) = (question.budget, simulated) {
        let affordable = PROFILE_SHARE * budget.as_secs_f64() / each.as_secs_f64();
        let least = base + Profiling::allowed(0.0, base, entries) as f64;
        if affordable < least {
            let enough = (each.as_secs_f64() * least / PROFILE_SHARE).ceil();
            let (each, all) = (figures::duration(each), seconds(least));
            let percent = figures::percent(PROFILE_SHARE);
            return Err(Usage(format!(
                "profiling {name} takes at least {least} experiments of {each}, {all} in all, and may take {percent} of the budget: give \
                 --budget {enough}s or more"
            ))
            .into());
        }
        let share = affordable / (base + entries as f64);
        question.profile.share = question.profile.share.min(share);
    }
    let slowdown = Profiling::allowed(question.profile.share, base, entries);
    let all = base + slowdown as f64;
    let here = bed.simulating().map(|each| time(all * each.as_secs_f64()));
    let whose = here.map_or(String::new(), |here| format!(" of the model's time, at most about {here} here"));
    output::aside(&format!(
        "note: at most {}, {}{whose}: {} of one instance alone, {} of a thread beside others",
        experiments(&all.to_string()),
        seconds(all),
        figures::group(&base.to_string()),
        figures::group(&slowdown.to_string())
    ));
    Ok(())
}

/// `1 experiment`, `2,111 experiments`.
fn experiments(count: &str) -> String {
    format!("{} experiment{}", figures::group(count), if count == "1" { "" } else { "s" })
}

/// A number of experiments, as near as it can be.
fn decimal(count: &BigUint) -> f64 {
    count.to_string().parse().unwrap_or(f64::INFINITY)
}

impl Place {
    /// Says what profiling would take.
    pub(super) fn rehearse(&self) -> anyhow::Result<()> {
        let Paper { machine, workload, per_context, seconds_each, simulated, here } = self.subject_on_paper()?;
        let tree = SharingTree::new(&machine, Alike::ByStructure);
        let store = self.store.open_existing()?;
        let mut profile = self.blackbox.profile();
        decide(&mut profile, store.as_ref(), &Fingerprint::of(&machine))?;
        profile.core_local = profile.core_local.map(|level| merged(&machine, level));
        let cast = Cast::new(&workload);
        let local = core_local(&tree, workload.threads.len(), &profile, per_context)
            .map_err(|error| Usage(SearchError::Local(error).to_string()))?;
        let room = PerContext::AtMost(local.per_context());
        Space::new(tree.clone(), workload.threads.len(), room).map_err(|error| Usage(error.to_string()))?;
        let count = ExperimentCount::new(&tree, &cast, &local).map_err(|error| Usage(error.to_string()))?;
        let seconds = |experiments: &BigUint| decimal(experiments) * seconds_each;
        let published = &count.base_published + &count.slowdown_published;
        let needed = count.needed();
        let base = decimal(&count.base);
        let slowdown_reduced = count.slowdown.map(|entries| Profiling::allowed(profile.share, base, entries));
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
        if self.json { output::print_json(&document) } else { output::print(&text(&document, local.size(), simulated)) }
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
        let request = self.request("pinwise")?;
        match &request.subject {
            Subject::Simulated(simulation) => {
                let processor = Processor::model(&simulation.model).map_err(|error| Usage(error.to_string()))?;
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
                let modelled = |name| Pipeline::named(name).with_context(|| format!("there is no model of {name}"));
                let programs = named.programs().iter().map(|program| modelled(program.name()));
                let programs: Vec<Pipeline> = programs.collect::<anyhow::Result<_>>()?;
                let machine = pinwise_host::machine().context("cannot read this machine's topology")?;
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
        return Err(Usage(format!("--roles {text}: expected names of roles and a number of instances, as R,P,T:8")));
    };
    let thread = |(instance, role): (usize, &&str)| Thread {
        name: format!("{role}{instance}"),
        role: (*role).to_owned(),
        instance,
    };
    let threads = (0..instances).flat_map(|instance| roles.iter().map(move |role| thread((instance, role))));
    Ok(Workload { name: text.to_owned(), threads: threads.collect() })
}

fn text(document: &Document, size: usize, simulated: bool) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name:<13} {value}");
    };
    let Document { machine, contexts, workload, threads, core_local, core_local_because, .. } = document;
    line("machine", format!("{machine}: {}", figures::counted(*contexts as u64, "context")));
    line(
        "core-local",
        format!(
            "{core_local} ({core_local_because}): threads on other {core_local}s are taken not to interfere; one has {size} context{}",
            if size == 1 { "" } else { "s" }
        ),
    );
    let programs =
        if document.applications > 1 { format!(" of {} applications", document.applications) } else { String::new() };
    line("workload", format!("{workload}: {}{programs}", figures::counted(*threads as u64, "thread")));
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
    line("time", format!("{each} per experiment{}", if simulated { ", of the model's time" } else { "" }));
    if let Some(here) = document.seconds_each_here {
        let all = document.experiments_reduced.as_ref().and_then(|all| all.parse::<f64>().ok());
        let all = all.map(|all| format!(", {} for --profile", time(all * here))).unwrap_or_default();
        line("", format!("at most about {} of this machine's{all}", time(here)));
    }
    text
}

/// `417 ms`, `5.5 hours`, `2.5 days`.
fn time(seconds: f64) -> String {
    const HOUR: f64 = 3600.0;
    const YEAR: f64 = 365.25 * 24.0 * HOUR;
    let figure = |value: f64| if value < 10.0 { format!("{value:.1}") } else { format!("{value:.0}") };
    match seconds {
        seconds if seconds < HOUR => figures::duration(std::time::Duration::from_secs_f64(seconds)),
        seconds if seconds < 48.0 * HOUR => format!("{} hours", figure(seconds / HOUR)),
        seconds if seconds < 2.0 * YEAR => format!("{} days", figure(seconds / HOUR / 24.0)),
        seconds if seconds < 1e4 * YEAR => format!("{} years", figure(seconds / YEAR)),
        seconds => format!("{:.0e} years", seconds / YEAR),
    }
}

/// `10%`, up to `100%`.
fn share(text: &str) -> Result<f64, String> {
    if matches!(text.trim(), "100%" | "1") {
        return Ok(1.0);
    }
    fraction(text).map_err(|_| "expected a percentage such as 10%, or 100% for all of it".into())
}

fn top(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|top| (1..=1000).contains(top)).ok_or("expected a number from 1 to 1000".into())
}

fn level(text: &str) -> Result<DomainKind, String> {
    serde_json::from_value(serde_json::Value::String(text.to_lowercase()))
        .map_err(|_| "expected a level that `pinwise topo` shows, such as Core, L2 or Package".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_in_the_units_of_the_published_table() {
        assert_eq!([19_698.0, 214_732.0, 1_455_552.0].map(time), ["5.5 hours", "2.5 days", "17 days"]);
        assert_eq!([208.3e-6, 0.5].map(time), ["208 µs", "500 ms"]);
        assert_eq!(time(2.8e31), "9e23 years");
    }

    #[test]
    fn a_level_goes_by_the_name_it_has_in_the_tree() {
        let named = |shape: &str, level| merged(&Machine::from_shape(shape).unwrap(), level);
        assert_eq!(named("2x4x2", DomainKind::Core), DomainKind::Core);
        assert_eq!(named("4x1", DomainKind::Core), DomainKind::Pu, "of one context");
        assert_eq!(named("2x4x2", DomainKind::L3), DomainKind::L3, "one that is not there is refused by its own name");
        let mut machine = Machine::from_shape("2x4x2").unwrap();
        let core = machine.root.children[0].children[0].cpus.clone();
        let (level, kind) = (2, pinwise_topology::CacheKind::Unified);
        machine.caches.push(pinwise_topology::Cache { level, kind, size: None, line: None, ways: None, cpus: core });
        assert_eq!(merged(&machine, DomainKind::L2), DomainKind::Core, "a cache of a core's contexts");
    }

    #[test]
    fn an_application_is_named_by_its_roles() {
        let workload = application("R,W,W:3").unwrap();
        assert_eq!(workload.threads.len(), 9);
        assert_eq!((workload.threads[8].role.as_str(), workload.threads[8].instance), ("W", 2));
        for text in ["", "R,", "R,P:0", "R,P:many", ":2"] {
            assert!(application(text).is_err(), "{text}");
        }
    }

    #[test]
    fn shares_levels_and_numbers_are_read() {
        assert_eq!(
            (share("100%"), share("10%"), level("core"), level("L2")),
            (Ok(1.0), Ok(0.1), Ok(DomainKind::Core), Ok(DomainKind::L2))
        );
        assert!(share("0%").is_err() && share("200%").is_err() && level("Socket").is_err() && top("0").is_err());
    }
}
