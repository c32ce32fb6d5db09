//! A packet analyzer: decodes every packet from its first byte and logs what is in the headers.
//!
//! As in section 4.3 of the optimal-assignment study, it logs time to live and layer 3 protocol. It
//! also logs source and destination of MAC address, IP address and port. The log is a ring in
//! memory that keeps the last 4,096 packets.

use crate::frame::Layout;
use crate::hash;
use crate::packet_work::{PacketAction, PacketWork, port_by_flow};
use etherparse::{LinkSlice, NetSlice, SlicedPacket, TransportSlice};
use std::net::{IpAddr, Ipv4Addr};

const LOG_LENGTH: usize = 4096;

/// What is logged of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogEntry {
    mac: [[u8; 6]; 2],
    ip: [IpAddr; 2],
    ports: Option<[u16; 2]>,
    protocol: u8,
    time_to_live: u8,
}

/// The P thread of the packet analyzer.
pub(crate) struct Analyzer {
    log: Vec<LogEntry>,
    logged: u64,
    undecodable: u64,
}

impl Analyzer {
    pub(crate) fn new() -> Self {
        let nothing = LogEntry {
            mac: [[0; 6]; 2],
            ip: [IpAddr::V4(Ipv4Addr::UNSPECIFIED); 2],
            ports: None,
            protocol: 0,
            time_to_live: 0,
        };
        Self { log: vec![nothing; LOG_LENGTH], logged: 0, undecodable: 0 }
    }
}

/// Decodes a frame down to the ports.
fn decode(frame: &[u8]) -> Option<LogEntry> {
    let packet = SlicedPacket::from_ethernet(frame).ok()?;
    let Some(LinkSlice::Ethernet2(ethernet)) = packet.link else { return None };
    let (ip, protocol, time_to_live) = match packet.net? {
        NetSlice::Ipv4(ip) => {
            let header = ip.header();
            (
                [header.source_addr().into(), header.destination_addr().into()],
                header.protocol().0,
                header.ttl(),
            )
        }
        NetSlice::Ipv6(ip) => {
            let header = ip.header();
            (
                [header.source_addr().into(), header.destination_addr().into()],
                header.next_header().0,
                header.hop_limit(),
            )
        }
        NetSlice::Arp(_) => return None,
    };
    let ports = match packet.transport {
        Some(TransportSlice::Tcp(tcp)) => Some([tcp.source_port(), tcp.destination_port()]),
        Some(TransportSlice::Udp(udp)) => Some([udp.source_port(), udp.destination_port()]),
        _ => None,
    };
    Some(LogEntry {
        mac: [ethernet.source(), ethernet.destination()],
        ip,
        ports,
        protocol,
        time_to_live,
    })
}

impl PacketWork for Analyzer {
    fn process(&mut self, frame: &[u8], _: &Layout) -> PacketAction {
        let Some(entry) = decode(frame) else {
            self.undecodable += 1;
            return PacketAction::Drop;
        };
        self.log[self.logged as usize % LOG_LENGTH] = entry;
        self.logged += 1;
        port_by_flow(hash::mix(hash::fold(entry.ip[0]) ^ hash::fold(entry.ip[1])))
    }

    fn findings(&self) -> Vec<(&'static str, u64)> {
        vec![("logged", self.logged), ("undecodable", self.undecodable)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::Traffic;

    /// The forwarder's decoder follows the RFCs, and others wrote etherparse. They agree on every
    /// field.
    #[test]
    fn the_log_holds_the_last_packets_as_an_independent_decoder_sees_them() {
        let traffic = Traffic::generate(5, 200, 6000);
        let mut analyzer = Analyzer::new();
        for n in 0..6000 {
            let frame = traffic.frame(n);
            let verdict = analyzer.process(frame, &Layout::of(frame).unwrap());
            assert!(matches!(verdict, PacketAction::Forward(0..16)));
        }
        assert_eq!(analyzer.findings(), [("logged", 6000), ("undecodable", 0)]);
        for n in 6000 - LOG_LENGTH as u64..6000 {
            let frame = traffic.frame(n);
            let layout = Layout::of(frame).unwrap();
            let entry = analyzer.log[n as usize % LOG_LENGTH];
            let tag = if frame[12..14] == [0x81, 0] { 4 } else { 0 };
            let time_to_live = frame[14 + tag + if entry.ip[0].is_ipv4() { 8 } else { 7 }];
            assert_eq!(entry.mac.concat(), [&frame[6..12], &frame[..6]].concat());
            assert_eq!(entry.ip, [layout.source(frame), layout.destination(frame)]);
            assert_eq!(
                entry.ports.map(|[source, destination]| (source, destination)),
                layout.ports(frame)
            );
            assert_eq!((entry.protocol, entry.time_to_live), (layout.protocol(), time_to_live));
        }
    }

    #[test]
    fn what_cannot_be_decoded_is_counted_and_dropped() {
        let traffic = Traffic::generate(5, 1, 1);
        let frame = traffic.frame(0);
        let mut analyzer = Analyzer::new();
        assert_eq!(analyzer.process(&frame[..20], &Layout::of(frame).unwrap()), PacketAction::Drop);
        assert_eq!(analyzer.findings(), [("logged", 0), ("undecodable", 1)]);
    }
}
