//! A search with a program on this machine.

use super::arguments::{Asked, Edges, Method};
use super::document::{
    Document, MonitorRow, ProbeRow, Remains, SeenRow, ThreadRow, rows, watched_otherwise,
};
use super::observed::{Conditions, Observed};
use super::{Answer, leave, told, usage};
use crate::output::{self, Usage};
use anyhow::Context as _;
use pinwise_jobs::Interrupt;
use pinwise_linux::{Pid, TargetError, process};
use pinwise_measure::{Measure, MeasureError, Prober};
use pinwise_monitor::{Activity, Lookout, OtherLoad, Quota};
use pinwise_present::figures;
use pinwise_present::{crowd, crowded};
use pinwise_programs::{
    LinuxProber, ProbeDetails, ProbeError, ProbeOptions, ProbedProgram, ProgressSource, Recipe,
    Setter,
};
use pinwise_threads::Formula;
use pinwise_topology::{CpuSet, Machine};
use std::io;
use std::time::{Duration, Instant};

/// Searches, and keeps hold of a program that goes on running. The probes of a search that fails
/// are printed, as `json` says.
pub(crate) fn search(
    asked: &Asked,
    edges: &Edges,
    interrupt: &Interrupt,
    json: bool,
) -> anyhow::Result<(Document, LinuxProber)> {
    let start = Instant::now();
    if asked.workload.is_some() || asked.seed.is_some() {
        let message = "--workload and --seed are for a model: add --machine opteron-24, or give a program with -- CMD";
        return Err(Usage(message.into()).into());
    }
    let (command, env, output) = (asked.command.clone(), &asked.env, edges.files.output.clone());
    let subject = match (&asked.set, asked.pid) {
        (Some(set), Some(pid)) => ProbedProgram::Running(Pid(pid), set.clone()),
        (Some(set), None) => ProbedProgram::Launched(
            Recipe::fixed(command, env, output).map_err(usage)?,
            set.clone(),
        ),
        (None, _) => ProbedProgram::Anew(Recipe::new(command, env, output).map_err(usage)?),
    };
    if asked.set.is_some() && asked.whole_run {
        return Err(Usage(
            "--whole-run starts the program anew for each number, --set does not: leave one out"
                .into(),
        )
        .into());
    }
    let name = asked.pid.map_or_else(|| asked.command.join(" "), |pid| format!("process {pid}"));
    let machine = pinwise_linux::machine().context("cannot read this machine's topology")?;
    let Usable { contexts, note: limit, .. } =
        usable(&machine, asked.pid.map(Pid)).map_err(usage)?;
    let formula = asked.threads_per_n.clone().unwrap_or_else(Formula::identity);
    let (convert, threads) = (|threads| formula.parameter(threads), |n| formula.threads(n));
    let mut conditions = asked.conditions(contexts, convert, threads)?;
    conditions.goes_on = asked.set.is_some();
    conditions.counted = asked.set.is_none() && formula.follows();
    let (objective, power) = (conditions.objective, asked.power()?);
    let progress = match asked.metric()? {
        Some((metric, options)) => ProgressSource::Metric(metric, options),
        None if asked.whole_run => ProgressSource::Runs,
        None => ProgressSource::Counters,
    };
    // What watching needs is prepared and kept: on a busy machine that takes seconds, and the
    // budget is for probes.
    let mut lookout = Lookout::new().context("cannot list the machine's processes")?;
    let begin = Instant::now();
    let survey = conditions.method == Method::Survey;
    let prober = |progress: ProgressSource, limit: Duration, lookout: &Lookout| {
        let threads = asked.threads_per_n.clone();
        let options = ProbeOptions {
            contexts,
            threads: threads
                .map(|formula| Box::new(move |n| formula.threads(n)) as pinwise_programs::Threads),
            after: edges.after.clone(),
            limit,
            progress,
            remove: edges.files.remove.clone(),
            most_written: Some(asked.most_written),
            until: survey.then(|| begin + asked.budget()),
            power: power.clone(),
        };
        let prober = LinuxProber::new(subject.clone(), options, interrupt.flag())?
            .watched_by(lookout.clone());
        Ok::<_, ProbeError>(Observed::new(prober, objective))
    };
    let mut notes: Vec<String> = limit.into_iter().collect();
    let mut progress = progress;
    if survey
        && matches!(subject, ProbedProgram::Anew(_))
        && !matches!(progress, ProgressSource::Metric(..))
    {
        // Whole runs are worth it where some fit into the time.
        let limit =
            if asked.whole_run { asked.limit } else { SHORT.min(asked.budget() / FEWEST_RUNS) };
        let mut trial = prober(ProgressSource::Runs, limit, &lookout)?;
        let candidates = conditions.span.candidates(convert, threads);
        let within = candidates.iter().rev().find(|&&threads| threads <= contexts);
        let first = convert(within.or(candidates.first()).copied().unwrap_or(1));
        let ran = trial.probe(first, Duration::ZERO);
        trial.finish();
        lookout = trial.inner.lookout().clone();
        match (ran, trial.inner.error()) {
            (Ok(probe), _) => {
                let run = probe
                    .progress
                    .map_or(probe.cost, |progress| Duration::from_secs_f64(1.0 / progress.rate));
                // A single run does not tell how much it may be off; several do, where the time
                // allows.
                let affordable = asked.budget().as_secs_f64() / (run.as_secs_f64() * SOME_PROBES);
                conditions.window =
                    conditions.window.max(run.mul_f64(affordable.floor().clamp(1.0, SEVERAL_RUNS)));
                conditions.whole_runs = true;
                progress = ProgressSource::Runs;
                if !asked.whole_run {
                    notes.push(format!(
                        "a run takes {}: {}",
                        figures::duration(run),
                        whole_runs(asked.pieces)
                    ));
                }
            }
            (Err(_), Some(ProbeError::Long { .. })) if !asked.whole_run => {}
            (Err(error), because) => return Err(failed(error, because, 0)),
        }
        conditions.budget = conditions.budget.saturating_sub(begin.elapsed());
    }
    let search = |progress: ProgressSource,
                  conditions: &Conditions,
                  lookout: &Lookout|
     -> anyhow::Result<(Observed<LinuxProber>, Result<Answer, MeasureError>)> {
        let mut prober = prober(progress, asked.limit, lookout)?;
        let found = super::search(&mut prober, conditions, convert, threads);
        prober.finish();
        Ok((prober, found))
    };
    let (mut prober, mut found) = search(progress, &conditions, &lookout)?;
    // A program that ends within a probe is short enough for whole runs.
    if let Some(ProbeError::Short { ran, .. }) =
        prober.inner.error().filter(|_| asked.metric.is_none())
    {
        let ran = figures::duration(*ran);
        notes
            .push(format!("the program ended by itself after {ran}: {}", whole_runs(asked.pieces)));
        conditions.whole_runs = true;
        lookout = prober.inner.lookout().clone();
        (prober, found) = search(ProgressSource::Runs, &conditions, &lookout)?;
    }
    let found = match found {
        Ok(found) => found,
        Err(error) => {
            if let (Some(pid), Some(Setter::Command(_))) = (asked.pid, &asked.set) {
                output::aside(&format!(
                    "note: process {pid} goes on with the number that was tried last; the command of --set gives it another"
                ));
            }
            let remains = Remains {
                program: name,
                machine: "host".into(),
                contexts,
                method: conditions.method.name(),
                probes: rows(std::mem::take(&mut prober.probes)),
                unit: prober.inner.unit().cloned().map(|unit| objective.unit(unit)),
                error: error.message.clone(),
            };
            leave(&remains, json)?;
            return Err(failed(error, prober.inner.error(), remains.probes.len()));
        }
    };
    let probes = std::mem::take(&mut prober.probes);
    let mut document = Document::new(name, "host".into(), contexts, &conditions, found, probes);
    let seen = prober.inner.seen();
    for (row, seen) in document.probes.iter_mut().zip(seen) {
        row.seen = Some(SeenRow {
            initialization_seconds: seen.initialization.as_secs_f64(),
            drift: seen.drift,
            watts: seen.watts,
            individuals: seen.activity.threads.iter().map(ThreadRow::from).collect(),
        });
    }
    document.search_seconds = start.elapsed().as_secs_f64();
    document.unit = prober.inner.unit().cloned().map(|unit| objective.unit(unit));
    document.monitor = MonitorRow::of(seen, prober.inner.refused());
    notes.extend(prober.inner.notes().iter().cloned());
    notes.extend(told_by(&document, conditions.method));
    let others: Vec<OtherLoad> = seen.iter().filter_map(|seen| seen.others).collect();
    document.others = crowd(&others);
    notes.extend(disturbances(seen, &others));
    notes.extend(watched_otherwise(seen));
    notes.append(&mut document.notes);
    document.notes = notes;
    Ok((document, prober.inner))
}

/// Leaves a process that goes on running with the number that was found; what to tell about it.
pub(super) fn settle(
    asked: &Asked,
    prober: &mut LinuxProber,
    parameter: u32,
) -> anyhow::Result<Option<String>> {
    prober.settle(parameter)?;
    Ok(asked.pid.map(|_| match &asked.set {
        Some(Setter::Command(_)) => format!("n = {parameter} is set now"),
        _ => "what the process may use is as it was".to_owned(),
    }))
}

/// A program that ends within this time is measured by whole runs.
const SHORT: Duration = Duration::from_secs(5);
/// And where the budget has room for so many of its runs.
const FEWEST_RUNS: u32 = 6;
/// A probe has so many runs where the budget has room for so many probes.
const SEVERAL_RUNS: f64 = 3.0;
const SOME_PROBES: f64 = 10.0;
/// What watching takes of the program's CPU time is worth a word from here on.
const WATCHING_NOTABLE: f64 = 0.05;

/// What to tell where the time of whole runs turns out to be what can be measured.
fn whole_runs(pieces: Option<u32>) -> String {
    let told = pieces.map_or_else(String::new, |pieces| {
        format!(", which show by themselves how its {pieces} pieces divide: --pieces is not counted on top")
    });
    format!("whole runs are measured{told}")
}

/// A failed search with the exit code it deserves.
fn failed(error: MeasureError, because: Option<&ProbeError>, probes: usize) -> anyhow::Error {
    match because {
        Some(ProbeError::Target(TargetError::NoProcess(_))) => usage(&error).into(),
        Some(ProbeError::Target(TargetError::Launch { cause, .. }))
            if cause.kind() == io::ErrorKind::NotFound =>
        {
            usage(&error).into()
        }
        _ => told(error, probes),
    }
}

/// What the program may keep busy.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Usable {
    /// Contexts, by its affinity and the quota of its control group.
    pub(crate) contexts: u32,
    /// By its affinity alone: what programs count that decide by themselves how many threads to
    /// start.
    pub(crate) allowed: u32,
    /// What to know where these are not all the machine has.
    note: Option<String>,
}

/// What the program may keep busy. One that is started has the limits of pinwise; the process
/// `pid`, which runs already, its own.
pub(crate) fn usable(machine: &Machine, pid: Option<Pid>) -> Result<Usable, TargetError> {
    let cpus = match pid {
        Some(pid) => process::allowed(pid).map_err(|_| TargetError::NoProcess(pid))?,
        None => machine.allowed.clone(),
    };
    let quota = pid.map_or_else(Quota::own, Quota::of);
    Ok(within(machine, &cpus, quota.as_ref()))
}

fn within(machine: &Machine, cpus: &CpuSet, quota: Option<&Quota>) -> Usable {
    let (allowed, all) = (cpus.len().max(1) as u32, machine.contexts.len() as u32);
    if let Some(quota) = quota.filter(|quota| quota.contexts < f64::from(allowed)) {
        let note = format!(
            "its control group ({}) grants the CPU time of {:.1} of the {all} contexts: a program that asks the machine how many threads \
             to start does not see that, and starts {allowed} unless it is told n",
            quota.group.display(),
            quota.contexts
        );
        return Usable {
            contexts: quota.contexts.ceil().max(1.0) as u32,
            allowed,
            note: Some(note),
        };
    }
    let note = (allowed < all).then(|| {
        format!(
            "it may run on {allowed} of the {all} contexts (CPU {cpus}): a program that counts the machine's starts too many threads unless it \
             is told n"
        )
    });
    Usable { contexts: allowed, allowed, note }
}

/// What took from the program while it was probed.
fn disturbances(seen: &[ProbeDetails], others: &[OtherLoad]) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(crowded(others, "probes", ", of which more threads get a larger share"));
    // By whatever layer each was watched.
    let sum = |of: fn(&Activity) -> Duration| {
        seen.iter().map(|seen| of(&seen.activity).as_secs_f64()).sum::<f64>()
    };
    let watching =
        sum(|activity| activity.overhead.total()) / sum(Activity::ran).max(f64::MIN_POSITIVE);
    if watching >= WATCHING_NOTABLE && seen.iter().any(|seen| seen.disturbed) {
        notes.push(format!(
            "watching took {} of the program's CPU time, which slows it down and not with every n alike: a longer --probe is watched for less",
            figures::percent(watching)
        ));
    }
    notes
}

/// What the user should know about the probes.
fn told_by(document: &Document, method: Method) -> Vec<String> {
    let mut notes = Vec::new();
    let drifting: Vec<String> = document
        .probes
        .iter()
        .filter(|row| row.seen.as_ref().is_some_and(|seen| seen.drift.is_some()))
        .map(|row| row.parameter.to_string())
        .collect();
    if !drifting.is_empty() {
        notes.push(format!(
            "the program changed what it does within the probes with n = {}: another phase; a longer --probe, or --after REGEX, \
             shows whether the answer holds",
            drifting.join(", ")
        ));
    }
    let alone = |row: &&ProbeRow| {
        let same = document.probes.iter().filter(|other| other.parameter == row.parameter);
        row.error.is_none() && (method != Method::Sweep || same.count() == 1)
    };
    if document.probes.iter().filter(alone).any(|row| row.measure == Some(Measure::Runs)) {
        notes.push(
            "the table has no standard error (-) where n was run once: a longer --probe runs it several times"
                .to_owned(),
        );
    }
    if document.probes.iter().any(|row| row.measure == Some(Measure::CpuTime)) {
        notes.push(
            "progress is told by CPU time only: how many contexts the threads keep busy, not what for; --metric or --whole-run tell more"
                .to_owned(),
        );
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_bounds_the_search_and_not_what_programs_start_by_themselves() {
        let machine = Machine::from_shape("8").unwrap();
        let all = machine.allowed.clone();
        let quota = |contexts| Quota { contexts, group: "/sys/fs/cgroup/a".into() };
        let of = |cpus: &CpuSet, contexts| within(&machine, cpus, Some(&quota(contexts)));
        assert_eq!(within(&machine, &all, None), Usable { contexts: 8, allowed: 8, note: None });
        let bound = of(&all, 2.5);
        assert_eq!((bound.contexts, bound.allowed), (3, 8));
        let note = bound.note.unwrap();
        assert!(
            note.contains("2.5 of the 8 contexts") && note.contains("starts 8 unless it is told n"),
            "{note}"
        );
        assert_eq!(of(&all, 0.3).contexts, 1);
        // One that grants more than the affinity does not matter; the affinity does.
        let half: CpuSet = all.iter().take(4).collect();
        let bound = of(&half, 6.0);
        assert_eq!((bound.contexts, bound.allowed), (4, 4));
        let note = bound.note.unwrap();
        assert!(note.starts_with("it may run on 4 of the 8 contexts (CPU 0-3)"), "{note}");
        assert!(of(&half, 2.0).note.unwrap().contains("starts 4 unless"));
    }
}
