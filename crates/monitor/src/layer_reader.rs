//! [`LayerReader`]: what every layer can do.

use crate::activity::ThreadActivity;
use crate::overhead::Overhead;
use pinwise_linux::Roster;
use std::fmt;
use std::io;
use std::time::Duration;

/// Between two looks at what every thread does.
pub(crate) const LOOK: Duration = Duration::from_millis(10);
/// Between two looks for new processes, and at files that are slower to read.
pub(crate) const COUNT: Duration = Duration::from_millis(100);

/// The reader of a layer's figures, window by window.
pub(super) trait LayerReader: fmt::Debug + Send {
    /// Between two looks.
    fn pace(&self) -> Duration;

    /// Whether looks may come later than that where they cost much.
    fn stretches(&self) -> bool {
        true
    }

    /// A window begins.
    fn begin(&mut self, roster: &Roster) -> io::Result<()>;

    /// Begins a window where the one before ended, so that what was read then is not read again.
    /// There is no look at that moment. Returns whether the layer can do that; if not, the window
    /// begins again.
    fn follow(&mut self, _: &Roster) -> io::Result<bool> {
        Ok(false)
    }

    /// The first step of a look: what each thread does at this moment. Watching takes a CPU from
    /// one of them, and others will soon wait for that thread. Returns whether a thread was found
    /// to have ended.
    fn glimpse(&mut self) -> bool {
        false
    }

    /// `at` since the window began. `counting`: this look may cost more. Such looks are a tenth of
    /// a second apart. The last one is also such a look. Whether a thread was found to have ended.
    fn look(&mut self, roster: &Roster, at: Duration, counting: bool) -> io::Result<bool>;

    /// The window is over.
    fn end(&mut self, roster: &Roster) -> io::Result<Vec<ThreadActivity>>;

    /// No window will follow soon: nothing stays active in the kernel.
    fn rest(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// What was dropped in the window.
    fn lost(&self) -> u64 {
        0
    }

    /// Adds what the layer cost at context switches in the window.
    fn charge(&self, _: &mut Overhead) {}
}
