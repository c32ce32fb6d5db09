//! Programs on a simulated processor.

use super::{OpenSubject, allowed_machine, usage};
use crate::error::JobError;
use crate::placement_request::PlacementRequest;
use crate::simulation::{SimulationRequest, SmtSimulation};
use pinwise_measure::{Effort, Setting, Testbed};
use pinwise_processor::program::PacketPipeline;
use pinwise_processor::{Processor, SimulatedTestbed, SimulatedWindow};
use pinwise_smt::SmtTestbed;
use pinwise_topology::Machine;
use std::time::{Duration, Instant};

impl OpenSubject for SimulatedTestbed {
    fn experiment(&self, _period: Duration) -> Option<Duration> {
        Some(self.each())
    }

    fn simulating(&self) -> Option<Duration> {
        let begin = Instant::now();
        self.clone().measure(&Setting::Unpinned, Effort::default()).ok()?;
        Some(begin.elapsed())
    }
}

/// The program of a request.
pub(super) fn open(
    simulation: &SimulationRequest,
    request: &PlacementRequest,
) -> Result<SimulatedTestbed, JobError> {
    let SimulatedParts { processor, machine, programs, window } =
        parts(simulation, request.cpus.as_deref())?;
    SimulatedTestbed::new(processor, machine, programs, window, request.question.seed)
        .map_err(usage)
}

/// Ready programs. Only some of them run together. `alone`: the performance of each alone.
pub(crate) fn open_ready(
    simulation: &SimulationRequest,
    cpus: Option<&str>,
    alone: Vec<f64>,
    seed: u64,
) -> Result<SimulatedTestbed, JobError> {
    let SimulatedParts { processor, machine, programs, window } = parts(simulation, cpus)?;
    SimulatedTestbed::of_ready(processor, machine, programs, alone, window, seed).map_err(usage)
}

/// Programs beside each other, one instance of each.
pub(crate) fn open_pairs(
    simulation: &SimulationRequest,
    cpus: Option<&str>,
    seed: u64,
) -> Result<SimulatedTestbed, JobError> {
    let SimulatedParts { processor, machine, programs, window } = parts(simulation, cpus)?;
    SimulatedTestbed::of_pairs(processor, machine, programs, window, seed).map_err(usage)
}

impl OpenSubject for SmtTestbed {}

/// Programs on a simulated core of two contexts.
pub(crate) fn open_smt_core(
    simulation: &SmtSimulation,
    cpus: Option<&str>,
    seed: u64,
) -> Result<SmtTestbed, JobError> {
    let (core, programs) = simulation.parts()?;
    let window = (simulation.cycles, simulation.starts);
    let testbed = SmtTestbed::new(core, programs, window, seed).map_err(usage)?;
    // Both contexts are needed: a list that leaves one out is refused.
    allowed_machine(testbed.machine().clone(), cpus)?;
    Ok(testbed)
}

/// The parts of a simulated testbed.
struct SimulatedParts {
    processor: Processor,
    machine: Machine,
    programs: Vec<PacketPipeline>,
    window: SimulatedWindow,
}

fn parts(simulation: &SimulationRequest, cpus: Option<&str>) -> Result<SimulatedParts, JobError> {
    let processor = simulation.model.processor()?;
    let programs =
        simulation.programs().ok_or_else(|| JobError::failed("the model has no such program"))?;
    let machine = allowed_machine(processor.machine(), cpus)?;
    let window = SimulatedWindow { cycles: simulation.cycles, starts: simulation.starts };
    Ok(SimulatedParts { processor, machine, programs, window })
}
