//! For tests only: records to try strategies with.

use pinwise_campaign::{Record, Step, Strategy};
use pinwise_measure::{MeasureError, Measurement, Setting};
use std::time::Duration;

/// Runs a strategy on a testbed where a setting does `performance`, given how many records there
/// are.
pub(crate) fn recorded(
    strategy: &mut dyn Strategy,
    mut performance: impl FnMut(&Setting, usize) -> Result<f64, MeasureError>,
) -> Vec<Record> {
    let mut records: Vec<Record> = Vec::new();
    while let Step::Measure(trial) = strategy.step(&records) {
        let number = records.len();
        let (duration, spread, detail) = (Duration::ZERO, None, None);
        let outcome = performance(&trial.setting, number).map(|performance| Measurement {
            performance,
            duration,
            spread,
            detail,
        });
        records.push(Record { number: number as u64, trial, outcome, elapsed: Duration::ZERO });
    }
    records
}
