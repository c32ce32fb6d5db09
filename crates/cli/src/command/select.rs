//! `pinwise select`: which of the ready programs run together, and where.

use super::place::{self, Measured, SimulationArguments, allowed};
use crate::interrupt::Interrupt;
use crate::number::whole;
use crate::output::{self, Interrupted, Usage};
use crate::request::{Selected, Simulation, Subject};
use crate::selection;
use anyhow::Context;
use clap::Args;
use pinwise_campaign::{CampaignInfo, CampaignState, Ending, Kind, NewCampaign, Store};
use pinwise_measure::{Effort, Setting, Testbed};
use pinwise_placement::{Budget, MixError, MixQuestion, MixSearch};
use pinwise_present::Files;
use pinwise_processor::program::Pipeline;
use pinwise_processor::{Processor, SimulatedTestbed, Window};
use pinwise_topology::{Alike, Machine, PerContext, SharingTree, Space, SpaceError};
use std::collections::BTreeMap;
use std::path::Path;

/// Find which of the ready programs to run together, and where
///
/// Draws selections and placements at random together, measures each, bounds the best selection on
/// its best placement, and measures the leaders again. Performance is the weighted speedup: the sum
/// over the instances that run of their packets/s, each divided by what the instance does alone. On
/// simulated processors, where instances can be run in any number.
#[derive(Args)]
#[command(after_help = "Examples:
  Four of six ready instances of three programs, on a simulated processor:
    pinwise select --machine ultrasparc-t2 --workload hash1_L1:2+intmul:2+hash1_Mem:2 --choose 4
  Four of eight on two of its cores:
    pinwise select --machine ultrasparc-t2 --cpus 0-15 --workload intadd:4+intmul:4 --choose 4")]
pub(crate) struct Select {
    /// The programs that are ready, each with its number of instances
    #[arg(long, value_name = "NAME:N+NAME:N")]
    workload: String,
    /// How many of the instances run together
    #[arg(long, value_name = "N", value_parser = whole::<u64>(1..=1024))]
    choose: u64,
    #[command(flatten)]
    simulation: SimulationArguments,
    /// Only these contexts
    #[arg(long, value_name = "LIST")]
    cpus: Option<String>,
    /// Measurements, at least 50, three quarters of them draws; those of the programs alone are
    /// not counted
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = whole::<u64>(50..=1_000_000))]
    budget: u64,
    /// Of every interval and of the bound
    #[arg(long, value_name = "P", default_value = "0.95", value_parser = place::confidence)]
    confidence: f64,
    /// Of all randomness
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten, next_help_heading = "Output")]
    store: crate::store::StoreArguments,
    /// Print one JSON document
    #[arg(long, help_heading = "Output")]
    json: bool,
}

/// Placements of a program alone that are tried at most, to find what it does at best.
const ALONE: usize = 200;
/// Windows of each of them.
const ALONE_WINDOWS: f64 = 4.0;

impl Select {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let Some(model) = self.simulation.model("select")? else {
            let why = "only simulated processors run ready programs in any selection: add --machine ultrasparc-t2";
            return Err(Usage(why.into()).into());
        };
        let simulation = self.simulation.of(&model, &self.workload)?;
        let interrupt = Interrupt::listen()?;
        let mut store = self.store.open()?;
        let processor = model.processor()?;
        let machine = allowed(processor.machine(), self.cpus.as_deref())?;
        let programs = simulation.programs().context("the model has no such program")?;
        let mix = MixQuestion {
            choose: self.choose as usize,
            budget: self.budget,
            confidence: self.confidence,
            seed: self.seed,
        };
        let tree = SharingTree::new(&machine, Alike::ByStructure);
        // Before anything is measured: a question that has no answer makes no campaign.
        let ready = Pipeline::workload(&programs);
        MixSearch::new(&mix, &tree, &ready).map_err(|error| match error {
            MixError::Space(SpaceError::TooManyThreads { threads, contexts, .. }) => Usage(format!(
                "the {threads} threads of {} instances do not fit on {contexts} contexts, one each: choose fewer, or allow more with --cpus",
                self.choose
            )),
            error => Usage(error.to_string()),
        })?;
        let alone = alone(&processor, &machine, &programs, &simulation, self.seed)?;
        let selected =
            Selected { mix, subject: Subject::Simulated(simulation), alone, cpus: self.cpus };
        let bed = place::ready(&selected)?;
        let mut workload = bed.testbed().workload().clone();
        workload.name = self.workload;
        let new = NewCampaign {
            kind: Kind::Select,
            parent: None,
            command: std::env::args().collect(),
            machine,
            alike: Alike::ByStructure,
            workload,
            unit: bed.testbed().unit().clone(),
            question: serde_json::to_value(&selected)?,
            seed: self.seed,
        };
        let id = store.create(&new)?;
        let info = store.get(id)?;
        conduct(&mut store, &info, &selected, bed, &interrupt, self.store.named(), self.json)
    }
}

/// What each instance does alone on the machine, in packets/s: the mean on the best of its
/// placements.
fn alone(
    processor: &Processor,
    machine: &Machine,
    programs: &[Pipeline],
    simulation: &Simulation,
    seed: u64,
) -> anyhow::Result<Vec<f64>> {
    let window = Window { cycles: simulation.cycles, starts: simulation.starts };
    let tree = SharingTree::new(machine, Alike::ByStructure);
    let mut rates: BTreeMap<&'static str, f64> = BTreeMap::new();
    for program in programs {
        if rates.contains_key(program.name()) {
            continue;
        }
        let mut bed = SimulatedTestbed::new(
            processor.clone(),
            machine.clone(),
            vec![*program],
            window,
            seed,
        )?;
        let space = Space::new(tree.clone(), bed.workload().threads.len(), PerContext::AtMost(1))?;
        let effort = Effort { windows: ALONE_WINDOWS };
        let trials: Vec<_> =
            space.classes().take(ALONE).map(|placed| (Setting::Pinned(placed), effort)).collect();
        let measured = bed.measure_all(&trials).into_iter().collect::<Result<Vec<_>, _>>()?;
        let best = measured.iter().map(|measured| measured.performance).fold(0.0, f64::max);
        rates.insert(program.name(), best);
    }
    Ok(programs.iter().map(|program| rates[program.name()]).collect())
}

/// Goes on with a selection that was interrupted or killed.
pub(crate) fn resume(
    mut store: Store,
    info: &CampaignInfo,
    selected: &Selected,
    named: Option<&Path>,
    json: bool,
) -> anyhow::Result<()> {
    if info.state == CampaignState::Finished {
        return selection::print(info, selected, &store.records(info.id)?, named, json);
    }
    let interrupt = Interrupt::listen()?;
    let bed = place::ready(selected)?;
    conduct(&mut store, info, selected, bed, &interrupt, named, json)
}

fn conduct(
    store: &mut Store,
    info: &CampaignInfo,
    selected: &Selected,
    mut bed: place::Bed,
    interrupt: &Interrupt,
    named: Option<&Path>,
    json: bool,
) -> anyhow::Result<()> {
    let tree = SharingTree::new(&info.new.machine, info.new.alike);
    let mut search = MixSearch::new(&selected.mix, &tree, &info.new.workload)?;
    let budget = Budget::Measurements(selected.mix.budget);
    let Measured { ending, records, notes } =
        place::measure(store, info, budget, &mut search, &mut bed, interrupt)?;
    output::note_all(&notes);
    let resume = format!(
        "pinwise campaign resume {}{}",
        info.id.0,
        Files { plan: None, store: named }.flag()
    );
    let kept = place::kept(records.len());
    match ending {
        Ending::Finished(_) => {
            let outcome = search.outcome(&records);
            store.conclude(
                info.id,
                CampaignState::Finished,
                Some(&serde_json::to_value(&outcome)?),
            )?;
            selection::print(&store.get(info.id)?, selected, &records, named, json)
        }
        Ending::Interrupted => {
            store.conclude(info.id, CampaignState::Stopped, None)?;
            Err(Interrupted(format!("interrupted: {kept}; go on with: {resume}")).into())
        }
        Ending::Failed(reason) => {
            store.conclude(info.id, CampaignState::Stopped, None)?;
            anyhow::bail!("{reason} ({kept}; once the cause is gone: {resume})")
        }
    }
}
