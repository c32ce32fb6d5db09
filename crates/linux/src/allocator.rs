//! [`ExitingAllocator`]: what happens when there is no memory left.
//!
//! Rust would abort, with a dump. This allocator says it in one line and ends the process. Its
//! guardian then puts back what was changed, as after any other end.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write;

/// The system's allocator. Where that has no memory, the process ends with exit code 1.
#[derive(Clone, Copy, Debug)]
pub struct ExitingAllocator;

// SAFETY: every call goes to the system's allocator, and what it returns is passed on.
unsafe impl GlobalAlloc for ExitingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of this function, which is the same.
        or_exit(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        or_exit(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above.
        or_exit(unsafe { System.realloc(block, layout, size) }, size)
    }
}

/// Ends the process if there is no block. Nothing here allocates.
fn or_exit(block: *mut u8, size: usize) -> *mut u8 {
    if block.is_null() {
        let mut text = [0; 160];
        let mut rest = &mut text[..];
        let _ = writeln!(
            rest,
            "pinwise: out of memory: {size} bytes were refused; raise ulimit -v, or free memory"
        );
        let left = rest.len();
        let said = &text[..text.len() - left];
        // SAFETY: `said` is valid for its length. `_exit` runs nothing of this process any more.
        unsafe {
            libc::write(2, said.as_ptr().cast(), said.len());
            libc::_exit(1)
        }
    }
    block
}
