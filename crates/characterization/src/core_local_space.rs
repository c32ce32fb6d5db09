//! Counts the assignments to one core, and to the machine. The ratio shows what is saved by looking
//! at one core at a time.
//!
//! Other cores may have no effect, or only by what runs on them. Then an assignment performs as its
//! cores do separately. So it is enough to know each way in which some of the tasks share a core.
//! With t tasks the number of these ways is a sum over k and each kind of core. A term is C(t, k)
//! times the number of different assignments of k threads to a core.
//!
//! For nine tasks on an UltraSPARC T2 this gives 6,990 instead of 592,573 assignments, 85 times
//! fewer. The paper (section 4.4) says "around 520 000" and "8,500", "more than 60x". It does not
//! say how it counted. One task can have 4,287 contents of its core. They are 8,574 if a core's two
//! pipes are distinct: then a mirror image counts twice. That would be 60.6 times fewer than
//! 520,000, and may be the paper's count. Here pipes are alike, and all tasks of a core share its
//! content. So each content counts once.

use num_bigint::BigUint;
use pinwise_topology::{Alike, DomainKind, Machine, PerContext, SharingTree, Space};
use serde::{Deserialize, Serialize};

/// The size of the space with and without a core-local scope.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpaceSizes {
    /// Tasks to place, at most one a context.
    pub tasks: usize,
    /// Different assignments; decimal, exact.
    pub assignments: String,
    /// Different contents of one core; decimal, exact.
    pub core_local: String,
    /// How many times fewer.
    pub times_fewer: f64,
}

/// The sizes for `tasks` tasks. `None` if they do not fit, or no context is allowed.
pub fn scope(machine: &Machine, tasks: usize) -> Option<SpaceSizes> {
    let whole =
        Space::new(SharingTree::new(machine, Alike::ByStructure), tasks, PerContext::AtMost(1))
            .ok()?;
    let assignments = whole.count();
    // Cores of one kind and structure are counted once.
    let mut shapes = Vec::new();
    let mut core_local = BigUint::from(0u32);
    for core in machine.domains(DomainKind::Core) {
        let cpus = core.cpus.intersection(&machine.allowed);
        let Some(first) = cpus.first() else { continue };
        let tree = SharingTree::over(machine, &cpus, Alike::ByStructure);
        let kind = machine
            .contexts
            .iter()
            .find(|context| context.cpu == first)
            .map_or(0, |context| context.kind);
        let shape = (tree.levels(), tree.leaves().len(), kind);
        if shapes.contains(&shape) {
            continue;
        }
        shapes.push(shape);
        for together in 1..=tasks.min(tree.leaves().len()) {
            let space = Space::new(tree.clone(), together, PerContext::AtMost(1)).ok()?;
            core_local += choose(tasks, together) * space.count();
        }
    }
    // Ratios beyond a float's range read as infinite; nobody compares those.
    let float = |number: &BigUint| number.to_string().parse::<f64>().unwrap_or(f64::INFINITY);
    let times_fewer = float(&assignments) / float(&core_local);
    Some(SpaceSizes {
        tasks,
        assignments: assignments.to_string(),
        core_local: core_local.to_string(),
        times_fewer,
    })
}

/// C(n, k)
fn choose(n: usize, k: usize) -> BigUint {
    (0..k).fold(BigUint::from(1u32), |product, step| product * (n - step) / (step + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nine_tasks_on_the_t2() {
        let scope = scope(&Machine::model("ultrasparc-t2").unwrap(), 9).unwrap();
        assert_eq!((scope.assignments.as_str(), scope.core_local.as_str()), ("592573", "6990"));
        // Section 4.4: "more than 60x".
        assert!((84.0..85.0).contains(&scope.times_fewer), "{}", scope.times_fewer);
        // The contents of the core of one task, with distinct pipes: what the paper's "8,500" may
        // be.
        let core = SharingTree::new(
            &Machine::from_shape("package:1 core:1 pipe:2 pu:4").unwrap(),
            Alike::ByStructure,
        );
        let of = |k: usize| {
            Space::new(core.clone(), k, PerContext::AtMost(1)).unwrap().count() * choose(8, k - 1)
        };
        assert_eq!((1..=8).map(of).sum::<BigUint>() * 2u32, BigUint::from(8574u32));
    }

    #[test]
    fn every_task_alone_on_a_core_is_one_content_each() {
        let machine = Machine::from_shape("package:1 core:4 pu:1").unwrap();
        let scope = scope(&machine, 3).unwrap();
        assert_eq!((scope.assignments.as_str(), scope.core_local.as_str()), ("1", "3"));
        assert_eq!(super::scope(&machine, 5), None);
    }

    #[test]
    fn contents_of_a_core_are_its_subsets_up_to_swaps() {
        // Two contexts: 4 tasks alone, 6 pairs.
        assert_eq!(scope(&Machine::from_shape("4x2").unwrap(), 4).unwrap().core_local, "10");
    }
}
