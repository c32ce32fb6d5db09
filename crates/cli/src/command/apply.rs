//! `pinwise apply`: re-pins the threads of a running program as a plan says.

use crate::number_argument;
use crate::output;
use crate::plan::{self, PlanArgument};
use crate::store;
use anyhow::Context as _;
use clap::Args;
use pinwise_jobs::{
    AppliedPlan, ApplyOptions, HeldProgram, Interrupt, PlanEvent, Preview, preview_undo,
};
use pinwise_linux::{AffinityError, NotedThread, Pid, Pinned, Released, Tid};
use pinwise_measure::MemoryUse;
use pinwise_present::{memory, one_line};
use pinwise_topology::CpuSet;
use serde::Serialize;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::io;

/// Pin the threads of a running program by a plan
///
/// Threads are found by name. Threads that the plan does not name keep their affinity. The pins
/// stay after pinwise ends. --watch also pins threads that the program creates later. --set first
/// runs the plan's command that sets the number of threads, if the plan has one. apply stores the
/// affinities that it replaces in your data directory. --undo restores them while the program runs.
/// The exit code is 1 if a thread of the plan was not found or not pinned. With --watch, a thread
/// that was pinned later counts as pinned. With --dry-run it is 1 if a thread was not found.
#[derive(Args)]
#[command(
    mut_arg("path", |plan| plan.required(false).required_unless_present("undo")),
    override_usage = "pinwise apply [OPTIONS] --pid <PID> <PLAN>\n       pinwise apply --undo \
        --pid <PID> [--dry-run] [--json]"
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
    /// Print what would be pinned where, or restored with --undo. Change nothing
    #[arg(long, conflicts_with = "watch")]
    dry_run: bool,
    /// First run the plan's command that sets the number. Without --set, apply only prints it
    #[arg(long, conflicts_with = "undo")]
    set: bool,
    /// Restore the affinities from before the first plan was applied
    #[arg(long, conflicts_with_all = ["path", "store", "watch", "force"])]
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
    pinned: Option<Vec<ThreadJson<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    would_pin: Option<Vec<ThreadJson<'a>>>,
    refused: Vec<ThreadJson<'a>>,
    not_found: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    would_move: Option<Vec<MoveJson>>,
    memory: Option<&'a MemoryUse>,
    memory_stayed: Vec<i32>,
}

/// A process whose memory would be moved, and the node.
#[derive(Serialize)]
struct MoveJson {
    pid: i32,
    node: u32,
}

/// Why --undo leaves a thread alone.
const MOVED: &str = "something else has moved it since the plan was applied";

/// The JSON document of --undo.
#[derive(Default, Serialize)]
struct Undone<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    released: Option<Vec<ThreadJson<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    would_release: Option<Vec<ThreadJson<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    left: Option<Vec<ThreadJson<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<Vec<ThreadJson<'a>>>,
}

#[derive(Serialize)]
struct ThreadJson<'a> {
    name: &'a str,
    tid: i32,
    cpus: String,
    /// Where it may run now, with --dry-run.
    #[serde(skip_serializing_if = "Option::is_none")]
    now: Option<String>,
    /// Why it was refused.
    #[serde(flatten)]
    refusal: Option<&'a AffinityError>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl Apply {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match (self.dry_run, self.undo) {
            (true, true) => return self.preview_undo(),
            (true, false) => return self.preview(),
            (false, _) => {}
        }
        let program = HeldProgram::of(self.pid).map_err(plan::failed)?;
        let Some(argument) = &self.plan else { return self.undo(&program) };
        let plan = argument.load()?;
        let options = ApplyOptions { force: self.force, set_number: self.set };
        let mut applied = program
            .apply(&plan, options, &store::undo_notes()?, &mut print_event)
            .map_err(plan::failed)?;
        let missing = applied.missing();
        if self.json {
            let names = missing.as_ref().map_or(&[][..], |missing| &missing.names);
            output::print_json(&document(&applied, names))?;
        } else {
            print(&applied)?;
        }
        if !self.watch {
            return applied.complete().map_err(plan::failed);
        }
        if let Some(missing) = missing {
            output::aside(&format!("note: {missing}"));
        }
        let interrupt = Interrupt::default();
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register(signal, interrupt.flag())?;
        }
        applied.watch(&interrupt, &mut print_event).map_err(plan::failed)?;
        applied.complete().map_err(plan::failed)
    }

    fn preview(&self) -> anyhow::Result<()> {
        // Only --undo needs no plan.
        let plan = self.plan.as_ref().context("no plan")?.load()?;
        let preview =
            Preview::of(self.pid, &plan, self.force, &mut print_event).map_err(plan::failed)?;
        if self.json {
            let would_pin = preview
                .moves
                .iter()
                .map(|(pinned, now)| ThreadJson { now: Some(now.to_string()), ..thread(pinned) });
            let names = preview.missing.as_ref().map_or(&[][..], |missing| &missing.names);
            output::print_json(&ApplyJson {
                pinned: None,
                would_pin: Some(would_pin.collect()),
                refused: Vec::new(),
                not_found: names,
                would_move: Some(
                    preview
                        .memory
                        .iter()
                        .map(|&(pid, node)| MoveJson { pid: pid.0, node })
                        .collect(),
                ),
                memory: None,
                memory_stayed: Vec::new(),
            })?;
        } else {
            preview.moves.iter().try_for_each(|(pinned, now)| {
                let Pinned { name, tid, cpus, .. } = pinned;
                let name = one_line(name);
                output::print(&format!(
                    "{name:<16} thread {tid} would be pinned to CPU {cpus}, may run on {now} \
                     now\n"
                ))
            })?;
            preview.memory.iter().try_for_each(|(pid, node)| {
                output::print(&format!("memory of process {pid} would move to node {node}\n"))
            })?;
        }
        preview.complete().map_err(plan::failed)
    }

    fn preview_undo(&self) -> anyhow::Result<()> {
        let moves = preview_undo(self.pid, &store::undo_notes()?).map_err(plan::failed)?;
        if self.json {
            let of = |moved: bool| {
                let chosen = moves.iter().filter(move |thread| thread.moved == moved);
                let json = chosen.map(|NotedThread { comm, tid, before, now, .. }| ThreadJson {
                    now: Some(now.to_string()),
                    ..named(comm, *tid, before, &Ok(()))
                });
                Some(json.collect())
            };
            let (would_release, left) = (of(false), of(true));
            return output::print_json(&Undone { would_release, left, ..Undone::default() });
        }
        moves.iter().try_for_each(|NotedThread { comm, tid, before, now, moved }| {
            let comm = one_line(comm);
            output::print(&match moved {
                false => format!(
                    "{comm:<16} thread {tid} would get CPU {before} back, may run on {now} now\n"
                ),
                true => format!("{comm:<16} thread {tid} would keep CPU {now}: {MOVED}\n"),
            })
        })
    }

    fn undo(&self, program: &HeldProgram) -> anyhow::Result<()> {
        let released = program.undo(&store::undo_notes()?).map_err(plan::failed)?;
        let refused = released.iter().filter(|thread| thread.result.is_err()).count();
        if self.json {
            let of = |moved: bool, refused: bool| {
                let is_chosen = move |thread: &&Released| {
                    thread.moved == moved && thread.result.is_err() == refused
                };
                let chosen = released.iter().filter(is_chosen);
                let json = chosen.map(|Released { comm, tid, cpus, result, .. }| {
                    named(comm, *tid, cpus, result)
                });
                Some(json.collect())
            };
            let (left, refused) = (of(true, false), of(false, true));
            let released = of(false, false);
            output::print_json(&Undone { released, would_release: None, left, refused })?;
        } else {
            released.iter().try_for_each(|Released { comm, tid, cpus, moved, result }| {
                let comm = one_line(comm);
                output::print(&match result {
                    Ok(()) if *moved => {
                        format!("{comm:<16} thread {tid} keeps CPU {cpus}: {MOVED}\n")
                    }
                    Ok(()) => format!("{comm:<16} thread {tid} may run on CPU {cpus} again\n"),
                    Err(error) => format!("{comm:<16} refused: {error}\n"),
                })
            })?;
        }
        anyhow::ensure!(
            refused == 0,
            "{refused} of {} threads did not get their CPUs back",
            released.len()
        );
        Ok(())
    }
}

/// Prints what happens. A thread that was pinned is a result: it goes to stdout.
fn print_event(event: PlanEvent<'_>) -> io::Result<()> {
    plan::print_event(&event);
    match event {
        PlanEvent::Pinned(thread) => output::write_stdout(&line(thread)),
        _ => Ok(()),
    }
}

/// One line for each thread that was found, and lines for memory that was moved or stayed. A reason
/// that several were refused for is given once.
pub(crate) fn print(applied: &AppliedPlan<'_>) -> anyhow::Result<()> {
    let mut reasons: Vec<&AffinityError> = Vec::new();
    applied.pinned().iter().try_for_each(|thread| match &thread.result {
        Err(error) if reasons.iter().any(|reason| reason.is_alike(error)) => {
            output::print(&format!("{:<16} refused, too\n", one_line(&thread.name)))
        }
        result => {
            reasons.extend(result.as_ref().err());
            output::print(&line(thread))
        }
    })?;
    applied.memory_stayed().try_for_each(|pid| {
        output::print(&format!(
            "memory of process {pid} stays: not all of its threads are pinned\n"
        ))
    })?;
    applied.memory().map_or(Ok(()), |held| {
        output::print(&format!("memory: {}; --undo leaves it there\n", memory(held)))
    })
}

fn line(thread: &Pinned) -> String {
    let name = one_line(&thread.name);
    match &thread.result {
        Ok(()) => format!("{name:<16} thread {} on CPU {}\n", thread.tid, thread.cpus),
        Err(error) => format!("{name:<16} refused: {error}\n"),
    }
}

fn document<'a>(applied: &'a AppliedPlan<'_>, not_found: &'a [String]) -> ApplyJson<'a> {
    let threads = |refused: bool| {
        applied
            .pinned()
            .iter()
            .filter(move |thread| thread.result.is_err() == refused)
            .map(thread)
            .collect::<Vec<_>>()
    };
    ApplyJson {
        pinned: Some(threads(false)),
        would_pin: None,
        refused: threads(true),
        not_found,
        would_move: None,
        memory: applied.memory(),
        memory_stayed: applied.memory_stayed().map(|pid| pid.0).collect(),
    }
}

fn thread(pinned: &Pinned) -> ThreadJson<'_> {
    named(&pinned.name, pinned.tid, &pinned.cpus, &pinned.result)
}

fn named<'a>(
    name: &'a str,
    tid: Tid,
    cpus: &CpuSet,
    result: &'a Result<(), AffinityError>,
) -> ThreadJson<'a> {
    let refusal = result.as_ref().err();
    let reason = refusal.map(ToString::to_string);
    ThreadJson { name, tid: tid.0, cpus: cpus.to_string(), now: None, refusal, reason }
}
