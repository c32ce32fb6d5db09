//! A selection as a page. It shows which of the ready programs run together and where, and what
//! each selection gave over random assignments. It also shows how much better anything could be.

use crate::characterization::Sharing;
use crate::chart::{Axis, Chart, Ink, Series, Shape};
use crate::figure::{Figure, Table};
use crate::floorplan::{self, Block};
use crate::html_frame::{HtmlFrame, ReportError};
use askama::Template;
use pinwise_campaign::CampaignInfo;
use pinwise_characterization::StoredCharacterization;
use pinwise_jobs::SelectAnswer;
use pinwise_measure::Thread;
use pinwise_placement::{PlacedSelection, SelectionOutcome};
use pinwise_present::figures::{self, Scale};
use pinwise_present::{
    Files, NextStep, Unfinished, alone_rate, bound_notes, selection_bound, selection_estimates,
    selection_name, selection_verdict, selections_drawn, sentence, simulated,
};
use pinwise_topology::{Assignment, SharingTree};

/// Selections that the chart has room for; the table has all.
const DRAWN: usize = 30;

/// What the page shows besides the campaign.
pub struct Selection<'a> {
    /// What was found.
    pub outcome: &'a SelectionOutcome,
    /// The selections of the outcome, in its order.
    pub names: Vec<String>,
    /// Each program and what an instance of it does alone, with its unit.
    pub alone: Vec<(String, String)>,
    /// The program of every ready instance.
    pub ready: Vec<String>,
    /// How many run together.
    pub choose: usize,
}

impl<'a> Selection<'a> {
    /// Of an answer.
    pub fn of(answer: &'a SelectAnswer) -> Self {
        let (outcome, names) = (&answer.outcome, answer.request.names());
        let drawn = outcome.selections.iter();
        Self {
            names: drawn
                .map(|drawn| selection_name(&names, answer.instances(&drawn.counts)))
                .collect(),
            alone: answer
                .alone()
                .into_iter()
                .map(|(name, rate)| (name, alone_rate(rate)))
                .collect(),
            choose: answer.request.question.choose,
            ready: names,
            outcome,
        }
    }
}

/// The page of a selection: a complete HTML document that needs nothing else.
///
/// # Errors
/// The data could not be written, or the template not filled in.
pub fn selection_page(
    info: &CampaignInfo,
    unfinished: Option<&Unfinished>,
    selection: &Selection<'_>,
    files: Files<'_>,
    characterization: Option<&StoredCharacterization>,
) -> Result<String, ReportError> {
    let outcome = selection.outcome;
    let unit = &info.new.unit;
    let document = SelectionDocument {
        info,
        verdict: selection_verdict(outcome, &selection.ready, selection.choose).text,
        unfinished,
        simulated: simulated(info),
        plan: outcome.best.as_ref().map(|best| plan(info, best)),
        estimates: selection_estimates(outcome, &selection.ready, unit),
        bound: sentence(&selection_bound(outcome, unit)),
        notes: bound_notes(&outcome.bound, unit, 1.0),
        figure: figure(selection, &Scale::new(unit, 1.0)),
        alone: &selection.alone,
        sharing: characterization.map(|kept| Sharing::of(kept, files)),
        next: [NextStep {
            what: "write every measurement behind this page",
            command: format!("pinwise campaign export {}{}", info.id.0, files.flag()),
        }],
        version: env!("CARGO_PKG_VERSION"),
    };
    let charts: Vec<&Chart> = document.figure.chart.iter().collect();
    let title = format!("{}: selection, campaign {}", info.new.workload.name, info.id.0);
    HtmlFrame::page(title, document.render()?, &charts)
}

/// What the page shows.
#[derive(Template)]
#[template(path = "selection.html")]
struct SelectionDocument<'a> {
    info: &'a CampaignInfo,
    verdict: String,
    unfinished: Option<&'a Unfinished>,
    simulated: Option<String>,
    plan: Option<Block>,
    estimates: Vec<(&'static str, String)>,
    bound: String,
    notes: Vec<String>,
    figure: Figure,
    alone: &'a [(String, String)],
    sharing: Option<Sharing>,
    next: [NextStep; 1],
    version: &'static str,
}

/// The threads that run, where they run.
fn plan(info: &CampaignInfo, best: &PlacedSelection) -> Block {
    let tree = SharingTree::new(&info.new.machine, info.new.alike);
    let members =
        best.instances.iter().flat_map(|pinned| info.new.workload.members(pinned.instance));
    let threads: Vec<Thread> =
        members.map(|thread| info.new.workload.threads[thread].clone()).collect();
    let assignment =
        Assignment::new(best.instances.iter().flat_map(|pinned| pinned.leaves.clone()).collect());
    floorplan::draw(&info.new.machine, tree.leaves(), &threads, &assignment)
}

fn figure(selection: &Selection<'_>, scale: &Scale) -> Figure {
    const TITLE: &str = "What each selection gives on random assignments";
    let outcome = selection.outcome;
    let all: Vec<_> = selection.names.iter().zip(&outcome.selections).collect();
    let (Some((best, first)), Some((worst, last))) = (all.first(), all.last()) else {
        return Figure::absent(TITLE, "No selection has been drawn yet.");
    };
    let shown = &all[..all.len().min(DRAWN)];
    let at = |index: usize| (shown.len() - 1 - index) as f64;
    let y = Axis {
        names: shown.iter().rev().map(|(name, _)| (*name).clone()).collect(),
        ..Axis::default()
    };
    let mut chart = Chart::new("chart-selections", Axis::new(&scale.label), y);
    chart.bars_along_x = true;
    let mut table = Table::new(["Selection", "Mean", "Interval", "Draws", "Best window"]);
    for (name, drawn) in &all {
        let performance = &drawn.performance;
        let known = performance.low.is_finite() && performance.high.is_finite();
        table.row([
            (*name).clone(),
            performance.value(scale),
            if known { scale.range(performance.low, performance.high) } else { String::new() },
            figures::count(performance.n as u64),
            scale.show(drawn.best),
        ]);
    }
    for (index, (_, drawn)) in shown.iter().enumerate() {
        let ends = [drawn.performance.low, drawn.performance.mean, drawn.performance.high]
            .map(|end| scale.value(end));
        chart = chart.bar(Ink::Data, at(index), (ends[0], ends[1], ends[2]));
    }
    let points = |value: fn(&pinwise_placement::DrawnSelection) -> f64| {
        shown
            .iter()
            .enumerate()
            .map(|(index, (_, drawn))| (scale.value(value(drawn)), at(index)))
            .collect::<Vec<_>>()
    };
    chart = chart
        .series(Series::new(
            "mean of its draws",
            Shape::Dots,
            Ink::Data,
            points(|drawn| drawn.performance.mean),
        ))
        .series(Series::new(
            "its best window",
            Shape::Rings,
            Ink::Data,
            points(|drawn| drawn.best),
        ));
    if let Some(best) = &outcome.best {
        chart = chart.mark("announced", Ink::Best, scale.value(best.performance.mean), None);
    }
    if let Some(upb) = outcome.bound.upb {
        chart = chart.mark(
            "bound",
            Ink::Bound,
            scale.value(upb),
            outcome.bound.upb_high.map(|high| scale.value(high)),
        );
    }
    Figure {
        title: TITLE,
        says: format!(
            "{} {best} has the best mean over its assignments, {}. {worst} has the worst, {}.",
            selections_drawn(outcome),
            first.performance.show(scale),
            last.performance.show(scale)
        ),
        reading: "A dot is the mean over the random assignments of a selection. The bar is its \
            interval, the ring its best single window. The distance from a dot to its ring shows \
            how much the assignment matters. The distance between dots shows how much the choice \
            matters. The announced selection has its own windows.",
        chart: Some(chart),
        table,
    }
}
