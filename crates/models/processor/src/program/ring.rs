//! A bounded ring between producers and consumers, and where it lies in memory.

/// An end of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// Fills slots; writes the tail, polls the head.
    Producer = 0,
    /// Reads slots; writes the head, polls the tail.
    Consumer = 1,
}

/// A bounded ring. Tail, head and every slot begin on a multiple of [`PacketRing::SPACING`]. So no
/// two of them share a cache line.
///
/// Several threads may be one side. Each then claims the next slot in the cycle in which its poll
/// succeeds, so no other gets it. The other side sees how many were published, in whatever order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketRing {
    /// Address of the tail; the head and the slots follow.
    pub base: u64,
    /// Number of slots, at least one.
    pub slots: u32,
    /// Bytes of a slot, at least one.
    pub slot_bytes: u32,
}

impl PacketRing {
    /// Distance of tail, head and slots in bytes: a line of the second-level cache.
    pub const SPACING: u64 = 64;

    /// Address of the index that `side` writes.
    pub fn index(&self, side: Side) -> u64 {
        match side {
            Side::Producer => self.base,
            Side::Consumer => self.base + Self::SPACING,
        }
    }

    /// Address of the slot that item number `item` (from 0) goes through.
    pub fn slot(&self, item: u64) -> u64 {
        self.base + 2 * Self::SPACING + item % u64::from(self.slots) * self.slot_spacing()
    }

    /// Bytes from `base` to the end of the last slot, rounded up to whole lines.
    pub fn bytes(&self) -> u64 {
        2 * Self::SPACING + u64::from(self.slots) * self.slot_spacing()
    }

    fn slot_spacing(&self) -> u64 {
        u64::from(self.slot_bytes).next_multiple_of(Self::SPACING)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_and_slots_lie_on_lines_of_their_own() {
        let ring = PacketRing { base: 4096, slots: 16, slot_bytes: 32 };
        assert_eq!((ring.index(Side::Producer), ring.index(Side::Consumer)), (4096, 4160));
        assert_eq!((ring.slot(0), ring.slot(15), ring.slot(16)), (4224, 4224 + 15 * 64, 4224));
        assert_eq!(ring.bytes(), 18 * 64);
        assert_eq!(PacketRing { slot_bytes: 65, ..ring }.slot(1), 4224 + 128);
    }
}
