//! A machine's tree as people read it. Domains with the same contexts are one node, and every
//! domain has its numbers.

use pinwise_topology::{Cache, CacheKind, CpuId, CpuSet, Domain, DomainKind, Machine};
use std::collections::BTreeMap;

/// A domain and those that hold the same contexts, outermost first.
#[derive(Clone, Debug)]
pub struct Outline {
    /// The domains with exactly these contexts, outermost first.
    pub chain: Vec<Entry>,
    /// The contexts.
    pub cpus: CpuSet,
    /// The nodes below, in tree order.
    pub children: Vec<Outline>,
}

/// One domain of a chain, or a cache that is no separate domain (first-level and instruction
/// caches).
#[derive(Clone, Debug)]
pub struct Entry {
    /// `Package`, `L1d`, `PU`.
    pub name: String,
    /// Number in tree order among domains of its kind (`L#`).
    pub logical: u32,
    /// The kernel's number (`P#`), if it has one.
    pub os_index: Option<u32>,
    /// Bytes, for a cache.
    pub size: Option<u64>,
    /// For a core of a hybrid machine, its kind.
    pub core_kind: Option<String>,
}

impl Outline {
    /// The outline of the machine's part within `within`. `None` if that is empty.
    pub fn of(machine: &Machine, within: &CpuSet) -> Option<Self> {
        let mut numbers = BTreeMap::new();
        Builder { machine, within, numbers: &mut numbers }.build(&machine.root)
    }

    /// The context, of a node that is a single one.
    pub fn context(&self) -> Option<CpuId> {
        if self.children.is_empty() { self.cpus.first() } else { None }
    }

    /// Whether two nodes differ in nothing but their numbers.
    pub fn alike(&self, other: &Self) -> bool {
        let same = |a: &Entry, b: &Entry| {
            (&a.name, a.size, &a.core_kind) == (&b.name, b.size, &b.core_kind)
        };
        self.chain.len() == other.chain.len()
            && self.children.len() == other.children.len()
            && self.chain.iter().zip(&other.chain).all(|(a, b)| same(a, b))
            && self.children.iter().zip(&other.children).all(|(a, b)| a.alike(b))
    }
}

struct Builder<'a> {
    machine: &'a Machine,
    within: &'a CpuSet,
    numbers: &'a mut BTreeMap<String, u32>,
}

impl Builder<'_> {
    fn build(&mut self, domain: &Domain) -> Option<Outline> {
        let cpus = domain.cpus.intersection(self.within);
        if cpus.is_empty() {
            // Numbers count what is left out too: they are the machine's.
            domain.walk().for_each(|domain| drop(self.entries(domain)));
            return None;
        }
        let mut chain = self.entries(domain);
        let mut children: Vec<Outline> =
            domain.children.iter().filter_map(|child| self.build(child)).collect();
        if let [only] = children.as_mut_slice() {
            chain.append(&mut only.chain);
            children = std::mem::take(&mut only.children);
        }
        Some(Outline { chain, cpus, children })
    }

    /// The domain, and before a core its own caches.
    fn entries(&mut self, domain: &Domain) -> Vec<Entry> {
        let machine = self.machine;
        let is_domain = |cache: &Cache| cache.level >= 2 && cache.kind != CacheKind::Instruction;
        // A cache stands with the innermost domain that has its contexts and is no context.
        let holds = !domain
            .children
            .iter()
            .any(|child| child.cpus == domain.cpus && child.kind != DomainKind::Pu);
        let within = match domain.kind {
            DomainKind::Pu => Vec::new(),
            _ if holds => {
                machine.caches.iter().filter(|c| !is_domain(c) && c.cpus == domain.cpus).collect()
            }
            _ => Vec::new(),
        };
        let own = machine.caches.iter().find(|cache| {
            is_domain(cache)
                && cache.cpus == domain.cpus
                && format!("L{}", cache.level) == domain.kind.name()
        });
        let core_kind = match domain.kind {
            DomainKind::Core if machine.kinds.len() > 1 => {
                let first = domain.cpus.first();
                let kind = machine
                    .kinds
                    .iter()
                    .find(|kind| first.is_some_and(|cpu| kind.cpus.contains(cpu)));
                kind.map(|kind| kind.name.clone())
            }
            _ => None,
        };
        let entry = |name: String, os_index, size, core_kind| Entry {
            name,
            logical: 0,
            os_index,
            size,
            core_kind,
        };
        let caches = within.into_iter().map(|cache| {
            let suffix = match cache.kind {
                CacheKind::Data => "d",
                CacheKind::Instruction => "i",
                CacheKind::Unified => "",
            };
            entry(format!("L{}{suffix}", cache.level), None, cache.size, None)
        });
        let domain = entry(
            domain.kind.name().into(),
            domain.os_index,
            own.and_then(|cache| cache.size),
            core_kind,
        );
        let mut entries: Vec<Entry> = caches.collect();
        // In the order of the data flow: a core behind its caches, any other domain before its
        // caches.
        let place = if domain.name == "Core" { entries.len() } else { 0 };
        entries.insert(place, domain);
        for entry in &mut entries {
            let next = self.numbers.entry(entry.name.clone()).or_default();
            entry.logical = *next;
            *next += 1;
        }
        entries
    }
}

/// Runs of alike neighbours: where each begins, and how many.
pub fn runs<T>(items: &[T], alike: impl Fn(&T, &T) -> bool) -> Vec<&[T]> {
    items.chunk_by(|a, b| alike(a, b)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_with_the_same_contexts_are_one_node_in_order() {
        let machine = Machine::model("ultrasparc-t2").unwrap();
        let outline = Outline::of(&machine, machine.online()).unwrap();
        let names = |node: &Outline| {
            node.chain.iter().map(|entry| entry.name.clone()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(names(&outline), "Machine Package L2");
        assert_eq!(names(&outline.children[3]), "L1d L1i Core");
        assert!(outline.children.windows(2).all(|pair| pair[0].alike(&pair[1])));
        assert_eq!(outline.children[3].children[1].chain[0].logical, 7);
    }

    #[test]
    fn numbers_count_what_is_left_out() {
        let machine = Machine::from_shape("2x2").unwrap();
        let outline = Outline::of(&machine, &"3".parse().unwrap()).unwrap();
        let numbers: Vec<u32> = outline.chain.iter().map(|entry| entry.logical).collect();
        assert_eq!(numbers, [0, 1, 3]);
        assert!(Outline::of(&machine, &"9".parse().unwrap()).is_none());
    }
}
