//! One campaign of a store, open for new records.

use super::{CampaignId, CampaignState, Store, StoreError};
use crate::{CampaignLock, Journal, Record};
use pinwise_measure::{Disturbances, NodeResult};

/// A campaign of a [`Store`] that this process adds records to. No other process can meanwhile.
#[derive(Debug)]
pub struct StoreJournal<'a> {
    store: &'a mut Store,
    id: CampaignId,
    /// The session of the campaign that begins now: it ends with this journal.
    session: i64,
    /// Whether it has added a record.
    added: bool,
    // Held for its lock.
    _lock: CampaignLock,
}

impl Store {
    /// Opens a campaign for new records and locks it. The first new record deletes its conclusion,
    /// and those of its parents. The caller stores how the campaign ended ([`Store::set_state`]).
    /// Errors: there is no such campaign; another process is adding records.
    pub fn journal(&mut self, id: CampaignId) -> Result<StoreJournal<'_>, StoreError> {
        self.get(id)?;
        let lock = self.lock(id)?;
        self.set_state(id, CampaignState::Open, None)?;
        let session = self.next_session(id)?;
        Ok(StoreJournal { store: self, id, session, added: false, _lock: lock })
    }
}

impl Journal for StoreJournal<'_> {
    fn id(&self) -> CampaignId {
        self.id
    }

    fn records(&self) -> Result<Vec<Record>, StoreError> {
        self.store.records(self.id)
    }

    fn disturbances(&self) -> Result<Vec<Disturbances>, StoreError> {
        self.store.disturbances(self.id)
    }

    fn append(&mut self, record: &Record) -> Result<(), StoreError> {
        self.add(record, None)
    }

    fn keep_disturbances(&mut self, disturbances: &Disturbances) -> Result<(), StoreError> {
        self.store.keep_disturbances(self.id, self.session, disturbances)
    }

    fn sync_each(&mut self, each: bool) -> Result<(), StoreError> {
        self.store.sync_each(each)
    }

    fn keep_result(&mut self, result: &NodeResult) -> Result<u64, StoreError> {
        self.store.keep_result(self.id, result)
    }

    fn kept_results(&self, most: usize) -> Result<Vec<(u64, NodeResult)>, StoreError> {
        self.store.kept_results(self.id, most)
    }

    fn last_node(&self) -> Result<Option<String>, StoreError> {
        self.store.last_node(self.id)
    }

    fn append_result(&mut self, record: &Record, result: u64) -> Result<(), StoreError> {
        self.add(record, Some(result))
    }
}

impl StoreJournal<'_> {
    /// Adds a record, which was a `result` of a node before.
    fn add(&mut self, record: &Record, result: Option<u64>) -> Result<(), StoreError> {
        let first = !std::mem::replace(&mut self.added, true);
        self.store.add(self.id, record, result, first)
    }
}
