//! Helpers that the tests of this crate share.

use std::process::Child;

/// A program started for a test. It is killed by its own number when the test is done with it,
/// however that ends.
pub(crate) struct Killed(pub(crate) Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
