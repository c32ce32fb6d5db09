//! Memory straight from the kernel, which nobody used before.

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use std::ffi::c_void;
use std::io;
use std::ptr;

/// Memory of this process alone, zeroed. The first thread to touch a page of it decides on which
/// NUMA node the page lies. Given back on drop.
#[derive(Debug)]
pub(crate) struct Mapping {
    /// Where it begins: at the beginning of a page.
    pub(crate) start: *mut c_void,
    /// Bytes.
    pub(crate) length: usize,
}

impl Mapping {
    /// Maps `length` bytes, above 0, without touching them.
    pub(crate) fn new(length: usize) -> io::Result<Self> {
        // SAFETY: a new anonymous mapping at a place of the kernel's choice touches no memory in
        // use.
        let start = unsafe {
            mmap_anonymous(
                ptr::null_mut(),
                length,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )
        }?;
        Ok(Self { start, length })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and nothing points into it any more. It cannot fail on a
        // mapping that exists.
        let _ = unsafe { munmap(self.start, self.length) };
    }
}
