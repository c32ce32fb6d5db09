//! What the measurements of each part of a campaign met. A part ends with the process that
//! measures.

use super::row::text;
use super::{CampaignId, Store, StoreError};
use pinwise_measure::Met;
use rusqlite::TransactionBehavior;

impl Store {
    /// What each part of a campaign met, in order; parts that met nothing are left out.
    pub fn met(&self, id: CampaignId) -> Result<Vec<Met>, StoreError> {
        if !self.has_table("part")? {
            return Ok(Vec::new());
        }
        self.read(|connection| {
            let mut statement =
                connection.prepare("SELECT met FROM part WHERE campaign = ? ORDER BY number")?;
            statement.query_map([id.0], |row| super::row::parsed(row, 0))?.collect()
        })
    }

    /// The number of a campaign's next part.
    pub(crate) fn next_part(&self, id: CampaignId) -> Result<i64, StoreError> {
        if !self.has_table("part")? {
            return Ok(0);
        }
        let next = "SELECT coalesce(max(number) + 1, 0) FROM part WHERE campaign = ?";
        self.read(|connection| connection.query_row(next, [id.0], |row| row.get(0)))
    }

    /// Keeps what a part met until now, in place of what was kept of it before; durable when this
    /// returns.
    pub(crate) fn keep_met(
        &mut self,
        id: CampaignId,
        part: i64,
        met: &Met,
    ) -> Result<(), StoreError> {
        let met = text(met);
        self.sql(|connection| {
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            // Added since the format began; older versions do not miss it, so the format stays.
            transaction.execute_batch(include_str!("part.sql"))?;
            transaction.execute(
                "INSERT OR REPLACE INTO part (campaign, number, met) VALUES (?, ?, ?)",
                (id.0, part, met),
            )?;
            transaction.commit()
        })
    }
}
