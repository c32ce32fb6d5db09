//! Where the instances of a packet program keep things.
//!
//! Everything gets its own memory, one after the other, on lines of the second level. The instances
//! differ in size by no power of two. So equal places of two instances are not in one set of the
//! first level.

use super::super::{Address, PacketRing, Region};

/// Descriptors in a ring.
const SLOTS: u32 = 16;
/// A thread's own variables, and the distance of those that successive blocks load.
const VARIABLES: u64 = 256;
const VARIABLE: u64 = 8;
/// Buffers for packets, and bytes of each. A buffer has left the first level before its next turn.
/// Real interfaces write new packets to memory.
const BUFFERS: u64 = 128;
const BUFFER: u64 = 1600;
/// Bytes between entries of a log.
const LOGGED: u64 = 64;
/// The gap between two objects of one instance, and between two instances. Both are odd numbers of
/// lines.
const GAP: u64 = 64;
const INSTANCE_GAP: u64 = 5 * 64;

/// Hands out memory.
#[derive(Debug, Default)]
pub(super) struct MemoryLayout {
    next: u64,
    resident: Vec<Region>,
}

impl MemoryLayout {
    /// A ring with slots of that size.
    pub(super) fn ring(&mut self, slot_bytes: u32) -> PacketRing {
        let ring = PacketRing { base: self.next, slots: SLOTS, slot_bytes };
        self.take(ring.bytes());
        ring
    }

    /// The variables of a thread, one after the other.
    pub(super) fn variables(&mut self) -> Address {
        Address::Walk { base: self.take(VARIABLES), stride: VARIABLE, length: VARIABLES }
    }

    /// Any entry of a table.
    pub(super) fn table(&mut self, bytes: u64, entry: u64) -> Address {
        Address::Random { base: self.take(bytes), length: bytes, grain: entry }
    }

    /// The first words of packets, `distance` bytes apart, in one buffer after the other.
    pub(super) fn packets(&mut self, words: u64, distance: u64) -> Vec<Address> {
        let base = self.take(BUFFERS * BUFFER);
        let length = BUFFERS * BUFFER;
        (0..words)
            .map(|word| Address::Walk { base: base + word * distance, stride: BUFFER, length })
            .collect()
    }

    /// The bytes of packets, one after the other.
    pub(super) fn payload(&mut self) -> Address {
        Address::Walk { base: self.take(BUFFERS * BUFFER), stride: 1, length: BUFFERS * BUFFER }
    }

    /// The words of entries of a log, of one entry after the other.
    pub(super) fn log(&mut self, entries: u64, words: u64) -> Vec<Address> {
        let base = self.take(entries * LOGGED);
        let word = |word| Address::Walk {
            base: base + word * 8,
            stride: LOGGED,
            length: entries * LOGGED,
        };
        (0..words).map(word).collect()
    }

    /// What follows belongs to another instance.
    pub(super) fn next_instance(&mut self) {
        self.next += INSTANCE_GAP;
    }

    /// Everything handed out.
    pub(super) fn into_resident(self) -> Vec<Region> {
        self.resident
    }

    fn take(&mut self, length: u64) -> u64 {
        let base = self.next;
        self.next = (base + length).next_multiple_of(PacketRing::SPACING) + GAP;
        self.resident.push(Region { base, length });
        base
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_overlaps() {
        let mut layout = MemoryLayout::default();
        for _ in 0..3 {
            layout.ring(32);
            layout.variables();
            layout.table(1000, 8);
            layout.packets(4, 16);
            layout.payload();
            layout.log(100, 7);
            layout.next_instance();
        }
        let mut regions = layout.into_resident();
        regions.sort_by_key(|region| region.base);
        assert_eq!(regions.len(), 18);
        for pair in regions.windows(2) {
            assert!(pair[0].base + pair[0].length <= pair[1].base, "{pair:?}");
            assert_ne!(pair[0].base / 64, pair[1].base / 64);
        }
    }
}
