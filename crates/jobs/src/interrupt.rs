//! A request to stop, as a flag that long work looks at: a signal handler tears nothing down.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the user or the system has asked to stop.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Whether somebody asked.
    pub fn came(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// The flag itself: whoever sets it asks.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }
}
