//! Programs beside each other on a modelled core with two contexts. It prints the matrix of pairs
//! of the paper on hardware monitoring (figure 1).
//!
//! `cargo run --release -p pinwise-lab --example smt_pairs` prints, in Markdown, the tables of
//! docs/lab/smt-core.md. It takes some minutes. `--matrix` prints every pair, too.
//!
//! The measures of a pair are those of [`PairTimes`].

use pinwise_coscheduling::{Lengths, PairTimes};
use pinwise_lab::parallel::each;
use pinwise_smt::{CounterValues, SmtCore, StreamProgram, events};
use std::error::Error;

/// Cycles in which caches fill, and cycles that count.
const CYCLES: (u64, u64) = (1_000_000, 2_000_000);
const SEED: u64 = 1;
/// The paper's bad neighbours (section 4).
const PUBLISHED_BAD: [&str; 3] = ["176.gcc", "171.swim", "179.art"];

/// Two programs beside each other: how fast each runs, as a share of its rate alone.
#[derive(Clone, Copy)]
struct Pair {
    programs: [usize; 2],
    rates: [f64; 2],
}

impl Pair {
    /// Both have as much work as they do alone in the same time.
    fn times(&self) -> PairTimes {
        PairTimes { alone: [1.0; 2], together: self.rates.map(|rate| 1.0 / rate) }
    }

    fn speedup(&self) -> f64 {
        self.times().speedup(Lengths::Equal)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let matrix = std::env::args().any(|word| word == "--matrix");
    let core = SmtCore::northwood();
    let programs = StreamProgram::spec2000();
    let measured = |pair: &[&StreamProgram]| events(&core, pair, SEED, CYCLES.0, CYCLES.1);
    let alone: Vec<CounterValues> = each(&programs, |program| measured(&[program])[0]);

    println!(
        "| program | micro-ops per cycle | branches | mispredicted | trace misses | L2 misses | \
         fp |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|");
    for (program, alone) in programs.iter().zip(&alone) {
        let per = |events: u64| 1000.0 * events as f64 / alone.micro_ops as f64;
        println!(
            "| {} | {:.2} | {:.0} | {:.1} | {:.1} | {:.1} | {:.0} |",
            program.name,
            alone.per_cycle(),
            per(alone.branches),
            per(alone.mispredicted),
            per(alone.trace_misses),
            per(alone.l2_misses),
            per(alone.fp)
        );
    }

    let with = |one| (one..programs.len()).map(move |two| [one, two]);
    let all: Vec<[usize; 2]> = (0..programs.len()).flat_map(with).collect();
    let pairs: Vec<Pair> = each(&all, |&pair| {
        let together = measured(&pair.map(|program| &programs[program]));
        let rate = |place: usize| together[place].per_cycle() / alone[pair[place]].per_cycle();
        Pair { programs: pair, rates: [rate(0), rate(1)] }
    });
    println!(
        "\n| of {} pairs | least | 10 % | median | 90 % | most |\n|---|--:|--:|--:|--:|--:|",
        pairs.len()
    );
    type Measure = fn(&Pair) -> f64;
    let measures: [(&str, Measure); 3] = [
        ("the paper's speed-up", Pair::speedup),
        ("weighted speed-up", |pair| pair.times().weighted_speedup()),
        ("unfairness", |pair| pair.times().unfairness()),
    ];
    for (name, measure) in measures {
        let mut values: Vec<f64> = pairs.iter().map(measure).collect();
        values.sort_by(f64::total_cmp);
        let last = values.len() - 1;
        let shown =
            [0, last / 10, last / 2, 9 * last / 10, last].map(|at| format!("{:.2}", values[at]));
        println!("| {name} | {} |", shown.join(" | "));
    }

    let mut neighbours: Vec<(f64, f64, &str)> = (0..programs.len())
        .map(|program| {
            let with = pairs.iter().filter(|pair| pair.programs.contains(&program));
            let (mut speedup, mut taken, mut count) = (0.0, 0.0, 0.0);
            for pair in with {
                let other = usize::from(pair.programs[0] == program);
                speedup += pair.speedup();
                taken += 1.0 - pair.rates[other];
                count += 1.0;
            }
            (speedup / count, taken / count, programs[program].name.as_str())
        })
        .collect();
    neighbours.sort_by(|one, other| one.0.total_cmp(&other.0));
    println!(
        "\n| neighbour | mean speed-up of its pairs | takes from the other | bad in the paper |\n\
         |---|--:|--:|---|"
    );
    for (speedup, taken, name) in neighbours {
        let bad = if PUBLISHED_BAD.contains(&name) { "yes" } else { "" };
        println!("| {name} | {speedup:.2} | {:.0} % | {bad} |", 100.0 * taken);
    }
    if matrix {
        println!();
        for pair in &pairs {
            let [one, two] = pair.programs.map(|program| &programs[program].name);
            println!("{one}, {two}: {:.3} {:.3}", pair.rates[0], pair.rates[1]);
        }
    }
    Ok(())
}
