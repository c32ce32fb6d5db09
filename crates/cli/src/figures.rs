//! Numbers as people read them: SI prefixes, percentages, durations, counts.

use pinwise_placement::Estimate;
use pinwise_testbed::Unit;
use std::time::Duration;

/// A quantity with three significant digits and an SI prefix: `1.72 M packets/s`, `34.1 ms`.
pub(crate) fn quantity(value: f64, unit: &str) -> String {
    let (scaled, prefix) = scale(value);
    format!("{} {prefix}{}{unit}", digits(scaled), if prefix.is_empty() || unit == "s" { "" } else { " " })
}

/// An estimate as the user knows it: `1.72 M packets/s (1.70 to 1.74, n = 12)`. Reciprocal units are shown as themselves.
pub(crate) fn estimate(estimate: &Estimate, unit: &Unit) -> String {
    let mean = unit.quantity(estimate.mean);
    if !(estimate.low.is_finite() && estimate.high.is_finite()) {
        return format!("{} (n = {}: no interval)", quantity(mean, &unit.name), estimate.n);
    }
    let (mut low, mut high) = (unit.quantity(estimate.low), unit.quantity(estimate.high));
    if low > high {
        (low, high) = (high, low);
    }
    let (_, prefix) = scale(mean);
    let factor = factor(prefix);
    format!(
        "{} ({} to {}, n = {})",
        quantity(mean, &unit.name),
        digits_like(low / factor, mean / factor),
        digits_like(high / factor, mean / factor),
        estimate.n
    )
}

/// A fraction as a percentage with sensible digits: `2.4 %`, `0.03 %`, `+14 %` with `signed`.
pub(crate) fn percent(fraction: f64, signed: bool) -> String {
    let value = fraction * 100.0;
    let decimals = match value.abs() {
        size if size >= 10.0 => 0,
        size if size >= 0.1 => 1,
        size if size == 0.0 => 0,
        _ => 2,
    };
    if signed { format!("{value:+.decimals$} %") } else { format!("{value:.decimals$} %") }
}

/// A duration: `850 ms`, `12.3 s`, `4 min 10 s`, `2 h 5 min`.
pub(crate) fn duration(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 1.0 {
        format!("{:.0} ms", seconds * 1e3)
    } else if seconds < 60.0 {
        format!("{seconds:.1} s")
    } else if seconds < 3600.0 {
        format!("{} min {} s", time.as_secs() / 60, time.as_secs() % 60)
    } else {
        format!("{} h {} min", time.as_secs() / 3600, time.as_secs() / 60 % 60)
    }
}

fn scale(value: f64) -> (f64, &'static str) {
    let size = value.abs();
    let prefix = match size {
        size if size >= 1e9 => "G",
        size if size >= 1e6 => "M",
        size if size >= 1e4 => "k",
        size if size >= 0.1 || size == 0.0 || !size.is_finite() => "",
        size if size >= 1e-4 => "m",
        _ => "u",
    };
    (value / factor(prefix), prefix)
}

fn factor(prefix: &str) -> f64 {
    match prefix {
        "G" => 1e9,
        "M" => 1e6,
        "k" => 1e3,
        "m" => 1e-3,
        "u" => 1e-6,
        _ => 1.0,
    }
}

fn digits(value: f64) -> String {
    digits_like(value, value)
}

/// `value` with as many decimals as three significant digits of `model` have.
fn digits_like(value: f64, model: f64) -> String {
    let decimals = match model.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_have_three_digits_and_a_prefix() {
        assert_eq!(quantity(1_723_456.0, "packets/s"), "1.72 M packets/s");
        assert_eq!(quantity(123.4, "1/s"), "123 1/s");
        assert_eq!(quantity(0.0341, "s"), "34.1 ms");
        assert_eq!(quantity(0.0, "ops/s"), "0.00 ops/s");
    }

    #[test]
    fn an_estimate_of_a_cost_is_shown_as_the_cost_with_ordered_ends() {
        let runtime = Estimate { mean: 0.5, low: 0.4, high: 0.625, n: 5, confidence: 0.95, spread: 0.1 };
        assert_eq!(estimate(&runtime, &Unit::cost("s")), "2.00 s (1.60 to 2.50, n = 5)");
        let alone =
            Estimate { mean: 2e6, low: f64::NEG_INFINITY, high: f64::INFINITY, n: 1, confidence: 0.95, spread: 0.0 };
        assert_eq!(estimate(&alone, &Unit::rate("packets/s")), "2.00 M packets/s (n = 1: no interval)");
    }

    #[test]
    fn percentages_and_durations_read_naturally() {
        assert_eq!(percent(0.024, false), "2.4 %");
        assert_eq!(percent(0.1434, true), "+14 %");
        assert_eq!(percent(0.0003, false), "0.03 %");
        assert_eq!(duration(Duration::from_millis(850)), "850 ms");
        assert_eq!(duration(Duration::from_secs(250)), "4 min 10 s");
    }
}
