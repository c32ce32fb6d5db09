//! The buffer in which the kernel puts the records of an event (perf_event_open(2), "MMAP layout").
//!
//! The buffer is a page of the kernel's bookkeeping and then the data. The data is a power of two
//! of pages, used in a circle. The kernel writes up to the head, and never beyond the tail, up to
//! which pinwise has read. It drops and counts what does not fit.

use super::event;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of data. They hold 16,384 context switches and as many beginnings of a turn. By default a
/// user may lock that much without privilege: `kernel.perf_event_mlock_kb` is 516 a CPU, the first
/// page included.
const DATA: usize = 512 * 1024;
/// Where `data_head` and `data_tail` lie in the first page (`struct perf_event_mmap_page`).
const HEAD: usize = 1024;
const TAIL: usize = 1032;

/// Records of the context switches on one CPU.
#[derive(Debug)]
pub struct SwitchRing {
    base: NonNull<u8>,
    page: usize,
    event: OwnedFd,
}

// SAFETY: the mapping belongs to the value. One thread at a time reads it (`&mut self`). The
// kernel's side is the other party.
unsafe impl Send for SwitchRing {}

impl SwitchRing {
    /// A buffer for what happens on a CPU, once it begins to [`record`](Self::record).
    pub fn switches(cpu: i32) -> io::Result<Self> {
        let event = event::switches(cpu)?;
        let page = rustix::param::page_size();
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: without an address and MAP_FIXED the kernel chooses a place where nothing is.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                page + DATA,
                protection,
                libc::MAP_SHARED,
                event.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { base, page, event })
    }

    /// Starts or stops the kernel's writing.
    pub fn record(&self, on: bool) -> io::Result<()> {
        event::enable(&self.event, on)
    }

    /// Takes out everything that has been written: whole records one after another, appended to
    /// `records`.
    pub fn take(&mut self, records: &mut Vec<u8>) {
        let (head, tail) = (self.position(HEAD), self.position(TAIL));
        // Acquire: the records before the head are read after it.
        let end = head.load(Ordering::Acquire);
        let begin = tail.load(Ordering::Relaxed);
        // The kernel keeps them apart by at most the length of the data.
        let length = (end.wrapping_sub(begin) as usize).min(DATA);
        let from = begin as usize % DATA;
        let first = length.min(DATA - from);
        for (from, length) in [(from, first), (0, length - first)] {
            // SAFETY: `from + length` is at most DATA, and the mapping goes on for DATA bytes after
            // the first page. The kernel does not write between tail and head, and
            // nobody else has the mapping.
            let data = unsafe {
                std::slice::from_raw_parts(self.base.as_ptr().add(self.page + from), length)
            };
            records.extend_from_slice(data);
        }
        // Release: the room is given back after it has been read.
        tail.store(end, Ordering::Release);
    }

    fn position(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: inside the first page, aligned to 8, mapped as long as `self`. The kernel and we
        // use it as one atomic word.
        unsafe { AtomicU64::from_ptr(self.base.as_ptr().add(offset).cast()) }
    }
}

impl Drop for SwitchRing {
    fn drop(&mut self) {
        // SAFETY: mapped with this length in `switches`; no borrow of it outlives `self`.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.page + DATA) };
    }
}
