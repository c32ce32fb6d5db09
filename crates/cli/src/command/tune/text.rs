//! The answer of `pinwise tune` as text.

use super::document::{TuneJson, UnfinishedTuneJson, unit};
use crate::command::threads;
use crate::output;
use comfy_table::{CellAlignment, Table, presets};
use pinwise_jobs::{
    PolicyMeasurement, PolicyMeasurements, ThreadsMethod, TuneAnswer, TunedPlacement,
};
use pinwise_measure::Unit;
use pinwise_placement::{LastComparisonVerdict, PlannedNumber, Way};
use pinwise_present::figures::{self, Scale};
use pinwise_present::{
    Files, LabelledLines, gain_text, no_tune_verdict, outcome_memory, performance_name, placed_by,
    tagged_tune_notes, tune_next,
};
use pinwise_topology::{Footprint, SharingTree};
use std::path::Path;

/// The whole answer, `width` columns wide: what to do and what qualifies it, then what that rests
/// on. With `verbose` also how the threads were watched.
pub(super) fn result(
    document: &TuneJson<'_>,
    files: Files<'_>,
    width: usize,
    verbose: bool,
) -> String {
    let mut sheet = LabelledLines { text: String::new(), width };
    sheet.paragraph("", 0, &document.verdict.answer());
    sheet.unfinished(document.answer.unfinished(files).as_ref());
    document.verdict.caveats().iter().for_each(|caveat| sheet.paragraph("", 0, caveat));
    notes(&mut sheet, document.answer, verbose);
    sheet.text.push('\n');
    let conclusion = document.conclusion;
    match (&document.answer.plan, conclusion.choice) {
        (Some(plan), LastComparisonVerdict::Undecided) => {
            sheet.line("plan", &format!("{}, undecided: the default", plan.to_string_lossy()));
        }
        (plan, _) => {
            let command = conclusion.command.as_deref();
            next(&mut sheet, plan.as_deref(), command, &conclusion.named);
        }
    }
    sheet.text.push('\n');
    comparison(&mut sheet, document);
    if conclusion.choice == LastComparisonVerdict::Placed
        && let Some(placed) = document.placement()
        && let Some(best) = &placed.outcome.best
    {
        let new = &placed.info.new;
        let names: Vec<String> =
            new.workload.threads.iter().map(|thread| thread.name.clone()).collect();
        let tree = SharingTree::new(&new.machine, new.alike);
        sheet.text.push_str(&pinwise_present::draw_assignment(
            &new.machine,
            tree.leaves(),
            &names,
            &best.assignment,
            width,
        ));
        sheet.text.push('\n');
        if let Some(memory) = outcome_memory(&placed.info, &placed.outcome) {
            sheet.line("memory", &memory);
        }
    }
    sheet.text.push_str("\nPlacements of the best numbers:\n");
    sheet.text.push_str(&placements(&document.answer.placements, &document.comparison.unit, width));
    searched(&mut sheet, &document.surveyed, &document.answer.policies, verbose);
    let (took, budget) =
        (figures::duration(conclusion.time), figures::duration(document.answer.budget));
    let id = document.answer.campaign.id.0;
    sheet.text.push('\n');
    sheet.paragraph("", 0, &format!("The search took {took} of {budget}. It is campaign {id}."));
    sheet.text
}

/// What is known about a search that has no answer.
pub(super) fn remains(remains: &UnfinishedTuneJson<'_>, files: Files<'_>, width: usize) -> String {
    let mut sheet = LabelledLines { text: String::new(), width };
    sheet.paragraph("", 0, &no_tune_verdict(&remains.answer.campaign));
    sheet.unfinished(remains.answer.unfinished(files).as_ref());
    notes(&mut sheet, remains.answer, false);
    // Where none could be placed the notes say why of each.
    if let Some(unit) = unit(&remains.answer.placements) {
        sheet.text.push_str("\nPlacements of the best numbers so far:\n");
        sheet.text.push_str(&placements(&remains.answer.placements, unit, width));
    }
    match (&remains.surveyed, &remains.answer.threads) {
        (Some(surveyed), _) => searched(&mut sheet, surveyed, &remains.answer.policies, false),
        (None, Some(outcome)) => threads::probed_so_far(&mut sheet, outcome),
        (None, None) => (),
    }
    sheet.text
}

fn notes(sheet: &mut LabelledLines, answer: &TuneAnswer, verbose: bool) {
    let method = answer.threads.as_ref().map(|threads| threads.question.request.method);
    let all = tagged_tune_notes(answer.number_notes(), &answer.notes);
    threads::notes(sheet, &all, verbose || method == Some(ThreadsMethod::Reinforcer));
}

/// Numbers under policies of placement, and the number alone.
fn searched(
    sheet: &mut LabelledLines,
    surveyed: &threads::ThreadsJson,
    policies: &PolicyMeasurements,
    verbose: bool,
) {
    if let Some(unit) = &policies.unit {
        sheet.text.push_str("\nNumbers under placement policies, measured once each:\n");
        sheet.text.push_str(&tried(policies, unit, sheet.width));
    }
    sheet.text.push('\n');
    if verbose {
        sheet.paragraph("The number alone, ", 0, &surveyed.unconfirmed);
    } else {
        sheet.paragraph("", 0, "The number alone:");
    }
    sheet.line("ended", &surveyed.why());
    sheet.text.push_str(&threads::probed(surveyed, sheet.width));
    if let Some(watched) = threads::watched(surveyed).filter(|_| verbose) {
        sheet.line("monitor", &watched);
    }
}

fn tried(policies: &PolicyMeasurements, unit: &Unit, width: usize) -> String {
    let scale =
        Scale::new(unit, policies.rows.first().map_or(1.0, |measured| measured.performance));
    let row = |measured: &PolicyMeasurement| {
        let used = |of: fn(&Footprint) -> u32| {
            measured.footprint.as_ref().map_or("-".to_owned(), |used| of(used).to_string())
        };
        vec![
            measured.parameter.to_string(),
            placed_by(measured.policy, measured.memory),
            measured.threads.to_string(),
            used(|used| used.cores),
            used(|used| used.packages),
            scale.show(measured.performance),
        ]
    };
    table(
        vec!["n", "policy", "threads placed", "cores", "packages", performance_name(unit)],
        policies.rows.iter().map(row),
        width,
    )
}

fn placements(placements: &[TunedPlacement], unit: &Unit, width: usize) -> String {
    let typical = placements.iter().find_map(TunedPlacement::best).unwrap_or(1.0);
    let scale = Scale::new(unit, typical);
    let row = |placement: &TunedPlacement| {
        let searched = placement.searched.as_ref();
        let outcome = searched.map(|searched| &searched.outcome);
        let show = |value: Option<f64>| value.map_or("-".to_owned(), |value| scale.show(value));
        vec![
            placement.parameter.to_string(),
            searched.map_or("-".into(), |searched| {
                searched.info.new.workload.threads.len().to_string()
            }),
            outcome.map_or("-".into(), |outcome| figures::count(outcome.cost.measurements)),
            show(outcome.and_then(|outcome| Some(outcome.baseline.as_ref()?.mean))),
            show(outcome.and_then(|outcome| Some(outcome.best.as_ref()?.performance.mean))),
            searched.map_or("-".into(), |searched| searched.info.id.0.to_string()),
        ]
    };
    let header = vec!["n", "threads placed", "measurements", "unpinned", "pinned", "campaign"];
    table(header, placements.iter().map(row), width)
}

fn comparison(sheet: &mut LabelledLines, document: &TuneJson<'_>) {
    let (rounds, compared) = (&document.comparison.rounds, &document.verdict);
    let estimates: Vec<_> =
        rounds.ways().iter().filter_map(|&way| Some((way, rounds.estimate(way)?))).collect();
    let scale = Scale::new(
        &document.comparison.unit,
        estimates.first().map_or(1.0, |(_, estimate)| estimate.mean),
    );
    sheet.paragraph(
        "",
        0,
        &format!(
            "On fresh windows, {} in random order (95 % intervals):",
            figures::counted(rounds.count() as u64, "round")
        ),
    );
    let row = |(way, estimate): &(Way, pinwise_placement::Estimate)| {
        let over = |other| {
            rounds.gain(*way, other).filter(|_| *way != other).map_or(String::new(), gain_text)
        };
        vec![
            compared.name(*way),
            estimate.value(&scale),
            scale.range(estimate.low, estimate.high),
            over(Way::Default),
        ]
    };
    let table = table(
        vec!["", performance_name(&document.comparison.unit), "interval", "over the default"],
        estimates.iter().map(row),
        sheet.width,
    );
    sheet.text.push_str(&table);
}

/// What to do now, with the plan and the command that is to be started, if there are any.
fn next(sheet: &mut LabelledLines, plan: Option<&Path>, command: Option<&str>, named: &[String]) {
    let Some(plan) = plan else {
        sheet.line("plan", "none: start the program as before");
        return;
    };
    sheet.line("plan", &plan.to_string_lossy());
    let what = if command.is_some() { "start it" } else { "apply it" };
    let line = tune_next(plan, command, named).command;
    // On one line, whatever its length, so that it can be copied.
    sheet.text.push_str(&format!("  {what:<9} {line}\n"));
    if command.is_some_and(|command| !command.contains(PlannedNumber::PLACE)) {
        sheet.line("", "(its environment variables are in the plan)");
    }
}

fn table(header: Vec<&str>, rows: impl Iterator<Item = Vec<String>>, width: usize) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header).add_rows(rows);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    output::fitted(table, width, &[])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_to_be_copied_stands_on_one_line() {
        let told = |plan: Option<&str>, command: Option<&str>| {
            let mut sheet = LabelledLines { text: String::new(), width: 40 };
            next(&mut sheet, plan.map(Path::new), command, &["LD_PRELOAD".into()]);
            sheet.text
        };
        let command = "./encoder --threads {n} --preset slow --input a-long-name.y4m --output \
            another-long-name.mkv";
        let text = told(Some("/home/user/my plans/tuned.toml"), Some(command));
        let line = format!(
            "  start it  pinwise run --env LD_PRELOAD '/home/user/my plans/tuned.toml' -- {command}"
        );
        assert!(text.lines().any(|told| told == line), "{text}");
        assert!(!text.contains("environment"), "{text}");
        assert!(
            told(Some("p.toml"), Some("./solver input")).contains("(its environment variables"),
            "no place for n"
        );
        assert!(
            told(Some("p.toml"), None).contains("apply it  pinwise apply p.toml --set --pid PID\n")
        );
        assert!(told(None, Some(command)).contains("plan      none: start"));
    }
}
