//! Checks whether the path of a store still names the open file.
//!
//! SQLite goes on writing to a file that was removed, and every write succeeds. But the
//! measurements are gone when the process ends. So a `stat` of the path follows each write. If the
//! file is gone, pinwise copies the store to a new name and ends the campaign with an error.

use super::error::unusable;
use super::{Store, StoreError};
use std::error::Error;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Device and inode: which file a path names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Inode(u64, u64);

impl Inode {
    /// The file that `path` names now.
    pub(super) fn of(path: &Path) -> Option<Self> {
        fs::metadata(path).ok().map(|found| Self(found.dev(), found.ino()))
    }
}

impl Store {
    /// Fails if the file was removed or replaced since it was opened.
    ///
    /// # Errors
    /// [`StoreError::Unusable`]. It names the copy that holds all that was recorded.
    pub(super) fn check_unmoved(&mut self) -> Result<(), StoreError> {
        if self.inode.is_none() || Inode::of(&self.path) == self.inode {
            return Ok(());
        }
        let what = "was removed or replaced while pinwise wrote to it";
        let copy = rescue_path(&self.path);
        let reason = match self.copy_to(&copy) {
            Ok(()) => {
                let name = copy.display().to_string();
                self.rescued = Some(copy);
                format!(
                    "{what}; everything recorded is in {name}: rename it, or give it with --store"
                )
            }
            Err(error) => format!("{what}; what was recorded is lost ({error}): start again"),
        };
        Err(unusable(&self.path, reason))
    }

    fn copy_to(&self, copy: &Path) -> Result<(), Box<dyn Error>> {
        super::make_private(copy)?;
        self.connection.execute("VACUUM INTO ?", [copy.to_string_lossy()])?;
        Ok(())
    }
}

/// `pinwise.db` becomes `pinwise.db.rescued-RANDOM`.
fn rescue_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".rescued-{}", super::unpredictable()));
    name.into()
}
