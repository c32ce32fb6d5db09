//! Results of several nodes. They come in any order, and wait until the strategy asks for them.

use super::row::{assignment_text, parsed, setting, text};
use super::{CampaignId, Store, StoreError};
use pinwise_measure::{Effort, NodeResult};

impl Store {
    /// Keeps a result that waits. Durable when this returns. Returns its number in the campaign.
    pub(crate) fn keep_result(
        &mut self,
        id: CampaignId,
        result: &NodeResult,
    ) -> Result<u64, StoreError> {
        self.upgrade()?;
        let (assignment, outcome) = (assignment_text(&result.setting), text(&result.outcome));
        self.sql(|connection| {
            // Added since the format began; older versions do not miss it, so the format stays.
            connection.execute_batch(include_str!("result.sql"))?;
            connection.query_row(
                "INSERT INTO result (campaign, number, node, assignment, windows, outcome)
                 SELECT ?1, coalesce(max(number) + 1, 0), ?2, ?3, ?4, ?5
                 FROM result WHERE campaign = ?1 RETURNING number",
                (id.0, &result.node, assignment, result.effort.windows, outcome),
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
            let mut statement = connection.prepare(
                "SELECT number, node, assignment, windows, outcome FROM result WHERE campaign = ?1
                 AND (record IS NULL OR record NOT IN
                     (SELECT number FROM record WHERE campaign = ?1))
                 ORDER BY number DESC LIMIT ?2",
            )?;
            let result = |row: &rusqlite::Row<'_>| {
                let text: String = row.get(2)?;
                let setting = setting(&text).map_err(|error| super::row::malformed(2, error))?;
                let effort = Effort { windows: row.get(3)? };
                let result =
                    NodeResult { node: row.get(1)?, setting, effort, outcome: parsed(row, 4)? };
                Ok((row.get::<_, i64>(0)? as u64, result))
            };
            let most = i64::try_from(most).unwrap_or(i64::MAX);
            let newest: Vec<_> =
                statement.query_map([id.0, most], result)?.collect::<Result<_, _>>()?;
            Ok(newest.into_iter().rev().collect())
        })
    }
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
