//! Packets from a capture file, as tcpdump and Wireshark write them: pcap or pcapng.
//!
//! All Ethernet frames of the file go into the pool, also those a router drops (ARP, truncated
//! packets). That is what the captured link carried. [`Capture::left_out`] counts the exceptions.
//! The file is input from strangers; whatever is wrong with it ends in a [`PacketCaptureError`].
//!
//! Only the frames are read. The IETF's drafts `draft-ietf-opsawg-pcap` and
//! `draft-ietf-opsawg-pcapng` define the formats.

use crate::frame::Layout;
use crate::traffic::Traffic;
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// A pool takes this many bytes of a capture and leaves the rest out.
const LARGEST_POOL: usize = 256 << 20;

/// Longer frames than this are left out: super-packets that the capturing host merged, which no
/// link carries.
const LONGEST_FRAME: usize = 16 << 10;

/// No longer record is read, whatever length the file states.
const LONGEST_RECORD: u32 = 8 << 20;

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
        "{} holds {} frames, not Ethernet; capture on an Ethernet interface (not `-i any`)",
        path.display(),
        name(*link)
    )]
    Link {
        /// The file.
        path: PathBuf,
        /// What it holds.
        link: Linktype,
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
    /// The most bytes of the pool.
    most: usize,
}

impl Capture {
    fn empty(most: usize) -> Self {
        Self { traffic: Traffic::default(), left_out: 0, most }
    }

    /// Reads a pcap or pcapng file.
    pub fn open(path: &Path) -> Result<Self, PacketCaptureError> {
        let read = |source| PacketCaptureError::Read { path: path.to_owned(), source };
        let file = File::open(path).map_err(read)?;
        let mut capture = Self::empty(LARGEST_POOL);
        capture.read(file).map_err(|fault| match fault {
            Fault::Read(source) => read(source),
            Fault::Format(reason) => {
                PacketCaptureError::Format { path: path.to_owned(), reason: reason.into() }
            }
            Fault::Link(link) => PacketCaptureError::Link { path: path.to_owned(), link },
        })?;
        let frames = capture.traffic.frames();
        if (0..frames as u64).all(|n| Layout::of(capture.traffic.frame(n)).is_none()) {
            return Err(PacketCaptureError::Empty { path: path.to_owned(), frames });
        }
        Ok(capture)
    }

    fn read(&mut self, file: impl Read) -> Result<(), Fault> {
        let mut file = CaptureFile { file: BufReader::new(file), record: Vec::new() };
        let magic = file.array()?;
        if magic == SECTION_HEADER { self.read_pcapng(file) } else { self.read_pcap(magic, file) }
    }

    fn read_pcap(&mut self, magic: [u8; 4], mut file: CaptureFile<impl Read>) -> Result<(), Fault> {
        let order = match magic {
            // With times in microseconds, and in nanoseconds.
            [0xd4, 0xc3, 0xb2, 0xa1] | [0x4d, 0x3c, 0xb2, 0xa1] => ByteOrder::Little,
            [0xa1, 0xb2, 0xc3, 0xd4] | [0xa1, 0xb2, 0x3c, 0x4d] => ByteOrder::Big,
            _ => return Err(Fault::Format("it has the wrong magic number")),
        };
        let header: [u8; 20] = file.array()?;
        // The upper half says how long the checksums of the frames are.
        ethernet(Linktype(order.number(&header, 16)? & 0xffff))?;
        while !file.is_at_end()? {
            let header: [u8; 16] = file.array()?;
            self.take(file.record(order.number(&header, 8)?)?);
        }
        Ok(())
    }

    /// Reads what follows the type of the first block.
    fn read_pcapng(&mut self, mut file: CaptureFile<impl Read>) -> Result<(), Fault> {
        // Simple packets are of the first interface. It cuts them to this length; 0 does not.
        let (mut order, mut snap_length) = (ByteOrder::Little, None);
        let mut block_type = SECTION_HEADER;
        loop {
            let length: [u8; 4] = file.array()?;
            let mut before = 8;
            if block_type == SECTION_HEADER {
                order = match file.array()? {
                    [0x4d, 0x3c, 0x2b, 0x1a] => ByteOrder::Little,
                    [0x1a, 0x2b, 0x3c, 0x4d] => ByteOrder::Big,
                    _ => return Err(DAMAGED),
                };
                (before, snap_length) = (12, None);
            }
            let length = order.number(&length, 0)?;
            let block = file.record(length.checked_sub(before).ok_or(DAMAGED)?)?;
            let (body, end) = block.split_at_checked(block.len().wrapping_sub(4)).ok_or(DAMAGED)?;
            if length % 4 != 0 || order.number(end, 0)? != length {
                return Err(DAMAGED);
            }
            match order.number(&block_type, 0)? {
                INTERFACE => {
                    ethernet(Linktype(order.first_half(order.number(body, 0)?)))?;
                    snap_length.get_or_insert(order.number(body, 4)?);
                }
                // Nobody knows the link of a packet before any interface.
                ENHANCED_PACKET | PACKET | SIMPLE_PACKET if snap_length.is_none() => {
                    return Err(DAMAGED);
                }
                ENHANCED_PACKET | PACKET => self.take(frame(body, 20, order.number(body, 12)?)?),
                SIMPLE_PACKET => {
                    let most = snap_length.filter(|&most| most > 0).unwrap_or(u32::MAX);
                    self.take(frame(body, 4, order.number(body, 0)?.min(most))?);
                }
                _ => {}
            }
            if file.is_at_end()? {
                return Ok(());
            }
            block_type = file.array()?;
        }
    }

    fn take(&mut self, frame: &[u8]) {
        // An index stands beside each frame, also beside an empty one.
        let taken = self.traffic.size() + self.traffic.frames() * size_of::<usize>();
        if frame.len() > LONGEST_FRAME || taken + frame.len() >= self.most {
            self.left_out += 1;
        } else {
            self.traffic.add(frame);
        }
    }
}

enum Fault {
    Read(io::Error),
    Format(&'static str),
    Link(Linktype),
}

const DAMAGED: Fault = Fault::Format("a record in it is damaged, or longer than 8 MiB");
const CUT: Fault = Fault::Format("it ends in the middle of a record");

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::UnexpectedEof { CUT } else { Self::Read(error) }
    }
}

/// The type of a pcapng section header, the same in both byte orders.
const SECTION_HEADER: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

// Types of pcapng blocks.
const INTERFACE: u32 = 1;
/// What writers used before the enhanced packet.
const PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;

/// A capture that is read from its beginning.
struct CaptureFile<R> {
    file: BufReader<R>,
    record: Vec<u8>,
}

impl<R: Read> CaptureFile<R> {
    fn is_at_end(&mut self) -> io::Result<bool> {
        Ok(self.file.fill_buf()?.is_empty())
    }

    fn array<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut array = [0; N];
        self.file.read_exact(&mut array)?;
        Ok(array)
    }

    /// The next `length` bytes.
    fn record(&mut self, length: u32) -> Result<&[u8], Fault> {
        if length > LONGEST_RECORD {
            return Err(DAMAGED);
        }
        self.record.resize(length as usize, 0);
        self.file.read_exact(&mut self.record)?;
        Ok(&self.record)
    }
}

/// The order of the bytes in a number.
#[derive(Clone, Copy)]
enum ByteOrder {
    Little,
    Big,
}

impl ByteOrder {
    /// The number of four bytes that begins `at` there.
    fn number(self, bytes: &[u8], at: usize) -> Result<u32, Fault> {
        let bytes = bytes.get(at..).and_then(<[u8]>::first_chunk).ok_or(DAMAGED)?;
        Ok(match self {
            Self::Little => u32::from_le_bytes(*bytes),
            Self::Big => u32::from_be_bytes(*bytes),
        })
    }

    /// The number in the first two bytes of `number`.
    fn first_half(self, number: u32) -> u32 {
        match self {
            Self::Little => number & 0xffff,
            Self::Big => number >> 16,
        }
    }
}

/// The frame of `length` bytes that begins `at` there.
fn frame(block: &[u8], at: usize, length: u32) -> Result<&[u8], Fault> {
    block.get(at..).and_then(|data| data.get(..length as usize)).ok_or(DAMAGED)
}

/// What <https://www.tcpdump.org/linktypes.html> numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Linktype(pub u32);

impl Linktype {
    const ETHERNET: Self = Self(1);
}

fn ethernet(link: Linktype) -> Result<(), Fault> {
    if link == Linktype::ETHERNET { Ok(()) } else { Err(Fault::Link(link)) }
}

/// The name of a link on which tcpdump often captures.
fn name(link: Linktype) -> Cow<'static, str> {
    match link.0 {
        101 => "RAW".into(),
        105 => "IEEE802_11".into(),
        113 => "LINUX_SLL".into(),
        127 => "IEEE802_11_RADIOTAP".into(),
        239 => "NFLOG".into(),
        276 => "LINUX_SLL2".into(),
        number => format!("link type {number}").into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
    use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
    use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionBlock;
    use pcap_file::pcapng::blocks::packet::PacketBlock;
    use pcap_file::pcapng::blocks::simple_packet::SimplePacketBlock;
    use pcap_file::pcapng::blocks::unknown::UnknownBlock;
    use pcap_file::pcapng::{PcapNgBlock, PcapNgWriter};
    use pcap_file::{DataLink, Endianness, TsResolution};
    use proptest::prelude::*;
    use std::time::Duration;
    use tempfile::NamedTempFile;

    const ORDERS: [Endianness; 2] = [Endianness::Big, Endianness::Little];

    fn pcap(traffic: &Traffic, datalink: DataLink) -> Vec<u8> {
        pcap_with(traffic, PcapHeader { datalink, ..PcapHeader::default() })
    }

    fn pcap_with(traffic: &Traffic, header: PcapHeader) -> Vec<u8> {
        let mut writer = PcapWriter::with_header(Vec::new(), header).unwrap();
        for n in 0..traffic.frames() as u64 {
            let frame = traffic.frame(n);
            writer
                .write_packet(&PcapPacket::new(Duration::from_millis(n), frame.len() as u32, frame))
                .unwrap();
        }
        writer.into_writer()
    }

    /// Packets in all three kinds of blocks.
    fn pcapng(traffic: &Traffic, order: Endianness) -> Vec<u8> {
        let mut writer = PcapNgWriter::with_endianness(Vec::new(), order).unwrap();
        writer
            .write_pcapng_block(InterfaceDescriptionBlock::new(DataLink::ETHERNET, 0xffff))
            .unwrap();
        for n in 0..traffic.frames() as u64 {
            let data = Cow::Borrowed(traffic.frame(n));
            let original_len = data.len() as u32;
            let block = match n % 3 {
                0 => EnhancedPacketBlock {
                    interface_id: 0,
                    timestamp: Duration::from_millis(n),
                    original_len,
                    data,
                    options: Vec::new(),
                }
                .into_block(),
                1 => SimplePacketBlock { original_len, data }.into_block(),
                _ => PacketBlock {
                    interface_id: 0,
                    drop_count: 0,
                    timestamp: n,
                    captured_len: original_len,
                    original_len,
                    data,
                    options: Vec::new(),
                }
                .into_block(),
            };
            writer.write_block(&block).unwrap();
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
        for endianness in ORDERS {
            let header = PcapHeader { endianness, ..PcapHeader::default() };
            let nanoseconds = PcapHeader { ts_resolution: TsResolution::NanoSecond, ..header };
            for bytes in [
                pcap_with(&traffic, header),
                pcap_with(&traffic, nanoseconds),
                pcapng(&traffic, endianness),
            ] {
                let capture = open(&bytes).unwrap();
                assert_eq!((capture.traffic.frames(), capture.left_out), (40, 0));
                assert!((0..40).all(|n| capture.traffic.frame(n) == traffic.frame(n)));
            }
        }
    }

    #[test]
    fn a_section_may_have_another_byte_order_and_long_blocks_pass() {
        let traffic = Traffic::generate(1, 8, 6);
        let mut bytes = Vec::new();
        for order in ORDERS {
            bytes.extend(pcapng(&traffic, order));
            let mut writer = PcapNgWriter::with_endianness(&mut bytes, order).unwrap();
            let long = vec![0; LONGEST_RECORD as usize * 3 / 4];
            writer.write_block(&UnknownBlock::new(99, 0, &long).into_block()).unwrap();
        }
        let capture = open(&bytes).unwrap();
        assert_eq!(capture.traffic.frames(), 12);
        assert!((0..12).all(|n| capture.traffic.frame(n) == traffic.frame(n % 6)));
    }

    #[test]
    fn a_simple_packet_is_as_long_as_its_interface_allows() {
        // The file fills 30 and 60 bytes up to a multiple of four.
        for (limit, expected) in [(30, 30), (0, 60)] {
            let mut writer = PcapNgWriter::new(Vec::new()).unwrap();
            for limit in [limit, 7] {
                let interface = InterfaceDescriptionBlock::new(DataLink::ETHERNET, limit);
                writer.write_pcapng_block(interface).unwrap();
            }
            let traffic = Traffic::generate(1, 8, 1);
            let data = Cow::Borrowed(&traffic.frame(0)[..expected]);
            let packet = SimplePacketBlock { original_len: 60, data };
            writer.write_pcapng_block(packet).unwrap();
            let mut capture = Capture::empty(LARGEST_POOL);
            assert!(capture.read(writer.into_inner().as_slice()).is_ok());
            assert_eq!(capture.traffic.frame(0).len(), expected);
        }
    }

    #[test]
    fn a_packet_before_any_interface_is_damage() {
        let mut writer = PcapNgWriter::new(Vec::new()).unwrap();
        let data = Cow::Borrowed(&[0; 60][..]);
        writer.write_pcapng_block(SimplePacketBlock { original_len: 60, data }).unwrap();
        let message = open(&writer.into_inner()).unwrap_err().to_string();
        assert!(message.contains("a record in it is damaged"), "{message}");
    }

    #[test]
    fn empty_frames_without_end_take_no_more_memory_than_others() {
        let header = pcap(&Traffic::default(), DataLink::ETHERNET);
        let mut capture = Capture::empty(100 * size_of::<usize>());
        assert!(capture.read(header.as_slice().chain(io::repeat(0).take(16 * 103))).is_ok());
        assert_eq!((capture.traffic.frames(), capture.left_out), (100, 3));
    }

    #[test]
    fn a_stated_length_takes_no_memory() {
        let traffic = Traffic::generate(1, 8, 1);
        let mut file = pcap(&traffic, DataLink::ETHERNET);
        file.extend([0xff; 16]);
        let mut ng = pcapng(&traffic, Endianness::Little);
        ng.extend([99, 0, 0, 0, 0xfc, 0xff, 0xff, 0xff]);
        for bytes in [file, ng] {
            let mut capture = Capture::empty(LARGEST_POOL);
            let endless = bytes.as_slice().chain(io::repeat(0));
            assert!(matches!(capture.read(endless), Err(Fault::Format(_))));
            assert_eq!(capture.traffic.frames(), 1);
        }
    }

    #[test]
    fn a_bad_file_gets_an_error_of_one_line() {
        let traffic = Traffic::generate(1, 8, 4);
        let whole = pcap(&traffic, DataLink::ETHERNET);
        let mut ng = pcapng(&traffic, Endianness::Big);
        *ng.last_mut().unwrap() += 1;
        let mut arp = Traffic::default();
        arp.add(&[0xff; 60]);
        for (bytes, expected) in [
            (Vec::new(), "ends in the middle of a record"),
            (b"not a capture, but long enough for a header".to_vec(), "wrong magic number"),
            (whole[..whole.len() - 3].to_vec(), "ends in the middle of a record"),
            (ng, "a record in it is damaged"),
            (pcap(&traffic, DataLink::IEEE802_11), "holds IEEE802_11 frames, not Ethernet"),
            (pcap(&traffic, DataLink::USER0), "holds link type 147 frames, not Ethernet"),
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
            let mut bytes = if ng {
                pcapng(&traffic, Endianness::Big)
            } else {
                pcap(&traffic, DataLink::ETHERNET)
            };
            for (at, byte) in damage {
                bytes[at] = byte;
            }
            bytes.truncate(cut);
            let mut capture = Capture::empty(LARGEST_POOL);
            let _ = capture.read(bytes.as_slice());
        }
    }
}
