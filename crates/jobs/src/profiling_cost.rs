//! Estimates a BlackBox profile's cost, fits it to the budget, and picks the core-local level.

use crate::error::JobError;
use crate::events::Events;
use crate::events::note;
use crate::job::Caller;
use crate::open_subject::{OpenSubject, open, this_machine};
use crate::placement_request::PlacementRequest;
use crate::subject::Subject;
use pinwise_campaign::Store;
use pinwise_characterization::StoredCharacterization;
use pinwise_measure::{MeasureError, Time, Workload};
use pinwise_placement::{BlackboxOptions, Budget, LevelSource, SearchError, core_local};
use pinwise_prediction::{ExperimentCount, Profiling, ThreadKinds};
use pinwise_present::{Notice, ProfilingOutlook};
use pinwise_processor::program::PacketProgram;
use pinwise_topology::{Alike, CpuSet, Domain, DomainKind, Fingerprint, Machine, SharingTree};
use pinwise_workloads::BuiltInWorkload as Programs;
use std::time::Duration;

/// The approximate time to start two programs for an experiment on this machine, until they run
/// steadily. It counts until that was measured.
const STARTING: Duration = Duration::from_secs(3);
/// Share of a budget of time that profiling may take.
const PROFILE_SHARE: f64 = 0.6;

/// Decides which level is core-local if the user named none: as characterized, or the usual one.
///
/// # Errors
/// Nobody takes the events.
pub(crate) fn decide_core_local(
    profile: &mut BlackboxOptions,
    store: Option<&Store>,
    fingerprint: &Fingerprint,
    events: &mut dyn Events,
) -> Result<(), JobError> {
    if profile.core_local.is_some() {
        return Ok(());
    }
    let found = store.map_or(Ok(None), |store| StoredCharacterization::latest(store, fingerprint));
    // One that cannot be read is reported, and no reason not to search.
    let characterized = match found {
        Ok(found) => found,
        Err(error) => {
            note(events, Notice::Uncharacterized { error: error.to_string() })?;
            None
        }
    };
    // Nothing is decided by an excerpt.
    let characterized = characterized.filter(|kept| kept.excerpt.is_none());
    profile.core_local = characterized.and_then(|kept| kept.characterization.findings.local);
    profile.core_local_because = match profile.core_local {
        Some(_) => LevelSource::Characterized,
        None => LevelSource::Usual,
    };
    Ok(())
}

/// The level under which a sharing tree has `level`. The tree merges levels whose domains have the
/// same contexts, and a domain of one context into that context.
fn merged_level(machine: &Machine, level: DomainKind) -> DomainKind {
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

/// How long an experiment of profiling takes.
///
/// # Errors
/// The program cannot be profiled.
pub(crate) fn experiment_time(
    request: &PlacementRequest,
    testbed: &dyn OpenSubject,
) -> Result<Duration, SearchError> {
    let workload = || request.name.as_ref().unwrap_or(&testbed.workload().name).clone();
    let Some(each) = testbed.experiment(request.period) else {
        return Err(SearchError::NoProfile { workload: workload() });
    };
    if ThreadKinds::new(testbed.workload()).instances().len() < 2 {
        return Err(SearchError::OneInstance { workload: workload() });
    }
    Ok(each)
}

/// Estimates what profiling will take. Gives `request` the share of the experiments for which the
/// budget has time. `None` if the search says itself that there is no profile.
///
/// # Errors
/// The program cannot be profiled, or not within the budget.
pub(crate) fn profiling_outlook(
    request: &mut PlacementRequest,
    testbed: &dyn OpenSubject,
) -> Result<Option<ProfilingOutlook>, SearchError> {
    let each_seconds = experiment_time(request, testbed)?.as_secs_f64();
    let name = request.name.as_ref().unwrap_or(&testbed.workload().name).clone();
    let (machine, workload) = (testbed.machine(), testbed.workload());
    let thread_kinds = ThreadKinds::new(workload);
    let question = &mut request.question;
    question.profile.core_local =
        question.profile.core_local.map(|level| merged_level(machine, level));
    let tree = SharingTree::new(machine, question.alike);
    // If this fails, the search says so in a moment.
    let Ok(local) =
        core_local(&tree, workload.threads.len(), &question.profile, question.per_context)
    else {
        return Ok(None);
    };
    let count = ExperimentCount::new(&tree, &thread_kinds, &local).map_err(SearchError::Space)?;
    let (base, sample) = (count.base as f64, count.sample as f64);
    let Some(entries) = count.slowdown else { return Ok(None) };
    if let (Budget::Time(budget), Time::Real) = (question.budget, testbed.time()) {
        let affordable = PROFILE_SHARE * budget.as_secs_f64() / each_seconds;
        let least = sample + base + Profiling::allowed(0.0, base, entries) as f64;
        if affordable < least {
            let (workload, share) = (name, PROFILE_SHARE);
            let enough_seconds = (each_seconds * least / share).ceil();
            return Err(SearchError::TooShort {
                workload,
                least,
                each_seconds,
                share,
                enough_seconds,
            });
        }
        let share = (affordable - sample) / (base + entries as f64);
        question.profile.share = question.profile.share.min(share);
    }
    let slowdown = Profiling::allowed(question.profile.share, base, entries) as f64;
    let alone = sample + base;
    let here = testbed.simulating().map(|each| (alone + slowdown) * each.as_secs_f64());
    Ok(Some(ProfilingOutlook { alone, company: slowdown, each: each_seconds, here }))
}

/// The cost of profiling, before anything is started.
#[derive(Clone, Debug, PartialEq)]
pub struct ProfilingCost {
    /// The experiments and their time.
    pub outlook: ProfilingOutlook,
    /// Within which level threads are taken to interfere, as the machine's tree calls it,
    pub level: DomainKind,
    /// and why.
    pub because: LevelSource,
}

/// Counts what profiling for `request` costs. Starts nothing.
///
/// # Errors
/// The program has no profile, or more experiments than can be counted; nobody takes the events.
pub fn profiling_cost(
    request: &PlacementRequest,
    caller: &Caller,
    store: Option<&Store>,
    events: &mut dyn Events,
) -> Result<ProfilingCost, JobError> {
    let (machine, workload, each, here) = profiled(request, caller)?;
    let mut profile = request.question.profile.clone();
    decide_core_local(&mut profile, store, &Fingerprint::of(&machine), events)?;
    profile.core_local = profile.core_local.map(|level| merged_level(&machine, level));
    let tree = SharingTree::new(&machine, request.question.alike);
    let local = core_local(&tree, workload.threads.len(), &profile, request.question.per_context)
        .map_err(|error| JobError::usage(SearchError::Local(error)))?;
    let count = ExperimentCount::new(&tree, &ThreadKinds::new(&workload), &local)
        .map_err(JobError::usage)?;
    let entries = count.slowdown.ok_or_else(|| {
        JobError::usage("too many experiments to count: give --core-local a smaller level")
    })?;
    let base = count.base as f64;
    let company = Profiling::allowed(profile.share, base, entries) as f64;
    let alone = count.sample as f64 + base;
    let here = here.map(|here| (alone + company) * here.as_secs_f64());
    let outlook = ProfilingOutlook { alone, company, each: each.as_secs_f64(), here };
    Ok(ProfilingCost { outlook, level: local.level(), because: profile.core_local_because })
}

/// The machine and the workload to profile, and the time of an experiment. On a model, also the
/// time that this machine takes for it.
fn profiled(
    request: &PlacementRequest,
    caller: &Caller,
) -> Result<(Machine, Workload, Duration, Option<Duration>), JobError> {
    if matches!(request.subject, Subject::Simulated(_)) {
        // A subject that a search refuses is refused here.
        let testbed = open(request, caller)?;
        let each = testbed.each(request.period);
        let each = testbed.experiment(request.period).unwrap_or(each);
        let (machine, workload) = (testbed.machine().clone(), testbed.workload().clone());
        return Ok((machine, workload, each, testbed.simulating()));
    }
    let programs = match &request.subject {
        Subject::BuiltIn(workload) => Programs::parse(workload).map_err(JobError::usage)?,
        subject => {
            let name = match subject {
                Subject::Launched(command) | Subject::Rerun(command) => command.first(),
                _ => None,
            };
            let name = name.map_or("a running program", String::as_str);
            return Err(JobError::usage(MeasureError::no_profiles(name)));
        }
    };
    // The model has the same threads by the same names.
    let modelled = |name| {
        let none = || JobError::failed(format!("there is no model of {name}"));
        PacketProgram::named(name).ok_or_else(none)
    };
    let pipelines = programs.programs().iter().map(|program| modelled(program.name()));
    let workload = PacketProgram::workload(&pipelines.collect::<Result<Vec<_>, _>>()?);
    Ok((this_machine(request)?, workload, STARTING + request.period, None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_goes_by_the_name_it_has_in_the_tree() {
        let named = |shape: &str, level| merged_level(&Machine::from_shape(shape).unwrap(), level);
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
            merged_level(&machine, DomainKind::L2),
            DomainKind::Core,
            "a cache of a core's contexts"
        );
        let mut hybrid = Machine::from_shape("l2:2 core:2 pu:2").unwrap();
        hybrid.allowed = CpuSet::parse_list("0,1,4-7").unwrap();
        assert_eq!(
            merged_level(&hybrid, DomainKind::L2),
            DomainKind::L2,
            "of one core, and of two"
        );
    }
}
