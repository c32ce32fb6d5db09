//! Co-scheduling as a page: whether it helps, and what each program makes.

use crate::figure::Table;
use crate::html_frame::ReportError;
use askama::Template;
use pinwise_campaign::CampaignInfo;
use pinwise_jobs::CoschedAnswer;
use pinwise_present::{Files, NextStep, Unfinished, coscheduled_over, note};

/// The page of co-scheduled programs: a complete HTML document that needs nothing else.
///
/// # Errors
/// The template could not be filled in.
pub fn cosched_page(answer: &CoschedAnswer, files: Files<'_>) -> Result<String, ReportError> {
    let (findings, info) = (answer.findings(), &answer.campaign);
    let mut programs = Table::new(findings.program_head());
    for program in &answer.outcome.programs {
        programs.row(findings.program_row(program));
    }
    let page = CoschedPage {
        info,
        verdict: findings.verdict(),
        unfinished: answer.unfinished(files),
        sentences: findings.sentences(),
        notes: answer.notes.iter().map(note).collect(),
        ran: coscheduled_over(answer.level, &answer.outcome.cost, info.records),
        programs,
        table_note: findings.table_note(),
        next: [NextStep {
            what: "write every period behind this page",
            command: format!("pinwise campaign export {}{}", info.id.0, files.flag()),
        }],
        version: env!("CARGO_PKG_VERSION"),
    };
    Ok(page.render()?)
}

#[derive(Template)]
#[template(path = "cosched.html")]
struct CoschedPage<'a> {
    info: &'a CampaignInfo,
    verdict: String,
    unfinished: Option<Unfinished>,
    sentences: Vec<String>,
    notes: Vec<String>,
    ran: String,
    programs: Table,
    table_note: Option<&'static str>,
    next: [NextStep; 1],
    version: &'static str,
}
