//! Metis tables: runs that are kept are possible, and medians are among them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pinwise_measure::MetisTable;

fuzz_target!(|text: &str| {
    let Ok(table) = MetisTable::parse(text) else { return };
    for program in &table.programs {
        for ((policy, threads), runs) in &program.cells {
            assert!(*threads > 0 && runs.iter().all(|run| run.seconds > 0.0 && run.joules.is_finite()));
            let median = program.seconds(policy, *threads);
            assert_eq!(median.is_some(), !runs.is_empty());
            assert!(runs.is_empty() || runs.iter().any(|run| Some(run.seconds) == median));
        }
    }
});
