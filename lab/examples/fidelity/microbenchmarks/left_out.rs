//! Some values of the model were found from several figures. How much do these figures say? Each is
//! left out in turn. The value is found from the others, and predicts it.

use pinwise_processor::Processor;
use pinwise_processor::program::PublishedBenchmark;
use pinwise_processor::published_experiments::{
    self, BenchmarkExperiment, InferredValue, PublishedSlowdown,
};
use std::error::Error;
use std::fmt::Write;

const SETS: usize = 2;

/// A value of the model and what it may be.
struct Candidates {
    value: InferredValue,
    name: &'static str,
    /// Each with its name.
    processors: Vec<(String, Processor)>,
}

fn candidates(processor: &Processor) -> [Candidates; 2] {
    let handover = |cycles| {
        let mut processor = processor.clone();
        processor.intra_core.fpd.handover = cycles;
        (cycles.to_string(), processor)
    };
    let fill = |(port, patience)| {
        let mut processor = processor.clone();
        (processor.intra_core.lsu.fill, processor.intra_core.lsu.fill_patience) = (port, patience);
        (format!("{port} and {patience}"), processor)
    };
    let fills = (1..=3).flat_map(|port| [0, 8, 16].map(|patience| (port, patience)));
    [
        Candidates {
            value: InferredValue::Handover,
            name: "handover, cycles",
            processors: (0..=8).map(handover).collect(),
        },
        Candidates {
            value: InferredValue::Fill,
            name: "fill: cycles of the port, patience",
            processors: fills.map(fill).collect(),
        },
    ]
}

pub(super) fn section(
    processor: &Processor,
    figures: &[PublishedSlowdown],
) -> Result<String, Box<dyn Error>> {
    let mut text = "\n### Each figure from the others\n\nTwo values were found from several \
        figures. Here each figure is left out in turn. The value that\ncomes nearest to the others \
        predicts it. *Nearest*: the least sum of squared differences in percent.\n\n| value | left \
        out | from the others | paper | predicted | difference |\n|---|---|---:|---:|---:|---:|\n"
        .to_owned();
    for Candidates { value, name, processors } in candidates(processor) {
        let of: Vec<_> = figures.iter().filter(|it| it.inferred().contains(&value)).collect();
        let mut slowdowns = Vec::new();
        for (_, processor) in &processors {
            slowdowns.push(simulated(processor, &of)?);
        }
        for (left_out, figure) in of.iter().enumerate() {
            let misfit = |slowdowns: &Vec<f64>| -> f64 {
                let others = of.iter().zip(slowdowns).enumerate();
                let others = others.filter(|(index, _)| *index != left_out);
                others.map(|(_, (figure, ours))| figure.slowdown.off(*ours).powi(2)).sum()
            };
            let nearest = slowdowns
                .iter()
                .enumerate()
                .min_by(|(_, one), (_, other)| misfit(one).total_cmp(&misfit(other)));
            let Some((nearest, found)) = nearest else { continue };
            let BenchmarkExperiment { reference, stressor, count, place } = figure.experiment;
            writeln!(
                text,
                "| {name} | {}, {count} {}, {place} | {} | {} | {:.2} | {} |",
                reference.name(),
                stressor.name(),
                processors[nearest].0,
                figure.slowdown,
                found[left_out],
                super::percent(figure.slowdown.off(found[left_out]))
            )?;
        }
    }
    Ok(text
        + "\nThe latency of `intdiv` belongs to its program, not to the processor. Its figures are \
           not left out\nhere. The other values serve one figure each, or no figure that agrees.\n")
}

/// The slowdown of each figure.
fn simulated(
    processor: &Processor,
    figures: &[&PublishedSlowdown],
) -> Result<Vec<f64>, Box<dyn Error>> {
    let alone = PublishedBenchmark::ALL.map(BenchmarkExperiment::alone);
    let experiments: Vec<_> = figures.iter().map(|figure| figure.experiment).collect();
    let alone_of = |figure: &&PublishedSlowdown| {
        alone.into_iter().find(|it| it.reference == figure.experiment.reference)
    };
    let alone: Vec<_> = figures.iter().filter_map(alone_of).collect();
    let all = published_experiments::run(processor, &[experiments, alone].concat(), SETS)?;
    let (beside, alone) = all.split_at(figures.len());
    Ok(beside.iter().zip(alone).map(|(beside, alone)| beside.over(alone).mean()).collect())
}
