//! `pinwise report`: a campaign as one page.

use crate::command::campaign::{self, Id};
use crate::comparison;
use crate::output;
use crate::selection;
use clap::Args;
use pinwise_report::Files;
use serde::Serialize;
use std::path::PathBuf;

/// Write a campaign as one HTML page that works offline.
///
/// The placement drawn on the machine, every repetition of the best and of the baseline, the distribution of all sampled
/// assignments, the bound and the plots by which to judge it, what was asked and what it cost. Also of a campaign that is
/// still running or was killed. Of a comparison: the losses of all ways, what each measurement bought, and which claims stand. Of a selection: what runs where,
/// and what every selection gave.
#[derive(Args)]
#[command(after_help = "Examples:
  pinwise report 3                     writes pinwise-3.html
  pinwise report 3 -o placement.html   writes placement.html")]
pub(crate) struct Report {
    #[command(flatten)]
    campaign: Id,
    /// The file to write [default: pinwise-ID.html in this directory]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// What was written.
#[derive(Serialize)]
struct Document {
    campaign: i64,
    file: PathBuf,
    bytes: usize,
}

impl Report {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let (store, info) = self.campaign.open()?;
        let records = store.records(info.id)?;
        let plan = super::place::plan_path(&store, info.id);
        let files = Files { plan: plan.exists().then_some(plan.as_path()), store: self.campaign.store.named() };
        let page = match (comparison::of(&info), selection::of(&info)) {
            (Some(compared), _) => comparison::page(&store, &info, &compared, &records, files)?,
            (_, Some(selected)) => selection::page(&info, &selected, &records, files)?,
            _ => pinwise_report::page(&info, &records, &campaign::outcome(&info, &records)?, files)?,
        };
        let file = self.output.unwrap_or_else(|| PathBuf::from(format!("pinwise-{}.html", info.id.0)));
        output::write(&file, page.as_bytes())?;
        if self.json {
            return output::print_json(&Document { campaign: info.id.0, file, bytes: page.len() });
        }
        let size = page.len() / 1000;
        output::print(&format!("{}: {} measurements, {size} kB\n", file.display(), records.len()))
    }
}
