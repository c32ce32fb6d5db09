//! Reads and writes that go through fresh memory from its beginning to its end, again and again.

use super::kernel;
use super::pages::Pages;
use std::io;

/// What one pass goes through: 64 lines of 64 bytes.
const PASS: usize = 4096;

/// The memory, and the place that is next.
#[derive(Debug)]
pub(super) struct MemorySweep {
    pages: Pages,
    at: usize,
}

impl MemorySweep {
    /// At least `bytes` bytes, touched by the calling thread.
    pub(super) fn new(bytes: usize) -> io::Result<Self> {
        Ok(Self { pages: Pages::touched(bytes)?, at: 0 })
    }

    /// Reads `passes` times 64 lines.
    pub(super) fn read(&mut self, passes: u64) {
        // SAFETY: `each` stays in the pages, which live as long.
        self.each(passes, |from, passes| unsafe { kernel::stream(from, passes) });
    }

    /// Writes `passes` times 64 lines, past the caches.
    pub(super) fn write(&mut self, passes: u64) {
        // SAFETY: as above. Nothing else refers to the pages, and they begin with a block, which is
        // a multiple of 16.
        self.each(passes, |from, passes| unsafe { kernel::store(from, passes) });
    }

    /// The next `passes`, divided where the pages end. The pages' length is a multiple of a pass.
    fn each(&mut self, mut passes: u64, act: impl Fn(*mut u8, u64)) {
        while passes > 0 {
            let now = passes.min(((self.pages.length - self.at) / PASS) as u64);
            act(self.pages.start.wrapping_add(self.at), now);
            self.at = (self.at + now as usize * PASS) % self.pages.length;
            passes -= now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::microbenchmark::pages::BLOCK;

    #[test]
    fn a_strip_is_read_round_and_round() {
        let mut sweep = MemorySweep::new(1).unwrap();
        let passes = (BLOCK / PASS) as u64;
        sweep.read(2 * passes + 3);
        assert_eq!(sweep.at, 3 * PASS);
    }

    #[test]
    fn every_byte_of_what_is_written_and_nothing_else_is_overwritten() {
        if !kernel::PRESENT {
            return pinwise_synthetic::not_judged("this architecture has no machine code here");
        }
        let mut sweep = MemorySweep::new(BLOCK).unwrap();
        let bytes = |sweep: &MemorySweep| {
            // SAFETY: the pages of the sweep, which nothing else refers to meanwhile.
            unsafe { std::slice::from_raw_parts(sweep.pages.start, BLOCK) }.to_vec()
        };
        sweep.at = 5 * PASS;
        sweep.write(3);
        let written = bytes(&sweep);
        assert!(
            written[5 * PASS..8 * PASS].iter().all(|&byte| byte != 0),
            "all that was passed over"
        );
        assert!(
            written[..5 * PASS].iter().chain(&written[8 * PASS..]).all(|&byte| byte == 0),
            "and nothing else"
        );
        sweep.at = BLOCK - PASS;
        sweep.write(2);
        let written = bytes(&sweep);
        assert!(written[BLOCK - PASS..].iter().chain(&written[..PASS]).all(|&byte| byte != 0));
        assert!(written[PASS..5 * PASS].iter().all(|&byte| byte == 0));
    }
}
