//! IP forwarding: the destination address is hashed into a table of the port through which the
//! packet leaves.
//!
//! The size of the table decides where lookups are answered. A table of 4 KiB fits into any
//! first-level data cache. One of 512 KiB fits into the second-level caches of current processors,
//! but into no first-level one. One of 64 MiB fits into neither. On a server with a larger
//! third-level cache its lookups are answered there. But on every machine two lookups share no line
//! and rarely a page. Entries are random, so lookups of packets to ever new destinations have no
//! locality.
//!
//! A packet costs one lookup (`hash1`) or three that depend on each other (`hashN`). N = 3 as in
//! the BlackBox study, section 4.3. `intadd`, `intmul` and `intdiv` are `hash1_L1` followed by a
//! burst of one kind of integer instruction. The burst stands for higher-layer decoding. The bursts
//! have the lengths of the UltraSPARC T2 model: 480 additions, 80 multiplications, 26 divisions.

use crate::frame::Layout;
use crate::hash;
use crate::packet_work::{PacketAction, PacketWork};
use crate::program::BuiltInProgram;
use pinwise_topology::Random;
use std::hint::black_box;

/// Table entries: 64-bit words.
const L1_ENTRIES: usize = (4 << 10) / 8;
const L2_ENTRIES: usize = (512 << 10) / 8;
const MEM_ENTRIES: usize = (64 << 20) / 8;

/// The integer work behind the lookup.
#[derive(Clone, Copy, Debug)]
enum IntegerWork {
    None,
    Add,
    Multiply,
    Divide,
}

/// One IPFwd variant's P thread.
pub(crate) struct Forwarder {
    table: Vec<u64>,
    lookups: u32,
    burst: IntegerWork,
    looked_up: u64,
}

impl Forwarder {
    pub(crate) fn new(program: BuiltInProgram, seed: u64) -> Self {
        let (entries, lookups, burst) = match program {
            BuiltInProgram::Hash1L2 => (L2_ENTRIES, 1, IntegerWork::None),
            BuiltInProgram::Hash1Mem => (MEM_ENTRIES, 1, IntegerWork::None),
            BuiltInProgram::HashNL1 => (L1_ENTRIES, 3, IntegerWork::None),
            BuiltInProgram::HashNL2 => (L2_ENTRIES, 3, IntegerWork::None),
            BuiltInProgram::HashNMem => (MEM_ENTRIES, 3, IntegerWork::None),
            BuiltInProgram::IntAdd => (L1_ENTRIES, 1, IntegerWork::Add),
            BuiltInProgram::IntMul => (L1_ENTRIES, 1, IntegerWork::Multiply),
            BuiltInProgram::IntDiv => (L1_ENTRIES, 1, IntegerWork::Divide),
            _ => (L1_ENTRIES, 1, IntegerWork::None),
        };
        let mut random = Random::new(seed);
        Self { table: (0..entries).map(|_| random.bits()).collect(), lookups, burst, looked_up: 0 }
    }

    /// The entry that the last of the lookups for `destination` ends at. Each lookup hashes what
    /// the one before it found.
    fn look_up(&self, destination: u32) -> u64 {
        // The number of entries is a power of two of at most 2^23. The highest bits of the hash are
        // an index.
        let shift = 32 - self.table.len().trailing_zeros();
        let mut entry = 0;
        for _ in 0..self.lookups {
            entry = self.table[(hash::mix(destination ^ entry as u32) >> shift) as usize];
        }
        entry
    }
}

impl PacketWork for Forwarder {
    fn process(&mut self, frame: &[u8], layout: &Layout) -> PacketAction {
        let entry = self.look_up(hash::fold(layout.destination(frame)));
        self.looked_up += u64::from(self.lookups);
        match self.burst {
            IntegerWork::None => {}
            IntegerWork::Add => {
                black_box(add(entry));
            }
            IntegerWork::Multiply => {
                black_box(multiply(entry));
            }
            IntegerWork::Divide => {
                black_box(divide(entry));
            }
        }
        PacketAction::Forward((entry >> 60) as u8)
    }

    fn findings(&self) -> Vec<(&'static str, u64)> {
        vec![("lookups", self.looked_up)]
    }
}

/// 480 additions in four chains that feed each other, so that no compiler finds a closed form.
fn add(start: u64) -> u64 {
    let [mut a, mut b, mut c, mut d] = [start, !start, start << 1, 1];
    for _ in 0..120 {
        a = a.wrapping_add(b);
        b = b.wrapping_add(c);
        c = c.wrapping_add(d);
        d = d.wrapping_add(a);
    }
    a ^ b ^ c ^ d
}

/// 80 multiplications, each waiting for the one before.
fn multiply(start: u64) -> u64 {
    let (mut a, mut b) = (start | 1, !start | 1);
    for _ in 0..40 {
        a = a.wrapping_mul(b);
        b = b.wrapping_mul(a);
    }
    a ^ b
}

/// 26 divisions, each waiting for the one before.
fn divide(start: u64) -> u64 {
    let mut quotient = start;
    for _ in 0..26 {
        quotient = u64::MAX / (quotient >> 32 | 3);
    }
    quotient
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::Traffic;
    use std::net::IpAddr;

    /// The route of a packet, computed independently. It is a multiplicative walk over the table as
    /// a map from index to entry.
    fn reference(table: &[u64], lookups: u32, destination: IpAddr) -> u8 {
        let words: Vec<u32> = match destination {
            IpAddr::V4(address) => vec![u32::from_be_bytes(address.octets())],
            IpAddr::V6(address) => address
                .octets()
                .chunks(4)
                .map(|word| u32::from_be_bytes(word.try_into().unwrap()))
                .collect(),
        };
        let destination = words.iter().fold(0u64, |sum, &word| (sum + u64::from(word)) % (1 << 32));
        let mut entry = 0u64;
        for _ in 0..lookups {
            let mut key = (destination ^ entry) % (1 << 32);
            key ^= key >> 16;
            key = key * 0x85eb_ca6b % (1 << 32);
            key ^= key >> 13;
            key = key * 0xc2b2_ae35 % (1 << 32);
            key ^= key >> 16;
            entry = table[(key * table.len() as u64 / (1 << 32)) as usize];
        }
        (entry / (1 << 60)) as u8
    }

    #[test]
    fn every_variant_finds_the_route_of_the_reference() {
        let traffic = Traffic::generate(3, 64, 512);
        for program in BuiltInProgram::ALL.into_iter().filter(|program| program.stem() == "ipfwd") {
            if matches!(program, BuiltInProgram::Hash1Mem | BuiltInProgram::HashNMem) {
                continue; // 64 MiB take a second to fill in a debug build, and only differ in size.
            }
            let mut forwarder = Forwarder::new(program, 11);
            let mut ports = [0; 16];
            for n in 0..512 {
                let frame = traffic.frame(n);
                let layout = Layout::of(frame).unwrap();
                let expected =
                    reference(&forwarder.table, forwarder.lookups, layout.destination(frame));
                assert_eq!(
                    forwarder.process(frame, &layout),
                    PacketAction::Forward(expected),
                    "{program}"
                );
                ports[usize::from(expected)] += 1;
            }
            assert!(ports.iter().all(|&packets| packets > 0), "{program}: {ports:?}");
            assert_eq!(forwarder.findings(), [("lookups", 512 * u64::from(forwarder.lookups))]);
        }
    }

    /// Packets to ever new destinations touch ever new cache lines. A cache of all lines seen would
    /// not help.
    #[test]
    fn lookups_for_new_destinations_have_no_locality() {
        let lines = L2_ENTRIES / 8;
        let mut seen = vec![false; lines];
        for host in 0..lines as u32 {
            seen[(hash::mix(0x0a00_0000 | host) >> (32 - L2_ENTRIES.trailing_zeros())) as usize
                / 8] = true;
        }
        let touched = seen.iter().filter(|&&seen| seen).count() as f64 / lines as f64;
        // Throwing as many balls as there are bins leaves 1/e of the bins empty. With 8,192 bins,
        // that is exact to 0.5 %.
        assert!((touched - (1.0 - (-1.0f64).exp())).abs() < 0.02, "{touched}");
    }

    #[test]
    fn the_integer_work_is_what_it_claims_to_be() {
        assert_eq!(add(1), add(1));
        assert_eq!((0..26).fold(77u64, |q, _| u64::MAX / ((q / (1 << 32)) | 3)), divide(77));
        let (mut a, mut b) = (5u128, (!5u64 | 1) as u128);
        for _ in 0..40 {
            a = a * b % (1 << 64);
            b = b * a % (1 << 64);
        }
        assert_eq!(multiply(5), (a ^ b) as u64);
    }
}
