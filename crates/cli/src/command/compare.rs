//! `pinwise compare`: compares ways of placing a program.

mod document;
mod text;

use super::place::{SearchArguments, SubjectArguments};
use crate::events;
use crate::node_arguments::OutlookArguments;
use crate::number_argument::whole;
use crate::output;
use clap::Args;
use document::document;
use pinwise_campaign::Store;
use pinwise_jobs::{CompareAnswer, CompareRequest};
use pinwise_present::Files;
use serde_json::Value;
use std::path::Path;
use text::text;

/// Compare ways to place a program: the operating system's, random, balanced, and each search
///
/// Each search is a separate campaign with the whole --budget. There are four searches, or three if
/// the program cannot be profiled. compare then measures their results, random (naive) and balanced
/// placements, and the unpinned program. One set of windows chooses the best known assignment and
/// the worst draws. A second set, fresh and in random order, gives the printed figures. A way whose
/// loss may be zero ties with the best. If more windows would separate the two, compare prints how
/// many.
#[derive(Args)]
#[command(mut_arg("budget", |argument| argument.help(BUDGET)), after_help = "Examples:
  The built-in packet pipelines on this machine:
    pinwise compare --workload stateful:2 --budget 20s
  On a simulated processor, eight instances:
    pinwise compare --machine ultrasparc-t2 --workload hash1_Mem:8 --budget 600
  A program of your own:
    pinwise compare --metric 'stdout:Tx-pps: +(\\d+)' -- dpdk-testpmd …")]
pub(crate) struct Compare {
    #[command(flatten)]
    subject: SubjectArguments,
    #[command(flatten, next_help_heading = "Target")]
    nodes: OutlookArguments,
    /// Scale nodes that differ. Otherwise they are set aside
    #[arg(long, requires = "on", hide_short_help = true, help_heading = "Target")]
    scale_nodes: bool,
    #[command(flatten, next_help_heading = "Search")]
    search: SearchArguments,
    /// Draw N random and N balanced ones
    #[arg(
        long,
        value_name = "N",
        default_value_t = CompareRequest::DRAWS,
        value_parser = whole::<u64>(2..=100_000),
        help_heading = "Comparison"
    )]
    draws: u64,
    /// Measure each way in N fresh windows
    #[arg(
        long,
        value_name = "N",
        default_value_t = CompareRequest::ROUNDS,
        value_parser = whole::<u64>(5..=100_000),
        help_heading = "Comparison"
    )]
    rounds: u64,
    #[command(flatten, next_help_heading = "Output")]
    store: crate::store::StoreArguments,
    /// Print one JSON document
    #[arg(long, help_heading = "Output")]
    json: bool,
}

/// What `--budget` is about here.
const BUDGET: &str = "Spend N measurements, or a time such as 5m, on each search [default: as \
    place]. The last comparison is extra";

impl Compare {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let caller = events::caller(self.store.named())?;
        let mut request = self.subject.request("compare", &self.search)?;
        request.on = self.nodes.nodes()?;
        request.scale_nodes = self.scale_nodes;
        let job = CompareRequest {
            usual_budget: self.search.budget.is_none(),
            draws: self.draws,
            rounds: self.rounds,
            ..CompareRequest::new(request)
        };
        if self.nodes.only_looks_ahead(self.json, || Ok(job.whole_budget()))? {
            return Ok(());
        }
        let mut store = self.store.open()?;
        let named = self.store.named();
        let leave = |answer: &CompareAnswer, _: &_, store: &Store| {
            print_answer(store, answer, named, self.json)
        };
        let answer = events::run_or_leave(job, &caller, &mut store, self.json, leave)?;
        print_answer(&store, &answer, named, self.json)
    }
}

/// The JSON document of an answer.
pub(crate) fn json(
    store: &Store,
    answer: &CompareAnswer,
    named: Option<&Path>,
) -> anyhow::Result<Value> {
    let records = store.records(answer.campaign.id)?;
    Ok(document(answer, &records, Files::of_store(named)))
}

/// Prints what the records of a comparison show.
pub(crate) fn print_answer(
    store: &Store,
    answer: &CompareAnswer,
    named: Option<&Path>,
    json: bool,
) -> anyhow::Result<()> {
    if json {
        return output::print_json(&self::json(store, answer, named)?);
    }
    output::print(&text(answer, Files::of_store(named), output::width()))
}
