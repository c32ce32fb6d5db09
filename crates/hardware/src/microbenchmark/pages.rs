//! Fresh memory.

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use std::ffi::c_void;
use std::io;
use std::ptr;

/// The common size of a huge page; a page of another size only costs the alignment.
pub(super) const BLOCK: usize = 2 << 20;
/// No page is smaller.
const SMALLEST: usize = 4096;

/// Memory of this process alone, zeroed, on pages that nobody used before; huge ones where the
/// kernel gives them.
#[derive(Debug)]
pub(super) struct Pages {
    mapping: *mut c_void,
    mapped: usize,
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
        let mapped = length.checked_add(BLOCK).ok_or_else(too_much)?;
        // SAFETY: a new anonymous mapping at a place of the kernel's choice touches no memory in
        // use.
        let mapping = unsafe {
            mmap_anonymous(
                ptr::null_mut(),
                mapped,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )
        }?;
        // `mapped` is a block longer than `length`, so that both fit behind the alignment.
        let start = mapping.cast::<u8>().wrapping_add(mapping.align_offset(BLOCK));
        // SAFETY: advice on our own mapping; without huge pages (EINVAL) small ones do.
        let _ = unsafe { madvise(start.cast(), length, Advice::LinuxHugepage) };
        Ok(Self { mapping, mapped, start, length })
    }
}

impl Pages {
    /// The same, with a page of its own behind every address: what was never written is the
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

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and nothing points into it any more. It cannot fail on a
        // mapping that exists.
        let _ = unsafe { munmap(self.mapping, self.mapped) };
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
            assert!(pages.start.addr() >= pages.mapping.addr());
            assert!(pages.start.addr() + pages.length <= pages.mapping.addr() + pages.mapped);
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
