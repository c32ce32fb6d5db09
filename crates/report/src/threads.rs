//! A search for a number of threads as a page: its answer, the speed with each number, its probes.

use crate::chart::{Axis, Chart, Ink, Series, Shape};
use crate::figure::{Figure, Table};
use crate::html_frame::{HtmlFrame, ReportError};
use askama::Template;
use pinwise_campaign::CampaignInfo;
use pinwise_jobs::{ComparedNumbers, Confirmation, ThreadsOutcome};
use pinwise_measure::{Probe, Unit};
use pinwise_present::figures::{self, Scale};
use pinwise_present::{
    Files, NextStep, Unfinished, no_number, sentence, tagged_threads_notes, texts,
};
use std::collections::BTreeMap;

/// What the page shows of a search, next to its campaign.
#[derive(Clone, Debug)]
pub struct ThreadsSearch {
    /// Its answer, or why it has none, as a sentence.
    pub verdict: String,
    /// Why it ended, as a sentence.
    pub ended: Option<String>,
    /// The number that it chose.
    pub chosen: Option<u32>,
    /// What progress is counted in.
    pub unit: Unit,
    /// The probes that the answer rests on, in order.
    pub probes: Vec<Probe>,
    /// What to know, as sentences.
    pub notes: Vec<String>,
}

impl ThreadsSearch {
    /// Of a search of the campaign `info`, and of what fresh windows show of its number.
    /// `compared`: what a later comparison shows.
    pub fn of(
        info: &CampaignInfo,
        outcome: &ThreadsOutcome,
        confirmation: Option<&Confirmation>,
        compared: Option<ComparedNumbers>,
    ) -> Self {
        let compared = compared.or_else(|| confirmation.and_then(Confirmation::compared_numbers));
        let (verdict, ended) = match &outcome.found {
            Ok(found) => {
                let stopped = outcome.stopped(found, compared.is_some()).text();
                (outcome.answer(found, confirmation, compared).text(), Some(sentence(&stopped)))
            }
            Err(why) => (no_number(info, why.as_ref()), None),
        };
        let fresh = confirmation.map_or_else(Vec::new, Confirmation::notes);
        Self {
            verdict,
            ended,
            chosen: outcome.number(confirmation),
            unit: outcome.unit.clone().unwrap_or_else(|| Unit::rate("1/s")),
            probes: outcome.probes.iter().map(|shown| shown.probe).collect(),
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
    search: &ThreadsSearch,
    files: Files<'_>,
) -> Result<String, ReportError> {
    let document = ThreadsDocument {
        info,
        verdict: &search.verdict,
        ended: search.ended.as_deref(),
        unfinished,
        notes: &search.notes,
        figure: figure(search),
        next: [NextStep {
            what: "write every probe behind this page",
            command: format!("pinwise campaign export {}{}", info.id.0, files.flag()),
        }],
        version: env!("CARGO_PKG_VERSION"),
    };
    let charts: Vec<&Chart> = document.figure.chart.iter().collect();
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
    unfinished: Option<&'a Unfinished>,
    notes: &'a [String],
    figure: Figure,
    next: [NextStep; 1],
    version: &'static str,
}

/// Speed by number: every probe, and the means of the numbers.
pub(crate) fn figure(search: &ThreadsSearch) -> Figure {
    const TITLE: &str = "Progress with each number of threads";
    let rate = |probe: &Probe| probe.progress.rate;
    let best = search.probes.iter().map(rate).fold(0.0, f64::max);
    if search.probes.is_empty() {
        return Figure::absent(TITLE, "No number has been probed yet.");
    }
    let scale = Scale::new(&search.unit, best);
    let mut numbers: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    let mut table =
        Table::new(["n", "Threads", "LOCK", "VCX_RATE", "MIGR_RATE", "CPU_UTIL", "Progress"]);
    for probe in &search.probes {
        numbers.entry(probe.parameter).or_default().push(rate(probe));
        let profile = &probe.profile;
        table.row([
            probe.parameter.to_string(),
            probe.threads.to_string(),
            figures::percent(profile.lock / 100.0),
            figures::event_rate(profile.vcx_rate),
            figures::event_rate(profile.migr_rate),
            figures::percent(profile.cpu_util / 100.0),
            scale.show(rate(probe)),
        ]);
    }
    let y = Axis { reversed: search.unit.reciprocal, ..Axis::new(&scale.label) };
    let probes =
        search.probes.iter().map(|probe| (f64::from(probe.parameter), scale.value(rate(probe))));
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
