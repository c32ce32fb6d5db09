//! Reads a campaign's stored question and conclusion. Finds or creates its parts.

use crate::error::JobError;
use pinwise_campaign::{CampaignInfo, NewCampaign, Parent, Store};
use pinwise_present::shell;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The question.
///
/// # Errors
/// Another version of pinwise wrote it in another form.
pub(crate) fn question<Q: DeserializeOwned>(info: &CampaignInfo) -> Result<Q, JobError> {
    Q::deserialize(&info.new.question).map_err(|error| unreadable(info, "question", &error))
}

/// The conclusion; `None` if there is none yet.
///
/// # Errors
/// Another version of pinwise wrote it in another form.
pub(crate) fn conclusion<C: DeserializeOwned>(info: &CampaignInfo) -> Result<Option<C>, JobError> {
    let Some(conclusion) = &info.conclusion else { return Ok(None) };
    C::deserialize(conclusion).map(Some).map_err(|error| unreadable(info, "answer", &error))
}

/// A campaign whose `part` ("answer") another version of pinwise wrote in another form.
fn unreadable(info: &CampaignInfo, part: &str, error: &serde_json::Error) -> JobError {
    let id = info.id.0;
    JobError::failed(format!(
        "campaign {id}: another version of pinwise wrote its {part} ({error}); use that version, \
         pinwise campaign export {id}, or measure again: {}",
        shell(&info.new.command)
    ))
}

/// A new store, in a new folder.
#[cfg(test)]
pub(crate) fn empty_store() -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("pinwise.db")).unwrap();
    (folder, store)
}

/// The part of a campaign that is this step, if it was begun.
///
/// # Errors
/// The store cannot be read.
pub(crate) fn part(store: &Store, parent: &Parent) -> Result<Option<CampaignInfo>, JobError> {
    let parts = store.parts(parent.id)?;
    Ok(parts.into_iter().find(|part| part.new.parent.as_ref() == Some(parent)))
}

/// The part of a campaign for a step. If there is none, it is what `new` makes of its parent.
///
/// # Errors
/// The errors of `new`; the store cannot serve.
pub(crate) fn part_for(
    store: &mut Store,
    info: &CampaignInfo,
    step: &impl Serialize,
    new: impl FnOnce(NewCampaign) -> Result<NewCampaign, JobError>,
) -> Result<CampaignInfo, JobError> {
    let parent = Parent::new(info.id, step);
    if let Some(part) = part(store, &parent)? {
        return Ok(part);
    }
    let new = new(NewCampaign { parent: Some(parent), ..info.new.clone() })?;
    let id = store.create(&new)?;
    Ok(store.get(id)?)
}
