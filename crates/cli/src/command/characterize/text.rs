//! A characterization for the terminal: a table per level. It is at most 80 columns wide for eight
//! benchmarks, and 105 for those of a host.

use super::document::SoFar;
use pinwise_characterization::{Characterization, Slowdown};
use pinwise_measure::WorkingSets;
use pinwise_present::{
    LabelledLines, absence, characterization_noise, characterization_verdict,
    characterization_warning, figures, one_line, other_cores, sensitivity,
};
use std::fmt::Write as _;

/// Columns of a table's cell.
const CELL: usize = 8;

pub(super) fn text(characterization: &Characterization, width: usize) -> String {
    let mut text = format!("{}\n", characterization_verdict(characterization));
    // Writing to a string cannot fail.
    for warning in &characterization.warnings {
        let _ = writeln!(text, "warning: {}", characterization_warning(warning));
    }
    let _ =
        writeln!(text, "{}: {}", characterization.machine, characterization.fingerprint.summary);
    levels(&mut text, characterization);
    if let Some(found) = &characterization.working_sets {
        caches(&mut text, found);
    }
    alone(&mut text, characterization);
    tables(&mut text, characterization);
    findings(&mut text, characterization);
    let mut sheet = LabelledLines { text, width };
    sheet.text.push_str("\nother cores\n");
    for sentence in other_cores(&characterization.findings) {
        sheet.paragraph("  ", 4, &sentence);
    }
    sheet.text.push('\n');
    sheet.paragraph("", 0, &characterization_noise(&characterization.noise));
    sheet.text
}

/// Of a campaign that is not complete: how far it is, and what each set of programs gave.
pub(super) fn so_far(so_far: &SoFar<'_>) -> String {
    let mut text = String::from("No answer yet: the slowdowns follow from all runs.\n");
    if let Some(unfinished) = &so_far.unfinished {
        let _ = writeln!(text, "{}", one_line(&unfinished.text));
    }
    let _ = writeln!(text, "{}", one_line(so_far.machine));
    if !so_far.runs.is_empty() {
        let _ = writeln!(text, "\nruns so far, {}", so_far.unit);
    }
    for set in so_far.runs {
        let runs = figures::counted(set.runs as u64, "run");
        let _ = writeln!(
            text,
            "  {:<9}{:>8} ({runs}) {}",
            set.benchmark,
            short(set.time),
            set.beside()
        );
    }
    text
}

fn levels(text: &mut String, characterization: &Characterization) {
    for reference in &characterization.references {
        let kind = reference
            .core_kind
            .as_ref()
            .map(|kind| format!(" of {kind} cores"))
            .unwrap_or_default();
        for level in &reference.levels {
            let caches = if level.caches.is_empty() {
                String::new()
            } else {
                format!(", shares {}", level.caches.join(", "))
            };
            let plural = if level.contexts == 1 { "" } else { "s" };
            let _ = writeln!(
                text,
                "level {:<8} {} other context{plural}{caches}{kind}",
                level.name, level.contexts
            );
        }
        for absent in &reference.absent {
            let _ = writeln!(text, "no level {:<5} {}{kind}", absent.name, absence(&absent.reason));
        }
    }
}

/// What the core gets of its caches, beside what is declared.
fn caches(text: &mut String, found: &WorkingSets) {
    let _ = writeln!(text, "\ncaches as this core sees them");
    for cache in &found.caches {
        let declared = cache.declared.map_or("unknown".into(), figures::bytes);
        let seen = match cache.effective {
            Some(seen) => {
                format!("{:>8} seen, {} ns a load", figures::bytes(seen.bytes), short(seen.ns))
            }
            None => "nothing seen".into(),
        };
        let remark = if cache.disagrees() { ": not as declared" } else { "" };
        let _ = writeln!(text, "  L{} {declared:>8} declared {seen}{remark}", cache.level);
    }
    if let Some(largest) = found.curve.last() {
        let size = figures::bytes(largest.bytes);
        let _ =
            writeln!(text, "  beyond {size:>4} at most           {} ns a load", short(largest.ns));
    }
}

fn alone(text: &mut String, characterization: &Characterization) {
    let _ = writeln!(text, "\nalone, {}", characterization.unit.name());
    for row in &characterization.isolation {
        let kind = row.core_kind.as_ref().map(|kind| format!(" ({kind})")).unwrap_or_default();
        let value = row.cpi.or(row.ns).unwrap_or(f64::NAN);
        let interval = row
            .low
            .zip(row.high)
            .map(|(low, high)| format!(" ({} to {}; {} runs)", short(low), short(high), row.runs))
            .unwrap_or_default();
        let _ = writeln!(text, "  {:<9}{:>8}{interval}{kind}", row.benchmark, short(value));
    }
}

/// Three significant digits.
fn short(value: f64) -> String {
    let decimals = if value >= 100.0 {
        0
    } else if value >= 10.0 {
        1
    } else if value >= 1.0 {
        2
    } else {
        3
    };
    format!("{value:.decimals$}")
}

/// One table for each place and kind of core, with the most stressors that were tried there.
fn tables(text: &mut String, characterization: &Characterization) {
    let mut places: Vec<(&str, Option<&str>)> = Vec::new();
    for row in &characterization.slowdowns {
        let place = (row.place.as_str(), row.core_kind.as_deref());
        if !places.contains(&place) {
            places.push(place);
        }
    }
    for (place, kind) in places {
        let here =
            |row: &&Slowdown| (row.place.as_str(), row.core_kind.as_deref()) == (place, kind);
        let most =
            characterization.slowdowns.iter().filter(here).map(|row| row.count).max().unwrap_or(0);
        let plural = if most == 1 { "" } else { "s" };
        let on = kind.map(|kind| format!(" on {kind}")).unwrap_or_default();
        let _ = write!(
            text,
            "\nslowdown of the row by {most} stressor{plural} of the column, {place}{on}\n{:9}",
            ""
        );
        for benchmark in &characterization.benchmarks {
            let _ = write!(text, "{:>CELL$.CELL$}", benchmark.name);
        }
        text.push('\n');
        for reference in &characterization.benchmarks {
            let _ = write!(text, "{:<9}", reference.name);
            for stressor in &characterization.benchmarks {
                let row = characterization.slowdowns.iter().filter(here).find(|row| {
                    (row.count, &row.reference, &row.stressor)
                        == (most, &reference.name, &stressor.name)
                });
                let mark = |row: &Slowdown| if row.steady { "" } else { "*" };
                let cell =
                    row.map_or("?".into(), |row| format!("{:.2}{}", row.slowdown, mark(row)));
                let _ = write!(text, "{cell:>CELL$}");
            }
            text.push('\n');
        }
        let shown: Vec<&Slowdown> = characterization
            .slowdowns
            .iter()
            .filter(here)
            .filter(|row| row.count == most)
            .collect();
        text.push_str(&certainty(&shown));
    }
}

/// How sure the slowdowns of a table are.
fn certainty(rows: &[&Slowdown]) -> String {
    let mut text = String::new();
    let half = |row: &Slowdown| Some((row.high? - row.low?) / 2.0);
    let sure = rows.iter().filter(|row| row.low.is_some_and(|low| low > 1.0)).count();
    let widest = rows
        .iter()
        .filter_map(|row| Some((half(row)?, row)))
        .max_by(|one, other| one.0.total_cmp(&other.0));
    let rounds = rows.first().map_or(0, |row| row.rounds.len());
    text.push_str(&match widest {
        Some((half, _)) if half < 0.005 => {
            format!("  95 % intervals: below \u{b1}0.005, {rounds} rounds\n")
        }
        Some((half, row)) => format!(
            "  95 % intervals: \u{b1}{half:.2} at most ({} next to {}), {rounds} rounds\n",
            row.reference, row.stressor
        ),
        None => "  one round: no intervals; --rounds 3 gives them\n".to_owned(),
    });
    if widest.is_some() {
        let _ = writeln!(text, "  significantly above 1: {sure} of {}", rows.len());
    }
    if rows.iter().any(|row| !row.steady) {
        text.push_str("  *: a program of the set did not become steady\n");
    }
    text
}

fn findings(text: &mut String, characterization: &Characterization) {
    let findings = &characterization.findings;
    if characterization.slowdowns.is_empty() {
        return;
    }
    let _ = writeln!(text, "\ncritical resources");
    if findings.critical.is_empty() {
        let _ = writeln!(
            text,
            "  none: no benchmark is slowed down by 5 % or more by those that use the same"
        );
    }
    for row in &findings.critical {
        let (level, resource, slowdown) = (&row.level, &row.resource, row.slowdown);
        let beside = match row.benchmark == row.stressor {
            true => format!("{} more {} slow it down", row.count, row.benchmark),
            false => format!("{} {} slow {} down", row.count, row.stressor, row.benchmark),
        };
        let _ = writeln!(text, "  {level:<6} {resource}: {beside} {slowdown:.2} times");
    }
    let _ = writeln!(text, "\nsensitivity");
    for row in &findings.sensitivity {
        let class = sensitivity(findings, row);
        let by = match (&row.stressor, &row.place) {
            (Some(stressor), Some(place)) => {
                format!(", {:.2} times next to {stressor} ({place})", row.most)
            }
            _ => String::new(),
        };
        let _ = writeln!(text, "  {:<9}{class}{by}", row.benchmark);
    }
    co_runners(text, characterization);
}

/// The best and the worst of each level, where there is a difference.
fn co_runners(text: &mut String, characterization: &Characterization) {
    let heading = text.len();
    for row in &characterization.findings.co_runners {
        let all: Vec<&String> = row.low.iter().chain(&row.moderate).chain(&row.high).collect();
        let minded: Vec<&str> =
            row.high.iter().chain(&row.moderate).rev().map(String::as_str).collect();
        if let (Some(best), false) = (all.first(), minded.is_empty()) {
            let worst = row.high.last().or(row.moderate.last()).map_or("", String::as_str);
            let harmless = row.low.len();
            let _ = writeln!(
                text,
                "  {:<9}{:<10}{best} / {worst} ({harmless} of {} harmless)",
                row.benchmark,
                row.place,
                all.len()
            );
        }
    }
    if text.len() > heading {
        text.insert_str(heading, "\nco-runners: best / worst\n");
    }
}
