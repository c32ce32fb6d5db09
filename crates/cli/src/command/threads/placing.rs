//! What is asked about the number, for placing the program as well: `tune`.

use super::arguments::{Asked, Least};
use crate::output::Usage;
use pinwise_programs::Setter;

impl Asked {
    /// Decides what progress is so that it can be compared between placements: a metric, or whole
    /// runs.
    pub(crate) fn for_placing(mut self) -> Result<Self, Usage> {
        match self.machine.machine.as_str() {
            "host" => {}
            "ultrasparc-t2" => {
                return Err(Usage(
                    "on the model ultrasparc-t2 programs have as many threads as their instances: pinwise place --machine ultrasparc-t2 \
                     --workload NAME:INSTANCES places these"
                        .into(),
                ));
            }
            model => {
                return Err(Usage(format!(
                    "the machine {model} is a model of a scheduler, on which threads have no fixed place: pinwise threads --machine {model} \
                     finds the number alone"
                )));
            }
        }
        if self.objective != Least::Time {
            return Err(Usage(
                "placements are compared by time: --objective is for pinwise threads".into(),
            ));
        }
        if self.set.as_ref().is_some_and(Setter::counts_contexts) {
            return Err(Usage(
                "cpuset: and quota: set how many CPUs the program may use, and a placement says which: pinwise threads for the one, pinwise \
                 place for the other"
                    .into(),
            ));
        }
        if self.metric.is_none() && self.set.is_some() {
            return Err(Usage(
                "how fast a program that goes on running is with a placement takes a metric that can be read from outside: --metric \
                 'cmd:…', prom:URL#SERIES, netdev:IFACE:FIELD, io:rchar or file:PATH:REGEX"
                    .into(),
            ));
        }
        self.whole_run |= self.metric.is_none();
        Ok(self)
    }
}
