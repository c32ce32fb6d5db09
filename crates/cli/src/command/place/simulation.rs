//! The part of `pinwise place` that is about simulated processors.

use crate::command::workload::no_workload;
use crate::machine::Simulated;
use crate::number_argument::whole;
use crate::output::Usage;
use clap::Args;
use pinwise_jobs::{SimulatedProcessor, SimulationRequest, SmtSimulation};
use pinwise_processor::Processor;
use pinwise_workloads::BuiltInWorkload;

/// Where the program runs; on a simulated processor, for how long.
#[derive(Args)]
pub(crate) struct SimulationArguments {
    /// Simulate ultrasparc-t2 or NAME.toml
    #[arg(
        long,
        value_name = "MACHINE",
        default_value = "host",
        value_parser = Simulated,
        hide_possible_values = true,
        hide_short_help = true
    )]
    machine: String,
    #[command(flatten)]
    windows: WindowArguments,
}

/// How long a measurement on a simulated processor is.
#[derive(Args)]
pub(crate) struct WindowArguments {
    /// Measure N cycles after a warm-up [default: 100000]
    #[arg(
        long,
        value_name = "N",
        value_parser = whole::<u64>(1000..=1_000_000_000),
        hide_short_help = true
    )]
    cycles: Option<u64>,
    /// Average N random starts [default: 3]
    #[arg(long, value_name = "N", value_parser = whole::<u32>(1..=1000), hide_short_help = true)]
    starts: Option<u32>,
}

/// The built-in programs that `named` means: `NAME:INSTANCES`, two where it does not say, several
/// joined by `+`.
pub(super) fn built_in(named: &str) -> Result<BuiltInWorkload, Usage> {
    BuiltInWorkload::parse(&counted(named)).map_err(|error| no_workload(&error))
}

/// `named` with a number of instances for each program: two where it does not say.
fn counted(named: &str) -> String {
    let counted = |one: &str| if one.contains(':') { one.to_owned() } else { format!("{one}:2") };
    named.split('+').map(counted).collect::<Vec<_>>().join("+")
}

impl SimulationArguments {
    /// The processor model that `command` was asked for; `None` for the machine we run on.
    pub(crate) fn model(&self, command: &str) -> Result<Option<SimulatedProcessor>, Usage> {
        let simulated = Processor::MODELS.join(", ");
        match self.machine.as_str() {
            "host" => match (self.windows.cycles, self.windows.starts) {
                (None, None) => Ok(None),
                _ => Err(Usage(format!(
                    "--cycles and --starts are about simulated processors: add --machine \
                     {simulated}"
                ))),
            },
            name => Simulated::named(name, command).map(Some),
        }
    }

    /// How long a measurement is.
    pub(crate) fn windows(&self) -> &WindowArguments {
        &self.windows
    }
}

impl WindowArguments {
    /// Programs on the simulated core of two contexts.
    pub(crate) fn of_smt_core(&self, programs: Vec<String>) -> SmtSimulation {
        let usual = SmtSimulation::new(programs);
        SmtSimulation {
            cycles: self.cycles.unwrap_or(usual.cycles),
            starts: self.starts.unwrap_or(usual.starts),
            ..usual
        }
    }

    /// `workload` (`NAME` or `NAME:INSTANCES`, two where not said; several joined by `+`) on
    /// `model`. `NAME/4` has four processing threads.
    pub(crate) fn of(
        &self,
        model: &SimulatedProcessor,
        workload: &str,
    ) -> Result<SimulationRequest, Usage> {
        let usual = SimulationRequest::parse(model.clone(), &counted(workload))
            .map_err(|error| no_workload(&error))?;
        Ok(SimulationRequest {
            cycles: self.cycles.unwrap_or(usual.cycles),
            starts: self.starts.unwrap_or(usual.starts),
            ..usual
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_processor::SimulatedWindow;
    use pinwise_processor::program::PacketProgram;

    #[test]
    fn the_help_states_the_defaults_of_the_simulator() {
        let command = WindowArguments::augment_args(clap::Command::new("place"));
        let SimulatedWindow { cycles, starts } = SimulatedWindow::of(&[PacketProgram::Hash1L1]);
        for (id, default) in [("cycles", cycles), ("starts", u64::from(starts))] {
            let argument =
                command.get_arguments().find(|argument| argument.get_id() == id).unwrap();
            let help = argument.get_help().unwrap().to_string();
            assert!(help.contains(&format!("[default: {default}")), "{help}");
        }
    }
}
