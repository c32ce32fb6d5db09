//! Applies a plan to a running program, and takes it back. Starts a program under a plan.
//!
//! The pins stay after this process has ended. So the affinities that they replace are noted in a
//! folder, see [`pinwise_linux::UndoNotes`].

mod error;
mod planned_start;

pub use error::{ApplyError, MissingThreads, Unplaced};
pub use planned_start::{PlannedRun, PlannedStart, StartOptions};

use crate::leftovers::put_back_leftovers;
use pinwise_linux::{
    EndedThreads, MemoryError, NotedThread, Pid, Pinned, PlanPinner, ProcessLock, Released, Scope,
    TargetError, UndoNotes, affinity, fingerprint, memory, process, this_machine,
};
use pinwise_measure::{Interrupt, MemoryPolicy, MemoryUse, ProgramNote};
use pinwise_placement::{Plan, PlanDifference};
use pinwise_topology::{CpuSet, Machine};
use std::collections::{BTreeSet, HashSet};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a name of the plan may be missing at first. A new thread has the name of its creator
/// until it gives itself one, and the creator is then the first of two.
const SETTLING: Duration = Duration::from_millis(300);

/// What happens while a plan is used.
#[derive(Debug)]
pub enum PlanEvent<'a> {
    /// The machine differs from the one of the plan. The plan is used all the same.
    Difference(&'a PlanDifference),
    /// What becomes of the plan's number of threads.
    Number {
        /// The number.
        n: u32,
        /// What becomes of it.
        outcome: NumberOutcome<'a>,
    },
    /// The plan has a number and pins no thread.
    NoPins,
    /// What an undo cannot give back on this kernel.
    Note(&'a ProgramNote),
    /// A thread that appeared was pinned, or refused.
    Pinned(&'a Pinned),
    /// From now on no more threads are pinned.
    GivenUp(&'a ApplyError),
}

/// What becomes of the plan's number of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberOutcome<'a> {
    /// This command would set it.
    Settable(&'a str),
    /// This command would set it. The user did not ask for that.
    NotAsked(&'a str),
    /// This command has set it.
    Set(&'a str),
    /// Only a new start can set it.
    NeedsStart,
    /// The program was started without it: its command line has no place for it.
    Unused,
}

/// Takes events. After an error the work ends with [`ApplyError::Output`].
pub type PlanEvents<'e> = dyn FnMut(PlanEvent<'_>) -> io::Result<()> + 'e;

/// How a plan is applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ApplyOptions {
    /// Use the plan although it is for another machine.
    pub force: bool,
    /// First run the plan's command that sets the number of threads. A plan may come from somebody
    /// else, so the command runs only where that is asked for.
    pub set_number: bool,
}

/// A running program and its child processes. No other pinwise changes it while this lives.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use pinwise_jobs::{ApplyOptions, HeldProgram, Interrupt};
///
/// let plan = pinwise_placement::Plan::parse(&std::fs::read_to_string("plan.toml")?)?;
/// let program = HeldProgram::of(pinwise_linux::Pid(4242))?;
/// let notes = std::path::Path::new("/var/lib/pinwise/applied");
/// let options = ApplyOptions::default();
/// let mut applied = program.apply(&plan, options, notes, &mut |_| Ok(()))?;
/// applied.complete()?;
/// applied.watch(&Interrupt::default(), &mut |event| Ok(println!("{event:?}")))?;
/// program.undo(notes)?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct HeldProgram {
    pid: Pid,
    _lock: ProcessLock,
}

impl HeldProgram {
    /// Holds a program that runs. First puts back what a killed pinwise left changed, see
    /// [`crate::put_back_leftovers`].
    ///
    /// # Errors
    /// There is no such process, or another pinwise measures or pins it.
    pub fn of(pid: Pid) -> Result<Self, ApplyError> {
        check_running(pid)?;
        put_back_leftovers();
        let lock = ProcessLock::of(&[pid]).map_err(TargetError::from)?;
        Ok(Self { pid, _lock: lock })
    }

    /// Pins the threads that the plan names, and notes the affinities that it replaces in the
    /// folder `notes`.
    ///
    /// # Errors
    /// The plan does not fit the machine, its number cannot be set, or nothing can be noted. Or
    /// it interleaves memory, which a running program cannot do.
    /// Threads that are missing or refused are no error here: see [`AppliedPlan::complete`].
    pub fn apply<'p>(
        &'p self,
        plan: &'p Plan,
        options: ApplyOptions,
        notes: &Path,
        events: &mut PlanEvents<'_>,
    ) -> Result<AppliedPlan<'p>, ApplyError> {
        let machine = check_online(self.pid, plan, options.force, events)?;
        check_memory(plan)?;
        // The number is set only where the threads can then be pinned.
        let folder = notes;
        let notes = open_notes(folder)?;
        notes.check_writable(self.pid).map_err(|cause| cannot_note(folder, cause))?;
        let set = |command, n| {
            if !options.set_number {
                return Ok(NumberOutcome::NotAsked(command));
            }
            pinwise_programs::set_number(self.pid, command, n)?;
            Ok(NumberOutcome::Set(command))
        };
        report_number(plan, set, events)?;
        let pinner = pinner(Scope::Trees(vec![self.pid]), plan, EndedThreads::Forgotten)?;
        if let Some(note) = affinity::forgotten(&pinner.own_cpus(), &machine.offline) {
            take(events, PlanEvent::Note(&note))?;
        }
        AppliedPlan::begin(plan, pinner, notes, Some(&machine), SETTLING)
    }

    /// Restores the affinities from before the first plan was applied, by the notes in the folder.
    ///
    /// # Errors
    /// Nothing is noted, or the notes or the threads cannot be read. A refused thread is no error.
    pub fn undo(&self, notes: &Path) -> Result<Vec<Released>, ApplyError> {
        noted(self.pid, open_notes(notes)?.release(self.pid))
    }
}

/// The threads that [`HeldProgram::undo`] would release, without those that have inherited a pin
/// since the notes. Changes nothing.
///
/// # Errors
/// There is no such process, nothing is noted, or the notes or the threads cannot be read.
pub fn preview_undo(pid: Pid, notes: &Path) -> Result<Vec<NotedThread>, ApplyError> {
    check_running(pid)?;
    noted(pid, UndoNotes::preview(notes, pid))
}

/// The threads of the notes, if there are notes.
fn noted<T>(pid: Pid, threads: io::Result<Option<Vec<T>>>) -> Result<Vec<T>, ApplyError> {
    threads.map_err(ApplyError::Threads)?.ok_or(ApplyError::NothingToUndo(pid))
}

/// The pins that a plan would make.
#[derive(Debug)]
pub struct Preview {
    /// The threads that would be pinned, and the CPUs on which each may run now.
    pub moves: Vec<(Pinned, CpuSet)>,
    /// The threads of the plan that the program does not have.
    pub missing: Option<MissingThreads>,
    /// The processes that have memory to move, and the node to which it would go.
    pub memory: Vec<(Pid, u32)>,
    /// The number of threads of the plan.
    threads: usize,
}

impl Preview {
    /// Finds what [`HeldProgram::apply`] would do to the program `pid`. Does nothing.
    ///
    /// # Errors
    /// There is no such process, its threads cannot be read, or the plan does not fit the machine.
    pub fn of(
        pid: Pid,
        plan: &Plan,
        force: bool,
        events: &mut PlanEvents<'_>,
    ) -> Result<Self, ApplyError> {
        check_running(pid)?;
        let machine = check_online(pid, plan, force, events)?;
        check_memory(plan)?;
        report_number(plan, |command, _| Ok(NumberOutcome::Settable(command)), events)?;
        let scope = Scope::Trees(vec![pid]);
        let pinner = pinner(scope, plan, EndedThreads::Forgotten)?;
        let memory = match follows(plan) {
            true => moves_of(pinner.next_places(), &machine)
                // What the kernel refuses is not known before.
                .filter(|&(pid, node)| memory::would_move(pid, node, &machine).unwrap_or(true))
                .collect(),
            false => Vec::new(),
        };
        let moves = pinner.preview();
        let found = |name: &str| moves.iter().any(|(pinned, _)| pinned.name == name);
        let names = plan.threads.iter().map(|thread| thread.name.as_str());
        let missing = MissingThreads::new(plan, names.filter(|name| !found(name)));
        Ok(Self { moves, missing, memory, threads: plan.threads.len() })
    }

    /// Checks that the program has every thread of the plan.
    ///
    /// # Errors
    /// Threads are missing.
    pub fn complete(&self) -> Result<(), ApplyError> {
        Unplaced::check(0, self.missing.clone(), self.threads)
    }
}

/// A plan that was applied: those of its threads that exist are pinned.
#[derive(Debug)]
pub struct AppliedPlan<'p> {
    plan: &'p Plan,
    pinner: PlanPinner,
    pinned: Vec<Pinned>,
    /// The names whose last thread was refused.
    refused: HashSet<String>,
    /// Where memory lies now, if the plan says where.
    memory: Result<Option<MemoryUse>, MemoryError>,
    /// The processes whose memory stayed, because threads of them were refused.
    stayed: BTreeSet<Pid>,
}

impl<'p> AppliedPlan<'p> {
    /// Pins threads of the processes in `scope` by a plan of this machine. Writes the affinities
    /// that it replaces to the folder `notes`. First puts back what a killed pinwise left changed.
    ///
    /// # Errors
    /// The threads cannot be read, or nothing can be noted. Or the plan interleaves memory.
    pub fn of(scope: Scope, plan: &'p Plan, notes: &Path) -> Result<Self, ApplyError> {
        check_memory(plan)?;
        put_back_leftovers();
        let pinner = pinner(scope, plan, EndedThreads::Forgotten)?;
        let machine = follows(plan).then(this_machine).transpose()?;
        let pid = pinner.living().next().map(|seen| seen.id.pid);
        let machine = machine.map(|machine| match pid {
            Some(pid) => memory::machine_of(pid, machine),
            None => machine,
        });
        Self::begin(plan, pinner, open_notes(notes)?, machine.as_ref(), SETTLING)
    }

    /// Pins every thread that is there. Threads that are created while others are pinned are pinned
    /// by the next round. If no thread has a name of the plan, it looks again until `settling` is
    /// over.
    fn begin(
        plan: &'p Plan,
        pinner: PlanPinner,
        notes: UndoNotes,
        machine: Option<&Machine>,
        settling: Duration,
    ) -> Result<Self, ApplyError> {
        let (pinner, refused) = (pinner.noting(notes), HashSet::new());
        let (memory, stayed) = (Ok(None), BTreeSet::new());
        let mut applied = Self { plan, pinner, pinned: Vec::new(), refused, memory, stayed };
        let begin = Instant::now();
        loop {
            let news = applied.pinner.pin_new()?;
            if !news.is_empty() {
                applied.note_refused(&news);
                applied.pinned.extend(news);
            } else if applied.pinner.is_complete() || begin.elapsed() >= settling {
                applied.memory = machine.map_or(Ok(None), |machine| applied.move_memory(machine));
                return Ok(applied);
            } else {
                std::thread::sleep(applied.pinner.interval());
            }
        }
    }

    /// Moves the memory of the processes to their threads, if the plan says that. A process with a
    /// refused thread keeps its memory where it is.
    fn move_memory(&mut self, machine: &Machine) -> Result<Option<MemoryUse>, MemoryError> {
        if !follows(self.plan) {
            return Ok(None);
        }
        let refused = self.pinner.refused();
        let placed = || self.pinner.places().filter(|(pid, _)| !refused.contains(pid));
        for (pid, node) in moves_of(placed(), machine) {
            match memory::move_to(pid, node, machine) {
                Ok(()) | Err(MemoryError::Gone(_)) => {}
                Err(error) => return Err(error),
            }
        }
        let pids: BTreeSet<Pid> = placed().map(|(pid, _)| pid).collect();
        // On one node there is nowhere to move it.
        if machine.memory_nodes().len() > 1 {
            self.stayed = refused;
        }
        if pids.is_empty() {
            return Ok(None);
        }
        let nodes = memory::pages_of(&Vec::from_iter(pids), machine)?;
        Ok(Some(MemoryUse { policy: MemoryPolicy::Follow, nodes, local: None }))
    }

    /// The processes whose memory stayed, because a thread of them was refused.
    pub fn memory_stayed(&self) -> impl Iterator<Item = Pid> {
        self.stayed.iter().copied()
    }

    /// Where the memory lies since the threads were pinned. `None` if the plan does not say it, or
    /// if it could not be moved: see [`Self::complete`].
    pub fn memory(&self) -> Option<&MemoryUse> {
        self.memory.as_ref().ok()?.as_ref()
    }

    /// Notes which threads of the plan were refused last.
    fn note_refused(&mut self, news: &[Pinned]) {
        for Pinned { name, result, .. } in news {
            match result {
                Ok(()) => self.refused.remove(name),
                Err(_) => self.refused.insert(name.clone()),
            };
        }
    }

    /// The threads that were found at first: pinned, or refused.
    pub fn pinned(&self) -> &[Pinned] {
        &self.pinned
    }

    /// The threads of the plan that the program does not have so far.
    pub fn missing(&self) -> Option<MissingThreads> {
        MissingThreads::new(self.plan, self.pinner.missing())
    }

    /// Checks that every thread of the plan was put in its place, at first or during a watch.
    /// Checks memory too.
    ///
    /// # Errors
    /// A thread never appeared, or was refused when it was last seen. Or memory was not moved.
    pub fn complete(&self) -> Result<(), ApplyError> {
        self.memory.as_ref().map_err(Clone::clone)?;
        Unplaced::check(self.refused.len(), self.missing(), self.plan.threads.len())
    }

    /// Also pins threads that appear later, until the program ends or somebody asks to stop.
    ///
    /// # Errors
    /// The threads cannot be read, or nobody takes the events.
    pub fn watch(
        &mut self,
        interrupt: &Interrupt,
        events: &mut PlanEvents<'_>,
    ) -> Result<(), ApplyError> {
        while !interrupt.came() && !self.pinner.ended() {
            std::thread::sleep(self.pinner.interval());
            let news = pin_new(&mut self.pinner, events)?;
            self.note_refused(&news);
        }
        Ok(())
    }
}

fn check_running(pid: Pid) -> Result<(), ApplyError> {
    if process::ended(pid) { Err(TargetError::NoProcess(pid).into()) } else { Ok(()) }
}

/// Refuses a plan that interleaves memory, which a running program cannot do.
fn check_memory(plan: &Plan) -> Result<(), MemoryError> {
    let policy = plan.memory.as_ref().map(|memory| memory.policy);
    if policy == Some(MemoryPolicy::Interleave) { Err(MemoryError::OnlyAtStart) } else { Ok(()) }
}

/// Whether the memory of a running program goes with the threads of the plan.
fn follows(plan: &Plan) -> bool {
    plan.memory.as_ref().is_some_and(|memory| memory.policy == MemoryPolicy::Follow)
}

/// The processes whose threads run next to one node, and that node.
fn moves_of<'a>(
    places: impl Iterator<Item = (Pid, &'a CpuSet)>,
    machine: &Machine,
) -> impl Iterator<Item = (Pid, u32)> {
    memory::followed(places, machine).into_iter().filter_map(|(pid, node)| Some((pid, node?)))
}

/// Checks a plan for a program that runs already. Ignores where pinwise itself may run, and which
/// memory it may use.
fn check_online(
    pid: Pid,
    plan: &Plan,
    force: bool,
    events: &mut PlanEvents<'_>,
) -> Result<Machine, ApplyError> {
    let mut machine = this_machine()?;
    machine.allowed = machine.online().clone();
    let machine = memory::machine_of(pid, machine);
    check(plan, &machine, force, events)?;
    Ok(machine)
}

/// Checks that a plan is for this machine. A difference is an error, or with `force` an event.
fn check(
    plan: &Plan,
    machine: &Machine,
    force: bool,
    events: &mut PlanEvents<'_>,
) -> Result<(), ApplyError> {
    let differences = plan.differences(&fingerprint(machine), &machine.allowed);
    if !force && !differences.is_empty() {
        return Err(ApplyError::Misfit(differences));
    }
    differences.iter().try_for_each(|difference| take(events, PlanEvent::Difference(difference)))
}

/// Reports what becomes of the plan's number of threads. `with_command` finds it for a plan with a
/// command.
fn report_number<'a>(
    plan: &'a Plan,
    with_command: impl FnOnce(&'a str, u32) -> Result<NumberOutcome<'a>, ApplyError>,
    events: &mut PlanEvents<'_>,
) -> Result<(), ApplyError> {
    let Some(number) = &plan.number else { return Ok(()) };
    let outcome = match &number.set {
        Some(command) => with_command(command, number.n)?,
        None => NumberOutcome::NeedsStart,
    };
    take(events, PlanEvent::Number { n: number.n, outcome })?;
    if plan.threads.is_empty() { take(events, PlanEvent::NoPins) } else { Ok(()) }
}

fn pinner(scope: Scope, plan: &Plan, ended: EndedThreads) -> Result<PlanPinner, ApplyError> {
    let wanted = plan.threads.iter().map(|thread| (thread.name.clone(), thread.cpus.clone()));
    PlanPinner::new(scope, wanted.collect(), ended).map_err(ApplyError::Threads)
}

/// Pins the threads that have appeared since the last call, and returns them.
fn pin_new(
    pinner: &mut PlanPinner,
    events: &mut PlanEvents<'_>,
) -> Result<Vec<Pinned>, ApplyError> {
    let news = pinner.pin_new()?;
    news.iter().try_for_each(|thread| take(events, PlanEvent::Pinned(thread)))?;
    Ok(news)
}

fn open_notes(folder: &Path) -> Result<UndoNotes, ApplyError> {
    UndoNotes::open(folder).map_err(|cause| cannot_note(folder, cause))
}

fn cannot_note(folder: &Path, cause: io::Error) -> ApplyError {
    ApplyError::Notes { folder: folder.to_owned(), cause }
}

fn take(events: &mut PlanEvents<'_>, event: PlanEvent<'_>) -> Result<(), ApplyError> {
    events(event).map_err(ApplyError::Output)
}

#[cfg(test)]
mod tests;
