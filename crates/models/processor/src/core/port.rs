//! The port of a core's first-level data cache, which loads and fills share.
//!
//! A load or store takes it for its cycle, a fill for several. Loads go first; a fill that has let
//! them pass for long enough closes the port to them.

/// A line on its way to the first level, and the strand that waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fill {
    /// The cycle from which it could be filled in.
    pub(crate) arrives: u64,
    /// The strand.
    pub(crate) strand: usize,
    /// What it loads.
    pub(crate) address: u64,
}

/// The port and the fills that wait for it.
#[derive(Clone, Debug)]
pub(crate) struct Port {
    /// In the order of arrival, those that arrive together in the order of their loads.
    fills: Vec<Fill>,
    /// When the last fill ends.
    free_at: u64,
    duration: u64,
    patience: u64,
}

impl Port {
    /// A free port. `duration`: cycles of a fill; `patience`: cycles for which it lets loads pass.
    pub(crate) fn new(duration: u32, patience: u32) -> Self {
        Self {
            fills: Vec::new(),
            free_at: 0,
            duration: u64::from(duration),
            patience: u64::from(patience),
        }
    }

    /// Whether loads and stores have to wait in cycle `now`.
    #[inline]
    pub(crate) fn closed(&self, now: u64) -> bool {
        now < self.free_at
            || self.fills.first().is_some_and(|fill| fill.arrives + self.patience <= now)
    }

    /// Whether there is no fill, under way or to come, from cycle `now` on.
    #[inline]
    pub(crate) fn is_idle(&self, now: u64) -> bool {
        self.fills.is_empty() && now >= self.free_at
    }

    /// A line will arrive.
    pub(crate) fn expect(&mut self, fill: Fill) {
        let place = self.fills.partition_point(|other| other.arrives <= fill.arrives);
        self.fills.insert(place, fill);
    }

    /// Starts a fill if one can start in cycle `now`, in which no load or store took the port.
    /// Returns it and the cycle it ends.
    #[inline]
    pub(crate) fn start(&mut self, now: u64) -> Option<(Fill, u64)> {
        if now < self.free_at || self.fills.first()?.arrives > now {
            return None;
        }
        let fill = self.fills.remove(0);
        self.free_at = now + self.duration;
        Some((fill, self.free_at))
    }

    /// The first cycle after `now` in which a fill may start.
    #[inline]
    pub(crate) fn due(&self, now: u64) -> u64 {
        self.fills.first().map_or(u64::MAX, |fill| fill.arrives.max(self.free_at).max(now + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(arrives: u64, strand: usize) -> Fill {
        Fill { arrives, strand, address: 0 }
    }

    #[test]
    fn fills_follow_each_other_in_the_order_of_arrival() {
        let mut port = Port::new(2, 7);
        port.expect(fill(200, 0));
        port.expect(fill(20, 1));
        port.expect(fill(20, 2));
        assert_eq!(port.start(19), None);
        assert_eq!(port.due(0), 20);
        assert_eq!(port.start(20), Some((fill(20, 1), 22)));
        assert!(port.closed(21) && !port.closed(22));
        assert_eq!(port.start(21), None);
        assert_eq!(port.start(22), Some((fill(20, 2), 24)));
        assert_eq!(port.due(22), 200);
    }

    #[test]
    fn a_fill_closes_the_port_when_its_patience_ends() {
        let mut port = Port::new(2, 7);
        port.expect(fill(20, 0));
        assert!(!port.closed(26));
        assert!(port.closed(27));
        assert_eq!(port.due(30), 31);
    }
}
