//! `pinwise apply`: re-pins the threads of a running program as a plan says.

use crate::number_argument;
use crate::output::{self, Usage};
use crate::plan::{self, PlanArgument};
use anyhow::Context as _;
use clap::Args;
use pinwise_linux::{
    AffinityError, EndedThreads, Pid, Pinned, PlanPinner, ProcessLock, Released, Scope,
    TargetError, Tid, UndoNotes, affinity, process, this_machine,
};
use pinwise_placement::{Plan, PlannedNumber};
use pinwise_present::figures::counted;
use pinwise_present::one_line;
use pinwise_topology::CpuSet;
use serde::Serialize;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const CANNOT_LOOK: &str = "cannot read the program's threads";

/// Pin the threads of a running program by a plan
///
/// Threads are found by name. Threads that the plan does not name keep their affinity. The pins
/// stay after pinwise ends. --watch also pins threads that the program creates later. --set first
/// runs the plan's command that sets the number of threads, if the plan has one. apply stores the
/// affinities that it replaces in your data directory. --undo restores them while the program runs.
/// The exit code is 1 if a thread of the plan was not found or not pinned, also with --dry-run.
#[derive(Args)]
#[command(
    mut_arg("path", |plan| plan.required(false).required_unless_present("undo")),
    override_usage = "pinwise apply [OPTIONS] --pid <PID> <PLAN>\n       pinwise apply --undo \
        --pid <PID> [--json]"
)]
#[command(after_help = "Examples:\n  \
    pinwise apply plan.toml --pid \"$(pidof redis-server)\"\n  \
    pinwise apply plan.toml --pid 4242 --dry-run        what would be pinned where\n  \
    pinwise apply plan.toml --pid 4242 --watch          until the program ends\n  \
    pinwise apply --undo --pid 4242                     back to before the first plan")]
pub(crate) struct Apply {
    #[command(flatten)]
    plan: Option<PlanArgument>,
    /// Pin this running program and its child processes
    #[arg(long, value_parser = number_argument::pid)]
    pid: Pid,
    /// Print what would be pinned where. Pin nothing
    #[arg(long, conflicts_with = "watch")]
    dry_run: bool,
    /// First run the plan's command that sets the number. Without --set, apply only prints it
    #[arg(long, conflicts_with = "undo")]
    set: bool,
    /// Restore the affinities from before the first plan was applied
    #[arg(long, conflicts_with_all = ["path", "watch", "dry_run", "force"])]
    undo: bool,
    /// Pin threads as they appear, until the program ends or Ctrl-C
    #[arg(long, conflicts_with = "json")]
    watch: bool,
    /// Use the plan although it is for another machine. Differences become warnings
    #[arg(long)]
    force: bool,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// The JSON document: what was pinned, or with --dry-run would be.
#[derive(Serialize)]
struct ApplyJson<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pinned: Option<Vec<Thread<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    would_pin: Option<Vec<Thread<'a>>>,
    refused: Vec<Thread<'a>>,
    not_found: Vec<&'a str>,
}

/// The JSON document of --undo.
#[derive(Serialize)]
struct Undone<'a> {
    released: Vec<Thread<'a>>,
    refused: Vec<Thread<'a>>,
}

#[derive(Serialize)]
struct Thread<'a> {
    name: &'a str,
    tid: i32,
    cpus: String,
    /// Where it may run now, with --dry-run.
    #[serde(skip_serializing_if = "Option::is_none")]
    now: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl Apply {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        if process::ended(self.pid) {
            return Err(Usage(TargetError::NoProcess(self.pid).to_string()).into());
        }
        let _lock =
            if self.dry_run { ProcessLock::default() } else { ProcessLock::of(&[self.pid])? };
        let Some(argument) = &self.plan else { return self.undo() };
        let plan = argument.load()?;
        let mut machine = this_machine()?;
        // Where pinwise itself may run is no matter.
        machine.allowed = machine.online().clone();
        plan::check(&plan, &machine, self.force)?;
        self.set_number(&plan)?;
        let scope = Scope::Trees(vec![self.pid]);
        let mut pinner = PlanPinner::new(scope, plan::wanted(&plan), EndedThreads::Forgotten)
            .context(CANNOT_LOOK)?;
        if self.dry_run {
            return self.preview(&plan, &pinner);
        }
        if let Some(note) = affinity::forgotten(&pinner.own_cpus(), &machine.offline) {
            output::aside(&format!("note: {}", pinwise_present::note(&note)));
        }
        pinner = pinner.noting(undo_notes()?);
        let pinned = pin(&mut pinner)?;
        if self.json {
            output::print_json(&document(&pinned, &pinner))?;
        } else {
            print(&pinned)?;
        }
        if self.watch { self.watch(&plan, &mut pinner) } else { complete(&plan, &pinned, &pinner) }
    }

    /// Gives the program the plan's number of threads, or says what to do about it. A plan may come
    /// from somebody else: its command is run only where that was asked for.
    fn set_number(&self, plan: &Plan) -> anyhow::Result<()> {
        let Some(number) = &plan.number else { return Ok(()) };
        let n = number.n;
        match &number.set {
            Some(command) if self.dry_run => {
                output::aside(&format!("note: --set would set n = {n} with: {command}"))
            }
            Some(command) if !self.set => output::aside(&format!(
                "note: the plan is for n = {n}, the program keeps its number; add --set to run: \
                 {command}"
            )),
            Some(command) => {
                pinwise_programs::set_number(self.pid, command, n)?;
                output::aside(&format!("note: n = {n} was set with: {command}"));
            }
            None => output::aside(&format!(
                "note: the plan is for n = {n}, which needs a new start: pinwise run PLAN -- CMD \
                 {}",
                PlannedNumber::PLACE
            )),
        }
        if plan.threads.is_empty() {
            output::aside("note: the plan pins no thread: all stay where they may run now");
        }
        Ok(())
    }

    fn preview(&self, plan: &Plan, pinner: &PlanPinner) -> anyhow::Result<()> {
        let moves = pinner.preview();
        let found = |name: &str| moves.iter().any(|(pinned, _)| pinned.name == name);
        let not_found: Vec<&str> = plan
            .threads
            .iter()
            .map(|thread| thread.name.as_str())
            .filter(|name| !found(name))
            .collect();
        if self.json {
            let would_pin = moves
                .iter()
                .map(|(pinned, now)| Thread { now: Some(now.to_string()), ..thread(pinned) });
            let (would_pin, not_found) = (Some(would_pin.collect()), not_found.clone());
            output::print_json(&ApplyJson {
                pinned: None,
                would_pin,
                refused: Vec::new(),
                not_found,
            })?;
        } else {
            moves.iter().try_for_each(|(pinned, now)| {
                let Pinned { name, tid, cpus, .. } = pinned;
                let name = one_line(name);
                output::print(&format!(
                    "{name:<16} thread {tid} would be pinned to CPU {cpus}, may run on {now} \
                     now\n"
                ))
            })?;
        }
        in_place(plan, &not_found, 0)
    }

    fn undo(&self) -> anyhow::Result<()> {
        let released = undo_notes()?.release(self.pid).context(CANNOT_LOOK)?;
        anyhow::ensure!(
            !released.is_empty(),
            "process {} has nothing to undo: no plan applied, already undone, new threads, or a \
             plan of another user",
            self.pid
        );
        let refused = released.iter().filter(|thread| thread.result.is_err()).count();
        if self.json {
            let of = |refused: bool| {
                let chosen =
                    released.iter().filter(move |thread| thread.result.is_err() == refused);
                chosen
                    .map(|Released { comm, tid, cpus, result }| named(comm, *tid, cpus, result))
                    .collect()
            };
            output::print_json(&Undone { released: of(false), refused: of(true) })?;
        } else {
            released.iter().try_for_each(|Released { comm, tid, cpus, result }| {
                let comm = one_line(comm);
                output::print(&match result {
                    Ok(()) => format!("{comm:<16} thread {tid} may run on CPU {cpus} again\n"),
                    Err(error) => format!("{comm:<16} refused: {error}\n"),
                })
            })?;
        }
        anyhow::ensure!(refused == 0, "{refused} of {} threads are still pinned", released.len());
        Ok(())
    }

    fn watch(&self, plan: &Plan, pinner: &mut PlanPinner) -> anyhow::Result<()> {
        if !pinner.missing().is_empty() {
            output::aside(&format!("note: {}", not_there(plan, &pinner.missing())));
        }
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register(signal, stop.clone())?;
        }
        while !stop.load(Ordering::Relaxed) && !pinner.ended() {
            std::thread::sleep(pinner.interval());
            let news = pinner.look().context(CANNOT_LOOK)?;
            news.iter().try_for_each(|thread| output::print(&line(thread)))?;
        }
        Ok(())
    }
}

/// Pins every thread that is there. Threads that are created while others are pinned show up in the
/// next look.
pub(crate) fn pin(pinner: &mut PlanPinner) -> anyhow::Result<Vec<Pinned>> {
    let mut pinned = Vec::new();
    loop {
        let news = pinner.look().context(CANNOT_LOOK)?;
        if news.is_empty() {
            return Ok(pinned);
        }
        pinned.extend(news);
    }
}

/// One line for each thread that was found. A reason that several were refused for is given once.
pub(crate) fn print(pinned: &[Pinned]) -> anyhow::Result<()> {
    let mut reasons: Vec<&AffinityError> = Vec::new();
    pinned.iter().try_for_each(|thread| match &thread.result {
        Err(error) if reasons.iter().any(|reason| reason.is_alike(error)) => {
            output::print(&format!("{:<16} refused, too\n", one_line(&thread.name)))
        }
        result => {
            reasons.extend(result.as_ref().err());
            output::print(&line(thread))
        }
    })
}

/// An error unless every thread of the plan is in its place.
pub(crate) fn complete(plan: &Plan, pinned: &[Pinned], pinner: &PlanPinner) -> anyhow::Result<()> {
    in_place(plan, &pinner.missing(), pinned.iter().filter(|thread| thread.result.is_err()).count())
}

/// An error where threads of the plan are missing or refused.
fn in_place(plan: &Plan, missing: &[&str], refused: usize) -> anyhow::Result<()> {
    let why = match (missing, refused) {
        ([], 0) => return Ok(()),
        ([], refused) => format!("{refused} refused"),
        (missing, 0) => not_there(plan, missing),
        (missing, refused) => format!("{refused} refused, and {}", not_there(plan, missing)),
    };
    let (wrong, all) = (refused + missing.len(), plan.threads.len());
    anyhow::bail!("{wrong} of {} of the plan are not pinned: {why}", counted(all as u64, "thread"))
}

/// Which threads are not there, and what to do.
fn not_there(plan: &Plan, missing: &[&str]) -> String {
    format!(
        "the process has no {}; the plan is for {}. Check the program and its number of \
         threads with ps -T -p PID",
        plan::named(missing),
        plan.program
    )
}

fn line(thread: &Pinned) -> String {
    let name = one_line(&thread.name);
    match &thread.result {
        Ok(()) => format!("{name:<16} thread {} on CPU {}\n", thread.tid, thread.cpus),
        Err(error) => format!("{name:<16} refused: {error}\n"),
    }
}

fn document<'a>(pinned: &'a [Pinned], pinner: &'a PlanPinner) -> ApplyJson<'a> {
    let threads = |refused: bool| {
        pinned
            .iter()
            .filter(move |thread| thread.result.is_err() == refused)
            .map(thread)
            .collect::<Vec<_>>()
    };
    ApplyJson {
        pinned: Some(threads(false)),
        would_pin: None,
        refused: threads(true),
        not_found: pinner.missing(),
    }
}

fn thread(pinned: &Pinned) -> Thread<'_> {
    named(&pinned.name, pinned.tid, &pinned.cpus, &pinned.result)
}

fn named<'a>(
    name: &'a str,
    tid: Tid,
    cpus: &CpuSet,
    result: &Result<(), AffinityError>,
) -> Thread<'a> {
    let reason = result.as_ref().err().map(ToString::to_string);
    Thread { name, tid: tid.0, cpus: cpus.to_string(), now: None, reason }
}

/// Where replaced affinities are noted.
pub(crate) fn undo_notes() -> anyhow::Result<UndoNotes> {
    const REMEDY: &str = "set XDG_DATA_HOME to a folder you may write to";
    let folder = crate::store::data_folder(REMEDY)?.join("applied");
    UndoNotes::open(&folder).with_context(|| {
        format!("{}: cannot store the affinities to restore; {REMEDY}", folder.display())
    })
}
