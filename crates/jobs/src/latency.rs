//! The job that measures latency: how far the contexts of this machine are apart.

use crate::campaign_run::{EndContext, conclude, measure_on};
use crate::error::JobError;
use crate::events::Events;
use crate::job::{Caller, Job};
use crate::resume_check::check_machine;
use crate::stored_campaign;
use pinwise_campaign::{
    CampaignInfo, Kind, NewCampaign, Purpose, Record, Step, Store, Strategy, Trial, settled,
};
use pinwise_hardware::{DirectedLatency, Latencies, LatencyRunError, TickRate, directed_latency};
use pinwise_measure::{
    Detail, Effort, Interrupt, MeasureError, Measurement, Retry, Setting, Testbed, Unit, Workload,
};
use pinwise_placement::Budget;
use pinwise_present::{Files, LatencyFindings, Planned, Summary, Unfinished};
use pinwise_topology::{Alike, CpuId, CpuSet, LatencyLevels, Machine};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::{Duration, Instant};

/// The seed of the order of pairs.
const SEED: u64 = 1;

/// How far contexts are apart: the question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatencyRequest {
    /// The contexts, at least two.
    pub contexts: CpuSet,
}

/// The answer of `latency`: the time of a transfer between each two contexts, so far.
#[derive(Clone, Debug)]
pub struct LatencyAnswer {
    /// The campaign.
    pub campaign: CampaignInfo,
    /// The latencies measured so far.
    pub latencies: Latencies,
    /// The directions that are asked for.
    pub planned: u64,
}

impl LatencyAnswer {
    /// How far the campaign is; `None` if it has ended.
    pub fn unfinished(&self, files: Files<'_>) -> Option<Unfinished> {
        let made = self.latencies.directions.len() as u64;
        Unfinished::of(&self.campaign, made, Planned::Exactly(self.planned), "direction", files)
    }

    /// What follows from the latencies, compared with what `declared` declares.
    ///
    /// # Errors
    /// Nothing is measured yet.
    pub fn findings(
        &self,
        declared: Option<&Machine>,
        files: Files<'_>,
    ) -> Result<LatencyFindings, JobError> {
        let unfinished = self.unfinished(files);
        if self.latencies.contexts.len() < 2 {
            let far = unfinished.map_or(String::new(), |far| format!(". {}", far.text));
            let id = self.campaign.id.0;
            return Err(JobError::failed(format!("campaign {id} has no latency yet{far}")));
        }
        let matrix = self.latencies.matrix().map_err(JobError::failed)?;
        Ok(LatencyFindings::new(matrix, unfinished, declared))
    }
}

impl Job for LatencyRequest {
    const KIND: Kind = Kind::Latency;
    type Answer = LatencyAnswer;
    /// The order of the pairs.
    type Prepared = Vec<(CpuId, CpuId)>;

    fn prepare(
        self,
        caller: &Caller,
        _: &Store,
        _: &mut dyn Events,
    ) -> Result<(NewCampaign, Self::Prepared), JobError> {
        let order = Latencies::order(&self.contexts, SEED).map_err(JobError::usage)?;
        let new = NewCampaign {
            kind: Self::KIND,
            parent: None,
            command: caller.command.clone(),
            machine: pinwise_linux::this_machine()?,
            alike: Alike::ByStructure,
            workload: Workload::new("core-to-core latency", &[]),
            unit: Unit::cost("ns"),
            simulated: false,
            question: serde_json::to_value(&self)?,
            seed: SEED,
        };
        Ok((new, order))
    }

    fn reopen(
        info: &CampaignInfo,
        _: &Caller,
        _: &Store,
        _: &mut dyn Events,
    ) -> Result<Self::Prepared, JobError> {
        let request: Self = stored_campaign::question(info)?;
        let now = pinwise_linux::this_machine()?;
        let missing = request.contexts.difference(&now.allowed);
        if !missing.is_empty() {
            return Err(JobError::failed(format!(
                "campaign {}: CPU {missing} may no longer be used; allow it again (cpuset, \
                 affinity), or start a new one",
                info.id.0
            )));
        }
        check_machine(info, &Machine { allowed: info.new.machine.allowed.clone(), ..now })?;
        Latencies::order(&request.contexts, SEED).map_err(JobError::usage)
    }

    fn conduct(
        order: Self::Prepared,
        info: &CampaignInfo,
        caller: &Caller,
        store: &mut Store,
        events: &mut dyn Events,
    ) -> Result<LatencyAnswer, JobError> {
        let ticks = TickRate::begin();
        let planned = order.len() as u64;
        let budget = Budget::Measurements(planned);
        let mut testbed = Contexts::new(info.new.machine.clone(), caller.interrupt.clone());
        let mut strategy = InOrder(order);
        let measured =
            measure_on(store, info, budget, &mut strategy, &mut testbed, caller, events)?;
        let latencies = conclude(store, info.id, measured, EndContext::default(), |records, _| {
            latencies(records, ticks.ghz())
        })?;
        Ok(LatencyAnswer { campaign: store.get(info.id)?, latencies, planned })
    }

    fn answer(info: &CampaignInfo, _: &Caller, store: &Store) -> Result<LatencyAnswer, JobError> {
        let latencies = match stored_campaign::conclusion(info)? {
            Some(concluded) => concluded,
            None => latencies(&store.records(info.id)?, None),
        };
        let request: Self = stored_campaign::question(info)?;
        let order = Latencies::order(&request.contexts, SEED).map_err(JobError::usage)?;
        Ok(LatencyAnswer { campaign: info.clone(), latencies, planned: order.len() as u64 })
    }

    fn summary(conclusion: &Value) -> Option<Summary> {
        let matrix = Latencies::deserialize(conclusion).ok()?.matrix().ok()?;
        Some(Summary::Latency { levels: LatencyLevels::of(&matrix).levels.len() })
    }
}

/// The latencies that records hold.
fn latencies(records: &[Record], tsc_ghz: Option<f64>) -> Latencies {
    let measured = records.iter().filter_map(|record| record.outcome.as_ref().ok());
    let directions = measured
        .filter_map(|measurement| measurement.detail.as_ref()?.read::<DirectedLatency>().ok());
    let elapsed = records.last().map_or(Duration::ZERO, |record| record.elapsed);
    Latencies::new(directions.collect(), tsc_ghz, elapsed)
}

/// One direction after the other.
struct InOrder(Vec<(CpuId, CpuId)>);

impl Strategy for InOrder {
    fn step(&mut self, history: &[Record]) -> Step {
        match self.0.get(settled(history).count()) {
            Some(&(from, to)) => Step::Measure(Trial {
                setting: Setting::Pair(from, to),
                purpose: Purpose::Other,
                effort: Effort::default(),
            }),
            None => Step::Stop,
        }
    }
}

/// The contexts of this machine, with two threads of pinwise's own between them.
struct Contexts {
    machine: Machine,
    workload: Workload,
    unit: Unit,
    cancelled: Interrupt,
}

impl Contexts {
    fn new(machine: Machine, cancelled: Interrupt) -> Self {
        let workload = Workload::new("latency", &[]);
        Self { machine, workload, unit: Unit::cost("ns"), cancelled }
    }
}

impl Testbed for Contexts {
    fn machine(&self) -> &Machine {
        &self.machine
    }

    fn workload(&self) -> &Workload {
        &self.workload
    }

    fn unit(&self) -> &Unit {
        &self.unit
    }

    fn measure(&mut self, setting: &Setting, _: Effort) -> Result<Measurement, MeasureError> {
        let Setting::Pair(from, to) = *setting else {
            return Err(MeasureError::unsupported("core-to-core latency", setting));
        };
        let begin = Instant::now();
        let direction =
            directed_latency(from, to, &self.cancelled).map_err(|error| match error {
                LatencyRunError::Interrupted => MeasureError::interrupted(),
                error => MeasureError::new(Retry::Never, error.to_string()),
            })?;
        // No batch came to its end if time ran out.
        let performance = direction.quantiles().map_or(0.0, |quantiles| 1.0 / quantiles.median);
        Ok(Measurement {
            performance,
            duration: begin.elapsed(),
            spread: None,
            detail: Detail::of(&direction),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_campaign::{Ending, MemoryJournal, drive};

    /// Every direction takes as many nanoseconds as its ends are apart.
    struct Ruler(Contexts);

    impl Testbed for Ruler {
        fn machine(&self) -> &Machine {
            &self.0.machine
        }
        fn workload(&self) -> &Workload {
            &self.0.workload
        }
        fn unit(&self) -> &Unit {
            &self.0.unit
        }
        fn measure(&mut self, setting: &Setting, _: Effort) -> Result<Measurement, MeasureError> {
            let Setting::Pair(from, to) = *setting else { panic!("{setting:?}") };
            let ns = f64::from(from.0.abs_diff(to.0));
            let direction = DirectedLatency { from, to, lines: vec![vec![ns; 3]], waited: 0.0 };
            let (duration, detail) = (Duration::from_millis(1), Detail::of(&direction));
            Ok(Measurement { performance: 1.0 / ns, duration, spread: None, detail })
        }
    }

    #[test]
    fn a_direction_whose_tries_all_failed_is_left_out_alone() {
        let order = vec![(CpuId(0), CpuId(1)), (CpuId(1), CpuId(0))];
        let mut strategy = InOrder(order);
        let Step::Measure(trial) = strategy.step(&[]) else { panic!() };
        let failed = |number| Record {
            number,
            trial: trial.clone(),
            outcome: Err(MeasureError::new(Retry::Same, "no number")),
            elapsed: Duration::ZERO,
        };
        let next = strategy.step(&[0, 1, 2].map(failed));
        assert!(
            matches!(
                &next,
                Step::Measure(next) if next.setting == Setting::Pair(CpuId(1), CpuId(0))
            ),
            "{next:?}"
        );
    }

    #[test]
    fn a_run_that_is_stopped_anywhere_goes_on_to_the_same_matrix() {
        let machine = Machine::from_shape("4").unwrap();
        let order = Latencies::order(&machine.allowed, SEED).unwrap();
        assert_eq!(order.len(), 12);
        let ruler = || Ruler(Contexts::new(machine.clone(), Interrupt::default()));
        let go = |journal: &mut MemoryJournal, most: usize| {
            let made = std::cell::Cell::new(journal.records.len());
            let stop = || made.get() >= most;
            let mut count = |_: &Record| made.set(made.get() + 1);
            let mut strategy = InOrder(order.clone());
            drive(journal, &mut strategy, &mut ruler(), &|| Duration::ZERO, &stop, &mut count)
                .unwrap()
        };
        let whole = latencies(&go(&mut MemoryJournal::default(), usize::MAX).1, None);
        assert_eq!(whole.matrix().unwrap().get(0, 3), Some(3.0));
        for stopped in 0..order.len() {
            let mut journal = MemoryJournal::default();
            assert_eq!(go(&mut journal, stopped).0, Ending::Interrupted);
            let partial = latencies(&journal.records, None);
            assert_eq!(partial.directions.len(), stopped);
            let (ending, records) = go(&mut journal, usize::MAX);
            assert_eq!(ending, Ending::Finished);
            assert_eq!(latencies(&records, None), whole, "stopped after {stopped}");
        }
    }
}
