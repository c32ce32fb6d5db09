//! The page of `pairs`: the pairing, the matrix as a heat map, and every pair.

use crate::figure::Table;
use crate::heat_map::{HeatCell, HeatMap, SHADES};
use crate::html_frame::ReportError;
use askama::Template;
use pinwise_campaign::CampaignInfo;
use pinwise_jobs::PairsAnswer;
use pinwise_present::{Files, NextStep, PairsFindings, Unfinished, note, pairs_ran, simulated};

/// The lightest shade is that of this weighted speed-up and less, the darkest that of
/// [`FAST`] and more.
const SLOW: f64 = 0.7;
const FAST: f64 = 1.9;

/// The page of `pairs`: a complete HTML document that needs nothing else.
///
/// # Errors
/// The template could not be filled in.
pub fn pairs_page(answer: &PairsAnswer, files: Files<'_>) -> Result<String, ReportError> {
    let (findings, info) = (answer.findings(), &answer.campaign);
    let mut programs = Table::new(PairsFindings::PROGRAM_HEAD);
    for program in 0..answer.names.len() {
        programs.row(findings.program_row(program));
    }
    let mut pairs = Table::new(PairsFindings::PAIR_HEAD);
    findings.best_first().into_iter().for_each(|pair| pairs.row(findings.pair_row(pair)));
    let page = PairsPage {
        info,
        verdict: findings.verdict(),
        unfinished: answer.unfinished(files),
        sentences: findings.sentences(),
        simulated: simulated(info),
        notes: answer.notes.iter().map(note).collect(),
        ran: pairs_ran(answer.seats.level, &answer.contexts(), answer.outcome.measurements),
        scale: (0..SHADES).map(|shade| format!("s{shade}")).collect(),
        heat_map: heat_map(&findings),
        programs,
        legend: findings.legend(),
        pairs,
        next: [NextStep {
            what: "write every measurement behind this page",
            command: format!("pinwise campaign export {}{}", info.id.0, files.flag()),
        }],
        version: env!("CARGO_PKG_VERSION"),
    };
    Ok(page.render()?)
}

#[derive(Template)]
#[template(path = "pairs.html")]
struct PairsPage<'a> {
    info: &'a CampaignInfo,
    verdict: String,
    unfinished: Option<Unfinished>,
    sentences: Vec<String>,
    simulated: Option<String>,
    notes: Vec<String>,
    ran: String,
    scale: Vec<String>,
    heat_map: HeatMap,
    programs: Table,
    legend: Vec<String>,
    pairs: Table,
    next: [NextStep; 1],
    version: &'static str,
}

fn heat_map(findings: &PairsFindings<'_>) -> HeatMap {
    let programs = 0..findings.names.len();
    let shade = |value: f64| {
        let place = (value - SLOW) / (FAST - SLOW) * SHADES as f64;
        place.clamp(0.0, SHADES as f64 - 1.0) as usize
    };
    let cell = |one, other| HeatCell {
        shade: findings.weighted_speedup(one, other).map(shade),
        text: findings.cell(one, other).unwrap_or_else(|| "?".into()),
    };
    let name = |one: usize| format!("{} {}", one + 1, findings.names[one]);
    HeatMap {
        label: "weighted speed-up of each pair",
        corner: "beside",
        head: programs.clone().map(|one| (one + 1).to_string()).collect(),
        rows: programs
            .clone()
            .map(|one| (name(one), programs.clone().map(|other| cell(one, other)).collect()))
            .collect(),
    }
}
