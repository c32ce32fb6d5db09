//! What BlackBox gains over naive and balanced placement, and what the selection phase adds to it:
//! BlackBox, sections 5.1, 5.2 and 7, figures 7 to 9.

use crate::{JUDGED, JUDGING, STEPS, Study, Tables, highest_of};
use pinwise_measure::{Setting, Testbed as _};
use pinwise_prediction::{BlackBox, Predicted, ThreadKinds};
use pinwise_topology::{Assignment, PerContext, Random, Space};
use serde::Deserialize;
use std::error::Error;
use std::path::Path;

/// Instances of three threads: 6, 9, 12, 18 and 24 threads.
const SIZES: [usize; 5] = [2, 3, 4, 6, 8];
/// Naive and balanced placements, one window each.
const DRAWS: usize = 300;
/// Assignments of the selection phase, at most: as in figure 8.
const SELECTED: usize = 10;

/// `[blackbox]` of headline.toml, as shares.
#[derive(Deserialize)]
pub(crate) struct Headline {
    loss_6_threads_below: f64,
    loss_24_threads_top1_below: f64,
    loss_24_threads_top5_below: f64,
    exact_best_6_threads: Vec<String>,
    gain_over_balanced_mean: [f64; 2],
    gain_over_balanced_worst: f64,
    gain_over_naive_mean: [f64; 2],
    gain_over_naive_worst: f64,
}

/// One program and one number of threads. All are shares.
pub(crate) struct Gains {
    program: &'static str,
    threads: usize,
    /// Below the best predicted: the mean and the worst.
    naive: [f64; 2],
    balanced: [f64; 2],
    /// Loss of the best of the first N against the best known: the N best predicted.
    by_prediction: Vec<f64>,
    /// The same of what pinwise measures.
    selected: Vec<f64>,
}

impl Headline {
    pub(crate) fn read(folder: &Path) -> Result<Self, Box<dyn Error>> {
        #[derive(Deserialize)]
        struct File {
            blackbox: Headline,
        }
        let text = std::fs::read_to_string(folder.join("headline.toml"))?;
        Ok(toml::from_str::<File>(&text)?.blackbox)
    }
}

impl Study {
    /// The gains of this program.
    pub(crate) fn gains(&self, tables: &Tables) -> Result<Vec<Gains>, Box<dyn Error>> {
        SIZES.iter().map(|&instances| self.gains_of(tables, instances)).collect()
    }

    fn gains_of(&self, tables: &Tables, instances: usize) -> Result<Gains, Box<dyn Error>> {
        let thread_kinds = ThreadKinds::new(self.testbed(instances, 1)?.workload());
        let threads = thread_kinds.threads();
        let space = Space::new(self.tree.clone(), threads, PerContext::AtMost(1))?;
        let blackbox = self.profile(tables, &space, &thread_kinds, 1.0, 1)?.blackbox();
        let leaves = |all: Vec<Predicted>| -> Vec<Vec<u32>> {
            all.into_iter().map(|one| one.assignment.leaves().to_vec()).collect()
        };
        let ranked = |blackbox: &BlackBox| {
            let mut go_on = |progress: &pinwise_prediction::ProofProgress| progress.steps < STEPS;
            blackbox.optima(&space, 2 * SELECTED, &mut Random::new(9), &mut go_on).ranked
        };
        let (found, spread) = (ranked(&blackbox), ranked(&blackbox.spread()));
        let selected = leaves(blackbox.selected(&space, &found, &spread, SELECTED));
        let by_prediction = leaves(found.into_iter().take(SELECTED).collect());

        let drawn = self.kept(&format!("naive{threads}"), || {
            let mut random = Random::new(13);
            let drawn: Vec<_> = (0..DRAWS).map(|_| space.sample(&mut random)).collect();
            let settings = drawn.iter().cloned().map(Setting::Pinned).collect();
            let names = drawn.iter().map(|one| format!("{:?}", one.leaves()));
            Ok(names.zip(self.measure(instances, 60, settings, 1.0)?).collect())
        })?;
        let balanced = self.kept(&format!("balanced{threads}"), || {
            let measured = self.measure(instances, 61, vec![Setting::Unpinned; DRAWS], 1.0)?;
            Ok(measured.into_iter().map(|one| ("balanced".to_owned(), one)).collect())
        })?;
        // All in windows that were not chosen for their results.
        let mut candidates = [&by_prediction[..], &selected[..]].concat();
        candidates.extend(highest_of(drawn.clone())?);
        if instances == 2 {
            candidates.extend(self.best_of_six(&space)?);
        }
        candidates.sort_unstable();
        candidates.dedup();
        let pinned = |leaves: &Vec<u32>| Setting::Pinned(Assignment::new(leaves.clone()));
        let settings = candidates.iter().map(pinned).collect();
        let judged = self.measure(instances, 3, settings, JUDGING)?;
        let optimum = judged.iter().copied().fold(f64::MIN, f64::max);
        let performance = |leaves: &Vec<u32>| {
            candidates.binary_search(leaves).map_or(f64::NAN, |place| judged[place])
        };
        let losses = |all: &[Vec<u32>]| -> Vec<f64> {
            let mut best = f64::MIN;
            let mut loss = |leaves| {
                best = best.max(performance(leaves));
                1.0 - best / optimum
            };
            all.iter().map(&mut loss).collect()
        };
        let first = performance(by_prediction.first().ok_or("nothing is predicted")?);
        let below = |values: &[(String, f64)]| {
            let mean = values.iter().map(|(_, value)| value).sum::<f64>() / values.len() as f64;
            let worst = values.iter().map(|(_, value)| *value).fold(f64::MAX, f64::min);
            [mean, worst].map(|value| 1.0 - value / first)
        };
        Ok(Gains {
            program: self.pipeline.name(),
            threads,
            naive: below(&drawn),
            balanced: below(&balanced),
            by_prediction: losses(&by_prediction),
            selected: losses(&selected),
        })
    }

    /// The best few of every assignment of six threads.
    fn best_of_six(&self, space: &Space) -> Result<Vec<Vec<u32>>, Box<dyn Error>> {
        let mut all: Vec<_> = self.enumerated(space)?.known.into_iter().collect();
        all.sort_by(|one, other| other.1.total_cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
        Ok(all.into_iter().take(JUDGED).map(|(leaves, _)| leaves).collect())
    }
}

/// The tables, and the paper's figures beside them.
pub(crate) fn print(all: &[Gains], paper: &Headline) {
    println!(
        "| program | threads | naive: mean | worst | balanced: mean | worst | loss of the best \
         predicted | of the 5 best predicted | of the 5 that pinwise measures \
         |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|"
    );
    for gains in all {
        let cells = [gains.naive, gains.balanced].concat();
        let losses = [after(&gains.by_prediction, 1), after(&gains.by_prediction, 5)];
        let cells: Vec<String> = (cells.into_iter().map(|share| percent(share, 1)))
            .chain(losses.map(|share| percent(share, 2)))
            .chain([percent(after(&gains.selected, 5), 2)])
            .collect();
        println!("| {} | {} | {} |", gains.program, gains.threads, cells.join(" | "));
    }
    println!(
        "\n## The selection phase (figure 8)\n\nSix threads. The loss of the best of the first N \
         assignments, against the best of all.\n\n| program | N = 1 | 2 | 3 | 5 | 10 | by \
         pinwise: 1 | 2 | 3 | 5 | 10 |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
    );
    let of = |threads: usize| all.iter().filter(move |gains| gains.threads == threads);
    for gains in of(6) {
        let cells = [&gains.by_prediction, &gains.selected]
            .map(|losses| [1, 2, 3, 5, 10].map(|n| percent(after(losses, n), 2)).join(" | "));
        println!("| {} | {} |", gains.program, cells.join(" | "));
    }
    println!(
        "\n## The paper beside it\n\nNothing of the model was found from these figures. *Agrees*: \
         every value lies in a range or below a\nlimit. *Worst* agrees if the greatest value is \
         within a tenth of the figure.\n\n| figure | paper | here | agrees |\n|---|---|---|---|"
    );
    let row = |figure: &str, published: String, values: Vec<f64>, agrees: &dyn Fn(f64) -> bool| {
        let (least, most) = ends(&values);
        let agrees = if values.iter().all(|&value| agrees(value)) { "yes" } else { "no" };
        println!(
            "| {figure} | {published} | {} to {} | {agrees} |",
            percent(least, 1),
            percent(most, 1)
        );
    };
    let mean = |of: fn(&Gains) -> f64| all.iter().map(of).collect::<Vec<_>>();
    for (figure, [from, to], values) in [
        ("below it: naive, mean", paper.gain_over_naive_mean, mean(|gains| gains.naive[0])),
        ("balanced, mean", paper.gain_over_balanced_mean, mean(|gains| gains.balanced[0])),
    ] {
        let published = format!("{} to {}", percent(from, 0), percent(to, 0));
        row(figure, published, values, &|value| (from..=to).contains(&value));
    }
    for (figure, limit, values) in [
        ("naive, worst", paper.gain_over_naive_worst, mean(|gains| gains.naive[1])),
        ("balanced, worst", paper.gain_over_balanced_worst, mean(|gains| gains.balanced[1])),
    ] {
        let (_, most) = ends(&values);
        let published = format!("up to {}", percent(limit, 0));
        row(figure, published, values, &|_| (most / limit - 1.0).abs() <= 0.1);
    }
    for (figure, limit, threads, n) in [
        ("6 threads, loss of the best predicted", paper.loss_6_threads_below, 6, 1),
        ("24 threads, loss of the best predicted", paper.loss_24_threads_top1_below, 24, 1),
        ("24 threads, of the 5 best", paper.loss_24_threads_top5_below, 24, 5),
    ] {
        let values: Vec<f64> = of(threads).map(|gains| after(&gains.by_prediction, n)).collect();
        if !values.is_empty() {
            let published = format!("below {}", percent(limit, 1));
            row(figure, published, values, &|value| value <= limit);
        }
    }
    let exact: Vec<&str> = of(6)
        .filter(|gains| after(&gains.by_prediction, 1) < 0.0005)
        .map(|gains| gains.program)
        .collect();
    let all_exact = paper.exact_best_6_threads.iter().all(|name| exact.contains(&name.as_str()));
    println!(
        "| 6 threads, the best predicted is the best | {} | {} | {} |",
        paper.exact_best_6_threads.join(", "),
        exact.join(", "),
        if all_exact { "yes" } else { "no" }
    );
}

/// The loss after the first `n`, or after all if there are fewer.
fn after(losses: &[f64], n: usize) -> f64 {
    losses.get(n.min(losses.len()) - 1).copied().unwrap_or(f64::NAN)
}

fn ends(values: &[f64]) -> (f64, f64) {
    (
        values.iter().copied().fold(f64::MAX, f64::min),
        values.iter().copied().fold(f64::MIN, f64::max),
    )
}

fn percent(share: f64, digits: usize) -> String {
    // Adding 0 takes the sign from what is rounded to -0.
    format!("{:.digits$} %", (10_000.0 * share).round() / 100.0 + 0.0)
}
