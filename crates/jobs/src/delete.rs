//! [`delete()`]: deletes campaigns, and none that the answer of another one rests on.

use crate::campaign_run::record_count;
use crate::plan_file::plan_path;
use pinwise_campaign::{CampaignId, CampaignInfo, Store, StoreError};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Why no campaign was deleted.
#[derive(Debug, thiserror::Error)]
pub enum DeleteError {
    /// The answer of a whole rests on its parts: none of them is deleted alone.
    #[error(
        "campaign {} is a part of campaign {whole}; delete the whole: pinwise campaign delete \
         {whole}", id.0, whole = whole.0
    )]
    Part {
        /// The part.
        id: CampaignId,
        /// The campaign that it is a part of.
        whole: CampaignId,
    },
    /// A campaign is absent or running, or the store cannot serve.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What was deleted.
#[derive(Debug)]
pub struct Deletion {
    /// The copy of the store, if it was one of an earlier version and is upgraded.
    pub copy: Option<PathBuf>,
    /// The campaigns. A part that went with its whole is not among them.
    pub deleted: Vec<Deleted>,
}

/// A campaign that was deleted.
#[derive(Debug, PartialEq)]
pub struct Deleted {
    /// Its number.
    pub id: CampaignId,
    /// What it had; `None` if it or a part could not be read.
    pub contents: Option<DeletedContents>,
}

/// What a deleted campaign had.
#[derive(Debug, PartialEq)]
pub struct DeletedContents {
    /// Its parts.
    pub parts: usize,
    /// Its measurements, those of its parts included.
    pub records: u64,
    /// Its plan, which stays.
    pub plan: Option<PathBuf>,
}

/// Deletes these campaigns with their parts. Deletes none if one is absent, running, or a part of a
/// campaign that stays. An unreadable campaign is deleted, too.
///
/// # Errors
/// See [`DeleteError`].
pub fn delete(ids: &BTreeSet<CampaignId>, store: &mut Store) -> Result<Deletion, DeleteError> {
    let mut wholes = Vec::new();
    for &id in ids {
        let info = readable(store, id)?;
        match whole(store, info.as_ref()) {
            None => wholes.push((id, info)),
            // It goes with its whole.
            Some(whole) if ids.contains(&whole) => {}
            Some(whole) => return Err(DeleteError::Part { id, whole }),
        }
    }
    let _locks = wholes.iter().map(|(id, _)| store.lock(*id)).collect::<Result<Vec<_>, _>>()?;
    let copy = store.upgrade()?;
    let mut deleted = Vec::new();
    for (id, info) in wholes {
        let contents = info.and_then(|info| contents(store, &info).ok());
        store.delete(id)?;
        deleted.push(Deleted { id, contents });
    }
    Ok(Deletion { copy, deleted })
}

/// A campaign; `None` if it is there, or was, and cannot be read.
fn readable(store: &Store, id: CampaignId) -> Result<Option<CampaignInfo>, StoreError> {
    match store.get(id) {
        Ok(info) => Ok(Some(info)),
        Err(error) => {
            let unreadable = store.list()?.unreadable;
            if unreadable.iter().any(|(other, _)| *other == id) { Ok(None) } else { Err(error) }
        }
    }
}

/// The campaign that this one is a part of, if it is there and can be read.
fn whole(store: &Store, info: Option<&CampaignInfo>) -> Option<CampaignId> {
    let whole = info?.new.parent.as_ref()?.id;
    store.get(whole).is_ok().then_some(whole)
}

fn contents(store: &Store, info: &CampaignInfo) -> Result<DeletedContents, StoreError> {
    Ok(DeletedContents {
        parts: store.parts(info.id)?.len(),
        records: record_count(store, info.id)?,
        plan: plan_path(store, info),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{Caller, Job};
    use crate::placement_request::simulated;
    use crate::simulation::SimulatedProcessor;
    use crate::{PlaceRequest, Silent, stored_campaign};
    use pinwise_campaign::{NewCampaign, Parent};
    use pinwise_placement::Budget;

    #[test]
    fn nothing_is_deleted_that_an_answer_rests_on_or_that_runs() {
        let (folder, mut store) = stored_campaign::empty_store();
        let model = SimulatedProcessor::built_in("ultrasparc-t2");
        let asked = PlaceRequest::from(simulated(model, Budget::Measurements(60)));
        let (new, _) = asked.prepare(&Caller::default(), &store, &mut Silent).unwrap();
        let alone = store.create(&new).unwrap();
        let whole = store.create(&new).unwrap();
        let parent = |of| Some(Parent::new(of, &"part"));
        let part = store.create(&NewCampaign { parent: parent(whole), ..new.clone() }).unwrap();
        let orphan = store.create(&NewCampaign { parent: parent(CampaignId(99)), ..new }).unwrap();
        let mut delete = |ids: &[CampaignId]| delete(&ids.iter().copied().collect(), &mut store);
        let refused = delete(&[alone, part]).unwrap_err();
        assert!(
            matches!(refused, DeleteError::Part { id, whole: of } if (id, of) == (part, whole)),
            "{refused}"
        );
        let running = Store::open(&folder.path().join("pinwise.db")).unwrap();
        let lock = running.lock(whole).unwrap();
        let refused = delete(&[alone, whole]).unwrap_err();
        assert!(matches!(refused, DeleteError::Store(StoreError::Running { .. })), "{refused}");
        drop(lock);
        assert_eq!(running.list().unwrap().campaigns.len(), 4, "none is deleted");
        let contents = |parts| Some(DeletedContents { parts, records: 0, plan: None });
        let Deletion { copy, deleted } = delete(&[part, whole, orphan]).unwrap();
        assert_eq!(copy, None);
        let expected = [(whole, 1), (orphan, 0)];
        let expected = expected.map(|(id, parts)| Deleted { id, contents: contents(parts) });
        assert_eq!(deleted, expected);
        assert_eq!(running.list().unwrap().campaigns.len(), 1);
        // Its row is gone, and its digest is left.
        let path = running.path();
        let damage = format!("DELETE FROM campaign WHERE id = {}", alone.0);
        rusqlite::Connection::open(path).unwrap().execute_batch(&damage).unwrap();
        assert_eq!(running.list().unwrap().unreadable.len(), 1);
        let Deletion { deleted, .. } = delete(&[alone]).unwrap();
        assert_eq!(deleted, [Deleted { id: alone, contents: None }]);
        assert!(running.list().unwrap().unreadable.is_empty());
        let refused = delete(&[alone]).unwrap_err();
        assert!(matches!(refused, DeleteError::Store(StoreError::NoCampaign { .. })), "{refused}");
    }
}
