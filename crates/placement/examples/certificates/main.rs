//! How often a certificate is right, and what it costs: every strategy on workloads whose best possible performance is known.
//!
//! `cargo run --release -p pinwise-placement --example certificates -- paper --seeds 1` prints, in Markdown, the tables of
//! docs/CERTIFICATES.md for workloads on paper, `simulated --seeds 1` those for the simulated UltraSPARC T2; `--strategy NAME` is for one
//! strategy alone, which the page is made of. Seeds are fixed: the same arguments print the same text.

mod frozen;
mod published;
mod workloads;

use pinwise_campaign::{Record, Step, Strategy};
use pinwise_evt::Method;
use pinwise_placement::{Budget, Outcome, Question, Search, StrategyName};
use pinwise_testbed::{Setting, Testbed, figures};
use pinwise_topology::Assignment;
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use workloads::{Bed, Case, Group};

/// Asked for.
const WITHIN: f64 = 0.025;
/// Measurements that each strategy may make, fresh windows included.
const BUDGET: u64 = 600;
/// Of these, how many it has made when its best so far is looked at.
const EARLY: usize = 300;
/// A wider claim that is counted too.
const WIDER: f64 = 0.05;
/// What the published iteration may make: the paper's largest sample.
const PUBLISHED_BUDGET: u64 = 5000;
/// On the simulator less: it goes beyond its first sample of 1,000 in steps of 100.
const PUBLISHED_SIMULATED: u64 = 1500;
/// Measurements without noise in which the best of a simulated workload is looked for.
const LONG: u64 = 600;

/// A way to answer.
struct Way {
    name: &'static str,
    strategy: StrategyName,
    method: Method,
    budget: u64,
}

const WAYS: [Way; 4] = [
    Way { name: "published", strategy: StrategyName::Random, method: Method::Profile, budget: PUBLISHED_BUDGET },
    Way { name: "random", strategy: StrategyName::Random, method: Method::Bayes, budget: BUDGET },
    Way { name: "climb", strategy: StrategyName::Climb, method: Method::Bayes, budget: BUDGET },
    Way { name: "default", strategy: StrategyName::Auto, method: Method::Bayes, budget: BUDGET },
];

/// What one campaign came to.
pub(crate) struct Run {
    /// Measurements made.
    pub(crate) measurements: u64,
    /// What the announced assignment does in truth.
    pub(crate) best: f64,
    /// What the best so far did in truth after [`EARLY`] measurements, or at the end.
    pub(crate) early: f64,
    /// The upper end of the bound; `None` where none was given.
    pub(crate) upper: Option<f64>,
    /// The gap that was claimed.
    pub(crate) claimed: Option<f64>,
    /// A bound ended the search before the budget did.
    pub(crate) ended: bool,
}

impl Run {
    /// Says on stderr what came of a campaign, for who waits.
    fn note(&self, way: &str, case: &Case) {
        let percent = |value: f64| 100.0 * (value / case.optimum - 1.0);
        eprintln!(
            "{way}, {}, noise {:.1} %: {} measurements, best {:+.2} %, after {EARLY} {:+.2} %, upper end {:+.2} %, gap claimed {:.2} %{}",
            case.name,
            100.0 * case.noise,
            self.measurements,
            percent(self.best),
            percent(self.early),
            self.upper.map_or(f64::NAN, percent),
            100.0 * self.claimed.unwrap_or(f64::NAN),
            if self.ended { ", ended early" } else { "" },
        );
    }
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let mut cases = match arguments.next().as_deref() {
        Some("paper") => workloads::on_paper(),
        Some("simulated") => workloads::simulated(),
        _ => return usage(),
    };
    let (mut seeds, mut only) = (3, None);
    while let Some(argument) = arguments.next() {
        let value = arguments.next().unwrap_or_default();
        match (argument.as_str(), value.parse()) {
            ("--seeds", Ok(count)) if count > 0 => seeds = count,
            ("--strategy", _) => only = Some(value),
            _ => return usage(),
        }
    }
    let wanted = |name: &str| only.as_ref().is_none_or(|only| only == name);
    let mut table: Vec<(String, Vec<Vec<Run>>)> = Vec::new();
    for way in WAYS.iter().filter(|way| wanted(way.name)) {
        let run = |case: &Case| {
            let runs: Vec<Run> = (0..seeds).map(|seed| campaign(case, way, seed)).collect();
            runs.iter().for_each(|run| run.note(way.name, case));
            runs
        };
        table.push((way.name.to_owned(), each(&cases, run)));
        eprintln!("{}: {} campaigns done", way.name, cases.len() as u64 * seeds);
    }
    if wanted("blackbox") && cases.iter().all(|case| case.group != Group::Simulated) {
        for finalists in [1, 5] {
            let run = |case: &Case| vec![published::blackbox(case, finalists)];
            table.push((format!("blackbox, top {finalists}"), each(&cases, run)));
        }
    }
    each(&cases, |case| case.group == Group::Simulated && !case.is_enumerated() && long(case));
    // Annealing may miss the optimum by a little; what any campaign found is no better than the optimum.
    for (number, case) in cases.iter_mut().enumerate() {
        case.settle(table.iter().flat_map(|(_, runs)| &runs[number]).map(|run| run.best).fold(0.0, f64::max));
    }
    println!("| # | workload | noise | optimum | known |\n|--:|---|--:|--:|---|");
    for (number, case) in cases.iter().enumerate() {
        let held_out = if case.group == Group::HeldOut { ", held out" } else { "" };
        let (name, noise) = (&case.name, 100.0 * case.noise);
        let optimum = figures::Scale::new(case.quiet().unit(), case.optimum).show(case.optimum);
        println!("| {number} | {name}{held_out} | {noise:.1} % | {optimum} | {} |", case.known);
    }
    println!("\nCampaigns per workload and strategy: {seeds}. Within 2.5 %, confidence 95 %.\n");
    println!(
        "| strategy | workloads | within 1 % by {EARLY} | bound given | covers | upper end, median | certified 2.5 % | of these false | certified 5 % | of these false | loss, median | loss, worst | measurements, median |"
    );
    println!("|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
    for (name, runs) in &table {
        let groups = Group::ALL.into_iter().filter(|group| cases.iter().any(|case| case.group == *group));
        let groups: Vec<Group> = groups.collect();
        groups.iter().for_each(|group| report(name, group.name(), &cases, runs, |case| case.group == *group));
        if groups.len() > 1 {
            report(name, "all", &cases, runs, |_| true);
        }
    }
    for noise in workloads::NOISES {
        for (name, runs) in table.iter().filter(|(name, _)| name == "default") {
            report(name, &format!("noise {:.1} %", 100.0 * noise), &cases, runs, |case| case.noise == noise);
        }
    }
    for (name, runs) in table.iter().filter(|(name, _)| name == "default") {
        let campaigns = || cases.iter().zip(runs).flat_map(|(case, runs)| runs.iter().map(move |run| (case, run)));
        let ended: Vec<_> = campaigns().filter(|(_, run)| run.ended).collect();
        let wrong = ended.iter().filter(|(case, run)| 1.0 - run.best / case.optimum > WITHIN).count();
        let (ended, all) = (ended.len(), campaigns().count());
        println!(
            "\n{name}: a bound ended {ended} of {all} campaigns early; {wrong} of these are below the optimum by more than 2.5 %."
        );
    }
    ExitCode::SUCCESS
}

fn usage() -> ExitCode {
    eprintln!("usage: certificates paper|simulated [--seeds N] [--strategy NAME]");
    ExitCode::from(2)
}

/// What `of` gives for every item, in order, on all processors.
pub(crate) fn each<T: Sync, R: Send>(items: &[T], of: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        while let Some((index, item)) =
            Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|n| Some((n, items.get(n)?)))
        {
            done.push((index, of(item)));
        }
        done
    };
    let processors = std::thread::available_parallelism().map_or(1, |processors| processors.get());
    let mut all: Vec<(usize, R)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..processors).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("no campaign panics")).collect()
    });
    all.sort_by_key(|(index, _)| *index);
    all.into_iter().map(|(_, result)| result).collect()
}

/// Prints a row for the workloads chosen.
fn report(name: &str, label: &str, cases: &[Case], runs: &[Vec<Run>], belongs: impl Fn(&Case) -> bool) {
    let of_case = |(case, runs)| std::iter::repeat::<&Case>(case).zip::<&Vec<Run>>(runs);
    let chosen: Vec<(&Case, &Run)> =
        cases.iter().zip(runs).filter(|(case, _)| belongs(case)).flat_map(of_case).collect();
    let short = |(case, run): &(&Case, &Run)| 1.0 - run.best / case.optimum;
    let mut uppers: Vec<f64> = chosen.iter().filter_map(|(case, run)| Some(run.upper? / case.optimum - 1.0)).collect();
    let covers = uppers.iter().filter(|upper| **upper >= -1e-9).count();
    let claims = |within: f64| {
        let certified = chosen.iter().filter(move |(_, run)| run.claimed.is_some_and(|gap| gap <= within));
        let (all, wrong) =
            certified.fold((0, 0), |(all, wrong), chosen| (all + 1, wrong + usize::from(short(chosen) > within)));
        (all, wrong)
    };
    let (narrow, wide) = (claims(WITHIN), claims(WIDER));
    let early = chosen.iter().filter(|(case, run)| run.early >= 0.99 * case.optimum).count();
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
        "| {name} | {label} | {} | {} | {} | {typical} | {} | {} | {} | {} | {:.2} % | {:.1} % | {:.0} |",
        share(early, chosen.len()),
        share(given, chosen.len()),
        share(covers, given),
        share(narrow.0, chosen.len()),
        share(narrow.1, narrow.0),
        share(wide.0, chosen.len()),
        share(wide.1, wide.0),
        100.0 * median(&mut losses),
        100.0 * worst,
        median(&mut measurements),
    );
}

/// The question that a way of answering is asked.
fn question(way: &Way, seed: u64) -> Question {
    let published = way.method == Method::Profile;
    Question {
        within: WITHIN,
        per_context: Some(1),
        start: if published { 1000 } else { 500 },
        step: published.then_some(100),
        method: way.method,
        seed,
        pieces: true,
        ..Question::new(way.strategy, Budget::Measurements(way.budget))
    }
}

/// A campaign without a store.
fn campaign(case: &Case, way: &Way, seed: u64) -> Run {
    let mut question = question(way, seed);
    if way.method == Method::Profile && case.group == Group::Simulated {
        question.budget = Budget::Measurements(PUBLISHED_SIMULATED);
    }
    let (outcome, records, testbed) = answer(case, &question, case.testbed(seed));
    Run {
        measurements: outcome.cost.measurements,
        best: outcome.best.as_ref().map_or(0.0, |best| testbed.truth(best.assignment.leaves())),
        early: early(&testbed, &records),
        upper: outcome.bound.upb_high,
        claimed: outcome.bound.gap_high,
        ended: outcome.stopped_because.contains("asked for)"),
    }
}

/// Looks for the best of a simulated workload, which remembers what it simulated; tells whether it found any.
fn long(case: &Case) -> bool {
    let way = Way { name: "long", strategy: StrategyName::Auto, method: Method::Bayes, budget: LONG };
    let question = Question { within: 1e-9, pieces: false, ..question(&way, 99) };
    answer(case, &question, case.quiet()).0.best.is_some()
}

fn answer(case: &Case, question: &Question, mut testbed: Bed) -> (Outcome, Vec<Record>, Bed) {
    let mut search = Search::new(question, &case.tree, testbed.workload()).expect("the workload fits");
    let mut records: Vec<Record> = Vec::new();
    while let Step::Measure(trial) = search.step(&records) {
        let number = records.len() as u64;
        testbed.seek(number);
        let outcome = testbed.measure(&trial.setting, trial.effort);
        records.push(Record { number, trial, outcome, elapsed: Duration::ZERO });
    }
    (search.outcome(testbed.unit(), &records, None), records, testbed)
}

/// What the assignment with the best mean after [`EARLY`] measurements does in truth.
fn early(testbed: &Bed, records: &[Record]) -> f64 {
    let mut means: BTreeMap<&Assignment, (f64, f64)> = BTreeMap::new();
    for record in records.iter().take(EARLY) {
        if let (Setting::Pinned(assignment), Ok(measured)) = (&record.trial.setting, &record.outcome) {
            let (sum, count) = means.entry(assignment).or_default();
            *sum += measured.performance;
            *count += 1.0;
        }
    }
    let best = means.into_iter().max_by(|a, b| (a.1.0 / a.1.1).total_cmp(&(b.1.0 / b.1.1)));
    best.map_or(0.0, |(assignment, _)| testbed.truth(assignment.leaves()))
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
