//! The count of a whole interval from a count of parts of it.
//!
//! **Terms.** A thread is *enabled* while it is on a CPU and *running* while the counter counts. A
//! processor with too few counters counts groups of events in turn (*multiplexing*). Each group
//! then runs in a share of the enabled time. The kernel reports both times.
//!
//! **Problem.** A counter of one kind of core does not run while the thread is on another kind. Its
//! share is then small without multiplexing. Scaling each kind to the whole time and adding them
//! would count everything twice.
//!
//! **Method.** The counts of all kinds are added. If the shares of all kinds add up to less than 1,
//! the sum is scaled by the rest. On one kind of core this is what `perf stat` prints.
//!
//! **Limits.** The rates while no counter ran are assumed to equal the counted ones. On several
//! kinds of cores, counters are assumed to miss the same share of the time on each.

/// What the counters of one kind of core counted of an event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PartialCount {
    /// The count, not scaled.
    pub(crate) count: f64,
    /// The share of the time on a CPU in which it was counted, 0 to 1.
    pub(crate) share: f64,
}

/// The count of the whole interval, and the share of the CPU time that was counted, at most 1.
/// `None`: no counter ran.
pub(crate) fn whole(parts: impl IntoIterator<Item = PartialCount>) -> Option<(f64, f64)> {
    let (count, share) = parts
        .into_iter()
        .fold((0.0, 0.0), |(count, share), part| (count + part.count, share + part.share));
    // The kernel's times are read one after the other: the sum may exceed 1 by a little.
    let share = f64::min(share, 1.0);
    (share > 0.0).then(|| (count / share, share))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(count: f64, share: f64) -> PartialCount {
        PartialCount { count, share }
    }

    #[test]
    fn turns_are_scaled_and_kinds_of_cores_are_added() {
        assert_eq!(whole([part(30.0, 1.0)]), Some((30.0, 1.0)));
        assert_eq!(whole([part(30.0, 0.5)]), Some((60.0, 0.5)));
        // On two kinds of cores, a quarter and three quarters of the time.
        assert_eq!(whole([part(10.0, 0.25), part(90.0, 0.75)]), Some((100.0, 1.0)));
        // The same, and each counter ran every second moment.
        assert_eq!(whole([part(5.0, 0.125), part(45.0, 0.375)]), Some((100.0, 0.5)));
        assert_eq!(whole([part(10.0, 0.5), part(10.0, 0.6)]), Some((20.0, 1.0)));
        assert_eq!(whole([part(0.0, 0.0)]), None);
        assert_eq!(whole([]), None);
    }
}
