//! Why the store cannot serve: cause and remedy in one line.

use super::CampaignId;
use rusqlite::ErrorCode;
use rusqlite::ffi::SQLITE_IOERR_SHMSIZE;
use rustix::process::{Resource, getrlimit};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a writer waits for another process's commit.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// Why the store cannot serve. One line for the user. As a value it leaves out the file.
#[derive(Debug, thiserror::Error, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum StoreError {
    /// The file: missing, locked, full, not ours, newer than this version, damaged. Records that
    /// were acknowledged are kept.
    #[error("{path}: {reason}", path = path.display())]
    #[serde(rename = "other")]
    Unusable {
        /// The file.
        #[serde(skip)]
        path: PathBuf,
        /// What is wrong and what to do.
        #[serde(rename = "error")]
        reason: String,
    },
    /// A campaign is stored in another form than this version's.
    #[error("{path}: holds a campaign that this version cannot read ({cause}); use the version \
        that wrote it, or another file with --store", path = path.display())]
    #[serde(rename = "other_version")]
    Unreadable {
        /// The file.
        #[serde(skip)]
        path: PathBuf,
        /// What differs.
        #[serde(rename = "error")]
        cause: String,
    },
    /// No campaign has this number.
    #[error("{path}: there is no campaign {id}; {known}", path = path.display(), id = id.0)]
    NoCampaign {
        /// The file.
        #[serde(skip)]
        path: PathBuf,
        /// The number asked for.
        id: CampaignId,
        /// Which numbers there are.
        known: String,
    },
    /// Another process adds records to this campaign.
    #[error("campaign {id} is running in another process; wait for its end, or stop it \
        first", id = id.0)]
    Running {
        /// The campaign.
        id: CampaignId,
    },
    /// The recorded history is not one this strategy would have made, so it cannot be continued.
    #[error("campaign {id} cannot be resumed: record {number} is {found}, and this version \
        expects {expected}; start a new campaign, or use the version that began it", id = id.0)]
    Mismatch {
        /// The campaign.
        id: CampaignId,
        /// The record.
        number: u64,
        /// What was recorded.
        found: String,
        /// What the strategy proposes in its place.
        expected: String,
    },
}

pub(crate) fn unusable(path: &Path, reason: impl Into<String>) -> StoreError {
    StoreError::Unusable { path: path.to_owned(), reason: reason.into() }
}

/// What a full disk means.
const FULL: &str = "the disk is full; all earlier records are safe: free some space, then resume \
    the campaign (pinwise campaign list)";

/// What a limit of this process means.
const LIMITED: &str = "a file has reached the largest size that this shell allows; all earlier \
    records are safe: raise the limit (ulimit -f), then resume the campaign (pinwise campaign \
    list)";

/// Whether a file of the store cannot become larger because of `ulimit -f`. SQLite does not tell
/// that error from others. Its files grow by 32 KiB at most (the index of the log).
fn meets_size_limit(path: &Path) -> bool {
    let Some(limit) = getrlimit(Resource::Fsize).current else { return false };
    let size = |end: &str| {
        let mut file = path.as_os_str().to_owned();
        file.push(end);
        std::fs::metadata(file).map_or(0, |about| about.len())
    };
    let largest = ["", "-wal", "-shm"].map(size).into_iter().max();
    largest.unwrap_or(0) + (32 << 10) >= limit
}

/// SQLite's error codes as cause and remedy.
pub(super) fn explain(path: &Path, error: &rusqlite::Error) -> StoreError {
    if let rusqlite::Error::FromSqlConversionFailure(_, _, cause) = error {
        return StoreError::Unreadable { path: path.to_owned(), cause: cause.to_string() };
    }
    // It has no room for the index of the log either.
    let full = error.sqlite_error().is_some_and(|error| {
        error.code == ErrorCode::DiskFull || error.extended_code == SQLITE_IOERR_SHMSIZE
    });
    let failed = full || error.sqlite_error_code() == Some(ErrorCode::SystemIoFailure);
    let reason = match error.sqlite_error_code() {
        _ if failed && meets_size_limit(path) => LIMITED.to_owned(),
        Some(ErrorCode::NotADatabase) => "is not a store of pinwise; name another file with \
            --store"
            .to_owned(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => format!(
            "is locked by another program for more than {} s; end that program (fuser -v shows \
             it), then try again",
            PATIENCE.as_secs()
        ),
        _ if full => FULL.to_owned(),
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
            "is read-only; make it and its folder writable, or name another file with \
             --store"
                .to_owned()
        }
        Some(ErrorCode::CannotOpen) => {
            "cannot be opened; check that it is a file and that its folder is writable, or name \
             another with --store"
                .to_owned()
        }
        Some(ErrorCode::DatabaseCorrupt) => {
            "is damaged; rescue what can be read with: sqlite3 FILE .recover | sqlite3 \
             NEW"
            .to_owned()
        }
        Some(ErrorCode::SystemIoFailure) => {
            format!(
                "the disk reports an error ({error}); all earlier records are safe: check the \
                 disk, then resume"
            )
        }
        _ => format!("cannot be used: {error}"),
    };
    unusable(path, reason)
}
