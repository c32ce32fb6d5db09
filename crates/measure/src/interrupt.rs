//! A request to stop, as a flag that long work looks at: a signal handler tears nothing down.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether work shall stop. Its clones are one and the same.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    asked: Arc<AtomicBool>,
    /// A request to stop only this work: the caller goes on with the next one.
    given_up: Arc<AtomicBool>,
}

impl Interrupt {
    /// Whether somebody asked, or this work was given up.
    pub fn came(&self) -> bool {
        self.asked.load(Ordering::Relaxed) || self.given_up.load(Ordering::Relaxed)
    }

    /// The flag, for a signal handler: setting it asks to stop.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.asked)
    }

    /// The same request, for work that may be given up alone.
    pub fn of_one(&self) -> Self {
        Self { asked: self.flag(), given_up: Arc::default() }
    }

    /// Ends this work. Requests to stop other work do not count.
    pub fn give_up(&self) {
        self.given_up.store(true, Ordering::Relaxed);
    }
}
