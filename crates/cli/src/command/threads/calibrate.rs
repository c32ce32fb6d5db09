//! `pinwise threads calibrate`: what counts as high, from example programs.

use crate::command::place::time;
use crate::events::{self, Terminal, listen};
use crate::machine::MachineArgument;
use crate::number::whole;
use crate::output::{self, Interrupted, Usage};
use clap::Args;
use pinwise_jobs::{
    Calibration, CalibrationExamples, CalibrationRequest, JobError, calibrate_thresholds,
};
use std::time::Duration;

/// Calibrate the thresholds of the published search from example programs
///
/// calibrate probes each example with growing numbers of threads. A threshold is where the quantity
/// that the example shows begins to rise fast. The paper used fluidanimate, facesim and
/// blackscholes on small inputs. The thresholds go to stdout, as a file for --thresholds.
#[derive(Args)]
#[command(after_help = "Examples:
  pinwise threads calibrate --locks './a {n}' --switches './b {n}' --parallelism './c {n}' > my.toml
  pinwise threads calibrate --machine opteron-24 > opteron.toml")]
pub(crate) struct Calibrate {
    /// Run this shell command. Its threads wait for locks and migrate more as their number grows
    #[arg(long, value_name = "COMMAND")]
    locks: Option<String>,
    /// Run this shell command. Its threads switch voluntarily
    #[arg(long, value_name = "COMMAND")]
    switches: Option<String>,
    /// Run this shell command. Its parallelism ends early
    #[arg(long, value_name = "COMMAND")]
    parallelism: Option<String>,
    /// Try at most N threads [default: three times the contexts, as in the paper]
    #[arg(long, value_name = "N")]
    max: Option<u32>,
    /// Give the --step of the searches that will use the thresholds [default: a third of the
    /// contexts, at least 2]
    #[arg(long, value_name = "N", value_parser = whole::<u32>(2..=1024))]
    step: Option<u32>,
    /// Probe each number N times. The mean counts
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = whole::<u32>(1..=100))]
    rounds: u32,
    /// Watch the threads for this long in a probe
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = time)]
    probe: Duration,
    #[command(flatten)]
    machine: MachineArgument,
}

impl Calibrate {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let interrupt = listen()?;
        let from = self.machine.machine.clone();
        let request = CalibrationRequest {
            examples: self.examples()?,
            max: self.max,
            step: self.step,
            rounds: self.rounds,
            probe: self.probe,
        };
        let mut terminal = Terminal::new(false);
        let found =
            calibrate_thresholds(&request, &interrupt, &mut terminal).map_err(
                |error| match error {
                    JobError::Interrupted(_) => Interrupted(
                        "interrupted: all that was started has ended, nothing is stored".into(),
                    )
                    .into(),
                    error => events::failed(error),
                },
            );
        let Calibration { thresholds, step, contexts, examples } = found?;
        output::print(&format!(
            "# Thresholds for steps of {step} threads on {contexts} contexts ({from}), from \
             {}.\n{}",
            examples.join(", "),
            toml::to_string(&thresholds)?
        ))
    }

    fn examples(&self) -> anyhow::Result<CalibrationExamples> {
        let commands = [&self.locks, &self.switches, &self.parallelism];
        if self.machine.machine == "host" {
            let [Some(locks), Some(switches), Some(parallelism)] = commands.map(Clone::clone)
            else {
                return Err(Usage(
                    "calibrate needs three examples: add --locks, --switches and --parallelism, \
                     each with {n} in it"
                        .into(),
                )
                .into());
            };
            return Ok(CalibrationExamples::Commands([locks, switches, parallelism]));
        }
        if commands.into_iter().any(Option::is_some) {
            return Err(Usage(
                "a model has the paper's examples: leave out --locks, --switches and \
                 --parallelism"
                    .into(),
            )
            .into());
        }
        let name = self.machine.machine.clone();
        Ok(CalibrationExamples::Modelled { name, machine: Box::new(self.machine.load()?) })
    }
}
