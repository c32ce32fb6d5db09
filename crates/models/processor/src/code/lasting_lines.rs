//! Which lines no other core can take out of a first-level cache.
//!
//! A line leaves it in three ways. Another line of the same core takes its place, another core
//! stores to it, or it leaves the second level. The first needs a fill, which the core knows of.
//! The second does not happen to a line that no program stores to. The third never happens if all
//! lines of a job fit the second level, set by set.

use crate::processor::Processor;
use crate::program::{Address, PacketRing, ProgramSet, ProgramStep, Side};
use std::ops::RangeInclusive;

/// The lines of a job that stay in a first-level cache until a fill of their core.
pub(super) struct LastingLines {
    /// Whether nothing ever leaves the second level.
    pub(super) fits: bool,
    /// Lines of the first level that programs store to.
    stored: Vec<RangeInclusive<u64>>,
    /// Bits of an address within such a line.
    shift: u32,
}

impl LastingLines {
    pub(super) fn new(processor: &Processor, job: &ProgramSet) -> Self {
        let (mut used, mut stored) = (Vec::new(), Vec::new());
        used.extend(
            job.resident.iter().map(|region| region.base..=region.base + region.length.max(1) - 1),
        );
        for step in job.threads.iter().flat_map(|program| program.steps()) {
            match *step {
                ProgramStep::Load(address) => used.push(reached(job, address)),
                ProgramStep::Store(address) => stored.push(reached(job, address)),
                ProgramStep::Poll { ring, .. } | ProgramStep::Publish { ring, .. } => {
                    stored.push(indices(&job.rings[ring]))
                }
                _ => {}
            }
        }
        used.extend_from_slice(&stored);
        let shift = processor.intra_core.l1d.line.trailing_zeros();
        Self { fits: fits(processor, used), stored: lines(stored, shift), shift }
    }

    /// Whether the line that a load of `address` finds in its core's first level lasts. It then
    /// stays there until a fill of that core.
    pub(super) fn lasts(&self, job: &ProgramSet, address: Address) -> bool {
        let load = line(&reached(job, address), self.shift);
        self.fits
            && self
                .stored
                .iter()
                .all(|stored| stored.end() < load.start() || load.end() < stored.start())
    }
}

/// Whether no set of the second level is asked to hold more lines than it has ways.
fn fits(processor: &Processor, used: Vec<RangeInclusive<u64>>) -> bool {
    let l2 = &processor.inter_core.l2;
    let used = lines(used, l2.line.trailing_zeros());
    let all = (u64::from(l2.size_kib) << 10) / u64::from(l2.line);
    if used.iter().map(|lines| lines.end() - lines.start() + 1).sum::<u64>() > all {
        return false;
    }
    let mut sets = vec![0; (all / u64::from(l2.ways)) as usize];
    for line in used.into_iter().flatten() {
        let sets_mask = sets.len() - 1;
        sets[line as usize & sets_mask] += 1;
    }
    sets.iter().all(|&lines| lines <= l2.ways)
}

/// The first and the last address that `address` can be.
fn reached(job: &ProgramSet, address: Address) -> RangeInclusive<u64> {
    match address {
        Address::Fixed(address) => address..=address,
        Address::Walk { base, length, .. } | Address::Random { base, length, .. } => {
            base..=base + length.max(1) - 1
        }
        Address::Slot { ring, offset, .. } => {
            let ring = &job.rings[ring];
            ring.slot(0) + offset..=ring.slot(u64::from(ring.slots) - 1) + offset
        }
    }
}

/// Head and tail of a ring.
fn indices(ring: &PacketRing) -> RangeInclusive<u64> {
    ring.index(Side::Producer)..=ring.index(Side::Consumer)
}

fn line(addresses: &RangeInclusive<u64>, shift: u32) -> RangeInclusive<u64> {
    addresses.start() >> shift..=addresses.end() >> shift
}

/// The lines of `1 << shift` bytes in these ranges, each once, in order.
fn lines(mut ranges: Vec<RangeInclusive<u64>>, shift: u32) -> Vec<RangeInclusive<u64>> {
    ranges.sort_unstable_by_key(|range| *range.start());
    let mut merged: Vec<RangeInclusive<u64>> = Vec::new();
    for range in ranges {
        let lines = line(&range, shift);
        match merged.last_mut() {
            Some(last) if lines.start() <= last.end() => {
                *last = *last.start()..=*last.end().max(lines.end())
            }
            _ => merged.push(lines),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SimulatedProgram;
    use crate::program::Region;

    fn walk(base: u64, length: u64) -> Address {
        Address::Walk { base, stride: 16, length }
    }

    /// Of a job with these steps, whether each of these addresses lasts.
    fn lasting<const N: usize>(steps: &[ProgramStep], addresses: [Address; N]) -> [bool; N] {
        let job = ProgramSet::independent(vec![SimulatedProgram::new(steps.to_vec()).unwrap()]);
        let lines = LastingLines::new(&Processor::model("ultrasparc-t2").unwrap(), &job);
        addresses.map(|address| lines.lasts(&job, address))
    }

    #[test]
    fn what_is_stored_to_is_not_kept() {
        let (below, stored, above) =
            (Address::Fixed(1023), Address::Fixed(1039), Address::Fixed(1040));
        let steps = [
            ProgramStep::Load(below),
            ProgramStep::Store(Address::Fixed(1024)),
            ProgramStep::Load(above),
        ];
        assert_eq!(
            lasting(&steps, [below, stored, above, walk(0, 4096)]),
            [true, false, true, false]
        );
    }

    #[test]
    fn nothing_is_kept_where_a_set_is_asked_for_more_than_it_holds() {
        // 4 MiB of 16 ways: lines that lie 256 KiB apart share a set.
        let apart = |lines: u64| {
            let loads = (0..lines).map(|line| ProgramStep::Load(Address::Fixed(line << 18)));
            lasting(&loads.collect::<Vec<_>>(), [Address::Fixed(0)])
        };
        assert_eq!([apart(16), apart(17)], [[true], [false]]);
        let whole = |length| lasting(&[ProgramStep::Load(walk(0, length))], [walk(0, 64)]);
        assert_eq!([whole(4 << 20), whole((4 << 20) + 64)], [[true], [false]]);
    }

    #[test]
    fn what_two_steps_use_counts_once_and_what_is_resident_counts() {
        let half = ProgramStep::Load(walk(0, 2 << 20));
        assert_eq!(lasting(&[half; 5], [walk(0, 64)]), [true]);
        let threads = vec![SimulatedProgram::new(vec![half]).unwrap()];
        let resident = vec![Region { base: 2 << 20, length: 3 << 20 }];
        let job = ProgramSet { resident, ..ProgramSet::independent(threads) };
        assert!(
            !LastingLines::new(&Processor::model("ultrasparc-t2").unwrap(), &job)
                .lasts(&job, walk(0, 64))
        );
    }
}
