//! Numbers as people read them: SI prefixes, intervals, percentages, durations, dates.

use pinwise_placement::Estimate;
use pinwise_testbed::Unit;
use std::time::Duration;

/// One SI prefix for everything that is compared: a page that shows `998 k` beside `1.01 M` makes its reader calculate.
#[derive(Clone, Debug)]
pub(crate) struct Scale {
    unit: Unit,
    factor: f64,
    /// The unit with its prefix: `M packets/s`, `ms`.
    pub(crate) label: String,
    /// Decimals that show three significant digits of the typical value.
    decimals: usize,
}

impl Scale {
    /// The scale in which `typical`, a performance, has one to three digits before the point.
    pub(crate) fn new(unit: &Unit, typical: f64) -> Self {
        let quantity = unit.quantity(typical);
        let (factor, prefix) = match quantity.abs() {
            size if !size.is_finite() || size == 0.0 => (1.0, ""),
            size if size >= 1e9 => (1e9, "G"),
            size if size >= 1e6 => (1e6, "M"),
            size if size >= 1e4 => (1e3, "k"),
            size if size >= 0.1 => (1.0, ""),
            size if size >= 1e-4 => (1e-3, "m"),
            _ => (1e-6, "µ"),
        };
        let space = if prefix.is_empty() || unit.name == "s" { "" } else { " " };
        let decimals = match (quantity / factor).abs() {
            size if size >= 100.0 => 0,
            size if size >= 10.0 => 1,
            _ => 2,
        };
        Self { unit: unit.clone(), factor, label: format!("{prefix}{space}{}", unit.name), decimals }
    }

    /// The same scale for performances where the unit is a cost: what differences are taken of.
    pub(crate) fn of_performance(unit: &Unit, typical: f64) -> Self {
        let name = if unit.reciprocal { format!("1/({})", unit.name) } else { unit.name.clone() };
        Self::new(&Unit::rate(name), typical)
    }

    /// The quantity that `performance` stands for, in this scale.
    pub(crate) fn value(&self, performance: f64) -> f64 {
        self.unit.quantity(performance) / self.factor
    }

    /// Better is lower.
    pub(crate) fn reversed(&self) -> bool {
        self.unit.reciprocal
    }

    /// `1.72`
    pub(crate) fn number(&self, performance: f64) -> String {
        format!("{:.*}", self.decimals, self.value(performance))
    }

    /// `1.72 M packets/s`
    pub(crate) fn show(&self, performance: f64) -> String {
        format!("{} {}", self.number(performance), self.label)
    }

    /// `1.70 to 1.74 M packets/s`, lower quantity first; as many decimals as tell the ends apart.
    pub(crate) fn range(&self, low: f64, high: f64) -> String {
        let (from, to) = if self.reversed() { (high, low) } else { (low, high) };
        let (from, to) = (self.value(from), self.value(to));
        let width = (to - from).abs();
        // The first digit of the width; at most six, since no measurement is that good.
        let needed = if width > 0.0 { (-width.log10().floor()).clamp(0.0, 6.0) as usize } else { 0 };
        let decimals = self.decimals.max(needed);
        format!("{from:.decimals$} to {to:.decimals$} {}", self.label)
    }

    /// `1.72 M packets/s (95 % interval 1.70 to 1.74 M packets/s, n = 12)`
    pub(crate) fn estimate(&self, estimate: &Estimate) -> String {
        format!("{} ({})", self.show(estimate.mean), self.interval(estimate))
    }

    /// `95 % interval 1.70 to 1.74 M packets/s, n = 12`
    pub(crate) fn interval(&self, estimate: &Estimate) -> String {
        if !(estimate.low.is_finite() && estimate.high.is_finite()) {
            return format!("no interval, n = {}", estimate.n);
        }
        let range = self.range(estimate.low, estimate.high);
        format!("{} interval {range}, n = {}", percent(estimate.confidence), count(estimate.n as u64))
    }
}

/// `2.4 %`, `0.03 %`, `95 %`.
pub(crate) fn percent(fraction: f64) -> String {
    let value = fraction * 100.0;
    let decimals = match value.abs() {
        size if size >= 10.0 && (size - size.round()).abs() > 0.05 => 1,
        size if size >= 10.0 || size == 0.0 => 0,
        size if size >= 0.1 => 1,
        _ => 2,
    };
    format!("{value:.decimals$} %").replace('-', "−")
}

/// A change: `+14.0 %`, `−0.3 %`.
pub(crate) fn change(fraction: f64) -> String {
    format!("{:+.1} %", fraction * 100.0).replace('-', "−")
}

/// `5,000`
pub(crate) fn count(number: u64) -> String {
    group(&number.to_string())
}

/// Decimal digits in groups of three; from 16 digits on also the size, for nobody counts groups: `… (about 3.2 × 10^18)`.
pub(crate) fn group(digits: &str) -> String {
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return digits.to_owned();
    }
    if digits.len() > 15 {
        return format!("about {}.{} × 10^{}", &digits[..1], &digits[1..3], digits.len() - 1);
    }
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.char_indices() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// `850 ms`, `12.3 s`, `4 min 10 s`, `2 h 5 min`.
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

/// `512 KiB`, `32 MiB`; memory sizes are powers of two.
pub(crate) fn bytes(size: u64) -> String {
    let (mut value, mut unit) = (size as f64, "B");
    for larger in ["KiB", "MiB", "GiB", "TiB"] {
        if value < 1024.0 {
            break;
        }
        (value, unit) = (value / 1024.0, larger);
    }
    if value.fract() < 0.05 || value >= 100.0 { format!("{value:.0} {unit}") } else { format!("{value:.1} {unit}") }
}

/// `2026-11-21 03:18 UTC` for seconds since the Unix epoch. Days to a civil date by H. Hinnant, "chrono-compatible low-level
/// date algorithms", `civil_from_days`.
pub(crate) fn date(seconds: i64) -> String {
    let (days, of_day) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02} UTC", of_day / 3600, of_day / 60 % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_carry_a_prefix_and_their_unit() {
        assert_eq!(Scale::new(&Unit::rate("packets/s"), 1_723_456.0).show(1_723_456.0), "1.72 M packets/s");
        assert_eq!(Scale::new(&Unit::rate("1/s"), 123.4).show(123.4), "123 1/s");
        assert_eq!(Scale::new(&Unit::cost("s"), 1.0 / 0.0341).show(1.0 / 0.0341), "34.1 ms");
        assert_eq!(Scale::new(&Unit::rate("packets/s"), 1.7e6).show(900_000.0), "0.90 M packets/s");
    }

    #[test]
    fn an_estimate_of_a_cost_is_shown_as_the_cost_with_ordered_ends() {
        let runtime = Estimate { mean: 0.5, low: 0.4, high: 0.625, n: 5, confidence: 0.95, spread: 0.1 };
        let scale = Scale::new(&Unit::cost("s"), 0.5);
        assert_eq!(scale.estimate(&runtime), "2.00 s (95 % interval 1.60 to 2.50 s, n = 5)");
        let alone = Estimate { low: f64::NEG_INFINITY, high: f64::INFINITY, n: 1, ..runtime };
        assert_eq!(scale.estimate(&alone), "2.00 s (no interval, n = 1)");
        let sure = Estimate { low: 0.4995, high: 0.5005, ..runtime };
        assert_eq!(scale.interval(&sure), "95 % interval 1.998 to 2.002 s, n = 5");
    }

    #[test]
    fn percentages_counts_durations_and_sizes_read_naturally() {
        assert_eq!(percent(0.024), "2.4 %");
        assert_eq!(percent(0.95), "95 %");
        assert_eq!(percent(0.975), "97.5 %");
        assert_eq!(change(0.1434), "+14.3 %");
        assert_eq!(change(-0.003), "−0.3 %");
        assert_eq!(count(5000), "5,000");
        assert_eq!(group("592573"), "592,573");
        assert_eq!(group("3247695224823749823"), "about 3.24 × 10^18");
        assert_eq!(duration(Duration::from_secs(250)), "4 min 10 s");
        assert_eq!(bytes(32 << 20), "32 MiB");
        assert_eq!(bytes(1280 << 10), "1.2 MiB");
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(date(0), "1970-01-01 00:00 UTC");
        assert_eq!(date(951_782_399), "2000-02-28 23:59 UTC");
        assert_eq!(date(951_782_400), "2000-02-29 00:00 UTC");
        assert_eq!(date(1_795_231_081), "2026-11-21 03:18 UTC");
    }
}
