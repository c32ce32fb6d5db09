//! `pinwise campaign`: what was measured.

mod export;

use crate::command::place;
use crate::comparison;
use crate::output::{Usage, print, print_json};
use crate::plan;
use crate::selection;
use crate::store::StoreArguments;
use clap::{Args, Subcommand};
use comfy_table::{Table, presets};
use export::Format;
use pinwise_campaign::{
    CampaignId, CampaignInfo, CampaignState, Listing, Record, Store, StoreError,
};
use pinwise_placement::{Outcome, Question, Search};
use pinwise_present::figures;
use pinwise_present::{Files, shell};
use pinwise_topology::SharingTree;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// List, show, resume, export and delete what was measured.
///
/// Every question that pinwise answers by measuring is a campaign. Its measurements are on disk
/// before the next one is made, so a campaign that was killed can be resumed and ends as it would
/// have. The store is an SQLite file.
#[derive(Subcommand)]
#[command(after_help = "Examples:
  pinwise campaign list
  pinwise campaign resume 7
  pinwise campaign export 7 > measurements.csv
  pinwise campaign delete 3 4
  sqlite3 ~/.local/share/pinwise/pinwise.db \\
    'SELECT assignment, avg(performance) FROM record WHERE campaign = 7 GROUP BY 1 ORDER BY 2'")]
pub(crate) enum Campaign {
    /// List every campaign in the store.
    List {
        #[command(flatten)]
        store: StoreArguments,
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Show the outcome of a campaign, as far as it came.
    Show(One),
    /// Go on with a campaign that was interrupted or killed.
    Resume(One),
    /// Write every measurement of a campaign, for other tools.
    Export {
        #[command(flatten)]
        one: Id,
        /// How to write them
        #[arg(long, value_enum, default_value_t = Format::Csv)]
        format: Format,
    },
    /// Delete campaigns with all their measurements, for good; plans made from them stay.
    Delete {
        /// Their numbers, as `pinwise campaign list` shows them
        #[arg(required = true, value_parser = number)]
        ids: Vec<i64>,
        #[command(flatten)]
        store: StoreArguments,
    },
}

/// One campaign and how to print it.
#[derive(Args)]
pub(crate) struct One {
    #[command(flatten)]
    id: Id,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// One campaign of a store.
#[derive(Args)]
pub(crate) struct Id {
    /// Its number, as `pinwise campaign list` shows it
    #[arg(value_parser = number)]
    pub(crate) id: i64,
    #[command(flatten)]
    pub(crate) store: StoreArguments,
}

impl Id {
    /// The store and what is known of the campaign.
    pub(crate) fn open(&self) -> anyhow::Result<(Store, CampaignInfo)> {
        let store = existing(&self.store)?;
        let info = find(&store, self.id)?;
        Ok((store, info))
    }
}

/// A campaign as the command line names it.
pub(crate) fn number(text: &str) -> Result<i64, String> {
    text.parse().map_err(|_| {
        "expected the number of a campaign, as `pinwise campaign list` shows it".into()
    })
}

/// The store, which a command about given campaigns needs.
fn existing(store: &StoreArguments) -> anyhow::Result<Store> {
    let Some(store) = store.open_existing()? else {
        let path = store.path()?;
        let reason =
            "there is no store yet; pinwise place makes one, or name another file with --store";
        return Err(Usage(format!("{}: {reason}", path.display())).into());
    };
    Ok(store)
}

fn find(store: &Store, id: i64) -> anyhow::Result<CampaignInfo> {
    store.get(CampaignId(id)).map_err(|error| match error {
        unknown @ StoreError::NoCampaign { .. } => Usage(unknown.to_string()).into(),
        error => error.into(),
    })
}

impl Campaign {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self {
            Self::List { store, json } => list(&store, json),
            Self::Show(one) => show(&one),
            Self::Resume(one) => {
                let (store, info) = one.id.open()?;
                if let Some(compared) = comparison::of(&info) {
                    return super::compare::resume(
                        store,
                        &info,
                        &compared,
                        one.id.store.named(),
                        one.json,
                    );
                }
                if let Some(selected) = selection::of(&info) {
                    return super::select::resume(
                        store,
                        &info,
                        &selected,
                        one.id.store.named(),
                        one.json,
                    );
                }
                super::place::resume(store, &info, one.id.store.named(), one.json)
            }
            Self::Export { one, format } => {
                let (store, info) = one.open()?;
                let records = store.records(info.id)?;
                match format {
                    Format::Csv => print(&export::csv(&info, &records)),
                    Format::Json => print_json(&export::document(&info, &records)),
                }
            }
            Self::Delete { ids, store } => delete(&store, &ids),
        }
    }
}

/// A campaign in `list`.
#[derive(Serialize)]
struct Listed {
    id: CampaignId,
    started: i64,
    state: &'static str,
    measurements: u64,
    workload: String,
    threads: usize,
    machine: String,
    unit: String,
    seed: u64,
    command: Vec<String>,
    part_of: Option<&'static str>,
}

impl From<CampaignInfo> for Listed {
    fn from(info: CampaignInfo) -> Self {
        Self {
            id: info.id,
            started: info.started,
            state: state(&info),
            part_of: part_of(&info),
            measurements: info.records,
            workload: info.new.workload.name,
            threads: info.new.workload.threads.len(),
            machine: info.new.machine.name,
            unit: info.new.unit.name,
            seed: info.new.seed,
            command: info.new.command,
        }
    }
}

/// The command of whose answer a campaign is a part; `None` where it has an answer of its own.
fn part_of(info: &CampaignInfo) -> Option<&'static str> {
    // Commands may be shortened as far as they stay apart.
    let word = info.new.command.get(1).filter(|word| !word.is_empty())?;
    let command =
        ["tune", "compare"].into_iter().find(|command| command.starts_with(word.as_str()))?;
    (command == "tune" || comparison::of(info).is_none()).then_some(command)
}

/// The document of `list`.
#[derive(Serialize)]
struct Document {
    campaigns: Vec<Listed>,
}

fn state(info: &CampaignInfo) -> &'static str {
    match info.state {
        CampaignState::Open if info.running => "running",
        CampaignState::Open => "killed",
        CampaignState::Finished => "finished",
        CampaignState::Stopped => "stopped",
    }
}

fn list(store: &StoreArguments, json: bool) -> anyhow::Result<()> {
    // The store that is found by itself need not be there yet; one that is named has to.
    let store =
        if store.named().is_some() { Some(existing(store)?) } else { store.open_existing()? };
    let Listing { campaigns, unreadable } =
        store.map_or_else(|| Ok(Listing::default()), |store| store.list())?;
    let campaigns: Vec<Listed> = campaigns.into_iter().map(Listed::from).collect();
    if json {
        print_json(&Document { campaigns })?;
    } else if !campaigns.is_empty() {
        print(&table(campaigns))?;
    } else if unreadable.is_empty() {
        print("No campaigns yet: pinwise place begins one.\n")?;
    }
    // What can be read is listed all the same.
    let numbers: Vec<String> = unreadable.iter().map(|(id, _)| id.0.to_string()).collect();
    let left_out = match &numbers[..] {
        [one] => format!("campaign {one} is left out"),
        several => format!("campaigns {} are left out, the first because", several.join(", ")),
    };
    match unreadable.into_iter().next() {
        Some((_, error)) => Err(anyhow::Error::from(error).context(left_out)),
        None => Ok(()),
    }
}

fn table(campaigns: Vec<Listed>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header([
        "ID",
        "STARTED",
        "STATE",
        "MEASUREMENTS",
        "THREADS",
        "PART OF",
        "WORKLOAD",
    ]);
    for campaign in campaigns {
        table.add_row([
            campaign.id.0.to_string(),
            figures::date(campaign.started),
            campaign.state.to_owned(),
            campaign.measurements.to_string(),
            campaign.threads.to_string(),
            campaign.part_of.unwrap_or("-").to_owned(),
            campaign.workload,
        ]);
    }
    table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// Deletes the campaigns, none if one of them does not exist.
fn delete(store: &StoreArguments, ids: &[i64]) -> anyhow::Result<()> {
    let mut store = existing(store)?;
    let infos = ids.iter().map(|id| find(&store, *id)).collect::<anyhow::Result<Vec<_>>>()?;
    for info in infos {
        let plan = plan::beside(&store, &info);
        store.delete(info.id)?;
        let measurements = figures::counted(info.records, "measurement");
        let kept =
            plan.map(|plan| format!("; its plan stays: {}", plan.display())).unwrap_or_default();
        print(&format!("campaign {} deleted: {measurements}{kept}\n", info.id.0))?;
    }
    Ok(())
}

fn show(one: &One) -> anyhow::Result<()> {
    let (store, info) = one.id.open()?;
    if let Some(compared) = comparison::of(&info) {
        return comparison::print(&store, &info, &compared, one.id.store.named(), one.json);
    }
    if let Some(selected) = selection::of(&info) {
        return selection::print(
            &info,
            &selected,
            &store.records(info.id)?,
            one.id.store.named(),
            one.json,
        );
    }
    let outcome = outcome(&store, &info, &store.records(info.id)?, one.id.store.named())?;
    let plan = plan::beside(&store, &info);
    let files = Files { plan: plan.as_deref(), store: one.id.store.named() };
    if one.json {
        return print_json(&crate::outcome::document(&info, &outcome, files.plan));
    }
    print(&pinwise_present::outcome_text(&info, &outcome, files, crate::output::width()))
}

/// One line for a campaign whose `part` ("its answer") another version of pinwise wrote in another
/// form.
pub(crate) fn unreadable(
    info: &CampaignInfo,
    part: &str,
    error: &serde_json::Error,
) -> anyhow::Error {
    let id = info.id.0;
    anyhow::anyhow!(
        "campaign {id}: {part} is not in the form of this version of pinwise ({error}): look at it with the version that made it, take its \
         measurements (pinwise campaign export {id}), or ask again: {}",
        shell(&info.new.command)
    )
}

/// The conclusion of a campaign, or what its `records` answer already; `named` is the store, where
/// commands have to name it.
pub(crate) fn outcome(
    store: &Store,
    info: &CampaignInfo,
    records: &[Record],
    named: Option<&Path>,
) -> anyhow::Result<Outcome> {
    if let Some(conclusion) = &info.conclusion {
        return Outcome::deserialize(conclusion)
            .map_err(|error| unreadable(info, "its answer", &error));
    }
    let question = Question::deserialize(&info.new.question)
        .map_err(|error| unreadable(info, "its question", &error))?;
    let tree = SharingTree::new(&info.new.machine, info.new.alike);
    let search = Search::replay(&question, &tree, &info.new.workload, records)?;
    let ended = match state(info) {
        "running" => "it is still running".to_owned(),
        state => {
            let flag = Files { plan: None, store: named }.flag();
            format!("it was {state}; go on with: pinwise campaign resume {}{flag}", info.id.0)
        }
    };
    Ok(Outcome {
        notes: place::notes(store, info.id)?,
        ..search.outcome(&info.new.unit, records, Some(&ended))
    })
}
