//! The contexts on which two programs run at the same time.

use pinwise_topology::{CpuId, CpuSet, Domain, DomainKind, Machine, SharingTree};
use serde::{Deserialize, Serialize};

/// The contexts of two programs that share a level. Thread by thread the contexts of one side share
/// that level with those of the other, and no smaller level.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairSeats {
    /// The smallest kind of domain that both sides share.
    pub level: DomainKind,
    /// The leaves of both sides in the tree of the allowed contexts, one for each thread.
    pub sides: [Vec<u32>; 2],
    /// The most contexts that may be used in a domain of the level. So many programs share it, one
    /// context each.
    pub width: usize,
}

/// Why there are no contexts for two programs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SeatsError {
    /// No two contexts may be used, or too few of any level.
    #[error(
        "two programs need {needed} contexts that share a level, and {allowed} may be used: allow \
         more with --cpus"
    )]
    TooFew {
        /// The contexts that two programs need.
        needed: usize,
        /// Those that there are.
        allowed: usize,
    },
    /// The level that was asked for does not have them.
    #[error(
        "no {needed} contexts that may be used share a {} and nothing smaller: choose another \
         --level ({})", .level.name(), .others.join(", ")
    )]
    NoLevel {
        /// The level.
        level: DomainKind,
        /// The contexts that two programs need.
        needed: usize,
        /// The names of levels that have them.
        others: Vec<&'static str>,
    },
    /// There is no such level.
    #[error("there is no level '{name}' here: choose another --level ({})", .others.join(", "))]
    Unknown {
        /// The name.
        name: String,
        /// The names of levels.
        others: Vec<&'static str>,
    },
}

/// The kinds of domains, the innermost first.
const LEVELS: [DomainKind; 11] = [
    DomainKind::Pipe,
    DomainKind::Core,
    DomainKind::L2,
    DomainKind::Cluster,
    DomainKind::L3,
    DomainKind::L4,
    DomainKind::Die,
    DomainKind::Numa,
    DomainKind::Package,
    DomainKind::Group,
    DomainKind::Machine,
];

impl PairSeats {
    /// Contexts for two programs of `threads` threads each, at the level of this name as `topo`
    /// shows it. Without a name it is the closest level that has them.
    ///
    /// # Errors
    /// No level has them, or the named one does not.
    pub fn of(machine: &Machine, level: Option<&str>, threads: usize) -> Result<Self, SeatsError> {
        let found: Vec<(DomainKind, Vec<(CpuId, CpuId)>)> = LEVELS
            .iter()
            .map(|&kind| {
                (kind, machine.domains(kind).flat_map(|domain| couples(domain, &machine.allowed)))
            })
            .map(|(kind, couples)| (kind, couples.take(threads).collect::<Vec<_>>()))
            .filter(|(_, couples)| couples.len() == threads)
            .collect();
        let names = || found.iter().map(|(kind, _)| kind.name()).collect::<Vec<_>>();
        let needed = 2 * threads;
        if found.is_empty() {
            return Err(SeatsError::TooFew { needed, allowed: machine.allowed.len() });
        }
        let wanted = match level {
            None => found[0].0,
            Some(name) => {
                let is_named = |kind: &&DomainKind| kind.name().eq_ignore_ascii_case(name);
                *LEVELS
                    .iter()
                    .find(is_named)
                    .ok_or_else(|| SeatsError::Unknown { name: name.to_owned(), others: names() })?
            }
        };
        let Some((level, couples)) = found.iter().find(|(kind, _)| *kind == wanted) else {
            return Err(SeatsError::NoLevel { level: wanted, needed, others: names() });
        };
        // Of a larger level only one part may be allowed: then they share a smaller one, too.
        let smallest = found.iter().find(|(_, other)| other == couples);
        let level = smallest.map_or(level, |(kind, _)| kind);
        let tree = SharingTree::new(machine, pinwise_topology::Alike::ByStructure);
        let leaf = |cpu: CpuId| {
            tree.leaves().iter().position(|&known| known == cpu).unwrap_or_default() as u32
        };
        let (one, other) = couples.iter().map(|&(one, other)| (leaf(one), leaf(other))).unzip();
        let own = machine.domains(*level).map(|one| one.cpus.intersection(&machine.allowed).len());
        Ok(Self { level: *level, sides: [one, other], width: own.max().unwrap_or(0) })
    }
}

/// Allowed contexts two by two, that share `domain` and nothing smaller. No context occurs twice.
fn couples(domain: &Domain, allowed: &CpuSet) -> Vec<(CpuId, CpuId)> {
    let own = |child: &&Domain| !child.cpus.intersection(allowed).is_empty();
    let parts: Vec<&Domain> = domain.children.iter().filter(own).collect();
    // A domain with the same contexts counts as the same.
    if let [only] = parts[..] {
        return couples(only, allowed);
    }
    let cpus = |part: &Domain| part.cpus.intersection(allowed).iter().collect::<Vec<_>>();
    let pair = |two: &[&Domain]| cpus(two[0]).into_iter().zip(cpus(two[1])).collect::<Vec<_>>();
    parts.chunks_exact(2).flat_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpus(machine: &Machine, level: Option<&str>, threads: usize) -> (DomainKind, [Vec<u32>; 2]) {
        let seats = PairSeats::of(machine, level, threads).unwrap();
        let tree = SharingTree::new(machine, pinwise_topology::Alike::ByStructure);
        (
            seats.level,
            seats
                .sides
                .map(|side| side.iter().map(|&leaf| tree.leaves()[leaf as usize].0).collect()),
        )
    }

    #[test]
    fn the_closest_level_is_that_of_smt_siblings() {
        let machine = Machine::from_shape("2x2x2").unwrap();
        let (level, sides) = cpus(&machine, None, 1);
        assert_eq!((level, sides), (DomainKind::Core, [vec![0], vec![1]]));
        let (level, sides) = cpus(&machine, Some("package"), 1);
        assert_eq!((level, sides), (DomainKind::Package, [vec![0], vec![2]]));
        let (level, sides) = cpus(&machine, Some("Machine"), 2);
        assert_eq!((level, sides), (DomainKind::Machine, [vec![0, 1], vec![4, 5]]));
    }

    #[test]
    fn without_siblings_it_is_the_next_level_and_only_allowed_contexts_count() {
        let mut machine = Machine::from_shape("2x2x2").unwrap();
        machine.allowed = CpuSet::parse_list("1,2,5").unwrap();
        let (level, sides) = cpus(&machine, None, 1);
        assert_eq!((level, sides), (DomainKind::Package, [vec![1], vec![2]]));
        machine.allowed = CpuSet::parse_list("0,1").unwrap();
        let (level, sides) = cpus(&machine, Some("package"), 1);
        assert_eq!((level, sides), (DomainKind::Core, [vec![0], vec![1]]), "nothing larger");
        machine.allowed = CpuSet::parse_list("3").unwrap();
        let error = PairSeats::of(&machine, None, 1).unwrap_err();
        assert_eq!(error, SeatsError::TooFew { needed: 2, allowed: 1 });
    }

    #[test]
    fn threads_of_one_side_share_the_level_with_those_of_the_other() {
        let machine = Machine::model("ultrasparc-t2").unwrap();
        let (level, sides) = cpus(&machine, None, 3);
        assert_eq!((level, sides), (DomainKind::Pipe, [vec![0, 2, 4], vec![1, 3, 5]]));
        let width = |level| PairSeats::of(&machine, level, 3).unwrap().width;
        assert_eq!((width(None), width(Some("core"))), (4, 8));
        let (level, sides) = cpus(&machine, Some("core"), 3);
        assert_eq!((level, sides), (DomainKind::Core, [vec![0, 1, 2], vec![4, 5, 6]]));
    }

    #[test]
    fn a_level_that_is_not_there_is_refused_with_those_that_are() {
        let machine = Machine::from_shape("2x2x2").unwrap();
        let text = |level| PairSeats::of(&machine, Some(level), 1).unwrap_err().to_string();
        assert_eq!(
            text("numa"),
            "no 2 contexts that may be used share a NUMA and nothing smaller: choose another \
             --level (Core, Package, Machine)"
        );
        assert_eq!(
            text("L9"),
            "there is no level 'L9' here: choose another --level (Core, Package, Machine)"
        );
    }
}
