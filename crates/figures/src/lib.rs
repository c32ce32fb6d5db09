#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

use pinwise_measure::Unit;
use pinwise_topology::LatencyUnit;
use std::time::Duration;

/// One SI prefix for everything that is compared: a reader of `998 k` next to `1.01 M` has to
/// calculate.
#[derive(Clone, Debug)]
pub struct Scale {
    unit: Unit,
    factor: f64,
    /// The unit with its prefix: `M packets/s`, `ms`.
    pub label: String,
    /// Decimals that show three significant digits of the typical value.
    decimals: usize,
}

impl Scale {
    /// The scale in which `typical`, a performance, has one to three digits before the point.
    pub fn new(unit: &Unit, typical: f64) -> Self {
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
            size if size >= 1.0 => 2,
            _ => 3,
        };
        Self {
            unit: unit.clone(),
            factor,
            label: format!("{prefix}{space}{}", unit.label()),
            decimals,
        }
    }

    /// The same scale for performances where the unit is a cost: what differences are taken of.
    pub fn of_performance(unit: &Unit, typical: f64) -> Self {
        let name = if unit.reciprocal { format!("1/({})", unit.name) } else { unit.name.clone() };
        Self::new(&Unit::rate(name), typical)
    }

    /// The quantity that `performance` stands for, in this scale.
    pub fn value(&self, performance: f64) -> f64 {
        self.unit.quantity(performance) / self.factor
    }

    /// Better is lower.
    pub fn reversed(&self) -> bool {
        self.unit.reciprocal
    }

    /// `1.72`
    pub fn number(&self, performance: f64) -> String {
        format!("{:.*}", self.decimals, self.value(performance))
    }

    /// `1.72 M packets/s`
    pub fn show(&self, performance: f64) -> String {
        format!("{} {}", self.number(performance), self.label)
    }

    /// `1.70 to 1.74 M packets/s`, lower quantity first; as many decimals as keep the ends apart.
    /// `0.31 s or more` for a cost whose performance may be none. `-` without two finite ends: one
    /// window has no interval.
    pub fn range(&self, low: f64, high: f64) -> String {
        if !(low.is_finite() && high.is_finite()) {
            return "-".to_owned();
        }
        if self.reversed() && low <= 0.0 {
            return format!("{} or more", self.show(high));
        }
        format!("{} {}", self.ends(low, high), self.label)
    }

    /// As [`Self::range`] without the unit, for a column that has it in its head.
    pub fn ends(&self, low: f64, high: f64) -> String {
        if !(low.is_finite() && high.is_finite()) {
            return "-".to_owned();
        }
        if self.reversed() && low <= 0.0 {
            return format!("{} or more", self.number(high));
        }
        let (from, to) = if self.reversed() { (high, low) } else { (low, high) };
        let apart = self.telling(low, high);
        format!("{} to {}", apart.number(from), apart.number(to))
    }

    /// With as many decimals as keep these ends of an interval apart. Use it for a value next to a
    /// [`Self::range`]: rounded to fewer digits, the value might stand outside its interval.
    pub fn telling(&self, low: f64, high: f64) -> Self {
        Self { decimals: self.decimals_of(low, high), ..self.clone() }
    }

    /// Decimals of an interval. The first digit of its width is shown, at most six, since no
    /// measurement is that good.
    fn decimals_of(&self, low: f64, high: f64) -> usize {
        let width = (self.value(high) - self.value(low)).abs();
        let needed = if width > 0.0 && width.is_finite() {
            (-width.log10().floor()).clamp(0.0, 6.0) as usize
        } else {
            0
        };
        self.decimals.max(needed)
    }
}

/// `2.4 %`, `0.03 %`, `95 %`.
pub fn percent(fraction: f64) -> String {
    let value = fraction * 100.0;
    let decimals = match value.abs() {
        size if size >= 10.0 && (size - size.round()).abs() > 0.05 => 1,
        size if size >= 10.0 || size == 0.0 => 0,
        size if size >= 1.0 => 1,
        _ => 2,
    };
    format!("{:.decimals$} %", unsigned_zero(value, 0.005))
}

/// `value`, without its sign if it is rounded to 0. `half` is half of the last digit shown.
fn unsigned_zero(value: f64, half: f64) -> f64 {
    if value.abs() < half { 0.0 } else { value }
}

/// A latency without its unit, to three digits: `8.12`, `57.2`, `338`; whole cycles.
pub fn latency(unit: LatencyUnit, value: f64) -> String {
    match value {
        value if unit == LatencyUnit::Cycles => format!("{value:.0}"),
        value if value < 9.995 => format!("{value:.2}"),
        value if value < 99.95 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    }
}

/// A change: `+14.0 %`, `-0.3 %`; `0.0 %` if it is rounded to 0.
pub fn change(fraction: f64) -> String {
    match unsigned_zero(fraction * 100.0, 0.05) {
        0.0 => "0.0 %".to_owned(),
        value => format!("{value:+.1} %"),
    }
}

/// A change of a performance in words: `14.0 % better`, `0.31 % worse`.
pub fn better_or_worse(fraction: f64) -> String {
    format!("{} {}", percent(fraction.abs()), if fraction > 0.0 { "better" } else { "worse" })
}

/// Events per second: `7.3 /s`, `1.20 k /s`.
pub fn event_rate(rate: f64) -> String {
    if rate < 10.0 {
        format!("{rate:.1} /s")
    } else {
        Scale::new(&Unit::rate("/s"), rate).show(rate)
    }
}

/// `5,000`
pub fn count(number: u64) -> String {
    group(&number.to_string())
}

/// A decimal number in groups of three digits, exact up to 15 digits: `592,573`. Beyond, where
/// nobody counts groups, four digits and the exponent: `5.517e58`.
pub fn group(digits: &str) -> String {
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return digits.to_owned();
    }
    if digits.len() > 15 {
        let mantissa = digits[..6].parse::<f64>().unwrap_or_default() / 1e5;
        return match format!("{mantissa:.3}").as_str() {
            "10.000" => format!("1.000e{}", digits.len()),
            mantissa => format!("{mantissa}e{}", digits.len() - 1),
        };
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

/// `1 probe`, `2 branches`, `2 binaries`: how many of `noun`, whose plural ends in s.
pub fn counted(number: u64, noun: &str) -> String {
    let noun = match noun.strip_suffix('y') {
        _ if number == 1 => noun.to_owned(),
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{stem}ies"),
        _ if noun.ends_with("ch") => format!("{noun}es"),
        _ => format!("{noun}s"),
    };
    format!("{} {noun}", count(number))
}

/// `350 µs`, `1.5 ms`, `195 ms`, `12.3 s`, `2 s`, `4 min 10 s`, `5 min`, `2 h 5 min`.
pub fn duration(time: Duration) -> String {
    let tenths = |value: f64, unit: &str| {
        let text = format!("{value:.1}");
        format!("{} {unit}", text.strip_suffix(".0").unwrap_or(&text))
    };
    let parts = |large: u64, unit: &str, small: u64, part: &str| match small {
        0 => format!("{large} {unit}"),
        small => format!("{large} {unit} {small} {part}"),
    };
    // A value that would be rounded up to the next unit is shown in that unit.
    match time.as_secs_f64() {
        0.0 => "0 s".to_owned(),
        seconds if seconds < 999.5e-6 => format!("{:.0} µs", seconds * 1e6),
        seconds if seconds < 9.95e-3 => tenths(seconds * 1e3, "ms"),
        seconds if seconds < 0.9995 => format!("{:.0} ms", seconds * 1e3),
        seconds if seconds < 59.95 => tenths(seconds, "s"),
        seconds if seconds < 3599.5 => {
            let seconds = seconds.round() as u64;
            parts(seconds / 60, "min", seconds % 60, "s")
        }
        seconds => {
            let minutes = (seconds / 60.0).round() as u64;
            parts(minutes / 60, "h", minutes % 60, "min")
        }
    }
}

/// Bytes, exactly for caches and to a tenth of a GiB for memories: `1280 KiB`, `60.7 GiB`.
pub fn bytes(size: u64) -> String {
    const KIB: u64 = 1 << 10;
    const MIB: u64 = 1 << 20;
    const GIB: u64 = 1 << 30;
    match size {
        _ if size >= GIB => format!("{:.1} GiB", size as f64 / GIB as f64).replace(".0 ", " "),
        _ if size >= MIB && size.is_multiple_of(MIB) => format!("{} MiB", size / MIB),
        _ if size >= 10 * MIB => format!("{:.1} MiB", size as f64 / MIB as f64),
        _ if size >= KIB => format!("{} KiB", size / KIB),
        _ => format!("{size} B"),
    }
}

/// `2026-11-21 03:18 UTC` for seconds since the Unix epoch. Days to a civil date by H. Hinnant,
/// "chrono-compatible low-level date algorithms", `civil_from_days`.
pub fn date(seconds: i64) -> String {
    let (days, of_day) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
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
    fn a_cost_whose_performance_may_be_none_has_no_upper_end() {
        let scale = Scale::new(&Unit::cost("s"), 1.0);
        assert_eq!(scale.range(0.0, 4.0), "0.25 s or more");
        assert_eq!(scale.range(-1.0, 4.0), "0.25 s or more");
        assert_eq!(scale.range(2.0, 4.0), "0.25 to 0.50 s");
    }

    #[test]
    fn quantities_carry_a_prefix_and_their_unit() {
        assert_eq!(
            Scale::new(&Unit::rate("packets/s"), 1_723_456.0).show(1_723_456.0),
            "1.72 M packets/s"
        );
        assert_eq!(Scale::new(&Unit::rate("1/s"), 123.4).show(123.4), "123 per second");
        assert_eq!(Scale::new(&Unit::rate("1/s"), 1.5e6).show(1.5e6), "1.50 M per second");
        assert_eq!(Scale::new(&Unit::cost("s"), 1.0 / 0.0341).show(1.0 / 0.0341), "34.1 ms");
        assert_eq!(Scale::new(&Unit::rate("packets/s"), 1.7e6).show(900_000.0), "0.90 M packets/s");
    }

    #[test]
    fn a_typical_value_has_three_digits_whatever_its_size() {
        for (seconds, shown) in [
            (0.1034, "0.103 s"),
            (0.998, "0.998 s"),
            (1.034, "1.03 s"),
            (10.34, "10.3 s"),
            (103.4, "103 s"),
            (0.0999, "99.9 ms"),
            (0.00034, "0.340 ms"),
            (0.000034, "34.0 µs"),
        ] {
            let scale = Scale::new(&Unit::cost("s"), 1.0 / seconds);
            assert_eq!(scale.show(1.0 / seconds), shown);
        }
    }

    #[test]
    fn ranges_are_in_order_and_their_ends_can_be_told_apart() {
        let scale = Scale::new(&Unit::cost("s"), 0.5);
        assert_eq!(scale.range(0.4, 0.625), "1.60 to 2.50 s");
        assert_eq!(scale.range(0.4995, 0.5005), "1.998 to 2.002 s");
    }

    #[test]
    fn a_value_has_the_digits_of_its_interval() {
        let scale = Scale::new(&Unit::cost("s"), 1.0 / 2.4654);
        let of = |seconds: f64| 1.0 / seconds;
        let (low, high) = (of(2.468), of(2.463));
        assert_eq!(scale.show(of(2.4654)), "2.47 s", "outside of");
        assert_eq!(scale.range(low, high), "2.463 to 2.468 s");
        assert_eq!(scale.telling(low, high).show(of(2.4654)), "2.465 s");
        // No interval, and one without an upper end.
        assert_eq!(scale.telling(f64::NEG_INFINITY, f64::INFINITY).show(of(2.4654)), "2.47 s");
        assert_eq!(scale.telling(0.0, of(2.0)).number(of(2.4654)), "2.47");
        // Whatever the figures, what is within stays within.
        let rate = Scale::new(&Unit::rate("1/s"), 1.0);
        for step in 0..1000 {
            let (low, value) =
                (1.0 + f64::from(step) * 1.7e-5, 1.0 + f64::from(step) * 1.7e-5 + 2e-5);
            let high = value + f64::from(step % 7) * 1e-4;
            let shown = |text: &str| text.parse::<f64>().unwrap();
            let ends = rate.ends(low, high);
            let (from, to) = ends.split_once(" to ").unwrap();
            let value = rate.telling(low, high).number(value);
            assert!(
                shown(from) <= shown(&value) && shown(&value) <= shown(to),
                "{value} beside {ends}"
            );
        }
    }

    #[test]
    fn latencies_have_three_digits() {
        let ns = |value| latency(LatencyUnit::Ns, value);
        assert_eq!(
            [ns(8.118), ns(9.996), ns(41.0), ns(99.96), ns(338.4)],
            ["8.12", "10.0", "41.0", "100", "338"]
        );
        assert_eq!(latency(LatencyUnit::Cycles, 28.0), "28");
    }

    #[test]
    fn percentages_and_counts_read_naturally() {
        assert_eq!(percent(0.024), "2.4 %");
        assert_eq!(percent(0.0003), "0.03 %");
        assert_eq!(percent(0.95), "95 %");
        assert_eq!(percent(0.975), "97.5 %");
        assert_eq!([0.975, -0.024].map(better_or_worse), ["97.5 % better", "2.4 % worse"]);
        assert_eq!(change(0.1434), "+14.3 %");
        assert_eq!(change(-0.003), "-0.3 %");
        assert_eq!([-4e-5, -6e-5, 4e-5, -0.0].map(percent), ["0.00 %", "-0.01 %", "0.00 %", "0 %"]);
        assert_eq!([-4e-4, -6e-4, 4e-4, -0.0].map(change), ["0.0 %", "-0.1 %", "0.0 %", "0.0 %"]);
        assert_eq!(count(5000), "5,000");
        assert_eq!(
            [counted(0, "probe"), counted(1, "probe"), counted(2000, "probe")],
            ["0 probes", "1 probe", "2,000 probes"]
        );
        let nouns = ["branch", "binary", "way"].map(|noun| counted(2, noun));
        assert_eq!(nouns, ["2 branches", "2 binaries", "2 ways"]);
    }

    #[test]
    fn durations_have_the_unit_that_they_round_to() {
        for (seconds, text) in [
            (0.0, "0 s"),
            (350e-6, "350 µs"),
            (1.49e-3, "1.5 ms"),
            (0.01, "10 ms"),
            (0.19491, "195 ms"),
            (0.9996, "1 s"),
            (2.0, "2 s"),
            (12.34, "12.3 s"),
            (59.96, "1 min"),
            (250.0, "4 min 10 s"),
            (3599.7, "1 h"),
            (7500.0, "2 h 5 min"),
        ] {
            assert_eq!(duration(Duration::from_secs_f64(seconds)), text);
        }
    }

    #[test]
    fn counts_are_exact_as_long_as_they_can_be_read() {
        assert_eq!(group("11"), "11");
        assert_eq!(group("592573"), "592,573");
        assert_eq!(group("600985034650"), "600,985,034,650");
        assert_eq!(group("5517000000000000000"), "5.517e18");
        assert_eq!(group("9999990000000000000"), "1.000e19");
    }

    #[test]
    fn sizes_have_units_that_people_use() {
        for (size, text) in [
            (512, "512 B"),
            (48 << 10, "48 KiB"),
            (1280 << 10, "1280 KiB"),
            (2 << 20, "2 MiB"),
            (16 << 30, "16 GiB"),
            (17_174_994_944, "16 GiB"),
            (60 << 30 | 700 << 20, "60.7 GiB"),
        ] {
            assert_eq!(bytes(size), text);
        }
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(date(0), "1970-01-01 00:00 UTC");
        assert_eq!(date(951_782_399), "2000-02-28 23:59 UTC");
        assert_eq!(date(951_782_400), "2000-02-29 00:00 UTC");
        assert_eq!(date(1_795_231_081), "2026-11-21 03:18 UTC");
    }
}
