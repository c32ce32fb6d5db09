//! Balanced placements: where the load balancers of general-purpose operating systems put unpinned
//! threads.

use crate::{Assignment, Random, SharingTree};

/// Threads spread evenly, in random order. Each goes to the least loaded of the largest domains,
/// then of those within it, down to a context. Chance decides between equals. A context holds a
/// second thread when all hold one. Linux and Solaris do the same, and chance decides which threads
/// end up together (blackbox-scheduler, section 4.4). Not in canonical form.
///
/// # Panics
/// If the tree has no contexts and there are threads.
pub fn balanced(tree: &SharingTree, threads: usize, random: &mut Random) -> Assignment {
    let leaves = tree.leaves().len();
    let mut order: Vec<usize> = (0..threads).collect();
    random.shuffle(&mut order);
    let mut free: Vec<u32> = Vec::new();
    let mut held = vec![0u32; leaves];
    let mut placed = vec![0; threads];
    for thread in order {
        if free.is_empty() {
            free = (0..leaves as u32).collect();
            random.shuffle(&mut free);
        }
        let load = |leaf: u32| {
            let around = tree.around(leaf).into_iter().rev();
            around
                .map(|(_, domain)| domain.map(|leaf| held[leaf as usize]).sum::<u32>())
                .collect::<Vec<u32>>()
        };
        let least =
            free.iter().enumerate().min_by_key(|&(_, &leaf)| load(leaf)).map(|(index, _)| index);
        let leaf = free.swap_remove(least.expect("a machine has contexts"));
        held[leaf as usize] += 1;
        placed[thread] = leaf;
    }
    Assignment::new(placed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Alike, DomainKind, Machine};
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn domains_of_one_kind_hold_equally_many_threads_but_for_one() {
        let tree = SharingTree::new(&Machine::model("ultrasparc-t2").unwrap(), Alike::ByStructure);
        let mut random = Random::new(3);
        let mut seen = BTreeSet::new();
        for threads in [1, 3, 6, 8, 16, 24, 30, 64, 70, 128] {
            for _ in 0..20 {
                let placed = balanced(&tree, threads, &mut random);
                let mut loads = BTreeMap::new();
                let mut each = [0; 64];
                placed.leaves().iter().for_each(|leaf| each[*leaf as usize] += 1);
                for leaf in 0..64 {
                    for (kind, domain) in tree.around(leaf) {
                        let held = domain.map(|leaf| each[leaf as usize]).sum::<usize>();
                        loads.entry(kind).or_insert_with(Vec::new).push(held);
                    }
                }
                for kind in [DomainKind::Core, DomainKind::Pipe] {
                    let (least, most) =
                        (loads[&kind].iter().min().unwrap(), loads[&kind].iter().max().unwrap());
                    assert!(most - least <= 1, "{threads} threads, {kind:?}: {placed:?}");
                }
                assert!(each.iter().max().unwrap() - each.iter().min().unwrap() <= 1);
                seen.insert(placed);
            }
        }
        assert!(seen.len() > 150, "chance decides: {}", seen.len());
    }
}
