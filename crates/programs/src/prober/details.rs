//! [`ProbeDetails`]: the part of an observation that a record stores next to the profile: threads,
//! activity, other load, notes.

use super::observation::Observation;
use super::observation_halves::HalfDifference;
use pinwise_measure::{ProgramNote, values_or_text};
use pinwise_monitor::{Activity, Unavailable};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The result of a probe beyond its profile. It is stored next to the probe in the detail of its
/// measurement ([`Probed::more`](pinwise_measure::Probed::more)).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProbeDetails {
    /// The parameter.
    pub parameter: u32,
    /// The most threads that existed at a time.
    pub threads: u32,
    /// How its threads spent the window.
    pub activity: Activity,
    /// From the start to the first moment of the window.
    pub initialization: Duration,
    /// How the second half of the probe differs from the first.
    pub drift: Option<HalfDifference>,
    /// Whether its progress was measured while threads were watched. Otherwise further runs
    /// measured it, unwatched.
    pub disturbed: bool,
    /// Mean power of the processor meanwhile, warming up included, in watts; `None` if it was
    /// not asked for.
    pub watts: Option<f64>,
    /// The threads that a program which keeps running had before its first parameter.
    #[serde(default)]
    pub begun: Option<u32>,
    /// Its threads after this parameter took effect, counted as in `begun`.
    #[serde(default)]
    pub settled: Option<u32>,
    /// Notes on the probe.
    #[serde(deserialize_with = "values_or_text")]
    pub notes: Vec<ProgramNote>,
    /// Better ways to watch threads than the one in use, and why they cannot be used or were given
    /// up.
    pub refused: Vec<Unavailable>,
}

impl ProbeDetails {
    /// Makes the details of a window with this parameter, on this number of contexts.
    pub(super) fn of(
        window: Observation,
        parameter: u32,
        contexts: u32,
        refused: &[Unavailable],
    ) -> Self {
        let unseen = unseen(&window.activity);
        Self {
            notes: window.notes.iter().cloned().chain(unseen).collect(),
            refused: refused.to_vec(),
            parameter,
            threads: window.threads,
            drift: window.drift(contexts),
            watts: window.watts,
            begun: window.begun,
            settled: window.settled,
            activity: window.activity,
            initialization: window.initialization,
            disturbed: window.disturbed,
        }
    }
}

/// Notes on what the kernel does not report about a program.
fn unseen(activity: &Activity) -> impl Iterator<Item = ProgramNote> {
    let watched = !activity.threads.is_empty();
    let lock = (watched && activity.lock().is_none()).then_some(ProgramNote::LockUnseen);
    let migrations =
        (watched && activity.migration_rate().is_none()).then_some(ProgramNote::MigrationsUnseen);
    lock.into_iter().chain(migrations)
}

#[cfg(test)]
mod tests {
    use super::super::role_grouping::tests::thread;
    use super::*;
    use pinwise_monitor::ThreadActivity;

    /// A look may catch no thread asleep. That hides nothing.
    #[test]
    fn only_what_the_kernel_does_not_report_has_a_note() {
        let notes = |threads| -> Vec<ProgramNote> {
            unseen(&Activity { threads, ..Activity::none(Duration::from_millis(100)) }).collect()
        };
        let unmoved = || ThreadActivity { migrations: None, ..thread(7, "w0", 50, Some(50)) };
        assert_eq!(notes(vec![thread(7, "w0", 100, Some(0))]), []);
        assert_eq!(notes(vec![thread(7, "w0", 50, None)]), [ProgramNote::LockUnseen]);
        assert_eq!(notes(vec![unmoved()]), [ProgramNote::MigrationsUnseen]);
        // One thread shows it, and one does not.
        assert_eq!(notes(vec![thread(7, "w0", 50, None), thread(8, "w1", 50, Some(0))]), []);
        assert_eq!(notes(Vec::new()), [], "nobody watched");
    }
}
