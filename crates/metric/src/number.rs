//! Numbers as programs print them for people.

/// Reads `12,345.6`, `1_000`, `3.2e6`, `12.5M` (SI: k, M, G, T times 1000; Ki, Mi, Gi, Ti times
/// 1024). `None` when the text is no finite number; a comma that does not stand between groups of
/// three digits is refused rather than guessed at.
pub(crate) fn parse(text: &str) -> Option<f64> {
    let text = text.trim();
    let (digits, factor) = split_suffix(text);
    let value: f64 = ungroup(digits.trim_end())?.parse().ok()?;
    let scaled = value * factor;
    scaled.is_finite().then_some(scaled)
}

/// The number without its unit prefix, and what the prefix multiplies by.
fn split_suffix(text: &str) -> (&str, f64) {
    let (body, base) = match text.strip_suffix('i') {
        Some(body) => (body, 1024f64),
        None => (text, 1000f64),
    };
    let power = match body.chars().last() {
        Some('k' | 'K') => 1,
        Some('M') => 2,
        Some('G') => 3,
        Some('T') => 4,
        _ => return (text, 1.0),
    };
    (&body[..body.len() - 1], base.powi(power))
}

/// Takes out separators between groups of three digits (`,`, `_`, `'`) before any decimal point.
fn ungroup(digits: &str) -> Option<String> {
    // `inf` and `nan` are numbers to Rust's parser and no measurement.
    if !digits.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.')) {
        return None;
    }
    let (whole, fraction) = match digits.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (digits, None),
    };
    let mut groups = whole.split([',', '_', '\'']);
    let first = groups.next()?;
    let mut plain = first.to_owned();
    for group in groups {
        let grouped = group.len() == 3 && group.bytes().all(|b| b.is_ascii_digit());
        let leads = matches!(first.trim_start_matches(['+', '-']).len(), 1..=3);
        if !grouped || !leads {
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

#[cfg(test)]
mod tests {
    use super::parse;
    use proptest::prelude::*;

    #[test]
    fn what_programs_print_is_read() {
        for (text, value) in [
            ("0", 0.0),
            (" 42 ", 42.0),
            ("-1.5", -1.5),
            ("3.2e6", 3.2e6),
            ("1,234,567", 1_234_567.0),
            ("12,345.5", 12_345.5),
            ("1_000", 1000.0),
            ("1'000'000", 1e6),
            ("12.5M", 12.5e6),
            ("3k", 3e3),
            ("3 K", 3e3),
            ("2G", 2e9),
            ("1.5Ki", 1536.0),
            ("1Mi", 1_048_576.0),
        ] {
            assert_eq!(parse(text), Some(value), "{text}");
        }
    }

    #[test]
    fn what_is_no_number_or_two_readings_of_one_is_refused() {
        for text in [
            "", "abc", "nan", "inf", "-inf", "3,5", "1,23", "1234,567", "1,,000", "1e999", "k",
            "--1", ",123", "12..3",
        ] {
            assert_eq!(parse(text), None, "{text}");
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
            prop_assert_eq!(parse(&grouped), Some(value as f64));
        }

        #[test]
        fn no_text_makes_it_panic(text in ".{0,20}") {
            prop_assert!(parse(&text).is_none_or(f64::is_finite));
        }
    }
}
