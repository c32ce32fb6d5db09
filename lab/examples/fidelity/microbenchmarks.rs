//! The microbenchmarks of V. Čakarević et al., MICRO 2009: Table 2 and figures 2 to 5.

use pinwise_processor::Processor;
use pinwise_processor::program::PublishedBenchmark;
use pinwise_processor::published_experiments::{
    self, BenchmarkExperiment, PublishedSlowdown, Spread,
};
use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// Sets of start offsets per experiment.
const SETS: usize = 8;

pub(crate) fn section(published: &Path) -> Result<String, Box<dyn Error>> {
    let read = |name: &str| {
        let path = published.join(name);
        fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
    };
    let cpis = parse_cpis(&read("cpi.csv")?)?;
    let figures = PublishedSlowdown::parse_all(&read("characterization.csv")?)
        .map_err(|reason| format!("characterization.csv: {reason}"))?;
    let processor = Processor::model("ultrasparc-t2")?;
    let alone: Vec<_> =
        PublishedBenchmark::ALL.into_iter().map(BenchmarkExperiment::alone).collect();
    let stressed: Vec<_> = figures.iter().map(|figure| figure.experiment).collect();
    let mut results = published_experiments::run(&processor, &[alone, stressed].concat(), SETS)?;
    let beside = results.split_off(PublishedBenchmark::ALL.len());
    let isolated = |benchmark| {
        &results[PublishedBenchmark::ALL.iter().position(|&other| other == benchmark).unwrap_or(0)]
    };

    let mut text = format!(
        "## Microbenchmarks\n\nV. Čakarević et al., MICRO 2009. Each experiment ran with {SETS} \
         sets of start offsets (0 to 999\ncycles). It had 64 sets if more `Dcache` run together \
         than fit. A slowdown is the one of the mean\nrate over the sets; the range is over the \
         sets. The benchmarks load the caches themselves before\nthe measurement. The measurement \
         covers at least five passes through every array.\n\n### Cycles per instruction in \
         isolation (Table 2)\n\n| benchmark | paper | simulated | difference \
         |\n|---|---:|---:|---:|\n"
    );
    for (benchmark, published) in cpis {
        let cpi = isolated(benchmark).mean();
        writeln!(
            text,
            "| {} | {published} | {cpi:.2} | {} |",
            benchmark.name(),
            difference(cpi, published)
        )?;
    }
    text += "\n### Slowdown with other benchmarks (figures 2 to 5)\n\nThe others run in \
        the same pipe (*pipe*), in the core's other pipe (*core*), or on another core\n\
        (*chip*). If a pipe is full, the rest runs in the other pipe. *~* means that the paper \
        gives no\nnumber but \"negligible\", \"no slowdown\" or \"up to\". *agrees*: *yes* within \
        5 %. A *no* that\ncontradicts other figures of the paper has the reason.\n\n| reference | \
        with | paper | simulated | range | difference | agrees | source \
        |\n|---|---|---:|---:|---:|---:|---|---|\n";
    let mut count = [0; 3];
    for (figure, spread) in figures.iter().zip(&beside) {
        let BenchmarkExperiment { reference, stressor, count: copies, .. } = figure.experiment;
        let slowdown = spread.over(isolated(reference));
        let (verdict, kind) = verdict(figure, &slowdown);
        if figure.exact {
            count[kind] += 1;
        }
        let approximately = if figure.exact { "" } else { "~" };
        let (least, most) = slowdown.range();
        writeln!(
            text,
            "| {} | {copies} {}, {} | {approximately}{} | {:.2} | {least:.2}–{most:.2} | {} | \
             {verdict} | {} |",
            reference.name(),
            stressor.name(),
            figure.experiment.place,
            figure.slowdown,
            slowdown.mean(),
            difference(slowdown.mean(), figure.slowdown),
            figure.source,
        )?;
    }
    let [agree, differ, contradict] = count;
    writeln!(
        text,
        "\nThe paper prints {} numbers. {agree} agree within 5 %, {differ} differ, and \
         {contradict} contradict others or are bistable.",
        agree + differ + contradict
    )?;
    Ok(text)
}

/// What the table says, and under which of agree, differ, contradict it counts. A figure that
/// contradicts others may agree all the same.
fn verdict(figure: &PublishedSlowdown, slowdown: &Spread) -> (String, usize) {
    let agrees = (slowdown.mean() / figure.slowdown - 1.0).abs() <= 0.05;
    match figure.contradiction() {
        _ if agrees => ("yes".into(), 0),
        Some(reason) => (format!("no: {reason}"), 2),
        None => ("no".into(), 1),
    }
}

fn difference(ours: f64, published: f64) -> String {
    // Adding 0 takes the sign from what is rounded to -0.
    format!("{:+.1} %", (1000.0 * (ours / published - 1.0)).round() / 10.0 + 0.0)
}

/// `benchmark,level,pipelined,cpi` after comments and a heading.
fn parse_cpis(csv: &str) -> Result<Vec<(PublishedBenchmark, f64)>, String> {
    let rows = csv.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).skip(1);
    rows.map(|line| {
        let benchmark = line.split(',').next().and_then(PublishedBenchmark::named);
        let cpi = line.rsplit(',').next().and_then(|text| text.parse().ok());
        benchmark.zip(cpi).ok_or_else(|| format!("cpi.csv: '{line}' is no benchmark with its CPI"))
    })
    .collect()
}
