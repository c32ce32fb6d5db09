//! A program on this machine, opened for a search of its number of threads.
//!
//! - [`ProgramOpening`] has what all stages of the search share. It makes the prober of each stage.
//! - [`usable_contexts()`] counts the contexts that the program may keep busy. Its affinity and its
//!   quota limit them.

use super::host_program::HostProgram;
use super::request::{Counting, ThreadsProgram, ThreadsQuestion, ThreadsRequest};
use crate::error::JobError;
use crate::open_subject::not_of_a_run;
use pinwise_campaign::Record;
use pinwise_linux::{Pid, Quota, TargetError, process};
use pinwise_measure::{Interrupt, Probed};
use pinwise_monitor::{LayerChoice, POWERCAP, Power};
use pinwise_present::figures;
use pinwise_programs::{
    LinuxProber, NumberSetter, OwnParameter, ProbeDetails, ProbeError, ProbeOptions, ProbedProgram,
    ProgressSource, RunMetric,
};
use pinwise_threads::{Objective, ProbeStage, SearchMethod, SearchPosition, ThreadsNote};
use pinwise_topology::{CpuSet, Machine};
use regex_lite::Regex;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// The contexts that a program may keep busy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct UsableContexts {
    /// Contexts, by its affinity and the quota of its control group.
    pub contexts: u32,
    /// The contexts of its affinity alone. Programs that choose their number of threads count
    /// these.
    pub allowed: u32,
    /// A note if these are not all contexts of the machine.
    pub limited: Option<ThreadsNote>,
}

/// Finds the contexts that a program may keep busy. A program that is started has the limits of
/// this process. The process `pid`, which runs already, has its own.
///
/// # Errors
/// There is no such process.
pub(crate) fn usable_contexts(
    machine: &Machine,
    pid: Option<Pid>,
) -> Result<UsableContexts, JobError> {
    let cpus = match pid {
        Some(pid) => {
            process::allowed(pid).map_err(|_| JobError::usage(TargetError::NoProcess(pid)))?
        }
        None => machine.allowed.clone(),
    };
    let quota = pid.map_or_else(Quota::own, Quota::of);
    Ok(within(machine, &cpus, quota.as_ref()))
}

fn within(machine: &Machine, cpus: &CpuSet, quota: Option<&Quota>) -> UsableContexts {
    let (allowed, all) = (cpus.len().max(1) as u32, machine.contexts.len() as u32);
    if let Some(quota) = quota.filter(|quota| quota.contexts < f64::from(allowed)) {
        let limited = ThreadsNote::Quota {
            group: quota.group.display().to_string(),
            granted: quota.contexts,
            contexts: all,
            allowed,
        };
        let contexts = quota.contexts.ceil().max(1.0) as u32;
        return UsableContexts { contexts, allowed, limited: Some(limited) };
    }
    let cpus = cpus.to_string();
    let limited = (allowed < all).then_some(ThreadsNote::Affinity { allowed, contexts: all, cpus });
    UsableContexts { contexts: allowed, allowed, limited }
}

/// A program, ready to be opened for the stages of its search.
pub(super) struct ProgramOpening<'a> {
    machine: Machine,
    program: &'a HostProgram,
    question: &'a ThreadsQuestion,
    subject: ProbedProgram,
    progress: ProgressSource,
    after: Option<Regex>,
    power: Option<Power>,
    /// How it has come to be watched.
    layer_choice: LayerChoice,
    interrupt: Interrupt,
}

/// Checks what a program of a request needs before anything is measured.
pub(super) fn check(request: &ThreadsRequest) -> Result<(), JobError> {
    let ThreadsProgram::Here(program) = &request.program else { return Ok(()) };
    program.subject()?;
    power(request)?;
    progress(request, program)?;
    after(program)?;
    check_own_number(request, program)
}

/// A process that a command changes must get its own number back, also after the first change. Only
/// the user knows that number then.
fn check_own_number(request: &ThreadsRequest, program: &HostProgram) -> Result<(), JobError> {
    match (&program.set, program.pid) {
        (Some(NumberSetter::Command(_)), Some(pid)) if request.default.is_none() => {
            Err(JobError::Usage(format!(
                "process {pid} must get its own number back, and only you know it: search with \
                 --default N"
            )))
        }
        _ => Ok(()),
    }
}

/// The counters of energy, if the objective takes them.
fn power(request: &ThreadsRequest) -> Result<Option<Power>, JobError> {
    if request.objective == Objective::Time {
        return Ok(None);
    }
    Power::open(Path::new(POWERCAP))
        .map(Some)
        .map_err(|error| JobError::failed(error).context("--objective needs the processor's power"))
}

/// The source of progress: the metric, if one is named.
fn progress(request: &ThreadsRequest, program: &HostProgram) -> Result<ProgressSource, JobError> {
    let Some((metric, options)) = program.named_metric()? else {
        return Ok(match request.per_run {
            true => ProgressSource::Runs(RunMetric::Runtime),
            false => ProgressSource::Counters,
        });
    };
    let running = program.pid.map(|pid| [Pid(pid)]);
    metric.check(&options, running.as_ref().map(|pids| &pids[..])).map_err(JobError::usage)?;
    if !request.per_run {
        return Ok(ProgressSource::Metric(metric, options));
    }
    let run = RunMetric::of(&metric, &options).ok_or_else(|| not_of_a_run(&metric))?;
    Ok(ProgressSource::Runs(run))
}

fn after(program: &HostProgram) -> Result<Option<Regex>, JobError> {
    program.after.as_deref().map(Regex::new).transpose().map_err(JobError::usage)
}

impl<'a> ProgramOpening<'a> {
    pub(super) fn new(
        program: &'a HostProgram,
        question: &'a ThreadsQuestion,
        machine: Machine,
        interrupt: &Interrupt,
    ) -> Result<Self, JobError> {
        // Earlier versions began without it.
        check_own_number(&question.request, program)?;
        Ok(Self {
            machine,
            program,
            question,
            subject: program.subject()?,
            progress: progress(&question.request, program)?,
            after: after(program)?,
            power: power(&question.request)?,
            // Watching is prepared once. On a busy machine that takes seconds, and the budget is
            // for probes.
            layer_choice: LayerChoice::new().map_err(|error| {
                JobError::failed(error).context("cannot list the machine's processes")
            })?,
            interrupt: interrupt.clone(),
        })
    }

    /// Opens the program for a stage, after these records.
    pub(super) fn open(
        &self,
        progressed: SearchPosition,
        records: &[Record],
    ) -> Result<LinuxProber, JobError> {
        let (request, search) = (&self.question.request, &self.question.search);
        let formula = self.program.threads_per_n.clone();
        let survey = matches!(search.method, SearchMethod::Survey(_));
        let spent = records.last().map_or(Duration::ZERO, |record| record.elapsed);
        let progress = match (progressed.stage, &self.progress) {
            // The program turned out to be short.
            (ProbeStage::Timing | ProbeStage::Runs, ProgressSource::Counters) => {
                ProgressSource::Runs(RunMetric::Runtime)
            }
            _ => self.progress.clone(),
        };
        let options = ProbeOptions {
            contexts: self.question.contexts,
            window: search.window,
            threads: formula.map(|formula| {
                Box::new(move |n| formula.threads(n)) as pinwise_programs::ThreadsForN
            }),
            after: self.after.clone(),
            limit: search.limit(progressed.stage, request.limit),
            progress,
            remove: self.program.remove.clone(),
            most_written: Some(request.most_written),
            until: survey.then(|| Instant::now() + request.deadline().saturating_sub(spent)),
            floor: self.program.floor,
            power: self.power.clone(),
        };
        let interrupt = self.interrupt.clone();
        let prober =
            LinuxProber::new(self.machine.clone(), self.subject.clone(), options, interrupt)
                .map_err(JobError::failed)?;
        // Programs take the CPUs they may use. But nothing above --max is set on a guess.
        let guess = usable_contexts(&self.machine, self.program.pid.map(Pid))?.allowed;
        let most = self.question.counting()?.parameter(self.question.range.max);
        let most = if request.max.is_some() { most } else { most.max(guess) };
        let prober = prober.with_own(OwnParameter { known: request.default, guess, most });
        let begun = seen(records).iter().find_map(|seen| seen.begun);
        let prober = if records.is_empty() { prober } else { prober.resumed(begun) };
        let seen = seen(&records[progressed.first.min(records.len())..]);
        Ok(prober.watched_by(self.layer_choice.clone()).after(seen))
    }

    /// Learns from a stage how the program is watched.
    pub(super) fn learn(&mut self, prober: &LinuxProber) {
        self.layer_choice = prober.layer_choice().clone();
    }
}

/// The details of the probes of these records.
pub(crate) fn seen(records: &[Record]) -> Vec<ProbeDetails> {
    let measured = records.iter().filter_map(|record| record.outcome.as_ref().ok());
    measured.filter_map(|measurement| Probed::more(measurement).ok()).collect()
}

/// Whether a probe failed because what the request names does not exist.
pub(super) fn names_nothing(error: Option<&ProbeError>) -> bool {
    match error {
        Some(ProbeError::Target(TargetError::NoProcess(_))) => true,
        Some(ProbeError::Target(
            TargetError::Launch { cause, .. } | TargetError::Unopened { cause, .. },
        )) => cause.kind() == io::ErrorKind::NotFound,
        _ => false,
    }
}

impl ThreadsQuestion {
    /// Decides the question of a request on this machine as it is now. Returns the machine, too.
    ///
    /// # Errors
    /// The request makes no sense, or names something that does not exist.
    pub fn of(request: ThreadsRequest) -> Result<(Self, Machine), JobError> {
        request.check()?;
        check(&request)?;
        match &request.program {
            ThreadsProgram::Here(program) => {
                // What another search has pinned shows nothing.
                let _held = super::hold(&request)?;
                let machine = pinwise_linux::this_machine()
                    .map_err(|error| JobError::from(error).context("cannot read the topology"))?;
                let usable = usable_contexts(&machine, program.pid.map(Pid))?;
                let question = Self::decide(request, usable.contexts, usable.limited)?;
                question.check_cpus()?;
                Ok((question, machine))
            }
            ThreadsProgram::Modelled(program) => {
                let (platform, _) = program.platform()?;
                let (machine, contexts) = (platform.machine().clone(), platform.contexts() as u32);
                Ok((Self::decide(request, contexts, None)?, machine))
            }
        }
    }

    /// Checks that the program can be given as many CPUs as the greatest number says, if the number
    /// counts CPUs.
    fn check_cpus(&self) -> Result<(), JobError> {
        let ThreadsProgram::Here(HostProgram { set: Some(set), pid, .. }) = &self.request.program
        else {
            return Ok(());
        };
        // A program that is started inherits ours.
        let root = pid.unwrap_or(std::process::id() as i32);
        let most = self.numbers()?.into_iter().max().unwrap_or_default();
        match set.cpus(Pid(root)) {
            Some(cpus) if most as usize > cpus.len() => {
                let there = figures::counted(cpus.len() as u64, "CPU");
                Err(JobError::Usage(format!(
                    "n = {most} needs {most} CPUs, and --set has {there} ({cpus}): use --max {}",
                    self.threads_with(cpus.len() as u32)?
                )))
            }
            _ => Ok(()),
        }
    }

    /// See [`HostProgram::check_output`].
    pub(crate) fn check_output(&self, begun: Option<i64>) -> Result<(), JobError> {
        match &self.request.program {
            ThreadsProgram::Here(program) => program.check_output(&self.numbers()?, begun),
            ThreadsProgram::Modelled(_) => Ok(()),
        }
    }

    pub(super) fn counting(&self) -> Result<Counting, JobError> {
        Counting::of(&self.request)
    }

    /// The threads that the program makes with the parameter `n`.
    ///
    /// # Errors
    /// There is no description of the program.
    pub fn threads_with(&self, n: u32) -> Result<u32, JobError> {
        Ok(self.counting()?.threads(n))
    }
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
        assert_eq!(
            within(&machine, &all, None),
            UsableContexts { contexts: 8, allowed: 8, limited: None }
        );
        let bound = of(&all, 2.5);
        assert_eq!((bound.contexts, bound.allowed), (3, 8));
        let Some(ThreadsNote::Quota { granted: 2.5, contexts: 8, allowed: 8, .. }) = bound.limited
        else {
            panic!("{bound:?}")
        };
        assert_eq!(of(&all, 0.3).contexts, 1);
        // One that grants more than the affinity does not matter; the affinity does.
        let half: CpuSet = all.iter().take(4).collect();
        let bound = of(&half, 6.0);
        assert_eq!((bound.contexts, bound.allowed), (4, 4));
        let cpus = "0-3".to_owned();
        assert_eq!(bound.limited, Some(ThreadsNote::Affinity { allowed: 4, contexts: 8, cpus }));
        assert!(matches!(of(&half, 2.0).limited, Some(ThreadsNote::Quota { allowed: 4, .. })));
    }
}
