//! Stateful packet processing: a table of the active flows, each with its record, updated by every
//! packet.
//!
//! A *flow* is identified by its protocol, addresses and ports; both directions are one flow. The
//! table has 2^16 entries, as in section 4.3 of the optimal-assignment study (enough for a full 10
//! Gbit/s link). They are in buckets of four behind one lock each. A packet locks its bucket, finds
//! or creates the record, updates it. If a bucket is full, the record not seen for longest goes.
//! Only the instance's own P thread takes the locks. Their cost is that of a table that others may
//! read.
//!
//! *State* of a TCP flow: a SYN without ACK opens it again, and any other packet establishes it.
//! One FIN begins to close it, a second one closes it, and RST closes it at once. A UDP flow is
//! established from its first packet. Sequence numbers and timeouts are left out.

use crate::frame::Layout;
use crate::hash;
use crate::packet_work::{PacketAction, PacketWork, port_by_flow};
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

const ENTRIES: usize = 1 << 16;
const WAYS: usize = 4;

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

/// What identifies a flow: the endpoint that sorts first, the other one, the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Key {
    endpoints: [(IpAddr, u16); 2],
    protocol: u8,
}

impl Key {
    fn of(frame: &[u8], layout: &Layout) -> Self {
        let (from, to) = layout.ports(frame).unwrap_or((0, 0));
        let mut endpoints = [(layout.source(frame), from), (layout.destination(frame), to)];
        endpoints.sort_unstable();
        Self { endpoints, protocol: layout.protocol() }
    }

    fn hash(&self) -> u32 {
        let [(low, low_port), (high, high_port)] = self.endpoints;
        let ports = u32::from(low_port) << 16 | u32::from(high_port);
        hash::mix(
            hash::mix(hash::mix(hash::fold(low)) ^ hash::fold(high))
                ^ ports
                ^ u32::from(self.protocol),
        )
    }
}

/// Where a flow is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FlowState {
    Opening,
    Established,
    Closing,
    Closed,
}

impl FlowState {
    /// The state after a packet with these TCP flags; `None` for a packet without TCP header.
    fn after(before: Option<Self>, flags: Option<u8>) -> Self {
        let Some(flags) = flags else { return Self::Established };
        match before {
            _ if flags & RST != 0 => Self::Closed,
            _ if flags & (SYN | ACK) == SYN => Self::Opening,
            Some(Self::Closed) => Self::Closed,
            Some(Self::Closing) if flags & FIN != 0 => Self::Closed,
            _ if flags & FIN != 0 => Self::Closing,
            Some(Self::Closing) => Self::Closing,
            None | Some(Self::Opening | Self::Established) => Self::Established,
        }
    }
}

/// What is known about a flow.
#[derive(Clone, Copy, Debug)]
struct FlowRecord {
    key: Key,
    state: FlowState,
    packets: u64,
    bytes: u64,
    /// When it was last seen: the number of packets processed by then.
    seen: u64,
}

/// The P thread of the stateful program.
pub(crate) struct FlowTable {
    buckets: Vec<Mutex<[Option<FlowRecord>; WAYS]>>,
    packets: u64,
    created: u64,
    evicted: u64,
    closed: u64,
}

impl FlowTable {
    pub(crate) fn new() -> Self {
        let buckets = (0..ENTRIES / WAYS).map(|_| Mutex::new([None; WAYS])).collect();
        Self { buckets, packets: 0, created: 0, evicted: 0, closed: 0 }
    }
}

impl PacketWork for FlowTable {
    fn process(&mut self, frame: &[u8], layout: &Layout) -> PacketAction {
        self.packets += 1;
        let key = Key::of(frame, layout);
        let hash = key.hash();
        let bucket = &self.buckets[hash as usize % (ENTRIES / WAYS)];
        let mut bucket = bucket.lock().unwrap_or_else(PoisonError::into_inner);
        let known = bucket.iter().position(|entry| entry.is_some_and(|record| record.key == key));
        let way = known.unwrap_or_else(|| {
            // A free entry counts as never seen.
            let oldest = (0..WAYS)
                .min_by_key(|&way| bucket[way].map_or(0, |record| record.seen))
                .unwrap_or(0);
            self.evicted += u64::from(bucket[oldest].is_some());
            self.created += 1;
            bucket[oldest] = None;
            oldest
        });
        let record = &mut bucket[way];
        let before = record.map(|record| record.state);
        let record = record.get_or_insert(FlowRecord {
            key,
            state: FlowState::Opening,
            packets: 0,
            bytes: 0,
            seen: 0,
        });
        record.state = FlowState::after(before, layout.tcp_flags(frame));
        record.packets += 1;
        record.bytes += frame.len() as u64;
        record.seen = self.packets;
        self.closed +=
            u64::from(record.state == FlowState::Closed && before != Some(FlowState::Closed));
        port_by_flow(hash)
    }

    fn findings(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("flows_created", self.created),
            ("flows_closed", self.closed),
            ("flows_evicted", self.evicted),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::Traffic;
    use etherparse::{NetSlice, SlicedPacket, TransportSlice};
    use std::collections::{BTreeSet, HashMap};

    type Flow = BTreeSet<(IpAddr, u16, bool)>;
    /// Length of the frame, and SYN, FIN, RST where it is TCP.
    type Seen = (usize, Option<[bool; 3]>);

    /// A flow as another decoder and the standard library see it: an unordered pair of endpoints,
    /// and all its packets.
    fn reference(traffic: &Traffic, packets: u64) -> HashMap<Flow, Vec<Seen>> {
        let mut flows: HashMap<Flow, Vec<_>> = HashMap::new();
        for n in 0..packets {
            let frame = traffic.frame(n);
            let packet = SlicedPacket::from_ethernet(frame).unwrap();
            let [source, destination]: [IpAddr; 2] = match packet.net.unwrap() {
                NetSlice::Ipv4(ip) => {
                    [ip.header().source_addr().into(), ip.header().destination_addr().into()]
                }
                NetSlice::Ipv6(ip) => {
                    [ip.header().source_addr().into(), ip.header().destination_addr().into()]
                }
                NetSlice::Arp(_) => unreachable!(),
            };
            let (ports, flags) = match packet.transport.unwrap() {
                TransportSlice::Tcp(tcp) => (
                    [tcp.source_port(), tcp.destination_port()],
                    Some([tcp.syn(), tcp.fin(), tcp.rst()]),
                ),
                TransportSlice::Udp(udp) => ([udp.source_port(), udp.destination_port()], None),
                _ => unreachable!(),
            };
            let tcp = flags.is_some();
            let flow = Flow::from([(source, ports[0], tcp), (destination, ports[1], tcp)]);
            flows.entry(flow).or_default().push((frame.len(), flags));
        }
        flows
    }

    #[test]
    fn records_equal_those_of_a_hash_map_over_the_same_packets() {
        let (traffic, packets) = (Traffic::generate(21, 700, 3000), 5000);
        let mut table = FlowTable::new();
        for n in 0..packets {
            let frame = traffic.frame(n);
            table.process(frame, &Layout::of(frame).unwrap());
        }
        let expected = reference(&traffic, packets);
        let mut compared = 0;
        for bucket in &table.buckets {
            for record in bucket.lock().unwrap().iter().flatten() {
                let tcp = record.key.protocol == 6;
                let flow = record.key.endpoints.map(|(address, port)| (address, port, tcp));
                let seen = &expected[&Flow::from(flow)];
                assert_eq!(record.packets, seen.len() as u64);
                assert_eq!(record.bytes, seen.iter().map(|&(bytes, _)| bytes as u64).sum::<u64>());
                compared += 1;
            }
        }
        assert_eq!(compared, expected.len());
        let findings: HashMap<_, _> = table.findings().into_iter().collect();
        assert_eq!(
            (findings["flows_created"], findings["flows_evicted"]),
            (expected.len() as u64, 0)
        );
        // The generator's flows end with a FIN from each side, and the next packet after that is a
        // SYN.
        let closed: usize = expected
            .values()
            .map(|packets| {
                let fins: Vec<bool> =
                    packets.iter().filter_map(|(_, flags)| flags.map(|[_, fin, _]| fin)).collect();
                fins.windows(2).filter(|pair| pair[0] && pair[1]).count()
            })
            .sum();
        assert!(closed > 50);
        assert_eq!(findings["flows_closed"], closed as u64);
    }

    #[test]
    fn a_connection_opens_is_used_and_closes() {
        let after = |flags: &[u8]| {
            flags.iter().fold(None, |state, &flags| Some(FlowState::after(state, Some(flags))))
        };
        assert_eq!(after(&[SYN]), Some(FlowState::Opening));
        assert_eq!(after(&[SYN, SYN | ACK]), Some(FlowState::Established));
        assert_eq!(after(&[SYN, SYN | ACK, ACK, FIN | ACK]), Some(FlowState::Closing));
        assert_eq!(after(&[SYN, SYN | ACK, FIN, ACK, FIN]), Some(FlowState::Closed));
        assert_eq!(after(&[SYN, SYN | ACK, FIN, FIN, ACK]), Some(FlowState::Closed));
        assert_eq!(after(&[SYN, SYN | ACK, FIN, FIN, SYN]), Some(FlowState::Opening));
        assert_eq!(after(&[ACK]), Some(FlowState::Established));
        assert_eq!(after(&[SYN, RST]), Some(FlowState::Closed));
        assert_eq!(FlowState::after(None, None), FlowState::Established);
    }

    #[test]
    fn a_full_table_evicts_and_never_grows() {
        let traffic = Traffic::generate(2, 120_000, 150_000);
        let mut table = FlowTable::new();
        for n in 0..150_000 {
            let frame = traffic.frame(n);
            table.process(frame, &Layout::of(frame).unwrap());
        }
        let held: usize = table
            .buckets
            .iter()
            .map(|bucket| bucket.lock().unwrap().iter().flatten().count())
            .sum();
        let findings: HashMap<_, _> = table.findings().into_iter().collect();
        assert!(findings["flows_evicted"] > 0 && held <= ENTRIES);
        assert_eq!(findings["flows_created"] - findings["flows_evicted"], held as u64);
    }
}
