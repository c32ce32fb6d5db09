//! How often `pinwise threads` is wrong, in a few cells of the study. docs/lab/threads-truth.md has
//! all of them.

use pinwise_lab::threads_truth::{Cell, Judged, Tally, Truth, judge};
use std::error::Error;
use std::time::Duration;

const CELLS: [&str; 4] = [
    "linear-cpu, quiet, 2",
    "sleep-linear, busy 1, 2",
    "step-units, busy 2, 2",
    "usl-memory, bursts 0.1 s, 2",
];

#[test]
fn few_numbers_that_are_announced_for_good_are_wrong() -> Result<(), Box<dyn Error>> {
    let mut all: Vec<Judged> = Vec::new();
    for cell in Cell::all(2)?.iter().filter(|cell| {
        let name = cell.name();
        CELLS.iter().any(|known| name.starts_with(known))
    }) {
        let truth = Truth::of(cell, 1..=2 * cell.contexts())?;
        let judged = judge(cell, &truth, &[Duration::from_secs(15)], 3, 1).unwrap().concat();
        println!("{}: {:?}", cell.name(), Tally::of(&judged));
        all.extend(judged);
    }
    let Tally { wrong, decided, gain_held, .. } = Tally::of(&all);
    assert_eq!(wrong.of, 12, "three searches in each cell");
    assert!(wrong.is <= 1, "{wrong:?}");
    assert!(decided.is >= 5, "{decided:?}");
    assert!(gain_held.is + 2 >= gain_held.of && gain_held.of >= 10, "{gain_held:?}");
    Ok(())
}

/// Fresh windows of 12 s beside bursts of 5 s. Their first rounds all fall into one burst or pause.
#[test]
fn a_moment_of_a_bursty_load_decides_nothing() -> Result<(), Box<dyn Error>> {
    let cells = Cell::all(2)?;
    let cell = cells.iter().find(|cell| cell.name().starts_with("usl-locks, bursts 5 s, 2"));
    let cell = cell.ok_or("there is no such cell")?;
    let truth = Truth::of(cell, 1..=2 * cell.contexts())?;
    let judged = judge(cell, &truth, &[Duration::from_secs(30)], 4, 52).unwrap().concat();
    let Tally { wrong, gain_held, .. } = Tally::of(&judged);
    assert_eq!((wrong.is, gain_held.is), (0, 4), "{judged:?}");
    Ok(())
}
