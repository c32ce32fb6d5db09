//! The records that `perf record -z` compresses.
//!
//! perf writes them as one stream of Zstandard (RFC 8878), in pieces. Each piece is a record. It
//! may end within a block, and within a record of the stream. A decoder keeps what later blocks may
//! refer to. perf never ends the stream, so an empty last block is added.
//! Blocks are given to the decoder one by one. One that claims more than 128 KiB is refused before
//! the rest of it is there.

use super::BranchInputError;
use ruzstd::decoding::FrameDecoder;

/// More bytes than come of one byte of a recording, in which numbers differ.
const LARGEST_RATIO: u64 = 256;
/// A short stream may have a larger ratio.
const ALWAYS_ALLOWED: u64 = 1 << 20;
/// What the frame's header has at most, with its first four bytes (RFC 8878, section 3.1.1.1).
const LONGEST_HEADER: usize = 18;
const BLOCK_HEADER: usize = 3;
/// What a block has at most, compressed and uncompressed (RFC 8878, section 3.1.1.2.4).
const LARGEST_BLOCK: usize = 128 << 10;

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
        let mut waiting = std::mem::take(&mut self.waiting);
        let mut used = 0;
        while let Some(header) = waiting[used..].first_chunk() {
            let size = block_size(*header).ok_or_else(damaged)?;
            let Some(block) = waiting.get(used..used + size) else { break };
            self.decode(block).ok_or_else(damaged)?;
            self.give(at, take)?;
            used += size;
        }
        // What is left came with this piece, if a block was whole: no byte is moved twice.
        waiting.drain(..used);
        self.waiting = waiting;
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
            // The decoder claims more than it got if the frame promises a checksum.
            block = block.get(read..)?;
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

/// The size of a block with its header (RFC 8878, section 3.1.1.2). `None`: no block is so large.
fn block_size([first, second, third]: [u8; BLOCK_HEADER]) -> Option<usize> {
    const REPEATED_BYTE: u32 = 1;
    let header = u32::from_le_bytes([first, second, third, 0]);
    let size = (header >> 3) as usize;
    let stored = if header >> 1 & 0b11 == REPEATED_BYTE { 1 } else { size };
    (size <= LARGEST_BLOCK).then_some(BLOCK_HEADER + stored)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The decoder then claims four bytes of a block that it has read already.
    #[test]
    fn a_frame_that_promises_a_checksum_is_damaged() {
        const WITH_CHECKSUM_AND_SIZE: u8 = 1 << 5 | 1 << 2;
        const SIZE: u8 = 20;
        let last_block = [SIZE << 3 | 1, 0, 0];
        let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, WITH_CHECKSUM_AND_SIZE, SIZE];
        frame.extend(last_block);
        // A record of this size.
        frame.extend([68, 0, 0, 0, 0, 0, SIZE, 0]);
        frame.resize(frame.len() + usize::from(SIZE) - 8, 0);
        let read = CompressedStream::new().push(&frame, 7, &mut |_, _, _| Ok(()));
        assert!(matches!(read, Err(BranchInputError::Damaged { at: 7 })), "{read:?}");
    }
}
