//! How long each task of the guardian may take. A process lock waits for the longest.

use std::time::Duration;

/// The longest time that restoring may take. A program that creates threads without pause would
/// keep the guardian busy for ever.
pub(crate) const RESTORING: Duration = Duration::from_millis(900);
/// The longest time that a command which changes a process or puts it back may take. A guess.
pub const SETTING_LIMIT: Duration = Duration::from_secs(5);
/// How long a program may take to end after SIGTERM.
pub(crate) const GRACE: Duration = Duration::from_secs(2);
/// The longest time that the guardian is at work, besides moving memory. It puts affinities back,
/// waits for a command, runs another, and gives programs time to end.
pub(crate) const AT_WORK: Duration = Duration::from_millis(
    (RESTORING.as_millis() + 2 * SETTING_LIMIT.as_millis() + GRACE.as_millis()) as u64,
);
