//! [`Bed`]: a workload to measure whose true performances are known.

use crate::Frozen;
use pinwise_measure::{Effort, MeasureError, Measurement, Setting, Testbed, Time, Unit, Workload};
use pinwise_synthetic::{Contention, Disturbance};
use pinwise_topology::{Assignment, Machine};

/// See the module.
#[derive(Clone)]
pub enum Bed {
    /// On the processor on paper.
    Paper(Box<Contention>),
    /// On a simulated processor.
    Simulated(Frozen),
}

impl Bed {
    /// What an assignment does, without noise; 0 if it cannot run.
    pub fn truth(&self, leaves: &[u32]) -> f64 {
        match self {
            Self::Paper(bed) => bed.truth(leaves),
            Self::Simulated(bed) => {
                bed.truth(&Setting::Pinned(Assignment::new(leaves.to_vec())), 0).unwrap_or_default()
            }
        }
    }

    /// The same workload with other noise.
    pub fn disturbed(&self, disturbance: Disturbance) -> Self {
        match self {
            Self::Paper(bed) => {
                Self::Paper(Box::new(Contention::clone(bed).disturbed(disturbance)))
            }
            Self::Simulated(bed) => Self::Simulated(bed.clone().disturbed(disturbance)),
        }
    }

    fn inner(&self) -> &dyn Testbed {
        match self {
            Self::Paper(bed) => bed.as_ref(),
            Self::Simulated(bed) => bed,
        }
    }

    fn inner_mut(&mut self) -> &mut dyn Testbed {
        match self {
            Self::Paper(bed) => bed.as_mut(),
            Self::Simulated(bed) => bed,
        }
    }
}

impl Testbed for Bed {
    fn machine(&self) -> &Machine {
        self.inner().machine()
    }

    fn workload(&self) -> &Workload {
        self.inner().workload()
    }

    fn unit(&self) -> &Unit {
        self.inner().unit()
    }

    fn measure(&mut self, setting: &Setting, effort: Effort) -> Result<Measurement, MeasureError> {
        self.inner_mut().measure(setting, effort)
    }

    fn profiles(&self) -> bool {
        true
    }

    fn time(&self) -> Time {
        self.inner().time()
    }

    fn seek(&mut self, number: u64) {
        self.inner_mut().seek(number);
    }
}
