//! Every measurement of every campaign, on disk before the next begins.
//!
//! One SQLite file holds any number of campaigns; `schema.sql` describes its tables, which are meant to be asked with the
//! `sqlite3` shell too. It runs in write-ahead mode with `synchronous=FULL`: each append ends in an `fsync`, so that a record
//! survives the death of the process and of the machine, at a fraction of a millisecond each (docs/BENCHMARKS.md), or more where the disk is
//! busy. Measurements that repeat bit for bit, those of virtual time, survive the process alone ([`Store::sync_each`]). Processes may share a file; a writer
//! waits for another one's commit. A campaign itself has one writer, see [`Store::claim`].

mod row;

use crate::{Claim, Record};
use pinwise_characterization::Characterization;
use pinwise_testbed::{Setting, Unit, Workload};
use pinwise_topology::{Alike, Fingerprint, Machine};
pub(crate) use row::assignment_text;
use row::{campaign_row, record_row, text, word};
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, TransactionBehavior};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// `pinw`, in the header of every store: how `file` and we tell it from other SQLite files.
const APPLICATION_ID: i32 = 0x7069_6e77;

/// The version of the schema of a new store.
const FORMAT: i32 = 1;

/// What a characterization is called in the table of machines.
const CHARACTERIZATION: &str = "characterization";

/// The version of a store that holds profiles ([`Setting::Profile`]), which those who know only [`FORMAT`] cannot read. A store
/// becomes one with its first profile; the tables are the same.
const FORMAT_WITH_PROFILES: i32 = 2;

/// How long a writer waits for another process's commit.
const PATIENCE: Duration = Duration::from_secs(10);

/// The number of a campaign in its store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CampaignId(pub i64);

/// What is known of a campaign before its first measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NewCampaign {
    /// The command line that asked, for people and for resuming.
    pub command: Vec<String>,
    /// The machine assignments refer to.
    pub machine: Machine,
    /// Which domains of it count as alike.
    pub alike: Alike,
    /// The threads.
    pub workload: Workload,
    /// What performance is counted in.
    pub unit: Unit,
    /// The question, as its answerer's own type serializes it; opaque here.
    pub question: serde_json::Value,
    /// The seed of all its randomness.
    pub seed: u64,
}

/// Where a campaign stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CampaignState {
    /// Not ended properly: running now ([`CampaignInfo::running`]), or killed.
    Open,
    /// Its strategy was done.
    Finished,
    /// Asked to stop, or the testbed could not go on.
    Stopped,
}

/// A stored campaign without its records.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CampaignInfo {
    /// Its number.
    pub id: CampaignId,
    /// When it began, seconds since the Unix epoch.
    pub started: i64,
    /// What was known before the first measurement.
    pub new: NewCampaign,
    /// Where it stands.
    pub state: CampaignState,
    /// Whether a process is adding records to it at this moment.
    pub running: bool,
    /// How many records it has.
    pub records: u64,
    /// The conclusion, as its answerer's own type serializes it, once there is one.
    pub conclusion: Option<serde_json::Value>,
}

/// Why the store cannot serve. One line for the user.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file: missing, locked, full, not ours, newer than this version, damaged. Records that were acknowledged are kept.
    #[error("{path}: {reason}", path = path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What is wrong and what to do.
        reason: String,
    },
    /// No campaign has this number.
    #[error("{path}: there is no campaign {id}; {known}", path = path.display(), id = id.0)]
    NoCampaign {
        /// The file.
        path: PathBuf,
        /// The number asked for.
        id: CampaignId,
        /// Which numbers there are.
        known: String,
    },
    /// Another process adds records to this campaign.
    #[error("campaign {id} is running in another process; wait for its end, or stop it first", id = id.0)]
    Running {
        /// The campaign.
        id: CampaignId,
    },
    /// The recorded history is not one this strategy would have made, so it cannot be continued.
    #[error("campaign {id} cannot be resumed: record {number} is {found}, where this version would have made {expected}; \
             start a new campaign, or resume it with the version of pinwise that began it", id = id.0)]
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

/// A SQLite file of campaigns.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    path: PathBuf,
    /// The version of its schema.
    format: i32,
}

impl Store {
    /// Opens the store; creates it, and the folder it is in, where there is none. One that this process may only read serves for that.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder).map_err(|error| {
                unusable(
                    path,
                    format!("its folder cannot be made ({error}); name a place you may write to with --store"),
                )
            })?;
        }
        let connection = connect(path).map_err(|error| explain(path, &error))?;
        let mut store = Self { connection, path: path.to_owned(), format: FORMAT };
        store.prepare()?;
        Ok(store)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Checks that the file is ours before anything in it is touched, and makes the tables in a new one.
    fn prepare(&mut self) -> Result<(), StoreError> {
        self.sql(|connection| connection.pragma_update(None, "foreign_keys", true))?;
        if self.is_new()? {
            self.sql(|connection| {
                let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
                // Another process may have been faster.
                if transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0))? == 0 {
                    transaction.execute_batch(include_str!("schema.sql"))?;
                    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
                    transaction.pragma_update(None, "user_version", FORMAT)?;
                }
                transaction.commit()
            })?;
        }
        self.check_format()?;
        self.sql(|connection| {
            let mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
            if mode != "wal" && !connection.is_readonly(rusqlite::MAIN_DB)? {
                connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
            }
            connection.pragma_update(None, "synchronous", "FULL")
        })
    }

    fn is_new(&mut self) -> Result<bool, StoreError> {
        self.sql(|connection| {
            let id: i32 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
            let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
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
        if !(FORMAT..=FORMAT_WITH_PROFILES).contains(&format) {
            let reason = format!(
                "was written by another version of pinwise (format {format}, this one knows {FORMAT} to {FORMAT_WITH_PROFILES}); \
                 use that version, or another file with --store"
            );
            return Err(unusable(&self.path, reason));
        }
        self.format = format;
        Ok(())
    }

    /// Begins a campaign.
    pub fn create(&mut self, campaign: &NewCampaign) -> Result<CampaignId, StoreError> {
        let texts = [
            text(&campaign.command),
            text(&campaign.machine),
            word(&campaign.alike),
            text(&campaign.workload),
            text(&campaign.unit),
            text(&campaign.question),
            campaign.seed.to_string(),
        ];
        self.sql(|connection| {
            connection.execute(
                "INSERT INTO campaign (command, machine, alike, workload, unit, question, seed) VALUES (?, ?, ?, ?, ?, ?, ?)",
                texts,
            )?;
            Ok(CampaignId(connection.last_insert_rowid()))
        })
    }

    /// Removes a campaign with its records, for good. Refused while a process adds records to it.
    pub fn delete(&mut self, id: CampaignId) -> Result<(), StoreError> {
        self.get(id)?;
        let _claim = self.claim(id)?;
        self.sql(|connection| {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            transaction.execute("DELETE FROM record WHERE campaign = ?", [id.0])?;
            transaction.execute("DELETE FROM campaign WHERE id = ?", [id.0])?;
            transaction.commit()
        })
    }

    /// Every campaign, oldest first.
    pub fn list(&self) -> Result<Vec<CampaignInfo>, StoreError> {
        let mut statement = self.read(|connection| connection.prepare(&format!("{CAMPAIGN} ORDER BY id")))?;
        let rows = self.read(|_| statement.query_map([], campaign_row)?.collect::<Result<Vec<_>, _>>())?;
        rows.into_iter().map(|info| self.with_running(info)).collect()
    }

    /// One campaign; an error that lists what there is, if there is no such one.
    pub fn get(&self, id: CampaignId) -> Result<CampaignInfo, StoreError> {
        let info = self.read(|connection| {
            connection.query_row(&format!("{CAMPAIGN} WHERE id = ?"), [id.0], campaign_row).optional()
        })?;
        match info {
            Some(info) => self.with_running(info),
            None => Err(self.no_campaign(id)?),
        }
    }

    fn no_campaign(&self, id: CampaignId) -> Result<StoreError, StoreError> {
        let ids = self.read(|connection| {
            let mut statement = connection.prepare("SELECT id FROM campaign ORDER BY id DESC LIMIT 10")?;
            statement.query_map([], |row| row.get::<_, i64>(0))?.collect::<Result<Vec<_>, _>>()
        })?;
        let known = match ids.as_slice() {
            [] => "it holds none".to_owned(),
            ids => format!("the latest are {}", ids.iter().map(i64::to_string).collect::<Vec<_>>().join(", ")),
        };
        Ok(StoreError::NoCampaign { path: self.path.clone(), id, known })
    }

    fn with_running(&self, mut info: CampaignInfo) -> Result<CampaignInfo, StoreError> {
        info.running = Claim::is_held(&self.path, info.id);
        Ok(info)
    }

    /// Makes this process the one that adds records to a campaign, until the claim is dropped or the process dies.
    pub fn claim(&self, id: CampaignId) -> Result<Claim, StoreError> {
        Claim::take(&self.path, id)
    }

    /// Its records, in order.
    pub fn records(&self, id: CampaignId) -> Result<Vec<Record>, StoreError> {
        self.read(|connection| {
            let mut statement = connection.prepare(
                "SELECT number, purpose, assignment, windows, performance, duration_s, spread, error, retry, elapsed_s
                 FROM record WHERE campaign = ? ORDER BY number",
            )?;
            statement.query_map([id.0], record_row)?.collect()
        })
    }

    /// Whether each append waits until the disk has it, as it does unless told otherwise. If not, a machine that loses power loses the latest
    /// records; those before stay whole and in order.
    pub fn sync_each(&mut self, each: bool) -> Result<(), StoreError> {
        let mode = if each { "FULL" } else { "NORMAL" };
        self.sql(|connection| connection.pragma_update(None, "synchronous", mode))
    }

    /// Adds a record, durable when this returns (but see [`Store::sync_each`]).
    pub fn append(&mut self, id: CampaignId, record: &Record) -> Result<(), StoreError> {
        let measured = record.outcome.as_ref().ok();
        let failed = record.outcome.as_ref().err();
        if matches!(record.trial.setting, Setting::Profile(_)) && self.format < FORMAT_WITH_PROFILES {
            self.sql(|connection| connection.pragma_update(None, "user_version", FORMAT_WITH_PROFILES))?;
            self.format = FORMAT_WITH_PROFILES;
        }
        self.sql(|connection| {
            connection
                .prepare_cached(
                    "INSERT INTO record (campaign, number, purpose, assignment, windows, performance, duration_s, spread,
                     error, retry, elapsed_s) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                )?
                .execute((
                    id.0,
                    record.number as i64,
                    word(&record.trial.purpose),
                    assignment_text(&record.trial.setting),
                    record.trial.effort.windows,
                    measured.map(|measurement| measurement.performance),
                    measured.map(|measurement| measurement.duration.as_secs_f64()),
                    measured.and_then(|measurement| measurement.spread),
                    failed.map(|error| &error.message),
                    failed.map(|error| word(&error.retry)),
                    record.elapsed.as_secs_f64(),
                ))
                .map(drop)
        })
    }

    /// Notes where the campaign stands, and its conclusion where there is one.
    pub fn conclude(
        &mut self,
        id: CampaignId,
        state: CampaignState,
        conclusion: Option<&serde_json::Value>,
    ) -> Result<(), StoreError> {
        let conclusion = conclusion.map(text);
        self.sql(|connection| {
            connection
                .execute(
                    "UPDATE campaign SET state = ?2, conclusion = coalesce(?3, conclusion) WHERE id = ?1",
                    (id.0, word(&state), conclusion),
                )
                .map(drop)
        })
    }

    /// Keeps a characterization under its machine's fingerprint; the number it has there.
    pub fn keep_characterization(&mut self, characterization: &Characterization) -> Result<i64, StoreError> {
        let fingerprint = &characterization.fingerprint;
        let (fingerprint_text, document) = (text(fingerprint), text(characterization));
        self.sql(|connection| {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            // Added since the format began; older versions do not miss it, so the format stays.
            transaction.execute_batch(include_str!("machine.sql"))?;
            transaction.execute(
                "INSERT INTO machine (kind, topology, model, fingerprint, document) VALUES (?, ?, ?, ?, ?)",
                (CHARACTERIZATION, &fingerprint.topology, &fingerprint.model, fingerprint_text, document),
            )?;
            let id = transaction.last_insert_rowid();
            transaction.commit()?;
            Ok(id)
        })
    }

    /// The latest characterization of a machine with the topology and model of `fingerprint`; the conditions (kernel, governor) may
    /// differ and are in its own. `None` where there is none, and where the latest was written in another form than this version's.
    ///
    /// Its [`pinwise_characterization::Findings::local`] is the level that a predictor may look at alone.
    pub fn characterization(&self, fingerprint: &Fingerprint) -> Result<Option<Characterization>, StoreError> {
        let found: Option<String> = self.read(|connection| {
            let there: i64 = connection.query_row(
                "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'machine'",
                [],
                |row| row.get(0),
            )?;
            if there == 0 {
                return Ok(None);
            }
            connection
                .query_row(
                    "SELECT document FROM machine WHERE kind = ? AND topology = ? AND model = ? ORDER BY id DESC LIMIT 1",
                    (CHARACTERIZATION, &fingerprint.topology, &fingerprint.model),
                    |row| row.get(0),
                )
                .optional()
        })?;
        let Some(found) = found else { return Ok(None) };
        Characterization::from_json(&found)
            .map_err(|error| unusable(&self.path, format!("holds a damaged characterization: {error}")))
    }

    fn sql<T>(&mut self, act: impl FnOnce(&mut Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        act(&mut self.connection).map_err(|error| explain(&self.path, &error))
    }

    fn read<'a, T>(&'a self, act: impl FnOnce(&'a Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        act(&self.connection).map_err(|error| explain(&self.path, &error))
    }
}

/// A connection that can read.
///
/// Even a reader of a file in write-ahead mode makes two files beside it, which fails where the folder may not be written. If they are not
/// there, then nobody writes the store, all of it is in the one file, and that can be read as one that does not change
/// (<https://sqlite.org/wal.html#readonly>). Whoever begins to write meanwhile leaves the file alone until a checkpoint.
fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(PATIENCE)?;
    let read = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()));
    let Err(error) = read else { return Ok(connection) };
    let barred = matches!(error.sqlite_error_code(), Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly));
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    if !barred || Path::new(&log).exists() {
        return Err(error);
    }
    Connection::open_with_flags(unchanging(path), OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI)
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

const CAMPAIGN: &str = "SELECT id, started, command, machine, alike, workload, unit, question, seed, state, conclusion,
    (SELECT count(*) FROM record WHERE campaign = campaign.id) FROM campaign";

pub(crate) fn unusable(path: &Path, reason: impl Into<String>) -> StoreError {
    StoreError::Unusable { path: path.to_owned(), reason: reason.into() }
}

/// SQLite's error codes as cause and remedy.
fn explain(path: &Path, error: &rusqlite::Error) -> StoreError {
    let reason = match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => "is not a store of pinwise; name another file with --store".to_owned(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => format!(
            "is locked by another program for more than {} s; end that program (fuser -v shows it), then try again",
            PATIENCE.as_secs()
        ),
        Some(ErrorCode::DiskFull) => "the disk is full; what was recorded is kept: free some space, then resume the \
                                      campaign (pinwise campaign list)"
            .to_owned(),
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
            "is read-only; make it and its folder writable, or name another file with --store".to_owned()
        }
        Some(ErrorCode::CannotOpen) => {
            "cannot be opened; check that it is a file and that its folder is writable, or name another with --store"
                .to_owned()
        }
        Some(ErrorCode::DatabaseCorrupt) => {
            "is damaged; rescue what can be read with: sqlite3 FILE .recover | sqlite3 NEW".to_owned()
        }
        Some(ErrorCode::SystemIoFailure) => {
            format!(
                "the disk reports an error ({error}); what was recorded before is kept: check the disk, then resume"
            )
        }
        _ => format!("cannot be used: {error}"),
    };
    unusable(path, reason)
}

#[cfg(test)]
mod tests;
