//! Notices rows that have changed on disk.
//!
//! SQLite finds damage to its own structure only. A digit of a measurement may change, or a row
//! disappear, without a word. So a separate table has a digest of each row of `campaign`, `record`,
//! `part` and `machine`. Both are written together. Only the rows of `machine` that are used are
//! checked.

use super::error::unusable;
use super::{CampaignId, Store, StoreError};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row};

/// The number that stands for the campaign's own row.
const OWN_ROW: i64 = -1;

/// The number that stands for a campaign's session 0. The next one is below.
const FIRST_SESSION: i64 = -2;

/// The campaign that stands for the machines. Its records are their rows. No campaign has this
/// number.
const MACHINES: i64 = 0;

/// What is read of a campaign. A column that a later version adds is none of these.
const CAMPAIGN: &str = "id, started, kind, parent, step, command, machine, alike, workload, unit,
    simulated, question, seed, state, conclusion";

/// What is read of a record.
const RECORD: &str = "number, purpose, assignment, windows, performance, duration_s, spread, error,
    retry, detail, elapsed_s";

/// What is read of a session.
const SESSION: &str = "part.number, met";

/// What is read about a machine.
const MACHINE: &str = "id, at, kind, topology, model, fingerprint, document";

/// Writes the digest of a campaign's row, in the transaction that writes the row.
pub(super) fn seal_campaign(connection: &Connection, id: i64) -> rusqlite::Result<()> {
    let row = format!("SELECT {CAMPAIGN} FROM campaign WHERE id = ?");
    let found = connection.prepare_cached(&row)?.query_row([id], digest_of).optional()?;
    found.map_or(Ok(()), |digest| seal(connection, id, OWN_ROW, digest))
}

/// Begins to count the records of a new campaign, see `digest.sql`. Those of earlier versions are
/// not counted: they have rows without a digest.
pub(super) fn count_records(connection: &Connection, id: i64) -> rusqlite::Result<()> {
    seal(connection, -id, OWN_ROW, 0)
}

/// Writes the digest of a new record, as above, and counts it.
pub(super) fn seal_record(connection: &Connection, id: i64, number: i64) -> rusqlite::Result<()> {
    let row = format!("SELECT {RECORD} FROM record WHERE campaign = ? AND number = ?");
    let digest = connection.prepare_cached(&row)?.query_row([id, number], digest_of)?;
    seal(connection, id, number, digest)?;
    let count = "UPDATE digest SET digest = digest + 1 WHERE campaign = -? AND record = ?";
    connection.prepare_cached(count)?.execute([id, OWN_ROW]).map(drop)
}

/// Writes the digest of a session's row, as above.
pub(super) fn seal_session(connection: &Connection, id: i64, number: i64) -> rusqlite::Result<()> {
    let row = format!("SELECT {SESSION} FROM part WHERE campaign = ? AND number = ?");
    let digest = connection.prepare_cached(&row)?.query_row([id, number], digest_of)?;
    seal(connection, id, FIRST_SESSION - number, digest)
}

/// Writes the digest of a row about a machine, as above.
pub(super) fn seal_machine(connection: &Connection, id: i64) -> rusqlite::Result<()> {
    let row = format!("SELECT {MACHINE} FROM machine WHERE id = ?");
    let digest = connection.prepare_cached(&row)?.query_row([id], digest_of)?;
    seal(connection, MACHINES, id, digest)
}

fn seal(connection: &Connection, id: i64, number: i64, digest: i64) -> rusqlite::Result<()> {
    let add = "INSERT OR REPLACE INTO digest (campaign, record, digest) VALUES (?, ?, ?)";
    connection.prepare_cached(add)?.execute([id, number, digest]).map(drop)
}

impl Store {
    /// Fails if the row of a campaign is not as it was written.
    pub(super) fn check_campaign(&self, id: CampaignId) -> Result<(), StoreError> {
        let row = format!(
            "SELECT digest, {CAMPAIGN} FROM digest LEFT JOIN campaign ON id = campaign
             WHERE campaign = ? AND record = {OWN_ROW}"
        );
        self.check(id, &row)?;
        match self.counted(id)? {
            Some(_) if self.sealed(id, "record = -1")? != 1 => Err(self.damaged(id)),
            _ => Ok(()),
        }
    }

    /// Fails if a record of a campaign is not as it was written, or is gone. `read` of them were
    /// read in the same transaction.
    pub(super) fn check_records(&self, id: CampaignId, read: usize) -> Result<(), StoreError> {
        let rows = format!(
            "SELECT digest, {RECORD} FROM digest
             LEFT JOIN record ON record.campaign = digest.campaign AND number = digest.record
             WHERE digest.campaign = ? AND digest.record > {OWN_ROW}"
        );
        self.check(id, &rows)?;
        let Some(counted) = self.counted(id)? else { return Ok(()) };
        // A row without its digest may have any values.
        match [counted, self.sealed(id, "record > -1")?] == [read as i64; 2] {
            true => Ok(()),
            false => Err(self.damaged(id)),
        }
    }

    /// How many records a campaign has. `None`: they are not counted.
    fn counted(&self, id: CampaignId) -> Result<Option<i64>, StoreError> {
        if !self.has_digests() {
            return Ok(None);
        }
        let count = "SELECT digest FROM digest WHERE campaign = -?";
        self.read(|connection| connection.query_row(count, [id.0], |row| row.get(0)).optional())
    }

    /// How many `such` rows of a campaign have a digest.
    fn sealed(&self, id: CampaignId, such: &str) -> Result<i64, StoreError> {
        let count = format!("SELECT count(*) FROM digest WHERE campaign = ? AND {such}");
        self.read(|connection| connection.query_row(&count, [id.0], |row| row.get(0)))
    }

    /// Fails if what disturbed a campaign is not as it was written, or is gone.
    pub(super) fn check_sessions(&self, id: CampaignId) -> Result<(), StoreError> {
        let rows = format!(
            "SELECT digest, {SESSION} FROM digest LEFT JOIN part
             ON part.campaign = digest.campaign AND part.number = {FIRST_SESSION} - digest.record
             WHERE digest.campaign = ? AND digest.record <= {FIRST_SESSION}"
        );
        self.check(id, &rows)
    }

    /// Fails if a row about a machine is not as it was written.
    pub(super) fn check_machine(&self, id: i64) -> Result<(), StoreError> {
        let row = format!(
            "SELECT digest, {MACHINE} FROM digest LEFT JOIN machine ON id = record
             WHERE campaign = {MACHINES} AND record = ?"
        );
        let reason = "is damaged: what it knows about this machine is not as it was written; \
                      restore the file from a copy, or run pinwise characterize again";
        if self.is_intact(id, &row)? { Ok(()) } else { Err(unusable(&self.path, reason)) }
    }

    /// Campaigns whose rows are gone.
    pub(super) fn lost(&self) -> Result<Vec<CampaignId>, StoreError> {
        if !self.has_digests() {
            return Ok(Vec::new());
        }
        // One step for each campaign, not for each record.
        let lost = "WITH RECURSIVE sealed (id) AS (
                        SELECT min(campaign) FROM digest WHERE campaign > ? UNION ALL
                        SELECT (SELECT min(campaign) FROM digest WHERE campaign > id) FROM sealed
                        WHERE id IS NOT NULL)
                    SELECT id FROM sealed
                    WHERE id IS NOT NULL AND id NOT IN (SELECT id FROM campaign)";
        self.read(|connection| {
            let mut statement = connection.prepare(lost)?;
            statement.query_map([MACHINES], |row| row.get(0).map(CampaignId))?.collect()
        })
    }

    /// The error that a campaign's rows are not as they were written.
    pub(super) fn damaged(&self, id: CampaignId) -> StoreError {
        let reason = format!(
            "is damaged: campaign {} is not as it was written; restore the file from a copy, or \
             delete the campaign",
            id.0
        );
        unusable(&self.path, reason)
    }

    fn check(&self, id: CampaignId, rows: &str) -> Result<(), StoreError> {
        if self.is_intact(id.0, rows)? { Ok(()) } else { Err(self.damaged(id)) }
    }

    fn is_intact(&self, id: i64, rows: &str) -> Result<bool, StoreError> {
        if !self.has_digests() {
            return Ok(true);
        }
        self.read(|connection| {
            let mut statement = connection.prepare(rows)?;
            let mut rows = statement.query([id])?;
            while let Some(row) = rows.next()? {
                if row.get::<_, i64>(0)? != digest_from(row, 1) {
                    return Ok(false);
                }
            }
            Ok(true)
        })
    }
}

fn digest_of(row: &Row<'_>) -> rusqlite::Result<i64> {
    Ok(digest_from(row, 0))
}

/// FNV-1a of the columns from `first` on, each with its type and length.
fn digest_from(row: &Row<'_>, first: usize) -> i64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    let mut add = |bytes: &[u8]| {
        for byte in bytes {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    };
    for column in first..row.as_ref().column_count() {
        match row.get_ref(column).unwrap_or(ValueRef::Null) {
            ValueRef::Null => add(&[0]),
            ValueRef::Integer(value) => {
                add(&[1]);
                add(&value.to_le_bytes());
            }
            ValueRef::Real(value) => {
                add(&[2]);
                add(&value.to_bits().to_le_bytes());
            }
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
                add(&[3]);
                add(&bytes.len().to_le_bytes());
                add(bytes);
            }
        }
    }
    hash as i64
}
