//! `pinwise select`: which of the ready programs run together, and where.

mod document;
mod text;

use super::place::{self, WindowArguments};
use crate::events;
use crate::machine::Simulated;
use crate::number_argument::whole;
use crate::output::{self, Usage};
use clap::Args;
use document::ShownSelection;
use pinwise_jobs::{SelectAnswer, SelectRequest, Subject};
use pinwise_placement::{PlacementQuestion, SelectionQuestion};
use pinwise_present::Files;
use serde_json::Value;
use std::path::Path;

/// Choose which of the ready programs to run together, and where
///
/// select draws selections and assignments together at random and measures each. It bounds the best
/// selection on its best assignment and measures the leaders again. Performance is the weighted
/// speedup. Each running instance adds its packets/s, divided by its packets/s alone. select needs
/// a simulated processor.
#[derive(Args)]
#[command(
    override_usage = "pinwise select [OPTIONS] --workload <NAME:N+NAME:N> --choose <N> --machine \
        <MODEL>",
    after_help = "Examples:
  Four of six ready instances of three programs, on a simulated processor:
    pinwise select --machine ultrasparc-t2 --workload hash1_L1:2+intmul:2+hash1_Mem:2 --choose 4
  Four of eight on two of its cores:
    pinwise select --machine ultrasparc-t2 --cpus 0-15 --workload intadd:4+intmul:4 --choose 4"
)]
pub(crate) struct Select {
    /// Name the ready programs, each with its number of instances
    #[arg(long, value_name = "NAME:N+NAME:N")]
    workload: String,
    /// Run N instances together
    #[arg(long, value_name = "N", value_parser = whole::<u64>(1..=1024))]
    choose: u64,
    /// Use this simulated processor: a model, or a file NAME.toml. `pinwise topo ultrasparc-t2
    /// --description` prints a file to start from
    #[arg(long, value_name = "MODEL")]
    machine: Option<String>,
    #[command(flatten)]
    windows: WindowArguments,
    /// Use only these contexts, as in 0-15
    #[arg(long, value_name = "LIST")]
    cpus: Option<String>,
    /// Measure N times, at least 50. Three quarters are draws. Programs alone are measured in
    /// addition
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1000,
        value_parser = whole::<u64>(50..=1_000_000)
    )]
    budget: u64,
    /// Set the confidence of every interval and of the bound
    #[arg(
        long,
        value_name = "P",
        default_value = PlacementQuestion::CONFIDENCE.to_string(),
        value_parser = place::confidence
    )]
    confidence: f64,
    /// Set the seed of all random choices
    #[arg(long, default_value_t = PlacementQuestion::SEED)]
    seed: u64,
    #[command(flatten, next_help_heading = "Output")]
    store: crate::store::StoreArguments,
    /// Print one JSON document
    #[arg(long, help_heading = "Output")]
    json: bool,
}

impl Select {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let needed = || Usage(SelectRequest::NEEDS_MODEL.into());
        let machine = self.machine.as_ref().ok_or_else(needed)?;
        let model = Simulated::named(machine, "select")?;
        let simulation = self.windows.of(&model, &self.workload)?;
        let caller = events::caller(self.store.named())?;
        let mut store = self.store.open()?;
        let request = SelectRequest {
            question: SelectionQuestion {
                choose: self.choose as usize,
                budget: self.budget,
                confidence: self.confidence,
                seed: self.seed,
            },
            subject: Subject::Simulated(simulation),
            alone: Vec::new(),
            cpus: self.cpus,
            name: Some(self.workload),
        };
        let answer = events::run(request, &caller, &mut store, self.json)?;
        print_answer(&answer, self.store.named(), self.json)
    }
}

/// The JSON document of an answer.
pub(crate) fn json(answer: &SelectAnswer, named: Option<&Path>) -> Value {
    ShownSelection::new(answer).document(Files::of_store(named))
}

/// Prints what the records of a selection show.
pub(crate) fn print_answer(
    answer: &SelectAnswer,
    named: Option<&Path>,
    json: bool,
) -> anyhow::Result<()> {
    if json {
        return output::print_json(&self::json(answer, named));
    }
    let (shown, files) = (ShownSelection::new(answer), Files::of_store(named));
    output::print(&shown.text(files, output::width()))
}
