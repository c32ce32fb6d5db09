//! `pinwise compare`: ways of placing a program beside one another.

use super::place::{SearchArguments, SubjectArguments};
use crate::comparison;
use crate::events::{self, Terminal};
use crate::number::whole;
use clap::Args;
use pinwise_jobs::{Answer, CompareRequest, Job};

/// Compare ways of placing a program: the operating system's, random, balanced, and every search
///
/// Each search runs by itself with the whole --budget, as a campaign of its own: four of them,
/// three where the program cannot be profiled. What they announce is then measured beside naive
/// (random) and balanced placements and the program unpinned, in two sets of windows: one chooses
/// which assignment is the best known and which draw is the worst, the other, fresh and in
/// random order, is what is told. A way whose loss may be none is said not to be told apart from
/// the best; where that is for lack of windows, how many would do.
#[derive(Args)]
#[command(mut_arg("budget", |argument| argument.help(BUDGET).long_help(BUDGET)), after_help = "Examples:
  The built-in packet pipelines on this machine:
    pinwise compare --workload stateful:2 --budget 20s
  On a simulated processor, eight instances:
    pinwise compare --machine ultrasparc-t2 --workload hash1_Mem:8 --budget 600
  A program of your own:
    pinwise compare --metric 'stdout:Tx-pps: +(\\d+)' -- dpdk-testpmd …")]
pub(crate) struct Compare {
    #[command(flatten)]
    subject: SubjectArguments,
    #[command(flatten, next_help_heading = "Search")]
    search: SearchArguments,
    /// How many naive (random) and how many balanced placements are drawn; at least 2
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = whole::<u64>(2..=100_000), help_heading = "Comparison")]
    draws: u64,
    /// Fresh windows of each that is compared, at least 5, and as many before by which the best
    /// known and the worst draws are chosen
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = whole::<u64>(5..=100_000), help_heading = "Comparison")]
    rounds: u64,
    #[command(flatten, next_help_heading = "Output")]
    store: crate::store::StoreArguments,
    /// Print one JSON document
    #[arg(long, help_heading = "Output")]
    json: bool,
}

/// What `--budget` is about here.
const BUDGET: &str = "Measurements (600) or time (90s, 5m) of each search, not of all together; by default 30 s for a built-in workload (5 min for BlackBox), \
    1 min for a program that is re-pinned, 5 min for one that is started anew, 4,000 measurements on a model. Measuring everything beside everything at \
    the end is not in it";

impl Compare {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let caller = events::caller(self.store.named())?;
        let request = self.subject.request("compare", &self.search)?;
        let mut store = self.store.open()?;
        let job = Job::Compare(Box::new(CompareRequest {
            request,
            usual_budget: self.search.budget.is_none(),
            draws: self.draws,
            rounds: self.rounds,
        }));
        let answer = pinwise_jobs::run(job, &caller, &mut store, &mut Terminal::new(self.json))
            .map_err(|error| events::explained(error, &caller, &store))?;
        let Answer::Compare(answer) = answer else { return Ok(()) };
        comparison::print(&store, &answer, self.store.named(), self.json)
    }
}
