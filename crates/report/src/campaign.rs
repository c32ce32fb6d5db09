//! The page of a campaign of any kind, from the answer of its job.

use crate::characterization::runs_so_far_page;
use crate::comparison::{comparison_page, searches};
use crate::cosched_page;
use crate::html_frame::ReportError;
use crate::pairs_page;
use crate::selection::{Selection, selection_page};
use crate::threads::{ThreadsSearch, threads_page};
use crate::tune::{TuneSearch, tune_page};
use crate::{calibration_page, characterization_page, latency_page, placement_page};
use pinwise_campaign::{CampaignIdentity, CampaignInfo, Store};
use pinwise_characterization::StoredCharacterization;
use pinwise_jobs::Answer;
use pinwise_present::figures::date;
use pinwise_present::{Files, latency_warning};

/// The page of the campaign `info`: a complete HTML document that needs nothing else. It ends in
/// the campaign's [`campaign_mark`]. `files` are named in its commands. Placements show what is
/// known of the sharing levels of their machine.
///
/// # Errors
/// The store cannot be read, nothing can be shown yet, or the answer does not fit its campaign.
pub fn campaign_page(
    store: &Store,
    info: &CampaignInfo,
    answer: &Answer,
    files: Files<'_>,
    characterization: Option<&StoredCharacterization>,
) -> Result<String, ReportError> {
    let page = match answer {
        Answer::Place(answer) => {
            let (info, records) = (&answer.campaign, store.records(answer.campaign.id)?);
            let (question, outcome) = (&answer.question, &answer.outcome);
            placement_page(info, question, &records, outcome, files, characterization)?
        }
        Answer::Compare(answer) => comparison_page(
            &answer.campaign,
            answer.unfinished(files).as_ref(),
            &answer.comparison,
            &answer.notes,
            &searches(store, &answer.compared),
            files,
            characterization,
        )?,
        Answer::Select(answer) => {
            let (info, unfinished) = (&answer.campaign, answer.unfinished(files));
            let selection = Selection::of(answer);
            selection_page(info, unfinished.as_ref(), &selection, files, characterization)?
        }
        Answer::Threads(answer) => {
            let (info, unfinished) = (&answer.campaign, answer.unfinished(files));
            let confirmation = answer.confirmation.as_ref();
            let search = ThreadsSearch::of(info, &answer.outcome, confirmation, None);
            threads_page(info, unfinished.as_ref(), &search, files)?
        }
        Answer::Calibrate(answer) => calibration_page(answer, files)?,
        Answer::Tune(answer) => {
            let parts = store.parts(answer.campaign.id)?;
            let (info, unfinished) = (&answer.campaign, answer.unfinished(files));
            tune_page(info, unfinished.as_ref(), &TuneSearch::of(answer, &parts), files)?
        }
        Answer::Characterize(answer) => match &answer.kept {
            Some(kept) => characterization_page(kept)?,
            None => {
                let unfinished = answer.unfinished(files);
                runs_so_far_page(&answer.campaign, unfinished.as_ref(), &answer.so_far)?
            }
        },
        Answer::Latency(answer) => {
            let machine = &answer.campaign.new.machine;
            let findings = answer.findings(Some(machine), files)?;
            let warnings: Vec<String> =
                answer.latencies.warnings().iter().map(latency_warning).collect();
            latency_page(&machine.name, &findings, &warnings)?
        }
        Answer::Pairs(answer) => pairs_page(answer, files)?,
        Answer::Cosched(answer) => cosched_page(answer, files)?,
    };
    Ok(page + "\n" + &campaign_mark(store, info))
}

/// The mark by which a page names its campaign, so that no other page overwrites it.
pub fn campaign_mark(store: &Store, info: &CampaignInfo) -> String {
    let CampaignIdentity { store, number, started } = store.identity(info);
    let text = format!("campaign {} of {store}, begun {} ({started})", number.0, date(started));
    // Two dashes end a comment.
    format!("<!-- {} -->\n", text.replace("--", "-"))
}
