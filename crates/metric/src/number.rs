//! Numbers as programs print them for people.

use crate::MetricError;

/// What a comma in front of three digits is, where the number alone does not show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comma {
    /// It separates thousands: `1,234` is 1234.
    Thousands,
    /// It is the decimal point: `1,234` is 1.234.
    Decimal,
}

/// Reads `12,345.6`, `1.234,5`, `1_000`, `3.2e6`, `87 %`, `12.5M`. The prefixes k, M, G, T are
/// powers of 1000, and Ki, Mi, Gi, Ti of 1024. `None` when the text is no finite number.
///
/// # Errors
/// [`MetricError::TwoReadings`]: the text may be either of two numbers, and `comma` does not say
/// which.
pub(crate) fn parse(text: &str, comma: Option<Comma>) -> Result<Option<f64>, MetricError> {
    let text = text.trim();
    let (digits, factor) = split_prefix(text.strip_suffix('%').unwrap_or(text).trim_end());
    let value = |comma| {
        let plain = plain(digits.trim_end(), comma)?;
        plain.parse().ok().map(|value: f64| value * factor).filter(|value| value.is_finite())
    };
    let (grouped, decimal) = (value(Comma::Thousands), value(Comma::Decimal));
    Ok(match (grouped, decimal, comma) {
        (Some(_), _, Some(Comma::Thousands)) => grouped,
        (_, Some(_), Some(Comma::Decimal)) => decimal,
        (Some(one), Some(other), None) if one != other => {
            return Err(MetricError::TwoReadings {
                text: text.into(),
                grouped: one,
                decimal: other,
            });
        }
        _ => grouped.or(decimal),
    })
}

/// The number without its prefix, and what the prefix multiplies by.
fn split_prefix(text: &str) -> (&str, f64) {
    let at = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic()).len();
    prefix(&text[at..]).map_or((text, 1.0), |factor| (&text[..at], factor))
}

/// What a prefix multiplies by.
fn prefix(text: &str) -> Option<f64> {
    let (body, base) = match text.strip_suffix('i') {
        Some(body) => (body, 1024f64),
        None => (text, 1000f64),
    };
    let power = match body {
        "k" | "K" => 1,
        "M" => 2,
        "G" => 3,
        "T" => 4,
        _ => return None,
    };
    Some(base.powi(power))
}

/// The number as Rust writes it, if the text is one where a comma before three digits is `comma`. A
/// mark that comes twice separates thousands, and so does the first of two different ones.
fn plain(digits: &str, comma: Comma) -> Option<String> {
    // `inf` and `nan` are numbers to Rust's parser and no measurement.
    if !digits.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.')) {
        return None;
    }
    let once = |mark| digits.matches(mark).count() == 1;
    let point = match (digits.rfind('.'), digits.rfind(',')) {
        (Some(point), Some(comma)) if point > comma => once('.').then_some(point),
        (Some(_), Some(comma)) => once(',').then_some(comma),
        (Some(point), None) => once('.').then_some(point),
        (None, Some(at)) if once(',') && comma == Comma::Decimal => Some(at),
        (None, _) => None,
    };
    let (whole, fraction) = match point {
        Some(point) => (&digits[..point], Some(&digits[point + 1..])),
        None => (digits, None),
    };
    let mut groups = whole.split([',', '.', '_', '\'']);
    let first = groups.next()?;
    let mut plain = first.to_owned();
    for group in groups {
        let grouped = group.len() == 3 && group.bytes().all(|b| b.is_ascii_digit());
        // No number has a thousand of nothing.
        let lead = first.trim_start_matches(['+', '-']);
        if !grouped || !matches!(lead.len(), 1..=3) || lead == "0" {
            return None;
        }
        plain.push_str(group);
    }
    if let Some(fraction) = fraction {
        plain.push('.');
        plain.push_str(fraction);
    }
    Some(plain)
}

/// A unit that was recognized behind a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Printed {
    /// What its prefix multiplies by: 1e9 in `Gbits/sec`.
    pub(crate) factor: f64,
    /// The unit without its prefix; `None` for a prefix alone, as in `12.3K`.
    pub(crate) unit: Option<&'static str>,
}

/// Units that programs print with prefixes.
const PREFIXED: [&str; 32] = [
    "bits/sec",
    "bits/s",
    "bit/s",
    "b/s",
    "bps",
    "Bytes/sec",
    "bytes/sec",
    "bytes/s",
    "B/sec",
    "B/s",
    "Bps",
    "bits",
    "bytes",
    "Bytes",
    "B",
    "FLOPS",
    "flops",
    "Flop/s",
    "ops/sec",
    "ops/s",
    "op/s",
    "iops",
    "ops",
    "packets/s",
    "pps",
    "req/s",
    "rps",
    "qps",
    "tps",
    "IOPS",
    "Hz",
    "transactions/s",
];

/// Parts of a second.
const TIMES: [(&str, f64); 5] =
    [("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("µs", 1e-6), ("ns", 1e-9)];

/// The unit that `text`, which stands behind a number, begins with.
pub(crate) fn printed(text: &str) -> Option<Printed> {
    let spaced = text.strip_prefix(' ');
    let text = spaced.unwrap_or(text);
    if text.starts_with('%') {
        return Some(Printed { factor: 1.0, unit: Some("%") });
    }
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '/'));
    let (word, rest) = text.split_at(end.unwrap_or(text.len()));
    // What is followed by one of these names the next number.
    if rest.trim_start().starts_with([':', '=']) {
        return None;
    }
    let time = TIMES.iter().find(|(name, _)| *name == word);
    if let Some(&(_, factor)) = time {
        return Some(Printed { factor, unit: Some("s") });
    }
    let factor = |prefix_of: &str| match prefix_of {
        "" => Some(1.0),
        letters => prefix(letters),
    };
    let known = PREFIXED.iter().find_map(|&unit| {
        let factor = factor(word.strip_suffix(unit)?)?;
        Some(Printed { factor, unit: Some(unit) })
    });
    known.or_else(|| {
        let factor = prefix(word)?;
        let next = rest.strip_prefix(' ').filter(|next| next.starts_with(char::is_alphabetic));
        match (spaced, next) {
            // `12.0 M packets/s`
            (Some(_), Some(_)) => {
                let unit = printed(rest).filter(|next| next.factor == 1.0);
                Some(Printed { factor, unit: unit.and_then(|next| next.unit) })
            }
            // A letter on its own may be anything.
            (Some(_), None) => None,
            (None, _) => Some(Printed { factor, unit: None }),
        }
    })
}

/// What the prefix of a unit multiplies by, as the user names it: 1e9 for `Gbit/s`.
pub(crate) fn factor_of(unit: &str) -> f64 {
    printed(unit).map_or(1.0, |printed| printed.factor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Option<f64> {
        parse(text, None).unwrap()
    }

    #[test]
    fn what_programs_print_is_read() {
        for (text, value) in [
            ("0", 0.0),
            (" 42 ", 42.0),
            ("-1.5", -1.5),
            ("3.2e6", 3.2e6),
            ("1,234,567", 1_234_567.0),
            ("12,345.5", 12_345.5),
            ("1.234,5", 1234.5),
            ("1.234.567", 1_234_567.0),
            ("1.234.567,8", 1_234_567.8),
            ("3,5", 3.5),
            ("1,23", 1.23),
            ("0,123", 0.123),
            ("1234,567", 1234.567),
            ("1_000", 1000.0),
            ("1'000'000", 1e6),
            ("87 %", 87.0),
            ("87.5%", 87.5),
            ("12.5M", 12.5e6),
            ("3k", 3e3),
            ("3 K", 3e3),
            ("2G", 2e9),
            ("1.5Ki", 1536.0),
            ("1Mi", 1_048_576.0),
        ] {
            assert_eq!(read(text), Some(value), "{text}");
        }
    }

    #[test]
    fn a_unit_is_no_prefix_of_a_shorter_one() {
        let iops = |factor| Some(Printed { factor, unit: Some("iops") });
        assert_eq!([printed(" iops"), printed(" kiops")], [iops(1.0), iops(1e3)]);
        assert_eq!(printed(" Mops"), Some(Printed { factor: 1e6, unit: Some("ops") }));
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in [
            "",
            "abc",
            "nan",
            "inf",
            "-inf",
            "1,,000",
            "1e999",
            "k",
            "--1",
            ",123",
            "12..3",
            "%",
            "1,234,56",
            "1.2.3",
            "1,2,3.4",
            "1.234,5,6",
            "5x",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn what_may_be_two_numbers_is_asked_about() {
        for (text, grouped, decimal) in
            [("1,234", 1234.0, 1.234), ("-12,500", -12_500.0, -12.5), ("1,234k", 1.234e6, 1234.0)]
        {
            let error = parse(text, None).unwrap_err();
            let expected = MetricError::TwoReadings { text: text.into(), grouped, decimal };
            assert_eq!(error, expected, "{text}");
            assert_eq!(parse(text, Some(Comma::Thousands)), Ok(Some(grouped)));
            assert_eq!(parse(text, Some(Comma::Decimal)), Ok(Some(decimal)));
        }
        // The choice matters only if there is one.
        assert_eq!(parse("1,234,567", Some(Comma::Decimal)), Ok(Some(1_234_567.0)));
        assert_eq!(parse("1,5", Some(Comma::Thousands)), Ok(Some(1.5)));
    }

    #[test]
    fn the_unit_behind_a_number_has_a_prefix_or_none() {
        for (text, factor, unit) in [
            (" Gbits/sec  0", 1e9, Some("bits/sec")),
            (" Mbits/sec", 1e6, Some("bits/sec")),
            ("K", 1e3, None),
            ("k\n", 1e3, None),
            ("us", 1e-6, Some("s")),
            (" ms", 1e-3, Some("s")),
            ("MiB/s", 1_048_576.0, Some("B/s")),
            (" M packets/s", 1e6, Some("packets/s")),
            (" k requests", 1e3, None),
            (" %", 1.0, Some("%")),
            (" tps (without", 1.0, Some("tps")),
        ] {
            assert_eq!(printed(text), Some(Printed { factor, unit }), "{text}");
        }
        // The name of the next number, a letter alone, words.
        for text in ["", " s: 5", " K", " T 14", " Mops=3", "ms=4", " minutes", " packets", "    5"]
        {
            assert_eq!(printed(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn thousands_separators_do_not_change_a_number(value in 0u64..1_000_000_000_000) {
            let digits = value.to_string();
            let mut grouped = String::new();
            for (index, digit) in digits.chars().enumerate() {
                if index > 0 && (digits.len() - index).is_multiple_of(3) {
                    grouped.push(',');
                }
                grouped.push(digit);
            }
            prop_assert_eq!(parse(&grouped, Some(Comma::Thousands)), Ok(Some(value as f64)));
        }

        #[test]
        fn no_text_makes_it_panic(text in ".{0,20}") {
            prop_assert!(parse(&text, None).is_ok_and(|value| value.is_none_or(f64::is_finite))
                || text.contains(','));
            let _ = printed(&text);
        }
    }
}
