//! Where a class stands in the enumeration, and which class stands at a position.
//!
//! The rank of a canonical assignment is the number of canonical ones before it. For every thread
//! t, these agree before t and have t on an earlier context. They are counted from the root down.
//! At a node, the canonical completions with t in a certain child are (rest · child')_r. Here
//! child' is the derivative of the child's series, because t is in it. The number of threads after
//! t is r. The rest is everything outside the child. Children come in the order of their contexts.
//! So those before the right one count whole. The search goes on within the right one, whose
//! siblings join the rest.

use super::classes::Occupancy;
use super::series::{self, Series};
use super::{Assignment, Space};
use num_bigint::BigUint;

/// The number of classes before a canonical assignment.
pub(super) fn rank(space: &Space, canonical: &Assignment) -> BigUint {
    let mut before = BigUint::ZERO;
    walk(space, |thread, alternatives| {
        let leaf = canonical.leaves()[thread];
        let holds = |child: &usize| space.tree.nodes()[*child].leaves.contains(&leaf);
        for alternative in alternatives {
            if holds(&alternative.child) {
                return Some(alternative);
            }
            before += alternative.ways();
        }
        None
    });
    before
}

/// The class with `rank` classes before it, which must be below their number.
pub(super) fn unrank(space: &Space, mut rank: BigUint) -> Assignment {
    Assignment::new(walk(space, |_, alternatives| {
        for alternative in alternatives {
            let ways = alternative.ways();
            if rank < ways {
                return Some(alternative);
            }
            rank -= ways;
        }
        None
    }))
}

/// A child into which the next thread may go.
struct Alternative {
    child: usize,
    /// The derivative of the child's series: the thread is in it.
    inside: Series,
    /// Everything outside the child.
    outside: Series,
    /// Threads that come after.
    after: usize,
}

impl Alternative {
    /// The number of completions.
    fn ways(&self) -> BigUint {
        series::coefficient_of_product(&self.outside, &self.inside, self.after)
    }
}

/// Places thread after thread, each by choices from the root down to a leaf; gives the leaves. A
/// choice of `None` ends the walk. That does not happen for an assignment or a rank of this space.
fn walk(
    space: &Space,
    mut choose: impl FnMut(usize, &mut dyn Iterator<Item = Alternative>) -> Option<Alternative>,
) -> Vec<u32> {
    let nodes = space.tree.nodes();
    let mut occupancy = Occupancy::new(space);
    let mut leaves = Vec::with_capacity(space.threads);
    for thread in 0..space.threads {
        let after = space.threads - thread - 1;
        let (mut at, mut outside) = (0, series::up_to(0));
        while !nodes[at].groups.is_empty() {
            let Some(chosen) =
                choose(thread, &mut alternatives(space, &occupancy, at, &outside, after))
            else {
                return leaves;
            };
            (at, outside) = (chosen.child, chosen.outside);
        }
        occupancy.put(nodes[at].leaves.start);
        leaves.push(nodes[at].leaves.start);
    }
    leaves
}

/// The children of `parent` into which the next thread may go, in the order of their contexts.
fn alternatives<'a>(
    space: &'a Space,
    occupancy: &'a Occupancy<'a>,
    parent: usize,
    outside: &'a Series,
    after: usize,
) -> impl Iterator<Item = Alternative> + 'a {
    let parts = parts(space, occupancy, parent, after + 1);
    // others[i] is the product of all parts but part i, and of what is outside the parent.
    let mut others: Vec<Series> = vec![outside.clone(); parts.len()];
    let mut product = series::up_to(0);
    for (part, others) in parts.iter().zip(&mut others) {
        *others = series::product(others, &product, after);
        product = series::product(&product, &part.ways, after);
    }
    let mut product = series::up_to(0);
    for (part, others) in parts.iter().zip(&mut others).rev() {
        *others = series::product(others, &product, after);
        product = series::product(&product, &part.ways, after);
    }
    let mut candidates: Vec<(SeriesFactor, Series)> = parts.into_iter().zip(others).collect();
    candidates.sort_unstable_by_key(|(part, _)| part.child);
    candidates.into_iter().map(move |(part, others)| Alternative {
        child: part.child,
        inside: series::derivative(&part.child_ways),
        outside: series::product(&others, &part.without_child, after),
        after,
    })
}

/// A factor of a node's series: a child in use, or the empty children of a group.
struct SeriesFactor {
    ways: Series,
    /// The child in use, or the first of the empty ones.
    child: usize,
    child_ways: Series,
    /// The other empty children.
    without_child: Series,
}

/// The factors of the series of a node, given what is already placed; up to degree `limit`.
fn parts(
    space: &Space,
    occupancy: &Occupancy<'_>,
    parent: usize,
    limit: usize,
) -> Vec<SeriesFactor> {
    let nodes = space.tree.nodes();
    let mut parts = Vec::new();
    for group in &nodes[parent].groups {
        let used = occupancy.filled[nodes[group[0]].in_group] as usize;
        for &child in &group[..used] {
            let ways = node_series(space, occupancy, child, limit);
            parts.push(SeriesFactor {
                child,
                child_ways: ways.clone(),
                ways,
                without_child: series::up_to(0),
            });
        }
        if let Some(&child) = group.get(used) {
            let (child_ways, empty) =
                (space.empty()[nodes[child].class].clone(), group.len() - used);
            let ways = series::alike(&child_ways, empty, limit);
            let without_child = series::alike(&child_ways, empty - 1, limit);
            parts.push(SeriesFactor { ways, child, child_ways, without_child });
        }
    }
    parts
}

/// In how many ways further threads can be placed in a node.
fn node_series(space: &Space, occupancy: &Occupancy<'_>, node: usize, limit: usize) -> Series {
    if occupancy.threads[node] == 0 {
        return space.empty()[space.tree.nodes()[node].class].clone();
    }
    if space.tree.nodes()[node].groups.is_empty() {
        return series::up_to(space.capacity() - occupancy.threads[node] as usize);
    }
    let parts = parts(space, occupancy, node, limit);
    parts.iter().fold(series::up_to(0), |ways, part| series::product(&ways, &part.ways, limit))
}
