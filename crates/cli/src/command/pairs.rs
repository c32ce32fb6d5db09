//! `pinwise pairs`: which programs to run beside each other.

mod document;
mod text;

use super::place::{WindowArguments, budget, confidence};
use crate::events;
use crate::machine::Simulated;
use crate::number_argument::whole;
use crate::output::{self, Usage};
use crate::store::StoreArguments;
use clap::Args;
use document::PairsJson;
use pinwise_coscheduling::{Lengths, PairsQuestion};
use pinwise_jobs::{PairedPrograms, PairsAnswer, PairsRequest};
use pinwise_placement::{Budget, PlacementQuestion};
use pinwise_present::Files;
use serde_json::Value;
use std::path::Path;

/// Find which programs to run beside each other
///
/// pinwise runs each program alone, and then each pair on two contexts that share a level: SMT
/// siblings, if there are any. It repeats the pairs that may change the answer. The answer is the
/// pairing of all programs with the largest weighted speed-up. That is the sum of the speeds of
/// both, each divided by its speed alone.
#[derive(Args)]
#[command(
    override_usage = "pinwise pairs [OPTIONS] --machine <MODEL> --workload <NAME> --workload \
        <NAME>…",
    after_help = "Examples:
  pinwise pairs --machine ultrasparc-t2 --workload intadd --workload hash1_L1 --workload hash1_Mem"
)]
pub(crate) struct Pairs {
    /// Use a built-in program. Repeat --workload for each
    #[arg(long, value_name = "NAME")]
    workload: Vec<String>,
    /// Use this simulated processor: a model, or a file NAME.toml
    #[arg(long, value_name = "MODEL")]
    machine: Option<String>,
    #[command(flatten)]
    windows: WindowArguments,
    /// Let two programs share this level, as `topo` names it [default: the closest]
    #[arg(long, value_name = "LEVEL")]
    level: Option<String>,
    /// Use only these contexts, as in 0-3,8
    #[arg(long, value_name = "LIST")]
    cpus: Option<String>,
    /// Spend N measurements, or a time such as 5m [default: 1000 measurements]
    #[arg(long, value_name = "N|TIME", value_parser = budget)]
    budget: Option<Budget>,
    /// Set the confidence of the pairing and of intervals
    #[arg(
        long,
        value_name = "P",
        default_value = PlacementQuestion::CONFIDENCE.to_string(),
        value_parser = confidence
    )]
    confidence: f64,
    /// Set the seed of random choices
    #[arg(
        long,
        default_value_t = PlacementQuestion::SEED,
        value_parser = whole::<u64>(0..=u64::MAX)
    )]
    seed: u64,
    #[command(flatten, next_help_heading = "Output")]
    store: StoreArguments,
    /// Print one JSON document
    #[arg(long, help_heading = "Output")]
    json: bool,
}

impl Pairs {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let request = self.request()?;
        let caller = events::caller(self.store.named())?;
        let mut store = self.store.open()?;
        let answer = events::run(request, &caller, &mut store, self.json)?;
        print_answer(&answer, self.store.named(), self.json)
    }

    fn request(&self) -> Result<PairsRequest, Usage> {
        let machine = self.machine.as_ref().ok_or_else(|| {
            Usage("pairs needs a simulated processor: add --machine ultrasparc-t2".into())
        })?;
        let model = Simulated::named(machine, "pairs")?;
        if self.workload.is_empty() {
            return Err(Usage("pairs needs two programs or more: repeat --workload NAME".into()));
        }
        if let Some(counted) = self.workload.iter().find(|name| name.contains([':', '+'])) {
            return Err(Usage(format!(
                "--workload {counted}: give each program with its own --workload, without a number"
            )));
        }
        let one_each: Vec<String> = self.workload.iter().map(|name| format!("{name}:1")).collect();
        let simulation = self.windows.of(&model, &one_each.join("+"))?;
        let usual = PairsQuestion::default();
        Ok(PairsRequest {
            question: PairsQuestion {
                budget: self.budget.unwrap_or(usual.budget),
                confidence: self.confidence,
                seed: self.seed,
                lengths: Lengths::Equal,
            },
            programs: PairedPrograms::Simulated(simulation),
            level: self.level.clone(),
            cpus: self.cpus.clone(),
        })
    }
}

/// The JSON document of an answer.
pub(crate) fn json(answer: &PairsAnswer, named: Option<&Path>) -> anyhow::Result<Value> {
    Ok(serde_json::to_value(PairsJson::new(answer, Files::of_store(named)))?)
}

/// Prints what the records of pairs show.
pub(crate) fn print_answer(
    answer: &PairsAnswer,
    named: Option<&Path>,
    json: bool,
) -> anyhow::Result<()> {
    let files = Files::of_store(named);
    if json {
        return output::print_json(&PairsJson::new(answer, files));
    }
    output::print(&text::text(answer, files, output::width()))
}
