//! Which of the ready programs run together, and where.

use crate::campaign_run::{conclude, measure};
use crate::error::JobError;
use crate::events::Events;
use crate::job::{Caller, Job};
use crate::open_subject::{OpenSubject, allowed_machine, open_ready};
use crate::request::{SelectRequest, Simulation};
use crate::stored;
use crate::summary::Summary;
use pinwise_campaign::{CampaignInfo, Kind, NewCampaign, Store};
use pinwise_measure::{Effort, Setting, Testbed};
use pinwise_placement::{Budget, MixError, MixOutcome, MixSearch};
use pinwise_processor::program::PacketProgram;
use pinwise_processor::{Processor, SimulatedTestbed, Window};
use pinwise_topology::{Alike, Machine, PerContext, SharingTree, Space, SpaceError};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Which of the ready programs run together.
#[derive(Clone, Debug)]
pub struct SelectAnswer {
    /// The campaign.
    pub campaign: CampaignInfo,
    /// The question.
    pub request: SelectRequest,
    /// What was found so far.
    pub outcome: MixOutcome,
}

/// Placements of a program alone that are tried at most, to find what it does at best.
const ALONE: usize = 200;
/// Windows of each of them.
const ALONE_WINDOWS: f64 = 4.0;

impl Job for SelectRequest {
    const KIND: Kind = Kind::Select;
    type Answer = SelectAnswer;
    type Ready = (SelectRequest, SimulatedTestbed);

    fn prepare(
        mut self,
        caller: &Caller,
        _: &Store,
        _: &mut dyn Events,
    ) -> Result<(NewCampaign, Self::Ready), JobError> {
        let simulation = self.simulation()?.clone();
        let processor = simulation.model.processor()?;
        let machine = allowed_machine(processor.machine(), self.cpus.as_deref())?;
        let programs = simulation
            .programs()
            .ok_or_else(|| JobError::failed("the model has no such program"))?;
        let tree = SharingTree::new(&machine, Alike::ByStructure);
        let ready = PacketProgram::workload(&programs);
        MixSearch::new(&self.mix, &tree, &ready).map_err(|error| match error {
            MixError::Space(SpaceError::TooManyThreads { threads, contexts, .. }) => {
                JobError::Usage(format!(
                    "the {threads} threads of {} instances do not fit on {contexts} contexts, one \
                     each: choose fewer instances, or allow more contexts with --cpus",
                    self.mix.choose
                ))
            }
            error => JobError::usage(error),
        })?;
        self.alone = alone(&processor, &machine, &programs, &simulation, self.mix.seed)?;
        let testbed = open_ready(&self)?;
        let mut workload = testbed.workload().clone();
        if let Some(name) = &self.name {
            workload.name.clone_from(name);
        }
        let new = NewCampaign {
            kind: Self::KIND,
            parent: None,
            command: caller.command.clone(),
            machine,
            alike: Alike::ByStructure,
            workload,
            unit: testbed.unit().clone(),
            question: serde_json::to_value(&self)?,
            seed: self.mix.seed,
        };
        Ok((new, (self, testbed)))
    }

    fn reopen(info: &CampaignInfo, _: &Caller, _: &Store) -> Result<Self::Ready, JobError> {
        let request: Self = stored::question(info)?;
        let testbed = open_ready(&request)?;
        Ok((request, testbed))
    }

    fn conduct(
        (request, mut testbed): Self::Ready,
        info: &CampaignInfo,
        caller: &Caller,
        store: &mut Store,
        events: &mut dyn Events,
    ) -> Result<SelectAnswer, JobError> {
        let tree = SharingTree::new(&info.new.machine, info.new.alike);
        let mut search = MixSearch::new(&request.mix, &tree, &info.new.workload)?;
        let budget = Budget::Measurements(request.mix.budget);
        let measured = measure(store, info, budget, &mut search, &mut testbed, caller, events)?;
        let outcome =
            conclude(store, info.id, measured, &testbed as &dyn OpenSubject, |records, _| {
                search.outcome(records)
            })?;
        Ok(SelectAnswer { campaign: store.get(info.id)?, request, outcome })
    }

    fn answer(info: &CampaignInfo, _: &Caller, store: &Store) -> Result<SelectAnswer, JobError> {
        let request: Self = stored::question(info)?;
        let tree = SharingTree::new(&info.new.machine, info.new.alike);
        let search = MixSearch::new(&request.mix, &tree, &info.new.workload)?;
        let outcome = search.outcome(&store.records(info.id)?);
        Ok(SelectAnswer { campaign: info.clone(), request, outcome })
    }

    fn summary(conclusion: &Value) -> Option<Summary> {
        let best = MixOutcome::deserialize(conclusion).ok()?.best?;
        Some(Summary::Select { speedup: best.performance.mean })
    }
}

/// What each instance does alone on the machine, in packets/s: the mean on the best of its
/// placements.
fn alone(
    processor: &Processor,
    machine: &Machine,
    programs: &[PacketProgram],
    simulation: &Simulation,
    seed: u64,
) -> Result<Vec<f64>, JobError> {
    let window = Window { cycles: simulation.cycles, starts: simulation.starts };
    let tree = SharingTree::new(machine, Alike::ByStructure);
    let mut rates: BTreeMap<&'static str, f64> = BTreeMap::new();
    for program in programs {
        if rates.contains_key(program.name()) {
            continue;
        }
        let mut testbed = SimulatedTestbed::new(
            processor.clone(),
            machine.clone(),
            vec![*program],
            window,
            seed,
        )?;
        let space =
            Space::new(tree.clone(), testbed.workload().threads.len(), PerContext::AtMost(1))?;
        let effort = Effort { windows: ALONE_WINDOWS };
        let trials: Vec<_> =
            space.classes().take(ALONE).map(|placed| (Setting::Pinned(placed), effort)).collect();
        let measured = testbed.measure_all(&trials).into_iter().collect::<Result<Vec<_>, _>>()?;
        let best = measured.iter().map(|measured| measured.performance).fold(0.0, f64::max);
        rates.insert(program.name(), best);
    }
    Ok(programs.iter().map(|program| rates[program.name()]).collect())
}
