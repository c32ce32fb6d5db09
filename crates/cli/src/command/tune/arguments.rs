//! The arguments about the number that `pinwise tune` takes.

use crate::command::threads::{NumberArguments, ObjectiveArgument};
use crate::output::Usage;
use pinwise_programs::NumberSetter;

impl NumberArguments {
    /// Decides what progress is so that it can be compared between placements: a metric, or whole
    /// runs.
    pub(super) fn for_placing(mut self) -> Result<Self, Usage> {
        match self.machine.machine.as_str() {
            "host" => {}
            "ultrasparc-t2" => {
                return Err(Usage(
                    "on the model ultrasparc-t2 the instances set the number of threads: use \
                     pinwise place --machine ultrasparc-t2 --workload NAME:INSTANCES"
                        .into(),
                ));
            }
            model => {
                return Err(Usage(format!(
                    "{model} models a scheduler, where threads have no fixed place: use pinwise \
                     threads --machine {model} for the number alone"
                )));
            }
        }
        if self.objective != ObjectiveArgument::Time {
            return Err(Usage(
                "tune compares by time: use --objective with pinwise threads".into(),
            ));
        }
        if self.set.as_ref().is_some_and(NumberSetter::counts_contexts) {
            return Err(Usage(
                "cpuset: and quota: limit how many CPUs the program uses, a placement says \
                 which: use pinwise threads or pinwise place"
                    .into(),
            ));
        }
        if self.metric.is_none() && self.set.is_some() {
            return Err(Usage(
                "a running program needs a metric that pinwise can read from outside: --metric \
                 'cmd:…', prom:URL#SERIES, netdev:IFACE:FIELD, io:rchar or file:PATH:REGEX"
                    .into(),
            ));
        }
        self.per_run |= self.metric.is_none();
        Ok(self)
    }
}
