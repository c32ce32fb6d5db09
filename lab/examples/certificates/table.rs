//! The tables of docs/lab/certificates.md.

use crate::campaign::{EARLY, Run, WAYS, WITHIN};
use crate::workloads::{Case, Group, NOISES};
use pinwise_figures as figures;
use pinwise_lab::rate::of_which;
use pinwise_measure::Testbed;

/// A wider claim that is counted too.
const WIDER: f64 = 0.05;
/// The strategy that is looked at more closely.
const DEFAULT: &str = "default";

/// A strategy and its campaigns on each workload: none where it refuses the workload.
pub(crate) struct Results<'a> {
    pub(crate) name: &'a str,
    pub(crate) runs: Vec<(&'a Case, &'a [Run])>,
}

/// How far what was announced is below the optimum.
fn loss(case: &Case, run: &Run) -> f64 {
    1.0 - run.best / case.optimum
}

/// Whether the upper end is not below the optimum; not if there is none.
fn covers(case: &Case, run: &Run) -> bool {
    run.upper.is_some_and(|upper| upper >= case.optimum * (1.0 - 1e-9))
}

fn is_certified(run: &Run, within: f64) -> bool {
    run.claimed.is_some_and(|gap| gap <= within)
}

/// Prints each workload, with what the default claims there and loses.
pub(crate) fn workloads(cases: &[Case], results: &[Results<'_>]) {
    println!("| # | workload | noise | optimum | known | default: gap claimed, % | loss, % |");
    println!("|--:|---|--:|--:|---|---|---|");
    let default = results.iter().find(|results| results.name == DEFAULT);
    for (number, case) in cases.iter().enumerate() {
        let list = |of: &dyn Fn(&Run) -> Option<f64>| {
            let runs = default.map_or(&[][..], |default| default.runs[number].1);
            let shown = runs
                .iter()
                .map(|run| of(run).map_or("-".to_owned(), |value| format!("{:.2}", 100.0 * value)));
            shown.collect::<Vec<_>>().join(", ")
        };
        let (noise, known) = (100.0 * case.noise, &case.known);
        let optimum = figures::Scale::new(case.quiet().unit(), case.optimum).show(case.optimum);
        let (claims, losses) = (list(&|run| run.claimed), list(&|run| Some(loss(case, run))));
        println!(
            "| {number} | {} | {noise:.1} % | {optimum} | {known} | {claims} | {losses} |",
            case.name
        );
    }
}

/// Prints a row for each strategy on each of `groups` and on all workloads. For the default it adds
/// rows by noise, and how often it ends early or is wrong.
pub(crate) fn strategies(results: &[Results<'_>], groups: &[Group]) {
    let [within, wider] = [WITHIN, WIDER].map(figures::percent);
    println!(
        "\n| strategy | workloads | campaigns | within 1 % by {EARLY} | bound given | covers | \
         upper end, median | certified {within} | false | certified {wider} | false | loss, median \
         | worst | measurements, median |"
    );
    println!("|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
    for results in results {
        groups.iter().for_each(|group| row(results, group.name(), |case| case.group == *group));
        row(results, "all", |_| true);
    }
    let default = || results.iter().filter(|results| results.name == DEFAULT);
    for results in default() {
        NOISES.iter().for_each(|noise| {
            row(results, &format!("noise {:.1} %", 100.0 * noise), |case| case.noise == *noise)
        });
    }
    default().for_each(closer);
    nodes(results);
}

/// Prints what several nodes gain, and what they measure in vain: by the first campaign on each
/// workload.
fn nodes(results: &[Results<'_>]) {
    let first = |name: &str| {
        let of = results.iter().find(|results| results.name == name)?;
        of.runs.iter().map(|(_, runs)| runs.first()).collect::<Option<Vec<&Run>>>()
    };
    let one = first(DEFAULT);
    println!(
        "\n| nodes | used, median | made, median | time, in windows, median | times as fast |"
    );
    println!("|---|--:|--:|--:|--:|");
    for name in [DEFAULT].into_iter().chain(WAYS.iter().filter(|it| it.nodes > 1).map(|it| it.name))
    {
        let Some(runs) = first(name) else { continue };
        let of = |value: &dyn Fn(&Run) -> f64| {
            median(&mut runs.iter().map(|run| value(run)).collect::<Vec<_>>()).unwrap_or_default()
        };
        let faster = one.as_ref().and_then(|one| {
            median(
                &mut one
                    .iter()
                    .zip(&runs)
                    .map(|(one, run)| one.took / run.took)
                    .collect::<Vec<_>>(),
            )
        });
        println!(
            "| {name} | {:.0} | {:.0} | {:.0} | {} |",
            of(&|run| run.measurements as f64),
            of(&|run| run.made as f64),
            of(&|run| run.took),
            faster.map_or("-".to_owned(), |faster| format!("{faster:.2}")),
        );
    }
}

/// Prints a row for the campaigns on some workloads.
fn row(results: &Results<'_>, label: &str, belongs: impl Fn(&Case) -> bool) {
    let some = results.runs.iter().filter(|(case, _)| belongs(case));
    let chosen: Vec<(&Case, &Run)> =
        some.flat_map(|(case, runs)| runs.iter().map(move |run| (*case, run))).collect();
    let campaigns = chosen.len();
    let share = |count: usize, of: usize| match of {
        0 => "-".to_owned(),
        _ => format!("{:.1} %", 100.0 * count as f64 / of as f64),
    };
    let certified = |within: f64| {
        let certified: Vec<_> =
            chosen.iter().filter(|(_, run)| is_certified(run, within)).collect();
        let wrong = certified.iter().filter(|(case, run)| loss(case, run) > within).count();
        format!("{} | {}", share(certified.len(), campaigns), of_which(wrong, certified.len()))
    };
    let mut uppers: Vec<f64> =
        chosen.iter().filter_map(|(case, run)| Some(run.upper? / case.optimum - 1.0)).collect();
    let covers = chosen.iter().filter(|(case, run)| covers(case, run)).count();
    let early = chosen.iter().filter(|(case, run)| run.early >= 0.99 * case.optimum).count();
    let mut losses: Vec<f64> = chosen.iter().map(|(case, run)| loss(case, run)).collect();
    let mut measurements: Vec<f64> =
        chosen.iter().map(|(_, run)| run.measurements as f64).collect();
    let worst = losses.iter().copied().reduce(f64::max);
    let shown =
        |value: Option<f64>, show: &dyn Fn(f64) -> String| value.map_or("-".to_owned(), show);
    println!(
        "| {} | {label} | {campaigns} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
        results.name,
        share(early, campaigns),
        share(uppers.len(), campaigns),
        share(covers, uppers.len()),
        shown(median(&mut uppers), &|upper| format!("{:+.1} %", 100.0 * upper)),
        certified(WITHIN),
        certified(WIDER),
        shown(median(&mut losses), &|loss| format!("{:.2} %", 100.0 * loss)),
        shown(worst, &|loss| format!("{:.1} %", 100.0 * loss)),
        shown(median(&mut measurements), &|count| format!("{count:.0}")),
    );
}

/// Prints how often a strategy ends early, and how often it is wrong. The campaigns on a workload
/// count as one here, since they are not independent.
fn closer(results: &Results<'_>) {
    let all =
        || results.runs.iter().flat_map(|(case, runs)| runs.iter().map(move |run| (*case, run)));
    let ended: Vec<_> = all().filter(|(_, run)| run.ended).collect();
    let below = ended.iter().filter(|(case, run)| loss(case, run) > WITHIN).count();
    let (name, ended, campaigns, within) =
        (results.name, ended.len(), all().count(), figures::percent(WITHIN));
    println!(
        "\n- {name}: a bound ended {ended} of {campaigns} campaigns early. More than {within} \
         below the optimum: {below} of these."
    );
    let bounds = all().filter(|(_, run)| run.upper.is_some()).count();
    let low = bounds - all().filter(|(case, run)| covers(case, run)).count();
    println!("- {name}: the upper end is below the optimum in {}.", of_which(low, bounds));
    for within in [WITHIN, WIDER] {
        let worst = |(case, runs): &(&Case, &[Run])| {
            let certified = runs.iter().filter(|run| is_certified(run, within));
            certified.map(|run| loss(case, run)).reduce(f64::max)
        };
        let worst: Vec<f64> = results.runs.iter().filter_map(worst).collect();
        let wrong = worst.iter().filter(|loss| **loss > within).count();
        println!(
            "- {name}: workloads with a false certificate of {:.1} %, among those with any: {}.",
            100.0 * within,
            of_which(wrong, worst.len())
        );
    }
}

fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
