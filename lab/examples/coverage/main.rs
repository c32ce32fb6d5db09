//! How often a bound is right, on populations whose best value is known.
//!
//! `cargo run --release -p pinwise-lab --example coverage [-- --samples 100] [--population NAME]`
//! prints three tables in Markdown. They show the populations, the coverage and width of both
//! methods at five sample sizes, and searches. Each search stops as soon as the bound is near. The
//! seeds are fixed: the same arguments print the same text.

mod assignment;
mod population;
mod random;

use pinwise_evt::{BoundEstimate, Method, Options, Sample, estimate, looks};
use population::Population;
use random::Random;
use std::env;
use std::process::ExitCode;

const SIZES: [usize; 5] = [200, 500, 1000, 2000, 5000];
const METHODS: [Method; 2] = [Method::Profile, Method::Bayes];
/// A search stops when the bound is this near.
const WITHIN: f64 = 0.025;
/// Longest search.
const LONGEST: u64 = 8000;

fn main() -> ExitCode {
    let (mut samples, mut only) = (100, None);
    let mut arguments = env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let value = arguments.next().unwrap_or_default();
        match (argument.as_str(), value.parse()) {
            ("--samples", Ok(count)) if count > 0 => samples = count,
            ("--population", _) => only = Some(value),
            _ => {
                eprintln!("usage: coverage [--samples N] [--population NAME]");
                return ExitCode::from(2);
            }
        }
    }
    let populations: Vec<_> = population::all()
        .into_iter()
        .filter(|p| only.as_ref().is_none_or(|name| p.name == name))
        .collect();
    println!("| population | optimum | known | best of 1000, median |\n|---|---|---|---|");
    for population in &populations {
        let mut shares: Vec<f64> =
            (0..101).map(|seed| best(&draw(population, 1000, seed)) / population.optimum).collect();
        println!(
            "| {} | {:.4} | {} | {:.1} % of the optimum |",
            population.name,
            population.optimum,
            population.known,
            100.0 * median(&mut shares)
        );
    }
    coverage(&populations, samples);
    searches(&populations, samples.div_ceil(4));
    ExitCode::SUCCESS
}

/// Coverage and width of single looks.
fn coverage(populations: &[Population], samples: u64) {
    println!(
        "\n{samples} samples per row, confidence 95 %. `none`: no bound given. `inf`: no finite \
         upper end."
    );
    println!(
        "`covers`: of the bounds given, the optimum lies inside. `low`: the upper end is below the \
         optimum, a false claim."
    );
    println!(
        "`width`: median of upper end / optimum - 1 where finite. The percentages of inf, covers \
         and low are of the bounds given.\n"
    );
    println!(
        "| population | n | profile none | inf | covers | low | width | bayes none | covers | low \
         | width |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
    for population in populations {
        for n in SIZES {
            let drawn: Vec<Sample> =
                (0..samples).map(|seed| Sample::new(draw(population, n, seed))).collect();
            let cells = METHODS.map(|method| Cell::new(population.optimum, &drawn, method));
            let [profile, bayes] = &cells;
            println!(
                "| {} | {n} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
                population.name,
                profile.none,
                profile.infinite,
                profile.covers,
                profile.low,
                profile.width,
                bayes.none,
                bayes.covers,
                bayes.low,
                bayes.width
            );
        }
    }
}

/// What one method achieved on one population and sample size, as text.
struct Cell {
    none: String,
    infinite: String,
    covers: String,
    low: String,
    width: String,
}

impl Cell {
    fn new(optimum: f64, samples: &[Sample], method: Method) -> Self {
        let options = Options { method, ..Options::default() };
        let bounds: Vec<BoundEstimate> =
            samples.iter().filter_map(|sample| estimate(sample, &options).ok()).collect();
        // The last digits of an annealed optimum or of a saturated rate are not a matter of
        // statistics.
        let below =
            |e: &BoundEstimate| e.upb_high.is_some_and(|high| high < optimum * (1.0 - 1e-9));
        let above = |e: &BoundEstimate| e.upb_low > optimum * (1.0 + 1e-9);
        let mut widths: Vec<f64> =
            bounds.iter().filter_map(|e| Some(e.upb_high? / optimum - 1.0)).collect();
        let percent = |count: usize, of: usize| match of {
            0 => "-".to_owned(),
            _ => format!("{:.0}", 100.0 * count as f64 / of as f64),
        };
        let given = bounds.len();
        Self {
            none: percent(samples.len() - given, samples.len()),
            infinite: percent(bounds.iter().filter(|e| e.upb_high.is_none()).count(), given),
            covers: percent(bounds.iter().filter(|e| !below(e) && !above(e)).count(), given),
            low: percent(bounds.iter().filter(|e| below(e)).count(), given),
            width: if widths.is_empty() {
                "-".to_owned()
            } else {
                format!("{:+.1} %", 100.0 * median(&mut widths))
            },
        }
    }
}

/// What one look during a search sees.
struct Look {
    n: u64,
    point: Option<f64>,
    upper: Option<f64>,
    /// The upper end is below the optimum.
    wrong: bool,
    /// How far the best is below the optimum.
    short: f64,
}

/// The looks of one search every 100 runs from 500; those where no bound is given are left out.
fn search(population: &Population, values: &[f64], method: Method) -> Vec<Look> {
    let options = Options { method, ..Options::default() };
    let look = |n: u64| {
        let sample = Sample::new(values[..n as usize].iter().copied());
        estimate(&sample, &options).ok().map(|e| Look {
            n,
            point: e.gap,
            upper: e.gap_high,
            wrong: e.upb_high.is_some_and(|high| high < population.optimum * (1.0 - 1e-9)),
            short: 1.0 - e.best / population.optimum,
        })
    };
    looks(500, Some(100)).take_while(|&n| n <= values.len() as u64).filter_map(look).collect()
}

/// Searches that stop at the first look with a gap within 2.5 %. Counts the upper ends that are
/// ever too low.
fn searches(populations: &[Population], samples: u64) {
    println!(
        "\nEach cell has {samples} searches of at most {LONGEST} runs. A search stops at the first \
         look with a gap within 2.5 %."
    );
    println!(
        "The cell says the share that stopped, and the median runs of these. Between them is the \
         share of all that stopped on a false claim."
    );
    println!(
        "A claim is false if the best is more than 2.5 % below the optimum. The published rule \
         looks every 100 runs from 1000, at the point estimate."
    );
    println!(
        "The last two columns count searches in which the upper end of bayes was below the optimum \
         at any look."
    );
    println!("*Doubling* looks at 500, 1000, 2000, 4000 and 8000.\n");
    println!(
        "| population | profile, point, every 100 | profile, upper, every 100 | bayes, upper, \
         doubling | ever low, doubling | ever low, every 100 |"
    );
    println!("|---|--:|--:|--:|--:|--:|");
    for population in populations {
        let drawn = (0..samples).map(|seed| draw(population, LONGEST as usize, 1_000_000 + seed));
        let (profile, bayes): (Vec<_>, Vec<_>) = drawn
            .map(|values| METHODS.map(|method| search(population, &values, method)))
            .map(|[profile, bayes]| (profile, bayes))
            .unzip();
        let doubling =
            |n: u64| looks(500, None).take_while(|&look| look <= n).any(|look| look == n);
        let ever = |at: &dyn Fn(u64) -> bool| {
            let low = bayes
                .iter()
                .filter(|looks| looks.iter().any(|look| at(look.n) && look.wrong))
                .count();
            100.0 * low as f64 / samples as f64
        };
        println!(
            "| {} | {} | {} | {} | {:.0} % | {:.0} % |",
            population.name,
            stopped(&profile, |look| look.n >= 1000 && look.point.is_some_and(|gap| gap <= WITHIN)),
            stopped(&profile, |look| look.n >= 1000 && look.upper.is_some_and(|gap| gap <= WITHIN)),
            stopped(&bayes, |look| doubling(look.n) && look.upper.is_some_and(|gap| gap <= WITHIN)),
            ever(&doubling),
            ever(&|_| true),
        );
    }
}

/// Share that stopped, share that stopped wrongly, and median runs, as text.
fn stopped(searches: &[Vec<Look>], stops: impl Fn(&Look) -> bool) -> String {
    let last: Vec<&Look> =
        searches.iter().filter_map(|looks| looks.iter().find(|look| stops(look))).collect();
    let percent = |count: usize| 100.0 * count as f64 / searches.len() as f64;
    let mut runs: Vec<f64> = last.iter().map(|look| look.n as f64).collect();
    let typical =
        if runs.is_empty() { "-".to_owned() } else { format!("{:.0}", median(&mut runs)) };
    let wrong = last.iter().filter(|look| look.short > WITHIN).count();
    format!("{:.0} % / {:.0} % / {typical}", percent(last.len()), percent(wrong))
}

/// The same seed gives samples that share their first values, so that rows of one population differ
/// by size alone.
fn draw(population: &Population, n: usize, seed: u64) -> Vec<f64> {
    let mut random = Random::new(seed);
    (0..n).map(|_| population.draw(&mut random)).collect()
}

fn best(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
