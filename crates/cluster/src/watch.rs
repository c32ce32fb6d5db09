//! Who is silent: a pure rule, used by both sides of a connection.
//!
//! A side is silent if it says nothing for a given time. But a process that was stopped itself
//! heard nobody. So after a pause of its own, it counts from anew.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How often each side that has greeted is asked whether it is there.
pub(crate) const PING_EVERY: Duration = Duration::from_secs(5);

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    patience: Duration,
    looked: Instant,
    heard: BTreeMap<usize, Instant>,
}

impl Watch {
    /// Waits for `patience` for a word of each.
    pub(crate) fn new(patience: Duration, now: Instant) -> Self {
        Self { patience, looked: now, heard: BTreeMap::new() }
    }

    /// A word of one. The first one begins its watch.
    pub(crate) fn hear(&mut self, who: usize, now: Instant) {
        self.heard.insert(who, now);
    }

    /// Whether one has ever said a word.
    pub(crate) fn has_heard(&self, who: usize) -> bool {
        self.heard.contains_key(&who)
    }

    /// One is not watched any more.
    pub(crate) fn forget(&mut self, who: usize) {
        self.heard.remove(&who);
    }

    /// Who is silent.
    pub(crate) fn silent(&mut self, now: Instant) -> Vec<usize> {
        let paused = now.saturating_duration_since(self.looked) > 2 * PING_EVERY;
        self.looked = now;
        if paused {
            self.heard.values_mut().for_each(|heard| *heard = now);
        }
        let lasts = |heard: &Instant| now.saturating_duration_since(*heard) > self.patience;
        self.heard.iter().filter(|(_, heard)| lasts(heard)).map(|(who, _)| *who).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_says_nothing_is_silent_but_not_after_a_pause_of_the_listener() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut watch = Watch::new(Duration::from_secs(90), start);
        watch.hear(0, at(0));
        watch.hear(1, at(0));
        for second in (5..=90).step_by(5) {
            watch.hear(1, at(second));
            assert_eq!(watch.silent(at(second)), [0; 0], "{second}");
        }
        assert_eq!(watch.silent(at(95)), [0]);
        watch.forget(0);
        assert_eq!(watch.silent(at(96)), [0; 0]);
        // Ctrl-Z for an hour: it has answered all the while, or it has not.
        assert_eq!(watch.silent(at(3700)), [0; 0]);
        for second in (3705..=3790).step_by(5) {
            assert_eq!(watch.silent(at(second)), [0; 0], "{second}");
        }
        assert_eq!(watch.silent(at(3795)), [1]);
        assert!(!watch.has_heard(2), "one that never spoke is not watched");
    }
}
