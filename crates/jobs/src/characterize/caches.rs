//! Measures how much of each cache one context gets, as a part of a characterization.

use super::{CharacterizePart, no_workload, outlook};
use crate::campaign_run::{EndContext, answered, measure_on, unanswered};
use crate::error::JobError;
use crate::events::Events;
use crate::job::Caller;
use crate::open_subject::OnNodes;
use crate::stored_campaign;
use pinwise_campaign::{
    CampaignInfo, CampaignState, Kind, NewCampaign, Purpose, Record, Step, Store, Strategy, Trial,
};
use pinwise_hardware::HostBench;
use pinwise_measure::{
    Bench, Detail, Effort, MeasureError, Measurement, Setting, Testbed, Unit, WorkingSets, Workload,
};
use pinwise_placement::Budget;
use pinwise_present::Notice;
use pinwise_topology::{CpuId, Machine};
use std::time::Instant;

/// Measures how much the first context gets of its caches. This is a part of the campaign `info`.
/// If the part has been measured, reads it. Where there are `nodes`, one of them looks.
pub(super) fn look_at_caches(
    host: &HostBench,
    nodes: Option<&mut OnNodes>,
    info: &CampaignInfo,
    caller: &Caller,
    store: &mut Store,
    events: &mut dyn Events,
) -> Result<WorkingSets, JobError> {
    let part = stored_campaign::part_for(store, info, &CharacterizePart::Caches, |new| {
        Ok(NewCampaign { kind: Kind::Caches, ..new })
    })?;
    if let Some(found) = stored_campaign::conclusion(&part)? {
        return Ok(found);
    }
    let _lock = store.lock(part.id)?;
    outlook(events, &Notice::MeasuringCaches)?;
    let mut own = Caches::new(host);
    let testbed: &mut dyn Testbed = match nodes {
        Some(nodes) => nodes,
        None => &mut own,
    };
    let (mut strategy, budget) = (Look(host.first()), Budget::Measurements(1));
    let measured = measure_on(store, &part, budget, &mut strategy, testbed, caller, events)?;
    let found = measured.records.iter().rev().find_map(looked);
    let Some(found) = found else {
        return Err(unanswered(
            store,
            part.id,
            measured.ending,
            EndContext::after(&measured.records),
        )?);
    };
    answered(store, part.id, CampaignState::Finished, &found)?;
    Ok(found)
}

/// The working sets that a look found.
fn looked(record: &Record) -> Option<WorkingSets> {
    record.outcome.as_ref().ok()?.detail.as_ref()?.read().ok()
}

/// Looks at the caches of a context once.
struct Look(CpuId);

impl Strategy for Look {
    fn step(&mut self, history: &[Record]) -> Step {
        match history.last().map(|record| &record.outcome) {
            None => Step::Measure(Trial {
                setting: Setting::Caches(self.0),
                purpose: Purpose::Other,
                effort: Effort::default(),
            }),
            Some(Err(error)) => Step::Fail(error.message.clone()),
            Some(Ok(_)) => Step::Stop,
        }
    }
}

/// The caches of this machine as a testbed.
pub(super) struct Caches<'a> {
    host: &'a HostBench,
    workload: Workload,
    unit: Unit,
}

impl<'a> Caches<'a> {
    pub(super) fn new(host: &'a HostBench) -> Self {
        Self { host, workload: no_workload(), unit: Unit::cost(host.unit().name()) }
    }
}

impl Testbed for Caches<'_> {
    fn machine(&self) -> &Machine {
        self.host.machine()
    }

    fn workload(&self) -> &Workload {
        &self.workload
    }

    fn unit(&self) -> &Unit {
        &self.unit
    }

    /// The performance is that of a load from the largest working set.
    fn measure(&mut self, setting: &Setting, _: Effort) -> Result<Measurement, MeasureError> {
        if *setting != Setting::Caches(self.host.first()) {
            return Err(MeasureError::unsupported(&self.workload.name, setting));
        }
        let begin = Instant::now();
        let found = self.host.look_at_caches()?;
        let performance = found.curve.last().map_or(0.0, |largest| 1.0 / largest.ns);
        let detail = Detail::of(&found);
        Ok(Measurement { performance, duration: begin.elapsed(), spread: None, detail })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_caches_are_looked_at_once() {
        let cpu = CpuId(0);
        let mut look = Look(cpu);
        let Step::Measure(trial) = look.step(&[]) else { panic!() };
        assert_eq!(trial.setting, Setting::Caches(cpu));
        let found = WorkingSets { curve: Vec::new(), caches: Vec::new() };
        let measured = Measurement {
            performance: 0.5,
            duration: Duration::ZERO,
            spread: None,
            detail: Detail::of(&found),
        };
        let record = Record { number: 0, trial, outcome: Ok(measured), elapsed: Duration::ZERO };
        assert_eq!(look.step(std::slice::from_ref(&record)), Step::Stop);
        assert_eq!(looked(&record), Some(found));
    }
}
