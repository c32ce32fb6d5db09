//! Opens a metric and measures with it, to see its figures and its speed:
//!
//!     cargo run --release -p pinwise-lab --example metric -- METRIC [--pick REGEX] [--window MS]
//! [--pid PID]
//!
//! It prints the notes about the metric. Then it measures up to 100 windows in 5 s. It prints the
//! median and quartiles of the performance, and the measurements per second.

use pinwise_linux::{Pid, Streams};
use pinwise_metric::{MetricOptions, MetricSpec, Pattern};
use std::time::{Duration, Instant};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let spec: MetricSpec = arguments.next().ok_or("which metric?")?.parse()?;
    let mut options = MetricOptions::default();
    let mut window = Duration::from_millis(50);
    let mut pids = Vec::new();
    while let Some(flag) = arguments.next() {
        let value = arguments.next().ok_or("a flag without its value")?;
        match flag.as_str() {
            "--pick" => options.pick = Some(Pattern::new(&value)?),
            "--window" => window = Duration::from_millis(value.parse()?),
            "--pid" => pids.push(value.parse::<Pid>()?),
            _ => return Err(format!("unknown flag {flag}").into()),
        }
    }
    let began = Instant::now();
    let mut metric =
        spec.open(&options, &mut Streams::default(), Box::new(move || pids.clone()), &|| false)?;
    println!("taken up in {:.2?}; unit {}", began.elapsed(), metric.meter.unit().name);
    for note in &metric.notes {
        println!("  {note:?}");
    }
    let began = Instant::now();
    let (mut values, mut failures) = (Vec::new(), Vec::new());
    while values.len() + failures.len() < 100 && began.elapsed() < Duration::from_secs(5) {
        match metric.meter.measure(Duration::from_millis(2), window, &|| false) {
            Ok(measurement) => values.push(measurement.performance),
            Err(error) => failures.push(error.to_string()),
        }
    }
    let rate = (values.len() + failures.len()) as f64 / began.elapsed().as_secs_f64();
    values.sort_by(f64::total_cmp);
    let quantile = |q: f64| {
        values
            .get((q * (values.len().max(1) - 1) as f64).round() as usize)
            .copied()
            .unwrap_or(f64::NAN)
    };
    println!(
        "{} measurements, {rate:.1}/s: median {:.4e}, quartiles {:.4e} to {:.4e}; {} failures {}",
        values.len(),
        quantile(0.5),
        quantile(0.25),
        quantile(0.75),
        failures.len(),
        failures.first().map(String::as_str).unwrap_or_default()
    );
    Ok(())
}
