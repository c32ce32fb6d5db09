//! The divide unit of a core takes one operation at a time, first in first out within a pipe. The
//! pipes take turns.

/// The divide unit.
#[derive(Clone, Debug)]
pub(crate) struct Divider {
    /// Strand and latency of the divisions that wait, oldest first, by pipe.
    queues: Vec<Vec<(usize, u64)>>,
    waiting: usize,
    /// The pipe of the division under way or, when idle, of the last one.
    pipe: usize,
    /// When it ends.
    end: u64,
    handover: u64,
}

impl Divider {
    /// An idle unit of a core with `pipes` pipes. `handover`: by how many cycles a division of
    /// another pipe overlaps the end of the one before.
    pub(crate) fn new(pipes: usize, handover: u32) -> Self {
        Self {
            queues: vec![Vec::new(); pipes],
            waiting: 0,
            pipe: pipes - 1,
            end: 0,
            handover: u64::from(handover),
        }
    }

    /// A division of `latency` cycles joins the queue of its pipe.
    pub(crate) fn enqueue(&mut self, pipe: usize, strand: usize, latency: u64) {
        self.queues[pipe].push((strand, latency));
        self.waiting += 1;
    }

    /// Starts the next division if one may start in cycle `now`: its strand and the cycle it ends.
    #[inline]
    pub(crate) fn start(&mut self, now: u64) -> Option<(usize, u64)> {
        if self.waiting == 0 || now + self.handover < self.end {
            return None;
        }
        let pipes = self.queues.len();
        // This pipe is the last in the order, and must let the division end.
        let turn = (1..=pipes).map(|step| (self.pipe + step) % pipes);
        let own = if now < self.end { Some(self.pipe) } else { None };
        let pipe =
            turn.filter(|&pipe| Some(pipe) != own).find(|&pipe| !self.queues[pipe].is_empty())?;
        let (strand, latency) = self.queues[pipe].remove(0);
        self.waiting -= 1;
        self.pipe = pipe;
        self.end = now + latency;
        Some((strand, self.end))
    }

    /// Whether a division of `pipe` that comes in cycle `now` starts at once, if no other comes.
    #[inline]
    pub(crate) fn is_free(&self, pipe: usize, now: u64) -> bool {
        let overlap = if pipe == self.pipe { 0 } else { self.handover };
        self.waiting == 0 && now + overlap >= self.end
    }

    /// Such a division starts, and ends in cycle `end`.
    #[inline]
    pub(crate) fn occupy(&mut self, pipe: usize, end: u64) {
        (self.pipe, self.end) = (pipe, end);
    }

    /// The first cycle after `now` in which a division may start, if nothing joins a queue before.
    #[inline]
    pub(crate) fn due(&self, now: u64) -> u64 {
        if self.waiting == 0 {
            return u64::MAX;
        }
        let own = self.queues[self.pipe].len();
        let earliest =
            if own == self.waiting { self.end } else { self.end.saturating_sub(self.handover) };
        earliest.max(now + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Strand and start of each division until the queues are empty.
    fn drain(divider: &mut Divider) -> Vec<(usize, u64)> {
        let mut started = Vec::new();
        for now in 0..1000 {
            if let Some((strand, end)) = divider.start(now) {
                assert!(end > now);
                started.push((strand, now));
            }
        }
        started
    }

    #[test]
    fn a_pipe_is_served_first_in_first_out_without_overlap() {
        let mut divider = Divider::new(2, 2);
        (0..3).for_each(|strand| divider.enqueue(0, strand, 33));
        assert_eq!(drain(&mut divider), [(0, 0), (1, 33), (2, 66)]);
    }

    #[test]
    fn pipes_take_turns_and_overlap_at_the_handover() {
        let mut divider = Divider::new(2, 2);
        (0..2).for_each(|strand| divider.enqueue(0, strand, 33));
        (4..7).for_each(|strand| divider.enqueue(1, strand, 20));
        assert_eq!(drain(&mut divider), [(0, 0), (4, 31), (1, 49), (5, 80), (6, 100)]);
    }

    #[test]
    fn the_next_start_is_foretold() {
        let mut divider = Divider::new(2, 2);
        divider.enqueue(0, 0, 33);
        assert_eq!(divider.start(5), Some((0, 38)));
        assert_eq!(divider.due(5), u64::MAX);
        divider.enqueue(0, 1, 33);
        assert_eq!(divider.due(6), 38);
        divider.enqueue(1, 4, 33);
        assert_eq!(divider.due(6), 36);
        assert_eq!(divider.due(36), 37);
    }
}
