//! A characterization as a page: a heat map of slowdowns for each level, their growth, and the
//! conclusions.

use crate::figure::Table;
use crate::html_frame::ReportError;
use askama::Template;
use pinwise_campaign::CampaignInfo;
use pinwise_characterization::{Characterization, RunsSoFar, Slowdown, StoredCharacterization};
use pinwise_measure::{PaceUnit, WorkingSet, WorkingSets};
use pinwise_present::figures;
use pinwise_present::{
    Files, Unfinished, absence, characterization_noise, characterization_verdict,
    characterization_warning, excerpt_reason, other_cores, quoted,
};
use pinwise_topology::{Fingerprint, Machine};

/// Shades of the style sheet. The first means no slowdown.
const SHADES: usize = 8;

/// The page of a characterization: a complete HTML document that needs nothing else, not even a
/// script.
///
/// # Errors
/// The template could not be filled in.
pub fn characterization_page(kept: &StoredCharacterization) -> Result<String, ReportError> {
    let characterization = &kept.characterization;
    let page = CharacterizationPage {
        of: characterization,
        warnings: characterization.warnings.iter().map(characterization_warning).collect(),
        unit: characterization.unit.name(),
        origin: origin(kept),
        excerpt: excerpt(kept),
        isolation: isolation(characterization),
        caches: characterization.working_sets.as_ref().map(caches),
        maps: Maps::of(characterization),
        critical: critical(characterization),
        sensitivity: sensitivity(characterization),
        growth: growth(characterization),
        other_cores: other_cores(&characterization.findings),
        noise: characterization_noise(&characterization.noise),
        verdict: characterization_verdict(characterization),
        mark: characterization_mark(&characterization.fingerprint),
        version: env!("CARGO_PKG_VERSION"),
    };
    Ok(page.render()?)
}

/// The page of a characterization that is not complete: what each set of programs gave so far.
pub(crate) fn runs_so_far_page(
    info: &CampaignInfo,
    unfinished: Option<&Unfinished>,
    runs: &[RunsSoFar],
) -> Result<String, ReportError> {
    let mut table = Table::new(["Benchmark", "Beside it", &info.new.unit.name, "Runs"]);
    for set in runs {
        let time = format!("{:.3}", set.time);
        table.row([set.benchmark.clone(), set.beside(), time, set.runs.to_string()]);
    }
    let page = RunsSoFarPage {
        machine: &info.new.machine.name,
        unfinished,
        runs: table,
        version: env!("CARGO_PKG_VERSION"),
    };
    Ok(page.render()?)
}

#[derive(Template)]
#[template(path = "runs_so_far.html")]
struct RunsSoFarPage<'a> {
    machine: &'a str,
    unfinished: Option<&'a Unfinished>,
    runs: Table,
    version: &'static str,
}

/// The HTML comment at the end of a characterization's page. It identifies the machine.
pub fn characterization_mark(fingerprint: &Fingerprint) -> String {
    // A comment ends where a bracket closes.
    format!(
        "<!-- characterization of {} {} -->",
        fingerprint.topology,
        fingerprint.model.replace('>', "")
    )
}

/// Where and when it was measured, as a sentence.
fn origin(kept: &StoredCharacterization) -> String {
    let of = &kept.characterization;
    let how = if is_model(of) { "Simulated" } else { "Measured" };
    let fingerprint = &of.fingerprint;
    let condition = |name: &str, value: &Option<String>| {
        value.as_ref().map(|value| format!(", {name} {value}"))
    };
    let conditions = [
        condition("kernel", &fingerprint.kernel),
        // `notsupported` and `notimplemented` are the kernel's words for a machine without it.
        condition("SMT", &fingerprint.smt.clone().filter(|smt| !smt.starts_with("not"))),
        condition("governor", &fingerprint.governor),
    ];
    let conditions: String = conditions.into_iter().flatten().collect();
    let rounds = figures::counted(of.conditions.rounds as u64, "round");
    format!("{how} on {} by pinwise characterize: {rounds}{conditions}.", figures::date(kept.at))
}

/// Why nothing is decided by it, if so.
fn excerpt(kept: &StoredCharacterization) -> Option<String> {
    kept.excerpt.as_ref().map(excerpt_reason)
}

#[derive(Template)]
#[template(path = "characterization.html")]
struct CharacterizationPage<'a> {
    of: &'a Characterization,
    warnings: Vec<String>,
    unit: &'static str,
    origin: String,
    excerpt: Option<String>,
    isolation: Table,
    caches: Option<(Table, Table)>,
    maps: Maps,
    critical: Table,
    sensitivity: Table,
    growth: Table,
    other_cores: Vec<String>,
    noise: String,
    verdict: String,
    mark: String,
    version: &'static str,
}

/// The section of a campaign's page on the machine that it ran on.
#[derive(Template)]
#[template(path = "sharing.html")]
pub(crate) struct Sharing {
    origin: String,
    excerpt: Option<String>,
    verdict: String,
    maps: Maps,
    /// The command that writes the whole page.
    command: String,
}

impl Sharing {
    pub(crate) fn of(kept: &StoredCharacterization, files: Files<'_>) -> Self {
        let characterization = &kept.characterization;
        let machine = match is_model(characterization) {
            true if Machine::MODELS.contains(&characterization.machine.as_str()) => {
                format!(" --machine {}", quoted(&characterization.machine))
            }
            // Its description is the user's own.
            true => " --machine FILE".to_owned(),
            false => String::new(),
        };
        Self {
            origin: origin(kept),
            excerpt: excerpt(kept),
            verdict: characterization_verdict(characterization),
            maps: Maps::of(characterization),
            command: format!("pinwise report characterization{machine}{}", files.flag()),
        }
    }
}

fn is_model(characterization: &Characterization) -> bool {
    characterization.unit == PaceUnit::Cycles
}

/// A heat map for each level that the machine has.
#[derive(Template)]
#[template(path = "maps.html")]
struct Maps {
    maps: Vec<Map>,
    scale: Vec<String>,
    most: String,
    absent: Vec<(String, String)>,
}

impl Maps {
    fn of(characterization: &Characterization) -> Self {
        let most = characterization.slowdowns.iter().map(|row| row.slowdown).fold(1.0, f64::max);
        let absent = characterization.references.iter().flat_map(|reference| &reference.absent);
        Self {
            maps: maps(characterization, most),
            scale: (0..SHADES).map(|shade| format!("s{shade}")).collect(),
            most: format!("{most:.1}"),
            absent: absent
                .map(|absent| (absent.name.clone(), absence(&absent.reason).to_owned()))
                .collect(),
        }
    }
}

/// The slowdowns at one level with the most stressors that were tried there: references in rows,
/// stressors in columns.
struct Map {
    title: String,
    head: Vec<String>,
    rows: Vec<(String, Vec<SlowdownCell>)>,
}

struct SlowdownCell {
    class: String,
    text: String,
    title: String,
}

/// The rows of every place and kind of core that have the most stressors. They are in the order in
/// which they were measured.
fn full(
    characterization: &Characterization,
) -> Vec<(String, usize, Option<String>, Vec<&Slowdown>)> {
    let mut places: Vec<(String, usize, Option<String>, Vec<&Slowdown>)> = Vec::new();
    for row in &characterization.slowdowns {
        let known = places
            .iter_mut()
            .find(|(place, _, kind, _)| *place == row.place && *kind == row.core_kind);
        match known {
            Some((_, count, _, rows)) if row.count >= *count => {
                if row.count > *count {
                    (*count, *rows) = (row.count, Vec::new());
                }
                rows.push(row);
            }
            Some(_) => {}
            None => places.push((row.place.clone(), row.count, row.core_kind.clone(), vec![row])),
        }
    }
    places
}

fn maps(characterization: &Characterization, most: f64) -> Vec<Map> {
    let names: Vec<String> =
        characterization.benchmarks.iter().map(|benchmark| benchmark.name.clone()).collect();
    let cell = |row: Option<&&Slowdown>| match row {
        Some(row) => SlowdownCell {
            class: format!("s{}", shade(row.slowdown, most)),
            text: format!("{:.2}", row.slowdown),
            title: interval(row.low, row.high),
        },
        None => SlowdownCell { class: "none".into(), text: "?".into(), title: String::new() },
    };
    let map = |(place, count, kind, rows): (String, usize, Option<String>, Vec<&Slowdown>)| Map {
        title: format!(
            "{place}, {count} stressor{}{}",
            if count == 1 { "" } else { "s" },
            kind.map(|kind| format!(", on {kind}")).unwrap_or_default()
        ),
        rows: names
            .iter()
            .map(|reference| {
                let of = |stressor: &String| {
                    rows.iter().find(|row| row.reference == *reference && row.stressor == *stressor)
                };
                (reference.clone(), names.iter().map(|stressor| cell(of(stressor))).collect())
            })
            .collect(),
        head: names.clone(),
    };
    full(characterization).into_iter().map(map).collect()
}

/// On a logarithmic scale from 1 to the largest slowdown of the page.
fn shade(slowdown: f64, most: f64) -> usize {
    let place = slowdown.max(1.0).ln() / most.max(1.1).ln();
    (place * SHADES as f64).clamp(0.0, SHADES as f64 - 1.0) as usize
}

fn interval(low: Option<f64>, high: Option<f64>) -> String {
    low.zip(high).map(|(low, high)| format!("{low:.2} to {high:.2}")).unwrap_or_default()
}

fn isolation(characterization: &Characterization) -> Table {
    let mut table = Table::new([
        "Benchmark",
        "Stresses",
        characterization.unit.name(),
        "95 % interval",
        "Runs",
    ]);
    for row in &characterization.isolation {
        let benchmark =
            characterization.benchmarks.iter().find(|benchmark| benchmark.name == row.benchmark);
        let value = row.cpi.or(row.ns).unwrap_or(f64::NAN);
        let kind = row.core_kind.as_ref().map(|kind| format!(" ({kind})")).unwrap_or_default();
        table.row([
            format!("{}{kind}", row.benchmark),
            benchmark.map(|benchmark| benchmark.resource.clone()).unwrap_or_default(),
            format!("{value:.3}"),
            row.low
                .zip(row.high)
                .map(|(low, high)| format!("{low:.3} to {high:.3}"))
                .unwrap_or_default(),
            row.runs.to_string(),
        ]);
    }
    table
}

fn critical(characterization: &Characterization) -> Table {
    let mut table = Table::new(["Level", "Resource", "Seen with", "Slowdown"]);
    for row in &characterization.findings.critical {
        let seen = match row.benchmark == row.stressor {
            true => format!("{} {}", row.count + 1, row.benchmark),
            false => format!("{} next to {} {}", row.benchmark, row.count, row.stressor),
        };
        table.row([row.level.clone(), row.resource.clone(), seen, format!("{:.2}", row.slowdown)]);
    }
    table
}

fn sensitivity(characterization: &Characterization) -> Table {
    let mut table =
        Table::new(["Benchmark", "Sensitivity", "Most", "By", "Where", "Slowed down up to"]);
    for row in &characterization.findings.sensitivity {
        let class = pinwise_present::sensitivity(&characterization.findings, row);
        let or_nothing = |text: &Option<String>| text.clone().unwrap_or_else(|| "nothing".into());
        table.row([
            row.benchmark.clone(),
            class.to_owned(),
            format!("{:.2}", row.most),
            or_nothing(&row.stressor),
            row.place.clone().unwrap_or_default(),
            row.up_to.clone().unwrap_or_default(),
        ]);
    }
    table
}

/// Every row that is slowed down by 5 % or more.
fn growth(characterization: &Characterization) -> Table {
    let mut table =
        Table::new(["Reference", "Stressor", "Where", "Stressors", "Slowdown", "95 % interval"]);
    for row in characterization.slowdowns.iter().filter(|row| row.slowdown >= 1.05) {
        table.row([
            row.reference.clone(),
            row.stressor.clone(),
            row.place.clone(),
            row.count.to_string(),
            format!("{:.2}{}", row.slowdown, if row.steady { "" } else { " (not steady)" }),
            interval(row.low, row.high),
        ]);
    }
    table
}

/// The caches as declared and as seen, and the curve that this was seen in.
fn caches(found: &WorkingSets) -> (Table, Table) {
    let words =
        |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
    let mut levels =
        Table { head: words(&["cache", "declared", "seen", "ns a load", ""]), rows: Vec::new() };
    for cache in &found.caches {
        levels.rows.push(vec![
            format!("L{}", cache.level),
            cache.declared.map_or("unknown".into(), figures::bytes),
            cache.effective.map_or("nothing".into(), |seen| figures::bytes(seen.bytes)),
            cache.effective.map(|seen| format!("{:.1}", seen.ns)).unwrap_or_default(),
            if cache.disagrees() { "not as declared".into() } else { String::new() },
        ]);
    }
    let point = |point: &WorkingSet| vec![figures::bytes(point.bytes), format!("{:.2}", point.ns)];
    let curve = Table {
        head: words(&["working set", "ns a load"]),
        rows: found.curve.iter().map(point).collect(),
    };
    (levels, curve)
}
