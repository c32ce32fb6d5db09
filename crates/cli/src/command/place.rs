//! `pinwise place`: where each thread should run, how good that is, and how to apply it.

mod arguments;
mod blackbox;
mod change;
mod instances;
mod part;
mod rehearsal;
mod room;
mod search;
mod simulation;
mod stored;
mod subject;
mod testbed;

pub(crate) use arguments::{PROFILING, Place};
pub(crate) use blackbox::{decide, prepare as prepare_profile};
pub(crate) use change::changed;
pub(crate) use part::{Measured, Watched, measure, notes, notes_of};
pub(crate) use room::too_few;
pub(crate) use search::{SearchArguments, confidence, fraction, time};
pub(crate) use simulation::SimulationArguments;
pub(crate) use stored::{StoredSearch, search_stored};
pub(crate) use subject::SubjectArguments;
pub(crate) use testbed::{Bed, allowed, open, ready};

use super::{apply, campaign};
use crate::interrupt::Interrupt;
use crate::outcome;
use crate::output::{self, Interrupted, Usage};
use crate::plan::{self, PlanArgument};
use crate::request::Request;
use anyhow::Context;
use pinwise_campaign::{CampaignId, CampaignInfo, CampaignState, Ending, Kind, NewCampaign, Store};
use pinwise_linux::{EndedThreads, PlanPinner, Scope};
use pinwise_placement::{Advice, Budget, Origin, Outcome, Plan, Search, SearchError, StrategyName};
use pinwise_present::figures;
use pinwise_present::{Files, is_simulated, shell};
use pinwise_topology::{Fingerprint, SharingTree};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The share of a budget from which it is said that it was spent before the first measurement.
const SPENT_NOTABLE: f64 = 0.2;

impl Place {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let begin = Instant::now();
        if self.blackbox.dry_run {
            return self.rehearse();
        }
        let program = std::env::current_exe().context("cannot find this program's own file")?;
        let mut request = self.request(&program.to_string_lossy())?;
        let interrupt = Interrupt::listen()?;
        let mut store = self.store.open()?;
        let asked = request.question.budget;
        if let Budget::Time(budget) = asked {
            request.deadline = Some(begin + budget);
        }
        let (request, bed, new) = prepare(request, self.built_in(), begin, &store, &interrupt)?;
        if let (Budget::Time(asked), Budget::Time(left)) = (asked, request.question.budget)
            && left < asked.mul_f64(1.0 - SPENT_NOTABLE)
        {
            let [spent, left] = [asked - left, left].map(figures::duration);
            output::aside(&format!(
                "note: {spent} of the budget went into getting to know the program, {left} are left"
            ));
        }
        ensure_choice(&request, &new)?;
        output::note_all(&too_few(&request, &bed, begin.elapsed()));
        let id = store.create(&new)?;
        let told = Told {
            json: self.json,
            plan: self.plan,
            store: self.store.named().map(Path::to_owned),
            apply: self.apply,
        };
        conduct(&mut store, id, &request, bed, &interrupt, &told)
    }
}

/// Gets to know the program, and decides what that has to say in the request: what is needed to
/// begin a campaign.
pub(crate) fn prepare(
    mut request: Request,
    built_in: Option<&str>,
    begin: Instant,
    store: &Store,
    interrupt: &Interrupt,
) -> anyhow::Result<(Request, Bed, NewCampaign)> {
    let bed = testbed::open(&request, interrupt)?;
    let unit = bed.testbed().unit().clone();
    request.affinities = bed.affinities();
    request.question.pieces = bed.testbed().profiles();
    request.question.restart = bed.restart(request.period);
    if request.question.strategy == StrategyName::Blackbox {
        blackbox::decide(&mut request.question.profile, Some(store), &bed.fingerprint());
        let name = built_in.map_or_else(|| bed.testbed().workload().name.clone(), str::to_owned);
        blackbox::prepare(&mut request, &bed, &name)?;
    }
    let spent = begin.elapsed();
    let Some(left) = request.question.budget.after(spent) else {
        let remedy =
            room::remedy(&request, &bed, spent).unwrap_or_else(|| "raise --budget".to_owned());
        anyhow::bail!(
            "{} went into getting to know the program, which is all of the budget: {remedy}",
            figures::duration(spent)
        );
    };
    request.question.budget = left;
    // The user's cap is in the unit shown; performance is higher-is-better.
    request.question.cap = request.question.cap.map(|cap| unit.quantity(cap));
    let mut workload = bed.testbed().workload().clone();
    if let Some(name) = built_in {
        workload.name = name.to_owned();
    }
    let new = NewCampaign {
        kind: Kind::Place,
        parent: None,
        command: std::env::args().collect(),
        machine: bed.testbed().machine().clone(),
        alike: request.question.alike,
        workload,
        unit,
        question: serde_json::to_value(&request)?,
        seed: request.question.seed,
    };
    // Before anything is stored: a question that has no answer makes no campaign.
    let tree = SharingTree::new(&new.machine, new.alike);
    Search::new(&request.question, &tree, &new.workload).map_err(|error| match error {
        SearchError::Local(_) | SearchError::Profiling(_) | SearchError::TooSmall { .. } => {
            anyhow::Error::from(Usage(error.to_string()))
        }
        error => error.into(),
    })?;
    if let [only] = tree.leaves() {
        let name = &new.workload.name;
        let only = only.0;
        let remedy = match request.cpus {
            Some(_) => "name more of them with --cpus",
            None => "allow it more (taskset -apc LIST PID)",
        };
        anyhow::bail!("{name} may run on CPU {only} only, so there is nothing to choose: {remedy}");
    }
    Ok((request, bed, new))
}

/// An error where there is one assignment only. Not for a search among several numbers of threads:
/// one that has a single assignment may be the best of them.
pub(crate) fn ensure_choice(request: &Request, new: &NewCampaign) -> anyhow::Result<()> {
    let tree = SharingTree::new(&new.machine, new.alike);
    if !Search::new(&request.question, &tree, &new.workload)?.has_no_choice() {
        return Ok(());
    }
    let count = new.workload.threads.len();
    let threads = figures::counted(count as u64, "thread");
    let remedy = match request.question.per_context {
        _ if is_simulated(&new.question) => "; allow it more contexts (--cpus)".to_owned(),
        Some(most) if count > 1 => format!("; allow more than {most} on each (--per-context)"),
        _ => String::new(),
    };
    anyhow::bail!(
        "{} has {threads} for {} contexts, all alike: there is one assignment only, so there is nothing to choose{remedy}",
        new.workload.name,
        tree.leaves().len()
    );
}

/// Goes on with a campaign that was interrupted or killed.
pub(crate) fn resume(
    mut store: Store,
    info: &CampaignInfo,
    named: Option<&Path>,
    json: bool,
) -> anyhow::Result<()> {
    let id = info.id;
    let told = Told { json, plan: None, store: named.map(Path::to_owned), apply: false };
    if info.state == CampaignState::Finished {
        return tell(&store, id, &told, plan::beside(&store, info).as_deref());
    }
    let request = Request::deserialize(&info.new.question)
        .map_err(|error| campaign::unreadable(info, "its question", &error))?;
    let interrupt = Interrupt::listen()?;
    let bed = testbed::open(&request, &interrupt)?;
    if let Some(change) = changed(info, &request, &bed) {
        anyhow::bail!(
            "campaign {}: {change}, so what was measured does not compare with what would be; begin a new one: {}",
            id.0,
            shell(&info.new.command)
        );
    }
    conduct(&mut store, id, &request, bed, &interrupt, &told)
}

/// What to do at the end.
struct Told {
    json: bool,
    /// Where the user wants the plan.
    plan: Option<PathBuf>,
    /// The store, where later commands have to name it.
    store: Option<PathBuf>,
    /// Pin the program as the plan says.
    apply: bool,
}

impl Told {
    fn files<'a>(&'a self, plan: Option<&'a Path>) -> Files<'a> {
        Files { plan, store: self.store.as_deref() }
    }
}

fn conduct(
    store: &mut Store,
    id: CampaignId,
    request: &Request,
    mut bed: Bed,
    interrupt: &Interrupt,
    told: &Told,
) -> anyhow::Result<()> {
    let info = store.get(id)?;
    let opened = if told.json { Ok(()) } else { output::print(&opening(&info)) };
    if let Err(error) = opened {
        // Nobody reads along: what was not begun is not left behind as a campaign that was killed.
        // That it is told is what counts.
        if info.records == 0 {
            let _ = store.delete(id);
        }
        return Err(error);
    }
    output::note_all(&bed.notes());
    let tree = SharingTree::new(&info.new.machine, info.new.alike);
    let mut search = Search::new(&request.question, &tree, &info.new.workload)?;
    let Measured { ending, records, notes } =
        measure(store, &info, request.question.budget, &mut search, &mut bed, interrupt)?;
    let resume = format!("pinwise campaign resume {}{}", id.0, told.files(None).flag());
    if !matches!(ending, Ending::Finished(_)) {
        output::note_all(&notes);
    }
    match ending {
        Ending::Finished(_) => {
            let outcome = Outcome { notes, ..search.outcome(&info.new.unit, &records, None) };
            store.conclude(id, CampaignState::Finished, Some(&serde_json::to_value(&outcome)?))?;
            let plan = keep_plan(store, &info, &outcome, bed.fingerprint(), told.plan.as_deref())?;
            tell(store, id, told, plan.as_deref())?;
            // First everything is put back: what is pinned from here on stays.
            drop(bed);
            match (told.apply, testbed::scope(&request.subject), plan) {
                (true, Some(scope), Some(plan)) => stay(&outcome, scope, &plan, told.json),
                _ => Ok(()),
            }
        }
        Ending::Interrupted if records.is_empty() => {
            store.delete(id)?;
            Err(Interrupted(format!(
                "interrupted before the first measurement: {}nothing is kept",
                bed.restored()
            ))
            .into())
        }
        Ending::Interrupted => {
            store.conclude(id, CampaignState::Stopped, None)?;
            let (restored, kept) = (bed.restored(), kept(records.len()));
            Err(Interrupted(format!("interrupted: {restored}{kept}; go on with: {resume}")).into())
        }
        Ending::Failed(reason) if records.is_empty() => {
            store.delete(id)?;
            anyhow::bail!("{reason}")
        }
        Ending::Failed(reason) => {
            store.conclude(id, CampaignState::Stopped, None)?;
            let next = match bed.measures_a_total() {
                true => format!("with --counter: {}", again(&info.new)),
                false => format!("once the cause is gone: {resume}"),
            };
            anyhow::bail!("{reason} ({} in campaign {}; {next})", kept(records.len()), id.0)
        }
    }
}

/// What to type where the metric was a total, which a campaign that was begun without --counter
/// cannot go on with.
fn again(new: &NewCampaign) -> String {
    let mut words = new.command.clone();
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    words.insert(end, "--counter".to_owned());
    shell(&words)
}

/// `1 measurement is kept`, `20 measurements are kept`.
pub(crate) fn kept(measurements: usize) -> String {
    let are = if measurements == 1 { "is" } else { "are" };
    format!("{} {are} kept", figures::counted(measurements as u64, "measurement"))
}

/// Pins the program for good where that is the advice.
fn stay(outcome: &Outcome, scope: Scope, plan: &Path, json: bool) -> anyhow::Result<()> {
    if outcome.advice != Advice::Pin {
        output::aside("note: nothing is applied: pinning did not win");
        return Ok(());
    }
    let plan = PlanArgument::at(plan).load()?;
    let mut pinner = PlanPinner::new(scope, plan::wanted(&plan), EndedThreads::Forgotten)
        .context("cannot look at the program's threads")?
        .noting(apply::ledger()?);
    let pinned = apply::pin(&mut pinner)?;
    // With --json the one document on stdout is the outcome.
    if !json {
        apply::print(&pinned)?;
    }
    apply::complete(&plan, &pinned, &pinner)
}

/// Tells a finished campaign's outcome.
fn tell(store: &Store, id: CampaignId, told: &Told, plan: Option<&Path>) -> anyhow::Result<()> {
    let info = store.get(id)?;
    let outcome = campaign::outcome(store, &info, &store.records(id)?, told.store.as_deref())?;
    if told.json {
        output::print_json(&outcome::document(&info, &outcome, plan))
    } else {
        output::print(&pinwise_present::outcome_text(
            &info,
            &outcome,
            told.files(plan),
            output::width(),
        ))
    }
}

/// Writes the plan where the user wants it, or beside the store.
fn keep_plan(
    store: &Store,
    info: &CampaignInfo,
    outcome: &Outcome,
    fingerprint: Fingerprint,
    wanted: Option<&Path>,
) -> anyhow::Result<Option<PathBuf>> {
    let tree = SharingTree::new(&info.new.machine, info.new.alike);
    let Some(mut plan) = Plan::from_outcome(&info.new.workload, &tree, fingerprint, outcome) else {
        return Ok(None);
    };
    plan.origin = Some(Origin {
        campaign: Some(plan::identity(store, info)),
        advice: outcome.advice,
        simulated: is_simulated(&info.new.question),
        notes: pinwise_present::notes(info, outcome),
    });
    match wanted {
        Some(path) => plan::write(path, &plan).map(|()| Some(path.to_owned())),
        None => plan::keep(store, &info.id.0.to_string(), &plan).map(Some),
    }
}

/// What is known before the first measurement: the machine, the threads by role, the campaign.
fn opening(info: &CampaignInfo) -> String {
    format!("{}campaign {}, seed {}\n\n", subject(&info.new), info.id.0, info.new.seed)
}

/// What is placed where.
pub(crate) fn subject(new: &NewCampaign) -> String {
    let machine = &new.machine;
    let contexts = figures::counted(machine.allowed.len() as u64, "context");
    let mut text = format!("{}: {contexts} allowed ({})\n", machine.name, machine.allowed);
    let threads = &new.workload.threads;
    let to_place = figures::counted(threads.len() as u64, "thread");
    text.push_str(&format!("{}: {to_place} to place\n", new.workload.name));
    let mut roles: Vec<&str> = threads.iter().map(|thread| thread.role.as_str()).collect();
    roles.sort_unstable();
    roles.dedup();
    for role in roles {
        let names: Vec<&str> = threads
            .iter()
            .filter(|thread| thread.role == role)
            .map(|thread| thread.name.as_str())
            .collect();
        text.push_str(&format!("  {role:<12} {}\n", names.join(" ")));
    }
    text
}

#[cfg(test)]
mod tests;
