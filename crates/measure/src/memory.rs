//! On which NUMA nodes the memory of a program lies, and what pinwise does about it.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Where memory lies while an assignment is measured.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum MemoryPolicy {
    /// It stays where the program and the kernel put it.
    #[default]
    Leave,
    /// It lies on the node on which the threads of its process run. If they run on several, it
    /// lies where it was before.
    Follow,
    /// It is spread over all nodes, page by page.
    Interleave,
}

impl MemoryPolicy {
    /// All of them, the default first.
    pub const ALL: [Self; 3] = [Self::Leave, Self::Follow, Self::Interleave];

    /// Its name, as users type it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Leave => "leave",
            Self::Follow => "follow",
            Self::Interleave => "interleave",
        }
    }

    /// Whether pinwise does nothing about memory.
    pub fn is_leave(&self) -> bool {
        *self == Self::Leave
    }
}

/// How many pages of memory lie on which node. A huge page counts as the pages it replaces.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<PagesOfNode>", into = "Vec<PagesOfNode>")]
pub struct NodePages(BTreeMap<u32, u64>);

/// The stored form of an entry: JSON has no numbers as keys.
#[derive(Serialize, Deserialize)]
struct PagesOfNode {
    node: u32,
    pages: u64,
}

impl From<Vec<PagesOfNode>> for NodePages {
    fn from(entries: Vec<PagesOfNode>) -> Self {
        entries.into_iter().map(|entry| (entry.node, entry.pages)).collect()
    }
}

impl From<NodePages> for Vec<PagesOfNode> {
    fn from(pages: NodePages) -> Self {
        pages.iter().map(|(node, pages)| PagesOfNode { node, pages }).collect()
    }
}

impl FromIterator<(u32, u64)> for NodePages {
    fn from_iter<T: IntoIterator<Item = (u32, u64)>>(entries: T) -> Self {
        let mut all = Self::default();
        entries.into_iter().for_each(|(node, pages)| all.add(node, pages));
        all
    }
}

impl NodePages {
    /// The share of memory that need not lie on a node's home: a program also maps what others
    /// have loaded.
    const ELSEWHERE: f64 = 0.1;

    /// Counts more pages on a node.
    pub fn add(&mut self, node: u32, pages: u64) {
        if pages > 0 {
            let on = self.0.entry(node).or_default();
            *on = on.saturating_add(pages);
        }
    }

    /// The nodes that have pages, ascending, with how many.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u64)> {
        self.0.iter().map(|(&node, &pages)| (node, pages))
    }

    /// All pages.
    pub fn total(&self) -> u64 {
        self.0.values().fold(0, |sum, &pages| sum.saturating_add(pages))
    }

    /// The share of the pages that lies outside of `nodes`, 0 to 1.
    pub fn outside(&self, nodes: &BTreeSet<u32>) -> f64 {
        self.share(|node, pages| if nodes.contains(&node) { 0 } else { pages })
    }

    /// The pages on `nodes` alone.
    pub fn on(&self, nodes: &BTreeSet<u32>) -> Self {
        self.iter().filter(|(node, _)| nodes.contains(node)).collect()
    }

    /// The nodes on which memory mostly lies: the fewest that have all but a tenth of it.
    pub fn home(&self) -> BTreeSet<u32> {
        let mut entries: Vec<(u32, u64)> = self.iter().collect();
        entries.sort_by_key(|&(node, pages)| (std::cmp::Reverse(pages), node));
        let mut home = BTreeSet::new();
        for (node, _) in entries {
            if self.outside(&home) <= Self::ELSEWHERE {
                break;
            }
            home.insert(node);
        }
        home
    }

    fn share(&self, count: impl Fn(u32, u64) -> u64) -> f64 {
        let counted: f64 = self.iter().map(|(node, pages)| count(node, pages) as f64).sum();
        if self.0.is_empty() { 0.0 } else { counted / self.total() as f64 }
    }
}

/// The memory under which an answer holds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MemoryUse {
    /// What was asked for.
    pub policy: MemoryPolicy,
    /// Where the memory lay; empty if that was not seen.
    pub nodes: NodePages,
    /// The share of local accesses, 0 to 1, among those that NUMA balancing saw in all windows, of
    /// all programs. `None`: it is off, or saw too few.
    #[serde(default)]
    pub local: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(entries: &[(u32, u64)]) -> NodePages {
        entries.iter().copied().collect()
    }

    #[test]
    fn the_home_of_memory_is_where_nearly_all_of_it_lies() {
        let home =
            |entries: &[(u32, u64)]| -> Vec<u32> { pages(entries).home().into_iter().collect() };
        assert_eq!(home(&[(0, 7), (1, 93)]), [1]);
        assert_eq!(home(&[(0, 20), (1, 80)]), [0, 1]);
        assert_eq!(home(&[(0, 50), (1, 2), (3, 48)]), [0, 3]);
        assert_eq!(home(&[]), [0; 0]);
    }

    #[test]
    fn shares_are_of_all_pages() {
        let now = pages(&[(0, 30), (1, 70)]);
        assert_eq!(now.outside(&[1].into()), 0.3);
        assert_eq!(now.outside(&[0, 1].into()), 0.0);
        assert_eq!(now.on(&[1, 2].into()), pages(&[(1, 70)]));
        assert_eq!(NodePages::default().outside(&BTreeSet::new()), 0.0);
    }

    #[test]
    fn a_stored_use_is_read_again() {
        let held = MemoryUse {
            policy: MemoryPolicy::Follow,
            nodes: pages(&[(0, 3), (2, 5)]),
            local: None,
        };
        let stored = serde_json::to_value(&held).unwrap();
        let nodes = serde_json::json!([{"node": 0, "pages": 3}, {"node": 2, "pages": 5}]);
        let written = serde_json::json!({"policy": "follow", "nodes": nodes, "local": null});
        assert_eq!(stored, written);
        // Earlier versions did not look at accesses.
        for text in [written, serde_json::json!({"policy": "follow", "nodes": nodes})] {
            assert_eq!(serde_json::from_value::<MemoryUse>(text).unwrap(), held);
        }
    }
}
