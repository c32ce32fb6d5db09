//! `pinwise report`: a campaign as one page.

use crate::output;
use crate::store::StoreArguments;
use anyhow::Context;
use clap::Args;
use pinwise_campaign::{CampaignId, CampaignInfo, Record, Store};
use pinwise_placement::{Outcome, Question, Search};
use pinwise_topology::SharingTree;
use serde::Serialize;
use std::path::PathBuf;

/// Write a campaign as one HTML page that works offline.
///
/// The placement drawn on the machine, every repetition of the best and of the baseline, the distribution of all sampled
/// assignments, the bound and the plots by which to judge it, what was asked and what it cost. Also of a campaign that is
/// still running or was killed.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    pinwise report 3                     writes pinwise-3.html\n  \
    pinwise report 3 -o placement.html   writes placement.html")]
pub(crate) struct Report {
    /// The campaign, as `pinwise campaign list` numbers it.
    #[arg(value_name = "ID")]
    id: i64,
    /// The file to write (default: pinwise-ID.html in this directory).
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,
    /// Tell which file was written as one JSON document.
    #[arg(long, help_heading = "Output")]
    json: bool,
    #[command(flatten)]
    store: StoreArguments,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Written {
    campaign: i64,
    file: PathBuf,
    bytes: usize,
}

impl Report {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let store = Store::open(&self.store.path()?)?;
        let info = store.get(CampaignId(self.id))?;
        let records = store.records(info.id)?;
        let page = pinwise_report::page(&info, &records, &outcome(&info, &records)?)?;
        let file = self.output.unwrap_or_else(|| PathBuf::from(format!("pinwise-{}.html", self.id)));
        std::fs::write(&file, &page).with_context(|| format!("cannot write {}", file.display()))?;
        if self.json {
            return output::print_json(&Written { campaign: self.id, file, bytes: page.len() });
        }
        output::print(&format!("{} ({} kB, {} measurements)\n", file.display(), page.len() / 1000, records.len()))
    }
}

/// The outcome that was kept, or what the records of an unfinished campaign answer so far.
fn outcome(info: &CampaignInfo, records: &[Record]) -> anyhow::Result<Outcome> {
    let unreadable = || format!("campaign {} was made by another version of pinwise and cannot be read", info.id.0);
    if let Some(conclusion) = &info.conclusion {
        return serde_json::from_value(conclusion.clone()).with_context(unreadable);
    }
    let question: Question = serde_json::from_value(info.new.question.clone()).with_context(unreadable)?;
    let tree = SharingTree::new(&info.new.machine, info.new.alike);
    let search = Search::replay(&question, &tree, &info.new.workload, records)?;
    Ok(search.outcome(&info.new.unit, records, Some("it has not ended")))
}
