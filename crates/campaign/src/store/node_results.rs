//! Results of several nodes. They come in any order, and wait until the strategy asks for them.

use super::row::{assignment_text, parsed, setting, text};
use super::{CampaignId, Store, StoreError};
use pinwise_measure::{Effort, NodeResult, NodeScale};
use rusqlite::{Connection, OptionalExtension, Row};
use std::collections::BTreeMap;

impl Store {
    /// Keeps a result that waits. Durable when this returns. Returns its number in the campaign.
    pub(crate) fn keep_result(
        &mut self,
        id: CampaignId,
        result: &NodeResult,
    ) -> Result<u64, StoreError> {
        self.upgrade()?;
        let (assignment, outcome) = (assignment_text(&result.setting), text(&result.outcome));
        let (windows, scale) = (result.effort.windows, result.scale.map(|scale| text(&scale)));
        self.sql(|connection| {
            // Added since the format began; older versions do not miss it, so the format stays.
            connection.execute_batch(include_str!("result.sql"))?;
            if scale_column(connection)? == NO_SCALE {
                connection.execute_batch("ALTER TABLE result ADD COLUMN scale TEXT")?;
            }
            connection.query_row(
                "INSERT INTO result (campaign, number, node, assignment, windows, outcome, scale)
                 SELECT ?1, coalesce(max(number) + 1, 0), ?2, ?3, ?4, ?5, ?6
                 FROM result WHERE campaign = ?1 RETURNING number",
                (id.0, &result.node, assignment, windows, outcome, scale),
                |row| row.get::<_, i64>(0).map(|number| number as u64),
            )
        })
    }

    /// The last `most` results of a campaign that wait, with their numbers, in order.
    pub(crate) fn kept_results(
        &self,
        id: CampaignId,
        most: usize,
    ) -> Result<Vec<(u64, NodeResult)>, StoreError> {
        if !self.has_table("result")? {
            return Ok(Vec::new());
        }
        self.read(|connection| {
            let scale = scale_column(connection)?;
            let mut statement = connection.prepare(&format!(
                "SELECT number, node, assignment, windows, outcome, {scale} FROM result
                 WHERE campaign = ?1 AND (record IS NULL OR record NOT IN
                     (SELECT number FROM record WHERE campaign = ?1))
                 ORDER BY number DESC LIMIT ?2"
            ))?;
            let result = |row: &Row<'_>| {
                let text: String = row.get(2)?;
                let setting = setting(&text).map_err(|error| super::row::malformed(2, error))?;
                let effort = Effort { windows: row.get(3)? };
                let (outcome, scale) = (parsed(row, 4)?, stored_scale(row, 5)?);
                let result = NodeResult { node: row.get(1)?, setting, effort, outcome, scale };
                Ok((row.get::<_, i64>(0)? as u64, result))
            };
            let most = i64::try_from(most).unwrap_or(i64::MAX);
            let newest: Vec<_> =
                statement.query_map([id.0, most], result)?.collect::<Result<_, _>>()?;
            Ok(newest.into_iter().rev().collect())
        })
    }

    /// The nodes that have made results of a campaign, with the scale of the last one of each.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn node_scales(
        &self,
        id: CampaignId,
    ) -> Result<BTreeMap<String, Option<NodeScale>>, StoreError> {
        if !self.has_table("result")? {
            return Ok(BTreeMap::new());
        }
        self.read(|connection| {
            let scale = scale_column(connection)?;
            let mut statement = connection.prepare(&format!(
                "SELECT node, {scale}, max(number) FROM result WHERE campaign = ? GROUP BY node"
            ))?;
            let scales =
                statement.query_map([id.0], |row| Ok((row.get(0)?, stored_scale(row, 1)?)));
            scales?.collect()
        })
    }

    /// The node that made the last record; `None`: no node did.
    pub(crate) fn last_node(&self, id: CampaignId) -> Result<Option<String>, StoreError> {
        if !self.has_table("result")? {
            return Ok(None);
        }
        self.read(|connection| {
            let last = "SELECT node FROM result WHERE campaign = ?1 AND record =
                        (SELECT max(number) FROM record WHERE campaign = ?1)";
            connection.query_row(last, [id.0], |row| row.get(0)).optional()
        })
    }
}

/// In place of the scales in a store from before.
const NO_SCALE: &str = "NULL";

/// Where the scales of results are.
fn scale_column(connection: &Connection) -> rusqlite::Result<&'static str> {
    let there = "SELECT count(*) FROM pragma_table_info('result') WHERE name = 'scale'";
    let count: i64 = connection.query_row(there, [], |row| row.get(0))?;
    Ok(if count > 0 { "scale" } else { NO_SCALE })
}

fn stored_scale(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<NodeScale>> {
    let stored: Option<String> = row.get(column)?;
    stored.map(|_| parsed(row, column)).transpose()
}

/// A result becomes a record.
pub(super) fn use_result(
    transaction: &rusqlite::Transaction<'_>,
    id: CampaignId,
    result: u64,
    record: u64,
) -> rusqlite::Result<()> {
    let of = "UPDATE result SET record = ? WHERE campaign = ? AND number = ?";
    transaction.execute(of, (record as i64, id.0, result as i64)).map(drop)
}
