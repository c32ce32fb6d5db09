//! What became of the pins of a search: threads that another moved, CPUs that went away.
//!
//! A measurement in which a pin was lost does not count. That may pass, so it is made once more. If
//! it happens to the same thread again, the search ends. To go on would be a fight.

use pinwise_measure::{MeasureError, Pinner, ProgramNote, Retry, Thread};
use pinwise_topology::CpuSet;
use std::collections::BTreeSet;
use std::time::Duration;

/// Another moved a thread.
#[derive(Debug, thiserror::Error)]
#[error("{by} moved thread {name} to CPU {now} while it was measured{}", next(*again))]
struct ThreadMoved {
    name: String,
    now: CpuSet,
    by: Pinner,
    again: bool,
}

/// What follows when a thread was moved.
fn next(again: bool) -> &'static str {
    match again {
        false => "",
        true => ", for the second time: stop that, or leave the pinning to it; then resume",
    }
}

/// What the pins of a search have met so far.
#[derive(Debug, Default)]
pub(crate) struct PinHistory {
    /// The places of threads that another has moved.
    moved: BTreeSet<usize>,
    /// The first of them.
    first_moved: Option<(String, CpuSet, Pinner)>,
    /// Those that end the search if they are moved once more.
    suspect: BTreeSet<usize>,
    /// CPUs that went away and are not back.
    pub(crate) away: bool,
    /// The CPUs that went away last, and how long was waited in all.
    pub(crate) waited: Option<(CpuSet, Duration)>,
}

impl PinHistory {
    /// Notes that another moved threads. Each has its place among `threads`, and what it has now.
    ///
    /// # Errors
    /// There are such threads: one that was moved before is named first.
    pub(crate) fn moved(
        &mut self,
        moved: &[(usize, CpuSet)],
        threads: &[Thread],
        by: Pinner,
    ) -> Result<(), MeasureError> {
        let repeated = moved.iter().find(|(place, _)| self.suspect.contains(place));
        let Some((place, now)) = repeated.or(moved.first()).cloned() else { return Ok(()) };
        let (name, again) = (threads[place].name.clone(), repeated.is_some());
        self.first_moved.get_or_insert_with(|| (name.clone(), now.clone(), by.clone()));
        self.moved.extend(moved.iter().map(|(place, _)| *place));
        self.suspect.extend(moved.iter().map(|(place, _)| *place));
        let retry = if again { Retry::Never } else { Retry::Same };
        Err(MeasureError::new(retry, ThreadMoved { name, now, by, again }.to_string()))
    }

    /// All pins of a run held, and the next run has new threads.
    pub(crate) fn run_held(&mut self) {
        self.suspect.clear();
    }

    /// Notes on it.
    pub(crate) fn notes(&self) -> impl Iterator<Item = ProgramNote> {
        let moved = self.first_moved.as_ref().map(|(name, cpus, by)| ProgramNote::ThreadsMoved {
            threads: self.moved.len() as u64,
            name: name.clone(),
            cpus: cpus.to_string(),
            by: by.clone(),
        });
        let back = self.waited.as_ref().filter(|_| !self.away);
        let away = back.map(|(cpus, waited)| ProgramNote::CpusAway {
            cpus: cpus.to_string(),
            seconds: waited.as_secs_f64(),
        });
        moved.into_iter().chain(away)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_measure::Workload;

    #[test]
    fn a_thread_that_is_moved_twice_ends_the_search() {
        let workload = Workload::new("spin", &[&["a", "b"]]);
        let mut history = PinHistory::default();
        let now = CpuSet::parse_list("0-3").unwrap();
        let mut moved = |places: &[usize]| {
            let moved: Vec<_> = places.iter().map(|&place| (place, now.clone())).collect();
            let told = history.moved(&moved, &workload.threads, Pinner::Unknown);
            told.map_err(|error| (error.retry, error.message))
        };
        assert_eq!(moved(&[]), Ok(()));
        let (retry, first) = moved(&[1]).unwrap_err();
        assert!(retry == Retry::Same && first.contains("moved thread b0 to CPU 0-3"), "{first}");
        let (retry, other) = moved(&[0]).unwrap_err();
        assert!(retry == Retry::Same && other.contains("thread a0"), "{other}");
        let (retry, again) = moved(&[0, 1]).unwrap_err();
        assert!(retry == Retry::Never && again.contains("for the second time"), "{again}");
        history.run_held();
        let threads = &workload.threads;
        let later = history.moved(&[(1, now.clone())], threads, Pinner::Unknown).unwrap_err();
        assert_eq!(later.retry, Retry::Same, "a good run came between");
        let notes: Vec<_> = history.notes().collect();
        let (cpus, by) = (now.to_string(), Pinner::Unknown);
        assert_eq!(notes, [ProgramNote::ThreadsMoved { threads: 2, name: "b0".into(), cpus, by }]);
    }
}
