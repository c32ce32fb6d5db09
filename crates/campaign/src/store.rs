//! Every measurement of every campaign, on disk before the next begins.
//!
//! One SQLite file holds any number of campaigns. `schema.sql` describes its tables, which users
//! may also query with the `sqlite3` shell. It runs in write-ahead mode with `synchronous=FULL`.
//! Each append ends in an `fsync`, so that a record survives the death of the process and of the
//! machine. The `fsync` takes a fraction of a millisecond (docs/lab/benchmarks.md), or more if the
//! disk is busy. Measurements in virtual time repeat bit for bit, so they survive only the death of
//! the process ([`Store::sync_each`]). Processes may share a file: a writer waits for another one's
//! commit. A campaign has one writer, see [`Store::lock`].

mod campaign;
mod campaign_lock;
mod digest;
mod disturbances;
mod error;
mod file;
mod inode;
mod journal;
mod machine_document;
mod node_results;
mod row;

use crate::Record;
pub use campaign::{
    CampaignId, CampaignIdentity, CampaignInfo, CampaignState, Kind, NewCampaign, Parent,
};
pub use campaign_lock::CampaignLock;
use campaign_lock::LockedFile;
use digest::{count_records, seal_campaign, seal_record};
pub use error::StoreError;
use error::{explain, unusable};
use file::{FORMAT, KIND_BEFORE, KINDS, SIMULATED, connect, simulated_before};
use inode::Inode;
pub use journal::StoreJournal;
pub use machine_document::MachineDocument;
use pinwise_measure::{Unit, Workload};
pub(crate) use row::assignment_text;
use row::{campaign_row, record_row, retry_text, text, word};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::fs::{DirBuilder, OpenOptions};
use std::hash::{BuildHasher, Hasher};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

/// A SQLite file of campaigns.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    path: PathBuf,
    /// The file that was opened, to notice when the path names another one.
    inode: Option<Inode>,
    /// The version of its schema.
    format: i32,
    /// Whether opening it made its file or its tables.
    made: bool,
    /// The copy that was made of it since its file was gone.
    rescued: Option<PathBuf>,
    /// The campaigns that it has locked.
    locked: RefCell<BTreeMap<CampaignId, Weak<LockedFile>>>,
}

/// What a store holds.
#[derive(Debug, Default)]
pub struct Listing {
    /// The campaigns.
    pub campaigns: Vec<CampaignInfo>,
    /// Those that cannot be read, with why.
    pub unreadable: Vec<(CampaignId, StoreError)>,
}

/// Makes a folder that only this user may read, with those above it. One that is there stays as it
/// is.
///
/// # Errors
/// It cannot be made.
pub fn private_folder(folder: &Path) -> std::io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Makes an empty file for this user alone. It follows no link.
///
/// # Errors
/// There is one, or it cannot be made.
fn make_private(path: &Path) -> std::io::Result<()> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map(drop)
}

/// A part of a file name that nobody can guess.
pub fn unpredictable() -> String {
    // Its keys come from the kernel's random numbers.
    format!("{:016x}", RandomState::new().build_hasher().finish())
}

impl Store {
    /// Opens the store; creates it, and the folder it is in, if there is none. One that this
    /// process may only read serves for that.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            private_folder(folder).map_err(|error| {
                unusable(
                    path,
                    format!(
                        "its folder cannot be made ({error}); name a place you may write to \
                        with --store"
                    ),
                )
            })?;
        }
        // SQLite takes a device for an empty store, or for a disk that fails.
        if std::fs::metadata(path).is_ok_and(|about| !about.is_file()) {
            return Err(unusable(path, "is no regular file; name another file with --store"));
        }
        // Where that fails, SQLite says why.
        let made = make_private(path).is_ok();
        let connection = connect(path).map_err(|error| explain(path, &error))?;
        let inode = Inode::of(path);
        let (path, locked) = (path.to_owned(), RefCell::default());
        let mut store =
            Self { connection, path, inode, format: FORMAT, made, rescued: None, locked };
        store.check_or_create()?;
        Ok(store)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether opening it made its file or its tables.
    pub fn was_made(&self) -> bool {
        self.made
    }

    /// The random word that it got when its tables were made. A store with another history has
    /// another one. `None`: an earlier version made it, or it cannot be read.
    pub fn token(&self) -> Option<String> {
        self.has_table("token").ok().filter(|there| *there)?;
        let token = "SELECT value FROM token";
        self.read(|connection| connection.query_row(token, [], |row| row.get(0))).ok()
    }

    /// The copy that was made of it since its file was removed or replaced.
    pub fn rescued(&self) -> Option<&Path> {
        self.rescued.as_deref()
    }

    /// The error that the store cannot serve. `reason` is a clause that goes on from its name.
    pub fn unusable(&self, reason: impl Into<String>) -> StoreError {
        unusable(&self.path, reason)
    }

    /// The name of a campaign of this store, for files outside it.
    pub fn identity(&self, campaign: &CampaignInfo) -> CampaignIdentity {
        let store = self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        CampaignIdentity { store, number: campaign.id, started: campaign.started }
    }

    /// Makes sure that campaigns can be added, before anything is measured for one.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn ensure_writable(&mut self) -> Result<(), StoreError> {
        self.sql(|connection| connection.execute("DELETE FROM campaign WHERE FALSE", []).map(drop))
    }

    /// Begins a campaign.
    pub fn create(&mut self, campaign: &NewCampaign) -> Result<CampaignId, StoreError> {
        self.upgrade()?;
        let parent = campaign.parent.as_ref();
        let step = parent.map_or(Value::Null, |parent| Value::Text(text(&parent.step)));
        let parent = parent.map_or(Value::Null, |parent| Value::Integer(parent.id.0));
        let texts = [
            campaign.kind.name().to_owned(),
            text(&campaign.command),
            text(&campaign.machine),
            word(&campaign.alike),
            text(&campaign.workload),
            text(&campaign.unit),
            text(&campaign.question),
            campaign.seed.to_string(),
        ];
        let simulated = Value::Integer(campaign.simulated.into());
        self.sql(|connection| {
            let transaction = connection.transaction()?;
            transaction.execute(
                "INSERT INTO campaign (kind, command, machine, alike, workload, unit, question,
                 seed, parent, step, simulated)
                 VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                rusqlite::params_from_iter(
                    texts.map(Value::Text).into_iter().chain([parent, step, simulated]),
                ),
            )?;
            let id = transaction.last_insert_rowid();
            count_records(&transaction, id)?;
            seal_campaign(&transaction, id)?;
            transaction.commit()?;
            Ok(CampaignId(id))
        })
    }

    /// Corrects facts that were unknown before the first measurement of a campaign: its threads and
    /// the unit of performance.
    pub fn learn(
        &mut self,
        id: CampaignId,
        workload: &Workload,
        unit: &Unit,
    ) -> Result<(), StoreError> {
        let (workload, unit) = (text(workload), text(unit));
        self.upgrade()?;
        self.sql(|connection| {
            let transaction = connection.transaction()?;
            transaction.execute(
                "UPDATE campaign SET workload = ?2, unit = ?3 WHERE id = ?1",
                (id.0, workload, unit),
            )?;
            seal_campaign(&transaction, id.0)?;
            transaction.commit()
        })
    }

    /// The parts of a campaign, oldest first.
    pub fn parts(&self, id: CampaignId) -> Result<Vec<CampaignInfo>, StoreError> {
        self.part_ids(id)?.into_iter().map(|id| self.get(id)).collect()
    }

    fn part_ids(&self, id: CampaignId) -> Result<Vec<CampaignId>, StoreError> {
        if self.format < KINDS {
            return Ok(Vec::new());
        }
        self.read(|connection| {
            let mut statement =
                connection.prepare("SELECT id FROM campaign WHERE parent = ? ORDER BY id")?;
            statement.query_map([id.0], |row| row.get(0).map(CampaignId))?.collect()
        })
    }

    /// Removes a campaign with its parts and all records, for good: all or nothing. Refused while
    /// another process adds records to one of them. Nothing of them has to be readable. Whether the
    /// answer of another campaign rests on them is not checked.
    pub fn delete(&mut self, id: CampaignId) -> Result<(), StoreError> {
        self.upgrade()?;
        let mut whole = vec![id];
        let mut locks = Vec::new();
        while let Some(one) = whole.get(locks.len()).copied() {
            // Locked before its parts are listed: so no part is added meanwhile.
            locks.push(self.lock(one)?);
            whole.extend(self.part_ids(one)?);
        }
        let parts = self.has_table("part")?;
        let results = self.has_table("result")?;
        let found = self.sql(|connection| {
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let mut deleted = 0;
            for id in &whole {
                if parts {
                    transaction.execute("DELETE FROM part WHERE campaign = ?", [id.0])?;
                }
                if results {
                    transaction.execute("DELETE FROM result WHERE campaign = ?", [id.0])?;
                }
                transaction.execute("DELETE FROM record WHERE campaign = ?", [id.0])?;
                // A campaign whose own row is gone has these at least.
                let digests = "DELETE FROM digest WHERE campaign IN (?1, -?1)";
                deleted += transaction.execute(digests, [id.0])?;
                deleted += transaction.execute("DELETE FROM campaign WHERE id = ?", [id.0])?;
            }
            transaction.commit()?;
            Ok(deleted > 0)
        })?;
        if found { Ok(()) } else { Err(self.no_campaign(id)?) }
    }

    /// Every campaign, oldest first.
    pub fn list(&self) -> Result<Listing, StoreError> {
        let mut listing = Listing::default();
        self.read(|connection| {
            let mut statement = connection.prepare(&format!("{} ORDER BY id", self.campaigns()))?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                match campaign_row(row) {
                    Ok(info) => match self.check_campaign(info.id) {
                        Ok(()) => listing.campaigns.push(self.with_running(info)),
                        Err(error) => listing.unreadable.push((info.id, error)),
                    },
                    Err(error) => {
                        let id = row.get(0).map(CampaignId)?;
                        listing.unreadable.push((id, explain(&self.path, &error)));
                    }
                }
            }
            Ok(())
        })?;
        listing.unreadable.extend(self.lost()?.into_iter().map(|id| (id, self.damaged(id))));
        Ok(listing)
    }

    /// One campaign, or an error that lists all campaigns if there is no such one.
    pub fn get(&self, id: CampaignId) -> Result<CampaignInfo, StoreError> {
        let info = self.read(|connection| {
            connection
                .query_row(&format!("{} WHERE id = ?", self.campaigns()), [id.0], campaign_row)
                .optional()
        })?;
        match info {
            Some(info) => {
                self.check_campaign(id)?;
                Ok(self.with_running(info))
            }
            None => Err(self.no_campaign(id)?),
        }
    }

    /// What [`campaign_row`] reads, of this store's format.
    fn campaigns(&self) -> String {
        let kind = match self.format < KINDS {
            true => format!("{KIND_BEFORE}, NULL, NULL"),
            false => "kind, parent, step".to_owned(),
        };
        let simulated = match self.format {
            // A part may be of an earlier version that did not see the upgrade.
            SIMULATED.. => format!("max(simulated, {})", simulated_before("campaign.parent")),
            KINDS.. => simulated_before("campaign.parent"),
            _ => simulated_before("NULL"),
        };
        format!(
            "SELECT id, started, command, machine, alike, workload, unit, question, seed, state,
                    conclusion,
             (SELECT count(*) FROM record WHERE campaign = campaign.id), {kind}, {simulated}
             FROM campaign"
        )
    }

    fn no_campaign(&self, id: CampaignId) -> Result<StoreError, StoreError> {
        let ids = self.read(|connection| {
            let mut statement =
                connection.prepare("SELECT id FROM campaign ORDER BY id DESC LIMIT 10")?;
            statement.query_map([], |row| row.get::<_, i64>(0))?.collect::<Result<Vec<_>, _>>()
        })?;
        let known = match ids.as_slice() {
            [] => "it holds none".to_owned(),
            ids => format!(
                "the latest are {}",
                ids.iter().map(i64::to_string).collect::<Vec<_>>().join(", ")
            ),
        };
        Ok(StoreError::NoCampaign { path: self.path.clone(), id, known })
    }

    fn with_running(&self, mut info: CampaignInfo) -> CampaignInfo {
        info.running =
            self.own_lock(info.id).is_none() && CampaignLock::is_held(&self.path, info.id);
        info
    }

    /// Makes this store the one that adds records to a campaign. It stays so until all its locks of
    /// the campaign are dropped or the process dies.
    pub fn lock(&self, id: CampaignId) -> Result<CampaignLock, StoreError> {
        if let Some(own) = self.own_lock(id) {
            return Ok(own);
        }
        let lock = CampaignLock::take(&self.path, id)?;
        self.locked.borrow_mut().insert(id, Arc::downgrade(&lock.0));
        Ok(lock)
    }

    fn own_lock(&self, id: CampaignId) -> Option<CampaignLock> {
        self.locked.borrow().get(&id)?.upgrade().map(CampaignLock)
    }

    /// Its records, in order.
    pub fn records(&self, id: CampaignId) -> Result<Vec<Record>, StoreError> {
        let detail = if self.format < KINDS { "NULL" } else { "detail" };
        // In one transaction, lest another process adds records before they are counted.
        let _transaction = self.read(|connection| connection.unchecked_transaction())?;
        let records: Vec<Record> = self.read(|connection| {
            let mut statement = connection.prepare(&format!(
                "SELECT number, purpose, assignment, windows, performance, duration_s, spread,
                            error, retry,
                     elapsed_s, {detail} FROM record WHERE campaign = ? ORDER BY number"
            ))?;
            statement.query_map([id.0], record_row)?.collect()
        })?;
        self.check_records(id, records.len())?;
        Ok(records)
    }

    /// Whether each append waits until the disk has it. The default is yes. If not, a machine that
    /// loses power loses the latest records; those before stay whole and in order.
    pub fn sync_each(&mut self, each: bool) -> Result<(), StoreError> {
        let mode = if each { "FULL" } else { "NORMAL" };
        self.sql(|connection| connection.pragma_update(None, "synchronous", mode))
    }

    /// Adds a record, durable when this returns (but see [`Store::sync_each`]).
    pub fn append(&mut self, id: CampaignId, record: &Record) -> Result<(), StoreError> {
        self.add(id, record, None, false)
    }

    /// Adds a record, which was a `result` of a node before. With the `first` record of a run, the
    /// same write deletes the conclusions of its campaign and of those that it is a part of. They
    /// were drawn from fewer records. Such a campaign has not finished any more.
    fn add(
        &mut self,
        id: CampaignId,
        record: &Record,
        result: Option<u64>,
        first: bool,
    ) -> Result<(), StoreError> {
        let forget = "WITH RECURSIVE whole (id) AS (
                 SELECT ?1 UNION SELECT parent FROM campaign JOIN whole USING (id)
             ) UPDATE campaign SET conclusion = NULL,
                 state = CASE state WHEN 'finished' THEN 'stopped' ELSE state END
             WHERE id IN (SELECT id FROM whole) RETURNING id";
        self.upgrade()?;
        self.sql(|connection| {
            let transaction = connection.transaction()?;
            insert(&transaction, id, record)?;
            if let Some(result) = result {
                node_results::use_result(&transaction, id, result, record.number)?;
            }
            if first {
                let whole: Vec<i64> = transaction
                    .prepare(forget)?
                    .query_map([id.0], |row| row.get(0))?
                    .collect::<rusqlite::Result<_>>()?;
                for id in whole {
                    seal_campaign(&transaction, id)?;
                }
            }
            transaction.commit()
        })?;
        self.check_unmoved()
    }

    /// Sets the state of a campaign. Replaces its conclusion if a new one is given. Else an earlier
    /// one stays until a record is added to the campaign or to a part of it ([`Store::journal`]).
    pub fn set_state(
        &mut self,
        id: CampaignId,
        state: CampaignState,
        conclusion: Option<&serde_json::Value>,
    ) -> Result<(), StoreError> {
        self.upgrade()?;
        let conclusion = conclusion.map(text);
        self.sql(|connection| {
            let transaction = connection.transaction()?;
            transaction.execute(
                "UPDATE campaign SET state = ?2, conclusion = coalesce(?3, conclusion)
                 WHERE id = ?1",
                (id.0, word(&state), conclusion),
            )?;
            seal_campaign(&transaction, id.0)?;
            transaction.commit()
        })?;
        self.check_unmoved()
    }

    /// Whether a table is there that not every store has.
    fn has_table(&self, name: &str) -> Result<bool, StoreError> {
        let there = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = ?";
        self.read(|connection| connection.query_row(there, [name], |row| row.get::<_, i64>(0)))
            .map(|count| count > 0)
    }

    fn sql<T>(
        &mut self,
        act: impl FnOnce(&mut Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        act(&mut self.connection).map_err(|error| explain(&self.path, &error))
    }

    fn read<'a, T>(
        &'a self,
        act: impl FnOnce(&'a Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        act(&self.connection).map_err(|error| explain(&self.path, &error))
    }
}

/// Writes a record of a campaign.
fn insert(connection: &Connection, id: CampaignId, record: &Record) -> rusqlite::Result<()> {
    let measured = record.outcome.as_ref().ok();
    let failed = record.outcome.as_ref().err();
    connection
        .prepare_cached(
            "INSERT INTO record (campaign, number, purpose, assignment, windows, performance,
                                 duration_s, spread, error, retry, detail, elapsed_s)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
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
            failed.map(retry_text),
            record.detail().map(text),
            record.elapsed.as_secs_f64(),
        ))?;
    seal_record(connection, id.0, record.number as i64)
}

#[cfg(test)]
mod tests;
