//! How a machine differs from the one a plan was found on.

use super::Plan;
use pinwise_topology::{CpuSet, Fingerprint};

/// A way in which a machine differs from the one a plan was found on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanDifference {
    /// Its domains, caches or nodes differ.
    Topology {
        /// The machine of the plan.
        planned: Box<Fingerprint>,
        /// This machine.
        here: Box<Fingerprint>,
    },
    /// The topology is alike, but the processor has another name.
    Processor {
        /// The processor of the plan.
        planned: String,
        /// This processor.
        here: String,
    },
    /// A condition of the running kernel has changed.
    Condition {
        /// Which one.
        condition: MachineCondition,
        /// Its state when the plan was found.
        planned: String,
        /// Its state now.
        here: String,
    },
    /// CPUs of the plan are offline, or not allowed.
    Lacking {
        /// These CPUs.
        cpus: CpuSet,
    },
}

/// A condition that only a running kernel has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MachineCondition {
    /// Whether SMT is on.
    Smt,
    /// The kernel's release.
    Kernel,
    /// The frequency governor.
    Governor,
}

impl Plan {
    /// How this machine differs from the one that the plan was found on. `here` is its fingerprint,
    /// `allowed` its CPUs that may be used. Empty if the plan fits. A condition that either side
    /// does not know is no difference.
    pub fn differences(&self, here: &Fingerprint, allowed: &CpuSet) -> Vec<PlanDifference> {
        let planned = &self.machine;
        let machine = if planned.topology != here.topology {
            let (planned, here) = (planned.clone().into(), here.clone().into());
            Some(PlanDifference::Topology { planned, here })
        } else {
            (planned.model != here.model).then(|| PlanDifference::Processor {
                planned: planned.model.clone(),
                here: here.model.clone(),
            })
        };
        let conditions = [
            (MachineCondition::Smt, &planned.smt, &here.smt),
            (MachineCondition::Kernel, &planned.kernel, &here.kernel),
            (MachineCondition::Governor, &planned.governor, &here.governor),
        ];
        let conditions = conditions.into_iter().filter_map(|(condition, planned, here)| {
            let (planned, here) = (planned.clone()?, here.clone()?);
            (planned != here).then_some(PlanDifference::Condition { condition, planned, here })
        });
        machine.into_iter().chain(conditions).chain(self.lacking(allowed)).collect()
    }

    /// The CPUs of the plan that are not in `allowed`, if there are any.
    pub fn lacking(&self, allowed: &CpuSet) -> Option<PlanDifference> {
        let cpus = self.cpus().difference(allowed);
        (!cpus.is_empty()).then_some(PlanDifference::Lacking { cpus })
    }
}
