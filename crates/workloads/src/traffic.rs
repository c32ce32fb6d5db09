//! The packets that a workload receives: a pool of real frames, taken round and round.
//!
//! The pool comes from [`Traffic::generate`] or from a capture file ([`crate::packet_capture`]).
//! Frames are kept back to back, as they would lie in the memory of a traffic generator.

/// A pool of Ethernet frames.
#[derive(Debug, Default)]
pub struct Traffic {
    bytes: Vec<u8>,
    /// Where each frame ends in `bytes`.
    ends: Vec<usize>,
    longest: usize,
    spread: bool,
}

impl Traffic {
    /// Every packet goes to another destination: what a traffic generator does that counts its
    /// addresses up. Lookups by destination then have no locality that the table itself does
    /// not have.
    pub fn with_spread_destinations(mut self) -> Self {
        self.spread = true;
        self
    }

    /// Appends a frame.
    pub(crate) fn add(&mut self, frame: &[u8]) {
        self.bytes.extend_from_slice(frame);
        self.ends.push(self.bytes.len());
        self.longest = self.longest.max(frame.len());
    }

    /// The `n`-th packet: frame `n` of the pool, starting over where it ends. The pool must not be
    /// empty.
    pub fn frame(&self, n: u64) -> &[u8] {
        let index = (n % self.ends.len() as u64) as usize;
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.bytes[start..self.ends[index]]
    }

    /// Frames in the pool.
    pub fn frames(&self) -> usize {
        self.ends.len()
    }

    /// Bytes in the pool.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes of the longest frame.
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// Whether packet `n` goes to host `n` of its network ([`Traffic::with_spread_destinations`]).
    pub fn spreads_destinations(&self) -> bool {
        self.spread
    }
}
