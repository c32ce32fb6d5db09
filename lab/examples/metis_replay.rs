//! Number of threads and placement from a quarter of the cells of the published Metis tables.
//! Scores them against all cells: `cargo run --release -p pinwise-lab --example metis_replay`.
//! Prints what docs/method/scalability.md holds.

use pinwise_lab::cells::{Cells, HOSTS, bimodal, folder, held_out, quantile, table};
use pinwise_threads::Objective;
use pinwise_topology::Random;
use std::error::Error;

/// Random quarters behind a median, and disturbed replays of each table.
const TIMES: usize = 200;

fn main() -> Result<(), Box<dyn Error>> {
    let Some(folder) = folder() else { return Ok(()) };
    println!("Loss against the best cell, of time; * held out:\n");
    println!(
        "| machine | program | best cell | recommended | loss | all contexts, not placed | best \
         count, not placed | random quarter |"
    );
    println!("| --- | --- | --- | --- | ---: | ---: | ---: | ---: |");
    for host in HOSTS {
        let table = table(host, &folder)?;
        for (index, program) in table.programs.iter().enumerate() {
            let cells =
                Cells::new(host, program, Objective::Time).ok_or("a table without the default")?;
            let best = (0..cells.arms.len())
                .min_by(|&a, &b| cells.loss(a).total_cmp(&cells.loss(b)))
                .unwrap_or(0);
            let found = cells.recommend(|value| value);
            let name = |cell: usize| format!("{} {}", cells.names[cell].1, cells.names[cell].0);
            println!(
                "| {} | {} {}{} | {} | {} | {:.1} % | {:.1} % | {:.1} % | {:.1} % |",
                host.name,
                program.name,
                program.arguments,
                if held_out(index) { " *" } else { "" },
                name(best),
                name(found),
                cells.loss(found) * 100.0,
                cells.loss(cells.default) * 100.0,
                cells.best_count() * 100.0,
                quantile(&cells.random_quarters(TIMES, &mut Random::new(index as u64)), 0.5)
                    * 100.0,
            );
        }
    }
    println!("\nMedian loss, and what nine of ten lose at most:\n");
    println!(
        "| objective | tables | of | recommended | all contexts, not placed | best count, not \
         placed | random quarter | recommended, slow runs among the measured | recommended, all \
         numbers unpinned first |"
    );
    println!("| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |");
    for (name, objective) in [
        ("time", Objective::Time),
        ("energy", Objective::Energy),
        ("energy x time", Objective::Edp),
    ] {
        for (which, held) in [("all", None), ("held out", Some(true))] {
            let mut columns: [Vec<f64>; 6] = Default::default();
            for host in HOSTS {
                for (index, program) in table(host, &folder)?.programs.iter().enumerate() {
                    if held.is_some_and(|held| held != held_out(index)) {
                        continue;
                    }
                    let cells = Cells::new(host, program, objective)
                        .ok_or("a table without the default")?;
                    let mut random = Random::new(index as u64);
                    columns[0].push(cells.loss(cells.recommend(|value| value)));
                    columns[1].push(cells.loss(cells.default));
                    columns[2].push(cells.best_count());
                    columns[3].extend(cells.random_quarters(TIMES, &mut random));
                    columns[5].push(cells.loss(cells.recommend_after_numbers()));
                    for _ in 0..5 {
                        columns[4].push(cells.loss(cells.recommend(bimodal(&mut random))));
                    }
                }
            }
            let shown = columns.each_ref().map(|losses| {
                format!(
                    "{:.1} %, {:.1} %",
                    quantile(losses, 0.5) * 100.0,
                    quantile(losses, 0.9) * 100.0
                )
            });
            println!("| {name} | {} | {which} | {} |", columns[0].len(), shown.join(" | "));
        }
    }
    Ok(())
}
