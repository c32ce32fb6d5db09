//! The page of a placement: puts all its parts in order.

use crate::characterization::Sharing;
use crate::chart::Chart;
use crate::evidence::Evidence;
use crate::figure::{Figure, Table};
use crate::floorplan::{self, Block};
use crate::html_frame::{HtmlFrame, ReportError};
use crate::question::{self, Term};
use crate::{bound_plots, drift, ecdf, progress, windows};
use askama::Template;
use pinwise_campaign::{CampaignInfo, Record};
use pinwise_characterization::StoredCharacterization;
use pinwise_measure::Setting;
use pinwise_placement::{
    BoundMethod, Outcome, PlacedAssignment, PlacementQuestion, PlacementVerdict,
};
use pinwise_present::figures::{self, Scale};
use pinwise_present::{
    Files, NextStep, Unfinished, Verdict, bound_notes, bound_text, certified_text, gap_text, notes,
    placement_gain, simulated, verdict,
};
use pinwise_topology::{Assignment, CpuId, SharingTree};

/// Ties drawn on the machine; the table has every one.
const TIES_DRAWN: usize = 6;

/// The page of a campaign: a complete HTML document that needs nothing else. `files` are named in
/// the commands at its end. With the characterization of its machine, if there is one, it shows
/// what is shared on which level.
///
/// # Errors
/// See [`ReportError`]; all mean that the arguments do not belong together.
pub fn placement_page(
    info: &CampaignInfo,
    question: &PlacementQuestion,
    records: &[Record],
    outcome: &Outcome,
    files: Files<'_>,
    characterization: Option<&StoredCharacterization>,
) -> Result<String, ReportError> {
    let tree = SharingTree::new(&info.new.machine, info.new.alike);
    fits(info, records, outcome, tree.leaves())?;
    let evidence = Evidence::new(records);
    let typical = outcome.best.as_ref().map(|best| best.performance.mean);
    let typical = typical.or(outcome.baseline.map(|baseline| baseline.mean));
    let typical = typical.or(evidence.shots.first().map(|shot| shot.performance)).unwrap_or(1.0);
    let scale = Scale::new(&outcome.unit, typical);
    let looks = if matches!(outcome.bound.method, BoundMethod::Exact | BoundMethod::Predicted) {
        Vec::new()
    } else {
        bound_plots::looks(&evidence, question)
    };
    let (tail, no_tail) = match bound_plots::figures(&evidence, question, outcome, &scale) {
        Ok(figures) => (figures.into_iter().collect(), String::new()),
        Err(reason) => (Vec::new(), reason),
    };
    let document = PlacementDocument {
        info,
        simulated: simulated(info),
        verdict: verdict(info, question, outcome),
        notes: notes(info, outcome),
        bound_notes: bound_notes(&outcome.bound, &outcome.unit, typical),
        facts: facts(info, question, outcome, &scale),
        open: outcome.verdict == PlacementVerdict::Undecided,
        unfinished: Unfinished::of_placement(info, question, files),
        drawings: drawings(info, outcome, tree.leaves(), &scale),
        threads: threads(info, outcome, tree.leaves()),
        ties: ties(info, outcome, tree.leaves(), &scale),
        windows: windows::figure(&evidence, outcome, &scale),
        population: vec![
            ecdf::figure(&evidence, outcome, &scale),
            progress::figure(&evidence, outcome, &looks, &scale),
        ],
        tail,
        no_tail,
        drift: drift::figure(&evidence, outcome, &scale),
        asked: question::asked(info, question, outcome, &tree),
        cost: question::cost(outcome),
        failures: question::failures(&evidence),
        sharing: characterization.map(|kept| Sharing::of(kept, files)),
        next: question::next(info, outcome, files),
        version: env!("CARGO_PKG_VERSION"),
    };
    let charts: Vec<&Chart> =
        document.figures().filter_map(|figure| figure.chart.as_ref()).collect();
    let title = format!("{}: placement, campaign {}", info.new.workload.name, info.id.0);
    HtmlFrame::page(title, document.render()?, &charts)
}

/// What the page shows.
#[derive(Template)]
#[template(path = "document.html")]
struct PlacementDocument<'a> {
    info: &'a CampaignInfo,
    simulated: Option<String>,
    verdict: Verdict,
    notes: Vec<String>,
    bound_notes: Vec<String>,
    facts: Vec<Fact>,
    /// Nothing is decided.
    open: bool,
    unfinished: Option<Unfinished>,
    drawings: Vec<DrawnAssignment>,
    threads: Table,
    ties: Table,
    windows: Figure,
    population: Vec<Figure>,
    tail: Vec<Figure>,
    no_tail: String,
    drift: Figure,
    asked: Vec<Term>,
    cost: Vec<Term>,
    failures: Vec<(String, String)>,
    sharing: Option<Sharing>,
    next: Vec<NextStep>,
    version: &'static str,
}

impl PlacementDocument<'_> {
    fn figures(&self) -> impl Iterator<Item = &Figure> {
        let first = std::iter::once(&self.windows);
        first.chain(&self.population).chain(&self.tail).chain(std::iter::once(&self.drift))
    }
}

/// A number that matters, with what qualifies it.
struct Fact {
    name: &'static str,
    value: String,
    detail: String,
}

/// An assignment drawn on the machine.
struct DrawnAssignment {
    title: String,
    detail: String,
    plan: Block,
}

fn facts(
    info: &CampaignInfo,
    question: &PlacementQuestion,
    outcome: &Outcome,
    scale: &Scale,
) -> Vec<Fact> {
    let mut facts = Vec::new();
    if let Some(best) = &outcome.best {
        let performance = &best.performance;
        facts.push(Fact {
            name: "Best",
            value: performance.value(scale),
            detail: performance.interval(scale),
        });
    }
    if let Some(baseline) = &outcome.baseline {
        facts.push(Fact {
            name: "Unpinned",
            value: baseline.value(scale),
            detail: baseline.interval(scale),
        });
    }
    if let Some(found) = outcome.as_found.as_ref().filter(|_| !info.new.simulated) {
        facts.push(Fact {
            name: "Initial",
            value: found.value(scale),
            detail: "before pinwise pinned anything".to_owned(),
        });
    }
    if let Some((value, interval)) = placement_gain(outcome) {
        let detail = interval.unwrap_or_else(|none| none.to_owned());
        facts.push(Fact { name: "Gain", value, detail });
    }
    let best = outcome.best.as_ref().map(|best| &best.performance);
    facts.push(bound_fact(
        question,
        outcome,
        &best.map_or(scale.clone(), |best| best.telling(scale)),
    ));
    let cost = &outcome.cost;
    facts.push(Fact {
        name: "Cost",
        value: figures::duration(cost.time),
        detail: format!(
            "{}, {} failed",
            figures::counted(cost.measurements, "measurement"),
            figures::count(cost.failed)
        ),
    });
    facts
}

fn bound_fact(question: &PlacementQuestion, outcome: &Outcome, scale: &Scale) -> Fact {
    let bound = &outcome.bound;
    let unknown = || "unknown".to_owned();
    Fact {
        name: "Gap",
        value: gap_text(bound).unwrap_or_else(unknown),
        detail: match bound.upb {
            Some(_) => {
                let texts = [Some(bound_text(bound, scale)), certified_text(question, bound)];
                texts.into_iter().flatten().collect::<Vec<_>>().join("; ")
            }
            None => format!(
                "no bound from {}; the reason is below",
                figures::counted(bound.n as u64, "assignment")
            ),
        },
    }
}

fn drawings(
    info: &CampaignInfo,
    outcome: &Outcome,
    leaves: &[CpuId],
    scale: &Scale,
) -> Vec<DrawnAssignment> {
    let draw = |title: String, best: &PlacedAssignment| DrawnAssignment {
        title,
        detail: best.performance.show(scale),
        plan: floorplan::draw(
            &info.new.machine,
            leaves,
            &info.new.workload.threads,
            &best.assignment,
        ),
    };
    let ties =
        outcome.ties.iter().take(TIES_DRAWN).zip(1..).map(|(tie, n)| draw(format!("Tie {n}"), tie));
    outcome.best.iter().map(|best| draw("Best".to_owned(), best)).chain(ties).collect()
}

/// Each thread and its context.
fn threads(info: &CampaignInfo, outcome: &Outcome, leaves: &[CpuId]) -> Table {
    let mut table = Table::new(["Thread", "Role", "Instance", "CPU", "Where"]);
    let Some(best) = &outcome.best else { return table };
    for (index, thread) in info.new.workload.threads.iter().enumerate() {
        let Some(cpu) = cpu(&best.assignment, index, leaves) else { continue };
        let path = floorplan::path(&info.new.machine, cpu);
        table.row([
            thread.name.clone(),
            thread.role.clone(),
            thread.instance.to_string(),
            cpu.0.to_string(),
            path,
        ]);
    }
    table
}

/// Each tie and where it differs from the best.
fn ties(info: &CampaignInfo, outcome: &Outcome, leaves: &[CpuId], scale: &Scale) -> Table {
    let mut table = Table::new(["", "Performance", "Interval", "Differs from the best in"]);
    let Some(best) = &outcome.best else { return table };
    for (tie, n) in outcome.ties.iter().zip(1..) {
        let moved: Vec<String> = info
            .new
            .workload
            .threads
            .iter()
            .enumerate()
            .filter_map(|(index, thread)| {
                let here = cpu(&best.assignment, index, leaves)?;
                let there = cpu(&tie.assignment, index, leaves)?;
                (here != there)
                    .then(|| format!("{}: CPU {} instead of {}", thread.name, there.0, here.0))
            })
            .collect();
        let interval = tie.performance.interval(scale);
        table.row([format!("Tie {n}"), tie.performance.value(scale), interval, moved.join("; ")]);
    }
    table
}

fn cpu(assignment: &Assignment, thread: usize, leaves: &[CpuId]) -> Option<CpuId> {
    leaves.get(*assignment.leaves().get(thread)? as usize).copied()
}

/// Every assignment must name the campaign's threads and contexts, or the drawing would lie.
fn fits(
    info: &CampaignInfo,
    records: &[Record],
    outcome: &Outcome,
    leaves: &[CpuId],
) -> Result<(), ReportError> {
    let (threads, contexts) = (info.new.workload.threads.len(), leaves.len());
    let recorded = records.iter().filter_map(|record| match &record.trial.setting {
        Setting::Pinned(assignment) => Some(assignment),
        _ => None,
    });
    let announced = outcome.best.iter().chain(&outcome.ties).map(|best| &best.assignment);
    let misfit = |assignment: &Assignment| {
        assignment.threads() != threads
            || assignment.leaves().iter().any(|&leaf| leaf as usize >= contexts)
    };
    if recorded.chain(announced).any(misfit) {
        return Err(ReportError::Misfit { id: info.id.0, threads, contexts });
    }
    Ok(())
}
