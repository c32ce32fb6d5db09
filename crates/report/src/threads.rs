//! The page of a search for a number of threads. It shows the answer, the fresh windows that decide
//! it, and the probes.

use crate::chart::{Axis, Chart, Ink, Series, Shape};
use crate::figure::{Figure, Table};
use crate::html_frame::{HtmlFrame, ReportError};
use crate::last_comparison;
use askama::Template;
use pinwise_campaign::CampaignInfo;
use pinwise_jobs::{ComparedNumbers, Confirmation, ShownProbe, ThreadsOutcome};
use pinwise_measure::Unit;
use pinwise_present::figures::{self, Scale};
use pinwise_present::{
    Files, NextStep, NumberVerdict, ROLE_COLUMNS, Unfinished, critical_roles, fewer_threads,
    no_number, performance_name, role_cells, sentence, tagged_threads_notes, texts,
};
use std::collections::BTreeMap;

/// What the page shows of a search, next to its campaign.
#[derive(Clone, Debug)]
pub struct ThreadsSearch<'a> {
    /// Its answer, or why it has none, as a sentence.
    pub verdict: String,
    /// Why it ended, as a sentence.
    pub ended: Option<String>,
    /// What the probes leave open, as a sentence.
    pub open: Option<String>,
    /// What fresh windows compared, and what performances are counted in.
    pub compared: Option<(NumberVerdict<'a>, &'a Unit)>,
    /// The number that it chose.
    pub chosen: Option<u32>,
    /// What progress is counted in.
    pub unit: Unit,
    /// The probes that the answer rests on, in order.
    pub probes: &'a [ShownProbe],
    /// What to know, as sentences.
    pub notes: Vec<String>,
}

impl<'a> ThreadsSearch<'a> {
    /// Of a search of the campaign `info`, and of what fresh windows show of its number.
    /// `compared`: what a later comparison shows.
    pub fn of(
        info: &CampaignInfo,
        outcome: &'a ThreadsOutcome,
        confirmation: Option<&'a Confirmation>,
        compared: Option<ComparedNumbers>,
    ) -> Self {
        let numbers = compared.or_else(|| confirmation.and_then(Confirmation::compared_numbers));
        let (verdict, ended) = match &outcome.found {
            Ok(found) => {
                let stopped = outcome.stopped(found, numbers.is_some()).text();
                (outcome.answer(found, confirmation, numbers).text(), Some(sentence(&stopped)))
            }
            Err(why) => (no_number(info, why.as_ref()), None),
        };
        let found = outcome.found.as_ref().ok();
        let advice = found.and_then(|found| outcome.advice(found, numbers));
        let contexts = outcome.question.contexts;
        let open = advice.and_then(|found| fewer_threads(found.threads, &found.open, contexts));
        let fresh = confirmation.map_or_else(Vec::new, Confirmation::notes);
        Self {
            verdict,
            ended,
            open: open.as_deref().map(sentence),
            compared: confirmation.map(|shown| (shown.verdict(), &shown.comparison.unit)),
            chosen: outcome.number(confirmation),
            unit: outcome.unit.clone().unwrap_or_else(|| Unit::rate("1/s")),
            probes: &outcome.probes,
            notes: texts(&tagged_threads_notes(&outcome.notes, &fresh)),
        }
    }
}

/// The page of a search for a number of threads: a complete HTML document that needs nothing else.
///
/// # Errors
/// The data could not be written, or the template not filled in.
pub fn threads_page(
    info: &CampaignInfo,
    unfinished: Option<&Unfinished>,
    search: &ThreadsSearch<'_>,
    files: Files<'_>,
) -> Result<String, ReportError> {
    let document = ThreadsDocument {
        info,
        verdict: &search.verdict,
        ended: search.ended.as_deref(),
        open: search.open.as_deref(),
        unfinished,
        notes: &search.notes,
        fresh: search.compared.as_ref().map(|(compared, unit)| {
            let title = "The number against the default";
            last_comparison::figure(title, compared.rounds, unit, |way| compared.name(way))
        }),
        figure: figure(search),
        spent: spent(search),
        next: [NextStep {
            what: "write every probe behind this page",
            command: format!("pinwise campaign export {}{}", info.id.0, files.flag()),
        }],
        version: env!("CARGO_PKG_VERSION"),
    };
    let figures = document.fresh.iter().chain([&document.figure]);
    let charts: Vec<&Chart> = figures.filter_map(|figure| figure.chart.as_ref()).collect();
    let title = format!("{}: threads, campaign {}", info.new.workload.name, info.id.0);
    HtmlFrame::page(title, document.render()?, &charts)
}

/// What the page shows.
#[derive(Template)]
#[template(path = "threads.html")]
struct ThreadsDocument<'a> {
    info: &'a CampaignInfo,
    verdict: &'a str,
    ended: Option<&'a str>,
    open: Option<&'a str>,
    unfinished: Option<&'a Unfinished>,
    notes: &'a [String],
    /// What the answer rests on.
    fresh: Option<Figure>,
    figure: Figure,
    spent: Option<TimeOfRoles>,
    next: [NextStep; 1],
    version: &'static str,
}

/// How the threads of the chosen number spent their time.
struct TimeOfRoles {
    n: u32,
    critical: String,
    roles: Table,
}

fn spent(search: &ThreadsSearch<'_>) -> Option<TimeOfRoles> {
    let n = search.chosen?;
    let shown = search.probes.iter().find(|shown| shown.probe.parameter == n)?;
    let mut roles = Table::new(ROLE_COLUMNS);
    shown.roles.iter().for_each(|role| roles.row(role_cells(role)));
    Some(TimeOfRoles { n, critical: critical_roles(&shown.roles), roles })
}

/// Speed by number: every probe, and the means of the numbers.
pub(crate) fn figure(search: &ThreadsSearch<'_>) -> Figure {
    const TITLE: &str = "Progress with each number of threads";
    let rate = |shown: &ShownProbe| shown.probe.progress.rate;
    let best = search.probes.iter().map(rate).fold(0.0, f64::max);
    if search.probes.is_empty() {
        return Figure::absent(TITLE, "No number has been probed yet.");
    }
    let scale = Scale::new(&search.unit, best);
    let mut numbers: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    let progress = performance_name(&search.unit);
    let mut table = Table::new([
        "n",
        "threads",
        "LOCK",
        "VCX_RATE",
        "MIGR_RATE",
        "CPU_UTIL",
        progress,
        "std. error",
    ]);
    for shown in search.probes {
        let probe = &shown.probe;
        numbers.entry(probe.parameter).or_default().push(rate(shown));
        let error = probe.progress.error.filter(|_| rate(shown) > 0.0);
        let profile = &probe.profile;
        table.row([
            probe.parameter.to_string(),
            probe.threads.to_string(),
            figures::percent(profile.lock / 100.0),
            figures::event_rate(profile.vcx_rate),
            figures::event_rate(profile.migr_rate),
            figures::percent(profile.cpu_util / 100.0),
            scale.show(rate(shown)),
            error.map_or("-".into(), |error| figures::percent(error / rate(shown))),
        ]);
    }
    let y = Axis { reversed: search.unit.reciprocal, ..Axis::new(&scale.label) };
    let probes =
        search.probes.iter().map(|one| (f64::from(one.probe.parameter), scale.value(rate(one))));
    let means = numbers.iter().map(|(&n, rates)| {
        (f64::from(n), scale.value(rates.iter().sum::<f64>() / rates.len() as f64))
    });
    let mut chart = Chart::new("chart-threads", Axis::new("n"), y)
        .series(Series::new("mean of a number", Shape::Line, Ink::Faint, means))
        .series(Series::new("a probe", Shape::Dots, Ink::Data, probes));
    if let Some(chosen) = search.chosen {
        chart = chart.mark("chosen", Ink::Best, f64::from(chosen), None);
    }
    Figure {
        title: TITLE,
        says: format!(
            "{} of {} different numbers. The fastest reached {}.",
            figures::counted(search.probes.len() as u64, "probe"),
            numbers.len(),
            scale.show(best)
        ),
        reading: "Each dot is one probe of a moment. The line goes through the mean of each \
                  number.",
        chart: Some(chart),
        table,
    }
}
