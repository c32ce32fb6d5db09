//! How much memory a program walks over, so that one cache, and no smaller one, serves it.
//!
//! | program | bytes | on the UltraSPARC T2 (MICRO 2009, section 3.2) |
//! |---|---|---|
//! | `Dcache` | a quarter of the first level | 2 KB of 8 KB |
//! | `L2cache` | three eighths of the second level, at least twice the first | 1.5 MB of 4 MB |
//! | `L3cache` | twice the second level, at most three eighths of the third | |
//! | `L3full` | half of its loads miss: found in each run, up to four times the third level | |
//! | `scatter` | six times the third level, so that it evicts the lines of others | |
//! | `mem`, `stream`, `write` | 1.5 times the last level, at least 64 MiB | 6 MB of 4 MB |
//!
//! One thread often gets a small part of the third level. A virtual machine shares it with others,
//! and other programs use it too. Twice the second level is the least that surely leaves the second
//! level. If the caches were measured ([`super::cache_sizes`]), *the third level* is its measured
//! size.
//!
//! If the kernel reports no size (some virtual machines, some boards), common sizes are assumed. A
//! third level that the kernel does not report counts as absent.

use pinwise_measure::WorkingSets;
use pinwise_topology::{Cache, CpuId, Machine};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// First and second level if the kernel reports none.
const ASSUMED: [usize; 2] = [32 * KIB, MIB];
/// A line if the kernel reports none.
const LINE: usize = 64;

/// Bytes for each program, as seen from one context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MemoryFootprint {
    /// For the first level.
    pub(super) first: usize,
    /// For the second level.
    pub(super) second: usize,
    /// For the third level, if there is one.
    pub(super) third: Option<usize>,
    /// The most that loads at random places around the third level's edge take, where there is
    /// one.
    pub(super) edge: Option<usize>,
    /// For loads all over memory that are to pass through the third level.
    pub(super) scatter: usize,
    /// For memory.
    pub(super) memory: usize,
    /// The longest cache line: the distance between two loads.
    pub(super) line: usize,
}

impl MemoryFootprint {
    /// Around the context `cpu` of `machine`, on which `contexts` programs may run at once and
    /// share `available` bytes. Memory is left for others. The programs take half of it at most,
    /// and `mem` may then hit the last level now and then.
    pub(super) fn new(
        machine: &Machine,
        cpu: CpuId,
        contexts: usize,
        available: Option<usize>,
    ) -> Self {
        let around = |level: u8| machine.data_caches(level).find(|cache| cache.cpus.contains(cpu));
        let size = |level: u8| {
            around(level)
                .and_then(|cache| usize::try_from(cache.size?).ok())
                .filter(|&size| size > 0)
        };
        let first = size(1).unwrap_or(ASSUMED[0]);
        let second = size(2).unwrap_or(ASSUMED[1]).max(first);
        let third = size(3);
        let last = size(4).or(third).unwrap_or(second);
        let line = |cache: &Cache| cache.line.map(|line| line as usize);
        let lines = machine.caches.iter().filter(|cache| cache.cpus.contains(cpu)).filter_map(line);
        let line = lines
            .filter(|line| line.is_power_of_two() && (16..=1024).contains(line))
            .max()
            .unwrap_or(LINE);
        let fair = available.map_or(usize::MAX, |bytes| bytes / 2 / contexts.max(1));
        let smallest = 4 * line;
        let memory = last.saturating_add(last / 2).max(64 * MIB).min(fair).max(smallest);
        Self {
            first: (first / 4).max(smallest),
            second: (second / 8 * 3).max(2 * first).max(smallest),
            third: third.map(|third| (third / 8 * 3).min(2 * second).max(smallest)),
            edge: third.map(|third| third.saturating_mul(4).min(memory)),
            scatter: third.unwrap_or(second).saturating_mul(6).min(memory),
            memory,
            line,
        }
    }

    /// The same with the third level as it was seen; without programs for it if it was not.
    pub(super) fn fitted(self, found: &WorkingSets) -> Self {
        let Some(third) = found.caches.iter().find(|cache| cache.level == 3) else { return self };
        // A working set was walked over, so that it fits.
        let seen = third.effective.map(|seen| seen.bytes as usize);
        Self {
            third: self.third.zip(seen).map(|(third, seen)| third.min(seen)),
            edge: seen.map(|seen| seen.saturating_mul(4).min(self.memory)),
            scatter: seen.map_or(self.scatter, |seen| seen.saturating_mul(6).min(self.memory)),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_measure::{EffectiveCache, WorkingSet};

    fn of(machine: &Machine, available: Option<usize>) -> MemoryFootprint {
        MemoryFootprint::new(machine, CpuId(0), 2, available)
    }

    #[test]
    fn the_t2_gets_the_sizes_of_the_paper() {
        let footprint = of(&Machine::model("ultrasparc-t2").unwrap(), None);
        assert_eq!((footprint.first, footprint.second), (2 * KIB, 1536 * KIB));
        assert_eq!((footprint.third, footprint.line), (None, 64));
        // 1.5 times 4 MB would do; the floor is for machines that do not report their last level.
        assert_eq!(footprint.memory, 64 * MIB);
    }

    #[test]
    fn a_machine_without_known_caches_gets_common_ones() {
        let footprint = of(&Machine::from_shape("2x2").unwrap(), None);
        let expected = MemoryFootprint {
            first: 8 * KIB,
            second: 384 * KIB,
            third: None,
            edge: None,
            scatter: 6 * MIB,
            memory: 64 * MIB,
            line: 64,
        };
        assert_eq!(footprint, expected);
    }

    #[test]
    fn a_large_third_level_is_left_to_others_and_memory_is_shared() {
        let mut machine = Machine::model("ultrasparc-t2").unwrap();
        let all = machine.allowed.clone();
        let level = |level: u8, size: u64| {
            let mut cache = machine.caches.last().unwrap().clone();
            (cache.level, cache.size, cache.cpus) = (level, Some(size), all.clone());
            cache
        };
        machine.caches = vec![level(1, 48 << 10), level(2, 2 << 20), level(3, 260 << 20)];
        let footprint = of(&machine, None);
        assert_eq!(footprint.third, Some(4 * MIB));
        assert_eq!(footprint.memory, 390 * MIB);
        assert_eq!(of(&machine, Some(400 * MIB)).memory, 100 * MIB);
        let seen = |bytes: Option<usize>| {
            let effective = bytes.map(|bytes| WorkingSet { bytes: bytes as u64, ns: 40.0 });
            let caches = vec![EffectiveCache { level: 3, declared: Some(260 << 20), effective }];
            footprint.fitted(&WorkingSets { curve: Vec::new(), caches })
        };
        let fitted = seen(Some(16 * MIB));
        assert_eq!(
            (fitted.third, fitted.edge, fitted.scatter),
            (Some(4 * MIB), Some(64 * MIB), 96 * MIB)
        );
        assert_eq!(
            (seen(None).third, seen(None).edge),
            (None, None),
            "an unseen level has no program"
        );
    }
}
