//! Assignments that you might pick by hand.
//!
//! Some have all threads close together, others far apart. Others give each instance its own
//! domain. Random ones hardly differ so much. So these show early what sharing costs.

use pinwise_measure::Workload;
use pinwise_topology::{Assignment, Policy, SharingTree, Space};
use std::collections::BTreeMap;

/// Assignments by each policy, with threads in their order and by role. Also those that deal the
/// instances round robin to the domains of each level. Each is in canonical form and comes once.
pub(crate) fn structured(workload: &Workload, space: &Space) -> Vec<Assignment> {
    let (tree, threads) = (space.tree(), workload.threads.len());
    let as_listed: Vec<usize> = (0..threads).collect();
    let mut by_role = as_listed.clone();
    by_role.sort_by_key(|thread| &workload.threads[*thread].role);
    let by_policy = |(order, policy): (&Vec<usize>, Policy)| {
        let places = policy.assign(tree, threads);
        let mut leaves = vec![0; threads];
        order.iter().enumerate().for_each(|(turn, thread)| leaves[*thread] = places.leaves()[turn]);
        Assignment::new(leaves)
    };
    let orders = [as_listed, by_role];
    let policies =
        Policy::ALL.into_iter().flat_map(|policy| orders.iter().map(move |o| (o, policy)));
    let by_instance = (0..tree.around(0).len()).map(|level| apart(workload, tree, level));
    let mut chosen: Vec<Assignment> = Vec::new();
    for assignment in by_instance.chain(policies.map(by_policy)) {
        let class = space.canonical(&space.nearest(&assignment));
        if !chosen.contains(&class) {
            chosen.push(class);
        }
    }
    chosen
}

/// Each instance in one domain of a level, counted from the innermost, the domains by turns.
fn apart(workload: &Workload, tree: &SharingTree, level: usize) -> Assignment {
    let contexts = tree.leaves().len();
    // Far from each other, and so are those within a domain.
    let order = Policy::Scatter.assign(tree, contexts);
    let mut domains: Vec<Vec<u32>> = Vec::new();
    let mut numbers: BTreeMap<u32, usize> = BTreeMap::new();
    for leaf in order.leaves() {
        let around = tree.around(*leaf);
        let first = around.get(level).map_or(*leaf, |(_, range)| range.start);
        let number = *numbers.entry(first).or_insert(domains.len());
        domains.resize(domains.len().max(number + 1), Vec::new());
        domains[number].push(*leaf);
    }
    let mut instances: BTreeMap<usize, usize> = BTreeMap::new();
    let mut taken = vec![0; domains.len()];
    let place = |thread: &pinwise_measure::Thread| {
        let next = instances.len() % domains.len();
        let domain = *instances.entry(thread.instance).or_insert(next);
        let turn = taken[domain];
        taken[domain] += 1;
        domains[domain][turn % domains[domain].len()]
    };
    Assignment::new(workload.threads.iter().map(place).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_topology::{Alike, Machine, PerContext};
    use std::collections::BTreeSet;

    #[test]
    fn instances_are_together_and_apart_and_all_are_allowed_once() {
        let workload = Workload::new("pipelines", &[&["R", "P", "T"][..]; 8]);
        let tree = SharingTree::new(&Machine::from_shape("8x2x4").unwrap(), Alike::ByStructure);
        let space = Space::new(tree, 24, PerContext::AtMost(1)).unwrap();
        let chosen = structured(&workload, &space);
        assert!((5..=12).contains(&chosen.len()), "{}", chosen.len());
        let different: BTreeSet<_> = chosen.iter().collect();
        assert_eq!(different.len(), chosen.len());
        assert!(chosen.iter().all(|chosen| space.allows(chosen)));
        // By level, whether any assignment has every instance in a domain, alone there.
        for size in [4, 8] {
            let alone = |chosen: &&Assignment| {
                let domain = |thread: usize| chosen.leaves()[thread] / size;
                let homes: BTreeSet<u32> = (0..8).map(|instance| domain(3 * instance)).collect();
                homes.len() == 8 && (0..24).all(|thread| domain(thread) == domain(thread / 3 * 3))
            };
            assert!(chosen.iter().any(|chosen| alone(&chosen)), "{size}");
        }
    }
}
