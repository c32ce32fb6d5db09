//! `pinwise apply`: re-pins the threads of a running program as a plan says.

use crate::output::{self, Usage};
use crate::plan::{self, PlanArgument};
use anyhow::Context as _;
use clap::Args;
use pinwise_host::{Ended, Pid, Pinned, Pinner, Scope};
use pinwise_placement::Plan;
use serde::Serialize;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const CANNOT_LOOK: &str = "cannot look at the program's threads";

/// Pin the threads of a running program as a plan says
///
/// Threads are found by name. Those that are not in the plan keep their affinity. The pins stay when pinwise ends; threads that the
/// program creates later are only seen with --watch. Exit code 1 when a thread of the plan was not found or could not be pinned.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    pinwise apply plan.toml --pid \"$(pidof redis-server)\"\n  \
    pinwise apply plan.toml --pid 4242 --watch          until the program ends")]
pub(crate) struct Apply {
    #[command(flatten)]
    plan: PlanArgument,
    /// The program; its child processes are included
    #[arg(long)]
    pid: Pid,
    /// Stay, and pin threads as they appear, until the program ends or Ctrl-C
    #[arg(long, conflicts_with = "json")]
    watch: bool,
    /// Apply it although the machine differs from the plan's: each difference becomes a warning
    #[arg(long)]
    force: bool,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// The JSON document.
#[derive(Serialize)]
struct Document<'a> {
    pinned: Vec<Thread<'a>>,
    refused: Vec<Thread<'a>>,
    not_found: Vec<&'a str>,
}

#[derive(Serialize)]
struct Thread<'a> {
    name: &'a str,
    tid: i32,
    cpus: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl Apply {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let plan = self.plan.load()?;
        plan::check(&plan, self.force)?;
        let mut pinner =
            Pinner::new(Scope::Trees(vec![self.pid]), plan::wanted(&plan), Ended::Forgotten).context(CANNOT_LOOK)?;
        if pinner.ended() {
            return Err(Usage(format!("there is no process {}: it ended, or the number is wrong", self.pid)).into());
        }
        let pinned = pin(&mut pinner)?;
        if self.json {
            output::print_json(&document(&pinned, &pinner))?;
        } else {
            print(&pinned, &pinner)?;
        }
        if self.watch { self.watch(&mut pinner) } else { complete(&plan, &pinned, &pinner) }
    }

    fn watch(&self, pinner: &mut Pinner) -> anyhow::Result<()> {
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

/// Pins every thread that is there. Threads that are created while others are pinned show up in the next look.
pub(crate) fn pin(pinner: &mut Pinner) -> anyhow::Result<Vec<Pinned>> {
    let mut pinned = Vec::new();
    loop {
        let news = pinner.look().context(CANNOT_LOOK)?;
        if news.is_empty() {
            return Ok(pinned);
        }
        pinned.extend(news);
    }
}

/// One line for each thread of the plan.
pub(crate) fn print(pinned: &[Pinned], pinner: &Pinner) -> anyhow::Result<()> {
    pinned.iter().try_for_each(|thread| output::print(&line(thread)))?;
    pinner.missing().iter().try_for_each(|name| output::print(&format!("{name:<16} not found\n")))
}

/// An error unless every thread of the plan is in its place.
pub(crate) fn complete(plan: &Plan, pinned: &[Pinned], pinner: &Pinner) -> anyhow::Result<()> {
    let refused = pinned.iter().filter(|thread| thread.result.is_err()).count();
    let missing = pinner.missing().len();
    anyhow::ensure!(
        refused + missing == 0,
        "{} of {} threads of the plan are not where it wants them ({missing} not found, {refused} refused)",
        refused + missing,
        plan.threads.len()
    );
    Ok(())
}

fn line(thread: &Pinned) -> String {
    match &thread.result {
        Ok(()) => format!("{:<16} thread {} on CPU {}\n", thread.name, thread.tid, thread.cpus),
        Err(error) => format!("{:<16} refused: {error}\n", thread.name),
    }
}

fn document<'a>(pinned: &'a [Pinned], pinner: &'a Pinner) -> Document<'a> {
    let threads = |refused: bool| {
        let chosen = pinned.iter().filter(move |thread| thread.result.is_err() == refused);
        let thread = |pinned: &'a Pinned| Thread {
            name: &pinned.name,
            tid: pinned.tid.0,
            cpus: pinned.cpus.to_string(),
            reason: pinned.result.as_ref().err().map(ToString::to_string),
        };
        chosen.map(thread).collect()
    };
    Document { pinned: threads(false), refused: threads(true), not_found: pinner.missing() }
}
