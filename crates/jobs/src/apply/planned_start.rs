//! Starts a program with the number of threads of a plan, and pins its threads as they appear.

use super::{
    ApplyError, MissingThreads, NumberOutcome, PlanEvent, PlanEvents, check, pin_new, pinner, take,
};
use pinwise_linux::{
    EndedThreads, InitialMemory, MemoryError, Pid, PlanPinner, ProcessLock, Scope, pass_on,
    this_machine,
};
use pinwise_placement::{Plan, PlannedMemory, PlannedNumber};
use pinwise_topology::Machine;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// How often signals are passed on after pinning has ended.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(20);

/// How a program is started under a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StartOptions {
    /// Use the plan although it is for another machine.
    pub force: bool,
    /// The plan's environment variables that may be set although they say more than its number. A
    /// plan may come from somebody else, so these are named one by one.
    pub environment: Vec<String>,
}

/// A program that can be started under a plan.
#[derive(Debug)]
pub struct PlannedStart<'p> {
    plan: &'p Plan,
    program: &'p OsStr,
    arguments: &'p [OsString],
    memory: Option<InitialMemory>,
}

/// A program that ran under a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedRun {
    /// How it ended.
    pub status: ExitStatus,
    /// The threads of the plan that never appeared. `None`: all appeared, or it is not known.
    pub missing: Option<MissingThreads>,
}

impl<'p> PlannedStart<'p> {
    /// Checks that the plan fits this machine and the command: the program and its arguments.
    ///
    /// # Errors
    /// The plan is for another machine or other memory nodes. It sets variables that the options do
    /// not allow. It has no number although the command has a place for it.
    pub fn new(
        plan: &'p Plan,
        command: &'p [OsString],
        options: &StartOptions,
        events: &mut PlanEvents<'_>,
    ) -> Result<Self, ApplyError> {
        let (program, arguments) = command.split_first().ok_or(ApplyError::NoCommand)?;
        check_environment(plan.number.as_ref(), &options.environment)?;
        check_number(plan, command, events)?;
        let machine = this_machine()?;
        check(plan, &machine, options.force, events)?;
        let memory = initial_memory(plan, &machine)?;
        Ok(Self { plan, program, arguments, memory })
    }

    /// Starts the program with the plan's number and environment, and pins threads until it ends.
    /// `signal` is the number of a signal that this process got, or 0. The signal is passed on to
    /// the program, which decides what it means. Then `signal` is 0 again.
    ///
    /// # Errors
    /// The program cannot be started or waited for, or nobody takes the events. The last error is
    /// returned when the program has ended. Until then the program gets its signals. If threads
    /// cannot be read, [`PlanEvent::GivenUp`] says so, and the program runs on.
    pub fn run(
        &self,
        signal: &AtomicUsize,
        events: &mut PlanEvents<'_>,
    ) -> Result<PlannedRun, ApplyError> {
        let number = self.plan.number.as_ref();
        let mut command = Command::new(self.program);
        if let Some(memory) = &self.memory {
            memory.apply(&mut command)?;
        }
        let mut child = command
            .args(self.arguments.iter().map(|word| filled(word, number)))
            .envs(number.iter().flat_map(|number| &number.environment))
            .spawn()
            .map_err(|cause| {
                let program = self.program.to_string_lossy().into_owned();
                ApplyError::Start { program, cause }
            })?;
        let pid = Pid(child.id() as i32);
        // Nobody else can hold the lock of a program that was just started.
        let _lock = ProcessLock::of(&[pid]).unwrap_or_default();
        let ended = match self.plan.counts_ended_threads {
            true => EndedThreads::Count,
            false => EndedThreads::Forgotten,
        };
        let mut told = Ok(());
        let mut pinning = match pinner(Scope::Trees(vec![pid]), self.plan, ended) {
            Ok(pinner) => Some(pinner),
            Err(error) => {
                told = give_up(error, events);
                None
            }
        };
        let status = loop {
            if let Some(pinner) = &mut pinning
                && let Err(error) = pin_new(pinner, events)
            {
                told = give_up(error, events);
                pinning = None;
            }
            if let Some(status) = child.try_wait().map_err(ApplyError::Wait)? {
                break status;
            }
            match signal.swap(0, Ordering::Relaxed) {
                0 => {}
                signal => pass_on(signal as i32, &child),
            }
            std::thread::sleep(pinning.as_ref().map_or(SIGNAL_INTERVAL, PlanPinner::interval));
        };
        told?;
        let missing = pinning.and_then(|pinner| MissingThreads::new(self.plan, pinner.missing()));
        Ok(PlannedRun { status, missing })
    }
}

/// Where the memory of the program lies from its start on.
fn initial_memory(plan: &Plan, machine: &Machine) -> Result<Option<InitialMemory>, ApplyError> {
    let Some(PlannedMemory { policy, nodes }) = &plan.memory else { return Ok(None) };
    let missing: BTreeSet<u32> = nodes.difference(&machine.memory_nodes()).copied().collect();
    if !missing.is_empty() {
        return Err(MemoryError::NoMemory(missing).into());
    }
    Ok(InitialMemory::of(*policy, nodes))
}

/// Refuses environment variables that say more than the number, except those of these names.
fn check_environment(number: Option<&PlannedNumber>, named: &[String]) -> Result<(), ApplyError> {
    let set = |name: &&String| number.is_some_and(|plan| plan.environment.contains_key(*name));
    if let Some(absent) = named.iter().find(|name| !set(name)) {
        return Err(ApplyError::NoVariable(absent.clone()));
    }
    let refused: Vec<(String, String)> = number
        .iter()
        .flat_map(|number| number.beyond_number())
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .filter(|(name, _)| !named.contains(name))
        .collect();
    if refused.is_empty() { Ok(()) } else { Err(ApplyError::Environment(refused)) }
}

/// Refuses a command that asks for a number where the plan has none.
fn check_number(
    plan: &Plan,
    command: &[OsString],
    events: &mut PlanEvents<'_>,
) -> Result<(), ApplyError> {
    let has = |part: &str| {
        command.iter().any(|word| word.to_str().is_some_and(|word| word.contains(part)))
    };
    let asks = has(PlannedNumber::PLACE);
    match &plan.number {
        None if asks => Err(ApplyError::NoNumber),
        Some(PlannedNumber { n, environment, set })
            if !asks && environment.is_empty() && set.is_none() && !has(&n.to_string()) =>
        {
            take(events, PlanEvent::Number { n: *n, outcome: NumberOutcome::Unused })
        }
        _ => Ok(()),
    }
}

/// A word of the command with the plan's number in its place.
fn filled(word: &OsStr, number: Option<&PlannedNumber>) -> OsString {
    let text = number.and_then(|number| Some(number.fill(word.to_str()?).into()));
    text.unwrap_or_else(|| word.to_owned())
}

/// Says that no more threads are pinned. Gives the error back if nobody takes that.
fn give_up(error: ApplyError, events: &mut PlanEvents<'_>) -> Result<(), ApplyError> {
    match error {
        ApplyError::Output(_) => Err(error),
        error => take(events, PlanEvent::GivenUp(&error)),
    }
}
