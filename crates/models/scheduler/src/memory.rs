//! The memory system that all contexts share.
//!
//! A thread of a program holds the memory system to itself for the share `s` of its time, measured
//! alone. The rest does not use it. With k running threads, that is a closed queueing network. It
//! has one server (demand s) and a delay (1 - s). Exact mean value analysis (M. Reiser, S.
//! Lavenberg, JACM 27(2), 1980) gives the time that one unit of work takes with k threads:
//!
//! R(k) = s (1 + Q(k-1)),  X(k) = k / (1 - s + R(k)),  Q(k) = X(k) R(k),  stretch(k) = 1 - s + R(k)
//!
//! So stretch(1) = 1. The work done per unit of time, k / stretch(k), rises to at most 1/s:
//! bandwidth.

/// The stretch of a program's work by the number of its threads that run at once.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryStretch {
    stretch: Vec<f64>,
}

impl MemoryStretch {
    /// For up to `contexts` threads at once; `share` in `[0, 1]`, 0 for a program that never waits
    /// for memory.
    pub fn new(share: f64, contexts: usize) -> Self {
        let mut queue = 0.0;
        let mut stretch = vec![1.0];
        for running in 1..=contexts {
            let response = share * (1.0 + queue);
            let unit = 1.0 - share + response;
            queue = running as f64 / unit * response;
            stretch.push(unit);
        }
        Self { stretch }
    }

    /// How much longer the same work takes while `running` threads run, at least 1.
    pub fn stretch(&self, running: usize) -> f64 {
        self.stretch[running.min(self.stretch.len() - 1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bandwidth_is_one_over_the_share() {
        let memory = MemoryStretch::new(0.25, 256);
        assert_eq!(memory.stretch(1), 1.0);
        let speedup = |threads: usize| threads as f64 / memory.stretch(threads);
        assert!((1..256).all(|threads| speedup(threads) <= speedup(threads + 1) + 1e-12));
        assert!((1..12).all(|threads| speedup(threads) < speedup(threads + 1)));
        assert!((speedup(256) - 4.0).abs() < 1e-9);
    }

    #[test]
    fn without_memory_nothing_is_stretched() {
        assert!((0..=64).all(|threads| MemoryStretch::new(0.0, 64).stretch(threads) == 1.0));
    }
}
