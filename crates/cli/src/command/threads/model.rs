//! A search on the model of an operating system's scheduler.

use super::arguments::{Asked, Edges, Least, Method};
use super::document::{Document, Remains, rows};
use super::observed::Observed;
use super::{Answer, leave, told};
use crate::machine::MachineArgument;
use crate::output::Usage;
use pinwise_jobs::Interrupt;
use pinwise_measure::Unit;
use pinwise_present::did_you_mean;
use pinwise_scheduler::{ModelProber, Platform, Program, Structure};
use pinwise_topology::DomainKind;
use std::time::Duration;

pub(super) fn search(
    asked: &Asked,
    edges: &Edges,
    interrupt: &Interrupt,
    json: bool,
) -> anyhow::Result<Document> {
    let machine = &asked.machine.machine;
    let unusable = [
        (!asked.command.is_empty(), "-- CMD"),
        (!asked.env.is_empty(), "--env"),
        (asked.threads_per_n.is_some(), "--threads-per-n"),
        (asked.named_metric()?.is_some(), "--metric"),
        (asked.whole_run, "--whole-run"),
        (asked.pieces.is_some(), "--pieces"),
        (asked.set.is_some(), "--set"),
        (asked.objective != Least::Time, "--objective"),
        (edges.after.is_some(), "--after"),
        (!edges.files.remove.is_empty(), "--remove"),
        (edges.files.output.is_some(), "--output"),
    ];
    if let Some((_, what)) = unusable.iter().find(|(given, _)| *given) {
        let message = format!(
            "{what} is for a program on this machine; on the model {machine} programs are described: --workload NAME"
        );
        return Err(Usage(message).into());
    }
    let Some(name) = &asked.workload else {
        let known: Vec<&str> = Program::names().collect();
        return Err(Usage(format!(
            "on the model {machine} there is no program yet: add --workload {}",
            known.join("|")
        ))
        .into());
    };
    let program = Program::built_in(name)
        .map_err(|error| Usage(format!("{error}{}", did_you_mean(name, Program::names()))))?;
    let (platform, shared) = platform(&asked.machine)?;
    let contexts = platform.contexts() as u32;
    let (convert, threads) = (|threads| program.parameter(threads), |n| program.threads(n));
    let mut conditions = asked.conditions(contexts, convert, threads)?;
    if let Structure::ForkJoin(shape) = &program.structure {
        // The other methods do not look at them.
        conditions.pieces = shape.units.filter(|_| conditions.method == Method::Survey);
    }
    if let (None, Some(work)) = (asked.budget, program.work_s()) {
        (conditions.work, conditions.budget) = (Some(work), Duration::MAX);
    }
    let prober = ModelProber::new(platform, program.clone(), asked.seed.unwrap_or(1));
    let mut prober = Observed::new(prober.cancelled_by(interrupt.flag()), conditions.objective);
    let found = super::search(&mut prober, &conditions, convert, threads);
    prober.finish();
    // What the program has done of what the sequential one would, in that one's time: a speed-up.
    let speedup = program.speedup_of_progress();
    let mut probes = std::mem::take(&mut prober.probes);
    for progress in probes.iter_mut().filter_map(|(probe, _)| probe.progress.as_mut()) {
        progress.rate *= speedup;
        progress.error = progress.error.map(|error| error * speedup);
    }
    let unit = Unit::rate("x sequential");
    let found = match found {
        Ok(found) => {
            Answer { advice: found.advice.map(|advice| advice.over_sequential(speedup)), ..found }
        }
        Err(error) => {
            let remains = Remains {
                program: name.clone(),
                machine: machine.clone(),
                contexts,
                method: conditions.method.name(),
                probes: rows(probes),
                unit: Some(unit),
                error: error.message.clone(),
            };
            leave(&remains, json)?;
            return Err(told(error, remains.probes.len()));
        }
    };
    let mut document =
        Document::new(name.clone(), machine.clone(), contexts, &conditions, found, probes);
    document.unit = Some(unit);
    document.notes.extend(conditions.pieces.map(|pieces| {
        format!("the description says that a run has {pieces} equal pieces, and the survey counts how they divide, as with --pieces {pieces}")
    }));
    document.notes.extend(shared.map(str::to_owned));
    document.notes.push("simulated: times, rates and shares are those of the model".into());
    Ok(document)
}

/// The machine as the model has it, and what to know where its cores have several contexts.
pub(super) fn platform(
    machine: &MachineArgument,
) -> anyhow::Result<(Platform, Option<&'static str>)> {
    if machine.machine == "opteron-24" {
        return Ok((Platform::opteron_24(), None));
    }
    let most = Platform::MOST_CONTEXTS;
    let too_large = || {
        Usage(format!(
            "machine '{}' has more than the {most} contexts that are modelled",
            machine.machine
        ))
    };
    let loaded = machine.load()?;
    let platform = Platform::new(&loaded).ok_or_else(too_large)?;
    let shared = loaded.domains(DomainKind::Core).any(|core| core.cpus.len() > 1);
    Ok((platform, shared.then_some(SHARED_CORES)))
}

/// What the model leaves out of such a machine.
const SHARED_CORES: &str = "each context counts as a core of its own, though several share one on this machine, and costs are those of the Opteron's \
    system";
