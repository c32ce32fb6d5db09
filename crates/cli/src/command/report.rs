//! `pinwise report`: a campaign, or the characterization of a machine, as one page.

mod machine;

use crate::command::campaign::{self, Id};
use crate::events;
use crate::output;
use crate::page_file::free;
use crate::store::StoreArguments;
use anyhow::Context as _;
use clap::{Args, Subcommand};
use machine::OfMachine;
use pinwise_campaign::{CampaignInfo, Store};
use pinwise_characterization::StoredCharacterization;
use pinwise_jobs::Caller;
use pinwise_present::Files;
use pinwise_present::figures::counted;
use pinwise_report::{campaign_mark, campaign_page};
use pinwise_topology::Fingerprint;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Write a campaign as one HTML page that works offline
///
/// The page shows the placement on the machine, all windows of best and baseline, and all
/// sampled assignments. It also shows the bound with its plots, the question and its cost. A
/// comparison shows the losses of all ways, what each measurement gained, and which claims hold. A
/// selection shows what runs where, and the result of every selection. A search for number and
/// placement shows its ways on fresh windows, and links its parts. If the machine was
/// characterized, heat maps show what its levels share. Campaigns that still run or were killed
/// have pages, too.
#[derive(Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    disable_help_subcommand = true,
    after_help = "Examples:
  pinwise report 3                     writes pinwise-3.html
  pinwise report 3 -o placement.html   writes placement.html
  pinwise report characterization      writes pinwise-characterization.html"
)]
pub(crate) struct Report {
    #[command(subcommand)]
    machine: Option<PageOf>,
    /// Its number, as `pinwise campaign list` shows it
    #[arg(required = true, value_parser = campaign::number)]
    id: Option<i64>,
    #[command(flatten)]
    store: StoreArguments,
    /// Write to FILE [default: pinwise-ID.html in this directory, or pinwise-ID-2.html if that
    /// belongs to another campaign]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// What the page is of, where it is no campaign.
#[derive(Subcommand)]
enum PageOf {
    Characterization(OfMachine),
}

/// What was written.
#[derive(Serialize)]
struct ReportJson {
    campaign: i64,
    file: PathBuf,
    bytes: usize,
}

impl Report {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        if let Some(PageOf::Characterization(machine)) = self.machine {
            return machine.run();
        }
        // Without a subcommand clap requires it.
        let id = self.id.context("the number of the campaign is missing")?;
        let asked = Id { id, store: self.store };
        let (store, info) = asked.open()?;
        let plan = pinwise_jobs::plan_path(&store, &info);
        let files = Files { plan: plan.as_deref(), store: asked.store.named() };
        let caller = Caller { store: asked.store.named().map(Path::to_owned), ..Caller::default() };
        let answer = pinwise_jobs::answer(info.id, &caller, &store)
            .map_err(|error| events::explained(error, &caller, &store))?;
        let characterization = characterized(&store, &info);
        let page = campaign_page(&store, &info, &answer, files, characterization.as_ref())?;
        let mark = campaign_mark(&store, &info);
        let usual = || free(&format!("pinwise-{}", info.id.0), &mark);
        let file = output::write_page(self.output, usual, &page)?;
        if self.json {
            return output::print_json(&ReportJson {
                campaign: info.id.0,
                file,
                bytes: page.len(),
            });
        }
        // Some have no records of their own, but parts.
        let measured = match info.records {
            0 => pinwise_jobs::record_count(&store, info.id)?,
            own => own,
        };
        let (measurements, size) = (counted(measured, "measurement"), page.len() / 1000);
        output::print(&format!("{}: {measurements}, {size} kB\n", file.display()))
    }
}

/// The characterization of a campaign's machine. A machine that cannot be read is named, and the
/// page is made all the same.
fn characterized(store: &Store, info: &CampaignInfo) -> Option<StoredCharacterization> {
    StoredCharacterization::latest(store, &Fingerprint::of(&info.new.machine)).unwrap_or_else(
        |error| {
            output::aside(&format!(
                "note: the page is without the machine's characterization: {error}"
            ));
            None
        },
    )
}
