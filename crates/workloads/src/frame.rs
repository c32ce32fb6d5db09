//! Ethernet frames as a forwarder sees them: where the headers are, which fields it reads, and
//! which it rewrites.
//!
//! [`Layout::of`] is the receive check of RFC 1812 section 5.2.2: lengths that fit, a correct IPv4
//! header checksum. What passes it can be read and rewritten at fixed offsets. Up to two VLAN tags
//! are skipped; of IPv6, only packets without extension headers have a transport header here.
//! Everything else (ARP, LLDP, damaged frames) has no layout.

use crate::checksum;
use std::net::IpAddr;

/// Bytes before the VLAN tags or the EtherType: two MAC addresses.
const MAC_ADDRESSES: usize = 12;

const TCP: u8 = 6;
const UDP: u8 = 17;

/// IP version of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IpVersion {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// Where the headers of a valid IP packet are, as byte offsets into its frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    version: IpVersion,
    protocol: u8,
    network: u16,
    /// The TCP or UDP header, if there is one.
    transport: Option<u16>,
    /// One past the last byte of the IP packet; an Ethernet frame may be padded behind it.
    end: u16,
}

impl Layout {
    /// The layout of `frame`, if it holds a valid IP packet that a router may forward.
    pub fn of(frame: &[u8]) -> Option<Self> {
        let mut at = MAC_ADDRESSES;
        let mut kind = word(frame, at)?;
        for _ in 0..2 {
            if kind == 0x8100 || kind == 0x88a8 {
                at += 4;
                kind = word(frame, at)?;
            }
        }
        let network = at + 2;
        let packet = frame.get(network..)?;
        match kind {
            0x0800 => Self::ipv4(network, packet),
            0x86dd => Self::ipv6(network, packet),
            _ => None,
        }
    }

    fn ipv4(network: usize, packet: &[u8]) -> Option<Self> {
        let first = *packet.first()?;
        let header = usize::from(first & 0xf) * 4;
        let total = usize::from(word(packet, 2)?);
        let valid = first >> 4 == 4
            && header >= 20
            && total >= header
            && total <= packet.len()
            && checksum::sum(&packet[..header]) == 0xffff;
        if !valid {
            return None;
        }
        let fragment = word(packet, 6)? & 0x3fff != 0;
        let protocol = packet[9];
        let payload = if fragment { &[] } else { &packet[header..total] };
        Self::with_transport(IpVersion::V4, protocol, network, header, payload, network + total)
    }

    fn ipv6(network: usize, packet: &[u8]) -> Option<Self> {
        let total = 40 + usize::from(word(packet, 4)?);
        if packet[0] >> 4 != 6 || total > packet.len() {
            return None;
        }
        Self::with_transport(
            IpVersion::V6,
            packet[6],
            network,
            40,
            &packet[40..total],
            network + total,
        )
    }

    fn with_transport(
        version: IpVersion,
        protocol: u8,
        network: usize,
        header: usize,
        payload: &[u8],
        end: usize,
    ) -> Option<Self> {
        let complete = match protocol {
            TCP => {
                payload.len() >= 20
                    && usize::from(payload[12] >> 4) * 4 <= payload.len()
                    && payload[12] >> 4 >= 5
            }
            UDP => payload.len() >= 8,
            _ => false,
        };
        let offset = |at: usize| u16::try_from(at).ok();
        let transport = if complete { Some(offset(network + header)?) } else { None };
        Some(Self { version, protocol, network: offset(network)?, transport, end: offset(end)? })
    }

    /// IPv4 or IPv6.
    pub fn version(&self) -> IpVersion {
        self.version
    }

    /// The protocol number of what IP carries: 6 TCP, 17 UDP.
    pub fn protocol(&self) -> u8 {
        self.protocol
    }

    /// The source address.
    pub fn source(&self, frame: &[u8]) -> IpAddr {
        match self.version {
            IpVersion::V4 => IpAddr::from(bytes::<4>(frame, self.network() + 12)),
            IpVersion::V6 => IpAddr::from(bytes::<16>(frame, self.network() + 8)),
        }
    }

    /// The destination address.
    pub fn destination(&self, frame: &[u8]) -> IpAddr {
        match self.version {
            IpVersion::V4 => IpAddr::from(bytes::<4>(frame, self.network() + 16)),
            IpVersion::V6 => IpAddr::from(bytes::<16>(frame, self.network() + 24)),
        }
    }

    /// Source and destination port, where there is a TCP or UDP header.
    pub fn ports(&self, frame: &[u8]) -> Option<(u16, u16)> {
        let at = usize::from(self.transport?);
        Some((u16::from_be_bytes(bytes(frame, at)), u16::from_be_bytes(bytes(frame, at + 2))))
    }

    /// The flag bits of the TCP header (FIN 1, SYN 2, RST 4, ACK 16), if there is one.
    pub fn tcp_flags(&self, frame: &[u8]) -> Option<u8> {
        if self.protocol != TCP {
            return None;
        }
        self.transport.map(|at| frame[usize::from(at) + 13])
    }

    /// What TCP or UDP carries; without either, what IP carries.
    pub fn payload<'a>(&self, frame: &'a [u8]) -> &'a [u8] {
        let start = match (self.transport.map(usize::from), self.version) {
            (Some(at), _) if self.protocol == TCP => at + usize::from(frame[at + 12] >> 4) * 4,
            (Some(at), _) => at + 8,
            (None, IpVersion::V4) => self.network() + usize::from(frame[self.network()] & 0xf) * 4,
            (None, IpVersion::V6) => self.network() + 40,
        };
        &frame[start..usize::from(self.end)]
    }

    /// Sends the packet to another host of its network: the low 24 bits of the destination become
    /// those of `host`. The checksums that cover the address are adjusted, so a valid packet
    /// stays valid.
    pub fn redirect(&self, frame: &mut [u8], host: u32) {
        let low = match self.version {
            IpVersion::V4 => self.network() + 16,
            IpVersion::V6 => self.network() + 36,
        };
        let address = u32::from_be_bytes(bytes(frame, low)) & 0xff00_0000 | host & 0x00ff_ffff;
        let [a, b, c, d] = address.to_be_bytes();
        self.replace_address_word(frame, low, [a, b]);
        self.replace_address_word(frame, low + 2, [c, d]);
    }

    fn replace_address_word(&self, frame: &mut [u8], at: usize, new: [u8; 2]) {
        let old = bytes::<2>(frame, at);
        frame[at..at + 2].copy_from_slice(&new);
        if self.version == IpVersion::V4 {
            adjust(frame, self.network() + 10, old, new);
        }
        let Some(transport) = self.transport.map(usize::from) else { return };
        if self.protocol == TCP {
            adjust(frame, transport + 16, old, new);
        } else if bytes::<2>(frame, transport + 6) != [0, 0] {
            adjust(frame, transport + 6, old, new);
            if bytes::<2>(frame, transport + 6) == [0, 0] {
                // RFC 768: zero means that there is no checksum. A sum that comes out as zero is
                // sent as the other zero.
                frame[transport + 6..transport + 8].copy_from_slice(&[0xff, 0xff]);
            }
        }
    }

    /// Makes the frame ready to leave through port `hop` (RFC 1812 section 5.3.1). It gets new MAC
    /// addresses and an adjusted IPv4 header checksum. TTL or hop limit is one lower. False, and
    /// the frame untouched, where its time to live has run out.
    #[must_use]
    pub fn forward(&self, frame: &mut [u8], hop: u8) -> bool {
        let (time_to_live, word) = match self.version {
            IpVersion::V4 => (self.network() + 8, self.network() + 8),
            IpVersion::V6 => (self.network() + 7, self.network() + 6),
        };
        if frame[time_to_live] <= 1 {
            return false;
        }
        let old = bytes::<2>(frame, word);
        frame[time_to_live] -= 1;
        if self.version == IpVersion::V4 {
            let new = bytes::<2>(frame, word);
            adjust(frame, self.network() + 10, old, new);
        }
        // Locally administered addresses: the router's own is port 0xff of the same block.
        frame[..6].copy_from_slice(&[0x02, 0, 0, 0, 0, hop]);
        frame[6..12].copy_from_slice(&[0x02, 0, 0, 0, 0, 0xff]);
        true
    }

    fn network(&self) -> usize {
        usize::from(self.network)
    }
}

/// Adjusts the checksum at `at` for data in which `old` became `new`.
fn adjust(frame: &mut [u8], at: usize, old: [u8; 2], new: [u8; 2]) {
    let checksum = u16::from_be_bytes(bytes(frame, at));
    let adjusted = checksum::replace(checksum, u16::from_be_bytes(old), u16::from_be_bytes(new));
    frame[at..at + 2].copy_from_slice(&adjusted.to_be_bytes());
}

/// The big-endian word at `at`, if the frame is that long.
fn word(frame: &[u8], at: usize) -> Option<u16> {
    frame.get(at..at + 2).map(|word| u16::from_be_bytes([word[0], word[1]]))
}

/// The `N` bytes at `at`, which the caller's layout says are there.
fn bytes<const N: usize>(frame: &[u8], at: usize) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&frame[at..at + N]);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::Traffic;
    use etherparse::{NetSlice, SlicedPacket, TransportSlice};
    use proptest::prelude::*;

    /// Whether all checksums that cover the destination address are right, according to etherparse.
    fn sound(frame: &[u8]) -> bool {
        let packet = SlicedPacket::from_ethernet(frame).unwrap();
        match (packet.net.unwrap(), packet.transport.unwrap()) {
            (NetSlice::Ipv4(ip), TransportSlice::Tcp(tcp)) => {
                let ip = ip.header().to_header();
                ip.calc_header_checksum() == ip.header_checksum
                    && tcp.to_header().calc_checksum_ipv4(&ip, tcp.payload()) == Ok(tcp.checksum())
            }
            (NetSlice::Ipv4(ip), TransportSlice::Udp(udp)) => {
                let ip = ip.header().to_header();
                ip.calc_header_checksum() == ip.header_checksum
                    && udp.to_header().calc_checksum_ipv4(&ip, udp.payload()) == Ok(udp.checksum())
            }
            (NetSlice::Ipv6(ip), TransportSlice::Tcp(tcp)) => {
                tcp.to_header().calc_checksum_ipv6(&ip.header().to_header(), tcp.payload())
                    == Ok(tcp.checksum())
            }
            (NetSlice::Ipv6(ip), TransportSlice::Udp(udp)) => {
                udp.to_header().calc_checksum_ipv6(&ip.header().to_header(), udp.payload())
                    == Ok(udp.checksum())
            }
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn redirecting_and_forwarding_keep_every_checksum_right(
            seed in 0u64..50,
            n in 0u64..64,
            hosts: [u32; 3],
            hop: u8,
        ) {
            let traffic = Traffic::generate(seed, 16, 64);
            let mut frame = traffic.frame(n).to_vec();
            let layout = Layout::of(&frame).unwrap();
            for host in hosts {
                layout.redirect(&mut frame, host);
                prop_assert!(sound(&frame));
                let low = match layout.destination(&frame) {
                    IpAddr::V4(address) => address.to_bits(),
                    IpAddr::V6(address) => address.to_bits() as u32,
                };
                prop_assert_eq!(low & 0xff_ffff, host & 0xff_ffff);
            }
            prop_assert!(layout.forward(&mut frame, hop));
            prop_assert!(sound(&frame));
            prop_assert_eq!(Layout::of(&frame), Some(layout));
        }

        /// Damaged frames: no panic, and whatever is accepted lies within the frame and is accepted
        /// by etherparse too.
        #[test]
        fn what_is_accepted_of_damaged_frames_can_be_read_and_rewritten(
            seed in 0u64..20,
            n in 0u64..64,
            damage in prop::collection::vec((0usize..80, any::<u8>()), 0..4),
            length in 0usize..1515,
        ) {
            let traffic = Traffic::generate(seed, 16, 64);
            let mut frame = traffic.frame(n).to_vec();
            for (at, byte) in damage {
                let last = frame.len() - 1;
                frame[at.min(last)] = byte;
            }
            frame.truncate(length);
            if let Some(layout) = Layout::of(&frame) {
                prop_assert!(layout.payload(&frame).len() < frame.len());
                let _ = (layout.source(&frame), layout.ports(&frame), layout.tcp_flags(&frame));
                layout.redirect(&mut frame, 77);
                let _ = layout.forward(&mut frame, 1);
                let packet = etherparse::LaxSlicedPacket::from_ethernet(&frame).unwrap();
                prop_assert!(packet.net.is_some());
            }
        }

        #[test]
        fn random_bytes_are_no_reason_to_panic(
            frame in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let _ = Layout::of(&frame);
        }
    }

    #[test]
    fn a_packet_at_the_end_of_its_time_to_live_stays_and_is_not_touched() {
        let traffic = Traffic::generate(1, 16, 64);
        for n in 0..64 {
            let mut frame = traffic.frame(n).to_vec();
            let layout = Layout::of(&frame).unwrap();
            while layout.forward(&mut frame, 5) {}
            let before = frame.clone();
            assert!(!layout.forward(&mut frame, 6));
            assert_eq!(frame, before);
            assert_eq!(
                Layout::of(&frame),
                Some(layout),
                "128 decrements later the checksum is still right"
            );
        }
    }

    #[test]
    fn a_wrong_header_checksum_or_another_protocol_has_no_layout() {
        let mut frame = Traffic::generate(1, 16, 64).frame(0).to_vec();
        assert!(Layout::of(&frame).is_some());
        frame[12..14].copy_from_slice(&[0x08, 0x06]);
        assert_eq!(Layout::of(&frame), None, "ARP");
        let traffic = Traffic::generate(1, 16, 64);
        let ipv4 = (0..64).map(|n| traffic.frame(n)).find(|frame| frame[12..14] == [8, 0]).unwrap();
        let mut damaged = ipv4.to_vec();
        damaged[24] ^= 1;
        assert_eq!(Layout::of(&damaged), None);
    }

    #[test]
    fn a_udp_packet_without_checksum_gets_none() {
        let builder = etherparse::PacketBuilder::ethernet2([1; 6], [2; 6])
            .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 9)
            .udp(1, 2);
        let mut frame = Vec::new();
        builder.write(&mut frame, b"payload").unwrap();
        frame[40..42].copy_from_slice(&[0, 0]);
        let layout = Layout::of(&frame).unwrap();
        layout.redirect(&mut frame, 0x12_3456);
        assert_eq!(frame[40..42], [0, 0]);
        assert_eq!(layout.payload(&frame), b"payload");
    }
}
