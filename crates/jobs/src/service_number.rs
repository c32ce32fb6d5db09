//! Leaves a service with a number of threads: the one that fresh windows confirm, or its own. A
//! service is a process that runs already.
//!
//! Only a number that a command sets stays. Limits are put back in any case. If pinwise ends
//! before this, the guardian gives the service its own number.

use crate::error::JobError;
use crate::events::{Events, note};
use pinwise_linux::process;
use pinwise_present::Notice;
use pinwise_programs::{LinuxProber, ProbeError};

/// The number that a service is left with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ServiceNumber {
    pub(crate) n: u32,
    /// It is a guess at the one that the service began with.
    pub(crate) guess: bool,
}

impl ServiceNumber {
    /// The service's own. `None`: no command has changed it.
    pub(crate) fn own(prober: &LinuxProber) -> Option<Self> {
        let (n, guess) = prober.own_parameter()?;
        prober.is_changed().then_some(Self { n, guess })
    }

    /// Leaves the service with this number for good. `None`: no command sets one.
    pub(crate) fn leave(self, prober: &mut LinuxProber) -> Result<Option<Self>, ProbeError> {
        Ok(prober.settle(self.n)?.then_some(self))
    }
}

/// Gives a service its own number back if a command has changed it, and says so. The search has no
/// answer.
pub(crate) fn give_back(prober: &mut LinuxProber, events: &mut dyn Events) -> Result<(), JobError> {
    let (Some(own), Some(pid)) = (ServiceNumber::own(prober), prober.pid()) else {
        return Ok(());
    };
    match own.leave(prober) {
        Ok(_) => note(events, Notice::NumberReturned { pid: pid.0, n: own.n, guess: own.guess }),
        Err(_) if process::ended(pid) => Ok(()),
        Err(_) => note(events, Notice::NumberLeft { pid: pid.0 }),
    }
}
