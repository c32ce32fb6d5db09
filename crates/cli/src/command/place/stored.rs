//! A search for a placement that is part of something else.

use super::{Measured, again, kept, measure, prepare};
use crate::interrupt::Interrupt;
use crate::output::{self, Interrupted};
use crate::request::Request;
use pinwise_campaign::{CampaignInfo, CampaignState, Ending, Store};
use pinwise_placement::{Outcome, Search};
use pinwise_present::Files;
use pinwise_topology::SharingTree;
use std::path::Path;
use std::time::Instant;

/// A search that has ended, as it is in the store.
pub(crate) struct StoredSearch {
    pub(crate) info: CampaignInfo,
    pub(crate) outcome: Outcome,
}

/// Places the program of `request` in a campaign of its own, without a word of it. An interrupted
/// one is kept where it has a measurement; `named` is the store, where later commands have to name
/// it.
pub(crate) fn search_stored(
    request: Request,
    store: &mut Store,
    named: Option<&Path>,
    interrupt: &Interrupt,
) -> anyhow::Result<StoredSearch> {
    let prepared = prepare(request, None, Instant::now(), store, interrupt);
    let (request, mut bed, new) = prepared.map_err(Interrupted::told_amid)?;
    let id = store.create(&new)?;
    let info = store.get(id)?;
    let tree = SharingTree::new(&new.machine, new.alike);
    let mut search = Search::new(&request.question, &tree, &new.workload)?;
    let Measured { ending, records, notes } =
        measure(store, &info, request.question.budget, &mut search, &mut bed, interrupt)?;
    if !matches!(ending, Ending::Finished(_)) {
        output::note_all(&notes);
    }
    match ending {
        Ending::Finished(_) => {
            let outcome = Outcome { notes, ..search.outcome(&new.unit, &records, None) };
            store.conclude(id, CampaignState::Finished, Some(&serde_json::to_value(&outcome)?))?;
            Ok(StoredSearch { info: store.get(id)?, outcome })
        }
        Ending::Interrupted if records.is_empty() => {
            store.delete(id)?;
            Err(Interrupted::amid().into())
        }
        Ending::Interrupted => {
            store.conclude(id, CampaignState::Stopped, None)?;
            let (id, kept, flag) =
                (id.0, kept(records.len()), Files { plan: None, store: named }.flag());
            let next =
                format!("go on with that placement with: pinwise campaign resume {id}{flag}");
            Err(Interrupted(format!(
                "interrupted: what was pinned is as it was; {kept} in campaign {id}, {next}"
            ))
            .into())
        }
        Ending::Failed(reason) => {
            store.conclude(id, CampaignState::Stopped, None)?;
            let kept = format!("{} in campaign {}", kept(records.len()), id.0);
            let again =
                bed.measures_a_total().then(|| format!("; with --counter: {}", again(&info.new)));
            anyhow::bail!("{reason} ({kept}{})", again.unwrap_or_default())
        }
    }
}
