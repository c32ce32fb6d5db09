//! The answer of `pinwise threads` as text.

use super::document::{ProbeRow, ThreadsJson, rows};
use crate::output;
use comfy_table::{CellAlignment, Table, presets};
use pinwise_jobs::{ThreadsAnswer, ThreadsOutcome};
use pinwise_measure::{RoleTime, Unit};
use pinwise_present::figures::{self, Scale};
use pinwise_present::{
    Files, LabelledLines, ROLE_COLUMNS, critical_roles, fewer_threads, no_number, performance_name,
    role_cells, texts,
};
use serde_json::Value;
use std::time::Duration;

/// The whole answer, `width` columns wide: the answer and what qualifies it, then what it rests on.
/// With `verbose` also the estimate of the probes, and how the threads were watched.
pub(super) fn result(document: &ThreadsJson, width: usize, verbose: bool) -> String {
    let mut sheet = LabelledLines { text: String::new(), width };
    sheet.paragraph("", 0, &document.answer);
    sheet.unfinished(document.unfinished.as_ref());
    notes(&mut sheet, &document.notes, verbose || document.method == "reinforcer");
    sheet.text.push('\n');
    let chosen = document.probes.iter().find(|row| row.parameter == document.parameter);
    let mut facts = Vec::new();
    if verbose && document.verdict.is_some() {
        facts.push(("estimate", document.unconfirmed.clone()));
    }
    facts.push(("ended", document.why()));
    facts.extend(
        document
            .estimate
            .as_ref()
            .and_then(|found| fewer_threads(found.threads, &found.open, document.contexts))
            .map(|open| ("open", open)),
    );
    if let Some(row) = chosen {
        facts.push(("critical", critical_roles(&row.roles)));
    }
    facts.push((
        "search",
        format!(
            "{}, {}{}{}",
            figures::counted(document.probes.len() as u64, "probe"),
            figures::duration(Duration::from_secs_f64(document.search_seconds)),
            if document.simulated { " of the model" } else { "" },
            document.campaign.map_or(String::new(), |id| {
                let stored = stored(document);
                let compared = document.verdict.as_ref().is_some_and(|verdict| verdict.rounds > 0);
                let fresh = if compared { " with the fresh windows" } else { "" };
                format!("; stored as campaign {}{fresh}{stored}", id.0)
            })
        ),
    ));
    facts.extend(document.memory.map(|memory| ("memory", memory.name().to_owned())));
    if verbose {
        facts.extend(watched(document).map(|watched| ("monitor", watched)));
    }
    for (name, fact) in facts {
        sheet.line(name, &fact);
    }
    sheet.text.push('\n');
    sheet.text.push_str(&probed(document, width));
    if let Some(row) = chosen.filter(|row| !row.roles.is_empty()) {
        // Which roles are critical is said above.
        sheet.text.push_str(&format!(
            "\nThreads with n = {}, shares of their time:\n{}",
            row.parameter,
            output::fitted(roles(&row.roles), width, &[9, 8, 7, 6])
        ));
    }
    sheet.text
}

/// The notes. They say how the probes were watched if `watching` matters. It does if profiles
/// decide, or if the user asks for it.
pub(crate) fn notes(sheet: &mut LabelledLines, notes: &[Value], watching: bool) {
    let shown = notes.iter().filter(|note| watching || note["kind"] != "watched_otherwise");
    for note in texts(&shown.cloned().collect::<Vec<_>>()) {
        sheet.paragraph("", 0, &note);
    }
}

/// What the campaign has besides the probes: lists of campaigns count all of it.
fn stored(document: &ThreadsJson) -> String {
    let ThreadsJson { probes, set_aside, aside, .. } = document;
    if *set_aside == 0 {
        return String::new();
    }
    let all = figures::counted((probes.len() + set_aside) as u64, "probe");
    format!(", {all}, but {set_aside} not used ({aside})")
}

/// How threads were watched: the layer, what it gives, lacks and cost, and why no better one was
/// used.
pub(crate) fn watched(document: &ThreadsJson) -> Option<String> {
    let monitor = document.monitor.as_ref()?;
    let overhead =
        monitor.overhead.map_or("none".into(), |share| format!("{:.2} %", share * 100.0));
    let stretched = monitor.stretched.map_or(String::new(), |pace| {
        format!(
            "; looks up to {} apart, to limit the cost",
            figures::duration(Duration::from_secs_f64(pace))
        )
    });
    let lost = if monitor.lost > 0 {
        format!("; {} records were lost", monitor.lost)
    } else {
        String::new()
    };
    let better: Vec<String> = monitor
        .refused
        .iter()
        .map(|refused| format!("{} ({}: {})", refused.values.layer, refused.reason, refused.remedy))
        .collect();
    let better =
        if better.is_empty() { String::new() } else { format!("; refused: {}", better.join(", ")) };
    Some(format!(
        "{}: {}; not: {}; it took {overhead} of the program's CPU time{stretched}{lost}{better}",
        monitor.layer, monitor.gives, monitor.lacks
    ))
}

/// Columns of [`probes`] that a narrow terminal does without: JSON and the page have them.
const SPARE: [usize; 3] = [4, 3, 2];

/// The probes, as a table.
pub(crate) fn probed(document: &ThreadsJson, width: usize) -> String {
    let table = probes(&document.probes, document.unit.as_ref(), document.method);
    output::fitted(table, width, &SPARE)
}

/// Of a search that has no answer: why, how far it is, and its probes.
pub(super) fn remains(answer: &ThreadsAnswer, files: Files<'_>, width: usize) -> String {
    let mut sheet = LabelledLines { text: String::new(), width };
    let why = answer.outcome.found.as_ref().err().and_then(Option::as_ref);
    sheet.paragraph("", 0, &no_number(&answer.campaign, why));
    sheet.unfinished(answer.unfinished(files).as_ref());
    probed_so_far(&mut sheet, &answer.outcome);
    sheet.text
}

/// The probes of a search that has no answer.
pub(crate) fn probed_so_far(sheet: &mut LabelledLines, outcome: &ThreadsOutcome) {
    if outcome.probes.is_empty() {
        return;
    }
    let method = outcome.question.request.method.name();
    let table = probes(&rows(&outcome.probes), outcome.unit.as_ref(), method);
    sheet.text.push_str(&format!("\n{}", output::fitted(table, sheet.width, &SPARE)));
}

/// A line of the table of probes.
struct ProbeLine<'a> {
    /// The rows of one number: one probe, or all of them.
    rows: Vec<&'a ProbeRow>,
}

impl ProbeLine<'_> {
    fn mean(&self, of: impl Fn(&ProbeRow) -> f64) -> f64 {
        self.rows.iter().map(|row| of(row)).sum::<f64>() / self.rows.len() as f64
    }

    fn performance(&self) -> Option<f64> {
        let known = self.rows.iter().all(|row| row.performance.is_some());
        known.then(|| self.mean(|row| row.performance.unwrap_or_default()))
    }

    /// Its relative standard error: the one that a single probe reports, or the one that several
    /// show. `None` if nothing got done.
    fn error(&self) -> Option<f64> {
        let mean = self.performance().filter(|&mean| mean > 0.0)?;
        let [row] = &self.rows[..] else {
            let count = self.rows.len() as f64;
            let square = self.mean(|row| (row.performance.unwrap_or_default() - mean).powi(2));
            return Some((square / (count - 1.0)).sqrt() / mean);
        };
        row.error.map(|error| error / mean)
    }
}

/// Probe by probe as a search went; of a sweep, number by number.
fn lines(rows: &[ProbeRow], sweep: bool) -> Vec<ProbeLine<'_>> {
    let mut lines: Vec<ProbeLine<'_>> = Vec::new();
    for row in rows {
        let known = lines.iter_mut().find(|line| line.rows[0].parameter == row.parameter);
        match known.filter(|_| sweep) {
            Some(line) => line.rows.push(row),
            None => lines.push(ProbeLine { rows: vec![row] }),
        }
    }
    lines
}

fn probes(rows: &[ProbeRow], unit: Option<&Unit>, method: &str) -> Table {
    let best = rows.iter().filter_map(|row| row.performance).fold(0.0, f64::max);
    let unit = unit.cloned().unwrap_or_else(|| Unit::rate("1/s"));
    let scale = Scale::new(&unit, best);
    let measured = rows.iter().any(|row| row.performance.is_some());
    let mut header = vec!["n", "threads", "LOCK", "VCX_RATE", "MIGR_RATE", "CPU_UTIL"];
    if measured {
        header.extend([performance_name(&unit), "std. error"]);
    }
    let line = |line: &ProbeLine<'_>| {
        let mut cells = vec![
            line.rows[0].parameter.to_string(),
            line.rows[0].threads.to_string(),
            share(line.mean(|row| row.lock)),
            figures::event_rate(line.mean(|row| row.vcx_rate)),
            figures::event_rate(line.mean(|row| row.migr_rate)),
            share(line.mean(|row| row.cpu_util)),
        ];
        if measured {
            cells.push(line.performance().map_or("-".into(), |value| scale.show(value)));
            cells.push(line.error().map_or("-".into(), share));
        }
        cells
    };
    table(header, lines(rows, method == "sweep").iter().map(line))
}

fn roles(roles: &[RoleTime]) -> Table {
    table(ROLE_COLUMNS.to_vec(), roles.iter().map(|role| role_cells(role).to_vec()))
}

pub(super) fn table(header: Vec<&str>, rows: impl Iterator<Item = Vec<String>>) -> Table {
    let mut table = Table::new();
    let columns = header.len();
    table.load_style(presets::NOTHING).set_header(header).add_rows(rows);
    for (index, column) in table.column_iter_mut().enumerate() {
        let words = index == 0 && columns == 10 || index == 9;
        column.set_cell_alignment(if words { CellAlignment::Left } else { CellAlignment::Right });
    }
    table
}

pub(super) fn share(fraction: f64) -> String {
    figures::percent(fraction)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_jobs::ShownProbe;
    use pinwise_measure::{Measure, Probe, Progress, SchedulingProfile};

    fn probed(rate: f64, error: Option<f64>) -> ProbeRow {
        let progress = Progress { rate, error, measure: Measure::CpuTime };
        let profile = SchedulingProfile { lock: 0.0, vcx_rate: 0.0, migr_rate: 0.0, cpu_util: 0.0 };
        let probe =
            Probe { parameter: 2, threads: 2, profile, progress, cost: Duration::from_millis(100) };
        rows(&[ShownProbe { probe, roles: Vec::new(), seen: None }]).remove(0)
    }

    #[test]
    fn how_probes_were_watched_is_shown_only_if_it_matters() {
        let told = |watching| {
            let mut sheet = LabelledLines { text: String::new(), width: 40 };
            let both = ["busy", "watched_otherwise"]
                .map(|kind| serde_json::json!({ "kind": kind, "text": format!("It was {kind}.") }));
            notes(&mut sheet, &both, watching);
            sheet.text
        };
        assert_eq!(told(false), "It was busy.\n");
        assert_eq!(told(true), "It was busy.\nIt was watched_otherwise.\n");
    }

    #[test]
    fn a_probe_that_got_nothing_done_has_no_relative_error() {
        let unit = Unit::rate("s of CPU/s");
        let shown = |rows: &[ProbeRow], method| probes(rows, Some(&unit), method).trim_fmt();
        let idle = [probed(0.0, Some(0.0)), probed(0.0, Some(0.0))];
        for method in ["survey", "sweep"] {
            let text = shown(&idle, method);
            assert!(text.lines().skip(1).all(|line| line.ends_with(" -")), "{text}");
        }
        let one = [probed(2.0, Some(0.1))];
        let text = shown(&one, "survey");
        assert!(text.ends_with("5.0 %"), "{text}");
        let narrow = output::fitted(probes(&one, Some(&unit), "survey"), 60, &SPARE);
        assert!(narrow.lines().count() == 2 && narrow.contains("CPU_UTIL"), "{narrow}");
    }
}
