//! The journal: the destination of the records of one campaign.

use crate::{CampaignId, Record, StoreError};
use pinwise_measure::{Disturbances, NodeResult};

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

    /// Keeps a result of one of several nodes, which waits to become a record. It is durable when
    /// this returns. Returns the number by which it is known.
    fn keep_result(&mut self, result: &NodeResult) -> Result<u64, StoreError>;

    /// The last `most` results that wait, with their numbers, in the order in which they came.
    fn kept_results(&self, most: usize) -> Result<Vec<(u64, NodeResult)>, StoreError>;

    /// The node that made the last record; `None`: no node did.
    fn last_node(&self) -> Result<Option<String>, StoreError>;

    /// Adds a record that a result of a node becomes. Both happen, or neither.
    fn append_result(&mut self, record: &Record, result: u64) -> Result<(), StoreError>;
}

/// Records in memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MemoryJournal {
    /// The records, in order.
    pub records: Vec<Record>,
    /// What disturbed them.
    pub disturbances: Disturbances,
    /// Results of nodes, each with the record that it has become.
    pub results: Vec<(NodeResult, Option<u64>)>,
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

    fn keep_result(&mut self, result: &NodeResult) -> Result<u64, StoreError> {
        self.results.push((result.clone(), None));
        Ok(self.results.len() as u64 - 1)
    }

    fn kept_results(&self, most: usize) -> Result<Vec<(u64, NodeResult)>, StoreError> {
        let waiting = (0..).zip(&self.results).filter(|(_, (_, record))| record.is_none());
        let above = waiting.clone().count().saturating_sub(most);
        let last = waiting.skip(above);
        Ok(last.map(|(number, (result, _))| (number, result.clone())).collect())
    }

    fn last_node(&self) -> Result<Option<String>, StoreError> {
        let last = self.records.last().map(|record| record.number);
        let made = self.results.iter().find(|(_, record)| record.is_some() && *record == last);
        Ok(made.map(|(result, _)| result.node.clone()))
    }

    fn append_result(&mut self, record: &Record, result: u64) -> Result<(), StoreError> {
        if let Some((_, of)) = self.results.get_mut(result as usize) {
            *of = Some(record.number);
        }
        self.append(record)
    }
}
