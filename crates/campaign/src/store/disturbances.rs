//! What disturbed the measurements of a campaign, session by session. A session ends with the
//! process that measures. The table is called `part`, as it was when the format began.

use super::digest::seal_session;
use super::row::text;
use super::{CampaignId, Store, StoreError};
use pinwise_measure::Disturbances;
use rusqlite::TransactionBehavior;

impl Store {
    /// What disturbed each session of a campaign, in order. Sessions without any are left out.
    pub fn disturbances(&self, id: CampaignId) -> Result<Vec<Disturbances>, StoreError> {
        if !self.has_table("part")? {
            return Ok(Vec::new());
        }
        self.check_sessions(id)?;
        self.read(|connection| {
            let mut statement =
                connection.prepare("SELECT met FROM part WHERE campaign = ? ORDER BY number")?;
            statement.query_map([id.0], |row| super::row::parsed(row, 0))?.collect()
        })
    }

    /// The number of a campaign's next session.
    pub(crate) fn next_session(&self, id: CampaignId) -> Result<i64, StoreError> {
        if !self.has_table("part")? {
            return Ok(0);
        }
        let next = "SELECT coalesce(max(number) + 1, 0) FROM part WHERE campaign = ?";
        self.read(|connection| connection.query_row(next, [id.0], |row| row.get(0)))
    }

    /// Replaces the stored disturbances of a session. Durable when this returns.
    pub(crate) fn keep_disturbances(
        &mut self,
        id: CampaignId,
        session: i64,
        disturbances: &Disturbances,
    ) -> Result<(), StoreError> {
        self.upgrade()?;
        let disturbances = text(disturbances);
        self.sql(|connection| {
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            // Added since the format began; older versions do not miss it, so the format stays.
            transaction.execute_batch(include_str!("part.sql"))?;
            transaction.execute(
                "INSERT OR REPLACE INTO part (campaign, number, met) VALUES (?, ?, ?)",
                (id.0, session, disturbances),
            )?;
            seal_session(&transaction, id.0, session)?;
            transaction.commit()
        })
    }
}
