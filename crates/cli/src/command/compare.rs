//! `pinwise compare`: ways of placing a program beside one another.

use super::place::{self, Bed, SearchArguments, SubjectArguments};
use crate::comparison;
use crate::interrupt::Interrupt;
use crate::output::{self, Interrupted};
use crate::request::{Compared, Request};
use anyhow::Context;
use clap::Args;
use pinwise_campaign::{CampaignInfo, CampaignState, Ending, NewCampaign, Store};
use pinwise_evt::Method;
use pinwise_placement::{
    Budget, Claim, Comparison, Contender, Entry, Judge, Lineup, Outcome, Question, Search, StrategyName,
};
use pinwise_report::Files;
use pinwise_topology::{Assignment, PerContext, Random, SharingTree, Space, balanced};
use std::path::Path;
use std::time::Instant;

/// Compare ways of placing a program: the operating system's, random, balanced, and every search
///
/// Each search runs by itself with the whole --budget, as a campaign of its own. What they announce is then measured again beside
/// random and balanced placements and the program unpinned, in fresh windows and in random order; these windows alone are
/// compared. Losses are against the best assignment known at the end.
#[derive(Args)]
#[command(after_help = "Examples:
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
    /// How many random and how many balanced placements are drawn
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u64).range(2..=100_000), help_heading = "Comparison")]
    draws: u64,
    /// Fresh windows of everything that is compared
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = clap::value_parser!(u64).range(2..=100_000), help_heading = "Comparison")]
    rounds: u64,
    #[command(flatten, next_help_heading = "Output")]
    store: crate::store::StoreArguments,
    /// Print one JSON document
    #[arg(long, help_heading = "Output")]
    json: bool,
}

/// A search that takes part.
struct Way {
    name: &'static str,
    strategy: StrategyName,
    method: Method,
    /// First look at the bound, and from one to the next, where these are the published ones.
    looks: Option<(u64, u64)>,
}

const WAYS: [Way; 3] = [
    // optimal-assignment-evt, section 5.3: N_init and N_delta of its case study.
    Way {
        name: "random, published bound",
        strategy: StrategyName::Random,
        method: Method::Profile,
        looks: Some((1000, 100)),
    },
    Way { name: "climbing", strategy: StrategyName::Climb, method: Method::Bayes, looks: None },
    Way { name: "pinwise place", strategy: StrategyName::Auto, method: Method::Bayes, looks: None },
];

impl Compare {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let begin = Instant::now();
        let program = std::env::current_exe().context("cannot find this program's own file")?;
        let request = self.subject.request(&program.to_string_lossy(), &self.search)?;
        let interrupt = Interrupt::listen()?;
        let mut store = Store::open(&self.store.path()?)?;
        let (request, mut bed, new) = place::prepare(request, self.subject.built_in(), begin, &store, &interrupt)?;
        let tree = SharingTree::new(&new.machine, new.alike);
        let mut lineup = self.chance(&request.question, &tree, new.workload.threads.len())?;
        for (index, way) in WAYS.iter().enumerate() {
            let searched = search(way, &mut store, &request, &new, &mut bed, &interrupt)?;
            let Some((info, outcome)) = searched else {
                return Err(interrupted(&format!("{index} of {} searches are kept", WAYS.len())).into());
            };
            if index == 0 && !self.json {
                output::print(&place::opening(&info))?;
                bed.notes().iter().for_each(|note| output::aside(&format!("note: {note}")));
            }
            enter(&mut lineup, way, &info, &outcome);
        }
        let compared = Compared { request, lineup };
        let new = NewCampaign { question: serde_json::to_value(&compared)?, ..new };
        let id = store.create(&new)?;
        let info = store.get(id)?;
        judge(&mut store, &info, &compared, bed, &interrupt, self.store.named(), self.json)
    }

    /// What is known before anything is searched: the unpinned program, and what chance gives.
    fn chance(&self, question: &Question, tree: &SharingTree, threads: usize) -> anyhow::Result<Lineup> {
        let per_context = match question.per_context {
            Some(most) => PerContext::AtMost(most),
            None if threads > tree.leaves().len() => PerContext::Any,
            None => PerContext::AtMost(1),
        };
        let space = Space::new(tree.clone(), threads, per_context)?;
        let mut random = Random::new(question.seed);
        let drawn: Vec<Assignment> = (0..self.draws).map(|_| space.sample(&mut random)).collect();
        let even = (0..self.draws).map(|_| space.canonical(&balanced(tree, threads, &mut random))).collect();
        let contender =
            |name: &str, entry| Contender { name: name.into(), entry, spent: 0, campaign: None, claim: None };
        Ok(Lineup {
            contenders: vec![
                contender("unpinned", Entry::Unpinned),
                contender("random", Entry::Drawn(drawn)),
                contender("balanced", Entry::Drawn(even)),
            ],
            left_out: vec![(
                "BlackBox".into(),
                "its profile needs instances that run alone, which this command cannot arrange yet".into(),
            )],
            rounds: self.rounds as usize,
            confidence: question.confidence,
            within: question.within,
            seed: question.seed,
        })
    }
}

/// One search as a campaign of its own; `None` where it was interrupted.
fn search(
    way: &Way,
    store: &mut Store,
    request: &Request,
    new: &NewCampaign,
    bed: &mut Bed,
    interrupt: &Interrupt,
) -> anyhow::Result<Option<(CampaignInfo, Outcome)>> {
    let (start, step) = way.looks.map_or((request.question.start, None), |(start, step)| (start, Some(step)));
    let question = Question { strategy: way.strategy, method: way.method, start, step, ..request.question.clone() };
    let request = Request { question, ..request.clone() };
    let id = store.create(&NewCampaign { question: serde_json::to_value(&request)?, ..new.clone() })?;
    let info = store.get(id)?;
    let tree = SharingTree::new(&new.machine, new.alike);
    let mut strategy = Search::new(&request.question, &tree, &new.workload)?;
    let (ending, records) = place::measure(store, &info, request.question.budget, &mut strategy, bed, interrupt)?;
    match ending {
        Ending::Finished(_) => {
            let outcome = strategy.outcome(&new.unit, &records, None);
            store.conclude(id, CampaignState::Finished, Some(&serde_json::to_value(&outcome)?))?;
            Ok(Some((info, outcome)))
        }
        Ending::Interrupted => {
            store.conclude(id, CampaignState::Stopped, None)?;
            Ok(None)
        }
        Ending::Failed(reason) => {
            store.conclude(id, CampaignState::Stopped, None)?;
            anyhow::bail!("{reason} (campaign {} keeps {} measurements)", id.0, records.len())
        }
    }
}

/// Adds what a search came to.
fn enter(lineup: &mut Lineup, way: &Way, info: &CampaignInfo, outcome: &Outcome) {
    let Some(best) = &outcome.best else {
        lineup.left_out.push((way.name.into(), format!("it announced nothing ({})", outcome.stopped_because)));
        return;
    };
    let bound = &outcome.bound;
    // The published algorithm claims by its point estimate, the others by the upper end.
    let claim = match way.method {
        Method::Profile => bound.upb.zip(bound.gap),
        Method::Bayes => bound.upb_high.zip(bound.gap_high),
    };
    lineup.contenders.push(Contender {
        name: way.name.into(),
        entry: Entry::Announced(best.assignment.clone()),
        spent: outcome.cost.measurements,
        campaign: Some(info.id),
        claim: claim.map(|(bound, gap)| Claim { bound, gap }),
    });
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
        return comparison::print(info, compared, &store.records(info.id)?, named, json);
    }
    let interrupt = Interrupt::listen()?;
    let bed = place::open(&compared.request, &interrupt)?;
    if let Some(change) = place::changed(info, &compared.request, &bed) {
        anyhow::bail!("campaign {}: {change}, so what was measured does not compare with what would be", info.id.0);
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
    let expected = Budget::Measurements(compared.lineup.measurements());
    let (ending, records) = place::measure(store, info, expected, &mut judge, &mut bed, interrupt)?;
    match ending {
        Ending::Finished(_) => {
            let outcome = Comparison::new(&compared.lineup, &info.new.unit, &records);
            store.conclude(info.id, CampaignState::Finished, Some(&serde_json::to_value(&outcome)?))?;
            comparison::print(&store.get(info.id)?, compared, &records, named, json)
        }
        Ending::Interrupted => {
            store.conclude(info.id, CampaignState::Stopped, None)?;
            let flag = Files { plan: None, store: named }.flag();
            let resume = format!("pinwise campaign resume {}{flag}", info.id.0);
            Err(interrupted(&format!("the searches are kept; go on comparing with: {resume}")).into())
        }
        Ending::Failed(reason) => {
            store.conclude(info.id, CampaignState::Stopped, None)?;
            anyhow::bail!("{reason} ({} measurements are kept)", records.len())
        }
    }
}

fn interrupted(kept: &str) -> Interrupted {
    Interrupted(format!("interrupted: what was pinned is as it was; {kept}"))
}
