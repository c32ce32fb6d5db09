//! A search for number and placement as a page. It has the fresh windows, the assignment, the
//! probes, and the policies that were tried. It links to the pages of the parts.

use crate::chart::{Axis, Chart, Ink, Series, Shape};
use crate::figure::{Figure, Table};
use crate::floorplan::{self, Block};
use crate::html_frame::{HtmlFrame, ReportError};
use crate::last_comparison;
use crate::threads::{self, ThreadsSearch};
use askama::Template;
use pinwise_campaign::{CampaignInfo, Parent};
use pinwise_jobs::{PolicyMeasurements, TuneAnswer};
use pinwise_measure::{MemoryPolicy, Unit};
use pinwise_placement::{LastComparisonVerdict, Outcome};
use pinwise_present::figures::{self, Scale};
use pinwise_present::{
    Files, NextStep, TuneVerdict, Unfinished, campaign_state, no_tune_verdict, outcome_memory,
    performance_name, placed_by, policy_name, tagged_tune_notes, texts, tune_next, tune_part,
    unmeasured,
};
use pinwise_topology::{Policy, SharingTree};

/// What the page shows of such a search, next to its campaign.
pub struct TuneSearch<'a> {
    /// What was compared at last, and what performances are counted in; `None` before.
    pub compared: Option<(TuneVerdict<'a>, &'a Unit)>,
    /// What to know, as sentences.
    pub notes: Vec<String>,
    /// The search for the number alone; `None` before its first probe.
    pub number: Option<ThreadsSearch<'a>>,
    /// Numbers under policies of placement, in order, and what performances are counted in.
    pub tried: (Vec<TriedPolicy>, Unit),
    /// The numbers that were placed.
    pub placed: Vec<PlacedNumber<'a>>,
    /// The campaigns that this one consists of.
    pub parts: &'a [CampaignInfo],
    /// What to do with the plan, if there is one.
    pub next: Option<NextStep>,
}

impl<'a> TuneSearch<'a> {
    /// Of an answer as far as it came, and its parts.
    pub fn of(answer: &'a TuneAnswer, parts: &'a [CampaignInfo]) -> Self {
        let concluded = answer.concluded.as_ref();
        let conclusion = concluded.map(|concluded| &concluded.conclusion);
        let PolicyMeasurements { rows, unit, .. } = &answer.policies;
        let tried = rows.iter().map(|measured| TriedPolicy {
            n: measured.parameter,
            policy: measured.policy,
            memory: measured.memory,
            threads: measured.threads,
            performance: measured.performance,
        });
        let placed = answer.placements.iter().map(|placement| PlacedNumber {
            n: placement.parameter,
            search: match (&placement.searched, &placement.reason) {
                (Some(searched), _) => Ok((&searched.info, &searched.outcome)),
                (None, Some(reason)) => Err(unmeasured(reason)),
                (None, None) => Err("it was not tried".to_owned()),
            },
        });
        Self {
            compared: answer.verdict().zip(concluded.map(|concluded| &concluded.comparison.unit)),
            notes: texts(&tagged_tune_notes(answer.number_notes(), &answer.notes)),
            number: answer.threads.as_ref().map(|outcome| {
                ThreadsSearch::of(&answer.campaign, outcome, None, answer.compared_numbers())
            }),
            tried: (tried.collect(), unit.clone().unwrap_or_else(|| Unit::rate("1/s"))),
            placed: placed.collect(),
            parts,
            next: conclusion.and_then(|conclusion| {
                let decided = conclusion.choice != LastComparisonVerdict::Undecided;
                let conclusion = Some(conclusion).filter(|_| decided)?;
                Some(tune_next(
                    answer.plan.as_deref()?,
                    conclusion.command.as_deref(),
                    &conclusion.named,
                ))
            }),
        }
    }
}

/// A number under a policy of placement, measured once.
pub struct TriedPolicy {
    /// n.
    pub n: u32,
    /// `None`: unpinned.
    pub policy: Option<Policy>,
    /// Where its memory lay.
    pub memory: MemoryPolicy,
    /// Threads that were placed.
    pub threads: usize,
    /// Higher is better.
    pub performance: f64,
}

/// A number that was placed.
pub struct PlacedNumber<'a> {
    /// n.
    pub n: u32,
    /// The campaign of its search, and what that found; or why there is none.
    pub search: Result<(&'a CampaignInfo, &'a Outcome), String>,
}

/// The page of a search for number and placement: a complete HTML document that needs nothing else.
///
/// # Errors
/// The data could not be written, or the template not filled in.
pub fn tune_page(
    info: &CampaignInfo,
    unfinished: Option<&Unfinished>,
    search: &TuneSearch<'_>,
    files: Files<'_>,
) -> Result<String, ReportError> {
    let number = search.number.as_ref();
    let caveats = search.compared.iter().flat_map(|(compared, _)| compared.caveats());
    let document = TuneDocument {
        info,
        verdict: verdict(info, search),
        unfinished,
        notes: caveats.chain(search.notes.iter().cloned()).collect(),
        ways: ways(search),
        drawing: drawing(search),
        number: number.map(|number| {
            (number.verdict.as_str(), number.ended.as_deref(), threads::figure(number))
        }),
        tried: tried(search),
        placed: placed(search),
        parts: search.parts.iter().map(|part| CampaignPart::of(part, files)).collect(),
        next: next(info, search, files),
        version: env!("CARGO_PKG_VERSION"),
    };
    let number = document.number.as_ref().map(|(.., figure)| figure);
    let figures = [Some(&document.ways), number, Some(&document.tried)].into_iter().flatten();
    let charts: Vec<&Chart> = figures.filter_map(|figure| figure.chart.as_ref()).collect();
    let title =
        format!("{}: threads and placement, campaign {}", info.new.workload.name, info.id.0);
    HtmlFrame::page(title, document.render()?, &charts)
}

/// What the page shows.
#[derive(Template)]
#[template(path = "tune.html")]
struct TuneDocument<'a> {
    info: &'a CampaignInfo,
    verdict: String,
    unfinished: Option<&'a Unfinished>,
    notes: Vec<String>,
    ways: Figure,
    /// What is drawn, and the drawing.
    drawing: Option<(String, Block)>,
    /// The answer of the search for the number, and what it probed.
    number: Option<(&'a str, Option<&'a str>, Figure)>,
    tried: Figure,
    placed: Table,
    parts: Vec<CampaignPart>,
    next: Vec<NextStep>,
    version: &'static str,
}

/// A part, and where its page is.
struct CampaignPart {
    step: String,
    id: i64,
    measurements: String,
    state: &'static str,
    command: String,
}

impl CampaignPart {
    fn of(info: &CampaignInfo, files: Files<'_>) -> Self {
        let step = info.new.parent.as_ref().and_then(Parent::step);
        Self {
            step: step.map_or(String::new(), tune_part),
            id: info.id.0,
            measurements: figures::count(info.records),
            state: campaign_state(info),
            command: format!("pinwise report {}{}", info.id.0, files.flag()),
        }
    }
}

fn verdict(info: &CampaignInfo, search: &TuneSearch<'_>) -> String {
    match &search.compared {
        Some((compared, _)) => compared.answer(),
        None => no_tune_verdict(info),
    }
}

/// The ways against each other on fresh windows.
fn ways(search: &TuneSearch<'_>) -> Figure {
    const TITLE: &str = "Number and placement against the default";
    let Some((compared, unit)) = &search.compared else {
        return Figure::absent(TITLE, "Nothing is compared on fresh windows yet.");
    };
    last_comparison::figure(TITLE, compared.rounds, unit, |way| compared.name(way))
}

/// The placement that was compared, on the machine.
fn drawing(search: &TuneSearch<'_>) -> Option<(String, Block)> {
    let (compared, unit) = search.compared.as_ref()?;
    let placed = search.placed.iter().find(|placed| placed.n == compared.n)?;
    let (info, outcome) = placed.search.as_ref().ok()?;
    let best = outcome.best.as_ref()?;
    let tree = SharingTree::new(&info.new.machine, info.new.alike);
    let scale = Scale::new(unit, best.performance.mean);
    let memory = outcome_memory(info, outcome);
    let memory = memory.map_or(String::new(), |memory| format!(" Memory: {memory}."));
    let says = format!(
        "The assignment of n = {} that was compared. In its own search it reached {}.{memory}",
        compared.n,
        best.performance.show(&scale)
    );
    let threads = &info.new.workload.threads;
    Some((says, floorplan::draw(&info.new.machine, tree.leaves(), threads, &best.assignment)))
}

/// Numbers under policies of placement.
fn tried(search: &TuneSearch<'_>) -> Figure {
    const TITLE: &str = "Numbers under policies of placement";
    let (rows, unit) = &search.tried;
    let Some(first) = rows.first() else {
        return Figure::absent(TITLE, "No policy was tried: there was no time, or nothing to try.");
    };
    let scale = Scale::new(unit, first.performance);
    let mut table = Table::new(["n", "Policy", "Threads placed", performance_name(unit)]);
    for row in rows {
        table.row([
            row.n.to_string(),
            placed_by(row.policy, row.memory),
            row.threads.to_string(),
            scale.show(row.performance),
        ]);
    }
    let y = Axis { reversed: scale.reversed(), ..Axis::new(&scale.label) };
    let mut chart = Chart::new("chart-policies", Axis::new("n"), y);
    let looks = [
        (None, Shape::Rings, Ink::Baseline),
        (Some(Policy::Compact), Shape::Dots, Ink::Data),
        (Some(Policy::Cores), Shape::Rings, Ink::Best),
        (Some(Policy::Scatter), Shape::Dots, Ink::Best),
        (Some(Policy::Fast), Shape::Rings, Ink::Data),
    ];
    for (policy, shape, ink) in looks {
        let own = rows.iter().filter(|row| row.policy == policy);
        let points = own.map(|row| (f64::from(row.n), scale.value(row.performance)));
        chart = chart.series(Series::new(policy_name(policy), shape, ink, points));
    }
    let best = rows.iter().max_by(|a, b| a.performance.total_cmp(&b.performance)).unwrap_or(first);
    Figure {
        title: TITLE,
        says: format!(
            "{}. The best was n = {}, {}: {}.",
            figures::counted(rows.len() as u64, "measurement"),
            best.n,
            placed_by(best.policy, best.memory),
            scale.show(best.performance)
        ),
        reading: "Each dot is one measurement. pinwise measured where it learned most about which \
                  numbers to place. No answer rests on these.",
        chart: Some(chart),
        table,
    }
}

/// The numbers near the best, placed.
fn placed(search: &TuneSearch<'_>) -> Table {
    let mut table = Table::new(["n", "Threads placed", "Measurements", "Unpinned", "Pinned"]);
    for PlacedNumber { n, search } in &search.placed {
        let none = || "-".to_owned();
        match search {
            Ok((info, outcome)) => {
                let show = |performance: Option<f64>| {
                    let scale = |value| Scale::new(&info.new.unit, value);
                    performance.map_or_else(none, |value| scale(value).show(value))
                };
                table.row([
                    n.to_string(),
                    info.new.workload.threads.len().to_string(),
                    figures::count(outcome.cost.measurements),
                    show(outcome.baseline.as_ref().map(|baseline| baseline.mean)),
                    show(outcome.best.as_ref().map(|best| best.performance.mean)),
                ]);
            }
            Err(why) => {
                table.row([n.to_string(), none(), none(), none(), format!("not placed: {why}")]);
            }
        }
    }
    table
}

fn next(info: &CampaignInfo, search: &TuneSearch<'_>, files: Files<'_>) -> Vec<NextStep> {
    let (id, flag) = (info.id.0, files.flag());
    let show = NextStep {
        what: "show the same on a terminal",
        command: format!("pinwise campaign show {id}{flag}"),
    };
    search.next.clone().into_iter().chain([show]).collect()
}
