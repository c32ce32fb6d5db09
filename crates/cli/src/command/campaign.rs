//! `pinwise campaign`: what was measured.

mod export;

use crate::command::{
    characterize, compare, cosched, latency, pairs, place, select, threads, tune,
};
use crate::events::{self, Terminal};
use crate::output::{self, Usage, print, print_data, print_json};
use crate::own_stores;
use crate::store::StoreArguments;
use clap::{Args, Subcommand};
use export::CampaignFormat;
use pinwise_campaign::{CampaignId, CampaignInfo, CampaignState, Kind, Listing, Store, StoreError};
use pinwise_jobs::{
    Answer, Caller, DeleteError, Deleted, DeletedContents, Deletion, JobError, Named,
};
use pinwise_present::{
    Notice, Summary, SummaryVerdict, campaign_state, figures, notice, one_line, shell, tagged,
    texts,
};
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

/// List, show, resume, export and delete stored campaigns
///
/// A campaign is all measurements for one question. Each measurement is on disk before the next one
/// begins. A campaign that was killed resumes, and ends as it would have. The store is an SQLite
/// file.
#[derive(Subcommand)]
#[command(after_help = "Examples:
  pinwise campaign list
  pinwise campaign resume 7
  pinwise campaign export 7 > measurements.csv
  pinwise campaign delete 3 4")]
pub(crate) enum Campaign {
    /// List the campaigns in the store
    List {
        #[command(flatten)]
        store: StoreArguments,
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Show the result of a campaign, or how far it got
    Show(One),
    /// Continue a campaign that was interrupted or killed
    Resume {
        #[command(flatten)]
        one: One,
        /// Resume from a store that your pinwise did not make
        #[arg(long)]
        trust: bool,
    },
    /// Print all measurements of a campaign, for other tools
    Export {
        #[command(flatten)]
        one: Id,
        /// Choose the format
        #[arg(long, value_enum, default_value_t = CampaignFormat::Csv)]
        format: CampaignFormat,
    },
    /// Delete campaigns with all their measurements. Their plans stay
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
    /// The store and what is known about the campaign.
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
        let reason = "there is no store yet; run pinwise place, or name another file with --store";
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
            Self::Resume { one, trust } => resume(&one, trust),
            Self::Export { one, format } => {
                let (store, info) = one.open()?;
                let named = one.store.named();
                match format {
                    CampaignFormat::Csv => {
                        print_data(&export::csv(&export::document(&store, info, &|_| None)?))
                    }
                    CampaignFormat::Json => {
                        let answer = |info: &CampaignInfo| document(&store, info, named);
                        print_json(&export::document(&store, info, &answer)?)
                    }
                }
            }
            Self::Delete { ids, store } => delete(&store, ids),
        }
    }
}

/// A campaign in `list`.
#[derive(Serialize)]
struct ListedCampaignJson {
    id: CampaignId,
    kind: Kind,
    parent: Option<CampaignId>,
    verdict: Option<SummaryVerdict>,
    parameter: Option<u32>,
    /// The answer with its kind, its values and its text.
    answer: Option<Value>,
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

impl ListedCampaignJson {
    /// A campaign among `kinds` of all that are there, and the measurements of its parts.
    fn new(info: CampaignInfo, kinds: &BTreeMap<CampaignId, Kind>, of_parts: u64) -> Self {
        let parent = info.new.parent.as_ref().map(|parent| parent.id);
        let summary = pinwise_jobs::summary(&info);
        Self {
            id: info.id,
            kind: info.new.kind,
            parent,
            verdict: summary.as_ref().and_then(Summary::verdict),
            parameter: match &summary {
                Some(Summary::Threads { n, .. }) => Some(*n),
                Some(Summary::Tune { n, .. }) => *n,
                _ => None,
            },
            answer: summary.as_ref().map(|summary| tagged(summary, summary.text())),
            started: info.started,
            state: campaign_state(&info),
            part_of: parent.and_then(|parent| kinds.get(&parent)).map(|kind| kind.name()),
            measurements: info.records + of_parts,
            workload: info.new.workload.name,
            threads: info.new.workload.threads.len(),
            machine: info.new.machine.name,
            unit: info.new.unit.name,
            seed: info.new.seed,
            command: info.new.command,
        }
    }

    /// The program with its arguments. The workload of a placement has the program's name alone.
    fn ran(&self) -> Cow<'_, str> {
        let program = self.command.splitn(2, |word| word == "--").nth(1);
        match program.filter(|_| self.kind == Kind::Place && self.parent.is_none()) {
            Some(words) if !words.is_empty() => shell(words).into(),
            _ => (&*self.workload).into(),
        }
    }
}

/// The document of `list`.
#[derive(Serialize)]
struct CampaignListJson {
    campaigns: Vec<ListedCampaignJson>,
    unreadable: Vec<Unreadable>,
}

/// A campaign that cannot be read.
#[derive(Serialize)]
struct Unreadable {
    id: CampaignId,
    #[serde(flatten)]
    error: StoreError,
    reason: String,
}

fn list(store: &StoreArguments, json: bool) -> anyhow::Result<()> {
    // The default store need not exist yet; one that the user names has to.
    let store =
        if store.named().is_some() { Some(existing(store)?) } else { store.open_existing()? };
    let Listing { campaigns, unreadable } =
        store.map_or_else(|| Ok(Listing::default()), |store| store.list())?;
    let kinds = campaigns.iter().map(|info| (info.id, info.new.kind)).collect();
    let parent = |info: &CampaignInfo| info.new.parent.as_ref().map(|parent| parent.id);
    let records: Vec<_> =
        campaigns.iter().map(|info| (info.id, parent(info), info.records)).collect();
    let of_parts = records_of_parts(&records);
    let listed = |info: CampaignInfo| {
        let of_parts = of_parts.get(&info.id).copied().unwrap_or_default();
        ListedCampaignJson::new(info, &kinds, of_parts)
    };
    let campaigns: Vec<ListedCampaignJson> = campaigns.into_iter().map(listed).collect();
    let unreadable = unreadable.into_iter().map(|(id, error)| {
        let reason = error.to_string();
        Unreadable { id, error, reason }
    });
    let unreadable: Vec<Unreadable> = unreadable.collect();
    if json {
        return print_json(&CampaignListJson { campaigns, unreadable });
    }
    for Unreadable { id, reason, .. } in &unreadable {
        output::aside(&format!("note: campaign {} cannot be read: {reason}", id.0));
    }
    if campaigns.is_empty() && unreadable.is_empty() {
        return print("No campaigns yet: start one with pinwise place.\n");
    }
    print(&table(campaigns, &unreadable, output::bounded_width().unwrap_or(usize::MAX)))
}

/// The campaigns, each on one line of at most `width` columns. A part is indented below its whole.
fn table(campaigns: Vec<ListedCampaignJson>, unreadable: &[Unreadable], width: usize) -> String {
    let mut rows: BTreeMap<[CampaignId; 2], [String; 7]> = BTreeMap::new();
    for Unreadable { id, .. } in unreadable {
        let mut row: [String; 7] = std::array::from_fn(|_| "-".to_owned());
        (row[0], row[3]) = (id.0.to_string(), "unreadable".to_owned());
        rows.insert([*id; 2], row);
    }
    for campaign in campaigns {
        let (id, parent) = (campaign.id, campaign.parent.filter(|_| campaign.part_of.is_some()));
        let ran = one_line(&campaign.ran()).into_owned();
        let started = figures::date(campaign.started);
        let row = [
            format!("{}{}", if parent.is_some() { "  " } else { "" }, id.0),
            campaign.kind.name().replace('_', " "),
            started.trim_end_matches(" UTC").to_owned(),
            campaign.state.to_owned(),
            campaign.measurements.to_string(),
            campaign.answer.map_or("-".into(), |answer| texts(&[answer]).concat()),
            ran,
        ];
        rows.insert([parent.unwrap_or(id), id], row);
    }
    let mut table = vec![COLUMNS.map(str::to_owned)];
    table.extend(rows.into_values());
    let widths: [usize; 7] = std::array::from_fn(|column| {
        table.iter().map(|row| row[column].chars().count()).max().unwrap_or_default()
    });
    // The last column is a command, which may be a script: it gets what the others leave.
    let left = |shown: &[usize]| {
        let others = shown.iter().map(|&column| widths[column] + 2).sum::<usize>() + 1;
        width.saturating_sub(others)
    };
    let choices: [&[usize]; 3] = [&[0, 1, 2, 3, 4, 5], &[0, 1, 2, 3, 5], &[0, 1, 3, 5]];
    let fits = |shown: &&[usize]| left(shown) >= LEAST_WORKLOAD;
    let shown = choices.into_iter().find(fits).unwrap_or(choices[2]);
    let left = left(shown).max(LEAST_WORKLOAD);
    let line = |row: &[String; 7]| {
        let cells = shown.iter().map(|&column| (&row[column], widths[column]));
        let cells: String = cells.map(|(cell, width)| format!("{cell:<width$}  ")).collect();
        format!(" {cells}{}", shortened(&row[6], left)).trim_end().to_owned() + "\n"
    };
    table.iter().map(line).collect()
}

/// The columns of the list.
const COLUMNS: [&str; 7] =
    ["id", "kind", "started (UTC)", "state", "measured", "verdict", "workload"];

/// Columns that a workload gets however narrow the terminal.
const LEAST_WORKLOAD: usize = 7;

/// The begin of a text, with an ellipsis where it is longer than `most` characters.
fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most - 1).collect();
    format!("{}…", kept.trim_end())
}

fn delete(store: &StoreArguments, ids: Vec<i64>) -> anyhow::Result<()> {
    let mut store = existing(store)?;
    let ids = ids.into_iter().map(CampaignId).collect();
    let Deletion { copy, deleted } =
        pinwise_jobs::delete(&ids, &mut store).map_err(|error| match error {
            DeleteError::Part { .. } | DeleteError::Store(StoreError::NoCampaign { .. }) => {
                anyhow::Error::from(Usage(error.to_string()))
            }
            error => error.into(),
        })?;
    if let Some(copy) = copy {
        output::aside(&format!("note: {}", notice(&Notice::StoreUpgraded { copy })));
    }
    for Deleted { id, contents } in deleted {
        let Some(DeletedContents { parts, records, plan }) = contents else {
            print(&format!("campaign {} deleted, which could not be read\n", id.0))?;
            continue;
        };
        let parts = match parts {
            0 => String::new(),
            parts => format!(" and its {}", figures::counted(parts as u64, "part")),
        };
        let measurements = figures::counted(records, "measurement");
        let kept =
            plan.map(|plan| format!("; its plan stays: {}", plan.display())).unwrap_or_default();
        print(&format!("campaign {}{parts} deleted: {measurements}{kept}\n", id.0))?;
    }
    Ok(())
}

fn show(one: &One) -> anyhow::Result<()> {
    let (store, info) = one.id.open()?;
    let caller = Caller { store: one.id.store.named().map(Path::to_owned), ..Caller::default() };
    let answer = pinwise_jobs::answer(info.id, &caller, &store)
        .map_err(|error| events::explained(error, &caller, &store))?;
    print_answer(&store, &answer, one)?;
    if let Some(whole) = info.new.parent.as_ref().filter(|_| !one.json) {
        let [id, whole] = [info.id.0, whole.id.0];
        output::aside(&format!("note: campaign {id} is a part of campaign {whole}"));
    }
    if !one.json && !info.new.command.is_empty() {
        // The list has the begin of it only.
        let command = shell(&info.new.command);
        output::aside(&format!("note: campaign {} was begun with: {command}", info.id.0));
    }
    Ok(())
}

fn resume(one: &One, trust: bool) -> anyhow::Result<()> {
    let (mut store, info) = one.id.open()?;
    if !trust && !own_stores::is_own(&store) {
        for Named { field, text } in pinwise_jobs::named_in(&store, info.id)? {
            output::aside(&format!("note: it has {field}: {text}"));
        }
        return Err(Usage(format!(
            "campaign {}: your pinwise did not make {}: read above what it runs, writes and \
             removes, then add --trust",
            info.id.0,
            store.path().display()
        ))
        .into());
    }
    let caller = events::caller(one.id.store.named())?;
    if let Some(parent) = &info.new.parent
        && store.get(parent.id).is_ok_and(|whole| whole.state != CampaignState::Finished)
    {
        let (id, whole) = (info.id.0, parent.id.0);
        output::aside(&format!(
            "note: campaign {id} is a part of campaign {whole}; to continue the whole, resume \
             {whole}"
        ));
    }
    if info.state == CampaignState::Finished {
        output::aside(&format!(
            "note: campaign {} has finished: there is nothing to resume",
            info.id.0
        ));
    }
    let resumed = pinwise_jobs::resume(info.id, &caller, &mut store, &mut Terminal::new(one.json));
    let answer = match resumed {
        Ok(answer) => answer,
        Err(error) => {
            // It is ended like this where it has no budget, so there is always an answer so far.
            // One that did not begin again has no other answer than before.
            let began = matches!(error, JobError::Interrupted(_) | JobError::Failed(_));
            if began
                && info.new.kind == Kind::Cosched
                && let Ok(so_far) = pinwise_jobs::answer(info.id, &caller, &store)
            {
                print_answer(&store, &so_far, one)?;
            }
            return Err(events::explained(error, &caller, &store));
        }
    };
    print_answer(&store, &answer, one)
}

/// The records of each campaign's parts, those of their parts included. Each campaign comes with
/// its parent and its own records.
fn records_of_parts(
    campaigns: &[(CampaignId, Option<CampaignId>, u64)],
) -> BTreeMap<CampaignId, u64> {
    let parents: BTreeMap<CampaignId, CampaignId> =
        campaigns.iter().filter_map(|&(id, parent, _)| Some((id, parent?))).collect();
    let mut of_parts: BTreeMap<CampaignId, u64> = BTreeMap::new();
    for (part, _, records) in campaigns {
        // A damaged store may have a circle of parents.
        let above = std::iter::successors(parents.get(part), |id| parents.get(id));
        for parent in above.take(parents.len()) {
            *of_parts.entry(*parent).or_default() += records;
        }
    }
    of_parts
}

/// The document of `campaign show --json`. `None`: the campaign is a part that has no answer, or
/// the answer cannot be read. Then a note on standard error says why.
fn document(store: &Store, info: &CampaignInfo, named: Option<&Path>) -> Option<Value> {
    if info.new.kind.is_part() {
        return None;
    }
    let caller = Caller { store: named.map(Path::to_owned), ..Caller::default() };
    let answer = pinwise_jobs::answer(info.id, &caller, store).map_err(anyhow::Error::from);
    let document = answer.and_then(|answer| match answer {
        Answer::Place(answer) => Ok(place::json(&answer, named)),
        Answer::Compare(answer) => compare::json(store, &answer, named),
        Answer::Select(answer) => Ok(select::json(&answer, named)),
        Answer::Characterize(answer) => Ok(characterize::json(store, &answer, named)?),
        Answer::Latency(answer) => Ok(latency::json(&answer, named)?),
        Answer::Pairs(answer) => Ok(pairs::json(&answer, named)?),
        Answer::Cosched(answer) => Ok(cosched::json(&answer, named)?),
        Answer::Tune(answer) => Ok(tune::json(&answer, named)),
        Answer::Threads(answer) => Ok(threads::json(&answer, named)?),
        Answer::Calibrate(answer) => Ok(threads::calibration_json(&answer, named)?),
    });
    document
        .inspect_err(|error| {
            output::aside(&format!(
                "note: campaign {}: the answer is left out: {error}",
                info.id.0
            ));
        })
        .ok()
}

fn print_answer(store: &Store, answer: &Answer, one: &One) -> anyhow::Result<()> {
    let named = one.id.store.named();
    match answer {
        Answer::Place(answer) => place::print_answer(answer, named, one.json),
        Answer::Compare(answer) => compare::print_answer(store, answer, named, one.json),
        Answer::Select(answer) => select::print_answer(answer, named, one.json),
        Answer::Characterize(answer) => {
            characterize::print_answer(store, answer, named, None, one.json)
        }
        Answer::Latency(answer) => latency::print_answer(answer, named, one.json),
        Answer::Pairs(answer) => pairs::print_answer(answer, named, one.json),
        Answer::Cosched(answer) => cosched::print_answer(answer, named, one.json),
        Answer::Tune(answer) => tune::print_answer(answer, named, one.json, false),
        Answer::Threads(answer) => threads::print_answer(answer, named, one.json, false),
        Answer::Calibrate(answer) => threads::print_calibration(answer, named, one.json),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_campaign::Parent;

    fn listed(
        id: i64,
        kind: Kind,
        parent: Option<i64>,
        verdict: &str,
        workload: &str,
    ) -> ListedCampaignJson {
        ListedCampaignJson {
            id: CampaignId(id),
            kind,
            parent: parent.map(CampaignId),
            verdict: None,
            parameter: None,
            answer: Some(serde_json::json!({ "text": verdict })),
            started: 1_795_231_081,
            state: "finished",
            measurements: 240,
            workload: workload.to_owned(),
            threads: 4,
            machine: "m".to_owned(),
            unit: "s".to_owned(),
            seed: 1,
            command: Vec::new(),
            part_of: parent.map(|_| "tune"),
        }
    }

    fn campaigns() -> Vec<ListedCampaignJson> {
        let script = "sh -c 'while read -r line; do echo \"$line\" | gzip -c > /dev/null; done'";
        vec![
            listed(7, Kind::Tune, None, "n = 4, pinned, +12.3 %", script),
            listed(8, Kind::Characterize, None, "nothing critical", "ultrasparc-t2"),
            listed(9, Kind::Threads, Some(7), "n = 4", script),
        ]
    }

    #[test]
    fn a_part_is_indented_below_its_whole_and_a_script_is_cut() {
        let expected = " \
id   kind          started (UTC)     state     measured  verdict                 workload
 7    tune          2026-11-21 03:18  finished  240       n = 4, pinned, +12.3 %  sh -c 'while read…
   9  threads       2026-11-21 03:18  finished  240       n = 4                   sh -c 'while read…
 8    characterize  2026-11-21 03:18  finished  240       nothing critical        ultrasparc-t2
";
        assert_eq!(table(campaigns(), &[], 100), expected);
    }

    #[test]
    fn a_placement_is_listed_with_the_arguments_of_its_program() {
        let mut place = listed(1, Kind::Place, None, "undecided", "openssl");
        assert_eq!(place.ran(), "openssl");
        place.command =
            ["pinwise", "place", "--", "openssl", "speed", "a b"].map(Into::into).into();
        assert_eq!(place.ran(), "openssl speed 'a b'");
        place.command.truncate(3);
        assert_eq!(place.ran(), "openssl");
    }

    #[test]
    fn a_part_belongs_to_the_kind_of_its_parent_whatever_its_command_says() {
        let kinds = [(CampaignId(1), Kind::Tune)].into();
        let part_of = |parent: Option<i64>| {
            let mut info = crate::plan::tests::campaign(CampaignState::Open, None);
            info.new.parent = parent.map(|id| Parent::new(CampaignId(id), &"part"));
            ListedCampaignJson::new(info, &kinds, 0).part_of
        };
        assert_eq!([Some(1), Some(2), None].map(part_of), [Some("tune"), None, None]);
    }

    #[test]
    fn a_campaign_counts_the_records_of_its_parts_and_of_theirs() {
        let row =
            |id, parent: Option<i64>, records| (CampaignId(id), parent.map(CampaignId), records);
        let of_parts = |rows: &[_]| {
            let counted = records_of_parts(rows);
            counted.into_iter().map(|(id, records)| (id.0, records)).collect::<Vec<_>>()
        };
        let tune = [row(1, None, 0), row(2, Some(1), 5), row(3, Some(2), 7), row(4, Some(1), 20)];
        assert_eq!(of_parts(&tune), [(1, 32), (2, 7)]);
        let circle = of_parts(&[row(1, Some(2), 1), row(2, Some(1), 1)]);
        assert_eq!(circle.len(), 2);
    }

    #[test]
    fn a_list_fits_a_narrow_terminal() {
        for width in [64, 80, 100, 170] {
            let text = table(campaigns(), &[], width);
            assert!(text.lines().all(|line| line.chars().count() <= width), "{width}: {text}");
        }
    }
}
