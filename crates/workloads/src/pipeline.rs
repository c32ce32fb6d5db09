//! One instance of a program: three threads that pass packets on, R to P to T.
//!
//! - **R** receives: takes the next frame and writes it into a packet buffer, as a network card
//!   would. It checks the frame's headers (RFC 1812 section 5.2.2) and passes the buffer's index
//!   on.
//! - **P** processes: applies the [`PacketWork`] to the packet, and writes the verdict next to it.
//! - **T** transmits: gives the packet its new MAC addresses, time to live and checksum, and counts
//!   it.
//!
//! Indices travel through two [rings](mod@crate::ring) of [`RING`] slots, in bursts of at most
//! [`BURST`], as in DPDK. There is no way back from T to R: R takes the buffers in a cycle. A
//! pipeline keeps the order and never holds more packets than both rings and three bursts. So a
//! buffer's last packet has left when R reaches it again. The thread that holds a buffer's index is
//! therefore its only user. The lock around each buffer makes that safe without trusting this
//! argument. It is always free and costs two atomic instructions on a cache line that the thread
//! needs anyway.

use crate::frame::Layout;
use crate::packet_work::{PacketAction, PacketWork};
use crate::polling::{RING, Turn};
use crate::ring::{Consumer, Producer};
use crate::traffic::Traffic;
use crossbeam_utils::CachePadded;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Packets taken from a ring at once, at most.
pub(crate) const BURST: usize = 32;

/// Buffers of an instance: those in two full rings and one burst in the hands of each stage.
const BUFFERS: usize = 2 * RING + 3 * BURST;

/// A packet on its way through the pipeline.
struct Packet {
    frame: Vec<u8>,
    /// Where its headers are; none in what is no valid IP packet.
    layout: Option<Layout>,
    verdict: PacketAction,
}

/// What T has done so far. Only T writes, so plain loads and stores do.
#[derive(Default)]
pub(crate) struct PacketCounters {
    pub(crate) packets: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) dropped: AtomicU64,
}

/// What the three threads of an instance share.
pub(crate) struct RunningPipeline {
    buffers: Vec<Mutex<Packet>>,
    pub(crate) counters: CachePadded<PacketCounters>,
    stop: AtomicBool,
    /// Packets after which every stage ends.
    limit: u64,
}

impl RunningPipeline {
    /// A pipeline for frames of at most `longest` bytes that ends after `limit` packets.
    pub(crate) fn new(longest: usize, limit: u64) -> Self {
        let packet = || Packet {
            frame: Vec::with_capacity(longest),
            layout: None,
            verdict: PacketAction::Drop,
        };
        Self {
            buffers: (0..BUFFERS).map(|_| Mutex::new(packet())).collect(),
            counters: CachePadded::default(),
            stop: AtomicBool::new(false),
            limit,
        }
    }

    /// Makes all three stages end soon.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn packet(&self, index: u64) -> MutexGuard<'_, Packet> {
        // A stage that panicked is reported when it is joined; the packet itself is overwritten in
        // its next turn.
        self.buffers[index as usize % BUFFERS].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The R thread.
    pub(crate) fn receive(&self, traffic: &Traffic, mut processing: Producer) {
        let mut turn = Turn::default();
        let mut indices = [0; BURST];
        let mut received = 0;
        while received < self.limit && !self.stopped() {
            let wanted = (self.limit - received).min(BURST as u64) as usize;
            let burst = processing.vacant(wanted);
            if burst == 0 {
                turn.idle();
                continue;
            }
            for index in &mut indices[..burst] {
                let mut packet = self.packet(received);
                let Packet { frame, layout, .. } = &mut *packet;
                frame.clear();
                frame.extend_from_slice(traffic.frame(received));
                *layout = Layout::of(frame);
                if let (true, Some(layout)) = (traffic.spreads_destinations(), layout) {
                    layout.redirect(frame, received as u32);
                }
                *index = received % BUFFERS as u64;
                received += 1;
            }
            processing.push(&indices[..burst]);
            turn.worked(burst);
        }
    }

    /// The P thread.
    pub(crate) fn process(
        &self,
        processor: &mut dyn PacketWork,
        mut received: Consumer,
        mut transmission: Producer,
    ) {
        let mut turn = Turn::default();
        let mut indices = [0; BURST];
        let mut processed = 0;
        while processed < self.limit && !self.stopped() {
            let burst = received.pop(&mut indices);
            if burst == 0 {
                turn.idle();
                continue;
            }
            for &index in &indices[..burst] {
                let packet = &mut *self.packet(index);
                packet.verdict = match &packet.layout {
                    Some(layout) => processor.process(&packet.frame, layout),
                    None => PacketAction::Drop,
                };
            }
            let mut pushed = 0;
            while pushed < burst && !self.stopped() {
                match transmission.push(&indices[pushed..burst]) {
                    0 => turn.idle(),
                    more => pushed += more,
                }
            }
            processed += burst as u64;
            turn.worked(burst);
        }
    }

    /// The T thread.
    pub(crate) fn transmit(&self, mut processed: Consumer) {
        let mut turn = Turn::default();
        let mut indices = [0; BURST];
        let (mut packets, mut bytes, mut dropped) = (0, 0, 0);
        while packets < self.limit && !self.stopped() {
            let burst = processed.pop(&mut indices);
            if burst == 0 {
                turn.idle();
                continue;
            }
            for &index in &indices[..burst] {
                let Packet { frame, layout, verdict } = &mut *self.packet(index);
                let sent = match (layout, verdict) {
                    (Some(layout), PacketAction::Forward(port)) => layout.forward(frame, *port),
                    _ => false,
                };
                if sent {
                    bytes += frame.len() as u64;
                } else {
                    dropped += 1;
                }
            }
            packets += burst as u64;
            self.counters.bytes.store(bytes, Ordering::Relaxed);
            self.counters.dropped.store(dropped, Ordering::Relaxed);
            self.counters.packets.store(packets, Ordering::Relaxed);
            turn.worked(burst);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checksum;
    use crate::frame::IpVersion;
    use crate::ring::ring;
    use std::thread;

    /// Runs `packets` packets through three real threads, and says what P found.
    fn run(traffic: &Traffic, packets: u64, processor: &mut dyn PacketWork) -> RunningPipeline {
        let pipeline = RunningPipeline::new(traffic.longest(), packets);
        let (to_p, from_r) = ring(RING);
        let (to_t, from_p) = ring(RING);
        thread::scope(|scope| {
            scope.spawn(|| pipeline.receive(traffic, to_p));
            scope.spawn(|| pipeline.transmit(from_p));
            pipeline.process(processor, from_r, to_t);
        });
        pipeline
    }

    #[test]
    fn every_packet_is_processed_once_and_in_order() {
        struct Recorder(Vec<Vec<u8>>);
        impl PacketWork for Recorder {
            fn process(&mut self, frame: &[u8], _: &Layout) -> PacketAction {
                self.0.push(frame.to_vec());
                if self.0.len().is_multiple_of(10) {
                    PacketAction::Drop
                } else {
                    PacketAction::Forward(3)
                }
            }
            fn findings(&self) -> Vec<(&'static str, u64)> {
                Vec::new()
            }
        }
        let traffic = Traffic::generate(1, 8, 100);
        let mut recorder = Recorder(Vec::new());
        let pipeline = run(&traffic, 5000, &mut recorder);
        assert_eq!(recorder.0.len(), 5000);
        assert!(recorder.0.iter().enumerate().all(|(n, frame)| frame == traffic.frame(n as u64)));
        let sent = (0..5000)
            .filter(|n| (n + 1) % 10 != 0)
            .map(|n| traffic.frame(n).len() as u64)
            .sum::<u64>();
        assert_eq!(pipeline.counters.packets.load(Ordering::Relaxed), 5000);
        assert_eq!(pipeline.counters.dropped.load(Ordering::Relaxed), 500);
        assert_eq!(pipeline.counters.bytes.load(Ordering::Relaxed), sent);
    }

    #[test]
    fn what_leaves_has_new_addresses_a_lower_time_to_live_and_correct_checksums() {
        struct Port7;
        impl PacketWork for Port7 {
            fn process(&mut self, _: &[u8], _: &Layout) -> PacketAction {
                PacketAction::Forward(7)
            }
            fn findings(&self) -> Vec<(&'static str, u64)> {
                Vec::new()
            }
        }
        let packets = BUFFERS as u64;
        let traffic = Traffic::generate(4, 64, 300).with_spread_destinations();
        let pipeline = run(&traffic, packets, &mut Port7);
        for n in 0..packets {
            let (before, packet) = (traffic.frame(n), pipeline.packet(n));
            let after = &packet.frame;
            let layout = Layout::of(after).expect("the IPv4 header checksum is right");
            assert_eq!(after[..12], [2, 0, 0, 0, 0, 7, 2, 0, 0, 0, 0, 0xff]);
            assert_eq!(after.len(), before.len());
            let sent = etherparse::SlicedPacket::from_ethernet(after).unwrap();
            let received = etherparse::SlicedPacket::from_ethernet(before).unwrap();
            match (layout.version(), sent.net.unwrap(), received.net.unwrap()) {
                (
                    IpVersion::V4,
                    etherparse::NetSlice::Ipv4(sent),
                    etherparse::NetSlice::Ipv4(received),
                ) => {
                    assert_eq!(sent.header().ttl() + 1, received.header().ttl());
                    assert_eq!(sent.header().destination()[1..], (n as u32).to_be_bytes()[1..]);
                    assert_eq!(checksum::sum(sent.header().slice()), 0xffff);
                }
                (
                    IpVersion::V6,
                    etherparse::NetSlice::Ipv6(sent),
                    etherparse::NetSlice::Ipv6(received),
                ) => {
                    assert_eq!(sent.header().hop_limit() + 1, received.header().hop_limit());
                    assert_eq!(sent.header().destination()[13..], (n as u32).to_be_bytes()[1..]);
                }
                other => panic!("packet {n} changed its version: {other:?}"),
            }
        }
    }

    #[test]
    fn stopping_ends_all_stages_while_packets_flow() {
        let traffic = Traffic::generate(1, 8, 100);
        let pipeline = RunningPipeline::new(traffic.longest(), u64::MAX);
        let (to_p, from_r) = ring(RING);
        let (to_t, from_p) = ring(RING);
        let mut processor = crate::BuiltInProgram::Hash1L1.processor(1);
        thread::scope(|scope| {
            scope.spawn(|| pipeline.receive(&traffic, to_p));
            scope.spawn(|| pipeline.process(&mut *processor, from_r, to_t));
            scope.spawn(|| pipeline.transmit(from_p));
            while pipeline.counters.packets.load(Ordering::Relaxed) < 1000 {
                thread::yield_now();
            }
            pipeline.stop();
        });
    }
}
