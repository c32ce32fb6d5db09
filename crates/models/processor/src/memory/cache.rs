//! Tags of a set-associative cache, and which line of a set gives way.

use crate::processor::CachePolicy;

/// Line numbers (address divided by line size) held by a set-associative cache. Line `n` belongs to
/// set `n` modulo sets.
#[derive(Clone, Debug)]
pub struct CacheTags {
    /// The line in each way of each set, [`EMPTY`] if there is none.
    tags: Vec<u32>,
    /// Tree-PLRU: bit *n* is node *n* of the tree, 1 at the root. It is set when the next victim is
    /// in the upper half. Not recently used: the used bit of each way.
    history: Vec<u32>,
    /// Not recently used: the way from which a bank looks for a victim.
    rotors: Vec<u8>,
    ways: usize,
    policy: CachePolicy,
    /// Tree-PLRU: for each way, the nodes above it, and those of them that point away from it.
    paths: Vec<[u32; 2]>,
}

/// No line has this number. Addresses end at 64 GiB, and lines have at least 16 bytes
/// ([`crate::Processor`] checks).
const EMPTY: u32 = u32::MAX;

impl CacheTags {
    /// An empty cache. `bytes`, `ways` and `line` are powers of two; banks share the lines by their
    /// lowest bits.
    pub fn new(bytes: usize, ways: u32, line: u32, banks: u32, policy: CachePolicy) -> Self {
        let lines = bytes / line as usize;
        let ways = ways as usize;
        let path = |way: usize| {
            let nodes = std::iter::successors(Some(ways + way), |node| Some(node / 2))
                .take_while(|&node| node > 1);
            nodes.fold([0, 0], |[above, away], node| {
                let parent = 1 << (node / 2);
                [above | parent, if node & 1 == 0 { away | parent } else { away }]
            })
        };
        Self {
            tags: vec![EMPTY; lines],
            history: vec![0; lines / ways],
            rotors: vec![0; banks as usize],
            ways,
            policy,
            paths: (0..ways).map(path).collect(),
        }
    }

    /// The number of lines it holds when full.
    pub(crate) fn lines(&self) -> usize {
        self.tags.len()
    }

    /// Whether `line` is there, and where: the index of its place among all places of the cache.
    /// Remembers the use.
    #[inline]
    pub fn access(&mut self, line: u32) -> Option<usize> {
        let set = self.set(line);
        let place = self.find(set, line)?;
        self.touch(set, place - set * self.ways);
        Some(place)
    }

    /// Puts `line` in, unless it is there; returns its place and the line that gave way.
    pub(crate) fn insert(&mut self, line: u32) -> (usize, Option<u32>) {
        match self.access(line) {
            Some(place) => (place, None),
            None => self.insert_new(line),
        }
    }

    /// The same for a line that is not there.
    pub fn insert_new(&mut self, line: u32) -> (usize, Option<u32>) {
        let set = self.set(line);
        let way = match self.find(set, EMPTY) {
            Some(place) => place - set * self.ways,
            None => self.victim(set),
        };
        self.touch(set, way);
        let place = set * self.ways + way;
        let evicted = std::mem::replace(&mut self.tags[place], line);
        (place, (evicted != EMPTY).then_some(evicted))
    }

    /// Takes `line` out if it is there.
    pub(crate) fn remove(&mut self, line: u32) {
        if let Some(place) = self.find(self.set(line), line) {
            self.tags[place] = EMPTY;
        }
    }

    #[inline]
    fn set(&self, line: u32) -> usize {
        line as usize & (self.history.len() - 1)
    }

    /// Looks at the ways of a set all at once. Which way has a line follows no pattern that a
    /// branch predictor could learn.
    #[inline]
    fn find(&self, set: usize, line: u32) -> Option<usize> {
        let first = set * self.ways;
        let tags = &self.tags[first..first + self.ways];
        // Those of the T2, whose length the compiler then knows.
        let found = if let Ok(four) = <&[u32; 4]>::try_from(tags) {
            matches(four, line)
        } else if let Ok(sixteen) = <&[u32; 16]>::try_from(tags) {
            matches(sixteen, line)
        } else {
            matches(tags, line)
        };
        (found != 0).then(|| first + found.trailing_zeros() as usize)
    }

    #[inline]
    fn touch(&mut self, set: usize, way: usize) {
        let history = &mut self.history[set];
        match self.policy {
            CachePolicy::TreePlru => {
                let [above, away] = self.paths[way];
                *history = *history & !above | away;
            }
            CachePolicy::NotRecentlyUsed => {
                *history |= 1 << way;
                if history.count_ones() as usize == self.ways {
                    *history = 1 << way;
                }
            }
        }
    }

    /// The way of a full set that gives way.
    fn victim(&mut self, set: usize) -> usize {
        let history = self.history[set];
        match self.policy {
            CachePolicy::TreePlru => {
                let mut node = 1;
                while node < self.ways {
                    node = 2 * node + (history >> node & 1) as usize;
                }
                node - self.ways
            }
            CachePolicy::NotRecentlyUsed => {
                let bank = set & (self.rotors.len() - 1);
                let rotor = &mut self.rotors[bank];
                // With one way its used bit is always set.
                let ways = self.ways as u32;
                let way = (0..ways)
                    .map(|step| (u32::from(*rotor) + step) & (ways - 1))
                    .find(|way| history >> way & 1 == 0)
                    .unwrap_or(0);
                *rotor = ((way + 1) & (ways - 1)) as u8;
                way as usize
            }
        }
    }
}

/// Bit *n* for every tag *n* that is `line`.
#[inline]
fn matches(tags: &[u32], line: u32) -> u32 {
    (0..).zip(tags).fold(0, |found, (way, &tag)| found | u32::from(tag == line) << way)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four ways, four sets of 16-byte lines.
    fn small(policy: CachePolicy) -> CacheTags {
        CacheTags::new(256, 4, 16, 1, policy)
    }

    /// Lines of set 0.
    fn fill(cache: &mut CacheTags) {
        for line in [0, 4, 8, 12] {
            assert_eq!(cache.insert(line).1, None);
        }
    }

    #[test]
    fn tree_plru_gives_up_the_half_not_used_last() {
        let mut cache = small(CachePolicy::TreePlru);
        fill(&mut cache);
        // Used in the order of the ways: the tree points to way 0, then to the other half.
        assert_eq!(cache.insert(16).1, Some(0));
        assert_eq!(cache.insert(20).1, Some(8));
        // A use of way 1 turns the root to the upper half, where way 2 was used last.
        assert!(cache.access(4).is_some());
        assert_eq!(cache.insert(24).1, Some(12));
    }

    #[test]
    fn not_recently_used_looks_from_the_rotor() {
        let mut cache = small(CachePolicy::NotRecentlyUsed);
        fill(&mut cache);
        // The fourth fill set the last used bit, which cleared the others.
        assert_eq!(cache.insert(16).1, Some(0));
        assert!(cache.access(4).is_some());
        // Ways 0, 1 and 3 are used, the rotor stands at 1: way 2. That clears all bits but its own.
        assert_eq!(cache.insert(20).1, Some(8));
        // The rotor stands at 3.
        assert_eq!(cache.insert(24).1, Some(12));
        assert_eq!(cache.insert(28).1, Some(16));
    }

    #[test]
    fn a_rotor_is_shared_by_the_sets_of_a_bank() {
        // Four sets in two banks: sets 0 and 2 share a rotor.
        let mut cache = CacheTags::new(256, 4, 16, 2, CachePolicy::NotRecentlyUsed);
        for set in [0, 1, 2] {
            for way in 0..4 {
                cache.insert(set + 4 * way);
            }
        }
        assert_eq!(cache.insert(16).1, Some(0));
        assert_eq!(cache.insert(18).1, Some(6));
        assert_eq!(cache.insert(17).1, Some(1));
    }

    #[test]
    fn a_removed_line_leaves_its_place_to_the_next() {
        for policy in [CachePolicy::TreePlru, CachePolicy::NotRecentlyUsed] {
            let mut cache = small(policy);
            fill(&mut cache);
            cache.remove(8);
            cache.remove(16);
            assert!(cache.access(8).is_none());
            assert_eq!(cache.insert(20).1, None);
            assert!(cache.access(12).is_some());
        }
    }
}
