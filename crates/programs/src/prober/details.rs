//! The result of a probe beyond its profile.

use super::window::Window;
use super::window_halves::Drift;
use pinwise_measure::{Note, values_or_text};
use pinwise_monitor::{Activity, OtherLoad, Unavailable};
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
    /// How they spent the window.
    pub activity: Activity,
    /// From the start to the first moment of the window.
    pub initialization: Duration,
    /// How its second half differs from its first.
    pub drift: Option<Drift>,
    /// Whether its progress was measured while it was watched. Otherwise further runs measured it,
    /// unwatched.
    pub disturbed: bool,
    /// What other programs took of the contexts from its start to its end; `None` if unknown, or if
    /// it has not ended.
    pub others: Option<OtherLoad>,
    /// Mean power of the processor meanwhile, warming up included, in watts; `None` where it was
    /// not asked for.
    pub watts: Option<f64>,
    /// Threads that a program which goes on running had before its first parameter.
    #[serde(default)]
    pub begun: Option<u32>,
    /// And once it had this one, counted in the same way.
    #[serde(default)]
    pub settled: Option<u32>,
    /// What to know about it.
    #[serde(deserialize_with = "values_or_text")]
    pub notes: Vec<Note>,
    /// Better ways to watch threads than the one in use, and why they cannot be used or were given
    /// up.
    pub refused: Vec<Unavailable>,
}

impl ProbeDetails {
    /// Of a window with this parameter, on so many contexts.
    pub(super) fn of(
        window: Window,
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
            others: window.others,
            disturbed: window.disturbed,
        }
    }
}

/// What the kernel does not report about a program.
fn unseen(activity: &Activity) -> impl Iterator<Item = Note> {
    let watched = !activity.threads.is_empty();
    let lock = (watched && activity.lock().is_none()).then_some(Note::LockUnseen);
    let migrations =
        (watched && activity.migration_rate().is_none()).then_some(Note::MigrationsUnseen);
    lock.into_iter().chain(migrations)
}
