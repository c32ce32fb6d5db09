//! The file of a store: opening it, recognising it, and creating its tables.

use super::error::{PATIENCE, unusable};
use super::{Store, StoreError};
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// `pinw`, in the header of every store: by which `file` and pinwise recognise it.
const APPLICATION_ID: i32 = 0x7069_6e77;

/// The version of the schema.
pub(super) const FORMAT: i32 = 5;

/// The first version with kinds, parents and details.
pub(super) const KINDS: i32 = 3;

/// The first version that says what is simulated.
pub(super) const SIMULATED: i32 = 4;

/// The first version with digests.
const DIGESTS: i32 = 5;

/// The oldest version that can be read. Formats 1 and 2 have no kinds, parents and details. Formats
/// 1 to 3 do not say what is simulated. Formats 1 to 4 have no digests. All are read as they are,
/// and upgraded before the first write.
const OLDEST: i32 = 1;

/// The kind of a campaign of formats 1 and 2, in SQL.
pub(super) const KIND_BEFORE: &str = "CASE
    WHEN json_type(question, '$.lineup') IS NOT NULL THEN 'compare'
    WHEN json_type(question, '$.alone') IS NOT NULL THEN 'select'
    ELSE 'place' END";

/// Whether a campaign of a format before 4 is simulated, in SQL. Its question or that of its
/// `parent` says it, each kind in its own way.
pub(super) fn simulated_before(parent: &str) -> String {
    format!(
        "(SELECT max(CASE WHEN json_valid(question) THEN
              json_type(question, '$.subject.simulated') IS NOT NULL
              OR json_type(question, '$.program.modelled') IS NOT NULL
              OR json_type(question, '$.examples.modelled') IS NOT NULL
              OR json_type(question, '$.model') IS NOT NULL
          ELSE 0 END) FROM campaign AS said WHERE said.id IN (campaign.id, {parent}))"
    )
}

impl Store {
    /// Checks that the file is ours before anything in it is touched, and makes the tables in a new
    /// one.
    pub(super) fn check_or_create(&mut self) -> Result<(), StoreError> {
        self.sql(|connection| connection.pragma_update(None, "foreign_keys", true))?;
        if self.is_new()? {
            self.made |= self.sql(|connection| {
                let transaction =
                    connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
                // Another process may have been faster.
                let is_empty =
                    transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |row| {
                        row.get::<_, i64>(0)
                    })? == 0;
                if is_empty {
                    transaction.execute_batch(include_str!("schema.sql"))?;
                    transaction.execute_batch(include_str!("digest.sql"))?;
                    transaction
                        .execute("INSERT INTO token VALUES (?)", [super::unpredictable()])?;
                    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
                    transaction.pragma_update(None, "user_version", FORMAT)?;
                }
                transaction.commit()?;
                Ok(is_empty)
            })?;
        }
        self.check_format()?;
        self.sql(|connection| {
            let mode: String =
                connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
            if mode != "wal" && !connection.is_readonly(rusqlite::MAIN_DB)? {
                journal_ahead(connection)?;
            }
            connection.pragma_update(None, "synchronous", "FULL")
        })
    }

    fn is_new(&mut self) -> Result<bool, StoreError> {
        self.sql(|connection| {
            let id: i32 =
                connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
            let tables: i64 =
                connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
            Ok(id == 0 && tables == 0)
        })
    }

    fn check_format(&mut self) -> Result<(), StoreError> {
        let (id, format): (i32, i32) = self.sql(|connection| {
            let id = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
            Ok((id, connection.pragma_query_value(None, "user_version", |row| row.get(0))?))
        })?;
        if id != APPLICATION_ID {
            return Err(unusable(
                &self.path,
                "is a database, but not a store of pinwise; name another file with --store",
            ));
        }
        if !(OLDEST..=FORMAT).contains(&format) {
            let reason = format!(
                "has format {format}, and this version reads {OLDEST} to {FORMAT}; use the \
                 version that wrote it, or another file with --store"
            );
            return Err(unusable(&self.path, reason));
        }
        self.format = format;
        Ok(())
    }

    /// Brings an older store to this format, which earlier versions of pinwise cannot read. Before
    /// that it makes a copy next to the file. Returns the path of the copy. `None`: there was
    /// nothing to do. What adds to the store or changes it calls this itself.
    pub fn upgrade(&mut self) -> Result<Option<PathBuf>, StoreError> {
        if self.format == FORMAT {
            return Ok(None);
        }
        let copy = self.free_copy();
        let Some(name) = copy.to_str() else {
            return Err(unusable(
                &self.path,
                "has an earlier format, and its copy needs a path in UTF-8; move the store to one",
            ));
        };
        super::make_private(&copy).map_err(|error| {
            let reason = format!(
                "has an earlier format, and its copy {} cannot be made ({error}); make room there",
                copy.display()
            );
            unusable(&self.path, reason)
        })?;
        self.sql(|connection| connection.execute("VACUUM INTO ?", [name]))?;
        let upgraded = self.sql(|connection| {
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            // Another process may have been faster.
            let format: i32 =
                transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
            if format < KINDS {
                transaction.execute_batch(include_str!("to_format_3.sql"))?;
                transaction.execute(&format!("UPDATE campaign SET kind = {KIND_BEFORE}"), [])?;
            }
            if format < SIMULATED {
                transaction.execute_batch(include_str!("to_format_4.sql"))?;
                let simulated = simulated_before("campaign.parent");
                transaction.execute(&format!("UPDATE campaign SET simulated = {simulated}"), [])?;
            }
            if format < FORMAT {
                // Rows of before have no digest until they are written again.
                transaction.execute_batch(include_str!("digest.sql"))?;
                transaction.pragma_update(None, "user_version", FORMAT)?;
            }
            transaction.commit()?;
            Ok(format < FORMAT)
        })?;
        self.format = FORMAT;
        if !upgraded {
            // The other one has made a copy, too.
            let _ = std::fs::remove_file(&copy);
        }
        Ok(upgraded.then_some(copy))
    }

    pub(super) fn has_digests(&self) -> bool {
        self.format >= DIGESTS
    }

    /// The first free name for a copy: `pinwise.db.format-3`, or with a number behind it.
    fn free_copy(&self) -> PathBuf {
        let name = |copy: u32| {
            let mut name = self.path.clone().into_os_string();
            name.push(format!(".format-{}", self.format));
            if copy > 1 {
                name.push(format!("-{copy}"));
            }
            PathBuf::from(name)
        };
        (1..u32::MAX)
            .map(name)
            .find(|path| path.symlink_metadata().is_err())
            .unwrap_or_else(|| name(1))
    }
}

/// A connection that can read.
///
/// Even a reader of a file in write-ahead mode creates two files next to it. That fails in a folder
/// that cannot be written. If they are absent, nobody writes the store, and all of it is in one
/// file. SQLite can read that file as one that does not change
/// (<https://sqlite.org/wal.html#readonly>). A writer that begins meanwhile leaves the file alone
/// until a checkpoint.
pub(super) fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(PATIENCE)?;
    let read = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()));
    let Err(error) = read else { return Ok(connection) };
    let barred =
        matches!(error.sqlite_error_code(), Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly));
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    if !barred || Path::new(&log).exists() {
        return Err(error);
    }
    Connection::open_with_flags(
        unchanging(path),
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI,
    )
}

/// Has the journal written ahead. If several processes do so at once, SQLite refuses those that
/// would wait for each other. It then ignores its busy timeout. The next try finds it done.
fn journal_ahead(connection: &Connection) -> rusqlite::Result<()> {
    let begun = Instant::now();
    loop {
        match connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(())) {
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && begun.elapsed() < PATIENCE =>
            {
                std::thread::sleep(Duration::from_millis(10));
            }
            done => return done,
        }
    }
}

/// The address of a file that does not change, as SQLite takes it (<https://sqlite.org/uri.html>).
fn unchanging(path: &Path) -> PathBuf {
    let mut address = if path.is_absolute() { b"file://".to_vec() } else { b"file:".to_vec() };
    for &byte in path.as_os_str().as_bytes() {
        match byte {
            b'%' | b'?' | b'#' => address.extend(format!("%{byte:02x}").bytes()),
            _ => address.push(byte),
        }
    }
    address.extend(b"?immutable=1");
    OsString::from_vec(address).into()
}
