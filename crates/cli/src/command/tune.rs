//! `pinwise tune`: how many threads and where each of them runs, together, and the plan for both.
//!
//! The number is searched for as `threads` does it; numbers under policies of placement are
//! measured where that tells most ([`Trials`]); the numbers near the best by what is believed then
//! are placed as `place` does it, each as a campaign of its own, by successive halving
//! ([`Shortlist`]); then the program as it is when nobody does anything, the number alone, and the
//! number with its placement are measured against one another on fresh windows
//! ([`pinwise_placement::Contest`]), which alone are announced.

mod beds;
mod crew;
mod document;
mod finals;
mod text;
mod trial;
mod verdict;

use super::threads::{self, Asked, Edges};
use crate::events::{self, Terminal};
use crate::number::whole;
use crate::output::{self, Interrupted, Usage};
use anyhow::Context;
use clap::{Arg, Args};
use crew::Crew;
use document::{Document, Placement, Remains};
use finals::Finals;
use pinwise_campaign::{CampaignState, Store};
use pinwise_jobs::{Caller, Interruption, JobError, Request, StoredSearch};
use pinwise_placement::{Advice, Choice, Measured, Number, Origin, Plan, Way, sentence};
use pinwise_present::Files;
use pinwise_present::figures::Scale;
use pinwise_threads::Shortlist;
use pinwise_topology::SharingTree;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use trial::Trials;

/// Find how many threads a program should run and where, together, and save a plan for both
///
/// First the number is searched for as with threads, in a quarter of the time. Then numbers are
/// measured under policies of placement (compact, a core each, scattered) where that tells most, in
/// a sixth of it. The numbers near the best by that, four at most, are placed as with place: all of
/// them for a short time, the better half for longer, in a third of the time. In what is left the
/// program as it is by default, with the number that was found, and with that number pinned are
/// measured in turn, on fresh windows: only these are announced. Where pinning or the number does
/// not help beyond its interval the plan leaves it out. All of it ends by --budget where that is
/// long enough for the least that it takes: some windows or runs with two numbers, one to get to
/// know the program with each that is placed, and three rounds of the last comparison.
/// docs/method/tune.md explains the method.
#[derive(Args)]
// The parser takes the place of n for the end of a line; an escape sequence without effect, which
// goes where no colours go, keeps it.
#[command(
    mut_args(here),
    after_help = "Examples:
  pinwise tune -- pigz -p {\x1b[0mn} -k -c big.file
  pinwise tune --env OMP_NUM_THREADS -- ./solver input
  pinwise tune --metric 'stdout:fps=([0-9.]+)' -- ./encoder --threads {\x1b[0mn} movie
  pinwise tune --set 'cmd:echo {\x1b[0mn} > /run/app/workers' --metric 'cmd:cat /run/app/done' --pid 4242
  pinwise run plan.toml -- pigz -p {\x1b[0mn} -k -c big.file     as the plan says"
)]
pub(crate) struct Tune {
    #[command(flatten)]
    asked: Asked,
    #[command(flatten)]
    files: threads::Files,
    /// n where nobody decides [default: its variable of --env is not set; else as many as the CPUs
    /// it may use]
    #[arg(long, value_name = "N", value_parser = whole::<u32>(1..=u64::from(u32::MAX)), help_heading = "Search")]
    default: Option<u32>,
    /// Write the plan here [default: beside the store]
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    plan: Option<PathBuf>,
    #[command(flatten, next_help_heading = "Output")]
    store: crate::store::StoreArguments,
    /// Print one JSON document
    #[arg(long, help_heading = "Output")]
    json: bool,
}

/// The models that `threads` knows are refused with what to do instead, and not offered.
fn here(argument: Arg) -> Arg {
    let of_models = ["machine", "workload", "seed"].contains(&argument.get_id().as_str());
    argument.hide(of_models)
}

/// Shares of the time: for the number, and for where; of that, the most for policies of placement,
/// the rest for searches. What is left is for the last comparison.
const NUMBER: f64 = 0.25;
const PLACING: f64 = 0.5;
const POLICIES: f64 = 1.0 / 3.0;

impl Tune {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let begin = Instant::now();
        let asked = self.asked.clone().for_placing()?;
        // The store is made when there is something to keep; that it can be is known before a
        // quarter of the time is spent.
        self.store.check()?;
        let caller = events::caller(self.store.named())?;
        let budget = asked.budget();
        let edges = Edges { files: self.files.clone(), ..Edges::default() };
        let (surveyed, prober) = threads::probe_host(
            &asked.clone().within(budget.mul_f64(NUMBER)),
            &edges,
            &caller,
            self.json,
        )?;
        let mut store = self.store.open()?;
        let mut crew = Crew::new(&asked, &self.files, prober, self.default, &caller)?;
        let mut notes = surveyed.notes.clone();
        notes.extend(crew.note.clone());

        let mut placements: Vec<Placement> = Vec::new();
        let mut trials = Trials::default();
        let left = || budget.saturating_sub(begin.elapsed());
        // Where the number took longer than its share, it is placing that has less.
        let placing = left()
            .saturating_sub(budget.mul_f64(1.0 - NUMBER - PLACING))
            .min(budget.mul_f64(PLACING));
        let end = begin.elapsed() + placing;
        let named = self.store.named();
        let tried = trials.make(&mut crew, &surveyed, placing.mul_f64(POLICIES), &mut notes);
        let placed = tried.and_then(|()| {
            let (list, placing) =
                (trials.shortlist(&surveyed), end.saturating_sub(begin.elapsed()));
            place(&mut crew, &mut store, list, placing, &mut placements, &caller)
        });
        notes.extend(placements.iter().flat_map(Placement::notes));
        let compared = placed.and_then(|n| {
            let searched = placements
                .iter()
                .find(|placement| placement.parameter == n)
                .and_then(|it| it.searched.as_ref());
            Ok((n, finals::measure(&mut crew, n, searched, left(), &mut notes)?))
        });
        let (n, finals) = match compared {
            Ok(compared) => compared,
            Err(error) => {
                let error = with_kept(error, &placements, named);
                let remains =
                    Remains { surveyed, trials, placements, notes, error: format!("{error:#}") };
                if self.json {
                    output::print_json(&remains.json())?;
                } else {
                    output::print(&text::remains(&remains, output::width()))?;
                }
                return Err(error);
            }
        };
        let winner = placements
            .iter()
            .find(|placement| placement.parameter == n)
            .context("no number was placed")?;
        notes.extend(finals.notes());
        let failure = finals.failure().map(|error| with_kept(error, &placements, named));
        let choice = finals.contest.choice(crew.default_count() > n, asked.tolerance());
        let parameter = if choice == Choice::Default { crew.default } else { Some(n) };
        let plan = plan(&crew, choice, parameter, winner, &finals)?.map(|mut plan| {
            plan.origin = Some(origin(&store, choice, winner, &finals));
            self.keep(&plan, &store)
        });
        let plan = plan.transpose()?;
        let settled = crew.settle(parameter.unwrap_or(n)).map(|note| notes.extend(note));
        let document = Document {
            seconds: begin.elapsed(),
            budget,
            command: crew.command(),
            default: crew.default,
            surveyed,
            trials,
            placements,
            n,
            finals,
            choice,
            parameter,
            notes,
            plan,
        };
        let recorded = record(&mut store, &document);
        if self.json {
            output::print_json(&document.json())?;
        } else {
            output::print(&text::result(&document, output::width()))?;
        }
        settled?;
        recorded?;
        // There is an answer, by what was measured until then.
        failure.map_or(Ok(()), Err)
    }

    /// Writes the plan where the user wants it, or beside the store.
    fn keep(&self, plan: &Plan, store: &Store) -> anyhow::Result<PathBuf> {
        let Some(path) = &self.plan else {
            return Ok(pinwise_jobs::keep_plan(store, &format!("tune-{}", plan.program), plan)?);
        };
        pinwise_jobs::write_plan(path, plan)?;
        Ok(path.clone())
    }
}

/// What the user ended, with the placements that are kept of it and how to see them.
fn with_kept(
    error: anyhow::Error,
    placements: &[Placement],
    named: Option<&Path>,
) -> anyhow::Error {
    let flag = Files { plan: None, store: named }.flag();
    let seen = |placement: &Placement| {
        let id = placement.searched.as_ref()?.info.id.0;
        Some(format!("n = {} with: pinwise campaign show {id}{flag}", placement.parameter))
    };
    let seen: Vec<String> = placements.iter().filter_map(seen).collect();
    if !error.is::<Interrupted>() || seen.is_empty() {
        return error;
    }
    Interrupted(format!("{error:#}; see the placement of {}", seen.join(", of "))).into()
}

/// Keeps the last comparison with the campaign that placed the number.
fn record(store: &mut Store, document: &Document) -> anyhow::Result<()> {
    let Some(StoredSearch { info, outcome }) = document.placement() else { return Ok(()) };
    let (compared, unit) = (document.compared(), &document.finals.unit);
    let typical = compared.contest.ways().iter().find_map(|&way| compared.contest.estimate(way));
    let note = compared.note(&Scale::new(unit, typical.map_or(1.0, |estimate| estimate.mean)));
    let mut outcome = outcome.clone();
    outcome.notes.push(note);
    store.conclude(info.id, CampaignState::Finished, Some(&serde_json::to_value(&outcome)?))?;
    Ok(())
}

/// Places the numbers of `list`, into `placements`, until one is left.
fn place(
    crew: &mut Crew<'_>,
    store: &mut Store,
    mut list: Shortlist,
    time: Duration,
    placements: &mut Vec<Placement>,
    caller: &Caller,
) -> anyhow::Result<u32> {
    let (begin, round) = (Instant::now(), time / list.rounds());
    for _ in 0..list.rounds() {
        let each = time.saturating_sub(begin.elapsed()).min(round) / list.numbers().len() as u32;
        for &n in list.numbers() {
            let placement = search(crew, store, n, each, caller)?;
            let earlier = placements
                .iter()
                .any(|earlier| earlier.parameter == n && earlier.searched.is_some());
            if let Some(reason) = placement.reason.as_ref().filter(|_| earlier) {
                output::aside(&format!(
                    "note: n = {n} could not be placed again, its first placement stands: {reason}"
                ));
                continue;
            }
            placements.retain(|earlier| earlier.parameter != n);
            placements.push(placement);
        }
        list.halve(|n| placements.iter().find(|placement| placement.parameter == n)?.best());
    }
    Ok(list.numbers()[0])
}

/// Places the program with `n`, in a campaign of its own. What keeps a number from being placed is
/// told and does not end the search for others.
fn search(
    crew: &mut Crew<'_>,
    store: &mut Store,
    n: u32,
    time: Duration,
    caller: &Caller,
) -> anyhow::Result<Placement> {
    if time.is_zero() {
        let reason = "no time was left for that, a longer --budget has some".to_owned();
        return Ok(Placement { parameter: n, searched: None, reason: Some(reason) });
    }
    let placed = crew.request(n, time).and_then(|request| placed(request, caller, store));
    let (searched, reason) = match placed {
        Ok(searched) => (Some(searched), None),
        Err(error) if error.is::<Interrupted>() || error.is::<Usage>() => return Err(error),
        Err(error) => (None, Some(format!("{error:#}"))),
    };
    Ok(Placement { parameter: n, searched, reason })
}

/// Places a program in a campaign of its own.
fn placed(request: Request, caller: &Caller, store: &mut Store) -> anyhow::Result<StoredSearch> {
    pinwise_jobs::place_part(request, None, caller, store, &mut Terminal::new(true)).map_err(
        |error| match error {
            // What ends it meanwhile is not before the first measurement of the whole.
            JobError::Interrupted(Interruption { kept: None, .. }) => Interrupted::amid().into(),
            error => events::explained(error, caller, store),
        },
    )
}

/// The plan for a choice; `None` where there is nothing to do that a plan could say.
fn plan(
    crew: &Crew<'_>,
    choice: Choice,
    parameter: Option<u32>,
    winner: &Placement,
    finals: &finals::Finals,
) -> anyhow::Result<Option<Plan>> {
    let Some(n) = parameter else { return Ok(None) };
    let fingerprint = pinwise_linux::fingerprint(&pinwise_linux::machine()?);
    let placed = match (&winner.searched, choice) {
        (Some(StoredSearch { info, outcome }), Choice::Placed) => {
            let tree = SharingTree::new(&info.new.machine, info.new.alike);
            Plan::from_outcome(&info.new.workload, &tree, fingerprint.clone(), outcome)
        }
        _ => None,
    };
    let way = match choice {
        Choice::Default => Way::Default,
        Choice::Number | Choice::Fewer => Way::Number,
        Choice::Placed => Way::Placed,
    };
    let estimate = finals.contest.estimate(way);
    let default = finals.contest.estimate(Way::Default);
    let measured =
        estimate.map(|estimate| Measured::new(&finals.unit, &estimate, default.as_ref()));
    let number = Number { n, environment: crew.environment(n), set: crew.set_command(n) };
    let mut plan = placed.unwrap_or_else(|| Plan::new(crew.name(), fingerprint, Vec::new()));
    (plan.measured, plan.number) = (measured, Some(number));
    Ok(Some(plan))
}

/// What whoever uses the plan is told of the search that found it: of the notes only what speaks
/// against the comparison by which it was chosen, and, where it pins, what the threads did while
/// they were placed. How the number was searched for is the answer's to tell.
fn origin(store: &Store, choice: Choice, winner: &Placement, finals: &Finals) -> Origin {
    let placed = winner.searched.iter().filter(|_| choice == Choice::Placed);
    let met = placed.flat_map(|searched| &searched.outcome.notes);
    let notes = finals.notes().iter().chain(met).map(|note| sentence(note)).collect();
    Origin {
        campaign: winner
            .searched
            .as_ref()
            .map(|searched| pinwise_jobs::plan_identity(store, &searched.info)),
        advice: if choice == Choice::Placed { Advice::Pin } else { Advice::KeepDefault },
        simulated: false,
        notes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::place::Place;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        place: Place,
    }

    #[test]
    fn a_number_that_has_one_assignment_only_may_be_the_best() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::open(&folder.path().join("tune.db")).unwrap();
        let mut placed = |parameter, workload, cpus| {
            let what =
                ["place", "--machine", "ultrasparc-t2", "--workload", workload, "--cpus", cpus];
            let short = ["--cycles", "50000", "--starts", "1", "--budget", "30"];
            let line = Line::try_parse_from(what.iter().chain(&short)).unwrap();
            let request = line.place.request().unwrap();
            let searched = super::placed(request, &Caller::default(), &mut store);
            let reason = searched.as_ref().err().map(|error| format!("{error:#}"));
            Placement { parameter, searched: searched.ok(), reason }
        };
        // Three threads on three contexts of one pipe, and of a program that is four times slower
        // on two pipes.
        let placements = [placed(1, "intadd:1", "0-2"), placed(2, "aho-corasick:1", "0-7")];
        assert!(
            placements.iter().all(|placement| placement.reason.is_none()),
            "{:?}",
            placements[0].notes()
        );
        let best = |n: u32| placements.iter().find(|placement| placement.parameter == n)?.best();
        assert!(best(1) > best(2), "{:?} {:?}", best(1), best(2));
        let mut list = Shortlist::new(&[(1, 1.0), (2, 1.0)], 2);
        list.halve(best);
        assert_eq!(list.numbers(), [1]);
    }
}
