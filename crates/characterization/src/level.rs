//! The sharing levels around a context, and those the machine lacks.
//!
//! A level has the name of the smallest domain that two contexts have in common. The names are
//! `pipe`, `core`, `l2`, `l3`, `numa`, and `chip` for a package. `machine` is what is left between
//! packages. On the UltraSPARC T2 these are the paper's IntraPipe, IntraCore and InterCore: pipe,
//! core, chip.

use pinwise_measure::value_or_text;
use pinwise_topology::{CacheKind, CpuSet, DomainKind, Machine, SharingTree};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// A sharing level around a reference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Level {
    /// `pipe`, `core`, `chip`, …
    pub name: String,
    /// The kind of domain it is.
    pub kind: DomainKind,
    /// Contexts that share it with the reference, and no smaller level.
    pub contexts: usize,
    /// Caches that these contexts and the reference share exactly: `L3 260 MiB`.
    pub caches: Vec<String>,
    /// Leaves of the domain.
    #[serde(skip)]
    pub(crate) leaves: Range<u32>,
}

impl Level {
    /// Whether contexts of this level are on other cores than the reference.
    pub fn is_remote(&self) -> bool {
        !matches!(self.kind, DomainKind::Core | DomainKind::Pipe | DomainKind::Pu)
    }
}

/// A level the machine does not have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Absent {
    /// `core`, `chip`, `machine`
    pub name: String,
    /// Why.
    #[serde(deserialize_with = "value_or_text")]
    pub reason: AbsenceReason,
}

/// Why a machine does not have a level.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum AbsenceReason {
    /// This kind of core has one context.
    OneContext,
    /// No two contexts that may be used share a core.
    NoSharedCore,
    /// No two cores that may be used are in one package.
    NoSharedPackage,
    /// The contexts that may be used are all in one package.
    OnePackage,
    /// Text: from a store that was written before these reasons had kinds.
    Text {
        /// The text.
        text: String,
    },
}

pinwise_measure::text_in_old_stores!(AbsenceReason);

/// The levels around `leaf`, innermost first.
pub(crate) fn levels(machine: &Machine, tree: &SharingTree, leaf: u32) -> Vec<Level> {
    let mut inner = 1;
    let around = tree.around(leaf).into_iter();
    around
        .map(|(kind, leaves)| {
            let contexts = leaves.len() - inner;
            inner = leaves.len();
            let cpus: CpuSet = leaves
                .clone()
                .filter_map(|leaf| tree.leaves().get(leaf as usize).copied())
                .collect();
            // A machine that is one core is a core.
            let inside = [DomainKind::Pipe, DomainKind::Core].into_iter().find(|&kind| {
                machine
                    .domains(kind)
                    .any(|domain| domain.cpus.intersection(&machine.allowed) == cpus)
            });
            let kind = inside.unwrap_or(kind);
            Level {
                name: name(machine, kind),
                kind,
                contexts,
                caches: caches(machine, &cpus),
                leaves,
            }
        })
        .collect()
}

fn name(machine: &Machine, kind: DomainKind) -> String {
    let packages = machine.domains(DomainKind::Package).count();
    match kind {
        DomainKind::Package => "chip".into(),
        DomainKind::Machine if packages <= 1 => "chip".into(),
        kind => kind.name().to_lowercase(),
    }
}

/// The caches for data that exactly the contexts `cpus` share, as far as they may be used.
fn caches(machine: &Machine, cpus: &CpuSet) -> Vec<String> {
    let shared = |cache: &&pinwise_topology::Cache| {
        cache.kind != CacheKind::Instruction && cache.cpus.intersection(&machine.allowed) == *cpus
    };
    let name = |cache: &pinwise_topology::Cache| match cache.size {
        Some(size) => format!("L{} {}", cache.level, pinwise_figures::bytes(size)),
        None => format!("L{}", cache.level),
    };
    machine.caches.iter().filter(shared).map(name).collect()
}

/// What people look for in a machine and do not find in `levels`. These are contexts of one core,
/// cores of one chip, and several chips.
pub(crate) fn absent(machine: &Machine, levels: &[Level]) -> Vec<Absent> {
    let has = |name: &str| levels.iter().any(|level| level.name == name);
    let several = |kind: DomainKind| {
        machine.domains(kind).any(|domain| domain.cpus.intersection(&machine.allowed).len() > 1)
    };
    let mut absent = Vec::new();
    let mut add = |name: &str, reason| absent.push(Absent { name: name.into(), reason });
    if !levels.iter().any(|level| !level.is_remote()) {
        let one = several(DomainKind::Core);
        add("core", if one { AbsenceReason::OneContext } else { AbsenceReason::NoSharedCore });
    }
    if !has("chip")
        && !levels.iter().any(|level| level.is_remote() && level.kind != DomainKind::Machine)
    {
        add("chip", AbsenceReason::NoSharedPackage);
    }
    if !has("machine") {
        add("machine", AbsenceReason::OnePackage);
    }
    absent
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_topology::Alike;

    fn of(machine: &Machine) -> (Vec<String>, Vec<String>) {
        let levels = levels(machine, &SharingTree::new(machine, Alike::ByStructure), 0);
        let absent = absent(machine, &levels).into_iter().map(|absent| absent.name).collect();
        (levels.iter().map(|level| format!("{} {}", level.name, level.contexts)).collect(), absent)
    }

    #[test]
    fn the_levels_of_the_t2_are_those_of_the_paper() {
        let machine = Machine::model("ultrasparc-t2").unwrap();
        let (present, absent) = of(&machine);
        assert_eq!(present, ["pipe 3", "core 4", "chip 56"]);
        assert_eq!(absent, ["machine"]);
        let levels = levels(&machine, &SharingTree::new(&machine, Alike::ByStructure), 0);
        assert_eq!(levels[1].caches, ["L1 8 KiB"]);
        assert_eq!(levels[2].caches, ["L2 4 MiB"]);
    }

    #[test]
    fn levels_that_are_not_there_are_named() {
        let machine = |shape| Machine::from_shape(shape).unwrap();
        assert_eq!(of(&machine("2x2x2")).0, ["core 1", "chip 2", "machine 4"]);
        assert!(of(&machine("2x2x2")).1.is_empty());
        assert_eq!(
            of(&machine("package:1 core:2 pu:1")),
            (vec!["chip 1".into()], vec!["core".into(), "machine".into()])
        );
        assert_eq!(of(&machine("package:1 core:1 pu:2")).1, ["chip", "machine"]);
        assert_eq!(of(&machine("package:2 l3:2 core:2 pu:1")).0, ["l3 1", "chip 2", "machine 4"]);
        assert_eq!(of(&machine("1")).1, ["core", "chip", "machine"]);
    }

    #[test]
    fn a_reason_is_a_kind_and_text_that_was_stored_is_still_read() {
        let known = Absent { name: "core".into(), reason: AbsenceReason::OneContext };
        let stored = r#"{"name":"core","reason":{"kind":"one_context"}}"#;
        assert_eq!(serde_json::to_string(&known).unwrap(), stored);
        assert_eq!(serde_json::from_str::<Absent>(stored).unwrap(), known);
        let before = r#"{"name":"core","reason":"no SMT"}"#;
        let before = serde_json::from_str::<Absent>(before).unwrap();
        assert_eq!(before.reason, AbsenceReason::Text { text: "no SMT".into() });
    }
}
