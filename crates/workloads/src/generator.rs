//! A traffic generator: flows of TCP and UDP over IPv4 and IPv6, some in a VLAN, some with
//! suspicious payload.
//!
//! A frame belongs to a flow chosen at random. A TCP flow begins with SYN and SYN-ACK, carries data
//! both ways, and ends in two FINs. Then the same addresses and ports start over. A UDP flow only
//! carries data. Sizes are near the simple IMIX of traffic testing (7 small : 4 medium : 1 full
//! frame). They go from 64 to 1514 bytes without the frame check sequence. All checksums are right.

use crate::keywords::KEYWORDS;
use crate::traffic::Traffic;
use etherparse::{
    IpHeaders, IpNumber, Ipv4Header, Ipv6FlowLabel, Ipv6Header, PacketBuilder, TcpHeader, VlanId,
};
use pinwise_topology::Random;

const SMALLEST: usize = 64;
const LARGEST: usize = 1514;

/// One in this many frames that carry data has a keyword in its payload.
const KEYWORD_EVERY: u64 = 8;

struct GeneratedFlow {
    client: Endpoint,
    server: Endpoint,
    ipv6: bool,
    tcp: bool,
    vlan: Option<VlanId>,
    phase: TcpPhase,
}

#[derive(Clone, Copy)]
struct Endpoint {
    mac: [u8; 6],
    address: u32,
    port: u16,
}

/// What a TCP flow sends next.
#[derive(Clone, Copy)]
enum TcpPhase {
    Syn,
    SynAck,
    Data,
    ServerFin,
}

impl Traffic {
    /// `frames` frames of `flows` flows, the same for the same `seed`. The module says what is in
    /// them.
    pub fn generate(seed: u64, flows: usize, frames: usize) -> Self {
        let mut traffic = Self::default();
        let mut random = Random::new(seed);
        let mut flows: Vec<GeneratedFlow> =
            (0..flows).map(|number| GeneratedFlow::new(number, &mut random)).collect();
        let mut frame = Vec::with_capacity(LARGEST);
        for _ in 0..frames {
            let flow = random.below(flows.len() as u64) as usize;
            frame.clear();
            flows[flow].next(&mut random, &mut frame);
            traffic.add(&frame);
        }
        traffic
    }
}

impl GeneratedFlow {
    fn new(number: usize, random: &mut Random) -> Self {
        let tcp = random.below(10) < 7;
        let mac = |random: &mut Random| {
            let [a, b, c, d, ..] = random.bits().to_be_bytes();
            [0x02, 0x10, a, b, c, d]
        };
        // The number keeps flows apart; ports that servers listen on are few.
        let client = Endpoint {
            mac: mac(random),
            address: 0x0a00_0000 | number as u32 & 0x00ff_ffff,
            port: 1024 + random.below(60_000) as u16,
        };
        let ports: &[u16] = if tcp { &[80, 443, 22, 25, 8080] } else { &[53, 123, 443, 514, 4789] };
        let server = Endpoint {
            mac: mac(random),
            address: 0x0a00_0000 | random.below(1 << 24) as u32,
            port: ports[random.below(ports.len() as u64) as usize],
        };
        let ipv6 = random.below(5) == 0;
        let vlan = (random.below(6) == 0)
            .then(|| VlanId::try_new(1 + random.below(4094) as u16).unwrap_or_default());
        Self { client, server, ipv6, tcp, vlan, phase: TcpPhase::Syn }
    }

    /// Writes this flow's next frame.
    fn next(&mut self, random: &mut Random, frame: &mut Vec<u8>) {
        if !self.tcp {
            let from_client = random.below(2) == 0;
            let payload = self.payload(random, 8);
            return self.write(random, from_client, None, &payload, frame);
        }
        let mut header = TcpHeader {
            window_size: 0xfaf0,
            sequence_number: random.bits() as u32,
            ..TcpHeader::default()
        };
        let (from_client, phase) = match self.phase {
            TcpPhase::Syn => {
                header.syn = true;
                (true, TcpPhase::SynAck)
            }
            TcpPhase::SynAck => {
                header.syn = true;
                (false, TcpPhase::Data)
            }
            TcpPhase::Data if random.below(8) == 0 => {
                header.fin = true;
                (true, TcpPhase::ServerFin)
            }
            TcpPhase::Data => {
                header.psh = true;
                (random.below(2) == 0, TcpPhase::Data)
            }
            TcpPhase::ServerFin => {
                header.fin = true;
                (false, TcpPhase::Syn)
            }
        };
        header.ack = !matches!(self.phase, TcpPhase::Syn);
        self.phase = phase;
        let payload = if header.psh { self.payload(random, 20) } else { Vec::new() };
        self.write(random, from_client, Some(header), &payload, frame);
    }

    /// Payload for a frame of a size drawn from the mix. Half of it is text and half binary, some
    /// with a keyword.
    fn payload(&self, random: &mut Random, transport_header: usize) -> Vec<u8> {
        let size = match random.below(12) {
            0..7 => SMALLEST + random.below(65) as usize,
            7..11 => 400 + random.below(301) as usize,
            _ => LARGEST,
        };
        let headers = 14
            + if self.vlan.is_some() { 4 } else { 0 }
            + if self.ipv6 { 40 } else { 20 }
            + transport_header;
        let text = random.below(2) == 0;
        let mut payload = vec![0; size.saturating_sub(headers)];
        for chunk in payload.chunks_mut(8) {
            let bits = random.bits().to_le_bytes();
            for (byte, bits) in chunk.iter_mut().zip(bits) {
                *byte = if text {
                    b"etaoinshrdlu cmfwypvbgkjqxz/.=&0"[usize::from(bits) % 32]
                } else {
                    bits
                };
            }
        }
        if random.below(KEYWORD_EVERY) == 0 {
            let keyword = KEYWORDS[random.below(KEYWORDS.len() as u64) as usize].as_bytes();
            if let Some(room) = payload.len().checked_sub(keyword.len()) {
                let at = random.below(room as u64 + 1) as usize;
                payload[at..at + keyword.len()].copy_from_slice(keyword);
            }
        }
        payload
    }

    fn write(
        &self,
        random: &mut Random,
        from_client: bool,
        tcp: Option<TcpHeader>,
        payload: &[u8],
        frame: &mut Vec<u8>,
    ) {
        let (from, to) =
            if from_client { (self.client, self.server) } else { (self.server, self.client) };
        let time_to_live = 32 + random.below(96) as u8;
        let ethernet = PacketBuilder::ethernet2(from.mac, to.mac);
        let ip = self.ip(from, to, time_to_live);
        let ip = match self.vlan {
            Some(vlan) => ethernet.single_vlan(vlan).ip(ip),
            None => ethernet.ip(ip),
        };
        let written = match tcp {
            Some(header) => {
                let header =
                    TcpHeader { source_port: from.port, destination_port: to.port, ..header };
                ip.tcp_header(header).write(frame, payload)
            }
            None => ip.udp(from.port, to.port).write(frame, payload),
        };
        debug_assert!(written.is_ok(), "at most 1514 bytes into a vector: {written:?}");
        frame.resize(frame.len().max(SMALLEST), 0);
    }

    fn ip(&self, from: Endpoint, to: Endpoint, time_to_live: u8) -> IpHeaders {
        if self.ipv6 {
            // A unique local network, the same 32 bits as in IPv4 behind it.
            let address = |endpoint: Endpoint| {
                (0xfd00_u128 << 112 | u128::from(endpoint.address)).to_be_bytes()
            };
            let header = Ipv6Header {
                flow_label: Ipv6FlowLabel::ZERO,
                hop_limit: time_to_live,
                source: address(from),
                destination: address(to),
                ..Ipv6Header::default()
            };
            IpHeaders::Ipv6(header, Default::default())
        } else {
            let header = Ipv4Header {
                time_to_live,
                protocol: if self.tcp { IpNumber::TCP } else { IpNumber::UDP },
                source: from.address.to_be_bytes(),
                destination: to.address.to_be_bytes(),
                ..Ipv4Header::default()
            };
            IpHeaders::Ipv4(header, Default::default())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{IpVersion, Layout};
    use etherparse::{NetSlice, SlicedPacket, TransportSlice};
    use std::collections::BTreeSet;

    #[test]
    fn a_seed_gives_the_same_frames_and_another_seed_others() {
        let frames = |seed| {
            let traffic = Traffic::generate(seed, 16, 64);
            (0..64).map(|n| traffic.frame(n).to_vec()).collect::<Vec<_>>()
        };
        assert_eq!(frames(1), frames(1));
        assert_ne!(frames(1), frames(2));
    }

    /// etherparse is the judge: it decodes every frame, and recomputes every checksum from the
    /// decoded header.
    #[test]
    fn every_frame_is_valid_and_all_kinds_occur() {
        let traffic = Traffic::generate(7, 256, 2048);
        let mut kinds = BTreeSet::new();
        let mut sizes = BTreeSet::new();
        for n in 0..2048 {
            let frame = traffic.frame(n);
            sizes.insert(frame.len());
            let packet = SlicedPacket::from_ethernet(frame).unwrap();
            let (ip, transport) = (packet.net.unwrap(), packet.transport.unwrap());
            let (protocol, valid) = match (&ip, &transport) {
                (NetSlice::Ipv4(ip), TransportSlice::Tcp(tcp)) => {
                    let sum =
                        tcp.to_header().calc_checksum_ipv4(&ip.header().to_header(), tcp.payload());
                    (
                        4,
                        sum == Ok(tcp.checksum())
                            && ip.header().to_header().calc_header_checksum()
                                == ip.header().header_checksum(),
                    )
                }
                (NetSlice::Ipv4(ip), TransportSlice::Udp(udp)) => {
                    let sum =
                        udp.to_header().calc_checksum_ipv4(&ip.header().to_header(), udp.payload());
                    (4, sum == Ok(udp.checksum()))
                }
                (NetSlice::Ipv6(ip), TransportSlice::Tcp(tcp)) => {
                    let sum =
                        tcp.to_header().calc_checksum_ipv6(&ip.header().to_header(), tcp.payload());
                    (6, sum == Ok(tcp.checksum()))
                }
                (NetSlice::Ipv6(ip), TransportSlice::Udp(udp)) => {
                    let sum =
                        udp.to_header().calc_checksum_ipv6(&ip.header().to_header(), udp.payload());
                    (6, sum == Ok(udp.checksum()))
                }
                other => panic!("frame {n} is neither TCP nor UDP over IP: {other:?}"),
            };
            assert!(valid, "frame {n}");
            kinds.insert((
                protocol,
                matches!(transport, TransportSlice::Tcp(_)),
                !packet.link_exts.is_empty(),
            ));
            assert_eq!(
                Layout::of(frame).map(|layout| layout.version() == IpVersion::V4),
                Some(protocol == 4)
            );
        }
        assert_eq!(kinds.len(), 8, "IPv4/IPv6 x TCP/UDP x tagged/untagged: {kinds:?}");
        assert_eq!((sizes.first(), sizes.last()), (Some(&SMALLEST), Some(&LARGEST)));
    }
}
