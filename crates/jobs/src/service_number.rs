//! Gives a service its own number of threads back. A service is a process that runs already. The
//! caller keeps the number that fresh windows confirm.
//!
//! Only a number that a command sets stays. Limits are put back in any case. If pinwise ends
//! before this, the guardian gives the service its own number.

use crate::error::JobError;
use crate::events::{Events, note};
use pinwise_linux::process;
use pinwise_present::Notice;
use pinwise_programs::LinuxProber;

/// The number that a service gets back. `None`: no command has changed it.
pub(crate) fn own_number(prober: &LinuxProber) -> Option<u32> {
    prober.own_parameter().filter(|_| prober.is_changed())
}

/// Gives a service its own number back if a command has changed it, and says so. The search has no
/// answer.
pub(crate) fn give_back(prober: &mut LinuxProber, events: &mut dyn Events) -> Result<(), JobError> {
    let (Some(n), Some(pid)) = (own_number(prober), prober.pid()) else { return Ok(()) };
    match prober.settle(n) {
        Ok(_) => note(events, Notice::NumberReturned { pid: pid.0, n }),
        Err(_) if process::ended(pid) => Ok(()),
        Err(_) => note(events, Notice::NumberLeft { pid: pid.0 }),
    }
}
