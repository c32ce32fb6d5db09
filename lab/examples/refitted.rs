//! How many choices of Thread Reinforcer are left, if programs are fitted to their best number of
//! threads alone? It prints a part of docs/lab/fidelity-threads.md.
//!
//!     cargo run --release -p pinwise-lab --example refitted -- ../shared/published [PROGRAM…]
//!
//! The descriptions are fitted to the speed-up at the number that the published search chose, too.
//! Here the numbers that shape its curve are drawn anew (`DRAWN_ANEW`, and the lengths of stages),
//! from half to twice what they are. Its length and its beginning stay. A description is kept if
//! its speed-up at the published best is within 5 % of the published one. Nothing else is looked
//! at. The search then runs on those that are kept.

use pinwise_lab::thread_reinforcer::{self, PublishedRow, SEED};
use pinwise_scheduler::{ModelProgram, Platform, speedup};
use pinwise_threads::Thresholds;
use pinwise_topology::Random;
use std::collections::BTreeMap;
use std::error::Error;
use std::path::PathBuf;

/// Descriptions to keep of each program, and most that are drawn.
const KEPT: usize = 20;
const DRAWN: usize = 400;
/// How near a kept description is to the published speed-up.
const NEAR: f64 = 0.05;
/// Numbers that say how fast a program is. The others are its length and its beginning.
const DRAWN_ANEW: [&str; 8] = [
    "serial",
    "spread",
    "segment_us",
    "critical_us",
    "sleep_every_ms",
    "sleep_ms",
    "memory",
    "working_set_kib",
];

/// What the kept descriptions of one program choose.
struct Choices {
    drawn: usize,
    /// Reported threads, and how often.
    chosen: BTreeMap<u32, usize>,
    /// Ended as in the paper, of those with the paper's choice.
    same_reason: usize,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("name the folder of published figures")?;
    let table = std::fs::read_to_string(PathBuf::from(folder).join("thread_reinforcer.csv"))?;
    let wanted: Vec<String> = arguments.collect();
    let mut rows = thread_reinforcer::published(&table)?;
    rows.retain(|row| wanted.is_empty() || wanted.contains(&row.program));
    let platform = Platform::opteron_24();
    let thresholds = thread_reinforcer::thresholds(&platform)?;
    let all = std::thread::scope(|scope| {
        let running: Vec<_> = rows
            .iter()
            .map(|row| {
                scope.spawn(|| choices(&platform, thresholds, row).map_err(|it| it.to_string()))
            })
            .collect();
        let joined = running.into_iter().map(|one| one.join().map_err(|_| "a panic".to_owned())?);
        joined.collect::<Result<Vec<Choices>, String>>()
    })?;
    println!(
        "| program | drawn | kept | paper's choice \
         | of the kept, chosen by | for its reason | most \
         frequent |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    );
    let (mut kept, mut same, mut programs) = (0, 0, 0);
    for (row, choices) in rows.iter().zip(&all) {
        let of: usize = choices.chosen.values().sum();
        let here = choices.chosen.get(&row.found).copied().unwrap_or(0);
        let most = choices
            .chosen
            .iter()
            .max_by_key(|(number, times)| (**times, std::cmp::Reverse(**number)));
        println!(
            "| {} | {} | {of} | {} | {here} | {} | {} |",
            row.program,
            choices.drawn,
            row.found,
            choices.same_reason,
            most.map_or("-".to_owned(), |(chosen, times)| format!("{chosen}, by {times}"))
        );
        kept += of;
        same += here;
        programs += usize::from(most.is_some_and(|(chosen, _)| *chosen == row.found));
    }
    println!(
        "\n{same} of {kept} descriptions choose as the paper. The most frequent choice is the \
         paper's for {programs} of\n{} programs.",
        rows.len()
    );
    Ok(())
}

fn choices(
    platform: &Platform,
    thresholds: Thresholds,
    row: &PublishedRow,
) -> Result<Choices, Box<dyn Error>> {
    let fitted = ModelProgram::built_in(&row.program)?;
    let best = row.parameter(&fitted, row.opt);
    let mut random = Random::new(SEED);
    let mut choices = Choices { drawn: 0, chosen: BTreeMap::new(), same_reason: 0 };
    let mut kept = 0;
    while kept < KEPT && choices.drawn < DRAWN {
        choices.drawn += 1;
        let Some(program) = drawn(&fitted, &mut random)? else { continue };
        let found = speedup(platform, &program, best, SEED)?;
        if (found / row.opt_speedup - 1.0).abs() > NEAR {
            continue;
        }
        kept += 1;
        let found = thread_reinforcer::search(platform, &program, thresholds, SEED + kept as u64)?;
        let chosen = row.reported(&program, found.parameter);
        *choices.chosen.entry(chosen).or_default() += 1;
        let same_reason = chosen == row.found && found.stopped.word() == row.stop;
        choices.same_reason += usize::from(same_reason);
    }
    Ok(choices)
}

/// Another description; `None` if it makes no sense.
fn drawn(
    fitted: &ModelProgram,
    random: &mut Random,
) -> Result<Option<ModelProgram>, Box<dyn Error>> {
    let mut table = toml::Table::try_from(&fitted.fitted)?;
    let mut anew = |value: &mut toml::Value| {
        if let Some(number) = value.as_float() {
            *value = toml::Value::Float(number * 4f64.powf(random.unit() - 0.5));
        }
    };
    for (name, value) in &mut table {
        if DRAWN_ANEW.contains(&name.as_str()) {
            anew(value);
        } else if let ("stage_ms", Some(stages)) = (name.as_str(), value.as_array_mut()) {
            stages.iter_mut().for_each(&mut anew);
        }
    }
    let candidate = ModelProgram { fitted: table.try_into()?, ..fitted.clone() };
    Ok(ModelProgram::parse(&toml::to_string(&candidate)?).ok())
}
