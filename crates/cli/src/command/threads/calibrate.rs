//! `pinwise threads calibrate`: what counts as high, from example programs.

use super::{interrupted, usage};
use crate::command::place::time;
use crate::events::listen;
use crate::machine::MachineArgument;
use crate::number::whole;
use crate::output::{self, Usage};
use anyhow::Context as _;
use clap::Args;
use pinwise_measure::{MeasureError, Probed, SchedulingProfile};
use pinwise_programs::{LinuxProber, ProbeOptions, ProbedProgram, Recipe};
use pinwise_scheduler::{ModelProber, Platform, Program};
use pinwise_threads::{Curve, Note, ThreadRange, Thresholds, calibrate};
use std::time::Duration;

/// Calibrate the thresholds of the published search from example programs
///
/// Each example is probed with growing numbers of threads. A threshold is where the quantity it
/// shows begins to rise fast. The paper used fluidanimate, facesim and blackscholes on small
/// inputs. The thresholds go to stdout, as a file for --thresholds.
#[derive(Args)]
#[command(after_help = "Examples:
  pinwise threads calibrate --locks './a {n}' --switches './b {n}' --parallelism './c {n}' > my.toml
  pinwise threads calibrate --machine opteron-24 > opteron.toml")]
pub(crate) struct Calibrate {
    /// A shell command whose threads wait for locks and migrate more as their number grows
    #[arg(long, value_name = "COMMAND")]
    locks: Option<String>,
    /// A shell command whose threads switch voluntarily
    #[arg(long, value_name = "COMMAND")]
    switches: Option<String>,
    /// A shell command whose parallelism ends early
    #[arg(long, value_name = "COMMAND")]
    parallelism: Option<String>,
    /// The most threads [default: three times the contexts, as in the paper]
    #[arg(long, value_name = "N")]
    max: Option<u32>,
    /// The --step of the searches that will use the thresholds [default: a third of the contexts,
    /// at least 2]
    #[arg(long, value_name = "N", value_parser = whole::<u32>(2..=1024))]
    step: Option<u32>,
    /// How often to probe each number; the mean counts
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = whole::<u32>(1..=100))]
    rounds: u32,
    /// How long a probe watches the threads
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = time)]
    probe: Duration,
    #[command(flatten)]
    machine: MachineArgument,
}

/// The paper's examples, in the order of the roles, and how much of an iteration's work their small
/// inputs have: fluidanimate's particles, simlarge to native (300,000 to 500,000), for all three.
const EXAMPLES: [&str; 3] = ["fluidanimate", "facesim", "blackscholes"];
const SMALL: f64 = 0.6;

impl Calibrate {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let interrupt = listen()?;
        let commands = [&self.locks, &self.switches, &self.parallelism];
        let on_host = self.machine.machine == "host";
        let (contexts, curves, from) = if on_host {
            let Some(commands) = commands.into_iter().cloned().collect::<Option<Vec<String>>>()
            else {
                return Err(Usage(
                    "calibrate needs three examples: add --locks, --switches and --parallelism, \
                     each with {n} in it"
                        .into(),
                )
                .into());
            };
            let machine =
                pinwise_linux::machine().context("cannot read this machine's topology")?;
            let contexts = machine.allowed.len() as u32;
            self.check(contexts)?;
            let curves = commands.iter().map(|command| {
                let words = ["sh", "-c", command].map(str::to_owned).to_vec();
                let recipe = Recipe::new(words, &[], None).map_err(usage)?;
                let options = ProbeOptions {
                    contexts,
                    limit: Duration::from_secs(60),
                    ..ProbeOptions::default()
                };
                let program = ProbedProgram::Anew(recipe);
                let mut prober =
                    LinuxProber::new(machine.clone(), program, options, interrupt.flag())?;
                self.curve(contexts, |threads| prober.probe(threads, self.probe))
            });
            (contexts, curves.collect::<anyhow::Result<Vec<Curve>>>()?, commands.join(", "))
        } else {
            if commands.iter().any(|command| command.is_some()) {
                return Err(Usage(
                    "a model has the paper's examples: leave out --locks, --switches and \
                     --parallelism"
                        .into(),
                )
                .into());
            }
            let model = self.machine.load()?;
            let (platform, shared) =
                pinwise_jobs::platform(&self.machine.machine, &model).map_err(usage)?;
            let contexts = platform.contexts() as u32;
            self.check(contexts)?;
            if shared {
                let shared = pinwise_present::threads_note(&Note::SharedCores);
                output::aside(&format!("note: {shared}"));
            }
            let curves = EXAMPLES.map(|name| self.modelled(&platform, name, &interrupt));
            (
                contexts,
                curves.into_iter().collect::<anyhow::Result<Vec<Curve>>>()?,
                EXAMPLES.join(", "),
            )
        };
        let [locks, switches, parallelism] = curves.as_slice() else {
            anyhow::bail!("an example has no curve")
        };
        let found: Thresholds =
            calibrate(self.span(contexts), contexts, locks, switches, parallelism)?;
        let steps = self.span(contexts).step;
        output::print(&format!(
            "# Thresholds for steps of {steps} threads on {contexts} contexts ({}), from {from}.\n{}",
            self.machine.machine,
            toml::to_string(&found)?
        ))
    }

    fn span(&self, contexts: u32) -> ThreadRange {
        let published = ThreadRange::published_on(contexts);
        let step = self.step.unwrap_or(published.step);
        ThreadRange { min: step, max: self.max.unwrap_or(published.max).max(step), step }
    }

    /// One thread and every half step up to the most.
    fn numbers(&self, contexts: u32) -> Vec<u32> {
        let ThreadRange { max, step, .. } = self.span(contexts);
        let half = (step / 2).max(1);
        let mut numbers: Vec<u32> =
            std::iter::once(1).chain((half..=max).step_by(half as usize)).collect();
        numbers.dedup();
        numbers
    }

    /// Four numbers at least tell where something begins to rise fast: of VCX_RATE up to as many
    /// threads as contexts, of MIGR_RATE from there on.
    fn check(&self, contexts: u32) -> Result<(), Usage> {
        let numbers = self.numbers(contexts);
        let within = numbers.iter().filter(|&&threads| threads <= contexts).count();
        if within < 4 {
            return Err(Usage(format!(
                "VCX_RATE needs at least four numbers of threads up to the number of contexts; \
                 {contexts} contexts give {within}: use a machine with four contexts or more, or \
                 a smaller --step"
            )));
        }
        let beyond = numbers.iter().filter(|&&threads| threads >= contexts).count();
        if beyond < 4 {
            return Err(Usage(format!(
                "MIGR_RATE needs at least four numbers of threads from the number of contexts \
                 up; --max and --step leave {beyond}: raise --max or lower --step"
            )));
        }
        Ok(())
    }

    fn modelled(
        &self,
        platform: &Platform,
        name: &str,
        interrupt: &pinwise_jobs::Interrupt,
    ) -> anyhow::Result<Curve> {
        let mut program = Program::built_in(name)?;
        program.fitted.work_ms *= SMALL;
        let mut prober = ModelProber::new(platform.clone(), program.clone(), 1000)
            .cancelled_by(interrupt.flag());
        self.curve(platform.contexts() as u32, |threads| {
            prober.probe(program.parameter(threads), self.probe)
        })
    }

    /// Profiles with each of the numbers, the mean of the rounds.
    fn curve(
        &self,
        contexts: u32,
        mut probe: impl FnMut(u32) -> Result<Probed, MeasureError>,
    ) -> anyhow::Result<Curve> {
        let (mut points, mut probes) = (Vec::new(), 0);
        for threads in self.numbers(contexts) {
            let (rounds, mut sum) = (f64::from(self.rounds), SchedulingProfile::default());
            for _ in 0..self.rounds {
                let seen = probe(threads).map_err(|error| failed(error, probes))?.probe.profile;
                probes += 1;
                sum.lock += seen.lock / rounds;
                sum.vcx_rate += seen.vcx_rate / rounds;
                sum.migr_rate += seen.migr_rate / rounds;
                sum.cpu_util += seen.cpu_util / rounds;
            }
            points.push((threads, sum));
        }
        Ok(Curve(points))
    }
}

/// A failed probe with the exit code it deserves.
fn failed(error: MeasureError, probes: u64) -> anyhow::Error {
    if error.interrupted { interrupted(probes) } else { anyhow::anyhow!("{error}") }
}
