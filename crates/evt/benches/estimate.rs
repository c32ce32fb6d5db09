//! Time of one estimate and of its parts, on 5,000 values.

use divan::{Bencher, black_box};
use pinwise_evt::{Method, Options, Sample, estimate, fit, plots};

fn main() {
    divan::main();
}

/// 5,000 values from a tail that ends at 10, in an order that is not sorted.
fn values() -> Vec<f64> {
    (0..5000u64)
        .map(|i| 10.0 - 3.0 * (((i * 2_654_435_761 % 5000) as f64 + 0.5) / 5000.0).powf(0.2))
        .collect()
}

#[divan::bench]
fn sort_5000_values(bencher: Bencher) {
    let values = values();
    bencher.bench(|| Sample::new(black_box(&values).iter().copied()));
}

#[divan::bench(args = [Method::Bayes, Method::Profile])]
fn estimate_from_5000_values(bencher: Bencher, method: &Method) {
    let values = values();
    let options = Options { method: *method, ..Options::default() };
    bencher.bench(|| estimate(&Sample::new(black_box(&values).iter().copied()), &options));
}

#[divan::bench(args = [50, 250, 5000])]
fn fit_exceedances(bencher: Bencher, count: usize) {
    let exceedances: Vec<f64> = values().into_iter().take(count).map(|x| x - 6.9).collect();
    bencher.bench(|| fit(black_box(&exceedances)));
}

#[divan::bench]
fn plots_of_5000_values(bencher: Bencher) {
    let sample = Sample::new(values());
    let found = estimate(&sample, &Options::default()).unwrap();
    bencher.bench(|| plots(black_box(&sample), &found));
}
