//! The records that `perf record -z` compresses.
//!
//! perf writes them as one stream of Zstandard (RFC 8878), in pieces. Each piece is a record, whose
//! content may end within a block, and within a record of the stream. perf never ends the stream,
//! and a decoder keeps what later blocks may refer to. So an empty last block is added at the end.
//! Blocks are given to the decoder one by one: a block has at most 128 KiB, whatever it claims.

use super::BranchInputError;
use ruzstd::decoding::FrameDecoder;

/// More bytes than come of one byte of a recording, in which numbers differ.
const LARGEST_RATIO: u64 = 256;
/// A short stream may have a larger ratio.
const ALWAYS_ALLOWED: u64 = 1 << 20;
/// What the frame's header has at most, with its first four bytes (RFC 8878, section 3.1.1.1).
const LONGEST_HEADER: usize = 18;
const BLOCK_HEADER: usize = 3;

/// A stream that comes in pieces.
pub(super) struct CompressedStream {
    decoder: FrameDecoder,
    has_begun: bool,
    /// Compressed, up to the next whole block.
    waiting: Vec<u8>,
    /// Uncompressed, and not taken yet.
    plain: Vec<u8>,
    read: u64,
    written: u64,
}

impl CompressedStream {
    pub(super) fn new() -> Self {
        Self {
            decoder: FrameDecoder::new(),
            has_begun: false,
            waiting: Vec::new(),
            plain: Vec::new(),
            read: 0,
            written: 0,
        }
    }

    /// Takes a piece. `at` is its position in the file. `take` gets the records that are whole now:
    /// kind, what else its header says, and body.
    pub(super) fn push(
        &mut self,
        piece: &[u8],
        at: u64,
        take: &mut impl FnMut(u32, u16, &[u8]) -> Result<(), BranchInputError>,
    ) -> Result<(), BranchInputError> {
        let damaged = || BranchInputError::Damaged { at };
        self.read += piece.len() as u64;
        self.waiting.extend(piece);
        if !self.has_begun {
            if self.waiting.len() < LONGEST_HEADER {
                return Ok(());
            }
            let mut rest = &self.waiting[..];
            self.decoder.init(&mut rest).map_err(|_| damaged())?;
            let header = self.waiting.len() - rest.len();
            self.waiting.drain(..header);
            self.has_begun = true;
        }
        let waiting = std::mem::take(&mut self.waiting);
        let mut rest = &waiting[..];
        while let Some(block) = block(rest) {
            self.decode(block).ok_or_else(damaged)?;
            self.give(at, take)?;
            rest = &rest[block.len()..];
        }
        self.waiting = rest.to_vec();
        Ok(())
    }

    /// Ends the stream: gives the last records.
    pub(super) fn finish(
        mut self,
        at: u64,
        take: &mut impl FnMut(u32, u16, &[u8]) -> Result<(), BranchInputError>,
    ) -> Result<(), BranchInputError> {
        const EMPTY_LAST_BLOCK: [u8; BLOCK_HEADER] = [1, 0, 0];
        let damaged = || BranchInputError::Damaged { at };
        if !self.waiting.is_empty() || !self.has_begun {
            return Err(damaged());
        }
        if !self.decoder.is_finished() {
            self.decode(&EMPTY_LAST_BLOCK).ok_or_else(damaged)?;
        }
        self.give(at, take)?;
        if self.plain.is_empty() { Ok(()) } else { Err(damaged()) }
    }

    /// `None`: damaged, or more than any recording has.
    fn decode(&mut self, mut block: &[u8]) -> Option<()> {
        let mut room = [0; 1 << 14];
        loop {
            let (read, written) = self.decoder.decode_from_to(block, &mut room).ok()?;
            block = &block[read..];
            self.plain.extend(&room[..written]);
            self.written += written as u64;
            if self.written > ALWAYS_ALLOWED.max(LARGEST_RATIO * self.read) {
                return None;
            }
            if written == 0 {
                return block.is_empty().then_some(());
            }
        }
    }

    fn give(
        &mut self,
        at: u64,
        take: &mut impl FnMut(u32, u16, &[u8]) -> Result<(), BranchInputError>,
    ) -> Result<(), BranchInputError> {
        const HEADER: usize = 8;
        let mut rest = &self.plain[..];
        while let Some(header) = rest.first_chunk::<HEADER>() {
            let mut fields = super::Fields(header);
            let kind = fields.u32().unwrap_or_default();
            let (misc, size) = fields.u16_pair().unwrap_or_default();
            let size = usize::from(size);
            if size < HEADER {
                return Err(BranchInputError::Damaged { at });
            }
            let Some((record, after)) = rest.split_at_checked(size) else { break };
            take(kind, misc, &record[HEADER..])?;
            rest = after;
        }
        let taken = self.plain.len() - rest.len();
        self.plain.drain(..taken);
        Ok(())
    }
}

/// The first block, if all of it is there (RFC 8878, section 3.1.1.2).
fn block(bytes: &[u8]) -> Option<&[u8]> {
    const REPEATED_BYTE: u32 = 1;
    let [first, second, third] = *bytes.first_chunk::<BLOCK_HEADER>()?;
    let header = u32::from_le_bytes([first, second, third, 0]);
    let size = match header >> 1 & 0b11 {
        REPEATED_BYTE => 1,
        _ => (header >> 3) as usize,
    };
    bytes.get(..BLOCK_HEADER + size)
}
