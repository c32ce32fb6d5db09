//! Co-schedulers on a simulated core, with the published rule and with ours. It repeats the study
//! of the paper on hardware monitoring (section 5).
//!
//! `cargo run --release -p pinwise-lab --example smt_cosched` prints, in Markdown, the tables of
//! docs/lab/cosched.md. The rates of phases alone took 9 minutes on a busy machine with two
//! processors. They are kept in target/phase-rates. Two numbers as arguments are the seed of
//! the sets and their number.

use pinwise_coscheduling::{
    CoscheduleObjective, CoscheduleRule, CounterModel, PublishedRule, TrainingPair,
};
use pinwise_counters::Autocorrelation;
use pinwise_lab::parallel::each;
use pinwise_lab::phase_rates::PhaseRates;
use pinwise_lab::run_queues::{SchedulerPolicy, SetRun, SmtStudy};
use pinwise_smt::{PhasedProgram, SmtCore};
use pinwise_topology::Random;
use std::error::Error;
use std::path::Path;

/// Programs of a set, runs of each set, and seconds of each run (published).
const TASKS: usize = 8;
const RUNS: u64 = 3;
const SECONDS: f64 = 240.0;
/// Cycles in which caches fill, and cycles that count.
const CYCLES: (u64, u64) = (1_000_000, 1_000_000);
/// Student's t at 97.5 % for the mean of three.
const STUDENT: f64 = 4.303;

/// The policy for a set of programs.
type PolicyOfSet<'a> = Box<dyn Fn(&[usize]) -> SchedulerPolicy + Sync + 'a>;

/// How a policy does on a set, against the base scheduler.
struct SetGain {
    /// Micro-operations, and the sum of progress of all programs, over those of the base scheduler.
    throughput: f64,
    progress: f64,
    /// The half width of the 95 % interval of throughput.
    margin: f64,
    /// By program: its progress over that under the base scheduler.
    by_program: Vec<f64>,
    moves: f64,
    kept: f64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1).map(|word| word.parse::<u64>());
    let seed = arguments.next().transpose()?.unwrap_or(7);
    let count = arguments.next().transpose()?.unwrap_or(50);
    let core = SmtCore::northwood();
    let programs = PhasedProgram::spec2000();
    let rates = PhaseRates::of(&core, &programs, CYCLES, Path::new("target/phase-rates"))?;
    let hertz = core.clock_ghz * 1e9;
    let study = SmtStudy { programs: &programs, rates: &rates, hertz, seconds: SECONDS };
    let mut random = Random::new(seed);
    let sets: Vec<Vec<usize>> = (0..count)
        .map(|_| {
            let mut all: Vec<usize> = (0..programs.len()).collect();
            random.shuffle(&mut all);
            all.truncate(TASKS);
            all
        })
        .collect();
    let runs = |set: &[usize], policy: &SchedulerPolicy| -> Vec<SetRun> {
        (0..RUNS).map(|run| study.run(set, policy, run)).collect()
    };
    let base = each(&sets, |set| runs(set, &SchedulerPolicy::Base));
    print_autocorrelations(&base);

    let published = PublishedRule::default();
    let narrow = PublishedRule { window: 3, ..published };
    let alone = PublishedRule { groups: false, ..published };
    let seen = |objective| SchedulerPolicy::Affinity(CoscheduleRule::Seen, objective);
    let by_rule =
        SchedulerPolicy::Affinity(CoscheduleRule::Published(published), CoscheduleObjective::Both);
    let rows: Vec<(&str, &str, PolicyOfSet<'_>)> = vec![
        ("published, window of four", "kernel", same(SchedulerPolicy::PublishedKernel(published))),
        ("published, window of three", "kernel", same(SchedulerPolicy::PublishedKernel(narrow))),
        ("published, without groups", "kernel", same(SchedulerPolicy::PublishedKernel(alone))),
        ("published value and groups", "affinity", same(by_rule)),
        ("seen, throughput", "affinity", same(seen(CoscheduleObjective::Throughput))),
        ("seen, fairness", "affinity", same(seen(CoscheduleObjective::Fairness))),
        ("**seen, both** (default)", "affinity", same(seen(CoscheduleObjective::Both))),
        (
            "best fixed split, by the truth",
            "affinity",
            Box::new(|set| SchedulerPolicy::Fixed(study.best_split(set))),
        ),
        ("matching, by the truth", "kernel", same(SchedulerPolicy::MatchedPairs)),
        (
            "fitted model, both",
            "affinity",
            Box::new(|set| {
                let rule = CoscheduleRule::Predicted(Box::new(fitted(&study, set)));
                SchedulerPolicy::Affinity(rule, CoscheduleObjective::Both)
            }),
        ),
    ];
    println!(
        "\n| method | decides | throughput: mean | least | most | progress: mean | least | most | \
         sets that lose | least favoured: mean | least | sets below 90 % | kept | moves |\n\
         |---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
    );
    let mut shown = Vec::new();
    for (name, place, policy) in &rows {
        let gains: Vec<SetGain> = each(&(0..sets.len()).collect::<Vec<_>>(), |&at| {
            SetGain::of(&runs(&sets[at], &policy(&sets[at])), &base[at])
        });
        print_row(name, place, &gains);
        if name.starts_with("published, window of four") || name.contains("default") {
            shown.push((*name, gains));
        }
    }
    for (name, gains) in &shown {
        print_sets(name, gains, &sets, &programs);
    }
    Ok(())
}

/// One policy for all sets.
fn same<'a>(policy: SchedulerPolicy) -> PolicyOfSet<'a> {
    Box::new(move |_| policy.clone())
}

/// A model of pairs that was fitted to the programs that are not in the set.
fn fitted(study: &SmtStudy<'_>, set: &[usize]) -> CounterModel {
    let others: Vec<usize> =
        (0..study.programs.len()).filter(|program| !set.contains(program)).collect();
    let training: Vec<_> = others
        .iter()
        .map(|&program| (study.programs[program].name.clone(), study.mean_counts(program)))
        .collect();
    let mut pairs = Vec::new();
    for (one, &first) in others.iter().enumerate() {
        for (other, &second) in others.iter().enumerate().skip(one + 1) {
            let kept = [study.mean_speed(first, second), study.mean_speed(second, first)];
            pairs.push(TrainingPair { programs: [one, other], kept });
        }
    }
    let model = CounterModel::fit("model", &CounterModel::EVENTS, &training, &pairs);
    model.expect("many pairs, and every event")
}

impl SetGain {
    fn of(runs: &[SetRun], base: &[SetRun]) -> Self {
        let sum = |of: &[f64]| of.iter().sum::<f64>();
        let ratios = |of: &dyn Fn(&SetRun) -> f64| -> (f64, f64) {
            let each: Vec<f64> =
                runs.iter().zip(base).map(|(one, base)| of(one) / of(base)).collect();
            let mean = sum(&each) / each.len() as f64;
            let squares: f64 = each.iter().map(|one| (one - mean).powi(2)).sum();
            let deviation = (squares / (each.len() - 1) as f64).sqrt();
            (mean, STUDENT * deviation / (each.len() as f64).sqrt())
        };
        let throughput = ratios(&|run| sum(&run.micro_ops));
        let progress = ratios(&|run| sum(&run.progress));
        let of_program = |program: usize| {
            let all = |of: &[SetRun]| of.iter().map(|run| run.progress[program]).sum::<f64>();
            all(runs) / all(base)
        };
        let mean =
            |of: &dyn Fn(&SetRun) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
        Self {
            throughput: throughput.0,
            progress: progress.0,
            margin: throughput.1,
            by_program: (0..runs[0].progress.len()).map(of_program).collect(),
            moves: mean(&|run| f64::from(run.moves)),
            kept: mean(&|run| run.kept),
        }
    }

    /// The progress of the program that gained least.
    fn least(&self) -> f64 {
        self.by_program.iter().fold(f64::INFINITY, |least, one| least.min(*one))
    }
}

/// Mean, least and most.
fn range(values: impl Iterator<Item = f64>) -> [f64; 3] {
    let values: Vec<f64> = values.collect();
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let least = values.iter().fold(f64::INFINITY, |least, one| least.min(*one));
    let most = values.iter().fold(f64::NEG_INFINITY, |most, one| most.max(*one));
    [mean, least, most]
}

fn percent(ratio: f64) -> String {
    format!("{:+.1} %", 100.0 * (ratio - 1.0))
}

fn print_row(name: &str, place: &str, gains: &[SetGain]) {
    let throughput = range(gains.iter().map(|gain| gain.throughput)).map(percent).join(" | ");
    let progress = range(gains.iter().map(|gain| gain.progress)).map(percent).join(" | ");
    let loses = |gain: &&SetGain| gain.throughput + gain.margin < 0.99;
    let lost = gains.iter().filter(loses).count();
    let least = range(gains.iter().map(SetGain::least));
    let moves = range(gains.iter().map(|gain| gain.moves))[0];
    let below = gains.iter().filter(|gain| gain.least() < 0.9).count();
    let kept = range(gains.iter().map(|gain| gain.kept))[0];
    println!(
        "| {name} | {place} | {throughput} | {progress} | {lost} | {:.0} % | {:.0} % | {below} | \
         {kept:.1} | {moves:.0} |",
        100.0 * least[0],
        100.0 * least[1]
    );
}

/// The worst, the median and the best set, program by program (figure 7).
fn print_sets(name: &str, gains: &[SetGain], sets: &[Vec<usize>], programs: &[PhasedProgram]) {
    let mut order: Vec<usize> = (0..gains.len()).collect();
    order.sort_by(|&one, &two| gains[one].throughput.total_cmp(&gains[two].throughput));
    println!("\n{name}:\n\n| set | throughput | each program |\n|---|--:|---|");
    let shown = [("worst", 0), ("median", order.len() / 2), ("best", order.len() - 1)];
    for (which, at) in shown.map(|(which, place)| (which, order[place])) {
        let mut each: Vec<(f64, usize)> =
            gains[at].by_program.iter().copied().zip(sets[at].iter().copied()).collect();
        each.sort_by(|one, two| one.0.total_cmp(&two.0));
        let each: Vec<String> = each
            .iter()
            .map(|(gain, program)| format!("{} {}", programs[*program].name, percent(*gain)))
            .collect();
        println!("| {which} | {} | {} |", percent(gains[at].throughput), each.join(", "));
    }
}

/// Of instructions and L2 misses per cycle, from one slice of a task to its next one.
fn print_autocorrelations(base: &[Vec<SetRun>]) {
    let tasks: Vec<&Vec<[f64; 2]>> = base.iter().flatten().flat_map(|run| &run.slices).collect();
    let mean = |event: usize, together: usize| {
        let of = |slices: &&Vec<[f64; 2]>| {
            let sums = slices.chunks_exact(together);
            let sums: Vec<f64> = sums.map(|part| part.iter().map(|one| one[event]).sum()).collect();
            Autocorrelation::of(&sums, 1).map(|one| one.coefficient)
        };
        let all: Vec<f64> = tasks.iter().filter_map(of).collect();
        all.iter().sum::<f64>() / all.len() as f64
    };
    println!("| autocorrelation | paper | here, mean of {} tasks |\n|---|--:|--:|", tasks.len());
    println!("| ipc, one slice | 0.93 | {:.2} |", mean(0, 1));
    println!("| l2m, one slice | 0.92 | {:.2} |", mean(1, 1));
    println!("| l2m, sums of six slices | 0.52 | {:.2} |", mean(1, 6));
}
