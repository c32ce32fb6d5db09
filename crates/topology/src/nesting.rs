//! Turns a heap of domains into a tree.
//!
//! The kernel, hwloc and firmware report, context by context, which parts are shared. A tree needs
//! more: two domains must be disjoint, or one must hold the other. Real firmware breaks that (a
//! cache map that spans two packages, a NUMA node that cuts a core in two). Nothing is forced to
//! fit. If two domains cross, the less trusted one is left out of the tree and the machine's notes
//! say so.
//!
//! Method: domains are placed from large to small, equal ones from outer to inner kind.
//! `deepest[cpu]` is the smallest domain so far that holds a context. A domain nests exactly if it
//! is the same one for all of its contexts. The cost is the sum of all domains' sizes.

use crate::shape::MOST_CONTEXTS;
use crate::{CpuId, CpuSet, Domain, DomainKind, MachineError, MachineNote};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};

/// A domain as a source reports it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ReportedDomain {
    pub(crate) kind: DomainKind,
    pub(crate) os_index: Option<u32>,
    pub(crate) cpus: CpuSet,
}

/// No machine has this many levels; a description that nests deeper is a mistake (and would
/// overflow recursive readers).
const DEEPEST: usize = 32;

/// How much each kind is trusted, least first. What the scheduler itself relies on weighs more.
fn trust(kind: DomainKind) -> u8 {
    match kind {
        DomainKind::Group => 0,
        DomainKind::Cluster | DomainKind::Die | DomainKind::Pipe => 1,
        DomainKind::L4 | DomainKind::L3 | DomainKind::L2 => 2,
        DomainKind::Numa => 3,
        DomainKind::Package => 4,
        DomainKind::Core => 5,
        DomainKind::Pu | DomainKind::Machine => 6,
    }
}

/// Domains that are left out, by their kind and the kind that is kept. The values: how many, the
/// contexts of the first of them, and those of the domain that it crosses.
type Crossings = BTreeMap<(DomainKind, DomainKind), (usize, CpuSet, CpuSet)>;

struct NestedDomain {
    found: ReportedDomain,
    parent: Option<usize>,
    depth: usize,
    alive: bool,
}

/// Refuses more CPUs than a machine has. To read the domains of each would take memory and time
/// that grow with the square of their number.
pub(crate) fn check_number(online: &CpuSet) -> Result<(), MachineError> {
    if online.len() as u64 > MOST_CONTEXTS {
        let reason = format!("there are {}; a machine has at most {MOST_CONTEXTS}", online.len());
        return Err(MachineError::malformed("the CPUs", reason));
    }
    Ok(())
}

/// The tree over `online` and the notes on what did not fit. Contexts without a [`DomainKind::Pu`]
/// get one.
pub(crate) fn nest(
    online: &CpuSet,
    found: Vec<ReportedDomain>,
) -> Result<(Domain, Vec<MachineNote>), MachineError> {
    check_number(online)?;
    let mut all: Vec<ReportedDomain> = found
        .into_iter()
        .map(|found| ReportedDomain { cpus: found.cpus.intersection(online), ..found })
        .filter(|found| !matches!(found.kind, DomainKind::Pu | DomainKind::Machine))
        .chain(online.iter().map(|cpu| ReportedDomain {
            kind: DomainKind::Pu,
            os_index: Some(cpu.0),
            cpus: only(cpu),
        }))
        .collect();
    drop_redundant(online, &mut all);
    all.sort_by_key(|found| (Reverse(found.cpus.len()), found.kind, found.cpus.first()));

    let root = ReportedDomain { kind: DomainKind::Machine, os_index: None, cpus: online.clone() };
    let mut nodes = vec![NestedDomain { found: root, parent: None, depth: 0, alive: true }];
    let highest = online.iter().last().map_or(0, |cpu| cpu.0 as usize);
    let mut deepest = vec![0usize; highest + 1];
    let mut crossings: Crossings = BTreeMap::new();
    for found in all {
        let against = crossed(&nodes, &deepest, &found);
        let outranked =
            against.iter().all(|&node| trust(nodes[node].found.kind) < trust(found.kind));
        if let (Some(&other), false) = (against.first(), outranked) {
            note(&mut crossings, &found, &nodes[other].found);
            continue;
        }
        for node in against {
            note(&mut crossings, &nodes[node].found, &found);
            remove(&mut nodes, &mut deepest, node);
        }
        let Some(first) = found.cpus.first() else { continue };
        let parent = deepest[first.0 as usize];
        let depth = nodes[parent].depth + 1;
        if depth > DEEPEST {
            return Err(MachineError::malformed(
                "the domains",
                format!("nested more than {DEEPEST} deep around CPU {}; no machine is", first.0),
            ));
        }
        for cpu in found.cpus.iter() {
            deepest[cpu.0 as usize] = nodes.len();
        }
        nodes.push(NestedDomain { found, parent: Some(parent), depth, alive: true });
    }
    let note = |((left_out, kept), (domains, cpus, kept_cpus))| MachineNote::Crossing {
        domains,
        left_out,
        cpus,
        kept,
        kept_cpus,
    };
    Ok((grow(nodes), crossings.into_iter().map(note).collect()))
}

/// Drops empty domains, repeated ones, and groupings without a separate meaning that equal another
/// domain.
fn drop_redundant(online: &CpuSet, all: &mut Vec<ReportedDomain>) {
    let vague = |kind| matches!(kind, DomainKind::Group | DomainKind::Die | DomainKind::Cluster);
    let telling: HashSet<CpuSet> =
        all.iter().filter(|found| !vague(found.kind)).map(|found| found.cpus.clone()).collect();
    let mut seen = HashSet::new();
    all.retain(|found| {
        let repeats = vague(found.kind) && (telling.contains(&found.cpus) || found.cpus == *online);
        // Two groups with the same contexts (an s390 book that fills its drawer) are one.
        !found.cpus.is_empty() && !repeats && seen.insert((found.kind, found.cpus.clone()))
    });
}

/// The nodes that hold some contexts of `found` but not all, or that must not hold it. Nothing but
/// pipes and contexts is smaller than a core.
fn crossed(nodes: &[NestedDomain], deepest: &[usize], found: &ReportedDomain) -> Vec<usize> {
    let mut against = Vec::new();
    let mut visited = HashSet::new();
    for cpu in found.cpus.iter() {
        let mut node = deepest[cpu.0 as usize];
        while visited.insert(node) {
            let holder = &nodes[node].found;
            let inside_out = holder.kind == DomainKind::Core && found.kind < DomainKind::Core;
            if inside_out || !found.cpus.is_subset(&holder.cpus) {
                against.push(node);
            }
            let Some(parent) = nodes[node].parent else { break };
            node = parent;
        }
    }
    against
}

fn note(crossings: &mut Crossings, left_out: &ReportedDomain, kept: &ReportedDomain) {
    let first = || (0, left_out.cpus.clone(), kept.cpus.clone());
    crossings.entry((left_out.kind, kept.kind)).or_insert_with(first).0 += 1;
}

/// Takes a node out: its children and its contexts fall to its parent.
fn remove(nodes: &mut [NestedDomain], deepest: &mut [usize], dead: usize) {
    // The root is trusted most, so only nodes with a parent are removed.
    let Some(parent) = nodes[dead].parent else { return };
    nodes[dead].alive = false;
    for node in nodes.iter_mut().filter(|node| node.parent == Some(dead)) {
        node.parent = Some(parent);
    }
    for holder in deepest.iter_mut().filter(|holder| **holder == dead) {
        *holder = parent;
    }
}

/// Nodes in placing order have their parents before them, so the last ones are complete first.
fn grow(nodes: Vec<NestedDomain>) -> Domain {
    let mut children: Vec<Vec<Domain>> = nodes.iter().map(|_| Vec::new()).collect();
    let mut root = None;
    for (index, node) in nodes.into_iter().enumerate().rev() {
        let mut inner = std::mem::take(&mut children[index]);
        if !node.alive {
            continue;
        }
        inner.sort_by_key(|domain| domain.cpus.first());
        let ReportedDomain { kind, os_index, cpus } = node.found;
        let domain = Domain { kind, os_index, cpus, children: inner };
        match node.parent {
            Some(parent) => children[parent].push(domain),
            None => root = Some(domain),
        }
    }
    // The first node is the root and is always alive; the fallback is unreachable.
    root.unwrap_or(Domain {
        kind: DomainKind::Machine,
        os_index: None,
        cpus: CpuSet::new(),
        children: Vec::new(),
    })
}

/// The set of one context.
pub(crate) fn only(cpu: CpuId) -> CpuSet {
    CpuSet::from_iter([cpu])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn found(kind: DomainKind, cpus: &str) -> ReportedDomain {
        ReportedDomain { kind, os_index: None, cpus: cpus.parse().unwrap() }
    }

    fn outline(domain: &Domain) -> String {
        let inner: Vec<String> = domain.children.iter().map(outline).collect();
        if domain.kind == DomainKind::Pu {
            domain.cpus.to_string()
        } else {
            format!("{}({})", domain.kind.name(), inner.join(" "))
        }
    }

    #[test]
    fn more_contexts_than_linux_knows_are_refused_at_once() {
        let error = nest(&"0-65535".parse().unwrap(), Vec::new()).unwrap_err().to_string();
        assert!(error.contains("there are 65536; a machine has at most 8192"), "{error}");
    }

    #[test]
    fn equal_domains_nest_from_outer_to_inner_kind() {
        let domains = vec![
            found(DomainKind::Core, "0,1"),
            found(DomainKind::L3, "0-3"),
            found(DomainKind::Package, "0-3"),
            found(DomainKind::Numa, "0-3"),
        ];
        let (root, notes) = nest(&"0-3".parse().unwrap(), domains).unwrap();
        assert_eq!(outline(&root), "Machine(Package(NUMA(L3(Core(0 1) 2 3))))");
        assert!(notes.is_empty());
    }

    #[test]
    fn a_cache_across_two_packages_is_left_out_and_noted() {
        let domains = vec![
            found(DomainKind::Package, "0-2"),
            found(DomainKind::Package, "3-5"),
            found(DomainKind::L3, "2-5"),
        ];
        let (root, notes) = nest(&"0-5".parse().unwrap(), domains).unwrap();
        assert_eq!(outline(&root), "Machine(Package(0 1 2) Package(3 4 5))");
        let crossing = MachineNote::Crossing {
            domains: 1,
            left_out: DomainKind::L3,
            cpus: "2-5".parse().unwrap(),
            kept: DomainKind::Package,
            kept_cpus: "0-2".parse().unwrap(),
        };
        assert_eq!(notes, [crossing]);
    }

    #[test]
    fn a_package_inside_a_core_is_left_out() {
        let domains = vec![found(DomainKind::Core, "0-3"), found(DomainKind::Package, "0,1")];
        let (root, notes) = nest(&"0-3".parse().unwrap(), domains).unwrap();
        assert_eq!(outline(&root), "Machine(Core(0 1 2 3))");
        assert_eq!(notes.len(), 1);
    }

    #[test]
    fn groups_that_say_nothing_new_are_dropped() {
        let domains = vec![
            found(DomainKind::Cluster, "0,1"),
            found(DomainKind::Core, "0,1"),
            found(DomainKind::Die, "0-3"),
            found(DomainKind::Group, "2,3"),
        ];
        let (root, _) = nest(&"0-3".parse().unwrap(), domains).unwrap();
        assert_eq!(outline(&root), "Machine(Core(0 1) Group(2 3))");
        // As on a processor whose dies have one L3 each. Another has two, so the die says more.
        let caches = [(DomainKind::L3, "0,1"), (DomainKind::L3, "2,3"), (DomainKind::Die, "0,1")];
        let die = |more: &[(DomainKind, &str)]| {
            let domains = caches.iter().chain(more).map(|&(kind, cpus)| found(kind, cpus));
            outline(&nest(&"0-7".parse().unwrap(), domains.collect()).unwrap().0)
        };
        assert_eq!(die(&[]), "Machine(L3(0 1) L3(2 3) 4 5 6 7)");
        assert_eq!(die(&[(DomainKind::Die, "0-3")]), "Machine(Die(L3(0 1) L3(2 3)) 4 5 6 7)");
    }

    #[test]
    fn a_description_nested_absurdly_deep_is_refused() {
        let domains = (1..100).map(|high| found(DomainKind::Group, &format!("0-{high}"))).collect();
        assert!(nest(&"0-99".parse().unwrap(), domains).is_err());
    }

    fn laminar(domain: &Domain) -> bool {
        let inside = domain
            .children
            .iter()
            .all(|child| child.cpus.is_subset(&domain.cpus) && laminar(child));
        let together: usize = domain.children.iter().map(|child| child.cpus.len()).sum();
        let ordered =
            domain.children.windows(2).all(|pair| pair[0].cpus.first() < pair[1].cpus.first());
        let leaf = domain.kind == DomainKind::Pu;
        inside && ordered && (leaf || together == domain.cpus.len())
    }

    proptest! {
        #[test]
        fn any_heap_of_domains_gives_a_tree_over_all_contexts(
            heap in proptest::collection::vec(
                (1usize..11, proptest::collection::btree_set(0u32..12, 0..9)),
                0..14,
            ),
        ) {
            let kinds = [
                DomainKind::Machine,
                DomainKind::Group,
                DomainKind::Package,
                DomainKind::Numa,
                DomainKind::Die,
                DomainKind::L4,
                DomainKind::L3,
                DomainKind::Cluster,
                DomainKind::L2,
                DomainKind::Core,
                DomainKind::Pipe,
            ];
            let domains = heap.into_iter().map(|(kind, cpus)| ReportedDomain {
                kind: kinds[kind], os_index: None, cpus: cpus.into_iter().map(CpuId).collect(),
            }).collect();
            let online: CpuSet = "0-9".parse().unwrap();
            let (root, _) = nest(&online, domains).unwrap();
            prop_assert!(laminar(&root), "{}", outline(&root));
            let pus = root.walk().filter(|domain| domain.kind == DomainKind::Pu);
            let leaves: CpuSet = pus.flat_map(|domain| domain.cpus.iter()).collect();
            prop_assert_eq!(leaves, online);
        }
    }
}
