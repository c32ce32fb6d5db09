//! How often a certificate is right, and what it costs: every strategy on workloads whose best possible performance is known.
//!
//! `cargo run --release -p pinwise-placement --example certificates [-- --seeds 5] [--strategy NAME]` prints, in Markdown, the
//! tables of docs/CERTIFICATES.md. Seeds are fixed: the same arguments print the same text.

mod published;
mod workloads;

use pinwise_campaign::{Record, Step, Strategy};
use pinwise_evt::Method;
use pinwise_placement::{Budget, Outcome, Question, Search, StrategyName};
use pinwise_testbed::{Contention, Testbed};
use pinwise_topology::Alike;
use std::process::ExitCode;
use std::time::Duration;
use workloads::Case;

/// Asked for.
const WITHIN: f64 = 0.025;
/// Measurements that each strategy may make, fresh windows included.
const BUDGET: u64 = 1500;
/// What the published iteration may make: the paper's largest sample.
const PUBLISHED_BUDGET: u64 = 5000;

/// A way to answer.
struct Way {
    name: &'static str,
    strategy: StrategyName,
    method: Method,
    budget: u64,
}

const WAYS: [Way; 4] = [
    Way { name: "published", strategy: StrategyName::Random, method: Method::Profile, budget: PUBLISHED_BUDGET },
    Way { name: "auto", strategy: StrategyName::Auto, method: Method::Bayes, budget: BUDGET },
    Way { name: "climb", strategy: StrategyName::Climb, method: Method::Bayes, budget: BUDGET },
    Way { name: "guided", strategy: StrategyName::Guided, method: Method::Bayes, budget: BUDGET },
];

/// What one campaign came to.
pub(crate) struct Run {
    /// Measurements made.
    pub(crate) measurements: u64,
    /// What the announced assignment does in truth.
    pub(crate) best: f64,
    /// The upper end of the bound; `None` where none was given.
    pub(crate) upper: Option<f64>,
    /// The gap that was claimed.
    pub(crate) claimed: Option<f64>,
}

fn main() -> ExitCode {
    let (mut seeds, mut only) = (5, None);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let value = arguments.next().unwrap_or_default();
        match (argument.as_str(), value.parse()) {
            ("--seeds", Ok(count)) if count > 0 => seeds = count,
            ("--strategy", _) => only = Some(value),
            _ => {
                eprintln!("usage: certificates [--seeds N] [--strategy NAME]");
                return ExitCode::from(2);
            }
        }
    }
    let mut cases = workloads::all();
    let wanted = |name: &str| only.as_ref().is_none_or(|only| only == name);
    let mut table: Vec<(String, Vec<Vec<Run>>)> = Vec::new();
    for way in WAYS.iter().filter(|way| wanted(way.name)) {
        let run = |case: &Case| (0..seeds).map(|seed| campaign(case, way, seed)).collect();
        table.push((way.name.to_owned(), cases.iter().map(run).collect()));
        eprintln!("{}: {} campaigns done", way.name, cases.len() as u64 * seeds);
    }
    if wanted("blackbox") {
        for finalists in [1, 5] {
            let run = |case: &Case| vec![published::blackbox(case, finalists)];
            table.push((format!("blackbox, top {finalists}"), cases.iter().map(run).collect()));
        }
    }
    // Annealing may miss the optimum by a little; what any campaign found is no better than the optimum.
    for (number, case) in cases.iter_mut().enumerate() {
        let found = table.iter().flat_map(|(_, runs)| &runs[number]).map(|run| run.best).fold(0.0, f64::max);
        if found > case.optimum * (1.0 + 1e-9) {
            let by = 100.0 * (found / case.optimum - 1.0);
            case.known = format!("found by a campaign, {by:.2} % above {}", case.known);
            case.optimum = found;
        }
    }
    println!("| # | workload | noise | optimum | known |\n|--:|---|--:|--:|---|");
    for (number, case) in cases.iter().enumerate() {
        let held_out = if case.held_out { ", held out" } else { "" };
        let (name, noise) = (&case.name, 100.0 * case.noise);
        println!("| {number} | {name}{held_out} | {noise:.1} % | {:.4} | {} |", case.optimum, case.known);
    }
    println!("\nCampaigns per workload and strategy: {seeds}. Within 2.5 %, confidence 95 %.\n");
    println!(
        "| strategy | workloads | bound given | covers | upper end, median | certified | false | loss, median | loss, worst | measurements, median |"
    );
    println!("|---|---|--:|--:|--:|--:|--:|--:|--:|--:|");
    for (name, runs) in &table {
        report(name, &cases, runs);
    }
    ExitCode::SUCCESS
}

/// Prints a row for the workloads looked at while choosing constants, one for those held out, and one for the needle.
fn report(name: &str, cases: &[Case], runs: &[Vec<Run>]) {
    let row = |case: &Case| match (case.name.contains("needle"), case.held_out) {
        (true, _) => "needle",
        (false, true) => "held out",
        (false, false) => "seen",
    };
    for label in ["seen", "held out", "needle"] {
        let belongs = |(case, _): &(&Case, _)| row(case) == label;
        let of_case = |(case, runs)| std::iter::repeat::<&Case>(case).zip::<&Vec<Run>>(runs);
        let chosen: Vec<(&Case, &Run)> = cases.iter().zip(runs).filter(belongs).flat_map(of_case).collect();
        let short = |(case, run): &(&Case, &Run)| 1.0 - run.best / case.optimum;
        let mut uppers: Vec<f64> =
            chosen.iter().filter_map(|(case, run)| Some(run.upper? / case.optimum - 1.0)).collect();
        let covers = uppers.iter().filter(|upper| **upper >= -1e-9).count();
        let certified: Vec<_> = chosen.iter().filter(|(_, run)| run.claimed.is_some_and(|gap| gap <= WITHIN)).collect();
        let wrong = certified.iter().filter(|chosen| short(chosen) > WITHIN).count();
        let share = |count: usize, of: usize| match of {
            0 => "-".to_owned(),
            _ => format!("{:.1} %", 100.0 * count as f64 / of as f64),
        };
        let mut losses: Vec<f64> = chosen.iter().map(short).collect();
        let mut measurements: Vec<f64> = chosen.iter().map(|(_, run)| run.measurements as f64).collect();
        let worst = losses.iter().copied().fold(0.0, f64::max);
        let given = uppers.len();
        let typical = if given == 0 { "-".to_owned() } else { format!("{:+.1} %", 100.0 * median(&mut uppers)) };
        println!(
            "| {name} | {label} | {} | {} | {typical} | {} | {} | {:.2} % | {:.1} % | {:.0} |",
            share(given, chosen.len()),
            share(covers, given),
            share(certified.len(), chosen.len()),
            share(wrong, chosen.len()),
            100.0 * median(&mut losses),
            100.0 * worst,
            median(&mut measurements),
        );
    }
}

/// A campaign without a store.
fn campaign(case: &Case, way: &Way, seed: u64) -> Run {
    let question = Question {
        strategy: way.strategy,
        within: WITHIN,
        confidence: 0.95,
        budget: Budget::Measurements(way.budget),
        per_context: Some(1),
        alike: Alike::ByStructure,
        start: if way.method == Method::Profile { 1000 } else { 500 },
        step: (way.method == Method::Profile).then_some(100),
        method: way.method,
        cap: None,
        precision: 0.01,
        seed,
        profile: pinwise_placement::Profile::default(),
    };
    let mut testbed = case.testbed(seed);
    let mut search = Search::new(&question, &case.tree, testbed.workload()).expect("the workload fits");
    let mut records: Vec<Record> = Vec::new();
    while let Step::Measure(trial) = search.step(&records) {
        let number = records.len() as u64;
        testbed.seek(number);
        let outcome = testbed.measure(&trial.setting, trial.effort);
        records.push(Record { number, trial, outcome, elapsed: Duration::ZERO });
    }
    let outcome = search.outcome(testbed.unit(), &records, None);
    judge(&testbed, &outcome)
}

fn judge(testbed: &Contention, outcome: &Outcome) -> Run {
    let truth = outcome.best.as_ref().map_or(0.0, |best| testbed.truth(best.assignment.leaves()));
    Run {
        measurements: outcome.cost.measurements,
        best: truth,
        upper: outcome.bound.upb_high,
        claimed: outcome.bound.gap_high,
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
