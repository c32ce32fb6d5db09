//! The microbenchmarks of V. Čakarević et al., MICRO 2009: Table 2 and figures 2 to 5.

mod arrangements;
mod left_out;

use pinwise_processor::Processor;
use pinwise_processor::program::PublishedBenchmark;
use pinwise_processor::published_experiments::{
    self, BenchmarkExperiment, InferredValue, PrintedSlowdown, PublishedSlowdown,
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
            percent(cpi / published - 1.0)
        )?;
    }
    text += "\n### Slowdown with other benchmarks (figures 2 to 5)\n\nThe others run in \
        the same pipe (*pipe*), in the core's other pipe (*core*), or on another core\n\
        (*chip*). If a pipe is full, the rest runs in the other pipe. *~* means that the paper \
        gives no\nnumber but \"negligible\", \"no slowdown\" or \"up to\". *agrees*: *yes* within \
        5 % of a number, or\ninside a range. *found from it*: the value of the model that was \
        found \
        from this figure. Such a row\nshows a fit. A *no* has the \
        reason.\n\n| reference | with | paper | simulated | range | difference | \
        agrees | found from it | source \
        |\n|---|---|---:|---:|---:|---:|---|---|---|\n";
    let mut count = Counts::default();
    for (figure, spread) in figures.iter().zip(&beside) {
        let BenchmarkExperiment { reference, stressor, count: copies, .. } = figure.experiment;
        let slowdown = spread.over(isolated(reference));
        let verdict = count.judge(figure, slowdown.mean());
        let inferred: Vec<_> = figure.inferred().iter().map(|value| words(*value)).collect();
        let (least, most) = slowdown.range();
        writeln!(
            text,
            "| {} | {copies} {}, {} | {} | {:.2} | {least:.2}–{most:.2} | {} | {verdict} | \
             {} | {} |",
            reference.name(),
            stressor.name(),
            figure.experiment.place,
            figure.slowdown,
            slowdown.mean(),
            percent(figure.slowdown.off(slowdown.mean())),
            inferred.join(", "),
            figure.source,
        )?;
    }
    text += &count.sentences();
    text += &arrangements::section(&processor)?;
    Ok(text + &left_out::section(&processor, &figures)?)
}

/// How the figures compare.
#[derive(Default)]
struct Counts {
    /// Of numbers that no value was found from: how many agree, of how many.
    free: [usize; 2],
    /// Of numbers that a value was found from.
    fitted: [usize; 2],
    /// Of ranges.
    ranges: [usize; 2],
    /// Numbers that contradict others, or are bistable, and do not agree.
    contradict: usize,
}

impl Counts {
    /// What the table says. A figure that contradicts others may agree all the same.
    fn judge(&mut self, figure: &PublishedSlowdown, slowdown: f64) -> String {
        let agrees = figure.slowdown.agrees(slowdown);
        let contradiction = figure.contradiction().filter(|_| !agrees);
        let counted = match figure.slowdown {
            PrintedSlowdown::Words(_) => None,
            PrintedSlowdown::Range(..) => Some(&mut self.ranges),
            PrintedSlowdown::Number(_) if contradiction.is_some() => {
                self.contradict += 1;
                None
            }
            PrintedSlowdown::Number(_) if figure.inferred().is_empty() => Some(&mut self.free),
            PrintedSlowdown::Number(_) => Some(&mut self.fitted),
        };
        if let Some([agree, of]) = counted {
            *of += 1;
            *agree += usize::from(agrees);
        }
        match contradiction.or_else(|| why_not(figure)).filter(|_| !agrees) {
            Some(reason) => format!("no: {reason}"),
            None => if agrees { "yes" } else { "no: not explained" }.to_owned(),
        }
    }

    fn sentences(&self) -> String {
        let Self { free: [free, all], fitted: [fitted, of], ranges, contradict } = self;
        let numbers = all + of + contradict;
        format!(
            "\nThe paper prints {numbers} numbers and {} ranges.\n\n- {free} of {all} numbers that \
             nothing was found from agree within 5 %.\n- {fitted} of {of} numbers that a value was \
             found from agree.\n- {contradict} numbers contradict others or are bistable.\n- {} \
             of {} \
             ranges contain the simulated slowdown.\n",
            ranges[1], ranges[0], ranges[1]
        )
    }
}

/// Why the model has another slowdown, where no other figure of the paper contradicts it.
fn why_not(figure: &PublishedSlowdown) -> Option<&'static str> {
    use PublishedBenchmark::{IntAdd, IntDiv, L2cache, Mem};
    let BenchmarkExperiment { reference, stressor, .. } = figure.experiment;
    match (reference, stressor) {
        (IntAdd, IntDiv | L2cache) => Some(
            "a pipe issues one instruction per cycle, so each instruction of the others costs a \
             cycle. The paper's \"negligible\" has no limit",
        ),
        (Mem, _) => Some("the only slowdown of `mem` in the model is the row conflict, of 8 %"),
        _ => None,
    }
}

fn words(value: InferredValue) -> &'static str {
    match value {
        InferredValue::Handover => "handover",
        InferredValue::DivideLatency => "latency of intdiv",
        InferredValue::AfterLoad => "fetch after a load",
        InferredValue::LoadStoreArbitration => "arbitration of loads",
        InferredValue::Fill => "fill",
        InferredValue::RowConflict => "row conflict",
    }
}

fn percent(share: f64) -> String {
    // Adding 0 takes the sign from what is rounded to -0.
    format!("{:+.1} %", (1000.0 * share).round() / 10.0 + 0.0)
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
