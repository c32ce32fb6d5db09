//! What counts as high for the published search for a number of threads, from example programs.
//!
//! As the paper did with fluidanimate, facesim and blackscholes on small inputs: each example is
//! probed with growing numbers of threads, and a threshold is where what it shows begins to rise
//! fast ([`pinwise_threads::calibrate`]). Nothing is stored: the thresholds are all there is to
//! know.

use crate::error::JobError;
use crate::events::{Event, Events, note};
use crate::interrupt::Interrupt;
use crate::threads::platform;
use pinwise_campaign::{Ending, MemoryJournal, Purpose, Record, Step, Strategy, Trial, drive};
use pinwise_measure::{Effort, Probed, SchedulingProfile, Setting, Testbed, ThreadCount};
use pinwise_present::Notice;
use pinwise_programs::{LinuxProber, ProbeOptions, ProbedProgram, Recipe};
use pinwise_scheduler::{ModelProber, Program};
use pinwise_threads::{Curve, Note, ThreadRange, Thresholds, calibrate};
use pinwise_topology::Machine;
use std::time::{Duration, Instant};

/// The paper's examples, in the order of [`CalibrationExamples::Commands`], and how much of an
/// iteration's work their small inputs have: fluidanimate's particles, simlarge to native (300,000
/// to 500,000), for all three.
const PAPER: [&str; 3] = ["fluidanimate", "facesim", "blackscholes"];
const SMALL: f64 = 0.6;

/// How long an example may run.
const LIMIT: Duration = Duration::from_secs(60);

/// How often the published search finds something high: the question.
#[derive(Clone, Debug, PartialEq)]
pub struct CalibrationRequest {
    /// The programs.
    pub examples: CalibrationExamples,
    /// The most threads. `None`: three times the contexts, as in the paper.
    pub max: Option<u32>,
    /// The step of the searches that the thresholds are for, at least 2. `None`: a third of the
    /// contexts, at least 2.
    pub step: Option<u32>,
    /// Each number is probed so often, and the mean is taken; at least 1.
    pub rounds: u32,
    /// The length of a probe.
    pub probe: Duration,
}

/// What is probed.
#[derive(Clone, Debug, PartialEq)]
pub enum CalibrationExamples {
    /// Three shell commands with `{n}` in them. With more threads, those of the first wait for
    /// locks and migrate more. Those of the second switch voluntarily. The parallelism of the third
    /// ends early.
    Commands([String; 3]),
    /// The paper's programs on a modelled machine.
    Modelled {
        /// The machine, as typed.
        name: String,
        /// The machine.
        machine: Box<Machine>,
    },
}

/// What counts as high on a machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// The thresholds.
    pub thresholds: Thresholds,
    /// For steps of so many threads.
    pub step: u32,
    /// On a machine of so many contexts.
    pub contexts: u32,
    /// The examples.
    pub examples: [String; 3],
}

/// Probes the examples, and finds where what they show begins to rise fast.
///
/// # Errors
/// Too few numbers of threads tell anything; an example cannot be probed; its probes show no rise;
/// the user asked to stop.
pub fn calibrate_thresholds(
    request: &CalibrationRequest,
    interrupt: &Interrupt,
    events: &mut dyn Events,
) -> Result<Calibration, JobError> {
    let (contexts, examples, curves) = match &request.examples {
        CalibrationExamples::Commands(commands) => {
            let machine = pinwise_linux::machine()
                .map_err(|error| JobError::from(error).context("cannot read the topology"))?;
            let contexts = machine.allowed.len() as u32;
            let numbers = Numbers::of(request, contexts)?;
            let mut curve = |command: &String| {
                let words = ["sh", "-c", command].map(str::to_owned).to_vec();
                let recipe = Recipe::new(words, &[], None).map_err(JobError::usage)?;
                let options = ProbeOptions {
                    contexts,
                    window: request.probe,
                    limit: LIMIT,
                    ..ProbeOptions::default()
                };
                let program = ProbedProgram::Anew(recipe);
                let mut prober =
                    LinuxProber::new(machine.clone(), program, options, interrupt.flag())
                        .map_err(JobError::failed)?;
                numbers.curve(&|threads| threads, &mut prober, interrupt, events)
            };
            let [locks, switches, parallelism] = commands;
            let curves = [curve(locks)?, curve(switches)?, curve(parallelism)?];
            (contexts, commands.clone(), curves)
        }
        CalibrationExamples::Modelled { name, machine } => {
            let (platform, shared) = platform(name, machine)?;
            let contexts = platform.contexts() as u32;
            let numbers = Numbers::of(request, contexts)?;
            if shared {
                note(events, Notice::Threads(Note::SharedCores))?;
            }
            let mut curve = |name: &str| {
                let mut program = Program::built_in(name).map_err(JobError::failed)?;
                program.fitted.work_ms *= SMALL;
                let mut prober = ModelProber::new(platform.clone(), program.clone(), 1000)
                    .watching_for(request.probe)
                    .cancelled_by(interrupt.flag());
                let parameter = |threads| program.parameter(threads);
                numbers.curve(&parameter, &mut prober, interrupt, events)
            };
            let [locks, switches, parallelism] = PAPER;
            let curves = [curve(locks)?, curve(switches)?, curve(parallelism)?];
            (contexts, PAPER.map(str::to_owned), curves)
        }
    };
    let range = range(request, contexts);
    let [locks, switches, parallelism] = &curves;
    let thresholds =
        calibrate(range, contexts, locks, switches, parallelism).map_err(JobError::failed)?;
    Ok(Calibration { thresholds, step: range.step, contexts, examples })
}

fn range(request: &CalibrationRequest, contexts: u32) -> ThreadRange {
    let published = ThreadRange::published_on(contexts);
    let step = request.step.unwrap_or(published.step);
    ThreadRange { min: step, max: request.max.unwrap_or(published.max).max(step), step }
}

/// The numbers of threads that an example is probed with, each so often.
struct Numbers {
    numbers: Vec<u32>,
    rounds: u32,
}

impl Numbers {
    /// One thread and every half step up to the most. Four numbers at least tell where something
    /// begins to rise fast: of VCX_RATE up to as many threads as contexts, of MIGR_RATE from there
    /// on.
    fn of(request: &CalibrationRequest, contexts: u32) -> Result<Self, JobError> {
        let ThreadRange { max, step, .. } = range(request, contexts);
        let half = (step / 2).max(1);
        let mut numbers: Vec<u32> =
            std::iter::once(1).chain((half..=max).step_by(half as usize)).collect();
        numbers.dedup();
        let within = numbers.iter().filter(|&&threads| threads <= contexts).count();
        if within < 4 {
            return Err(JobError::Usage(format!(
                "VCX_RATE needs at least four numbers of threads up to the number of contexts; \
                 {contexts} contexts give {within}: use a machine with four contexts or more, or \
                 a smaller --step"
            )));
        }
        let beyond = numbers.iter().filter(|&&threads| threads >= contexts).count();
        if beyond < 4 {
            return Err(JobError::Usage(format!(
                "MIGR_RATE needs at least four numbers of threads from the number of contexts \
                 up; --max and --step leave {beyond}: raise --max or lower --step"
            )));
        }
        Ok(Self { numbers, rounds: request.rounds.max(1) })
    }

    /// The profile with each of the numbers, the mean of the rounds. `parameter` is what makes so
    /// many threads.
    fn curve(
        &self,
        parameter: &dyn Fn(u32) -> u32,
        testbed: &mut dyn Testbed,
        interrupt: &Interrupt,
        events: &mut dyn Events,
    ) -> Result<Curve, JobError> {
        let (start, mut unheard) = (Instant::now(), None);
        let mut strategy = Rounds { numbers: self, parameter };
        let (ending, records) = drive(
            &mut MemoryJournal::default(),
            &mut strategy,
            testbed,
            &|| start.elapsed(),
            &|| interrupt.came(),
            &mut |record| unheard = events.take(Event::Measured(record)).err().or(unheard.take()),
        )?;
        unheard.map_or(Ok(()), |error| Err(JobError::Output(error)))?;
        match ending {
            Ending::Finished => self.means(&records),
            Ending::Failed(reason) => Err(JobError::failed(reason)),
            Ending::Interrupted => Err(JobError::nothing_measured(false)),
        }
    }

    fn means(&self, records: &[Record]) -> Result<Curve, JobError> {
        let rounds = f64::from(self.rounds);
        let measured: Vec<_> =
            records.iter().filter_map(|record| record.outcome.as_ref().ok()).collect();
        let mean = |(&threads, measured): (&u32, &[&_])| {
            let mut sum = SchedulingProfile::default();
            for measurement in measured {
                let profile = Probed::of(measurement)?.probe.profile;
                sum.lock += profile.lock / rounds;
                sum.vcx_rate += profile.vcx_rate / rounds;
                sum.migr_rate += profile.migr_rate / rounds;
                sum.cpu_util += profile.cpu_util / rounds;
            }
            Ok((threads, sum))
        };
        let of_numbers = measured.chunks(self.rounds as usize);
        self.numbers.iter().zip(of_numbers).map(mean).collect::<Result<_, _>>().map(Curve)
    }
}

/// Probes each of the numbers in turn. A number that cannot be probed ends it.
struct Rounds<'a> {
    numbers: &'a Numbers,
    parameter: &'a dyn Fn(u32) -> u32,
}

impl Strategy for Rounds<'_> {
    fn step(&mut self, history: &[Record]) -> Step {
        if let Some(Err(error)) = history.last().map(|record| &record.outcome) {
            return Step::Fail(error.message.clone());
        }
        let probes = history.iter().filter(|record| record.outcome.is_ok()).count();
        let Numbers { numbers, rounds } = self.numbers;
        let Some(&threads) = numbers.get(probes / *rounds as usize) else {
            return Step::Stop;
        };
        let n = Some((self.parameter)(threads));
        Step::Measure(Trial {
            setting: Setting::Threads(ThreadCount { n, placed: None }),
            purpose: Purpose::Probe,
            effort: Effort { windows: 1.0 },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::Silent;
    use std::io;
    use std::sync::atomic::Ordering;

    fn request() -> CalibrationRequest {
        let machine = Box::new(Machine::model("opteron-24").unwrap());
        let examples = CalibrationExamples::Modelled { name: "opteron-24".into(), machine };
        let probe = Duration::from_millis(100);
        CalibrationRequest { examples, max: None, step: None, rounds: 1, probe }
    }

    #[test]
    fn the_papers_examples_are_probed_and_an_interruption_is_no_calibration() {
        /// Asks to stop at the third probe.
        struct Third(Interrupt, u32);
        impl Events for Third {
            fn take(&mut self, event: Event<'_>) -> io::Result<()> {
                self.1 += u32::from(matches!(event, Event::Measured(_)));
                if self.1 == 3 {
                    self.0.flag().store(true, Ordering::Relaxed);
                }
                Ok(())
            }
        }
        let interrupt = Interrupt::default();
        let mut third = Third(interrupt.clone(), 0);
        let ended = calibrate_thresholds(&request(), &interrupt, &mut third);
        assert!(matches!(ended, Err(JobError::Interrupted(_))), "{ended:?}");
        assert_eq!(third.1, 3);
        let none = CalibrationRequest { max: Some(24), ..request() };
        let refused = calibrate_thresholds(&none, &Interrupt::default(), &mut Silent);
        assert!(matches!(&refused, Err(JobError::Usage(why)) if why.contains("MIGR_RATE")));
    }
}
