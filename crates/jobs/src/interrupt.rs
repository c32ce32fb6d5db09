//! A request to stop, as a flag that long work looks at: a signal handler tears nothing down.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the user or the system has asked to stop.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    asked: Arc<AtomicBool>,
    /// Nobody listens to the job any more. One job's own, so that the next one may run.
    unheard: Arc<AtomicBool>,
}

impl Interrupt {
    /// Whether somebody asked, or nobody listens.
    pub fn came(&self) -> bool {
        self.asked.load(Ordering::Relaxed) || self.unheard.load(Ordering::Relaxed)
    }

    /// The flag itself: whoever sets it asks.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.asked)
    }

    /// The same request, for one job that somebody listens to.
    pub(crate) fn of_a_job(&self) -> Self {
        Self { asked: self.flag(), unheard: Arc::default() }
    }

    /// Ends the job because nobody listens any more.
    pub(crate) fn unheard(&self) {
        self.unheard.store(true, Ordering::Relaxed);
    }
}
