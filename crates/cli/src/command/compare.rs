//! `pinwise compare`: ways of placing a program beside one another.

mod interruption;

use super::place::{self, Bed, Measured, SearchArguments, SubjectArguments};
use crate::comparison;
use crate::interrupt::Interrupt;
use crate::number::whole;
use crate::output::{self, Usage};
use crate::request::{Compared, Request};
use anyhow::Context;
use clap::Args;
use interruption::{interrupted, searches_kept};
use pinwise_campaign::{
    CampaignId, CampaignInfo, CampaignState, Ending, Kind, NewCampaign, Purpose, Store,
};
use pinwise_evt::Method;
use pinwise_placement::{
    Budget, Claim, Comparison, Contender, Entry, Judge, Lineup, Outcome, Question, Search,
    StrategyName,
};
use pinwise_prediction::Cast;
use pinwise_present::Files;
use pinwise_present::figures;
use pinwise_topology::{Assignment, PerContext, Random, SharingTree, Space, balanced};
use std::path::Path;
use std::time::Instant;

/// Compare ways of placing a program: the operating system's, random, balanced, and every search
///
/// Each search runs by itself with the whole --budget, as a campaign of its own: four of them,
/// three where the program cannot be profiled. What they announce is then measured beside naive
/// (random) and balanced placements and the program unpinned, in two sets of windows: one chooses
/// which assignment is the best known and which draw is the worst, the other, fresh and in
/// random order, is what is told. A way whose loss may be none is said not to be told apart from
/// the best; where that is for lack of windows, how many would do.
#[derive(Args)]
#[command(mut_arg("budget", |argument| argument.help(BUDGET).long_help(BUDGET)), after_help = "Examples:
  The built-in packet pipelines on this machine:
    pinwise compare --workload stateful:2 --budget 20s
  On a simulated processor, eight instances:
    pinwise compare --machine ultrasparc-t2 --workload hash1_Mem:8 --budget 600
  A program of your own:
    pinwise compare --metric 'stdout:Tx-pps: +(\\d+)' -- dpdk-testpmd …")]
pub(crate) struct Compare {
    #[command(flatten)]
    subject: SubjectArguments,
    #[command(flatten, next_help_heading = "Search")]
    search: SearchArguments,
    /// How many naive (random) and how many balanced placements are drawn; at least 2
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = whole::<u64>(2..=100_000), help_heading = "Comparison")]
    draws: u64,
    /// Fresh windows of each that is compared, at least 5, and as many before by which the best
    /// known and the worst draws are chosen
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = whole::<u64>(5..=100_000), help_heading = "Comparison")]
    rounds: u64,
    #[command(flatten, next_help_heading = "Output")]
    store: crate::store::StoreArguments,
    /// Print one JSON document
    #[arg(long, help_heading = "Output")]
    json: bool,
}

/// What `--budget` is about here.
const BUDGET: &str = "Measurements (600) or time (90s, 5m) of each search, not of all together; by default 30 s for a built-in workload (5 min for BlackBox), \
    1 min for a program that is re-pinned, 5 min for one that is started anew, 4,000 measurements on a model. Measuring everything beside everything at \
    the end is not in it";

/// A search that takes part.
struct Way {
    name: &'static str,
    strategy: StrategyName,
    method: Method,
    /// First look at the bound, and from one to the next, where these are the published ones.
    looks: Option<(u64, u64)>,
}

/// How many assignments BlackBox measures by its predictions (blackbox-scheduler, section 5.2).
const TOP: usize = 5;

const WAYS: [Way; 4] = [
    Way { name: "BlackBox", strategy: StrategyName::Blackbox, method: Method::Bayes, looks: None },
    // optimal-assignment-evt, section 5.3: N_init and N_delta of its case study.
    Way {
        name: "random, iterative",
        strategy: StrategyName::Random,
        method: Method::Profile,
        looks: Some((1000, 100)),
    },
    Way {
        name: "hill climbing",
        strategy: StrategyName::Climb,
        method: Method::Bayes,
        looks: None,
    },
    Way {
        name: "default strategy",
        strategy: StrategyName::Auto,
        method: Method::Bayes,
        looks: None,
    },
];

impl Compare {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let begin = Instant::now();
        let program = std::env::current_exe().context("cannot find this program's own file")?;
        let request = self.subject.request("compare", &program.to_string_lossy(), &self.search)?;
        let interrupt = Interrupt::listen()?;
        let mut store = self.store.open()?;
        let (request, mut bed, new) =
            place::prepare(request, self.subject.built_in(), begin, &store, &interrupt)?;
        place::ensure_choice(&request, &new)?;
        let tree = SharingTree::new(&new.machine, new.alike);
        let mut lineup = self.chance(&request.question, &tree, new.workload.threads.len())?;
        if !self.json {
            output::print(&format!("{}\n", place::subject(&new)))?;
        }
        output::note_all(&bed.notes());
        output::note_all(&place::too_few(&request, &bed, begin.elapsed()));
        let mut done = 0;
        for (index, way) in WAYS.iter().enumerate() {
            let mut asked = request.clone();
            if let (StrategyName::Blackbox, Bed::Instances(_), None) =
                (way.strategy, &bed, self.search.budget)
            {
                asked.question.budget = Budget::Time(place::PROFILING);
            }
            let request = match question(way, &asked, &new, &bed, &store)? {
                Ok(question) => Request { question, ..request.clone() },
                Err(reason) => {
                    lineup.left_out.push((way.name.into(), reason));
                    continue;
                }
            };
            output::aside(&format!("search {} of {}: {}", index + 1, WAYS.len(), way.name));
            let searched = match search(&mut store, &request, &new, &mut bed, &interrupt)? {
                Ok(searched) => searched,
                Err(begun) => {
                    return Err(
                        interrupted(&searches_kept(done, begun, self.store.named(), &new)).into()
                    );
                }
            };
            if let Some(note) = unlooked(way, searched.drawn) {
                output::aside(&note);
            }
            enter(&mut lineup, way, &searched);
            done += 1;
        }
        output::aside("everything beside everything");
        let compared = Compared { request, lineup };
        let new =
            NewCampaign { kind: Kind::Compare, question: serde_json::to_value(&compared)?, ..new };
        let id = store.create(&new)?;
        let info = store.get(id)?;
        judge(&mut store, &info, &compared, bed, &interrupt, self.store.named(), self.json)
    }

    /// What is known before anything is searched: the unpinned program, and what chance gives.
    fn chance(
        &self,
        question: &Question,
        tree: &SharingTree,
        threads: usize,
    ) -> anyhow::Result<Lineup> {
        let per_context = match question.per_context {
            Some(most) => PerContext::AtMost(most),
            None if threads > tree.leaves().len() => PerContext::Any,
            None => PerContext::AtMost(1),
        };
        let space = Space::new(tree.clone(), threads, per_context)?;
        let mut random = Random::new(question.seed);
        let drawn: Vec<Assignment> = (0..self.draws).map(|_| space.sample(&mut random)).collect();
        let even = (0..self.draws)
            .map(|_| space.canonical(&balanced(tree, threads, &mut random)))
            .collect();
        let contender = |name: &str, entry| Contender {
            name: name.into(),
            entry,
            spent: 0,
            campaign: None,
            claim: None,
        };
        Ok(Lineup {
            contenders: vec![
                contender("OS default", Entry::Unpinned),
                contender("naive", Entry::Drawn(drawn)),
                contender("balanced", Entry::Drawn(even)),
            ],
            left_out: Vec::new(),
            rounds: self.rounds as usize,
            confidence: question.confidence,
            within: question.within,
            seed: question.seed,
        })
    }
}

/// What a way is asked, or why it cannot be.
fn question(
    way: &Way,
    request: &Request,
    new: &NewCampaign,
    bed: &Bed,
    store: &Store,
) -> anyhow::Result<Result<Question, String>> {
    let (start, step) =
        way.looks.map_or((request.question.start, None), |(start, step)| (start, Some(step)));
    let mut question = Question {
        strategy: way.strategy,
        method: way.method,
        start,
        step,
        ..request.question.clone()
    };
    if way.strategy == StrategyName::Blackbox {
        if !bed.testbed().profiles() {
            let reason = "its profile takes instances of the program that run alone, and more of them than there are";
            return Ok(Err(reason.to_owned()));
        }
        if Cast::new(&new.workload).instances().len() < 2 {
            let name = &new.workload.name;
            return Ok(Err(format!(
                "it predicts what instances do to each other, and {name} is one instance: run more of them (--workload NAME:2)"
            )));
        }
        question.profile.top = Some(TOP);
        place::decide(&mut question.profile, Some(store), &bed.fingerprint());
        let mut asked = Request { question, ..request.clone() };
        match place::prepare_profile(&mut asked, bed, &new.workload.name) {
            Ok(()) => question = asked.question,
            // Too short a budget, say: the other ways are compared, and the remedy is told.
            Err(error) if error.is::<Usage>() => return Ok(Err(format!("{error:#}"))),
            Err(error) => return Err(error),
        }
    }
    let tree = SharingTree::new(&new.machine, new.alike);
    Ok(match Search::new(&question, &tree, &new.workload) {
        Ok(_) => Ok(question),
        Err(error) => Err(error.to_string()),
    })
}

/// A search that was done.
struct Searched {
    campaign: CampaignId,
    outcome: Outcome,
    /// Measurements that only profiled.
    profiled: u64,
    /// Random assignments that were measured.
    drawn: u64,
}

/// One search as a campaign of its own; where it was interrupted, its campaign and measurements if
/// there are any.
fn search(
    store: &mut Store,
    request: &Request,
    new: &NewCampaign,
    bed: &mut Bed,
    interrupt: &Interrupt,
) -> anyhow::Result<Result<Searched, Option<(CampaignId, usize)>>> {
    let id =
        store.create(&NewCampaign { question: serde_json::to_value(request)?, ..new.clone() })?;
    let info = store.get(id)?;
    let tree = SharingTree::new(&new.machine, new.alike);
    let mut strategy = Search::new(&request.question, &tree, &new.workload)?;
    let Measured { ending, records, notes } =
        place::measure(store, &info, request.question.budget, &mut strategy, bed, interrupt)?;
    // What the measurements of a search met is told with the comparison, of all together.
    if !matches!(ending, Ending::Finished(_)) {
        output::note_all(&notes);
    }
    match ending {
        Ending::Finished(_) => {
            let outcome = Outcome { notes, ..strategy.outcome(&new.unit, &records, None) };
            store.conclude(id, CampaignState::Finished, Some(&serde_json::to_value(&outcome)?))?;
            let of = |purpose| records.iter().filter(move |record| record.trial.purpose == purpose);
            let profiled = of(Purpose::Profile).count() as u64;
            let drawn = of(Purpose::Sample).filter(|record| record.outcome.is_ok()).count() as u64;
            Ok(Ok(Searched { campaign: id, outcome, profiled, drawn }))
        }
        Ending::Interrupted if records.is_empty() => {
            store.delete(id)?;
            Ok(Err(None))
        }
        Ending::Interrupted => {
            store.conclude(id, CampaignState::Stopped, None)?;
            Ok(Err(Some((id, records.len()))))
        }
        Ending::Failed(reason) => {
            store.conclude(id, CampaignState::Stopped, None)?;
            anyhow::bail!("{reason} ({} in campaign {})", place::kept(records.len()), id.0)
        }
    }
}

/// That a search ended before its first look at the bound, where it did.
fn unlooked(way: &Way, drawn: u64) -> Option<String> {
    let (first, _) = way.looks?;
    (drawn < first).then(|| {
        format!(
            "note: {} first looks at its bound after {} random assignments, as published; the budget ended after {} of them, so that it could not stop by it",
            way.name,
            figures::count(first),
            figures::count(drawn)
        )
    })
}

/// Adds what a search came to.
fn enter(lineup: &mut Lineup, way: &Way, searched: &Searched) {
    let Searched { campaign, outcome, profiled, .. } = searched;
    let contender = |name: String, assignment: &Assignment, spent, claim| Contender {
        name,
        entry: Entry::Announced(assignment.clone()),
        spent,
        campaign: Some(*campaign),
        claim,
    };
    let mut name = way.name.to_owned();
    if let Some(forecast) = &outcome.forecast {
        // Without the selection phase nothing is measured but the profile (blackbox-scheduler,
        // figure 7).
        if let Some(first) = forecast.finalists.first() {
            lineup.contenders.push(contender(
                format!("{name}, top 1"),
                &first.assignment,
                *profiled,
                None,
            ));
        }
        name = format!("{name}, top {TOP}");
    }
    let Some(best) = &outcome.best else {
        lineup.left_out.push((name, format!("it announced nothing ({})", outcome.stopped_because)));
        return;
    };
    let bound = &outcome.bound;
    // The published algorithm claims by its point estimate, the others by the upper end.
    let claim = match way.method {
        Method::Profile => bound.upb.zip(bound.gap),
        Method::Bayes => bound.upb_high.zip(bound.gap_high),
    };
    let claim =
        claim.map(|(bound, gap)| Claim { bound, gap, estimated: way.method == Method::Profile });
    lineup.contenders.push(contender(name, &best.assignment, outcome.cost.measurements, claim));
}

/// Goes on with a comparison whose searches were done.
pub(crate) fn resume(
    mut store: Store,
    info: &CampaignInfo,
    compared: &Compared,
    named: Option<&Path>,
    json: bool,
) -> anyhow::Result<()> {
    if info.state == CampaignState::Finished {
        return comparison::print(&store, info, compared, named, json);
    }
    let interrupt = Interrupt::listen()?;
    let bed = place::open(&compared.request, &interrupt)?;
    if let Some(change) = place::changed(info, &compared.request, &bed) {
        anyhow::bail!(
            "campaign {}: {change}, so what was measured does not compare with what would be",
            info.id.0
        );
    }
    judge(&mut store, info, compared, bed, &interrupt, named, json)
}

/// Measures everything beside everything, and says how it compares.
fn judge(
    store: &mut Store,
    info: &CampaignInfo,
    compared: &Compared,
    mut bed: Bed,
    interrupt: &Interrupt,
    named: Option<&Path>,
    json: bool,
) -> anyhow::Result<()> {
    let mut judge = Judge::new(&compared.lineup);
    let expected = Budget::Measurements(Judge::measurements(&compared.lineup));
    let Measured { ending, records, notes } =
        place::measure(store, info, expected, &mut judge, &mut bed, interrupt)?;
    if !matches!(ending, Ending::Finished(_)) {
        output::note_all(&notes);
    }
    match ending {
        Ending::Finished(_) => {
            let outcome = Comparison::new(&compared.lineup, &info.new.unit, &records);
            store.conclude(
                info.id,
                CampaignState::Finished,
                Some(&serde_json::to_value(&outcome)?),
            )?;
            comparison::print(store, &store.get(info.id)?, compared, named, json)
        }
        Ending::Interrupted => {
            store.conclude(info.id, CampaignState::Stopped, None)?;
            let flag = Files { plan: None, store: named }.flag();
            let (id, kept) = (info.id.0, place::kept(records.len()));
            let resume = format!("pinwise campaign resume {id}{flag}");
            let searches = "all searches had ended, and are kept";
            Err(interrupted(&format!(
                "{searches}; {kept} of the comparison in campaign {id}, go on with it: {resume}"
            ))
            .into())
        }
        Ending::Failed(reason) => {
            store.conclude(info.id, CampaignState::Stopped, None)?;
            anyhow::bail!("{reason} ({})", place::kept(records.len()))
        }
    }
}
