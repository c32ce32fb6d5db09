//! `pinwise report`: a campaign as one page.

use crate::command::campaign::{self, Id};
use crate::comparison;
use crate::output;
use crate::plan;
use crate::selection;
use clap::Args;
use pinwise_report::Files;
use pinwise_testbed::figures::counted;
use serde::Serialize;
use std::fs;
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
    /// The file to write [default: pinwise-ID.html in this directory, with another number behind it where that is another campaign's]
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
        let plan = plan::beside(&store, &info);
        let files = Files { plan: plan.as_deref(), store: self.campaign.store.named() };
        let page = match (comparison::of(&info), selection::of(&info)) {
            (Some(compared), _) => comparison::page(&store, &info, &compared, &records, files)?,
            (_, Some(selected)) => selection::page(&info, &selected, &records, files)?,
            _ => pinwise_report::page(&info, &records, &campaign::outcome(&store, &info, &records)?, files)?,
        };
        // The page says whose it is, so that another campaign's of the same number is not written over.
        let mark = format!("<!-- {} -->\n", plan::identity(&store, &info).replace("--", "-"));
        let page = page.replace("</html>", &format!("{mark}</html>"));
        let file = self.output.unwrap_or_else(|| free(info.id.0, &mark));
        output::write(&file, page.as_bytes())?;
        if self.json {
            return output::print_json(&Document { campaign: info.id.0, file, bytes: page.len() });
        }
        let (measurements, size) = (counted(records.len() as u64, "measurement"), page.len() / 1000);
        output::print(&format!("{}: {measurements}, {size} kB\n", file.display()))
    }
}

/// The file of a campaign's page in this directory: `pinwise-ID.html`, or where another campaign's page has that name, the first that
/// is free or its own.
fn free(id: i64, mark: &str) -> PathBuf {
    let of_another = |path: &PathBuf| fs::read(path).is_ok_and(|page| !String::from_utf8_lossy(&page).contains(mark));
    let first = PathBuf::from(format!("pinwise-{id}.html"));
    let mut next = (2..=u32::MAX).map(|copy| PathBuf::from(format!("pinwise-{id}-{copy}.html")));
    if of_another(&first) { next.find(|path| !of_another(path)).unwrap_or(first) } else { first }
}
