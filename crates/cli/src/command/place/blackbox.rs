//! The part of `pinwise place` that is about `--strategy blackbox`: what is typed, and what there
//! is to know before the first experiment.

use super::search::fraction;
use super::testbed::Bed;
use crate::output::{self, Usage};
use crate::request::Request;
use clap::Args;
use num_bigint::BigUint;
use pinwise_campaign::{Store, StoreError};
use pinwise_measure::MeasureError;
use pinwise_placement::{Budget, Profile, core_local};
use pinwise_prediction::{Cast, ExperimentCount, Profiling};
use pinwise_present::figures;
use pinwise_topology::{Alike, CpuSet, Domain, DomainKind, Fingerprint, Machine, SharingTree};
use std::time::Duration;

/// Starting two programs for an experiment on this machine takes about so long, until they run
/// steadily, where that was not measured yet.
pub(super) const STARTING: Duration = Duration::from_secs(3);
/// Share of a budget of time that profiling may take.
const PROFILE_SHARE: f64 = 0.6;
/// Where one instance alone has as many assignments, the search says itself that there is no
/// profile.
const MOST_SAID: f64 = 1e6;

/// How the strategy goes about it.
#[derive(Args)]
pub(crate) struct BlackBoxArguments {
    /// Make at most this share of the experiments, chosen on the way; all of one instance alone
    /// and 20 of a thread beside others are made in any case, and below 100% never more than
    /// 800 of the latter; 100% makes all, as published [default: 10%].
    #[arg(long, value_name = "PERCENT", value_parser = share)]
    profile: Option<f64>,
    /// Measure so many assignments: what is predicted best, then in turn the best predicted of
    /// those whose instances are spread over domains, and of all [default: as many as may be
    /// the best, by how far predictions are off].
    #[arg(long, value_name = "N", value_parser = top)]
    top: Option<usize>,
    /// Threads interfere within a domain of this level: Core, L2, … [default: what characterize
    /// found here, else the outermost of at most 8 contexts].
    #[arg(long, value_name = "LEVEL", value_parser = level)]
    core_local: Option<DomainKind>,
    /// Say how many experiments profiling takes, and how long; measure nothing.
    #[arg(long)]
    pub(super) dry_run: bool,
    /// With --dry-run: an application with threads of these roles instead of a program, on any
    /// machine that topo knows.
    #[arg(
        long,
        value_name = "ROLE,ROLE,…[:INSTANCES]",
        requires = "dry_run",
        conflicts_with = "subject"
    )]
    pub(super) roles: Option<String>,
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
            Some((_, name)) => {
                Err(Usage(format!("{name} is about profiling: add --strategy blackbox")))
            }
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
pub(crate) fn decide(profile: &mut Profile, store: Option<&Store>, fingerprint: &Fingerprint) {
    if profile.core_local.is_some() {
        return;
    }
    // One that cannot be read is said, and no reason not to search.
    let unread = |error: StoreError| {
        output::aside(&format!(
            "note: threads are taken to interfere within the usual level, since {error}; characterize again"
        ));
        None
    };
    let characterized =
        store.and_then(|store| store.characterization(fingerprint).unwrap_or_else(unread));
    // Nothing is decided by an excerpt.
    let characterized = characterized.filter(|kept| kept.whole);
    profile.core_local = characterized.and_then(|kept| kept.characterization.findings.local);
    let because = if profile.core_local.is_some() {
        "found by characterize"
    } else {
        "the usual one; characterize finds out"
    };
    profile.core_local_because = because.to_owned();
}

/// What a sharing tree calls a level: of levels whose domains have the same contexts only one is
/// there, and a domain of one context is that context.
pub(super) fn merged(machine: &Machine, level: DomainKind) -> DomainKind {
    fn find(domain: &Domain, level: DomainKind) -> Option<&CpuSet> {
        let here = (domain.kind == level).then_some(&domain.cpus);
        here.or_else(|| domain.children.iter().find_map(|child| find(child, level)))
    }
    let tree = SharingTree::new(machine, Alike::ByStructure);
    let mut leaves = 0..tree.leaves().len() as u32;
    // On a hybrid processor a level may be merged around some contexts and not around others.
    if leaves.any(|leaf| tree.around(leaf).iter().any(|(kind, _)| *kind == level)) {
        return level;
    }
    let number =
        [DomainKind::L2, DomainKind::L3, DomainKind::L4].iter().position(|cache| *cache == level);
    let cache = || {
        machine
            .caches
            .iter()
            .find(|cache| number.is_some_and(|number| usize::from(cache.level) == number + 2))
    };
    let Some(cpus) = find(&machine.root, level).or_else(|| cache().map(|cache| &cache.cpus)) else {
        return level;
    };
    let cpus = cpus.intersection(&machine.allowed);
    let around = tree
        .leaves()
        .iter()
        .position(|leaf| cpus.contains(*leaf))
        .map(|leaf| tree.around(leaf as u32));
    let same = |(_, leaves): &&(DomainKind, std::ops::Range<u32>)| leaves.len() == cpus.len();
    match around.as_ref().and_then(|around| around.iter().find(same)) {
        Some((kind, _)) => *kind,
        None if cpus.len() == 1 => DomainKind::Pu,
        None => level,
    }
}

/// Refuses what has no profile, and says what profiling will take; as much of it is done as the
/// budget has time for. `name` is the workload's, for the user.
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
    let Ok(local) =
        core_local(&tree, workload.threads.len(), &question.profile, question.per_context)
    else {
        return Ok(());
    };
    let count =
        ExperimentCount::new(&tree, &cast, &local).map_err(|error| Usage(error.to_string()))?;
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
    let whose = here
        .map_or(String::new(), |here| format!(" of the model's time, at most about {here} here"));
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
pub(super) fn experiments(count: &str) -> String {
    format!("{} experiment{}", figures::group(count), if count == "1" { "" } else { "s" })
}

/// A number of experiments, as near as it can be.
pub(super) fn decimal(count: &BigUint) -> f64 {
    count.to_string().parse().unwrap_or(f64::INFINITY)
}

/// `417 ms`, `5.5 hours`, `2.5 days`.
pub(super) fn time(seconds: f64) -> String {
    const HOUR: f64 = 3600.0;
    const YEAR: f64 = 365.25 * 24.0 * HOUR;
    let figure =
        |value: f64| if value < 10.0 { format!("{value:.1}") } else { format!("{value:.0}") };
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
    text.parse()
        .ok()
        .filter(|top| (1..=1000).contains(top))
        .ok_or("expected a number from 1 to 1000".into())
}

fn level(text: &str) -> Result<DomainKind, String> {
    serde_json::from_value(serde_json::Value::String(text.to_lowercase())).map_err(|_| {
        "expected a level that `pinwise topo` shows, such as Core, L2 or Package".into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_in_the_units_of_the_published_table() {
        assert_eq!(
            [19_698.0, 214_732.0, 1_455_552.0].map(time),
            ["5.5 hours", "2.5 days", "17 days"]
        );
        assert_eq!([208.3e-6, 0.5].map(time), ["208 µs", "500 ms"]);
        assert_eq!(time(2.8e31), "9e23 years");
    }

    #[test]
    fn a_level_goes_by_the_name_it_has_in_the_tree() {
        let named = |shape: &str, level| merged(&Machine::from_shape(shape).unwrap(), level);
        assert_eq!(named("2x4x2", DomainKind::Core), DomainKind::Core);
        assert_eq!(named("4x1", DomainKind::Core), DomainKind::Pu, "of one context");
        assert_eq!(
            named("2x4x2", DomainKind::L3),
            DomainKind::L3,
            "one that is not there is refused by its own name"
        );
        let mut machine = Machine::from_shape("2x4x2").unwrap();
        let core = machine.root.children[0].children[0].cpus.clone();
        let (level, kind) = (2, pinwise_topology::CacheKind::Unified);
        machine.caches.push(pinwise_topology::Cache {
            level,
            kind,
            size: None,
            line: None,
            ways: None,
            cpus: core,
        });
        assert_eq!(
            merged(&machine, DomainKind::L2),
            DomainKind::Core,
            "a cache of a core's contexts"
        );
        let mut hybrid = Machine::from_shape("l2:2 core:2 pu:2").unwrap();
        hybrid.allowed = CpuSet::parse_list("0,1,4-7").unwrap();
        assert_eq!(merged(&hybrid, DomainKind::L2), DomainKind::L2, "of one core, and of two");
    }

    #[test]
    fn shares_levels_and_numbers_are_read() {
        assert_eq!(
            (share("100%"), share("10%"), level("core"), level("L2")),
            (Ok(1.0), Ok(0.1), Ok(DomainKind::Core), Ok(DomainKind::L2))
        );
        assert!(
            share("0%").is_err()
                && share("200%").is_err()
                && level("Socket").is_err()
                && top("0").is_err()
        );
    }
}
