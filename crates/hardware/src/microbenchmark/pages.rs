//! The memory of a microbenchmark, in blocks of the size of a huge page.

use crate::mapping::Mapping;
use rustix::mm::{Advice, madvise};
use std::io;

/// The common size of a huge page; a page of another size only costs the alignment.
pub(super) const BLOCK: usize = 2 << 20;
/// No page is smaller.
const SMALLEST: usize = 4096;

/// Zeroed memory on pages that nobody used before; huge ones where the kernel gives them.
#[derive(Debug)]
pub(super) struct Pages {
    #[cfg_attr(not(test), expect(dead_code, reason = "held for its drop"))]
    mapping: Mapping,
    /// The first byte that begins a block.
    pub(super) start: *mut u8,
    /// Bytes from there on, whole blocks.
    pub(super) length: usize,
}

impl Pages {
    /// At least `bytes` bytes, untouched.
    pub(super) fn new(bytes: usize) -> io::Result<Self> {
        let too_much = || io::Error::from(io::ErrorKind::OutOfMemory);
        let length = bytes.max(1).checked_next_multiple_of(BLOCK).ok_or_else(too_much)?;
        // A block longer than `length`, so that both fit behind the alignment.
        let mapping = Mapping::new(length.checked_add(BLOCK).ok_or_else(too_much)?)?;
        let start = mapping.start.cast::<u8>();
        let start = start.wrapping_add(start.align_offset(BLOCK));
        // SAFETY: advice on our own mapping; without huge pages (EINVAL) small ones do.
        let _ = unsafe { madvise(start.cast(), length, Advice::LinuxHugepage) };
        Ok(Self { mapping, start, length })
    }
}

impl Pages {
    /// The same, with a separate page behind every address. Memory that was never written is the
    /// kernel's one page of zeros.
    pub(super) fn touched(bytes: usize) -> io::Result<Self> {
        let pages = Self::new(bytes)?;
        for offset in (0..pages.length).step_by(SMALLEST) {
            // SAFETY: the offset is in the mapping, which nothing else refers to yet. Volatile: a
            // write of zeros to zeros is to happen.
            unsafe { pages.start.add(offset).write_volatile(0) };
        }
        Ok(pages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_whole_blocks_inside_their_mapping_and_writable_to_the_end() {
        for bytes in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1] {
            let pages = Pages::touched(bytes).unwrap();
            assert_eq!(
                (pages.start.addr() % BLOCK, pages.length),
                (0, bytes.max(1).next_multiple_of(BLOCK))
            );
            let mapping = &pages.mapping;
            assert!(pages.start.addr() >= mapping.start.addr());
            assert!(pages.start.addr() + pages.length <= mapping.start.addr() + mapping.length);
            // SAFETY: the last byte of the pages.
            unsafe { pages.start.add(pages.length - 1).write_volatile(1) };
        }
    }

    #[test]
    fn more_than_there_can_be_is_refused() {
        for bytes in [usize::MAX, usize::MAX - 2 * BLOCK, usize::MAX / 2] {
            assert!(Pages::new(bytes).is_err(), "{bytes}");
        }
    }
}
