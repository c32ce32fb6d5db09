//! The journal: the destination of the records of one campaign.

use crate::{CampaignId, Record, StoreError};
use pinwise_measure::Disturbances;

/// The records of one campaign, as [`crate::drive`] reads and adds to them.
///
/// A [`crate::StoreJournal`] is on disk. A [`MemoryJournal`] is for a testbed of your own, and for
/// tests.
pub trait Journal {
    /// The number by which messages name the campaign.
    fn id(&self) -> CampaignId;

    /// The records so far, in order.
    fn records(&self) -> Result<Vec<Record>, StoreError>;

    /// What disturbed each session, in order.
    fn disturbances(&self) -> Result<Vec<Disturbances>, StoreError>;

    /// Adds a record. It is durable when this returns, as far as the journal can make it so.
    fn append(&mut self, record: &Record) -> Result<(), StoreError>;

    /// Replaces the stored disturbances since this journal was opened.
    fn keep_disturbances(&mut self, disturbances: &Disturbances) -> Result<(), StoreError>;

    /// Whether each record has to survive a loss of power. Measurements that repeat bit for bit
    /// need not.
    fn sync_each(&mut self, each: bool) -> Result<(), StoreError>;
}

/// Records in memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MemoryJournal {
    /// The records, in order.
    pub records: Vec<Record>,
    /// What disturbed them.
    pub disturbances: Disturbances,
}

impl Journal for MemoryJournal {
    fn id(&self) -> CampaignId {
        CampaignId(0)
    }

    fn records(&self) -> Result<Vec<Record>, StoreError> {
        Ok(self.records.clone())
    }

    fn disturbances(&self) -> Result<Vec<Disturbances>, StoreError> {
        Ok(vec![self.disturbances.clone()])
    }

    fn append(&mut self, record: &Record) -> Result<(), StoreError> {
        self.records.push(record.clone());
        Ok(())
    }

    fn keep_disturbances(&mut self, disturbances: &Disturbances) -> Result<(), StoreError> {
        self.disturbances = disturbances.clone();
        Ok(())
    }

    fn sync_each(&mut self, _: bool) -> Result<(), StoreError> {
        Ok(())
    }
}
