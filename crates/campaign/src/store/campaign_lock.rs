//! One writer per campaign.

use super::error::unusable;
use crate::{CampaignId, StoreError};
use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The right to add records to one campaign: an advisory lock on a file next to the store. The
/// kernel releases it when the process dies, however it dies. So nothing stale is left, and no
/// process number can be mistaken.
///
/// A [`crate::Store`] that has the lock has it again on request: it is released with the last.
#[derive(Clone, Debug)]
pub struct CampaignLock(pub(crate) Arc<LockedFile>);

/// A file whose lock this process holds.
#[derive(Debug)]
pub(crate) struct LockedFile {
    path: PathBuf,
    // Held for its lock.
    _file: File,
}

impl CampaignLock {
    pub(crate) fn take(store: &Path, id: CampaignId) -> Result<Self, StoreError> {
        let path = lock_path(store, id);
        let failed = |error: std::io::Error| {
            let lock = path.display();
            unusable(
                store,
                format!(
                    "{lock} cannot be locked ({error}); make the folder writable, or use another \
                     --store"
                ),
            )
        };
        let patience = Instant::now() + Duration::from_millis(50);
        loop {
            let file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600)
                .open(&path)
                .map_err(failed)?;
            match file.try_lock() {
                Ok(()) => {}
                // [`CampaignLock::is_held`] holds the lock for an instant, a campaign for longer.
                Err(TryLockError::WouldBlock) if Instant::now() < patience => {
                    std::thread::sleep(Duration::from_millis(5));
                    continue;
                }
                Err(TryLockError::WouldBlock) => return Err(StoreError::Running { id }),
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
            // The last holder removes the file: what we locked may no longer be what the path
            // names.
            let named = std::fs::metadata(&path).map(|named| named.ino());
            if named.is_ok_and(|inode| file.metadata().is_ok_and(|ours| ours.ino() == inode)) {
                return Ok(Self(Arc::new(LockedFile { path, _file: file })));
            }
        }
    }

    pub(crate) fn is_held(store: &Path, id: CampaignId) -> bool {
        // A shared lock: two who only look do not see each other.
        File::open(lock_path(store, id))
            .is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
    }
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        // While the lock is still held, so nobody else's file is removed. Left behind it would only
        // be an empty file.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn lock_path(store: &Path, id: CampaignId) -> PathBuf {
    let mut name = store.as_os_str().to_owned();
    name.push(format!("-campaign-{}.lock", id.0));
    name.into()
}
