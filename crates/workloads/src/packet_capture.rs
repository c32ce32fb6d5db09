//! Packets from a capture file, as tcpdump and Wireshark write them: pcap or pcapng.
//!
//! All Ethernet frames of the file go into the pool, also those a router drops (ARP, truncated
//! packets). That is what the captured link carried. The file is input from strangers; whatever is
//! wrong with it ends in a [`PacketCaptureError`].

use crate::frame::Layout;
use crate::traffic::Traffic;
use pcap_file::pcap::PcapReader;
use pcap_file::pcapng::{Block, PcapNgReader};
use pcap_file::{DataLink, PcapError};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// A pool takes this many bytes of a capture and leaves the rest out.
const LARGEST_POOL: usize = 256 << 20;

/// Longer frames than this are left out: super-packets that the capturing host merged, which no
/// link carries.
const LONGEST_FRAME: usize = 16 << 10;

/// Why a capture file cannot be used. One line, naming the file.
#[derive(Debug, thiserror::Error)]
pub enum PacketCaptureError {
    /// It could not be opened or read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is not a capture file, or a damaged one.
    #[error(
        "{} is not a sound pcap or pcapng file: {reason}; make one with `tcpdump -w FILE`",
        path.display()
    )]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// It holds something else than Ethernet frames.
    #[error(
        "{} holds {link:?} frames, not Ethernet; capture on an Ethernet interface (not `-i any`)",
        path.display()
    )]
    Link {
        /// The file.
        path: PathBuf,
        /// What it holds.
        link: DataLink,
    },
    /// There is nothing in it to forward.
    #[error(
        "{} holds no complete IPv4 or IPv6 packet among its {frames} frames; capture with full \
         length (`tcpdump -s 0`)",
        path.display()
    )]
    Empty {
        /// The file.
        path: PathBuf,
        /// Frames it holds.
        frames: usize,
    },
}

/// A pool of captured frames.
#[derive(Debug)]
pub struct Capture {
    /// The frames.
    pub traffic: Traffic,
    /// Frames of the file that were left out: longer than 16 KiB, or beyond the first 256 MiB.
    pub left_out: u64,
}

impl Capture {
    /// Reads a pcap or pcapng file.
    pub fn open(path: &Path) -> Result<Self, PacketCaptureError> {
        let read = |source| PacketCaptureError::Read { path: path.to_owned(), source };
        let file = File::open(path).map_err(read)?;
        let mut capture = Self { traffic: Traffic::default(), left_out: 0 };
        capture.read(file).map_err(|error| match error {
            Fault::File(PcapError::IoError(source))
                if source.kind() != io::ErrorKind::UnexpectedEof =>
            {
                read(source)
            }
            Fault::File(PcapError::IoError(_)) => PacketCaptureError::Format {
                path: path.to_owned(),
                reason: "it ends in the middle of a record".into(),
            },
            Fault::File(error) => {
                PacketCaptureError::Format { path: path.to_owned(), reason: error.to_string() }
            }
            Fault::Link(link) => PacketCaptureError::Link { path: path.to_owned(), link },
        })?;
        let frames = capture.traffic.frames();
        if (0..frames as u64).all(|n| Layout::of(capture.traffic.frame(n)).is_none()) {
            return Err(PacketCaptureError::Empty { path: path.to_owned(), frames });
        }
        Ok(capture)
    }

    fn read(&mut self, mut file: impl Read) -> Result<(), Fault> {
        let mut magic = [0; 4];
        file.read_exact(&mut magic).map_err(PcapError::IoError)?;
        let file = magic.as_slice().chain(file);
        // The type of a pcapng section header, the same in both byte orders.
        if magic == [0x0a, 0x0d, 0x0d, 0x0a] {
            self.read_pcapng(file)
        } else {
            self.read_pcap(file)
        }
    }

    fn read_pcap(&mut self, file: impl Read) -> Result<(), Fault> {
        let mut reader = PcapReader::new(file)?;
        ethernet(reader.header().datalink)?;
        // Raw, because whether timestamps and the stated snap length make sense does not matter
        // here.
        while let Some(packet) = reader.next_raw_packet() {
            self.take(&packet?.data);
        }
        Ok(())
    }

    fn read_pcapng(&mut self, file: impl Read) -> Result<(), Fault> {
        let mut reader = PcapNgReader::new(file)?;
        while let Some(block) = reader.next_block() {
            match block? {
                Block::InterfaceDescription(interface) => ethernet(interface.linktype)?,
                Block::EnhancedPacket(packet) => self.take(&packet.data),
                Block::SimplePacket(packet) => self.take(&packet.data),
                Block::Packet(packet) => self.take(&packet.data),
                _ => {}
            }
        }
        Ok(())
    }

    fn take(&mut self, frame: &[u8]) {
        if frame.len() > LONGEST_FRAME || self.traffic.size() + frame.len() > LARGEST_POOL {
            self.left_out += 1;
        } else {
            self.traffic.add(frame);
        }
    }
}

enum Fault {
    File(PcapError),
    Link(DataLink),
}

impl From<PcapError> for Fault {
    fn from(error: PcapError) -> Self {
        Self::File(error)
    }
}

fn ethernet(link: DataLink) -> Result<(), Fault> {
    if link == DataLink::ETHERNET { Ok(()) } else { Err(Fault::Link(link)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pcap_file::Endianness;
    use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
    use pcap_file::pcapng::PcapNgWriter;
    use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
    use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionBlock;
    use proptest::prelude::*;
    use std::borrow::Cow;
    use std::time::Duration;
    use tempfile::NamedTempFile;

    fn pcap(traffic: &Traffic, link: DataLink) -> Vec<u8> {
        let header =
            PcapHeader { datalink: link, endianness: Endianness::Big, ..PcapHeader::default() };
        let mut writer = PcapWriter::with_header(Vec::new(), header).unwrap();
        for n in 0..traffic.frames() as u64 {
            let frame = traffic.frame(n);
            writer
                .write_packet(&PcapPacket::new(Duration::from_millis(n), frame.len() as u32, frame))
                .unwrap();
        }
        writer.into_writer()
    }

    fn pcapng(traffic: &Traffic) -> Vec<u8> {
        let mut writer = PcapNgWriter::new(Vec::new()).unwrap();
        let interface = InterfaceDescriptionBlock {
            linktype: DataLink::ETHERNET,
            snaplen: 0xffff,
            options: Vec::new(),
        };
        writer.write_pcapng_block(interface).unwrap();
        for n in 0..traffic.frames() as u64 {
            let frame = traffic.frame(n);
            let packet = EnhancedPacketBlock {
                interface_id: 0,
                timestamp: Duration::from_millis(n),
                original_len: frame.len() as u32,
                data: Cow::Borrowed(frame),
                options: Vec::new(),
            };
            writer.write_pcapng_block(packet).unwrap();
        }
        writer.into_inner()
    }

    fn open(bytes: &[u8]) -> Result<Capture, PacketCaptureError> {
        let file = NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        Capture::open(file.path())
    }

    #[test]
    fn both_formats_give_back_the_frames_that_were_written() {
        let traffic = Traffic::generate(1, 8, 40);
        for bytes in [pcap(&traffic, DataLink::ETHERNET), pcapng(&traffic)] {
            let capture = open(&bytes).unwrap();
            assert_eq!((capture.traffic.frames(), capture.left_out), (40, 0));
            assert!((0..40).all(|n| capture.traffic.frame(n) == traffic.frame(n)));
        }
    }

    #[test]
    fn what_is_wrong_with_a_file_is_said_in_one_line() {
        let traffic = Traffic::generate(1, 8, 4);
        let whole = pcap(&traffic, DataLink::ETHERNET);
        let mut arp = Traffic::default();
        arp.add(&[0xff; 60]);
        for (bytes, expected) in [
            (Vec::new(), "ends in the middle of a record"),
            (b"not a capture, but long enough for a header".to_vec(), "wrong magic number"),
            (whole[..whole.len() - 3].to_vec(), "ends in the middle of a record"),
            (pcap(&traffic, DataLink::IEEE802_11), "holds IEEE802_11 frames, not Ethernet"),
            (pcap(&arp, DataLink::ETHERNET), "no complete IPv4 or IPv6 packet among its 1 frames"),
        ] {
            let message = open(&bytes).unwrap_err().to_string();
            assert!(message.contains(expected) && !message.contains('\n'), "{message}");
        }
        let missing = Capture::open(Path::new("/nonexistent/trace.pcap")).unwrap_err().to_string();
        assert_eq!(
            missing,
            "cannot read /nonexistent/trace.pcap: No such file or directory (os error 2)"
        );
    }

    #[test]
    fn merged_super_packets_are_left_out() {
        let mut traffic = Traffic::generate(1, 8, 4);
        traffic.add(&[0; LONGEST_FRAME + 1]);
        let capture = open(&pcap(&traffic, DataLink::ETHERNET)).unwrap();
        assert_eq!((capture.traffic.frames(), capture.left_out), (4, 1));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_damaged_file_never_panics(
            ng: bool,
            damage in prop::collection::vec((0usize..400, any::<u8>()), 1..6),
            cut in 1usize..2000,
        ) {
            let traffic = Traffic::generate(1, 4, 6);
            let mut bytes = if ng { pcapng(&traffic) } else { pcap(&traffic, DataLink::ETHERNET) };
            for (at, byte) in damage {
                bytes[at] = byte;
            }
            bytes.truncate(cut);
            let mut capture = Capture { traffic: Traffic::default(), left_out: 0 };
            let _ = capture.read(bytes.as_slice());
        }
    }
}
