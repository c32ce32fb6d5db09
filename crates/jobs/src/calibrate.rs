//! Derives the thresholds of the published search (Thread Reinforcer) from three example programs.
//!
//! It probes each example with growing numbers of threads, as the paper did. The paper's examples
//! were fluidanimate, facesim and blackscholes on small inputs. A threshold is where the
//! characteristic that the example shows begins to rise fast ([`pinwise_threads::calibrate`]). The
//! probes of each example are a part of the campaign.

use crate::campaign_run::{EndContext, answered, as_parent_error, conclude, measure_on};
use crate::error::{Failure, JobError, Remedy};
use crate::events::{Events, note};
use crate::job::{Caller, Job};
use crate::resume_check::check_machine;
use crate::stored_campaign;
use crate::threads::{platform, probed, seen};
use pinwise_campaign::{
    CampaignInfo, CampaignState, Kind, NewCampaign, Parent, Purpose, Record, Step, Store, Strategy,
    Trial,
};
use pinwise_measure::{
    Effort, MeasureError, Probed, SchedulingProfile, Setting, ThreadCount, Unit, Workload,
};
use pinwise_placement::Budget;
use pinwise_present::{Files, Notice, Planned, Summary, Unfinished};
use pinwise_programs::{CommandTemplate, LinuxProber, ProbeOptions, ProbedProgram};
use pinwise_scheduler::{ModelProber, ModelProgram};
use pinwise_threads::{Example, ProfilesByNumber, ThreadRange, ThreadsNote, Thresholds, calibrate};
use pinwise_topology::{Alike, Machine};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;

/// The paper's examples, in the order of [`Example::ALL`].
const PAPER: [&str; 3] = ["fluidanimate", "facesim", "blackscholes"];
/// The share of an iteration's work that the small inputs of the examples have. It is the ratio of
/// fluidanimate's particles in simlarge and native (300,000 to 500,000), taken for all three.
const SMALL: f64 = 0.6;

/// The seed of the programs on a model.
const SEED: u64 = 1000;

/// How long an example may run.
const LIMIT: Duration = Duration::from_secs(60);

/// Asks for the thresholds of the published search, from three example programs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CalibrationRequest {
    /// The programs.
    pub examples: CalibrationExamples,
    /// The largest number of threads. `None`: three times the contexts, as in the paper.
    pub max: Option<u32>,
    /// The step of the searches that the thresholds are for, at least 2. `None`: a third of the
    /// contexts, at least 2.
    pub step: Option<u32>,
    /// How often each number is probed, at least once. The mean counts.
    pub rounds: u32,
    /// The length of a probe.
    pub probe: Duration,
}

/// The example programs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CalibrationExamples {
    /// Three shell commands with `{n}` in them, in the order of [`Example::ALL`].
    Commands([String; 3]),
    /// The paper's programs on a modelled machine.
    Modelled {
        /// The machine, as typed.
        name: String,
        /// The machine.
        machine: Box<Machine>,
    },
}

/// The thresholds of a machine, and their campaign.
#[derive(Clone, Debug)]
pub struct CalibrationAnswer {
    /// The campaign.
    pub campaign: CampaignInfo,
    /// The question, with every default decided.
    pub request: CalibrationRequest,
    /// The step of the searches, in threads.
    pub step: u32,
    /// Contexts of the machine.
    pub contexts: u32,
    /// The curve of each example, as far as it was probed. An entry has the example's purpose, its
    /// program, and the means of the rounds.
    pub examples: Vec<(Example, String, ProfilesByNumber)>,
    /// The thresholds. `None`: not every example was probed, or one shows no rise.
    pub thresholds: Option<Thresholds>,
}

impl CalibrationAnswer {
    /// How many numbers of threads are probed, of all examples; `None` if the campaign has ended.
    pub fn unfinished(&self, files: Files<'_>) -> Option<Unfinished> {
        let probed: usize = self.examples.iter().map(|(.., curve)| curve.0.len()).sum();
        let each = self.request.numbers(&self.campaign.new.machine).len();
        let all = Planned::Exactly((each * self.examples.len()) as u64);
        Unfinished::of(&self.campaign, probed as u64, all, "number", files)
    }
}

impl Job for CalibrationRequest {
    const KIND: Kind = Kind::Calibrate;
    type Answer = CalibrationAnswer;
    /// The question, with every default decided.
    type Prepared = Self;

    fn prepare(
        self,
        caller: &Caller,
        _: &Store,
        _: &mut dyn Events,
    ) -> Result<(NewCampaign, Self), JobError> {
        let machine = match &self.examples {
            CalibrationExamples::Commands(commands) => {
                commands.iter().try_for_each(|command| template(command).map(drop))?;
                pinwise_linux::this_machine()
                    .map_err(|error| JobError::from(error).context("cannot read the topology"))?
            }
            CalibrationExamples::Modelled { name, machine } => {
                platform(name, machine)?.0.machine().clone()
            }
        };
        let range = self.range(&machine);
        let (max, step) = (Some(range.max), Some(range.step));
        let decided = Self { max, step, rounds: self.rounds.max(1), ..self };
        decided.check(&machine)?;
        let new = NewCampaign {
            kind: Self::KIND,
            parent: None,
            command: caller.command.clone(),
            machine,
            alike: Alike::ExceptNuma,
            workload: Workload { name: "calibration examples".into(), threads: Vec::new() },
            // Known from the first measurement of an example on.
            unit: Unit::rate("1/s"),
            simulated: matches!(decided.examples, CalibrationExamples::Modelled { .. }),
            question: serde_json::to_value(&decided)?,
            seed: SEED,
        };
        Ok((new, decided))
    }

    fn reopen(
        info: &CampaignInfo,
        _: &Caller,
        _: &Store,
        _: &mut dyn Events,
    ) -> Result<Self, JobError> {
        let request: Self = stored_campaign::question(info)?;
        if let CalibrationExamples::Commands(_) = request.examples {
            check_machine(info, &pinwise_linux::this_machine()?)?;
        }
        Ok(request)
    }

    fn conduct(
        request: Self,
        info: &CampaignInfo,
        caller: &Caller,
        store: &mut Store,
        events: &mut dyn Events,
    ) -> Result<CalibrationAnswer, JobError> {
        if let CalibrationExamples::Modelled { name, machine } = &request.examples
            && platform(name, machine)?.1
        {
            note(events, Notice::Threads(ThreadsNote::SharedCores))?;
        }
        match request.thresholds(info, caller, store, events) {
            Ok(found) => answered(store, info.id, CampaignState::Finished, &found)?,
            Err(error) => return Err(as_parent_error(error, store, info.id)?),
        }
        Self::answer(&store.get(info.id)?, caller, store)
    }

    fn answer(
        info: &CampaignInfo,
        _: &Caller,
        store: &Store,
    ) -> Result<CalibrationAnswer, JobError> {
        let request: Self = stored_campaign::question(info)?;
        let curve = |example: Example| {
            let records = match stored_campaign::part(store, &Parent::new(info.id, &example))? {
                Some(part) => store.records(part.id)?,
                None => Vec::new(),
            };
            Ok((example, request.program(example).to_owned(), request.curve(info, &records)?))
        };
        let examples = Example::ALL.into_iter().map(curve).collect::<Result<_, JobError>>()?;
        Ok(CalibrationAnswer {
            campaign: info.clone(),
            step: request.range(&info.new.machine).step,
            contexts: request.contexts(&info.new.machine),
            request,
            examples,
            thresholds: stored_campaign::conclusion(info)?,
        })
    }

    fn summary(conclusion: &Value) -> Option<Summary> {
        let thresholds = Thresholds::deserialize(conclusion).ok()?;
        Some(Summary::Calibrate { lock: thresholds.lock })
    }
}

fn template(command: &str) -> Result<CommandTemplate, JobError> {
    CommandTemplate::new(["sh", "-c", command].map(str::to_owned).to_vec(), &[], None)
        .map_err(JobError::usage)
}

impl CalibrationRequest {
    fn contexts(&self, machine: &Machine) -> u32 {
        let contexts = match self.examples {
            CalibrationExamples::Commands(_) => machine.allowed.len(),
            CalibrationExamples::Modelled { .. } => machine.contexts.len(),
        };
        contexts as u32
    }

    fn range(&self, machine: &Machine) -> ThreadRange {
        let published = ThreadRange::published_on(self.contexts(machine));
        let step = self.step.unwrap_or(published.step);
        ThreadRange { min: step, max: self.max.unwrap_or(published.max).max(step), step }
    }

    /// The numbers of threads that each example is probed with: one, and every half step up to the
    /// most.
    fn numbers(&self, machine: &Machine) -> Vec<u32> {
        let ThreadRange { max, step, .. } = self.range(machine);
        let half = (step / 2).max(1);
        let mut numbers: Vec<u32> =
            std::iter::once(1).chain((half..=max).step_by(half as usize)).collect();
        numbers.dedup();
        numbers
    }

    /// Requires four probed numbers up to the contexts, for VCX_RATE, and four from there on, for
    /// MIGR_RATE. Fewer do not show where a rate begins to rise fast.
    fn check(&self, machine: &Machine) -> Result<(), JobError> {
        let (numbers, contexts) = (self.numbers(machine), self.contexts(machine));
        let within = numbers.iter().filter(|&&threads| threads <= contexts).count();
        if within < 4 {
            return Err(JobError::Usage(format!(
                "VCX_RATE needs at least four numbers up to the number of contexts ({contexts}), \
                 and has {within}; use a smaller --step, or a machine with four contexts or more"
            )));
        }
        let beyond = numbers.iter().filter(|&&threads| threads >= contexts).count();
        if beyond < 4 {
            return Err(JobError::Usage(format!(
                "MIGR_RATE needs at least four numbers from the number of contexts ({contexts}) \
                 up, and has {beyond}; raise --max or lower --step"
            )));
        }
        Ok(())
    }

    fn program(&self, example: Example) -> &str {
        match &self.examples {
            CalibrationExamples::Commands(commands) => &commands[example as usize],
            CalibrationExamples::Modelled { .. } => PAPER[example as usize],
        }
    }

    /// Probes every example that was not probed yet.
    fn thresholds(
        &self,
        info: &CampaignInfo,
        caller: &Caller,
        store: &mut Store,
        events: &mut dyn Events,
    ) -> Result<Thresholds, JobError> {
        let mut probed = |example| self.probed(example, info, caller, store, events);
        let [locks, switches, parallelism] = Example::ALL;
        let curves = [probed(locks)?, probed(switches)?, probed(parallelism)?];
        let [locks, switches, parallelism] = &curves;
        let machine = &info.new.machine;
        let (range, contexts) = (self.range(machine), self.contexts(machine));
        calibrate(range, contexts, locks, switches, parallelism).map_err(|error| {
            let (reason, remedy) = (error.to_string(), Remedy::AskAgain);
            JobError::Failed(Failure { reason, kept: None, remedy })
        })
    }

    /// Probes an example in a part of the campaign `info`, or reads the part if it has been
    /// measured.
    fn probed(
        &self,
        example: Example,
        info: &CampaignInfo,
        caller: &Caller,
        store: &mut Store,
        events: &mut dyn Events,
    ) -> Result<ProfilesByNumber, JobError> {
        let part = stored_campaign::part_for(store, info, &example, |new| {
            let workload = Workload { name: self.program(example).into(), threads: Vec::new() };
            Ok(NewCampaign { kind: Kind::Example, workload, ..new })
        })?;
        let known = store.records(part.id)?;
        if part.state == CampaignState::Finished {
            return self.curve(info, &known);
        }
        let _lock = store.lock(part.id)?;
        let machine = &info.new.machine;
        let mut rounds = ProbeRounds { parameters: self.numbers(machine), rounds: self.rounds };
        let budget = Budget::Measurements(rounds.parameters.len() as u64 * u64::from(self.rounds));
        let measured = match &self.examples {
            CalibrationExamples::Commands(_) => {
                let options = ProbeOptions {
                    contexts: self.contexts(machine),
                    window: self.probe,
                    limit: LIMIT,
                    ..ProbeOptions::default()
                };
                let program = ProbedProgram::Anew(template(self.program(example))?);
                let interrupt = caller.interrupt.clone();
                let mut prober = LinuxProber::new(machine.clone(), program, options, interrupt)
                    .map_err(JobError::failed)?
                    .after(seen(&known));
                measure_on(store, &part, budget, &mut rounds, &mut prober, caller, events)?
            }
            CalibrationExamples::Modelled { name, machine } => {
                let mut program =
                    ModelProgram::built_in(self.program(example)).map_err(JobError::failed)?;
                program.fitted.work_ms *= SMALL;
                rounds.parameters.iter_mut().for_each(|n| *n = program.parameter(*n));
                let mut prober = ModelProber::new(platform(name, machine)?.0, program, SEED)
                    .watching_for(self.probe)
                    .after(known.iter().filter_map(probed))
                    .cancelled_by(caller.interrupt.clone());
                measure_on(store, &part, budget, &mut rounds, &mut prober, caller, events)?
            }
        };
        if let Some(unit) = unit(&measured.records) {
            store.learn(part.id, &part.new.workload, &unit)?;
        }
        let curve = self.curve(info, &measured.records)?;
        let ends = EndContext::after(&measured.records);
        conclude(store, part.id, measured, ends, |_, _| curve)
    }

    /// The mean of each number whose rounds are complete, from the records of an example.
    fn curve(&self, info: &CampaignInfo, records: &[Record]) -> Result<ProfilesByNumber, JobError> {
        let rounds = f64::from(self.rounds);
        let measured: Vec<_> =
            records.iter().filter_map(|record| record.outcome.as_ref().ok()).collect();
        let mean = |(threads, measured): (u32, &[&_])| {
            let mut sum = SchedulingProfile::default();
            for measurement in measured {
                let profile = Probed::of(measurement)?.probe.profile;
                sum.lock += profile.lock / rounds;
                sum.vcx_rate += profile.vcx_rate / rounds;
                sum.migr_rate += profile.migr_rate / rounds;
                sum.cpu_util += profile.cpu_util / rounds;
            }
            Ok::<_, MeasureError>((threads, sum))
        };
        let of_numbers = measured.chunks_exact(self.rounds as usize);
        let numbers = self.numbers(&info.new.machine).into_iter();
        Ok(ProfilesByNumber(numbers.zip(of_numbers).map(mean).collect::<Result<_, _>>()?))
    }
}

/// The unit of the records.
fn unit(records: &[Record]) -> Option<Unit> {
    let mut measured = records.iter().filter_map(|record| record.outcome.as_ref().ok());
    Some(Probed::of(measured.next()?).ok()?.unit)
}

/// Probes one number after another. One that cannot be probed ends it.
struct ProbeRounds {
    /// The parameter that makes each of the numbers.
    parameters: Vec<u32>,
    rounds: u32,
}

impl Strategy for ProbeRounds {
    fn step(&mut self, history: &[Record]) -> Step {
        if let Some(Err(error)) = history.last().map(|record| &record.outcome) {
            return Step::Fail(error.message.clone());
        }
        let probes = history.iter().filter(|record| record.outcome.is_ok()).count();
        let Some(&n) = self.parameters.get(probes / self.rounds as usize) else {
            return Step::Stop;
        };
        Step::Measure(Trial {
            setting: Setting::Threads(ThreadCount::unpinned(Some(n))),
            purpose: Purpose::Other,
            effort: Effort { windows: 1.0 },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Interruption;
    use crate::events::{Event, Silent, stopping_at};
    use crate::job::{resume_job, run};
    use crate::stored_campaign::empty_store;

    fn request() -> CalibrationRequest {
        let machine = Box::new(Machine::from_shape("2x4").unwrap());
        let examples = CalibrationExamples::Modelled { name: "2x4".into(), machine };
        let probe = Duration::from_millis(20);
        CalibrationRequest { examples, max: Some(16), step: None, rounds: 2, probe }
    }

    #[test]
    fn a_calibration_that_is_interrupted_in_any_example_ends_as_it_would_have() {
        let (_folder, mut store) = empty_store();
        let whole = run(request(), &Caller::default(), &mut store, &mut Silent).unwrap();
        assert_eq!(whole.campaign.state, CampaignState::Finished);
        let thresholds = whole.thresholds.unwrap();
        let numbers: Vec<usize> = whole.examples.iter().map(|(.., curve)| curve.0.len()).collect();
        let [n, ..] = numbers[..] else { panic!("{numbers:?}") };
        assert_eq!(numbers, [n; 3]);
        // Between two examples, and within a number of the last one.
        for stop in [2 * n, 5 * n + 1] {
            let (_folder, mut store) = empty_store();
            let caller = Caller::default();
            let mut events =
                stopping_at(&caller.interrupt, stop, |event| matches!(event, Event::Measured(_)));
            let error = run(request(), &caller, &mut store, &mut events).unwrap_err();
            let JobError::Interrupted(Interruption { kept: Some(kept), .. }) = error else {
                panic!("{error}")
            };
            assert_eq!(kept.records, stop as u64);
            let info = store.get(kept.campaign).unwrap();
            let part = CalibrationRequest::answer(&info, &caller, &store).unwrap();
            let made: usize = part.examples.iter().map(|(.., curve)| curve.0.len()).sum();
            assert_eq!((part.thresholds, made), (None, stop / 2));
            let caller = Caller::default();
            let resumed =
                resume_job::<CalibrationRequest>(&info, &caller, &mut store, &mut Silent).unwrap();
            assert_eq!(resumed.examples, whole.examples, "stopped after {stop}");
            assert_eq!(resumed.thresholds, Some(thresholds), "stopped after {stop}");
        }
    }

    #[test]
    fn too_few_numbers_of_threads_make_no_campaign() {
        let (_folder, mut store) = empty_store();
        let few = CalibrationRequest { max: Some(8), ..request() };
        let refused = run(few, &Caller::default(), &mut store, &mut Silent);
        assert!(matches!(&refused, Err(JobError::Usage(why)) if why.contains("MIGR_RATE")));
        assert!(store.list().unwrap().campaigns.is_empty());
    }
}
