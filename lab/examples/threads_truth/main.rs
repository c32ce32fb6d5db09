//! How often `pinwise threads` is wrong. [`pinwise_lab::threads_truth`] says what is wrong and what
//! is true.
//!
//! `cargo run --release -p pinwise-lab --example threads_truth -- --machine 8` prints, in Markdown,
//! a table of docs/lab/threads-truth.md. `--machine` takes 2, 8 or 24 contexts, `--searches` the
//! number in each cell. `--budget` is in seconds, several as `15,30,120`. `--cells` takes those
//! whose name contains its value, such as `busy 2`. `--seed` is that of the first search. A search
//! takes 0.1 to 1 s of a processor. Seeds are fixed, so a second run prints the same. `--on
//! ssh:HOST,HOST` or `--on slurm --nodes N` shares the searches among nodes.

use pinwise_jobs::ThreadsRequest;
use pinwise_lab::rate::{least, limit, of_which};
use pinwise_lab::threads_truth::{Cell, Count, Judged, Tally, Truth, judge};
use std::collections::BTreeMap;
use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

/// A wrong number should be announced at most so often.
const TARGET: f64 = 0.05;

struct Options {
    machine: u32,
    searches: u64,
    budgets: Vec<Duration>,
    cells: String,
    seed: u64,
}

impl Options {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, Box<dyn Error>> {
        let seconds = |list: &str| {
            list.split(',').map(|one| Ok(Duration::try_from_secs_f64(one.parse()?)?)).collect()
        };
        let budgets: Result<_, Box<dyn Error>> = seconds("15,30,120");
        let mut options =
            Self { machine: 8, searches: 20, budgets: budgets?, cells: String::new(), seed: 1 };
        while let Some(word) = words.next() {
            let value = words.next().ok_or_else(|| format!("{word} needs a value"))?;
            match word.as_str() {
                "--machine" => options.machine = value.parse()?,
                "--searches" => options.searches = value.parse()?,
                "--budget" => options.budgets = seconds(&value)?,
                "--cells" => options.cells = value,
                "--seed" => options.seed = value.parse()?,
                _ => return Err(format!("there is no option {word}").into()),
            }
        }
        Ok(options)
    }
}

fn main() -> ExitCode {
    pinwise_lab::on_nodes::run(|words| match study(words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    })
}

fn study(words: Vec<String>) -> Result<(), Box<dyn Error>> {
    let Options { machine, searches, budgets, cells, seed } = Options::parse(words.into_iter())?;
    let mut truths: Vec<(Cell, Truth)> = Vec::new();
    let mut all: BTreeMap<(usize, String), Vec<Judged>> = BTreeMap::new();
    let mut wrong_of_cells: Vec<Vec<(String, Count)>> = vec![Vec::new(); budgets.len()];
    println!(
        "| cell | budget | searches | decided | wrong | as it was | published | gain held | \
         fewest held | measurements |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
    );
    for cell in Cell::all(machine)?.into_iter().filter(|cell| cell.name().contains(&cells)) {
        let known = truths.iter().find(|(known, _)| known.has_truth_of(&cell));
        let truth = match known {
            Some((_, truth)) => truth.clone(),
            None => Truth::of(&cell, 1..=2 * cell.contexts())?,
        };
        for (place, judged) in
            judge(&cell, &truth, &budgets, searches, seed)?.into_iter().enumerate()
        {
            let tally = Tally::of(&judged);
            println!("{}", row(&cell.name(), budgets[place], &tally));
            wrong_of_cells[place].push((cell.name(), tally.wrong));
            for group in [cell.load.to_owned(), cell.program.name.clone(), "all".to_owned()] {
                all.entry((place, group)).or_default().extend(&judged);
            }
        }
        truths.push((cell, truth));
    }
    println!(
        "\n| together | budget | wrong | as it was | published | decided | gain held | fewest \
         held | measurements |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|"
    );
    for ((place, group), judged) in &all {
        println!("{}", together(group, budgets[*place], &Tally::of(judged)));
    }
    for (place, budget) in budgets.iter().enumerate() {
        let Some(judged) = all.get(&(place, "all".to_owned())) else { continue };
        let Count { is, of } = Tally::of(judged).wrong;
        let meets = if limit(is, of) <= TARGET { "meets" } else { "misses" };
        println!(
            "\nWith {} s, {} wrong: that {meets} the target of {:.0} %. The tolerance is {:.0} %.",
            budget.as_secs(),
            of_which(is, of),
            TARGET * 100.0,
            ThreadsRequest::WITHIN * 100.0
        );
        println!("{}", above_target(&wrong_of_cells[place]));
    }
    Ok(())
}

/// The cells with more wrong numbers than the target, and how sure that is.
fn above_target(cells: &[(String, Count)]) -> String {
    let above = |(_, Count { is, of }): &&(String, Count)| *is as f64 > TARGET * *of as f64;
    let above: Vec<&(String, Count)> = cells.iter().filter(above).collect();
    let surely = above.iter().filter(|(_, Count { is, of })| least(*is, *of) > TARGET).count();
    let below = cells.iter().filter(|(_, Count { is, of })| limit(*is, *of) <= TARGET).count();
    let target = 100.0 * TARGET;
    let mut text = format!(
        "Of {} cells, {below} are shown to be at most {target:.0} % and {surely} to be above it, \
         each with 95 % confidence. In {} cells more than {target:.0} % of the searches were wrong",
        cells.len(),
        above.len()
    );
    for (place, (name, Count { is, of })) in above.iter().enumerate() {
        let before = if place == 0 { ": " } else { "; " };
        text += &format!("{before}{name} ({is} of {of})");
    }
    text + "."
}

fn row(name: &str, budget: Duration, tally: &Tally) -> String {
    let counted = |count: Count| format!("{} of {}", count.is, count.of);
    format!(
        "| {name} | {} s | {} | {} | {} | {} | {} | {} | {} | {:.0} |",
        budget.as_secs(),
        tally.wrong.of,
        tally.decided.is,
        tally.wrong.is,
        tally.as_it_was.is,
        tally.published.is,
        counted(tally.gain_held),
        counted(tally.fewest_held),
        tally.measurements
    )
}

fn together(group: &str, budget: Duration, tally: &Tally) -> String {
    let share = |Count { is, of }: Count| match of {
        0 => "-".to_owned(),
        of => format!("{:.0} %", 100.0 * is as f64 / of as f64),
    };
    format!(
        "| {group} | {} s | {} | {} | {} | {} | {} | {} | {:.0} |",
        budget.as_secs(),
        of_which(tally.wrong.is, tally.wrong.of),
        share(tally.as_it_was),
        share(tally.published),
        share(tally.decided),
        share(tally.gain_held),
        share(tally.fewest_held),
        tally.measurements
    )
}
