//! `place --strategy blackbox --dry-run`: what profiling takes, on one line.

use super::Place;
use crate::events::Terminal;
use crate::output::{self, Usage};
use anyhow::Context;
use pinwise_jobs::{
    Outlook, STARTING, Subject, allowed_machine, decide_core_local, decimal, merged_level,
    simulated, virtual_time,
};
use pinwise_measure::{MeasureError, Workload};
use pinwise_placement::{SearchError, core_local};
use pinwise_prediction::{ExperimentCount, Profiling, ThreadKinds};
use pinwise_processor::program::PacketProgram;
use pinwise_topology::{Alike, Fingerprint, Machine, SharingTree};
use serde::Serialize;
use std::time::Duration;

/// What profiling takes at most, as `--json` prints it.
#[derive(Serialize)]
struct Document {
    core_local: String,
    core_local_because: String,
    /// Experiments of one instance alone, of a thread with co-runners, in all.
    base: f64,
    slowdown: f64,
    experiments: f64,
    /// On a model, of the model's time.
    seconds: f64,
    /// On a model, of this machine's time.
    seconds_here: Option<f64>,
}

/// What would be profiled.
struct Profiled {
    machine: Machine,
    workload: Workload,
    per_context: Option<usize>,
    /// How long an experiment takes; on a model, of the model's time,
    each: Duration,
    /// and how long it takes this machine.
    here: Option<Duration>,
}

impl Place {
    /// Prints the cost of profiling. Starts nothing.
    pub(super) fn print_profiling_cost(&self) -> anyhow::Result<()> {
        let Profiled { machine, workload, per_context, each, here } = self.profiled()?;
        let store = self.store.open_existing()?;
        let mut profile = self.blackbox.profile();
        decide_core_local(
            &mut profile,
            store.as_ref(),
            &Fingerprint::of(&machine),
            &mut Terminal::new(self.json),
        )?;
        profile.core_local = profile.core_local.map(|level| merged_level(&machine, level));
        let tree = SharingTree::new(&machine, Alike::ByStructure);
        let local = core_local(&tree, workload.threads.len(), &profile, per_context)
            .map_err(|error| Usage(SearchError::Local(error).to_string()))?;
        let count = ExperimentCount::new(&tree, &ThreadKinds::new(&workload), &local)
            .map_err(|error| Usage(error.to_string()))?;
        let entries = count.slowdown.ok_or_else(|| {
            Usage("too many experiments to count: give --core-local a smaller level".into())
        })?;
        let alone = decimal(&count.base);
        let company = Profiling::allowed(profile.share, alone, entries) as f64;
        let here = here.map(|here| (alone + company) * here.as_secs_f64());
        let cost = Outlook { alone, company, each: each.as_secs_f64(), here };
        if self.json {
            return output::print_json(&Document {
                core_local: local.level().name().to_owned(),
                core_local_because: profile.core_local_because,
                base: alone,
                slowdown: company,
                experiments: alone + company,
                seconds: (alone + company) * cost.each,
                seconds_here: cost.here,
            });
        }
        let because = profile.core_local_because;
        let level = local.level().name();
        output::print(&format!("{cost}; threads interfere within a {level} ({because})\n"))
    }

    fn profiled(&self) -> anyhow::Result<Profiled> {
        let request = self.request()?;
        let per_context = request.question.per_context;
        if let Subject::Simulated(simulation) = &request.subject {
            // What a run refuses is refused here.
            let bed = simulated(simulation, &request)?;
            return Ok(Profiled {
                machine: bed.testbed().machine().clone(),
                workload: bed.testbed().workload().clone(),
                per_context,
                each: virtual_time(simulation, &simulation.model.processor()?),
                here: bed.simulating(),
            });
        }
        let Some(named) = self.built_in() else {
            let name = self.subject.command_name().unwrap_or("a running program");
            return Err(Usage(MeasureError::no_profiles(name).to_string()).into());
        };
        // The model has the same threads by the same names.
        let modelled = |name| {
            PacketProgram::named(name).with_context(|| format!("there is no model of {name}"))
        };
        let named = super::subject::built_in(named)?;
        let programs = named.programs().iter().map(|program| modelled(program.name()));
        let programs: Vec<PacketProgram> = programs.collect::<anyhow::Result<_>>()?;
        let machine = pinwise_linux::machine().context("cannot read this machine's topology")?;
        Ok(Profiled {
            machine: allowed_machine(machine, self.search.cpus.as_deref())?,
            workload: PacketProgram::workload(&programs),
            per_context,
            each: STARTING + self.subject.period(),
            here: None,
        })
    }
}
