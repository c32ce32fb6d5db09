//! A page of memory, and the cache lines in it that threads pass to each other.

use crate::mapping::Mapping;
use std::io;
use std::sync::atomic::AtomicU64;

/// A page straight from the kernel.
#[derive(Debug)]
pub(crate) struct Page {
    mapping: Mapping,
}

// SAFETY: the memory is reached through atomics only, and belongs to the value until it is dropped.
unsafe impl Send for Page {}
// SAFETY: as above.
unsafe impl Sync for Page {}

impl Page {
    /// Bytes from one line to the next: two lines of 64, which adjacent-line prefetchers fetch
    /// together, or one of 128.
    const STRIDE: usize = 128;
    /// Lines in a page; no supported page is smaller than 4 KiB.
    pub(crate) const LINES: usize = 4096 / Self::STRIDE;

    /// Maps a page without touching it.
    pub(crate) fn map() -> io::Result<Self> {
        Ok(Self { mapping: Mapping::new(rustix::param::page_size())? })
    }

    /// A line, `index` below [`Self::LINES`]; 0 until it is written.
    pub(crate) fn line(&self, index: usize) -> &AtomicU64 {
        assert!(index < Self::LINES, "a page of 4 KiB has no line {index}");
        // SAFETY: inside the mapping (LINES * STRIDE is at most its length), and mapped as long as
        // `self` is borrowed. Aligned to 128, zeroed by the kernel, only ever used as this atomic.
        unsafe { AtomicU64::from_ptr(self.mapping.start.byte_add(index * Self::STRIDE).cast()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn lines_are_empty_apart_and_inside_the_page() {
        let page = Page::map().unwrap();
        for index in 0..Page::LINES {
            assert_eq!(page.line(index).swap(index as u64 + 1, Ordering::Relaxed), 0);
        }
        let address = |index| std::ptr::from_ref(page.line(index)).addr();
        assert_eq!(address(1) - address(0), 128);
        assert!(address(Page::LINES - 1) + 8 <= address(0) + page.mapping.length);
        assert_eq!(address(0) % 4096, 0);
    }
}
