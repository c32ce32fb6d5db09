//! `pinwise tune`: how many threads and where each of them runs, together, and the plan for both.

mod arguments;
mod document;
mod text;

use super::threads::{Edges, NumberArguments, RunFiles};
use crate::events;
use crate::memory_argument::MemoryArgument;
use crate::node_arguments::OutlookArguments;
use crate::output::{self, Interrupted};
use clap::{Arg, Args};
use document::{TuneJson, UnfinishedTuneJson};
use pinwise_jobs::{JobError, ThreadsRequest, TuneAnswer, TuneRequest};
use pinwise_measure::MemoryPolicy;
use pinwise_placement::{Budget, Unmeasured};
use pinwise_present::{Files, no_answer_yet, unmeasured};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Find how many threads a program should run and where, and save one plan for both
///
/// tune has four parts. The first finds the number, as threads does. The second measures promising
/// numbers under simple policies. The third places the best of them, as place does. The last part
/// compares the default, the number found, and that number pinned, on fresh windows. It alone
/// decides: the plan leaves out what does not help. docs/method/tune.md explains more.
#[derive(Args)]
#[command(
    mut_args(here),
    after_help = "Examples:
  pinwise tune -- pigz -p {n} -k -c big.file
  pinwise tune --env OMP_NUM_THREADS -- ./solver input
  pinwise tune --metric 'stdout:fps=([0-9.]+)' -- ./encoder -t {n} movie
  pinwise tune --set 'cmd:echo {n} > /run/app/workers' --default 4 \\
    --metric 'cmd:cat /run/app/done' --pid 4242
  pinwise run plan.toml -- pigz -p {n} -k -c big.file"
)]
pub(crate) struct Tune {
    #[command(flatten)]
    asked: NumberArguments,
    #[command(flatten)]
    files: RunFiles,
    /// NUMA memory to try: leave, follow, interleave [default: all, without --set]
    #[arg(
        long,
        value_name = "HOW",
        value_enum,
        ignore_case = true,
        hide_possible_values = true,
        hide_short_help = true,
        help_heading = "Target"
    )]
    memory: Option<MemoryArgument>,
    #[command(flatten, next_help_heading = "Target")]
    nodes: OutlookArguments,
    /// Write the plan to FILE [default: next to the store]
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    plan: Option<PathBuf>,
    #[command(flatten, next_help_heading = "Output")]
    store: crate::store::StoreArguments,
    /// Print one JSON document
    #[arg(long, help_heading = "Output")]
    json: bool,
    /// Also print how the threads were watched
    #[arg(long, short, conflicts_with = "json", hide_short_help = true, help_heading = "Output")]
    verbose: bool,
}

impl Tune {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let asked = self.asked.clone().for_placing()?;
        let edges = Edges { files: self.files.clone(), ..Edges::default() };
        let threads = asked.threads_request(&edges)?;
        let threads = ThreadsRequest { on: self.nodes.nodes()?, ..threads };
        if self.nodes.only_looks_ahead(self.json, || Ok(Budget::Time(threads.time())))? {
            return Ok(());
        }
        let caller = events::caller(self.store.named())?;
        let mut store = self.store.open()?;
        let memory = self.memory.map(MemoryPolicy::from);
        let request = TuneRequest { threads, plan: self.plan, memory };
        let named = self.store.named();
        let leave = |answer: &TuneAnswer, error: &JobError, _: &_| {
            print_remains(answer, error.to_string(), Files::of_store(named), self.json)
        };
        let answer = events::run_or_leave(request, &caller, &mut store, self.json, leave)?;
        print_answer(&answer, named, self.json, self.verbose)
    }
}

/// Prints what was found, as far as it came. `named` is the store, where commands have to name it.
pub(crate) fn print_answer(
    answer: &TuneAnswer,
    named: Option<&Path>,
    json: bool,
    verbose: bool,
) -> anyhow::Result<()> {
    let files = Files::of_store(named);
    let Some(document) = TuneJson::of(answer) else {
        return print_remains(answer, no_answer_yet(&answer.campaign).into(), files, json);
    };
    // The answer first: what went wrong after it does not take it away.
    if json {
        output::print_json(&document.json(files))?;
    } else {
        output::print(&text::result(&document, files, output::width(), verbose))?;
    }
    if !answer.left_undone.is_empty() {
        let undone: Vec<String> = answer.left_undone.iter().map(ToString::to_string).collect();
        anyhow::bail!("the answer is above, but {}", undone.join("; "));
    }
    let Some(reason) = &answer.cut_short else { return Ok(()) };
    let why = format!(
        "{}: the answer rests on the measurements so far; continue with: {}",
        unmeasured(reason),
        files.resume(answer.campaign.id)
    );
    match reason {
        Unmeasured::Interrupted => Err(Interrupted(why).into()),
        _ => anyhow::bail!(why),
    }
}

/// The JSON document of an answer.
pub(crate) fn json(answer: &TuneAnswer, named: Option<&Path>) -> Value {
    let files = Files::of_store(named);
    match TuneJson::of(answer) {
        Some(document) => document.json(files),
        None => UnfinishedTuneJson::of(answer, no_answer_yet(&answer.campaign).into()).json(files),
    }
}

fn print_remains(
    answer: &TuneAnswer,
    error: String,
    files: Files<'_>,
    json: bool,
) -> anyhow::Result<()> {
    let remains = UnfinishedTuneJson::of(answer, error);
    match json {
        true => output::print_json(&remains.json(files)),
        false => output::print(&text::remains(&remains, files, output::width())),
    }
}

/// The models that `threads` knows are refused with what to do instead, and not offered.
fn here(argument: Arg) -> Arg {
    match argument.get_id().as_str() {
        "budget" => argument.help(BUDGET),
        "set" => argument.help(SET),
        "machine" | "workload" | "seed" => argument.hide(true),
        _ => argument,
    }
}

const BUDGET: &str = "Spend this time on everything [default: 2m]";
const SET: &str = "Change n live by cmd:COMMAND";
